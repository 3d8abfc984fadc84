/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fast path of the requester: bursts of WRITEs. */

#ifndef RSOFT_WRITES_H
#define RSOFT_WRITES_H

#include "rsoft_run.h"

/*
 * Execute WRITEs from one SGE each, up to the first of n that is different or whose keys are not
 * valid, and return their number. Unless *failed is RSOFT_SIDE_NONE, the copy of the next one
 * failed.
 */
uint32_t rsoft_writes(struct rsoft_run *run, const uint8_t *wrs, size_t stride, uint32_t n,
		unsigned int *failed);

#endif /* RSOFT_WRITES_H */
