/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fast path of the requester: bursts of WRITEs and ATOMIC_WRITEs. */

#ifndef RSOFT_WRITE_BURST_H
#define RSOFT_WRITE_BURST_H

#include "rsoft_batch.h"

/*
 * Execute WRITEs or ATOMIC_WRITEs with one SGE each, up to the first of n that has another opcode,
 * is different, or whose keys are not valid; return their number. Unless *status is
 * RMEM_WC_SUCCESS, the copy of the next request failed with it.
 */
uint32_t rsoft_write_burst(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n,
		int *status);

#endif /* RSOFT_WRITE_BURST_H */
