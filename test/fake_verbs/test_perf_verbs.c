/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a post through the driver, compared with the same requests with ibv_wr_* directly, on a
 * fake that completes immediately without a transfer. Only the last of a burst is signaled; its
 * poll is in both times. Requests and bindings are aligned: where they cross cache lines depends on
 * the address of the stack otherwise, and so does the time by hand (6.2 to 7.3 ns).
 */

#include "../../drivers/verbs/rverbs_mw_op.h"
#include "../perf/perf_row.h"
#include "setup.h"

#define BURSTS 2000
#define NB_MWS 8

static double
post_by_hand(void *arg)
{
	struct fake_qp *qp = fake_qp_find(vt.a->qp_num);
	struct ibv_qp_ex *ex = &qp->ex;
	struct rmem_send_wr *wr = arg;
	struct ibv_wc wc;
	uint64_t start;
	int i, j;

	start = rte_rdtsc_precise();
	for (i = 0; i < BURSTS; i++) {
		ibv_wr_start(ex);
		for (j = 0; j < (int)PERF_BURST; j++) {
			ex->wr_id = wr[j].wr_id;
			ex->wr_flags = wr[j].flags;
			ibv_wr_rdma_write(ex, wr[j].rdma.rkey, wr[j].rdma.remote_addr);
			ibv_wr_set_sge(ex, wr[j].sg_list[0].lkey, wr[j].sg_list[0].addr,
					wr[j].sg_list[0].length);
		}
		if (ibv_wr_complete(ex) != 0 || ibv_poll_cq(ex->qp_base.send_cq, 1, &wc) != 1)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)BURSTS * PERF_BURST);
}

static double
post_by_driver(void *arg)
{
	struct rmem_wc wc;
	uint64_t start;
	int i;

	start = rte_rdtsc_precise();
	for (i = 0; i < BURSTS; i++) {
		if (rmem_post_send(vt.a, arg, PERF_BURST) != (int)PERF_BURST ||
				rmem_poll_cq(vt.cq_a, &wc, 1) != 1)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)BURSTS * PERF_BURST);
}

static void
verbs_post32(void)
{
	struct perf_row row = {.name = "verbs_post32",
			.unit = "ns",
			.yardstick = "by hand",
			.bar = "8 ns more"};
	struct rmem_send_wr wr[PERF_BURST] __rte_cache_aligned;
	struct rmem_sge sge;
	unsigned int i;

	vt_setup();
	fake.is_quick = true;
	sge = vt_sge(0, 64);
	for (i = 0; i < PERF_BURST; i++) {
		wr[i] = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
		wr[i].flags = i == PERF_BURST - 1 ? RMEM_SEND_SIGNALED : 0;
	}
	perf_measure(&row, post_by_hand, post_by_driver, wr);
	vt_teardown();
}

static void
bind_by_hand(struct ibv_qp_ex *ex, const struct rmem_send_wr *wr)
{
	struct ibv_mw *mw = rverbs_mw_of(wr->bind_mw.mw)->ibv;
	struct ibv_mw_bind_info info __rte_cache_aligned = {
			.mr = rverbs_mr_of(wr->bind_mw.mr)->ibv,
			.addr = wr->bind_mw.addr,
			.length = wr->bind_mw.length,
			.mw_access_flags = wr->bind_mw.access,
	};
	uint32_t rkey = (mw->rkey & ~0xffu) | wr->bind_mw.key_tag;

	ibv_wr_bind_mw(ex, mw, rkey, &info);
	mw->rkey = rkey;
}

/* Check a request and record it: what a driver can't do without. Its wr_id at the device. */
static __rte_always_inline uint64_t
record(const struct rmem_send_wr *wr, uint32_t at)
{
	static struct rverbs_wqe ring[2 * PERF_BURST];
	static uint32_t old_keys[2 * PERF_BURST];
	const struct rverbs_qp *qp = rverbs_qp_of(vt.a);

