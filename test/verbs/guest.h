/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by perf tests on an RDMA device: a QP that is connected to itself, with an MR, used by
 * the driver and by hand; and the clock for bursts.
 *
 * On rdma_rxe in an emulated guest the times mean nothing, their ratio does. Each burst finds an
 * idle device: newer kernels send from a thread that is still awake for an immediate next post,
 * and must be woken for a later one.
 */

#ifndef GUEST_H
#define GUEST_H

#include "../../drivers/verbs/rverbs_mw.h"
#include "../perf/perf_row.h"
#include "../test.h"

#define GUEST_PAGE 4096u /* bytes of buf for each request of a burst */

struct guest {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr; /* all of buf; windows may be bound to it */
	uint8_t *buf;       /* PERF_BURST pages */
};

extern struct guest guest;

/* The device is verbs0, with the arguments that RMEM_TEST_ARGS has. */
void guest_open(void);
void guest_close(void);

/* A window allocated with libibverbs, not with the driver, or NULL. */
struct ibv_mw *guest_ibv_mw(void);
/* Bind it to a page with ibv_wr_*; its new rkey. */
uint32_t guest_bind(struct ibv_mw *mw, unsigned int page, unsigned int flags);
/* Until nb requests posted directly have completed: the worst status, or -1 if none did. */
int guest_wait(unsigned int nb);

/*
 * Best time of one of PERF_BURST operations, in some bursts: the guest's processors are taken
 * away for longer than a burst. The function returns a status.
 */
double guest_best(int (*burst)(void));

#endif /* GUEST_H */
