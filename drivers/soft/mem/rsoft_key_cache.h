/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The key of the previous access on one side of a burst, because most bursts use few keys.
 *
 * In a grace section a key that was loaded as VALID does not change, and the thread that revokes it
 * waits for the end of the section. So index, tag, state, rights and PD of a key are checked once
 * for consecutive accesses of a burst; range, and the rules of its kind, for each access.
 * Invariant: no key is kept beyond the next grace point, or beyond a request that is not a WRITE.
 */

#ifndef RSOFT_KEY_CACHE_H
#define RSOFT_KEY_CACHE_H

#include "rsoft_access.h"

struct rsoft_key_cache {
	uint64_t num; /* lkey or rkey; RSOFT_KEY_CACHE_NONE: empty */
	const struct rsoft_key *key;
	bool is_slow;          /* the key has RSOFT_SLOW */
	struct rsoft_odp *odp; /* with is_slow: from rsoft_access_table(); else NULL */
	uint64_t page;         /* with odp: an address in the last accessed page */
};

#define RSOFT_KEY_CACHE_NONE UINT64_MAX

/*
 * Check an access as rsoft_access_key(), with the same arguments; the offset is relative to
 * cache->key. A struct rsoft_key_cache is used with one QP, key_xor and need.
 */
static __rte_always_inline bool
rsoft_key_cache_check(struct rsoft_key_cache *cache, const struct rsoft_qp *qp, uint32_t key_xor,
		uint32_t key_num, uint64_t addr, uint64_t length, uint32_t need, uint64_t *offset)
{
	if (unlikely(cache->num != key_num)) {
		uint32_t rights;
		const struct rsoft_key *key =
				rsoft_access_find(qp, key_xor, key_num, need, &rights);

		if (unlikely(key == NULL))
			return false;
		cache->num = key_num;
		cache->key = key;
		cache->is_slow = (rights & RSOFT_SLOW) != 0;
		cache->odp = NULL;
		if (unlikely(cache->is_slow)) {
			cache->odp = rsoft_access_table(key);
			cache->page = UINT64_MAX;
		}
	}
	*offset = addr - cache->key->iova;
	return likely(*offset <= cache->key->length && length <= cache->key->length - *offset);
}

/* Find the memory of an access that passed rsoft_key_cache_check(); false: call rsoft_access(). */
static __rte_always_inline bool
rsoft_key_cache_near(struct rsoft_key_cache *cache, uint64_t offset, uint64_t length, uint32_t need,
		uint8_t **ptr)
{
	uint64_t at = (uintptr_t)cache->key->base + offset;

	*ptr = (uint8_t *)(uintptr_t)at;
	if (likely(!cache->is_slow))
		return true;
	if (unlikely(cache->odp == NULL))
		return false;
	/* The table only decides when pages are populated, so check it once per page. */
	if (likely(((at ^ cache->page) | ((at + length - 1) ^ cache->page)) >>
					    rsoft_odp_log2_page(cache->odp) ==
			    0))
		return true;
	if (!rsoft_odp_open(cache->odp, *ptr, length, need | RSOFT_PEEK))
		return false;
	cache->page = at;
	return true;
}

#endif /* RSOFT_KEY_CACHE_H */
