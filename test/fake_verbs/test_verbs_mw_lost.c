/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Windows of a verbs device whose requests are in flight when their QP fails, is reset or is
 * destroyed: executed or not, no later request breaks the device.
 */

#include "setup.h"

/* Post to a; the request is not executed. */
static void
vt_hold(const struct rmem_send_wr *wr)
{
	fake.is_held = true;
	TEST_EQ(rmem_post_send(vt.a, wr, 1), 1);
	fake.is_held = false;
}

static void
vt_flush(void)
{
	struct rmem_wc wc;

	TEST_OK(rmem_qp_set_error(vt.a));
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
}

/* In either case: not bound, can't be invalidated, can be bound. */
static void
vt_window_is_usable(void)
{
	struct rmem_send_wr wr = vt_inv_wr(vt.two->rkey);

	TEST_STATUS(vt_run(&wr), RMEM_WC_MW_BIND_ERR);
	vt_reconnect();
	TEST_STATUS(vt_peer_write(vt.two->rkey), RMEM_WC_REM_ACCESS_ERR);
	vt_reconnect();
	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_peer_write(vt.two->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_inv(vt.two->rkey), RMEM_WC_SUCCESS);
}

/* A binding, then an invalidation is lost in that way; and each with its effect, and without. */
static void
vt_lose_in_all_ways(void (*lose)(void))
{
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		fake.is_flush_run = (i & 1) != 0;
		wr = vt_bind_wr(vt.two);
		if ((i & 2) != 0) {
			TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
			wr = vt_inv_wr(vt.two->rkey);
		}
		vt_hold(&wr);
		TEST_ERR(rmem_mw_dealloc(vt.two), EBUSY);
		lose();
		vt_window_is_usable();
	}
}

static void
vt_lose_by_error(void)
{
	struct rmem_send_wr wr = vt_inv_wr(vt.two->rkey);

	vt_flush();
	/* Of a QP that failed nothing follows what is posted. */
	TEST_STATUS(vt_run(&wr), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(vt_bind_two(), RMEM_WC_WR_FLUSH_ERR);
	vt_reconnect();
}

TEST_CALL(verbs_mw_lost, flushed_requests_may_have_run, vt_lose_in_all_ways(vt_lose_by_error));
TEST_CALL(verbs_mw_lost, dropped_requests_may_have_run, vt_lose_in_all_ways(vt_reconnect));

/* The QP has failed, and that has not been polled when the next are posted. */
static void
vt_lose_unseen(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct rmem_send_wr wr = vt_bind_wr(vt.two);
	struct rmem_wc wc;

	TEST_OK(ibv_modify_qp(&fake_qp_find(vt.a->qp_num)->ex.qp_base, &attr, IBV_QP_STATE));
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	wr = vt_inv_wr(vt.two->rkey);
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
	vt_reconnect();
}

TEST_CALL(verbs_mw_lost, requests_after_a_failure_may_have_run,
		vt_lose_in_all_ways(vt_lose_unseen));

/* The QP is destroyed with its requests, and another is created. */
static void
vt_lose_with_the_qp(void)
{
	struct rmem_qp_conf conf = vt_qp_conf(vt.cq_a, RMEM_QPT_RC);

	conf.access = RMEM_ACCESS_REMOTE;
	vt_replace_qp(&vt.a, &conf);
	vt_reconnect();
}

TEST_CALL(verbs_mw_lost, destroyed_requests_may_have_run, vt_lose_in_all_ways(vt_lose_with_the_qp));

/* Nothing is reset: the MR is deregistered, and another QP binds the window. */
TEST(verbs_mw_lost, lost_binding_holds_neither_mr_nor_qp)
{
	struct rmem_send_wr wr;
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		fake.is_flush_run = i != 0;
		wr = vt_bind_wr(vt.two);
		vt_hold(&wr);
		vt_flush();
		TEST_OK(rmem_mr_dereg(vt.mw_mr));
		TEST_OK(rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0, VT_ACCESS | RMEM_ACCESS_MW_BIND,
				&vt.mw_mr));
		wr = vt_bind_wr(vt.two);
		TEST_EQ(rmem_post_send(vt.b, &wr, 1), 1);
		TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
		wr = vt_inv_wr(vt.two->rkey);
		TEST_EQ(rmem_post_send(vt.b, &wr, 1), 1);
		TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
		vt_reconnect();
	}
}

