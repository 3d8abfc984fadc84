/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The key table; see rsoft_key_table.h. */

#include <errno.h>

#include <rte_common.h>
#include <rte_malloc.h>

#include "rsoft_grace.h"
#include "../base/rsoft_ids.h"
#include "rsoft_history.h"
#include "rsoft_key_hash.h"
#include "rsoft_key_table.h"

/*
 * Random permutations by a Feistel network (Luby and Rackoff) whose round function is SipHash-2-4
 * (Aumasson and Bernstein, 2012) of one word. The halves need not have equal size; each round
 * changes one of them.
 */
#define ROUNDS 4u /* rounds per half */

static inline uint64_t
rotl(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static inline void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] = rotl(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] = rotl(v[2], 32);
}

/* SipHash-2-4 of one word of 8 bytes. */
static uint64_t
siphash(const uint64_t secret[2], uint64_t word)
{
	const uint64_t last = UINT64_C(8) << 56; /* length in the top byte, no remaining bytes */
	uint64_t v[4] = {
			secret[0] ^ UINT64_C(0x736f6d6570736575),
			secret[1] ^ UINT64_C(0x646f72616e646f6d),
			secret[0] ^ UINT64_C(0x6c7967656e657261),
			secret[1] ^ UINT64_C(0x7465646279746573),
	};
	unsigned int i;

	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
	v[3] ^= last;
	sip_round(v);
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/*
 * Permute a number x of the given bits, 0 to 24, by the permutation that the secret and the tweak,
 * below 2^24, select.
 */
static uint32_t
permute(const uint64_t secret[2], uint32_t tweak, uint32_t bits, uint32_t x)
{
	const uint32_t low_bits = bits / 2;
	const uint32_t low_mask = (UINT32_C(1) << low_bits) - 1;
	const uint32_t high_mask = (UINT32_C(1) << (bits - low_bits)) - 1;
	uint32_t low = x & low_mask, high = x >> low_bits;
	uint64_t round;

	for (round = 0; round < UINT64_C(2) * ROUNDS; round += 2) {
		uint64_t head = (uint64_t)tweak << 40 | round << 32;

		high ^= (uint32_t)siphash(secret, head | low) & high_mask;
		head |= UINT64_C(1) << 32;
		low ^= (uint32_t)siphash(secret, head | high) & low_mask;
	}
	return high << low_bits | low;
}

/*
 * Quarantined slots are reused when fewer than 1 / RSOFT_KEY_REST_SHARE of the slots are free.
 */
#define RSOFT_KEY_REST_SHARE 8
/* A larger table does not fit in the cache of a core: prefetch keys of a burst. */
#define RSOFT_KEY_CACHED_BYTES (UINT32_C(256) * 1024)
#define RSOFT_INDEX_BITS       24

static int
key_pool_init(struct rsoft_key_pool *pool, uint32_t first, uint32_t max, int socket_id)
{
	int ret;

	pool->first = first;
	ret = rsoft_ids_init(&pool->ids, max, true, socket_id);
	if (ret == 0)
		ret = rsoft_ids_init(&pool->quarantined, max, false, socket_id);
	return ret;
}

static void
key_pool_fini(struct rsoft_key_pool *pool)
{
	rsoft_ids_fini(&pool->quarantined);
	rsoft_ids_fini(&pool->ids);
}

static int
key_pools_init(struct rsoft_dev *dev, uint32_t first, int socket_id)
{
	uint32_t max_mr = (uint32_t)dev->args.max_mr;
	int ret;

	dev->nb_owners = rte_zmalloc_socket("rsoft_owners",
			(size_t)dev->nb_keys * sizeof(*dev->nb_owners), 0, socket_id);
	if (dev->nb_owners == NULL)
		return -ENOMEM;
	ret = key_pool_init(&dev->mr_keys, first, max_mr, socket_id);
	if (ret != 0)
		return ret;
	return key_pool_init(&dev->mw_keys, first + max_mr, (uint32_t)dev->args.max_mw, socket_id);
}

int
rsoft_keys_init(struct rsoft_dev *dev, int socket_id)
{
	uint32_t max_mr = (uint32_t)dev->args.max_mr;
	uint32_t max_mw = (uint32_t)dev->args.max_mw;
	uint32_t i, first;
	int ret;

	dev->slot_mask = rte_align32pow2(max_mr + max_mw) - 1;
	dev->log2_slots = (uint32_t)__builtin_popcount(dev->slot_mask);
	/* Index 0 is never used; slot 0 is not used either if it has no other index. */
	first = dev->log2_slots == RSOFT_INDEX_BITS;
	dev->nb_keys = first + max_mr + max_mw;
	dev->key_secret[0] = (uint64_t)rsoft_random() << 32 | rsoft_random();
	dev->key_secret[1] = (uint64_t)rsoft_random() << 32 | rsoft_random();
	dev->lkey_xor = dev->args.keys == RSOFT_KEYS_SAME ? 0 : RSOFT_LKEY_XOR;
	dev->prefetch_keys = (size_t)dev->nb_keys * sizeof(*dev->keys) > RSOFT_KEY_CACHED_BYTES;
	dev->keys = rte_zmalloc_socket("rsoft_keys", (size_t)dev->nb_keys * sizeof(*dev->keys),
			RTE_CACHE_LINE_SIZE, socket_id);
	if (dev->keys == NULL) {
		RSOFT_LOG(ERR, "key table: no memory: %zu bytes (max_mr=%u, max_mw=%u)",
				(size_t)dev->nb_keys * sizeof(*dev->keys), max_mr, max_mw);
		return -ENOMEM;
	}
	ret = key_pools_init(dev, first, socket_id);
	if (ret != 0) {
		RSOFT_LOG(ERR, "key table: no memory for the free lists (max_mr=%u, max_mw=%u)",
				max_mr, max_mw);
		rsoft_keys_fini(dev);
		return ret;
	}
	for (i = dev->mw_keys.first; i < dev->nb_keys; i++)
		dev->keys[i].is_window = 1;
	ret = rsoft_history_init(dev, socket_id);
	if (ret != 0)
		rsoft_keys_fini(dev);
	return ret;
}

void
rsoft_keys_fini(struct rsoft_dev *dev)
{
	rsoft_history_fini(dev);
	rsoft_key_hash_fini(dev);
	key_pool_fini(&dev->mw_keys);
	key_pool_fini(&dev->mr_keys);
	rte_free(dev->nb_owners);
	dev->nb_owners = NULL;
	rte_free(dev->keys);
	dev->keys = NULL;
}

/* Number of indexes of a slot. */
static uint32_t
key_nb_indexes(const struct rsoft_dev *dev)
{
	return UINT32_C(1) << (RSOFT_INDEX_BITS - dev->log2_slots);
}

/* Take the slot that was quarantined first; 0 if there is none. `quarantined.free` is a ring. */
static uint32_t
key_wake(struct rsoft_dev *dev, struct rsoft_key_pool *pool)
{
	struct rsoft_ids *quarantined = &pool->quarantined;
	uint32_t id;

	if (quarantined->nb_free == 0)
		return 0;
	id = quarantined->free[pool->quarantine_head];
	pool->quarantine_head = (pool->quarantine_head + 1) % quarantined->max;
	quarantined->nb_free--;
	dev->nb_owners[pool->first + id - 1] &= key_nb_indexes(dev) - 1;
	return id;
}

static void
key_quarantine(struct rsoft_key_pool *pool, uint32_t id)
{
	struct rsoft_ids *quarantined = &pool->quarantined;

	quarantined->free[(pool->quarantine_head + quarantined->nb_free) % quarantined->max] = id;
	quarantined->nb_free++;
}

/* Allocate a slot; 0 when there is none. */
static uint32_t
key_pool_get(struct rsoft_dev *dev, struct rsoft_key_pool *pool)
{
	uint32_t id = 0;

	if (pool->ids.nb_free < pool->ids.max / RSOFT_KEY_REST_SHARE)
		id = key_wake(dev, pool);
	if (id == 0)
		id = rsoft_ids_get(&pool->ids);
	if (id == 0)
		id = key_wake(dev, pool);
	return id;
}

/*
 * Next index of a slot; 0 if requested keys in use have all of them. Two passes, because the first
 * may skip indexes that requested keys used earlier.
 */
static uint32_t
key_next_index(struct rsoft_dev *dev, uint32_t slot)
{
	uint32_t nb = key_nb_indexes(dev);
	uint32_t tries, high, index;

	for (tries = 0; tries < 2 * nb; tries++) {
		high = permute(dev->key_secret, slot, RSOFT_INDEX_BITS - dev->log2_slots,
				dev->nb_owners[slot]++ & (nb - 1));
		index = high << dev->log2_slots | slot;
		if (index != 0 && !rsoft_key_hash_pass(dev, index))
			return index;
	}
	return 0;
}

/* Allocate a slot with an unused index; the slot, or UINT32_MAX. */
static uint32_t
key_take_slot(struct rsoft_dev *dev, struct rsoft_key_pool *pool, uint32_t *index)
{
	uint32_t tries, id;

	for (tries = 0; tries < pool->ids.max; tries++) {
		id = key_pool_get(dev, pool);
		if (id == 0)
			break;
		*index = key_next_index(dev, pool->first + id - 1);
		if (likely(*index != 0))
			return pool->first + id - 1;
		key_quarantine(pool, id);
	}
	return UINT32_MAX;
}

/* Assign a slot to its owner, with this rkey. */
static struct rsoft_key *
key_own(struct rsoft_dev *dev, uint32_t slot, struct rsoft_mr *mr, uint32_t rkey)
{
	struct rsoft_key *key = &dev->keys[slot];

	key->mr = mr;
	key->kind = RSOFT_KIND_BASE;
	key->is_taken = 1;
	__atomic_store_n(&key->word, rsoft_key_word(rkey, 0), __ATOMIC_RELEASE);
	return key;
}

struct rsoft_key *
rsoft_key_alloc(struct rsoft_dev *dev, struct rsoft_mr *mr)
{
	struct rsoft_key_pool *pool = mr != NULL ? &dev->mr_keys : &dev->mw_keys;
	uint32_t *nb = mr != NULL ? &dev->nb_mr : &dev->nb_mw;
	struct rsoft_key *key = NULL;
	uint32_t slot, index;

	rsoft_lock(&dev->lock);
	slot = key_take_slot(dev, pool, &index);
	if (slot != UINT32_MAX) {
		key = key_own(dev, slot, mr, index << 8 | (rsoft_random() & 0xff));
		RSOFT_COUNT(*nb, 1);
	}
	rte_ticketlock_unlock(&dev->lock);
	return key;
}

/* Whether an rkey is in use, or a request may create it: requests choose the tag of some
 * indexes. */
static bool
key_is_used(const struct rsoft_dev *dev, uint32_t rkey)
{
	const struct rsoft_key *key = rsoft_key_at(dev, rkey);
	uint32_t now = rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_RELAXED));

	if (key->is_taken && now >> 8 == rkey >> 8 &&
			(now == rkey || key->is_window || key->mr->mr.type != RMEM_MR_TYPE_USER))
		return true;
	return rsoft_key_hash_find(dev, rkey) != NULL;
}

