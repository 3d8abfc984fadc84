/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion queues: a ring of completions. Each entry has its number, so the consumer finds a
 * completion, and whether it is written, in one cache line.
 *
 * A producer reserves entries by adding to prod, writes each completion, and stores its number
 * (position + 1) in rsoft_cqe::number with release. The consumer loads that number with acquire,
 * copies, and stores cons with release once for all of them. messages[] follows the same rules:
 * written before the number, read before cons advances. A producer loads cons only if the ring is
 * full according to the value it loaded last. If the ring is still full, the completion is lost
 * (overrun).
 *
 * A resize replaces the ring. Invariant: no thread uses the ring while it is replaced:
 * - A producer inside (rsoft_grace.h) loads nb_fast, then is_resizing, before it uses the ring. The
 *   resize stores both, then waits for a grace period: the producer has left, or it loads the new
 *   values and takes the lock under which the ring is replaced.
 * - A thread that need not be inside flushes receives under that lock, or requests under ctl_lock.
 * - The consumer does not poll during the resize (rmem_cq_resize()). Positions do not change, so
 * reservations remain valid. The entries of the new ring get the numbers that a ring of that size
 * would have, before producers have to wait: the numbers depend on cons, which only the consumer
 * advances. Then only the completions from cons to prod are copied. messages[] is not replaced: it
 * has nb_messages slots, for the positions up to cons + nb_messages; messages of other positions
 * are not delivered inline.
 *
 * Completions of a CQ with a channel are written by rsoft_cq_write_slow(), which notifies the CQ,
 * also for later completions that were not visible yet; so a CQ without a channel pays nothing. The
 * same function takes the timestamps of completions, if the CQ has them: times[] follows the rules
 * of the ring, and a poll copies the timestamps that it returns to the second half, which only the
 * consumer uses.
 *
 * prod is advanced by an atomic add or, if only one queue completes to the CQ, by a load and a
 * store under the lock of that queue. Invariant: no such load and store runs concurrently with an
 * advance of prod by another queue, and the load returns the last advance:
 * - A second queue is attached: nb_producers is stored, then a grace period awaited. A load and
 *   store that found one producer is inside (rsoft_grace.h), so it has ended before the second
 *   queue can complete anything.
 * - The last but one queue is detached: its advances of prod precede the release of nb_producers in
 *   rsoft_cq_detach(), with which the load with acquire in rsoft_cq_reserve() synchronizes.
 *
 * A CQ with RMEM_CQ_IGNORE_OVERRUN has RSOFT_CQ_IGNORES in nb_producers. It reserves entries by
 * rsoft_cq_reserve_free() and, when all are in use, returns a position that is not reserved: prod
 * minus 2^30, which is before cons and so counts as polled, and to which nothing is written.
 * Invariant: a reserved position of such a CQ is free, so no write fails, and the consumer finds no
 * gap. cq->lock is held from the check to the store of prod, so a resize finds all reserved
 * positions.
 */

#ifndef RSOFT_CQ_H
#define RSOFT_CQ_H

#include <stdbool.h>
#include <time.h>

#include <rte_byteorder.h>

#include "../base/rsoft.h"

/* Bit of rsoft_cq::nb_producers: the CQ has RMEM_CQ_IGNORE_OVERRUN. */
#define RSOFT_CQ_IGNORES (1u << 31)

/* Rate of the clock for timestamps. */
#define RSOFT_CLOCK_KHZ UINT64_C(1000000)

static inline uint64_t
rsoft_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int rsoft_cq_create(struct rmem_cq *cq, const struct rmem_cq_conf *conf);
int rsoft_cq_destroy(struct rmem_cq *cq);
int rsoft_cq_resize(struct rmem_cq *cq, uint32_t nb_cqe);
int rsoft_cq_stats_get(struct rmem_cq *cq, struct rmem_cq_stats *stats);
/*
 * Attach or detach a queue that completes to the CQ. Attaching waits for a grace period, after
 * which a queue that was the only one uses atomic additions.
 */
void rsoft_cq_attach(struct rsoft_cq *cq);
void rsoft_cq_detach(struct rsoft_cq *cq);

/*
 * Another process polls the CQ between these calls: its ring is not replaced, and no messages are
 * put into it. False: the CQ has messages or is another process's, and is not claimed.
 */
bool rsoft_cq_claim(struct rsoft_cq *cq, uint32_t process);
void rsoft_cq_unclaim(struct rsoft_cq *cq);

/* Allocate memory for inline messages; without it none are delivered inline. */
void rsoft_cq_add_messages(struct rsoft_cq *cq);

static inline struct rsoft_cq *
rsoft_cq_of(struct rmem_cq *cq)
{
	return (struct rsoft_cq *)cq;
}

