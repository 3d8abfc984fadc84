/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Type 2B windows: bound by BIND_MW, for one QP, and invalidated before the next binding. */

#include <string.h>

#include "conf.h"

#define CAPA     (RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV)
#define CAPA_INV (CAPA | RMEM_DEV_CAPA_SEND_WITH_INV)
#define ALL      (RMEM_ACCESS_REMOTE & conf.info.access)

CONF_TEST(mw2_bind, zero_based_window_starts_at_0, CAPA, 0,
		"ibv_bind_mw(3): IBV_ACCESS_ZERO_BASED, type 2 only")
{
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 4100, 300, ALL | RMEM_ACCESS_ZERO_BASED);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	conf_granted(0, 300, fx.mw.two->rkey, fx.a.buf + 4100);
	conf_granted(299, 1, fx.mw.two->rkey, fx.a.buf + 4399);
	conf_denied_outside(299, 2, fx.mw.two->rkey);
	conf_denied(fx_addr(fx.a.buf) + 4100, 8, fx.mw.two->rkey);
	conf_denied_outside(UINT64_MAX - 3, 8, fx.mw.two->rkey);
}

CONF_TEST(mw2_bind, bind_sets_the_requested_tag, CAPA, 0,
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
		conf_granted(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf);
		if (before != fx.mw.two->rkey)
			conf_denied(fx_addr(fx.a.buf), 8, before);
		TEST_STATUS(fx_invalidate(fx.mw.two->rkey), RMEM_WC_SUCCESS);
	}
}

CONF_TEST(mw2_bind, bind_of_a_bound_window_fails, CAPA, 0,
		"IBTA o10-37.2.30: only a free type 2 window is bound")
{
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.two->rkey;
	wr = fx_mw_wr(fx.mw.two, 64, 64, ALL);
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	conf_granted(fx_addr(fx.a.buf), 64, rkey, fx.a.buf);
	TEST_STATUS(fx_invalidate(rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_mw_bind_2(64, 64, ALL), RMEM_WC_SUCCESS);
	conf_granted(fx_addr(fx.a.buf) + 64, 64, fx.mw.two->rkey, fx.a.buf + 64);
}

CONF_TEST(mw2_bind, invalidated_window_grants_no_access, CAPA, 0,
		"IBTA 10.6.6: no access after Local Invalidate")
{
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.two->rkey;
	TEST_STATUS(fx_invalidate(rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_LOCAL_INV);
	conf_denied(fx_addr(fx.a.buf), 8, rkey);
	TEST_OK(fx_release(fx.mw.mr));
}

CONF_TEST(mw2_bind, local_inv_of_an_unbound_window_fails, CAPA, 0,
		"IBTA 10.6.6: only a valid key is invalidated")
{
	struct rmem_send_wr wr = fx_inv(fx.mw.two->rkey);

	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.two->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
}

CONF_TEST(mw2_bind, local_inv_with_another_tag_fails, CAPA, 0,
		"IBTA 10.6.6: the whole R_Key must match")
{
	struct rmem_send_wr wr;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.two->rkey ^ 1);
	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	conf_granted(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf);
}

CONF_TEST(mw2_bind, access_through_another_qp_is_refused, CAPA, 0,
		"IBTA C10-77: a 2B window is valid on the QP that bound it")
{
	struct rmem_qp *mine, *peer;
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;

	conf_pair(&mine, &peer);
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), fx.mw.two->rkey);
	conf_status(CONF_REMOTE_KEY, fx_send(peer, &wr));
	conf_reconnect_pair(mine, peer);
	conf_granted(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, fx.a.buf);
}

CONF_TEST(mw2_bind, local_inv_by_another_qp_fails, CAPA, 0,
		"IBTA 10.6.6: a 2B window is invalidated by its QP")
{
	struct rmem_qp *mine, *peer;
	struct rmem_send_wr wr;

	conf_pair(&mine, &peer);
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.two->rkey);
	conf_status(CONF_INVALIDATE, fx_send(mine, &wr));
	conf_granted(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf);
}

CONF_TEST(mw2_bind, send_with_inv_invalidates_the_window, CAPA_INV, 0,
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
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.wr_id, 9);
	TEST_ASSERT((fx.wc.flags & RMEM_WC_WITH_INV) != 0);
	TEST_EQ(fx.wc.invalidated_rkey, rkey);
	TEST_MEM(fx.a.buf + 4096, fx.b.buf, 64);
	conf_denied(fx_addr(fx.a.buf), 8, rkey);
	/* It is free again: no LOCAL_INV is needed. */
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
}

