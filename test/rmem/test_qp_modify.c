/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* rmem_qp_modify(): SQD, rights besides requests of the peer, and what it refuses of values. */

#include <string.h>
#include <sys/mman.h>

#include "fixture.h"

#define NB_MSG 1000u
#define ROUNDS 30u
#define BIG    ((size_t)16 << 20)

/* Requests that another lcore makes of side b. */
static struct {
	struct rmem_qp *qp;
	struct rmem_cq *cq;
	struct rmem_mr *from, *to; /* of BIG bytes */
	uint32_t is_done;          /* atomic */
} peer;

static int
move(struct rmem_qp *qp, uint32_t state)
{
	struct rmem_qp_attr attr = {.state = state};

	return rmem_qp_modify(qp, &attr, RMEM_QP_STATE);
}

static int
set_access(struct rmem_qp *qp, uint32_t access)
{
	struct rmem_qp_attr attr = {.access = access};

	return rmem_qp_modify(qp, &attr, RMEM_QP_ACCESS_FLAGS);
}

/* IBTA 10.3.1.5 */
TEST(qp_modify, requests_posted_in_sqd_wait_for_rts)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	struct rmem_qp_attr attr;

	wr.flags = RMEM_SEND_SIGNALED;
	wr.wr_id = 3;
	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_EQ(attr.state, RMEM_QPS_SQD);
	TEST_EQ(attr.sq_draining, 0);
	TEST_EQ(attr.send_queued, 1);
	TEST_OK(move(fx.a.qp, RMEM_QPS_RTS));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 3);
}

TEST(qp_modify, qp_in_sqd_executes_requests_of_its_peer)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);

	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	TEST_EQ(fx_post_recv(fx.a.qp, 9, NULL, 0), 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_SQD);
}

/* Each in the order posted; an unsignaled request too. */
TEST(qp_modify, error_in_sqd_flushes_both_queues)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint64_t next[2] = {0, 20};
	uint32_t i;

	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	for (wr.wr_id = 0; wr.wr_id < 5; wr.wr_id++) {
		TEST_EQ(fx_post(fx.a.qp, &wr), 1);
		TEST_EQ(fx_post_recv(fx.a.qp, 20 + wr.wr_id, NULL, 0), 1);
	}
	TEST_OK(move(fx.a.qp, RMEM_QPS_ERR));
	for (i = 0; i < 10; i++) {
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
		TEST_EQ(fx.wc.wr_id, next[fx.wc.wr_id >= 20]++);
	}
	TEST_OK(move(fx.a.qp, RMEM_QPS_RESET));
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RESET);
}

TEST(qp_modify, timeouts_change_in_sqd)
{
	struct rmem_qp_attr attr = {.timeout = 12, .retry_cnt = 3, .rnr_retry = 2};
	const uint32_t mask = RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT | RMEM_QP_RNR_RETRY;

	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), EINVAL);
	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_OK(rmem_qp_modify(fx.a.qp, &attr, mask));
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_EQ(attr.timeout, 12);
	TEST_EQ(attr.retry_cnt, 3);
	TEST_EQ(attr.rnr_retry, 2);
}

/* Reset both QPs, and connect only the first. */
static void
connect_again(const struct rmem_qp_conn *conn)
{
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, conn));
}

/* The request waited without limit before. */
TEST(qp_modify, timeout_set_in_sqd_ends_a_wait_for_the_peer)
{
	struct rmem_qp_attr attr = {.timeout = 5, .retry_cnt = 0};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_qp_conn conn = fx_conn();

	conn.timeout = 0;
	wr.flags = RMEM_SEND_SIGNALED;
	connect_again(&conn);
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_OK(rmem_qp_modify(fx.a.qp, &attr, RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT));
	TEST_OK(move(fx.a.qp, RMEM_QPS_RTS));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_RETRY_EXC_ERR);
}

/* A request that finds no receive would fail at once before. */
TEST(qp_modify, rnr_retry_set_in_sqd_waits_for_a_receive)
{
	struct rmem_qp_attr attr = {.rnr_retry = 7};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_qp_conn conn = fx_conn();

	conn.rnr_retry = 0;
	wr.flags = RMEM_SEND_SIGNALED;
	connect_again(&conn);
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_OK(rmem_qp_modify(fx.a.qp, &attr, RMEM_QP_RNR_RETRY));
	TEST_OK(move(fx.a.qp, RMEM_QPS_RTS));
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(fx_post_recv(fx.b.qp, 1, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
}

/* Messages that remain in their completions, each followed by a WRITE that delivers it. */
static void
send_and_write(void *arg)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 32);
	struct rmem_send_wr wr[2];
	int ret = RMEM_WC_SUCCESS;
	unsigned int i;

	RTE_SET_USED(arg);
	wr[0] = fx_rdma(RMEM_WR_SEND, &sge, 0, 0);
	wr[1] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf) + FX_PAGE, fx.b.mr->rkey);
	wr[1].flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < NB_MSG && ret == RMEM_WC_SUCCESS; i++)
		ret = rmem_post_send(peer.qp, wr, 2) == 2 ? fx_wait(peer.cq) : -EPROTO;
	__atomic_store_n(&peer.is_done, 1, __ATOMIC_RELEASE);
	TEST_STATUS(ret, RMEM_WC_SUCCESS);
}

