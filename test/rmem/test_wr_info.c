/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The class's table of send requests is complete, and its check enforces each property. */

#include <string.h>

#include <rmem_driver.h>

#include "fixture.h"

#define ALL_FLAGS (RMEM_SEND_FENCE | RMEM_SEND_SIGNALED | RMEM_SEND_SOLICITED | RMEM_SEND_INLINE)

static const struct rmem_qp_conf conf = {
		.type = RMEM_QPT_RC, .max_send_sge = 1, .max_inline_data = 16};
static struct rmem_wr_limits limits;

/* A request of an opcode that passes. */
static struct rmem_send_wr
good_wr(uint8_t opcode, const struct rmem_sge *sge)
{
	static struct rmem_mkey_entry entry;

	switch (opcode) {
	case RMEM_WR_REG_MR:
		return fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	case RMEM_WR_BIND_MW:
		return fx_mw_wr(fx.mw.two, 0, 1, RMEM_ACCESS_REMOTE_READ);
	case RMEM_WR_FLUSH: {
		struct rmem_send_wr wr = fx_wr(opcode, NULL, 0);

		wr.flush.type = RMEM_FLUSH_GLOBAL;
		return wr;
	}
	case RMEM_WR_UMR:
		return fx_umr(fx.a.mr, &entry, 1, 0);
	default:
		return fx_wr(opcode, sge, 1);
	}
}

static void
setup(void)
{
	fx_setup_fast();
	rmem_wr_limits_set(&limits, &conf, UINT64_MAX);
	fx.mw.mr = fx.a.mr;
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
}

TEST(wr_info, each_opcode_has_its_row)
{
	static const uint8_t zeros[64];
	uint8_t opcode;

	for (opcode = 0; opcode < RMEM_WR_OPCODE_NB; opcode++) {
		const struct rmem_wr_info *info = &rmem_wr_info[opcode];

		TEST_ASSERT((info->flags & RMEM_SEND_SIGNALED) != 0);
		TEST_ASSERT(strcmp(rmem_wc_opcode_str(info->wc_opcode), "unknown") != 0);
		TEST_ASSERT(info->is_full_check || info->handle[0] == 0);
		TEST_ASSERT(info->recv_opcode != 0 || info->recv_flags == 0);
		TEST_EQ(info->pad, 0);
		TEST_MEM(info->reserved, zeros, sizeof(info->reserved));
	}
}

/* The shortcuts accept what the full check does: the one for REG_MR, BIND_MW and UMR all of it. */
static int
checked(const struct rmem_qp *qp, const struct rmem_wr_limits *has, const struct rmem_send_wr *wr)
{
	bool is_bind = wr->opcode == RMEM_WR_REG_MR || wr->opcode == RMEM_WR_BIND_MW ||
			wr->opcode == RMEM_WR_UMR;
	int ret = rmem_wr_check_full(qp, has, wr);

	if (rmem_wr_is_bind(qp, has, wr) != (is_bind && ret == 0))
		return -ERANGE;
	return rmem_wr_check(qp, has, wr) == ret ? ret : -ERANGE;
}

TEST(wr_info, check_enforces_each_property)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, sizeof(uint64_t));
	struct rmem_wr_limits none;
	struct rmem_send_wr wr;
	unsigned int i;
	uint8_t opcode;

	rmem_wr_limits_set(&none, &conf, 0);
	for (opcode = 0; opcode < RMEM_WR_OPCODE_NB; opcode++) {
		const struct rmem_wr_info *info = &rmem_wr_info[opcode];

		wr = good_wr(opcode, &sge);
		TEST_OK(checked(fx.a.qp, &limits, &wr));
		TEST_OK(rmem_wr_check_full(fx.a.qp, &limits, &wr));
		if (info->capa != 0)
			TEST_ERR(checked(fx.a.qp, &none, &wr), EOPNOTSUPP);
		wr.flags = info->flags;
		TEST_OK(checked(fx.a.qp, &limits, &wr));
		wr.flags = ALL_FLAGS;
		if (info->flags != ALL_FLAGS)
			TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
		wr.flags = ALL_FLAGS + 1;
		TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
		wr = good_wr(opcode, &sge);
		wr.num_sge = 2;
		if (rmem_wr_has_sges(&wr))
			TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
		else
			TEST_OK(checked(fx.a.qp, &limits, &wr));
		for (i = 0; i < RMEM_WR_MAX_HANDLES && rmem_wr_obj(&wr, i) != NULL; i++) {
			struct rmem_obj *obj = rmem_wr_obj(&wr, i);

			obj->dev_id++;
			TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
			obj->dev_id--;
			obj->type++;
			TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
			obj->type--;
		}
	}
	wr.opcode = RMEM_WR_OPCODE_NB;
	TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
}

