/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Minimal programs of the perf tests: only what an access through a key cannot omit.
 *
 * A key is looked up in a table, its word, PD and range are checked, and the bytes are copied.
 * There are no queues, locks, grace periods or kinds of keys.
 */

#ifndef PERF_FLOOR_H
#define PERF_FLOOR_H

#include <string.h>

#include <rmem.h>

#include "perf_row.h"

#define PERF_FLOOR_KEYS (1u << 14)
#define PERF_FLOOR_PD   1u

struct perf_floor_key {
	uint64_t word; /* key | rights << 32 */
	uint64_t iova;
	uint64_t length;
	uint8_t *base;
	uint32_t pd;
} __rte_cache_aligned;

/* The key of an MR, valid for all accesses. */
static inline void
perf_floor_key_set(struct perf_floor_key *keys, const struct rmem_mr *mr, uint32_t key)
{
	keys[(key >> 8) & (PERF_FLOOR_KEYS - 1)] =
			(struct perf_floor_key){.word = key | (uint64_t)UINT32_MAX << 32,
					.iova = mr->iova,
					.length = mr->length,
					.base = mr->addr,
					.pd = PERF_FLOOR_PD};
}

/* The memory of [addr, addr + length), or NULL. */
static __rte_always_inline uint8_t *
perf_floor_access(const struct perf_floor_key *keys, uint32_t number, uint64_t addr,
		uint64_t length, uint32_t access)
{
	const struct perf_floor_key *key = &keys[(number >> 8) & (PERF_FLOOR_KEYS - 1)];
	const uint64_t want = number | (uint64_t)access << 32;
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	uint64_t offset = addr - key->iova;

	if (unlikely((word & (UINT32_MAX | (uint64_t)access << 32)) != want ||
			    key->pd != PERF_FLOOR_PD || offset > key->length ||
			    length > key->length - offset))
		return NULL;
	return key->base + offset;
}

/* 64 bytes without a call. */
static __rte_always_inline void
perf_floor_copy(uint8_t *to, const uint8_t *from, size_t length)
{
	if (likely(length == 64))
		memcpy(to, from, 64);
	else
		memcpy(to, from, length);
}

#endif /* PERF_FLOOR_H */
