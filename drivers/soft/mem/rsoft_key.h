/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The key table: keys and their owners.
 *
 * A key has 24 bits of index and 8 bits of tag. The low bits of the index are the slot of the
 * table, chosen at random among the free slots. The other bits change with each owner of the slot,
 * in an order that depends on a secret of the device. The first tag is random.
 *
 * Invariant: an index chosen by the device is chosen again only after its slot has had 2^(24 -
 * log2_slots) owners, one for each index. So no tag that requests choose (REG_MR, UMR, BIND_MW)
 * makes a key of an earlier owner valid. A slot that has used all of its indexes is quarantined, in
 * FIFO order, until few slots are free.
 *
 * A requested key may have any value (rsoft_key_hash.h). It uses the slot of its index if that is
 * free, otherwise any other. The index of a requested key counts as used.
 */

#ifndef RSOFT_KEY_H
#define RSOFT_KEY_H

#include <stdbool.h>

#include "../base/rsoft.h"
#include "rsoft_history.h"
#include "rsoft_key_hash.h"

int rsoft_keys_init(struct rsoft_dev *dev, int socket_id);
void rsoft_keys_fini(struct rsoft_dev *dev);

/*
 * Allocate a key for an MR, or for a window if mr is NULL. It has an unused index, and is not valid
 * yet. NULL: all keys are in use.
 */
struct rsoft_key *rsoft_key_alloc(struct rsoft_dev *dev, struct rsoft_mr *mr);

/*
 * Allocate a key with this rkey; it is not valid yet. -EEXIST: the rkey is in use, -ENOSPC: all MRs
 * are in use, or -ENOMEM; with a log line.
 */
int rsoft_key_request(
		struct rsoft_dev *dev, struct rsoft_mr *mr, uint32_t rkey, struct rsoft_key **key);

/* Free a key whose word has lacked VALID for a grace period; may wait for another grace period. */
void rsoft_key_free(struct rsoft_dev *dev, struct rsoft_key *key);

/* Find the key with this rkey, or NULL; in a grace section, or under rsoft_dev::lock. */
static inline struct rsoft_key *
rsoft_key_of(const struct rsoft_dev *dev, uint32_t rkey)
{
	struct rsoft_key *key = rsoft_key_at(dev, rkey);

	if (likely(rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_RELAXED)) == rkey))
		return key;
	return rsoft_key_hash_find(dev, rkey);
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

/*
 * Publish a BUSY key of this rkey, after it was filled: with the tag chosen by a request of the QP,
 * as VALID with these rights, or as FREE with 0. A thread that reads the new word reads the new
 * fields.
 */
static inline void
rsoft_key_bind(const struct rsoft_qp *qp, struct rsoft_key *key, uint32_t rkey, uint8_t tag,
		uint32_t rights, const struct rmem_send_wr *wr)
{
	rkey = rmem_rkey_of_tag(rkey, tag);
	rsoft_key_note(qp->dev, key, rkey, rights != 0 ? RSOFT_HISTORY_WR : RSOFT_HISTORY_INV,
			&qp->qp, wr);
	__atomic_store_n(&key->word, rsoft_key_word(rkey, rights), __ATOMIC_RELEASE);
}

/*
 * Invalidate a VALID key that has RSOFT_INV: move it to BUSY. Later accesses fail, and accesses in
 * progress end within a grace period; then rsoft_key_release() moves it to FREE. NULL if the QP may
 * not invalidate the rkey.
 */
static inline struct rsoft_key *
rsoft_key_invalidate(const struct rsoft_qp *qp, uint32_t rkey, const struct rmem_send_wr *wr)
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
	rsoft_key_note(qp->dev, key, rkey, RSOFT_HISTORY_INV, &qp->qp, wr);
	return key;
}

/* Cause of a refusal by rsoft_key_invalidate(); an enum rmem_vendor_err. */
uint32_t rsoft_key_inv_vendor_err(const struct rsoft_qp *qp, uint32_t rkey);

/* Move a key to FREE at the end of its grace period; a window releases its MR. */
static inline void
rsoft_key_release(struct rsoft_key *key)
{
	uint32_t rkey = rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_RELAXED));

	if (key->is_window && key->mr != NULL) {
		rmem_obj_unhold(&key->mr->mr.obj);
		key->mr = NULL;
	}
	__atomic_store_n(&key->word, rsoft_key_word(rkey, 0), __ATOMIC_RELEASE);
}

#endif /* RSOFT_KEY_H */
