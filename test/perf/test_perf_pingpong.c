/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a 64-byte SEND ping-pong between two lcores, per round trip, compared with a
 * cache line that is passed between the same two.
 */

#include <stdlib.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "perf_floor.h"
#include "perf_two.h"
#include "test.h"

#define ECHO "wire_shm_two_echo_perf_autotest" /* the second process */

#define NB_TRIPS 200000u
#define MESSAGE  64u
#define NB_RECVS 64u

/* One end of the ping-pong, with memory for one message out and NB_RECVS in. */
struct end {
	struct rmem_qp *qp;
	struct rmem_cq *cq;
	struct rmem_mr *mr;
	struct rmem_sge recv_sge;
	struct rmem_recv_wr recv[NB_RECVS / 2];
	struct rmem_sge send_sge;
	struct rmem_send_wr send;
	uint32_t nb_recvs;
	uint32_t nb_sends;
	int status;
};

/*
 * One end of the minimal program: receives, completions, and memory for the messages. Each line is
 * written by one of the two lcores, except that of the completions' owner when it reads them.
 */
struct floor_end {
	struct rmem_wc cqe[NB_RECVS] __rte_cache_aligned; /* reserved: message number, from 1 */
	struct {
		uint64_t wr_id;
		uint64_t pad;
		struct rmem_sge sge;
	} recv[NB_RECVS] __rte_cache_aligned;
	uint64_t nb_posted __rte_cache_aligned;
	uint64_t nb_seen __rte_cache_aligned;  /* nb_posted as the sender has loaded it */
	struct rmem_wc wc __rte_cache_aligned; /* of the last poll */
	uint8_t in[MESSAGE] __rte_cache_aligned;
	uint8_t out[MESSAGE] __rte_cache_aligned;
};

struct pingpong_job {
	struct perf_pair pair;
	struct end ping;
	struct end pong;
	unsigned int lcore;  /* of pong */
	uint32_t *trip_took; /* the cycles of each round trip, or NULL */
	uint64_t line[2] __rte_cache_aligned;
};

static int
run_line_echo(void *arg)
{
	struct pingpong_job *job = arg;
	uint64_t i;

	for (i = 1; i <= NB_TRIPS; i++) {
		while (__atomic_load_n(&job->line[0], __ATOMIC_ACQUIRE) != 2 * i - 1)
			rte_compiler_barrier();
		__atomic_store_n(&job->line[0], 2 * i, __ATOMIC_RELEASE);
	}
	return 0;
}

/* Store the time since the end of the last round trip, where the caller needs all of them. */
static inline void
trip_ended(const struct pingpong_job *job, uint64_t trip, uint64_t *last)
{
	uint64_t now;

	if (job->trip_took == NULL)
		return;
	now = rte_rdtsc();
	job->trip_took[trip] = (uint32_t)RTE_MIN(now - *last, (uint64_t)UINT32_MAX);
	*last = now;
}

static double
run_line(void *arg)
{
	struct pingpong_job *job = arg;
	uint64_t i, start, last;

	job->line[0] = 0;
	if (rte_eal_remote_launch(run_line_echo, job, job->lcore) != 0)
		return -1.0;
	start = last = rte_rdtsc_precise();
	for (i = 1; i <= NB_TRIPS; i++) {
		__atomic_store_n(&job->line[0], 2 * i - 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&job->line[0], __ATOMIC_ACQUIRE) != 2 * i)
			rte_compiler_barrier();
		trip_ended(job, i - 1, &last);
	}
	start = rte_rdtsc_precise() - start;
	rte_eal_wait_lcore(job->lcore);
	return perf_ns(start, NB_TRIPS);
}

static int
end_post_recvs(struct end *end)
{
	return rmem_post_recv(end->qp, end->recv, NB_RECVS / 2) == NB_RECVS / 2 ? 0 : -1;
}

/* Wait for a message; completions of sends may come with it. */
static int
end_receive(struct end *end)
{
	struct rmem_wc wc[4];
	int i, n, nb_recvs = 0;

	while (nb_recvs == 0) {
		n = rmem_poll_cq(end->cq, wc, RTE_DIM(wc));
		for (i = 0; i < n; i++) {
			if (wc[i].status != RMEM_WC_SUCCESS)
				return -1;
			nb_recvs += (wc[i].opcode & RMEM_WC_RECV) != 0;
		}
		if (n < 0)
			return -1;
	}
	/* Receives go back in halves of the queue, as an application does. */
	end->nb_recvs += (uint32_t)nb_recvs;
	if (end->nb_recvs >= NB_RECVS / 2) {
		end->nb_recvs -= NB_RECVS / 2;
		return end_post_recvs(end);
	}
	return 0;
}

