/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The memory of the MRs of a PD, by address, for REG_MR: its pages are addresses of the process,
 * and the device needs the lkey of an MR that covers them. PDs of other devices have none.
 */

#ifndef RVERBS_RANGE_H
#define RVERBS_RANGE_H

#include "rverbs.h"

/* Of a PD that is being created or released. */
void rverbs_range_init(struct rverbs_pd *pd);
void rverbs_range_fini(struct rverbs_pd *pd);
/* Add a registered MR: 0, or -ENOMEM and a log line. */
int rverbs_range_add(
		struct rverbs_pd *pd, const struct rverbs_mr *mr, uint64_t iova, uint32_t access);
/* Remove an MR; true if it was in the table. */
void rverbs_range_remove(struct rverbs_pd *pd, const struct rverbs_mr *mr);
/*
 * Replace the address of the process in each SGE by that in an MR with those rights, and set its
 * lkey. False if there is none for one of them.
 */
bool rverbs_range_map(struct rverbs_pd *pd, uint32_t access, struct ibv_sge *sges, uint16_t nb);

#endif /* RVERBS_RANGE_H */
