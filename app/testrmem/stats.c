/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>

#include "grant.h"
#include "stats.h"

/* Work of one lcore, or all, and its duration. */
struct sum {
	struct testrmem_counters cnt;
	double seconds;
};

static double
seconds_of(uint64_t cycles)
{
	return (double)cycles / (double)rte_get_tsc_hz();
}

static double
rate(uint64_t count, double seconds)
{
	return seconds > 0 ? (double)count / seconds : 0;
}

static struct testrmem_counters
read_counters(const struct testrmem_worker *worker)
{
	const struct testrmem_counters *cnt = &worker->cnt;

	return (struct testrmem_counters){
			.ops = __atomic_load_n(&cnt->ops, __ATOMIC_RELAXED),
			.bytes = __atomic_load_n(&cnt->bytes, __ATOMIC_RELAXED),
			.errors = __atomic_load_n(&cnt->errors, __ATOMIC_RELAXED),
			.binds = __atomic_load_n(&cnt->binds, __ATOMIC_RELAXED),
			.invs = __atomic_load_n(&cnt->invs, __ATOMIC_RELAXED),
	};
}

static struct testrmem_counters
difference(struct testrmem_counters now, const struct testrmem_counters *before)
{
	now.ops -= before->ops;
	now.bytes -= before->bytes;
	now.errors -= before->errors;
	now.binds -= before->binds;
	now.invs -= before->invs;
	return now;
}

/* The total's time is the longest of the lcores'. */
static void
add(struct sum *total, const struct sum *part)
{
	total->cnt.ops += part->cnt.ops;
	total->cnt.bytes += part->cnt.bytes;
	total->cnt.errors += part->cnt.errors;
	total->cnt.binds += part->cnt.binds;
	total->cnt.invs += part->cnt.invs;
	total->seconds = RTE_MAX(total->seconds, part->seconds);
}

void
stats_start(struct stats *stats, struct testrmem_session *session)
{
	memset(stats, 0, sizeof(*stats));
	stats->session = session;
	stats->start_tsc = rte_rdtsc();
	stats->last_tsc = stats->start_tsc;
}

void
stats_clear(struct stats *stats)
{
	uint32_t i;

	if (stats->session == NULL)
		return;
	for (i = 0; i < stats->session->nb_workers; i++) {
		stats->base[i] = read_counters(&stats->session->workers[i]);
		stats->last[i] = stats->base[i];
	}
	stats->base_tsc = rte_rdtsc();
	stats->last_tsc = stats->base_tsc;
}

static struct sum
sum_of(const struct stats *stats, uint32_t i)
{
	const struct testrmem_worker *worker = &stats->session->workers[i];
	uint64_t start = __atomic_load_n(&worker->start_tsc, __ATOMIC_RELAXED);
	uint64_t end = __atomic_load_n(&worker->end_tsc, __ATOMIC_ACQUIRE);
	struct sum sum;

	sum.cnt = difference(read_counters(worker), &stats->base[i]);
	if (end == 0)
		end = rte_rdtsc();
	start = start == 0 ? end : RTE_MAX(start, stats->base_tsc);
	sum.seconds = end > start ? seconds_of(end - start) : 0;
	if (worker->peer_us != 0)
		sum.seconds = (double)worker->peer_us / 1e6;
	return sum;
}

static const char *
unit_of(const struct testrmem_engine *engine)
{
	return engine->unit != NULL ? engine->unit : "ops";
}

static void
print_rates(double elapsed, const char *who, const struct sum *sum,
		const struct testrmem_engine *engine)
{
	const struct testrmem_grant_kind *grant = engine->grant;

	printf("[%8.3f s] %-9s %9.3f M%s/s %9.3f GB/s", elapsed, who,
			rate(sum->cnt.ops, sum->seconds) / 1e6, unit_of(engine),
			rate(sum->cnt.bytes, sum->seconds) / 1e9);
	if (grant != NULL)
		printf("  %s %8.3f M/s  INV %8.3f M/s", grant->request,
				rate(sum->cnt.binds, sum->seconds) / 1e6,
				rate(sum->cnt.invs, sum->seconds) / 1e6);
	printf("  errors %" PRIu64 "\n", sum->cnt.errors);
}

void
stats_print_period(struct stats *stats)
{
	const struct testrmem_session *session = stats->session;
	uint64_t now = rte_rdtsc();
	double elapsed = seconds_of(now - stats->start_tsc);
	struct sum total = {0};
	char who[32];
	uint32_t i;

	if (session->engine->flags & ENGINE_PEER_COUNTED)
		return; /* Reported at the end. */
	for (i = 0; i < session->nb_workers; i++) {
		struct testrmem_counters cnt = read_counters(&session->workers[i]);
		struct sum sum = {
				.cnt = difference(cnt, &stats->last[i]),
				.seconds = seconds_of(now - stats->last_tsc),
		};

		stats->last[i] = cnt;
		add(&total, &sum);
		snprintf(who, sizeof(who), "lcore %u", session->workers[i].lcore_id);
		print_rates(elapsed, who, &sum, session->engine);
	}
	if (session->nb_workers > 1)
		print_rates(elapsed, "total", &total, session->engine);
	stats->last_tsc = now;
	fflush(stdout);
}

