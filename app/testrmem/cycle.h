/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The life of a buffer that is granted to a peer, for modes fastreg, mw, umr and copy.
 *
 * A buffer is taken from the pool. Its owner, QP b, posts the request that grants access (grant.h).
 * The peer, QP a, WRITEs through the new rkey. The owner posts LOCAL_INV. When that has completed,
 * the buffer is put back. A burst of buffers is processed together, as a train: each step is one
 * post whose last request is signaled. A pair has depth / burst trains, so that all steps run
 * concurrently.
 *
 * The new rkey is used after the request has completed, since the WRITE is on another QP.
 */

#ifndef CYCLE_H
#define CYCLE_H

#include "grant.h"

/** A burst of buffers in progress. */
struct cycle_train {
	uint32_t index;
	uint32_t stage;
	uint32_t nb;          /**< Buffers in it. */
	uint32_t nb_written;  /**< Buffers that the peer has written. */
	uint64_t offset;      /**< File offset of the first block (copy). */
	struct rmem_sge *src; /**< Sources of the WRITEs; the length may be shortened. */
	struct rmem_sge *dst; /**< The buffers. */
	struct testrmem_grant *grant;
	struct rmem_send_wr *bind;
	struct rmem_send_wr *write;
	struct rmem_send_wr *inv;
};

/** Operations of an engine on a train. */
struct cycle_ops {
	/**
	 * Select at most nb blocks in train->src; returns their number, 0 if there are no more, or
	 * -errno.
	 */
	int (*fill)(struct testrmem_pair *pair, struct cycle_train *train, uint32_t nb);
	/**
	 * Process the blocks in train->dst, whose keys are revoked. 0 or -errno. NULL: nothing to
	 * do.
	 */
	int (*arrived)(struct testrmem_pair *pair, struct cycle_train *train);
	/**
	 * The peer on another host has access to the buffers, and must WRITE: notify it. 0 or
	 * -errno. NULL: QP a WRITEs.
	 */
	int (*announce)(struct testrmem_pair *pair, struct cycle_train *train);
	/** The message was sent, or the peer reports its WRITEs: cycle_written(). 0 or -errno. */
	int (*received)(struct testrmem_pair *pair, const struct rmem_wc *wc);
	/** Whether bindings must wait; NULL: never. */
	bool (*is_held)(const struct testrmem_pair *pair);
	bool is_checked; /**< Compare all buffers that arrive. */
};

int cycle_setup(struct testrmem_pair *pair, const struct cycle_ops *ops);
int cycle_burst(struct testrmem_pair *pair, bool is_draining);
/** Send one more train and compare what arrived. */
int cycle_verify(struct testrmem_pair *pair);
/** Revoke all access: QPs on which windows are bound can't be destroyed. */
void cycle_disconnect(struct testrmem_pair *pair);
void cycle_teardown(struct testrmem_pair *pair);
/** The peer wrote to the first nb buffers of a train: 0 or -errno with a message. */
int cycle_written(struct testrmem_pair *pair, uint32_t index, uint32_t nb);

#endif /* CYCLE_H */
