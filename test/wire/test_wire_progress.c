/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A thread serves a target, also while an lcore polls periodically; an audit waits for it, and so
 * does a QP of UC that leaves SQE. Cases write private structures of the software device.
 */

#include <pthread.h>

#include <rte_debug.h>
#include <rte_lcore.h>

#include "../../drivers/soft/mem/rsoft_grace.h"
#include "../../drivers/soft/queue/rsoft_req.h"
#include "../../drivers/soft/queue/rsoft_sq.h"
#include "../../drivers/soft/wire/rwire.h"

#include "../perf/perf_row.h"
#include "../rc.h"

#define NB_POLLS   100u
#define ENOUGH     (3 * NB_POLLS) /* READs in as many intervals */
#define NB_TURNS   1000u
#define NB_FLUSH   4u /* requests in SQE */
#define NB_WINDOWS 16u

static struct perf_pair pair;
static struct rmem_mr *local, *target;

/* Polls of the target's CQ, two in a millisecond. */
struct slow_poller {
	uint64_t next; /* TSC */
	uint32_t nb_polls;
	uint32_t nb_reads;
};

static void
poll_slowly(struct slow_poller *slow)
{
	struct rmem_wc wc;

	if (rte_rdtsc() < slow->next)
		return;
	slow->next = rte_rdtsc() + rte_get_tsc_hz() / 2000;
	if (++slow->nb_polls == NB_POLLS)
		slow->nb_polls = slow->nb_reads = 0;
	(void)rmem_poll_cq(pair.cq_b, &wc, 1);
}

static void
read_once(struct slow_poller *slow)
{
	struct rmem_sge sge = {local->iova, 64, local->lkey};
	const struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_READ, &sge, target->iova, target->rkey);
	struct rmem_wc wc;
	int n;

	TEST_EQ(rmem_post_send(pair.a, &wr, 1), 1);
	do {
		poll_slowly(slow);
		sched_yield();
		n = rmem_poll_cq(pair.cq_a, &wc, 1);
	} while (n == 0);
	TEST_EQ(n, 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	slow->nb_reads++;
}

/* Each poll answers one READ, the thread all others. */
TEST(wire_progress, target_that_polls_rarely_is_served_between_polls)
{
	struct slow_poller slow = {0};

	while (slow.nb_reads < ENOUGH)
		read_once(&slow);
}

/* A thread in the midst of a change to a QP, for which it holds a lock. */
struct changer {
	rte_ticketlock_t *lock;
	struct rsoft_qp *qp;
	bool is_changing, is_audited; /* atomic */
};

/* For many turns of the thread that audits, unless it has not waited. */
static void *
change(void *arg)
{
	struct changer *changer = arg;
	struct rsoft_rq *rq = &changer->qp->rq;
	uint32_t i;

	rte_ticketlock_lock(changer->lock);
	rq->prod_cached++;
	__atomic_store_n(&changer->is_changing, true, __ATOMIC_RELEASE);
	for (i = 0; i < NB_TURNS && !__atomic_load_n(&changer->is_audited, __ATOMIC_ACQUIRE); i++)
		sched_yield();
	rq->prod_cached--;
	rte_ticketlock_unlock(changer->lock);
	return NULL;
}

static void
audit_during_change(rte_ticketlock_t *lock)
{
	struct changer changer = {.lock = lock, .qp = (struct rsoft_qp *)pair.b};
	pthread_t thread;
	int ret;

	TEST_OK(pthread_create(&thread, NULL, change, &changer));
	while (!__atomic_load_n(&changer.is_changing, __ATOMIC_ACQUIRE))
		sched_yield();
	ret = rmem_dev_audit(pair.dev_b);
	__atomic_store_n(&changer.is_audited, true, __ATOMIC_RELEASE);
	TEST_OK(pthread_join(thread, NULL));
	TEST_OK(ret);
}

/* A late packet or an expired timer may change a QP while no lcore uses the device. */
TEST(wire_progress, audit_waits_for_the_wire_thread)
{
	struct rsoft_dev *dev = rmem_dev_drv(pair.dev_b)->priv;

	audit_during_change(&dev->wire->rx_lock);
	audit_during_change(&dev->pending_lock);
}

/* A thread in the midst of a flush, which leaves the second half of the requests in the queue. */
struct flusher {
	struct rsoft_qp *qp;
	const struct rmem_send_wr *wr;
	bool is_flushing, is_modified; /* atomic */
};