/* The message arrives, the receive fails, the window remains bound. */
CONF_TEST(mw2_bind, send_with_inv_to_another_qp_fails, CAPA_INV, 0,
		"IBTA 10.6.6: a 2B window is invalidated by its QP")
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);
	struct rmem_qp *mine, *peer;

	conf_pair(&mine, &peer);
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(mine, 9, NULL, 0), 1);
	wr.invalidate_rkey = fx.mw.two->rkey;
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_SUCCESS);
	conf_status(CONF_RECV_INV, fx_wait(fx.a.cq));
	conf_granted(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, fx.a.buf);
}

/* One invalid field at a time; afterwards the window can still be bound. */
CONF_TEST(mw2_bind, bad_bindings_are_refused, CAPA, 0,
		"IBTA C10-75, o10-37.2.40: range and length; rights of peers only")
{
	const struct rmem_send_wr good = fx_mw_wr(fx.mw.two, 0, 64, ALL);
	struct rmem_send_wr wr = good;

	wr.bind_mw.length = 0;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.bind_mw.length = FX_BUF_SIZE + 1;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.bind_mw.length = UINT64_MAX;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr = good;
	wr.bind_mw.addr--;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.bind_mw.addr = UINT64_MAX - 8;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr = good;
	wr.bind_mw.access = RMEM_ACCESS_LOCAL_WRITE;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	TEST_STATUS(fx_send(fx.a.qp, &good), RMEM_WC_SUCCESS);
}

/* Post a good bind and a bad one of the same MR: only the second fails. */
static void
second_is_refused(const struct rmem_send_wr *good, const struct rmem_send_wr *bad)
{
	struct rmem_send_wr wrs[] = {*good, *bad};

	wrs[0].flags = 0;
	wrs[1].wr_id = wrs[0].wr_id + 1;
	if (rmem_post_send(fx.a.qp, wrs, 2) == 2) {
		conf_status(CONF_BIND, fx_wait(fx.a.cq));
		TEST_EQ(fx.wc.wr_id, wrs[1].wr_id);
		conf_expect_err(fx.a.qp);
		conf_reconnect();
	}
	TEST_STATUS(fx_invalidate(good->bind_mw.mw->rkey), RMEM_WC_SUCCESS);
}

CONF_TEST(mw2_bind, each_binding_of_a_burst_is_checked, CAPA, 0,
		"IBTA 10.6.7.2: each request by itself, and none holds the MR that failed")
{
	struct rmem_mr *fixed = fx_mr(fx.a.pd, fx.a.buf, 64, RMEM_ACCESS_MW_BIND);
	struct rmem_mw *other = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	struct rmem_send_wr good = fx_mw_wr(fx.mw.two, 0, 64, RMEM_ACCESS_REMOTE_READ);
	struct rmem_send_wr bad = fx_mw_wr(other, 0, 0, RMEM_ACCESS_REMOTE_READ);

	second_is_refused(&good, &bad);
	bad.bind_mw.length = FX_BUF_SIZE + 1;
	second_is_refused(&good, &bad);
	bad.bind_mw.length = 64;
	bad.bind_mw.addr--;
	second_is_refused(&good, &bad);
	bad = fx_mw_wr(other, 0, 64, RMEM_ACCESS_LOCAL_WRITE);
	second_is_refused(&good, &bad);
	bad = fx_mw_wr(fx_mw(fx_pd(conf.dev), RMEM_MW_TYPE_2), 0, 64, RMEM_ACCESS_REMOTE_READ);
	second_is_refused(&good, &bad);
	bad = fx_mw_wr(fx.mw.two, 0, 64, RMEM_ACCESS_REMOTE_READ);
	bad.bind_mw.key_tag = good.bind_mw.key_tag;
	second_is_refused(&good, &bad);
	bad = fx_mw_wr(other, 0, 64, RMEM_ACCESS_REMOTE_WRITE);
	bad.bind_mw.mr = good.bind_mw.mr = fixed;
	second_is_refused(&good, &bad);
	TEST_OK(fx_release(fixed));
	TEST_OK(fx_release(fx.mw.mr));
}

