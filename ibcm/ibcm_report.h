/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* IDs and counters as names and values, for telemetry, dumps and logs. */

#ifndef IBCM_REPORT_H
#define IBCM_REPORT_H

#include "ibcm.h"

/* Receiver of the names and values. */
struct ibcm_sink {
	void *arg;
	void (*text)(void *arg, const char *name, const char *text);
	void (*number)(void *arg, const char *name, uint64_t number);
};

void ibcm_report_info(const struct ibcm_sink *sink, const struct ibcm_info *info);
/*
 * Report sums, the counters of each message type, and the counters of REJ reasons that are not 0.
 */
void ibcm_report_stats(const struct ibcm_sink *sink, const struct ibcm_stats *stats);

#endif /* IBCM_REPORT_H */
