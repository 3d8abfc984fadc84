/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Counters of completed requests: rmem_qp_attach_counter().
 *
 * Invariant: counts and counters of a QP change in RESET and INIT only, under its ctl_lock, so that
 * a thread which executes its requests, or those of its peer, reads them without one.
 */

#ifndef RSOFT_COUNT_H
#define RSOFT_COUNT_H

#include <stdbool.h>

#include "../base/rsoft.h"

#define RSOFT_COUNT_SENDS  (RMEM_QP_COUNT_SEND | RMEM_QP_COUNT_RDMA_READ | RMEM_QP_COUNT_RDMA_WRITE)
#define RSOFT_COUNT_REMOTE (RMEM_QP_COUNT_REMOTE_RDMA_READ | RMEM_QP_COUNT_REMOTE_RDMA_WRITE)

/* Count a request of a kind, after its data was written, unless the QP has no counter for it. */
void rsoft_count(const struct rsoft_qp *qp, uint32_t kind, bool is_ok, uint64_t length);

/* Count a request of the send queue; kinds without a counter are not. */
void rsoft_count_send(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, bool is_ok,
		uint64_t length);

/* Count a request of the peer. */
void rsoft_count_remote(const struct rsoft_qp *qp, uint8_t opcode, bool is_ok, uint64_t length);

#endif /* RSOFT_COUNT_H */