static int
end_send(struct end *end)
{
	/* One in 32 is signaled, so that the queue never fills. */
	end->send.flags = (++end->nb_sends % 32) == 0 ? RMEM_SEND_SIGNALED : 0;
	return rmem_post_send(end->qp, &end->send, 1) == 1 ? 0 : -1;
}

static int
run_echo(void *arg)
{
	struct pingpong_job *job = arg;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < NB_TRIPS && ret == 0; i++) {
		ret = end_receive(&job->pong);
		if (ret == 0)
			ret = end_send(&job->pong);
	}
	job->pong.status = ret;
	return ret;
}

static double
run_send(void *arg)
{
	struct pingpong_job *job = arg;
	uint64_t start, last;
	uint32_t i;
	int ret = 0;

	if (rte_eal_remote_launch(run_echo, job, job->lcore) != 0)
		return -1.0;
	start = last = rte_rdtsc_precise();
	for (i = 0; i < NB_TRIPS && ret == 0; i++) {
		ret = end_send(&job->ping);
		if (ret == 0)
			ret = end_receive(&job->ping);
		trip_ended(job, i, &last);
	}
	start = rte_rdtsc_precise() - start;
	rte_eal_wait_lcore(job->lcore);
	return ret == 0 && job->pong.status == 0 ? perf_ns(start, NB_TRIPS) : -1.0;
}

static struct floor_end floor_ends[2];
static struct perf_floor_key floor_keys[PERF_FLOOR_KEYS];

static void
floor_post_recvs(struct floor_end *end)
{
	uint64_t i;

	for (i = 0; i < NB_RECVS / 2; i += 2)
		__builtin_prefetch(&end->recv[(end->nb_posted + i) % NB_RECVS], 1);
	for (i = end->nb_posted; i < end->nb_posted + NB_RECVS / 2; i++) {
		end->recv[i % NB_RECVS].wr_id = i;
		end->recv[i % NB_RECVS].sge =
				(struct rmem_sge){(uintptr_t)end->in, MESSAGE, 1 << 8};
	}
	__atomic_store_n(&end->nb_posted, i, __ATOMIC_RELEASE);
}

/* Message n, from 0: the receive, both keys, the copy and the completion. */
static int
floor_send(struct floor_end *from, struct floor_end *to, uint64_t n)
{
	const struct rmem_sge *sge = &to->recv[n % NB_RECVS].sge;
	struct rmem_wc *cqe = &to->cqe[n % NB_RECVS];
	uint8_t *src, *dst;

	if (unlikely(to->nb_seen <= n)) {
		to->nb_seen = __atomic_load_n(&to->nb_posted, __ATOMIC_ACQUIRE);
		if (to->nb_seen <= n)
			return -1;
	}
	src = perf_floor_access(floor_keys, 1 << 8, (uintptr_t)from->out, MESSAGE, 1);
	dst = perf_floor_access(floor_keys, sge->lkey, sge->addr, MESSAGE, 1);
	if (unlikely(src == NULL || dst == NULL || sge->length < MESSAGE))
		return -1;
	perf_floor_copy(dst, src, MESSAGE);
	cqe->wr_id = to->recv[n % NB_RECVS].wr_id;
	cqe->status = RMEM_WC_SUCCESS;
	cqe->opcode = RMEM_WC_RECV;
	cqe->flags = 0;
	cqe->qp_num = 1;
	cqe->byte_len = MESSAGE;
	cqe->imm_data = 0;
	cqe->vendor_err = 0;
	__atomic_store_n(&cqe->reserved, (uint32_t)n + 1, __ATOMIC_RELEASE);
	__builtin_prefetch(&to->recv[(n + 1) % NB_RECVS]);
	return 0;
}

static int
floor_receive(struct floor_end *end, uint64_t n)
{
	const struct rmem_wc *cqe = &end->cqe[n % NB_RECVS];

	while (__atomic_load_n(&cqe->reserved, __ATOMIC_ACQUIRE) != (uint32_t)n + 1)
		rte_compiler_barrier();
	end->wc = *cqe;
	if ((n + 1) % (NB_RECVS / 2) == 0)
		floor_post_recvs(end);
	return end->wc.status == RMEM_WC_SUCCESS ? 0 : -1;
}

