/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of an RDMA WRITE on the software device: compared with memcpy over the same buffers in
 * the same order; as the size, and the numbers of MRs, QPs and lcores grow.
 */

#include <stdio.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_prefetch.h>

#include "perf_floor.h"
#include "rc.h"

#define MANY_MRS    1000000u
#define MANY_STRIDE 64u
#define MANY_BURSTS 20000u
#define MANY_PLACES (MANY_BURSTS * PERF_BURST)
#define MAX_QPS     1024u

/* Writes of one size over buffers that follow each other. */
struct write_job {
	struct perf_pair pair;
	struct rmem_mr *src;
	struct rmem_mr *dst;
	uint32_t size;
	uint32_t nb_bufs; /* a power of two */
	uint32_t nb_bursts;
	const uint32_t *place; /* many MRs: buffer of each write, at random; then its key */
	struct perf_wrs wrs;
	uint32_t at;          /* buffer of the next write */
	struct rmem_wc wc[4]; /* of the floor */
};

/* Measure by bursts of a write_job. */
#define WRITE_LOOP(run) PERF_LOOP(run, ((struct write_job *)arg)->nb_bursts, PERF_BURST)

WRITE_LOOP(run_memcpy)
{
	struct write_job *job = arg;
	const uint8_t *src = job->src->addr;
	uint8_t *dst = job->dst->addr;
	uint32_t i, at = job->at;

	for (i = 0; i < PERF_BURST; i++) {
		size_t offset = (size_t)at * job->size;

		memcpy(dst + offset, src + offset, job->size);
		at = (at + 1) & (job->nb_bufs - 1);
	}
	job->at = at;
	rte_compiler_barrier();
	return 0;
}

/* The addresses of a burst. */
static __rte_always_inline void
job_next(struct write_job *job)
{
	uint64_t src = job->src->iova, dst = job->dst->iova;
	uint32_t i, at = job->at;

	for (i = 0; i < PERF_BURST; i++) {
		uint64_t offset = (uint64_t)at * job->size;

		job->wrs.sge[i].addr = src + offset;
		job->wrs.wr[i].rdma.remote_addr = dst + offset;
		at = (at + 1) & (job->nb_bufs - 1);
	}
	job->at = at;
}

WRITE_LOOP(run_write)
{
	struct write_job *job = arg;

	job_next(job);
	return perf_burst(&job->pair, job->wrs.wr, PERF_BURST);
}

static struct perf_floor_key lkeys[PERF_FLOOR_KEYS], rkeys[PERF_FLOOR_KEYS];

/* The checks and copies of a burst, and its completion. */
static int
floor_burst(struct write_job *job, struct rmem_wc *wc)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		const struct rmem_send_wr *wr = &job->wrs.wr[i];
		const struct rmem_sge *sge = wr->sg_list;
		const uint8_t *from;
		uint8_t *to;

		from = perf_floor_access(lkeys, sge->lkey, sge->addr, sge->length, 1);
		to = perf_floor_access(rkeys, wr->rdma.rkey, wr->rdma.remote_addr, sge->length,
				RMEM_ACCESS_REMOTE_WRITE);
		if (unlikely(from == NULL || to == NULL))
			return -1;
		perf_floor_copy(to, from, sge->length);
		if ((wr->flags & RMEM_SEND_SIGNALED) != 0)
			*wc = (struct rmem_wc){.wr_id = wr->wr_id, .status = RMEM_WC_SUCCESS};
	}
	return 0;
}

WRITE_LOOP(run_floor)
{
	struct write_job *job = arg;
	int ret;

	job_next(job);
	rte_compiler_barrier();
	ret = floor_burst(job, &job->wc[job->at % RTE_DIM(job->wc)]);
	rte_compiler_barrier();
	return ret;
}

/*
 * Random places of the same memory: by one key, or each place by its own. If keys is not NULL, the
 * key of each place is also read from there.
 */
