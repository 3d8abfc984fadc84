/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Regions: files of the sender's DPDK memory, which the receiver maps read-only, with share=1 on
 * both sides of port=shm. A packet in the ring then has a struct rwire_shared instead of its
 * payload, and the receiver copies each byte once, from the sender's buffer to the target.
 *
 * - The sender passes a file before it sends the first payload in that file. It copies payloads
 *   into the ring until the receiver has set the bit of the region in rwire_ring::mapped. It never
 *   reuses a region number in a channel. When EAL frees memory, all passed regions end, because
 *   other memory may be mapped there later.
 * - The buffer of a request is unchanged until its acknowledgement, which follows the copy. A
 *   request that is sent again is checked again, and a duplicate is not copied. After a request was
 *   flushed, the receiver may still execute it, with bytes that are written later.
 *
 * Invariants of the receiver:
 * - Region number, offset and length are copied before they are checked against the table of
 *   regions, which only this process can write. The whole payload is within one mapping.
 * - A mapping is only read with rsoft_copy_all(), and only while the handler of rsoft_guard.h is
 *   installed. If the owner truncates the file, the packet counts as lost; no fault reaches the
 *   application.
 * - A mapping is of a file in memory, not of one whose pages another process provides. It is
 *   removed with its channel, while no received packet is in use; the end of the peer does not
 *   remove it.
 *
 * Invariant: the tables of the sender are protected by rwire::tx_lock, the tables of the receiver
 * by rwire::rx_lock.
 */

#ifndef RWIRE_REGION_H
#define RWIRE_REGION_H

#include "rwire_shm.h"

#define RWIRE_MAX_REGIONS 64

struct rwire_region {
	uint8_t *base;
	uint64_t size; /* 0: none */
};

/* The regions of a channel. */
struct rwire_regions {
	struct rwire_region region[RWIRE_MAX_REGIONS];
	uint64_t mapped; /* receiver: bit n: region n is mapped */
	uint64_t freed;  /* sender: number of frees when the regions were passed */
	uint32_t nb;     /* sender: region numbers used */
	uint32_t last;   /* sender: most recently used */
};

/*
 * Watch for freed DPDK memory, and take a reference to the handler of rsoft_guard.h. False: not
 * possible, which is logged with the name of the port; payloads are then copied into the ring.
 */
bool rwire_regions_begin(const char *name);
void rwire_regions_end(void);

/*
 * Describe a payload to the receiver of a channel. False: it is not in DPDK memory with a file, or
 * the receiver has not mapped that file yet.
 */
bool rwire_regions_share(struct rwire_regions *regions, int fd, const struct rwire_ring *ring,
		const uint8_t *data, uint32_t len, struct rwire_shared *shared);

/* Map a region of the sender, close its descriptor, and report it in the ring. */
void rwire_regions_map(struct rwire_regions *regions, struct rwire_ring *ring,
		const struct shm_region *region, int memory);
void rwire_regions_unmap(struct rwire_regions *regions);

/* Payload that a descriptor selects; NULL if the descriptor is not valid. */
uint8_t *rwire_regions_find(const struct rwire_regions *regions, const struct rwire_shared *shared);

#endif /* RWIRE_REGION_H */