/* For many turns of the thread that modifies the QP, unless it has not waited. */
static void *
flush(void *arg)
{
	struct flusher *flusher = arg;
	struct rsoft_sq *sq = &flusher->qp->sq;
	int rc = rte_thread_register();
	unsigned int lcore;
	uint32_t i, n;

	if (rc != 0)
		return arg;
	lcore = rsoft_grace_enter();
	rte_ticketlock_lock(&sq->lock);
	for (i = 0; i < NB_FLUSH; i++)
		rsoft_sq_push(flusher->qp, flusher->wr, 1);
	sq->posted += NB_FLUSH;
	__atomic_store_n(&flusher->is_flushing, true, __ATOMIC_RELEASE);
	for (i = 0; i < NB_TURNS && !__atomic_load_n(&flusher->is_modified, __ATOMIC_ACQUIRE); i++)
		sched_yield();
	for (i = 0; i < NB_FLUSH / 2; i++) {
		n = rsoft_req_exec(flusher->qp, lcore, true, rsoft_sq_slot(sq, sq->cons),
				sq->stride, 1);
		rsoft_sq_pop(sq, n);
	}
	rte_ticketlock_unlock(&sq->lock);
	rsoft_grace_leave(lcore);
	rte_thread_unregister();
	return NULL;
}

/* The next completion is that of a request with the status. */
static void
expect_wc(struct rmem_cq *cq, enum rmem_wc_status status)
{
	struct rmem_wc wc;
	int n;

	do {
		sched_yield();
		n = rmem_poll_cq(cq, &wc, 1);
	} while (n == 0);
	TEST_EQ(n, 1);
	TEST_EQ(wc.status, status);
}

static void
leave_sqe(struct rmem_qp *qp, const struct rmem_send_wr *wr)
{
	struct flusher flusher = {.qp = (struct rsoft_qp *)qp, .wr = wr};
	struct rmem_qp_attr attr = {.state = RMEM_QPS_RTS};
	pthread_t thread;
	void *failed;
	int ret;

	TEST_OK(pthread_create(&thread, NULL, flush, &flusher));
	while (!__atomic_load_n(&flusher.is_flushing, __ATOMIC_ACQUIRE))
		sched_yield();
	ret = rmem_qp_modify(qp, &attr, RMEM_QP_STATE);
	__atomic_store_n(&flusher.is_modified, true, __ATOMIC_RELEASE);
	TEST_OK(pthread_join(thread, &failed));
	TEST_ASSERT(failed == NULL);
	TEST_OK(ret);
}

/* Of the requests in SQE none is executed, and the next one completes. */
static void
restart(struct rmem_qp *qp, struct rmem_cq *cq, struct rmem_mr *mr)
{
	struct rmem_sge good = {mr->iova, 8, mr->lkey}, bad = {mr->iova, 8, 1};
	struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_WRITE, &bad, mr->iova + 64, mr->rkey);
	struct rmem_wc wc;
	uint32_t i;

	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	expect_wc(cq, RMEM_WC_LOC_PROT_ERR);
	wr.sg_list = &good;
	leave_sqe(qp, &wr);
	for (i = 0; i < NB_FLUSH; i++)
		expect_wc(cq, RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(rmem_poll_cq(cq, &wc, 1), 0);
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	expect_wc(cq, RMEM_WC_SUCCESS);
	TEST_EQ(rmem_poll_cq(cq, &wc, 1), 0);
}

/* With a QP of UC that is connected to itself. */
static void
run_uc(struct rmem_pd *pd, struct rmem_cq *cq, struct rmem_mr *mr,
		void (*run)(struct rmem_qp *qp, struct rmem_cq *cq, struct rmem_mr *mr))
{
	struct rmem_qp_conf conf = rc_conf(cq, 2 * NB_FLUSH, 0);
	struct rmem_qp_attr attr;
	struct rmem_qp *qp;
	int result;

	conf.type = RMEM_QPT_UC;
	TEST_OK(rmem_qp_create(pd, &conf, &qp));
	TEST_OK(rmem_qp_query(qp, &attr));
	perf_qp_connect(qp, &attr.addr);
	result = TEST_TRY(run(qp, cq, mr));
	TEST_OK(rmem_qp_destroy(qp));
	TEST_RUN(result);
}