/* Whether nb entries up to pos are free. */
static inline bool
rsoft_cq_has_space(struct rsoft_cq *cq, uint32_t pos, uint32_t nb)
{
	uint32_t cons = __atomic_load_n(&cq->cons_cached, __ATOMIC_ACQUIRE);

	if (likely(pos - cons < nb))
		return true;
	cons = __atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE);
	__atomic_store_n(&cq->cons_cached, cons, __ATOMIC_RELEASE);
	return pos - cons < nb;
}

/* Slow path of rsoft_cq_part(). */
uint32_t rsoft_cq_part_slow(struct rsoft_cq *cq, uint32_t n);

/* Number of completions, 1 to n, for which the CQ has space; 1 also if it has none. */
static inline uint32_t
rsoft_cq_part(struct rsoft_cq *cq, uint32_t n)
{
	uint32_t end;

	/* Do not load prod, which other queues of the CQ write, for one. */
	if (n <= 1)
		return n;
	end = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED) + n;
	if (likely(end - __atomic_load_n(&cq->cons_cached, __ATOMIC_ACQUIRE) <=
			    __atomic_load_n(&cq->nb_fast, __ATOMIC_ACQUIRE)))
		return n;
	return rsoft_cq_part_slow(cq, n);
}

/* Bits of rmem_wc::flags that are internal to the ring. */
#define RSOFT_WC_INLINE (1u << 15) /* its message is in messages[] */
#define RSOFT_WC_VOID   (1u << 14) /* not a completion; polls skip it */

/* Shift of a field of struct rmem_wc in its word of 8 bytes. */
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
#define RSOFT_WC_SHIFT(field) (8 * (offsetof(struct rmem_wc, field) % 8))
#else
#define RSOFT_WC_SHIFT(field)                                                                      \
	(64 - 8 * (offsetof(struct rmem_wc, field) % 8 + sizeof(((struct rmem_wc *)0)->field)))
#endif

static inline uint64_t
rsoft_cqe_info(uint8_t status, uint8_t opcode, uint16_t flags, uint32_t qp_num)
{
	return (uint64_t)status << RSOFT_WC_SHIFT(status) |
			(uint64_t)opcode << RSOFT_WC_SHIFT(opcode) |
			(uint64_t)flags << RSOFT_WC_SHIFT(flags) |
			(uint64_t)qp_num << RSOFT_WC_SHIFT(qp_num);
}

static inline uint64_t
rsoft_cqe_data(uint32_t byte_len, uint32_t imm_data)
{
	return (uint64_t)byte_len << RSOFT_WC_SHIFT(byte_len) |
			(uint64_t)imm_data << RSOFT_WC_SHIFT(imm_data);
}

static inline bool
rsoft_cq_ignores_overrun(const struct rsoft_cq *cq)
{
	return (__atomic_load_n(&cq->nb_producers, __ATOMIC_RELAXED) & RSOFT_CQ_IGNORES) != 0;
}

/* Distance before prod of a position that is not reserved. */
#define RSOFT_CQ_NOT_RESERVED (1u << 30)

/* Reserve n free entries of a CQ that ignores an overrun, or return a position that is not
 * reserved. */
static inline uint32_t
rsoft_cq_reserve_free(struct rsoft_cq *cq, uint32_t n)
{
	uint32_t at;

	rte_ticketlock_lock(&cq->lock);
	at = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED);
	if (rsoft_cq_has_space(cq, at + n - 1, cq->mask + 1))
		__atomic_store_n(&cq->prod, at + n, __ATOMIC_RELAXED);
	else
		at -= RSOFT_CQ_NOT_RESERVED;
	rte_ticketlock_unlock(&cq->lock);
	return at;
}

/* Reserve n entries; return the first. The consumer stops at each until it is written. */
static inline uint32_t
rsoft_cq_reserve_shared(struct rsoft_cq *cq, uint32_t n)
{
	if (unlikely(rsoft_cq_ignores_overrun(cq)))
		return rsoft_cq_reserve_free(cq, n);
	return __atomic_fetch_add(&cq->prod, n, __ATOMIC_RELAXED);
}

/*
 * The same between rsoft_grace_enter() and rsoft_grace_leave(). If only one queue completes to the
 * CQ, its lock suffices.
 */
static inline uint32_t
rsoft_cq_reserve(struct rsoft_cq *cq, uint32_t n)
{
	uint32_t at;

	if (unlikely(__atomic_load_n(&cq->nb_producers, __ATOMIC_ACQUIRE) != 1))
		return rsoft_cq_reserve_shared(cq, n);
	at = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED);
	__atomic_store_n(&cq->prod, at + n, __ATOMIC_RELAXED);
	return at;
}