static __rte_always_inline int
write_places(struct write_job *job, bool is_many, const struct perf_floor_key *keys)
{
	uint64_t src = job->src->iova, dst = job->dst->iova;
	uint32_t i, at = job->at;

	for (i = 0; i < PERF_BURST; i++, at++) {
		uint32_t place = job->place[at];

		job->wrs.sge[i].addr = src + (at & (job->nb_bufs - 1)) * job->size;
		job->wrs.wr[i].rdma.remote_addr = dst + (uint64_t)place * MANY_STRIDE;
		/* An application stores the key with the address. */
		job->wrs.wr[i].rdma.rkey = is_many ? job->place[MANY_PLACES + at] : job->dst->rkey;
		if (keys != NULL)
			rte_prefetch0(&keys[place]);
	}
	for (i = 0; keys != NULL && i < PERF_BURST; i++) {
		uint32_t place = job->place[job->at + i];

		if (unlikely(keys[place].word != place))
			return -1;
	}
	job->at = at % MANY_PLACES;
	return perf_burst(&job->pair, job->wrs.wr, PERF_BURST);
}

WRITE_LOOP(run_one_mr)
{
	return write_places(arg, false, NULL);
}

WRITE_LOOP(run_many_mrs)
{
	return write_places(arg, true, NULL);
}

static void
job_open_on(struct write_job *job, const char *args, uint32_t size, uint32_t nb_bufs,
		uint32_t nb_bursts, size_t dst)
{
	memset(job, 0, sizeof(*job));
	job->size = size;
	job->nb_bufs = nb_bufs;
	job->nb_bursts = nb_bursts;
	perf_pair_open(&job->pair, args);
	job->src = perf_mr(job->pair.pd, (size_t)size * nb_bufs);
	job->dst = perf_mr(job->pair.pd, dst != 0 ? dst : (size_t)size * nb_bufs);
	perf_floor_key_set(lkeys, job->src, job->src->lkey);
	perf_floor_key_set(rkeys, job->dst, job->dst->rkey);
	perf_wrs_init(&job->wrs, RMEM_WR_RDMA_WRITE, size, job->src, job->dst);
}

static void
job_open(struct write_job *job, uint32_t size, uint32_t nb_bufs, uint32_t nb_bursts, size_t dst)
{
	job_open_on(job, "max_mr=2097152,max_qp=4096", size, nb_bufs, nb_bursts, dst);
}

static void
job_close(struct write_job *job)
{
	TEST_OK(rmem_mr_dereg(job->src));
	TEST_OK(rmem_mr_dereg(job->dst));
	perf_pair_close(&job->pair);
}

/* Measure and report; sizes of 4 KiB and more as bandwidths. */
static void
measure_write(struct write_job *job, const char *name, const char *bar, perf_func_t value)
{
	struct perf_row row = PERF_ROW(name, "ns/op", "memcpy", bar);

	perf_compare(&row, run_memcpy, job, value, job);
	if (job->size >= 4096) {
		row.unit = "GB/s";
		row.value = job->size / row.value;
		row.baseline = job->size / row.baseline;
		row.ratio = row.value / row.baseline;
	}
	perf_report(&row);
}

static void
compare_write(const char *name, const char *bar, uint32_t size, uint32_t nb_bufs,
		uint32_t nb_bursts)
{
	struct write_job job;
	char floor[64];

	job_open(&job, size, nb_bufs, nb_bursts, 0);
	measure_write(&job, name, bar, run_write);
	snprintf(floor, sizeof(floor), "%s_floor", name);
	measure_write(&job, floor, "none", run_floor);
	job_close(&job);
}

PERF_CALL(write64_burst32, compare_write, "ratio <= 3", 64, 1024, 20000);

/* A device without and one with an argument. */
static void
compare_with(const char *name, const char *args, const char *yardstick, const char *bar)
{
	struct perf_row row = PERF_ROW(name, "ns/op", yardstick, bar);
	static struct write_job jobs[2];

	job_open_on(&jobs[0], NULL, 64, 1024, 20000, 0);
	job_open_on(&jobs[1], args, 64, 1024, 20000, 0);
	perf_measure_args(&row, run_write, &jobs[0], &jobs[1]);
	job_close(&jobs[0]);
	job_close(&jobs[1]);
}

PERF_CALL(write64_sanitize, compare_with, "sanitize=1", "without sanitize=1", "ratio <= 2");

/* Rules that never match. */
PERF_CALL(write64_chaos, compare_with, "chaos=SEND:RETRY_EXC_ERR+RDMA_READ:RETRY_EXC_ERR",
		"without chaos=", "ratio <= 1.1");

