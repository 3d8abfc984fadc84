/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Windows of a verbs device: binding, invalidation, and no request that crashes the device. */

#include <string.h>

#include "setup.h"

static void
vt_is_granted(uint32_t rkey)
{
	uint64_t *source = (uint64_t *)vt.buf, *target = (uint64_t *)(vt.buf + VT_HALF);

	(*source)++;
	TEST_STATUS(vt_peer_write(rkey), RMEM_WC_SUCCESS);
	TEST_EQ(*target, *source);
}

static void
vt_is_denied(uint32_t rkey)
{
	TEST_STATUS(vt_peer_write(rkey), RMEM_WC_REM_ACCESS_ERR);
	vt_reconnect();
}

/* The request of a is refused with that status, and the QPs are connected again. */
static void
vt_is_refused(const struct rmem_send_wr *wr, int status)
{
	TEST_STATUS(vt_run(wr), status);
	vt_reconnect();
}

/* Bindings and invalidations in one post, of which the last is signaled. */
TEST(verbs_mwq, bind_and_invalidate_are_posted_in_one_burst)
{
	struct rmem_send_wr wr[60];
	uint32_t rkey = vt.two->rkey;
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < 60; i += 2) {
		wr[i] = vt_bind_wr(vt.two);
		wr[i].bind_mw.key_tag = (uint8_t)i;
		wr[i + 1] = vt_inv_wr(rmem_rkey_of_tag(rkey, (uint8_t)i));
		wr[i].flags = wr[i + 1].flags = i == 58 ? RMEM_SEND_SIGNALED : 0;
	}
	TEST_EQ(rmem_post_send(vt.a, wr, 60), 60);
	TEST_ERR(rmem_mw_dealloc(vt.two), EBUSY);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_EQ(wc.opcode, RMEM_WC_BIND_MW);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_EQ(wc.opcode, RMEM_WC_LOCAL_INV);
	TEST_OK(rmem_mr_dereg(vt.mw_mr));
	vt.mw_mr = NULL;
}

TEST(verbs_mwq, failed_invalidation_has_its_status_where_the_device_flushes_it)
{
	struct rmem_send_wr wr = vt_inv_wr(vt.two->rkey);

	fake.is_told_flushed = true;
	vt_is_refused(&wr, RMEM_WC_MW_BIND_ERR);
}

/* A binding that the device refuses leaves a window that can be bound. */
TEST(verbs_mwq, failed_bind_keeps_the_window)
{
	struct rmem_send_wr wr = vt_bind_wr(vt.two);
	uint32_t rkey = vt.one->rkey;

	fake.is_bind_bad = true;
	vt_is_refused(&wr, RMEM_WC_MW_BIND_ERR);
	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_MW_BIND_ERR);
	TEST_EQ(vt.one->rkey, rkey);
	vt_reconnect();
	fake.is_bind_bad = false;
	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	vt_is_granted(vt.two->rkey);
	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
	vt_is_granted(vt.one->rkey);
}

/* Send from b with an invalidation; the statuses of b's send and a's receive. */
static void
vt_send_inv(uint32_t rkey, int status, struct rmem_wc *recv_wc)
{
	struct rmem_sge sge = vt_sge(0, 8), to = vt_sge(VT_HALF, 64);
	struct rmem_recv_wr recv = {.wr_id = 77, .sg_list = &to, .num_sge = 1};
	struct rmem_send_wr wr = vt_wr(RMEM_WR_SEND_WITH_INV, &sge);
	struct rmem_wc wc;

	wr.invalidate_rkey = rkey;
	TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
	TEST_EQ(rmem_post_send(vt.b, &wr, 1), 1);
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_wait(vt.cq_a, recv_wc), status);
	TEST_EQ(recv_wc->wr_id, 77);
}

static void
vt_peer_invalidates(void)
{
	struct rmem_send_wr wr;
	struct rmem_wc wc;
	uint32_t rkey;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	rkey = vt.two->rkey;
	vt_send_inv(rkey, RMEM_WC_SUCCESS, &wc);
	TEST_EQ(wc.flags, RMEM_WC_WITH_INV);
	TEST_EQ(wc.invalidated_rkey, rkey);
	vt_is_denied(rkey);
	/* Again: the kernel of neither side may get it. */
	vt_send_inv(rkey, RMEM_WC_REM_INV_REQ_ERR, &wc);
	vt_reconnect();
	wr = vt_inv_wr(rkey);
	vt_is_refused(&wr, RMEM_WC_MW_BIND_ERR);
	vt_send_inv(vt.one->rkey, RMEM_WC_REM_INV_REQ_ERR, &wc);
	vt_reconnect();
}

TEST(verbs_mwq, peer_invalidates_a_bound_window)
{
	struct rmem_dev_stats stats;

	vt_peer_invalidates();
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.mw_binds, 1);
	TEST_OK(vt_close());
	fake.has_kernel_inv = true;
	TEST_OK(vt_open_mw());
	vt_peer_invalidates();
}

