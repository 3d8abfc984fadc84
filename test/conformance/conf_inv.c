/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Invalidation by requests: permitted keys, order, and no access afterwards. */

#include <string.h>

#include "conf.h"

#define CAPA     RMEM_DEV_CAPA_LOCAL_INV
#define CAPA_INV (RMEM_DEV_CAPA_LOCAL_INV | RMEM_DEV_CAPA_SEND_WITH_INV)
#define ALL      (RMEM_ACCESS_REMOTE & conf.info.access)

/* An object that requests can bind on this device: a fast-register MR, or else a type 2 window. */
static void
setup(void)
{
	if ((conf.info.capa & RMEM_DEV_CAPA_FAST_REG) != 0 &&
			(conf.info.capa & RMEM_DEV_CAPA_REG_ZERO_BASED) == 0 &&
			(conf.info.page_size_cap & FX_PAGE) != 0) {
		conf_setup_fast();
		return;
	}
	if ((conf.info.capa & RMEM_DEV_CAPA_MW_TYPE_2B) != 0) {
		conf_setup_mw();
		return;
	}
	test_skip("the device has nothing that requests bind");
}

/* Bind a key to the first FX_FAST_PAGES pages of a's buffer. */
static void
bind(uint32_t *rkey)
{
	if (fx.fast.mr != NULL) {
		TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
		*rkey = fx.fast.mr->rkey;
	} else {
		TEST_STATUS(fx_mw_bind_2(0, FX_FAST_PAGES * FX_PAGE, ALL), RMEM_WC_SUCCESS);
		*rkey = fx.mw.two->rkey;
	}
}

CONF_TEST(inv, key_is_valid_until_it_is_invalidated, CAPA, 0,
		"IBTA 10.6.6: an invalidated key grants no access")
{
	uint32_t rkey = 0;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		bind(&rkey);
		conf_granted(fx_addr(fx.a.buf), 64, rkey, fx.a.buf);
		TEST_STATUS(fx_invalidate(rkey), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_LOCAL_INV);
		conf_denied(fx_addr(fx.a.buf), 64, rkey);
	}
}

/*
 * b writes continuously; writes that arrive after the completion of the invalidation are detected.
 */
CONF_TEST(inv, no_write_arrives_after_local_inv_completed, CAPA, 0,
		"IBTA 10.6.6: no access once the invalidation has completed")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, FX_FAST_PAGES * FX_PAGE);
	struct rmem_send_wr wrs[16], inv;
	struct rmem_wc wcs[16];
	uint32_t rkey = 0;
	unsigned int i;

	bind(&rkey);
	memset(fx.b.buf, 0xff, FX_BUF_SIZE);
	for (i = 0; i < RTE_DIM(wrs); i++) {
		wrs[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), rkey);
		wrs[i].flags = RMEM_SEND_SIGNALED;
	}
	inv = fx_inv(rkey);
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_STATUS(fx_send(fx.a.qp, &inv), RMEM_WC_SUCCESS);
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	TEST_EQ(fx_poll(fx.b.cq, wcs, RTE_DIM(wcs)), RTE_DIM(wcs));
	if (!fx_is_zero(fx.a.buf, FX_BUF_SIZE))
		TEST_ASSERT(conf_deviates("inv_late"));
	for (i = 0; i < RTE_DIM(wcs) && wcs[i].status == RMEM_WC_SUCCESS; i++)
		;
	if (i < RTE_DIM(wcs))
		conf_status(CONF_REMOTE_KEY, wcs[i].status);
}

CONF_TEST(inv, local_inv_of_a_user_mr_fails, CAPA, 0,
		"IBTA 10.6.6: MRs of Register Memory Region are not invalidated")
{
	struct rmem_send_wr wr = fx_inv(fx.a.mr->rkey);

	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	wr = fx_inv(fx.a.mr->lkey);
	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	conf_granted(fx_addr(fx.a.buf), 64, fx.a.mr->rkey, fx.a.buf);
}

CONF_TEST(inv, local_inv_of_an_unknown_key_fails, CAPA, 0,
		"IBTA 10.6.6: the R_Key must be one of the device")
{
	const uint32_t keys[] = {0, UINT32_MAX, fx.a.mr->rkey ^ 0x55500,
			fx.a.mr->rkey ^ UINT32_C(0x80000000), fx.a.mr->rkey ^ 0x100};
	unsigned int i;

	for (i = 0; i < RTE_DIM(keys); i++) {
		const struct rmem_send_wr wr = fx_inv(keys[i]);

		conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	}
}

/* The message arrives and completes with SUCCESS at its sender; the receive fails. */
static void
refused_to_peer(uint32_t rkey)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 32);
	const struct rmem_sge to = fx_sge(fx.a.mr, FX_FAST_PAGES * FX_PAGE, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &from, 1);

	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	wr.invalidate_rkey = rkey;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	conf_status(CONF_RECV_INV, fx_wait(fx.a.cq));
	TEST_EQ(fx.wc.wr_id, 1);
	conf_expect_err(fx.a.qp);
	conf_reconnect();
}

