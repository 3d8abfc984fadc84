/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A series of runs with values of one parameter, each twice the one before. */

#ifndef SWEEP_H
#define SWEEP_H

#include "param.h"
#include "stats.h"

#define SWEEP_MAX 64

struct sweep {
	const struct param *param;
	uint64_t to;
	uint64_t value[SWEEP_MAX];
	struct stats_rates rates[SWEEP_MAX];
	uint32_t nb; /**< Runs that have ended. */
};

/** Parse conf->sweep and set the first value; -EINVAL with a message. */
int sweep_open(struct testrmem_conf *conf, struct sweep *sweep);
/** Keep the result of the run that has ended. */
void sweep_add(struct sweep *sweep, struct stats_rates rates);
/** Set the next value; false after the last one. */
bool sweep_next(struct sweep *sweep, struct testrmem_conf *conf);
void sweep_print(const struct sweep *sweep, bool is_latency);

#endif /* SWEEP_H */
