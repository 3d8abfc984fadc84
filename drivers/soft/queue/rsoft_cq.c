/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Completion queues: create, resize, destroy, attach; see rsoft_cq.h. */

#include <errno.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "rsoft_cq.h"
#include "../mem/rsoft_grace.h"

static struct rsoft_cqe *
new_ring(const struct rsoft_dev *dev, uint32_t size)
{
	struct rsoft_cqe *ring = rte_zmalloc_socket("rsoft_cq", size * sizeof(*ring),
			RTE_CACHE_LINE_SIZE, (int)(int64_t)dev->args.socket);

	if (ring == NULL)
		RSOFT_LOG(ERR, "CQ: no memory: %u completions", size);
	return ring;
}

/* Allocate the timestamps: of the entries, then of the completions of a poll. */
static uint64_t *
new_times(const struct rsoft_dev *dev, uint32_t size)
{
	uint64_t *times = rte_zmalloc_socket("rsoft_times", 2 * (size_t)size * sizeof(*times),
			RTE_CACHE_LINE_SIZE, (int)(int64_t)dev->args.socket);

	if (times == NULL)
		RSOFT_LOG(ERR, "CQ: no memory: %u timestamps", size);
	return times;
}

/* Number of entries that are written without rsoft_cq_write_slow(). */
static uint32_t
nb_fast(const struct rsoft_cq *cq)
{
	return cq->cq.channel == NULL && cq->times == NULL ? cq->mask + 1 : 0;
}

int
rsoft_cq_create(struct rmem_cq *base, const struct rmem_cq_conf *conf)
{
	struct rsoft_cq *cq = rsoft_cq_of(base);
	uint32_t size = rte_align32pow2(conf->nb_cqe);

	cq->ring = new_ring(rsoft_dev_of(&base->obj), size);
	if (cq->ring == NULL)
		return -ENOMEM;
	if (conf->flags & RMEM_CQ_TIMESTAMP) {
		cq->times = new_times(rsoft_dev_of(&base->obj), size);
		if (cq->times == NULL) {
			rte_free(cq->ring);
			return -ENOMEM;
		}
		base->timestamps = cq->times + size;
	}
	rte_ticketlock_init(&cq->lock);
	rte_ticketlock_init(&cq->ctl_lock);
	cq->mask = size - 1;
	cq->nb_fast = nb_fast(cq);
	cq->nb_producers = conf->flags & RMEM_CQ_IGNORE_OVERRUN ? RSOFT_CQ_IGNORES : 0;
	base->nb_cqe = size;
	return 0;
}

/*
 * Notify the CQ of an entry. A completion is not visible while an earlier entry is not written, so
 * its event may come too early. Therefore a producer that finds the next entry already written also
 * notifies, as for a solicited completion, even for a VOID entry.
 * Proof: each producer stores its entry and, after a full fence, loads the next. Among the entries
 * up to a completion that has to notify, consider the entry whose fence is last. After that fence
 * all of them are visible, and its producer notifies: it either wrote that completion, or found the
 * next entry written.
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

void
rsoft_cq_lose(struct rsoft_cq *cq)
{
	__atomic_fetch_add(&cq->nb_lost, 1, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&cq->overrun, 1, __ATOMIC_RELEASE) == 0)
		rmem_cq_async_event(&cq->cq, RMEM_ASYNC_CQ_ERR);
	if (cq->cq.channel != NULL)
		rmem_cq_notify(&cq->cq, true);
}

uint32_t
rsoft_cq_part_slow(struct rsoft_cq *cq, uint32_t n)
{
	uint32_t used, size;

	rte_ticketlock_lock(&cq->lock);
	size = cq->mask + 1;
	used = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED) -
			__atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE);
	rte_ticketlock_unlock(&cq->lock);
	return used < size ? RTE_MIN(size - used, n) : 1;
}

/* Lose a completion for which there is no entry. True: the CQ ignores this. */
static bool
lose(struct rsoft_cq *cq, bool is_void)
{
	if (!rsoft_cq_ignores_overrun(cq)) {
		rsoft_cq_lose(cq);
		return false;
	}
	if (!is_void)
		__atomic_fetch_add(&cq->nb_lost, 1, __ATOMIC_RELAXED);
	return true;
}

