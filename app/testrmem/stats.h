/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Statistics of a session: lines of rates, the table at the end, JSON.
 */

#ifndef STATS_H
#define STATS_H

#include "testrmem.h"

/** Start of the counts, and the values printed last. */
struct stats {
	struct testrmem_session *session;
	struct testrmem_counters base[RTE_MAX_LCORE];
	struct testrmem_counters last[RTE_MAX_LCORE];
	uint64_t base_tsc; /**< 0: when the worker began. */
	uint64_t last_tsc;
	uint64_t start_tsc; /**< Of the run. */
	uint64_t time;      /**< The same, in seconds since 1970. */
};

/** A file of results. */
struct stats_file {
	FILE *file; /**< NULL: none. */
	const char *path;
	bool is_csv; /**< Else JSON. */
	bool has_header;
};

/** Of all lcores of a run that has ended. */
struct stats_rates {
	double mops;
	double gbytes;
	double p50_us; /**< 0 without --latency. */
	double p99_us;
};

/** Begin to count for a session that is about to run. */
void stats_start(struct stats *stats, struct testrmem_session *session);
/** Reset the counts; the session may be running. */
void stats_clear(struct stats *stats);
/** Print a line for each lcore: rates since the last one. */
void stats_print_period(struct stats *stats);
/** Print a table: all since the beginning. */
void stats_print_table(const struct stats *stats);
/** Write a line for each lcore and a total, if there is a file; -errno with a message. */
int stats_write(const struct stats *stats, struct stats_file *out);
struct stats_rates stats_rates(const struct stats *stats);

#endif /* STATS_H */
