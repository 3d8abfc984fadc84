/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Random operations on a device and on its model at a time, for test_random.c.
 */

#ifndef RANDOM_OPS_H
#define RANDOM_OPS_H

#include "fixture.h"
#include "model.h"

#define NB_FORMER  64u
#define NB_DOMAINS 2u

/* a is in domain 0; b in domain 0 or 1. */
struct pair {
	struct fx_side a;
	struct fx_side b;
	unsigned int pd_b;
};

struct random_run {
	struct model model;
	struct rmem_pd *pds[NB_DOMAINS];
	struct pair pairs[NB_DOMAINS];
	struct rmem_fast_reg_page_list *list;
	uint8_t *arena;
	uint32_t former[NB_FORMER]; /* keys that were given out at some time */
	uint64_t random;
	uint64_t nb_succeeded;
	uint64_t nb_refused;
	char what[160]; /* the operation, for who has to look at a failure */
};

extern struct random_run run;

uint32_t random_below(uint32_t limit);

/* One operation; not 0 when the device does what the model does not allow. */
int random_op(void);

#endif /* RANDOM_OPS_H */