static void
print_conf(const struct testrmem_session *session)
{
	const struct testrmem_conf *conf = &session->conf;
	uint32_t i;

	printf("\nmode %s on", session->conf.engine->name);
	for (i = 0; i < session->nb_devs; i++)
		printf(" %s", session->devs[i].spec);
	printf(": size %" PRIu64 ", burst %" PRIu64 ", depth %" PRIu64 ", %" PRIu64
	       " QP pair%s per lcore",
			conf->size, conf->burst, conf->depth, conf->qps, conf->qps == 1 ? "" : "s");
	if (session->engine->target_access != 0)
		printf(", %" PRIu64 " target MR%s", conf->mrs, conf->mrs == 1 ? "" : "s");
	printf("%s\n",
			session->engine->flags & ENGINE_PEER_COUNTED ? ", as the other host counts"
								     : "");
}

static void
print_row(const char *who, const struct sum *sum, const struct testrmem_grant_kind *grant)
{
	printf("%-7s %14" PRIu64 " %17" PRIu64 " %9.3f %10.3f %9.3f", who, sum->cnt.ops,
			sum->cnt.bytes, sum->seconds, rate(sum->cnt.ops, sum->seconds) / 1e6,
			rate(sum->cnt.bytes, sum->seconds) / 1e9);
	if (grant != NULL)
		printf(" %9.3f %9.3f", rate(sum->cnt.binds, sum->seconds) / 1e6,
				rate(sum->cnt.invs, sum->seconds) / 1e6);
	printf(" %8" PRIu64 "\n", sum->cnt.errors);
}

void
stats_print_table(const struct stats *stats)
{
	const struct testrmem_session *session = stats->session;
	const struct testrmem_grant_kind *grant = session->engine->grant;
	struct sum total = {0};
	char who[32], unit[32];
	uint32_t i;

	print_conf(session);
	snprintf(unit, sizeof(unit), "M%s/s", unit_of(session->engine));
	printf("%-7s %14s %17s %9s %10s %9s", "lcore", unit_of(session->engine), "bytes", "seconds",
			unit, "GB/s");
	if (grant != NULL)
		printf(" %5s M/s %9s", grant->request, "INV M/s");
	printf(" %8s\n", "errors");
	for (i = 0; i < session->nb_workers; i++) {
		struct sum sum = sum_of(stats, i);

		add(&total, &sum);
		snprintf(who, sizeof(who), "%u", session->workers[i].lcore_id);
		print_row(who, &sum, grant);
	}
	print_row("total", &total, grant);
	fflush(stdout);
}

static void
write_object(const struct testrmem_session *session, const char *who, const struct sum *sum,
		FILE *file)
{
	const struct testrmem_conf *conf = &session->conf;

	fprintf(file,
			"{\"mode\":\"%s\",\"size\":%" PRIu64 ",\"burst\":%" PRIu64
			",\"depth\":%" PRIu64 ",\"qps\":%" PRIu64 ",\"mrs\":%" PRIu64
			",\"lcore\":%s",
			session->conf.engine->name, conf->size, conf->burst, conf->depth, conf->qps,
			conf->mrs, who);
	fprintf(file,
			",\"ops\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.6f"
			",\"mops_per_s\":%.6f,\"gbytes_per_s\":%.6f,\"errors\":%" PRIu64 "}\n",
			sum->cnt.ops, sum->cnt.bytes, sum->seconds,
			rate(sum->cnt.ops, sum->seconds) / 1e6,
			rate(sum->cnt.bytes, sum->seconds) / 1e9, sum->cnt.errors);
}

int
stats_write_json(const struct stats *stats, FILE *file, const char *path)
{
	const struct testrmem_session *session = stats->session;
	struct sum total = {0};
	char who[32];
	uint32_t i;

	for (i = 0; i < session->nb_workers; i++) {
		struct sum sum = sum_of(stats, i);

		add(&total, &sum);
		snprintf(who, sizeof(who), "%u", session->workers[i].lcore_id);
		write_object(session, who, &sum, file);
	}
	write_object(session, "\"total\"", &total, file);
	if (fflush(file) == 0 && ferror(file) == 0)
		return 0;
	testrmem_err("cannot write '%s': %s", path, strerror(errno));
	return -EIO;
}
