/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Type 2B windows: bound by a request, for one QP, and invalidated before the next binding. */

#include <string.h>

#include "conf.h"

#define CAPA     (RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV)
#define CAPA_INV (CAPA | RMEM_DEV_CAPA_SEND_WITH_INV)
#define ALL      (RMEM_ACCESS_REMOTE & conf.info.access)

static int
invalidate(uint32_t rkey)
{
	const struct rmem_send_wr wr = fx_inv(rkey);

	return fx_send(fx.a.qp, &wr);
}

CONF_TEST(mw2, window_opens_its_range, CAPA, 0, "IBTA 10.6.7.2: a binding opens it")
{
	uint64_t at = fx_addr(fx.a.buf) + 4000;

	TEST_STATUS(fx_mw_bind_2(4000, 300, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_BIND_MW);
	TEST_RUN(conf_open(at, 300, fx.mw.two->rkey, fx.a.buf + 4000));
	TEST_RUN(conf_open(at + 299, 1, fx.mw.two->rkey, fx.a.buf + 4299));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, window_ends_where_it_was_bound, CAPA, 0,
		"IBTA C10-75: the window's bounds count, not those of its MR")
{
	uint64_t at = fx_addr(fx.a.buf) + 4000;

	TEST_STATUS(fx_mw_bind_2(4000, 300, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(conf_closed_beside(at - 1, 1, fx.mw.two->rkey));
	TEST_RUN(conf_closed_beside(at, 301, fx.mw.two->rkey));
	TEST_RUN(conf_closed_beside(at + 299, 2, fx.mw.two->rkey));
	TEST_RUN(conf_closed_beside(at + 300, 1, fx.mw.two->rkey));
	TEST_RUN(conf_closed(fx_addr(fx.a.buf) + FX_BUF_SIZE, 8, fx.mw.two->rkey));
	TEST_RUN(conf_closed(UINT64_MAX - 3, 8, fx.mw.two->rkey));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, window_that_is_not_bound_is_closed, CAPA, 0,
		"ibv_alloc_mw(3): the window is not bound to any MR")
{
	return conf_closed(fx_addr(fx.a.buf), 8, fx.mw.two->rkey);
}

CONF_TEST(mw2, zero_based_window_starts_at_0, CAPA, 0,
		"ibv_bind_mw(3): IBV_ACCESS_ZERO_BASED, type 2 only")
{
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 4100, 300, ALL | RMEM_ACCESS_ZERO_BASED);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_RUN(conf_open(0, 300, fx.mw.two->rkey, fx.a.buf + 4100));
	TEST_RUN(conf_open(299, 1, fx.mw.two->rkey, fx.a.buf + 4399));
	TEST_RUN(conf_closed_beside(299, 2, fx.mw.two->rkey));
	TEST_RUN(conf_closed(fx_addr(fx.a.buf) + 4100, 8, fx.mw.two->rkey));
	TEST_RUN(conf_closed_beside(UINT64_MAX - 3, 8, fx.mw.two->rkey));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, rights_are_the_windows, CAPA, 0, "ibv_bind_mw(3): mw_access_flags, in all sums")
{
	static const struct {
		uint8_t opcode;
		uint32_t right;
	} rows[] = {
			{RMEM_WR_RDMA_WRITE, RMEM_ACCESS_REMOTE_WRITE},
			{RMEM_WR_RDMA_READ, RMEM_ACCESS_REMOTE_READ},
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, RMEM_ACCESS_REMOTE_ATOMIC},
	};
	unsigned int nb = (ALL & RMEM_ACCESS_REMOTE_ATOMIC) != 0 ? 3 : 2;
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	uint32_t access;
	unsigned int i;

	for (access = 0; access <= ALL; access += RMEM_ACCESS_REMOTE_WRITE) {
		TEST_STATUS(fx_mw_bind_2(0, 64, access), RMEM_WC_SUCCESS);
		for (i = 0; i < nb; i++) {
			const struct rmem_send_wr wr = conf_request(
					rows[i].opcode, &sge, fx_addr(fx.a.buf), fx.mw.two->rkey);

			if ((access & rows[i].right) != 0)
				TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
			else
				TEST_RUN(conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr));
		}
		TEST_STATUS(invalidate(fx.mw.two->rkey), RMEM_WC_SUCCESS);
	}
	return TEST_SUCCESS;
}

