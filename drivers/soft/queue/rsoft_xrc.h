/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC: SRQs by number, and the SRQ of a request.
 *
 * An XRC_RECV QP has no PD, SRQ or CQ of its own. For each request, the executor selects the SRQ
 * that the request names, and sets rq.srq, recv_cq and pd of the QP accordingly until the next
 * request. The receive queue of the QP has a slot for the receive of a message (rsoft_srq.h).
 *
 * Invariants:
 * - rq.srq and recv_cq change under rq.lock, and only while the slot is empty. They are read under
 *   rq.lock, except that the executor reads rq.srq without it. Only the executor uses pd. One
 *   thread at a time executes the requests of the peer, which is one QP.
 * - An SRQ is removed from the table first. After a grace period no request selects it, and it is
 *   removed from the QPs; after another grace period no lcore uses it.
 */

#ifndef RSOFT_XRC_H
#define RSOFT_XRC_H

#include "rsoft_rq.h"

/* Bits of an SRQ number. */
#define RSOFT_XRC_MASK UINT32_C(0xffffff)

/* A handle of an XRC domain. */
struct rsoft_xrcd {
	struct rmem_xrcd xrcd;
	int socket; /* by which other processes find the domain of a file; -1: none */
	LIST_ENTRY(rsoft_xrcd) next; /* in rsoft_dev::xrcds, if it has a file */
};

/* How the number of an SRQ is reserved among the processes of its domain. */
struct rsoft_xrc_claim {
	/* 0, -EADDRINUSE, or another errno, which is logged. */
	int (*open)(struct rsoft_srq *srq);
	void (*close)(struct rsoft_srq *srq);
};

/* Create and free the table of a device. */
int rsoft_xrc_init(struct rsoft_dev *dev, int socket_id);
void rsoft_xrc_fini(struct rsoft_dev *dev);

/* Create and destroy SRQs as in rsoft_srq.h; an XRC SRQ is also added to the table. */
int rsoft_xrc_srq_create(struct rmem_srq *base, const struct rmem_srq_conf *conf,
		const struct rsoft_xrc_claim *claim);
int rsoft_xrc_srq_destroy(struct rmem_srq *base);
int rsoft_xrc_srq_num_get(struct rmem_srq *srq, uint32_t *srq_num);

/* Whether a QP is an XRC_RECV QP of the domain of a file; NULL is allowed. */
static inline bool
rsoft_xrc_is_shared(const struct rsoft_qp *qp)
{
	return qp != NULL && qp->domain != NULL && qp->domain->fd >= 0;
}

/* Slow path of rsoft_xrc_select(): the last request named another SRQ. */
bool rsoft_xrc_switch(struct rsoft_qp *qp, struct rsoft_srq *srq);

/* Find an SRQ by number in the domain of an XRC_RECV QP; NULL if there is none. Called as
 * rsoft_xrc_select(). */
static inline struct rsoft_srq *
rsoft_xrc_find(const struct rsoft_qp *qp, uint32_t number)
{
	const struct rsoft_dev *dev = qp->dev;
	struct rsoft_srq *srq =
			__atomic_load_n(&dev->xrc_srqs[number & dev->xrc_mask], __ATOMIC_ACQUIRE);

	if (unlikely(srq == NULL || srq->number != (number & RSOFT_XRC_MASK) ||
			    srq->xrcd != qp->xrcd))
		return NULL;
	return srq;
}

/*
 * Select the SRQ of a request to an XRC_RECV QP. False: its domain has no SRQ of this number, or a
 * message to another SRQ has not ended. From inside of rsoft_grace_enter().
 */
static inline bool
rsoft_xrc_select(struct rsoft_qp *qp, uint32_t number)
{
	struct rsoft_srq *srq = rsoft_xrc_find(qp, number);

	return likely(srq != NULL) &&
			(likely(srq == __atomic_load_n(&qp->rq.srq, __ATOMIC_RELAXED)) ||
					rsoft_xrc_switch(qp, srq));
}

#endif /* RSOFT_XRC_H */