/* The receive is polled and the peer's completion is not: the window is free again. */
TEST(verbs_mwq, invalidated_window_is_bound_before_the_peer_polls)
{
	struct rmem_send_wr send;
	struct rmem_recv_wr recv = {.wr_id = 77};
	struct rmem_wc wc;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	send = vt_send_inv_wr(vt.two->rkey);
	TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
	TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_EQ(wc.flags, RMEM_WC_WITH_INV);
	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	vt_is_granted(vt.two->rkey);
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
	vt_is_granted(vt.two->rkey);
}

/* Its first receive is not there: nothing has changed. Then it is. */
TEST(verbs_mw, send_with_inv_without_a_receive_invalidates_nothing)
{
	struct rmem_send_wr send;
	struct rmem_wc wc;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	send = vt_send_inv_wr(vt.two->rkey);
	TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_RNR_RETRY_EXC_ERR);
	vt_reconnect();
	vt_is_granted(vt.two->rkey);
	vt_send_inv(vt.two->rkey, RMEM_WC_SUCCESS, &wc);
}

TEST(verbs_mw, refused_calls_keep_the_key_and_count_nothing)
{
	struct rmem_mw_bind bind = vt_bind(VT_HALF);
	struct rmem_dev_stats stats;
	uint32_t rkey = vt.one->rkey;
	unsigned int i;

	TEST_OK(rmem_qp_reset(vt.a));
	TEST_ERR(rmem_mw_bind(vt.a, vt.one, &bind), EBUSY);
	vt_reconnect();
	vt_fail("bind_mw", ENOMEM);
	TEST_ERR(rmem_mw_bind(vt.a, vt.one, &bind), ENOSPC);
	fake.fail_errno = EINVAL;
	TEST_ERR(rmem_mw_bind(vt.a, vt.one, &bind), EINVAL);
	fake.fail_name = NULL;
	TEST_EQ(vt.one->rkey, rkey);
	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.mw_binds, 1);
	bind.flags = 0;
	for (i = 0; i < VT_DEPTH; i++)
		TEST_OK(rmem_mw_bind(vt.a, vt.one, &bind));
	rkey = vt.one->rkey;
	TEST_ERR(rmem_mw_bind(vt.a, vt.one, &bind), ENOSPC);
	TEST_EQ(vt.one->rkey, rkey);
	TEST_ERR(rmem_mw_dealloc(vt.one), EBUSY);
	TEST_OK(rmem_qp_reset(vt.a)); /* they never complete */
}

/* A QP with a bound window is not destroyed: rdma_rxe would block. */
TEST(verbs_mw, destroy_of_a_qp_with_a_bound_window_is_ebusy)
{
	struct rmem_dev_stats stats;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	TEST_ERR(rmem_qp_destroy(vt.a), EBUSY);
	vt_reconnect();
	TEST_ERR(rmem_qp_destroy(vt.a), EBUSY);
	TEST_STATUS(vt_inv(vt.two->rkey), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.mw_binds, 1);
	TEST_EQ(stats.invalidates, 1);
	vt_qp_destroy(&vt.a);
}

/* The device accepts only part of a burst: the other requests change nothing. */
TEST(verbs_mw, partly_accepted_burst_changes_only_its_windows)
{
	struct rmem_send_wr wr[6];
	uint32_t rkey = vt.two->rkey;
	struct rmem_wc wc;
	unsigned int take, i;
	int n;

	for (take = 0; take <= 6; take++) {
		for (i = 0; i < 6; i += 2) {
			wr[i] = vt_bind_wr(vt.two);
			wr[i].bind_mw.key_tag = (uint8_t)(take * 8 + i);
			wr[i + 1] = vt_inv_wr(rmem_rkey_of_tag(rkey, wr[i].bind_mw.key_tag));
		}
		fake.post_errno = ENOMEM;
		fake.post_take = take;
		n = rmem_post_send(vt.a, wr, 6);
		fake.post_errno = 0;
		TEST_ASSERT(n == -ENOSPC || (n > 0 && n <= 6));
		for (i = 0; n > 0 && i < (unsigned int)n; i++)
			TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
		if (n > 0)
			TEST_EQ(vt.two->rkey & 0xff, take * 8 + ((uint32_t)n - 1) / 2 * 2);
		/* It continues with the rest. */
		i = n > 0 ? (unsigned int)n : 0;
		TEST_EQ(rmem_post_send(vt.a, wr + i, (uint16_t)(6 - i)), (int)(6 - i));
		for (; i < 6; i++)
			TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	}
}

/* A SEND_WITH_INV that was not accepted does not change the window. */
TEST(verbs_mw, refused_send_with_inv_keeps_the_window_bound)
{
	struct rmem_send_wr send;
	struct rmem_wc wc;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	send = vt_send_inv_wr(vt.two->rkey);
	fake.post_errno = ENOMEM;
	TEST_ERR(rmem_post_send(vt.b, &send, 1), ENOSPC);
	fake.post_errno = 0;
	vt_send_inv(vt.two->rkey, RMEM_WC_SUCCESS, &wc);
}

