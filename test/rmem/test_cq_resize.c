/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A CQ is resized while completions are in it, are reserved, and are being written. */

#include <pthread.h>

#include <rte_lcore.h>

#include "fixture.h"

#define SMALL 4u
#define LARGE 64u

static struct {
	struct rmem_cq *cq; /* of both QPs */
	struct rmem_qp *qp;
	struct rmem_qp *peer;
} rs;

static void
setup(void)
{
	fx_setup();
	rs.cq = fx_cq(fx.a.dev, SMALL);
	rs.qp = fx_qp(fx.a.pd, rs.cq, LARGE);
	rs.peer = fx_qp(fx.a.pd, rs.cq, LARGE);
	TEST_OK(fx_connect_pair(rs.qp, rs.peer));
}

static void
expect(uint64_t first, uint32_t n)
{
	fx_expect_done(rs.cq, first, n);
}

/* At each position of the ring, larger and smaller. */
TEST(cq_resize, completions_stay_in_order)
{
	static const uint32_t sizes[] = {LARGE, SMALL, 5, 4, 33, 16, SMALL};
	uint64_t first = 0;
	uint32_t i, j;

	for (i = 0; i < 70; i++) {
		fx_post_writes(rs.qp, first, i % SMALL);
		for (j = 0; j < RTE_DIM(sizes); j++) {
			TEST_OK(rmem_cq_resize(rs.cq, sizes[j]));
			TEST_ASSERT(rs.cq->nb_cqe >= sizes[j]);
			TEST_OK(rmem_dev_audit(fx.a.dev));
		}
		expect(first, i % SMALL);
		first += i % SMALL;
	}
	TEST_ASSERT(fx_is_idle(rs.cq));
}

TEST(cq_resize, larger_queue_holds_more_and_then_overruns)
{
	fx_post_writes(rs.qp, 0, SMALL);
	TEST_ERR(rmem_cq_resize(rs.cq, SMALL - 1), EINVAL);
	TEST_OK(rmem_cq_resize(rs.cq, SMALL));
	TEST_OK(rmem_cq_resize(rs.cq, 2 * SMALL));
	fx_post_writes(rs.qp, SMALL, SMALL);
	TEST_EQ(fx_state(rs.qp), RMEM_QPS_RTS);
	fx_post_writes(rs.qp, 2 * SMALL, 1);
	TEST_ERR(rmem_cq_resize(rs.cq, LARGE), EIO);
	expect(0, 2 * SMALL);
	TEST_EQ(fx_wait(rs.cq), -EIO);
}

/* Their sends fail after an entry of the CQ was reserved for the receive. */
TEST(cq_resize, messages_that_failed_are_not_outstanding)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 8);
	struct rmem_sge from;
	struct rmem_send_wr wr;
	struct rmem_mr *mr;
	unsigned int i;

	mr = fx_mr_unmapped(fx.b.pd);
	from = fx_sge(mr, 0, 8);
	wr = fx_wr(RMEM_WR_SEND, &from, 1);
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_qp_reset(rs.qp));
		TEST_OK(rmem_qp_reset(fx.b.qp));
		TEST_OK(fx_connect_pair(rs.qp, fx.b.qp));
		TEST_EQ(fx_post_recv(rs.qp, 1, &to, 1), 1);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_LOC_PROT_ERR);
	}
	TEST_OK(rmem_cq_resize(rs.cq, 1));
	TEST_EQ(rmem_poll_cq(rs.cq, &fx.wc, 1), 0);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