static int
run_floor_echo(void *arg)
{
	struct pingpong_job *job = arg;
	uint64_t i;
	int ret = 0;

	for (i = 0; i < NB_TRIPS && ret == 0; i++) {
		ret = floor_receive(&floor_ends[1], i);
		if (ret == 0)
			ret = floor_send(&floor_ends[1], &floor_ends[0], i);
	}
	job->pong.status = ret;
	return ret;
}

static double
run_floor(void *arg)
{
	struct pingpong_job *job = arg;
	const struct rmem_mr all = {.addr = floor_ends,
			.iova = (uintptr_t)floor_ends,
			.length = sizeof(floor_ends)};
	uint64_t start, i;
	int ret = 0;

	memset(floor_ends, 0, sizeof(floor_ends));
	perf_floor_key_set(floor_keys, &all, 1 << 8);
	for (i = 0; i < 4; i++)
		floor_post_recvs(&floor_ends[i % 2]);
	if (rte_eal_remote_launch(run_floor_echo, job, job->lcore) != 0)
		return -1.0;
	start = rte_rdtsc_precise();
	for (i = 0; i < NB_TRIPS && ret == 0; i++) {
		ret = floor_send(&floor_ends[0], &floor_ends[1], i);
		if (ret == 0)
			ret = floor_receive(&floor_ends[0], i);
	}
	start = rte_rdtsc_precise() - start;
	rte_eal_wait_lcore(job->lcore);
	return ret == 0 && job->pong.status == 0 ? perf_ns(start, NB_TRIPS) : -1.0;
}

static void
end_open(struct end *end, struct rmem_pd *pd, struct rmem_qp *qp, struct rmem_cq *cq)
{
	uint32_t i;

	memset(end, 0, sizeof(*end));
	end->qp = qp;
	end->cq = cq;
	end->mr = perf_mr(pd, 4096);
	end->send_sge = (struct rmem_sge){end->mr->iova, MESSAGE, end->mr->lkey};
	end->recv_sge = (struct rmem_sge){end->mr->iova + 2048, MESSAGE, end->mr->lkey};
	for (i = 0; i < NB_RECVS / 2; i++)
		end->recv[i] = (struct rmem_recv_wr){.sg_list = &end->recv_sge, .num_sge = 1};
	end->send.sg_list = &end->send_sge;
	end->send.num_sge = 1;
	end->send.opcode = RMEM_WR_SEND;
	TEST_EQ(end_post_recvs(end), 0);
	TEST_EQ(end_post_recvs(end), 0);
}

static void
job_open_ends(struct pingpong_job *job)
{
	job->lcore = perf_peer_lcore();
	end_open(&job->ping, job->pair.pd, job->pair.a, job->pair.cq_a);
	end_open(&job->pong, job->pair.pd_b, job->pair.b, job->pair.cq_b);
}

static void
job_open(struct pingpong_job *job)
{
	perf_peer_lcore();
	perf_pair_open(&job->pair, NULL);
	job_open_ends(job);
}

static void
job_close(struct pingpong_job *job)
{
	TEST_OK(rmem_mr_dereg(job->ping.mr));
	TEST_OK(rmem_mr_dereg(job->pong.mr));
	perf_pair_close(&job->pair);
}

PERF_TEST(pingpong64)
{
	struct perf_row row = PERF_ROW("pingpong64", "ns", "a bare cache line", "ratio <= 2.5");
	static struct pingpong_job job;

	job_open(&job);
	perf_measure(&row, run_line, run_send, &job);
	perf_floor(&row, run_line, run_floor, &job);
	job_close(&job);
}