/* Any request by its number: opcode, number of SGEs and flags. */
static struct rmem_send_wr
any_wr(uint32_t i)
{
	return (struct rmem_send_wr){.opcode = (uint8_t)(i % (RMEM_WR_OPCODE_NB + 1)),
			.num_sge = (uint16_t)(i / (RMEM_WR_OPCODE_NB + 1) % 3),
			.flags = (uint8_t)(i / (RMEM_WR_OPCODE_NB + 1) / 3)};
}

TEST(wr_info, simple_requests_are_counted_as_one_by_one)
{
	const uint32_t nb = (RMEM_WR_OPCODE_NB + 1) * 3 * (ALL_FLAGS + 2);
	uint32_t i, j, k, n;

	for (i = 0; i < nb; i++) {
		for (j = 0; j < nb; j++) {
			const struct rmem_send_wr wr[] = {
					any_wr(i), any_wr(j), any_wr(j), any_wr(i)};

			for (k = 0; k < RTE_DIM(wr) && rmem_wr_is_simple(&limits, &wr[k]); k++)
				;
			for (n = 0; n <= RTE_DIM(wr); n++)
				TEST_EQ(rmem_wr_nb_simple(&limits, wr, n), RTE_MIN(n, k));
		}
	}
}

TEST(wr_info, a_queued_request_holds_each_of_its_objects)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, sizeof(uint64_t));
	uint32_t refs[RMEM_WR_MAX_HANDLES] = {0};
	struct rmem_send_wr wr;
	struct rmem_obj *obj;
	unsigned int i;
	uint8_t opcode;

	for (opcode = 0; opcode < RMEM_WR_OPCODE_NB; opcode++) {
		wr = good_wr(opcode, &sge);
		for (i = 0; i < RMEM_WR_MAX_HANDLES && (obj = rmem_wr_obj(&wr, i)) != NULL; i++)
			refs[i] = obj->refs;
		rmem_wr_hold(&wr);
		for (i = 0; i < RMEM_WR_MAX_HANDLES && (obj = rmem_wr_obj(&wr, i)) != NULL; i++)
			TEST_EQ(obj->refs, refs[i] + 1);
		rmem_wr_unhold(&wr);
		for (i = 0; i < RMEM_WR_MAX_HANDLES && (obj = rmem_wr_obj(&wr, i)) != NULL; i++)
			TEST_EQ(obj->refs, refs[i]);
	}
}

TEST(wr_info, some_opcodes_need_the_service_rc)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, sizeof(uint64_t));
	struct rmem_qp_conf uc_conf = conf;
	struct rmem_wr_limits uc;
	struct rmem_send_wr wr;
	uint8_t opcode;

	uc_conf.type = RMEM_QPT_UC;
	rmem_wr_limits_set(&uc, &uc_conf, UINT64_MAX);
	for (opcode = 0; opcode < RMEM_WR_OPCODE_NB; opcode++) {
		wr = good_wr(opcode, &sge);
		TEST_EQ(checked(fx.a.qp, &uc, &wr),
				rmem_wr_info[opcode].props & RMEM_WR_RC_ONLY ? -EOPNOTSUPP : 0);
	}
}

TEST(wr_info, lengths_of_inline_data_and_atomics_are_checked)
{
	static const uint8_t atomics[] = {RMEM_WR_ATOMIC_CMP_AND_SWP, RMEM_WR_ATOMIC_FETCH_AND_ADD,
			RMEM_WR_ATOMIC_WRITE};
	static const uint32_t lengths[] = {0, 4, 7, 9, 16};
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, limits.max_inline_data);
	/* Their sum must not wrap. */
	const struct rmem_sge long_sges[] = {sge, fx_sge(fx.a.mr, 0, UINT32_MAX)};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	unsigned int i;

	wr.flags = RMEM_SEND_INLINE;
	TEST_OK(checked(fx.a.qp, &limits, &wr));
	sge.length++;
	TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
	limits.max_send_sge = 2;
	wr.sg_list = long_sges;
	wr.num_sge = 2;
	TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
	for (i = 0; i < RTE_DIM(atomics) * RTE_DIM(lengths); i++) {
		wr = fx_wr(atomics[i / RTE_DIM(lengths)], &sge, 1);
		sge.length = lengths[i % RTE_DIM(lengths)];
		TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
		sge.length = 8;
		wr.num_sge = 0;
		TEST_ERR(checked(fx.a.qp, &limits, &wr), EINVAL);
	}
}

TEST_SUITE(wr_info, setup, fx_teardown);
