/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requested keys: a hash table of the keys that are not in the slot of their index, and the indexes
 * that requested keys have used.
 *
 * Lists of slots, hashed by rkey, are written under rsoft_dev::lock, and read in a grace section by
 * a lookup that did not find the key in the slot of its index.
 * Invariant: the link of a slot stays unchanged from rsoft_key_hash_del() until the end of a grace
 * period, so a reader continues in the same list.
 *
 * The bit of the index of a requested key is set until the device has skipped that index once. So
 * the device does not choose this index again before its slot has used all of its indexes.
 */

#ifndef RSOFT_KEY_HASH_H
#define RSOFT_KEY_HASH_H

#include <stdbool.h>

#include "rsoft_key.h"

/* Allocate the table, if there is none; 0, or -ENOMEM and a log line. */
int rsoft_key_hash_init(struct rsoft_dev *dev);
void rsoft_key_hash_fini(struct rsoft_dev *dev);

/* Add a slot with this requested rkey. */
void rsoft_key_hash_add(struct rsoft_dev *dev, uint32_t slot, uint32_t rkey);

/* Remove a slot; only if rsoft_key_at() returns another slot for the rkey. */
void rsoft_key_hash_del(struct rsoft_dev *dev, uint32_t slot, uint32_t rkey);

/* Whether the device must skip an index: once, and while one of its keys is in use. */
bool rsoft_key_hash_pass(struct rsoft_dev *dev, uint32_t index);

/* Find the key with this rkey that is not in the slot of its index; NULL if there is none. */
struct rsoft_key *rsoft_key_hash_find(const struct rsoft_dev *dev, uint32_t rkey);

/* Find the key with this rkey, or NULL; in a grace section, or under rsoft_dev::lock. */
static inline struct rsoft_key *
rsoft_key_of(const struct rsoft_dev *dev, uint32_t rkey)
{
	struct rsoft_key *key = rsoft_key_at(dev, rkey);

	if (likely(rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_RELAXED)) == rkey))
		return key;
	return rsoft_key_hash_find(dev, rkey);
}

#endif /* RSOFT_KEY_HASH_H */
