/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion queues: a ring of completions, each with its number, so that one cache line
 * carries both the completion and the news of it.
 *
 * A producer reserves places by adding to prod, writes each completion, and stores its
 * number (place + 1) in rmem_wc::reserved with release. The consumer loads that number with
 * acquire, copies, and stores cons with release once for all it took. A producer looks at
 * cons only when its last view of it says that the ring is full. A completion that finds it
 * full is lost: overrun.
 */

#ifndef RSOFT_CQ_H
#define RSOFT_CQ_H

#include <stdbool.h>

#include "rsoft.h"

int rsoft_cq_create(struct rmem_cq *cq, const struct rmem_cq_conf *conf);
int rsoft_cq_destroy(struct rmem_cq *cq);
int rsoft_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc);

static inline struct rsoft_cq *
rsoft_cq_of(struct rmem_cq *cq)
{
	return (struct rsoft_cq *)cq;
}

/* Whether there is room up to the given place. */
static inline bool
rsoft_cq_has_room(struct rsoft_cq *cq, uint32_t pos)
{
	uint32_t cons = __atomic_load_n(&cq->cons_seen, __ATOMIC_ACQUIRE);

	if (likely(pos - cons <= cq->mask))
		return true;
	cons = __atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE);
	__atomic_store_n(&cq->cons_seen, cons, __ATOMIC_RELEASE);
	return pos - cons <= cq->mask;
}

/* Reserve n places; the first. The consumer waits there until each is written. */
static inline uint32_t
rsoft_cq_reserve(struct rsoft_cq *cq, uint32_t n)
{
	return __atomic_fetch_add(&cq->prod, n, __ATOMIC_RELAXED);
}

/* Write n completions to their places. False: overrun, some are lost. */
static inline bool
rsoft_cq_write(struct rsoft_cq *cq, uint32_t at, const struct rmem_wc *wc, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++, at++) {
		struct rmem_wc *e = &cq->ring[at & cq->mask];

		if (unlikely(!rsoft_cq_has_room(cq, at))) {
			__atomic_store_n(&cq->overrun, 1, __ATOMIC_RELEASE);
			return false;
		}
		e->wr_id = wc[i].wr_id;
		e->status = wc[i].status;
		e->opcode = wc[i].opcode;
		e->flags = wc[i].flags;
		e->qp_num = wc[i].qp_num;
		e->byte_len = wc[i].byte_len;
		e->imm_data = wc[i].imm_data;
		e->vendor_err = wc[i].vendor_err;
		__atomic_store_n(&e->reserved, at + 1, __ATOMIC_RELEASE);
	}
	return true;
}

/* Whether the completion at a place was polled. */
static inline bool
rsoft_cq_is_polled(const struct rsoft_cq *cq, uint32_t pos)
{
	return (int32_t)(__atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE) - pos) > 0;
}

#endif /* RSOFT_CQ_H */