static int
compare_cycles(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Round trips at some percentiles, of one run each, with the time to read the clock in them. */
PERF_TEST(pingpong64_times)
{
	static const struct {
		const char *name;
		double part;
	} ranks[] = {{"pingpong64_p50", 0.5}, {"pingpong64_p99", 0.99}, {"pingpong64_p999", 0.999}};
	static uint32_t sends[NB_TRIPS], lines[NB_TRIPS];
	static struct pingpong_job job;
	uint32_t i;

	job_open(&job);
	job.trip_took = lines;
	TEST_ASSERT(run_line(&job) > 0.0);
	job.trip_took = sends;
	TEST_ASSERT(run_send(&job) > 0.0);
	qsort(lines, NB_TRIPS, sizeof(lines[0]), compare_cycles);
	qsort(sends, NB_TRIPS, sizeof(sends[0]), compare_cycles);
	for (i = 0; i < RTE_DIM(ranks); i++) {
		const uint32_t at = (uint32_t)(ranks[i].part * NB_TRIPS);
		struct perf_row row = PERF_ROW(ranks[i].name, "ns", "a bare cache line", "none");

		row.value = perf_ns(sends[at], 1.0);
		row.baseline = perf_ns(lines[at], 1.0);
		row.ratio = row.value / row.baseline;
		perf_report(&row);
	}
	job_close(&job);
}

/* With messages placed as they arrive, and with them in completions. */
PERF_TEST(inline_recv64)
{
	struct perf_row row = PERF_ROW("inline_recv64", "ns", "without inline receive", "none");
	static struct pingpong_job jobs[2];

	TEST_EQ(setenv("RMEM_SCATTER_TO_CQE", "0", 1), 0);
	job_open(&jobs[0]);
	TEST_EQ(setenv("RMEM_SCATTER_TO_CQE", "1", 1), 0);
	job_open(&jobs[1]);
	TEST_EQ(unsetenv("RMEM_SCATTER_TO_CQE"), 0);
	perf_measure_args(&row, run_send, &jobs[0], &jobs[1]);
	job_close(&jobs[1]);
	job_close(&jobs[0]);
}

/* Two devices that share nothing but the rings, as those of two processes. */
PERF_TEST(wire_shm_pingpong64)
{
	struct perf_row row = PERF_ROW(
			"wire_shm_pingpong64", "ns", "one device, no packets", "ratio <= 3");
	static struct pingpong_job jobs[2];

	job_open(&jobs[0]);
	perf_pair_open_two(&jobs[1].pair, "ip=127.0.9.1,port=shm:perf,loop=1",
			"ip=127.0.9.2,port=shm:perf,loop=1");
	job_open_ends(&jobs[1]);
	perf_measure_args(&row, run_send, &jobs[0], &jobs[1]);
	job_close(&jobs[1]);
	job_close(&jobs[0]);
}

/* The ping-pong with a second process. */
struct two_job {
	struct perf_two two;
	struct end ping;
};

static double
run_two(void *arg)
{
	struct two_job *job = arg;
	uint64_t start;
	uint32_t i;
	int ret = perf_two_send(&job->two, PERF_TWO_GO);

	start = rte_rdtsc_precise();
	for (i = 0; i < NB_TRIPS && ret == 0; i++) {
		ret = end_send(&job->ping);
		if (ret == 0)
			ret = end_receive(&job->ping);
	}
	start = rte_rdtsc_precise() - start;
	return ret == 0 && perf_two_recv(&job->two) == PERF_TWO_DONE ? perf_ns(start, NB_TRIPS)
								     : -1.0;
}

PERF_TEST(wire_shm_two_echo)
{
	static struct pingpong_job job;
	struct perf_two two;

	perf_two_join(&two, "ip=127.0.9.2,port=shm:two,progress=poll");
	perf_two_connect(&two, NULL);
	end_open(&job.pong, two.pair.pd, two.pair.a, two.pair.cq_a);
	while (perf_two_recv(&two) == PERF_TWO_GO) {
		TEST_EQ(run_echo(&job), 0);
		TEST_EQ(perf_two_send(&two, PERF_TWO_DONE), 0);
	}
	TEST_OK(rmem_mr_dereg(job.pong.mr));
	perf_two_close(&two);
}

PERF_TEST(wire_shm_two_pingpong64)
{
	struct perf_row row = PERF_ROW(
			"wire_shm_two_pingpong64", "ns", "one process, no packets", "ratio <= 3");
	static struct pingpong_job one;
	static struct two_job job;

	job_open(&one);
	perf_two_open(&job.two, ECHO, "ip=127.0.9.1,port=shm:two,progress=poll");
	perf_two_connect(&job.two, NULL);
	end_open(&job.ping, job.two.pair.pd, job.two.pair.a, job.two.pair.cq_a);
	perf_compare(&row, run_send, &one, run_two, &job);
	perf_report(&row);
	TEST_OK(rmem_mr_dereg(job.ping.mr));
	perf_two_close(&job.two);
	job_close(&one);
}
