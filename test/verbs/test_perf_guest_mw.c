/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of binding and invalidating a type 2 window through the driver, compared with the same by
 * ibv_wr_* by hand: bursts of 32 such pairs, of which the last request is signaled. Both use one
 * QP, by hand with a window that the driver does not know.
 */

#include "guest.h"

static struct {
	struct rmem_mw *mw;
	struct ibv_mw *ibv_mw;
	struct rmem_send_wr wr[2 * PERF_BURST]; /* but for the keys */
} gm;

static int
gm_burst_by_hand(void)
{
	struct ibv_qp_ex *ex = rverbs_qp_of(guest.qp)->ex;
	uint32_t rkey;
	unsigned int i;

	ibv_wr_start(ex);
	for (i = 0; i < PERF_BURST; i++) {
		rkey = guest_bind(gm.ibv_mw, 0, 0);
		ex->wr_flags = i == PERF_BURST - 1 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_local_inv(ex, rkey);
	}
	return ibv_wr_complete(ex) == 0 ? guest_wait(1) : -1;
}

static double
pairs_by_hand(void *arg)
{
	RTE_SET_USED(arg);
	return guest_best(gm_burst_by_hand);
}

static int
gm_burst_by_driver(void)
{
	uint64_t end = rte_get_timer_cycles() + 30 * rte_get_timer_hz();
	struct rmem_send_wr *wr = gm.wr;
	uint32_t rkey = gm.mw->rkey;
	struct rmem_wc wc;
	unsigned int i;
	int n;

	for (i = 0; i < 2 * PERF_BURST; i += 2) {
		uint8_t tag = rmem_rkey_next_tag(rkey);

		wr[i].bind_mw.key_tag = tag;
		rkey = rmem_rkey_of_tag(rkey, tag);
		wr[i + 1].invalidate_rkey = rkey;
	}
	if (rmem_post_send(guest.qp, wr, 2 * PERF_BURST) != (int)(2 * PERF_BURST))
		return -1;
	do {
		n = rmem_poll_cq(guest.cq, &wc, 1);
	} while (n == 0 && rte_get_timer_cycles() < end);
	return n == 1 ? wc.status : -1;
}

static double
pairs_by_driver(void *arg)
{
	RTE_SET_USED(arg);
	return guest_best(gm_burst_by_driver);
}

static void
gm_fill(void)
{
	struct rmem_send_wr *wr = gm.wr;
	unsigned int i;

	for (i = 0; i < 2 * PERF_BURST; i += 2) {
		wr[i].opcode = RMEM_WR_BIND_MW;
		wr[i].bind_mw.mw = gm.mw;
		wr[i].bind_mw.mr = guest.mr;
		wr[i].bind_mw.addr = (uintptr_t)guest.buf;
		wr[i].bind_mw.length = GUEST_PAGE;
		wr[i].bind_mw.access = RMEM_ACCESS_REMOTE_WRITE;
		wr[i + 1].opcode = RMEM_WR_LOCAL_INV;
	}
	wr[2 * PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
}

static void
guest_mw_pair(void)
{
	struct perf_row row = {.name = "guest_mw_pair",
			.unit = "ns/pair",
			.yardstick = "by hand",
			.bar = "ratio <= 1.11"};

	guest_open();
	TEST_OK(rmem_mw_alloc(guest.pd, RMEM_MW_TYPE_2, &gm.mw));
	gm.ibv_mw = guest_ibv_mw();
	TEST_ASSERT(gm.ibv_mw != NULL);
	gm_fill();
	perf_measure(&row, pairs_by_hand, pairs_by_driver, NULL);
	TEST_ASSERT(ibv_dealloc_mw(gm.ibv_mw) == 0);
	TEST_OK(rmem_mw_dealloc(gm.mw));
	guest_close();
}

REGISTER_RMEM_TEST(guest_mw_pair_perf_autotest, guest_mw_pair);