TEST_CALL(wire_progress, uc_qp_leaves_sqe_after_the_flush,
		run_uc(pair.pd, pair.cq_a, local, restart));

TEST(wire_progress, uc_qp_in_process_leaves_sqe_after_the_flush)
{
	struct perf_pair near;
	struct rmem_mr *mr;
	int result;

	perf_pair_open(&near, NULL);
	mr = perf_mr(near.pd, 4096);
	TEST_ASSERT(mr != NULL);
	result = TEST_TRY(run_uc(near.pd, near.cq_a, mr, restart));
	TEST_OK(rmem_mr_dereg(mr));
	perf_pair_close(&near);
	TEST_RUN(result);
}

static struct perf_pair polled;

static uint64_t
nb_sent(void)
{
	struct rmem_dev_stats stats;

	return rmem_dev_stats_get(polled.dev, &stats) == 0 ? stats.wire_tx_packets : UINT64_MAX;
}

/* A post sends a part, calls of poll the others, each at most two windows. */
static void
send_windows(struct rmem_qp *qp, struct rmem_cq *cq, struct rmem_mr *mr)
{
	const struct rwire_qp *q = ((struct rsoft_qp *)qp)->wire;
	struct rmem_sge sge = {mr->iova, NB_WINDOWS * q->window * q->mtu, mr->lkey};
	const struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_WRITE, &sge, mr->iova, mr->rkey);
	uint64_t start = nb_sent(), before = start, after;
	struct rmem_wc wc;
	int n;

	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	do {
		after = nb_sent();
		TEST_ASSERT(after - before <= 2 * q->window);
		before = after;
		n = rmem_poll_cq(cq, &wc, 1);
	} while (n == 0);
	TEST_EQ(n, 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(nb_sent() - start, NB_WINDOWS * q->window);
}

TEST(wire_progress, uc_post_sends_at_most_two_windows)
{
	struct rmem_mr *mr;
	int result;

	perf_pair_open(&polled, "ip=127.0.17.6,loop=1,progress=poll");
	mr = perf_mr(polled.pd, NB_WINDOWS * RWIRE_WINDOW_BYTES);
	TEST_ASSERT(mr != NULL);
	result = TEST_TRY(run_uc(polled.pd, polled.cq_a, mr, send_windows));
	TEST_OK(rmem_mr_dereg(mr));
	perf_pair_close(&polled);
	TEST_RUN(result);
}

/* Its result is PTHREAD_CANCELED if a call did not return. */
static void *
write_cancelled(void *arg)
{
	struct rmem_mr *mr = arg;
	const struct rmem_sge sge = {mr->iova, 64, mr->lkey};
	const struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_WRITE, &sge, mr->iova, mr->rkey);
	int status, state;

	if (rte_thread_register() != 0)
		return NULL;
	pthread_cancel(pthread_self());
	status = perf_burst(&polled, &wr, 1);
	/* It could be cancelled again; not done, since a sanitizer does not unwind the stack. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	rte_thread_unregister();
	return status == RMEM_WC_SUCCESS && state == PTHREAD_CANCEL_ENABLE ? arg : NULL;
}

/* They hold locks while the port makes system calls. */
static void
try_cancelled(const char *args)
{
	struct rmem_mr *mr;
	pthread_t thread;
	void *result;

	perf_pair_open(&polled, args);
	mr = perf_mr(polled.pd, 4096);
	TEST_ASSERT(mr != NULL);
	TEST_OK(pthread_create(&thread, NULL, write_cancelled, mr));
	TEST_OK(pthread_join(thread, &result));
	if (result == PTHREAD_CANCELED)
		rte_panic("cancelled with locks of the wire\n");
	TEST_ASSERT(result == mr);
	TEST_OK(rmem_mr_dereg(mr));
	perf_pair_close(&polled);
}

TEST_CALL(wire_progress, post_and_poll_are_no_cancellation_points,
		try_cancelled("ip=127.0.17.6,loop=1,progress=poll"));
/* The first packet connects to the device's own socket, which the poll accepts. */
TEST_CALL(wire_progress, post_and_poll_over_shm_are_no_cancellation_points,
		try_cancelled("ip=127.0.17.6,port=shm:cancel,loop=1,progress=poll"));

static void
setup(void)
{
	perf_pair_open_two(&pair, "ip=127.0.17.10,loop=1", "ip=127.0.17.11,loop=1");
	local = perf_mr(pair.pd, 4096);
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(local != NULL && target != NULL);
}

