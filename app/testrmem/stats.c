/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "grant.h"
#include "latency.h"
#include "param.h"
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
	stats->time = (uint64_t)time(NULL);
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

/* Durations of all lcores, which have ended; none without --latency. Valid until the next call. */
static const struct latency *
merge_latency(const struct testrmem_session *session)
{
	static struct latency all;
	uint32_t i;

	memset(&all, 0, sizeof(all));
	for (i = 0; session->conf.is_latency && i < session->nb_workers; i++)
		latency_merge(&all, session->workers[i].latency);
	return &all;
}

struct stats_rates
stats_rates(const struct stats *stats)
{
	const struct testrmem_session *session = stats->session;
	const struct latency *all = merge_latency(session);
	struct sum total = {0};
	uint32_t i;

	for (i = 0; i < session->nb_workers; i++) {
		struct sum sum = sum_of(stats, i);

		add(&total, &sum);
	}
	return (struct stats_rates){
			.mops = rate(total.cnt.ops, total.seconds) / 1e6,
			.gbytes = rate(total.cnt.bytes, total.seconds) / 1e9,
			.p50_us = seconds_of(latency_at(all, 0.5)) * 1e6,
			.p99_us = seconds_of(latency_at(all, 0.99)) * 1e6,
	};
}

/* The part that is done, and the time left if the rest takes as long for each byte. */
static void
print_progress(double elapsed, const struct testrmem_session *session)
{
	uint64_t done, all;

	session->engine->progress(session, &done, &all);
	printf("[%8.3f s] %5.1f %% of %" PRIu64 " bytes", elapsed,
			all != 0 ? 100 * (double)done / (double)all : 100, all);
	if (done != 0)
		printf(", %.0f s left", elapsed * (double)(all - done) / (double)done);
	printf("\n");
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
	if (session->engine->progress != NULL)
		print_progress(elapsed, session);
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
	if (conf->is_bidirectional)
		printf(", both directions");
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

/* The lcores have ended. */
static bool
has_ended(const struct testrmem_session *session)
{
	uint32_t i;

	for (i = 0; i < session->nb_workers; i++) {
		if (__atomic_load_n(&session->workers[i].end_tsc, __ATOMIC_ACQUIRE) == 0)
			return false;
	}
	return true;
}

/* Rows up to 1, 2 and 5 times a power of ten of ns, from the shortest duration to the longest. */
static void
print_histogram(const struct latency *all)
{
	static const char bar[] = "########################################";
	static const uint32_t steps[] = {1, 2, 5};
	uint64_t below = 0, reached = 0, unit = 10;
	uint32_t i = 0;

	printf("%12s %12s %8s %9s\n", "up to us", "bursts", "%", "sum %");
	while (reached < all->nb) {
		double edge_ns = (double)(unit * steps[i]);
		double part;

		reached = latency_upto(all, (uint64_t)(edge_ns * (double)rte_get_tsc_hz() / 1e9));
		part = (double)(reached - below) / (double)all->nb;
		if (reached != 0)
			printf("%12.2f %12" PRIu64 " %8.3f %9.3f %.*s\n", edge_ns / 1e3,
					reached - below, 100 * part,
					100 * (double)reached / (double)all->nb,
					(int)(part * (double)(sizeof(bar) - 1)), bar);
		below = reached;
		i = (i + 1) % RTE_DIM(steps);
		unit *= i == 0 ? 10 : 1;
	}
}

static void
print_latency(const struct testrmem_session *session)
{
	static const double parts[] = {0.5, 0.9, 0.99, 0.999, 0.9999};
	const struct latency *all;
	uint32_t i;

	if (!has_ended(session))
		return;
	all = merge_latency(session);
	printf("latency of a burst, us: min %.3f", seconds_of(all->min) * 1e6);
	for (i = 0; i < RTE_DIM(parts); i++)
		printf(", %g %% %.3f", 100 * parts[i], seconds_of(latency_at(all, parts[i])) * 1e6);
	printf(", max %.3f (%" PRIu64 " bursts)\n", seconds_of(all->max) * 1e6, all->nb);
	if (session->conf.is_histogram)
		print_histogram(all);
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
	if (!__atomic_load_n(&session->is_warm, __ATOMIC_RELAXED))
		printf("within the warm-up of %.3f s\n", (double)session->conf.warm_up_ms / 1e3);
	if (session->conf.is_latency)
		print_latency(session);
	fflush(stdout);
}

/* A column of JSON and CSV. */
struct field {
	const char *name;
	const char *text; /* or NULL */
	uint64_t number;
	double decimal; /* if is_decimal */
	bool is_decimal;
};

#define TEXT(key, value)                                                                           \
	{                                                                                          \
		.name = (key), .text = (value)                                                     \
	}
#define NUMBER(key, value)                                                                         \
	{                                                                                          \
		.name = (key), .number = (value)                                                   \
	}
#define DECIMAL(key, value)                                                                        \
	{                                                                                          \
		.name = (key), .decimal = (value), .is_decimal = true                              \
	}

/* A string; it is of the command line. */
static void
write_text(const char *text, bool is_csv, FILE *file)
{
	fputc('"', file);
	for (; *text != '\0'; text++) {
		if (!is_csv && (unsigned char)*text < ' ') {
			fprintf(file, "\\u%04x", (unsigned char)*text);
			continue;
		}
		if (*text == '"' || (*text == '\\' && !is_csv))
			fputc(is_csv ? '"' : '\\', file);
		fputc(*text, file);
	}
	fputc('"', file);
}

static void
write_field(const struct field *field, bool is_csv, FILE *file)
{
	if (!is_csv)
		fprintf(file, "\"%s\":", field->name);
	if (field->text != NULL)
		write_text(field->text, is_csv, file);
	else if (field->is_decimal)
		fprintf(file, "%.6f", field->decimal);
	else
		fprintf(file, "%" PRIu64, field->number);
}

static void
write_fields(const struct field *fields, uint32_t nb, struct stats_file *out)
{
	uint32_t i;

	if (out->is_csv && !out->has_header) {
		for (i = 0; i < nb; i++)
			fprintf(out->file, "%s%s", i == 0 ? "" : ",", fields[i].name);
		fputc('\n', out->file);
		out->has_header = true;
	}
	fputs(out->is_csv ? "" : "{", out->file);
	for (i = 0; i < nb; i++) {
		fputs(i == 0 ? "" : ",", out->file);
		write_field(&fields[i], out->is_csv, out->file);
	}
	fputs(out->is_csv ? "\n" : "}\n", out->file);
}

/* Fields at the end of a row that are omitted without --latency. */
#define NB_LATENCY_FIELDS 6

/* lcore is NULL for the total. */
static void
write_row(const struct stats *stats, const uint32_t *lcore, const struct sum *sum,
		const struct latency *latency, struct stats_file *out)
{
	const struct testrmem_conf *conf = &stats->session->conf;
	const unsigned int number = rmem_version();
	char version[32], devs[TESTRMEM_MAX_DEVS * TESTRMEM_STR_SIZE];
	const struct field fields[] = {
			TEXT("version", version),
			NUMBER("time_unix_s", stats->time),
			TEXT("dev", devs),
			TEXT("mode", conf->engine->name),
			NUMBER("size_bytes", conf->size),
			NUMBER("burst", conf->burst),
			NUMBER("depth", conf->depth),
			NUMBER("qps", conf->qps),
			NUMBER("mrs", conf->mrs),
			NUMBER("directions", testrmem_nb_directions(conf)),
			DECIMAL("warm_up_s", (double)conf->warm_up_ms / 1e3),
			{.name = "lcore",
					.text = lcore == NULL ? "total" : NULL,
					.number = lcore == NULL ? 0 : *lcore},
			NUMBER("ops", sum->cnt.ops),
			NUMBER("bytes", sum->cnt.bytes),
			DECIMAL("seconds", sum->seconds),
			DECIMAL("mops_per_s", rate(sum->cnt.ops, sum->seconds) / 1e6),
			DECIMAL("gbytes_per_s", rate(sum->cnt.bytes, sum->seconds) / 1e9),
			NUMBER("errors", sum->cnt.errors),
			/* The last NB_LATENCY_FIELDS. */
			NUMBER("latency_bursts", latency->nb),
			DECIMAL("latency_min_us", seconds_of(latency->min) * 1e6),
			DECIMAL("latency_p50_us", seconds_of(latency_at(latency, 0.5)) * 1e6),
			DECIMAL("latency_p99_us", seconds_of(latency_at(latency, 0.99)) * 1e6),
			DECIMAL("latency_p999_us", seconds_of(latency_at(latency, 0.999)) * 1e6),
			DECIMAL("latency_max_us", seconds_of(latency->max) * 1e6),
	};

	param_print(conf, param_find("dev"), devs, sizeof(devs));
	snprintf(version, sizeof(version), "%u.%u.%u", number >> 16, number >> 8 & 0xff,
			number & 0xff);
	write_fields(fields, RTE_DIM(fields) - (conf->is_latency ? 0 : NB_LATENCY_FIELDS), out);
}

int
stats_write(const struct stats *stats, struct stats_file *out)
{
	static const struct latency none;
	const struct testrmem_session *session = stats->session;
	struct sum total = {0};
	uint32_t i;

	if (out->file == NULL)
		return 0;
	for (i = 0; i < session->nb_workers; i++) {
		const struct testrmem_worker *worker = &session->workers[i];
		const struct latency *latency = worker->latency != NULL ? worker->latency : &none;
		struct sum sum = sum_of(stats, i);

		add(&total, &sum);
		write_row(stats, &worker->lcore_id, &sum, latency, out);
	}
	write_row(stats, NULL, &total, merge_latency(session), out);
	if (fflush(out->file) == 0 && ferror(out->file) == 0)
		return 0;
	testrmem_err("cannot write '%s': %s", out->path, strerror(errno));
	return -EIO;
}
