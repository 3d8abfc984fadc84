/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Engines: with engine=<n>, n services on service lcores execute the send queues, and a post only
 * queues requests. Each QP belongs to one engine. Without engines these functions have no effect.
 */

#ifndef RSOFT_ENGINE_H
#define RSOFT_ENGINE_H

#include "base/rsoft.h"

/* Register the services and map them to service lcores. */
int rsoft_engines_start(struct rsoft_dev *dev, const char *name);
void rsoft_engines_stop(struct rsoft_dev *dev);

/* Assign a QP to the engine with the fewest QPs, and remove it. */
void rsoft_engine_add_qp(struct rsoft_qp *qp);
void rsoft_engine_remove_qp(struct rsoft_qp *qp);

/* Prevent the engine of a QP from executing. */
void rsoft_engine_lock_qp(struct rsoft_qp *qp);
void rsoft_engine_unlock_qp(struct rsoft_qp *qp);

/* Prevent the engine of a QP, and all threads, from executing its send queue. */
static inline void
rsoft_engine_lock_sq(struct rsoft_qp *qp)
{
	rsoft_engine_lock_qp(qp);
	rsoft_lock(&qp->sq.lock);
}

static inline void
rsoft_engine_unlock_sq(struct rsoft_qp *qp)
{
	rte_ticketlock_unlock(&qp->sq.lock);
	rsoft_engine_unlock_qp(qp);
}

#endif /* RSOFT_ENGINE_H */
