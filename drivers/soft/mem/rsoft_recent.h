/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The key of the previous access on one side of a burst: most bursts use few keys.
 *
 * In a grace section a key that was loaded as VALID does not change, and the thread that revokes it
 * waits for the end of the section. So the index, tag, state, rights and PD of a key are checked
 * once for consecutive accesses of a burst; the range, and the rules of its kind, for each.
 * Invariant: none is kept beyond the next grace point, or a request that is not a WRITE.
 */

#ifndef RSOFT_RECENT_H
#define RSOFT_RECENT_H

#include "rsoft_access.h"

struct rsoft_recent {
	uint64_t num; /* lkey or rkey; RSOFT_RECENT_NONE before the first */
	const struct rsoft_key *key;
	bool is_slow;          /* it has RSOFT_SLOW */
	struct rsoft_odp *odp; /* with is_slow: that of rsoft_recent_odp(); else NULL */
	uint64_t page;         /* with odp: an address in the page that was accessed last */
};

#define RSOFT_RECENT_NONE UINT64_MAX

/* The table of a key with RSOFT_SLOW, if copies need no more than that; else NULL. */
struct rsoft_odp *rsoft_recent_odp(const struct rsoft_key *key);

/*
 * Check an access as rsoft_access_key(), with the same arguments except the offset, which is that
 * in recent->key. One struct rsoft_recent has one QP, key_xor and need.
 */
static __rte_always_inline bool
rsoft_recent_check(struct rsoft_recent *recent, const struct rsoft_qp *qp, uint32_t key_xor,
		uint32_t key_num, uint64_t addr, uint64_t length, uint32_t need, uint64_t *offset)
{
	if (unlikely(recent->num != key_num)) {
		uint32_t rights;
		const struct rsoft_key *key =
				rsoft_access_find(qp, key_xor, key_num, need, &rights);

		if (unlikely(key == NULL))
			return false;
		recent->num = key_num;
		recent->key = key;
		recent->is_slow = (rights & RSOFT_SLOW) != 0;
		recent->odp = NULL;
		if (unlikely(recent->is_slow)) {
			recent->odp = rsoft_recent_odp(key);
			recent->page = UINT64_MAX;
		}
	}
	*offset = addr - recent->key->iova;
	return likely(*offset <= recent->key->length && length <= recent->key->length - *offset);
}

/* Find the memory of an access that passed rsoft_recent_check(); false: it has other rules. */
static __rte_always_inline bool
rsoft_recent_near(struct rsoft_recent *recent, uint64_t offset, uint64_t length, uint32_t need,
		uint8_t **ptr)
{
	uint64_t at = (uintptr_t)recent->key->base + offset;

	*ptr = (uint8_t *)(uintptr_t)at;
	if (likely(!recent->is_slow))
		return true;
	if (unlikely(recent->odp == NULL))
		return false;
	/* The table decides when pages are populated, not what is accessed: once for each page. */
	if (likely(((at ^ recent->page) | ((at + length - 1) ^ recent->page)) >>
					    rsoft_odp_log2_page(recent->odp) ==
			    0))
		return true;
	if (!rsoft_odp_open(recent->odp, *ptr, length, need | RSOFT_PEEK))
		return false;
	recent->page = at;
	return true;
}

#endif /* RSOFT_RECENT_H */