CONF_TEST(mw2, tag_is_the_callers, CAPA, 0,
		"IBTA 10.6.7.2: the consumer owns the low byte of the key")
{
	static const uint8_t tags[] = {7, 8, 200, 199, 0, 255};
	unsigned int i;

	for (i = 0; i < RTE_DIM(tags); i++) {
		struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);
		uint32_t before = fx.mw.two->rkey;

		wr.bind_mw.key_tag = tags[i];
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_EQ(fx.mw.two->rkey, rmem_rkey_of_tag(before, tags[i]));
		TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf));
		if (before != fx.mw.two->rkey)
			TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, before));
		TEST_STATUS(invalidate(fx.mw.two->rkey), RMEM_WC_SUCCESS);
	}
	return TEST_SUCCESS;
}

CONF_TEST(mw2, bound_window_is_not_bound_again, CAPA, 0,
		"IBTA o10-37.2.30: only a free type 2 window is bound")
{
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.two->rkey;
	wr = fx_mw_wr(fx.mw.two, 64, 64, ALL);
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, rkey, fx.a.buf));
	TEST_STATUS(invalidate(rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_mw_bind_2(64, 64, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(conf_open(fx_addr(fx.a.buf) + 64, 64, fx.mw.two->rkey, fx.a.buf + 64));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, invalidated_window_is_closed, CAPA, 0,
		"IBTA 10.6.6: no access after Local Invalidate")
{
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.two->rkey;
	TEST_STATUS(invalidate(rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_LOCAL_INV);
	TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, rkey));
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, window_that_is_not_bound_is_not_invalidated, CAPA, 0,
		"IBTA 10.6.6: only a valid key is invalidated")
{
	struct rmem_send_wr wr = fx_inv(fx.mw.two->rkey);

	TEST_RUN(conf_refused(CONF_INVALIDATE, fx.a.qp, &wr));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.two->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_RUN(conf_refused(CONF_INVALIDATE, fx.a.qp, &wr));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

CONF_TEST(mw2, key_of_another_tag_does_not_invalidate, CAPA, 0,
		"IBTA 10.6.6: the whole R_Key must match")
{
	struct rmem_send_wr wr;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.two->rkey ^ 1);
	TEST_RUN(conf_refused(CONF_INVALIDATE, fx.a.qp, &wr));
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, another_qp_of_the_pd_is_refused, CAPA, 0,
		"IBTA C10-77: a 2B window opens for the QP that bound it")
{
	struct rmem_qp *mine = conf_qp(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE);
	struct rmem_qp *peer = conf_qp(fx.a.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;

	TEST_ASSERT(mine != NULL && peer != NULL);
	TEST_OK(conf_connect(mine, peer));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), fx.mw.two->rkey);
	TEST_RUN(conf_status(CONF_REMOTE_KEY, fx_send(peer, &wr)));
	TEST_RUN(conf_reconnect_pair(mine, peer));
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, another_qp_does_not_invalidate, CAPA, 0,
		"IBTA 10.6.6: a 2B window is invalidated by its QP")
{
	struct rmem_qp *mine = conf_qp(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE);
	struct rmem_qp *peer = conf_qp(fx.a.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	struct rmem_send_wr wr;

	TEST_ASSERT(mine != NULL && peer != NULL);
	TEST_OK(conf_connect(mine, peer));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.two->rkey);
	TEST_RUN(conf_status(CONF_INVALIDATE, fx_send(mine, &wr)));
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, peer_invalidates_by_send, CAPA_INV, 0,
		"IBTA 9.4.1: SEND with Invalidate; ibv_poll_cq(3): invalidated_rkey")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64), to = fx_sge(fx.a.mr, 4096, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &from, 1);
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.two->rkey;
	fx_fill(fx.b.buf, 64, 1);
	TEST_EQ(fx_post_recv(fx.a.qp, 9, &to, 1), 1);
	wr.invalidate_rkey = rkey;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 9);
	TEST_ASSERT((fx.wc.flags & RMEM_WC_WITH_INV) != 0);
	TEST_EQ(fx.wc.invalidated_rkey, rkey);
	TEST_MEM(fx.a.buf + 4096, fx.b.buf, 64);
	TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, rkey));
	/* It is free again: no LOCAL_INV is needed. */
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