/* Before the first requested key: note where each free slot is. */
static int
key_index_slots(struct rsoft_dev *dev)
{
	struct rsoft_ids *ids = &dev->mr_keys.ids;
	uint32_t *at;
	bool has_index;

	rsoft_lock(&dev->lock);
	has_index = ids->at != NULL;
	rte_ticketlock_unlock(&dev->lock);
	if (has_index)
		return 0;
	at = rte_zmalloc_socket("rsoft_ids_at", (size_t)ids->max * sizeof(*at), 0,
			(int)(int64_t)dev->args.socket);
	if (at == NULL) {
		RSOFT_LOG(ERR, "requested keys: no memory for the index of slots: %zu bytes",
				(size_t)ids->max * sizeof(*at));
		return -ENOMEM;
	}
	rsoft_lock(&dev->lock);
	if (ids->at == NULL) {
		rsoft_ids_index(ids, at);
		at = NULL;
	}
	rte_ticketlock_unlock(&dev->lock);
	rte_free(at);
	return 0;
}

/* Slot of an index, if it is free and for MRs; otherwise any free slot, or UINT32_MAX. */
static uint32_t
key_request_slot(struct rsoft_dev *dev, uint32_t index)
{
	struct rsoft_key_pool *pool = &dev->mr_keys;
	uint32_t slot = index & dev->slot_mask, id = slot - pool->first + 1;

	if (slot >= pool->first && id <= pool->ids.max && !dev->keys[slot].is_taken &&
			rsoft_ids_take(&pool->ids, id))
		return slot;
	id = key_pool_get(dev, pool);
	return id != 0 ? pool->first + id - 1 : UINT32_MAX;
}

