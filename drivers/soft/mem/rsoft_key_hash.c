/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Requested keys; see rsoft_key_hash.h. */

#include <errno.h>

#include <rte_malloc.h>

#include "rsoft_key_hash.h"

#define RSOFT_NB_INDEXES (UINT32_C(1) << 24)

/* Links are slot + 1, and 0 at the end; atomic. */
struct rsoft_key_hash {
	uint32_t *next; /* by slot */
	uint32_t mask;
	uint32_t shift;
	uint64_t passed[RSOFT_NB_INDEXES / 64]; /* bits of indexes that must be skipped once */
	uint32_t first[];                       /* by hash */
};

static uint32_t *
hash_list(struct rsoft_key_hash *table, uint32_t rkey)
{
	return &table->first[rkey * UINT32_C(0x9e3779b1) >> table->shift & table->mask];
}

int
rsoft_key_hash_init(struct rsoft_dev *dev)
{
	uint32_t nb = rte_align32pow2(dev->mr_keys.ids.max);
	uint32_t nb_slots = dev->mr_keys.first + dev->mr_keys.ids.max;
	size_t size = sizeof(struct rsoft_key_hash) + ((size_t)nb + nb_slots) * sizeof(uint32_t);
	struct rsoft_key_hash *table;

	if (__atomic_load_n(&dev->key_hash, __ATOMIC_ACQUIRE) != NULL)
		return 0;
	table = rte_zmalloc_socket("rsoft_key_hash", size, 0, (int)(int64_t)dev->args.socket);
	if (table == NULL) {
		RSOFT_LOG(ERR, "requested keys: no memory for the table: %zu bytes", size);
		return -ENOMEM;
	}
	table->next = &table->first[nb];
	table->mask = nb - 1;
	table->shift = nb == 1 ? 0 : 32 - (uint32_t)__builtin_ctz(nb);
	rsoft_lock(&dev->lock);
	if (dev->key_hash == NULL) {
		__atomic_store_n(&dev->key_hash, table, __ATOMIC_RELEASE);
		table = NULL;
	}
	rte_ticketlock_unlock(&dev->lock);
	rte_free(table);
	return 0;
}

void
rsoft_key_hash_fini(struct rsoft_dev *dev)
{
	rte_free(dev->key_hash);
	dev->key_hash = NULL;
}

void
rsoft_key_hash_add(struct rsoft_dev *dev, uint32_t slot, uint32_t rkey)
{
	struct rsoft_key_hash *table = dev->key_hash;
	uint32_t *list = hash_list(table, rkey);
	struct rsoft_key *at = rsoft_key_at(dev, rkey);

	table->passed[rkey >> 14] |= UINT64_C(1) << (rkey >> 8 & 63);
	if (at == &dev->keys[slot])
		return;
	/* The slot's word may still have this rkey from an earlier owner, and would hide this key:
	 * replace it by an rkey of another slot. */
	if (!at->is_taken)
		__atomic_store_n(&at->word, rsoft_key_word((at == dev->keys) << 8, 0),
				__ATOMIC_RELEASE);
	__atomic_store_n(&table->next[slot], *list, __ATOMIC_RELEASE);
	__atomic_store_n(list, slot + 1, __ATOMIC_RELEASE);
}

void
rsoft_key_hash_del(struct rsoft_dev *dev, uint32_t slot, uint32_t rkey)
{
	struct rsoft_key_hash *table = dev->key_hash;
	uint32_t *link = hash_list(table, rkey);

	while (*link != slot + 1)
		link = &table->next[*link - 1];
	__atomic_store_n(link, table->next[slot], __ATOMIC_RELEASE);
}

bool
rsoft_key_hash_pass(struct rsoft_dev *dev, uint32_t index)
{
	uint64_t bit = UINT64_C(1) << (index & 63);
	uint32_t tag;

	if (likely(dev->key_hash == NULL) || (dev->key_hash->passed[index >> 6] & bit) == 0)
		return false;
	for (tag = 0; tag < 256; tag++) {
		if (rsoft_key_hash_find(dev, index << 8 | tag) != NULL)
			return true;
	}
	dev->key_hash->passed[index >> 6] &= ~bit;
	return true;
}

struct rsoft_key *
rsoft_key_hash_find(const struct rsoft_dev *dev, uint32_t rkey)
{
	struct rsoft_key_hash *table = __atomic_load_n(&dev->key_hash, __ATOMIC_ACQUIRE);
	uint32_t at;

	if (likely(table == NULL))
		return NULL;
	at = __atomic_load_n(hash_list(table, rkey), __ATOMIC_ACQUIRE);
	while (at != 0) {
		struct rsoft_key *key = &dev->keys[at - 1];

		if (rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_ACQUIRE)) == rkey)
			return key;
		at = __atomic_load_n(&table->next[at - 1], __ATOMIC_ACQUIRE);
	}
	return NULL;
}
