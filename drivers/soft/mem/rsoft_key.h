/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A key: its word, by which requests find whether it is valid, and the transitions of its state.
 *
 * FREE, then BUSY while its owner fills it, then VALID, then BUSY again while a request invalidates
 * it or binds it once more, then FREE. rsoft_key_table.h has the allocation of keys.
 */

#ifndef RSOFT_KEY_H
#define RSOFT_KEY_H

#include <stdbool.h>

#include "../base/rsoft.h"
#include "rsoft_history.h"

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

/*
 * The entry in the slot of an rkey or lkey. The caller must compare its word, because the entry may
 * hold another key.
 */
static inline struct rsoft_key *
rsoft_key_at(const struct rsoft_dev *dev, uint32_t key_num)
{
	uint32_t slot = key_num >> 8 & dev->slot_mask;

	return &dev->keys[likely(slot < dev->nb_keys) ? slot : 0];
}

/* Whether the QP may use the key: a type 2 window only by the QP that bound it. */
static inline bool
rsoft_key_is_for(const struct rsoft_key *key, const struct rsoft_qp *qp)
{
	return key->qp_serial == 0 || key->qp_serial == qp->serial;
}

/*
 * Move a key from FREE to BUSY; only one of concurrent calls succeeds. The caller then fills the
 * key, and rsoft_key_bind() makes it VALID.
 */
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
 * With sanitize=1, record in the history that a key was created or ended: by a call, or by a
 * request of a QP or its peer.
 */
static inline void
rsoft_key_note(struct rsoft_dev *dev, const struct rsoft_key *key, uint32_t rkey,
		enum rsoft_history_event event, const struct rmem_qp *qp,
		const struct rmem_send_wr *wr)
{
	if (unlikely(dev->history != NULL))
		rsoft_history_store(dev, key, rkey, event, qp, wr);
}

/* rsoft_key_bind() on a device without a history. */
static inline void
rsoft_key_publish(struct rsoft_key *key, uint32_t rkey, uint8_t tag, uint32_t rights)
{
	__atomic_store_n(&key->word, rsoft_key_word(rmem_rkey_of_tag(rkey, tag), rights),
			__ATOMIC_RELEASE);
}

/*
 * Publish a BUSY key of this rkey, after it was filled: with the tag chosen by a request of the QP,
 * as VALID with these rights, or as FREE with 0. A thread that reads the new word reads the new
 * fields.
 */
static inline void
rsoft_key_bind(const struct rsoft_qp *qp, struct rsoft_key *key, uint32_t rkey, uint8_t tag,
		uint32_t rights, const struct rmem_send_wr *wr)
{
	rsoft_key_note(qp->dev, key, rmem_rkey_of_tag(rkey, tag),
			rights != 0 ? RSOFT_HISTORY_WR : RSOFT_HISTORY_INV, &qp->qp, wr);
	rsoft_key_publish(key, rkey, tag, rights);
}

/* rsoft_key_invalidate() on a device without a history. */
static inline struct rsoft_key *
rsoft_key_end(const struct rsoft_qp *qp, uint32_t rkey)
{
	const uint32_t can_inv = RSOFT_VALID | RSOFT_INV;
	struct rsoft_key *key = rsoft_key_at(qp->dev, rkey);
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);

	/* A key bound by requests is in the slot of its rkey. */
	if (unlikely(rsoft_word_rkey(word) != rkey ||
			    (rsoft_word_rights(word) & can_inv) != can_inv || key->pd != qp->pd ||
			    !rsoft_key_is_for(key, qp)))
		return NULL;
	/* Only one of concurrent invalidations succeeds. */
	if (!__atomic_compare_exchange_n(&key->word, &word, rsoft_key_word(rkey, RSOFT_BUSY), false,
			    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return NULL;
	return key;
}

/*
 * Invalidate a VALID key that has RSOFT_INV: move it to BUSY. Later accesses fail, and accesses in
 * progress end within a grace period; then rsoft_key_release() moves it to FREE. NULL if the QP may
 * not invalidate the rkey.
 */
static inline struct rsoft_key *
rsoft_key_invalidate(const struct rsoft_qp *qp, uint32_t rkey, const struct rmem_send_wr *wr)
{
	struct rsoft_key *key = rsoft_key_end(qp, rkey);

	if (key != NULL)
		rsoft_key_note(qp->dev, key, rkey, RSOFT_HISTORY_INV, &qp->qp, wr);
	return key;
}

/* Cause of a refusal by rsoft_key_invalidate(); an enum rmem_vendor_err. */
uint32_t rsoft_key_inv_vendor_err(const struct rsoft_qp *qp, uint32_t rkey);

/* Move a key to FREE at the end of its grace period; a window has released its MR. */
static inline void
rsoft_key_set_free(struct rsoft_key *key)
{
	uint32_t rkey = rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_RELAXED));

	__atomic_store_n(&key->word, rsoft_key_word(rkey, 0), __ATOMIC_RELEASE);
}

/* The same, and release the MR of a window. */
static inline void
rsoft_key_release(struct rsoft_key *key)
{
	if (key->is_window && key->mr != NULL) {
		rmem_obj_unhold(&key->mr->mr.obj);
		key->mr = NULL;
	}
	rsoft_key_set_free(key);
}

#endif /* RSOFT_KEY_H */