TEST(verbs_mw, windows_are_limited_and_counted)
{
	struct rmem_mw *mw[16];
	struct rmem_dev_info info;
	unsigned int i;

	for (i = 0; i < 14; i++)
		TEST_OK(rmem_mw_alloc(vt.pd, i % 2 ? RMEM_MW_TYPE_1 : RMEM_MW_TYPE_2, &mw[i]));
	TEST_ERR(rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_2, &mw[i]), ENOSPC);
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.nb_mw, 16);
	while (i-- > 0)
		TEST_OK(rmem_mw_dealloc(mw[i]));
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.nb_mw, 2);
}

/* A window that the device does not release is unchanged. */
TEST(verbs_mw, refused_release_changes_nothing)
{
	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	VT_FAILS("dealloc_mw", EIO, rmem_mw_dealloc(vt.two), EIO);
	vt_is_granted(vt.two->rkey);
	TEST_ERR(rmem_mr_dereg(vt.mw_mr), EBUSY);
	TEST_STATUS(vt_inv(vt.two->rkey), RMEM_WC_SUCCESS);
}

/* Removed or not: windows can be released. */
TEST(verbs_mw, removed_device_releases_windows)
{
	struct rmem_mw_bind bind = vt_bind(VT_HALF);

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	fake_event(IBV_EVENT_DEVICE_FATAL, NULL, NULL, 1);
	vt_until_gone();
	TEST_ERR(rmem_mw_bind(vt.a, vt.one, &bind), ENODEV);
	TEST_OK(rmem_mw_dealloc(vt.two));
	vt.two = NULL;
}

/* A bind and an invalidation, a message, and two requests that fail, each with one flushed. */
static void
vt_run_counted(void)
{
	static const int statuses[] = {IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR};
	struct rmem_sge sge = vt_sge(0, 8), to = vt_sge(VT_HALF, 8);
	struct rmem_recv_wr recv = {.sg_list = &to, .num_sge = 1};
	struct rmem_send_wr wr = vt_wr(RMEM_WR_SEND, &sge), bad = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	struct rmem_wc wc;
	unsigned int i;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_inv(vt.two->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_post_recv(vt.b, &recv, 1), 1);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
	bad.rdma.rkey ^= 0x55;
	for (i = 0; i < RTE_DIM(statuses); i++) {
		fake.failure_status = statuses[i];
		TEST_ASSERT(vt_run(&bad) != RMEM_WC_SUCCESS);
		fake.failure_status = 0;
		TEST_STATUS(vt_run(&wr), RMEM_WC_WR_FLUSH_ERR);
		vt_reconnect();
	}
}

/* Since its last reset, and also those of QPs that were destroyed. */
TEST(verbs_mw, counters_of_the_device_are_those_of_its_qps)
{
	struct rmem_dev_stats first, stats;
	struct rmem_qp_stats a, b;

	vt_run_counted();
	TEST_OK(rmem_dev_stats_get(vt.dev, &first));
	TEST_OK(rmem_qp_stats_get(vt.a, &a));
	TEST_OK(rmem_qp_stats_get(vt.b, &b));
#define COUNTS(member, nb)                                                                         \
	do {                                                                                       \
		TEST_EQ(first.member, nb);                                                         \
		TEST_EQ(a.member + b.member, nb);                                                  \
	} while (0)
	COUNTS(send_wrs, 7);
	COUNTS(recv_wrs, 1);
	COUNTS(bytes, 8);
	COUNTS(errors, 2);
	COUNTS(flushed, 2);
	COUNTS(local_prot_errors, 1);
	COUNTS(rem_access_errors, 1);
	COUNTS(invalidates, 1);
	COUNTS(mw_binds, 1);
#undef COUNTS
	TEST_OK(rmem_dev_stats_reset(vt.dev));
	vt_run_counted();
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(memcmp(&stats, &first, sizeof(stats)), 0);
	vt_qp_destroy(&vt.a);
	vt_qp_destroy(&vt.b);
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(memcmp(&stats, &first, sizeof(stats)), 0);
}

TEST_SUITE(verbs_mw, vt_setup_mw, vt_teardown);
/* The same with the classic calls of libibverbs, and of a device without the quirk. */
TEST_SUITE_OF(verbs_mw_classic, vt_setup_mw_classic, vt_teardown, verbs_mw);
TEST_SUITE_OF(verbs_mw_plain, vt_setup_mw_plain, vt_teardown, verbs_mw);
TEST_SUITE_OF(verbs_mw_plain_classic, vt_setup_mw_plain_classic, vt_teardown, verbs_mw);

/* The purpose of the quirk. */
TEST_SUITE(verbs_mwq, vt_setup_mw, vt_teardown);
TEST_SUITE_OF(verbs_mwq_classic, vt_setup_mw_classic, vt_teardown, verbs_mwq);
