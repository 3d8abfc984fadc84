/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shared receive queues of the software device: a receive that was taken and not completed, the
 * limit, counters, and lcores that take from one SRQ and post to it at the same time.
 */

#include <sched.h>
#include <string.h>

#include <rte_lcore.h>

#include "fixture.h"

#define MAX_WORKERS 4u
#define NB_RECVS    8u
#define NB_MESSAGES 4000u
#define SIZE        128u

static struct rmem_srq *srq;

static struct rmem_srq *
make_srq(struct rmem_pd *pd, uint32_t max_wr)
{
	const struct rmem_srq_conf conf = {.max_wr = max_wr, .max_sge = 2};
	struct rmem_srq *made = NULL;

	if (rmem_srq_create(pd, &conf, &made) == 0)
		fx_track(made);
	return made;
}

static struct rmem_qp *
make_qp(const struct fx_side *side)
{
	struct rmem_qp_conf conf = fx_qp_conf(side->cq, 16);

	conf.srq = srq;
	return fx_qp_by(side->pd, &conf);
}

/* The QP of a uses the SRQ. */
static void
setup(void)
{
	fx_setup();
	fx_need_soft();
	srq = make_srq(fx.a.pd, NB_RECVS);
	TEST_ASSERT(srq != NULL);
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = make_qp(&fx.a);
	fx_reconnect();
}

static int
post(uint64_t wr_id, const struct rmem_sge *sge, uint16_t num_sge)
{
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge};

	return rmem_srq_post_recv(srq, &wr, 1);
}

static struct rmem_srq_attr
query(void)
{
	struct rmem_srq_attr attr = {0};

	if (rmem_srq_query(srq, &attr) != 0)
		attr.nb_wr = UINT32_MAX;
	return attr;
}

static uint32_t
nb_taken(void)
{
	struct rmem_qp_attr attr = {0};

	return rmem_qp_query(fx.a.qp, &attr) == 0 ? attr.recv_queued : UINT32_MAX;
}

TEST(srq, capabilities_and_limits_are_reported)
{
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	struct rmem_qp_attr attr;

	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_SRQ) != 0);
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_SRQ_RESIZE) != 0);
	TEST_EQ(info.max_srq_wr, info.max_recv_wr);
	TEST_EQ(info.max_srq_sge, info.max_recv_sge);
	TEST_EQ(info.nb_srq, 1);
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_EQ(attr.max_recv_wr, 0);
	TEST_EQ(attr.max_recv_sge, 0);
	TEST_EQ(query().max_wr, NB_RECVS);
	TEST_EQ(query().max_sge, 2);
}

TEST(srq, srq_beyond_max_srq_or_memory_is_refused)
{
	struct rmem_dev *dev = fx_dev("soft77", "max_srq=1");
	const struct rmem_srq_conf conf = {.max_wr = 16384, .max_sge = 16};
	struct rmem_srq_attr attr = {.max_wr = 16384};
	struct rmem_srq *other = NULL;
	struct rmem_pd *pd;

	pd = fx_pd(dev);
	TEST_ASSERT(make_srq(pd, 1) != NULL);
	TEST_ERR(rmem_srq_create(pd, &conf, &other), ENOSPC);
	TEST_EQ(post(1, NULL, 0), 1);
	fx_leave_memory(65536);
	TEST_ERR(rmem_srq_create(fx.a.pd, &conf, &other), ENOMEM);
	TEST_ERR(rmem_srq_modify(srq, &attr, RMEM_SRQ_MAX_WR), ENOMEM);
	fx_free_memory();
	TEST_EQ(query().max_wr, NB_RECVS);
	TEST_EQ(query().nb_wr, 1);
	TEST_OK(rmem_srq_modify(srq, &attr, RMEM_SRQ_MAX_WR));
	TEST_EQ(query().max_wr, 16384);
}

