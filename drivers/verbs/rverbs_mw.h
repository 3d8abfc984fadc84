/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory windows, and what is known of them before a request reaches the device.
 *
 * The kernel's rdma_rxe (6.1 and 7.2 were tried) dies of a LOCAL_INV or an incoming SEND_WITH_INV
 * that names the key of a type 2 window which is not bound, and waits 50 s before it destroys a QP
 * that one is bound on. So a window has a state here: what it will be when all that was posted is
 * done. A request that does not suit it is not handed over; the device gets one in its place that
 * it refuses safely, an invalidation of key 0.
 *
 * What was posted may be flushed: then nobody knows whether it was executed, as a local operation
 * is before the completion of what stands in front of it. Such a window is UNKNOWN. It is made anew
 * at the device, which may be done in any state, before it is bound again, before its QP is reset
 * or destroyed, and when a deregistration fails. Of a QP that is known to have failed the state
 * does not follow what is posted.
 *
 * Invariant: a window's fields are written under the lock of its device's table, and so are the
 * table and the list. life counts the bindings posted, and a request notes the one that it is
 * about, so that its end does nothing to a later one. mr is held while it is set. busy counts
 * requests that name the window and have not completed; meanwhile it is not released. The
 * requests of a QP that concern windows are noted in a second ring, in the order of the first:
 * who posts writes entries and prod, who holds the lock of the send CQ takes them out.
 */

#ifndef RVERBS_MW_H
#define RVERBS_MW_H

#include "rverbs.h"

enum rverbs_mw_state {
	RVERBS_MW_FREE = 0, /* type 2: not bound */
	RVERBS_MW_BOUND,    /* type 1: may be bound, whether it is or not */
	RVERBS_MW_TAKEN,    /* a SEND_WITH_INV of this process is on its way to it */
	RVERBS_MW_UNKNOWN,
	RVERBS_MW_RENEWED, /* being made anew, or released */
	RVERBS_MW_GONE,    /* the device has none */
};

struct rverbs_mw {
	struct rmem_mw mw;
	struct ibv_mw *ibv; /* NULL: none */
	struct rverbs_qp *qp;
	struct rmem_mr *mr;
	const struct rmem_mr *maybe; /* type 1, UNKNOWN: what it may be bound to besides */
	uint32_t key;                /* of the binding posted last */
	uint32_t key_in_force;       /* type 1: of the binding that completed last */
	uint32_t life;
	uint32_t busy;
	uint8_t state;
	bool is_made;  /* the binding completed */
	bool is_fresh; /* nothing else was under way when it was posted, and the key is another */
	TAILQ_ENTRY(rverbs_mw) next;
};

/* What a request that concerns windows does at the device, and to which. */
enum rverbs_mw_kind {
	RVERBS_MW_BIND,     /* type 2 */
	RVERBS_MW_BIND_1,   /* type 1 */
	RVERBS_MW_INV,      /* LOCAL_INV */
	RVERBS_MW_SEND_INV, /* SEND_WITH_INV of a window of this process */
	RVERBS_MW_PASS,     /* SEND_WITH_INV to another */
	RVERBS_MW_BAD,      /* refused: RMEM_WC_MW_BIND_ERR */
	RVERBS_MW_DEAD,     /* posted to a QP that has failed */
};

struct rverbs_mw_op {
	uint32_t pos; /* in the ring of requests */
	uint8_t kind;
	uint32_t life;
	uint32_t key;     /* to give to the device */
	uint32_t old_key; /* of the window, and of the handle, before */
	uint32_t old_handle;
	struct rverbs_mw *mw; /* counted in busy, or NULL */
	struct rmem_mr *mr;   /* held, or NULL */
};

static inline struct rverbs_mw *
rverbs_mw_of(struct rmem_mw *mw)
{
	return (struct rverbs_mw *)mw;
}

/* rverbs_mw_table.c: windows of a device by the index of their key. */
#define RVERBS_MW_PAGES 4096u
#define RVERBS_MW_SLOTS 4096u

TAILQ_HEAD(rverbs_mw_list, rverbs_mw);

struct rverbs_mw_table {
	rte_ticketlock_t lock;
	struct rverbs_mw ***pages; /* NULL: no device */
	struct rverbs_mw_list list;
};

extern struct rverbs_mw_table rverbs_mw_tables[RMEM_MAX_DEVS];

int rverbs_mw_table_open(uint16_t dev_id);
void rverbs_mw_table_close(uint16_t dev_id);

static inline void
rverbs_mw_lock(uint16_t dev_id)
{
	rte_ticketlock_lock(&rverbs_mw_tables[dev_id].lock);
}

static inline void
rverbs_mw_unlock(uint16_t dev_id)
{
	rte_ticketlock_unlock(&rverbs_mw_tables[dev_id].lock);
}

/*
 * A thread that goes through requests keeps the lock from one to the next, as they mostly are about
 * windows of one device. *locked is that device, or -1; no more than one is ever held.
 */
