/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of an RDMA WRITE on the software device: compared with memcpy over the same buffers in
 * the same order; as the size, and the numbers of MRs, QPs and lcores grow.
 */

#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "perf_floor.h"
#include "test.h"

#define MANY_MRS    1000000u
#define MANY_STRIDE 64u
#define MANY_BURSTS 20000u
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
	struct rmem_sge sge[PERF_BURST];
	struct rmem_send_wr wr[PERF_BURST];
};

static void
job_fill(struct write_job *job)
{
	uint32_t i;

	memset(job->wr, 0, sizeof(job->wr));
	for (i = 0; i < PERF_BURST; i++) {
		job->sge[i].length = job->size;
		job->sge[i].lkey = job->src->lkey;
		job->wr[i].sg_list = &job->sge[i];
		job->wr[i].num_sge = 1;
		job->wr[i].opcode = RMEM_WR_RDMA_WRITE;
		job->wr[i].rdma.rkey = job->dst->rkey;
	}
	job->wr[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
}

static double
run_memcpy(void *arg)
{
	const struct write_job *job = arg;
	const uint8_t *src = job->src->addr;
	uint8_t *dst = job->dst->addr;
	uint32_t burst, i, at = 0;
	uint64_t start = rte_rdtsc_precise();

	for (burst = 0; burst < job->nb_bursts; burst++) {
		for (i = 0; i < PERF_BURST; i++) {
			size_t offset = (size_t)at * job->size;

			memcpy(dst + offset, src + offset, job->size);
			at = (at + 1) & (job->nb_bufs - 1);
		}
		rte_compiler_barrier();
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * PERF_BURST);
}

/* The addresses of a burst, which starts at a buffer; the buffer of the next one. */
static __rte_always_inline uint32_t
job_next(struct write_job *job, uint32_t at)
{
	uint64_t src = job->src->iova, dst = job->dst->iova;
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		uint64_t offset = (uint64_t)at * job->size;

		job->sge[i].addr = src + offset;
		job->wr[i].rdma.remote_addr = dst + offset;
		at = (at + 1) & (job->nb_bufs - 1);
	}
	return at;
}