/* More of them than the first ring has entries: the others are not delivered inline. */
TEST(cq_resize, short_messages_are_delivered_once)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	uint64_t *sent = (uint64_t *)(void *)fx.a.buf, *received = sent + 512;
	struct rmem_sge to;
	uint32_t i;

	wr.flags |= RMEM_SEND_SIGNALED;
	for (i = 0; i < 2 * LARGE; i++) {
		to = fx_sge(fx.a.mr, 4096 + 8 * (i % LARGE), 8);
		TEST_EQ(fx_post_recv(rs.peer, i, &to, 1), 1);
		*sent = i + 1;
		TEST_EQ(fx_post(rs.qp, &wr), 1);
		if (i % LARGE == 1 || i % LARGE == 20)
			TEST_OK(rmem_cq_resize(rs.cq, LARGE));
		if (i % 16 != 15)
			continue;
		while (rmem_poll_cq(rs.cq, &fx.wc, 1) == 1)
			TEST_EQ(fx.wc.status, RMEM_WC_SUCCESS);
		TEST_OK(rmem_cq_resize(rs.cq, 3));
		TEST_OK(rmem_cq_resize(rs.cq, LARGE));
		TEST_EQ(received[i % LARGE], i + 1);
	}
	while (rmem_poll_cq(rs.cq, &fx.wc, 1) == 1)
		TEST_EQ(fx.wc.status, RMEM_WC_SUCCESS);
	for (i = 0; i < LARGE; i++)
		TEST_EQ(received[i], i + LARGE + 1);
}

/* A flush completes receives outside of the section of an lcore. */
TEST(cq_resize, flushed_receives_are_completed_after_it)
{
	uint32_t i;

	for (i = 0; i < 8; i++)
		TEST_EQ(fx_post_recv(rs.peer, i, NULL, 0), 1);
	TEST_OK(rmem_cq_resize(rs.cq, 8));
	TEST_OK(rmem_qp_set_error(rs.peer));
	TEST_OK(rmem_cq_resize(rs.cq, LARGE));
	fx_expect_flush(rs.cq, 0, 8);
}

TEST(cq_resize, event_is_generated_after_it)
{
	struct rmem_comp_channel *channel = fx_channel(fx.a.dev);
	const struct rmem_cq_conf conf = {.nb_cqe = 1, .channel = channel};
	struct rmem_cq *found = NULL;

	rs.cq = fx_cq_by(fx.a.dev, &conf);
	rs.qp = fx_qp(fx.a.pd, rs.cq, SMALL);
	TEST_OK(fx_connect(rs.qp, rs.qp));
	TEST_OK(rmem_cq_req_notify(rs.cq, false));
	TEST_OK(rmem_cq_resize(rs.cq, SMALL));
	fx_post_writes(rs.qp, 0, SMALL);
	TEST_OK(rmem_comp_channel_get_event(channel, &found, NULL));
	TEST_ASSERT(found == rs.cq);
	TEST_OK(rmem_cq_ack_events(rs.cq, 1));
	expect(0, SMALL);
}

/* Without memory the size is unchanged. */
static int
make_larger(void **object)
{
	const struct rmem_cq_conf conf = {.nb_cqe = SMALL};
	struct rmem_cq *cq;
	int ret = rmem_cq_create(fx.a.dev, &conf, &cq);

	if (ret != 0)
		return ret;
	ret = rmem_cq_resize(cq, LARGE);
	if (ret == 0) {
		*object = cq;
		return 0;
	}
	TEST_EQ(cq->nb_cqe, SMALL);
	TEST_OK(rmem_cq_destroy(cq));
	return ret;
}

TEST_CALL(cq_resize, no_memory_is_enomem_and_nothing_changes, fx_expect_enomem(make_larger));

#define RACE_DEPTH    8u
#define RACE_MESSAGES 2000u

/* A thread that sends itself numbered messages; at most RACE_DEPTH are not polled. */
struct sender {
	struct rmem_qp *qp;
	struct rmem_qp *peer;
	size_t offset;     /* of its memory in a's buffer: what it sends, and what it receives */
	uint32_t nb_sent;  /* polled completions; atomic */
	uint32_t nb_recvd; /* the same */
	uint32_t has_failed;
};

static void
send_messages(struct sender *s)
{
	struct rmem_send_wr wr;
	struct rmem_sge from, to;
	uint32_t i;

	for (i = 0; i < RACE_MESSAGES; i++) {
		if (i >= RACE_DEPTH) {
			fx_wait_until(&s->nb_sent, i - RACE_DEPTH + 1);
			fx_wait_until(&s->nb_recvd, i - RACE_DEPTH + 1);
		}
		from = fx_sge(fx.a.mr, s->offset + 8 * (i % RACE_DEPTH), 8);
		to = fx_sge(fx.a.mr, s->offset + 256 + 8 * (i % RACE_DEPTH), 8);
		*(uint64_t *)(void *)(fx.a.buf + s->offset + 8 * (i % RACE_DEPTH)) = i;
		wr = fx_wr(RMEM_WR_SEND, &from, 1);
		wr.wr_id = i;
		wr.flags |= RMEM_SEND_SIGNALED;
		TEST_EQ(fx_post_recv(s->peer, i, &to, 1), 1);
		TEST_EQ(fx_post(s->qp, &wr), 1);
	}
}