/* A message of b to unmapped memory, which is detected after a receive was consumed. */
static void
send_unmapped(void)
{
	struct rmem_send_wr wr;
	struct rmem_sge from;
	struct rmem_mr *mr;

	mr = fx_mr_unmapped(fx.b.pd);
	from = fx_sge(mr, 0, 4096);
	wr = fx_wr(RMEM_WR_SEND, &from, 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_LOC_PROT_ERR);
}

static void
leave_taken(void)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 4096);

	TEST_EQ(post(7, &to, 1), 1);
	TEST_EQ(post(8, NULL, 0), 1);
	send_unmapped();
	TEST_EQ(query().nb_wr, 1);
	TEST_EQ(nb_taken(), 1);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

/* Messages in completions are copied by the poll; these are too long. */
TEST(srq, taken_receive_is_flushed_by_its_qp)
{
	leave_taken();
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	fx_expect_flush(fx.a.cq, 7, 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(query().nb_wr, 1);
	TEST_EQ(nb_taken(), 0);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST(srq, taken_receive_is_posted_again_by_a_reset)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	leave_taken();
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(query().nb_wr, 2);
	TEST_EQ(nb_taken(), 0);
	TEST_OK(rmem_dev_audit(fx.a.dev));
	fx_reconnect();
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), -EINVAL);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.wr_id, 7);
}

