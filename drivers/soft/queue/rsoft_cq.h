/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion queues: a ring of completions, each with its number, so that the consumer finds a
 * completion, and whether it is written, in one cache line.
 *
 * A producer reserves entries by adding to prod, writes each completion, and stores its number
 * (position + 1) in rsoft_cqe::number with release. The consumer loads that number with acquire,
 * copies, and stores cons with release once for all of them. messages[] follows the same rules:
 * written before the number, read before cons advances. A producer reads cons only if the ring is
 * full according to its last value. If the ring is full then, the completion is lost (overrun).
 *
 * A resize replaces the ring. Invariant: no thread uses the ring while it is replaced:
 * - A producer inside (rsoft_grace.h) loads nb_fast, then is_resizing, before it uses the ring. The
 *   resize stores both, then waits for a grace period: the producer has left, or it loads the new
 *   values, and takes the lock under which the ring is replaced.
 * - A thread that need not be inside flushes receives under that lock, or requests under ctl_lock.
 * - The consumer does not poll then (rmem_cq_resize()).
 * Positions do not change, so that reservations remain. The entries of the new ring get the numbers
 * that a ring of that size would have, before producers wait: cons, on which the numbers depend,
 * does not change during a resize, as the consumer alone advances it. Then only the completions
 * from cons to prod are copied. messages[] is not replaced: it has nb_messages slots, for
 * the positions up to cons + nb_messages; the messages of others are not delivered inline.
 *
 * Each completion of a CQ with a channel is written by rsoft_cq_write_slow(), which notifies the
 * CQ, also for later completions that were hidden; so a CQ without one pays nothing. The same
 * function takes the times of completions, if the CQ has them: times[] follows the rules of the
 * ring, and a poll copies those that it returns to the second half, which the consumer alone uses.
 *
 * prod is advanced by an atomic add, or, by a queue that alone completes to the CQ, by a load and a
 * store under the lock of that queue. Invariant: no such load and store runs concurrently with an
 * advance of prod by another queue, and the load returns the last advance:
 * - A second queue is attached: nb_producers is stored, then a grace period awaited. A load and
 *   store that saw one producer is inside (rsoft_grace.h), so it has ended before the second queue
 *   can complete anything.
 * - The last but one queue is detached: its advances of prod precede the release of
 *   nb_producers in rsoft_cq_detach(), which the load with acquire in rsoft_cq_reserve() meets.
 */

#ifndef RSOFT_CQ_H
#define RSOFT_CQ_H

#include <stdbool.h>
#include <time.h>

#include <rte_byteorder.h>

#include "../base/rsoft.h"

/* Rate of the clock of timestamps. */
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
 * Attach or detach a queue that completes to the CQ. Attach waits for a grace period, after which a
 * queue that was the only one uses atomic additions.
 */
void rsoft_cq_attach(struct rsoft_cq *cq);
void rsoft_cq_detach(struct rsoft_cq *cq);

/* Another process polls the CQ until the second call; its ring stays the same. */
void rsoft_cq_claim(struct rsoft_cq *cq);
void rsoft_cq_unclaim(struct rsoft_cq *cq);

/* Allocate memory for inline messages. Without it messages are not delivered inline. */
void rsoft_cq_add_messages(struct rsoft_cq *cq);

static inline struct rsoft_cq *
rsoft_cq_of(struct rmem_cq *cq)
{
	return (struct rsoft_cq *)cq;
}

/* Whether the entries up to the given one are free, if there are nb. */
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

/* In rmem_wc::flags, internal to the ring. */
#define RSOFT_WC_INLINE (1u << 15) /* the message is in messages[] */
#define RSOFT_WC_VOID   (1u << 14) /* not a completion: skipped by the poll */

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

/* Reserve n entries; returns the first. The consumer stops at each until it is written. */
static inline uint32_t
rsoft_cq_reserve_shared(struct rsoft_cq *cq, uint32_t n)
{
	return __atomic_fetch_add(&cq->prod, n, __ATOMIC_RELAXED);
}

/*
 * The same between rsoft_grace_enter() and rsoft_grace_leave(). If one queue alone completes to the
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

static inline void
rsoft_cq_store(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe)
{
	struct rsoft_cqe *e = &cq->ring[at & cq->mask];

	e->wr_id = cqe->wr_id;
	e->info = cqe->info;
	e->data = cqe->data;
	e->vendor_err = cqe->vendor_err;
	__atomic_store_n(&e->number, at + 1, __ATOMIC_RELEASE);
}

/* Overrun: a reserved entry remains unwritten, and the consumer stops at it. */
void rsoft_cq_lose(struct rsoft_cq *cq);
/* rsoft_cq_write() of a thread that need not be inside. */
bool rsoft_cq_write_locked(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe);
/* The part of rsoft_cq_write() for a CQ that seems full, has a channel, or is being resized. */
bool rsoft_cq_write_slow(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe);

/* Write a completion to its entry. False: overrun, it is lost. */
static inline bool
rsoft_cq_write(struct rsoft_cq *cq, uint32_t at, const struct rsoft_cqe *cqe)
{
	if (unlikely(at - __atomic_load_n(&cq->cons_cached, __ATOMIC_ACQUIRE) >=
			    __atomic_load_n(&cq->nb_fast, __ATOMIC_ACQUIRE)))
		return rsoft_cq_write_slow(cq, at, cqe);
	rsoft_cq_store(cq, at, cqe);
	return true;
}

/* Copy the timestamps of the completions from cons up to end into the timestamps of this poll. */
void rsoft_cq_take_times(struct rsoft_cq *cq, uint32_t end);

static inline bool
rsoft_cq_is_overrun(struct rmem_cq *cq)
{
	return __atomic_load_n(&rsoft_cq_of(cq)->overrun, __ATOMIC_ACQUIRE) != 0;
}

/* The memory for an inline message of a reserved entry; NULL without any. */
static inline struct rsoft_inline *
rsoft_cq_message(struct rsoft_cq *cq, uint32_t at)
{
	struct rsoft_inline *messages = __atomic_load_n(&cq->messages, __ATOMIC_ACQUIRE);

	if (messages == NULL || !rsoft_cq_has_space(cq, at, cq->nb_messages))
		return NULL;
	return &messages[at & (cq->nb_messages - 1)];
}

/* Whether the completion of an entry was polled. */
static inline bool
rsoft_cq_is_polled(const struct rsoft_cq *cq, uint32_t pos)
{
	return (int32_t)(__atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE) - pos) > 0;
}

#endif /* RSOFT_CQ_H */
