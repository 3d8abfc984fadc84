/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The part of a QP that is private to the class. Not installed.
 */

#ifndef RMEM_QP_PRIV_H
#define RMEM_QP_PRIV_H

#include <stdint.h>

#include <rte_common.h>

#include "rmem_priv.h"

/** Follows the driver's part of a QP. */
struct rmem_qp_more {
	struct rmem_qp_error last_error;
	struct rmem_obj *parent; /* the PD, or the XRC domain */
	/* References to an XRC_RECV QP; both 0: it is being destroyed. Under the lists' lock. */
	uint32_t nb_opens; /* of this process: one, and those of rmem_qp_get() */
	uint32_t nb_holds; /* of other processes: rmem_qp_hold() */
	uint32_t xrcd;     /* number of the domain, or 0 */
	/* By bit of enum rmem_qp_count: a counter with a reference, or NULL. */
	struct rmem_counter *counters[RMEM_QP_NB_COUNTS];
};

static inline struct rmem_qp_more *
rmem_qp_more_of(const struct rmem_qp *qp)
{
	return (struct rmem_qp_more *)((const struct rmem_qp_drv *)qp)->last_error;
}

/** Name of a state of a QP: enum rmem_qp_state. */
static inline const char *
rmem_qp_state_str(uint32_t state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < RTE_DIM(names) ? names[state] : "unknown";
}

/** Whether another process executes the calls of the QP. */
static inline bool
rmem_qp_is_opened(const struct rmem_qp *qp)
{
	return ((const struct rmem_qp_drv *)qp)->is_opened == RMEM_QP_OPENED_CALLS;
}

/** Let the process of an opened QP execute a call. */
static inline int
rmem_qp_forward(const struct rmem_qp *qp, struct rmem_qp_call *call)
{
	struct rmem_qp *own = (struct rmem_qp *)(uintptr_t)qp;

	return RMEM_OP(own, xrc->share->qp_call, own, call);
}

/** Release the references of a QP to its counters. */
void rmem_qp_counter_put(const struct rmem_qp *qp);

#endif /* RMEM_QP_PRIV_H */
