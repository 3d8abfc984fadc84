/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A ring of packets in memory shared by two processes: one writes packets, the other reads them.
 *
 * Writers, readers, and their ordering:
 * - Positions count packets, modulo 2^32. Each side keeps its position in private memory.
 * - The writer fills a slot while it has no packet, then stores its number (position + 1, release).
 *   The reader loads the number (acquire), and reads the slot until it stores its position in head
 *   (release), which the writer loads (acquire) before it writes the slot again.
 * - The reader stores is_asleep, then loads the number of its slot; the writer stores the number,
 *   then loads is_asleep; each side has a full barrier in between. At least one side sees the store
 *   of the other, so no packet waits for a sleeping reader.
 *
 * Invariant: neither side trusts a word that the other can write. An index is masked, a length is
 * loaded once and limited, and headers are copied before they are checked. A peer that writes any
 * data at any time affects only the packets of this ring, and the work for it is limited by the
 * number of packets that a call requests.
 */

#ifndef RWIRE_RING_H
#define RWIRE_RING_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_atomic.h>
#include <rte_common.h>

#include "../../mem/rsoft_grant.h"
#include "../codec/rsoft_grh.h"
#include "../codec/rwire_hdr.h"

#define RWIRE_RING_SLOTS 128u
#define RWIRE_RING_LINE  64

enum rwire_slot_kind {
	RWIRE_SLOT_PLAIN = 0,
	RWIRE_SLOT_ICRC,   /* the ICRC is set */
	RWIRE_SLOT_SHARED, /* a struct rwire_shared at RWIRE_SHARED_AT replaces the payload */
};

/* Flag of the kind: the writer requests a grant for the rkey of the packet (rsoft_grant.h). */
#define RWIRE_SLOT_REQUESTS_GRANT 0x100u
/* Flag of the kind: a struct rsoft_grh follows the packet. */
#define RWIRE_SLOT_HAS_GRH 0x200u
/* Flag of the kind: the destination, a multicast GID, follows the struct rsoft_grh. */
#define RWIRE_SLOT_HAS_GROUP 0x400u

/* A payload in a region of the writer that the reader has mapped (rwire_region.h). */
struct rwire_shared {
	uint32_t region;
	uint32_t len;
	uint64_t offset;
};

#define RWIRE_SHARED_AT (RWIRE_BTH_LEN + RWIRE_MAX_EXT_LEN)

/* The fields of the longest datagram's GRH: a struct rsoft_grh and a GID. */
#define RWIRE_SLOT_GRH  (sizeof(struct rsoft_grh) + 16)
#define RWIRE_SLOT_DATA (RTE_ALIGN_CEIL(8 + RWIRE_MAX_PKT, RWIRE_RING_LINE) - 8)

struct rwire_slot {
	uint32_t number; /* position + 1 of the packet in it; atomic */
	uint16_t len;    /* packet length from BTH to ICRC; atomic */
	uint16_t kind; /* enum rwire_slot_kind, with RWIRE_SLOT_REQUESTS_GRANT and _HAS_*; atomic */
	uint8_t data[RWIRE_SLOT_DATA];
} __rte_aligned(RWIRE_RING_LINE);

/* Shared memory; initially all zero. */
struct rwire_ring {
	uint32_t head __rte_aligned(RWIRE_RING_LINE);      /* packets read; atomic */
	uint32_t is_asleep __rte_aligned(RWIRE_RING_LINE); /* the reader needs a doorbell; atomic */
	uint64_t mapped __rte_aligned(RWIRE_RING_LINE);    /* bit n: region n is mapped; atomic */
	uint32_t accepts;                                  /* the reader maps regions; atomic */
	struct rsoft_grants direct; /* the reader owns the keys, the writer copies */
	struct rwire_slot slot[RWIRE_RING_SLOTS];
};

static_assert((RWIRE_RING_SLOTS & (RWIRE_RING_SLOTS - 1)) == 0, "a mask selects a slot");
static_assert(RWIRE_MAX_PKT <= UINT16_MAX, "a length fits into its field");
static_assert(offsetof(struct rwire_slot, data) == 8 &&
				sizeof(struct rwire_slot) == 8 + RWIRE_SLOT_DATA,
		"a slot has no padding");
