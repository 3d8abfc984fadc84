/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fast path of the requester: bursts of SENDs. */

#ifndef RSOFT_SEND_BURST_H
#define RSOFT_SEND_BURST_H

#include "rsoft_batch.h"

/*
 * Execute SENDs of one SGE to receives of one SGE, whose CQ another lcore polls, up to the first of
 * n that is different or whose keys are not valid; return their number. The caller completes them.
 */
uint32_t rsoft_send_burst(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n);

#endif /* RSOFT_SEND_BURST_H */
