/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory of the MRs of a PD, by address, for REG_MR: its pages are addresses of the process, and
 * the device needs the lkey of an MR that covers them. PDs of devices without REG_MR have none.
 */

#ifndef RVERBS_RANGE_H
#define RVERBS_RANGE_H

#include "rverbs.h"

/* Initialize, and free, the ranges of a PD. */
void rverbs_range_init(struct rverbs_pd *pd);
void rverbs_range_fini(struct rverbs_pd *pd);
/* Add a registered MR: 0, or -ENOMEM and a log line. */
int rverbs_range_add(
		struct rverbs_pd *pd, const struct rverbs_mr *mr, uint64_t iova, uint32_t access);
/* Remove an MR; true if it was in the table. */
void rverbs_range_remove(struct rverbs_pd *pd, const struct rverbs_mr *mr);
/*
 * In each SGE, replace the address of the process by the address in an MR with these rights, and
 * set its lkey. False if an SGE has no such MR.
 */
bool rverbs_range_map(struct rverbs_pd *pd, uint32_t access, struct ibv_sge *sges, uint16_t nb);

#endif /* RVERBS_RANGE_H */