static_assert(RWIRE_BTH_LEN + RWIRE_DETH_LEN + 4 + RWIRE_MAX_MTU + RWIRE_ICRC_LEN +
						RWIRE_SLOT_GRH <=
				RWIRE_SLOT_DATA,
		"a slot has the longest datagram with an immediate, and its GRH");
static_assert(offsetof(struct rwire_slot, data) + RWIRE_SHARED_AT + sizeof(struct rwire_shared) ==
				RWIRE_RING_LINE,
		"one cache line has all of a packet whose payload is shared");

/* One side of a ring, for the writer or the reader; ring is NULL if there is none. */
struct rwire_ring_end {
	struct rwire_ring *ring;
	uint32_t pos;
	uint32_t head; /* as last loaded (writer) or stored (reader) */
};

static inline struct rwire_slot *
rwire_ring_slot(const struct rwire_ring_end *end)
{
	return &end->ring->slot[end->pos & (RWIRE_RING_SLOTS - 1)];
}

/* Get the slot to write next; NULL if the ring is full. */
static inline struct rwire_slot *
rwire_ring_get(struct rwire_ring_end *end)
{
	if (end->pos - end->head >= RWIRE_RING_SLOTS)
		end->head = __atomic_load_n(&end->ring->head, __ATOMIC_ACQUIRE);
	return end->pos - end->head >= RWIRE_RING_SLOTS ? NULL : rwire_ring_slot(end);
}

/* Publish the packet in the slot of the last rwire_ring_get(). */
static inline void
rwire_ring_put(struct rwire_ring_end *end, uint32_t len, unsigned int kind)
{
	struct rwire_slot *slot = rwire_ring_slot(end);

	__atomic_store_n(&slot->kind, (uint16_t)kind, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->len, (uint16_t)len, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->number, ++end->pos, __ATOMIC_RELEASE);
}

/* After rwire_ring_put(): whether the reader sleeps and needs a doorbell. */
static inline bool
rwire_ring_must_wake(struct rwire_ring_end *end)
{
	rte_smp_mb();
	return __atomic_load_n(&end->ring->is_asleep, __ATOMIC_RELAXED) != 0 &&
			__atomic_exchange_n(&end->ring->is_asleep, 0, __ATOMIC_RELAXED) != 0;
}

/* Whether a packet has arrived. */
static inline bool
rwire_ring_is_ready(const struct rwire_ring_end *end)
{
	return __atomic_load_n(&rwire_ring_slot(end)->number, __ATOMIC_ACQUIRE) == end->pos + 1;
}

/*
 * Get the next packet and its length, 0 to RWIRE_MAX_PKT; NULL if there is none. It is readable
 * until rwire_ring_release().
 */
static inline struct rwire_slot *
rwire_ring_take(struct rwire_ring_end *end, uint32_t *len)
{
	struct rwire_slot *slot = rwire_ring_slot(end);

	if (!rwire_ring_is_ready(end))
		return NULL;
	*len = __atomic_load_n(&slot->len, __ATOMIC_RELAXED);
	if (*len > RWIRE_MAX_PKT)
		*len = 0;
	end->pos++;
	return slot;
}

/* Return the slots of all packets taken so far to the writer. */
static inline void
rwire_ring_release(struct rwire_ring_end *end)
{
	if (end->head == end->pos)
		return;
	end->head = end->pos;
	__atomic_store_n(&end->ring->head, end->head, __ATOMIC_RELEASE);
}

/* Request a doorbell for the next packet; false if one has already arrived. */
static inline bool
rwire_ring_sleep(struct rwire_ring_end *end)
{
	__atomic_store_n(&end->ring->is_asleep, 1, __ATOMIC_RELAXED);
	rte_smp_mb();
	return !rwire_ring_is_ready(end);
}

#endif /* RWIRE_RING_H */