CONF_TEST(inv, send_with_inv_of_an_invalid_key_fails, CAPA_INV, 0,
		"IBTA 9.4.1: keys that SEND with Invalidate may not invalidate")
{
	uint32_t rkey = fx.fast.mr != NULL ? fx.fast.mr->rkey : fx.mw.two->rkey;

	refused_to_peer(rkey); /* not bound yet */
	refused_to_peer(0);
	refused_to_peer(UINT32_MAX);
	refused_to_peer(fx.a.mr->rkey);
	refused_to_peer(fx.a.mr->lkey);
	refused_to_peer(fx.a.mr->rkey ^ 0x55500);
	bind(&rkey);
	refused_to_peer(rkey ^ 2);
	conf_granted(fx_addr(fx.a.buf), 64, rkey, fx.a.buf);
	conf_granted(fx_addr(fx.a.buf), 64, fx.a.mr->rkey, fx.a.buf);
	TEST_STATUS(fx_invalidate(rkey), RMEM_WC_SUCCESS);
	refused_to_peer(rkey);
}

CONF_TEST(inv, send_with_inv_invalidates_and_delivers, CAPA_INV, 0,
		"IBTA 9.4.1: SEND with Invalidate; ibv_poll_cq(3): invalidated_rkey")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_sge to = fx_sge(fx.a.mr, FX_FAST_PAGES * FX_PAGE, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &from, 1);
	uint32_t rkey = 0;

	bind(&rkey);
	fx_fill(fx.b.buf, 64, 1);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	wr.invalidate_rkey = rkey;
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_ASSERT((fx.wc.flags & RMEM_WC_WITH_INV) != 0);
	TEST_EQ(fx.wc.invalidated_rkey, rkey);
	TEST_EQ(fx.wc.byte_len, 64);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_MEM(fx.a.buf + FX_FAST_PAGES * FX_PAGE, fx.b.buf, 64);
	conf_denied(fx_addr(fx.a.buf), 64, rkey);
	bind(&rkey);
}

/* a READs into its fast-register MR and invalidates it. */
CONF_TEST(inv, read_with_inv_invalidates_after_its_data_arrived, CAPA | RMEM_DEV_CAPA_READ_WITH_INV,
		0, "New Memory Extensions (2008): read with invalidate")
{
	struct rmem_sge sge = {.addr = fx_addr(fx.a.buf), .length = FX_FAST_PAGES * FX_PAGE};
	struct rmem_send_wr wr;
	uint32_t rkey = 0;

	TEST_SKIP_IF(fx.fast.mr == NULL, "the device has no fast-register MRs");
	bind(&rkey);
	sge.lkey = fx.fast.mr->lkey;
	wr = fx_rdma_to(RMEM_WR_RDMA_READ_WITH_INV, &sge, &fx.b);
	wr.invalidate_rkey = rkey;
	fx_fill(fx.b.buf, sge.length, 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RDMA_READ);
	TEST_MEM(fx.a.buf, fx.b.buf, sge.length);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	conf_denied(fx_addr(fx.a.buf), 64, rkey);
}

/* Requests before it in the queue have used the key; those after it are refused. */
CONF_TEST(inv, local_inv_is_ordered_in_the_send_queue, CAPA, 0,
		"IBTA 10.8.3: Local Invalidate is ordered in its send queue")
{
	struct rmem_sge sge = {.addr = fx_addr(fx.a.buf), .length = 64};
	struct rmem_send_wr wrs[3];
	struct rmem_wc wcs[3];
	uint32_t rkey = 0;

	TEST_SKIP_IF(fx.fast.mr == NULL, "the device has no fast-register MRs");
	bind(&rkey);
	fx_fill(fx.a.buf, 64, 1);
	sge.lkey = fx.fast.mr->lkey;
	wrs[0] = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	wrs[0].flags = RMEM_SEND_SIGNALED;
	wrs[1] = fx_inv(rkey);
	wrs[1].flags = RMEM_SEND_SIGNALED;
	wrs[2] = wrs[0];
	wrs[2].rdma.remote_addr += 64;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 3), 3);
	TEST_EQ(fx_poll(fx.a.cq, wcs, 3), 3);
	TEST_STATUS(wcs[0].status, RMEM_WC_SUCCESS);
	TEST_STATUS(wcs[1].status, RMEM_WC_SUCCESS);
	conf_status(CONF_LOCAL_KEY, wcs[2].status);
	TEST_MEM(fx.b.buf, fx.a.buf, 64);
	TEST_ASSERT(fx_is_zero(fx.b.buf + 64, 64));
}

/* The LOCAL_INV is flushed, and the key remains valid. A flushed binding has no effect. */
CONF_TEST(inv, flushed_invalidations_have_no_effect, CAPA, 0,
		"IBTA 10.3.1.5: a flushed request was not executed")
{
	struct rmem_mr *mr = fx.fast.mr != NULL ? fx_fast_mr(fx.a.pd, 1) : NULL;
	struct rmem_send_wr wr;
	uint32_t rkey = 0;

	bind(&rkey);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	if (mr != NULL) {
		wr = fx_reg(mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_WR_FLUSH_ERR);
		TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_FREE);
	}
	wr = fx_inv(rkey);
	conf_refused(CONF_FLUSHED, fx.a.qp, &wr);
	conf_granted(fx_addr(fx.a.buf), 64, rkey, fx.a.buf);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

TEST_SUITE(inv, setup, conf_teardown);