/* IBTA 10.2.9.4: a QP is moved to Error before, so that no receive of its SRQ is lost. */
TEST(srq, taken_receive_is_dropped_by_a_reset_if_the_srq_is_full)
{
	const uint32_t max_wr = query().max_wr;
	uint32_t i;

	leave_taken();
	for (i = 1; i < max_wr; i++)
		TEST_EQ(post(8 + i, NULL, 0), 1);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(query().nb_wr, max_wr);
	TEST_EQ(nb_taken(), 0);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST(srq, taken_receive_is_posted_again_by_a_destroy)
{
	leave_taken();
	TEST_OK(fx_release(fx.a.qp));
	TEST_EQ(query().nb_wr, 2);
	TEST_OK(rmem_dev_audit(fx.a.dev));
	TEST_OK(fx_release(srq));
}

/* A message is counted when it has consumed a receive. */
TEST(srq, message_that_uc_drops_leaves_its_receive_to_others)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 63), large = fx_sge(fx.a.mr, 0, 4096);
	struct rmem_sge from = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_srq_attr attr = {.srq_limit = 1};
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);

	conf.type = RMEM_QPT_UC;
	conf.srq = srq;
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = fx_qp_by(fx.a.pd, &conf);
	conf = fx_qp_conf(fx.b.cq, 4);
	conf.type = RMEM_QPT_UC;
	TEST_OK(fx_release(fx.b.qp));
	fx.b.qp = fx_qp_by(fx.b.pd, &conf);
	fx_reconnect();
	TEST_EQ(post(7, &to, 1), 1);
	TEST_OK(rmem_srq_modify(srq, &attr, RMEM_SRQ_LIMIT));
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(query().nb_wr, 1);
	TEST_EQ(query().srq_limit, 1);
	TEST_EQ(nb_taken(), 0);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_EQ(query().nb_wr, 1);
	fx_reconnect();
	from.length = 63;
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.wr_id, 7);
	TEST_EQ(post(8, &large, 1), 1);
	send_unmapped();
	TEST_EQ(query().nb_wr, 1);
	TEST_EQ(nb_taken(), 0);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST(srq, counters_count_completed_messages)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8);
	struct rmem_counter *counter = fx_counter(fx.a.dev);
	struct rmem_dev_stats before;
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE_WITH_IMM, &from, &fx.a);

	TEST_OK(rmem_mr_bind_counter(fx.a.mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &before));
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.b.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	TEST_EQ(counter->value, 0);
	TEST_EQ(post(1, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(counter->value, 1);
	TEST_EQ(fx_dev_stats(fx.a.dev).recv_wrs - before.recv_wrs, 1);
	TEST_OK(rmem_mr_bind_counter(fx.a.mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
}

/* A worker sends to its QP of the SRQ, and posts again what that completes. */
struct worker {
	struct fx_side side;
	struct rmem_qp *qp;
	struct rmem_cq *recv_cq;
	uint32_t index;
};

static struct worker workers[MAX_WORKERS];
static uint32_t owners[NB_RECVS]; /* completions of a receive not posted again; atomic */

static int
repost(uint64_t wr_id)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, wr_id * SIZE, SIZE);

	return post(wr_id, &to, 1);
}

/* The message in the completed receive is the worker's, whole, and no other thread completed it. */
static void
check_recv(const struct worker *worker, const struct rmem_wc *wc, uint32_t seq, uint32_t length)
{
	const uint8_t *got = fx.a.buf + wc->wr_id * SIZE;
	uint32_t i;

	TEST_STATUS(wc->status, RMEM_WC_SUCCESS);
	TEST_ASSERT(wc->wr_id < NB_RECVS);
	TEST_EQ(wc->qp_num, worker->qp->qp_num);
	TEST_EQ(wc->byte_len, length);
	TEST_EQ(__atomic_fetch_add(&owners[wc->wr_id], 1, __ATOMIC_ACQ_REL), 0);
	for (i = 0; i < length; i++)
		TEST_EQ(got[i], (uint8_t)(seq + worker->index * 64));
	__atomic_store_n(&owners[wc->wr_id], 0, __ATOMIC_RELEASE);
	TEST_EQ(repost(wc->wr_id), 1);
}

static void
run_worker(void *arg)
{
	struct worker *worker = arg;
	struct rmem_sge from = fx_sge(worker->side.mr, 0, SIZE);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_wc wc;
	uint32_t i;

	wr.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < NB_MESSAGES; i++) {
		/* Inline and not. */
		from.length = i % 2 == 0 ? 32 : SIZE;
		memset(worker->side.buf, (uint8_t)(i + worker->index * 64), SIZE);
		TEST_EQ(fx_post(worker->side.qp, &wr), 1);
		TEST_EQ(fx_poll(worker->recv_cq, &wc, 1), 1);
		check_recv(worker, &wc, i, from.length);
		TEST_EQ(fx_poll(worker->side.cq, &wc, 1), 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		if (i % 64 == 0)
			sched_yield();
	}
}

static void
open_worker(struct worker *worker, uint32_t index)
{
	struct fx_side recv = fx.a;

	memset(worker, 0, sizeof(*worker));
	worker->index = index;
	fx_side_open(&worker->side, fx.a.dev, fx.a.pd);
	recv.cq = worker->recv_cq = fx_cq(fx.a.dev, 64);
	TEST_ASSERT(recv.cq != NULL);
	worker->qp = make_qp(&recv);
	TEST_OK(fx_connect_pair(worker->side.qp, worker->qp));
}

/*
 * Each message takes a receive of its own, while the queue is resized and its limit is armed. There
 * is one receive less than there are workers, so that messages wait for receives.
 */
TEST(srq, lcores_take_and_post_at_the_same_time)
{
	unsigned int i, nb = RTE_MIN(fx_nb_workers(), MAX_WORKERS);
	struct rmem_srq_attr attr = {0};
	int ret = TEST_SUCCESS;

	fx_need_workers(2);
	memset(owners, 0, sizeof(owners));
	for (i = 0; i < nb; i++)
		open_worker(&workers[i], i);
	for (i = 0; i < nb - 1; i++)
		TEST_EQ(repost(i), 1);
	fx_launch(run_worker, workers, sizeof(workers[0]), nb);
	for (i = 0; i < 200 && ret == 0; i++) {
		attr.max_wr = NB_RECVS + i % 32;
		attr.srq_limit = i % 2;
		ret = rmem_srq_modify(srq, &attr, RMEM_SRQ_MAX_WR | RMEM_SRQ_LIMIT);
		sched_yield();
	}
	fx_join(nb);
	TEST_OK(ret);
	TEST_EQ(query().nb_wr, nb - 1);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST_SUITE(srq, setup, fx_teardown);
