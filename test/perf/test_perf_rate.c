/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rate of SENDs of 64 bytes from one lcore to another, compared with an rte_ring of pointers to
 * buffers of 64 bytes, into which the sender copies.
 */

#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_ring.h>

#include "perf_row.h"
#include "test.h"

#define NB_BURSTS 20000u
#define NB_BUFS   256u /* also receives; at most as many messages are in flight */
#define MESSAGE   64u

struct rate_job {
	struct perf_pair pair;
	struct rmem_mr *src;
	struct rmem_mr *dst;
	struct rte_ring *ring;
	unsigned int lcore; /* of the receiver */
	struct perf_wrs send;
	struct rmem_sge recv_sge[PERF_BURST];
	struct rmem_recv_wr recv[PERF_BURST];
	int failure;
	uint64_t received __rte_cache_aligned; /* messages whose buffers are free again */
};

/* Wait until a burst more is permitted in flight. */
static void
wait_for_space(const struct rate_job *job, uint64_t sent)
{
	while (sent + PERF_BURST - __atomic_load_n(&job->received, __ATOMIC_ACQUIRE) > NB_BUFS)
		rte_compiler_barrier();
}

static int
receive_pointers(void *arg)
{
	struct rate_job *job = arg;
	void *bufs[PERF_BURST];
	uint64_t nb = 0;

	while (nb != (uint64_t)NB_BURSTS * PERF_BURST) {
		nb += rte_ring_sc_dequeue_burst(job->ring, bufs, PERF_BURST, NULL);
		__atomic_store_n(&job->received, nb, __ATOMIC_RELEASE);
	}
	return 0;
}

static double
run_ring(void *arg)
{
	struct rate_job *job = arg;
	uint64_t start, sent = 0;
	void *bufs[PERF_BURST];
	uint32_t i;

	job->received = 0;
	if (rte_eal_remote_launch(receive_pointers, job, job->lcore) != 0)
		return -1.0;
	start = rte_rdtsc_precise();
	while (sent != (uint64_t)NB_BURSTS * PERF_BURST) {
		wait_for_space(job, sent);
		for (i = 0; i < PERF_BURST; i++) {
			size_t offset = (sent + i) % NB_BUFS * MESSAGE;

			bufs[i] = (uint8_t *)job->dst->addr + offset;
			memcpy(bufs[i], (uint8_t *)job->src->addr + offset, MESSAGE);
		}
		sent += rte_ring_sp_enqueue_bulk(job->ring, bufs, PERF_BURST, NULL);
	}
	rte_eal_wait_lcore(job->lcore);
	return perf_ns(rte_rdtsc_precise() - start, (double)sent);
}

/* Post the receives of the next burst. */
static int
post_recvs(struct rate_job *job, uint64_t nb)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++)
		job->recv_sge[i].addr = job->dst->iova + (nb + i) % NB_BUFS * MESSAGE;
	return rmem_post_recv(job->pair.b, job->recv, PERF_BURST) == (int)PERF_BURST ? 0 : -1;
}

static int
receive_messages(void *arg)
{
	struct rate_job *job = arg;
	uint64_t nb = 0, posted = 0;
	struct rmem_wc wc[PERF_BURST];
	int i, n;

	while (nb != (uint64_t)NB_BURSTS * PERF_BURST && job->failure == 0) {
		n = rmem_poll_cq(job->pair.cq_b, wc, PERF_BURST);
		for (i = 0; i < n; i++) {
			if (wc[i].status != RMEM_WC_SUCCESS)
				job->failure = -1;
		}
		nb += n > 0 ? (uint64_t)n : 0;
		for (; nb - posted >= PERF_BURST && job->failure == 0; posted += PERF_BURST) {
			job->failure = post_recvs(job, posted);
			__atomic_store_n(&job->received, posted + PERF_BURST, __ATOMIC_RELEASE);
		}
	}
	return 0;
}

static double
run_send(void *arg)
{
	struct rate_job *job = arg;
	uint64_t start, sent = 0;
	uint32_t i;
	int ret = 0;

	job->received = 0;
	if (rte_eal_remote_launch(receive_messages, job, job->lcore) != 0)
		return -1.0;
	start = rte_rdtsc_precise();
	while (sent != (uint64_t)NB_BURSTS * PERF_BURST && ret == 0) {
		wait_for_space(job, sent);
		for (i = 0; i < PERF_BURST; i++)
			job->send.sge[i].addr = job->src->iova + (sent + i) % NB_BUFS * MESSAGE;
		ret = perf_burst(&job->pair, job->send.wr, PERF_BURST);
		sent += PERF_BURST;
	}
	if (ret != 0)
		job->failure = -1;
	rte_eal_wait_lcore(job->lcore);
	return job->failure == 0 ? perf_ns(rte_rdtsc_precise() - start, (double)sent) : -1.0;
}

static void
job_open(struct rate_job *job)
{
	uint32_t i;

	job->lcore = perf_peer_lcore();
	perf_pair_open(&job->pair, NULL);
	job->src = perf_mr(job->pair.pd, NB_BUFS * MESSAGE);
	job->dst = perf_mr(job->pair.pd, NB_BUFS * MESSAGE);
	job->ring = rte_ring_create(
			"perf_rate", 2 * NB_BUFS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	TEST_ASSERT(job->ring != NULL);
	perf_wrs_init(&job->send, RMEM_WR_SEND, MESSAGE, job->src, NULL);
	for (i = 0; i < PERF_BURST; i++) {
		job->recv_sge[i] = (struct rmem_sge){0, MESSAGE, job->dst->lkey};
		job->recv[i] = (struct rmem_recv_wr){.sg_list = &job->recv_sge[i], .num_sge = 1};
	}
	for (i = 0; i < NB_BUFS; i += PERF_BURST)
		TEST_EQ(post_recvs(job, i), 0);
}

PERF_TEST(send64_rate)
{
	struct perf_row row = PERF_ROW("send64_rate", "ns/op", "an rte_ring of buffers", "none");
	static struct rate_job job;

	job_open(&job);
	perf_measure(&row, run_ring, run_send, &job);
	rte_ring_free(job.ring);
	TEST_OK(rmem_mr_dereg(job.src));
	TEST_OK(rmem_mr_dereg(job.dst));
	perf_pair_close(&job.pair);
}
