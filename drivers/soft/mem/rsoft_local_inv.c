/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The LOCAL_INV request: its start, which invalidates a key, and its end after the grace period. */

#include "rsoft_key_hash.h"
#include "rsoft_mr.h"

/* Body of rsoft_local_invs(). Without a history the loop calls no function. */
static __rte_always_inline uint32_t
local_invs(const struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n,
		bool has_history)
{
	uint32_t i;

	for (i = 0; i < n; i++, wrs += stride) {
		const struct rmem_send_wr *wr = (const void *)wrs;
		const struct rsoft_key *key = NULL;

		if (wr->opcode == RMEM_WR_LOCAL_INV)
			key = has_history ? rsoft_key_invalidate(qp, wr->invalidate_rkey, wr)
					  : rsoft_key_end(qp, wr->invalidate_rkey);
		if (key == NULL)
			break;
	}
	return i;
}

static __rte_noinline uint32_t
local_inv_run(const struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n)
{
	return local_invs(qp, wrs, stride, n, false);
}

uint32_t
rsoft_local_invs(const struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n)
{
	if (likely(qp->dev->history == NULL))
		return local_inv_run(qp, wrs, stride, n);
	return local_invs(qp, wrs, stride, n, true);
}

uint32_t
rsoft_key_inv_vendor_err(const struct rsoft_qp *qp, uint32_t rkey)
{
	const struct rsoft_key *key = rsoft_key_of(qp->dev, rkey);
	uint64_t word;

	if (key == NULL)
		key = rsoft_key_at(qp->dev, rkey);
	word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	if (rsoft_word_rkey(word) >> 8 != rkey >> 8)
		return RMEM_VENDOR_ERR_KEY_INDEX;
	if (rsoft_word_rkey(word) != rkey)
		return RMEM_VENDOR_ERR_KEY_TAG;
	if ((rsoft_word_rights(word) & RSOFT_VALID) == 0)
		return RMEM_VENDOR_ERR_KEY_STATE;
	if (key->pd != qp->pd)
		return RMEM_VENDOR_ERR_KEY_PD;
	if ((rsoft_word_rights(word) & RSOFT_INV) == 0)
		return RMEM_VENDOR_ERR_NOT_INV;
	if (!rsoft_key_is_for(key, qp))
		return RMEM_VENDOR_ERR_KEY_QP;
	return RMEM_VENDOR_ERR_KEY_STATE; /* not valid at the time of the refusal */
}

/* Release references to an MR with one locked instruction. */
static __rte_always_inline void
inv_unhold_mr(struct rsoft_mr *mr, uint32_t nb)
{
	if (nb != 0)
		__atomic_fetch_sub(&mr->mr.obj.refs, nb, __ATOMIC_RELEASE);
}

uint32_t
rsoft_local_invs_end(const struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n)
{
	const uint8_t always = qp->sig_all ? RMEM_SEND_SIGNALED : 0;
	const struct rmem_send_wr *wr;
	struct rsoft_mr *mr = NULL;
	uint32_t i = 0, nb_refs = 0;

	do {
		struct rsoft_key *key;

		wr = (const void *)(wrs + i * stride);
		key = rsoft_key_at(qp->dev, wr->invalidate_rkey);
		if (key->is_window && key->mr != NULL) {
			if (key->mr != mr) {
				inv_unhold_mr(mr, nb_refs);
				mr = key->mr;
				nb_refs = 0;
			}
			nb_refs++;
			key->mr = NULL;
		}
		rsoft_key_set_free(key);
	} while (++i < n && ((wr->flags | always) & RMEM_SEND_SIGNALED) == 0);
	inv_unhold_mr(mr, nb_refs);
	return i;
}