static void *
run_sender(void *arg)
{
	struct sender *s = arg;

	if (rte_thread_register() != 0 || TEST_TRY(send_messages(s)) != TEST_SUCCESS)
		__atomic_store_n(&s->has_failed, 1, __ATOMIC_RELAXED);
	rte_thread_unregister();
	return NULL;
}

/* The completion is the next one of its queue, and a message is where it was sent. */
static void
check_next(struct sender *senders, const struct rmem_wc *wc)
{
	struct sender *s = &senders[wc->qp_num != senders[0].qp->qp_num &&
			wc->qp_num != senders[0].peer->qp_num];
	uint32_t *nb = wc->opcode == RMEM_WC_RECV ? &s->nb_recvd : &s->nb_sent;
	const uint64_t *data = (const uint64_t *)(const void *)(fx.a.buf + s->offset + 256);

	TEST_EQ(wc->status, RMEM_WC_SUCCESS);
	TEST_EQ(wc->wr_id, *nb);
	if (wc->opcode == RMEM_WC_RECV)
		TEST_EQ(data[wc->wr_id % RACE_DEPTH], wc->wr_id);
	__atomic_store_n(nb, *nb + 1, __ATOMIC_RELEASE);
}

/* Poll until all has arrived, with a resize after each poll that finds something. */
static void
poll_and_resize(struct sender *senders)
{
	static const uint32_t sizes[] = {32, 64, 33, 1024, 32, 40, 256};
	struct rmem_wc wc[5];
	uint32_t i, nb = 0, step = 0;
	unsigned int spins = 0;
	int n;

	while (nb != 4 * RACE_MESSAGES) {
		n = rmem_poll_cq(rs.cq, wc, (uint16_t)(1 + step % RTE_DIM(wc)));
		TEST_ASSERT(n >= 0);
		for (i = 0; i < (uint32_t)n; i++)
			check_next(senders, &wc[i]);
		nb += (uint32_t)n;
		if (n != 0)
			TEST_OK(rmem_cq_resize(rs.cq, sizes[step++ % RTE_DIM(sizes)]));
		else
			fx_relax(&spins);
		for (i = 0; i < 2; i++)
			TEST_ASSERT(!__atomic_load_n(&senders[i].has_failed, __ATOMIC_RELAXED));
	}
}

/* The invariant of rsoft_cq.h. */
TEST(cq_resize, while_two_threads_complete_to_it)
{
	struct sender senders[2] = {{.qp = rs.qp, .peer = rs.peer}, {.offset = 1024}};
	pthread_t thread[2];
	int i, ret;

	senders[1].qp = fx_qp(fx.a.pd, rs.cq, LARGE);
	senders[1].peer = fx_qp(fx.a.pd, rs.cq, LARGE);
	TEST_OK(fx_connect_pair(senders[1].qp, senders[1].peer));
	TEST_OK(rmem_cq_resize(rs.cq, 4 * RACE_DEPTH));
	for (i = 0; i < 2; i++)
		TEST_OK(pthread_create(&thread[i], NULL, run_sender, &senders[i]));
	ret = TEST_TRY(poll_and_resize(senders));
	if (ret != TEST_SUCCESS) { /* end the waits */
		for (i = 0; i < 2; i++) {
			__atomic_store_n(&senders[i].nb_sent, UINT32_MAX, __ATOMIC_RELEASE);
			__atomic_store_n(&senders[i].nb_recvd, UINT32_MAX, __ATOMIC_RELEASE);
		}
	}
	for (i = 0; i < 2; i++)
		TEST_OK(pthread_join(thread[i], NULL));
	TEST_RUN(ret);
}

TEST_SUITE(cq_resize, setup, fx_teardown);