static bool
write_checked(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe)
{
	uint16_t flags = (uint16_t)(cqe->info >> RSOFT_WC_SHIFT(flags));
	uint8_t status = (uint8_t)(cqe->info >> RSOFT_WC_SHIFT(status));

	if (!rsoft_cq_has_space(cq, at, cq->mask + 1))
		return lose(cq, (flags & RSOFT_WC_VOID) != 0);
	if (cq->times != NULL)
		cq->times[at & cq->mask] = rsoft_clock();
	rsoft_cq_store(cq, at, cqe);
	if (cq->cq.channel != NULL)
		notify(cq, at, flags & RSOFT_WC_VOID,
				(flags & RMEM_WC_SOLICITED) || status != RMEM_WC_SUCCESS);
	return true;
}

bool
rsoft_cq_write_locked(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe)
{
	bool is_ok;

	rte_ticketlock_lock(&cq->lock);
	is_ok = write_checked(cq, at, cqe);
	rte_ticketlock_unlock(&cq->lock);
	return is_ok;
}

bool
rsoft_cq_write_slow(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe)
{
	if (unlikely(__atomic_load_n(&cq->is_resizing, __ATOMIC_ACQUIRE)))
		return rsoft_cq_write_locked(cq, at, cqe);
	return write_checked(cq, at, cqe);
}

void
rsoft_cq_take_times(struct rsoft_cq *cq, uint32_t end)
{
	const uint64_t is_void = (uint64_t)RSOFT_WC_VOID << RSOFT_WC_SHIFT(flags);
	uint64_t *to = cq->times + cq->mask + 1;
	uint32_t at;

	for (at = cq->cons; at != end; at++) {
		if ((cq->ring[at & cq->mask].info & is_void) == 0)
			*to++ = cq->times[at & cq->mask];
	}
}

/* Number the entries from cons on as in the previous round. The caller ensures that cons does not
 * change. */
static void
number_ring(const struct rsoft_cq *cq, struct rsoft_cqe *ring, uint32_t size)
{
	uint32_t i, at = cq->cons;

	for (i = 0; i < size; i++, at++)
		ring[at & (size - 1)].number = at + 1 - size;
}

/* A ring with the timestamps of its entries. */
struct ring {
	struct rsoft_cqe *cqes;
	uint64_t *times;
};

static void
free_ring(const struct ring *ring)
{
	rte_free(ring->times);
	rte_free(ring->cqes);
}

/* Copy nb completions from cons on to a numbered ring, except entries that are only reserved. */
static void
copy_ring(const struct rsoft_cq *cq, const struct ring *ring, uint32_t size, uint32_t nb)
{
	uint32_t i, at = cq->cons;

	for (i = 0; i < nb; i++, at++) {
		const struct rsoft_cqe *from = &cq->ring[at & cq->mask];

		if (from->number != at + 1)
			continue;
		ring->cqes[at & (size - 1)] = *from;
		if (ring->times != NULL)
			ring->times[at & (size - 1)] = cq->times[at & cq->mask];
	}
}

/* Replace the ring of the CQ. Under the locks. */
static int
swap_ring(struct rsoft_cq *cq, struct ring *ring, uint32_t nb_cqe)
{
	uint32_t nb, size = rte_align32pow2(nb_cqe);

	if (cq->overrun) {
		RSOFT_LOG(ERR, "CQ: not resized: it has an overrun");
		return -EIO;
	}
	(void)rsoft_cq_peek(cq);
	nb = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED) - cq->cons;
	if (nb > nb_cqe) {
		RSOFT_LOG(ERR, "CQ: nb_cqe out of range: %u (%u completions outstanding)", nb_cqe,
				nb);
		return -EINVAL;
	}
	copy_ring(cq, ring, size, nb);
	__atomic_store_n(&cq->cons_cached, cq->cons, __ATOMIC_RELEASE);
	RTE_SWAP(cq->ring, ring->cqes);
	RTE_SWAP(cq->times, ring->times);
	if (cq->times != NULL)
		cq->cq.timestamps = cq->times + size;
	cq->mask = size - 1;
	cq->cq.nb_cqe = size;
	return 0;
}

static int
make_ring(const struct rsoft_cq *cq, struct ring *ring, uint32_t size)
{
	const struct rsoft_dev *dev = rsoft_dev_of(&cq->cq.obj);

	ring->times = NULL;
	ring->cqes = new_ring(dev, size);
	if (ring->cqes == NULL || cq->times == NULL)
		return ring->cqes == NULL ? -ENOMEM : 0;
	ring->times = new_times(dev, size);
	if (ring->times != NULL)
		return 0;
	rte_free(ring->cqes);
	return -ENOMEM;
}