/* A window that can't be allocated again: bindings are refused until it can. */
TEST(verbs_mw_lost, bind_is_refused_until_a_lost_window_is_replaced)
{
	static const char *const names[] = {"alloc_mw", "dealloc_mw"};
	static const int errnos[] = {ENOMEM, EIO};
	struct rmem_mw_bind bind = vt_bind(VT_HALF);
	struct rmem_send_wr wr = vt_bind_wr(vt.two);
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++) {
		TEST_OK(rmem_mw_bind(vt.b, vt.one, &bind));
		TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
		vt_hold(&wr);
		fake.is_held = true;
		TEST_OK(rmem_mw_bind(vt.a, vt.one, &bind));
		fake.is_held = false;
		vt_flush();
		TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
		fake.fail_name = names[i];
		fake.fail_errno = ENOMEM;
		TEST_ERR(rmem_mw_bind(vt.b, vt.one, &bind), errnos[i]);
		wr = vt_bind_wr(vt.two);
		TEST_EQ(rmem_post_send(vt.b, &wr, 1), 1);
		TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_MW_BIND_ERR);
		if (i == 1) /* the window may be bound on it */
			TEST_ERR(rmem_qp_destroy(vt.a), EIO);
		fake.fail_name = NULL;
		vt_reconnect();
		TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
		TEST_STATUS(vt_inv(vt.two->rkey), RMEM_WC_SUCCESS);
		wr = vt_bind_wr(vt.two);
	}
}

/* A window without one at the device can be released. */
TEST(verbs_mw_lost, lost_window_is_released)
{
	struct rmem_send_wr wr = vt_bind_wr(vt.two);

	vt_hold(&wr);
	VT_FAILS("alloc_mw", ENOMEM, rmem_qp_reset(vt.a), EIO);
	TEST_OK(rmem_mw_dealloc(vt.two));
	vt.two = NULL;
}

/* The previous binding may be in force, and the next one allocates the window again. */
TEST(verbs_mw_lost, lost_type_1_bind_keeps_the_previous_key)
{
	struct rmem_mw_bind bind = vt_bind(VT_HALF);
	struct rmem_wc wc;
	uint32_t rkey, i;

	for (i = 0; i < 4; i++) {
		fake.is_flush_run = (i & 1) != 0;
		TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
		rkey = vt.one->rkey;
		fake.is_held = true;
		TEST_OK(rmem_mw_bind(vt.a, vt.one, &bind));
		TEST_OK(rmem_mw_bind(vt.a, vt.one, &bind));
		fake.is_held = false;
		TEST_ASSERT(vt.one->rkey != rkey);
		TEST_ERR(rmem_mw_dealloc(vt.one), EBUSY);
		if ((i & 2) != 0) {
			vt_flush();
			TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
		}
		vt_reconnect();
		TEST_EQ(vt.one->rkey, rkey);
		TEST_STATUS(vt_peer_write(rkey),
				fake.is_flush_run ? RMEM_WC_REM_ACCESS_ERR : RMEM_WC_SUCCESS);
		vt_reconnect();
		TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
		TEST_STATUS(vt_peer_write(vt.one->rkey), RMEM_WC_SUCCESS);
	}
}