CONF_TEST(mw2, window_outlives_a_reset_of_its_qp, CAPA, 0,
		"IBTA 10.6.7.2: a window is bound until it is invalidated or freed")
{
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(conf_reconnect());
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, bound_mr_is_not_deregistered, CAPA, 0,
		"ibv_dereg_mr(3): it fails while a window is bound")
{
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf));
	TEST_STATUS(invalidate(fx.mw.two->rkey), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, release_closes_a_bound_window, CAPA, 0,
		"ibv_dealloc_mw(3): the key opens nothing any more")
{
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.two->rkey;
	TEST_OK(fx_release(fx.mw.two));
	TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, rkey));
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

/* One field wrong at a time; afterwards the window can still be bound. */
CONF_TEST(mw2, bad_bindings_are_refused, CAPA, 0,
		"IBTA C10-75, o10-37.2.40: range and length; rights of peers only")
{
	const struct rmem_send_wr good = fx_mw_wr(fx.mw.two, 0, 64, ALL);
	struct rmem_send_wr wr = good;

	wr.bind_mw.length = 0;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.bind_mw.length = FX_BUF_SIZE + 1;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.bind_mw.length = UINT64_MAX;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr = good;
	wr.bind_mw.addr--;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.bind_mw.addr = UINT64_MAX - 8;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr = good;
	wr.bind_mw.access = RMEM_ACCESS_LOCAL_WRITE;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	TEST_STATUS(fx_send(fx.a.qp, &good), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

CONF_TEST(mw2, mr_must_allow_it, CAPA, 0, "IBTA C10-73, C10-74: MW_BIND, LOCAL_WRITE")
{
	struct rmem_mr *fixed = fx_mr(fx.a.pd, fx.a.buf, 64, RMEM_ACCESS_MW_BIND);
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, RMEM_ACCESS_REMOTE_READ);

	TEST_ASSERT(fixed != NULL);
	wr.bind_mw.mr = fx.a.mr;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.bind_mw.mr = fixed;
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_WRITE;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.two));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, pds_must_be_the_same, CAPA, 0, "IBTA C10-72: window, MR and QP of one PD")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

	wr.bind_mw.mr = fx_mr(pd, fx.a.buf, 64, conf_access());
	TEST_ASSERT(wr.bind_mw.mr != NULL);
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.bind_mw.mw = fx_mw(pd, RMEM_MW_TYPE_2);
	TEST_ASSERT(wr.bind_mw.mw != NULL);
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.bind_mw.mr = fx.mw.mr;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	return TEST_SUCCESS;
}

CONF_TEST(mw2, many_lives_wrap_the_tag, CAPA, 0, "IBTA 10.6.7.2: bound and invalidated for ever")
{
	struct rmem_send_wr wrs[2];
	unsigned int i;

	for (i = 0; i < 600; i++) {
		wrs[0] = fx_mw_wr(fx.mw.two, i, 64, ALL);
		wrs[1] = fx_inv(rmem_rkey_of_tag(fx.mw.two->rkey, wrs[0].bind_mw.key_tag));
		wrs[1].flags = RMEM_SEND_SIGNALED;
		TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	}
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

/* An MR whose registration in the background failed has no keys. */
CONF_TEST(mw2, binding_to_a_failed_mr_is_refused, CAPA, 0,
		"fi_mr(3): a registration that failed has no keys")
{
	struct rmem_mr_attr attr = {.addr = fx_map(FX_PAGE),
			.length = FX_PAGE,
			.access = conf_access(),
			.eq = fx_eq(conf.dev, 1)};
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, RMEM_ACCESS_REMOTE_READ);
	struct rmem_mr *mr;

	TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mr));
	fx_track(mr);
	TEST_ERR(fx_event(attr.eq).status, EFAULT);
	wr.bind_mw.mr = mr;
	wr.bind_mw.addr = fx_addr(attr.addr);
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	TEST_OK(fx_release(mr));
	return TEST_SUCCESS;
}

TEST_SUITE(mw2, conf_setup_mw, conf_teardown);