	if (!rmem_wr_is_among(qp->limits.opcodes, wr))
		return UINT64_MAX;
	if (wr->opcode == RMEM_WR_BIND_MW) {
		if (!rmem_wr_objs_fit(vt.a, wr) ||
				rmem_mr_state(wr->bind_mw.mr) != RMEM_MR_STATE_VALID)
			return UINT64_MAX;
		old_keys[at % RTE_DIM(old_keys)] = wr->bind_mw.mw->rkey;
		wr->bind_mw.mw->rkey = rmem_rkey_of_tag(wr->bind_mw.mw->rkey, wr->bind_mw.key_tag);
	}
	ring[at % RTE_DIM(ring)] = (struct rverbs_wqe){.wr_id = wr->wr_id, .note = at};
	return qp->id | (uint16_t)at;
}

static __rte_always_inline double
windows(const struct rmem_send_wr *wr, bool is_recorded)
{
	struct fake_qp *qp = fake_qp_find(vt.a->qp_num);
	struct ibv_qp_ex *ex = &qp->ex;
	struct ibv_wc wc;
	uint64_t start;
	int i, j;

	start = rte_rdtsc_precise();
	for (i = 0; i < BURSTS; i++) {
		ibv_wr_start(ex);
		for (j = 0; j < (int)PERF_BURST; j++) {
			ex->wr_id = is_recorded ? record(&wr[j], (uint32_t)(i + j)) : wr[j].wr_id;
			if (ex->wr_id == UINT64_MAX)
				return -1.0;
			ex->wr_flags = wr[j].flags;
			if (wr[j].opcode == RMEM_WR_BIND_MW)
				bind_by_hand(ex, &wr[j]);
			else
				ibv_wr_local_inv(ex, wr[j].invalidate_rkey);
		}
		if (ibv_wr_complete(ex) != 0 || ibv_poll_cq(ex->qp_base.send_cq, 1, &wc) != 1)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)BURSTS * PERF_BURST);
}

static double
windows_by_hand(void *arg)
{
	return windows(arg, false);
}

static double
windows_recorded(void *arg)
{
	return windows(arg, true);
}

/* Windows in turn: bound, and invalidated by the next request. */
static void
run_windows(struct perf_row *row, perf_func_t value)
{
	struct rmem_send_wr wr[PERF_BURST] __rte_cache_aligned;
	struct rmem_mw *mw[NB_MWS];
	unsigned int i;

	for (i = 0; i < NB_MWS; i++)
		TEST_OK(rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_2, &mw[i]));
	for (i = 0; i < PERF_BURST; i += 2) {
		wr[i] = vt_bind_wr(mw[i / 2 % NB_MWS]);
		wr[i].bind_mw.key_tag = (uint8_t)i;
		wr[i + 1] = vt_inv_wr(rmem_rkey_of_tag(wr[i].bind_mw.mw->rkey, (uint8_t)i));
		wr[i].flags = 0;
		wr[i + 1].flags = i + 2 == PERF_BURST ? RMEM_SEND_SIGNALED : 0;
	}
	fake.is_quick = true;
	perf_measure(row, windows_by_hand, value, wr);
	fake.is_quick = false;
	for (i = 0; i < NB_MWS; i++)
		TEST_OK(rmem_mw_dealloc(mw[i]));
	vt_teardown();
}

static void
verbs_mw32(void)
{
	struct perf_row row = {.name = "verbs_mw32",
			.unit = "ns",
			.yardstick = "by hand",
			.bar = "<= 1.3"};
	struct perf_row least = {.name = "verbs_mw32_least",
			.unit = "ns",
			.yardstick = "by hand",
			.bar = "none"};
	struct perf_row quirk = {.name = "verbs_mw32_quirk",
			.unit = "ns",
			.yardstick = "by hand",
			.bar = "none"};

	vt_setup_mw_plain();
	run_windows(&row, post_by_driver);
	vt_setup_mw_plain();
	run_windows(&least, windows_recorded);
	vt_setup_mw();
	run_windows(&quirk, post_by_driver);
}

REGISTER_RMEM_TEST(verbs_post32_perf_autotest, verbs_post32);
REGISTER_RMEM_TEST(verbs_mw32_perf_autotest, verbs_mw32);
