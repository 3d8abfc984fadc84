/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Entry points of the fast path.
 *
 * Inside: the operations of the driver: device, QPs, posts and polls, engines, counters, the
 *   audit.
 * Callers: lib/rmem, by the operations of rsoft_driver (rsoft_dev.c), and env.
 * Not known here: other drivers, applications, and the libraries above the class.
 */

#ifndef RSOFT_POST_H
#define RSOFT_POST_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "queue/rsoft_inline.h"

int rsoft_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr);
int rsoft_post_recv(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr);
int rsoft_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc);

/* rmem_mw_bind(), after the checks of the class. */
int rsoft_post_bind_mw(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);

/*
 * Receive from the wire, and retry all pending QPs of the device. Return whether the wire received
 * packets, or has packets left to send.
 */
bool rsoft_post_progress(struct rsoft_dev *dev);

/* Execute queued requests until one must wait. Called by the holder of sq.lock, or by the
 * engine. */
void rsoft_post_drain(struct rsoft_qp *qp, unsigned int lcore);

/* Copy an entry, word by word (rsoft_cq_store()). */
static __rte_always_inline void
post_take(struct rmem_wc *wc, const struct rsoft_cqe *e)
{
	const uint64_t info = __atomic_load_n(&e->info, __ATOMIC_RELAXED);
	const uint64_t data = __atomic_load_n(&e->data, __ATOMIC_RELAXED);
	uint8_t *to = (uint8_t *)wc;

	wc->wr_id = __atomic_load_n(&e->wr_id, __ATOMIC_RELAXED);
	memcpy(to + offsetof(struct rmem_wc, status), &info, sizeof(info));
	memcpy(to + offsetof(struct rmem_wc, byte_len), &data, sizeof(data));
	wc->vendor_err = e->vendor_err;
}

/* Poll up to nb_wc completions; return their number, or -EIO after an overrun. For the consumer. */
static __rte_always_inline int
rsoft_post_poll(struct rsoft_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	uint32_t cons = cq->cons;
	int n;

	for (n = 0; n < nb_wc; n++, cons++) {
		const struct rsoft_cqe *e = &cq->ring[cons & cq->mask];

		if (__atomic_load_n(&e->number, __ATOMIC_ACQUIRE) != cons + 1)
			break;
		post_take(&wc[n], e);
		wc[n].reserved = 0;
		if (likely((wc[n].flags & (RSOFT_WC_INLINE | RSOFT_WC_VOID)) == 0))
			continue;
		if (wc[n].flags & RSOFT_WC_VOID)
			n--;
		else
			rsoft_inline_take(cq, cons, &wc[n]);
	}
	if (cons != cq->cons) {
		if (unlikely(cq->times != NULL))
			rsoft_cq_take_times(cq, cons);
		__atomic_store_n(&cq->cons, cons, __ATOMIC_RELEASE);
	}
	if (unlikely(n == 0 && nb_wc != 0 && __atomic_load_n(&cq->overrun, __ATOMIC_ACQUIRE)))
		return -EIO;
	return n;
}

#endif /* RSOFT_POST_H */