static double
run_write(void *arg)
{
	struct write_job *job = arg;
	uint32_t burst, at = 0;
	uint64_t start = rte_rdtsc_precise();

	for (burst = 0; burst < job->nb_bursts; burst++) {
		at = job_next(job, at);
		if (perf_burst(&job->pair, job->wr, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * PERF_BURST);
}

static struct perf_floor_key lkeys[PERF_FLOOR_KEYS], rkeys[PERF_FLOOR_KEYS];

/* The checks and copies of a burst, and its completion. */
static int
floor_burst(struct write_job *job, struct rmem_wc *wc)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		const struct rmem_send_wr *wr = &job->wr[i];
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

static double
run_floor(void *arg)
{
	struct write_job *job = arg;
	struct rmem_wc wc[16];
	uint32_t burst, at = 0;
	uint64_t start = rte_rdtsc_precise();

	perf_floor_key_set(lkeys, job->src, job->src->lkey);
	perf_floor_key_set(rkeys, job->dst, job->dst->rkey);
	for (burst = 0; burst < job->nb_bursts; burst++) {
		at = job_next(job, at);
		rte_compiler_barrier();
		if (floor_burst(job, &wc[burst % RTE_DIM(wc)]) != 0)
			return -1.0;
		rte_compiler_barrier();
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * PERF_BURST);
}

/*
 * Random places of the same memory: by one key, or each place by its own. If keys is not NULL, the
 * key of each place is also read from there.
 */
static __rte_always_inline double
run_places(struct write_job *job, bool is_many, const struct perf_floor_key *keys)
{
	uint64_t src = job->src->iova, dst = job->dst->iova;
	uint32_t burst, i, at = 0;
	uint64_t start = rte_rdtsc_precise();

	for (burst = 0; burst < job->nb_bursts; burst++) {
		for (i = 0; i < PERF_BURST; i++, at++) {
			uint32_t place = job->place[at];

			job->sge[i].addr = src + (at & (job->nb_bufs - 1)) * job->size;
			job->wr[i].rdma.remote_addr = dst + (uint64_t)place * MANY_STRIDE;
			/* An application stores the key with the address. */
			job->wr[i].rdma.rkey = is_many
					? job->place[job->nb_bursts * PERF_BURST + at]
					: job->dst->rkey;
			if (keys != NULL)
				rte_prefetch0(&keys[place]);
		}
		for (i = 0; keys != NULL && i < PERF_BURST; i++) {
			uint32_t place = job->place[at - PERF_BURST + i];

			if (unlikely(keys[place].word != place))
				return -1.0;
		}
		if (perf_burst(&job->pair, job->wr, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * PERF_BURST);
}

static double
run_one_mr(void *arg)
{
	return run_places(arg, false, NULL);
}

static double
run_many_mrs(void *arg)
{
	return run_places(arg, true, NULL);
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
	TEST_ASSERT(job->src != NULL && job->dst != NULL);
	job_fill(job);
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
	struct perf_row row = {.name = name, .yardstick = "memcpy", .bar = bar, .unit = "ns/op"};

	perf_compare(run_memcpy, value, job, &row.baseline, &row.value);
	if (job->size >= 4096) {
		row.unit = "GB/s";
		row.value = job->size / row.value;
		row.baseline = job->size / row.baseline;
	}
	row.ratio = row.value / row.baseline;
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
	if (strcmp(bar, "none") != 0) {
		snprintf(floor, sizeof(floor), "%s_floor", name);
		measure_write(&job, floor, "none", run_floor);
	}
	job_close(&job);
}

static void
test_write64_burst32(void)
{
	compare_write("write64_burst32", "ratio <= 3", 64, 1024, 20000);
}

/* A device without and one with an argument. */
static double
run_plain(void *arg)
{
	return run_write(arg);
}

static double
run_with(void *arg)
{
	return run_write((struct write_job *)arg + 1);
}

static void
compare_with(const char *name, const char *args, const char *yardstick, const char *bar)
{
	struct perf_row row = {.name = name, .unit = "ns/op", .yardstick = yardstick, .bar = bar};
	static struct write_job jobs[2];

	job_open_on(&jobs[0], NULL, 64, 1024, 20000, 0);
	job_open_on(&jobs[1], args, 64, 1024, 20000, 0);
	perf_measure(&row, run_plain, run_with, jobs);
	job_close(&jobs[0]);
	job_close(&jobs[1]);
}

static void
test_write64_sanitize(void)
{
	compare_with("write64_sanitize", "sanitize=1", "without sanitize=1", "ratio <= 2");
}

/* Rules that never match. */
static void
test_write64_chaos(void)
{
	compare_with("write64_chaos", "chaos=SEND:RETRY_EXC_ERR+RDMA_READ:RETRY_EXC_ERR",
			"without chaos=", "ratio <= 1.1");
}

/* Requests of other opcodes compared with WRITEs of a size. */
static void
compare_opcode(struct perf_row *row, enum rmem_wr_opcode opcode, uint32_t size)
{
	static struct write_job jobs[2];
	uint32_t i;

	row->unit = "ns/op";
	job_open(&jobs[0], 64, 1024, 20000, 0);
	job_open(&jobs[1], 64, 1024, 20000, 0);
	for (i = 0; i < PERF_BURST; i++) {
		jobs[0].sge[i].length = size;
		jobs[1].wr[i].opcode = opcode;
		jobs[1].sge[i].length = sizeof(uint64_t);
		if (opcode == RMEM_WR_FLUSH) {
			jobs[1].wr[i].flush.type = RMEM_FLUSH_GLOBAL;
			jobs[1].wr[i].flush.level = RMEM_FLUSH_RANGE;
		}
	}
	perf_measure(row, run_plain, run_with, jobs);
	job_close(&jobs[0]);
	job_close(&jobs[1]);
}

static void
test_atomic_write_burst32(void)
{
	struct perf_row row = {.name = "atomic_write_burst32",
			.yardstick = "write64_burst32",
			.bar = "ratio <= 1.2"};

	compare_opcode(&row, RMEM_WR_ATOMIC_WRITE, 64);
}

static void
test_flush0_burst32(void)
{
	struct perf_row row = {.name = "flush0_burst32",
			.yardstick = "WRITEs of 0 bytes",
			.bar = "ratio <= 1.5"};

	compare_opcode(&row, RMEM_WR_FLUSH, 0);
}

static void
test_write4k(void)
{
	compare_write("write4k", "ratio >= 0.92", 4096, 32, 5000);
}

static void
test_write64k(void)
{
	compare_write("write64k", "ratio >= 0.98", 65536, 16, 500);
}

/* The buffers of each size stay in the CPU caches: 128 KiB of them, of 1 MiB one. */
static void
test_write_sizes(void)
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

static double
run_floor_mrs(void *arg)
{
	return run_places(arg, false, place_keys);
}

/* One MR for each buffer; the addresses, followed by their keys. */
static struct rmem_mr *many[1u << 20];
static uint32_t places[2 * MANY_BURSTS * PERF_BURST];

static void
many_open(struct write_job *job, uint32_t nb_mrs)
{
	const uint32_t nb = MANY_BURSTS * PERF_BURST;
	uint64_t x = 88172645463325252u;
	uint32_t i;

	for (i = 0; i < nb_mrs; i++)
		TEST_OK(rmem_mr_reg(job->pair.pd, (uint8_t *)job->dst->addr + i * MANY_STRIDE,
				MANY_STRIDE, 0, PERF_ACCESS, &many[i]));
	for (i = 0; i < nb; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		places[i] = (uint32_t)(x % nb_mrs);
		places[nb + i] = many[places[i]]->rkey;
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
	struct perf_row row = {.name = name,
			.unit = "ns/op",
			.yardstick = "the same places by 1 MR",
			.bar = bar};
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

static void
test_write64_1m_mrs(void)
{
	compare_mrs("write64_1m_mrs", "ratio <= 1.5", MANY_MRS);
}

static void
test_write64_mrs(void)
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
	struct rmem_qp_conf conf = {.max_send_wr = PERF_BURST,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.type = RMEM_QPT_RC,
			.access = RMEM_ACCESS_REMOTE};
	uint32_t i;

	job->nb_qps = nb_qps;
	job_open(&job->write, 64, 1024, 20000, 0);
	job->a[0] = pair->a;
	job->b[0] = pair->b;
	for (i = 1; i < nb_qps; i++) {
		conf.send_cq = conf.recv_cq = pair->cq_a;
		TEST_OK(rmem_qp_create(pair->pd, &conf, &job->a[i]));
		conf.send_cq = conf.recv_cq = pair->cq_b;
		TEST_OK(rmem_qp_create(pair->pd, &conf, &job->b[i]));
		perf_qp_connect_pair(job->a[i], job->b[i]);
	}
}

static void
test_write64_qps(void)
{
	static struct qps_job job;
	uint32_t nb, i;

	for (nb = 1; nb <= MAX_QPS; nb *= 4) {
		char name[32];
		struct perf_row row = {.name = name,
				.unit = "ns/op",
				.yardstick = "the same on 1 QP",
				.bar = "none"};

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
struct lcores_job {
	struct write_job mine;
	struct write_job other;
	unsigned int lcore;
	double other_took;
};

static int
run_other(void *arg)
{
	struct lcores_job *job = arg;

	job->other_took = run_write(&job->other);
	return 0;
}

static double
run_alone(void *arg)
{
	return run_write(&((struct lcores_job *)arg)->mine);
}

static double
run_two_lcores(void *arg)
{
	struct lcores_job *job = arg;
	double took;

	if (rte_eal_remote_launch(run_other, job, job->lcore) != 0)
		return -1.0;
	took = run_write(&job->mine);
	rte_eal_wait_lcore(job->lcore);
	return RTE_MAX(took, job->other_took);
}

static void
test_write64_two_lcores(void)
{
	struct perf_row row = {.name = "write64_two_lcores",
			.unit = "ns/op",
			.yardstick = "on one lcore",
			.bar = "none"};
	static struct lcores_job job;
	struct write_job *other = &job.other;

	job.lcore = rte_get_next_lcore(-1, 1, 0);
	if (job.lcore >= RTE_MAX_LCORE)
		test_skip("it needs two lcores");
	job_open(&job.mine, 64, 1024, 20000, 0);
	*other = job.mine;
	perf_qp_open(other->pair.dev, other->pair.pd, &other->pair.cq_a, &other->pair.a);
	perf_qp_open(other->pair.dev, other->pair.pd, &other->pair.cq_b, &other->pair.b);
	perf_qp_connect_pair(other->pair.a, other->pair.b);
	other->src = perf_mr(other->pair.pd, (size_t)other->size * other->nb_bufs);
	other->dst = perf_mr(other->pair.pd, (size_t)other->size * other->nb_bufs);
	TEST_ASSERT(other->src != NULL && other->dst != NULL);
	job_fill(other);
	perf_measure(&row, run_alone, run_two_lcores, &job);
	TEST_OK(rmem_mr_dereg(other->src));
	TEST_OK(rmem_mr_dereg(other->dst));
	TEST_OK(rmem_qp_destroy(other->pair.a));
	TEST_OK(rmem_qp_destroy(other->pair.b));
	TEST_OK(rmem_cq_destroy(other->pair.cq_a));
	TEST_OK(rmem_cq_destroy(other->pair.cq_b));
	job_close(&job.mine);
}

REGISTER_RMEM_TEST(write_sizes_perf_autotest, test_write_sizes);
REGISTER_RMEM_TEST(write64_mrs_perf_autotest, test_write64_mrs);
REGISTER_RMEM_TEST(write64_qps_perf_autotest, test_write64_qps);
REGISTER_RMEM_TEST(write64_two_lcores_perf_autotest, test_write64_two_lcores);
REGISTER_RMEM_TEST(write64_burst32_perf_autotest, test_write64_burst32);
REGISTER_RMEM_TEST(write64_sanitize_perf_autotest, test_write64_sanitize);
REGISTER_RMEM_TEST(write64_chaos_perf_autotest, test_write64_chaos);
REGISTER_RMEM_TEST(atomic_write_burst32_perf_autotest, test_atomic_write_burst32);
REGISTER_RMEM_TEST(flush0_burst32_perf_autotest, test_flush0_burst32);
REGISTER_RMEM_TEST(write64_1m_mrs_perf_autotest, test_write64_1m_mrs);
REGISTER_RMEM_TEST(write4k_perf_autotest, test_write4k);
REGISTER_RMEM_TEST(write64k_perf_autotest, test_write64k);