/* Requests of other opcodes compared with WRITEs of a size. */
static void
compare_opcode(const char *name, const char *yardstick, const char *bar, enum rmem_wr_opcode opcode,
		uint32_t size)
{
	struct perf_row row = PERF_ROW(name, "ns/op", yardstick, bar);
	static struct write_job jobs[2];
	uint32_t i;

	job_open(&jobs[0], 64, 1024, 20000, 0);
	job_open(&jobs[1], 64, 1024, 20000, 0);
	for (i = 0; i < PERF_BURST; i++) {
		jobs[0].wrs.sge[i].length = size;
		jobs[1].wrs.wr[i].opcode = opcode;
		jobs[1].wrs.sge[i].length = sizeof(uint64_t);
		if (opcode == RMEM_WR_FLUSH) {
			jobs[1].wrs.wr[i].flush.type = RMEM_FLUSH_GLOBAL;
			jobs[1].wrs.wr[i].flush.level = RMEM_FLUSH_RANGE;
		}
	}
	perf_measure_args(&row, run_write, &jobs[0], &jobs[1]);
	job_close(&jobs[0]);
	job_close(&jobs[1]);
}

PERF_CALL(atomic_write_burst32, compare_opcode, "write64_burst32", "ratio <= 1.2",
		RMEM_WR_ATOMIC_WRITE, 64);
PERF_CALL(flush0_burst32, compare_opcode, "WRITEs of 0 bytes", "ratio <= 1.5", RMEM_WR_FLUSH, 0);
PERF_CALL(write4k, compare_write, "ratio >= 0.92", 4096, 32, 5000);
PERF_CALL(write64k, compare_write, "ratio >= 0.98", 65536, 16, 500);

/* The buffers of each size stay in the CPU caches: 128 KiB of them, of 1 MiB one. */
PERF_TEST(write_sizes)
{
	char name[32];
	uint32_t size;

	for (size = 8; size <= 1u << 20; size *= 2) {
		snprintf(name, sizeof(name), "write_size_%u", size);
		compare_write(name, "none", size, RTE_MAX(65536 / size, 1u),
				RTE_MIN(5000u, (64u << 20) / size / PERF_BURST));
	}
}

static struct perf_floor_key *place_keys; /* the number of each place */

WRITE_LOOP(run_floor_mrs)
{
	return write_places(arg, false, place_keys);
}

/* One MR for each buffer; the addresses, followed by their keys. */
static struct rmem_mr *many[1u << 20];
static uint32_t places[2 * MANY_PLACES];

static void
many_open(struct write_job *job, uint32_t nb_mrs)
{
	uint64_t x = 88172645463325252u;
	uint32_t i;

	for (i = 0; i < nb_mrs; i++)
		TEST_OK(rmem_mr_reg(job->pair.pd, (uint8_t *)job->dst->addr + i * MANY_STRIDE,
				MANY_STRIDE, 0, PERF_ACCESS, &many[i]));
	for (i = 0; i < MANY_PLACES; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		places[i] = (uint32_t)(x % nb_mrs);
		places[MANY_PLACES + i] = many[places[i]]->rkey;
	}
	job->place = places;
}

static void
floor_mrs(const struct perf_row *row, struct write_job *job, uint32_t nb_mrs)
{
	int ret;
	uint32_t i;

	place_keys = rte_zmalloc(NULL, nb_mrs * sizeof(*place_keys), RTE_CACHE_LINE_SIZE);
	if (place_keys == NULL) {
		printf("no floor: %u keys take more memory\n", nb_mrs);
		return;
	}
	for (i = 0; i < nb_mrs; i++)
		place_keys[i].word = i;
	ret = TEST_TRY(perf_floor(row, run_one_mr, run_floor_mrs, job));
	rte_free(place_keys);
	TEST_RUN(ret);
}

static void
compare_mrs(const char *name, const char *bar, uint32_t nb_mrs)
{
	struct perf_row row = PERF_ROW(name, "ns/op", "the same places by 1 MR", bar);
	struct write_job job;
	uint32_t i;

	job_open(&job, 64, 1024, MANY_BURSTS, (size_t)nb_mrs * MANY_STRIDE);
	many_open(&job, nb_mrs);
	perf_measure(&row, run_one_mr, run_many_mrs, &job);
	if (strcmp(bar, "none") != 0)
		floor_mrs(&row, &job, nb_mrs);
	for (i = 0; i < nb_mrs; i++)
		TEST_OK(rmem_mr_dereg(many[i]));
	job_close(&job);
}

PERF_CALL(write64_1m_mrs, compare_mrs, "ratio <= 1.5", MANY_MRS);

PERF_TEST(write64_mrs)
{
	char name[32];
	uint32_t nb;

	for (nb = 1; nb <= 1u << 20; nb *= 4) {
		snprintf(name, sizeof(name), "write64_mrs_%u", nb);
		compare_mrs(name, "none", nb);
	}
}