/* Prefetch a line that is written soon, and that another core has. */
static inline void
rsoft_prefetch_write(const void *at)
{
#if defined(__x86_64__)
	/* The compiler emits it only for some processors; all others ignore it. */
	__asm__ volatile("prefetchw (%0)" : : "r"(at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/*
 * Words are stored, and loaded by a poll, as they are: a vector of two words waits until the stores
 * of both have left the store buffer.
 */
static inline void
rsoft_cq_store(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe)
{
	struct rsoft_cqe *e = &cq->ring[at & cq->mask];

	__atomic_store_n(&e->wr_id, cqe->wr_id, __ATOMIC_RELAXED);
	__atomic_store_n(&e->info, cqe->info, __ATOMIC_RELAXED);
	__atomic_store_n(&e->data, cqe->data, __ATOMIC_RELAXED);
	e->vendor_err = cqe->vendor_err;
	__atomic_store_n(&e->number, at + 1, __ATOMIC_RELEASE);
}

/* Overrun: the reserved entry remains unwritten, and the consumer stops at it. */
void rsoft_cq_lose(struct rsoft_cq *cq);
/* rsoft_cq_write() for a thread that need not be inside. */
bool rsoft_cq_write_locked(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe);
/* Slow path of rsoft_cq_write(): the CQ seems full, has a channel, or is being resized. */
bool rsoft_cq_write_slow(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe);

/* Write a completion to its entry; false: lost by overrun. */
static inline bool
rsoft_cq_write(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe)
{
	if (unlikely(at - __atomic_load_n(&cq->cons_cached, __ATOMIC_ACQUIRE) >=
			    __atomic_load_n(&cq->nb_fast, __ATOMIC_ACQUIRE)))
		return rsoft_cq_write_slow(cq, at, cqe);
	rsoft_cq_store(cq, at, cqe);
	return true;
}

/* Copy the timestamps of the completions [cons, end) to the timestamps of this poll. */
void rsoft_cq_take_times(struct rsoft_cq *cq, uint32_t end);

/* Whether an entry is no completion. */
static inline bool
rsoft_cqe_is_void(const struct rsoft_cqe *cqe)
{
	return (cqe->info & (uint64_t)RSOFT_WC_VOID << RSOFT_WC_SHIFT(flags)) != 0;
}

/* The entry at a position from cons on, or NULL if it is not written yet. For the consumer. */
static inline const struct rsoft_cqe *
rsoft_cq_entry(const struct rsoft_cq *cq, uint32_t pos)
{
	const struct rsoft_cqe *cqe = &cq->ring[pos & cq->mask];

	return __atomic_load_n(&cqe->number, __ATOMIC_ACQUIRE) == pos + 1 ? cqe : NULL;
}

/* Consume the entries at the head that are no completions; return the next completion, or NULL. For
 * the consumer. */
static inline const struct rsoft_cqe *
rsoft_cq_peek(struct rsoft_cq *cq)
{
	const struct rsoft_cqe *cqe = rsoft_cq_entry(cq, cq->cons);

	while (cqe != NULL && rsoft_cqe_is_void(cqe)) {
		__atomic_store_n(&cq->cons, cq->cons + 1, __ATOMIC_RELEASE);
		cqe = rsoft_cq_entry(cq, cq->cons);
	}
	return cqe;
}

static inline bool
rsoft_cq_is_overrun(struct rmem_cq *cq)
{
	return __atomic_load_n(&rsoft_cq_of(cq)->overrun, __ATOMIC_ACQUIRE) != 0;
}

/* Memory for an inline message of a reserved entry; NULL if there is none. From inside of
 * rsoft_grace_enter(). */
static inline struct rsoft_inline *
rsoft_cq_message(struct rsoft_cq *cq, uint32_t at)
{
	struct rsoft_inline *messages = __atomic_load_n(&cq->messages, __ATOMIC_ACQUIRE);

	if (messages == NULL || __atomic_load_n(&cq->nb_claims, __ATOMIC_RELAXED) != 0 ||
			!rsoft_cq_has_space(cq, at, cq->nb_messages))
		return NULL;
	return &messages[at & (cq->nb_messages - 1)];
}

/*
 * Whether the completion at a position was polled, however long ago: all were but those from cons
 * to prod, which both wrap around. prod is loaded last, so it is not before cons, nor before a
 * position that its producer has published.
 */
static inline bool
rsoft_cq_is_polled(const struct rsoft_cq *cq, uint32_t pos)
{
	uint32_t cons = __atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE);

	return pos - cons >= __atomic_load_n(&cq->prod, __ATOMIC_RELAXED) - cons;
}

#endif /* RSOFT_CQ_H */