CONF_TEST(mw2_bind, bindings_of_a_burst_hold_their_mrs, CAPA, 0,
		"ibv_dereg_mr(3): it fails while a window is bound")
{
	struct rmem_mr *mrs[] = {fx.mw.mr,
			fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, conf_access() | RMEM_ACCESS_MW_BIND)};
	struct rmem_send_wr wrs[6];
	unsigned int i;

	for (i = 0; i < RTE_DIM(wrs); i++) {
		wrs[i] = fx_mw_wr(fx_mw(fx.a.pd, RMEM_MW_TYPE_2), 64 * i, 64, ALL);
		wrs[i].bind_mw.mr = mrs[i / 2 % 2];
		wrs[i].flags = i == RTE_DIM(wrs) - 1 ? RMEM_SEND_SIGNALED : 0;
	}
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < RTE_DIM(wrs); i++) {
		TEST_ERR(rmem_mr_dereg(mrs[i / 2 % 2]), EBUSY);
		conf_granted(fx_addr(fx.a.buf) + 64 * i, 64, wrs[i].bind_mw.mw->rkey,
				fx.a.buf + 64 * i);
		TEST_STATUS(fx_invalidate(wrs[i].bind_mw.mw->rkey), RMEM_WC_SUCCESS);
	}
	TEST_OK(fx_release(mrs[0]));
	TEST_OK(fx_release(mrs[1]));
}

CONF_TEST(mw2_bind, no_window_is_within_an_mr_of_length_0, CAPA, 0,
		"IBTA C10-75: the range of a window is within its MR")
{
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 1, ALL);
	struct rmem_mr *mr = NULL;
	int ret = rmem_mr_reg(fx.a.pd, fx.a.buf, 0, 0, conf_access() | RMEM_ACCESS_MW_BIND, &mr);

	if (ret == -EINVAL && strcmp(conf.info.driver_name, "soft") != 0)
		test_skip("the device refuses MRs of length 0");
	TEST_OK(ret);
	fx_track(mr);
	wr.bind_mw.mr = mr;
	wr.bind_mw.addr = mr->iova;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.bind_mw.length = 0;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
}

CONF_TEST(mw2_bind, bind_requires_the_rights_of_the_mr, CAPA, 0,
		"IBTA C10-73, C10-74: MW_BIND, LOCAL_WRITE, and a registered MR")
{
	struct rmem_mr *fixed = fx_mr(fx.a.pd, fx.a.buf, 64, RMEM_ACCESS_MW_BIND);
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, RMEM_ACCESS_REMOTE_READ);

	wr.bind_mw.mr = fx.a.mr;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	if ((conf.info.capa & RMEM_DEV_CAPA_FAST_REG) != 0) {
		wr.bind_mw.mr = fx_fast_mr(fx.a.pd, 1);
		conf_refused(CONF_BIND, fx.a.qp, &wr);
	}
	wr.bind_mw.mr = fixed;
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_WRITE;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.bind_mw.access = ALL & ~RMEM_ACCESS_REMOTE_WRITE;
	if ((wr.bind_mw.access & RMEM_ACCESS_REMOTE_ATOMIC) != 0)
		conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.two));
}

/* Its keys are not valid yet, so that no window can be bound to it. */
CONF_TEST(mw2_bind, bind_to_a_disabled_mr_fails, CAPA | RMEM_DEV_CAPA_MR_ENABLE, 0,
		"fi_mr(3): a region is not valid before it is enabled")
{
	const struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 64,
			.access = conf_access(),
			.flags = RMEM_MR_DISABLED};
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &wr.bind_mw.mr));
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	TEST_OK(rmem_mr_enable(wr.bind_mw.mr));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.two));
}

CONF_TEST(mw2_bind, bind_across_pds_fails, CAPA, 0, "IBTA C10-72: window, MR and QP of one PD")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

	wr.bind_mw.mr = fx_mr(pd, fx.a.buf, 64, conf_access());
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.bind_mw.mw = fx_mw(pd, RMEM_MW_TYPE_2);
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.bind_mw.mr = fx.mw.mr;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
}

CONF_TEST(mw2_bind, repeated_binding_wraps_the_tag, CAPA, 0,
		"IBTA 10.6.7.2: bound and invalidated any number of times")
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
}

TEST_SUITE(mw2_bind, conf_setup_mw, conf_teardown);