static inline void
rverbs_mw_lock_next(int *locked, uint16_t dev_id)
{
	if (likely(*locked == dev_id))
		return;
	if (*locked >= 0)
		rverbs_mw_unlock((uint16_t)*locked);
	rverbs_mw_lock(dev_id);
	*locked = dev_id;
}

static inline void
rverbs_mw_unlock_last(int locked)
{
	if (locked >= 0)
		rverbs_mw_unlock((uint16_t)locked);
}

/* With the lock held. */
int rverbs_mw_insert(struct rverbs_mw *mw);
void rverbs_mw_remove(struct rverbs_mw *mw);
struct rverbs_mw *rverbs_mw_first(uint16_t dev_id);

static inline struct rverbs_mw *
rverbs_mw_find(uint16_t dev_id, uint32_t key)
{
	struct rverbs_mw ***pages = rverbs_mw_tables[dev_id].pages;
	struct rverbs_mw **page;

	if (pages == NULL)
		return NULL;
	page = pages[(key >> 8) / RVERBS_MW_SLOTS];
	return page != NULL ? page[(key >> 8) % RVERBS_MW_SLOTS] : NULL;
}

/* rverbs_mw.c */
int rverbs_mw_alloc(struct rmem_mw *mw);
int rverbs_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);
int rverbs_mw_dealloc(struct rmem_mw *mw);
/* Make a window anew at the device: it is not bound then. It is RENEWED, and counted in busy. */
int rverbs_mw_renew(struct rverbs_mw *mw);
/* The windows of a QP whose requests are forgotten: none stays UNKNOWN. */
int rverbs_mw_settle_qp(struct rverbs_qp *qp);
/* Those that may keep an MR, though they do not count as bound. */
int rverbs_mw_settle_mr(const struct rmem_mr *mr);
/* Whether a binding on the QP completed and stands. */
bool rverbs_mw_is_bound_on(const struct rverbs_qp *qp);

/* rverbs_mw_wr.c */
int rverbs_mw_ops_init(struct rverbs_mw_ops *ops, uint32_t depth);
/*
 * Note a request that passed its checks; what to hand over is in the entry. *locked as above: the
 * burst is handed over without.
 */
struct rverbs_mw_op *rverbs_mw_accept(
		struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos, int *locked);

/* A room for a note; rverbs_mw_ops_push() makes it known. */
static inline struct rverbs_mw_op *
rverbs_mw_ops_next(struct rverbs_qp *qp, uint32_t pos)
{
	struct rverbs_mw_op *op = &qp->mw_ops.ops[qp->mw_ops.prod & qp->mw_ops.mask];

	op->pos = pos;
	op->mw = NULL;
	op->mr = NULL;
	return op;
}

static inline void
rverbs_mw_ops_push(struct rverbs_qp *qp)
{
	__atomic_store_n(&qp->mw_ops.prod, qp->mw_ops.prod + 1, __ATOMIC_RELEASE);
}

static inline struct ibv_mw_bind_info
rverbs_mw_bind_info(const struct rmem_send_wr *wr)
{
	struct ibv_mw_bind_info info = {
			.mr = rverbs_mr_of(wr->bind_mw.mr)->ibv,
			.addr = wr->bind_mw.addr,
			.length = wr->bind_mw.length,
			.mw_access_flags = wr->bind_mw.access,
	};

	return info;
}

/* Write a request to an extended QP, or to an entry of a chain. */
static inline void
rverbs_mw_write_ex(
		struct ibv_qp_ex *ex, const struct rmem_send_wr *wr, const struct rverbs_mw_op *op)
{
	struct ibv_mw_bind_info info;

	if (wr->opcode == RMEM_WR_SEND_WITH_INV) {
		ibv_wr_send_inv(ex, op->key);
	} else if (op->kind == RVERBS_MW_BIND) {
		info = rverbs_mw_bind_info(wr);
		ibv_wr_bind_mw(ex, op->mw->ibv, op->key, &info);
	} else {
		ibv_wr_local_inv(ex, op->key);
	}
}

void rverbs_mw_write_chain(struct ibv_send_wr *to, const struct rmem_send_wr *wr,
		const struct rverbs_mw_op *op);
/*
 * The next binding of the window starts from the key of this one, which providers look for in
 * ibv_mw: it is written once the request is, and before the completion can come; or when a chain
 * was handed over, of which the device took it or not, with the window counted in busy till then.
 */
static inline void
rverbs_mw_written(const struct rverbs_mw_op *op)
{
	if (op->kind == RVERBS_MW_BIND)
		op->mw->ibv->rkey = op->key;
}
void rverbs_mw_sent(struct rverbs_mw *mw, uint32_t key, bool is_taken);
/* The device did not take the requests from pos on. */
void rverbs_mw_undo(struct rverbs_qp *qp, uint32_t pos);
/* Requests before end are done, all but the last well. May correct the status of that. */
void rverbs_mw_done(struct rverbs_qp *qp, uint32_t end, uint8_t *status);
/* Requests that were not completed are forgotten. */
void rverbs_mw_forget(struct rverbs_qp *qp);
/* A peer invalidated the key. */
void rverbs_mw_invalidated(struct rverbs_qp *qp, uint32_t key);

#endif /* RVERBS_MW_H */