/* Bursts that take turns over many QPs, which share one CQ on each side. */
struct qps_job {
	struct write_job write;
	uint32_t nb_qps; /* a power of two */
	struct rmem_qp *a[MAX_QPS];
	struct rmem_qp *b[MAX_QPS];
};

static double
run_qps(void *arg)
{
	struct qps_job *job = arg;
	const uint32_t nb_bursts = job->write.nb_bursts;
	double took = 0.0;
	uint32_t i;

	job->write.nb_bursts = 1;
	for (i = 0; i < nb_bursts && took >= 0.0; i++) {
		double one;

		job->write.pair.a = job->a[i & (job->nb_qps - 1)];
		job->write.at = 0; /* the same buffers by each QP */
		one = run_write(&job->write);
		took = one < 0.0 ? one : took + one;
	}
	job->write.nb_bursts = nb_bursts;
	return took / nb_bursts;
}

static double
run_one_qp(void *arg)
{
	struct qps_job *job = arg;
	const uint32_t nb_qps = job->nb_qps;
	double took;

	job->nb_qps = 1;
	took = run_qps(job);
	job->nb_qps = nb_qps;
	return took;
}

static void
qps_open(struct qps_job *job, uint32_t nb_qps)
{
	struct perf_pair *pair = &job->write.pair;
	struct rmem_qp_conf conf;
	uint32_t i;

	job->nb_qps = nb_qps;
	job_open(&job->write, 64, 1024, 20000, 0);
	job->a[0] = pair->a;
	job->b[0] = pair->b;
	for (i = 1; i < nb_qps; i++) {
		conf = rc_conf(pair->cq_a, PERF_BURST, 1);
		TEST_OK(rmem_qp_create(pair->pd, &conf, &job->a[i]));
		conf = rc_conf(pair->cq_b, PERF_BURST, 1);
		TEST_OK(rmem_qp_create(pair->pd, &conf, &job->b[i]));
		perf_qp_connect_pair(job->a[i], job->b[i]);
	}
}

PERF_TEST(write64_qps)
{
	static struct qps_job job;
	uint32_t nb, i;

	for (nb = 1; nb <= MAX_QPS; nb *= 4) {
		char name[32];
		struct perf_row row = PERF_ROW(name, "ns/op", "the same on 1 QP", "none");

		snprintf(name, sizeof(name), "write64_qps_%u", nb);
		qps_open(&job, nb);
		perf_measure(&row, run_one_qp, run_qps, &job);
		for (i = 1; i < nb; i++) {
			TEST_OK(rmem_qp_destroy(job.a[i]));
			TEST_OK(rmem_qp_destroy(job.b[i]));
		}
		job.write.pair.a = job.a[0];
		job_close(&job.write);
	}
}

/* The same work on one lcore and on two, which share the device, the PD and the key table. */
static double other_took;

static int
run_other(void *arg)
{
	other_took = run_write(arg);
	return 0;
}

static double
run_two_lcores(void *arg)
{
	struct write_job *jobs = arg;
	double took;

	if (rte_eal_remote_launch(run_other, &jobs[1], perf_peer_lcore()) != 0)
		return -1.0;
	took = run_write(&jobs[0]);
	rte_eal_wait_lcore(perf_peer_lcore());
	return RTE_MAX(took, other_took);
}

PERF_TEST(write64_two_lcores)
{
	struct perf_row row = PERF_ROW("write64_two_lcores", "ns/op", "on one lcore", "none");
	static struct write_job jobs[2];
	struct write_job *other = &jobs[1];

	perf_peer_lcore();
	job_open(&jobs[0], 64, 1024, 20000, 0);
	*other = jobs[0];
	perf_pair_connect(&other->pair);
	other->src = perf_mr(other->pair.pd, (size_t)other->size * other->nb_bufs);
	other->dst = perf_mr(other->pair.pd, (size_t)other->size * other->nb_bufs);
	perf_wrs_init(&other->wrs, RMEM_WR_RDMA_WRITE, other->size, other->src, other->dst);
	perf_measure(&row, run_write, run_two_lcores, jobs);
	TEST_OK(rmem_mr_dereg(other->src));
	TEST_OK(rmem_mr_dereg(other->dst));
	perf_pair_disconnect(&other->pair);
	job_close(&jobs[0]);
}