/* Bindings posted to a QP that has failed do not change the previous one. */
TEST(verbs_mw_lost, type_1_window_of_a_failed_qp_keeps_its_key)
{
	struct rmem_mw_bind bind = vt_bind(VT_HALF);
	struct rmem_wc wc;
	uint32_t rkey;

	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
	rkey = vt.one->rkey;
	TEST_OK(rmem_qp_set_error(vt.a));
	TEST_OK(rmem_mw_bind(vt.a, vt.one, &bind));
	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(vt.one->rkey, rkey);
	vt_reconnect();
	TEST_STATUS(vt_peer_write(rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
	TEST_EQ(vt.one->rkey, rmem_rkey_of_tag(rkey, rmem_rkey_next_tag(rkey)));
}

/* Requests posted to a failed QP are not executed, and so change nothing. */
TEST(verbs_mw_lost, type_2_window_of_a_failed_qp_stays_bound)
{
	uint32_t rkey;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	rkey = vt.two->rkey;
	TEST_OK(rmem_qp_set_error(vt.a));
	TEST_STATUS(vt_inv(rkey), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(vt_bind_two(), RMEM_WC_WR_FLUSH_ERR);
	vt_reconnect();
	TEST_STATUS(vt_peer_write(rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_inv(rkey), RMEM_WC_SUCCESS);
}

/* While the peer's SEND_WITH_INV is in flight, other invalidations are refused. */
TEST(verbs_mw_lost, invalidation_while_that_of_the_peer_is_in_flight_is_refused)
{
	struct rmem_recv_wr recv = {.wr_id = 77};
	struct rmem_send_wr wr, send;
	struct rmem_wc wc;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	send = vt_send_inv_wr(vt.two->rkey);
	TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
	fake.is_held = true;
	TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
	fake.is_held = false;
	TEST_ERR(rmem_mw_dealloc(vt.two), EBUSY);
	TEST_ERR(rmem_qp_destroy(vt.a), EBUSY);
	fake_run_held(vt.b->qp_num, 1);
	wr = vt_inv_wr(vt.two->rkey);
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS); /* the receive */
	TEST_EQ(wc.flags, RMEM_WC_WITH_INV);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_MW_BIND_ERR);
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
	vt_reconnect();
	vt_window_is_usable();
}

/*
 * Another QP binds while the LOCAL_INV of the first has not completed, and invalidates what it
 * can't have bound; that it was flushed does not keep a request from being executed.
 */
TEST(verbs_mw_lost, bind_before_the_local_inv_of_another_qp_fails)
{
	struct rmem_send_wr wr[2] = {vt_bind_wr(vt.two)};
	struct rmem_wc wc;

	TEST_STATUS(vt_run(&wr[0]), RMEM_WC_SUCCESS);
	wr[0] = vt_inv_wr(vt.two->rkey);
	vt_hold(&wr[0]);
	wr[0] = vt_bind_wr(vt.two);
	wr[0].bind_mw.key_tag = (uint8_t)vt.two->rkey;
	wr[1] = vt_inv_wr(vt.two->rkey);
	fake.is_held = fake.is_flush_run = true;
	TEST_EQ(rmem_post_send(vt.b, wr, 2), 2);
	fake.is_held = false;
	fake_run_held(vt.b->qp_num, 2);
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_MW_BIND_ERR);
	fake_run_held(vt.a->qp_num, 1);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_EQ(fake.nb_crashes, 0);
	fake.is_flush_run = false;
	vt_reconnect();
	vt_window_is_usable();
}

/* b's SEND_WITH_INV is flushed: it may have reached a or not. */
TEST(verbs_mw_lost, local_inv_after_a_lost_send_with_inv_fails)
{
	struct rmem_send_wr send;
	struct rmem_wc wc;

	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	send = vt_send_inv_wr(vt.two->rkey);
	fake.is_held = true;
	TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
	fake.is_held = false;
	TEST_OK(rmem_qp_set_error(vt.b));
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(vt_inv(vt.two->rkey), RMEM_WC_MW_BIND_ERR);
	vt_reconnect();
	vt_window_is_usable();
}

/* A key may be invalidated by the peer before its binding was made: a key it had before, not. */
TEST(verbs_mw_lost, send_with_inv_before_the_bind_completes_is_refused)
{
	struct rmem_recv_wr recv = {.wr_id = 77};
	struct rmem_send_wr wr, send;
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		wr = vt_bind_wr(vt.two);
		if (i == 0)
			wr.bind_mw.key_tag = (uint8_t)vt.two->rkey;
		TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
		vt_hold(&wr);
		send = vt_send_inv_wr(vt.two->rkey);
		TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
		TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
		TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_REM_INV_REQ_ERR);
		TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
		vt_reconnect();
	}
}

/* b's SEND_WITH_INV is flushed while the binding that it invalidates is in flight. */
TEST(verbs_mw_lost, bind_in_flight_holds_its_mr_after_a_lost_send_with_inv)
{
	struct rmem_send_wr wr = vt_bind_wr(vt.two), send;
	struct rmem_wc wc;

	vt_hold(&wr);
	send = vt_send_inv_wr(vt.two->rkey);
	fake.is_held = true;
	TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
	fake.is_held = false;
	TEST_OK(rmem_qp_set_error(vt.b));
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_WR_FLUSH_ERR);
	TEST_ERR(rmem_mr_dereg(vt.mw_mr), EBUSY);
	fake_run_held(vt.a->qp_num, 1);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_inv(vt.two->rkey), RMEM_WC_MW_BIND_ERR);
	vt_reconnect();
	vt_window_is_usable();
	TEST_OK(rmem_mw_dealloc(vt.two));
	vt.two = NULL;
	TEST_OK(rmem_mr_dereg(vt.mw_mr)); /* nothing holds it */
	vt.mw_mr = NULL;
}

TEST_SUITE(verbs_mw_lost, vt_setup_mw, vt_teardown);
/* The same with the classic calls of libibverbs. */
TEST_SUITE_OF(verbs_mw_lost_classic, vt_setup_mw_classic, vt_teardown, verbs_mw_lost);