/* Until the peer is done: a removed right does not come back. */
static void
remove_rights(struct rmem_qp *qp)
{
	struct rmem_qp_attr attr;

	while (!__atomic_load_n(&peer.is_done, __ATOMIC_ACQUIRE)) {
		TEST_OK(set_access(qp, RMEM_ACCESS_REMOTE_WRITE));
		TEST_OK(rmem_qp_query(qp, &attr));
		TEST_EQ(attr.access, RMEM_ACCESS_REMOTE_WRITE);
		TEST_OK(set_access(qp, RMEM_ACCESS_REMOTE));
	}
}

TEST(qp_modify, removed_rights_stay_removed)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 32);
	struct rmem_cq *cq = fx_cq(fx.b.dev, 2 * NB_MSG);
	struct rmem_qp_conf conf = fx_qp_conf(cq, NB_MSG);
	struct rmem_qp *qp = fx_qp_by(fx.b.pd, &conf);
	unsigned int round, i;
	int ret;

	peer.cq = fx_cq(fx.a.dev, 64);
	peer.qp = fx_qp(fx.a.pd, peer.cq, 16);
	TEST_OK(fx_connect_pair(peer.qp, qp));
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < NB_MSG; i++)
			TEST_EQ(fx_post_recv(qp, i, &to, 1), 1);
		peer.is_done = 0;
		fx_launch(send_and_write, NULL, 0, 1);
		ret = TEST_TRY(remove_rights(qp));
		fx_join(1);
		TEST_RUN(ret);
		fx_drain(cq);
	}
}

static void
write_big(void *arg)
{
	const struct rmem_sge sge = fx_sge(peer.from, 0, BIG);
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)peer.to->addr, peer.to->rkey);

	RTE_SET_USED(arg);
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
}

/*
 * A WRITE is in progress when the right is removed: it has ended when the call returns. The first
 * and last bytes are not those that a copy writes first and last.
 */
static void
remove_right_in_write(uint8_t *to)
{
	uint64_t deadline = fx_deadline();
	uint8_t last;

	memset(to, 0, BIG);
	TEST_OK(set_access(fx.b.qp, RMEM_ACCESS_REMOTE_WRITE));
	fx_launch(write_big, NULL, 0, 1);
	while (__atomic_load_n(&to[FX_PAGE], __ATOMIC_ACQUIRE) == 0 && !fx_is_late(deadline))
		rte_pause();
	TEST_OK(set_access(fx.b.qp, 0));
	last = __atomic_load_n(&to[BIG - FX_PAGE], __ATOMIC_ACQUIRE);
	fx_join(1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(to[BIG - FX_PAGE], 7);
	TEST_EQ(last, 7);
}

TEST(qp_modify, no_write_after_the_removal_of_a_right)
{
	uint8_t *buf = mmap(
			NULL, 2 * BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret = TEST_SUCCESS;
	unsigned int i;

	TEST_ASSERT(buf != MAP_FAILED);
	memset(buf, 7, BIG);
	peer.from = fx_mr(fx.a.pd, buf, BIG, FX_ACCESS);
	peer.to = fx_mr(fx.b.pd, buf + BIG, BIG, FX_ACCESS);
	for (i = 0; i < 10 && ret == TEST_SUCCESS; i++)
		ret = TEST_TRY(remove_right_in_write(buf + BIG));
	TEST_OK(fx_release(peer.from));
	TEST_OK(fx_release(peer.to));
	munmap(buf, 2 * BIG);
	TEST_RUN(ret);
}

#define MASK (RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS)

static int
init(const void *attr)
{
	return rmem_qp_modify(fx.a.qp, attr, MASK);
}

TEST(qp_modify, bad_arguments_are_refused)
{
	static const struct rmem_qp_attr good = {.state = RMEM_QPS_INIT, .port_num = 1};
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_qp_attr, reserved[0], 1, EINVAL),
			FX_BAD(rmem_qp_attr, reserved_byte[0], 1, EINVAL),
			FX_BAD(rmem_qp_attr, access, RMEM_ACCESS_LOCAL_WRITE, EINVAL),
			FX_BAD(rmem_qp_attr, port_num, 2, EINVAL),
			FX_BAD(rmem_qp_attr, port_num, 0, EINVAL),
			FX_BAD(rmem_qp_attr, pkey_index, 1, EINVAL),
	};

	TEST_ERR(rmem_qp_modify(NULL, &good, MASK), EINVAL);
	TEST_ERR(rmem_qp_modify(fx.a.qp, NULL, MASK), EINVAL);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ERR(rmem_qp_modify(fx.a.qp, &good, MASK | RMEM_QP_DEST_QPN << 4), EINVAL);
	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), init);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RESET);
}

TEST_SUITE(qp_modify, fx_setup, fx_teardown);
