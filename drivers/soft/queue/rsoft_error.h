/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The last error of a QP, for rmem_qp_stats_get() and telemetry. Flushes are not errors. */

#ifndef RSOFT_ERROR_H
#define RSOFT_ERROR_H

#include "../base/rsoft.h"

/* A request failed. Call before the references of a queued request are released. */
void rsoft_error_send(struct rsoft_qp *qp, const struct rmem_send_wr *wr, int status,
		uint32_t vendor_err);

/* A request of the peer was refused without consuming a receive. */
void rsoft_error_peer(struct rsoft_qp *qp, const struct rmem_send_wr *wr, int status,
		uint32_t vendor_err);

/* A receive failed; key is the key to invalidate, or 0 to find the key in its nb SGEs. */
void rsoft_error_recv(struct rsoft_qp *qp, const struct rmem_sge *sge, uint32_t nb, uint64_t wr_id,
		int status, uint32_t vendor_err, uint32_t key);

#endif /* RSOFT_ERROR_H */
