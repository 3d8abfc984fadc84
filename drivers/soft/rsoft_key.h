/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The key table: which index is whose, and under which tag.
 *
 * A key is 24 bits of index, chosen at random, and 8 bits of tag. An index that comes back
 * goes on with the next tag, so that keys of its former owner are refused; after 256 tags
 * it rests behind all others that did so, and is used again only when free ones run short.
 *
 * A key that the caller asks for is found by a search of the free list. Its tag is none that
 * was given out, so that it does not count: who registers the same key over and over never
 * finds it resting.
 */

#ifndef RSOFT_KEY_H
#define RSOFT_KEY_H

#include <stdbool.h>

#include "rsoft.h"

int rsoft_keys_init(struct rsoft_dev *dev, int socket_id);
void rsoft_keys_fini(struct rsoft_dev *dev);

/*
 * Take a key for an MR, or for a window when mr is NULL: not valid, with the next tag of its
 * index. NULL: all are in use.
 */
struct rsoft_key *rsoft_key_alloc(struct rsoft_dev *dev, struct rsoft_mr *mr);

/* Take the key of this rkey: not valid. -EINVAL: there is none, -EEXIST: not free. */
int rsoft_key_request(
		struct rsoft_dev *dev, struct rsoft_mr *mr, uint32_t rkey, struct rsoft_key **key);

/* Give a key back whose word lacks VALID since a grace period. */
void rsoft_key_free(struct rsoft_dev *dev, struct rsoft_key *key);

static inline uint64_t
rsoft_key_word(uint32_t rkey, uint32_t rights)
{
	return rkey | (uint64_t)rights << 32;
}

static inline uint32_t
rsoft_word_rkey(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t
rsoft_word_rights(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* Whether the QP may use the key: a type 2 window is for the one that bound it. */
static inline bool
rsoft_key_is_for(const struct rsoft_key *key, const struct rsoft_qp *qp)
{
	return key->qp_serial == 0 || key->qp_serial == qp->serial;
}

/* From FREE to BUSY, by one of several that try; the caller fills the key and makes it VALID. */
static inline bool
rsoft_key_take(struct rsoft_key *key, uint32_t *rkey)
{
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_RELAXED);

	*rkey = rsoft_word_rkey(word);
	return rsoft_word_rights(word) == 0 &&
			__atomic_compare_exchange_n(&key->word, &word,
					rsoft_key_word(*rkey, RSOFT_BUSY), false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED);
}

/*
 * Take a VALID key that has RSOFT_INV away: to BUSY. Later accesses fail; those under
 * way end within a grace period, then rsoft_key_release() makes it FREE. NULL when the
 * rkey may not be invalidated by that QP.
 */
static inline struct rsoft_key *
rsoft_key_invalidate(const struct rsoft_qp *qp, uint32_t rkey)
{
	const struct rsoft_dev *dev = qp->dev;
	const uint32_t can_inv = RSOFT_VALID | RSOFT_INV;
	uint32_t index = rkey >> 8;
	struct rsoft_key *key;
	uint64_t word;

	if (unlikely(index >= dev->nb_keys))
		return NULL;
	key = &dev->keys[index];
	word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	if (unlikely(rsoft_word_rkey(word) != rkey ||
			    (rsoft_word_rights(word) & can_inv) != can_inv || key->pd != qp->pd ||
			    !rsoft_key_is_for(key, qp)))
		return NULL;
	/* Only one of several that invalidate at a time goes on. */
	if (!__atomic_compare_exchange_n(&key->word, &word, rsoft_key_word(rkey, RSOFT_BUSY), false,
			    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return NULL;
	return key;
}

/* The end of a window's binding, when its grace period is over: let go of the MR. */
static inline void
rsoft_key_unbind(struct rsoft_key *key)
{
	if (key->is_window && key->mr != NULL) {
		rmem_obj_unhold(&key->mr->mr.obj);
		key->mr = NULL;
	}
}

/* The end of a grace period: the key is FREE. */
static inline void
rsoft_key_release(struct rsoft_key *key)
{
	uint32_t rkey = rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_RELAXED));

	rsoft_key_unbind(key);
	__atomic_store_n(&key->word, rsoft_key_word(rkey, 0), __ATOMIC_RELEASE);
}

#endif /* RSOFT_KEY_H */