static void
teardown(void)
{
	TEST_OK(rmem_mr_dereg(local));
	TEST_OK(rmem_mr_dereg(target));
	perf_pair_close(&pair);
}

static bool is_posted; /* atomic */

static void *
post_again(void *arg)
{
	if (rte_thread_register() != 0)
		return NULL;
	if (rmem_post_send(pair.a, arg, 1) == 1)
		__atomic_store_n(&is_posted, true, __ATOMIC_RELEASE);
	rte_thread_unregister();
	return arg;
}

/* A poll of another lcore holds the lock while it copies for its QPs. */
TEST(wire_progress, post_to_a_qp_with_requests_does_not_wait_for_other_qps)
{
	struct rmem_sge sge = {local->iova, 64, local->lkey};
	struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_WRITE, &sge, target->iova, target->rkey);
	struct rsoft_qp *qp = (struct rsoft_qp *)pair.a;
	uint64_t end = rte_rdtsc() + 60 * rte_get_tsc_hz();
	pthread_t thread;
	bool is_done;

	TEST_OK(rmem_qp_reset(pair.b)); /* so requests of the other side remain */
	TEST_EQ(rmem_post_send(pair.a, &wr, 1), 1);
	rte_ticketlock_lock(&qp->dev->pending_lock);
	if (!qp->sq.is_pending) {
		rte_ticketlock_unlock(&qp->dev->pending_lock);
		test_skip("the timers expired before the test ran");
	}
	__atomic_store_n(&is_posted, false, __ATOMIC_RELAXED);
	TEST_OK(pthread_create(&thread, NULL, post_again, &wr));
	do {
		sched_yield();
		is_done = __atomic_load_n(&is_posted, __ATOMIC_ACQUIRE);
	} while (!is_done && rte_rdtsc() < end);
	rte_ticketlock_unlock(&qp->dev->pending_lock);
	TEST_OK(pthread_join(thread, NULL));
	TEST_ASSERT(is_done);
}

/* The thread runs the timers: a program that only posts finds its QP in ERR. */
TEST(wire_progress, ended_peer_is_detected_without_a_poll)
{
	struct rmem_sge sge = {local->iova, 64, local->lkey};
	const struct rmem_send_wr wr =
			rc_rdma(RMEM_WR_RDMA_WRITE, &sge, target->iova, target->rkey);
	struct rmem_qp_attr attr;
	struct rmem_wc wc;

	TEST_OK(rmem_qp_reset(pair.b));
	TEST_EQ(rmem_post_send(pair.a, &wr, 1), 1);
	do {
		sched_yield();
		TEST_OK(rmem_qp_query(pair.a, &attr));
	} while (attr.state == RMEM_QPS_RTS);
	TEST_EQ(attr.state, RMEM_QPS_ERR);
	TEST_EQ(rmem_poll_cq(pair.cq_a, &wc, 1), 1);
	TEST_EQ(wc.status, RMEM_WC_RETRY_EXC_ERR);
}

/* The name of its socket is free again. */
TEST(wire_progress, controlled_device_is_created_again)
{
	struct rmem_dev *dev;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_dev_create("soft7", "ip=127.0.81.7,progress=thread,control=1", &dev));
		TEST_OK(rmem_dev_close(dev));
	}
}

/* To the last entry of the port: the next one is of another port, or of none. */
TEST(wire_progress, gids_are_added_until_the_table_is_full)
{
	struct rmem_port_attr port;
	struct rmem_dev *dev;
	struct rwire *wire;
	char text[32];
	uint32_t i;

	TEST_OK(rmem_dev_create("soft7", "ip=127.0.81.7,progress=thread,control=1", &dev));
	TEST_OK(rmem_dev_port_query(dev, 1, &port));
	wire = ((struct rsoft_dev *)rmem_dev_drv(dev)->priv)->wire;
	for (i = 1; i < port.gid_tbl_len; i++) {
		snprintf(text, sizeof(text), "127.0.82.%u", i);
		TEST_OK(rwire_gid_add(wire, 1, text));
	}
	TEST_ERR(rwire_gid_add(wire, 1, "127.0.83.1"), ENOSPC);
	TEST_OK(rmem_dev_close(dev));
}

TEST_SUITE(wire_progress, setup, teardown);