int
rsoft_cq_resize(struct rmem_cq *base, uint32_t nb_cqe)
{
	struct rsoft_cq *cq = rsoft_cq_of(base);
	struct ring ring;
	int ret = make_ring(cq, &ring, rte_align32pow2(nb_cqe));

	if (ret != 0)
		return ret;
	rte_ticketlock_lock(&cq->ctl_lock);
	/* Another process polls the ring without grace periods. */
	if (cq->nb_claims != 0) {
		rte_ticketlock_unlock(&cq->ctl_lock);
		free_ring(&ring);
		RSOFT_LOG(ERR, "CQ: not resized: a process has claimed a QP that completes to it");
		return -EBUSY;
	}
	/* Producers wait only from here on, for a time that does not depend on the size. */
	number_ring(cq, ring.cqes, rte_align32pow2(nb_cqe));
	__atomic_store_n(&cq->is_resizing, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&cq->nb_fast, 0, __ATOMIC_RELEASE);
	rsoft_grace_wait();
	rte_ticketlock_lock(&cq->lock);
	ret = swap_ring(cq, &ring, nb_cqe);
	rte_ticketlock_unlock(&cq->lock);
	__atomic_store_n(&cq->nb_fast, nb_fast(cq), __ATOMIC_RELEASE);
	__atomic_store_n(&cq->is_resizing, 0, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&cq->ctl_lock);
	free_ring(&ring);
	return ret;
}

/*
 * Whether a completion of an inline message was not polled, also of one that was delivered early or
 * flushed: the poll still looks it up. The caller ensures that none is put.
 */
static bool
has_messages(const struct rsoft_cq *cq)
{
	const uint64_t is_inline = (uint64_t)RSOFT_WC_INLINE << RSOFT_WC_SHIFT(flags);
	uint32_t at = __atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE);
	uint32_t i, nb = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED) - at;
	const struct rsoft_cqe *cqe;

	for (i = 0; i < RTE_MIN(nb, cq->mask + 1); i++) {
		cqe = rsoft_cq_entry(cq, at + i);
		if (cqe != NULL && (cqe->info & is_inline) != 0)
			return true;
	}
	return false;
}

bool
rsoft_cq_claim(struct rsoft_cq *cq, uint32_t process)
{
	bool is_claimed;

	rte_ticketlock_lock(&cq->ctl_lock);
	if (cq->nb_claims != 0 && cq->process != process) {
		rte_ticketlock_unlock(&cq->ctl_lock);
		RSOFT_LOG(ERR, "CQ: not claimed: another process polls it");
		return false;
	}
	cq->process = process;
	__atomic_store_n(&cq->nb_claims, cq->nb_claims + 1, __ATOMIC_RELEASE);
	/* Until no thread puts a message that has found the CQ unclaimed. */
	rsoft_grace_wait();
	is_claimed = !has_messages(cq);
	if (!is_claimed)
		__atomic_store_n(&cq->nb_claims, cq->nb_claims - 1, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&cq->ctl_lock);
	if (!is_claimed)
		RSOFT_LOG(ERR, "CQ: not claimed: messages were received inline and not polled");
	return is_claimed;
}

void
rsoft_cq_unclaim(struct rsoft_cq *cq)
{
	rte_ticketlock_lock(&cq->ctl_lock);
	__atomic_store_n(&cq->nb_claims, cq->nb_claims - 1, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&cq->ctl_lock);
}

int
rsoft_cq_stats_get(struct rmem_cq *base, struct rmem_cq_stats *stats)
{
	struct rsoft_cq *cq = rsoft_cq_of(base);
	uint32_t nb, cons = __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);

	stats->overruns = __atomic_load_n(&cq->nb_lost, __ATOMIC_RELAXED);
	nb = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED) - cons;
	stats->outstanding = nb;
	/* Lost completions have positions too. */
	if (!rsoft_cq_ignores_overrun(cq))
		stats->outstanding -= RTE_MIN((uint64_t)nb, stats->overruns);
	return 0;
}

int
rsoft_cq_destroy(struct rmem_cq *base)
{
	rte_free(rsoft_cq_of(base)->messages);
	rte_free(rsoft_cq_of(base)->times);
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
	struct rsoft_inline *messages;

	/* Another QP may be created, or the CQ resized, concurrently. */
	rte_ticketlock_lock(&cq->ctl_lock);
	if (cq->messages == NULL) {
		cq->nb_messages = cq->mask + 1;
		cq->inline_lcore = LCORE_ID_ANY;
		messages = rte_zmalloc_socket("rsoft_messages", cq->nb_messages * sizeof(*messages),
				sizeof(*messages), (int)(int64_t)dev->args.socket);
		__atomic_store_n(&cq->messages, messages, __ATOMIC_RELEASE);
	}
	rte_ticketlock_unlock(&cq->ctl_lock);
}