int
rsoft_key_request(struct rsoft_dev *dev, struct rsoft_mr *mr, uint32_t rkey, struct rsoft_key **key)
{
	uint32_t slot;
	int ret;

	ret = rsoft_key_hash_init(dev);
	if (ret == 0)
		ret = key_index_slots(dev);
	if (ret != 0)
		return ret;
	rsoft_lock(&dev->lock);
	if (key_is_used(dev, rkey)) {
		ret = -EEXIST;
	} else {
		slot = key_request_slot(dev, rkey >> 8);
		if (slot == UINT32_MAX) {
			ret = -ENOSPC;
		} else {
			*key = key_own(dev, slot, mr, rkey);
			rsoft_key_hash_add(dev, slot, rkey);
			RSOFT_COUNT(dev->nb_mr, 1);
		}
	}
	rte_ticketlock_unlock(&dev->lock);
	if (ret == -EEXIST)
		RSOFT_LOG(ERR, "requested key: in use, or reserved for bindings: 0x%08x (index 0x%06x)",
				rkey, rkey >> 8);
	if (ret == -ENOSPC)
		RSOFT_LOG(ERR, "MR: all entries are in use (max_mr=%u)", dev->mr_keys.ids.max);
	return ret;
}

void
rsoft_key_free(struct rsoft_dev *dev, struct rsoft_key *key)
{
	struct rsoft_key_pool *pool = key->is_window ? &dev->mw_keys : &dev->mr_keys;
	uint32_t *nb = key->is_window ? &dev->nb_mw : &dev->nb_mr;
	uint32_t slot = (uint32_t)(key - dev->keys), id = slot - pool->first + 1;

	rsoft_key_note(dev, key, rsoft_word_rkey(key->word), RSOFT_HISTORY_DEREG, NULL, NULL);
	if (key != rsoft_key_at(dev, rsoft_word_rkey(key->word))) {
		rsoft_lock(&dev->lock);
		rsoft_key_hash_del(dev, slot, rsoft_word_rkey(key->word));
		rte_ticketlock_unlock(&dev->lock);
		rsoft_grace_wait(); /* for readers of the hash table entry */
	}
	rsoft_lock(&dev->lock);
	key->mr = NULL;
	key->pages = NULL;
	key->is_taken = 0;
	RSOFT_COUNT(*nb, -1);
	if (dev->nb_owners[slot] >= key_nb_indexes(dev))
		key_quarantine(pool, id);
	else
		rsoft_ids_put(&pool->ids, id);
	rte_ticketlock_unlock(&dev->lock);
}
