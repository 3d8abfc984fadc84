/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Completion queues: create, destroy, attach; see rsoft_cq.h. */

#include <errno.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "rsoft_cq.h"
#include "rsoft_grace.h"

int
rsoft_cq_create(struct rmem_cq *base, const struct rmem_cq_conf *conf)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_cq *cq = rsoft_cq_of(base);
	uint32_t size = rte_align32pow2(conf->nb_cqe);

	cq->ring = rte_zmalloc_socket("rsoft_cq", size * sizeof(*cq->ring), RTE_CACHE_LINE_SIZE,
			(int)(int64_t)dev->args.socket);
	if (cq->ring == NULL) {
		RSOFT_LOG(ERR, "CQ: no memory: %u completions", size);
		return -ENOMEM;
	}
	cq->mask = size - 1;
	cq->nb_fast = base->channel == NULL ? size : 0;
	base->nb_cqe = size;
	return 0;
}

/*
 * A completion is hidden while one before it is not written: its event may come too early. So the
 * producer that then finds the next entry written notifies in its place, as for a solicited one,
 * also for a VOID. Argument: each producer stores its entry, then, after a full fence, loads the
 * next. Of the entries up to a completion that has to notify, take the one whose fence is the last.
 * All are visible after that fence, and its producer notifies: it is that completion, or it finds
 * the next one written.
 */
static void
notify(struct rsoft_cq *cq, uint32_t at, bool is_void, bool is_solicited)
{
	const struct rsoft_cqe *next = &cq->ring[(at + 1) & cq->mask];

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&next->number, __ATOMIC_ACQUIRE) == at + 2)
		rmem_cq_notify(&cq->cq, true);
	else if (!is_void)
		rmem_cq_notify(&cq->cq, is_solicited);
}

bool
rsoft_cq_write_slow(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe)
{
	uint16_t flags = (uint16_t)(cqe->what >> RSOFT_WC_SHIFT(flags));
	uint8_t status = (uint8_t)(cqe->what >> RSOFT_WC_SHIFT(status));

	if (!rsoft_cq_has_room(cq, at)) {
		__atomic_store_n(&cq->overrun, 1, __ATOMIC_RELEASE);
		if (cq->cq.channel != NULL)
			rmem_cq_notify(&cq->cq, true);
		return false;
	}
	rsoft_cq_store(cq, at, cqe);
	if (cq->cq.channel != NULL)
		notify(cq, at, flags & RSOFT_WC_VOID,
				(flags & RMEM_WC_SOLICITED) || status != RMEM_WC_SUCCESS);
	return true;
}

int
rsoft_cq_destroy(struct rmem_cq *base)
{
	rte_free(rsoft_cq_of(base)->messages);
	rte_free(rsoft_cq_of(base)->ring);
	return 0;
}

void
rsoft_cq_attach(struct rsoft_cq *cq)
{
	__atomic_fetch_add(&cq->nb_producers, 1, __ATOMIC_SEQ_CST);
	rsoft_grace_wait();
}

void
rsoft_cq_detach(struct rsoft_cq *cq)
{
	__atomic_fetch_sub(&cq->nb_producers, 1, __ATOMIC_RELEASE);
}

void
rsoft_cq_add_messages(struct rsoft_cq *cq)
{
	struct rsoft_dev *dev = rsoft_dev_of(&cq->cq.obj);
	struct rsoft_inline *messages, *none = NULL;

	if (__atomic_load_n(&cq->messages, __ATOMIC_ACQUIRE) != NULL)
		return;
	messages = rte_zmalloc_socket("rsoft_messages", (cq->mask + 1) * sizeof(*messages),
			sizeof(*messages), (int)(int64_t)dev->args.socket);
	/* The thread of another QP may have allocated it concurrently. */
	if (!__atomic_compare_exchange_n(&cq->messages, &none, messages, false, __ATOMIC_ACQ_REL,
			    __ATOMIC_ACQUIRE))
		rte_free(messages);
}
