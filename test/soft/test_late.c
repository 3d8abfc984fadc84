/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* RMEM_QP_LATE_ERRORS: requests that a post refuses complete with an error, as on NICs. */

#include <string.h>

#include "fixture.h"

#define QKEY 0x1234u

static struct rmem_qp *qp, *strict;
static struct rmem_ah *ah, *group_ah, *other_ah;

static struct rmem_qp *
create_qp(uint16_t type, uint16_t flags)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 8);

	conf.type = type;
	conf.flags = flags;
	return fx_qp_by(fx.a.pd, &conf);
}

static void
to_rts(struct rmem_qp *ud)
{
	TEST_OK(rmem_qp_reset(ud));
	TEST_OK(fx_ud_ready(ud, QKEY));
}

static void
open_ud(const char *args)
{
	static const uint8_t group[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, 7, 0, 9};
	struct rmem_ah_attr attr = {.port_num = 1, .is_global = 1, .hop_limit = 64};
	struct rmem_qp_attr own;

	fx.a.dev = fx_dev("soft0", args);
	fx_side_open(&fx.a, fx.a.dev, fx_pd(fx.a.dev));
	qp = create_qp(RMEM_QPT_UD, RMEM_QP_LATE_ERRORS);
	strict = create_qp(RMEM_QPT_UD, 0);
	to_rts(qp);
	to_rts(strict);
	TEST_OK(rmem_qp_query(qp, &own));
	memcpy(attr.dgid, own.addr.gid, sizeof(attr.dgid));
	TEST_OK(rmem_ah_create(fx.a.pd, &attr, &ah));
	fx_track(ah);
	TEST_OK(rmem_ah_create(fx_pd(fx.a.dev), &attr, &other_ah));
	fx_track(other_ah);
	memcpy(attr.dgid, group, sizeof(attr.dgid));
	TEST_OK(rmem_ah_create(fx.a.pd, &attr, &group_ah));
	fx_track(group_ah);
}

static struct rmem_send_wr
datagram(uint8_t opcode, const struct rmem_sge *sge, struct rmem_ah *to)
{
	struct rmem_send_wr wr = fx_wr(opcode, sge, 1);

	wr.ud.ah = to;
	wr.ud.remote_qpn = to == group_ah ? RMEM_MCAST_QPN : qp->qp_num;
	wr.ud.remote_qkey = QKEY;
	return wr;
}

/* Refused by a post without the flag; with it, a completion with an error. */
static void
expect_late(const struct rmem_send_wr *wr, int error, int status, uint32_t why)
{
	TEST_ERR(rmem_post_send(strict, wr, 1), error);
	TEST_STATUS(fx_send(qp, wr), status);
	TEST_EQ(fx.wc.vendor_err, why);
}

static void
check_ud(const char *args)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM,
			RMEM_WR_RDMA_READ, RMEM_WR_ATOMIC_CMP_AND_SWP,
			RMEM_WR_ATOMIC_FETCH_AND_ADD};
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	unsigned int i;

	open_ud(args);
	sge = fx_sge(fx.a.mr, 0, 8);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		wr = datagram(opcodes[i], &sge, ah);
		expect_late(&wr, EOPNOTSUPP, RMEM_WC_LOC_QP_OP_ERR, RMEM_VENDOR_ERR_SERVICE);
		to_rts(qp);
		wr = datagram(opcodes[i], &sge, group_ah);
		expect_late(&wr, EOPNOTSUPP, RMEM_WC_LOC_QP_OP_ERR, RMEM_VENDOR_ERR_SERVICE);
		to_rts(qp);
	}
	wr = datagram(RMEM_WR_SEND, &sge, other_ah);
	expect_late(&wr, EPERM, RMEM_WC_LOC_QP_OP_ERR, RMEM_VENDOR_ERR_KEY_PD);
	to_rts(qp);
	wr = datagram(RMEM_WR_SEND, &sge, ah);
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	/* No AH, and no number of a QP. */
	wr.ud.remote_qpn = 1 << 24;
	TEST_ERR(rmem_post_send(qp, &wr, 1), EINVAL);
	wr.ud.ah = NULL;
	TEST_ERR(rmem_post_send(qp, &wr, 1), EINVAL);
	fx_teardown();
}

TEST(late, operations_and_address_handles_of_ud)
{
	check_ud(NULL);
	check_ud("ip=127.0.5.1");
	check_ud("ip=127.0.5.1,loop=1");
}

static void
check_atomics(const char *args)
{
	struct rmem_sge sge[2];
	struct rmem_send_wr wr;
	unsigned int i;

	fx.a.dev = fx_dev("soft0", args);
	fx_side_open(&fx.a, fx.a.dev, fx_pd(fx.a.dev));
	fx_side_open(&fx.b, fx.a.dev, fx.a.pd);
	qp = create_qp(RMEM_QPT_RC, RMEM_QP_LATE_ERRORS);
	strict = create_qp(RMEM_QPT_RC, 0);
	sge[0] = sge[1] = fx_sge(fx.a.mr, 0, 8);
	for (i = 0; i < 3; i++) {
		TEST_OK(rmem_qp_reset(strict));
		TEST_OK(rmem_qp_reset(fx.b.qp));
		TEST_OK(fx_connect_pair(strict, fx.b.qp));
		wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, sge, fx_addr(fx.b.buf), fx.b.mr->rkey,
				1);
		wr.num_sge = i == 2 ? 2 : 1;
		sge[0].length = i == 0 ? 9 : i == 1 ? 4 : 8;
		TEST_ERR(rmem_post_send(strict, &wr, 1), EINVAL);
		TEST_OK(rmem_qp_reset(qp));
		TEST_OK(rmem_qp_reset(fx.b.qp));
		TEST_OK(fx_connect_pair(qp, fx.b.qp));
		TEST_STATUS(fx_send(qp, &wr), RMEM_WC_LOC_LEN_ERR);
		TEST_EQ(fx.wc.vendor_err, RMEM_VENDOR_ERR_ALIGNMENT);
		TEST_ASSERT(fx_is_zero(fx.b.buf, 8));
	}
	fx_teardown();
}

TEST(late, atomics_of_another_size)
{
	check_atomics(NULL);
	check_atomics("ip=127.0.5.1,loop=1");
}

TEST_SUITE(late, fx_setup_none, fx_teardown);
