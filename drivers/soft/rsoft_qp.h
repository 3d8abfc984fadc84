/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Queue pairs: lifetime, state, and connections. */

#ifndef RSOFT_QP_H
#define RSOFT_QP_H

#include <stdbool.h>

#include "rsoft.h"

int rsoft_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf);
int rsoft_qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn);
int rsoft_qp_query(struct rmem_qp *qp, struct rmem_qp_attr *attr);
int rsoft_qp_set_error(struct rmem_qp *qp);
int rsoft_qp_reset(struct rmem_qp *qp);
int rsoft_qp_destroy(struct rmem_qp *qp);

/* The QP at an address of a software device; NULL when there is none. Under the domain's lock. */
struct rsoft_qp *rsoft_qp_lookup(const struct rmem_qp_addr *addr);

/* To ERR from RTS, with the receives flushed. Without any rq.lock. */
void rsoft_qp_fail(struct rsoft_qp *qp);

/* To ERR from RTS; true if the caller made the transition. */
static inline bool
rsoft_qp_to_err(struct rsoft_qp *qp)
{
	uint32_t state = RMEM_QPS_RTS;

	return __atomic_compare_exchange_n(&qp->state, &state, RMEM_QPS_ERR, false,
			__ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

#endif /* RSOFT_QP_H */
