/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Objects of the probe: a page, and a QP connected to itself. */

#ifndef RVERBS_PROBE_H
#define RVERBS_PROBE_H

#include "rverbs.h"

#define RVERBS_BASIC_ACCESS                                                                        \
	(RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ)

struct rverbs_probe {
	struct rverbs_dev *dev;
	struct ibv_pd *pd;
	struct ibv_pd *other_pd; /* target of re-registrations */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint64_t *mem;     /* a page: source, followed by target */
	bool is_connected; /* if false, connect_err has the reason */
	int connect_err;
	bool is_stuck; /* an MR of the page could not be released */
	bool is_held;  /* another object could not be released */
};

/* rverbs_probe_run.c: wait some seconds for the next completion; return its status, or -1. */
int rverbs_probe_wait(const struct rverbs_probe *probe, struct ibv_wc *wc);
/* Post one request, and wait for its completion. */
int rverbs_probe_run_wr(const struct rverbs_probe *probe, struct ibv_send_wr *wr);

/* Connect the QP to itself, again if it was connected. See probe_check() for devices that can't. */
void rverbs_probe_connect(struct rverbs_probe *probe);

/* rverbs_probe_odp.c: on-demand MRs. */
void rverbs_probe_on_demand(struct rverbs_probe *probe);

/* rverbs_probe_mw.c: windows of both types. The QP is not usable afterwards. */
void rverbs_probe_windows(struct rverbs_probe *probe);

/* Whether the receive of a SEND_WITH_INV for that key reports its invalidation. */
bool rverbs_probe_send_inv(const struct rverbs_probe *probe, uint32_t key);

/* rverbs_probe_mlx5.c: fast registration and indirect keys, with a separate QP. */
#ifdef RMEM_HAS_MLX5DV
void rverbs_probe_mlx5(struct rverbs_probe *probe);
#else
static inline void
rverbs_probe_mlx5(struct rverbs_probe *probe)
{
	RTE_SET_USED(probe);
}
#endif

#endif /* RVERBS_PROBE_H */
