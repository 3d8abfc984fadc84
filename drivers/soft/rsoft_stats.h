/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Counters: each QP has its own, and the device has their sums. */

#ifndef RSOFT_STATS_H
#define RSOFT_STATS_H

#include "base/rsoft.h"

int rsoft_stats_get(struct rmem_dev *dev, struct rmem_dev_stats *stats);
int rsoft_stats_reset(struct rmem_dev *dev);
int rsoft_qp_stats_get(struct rmem_qp *qp, struct rmem_dev_stats *stats);
int rsoft_qp_attach_counter(struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts);

/* Add a QP's counters to a sum. Under the domain's lock. */
void rsoft_stats_add(struct rmem_dev_stats *sum, const struct rsoft_qp *qp);

#endif /* RSOFT_STATS_H */
