/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The log line of a failed request, with the history of its key; see rsoft_history.h. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "rsoft_history.h"
#include "rsoft_key_hash.h"

static const char *const event_words[] = {
		[RSOFT_HISTORY_REG] = "registered",
		[RSOFT_HISTORY_WR] = "bound",
		[RSOFT_HISTORY_INV] = "invalidated",
		[RSOFT_HISTORY_DEREG] = "deregistered",
};

/* Whether the last key of a slot had the index of this key. */
static bool
is_of(const struct rsoft_history *history, uint32_t key)
{
	const uint64_t info = __atomic_load_n(&history->made.info, __ATOMIC_RELAXED);

	return info >> 48 != RSOFT_HISTORY_NONE && (uint32_t)info >> 8 == key >> 8;
}

/* History of a key. A requested key may be in any slot: choose the latest one. */
static struct rsoft_history *
history_of(const struct rsoft_dev *dev, uint32_t key)
{
	struct rsoft_history *history = &dev->history[rsoft_key_at(dev, key) - dev->keys];
	uint64_t tsc, last = 0;
	uint32_t i;

	if (__atomic_load_n(&dev->key_hash, __ATOMIC_ACQUIRE) == NULL)
		return history;
	for (i = 0; i < dev->nb_keys; i++) {
		tsc = __atomic_load_n(&dev->history[i].made.tsc, __ATOMIC_RELAXED);
		if (tsc > last && is_of(&dev->history[i], key)) {
			history = &dev->history[i];
			last = tsc;
		}
	}
	return history;
}

/* Append "; invalidated 3.1 us ago by lcore 2, request 0x7 of QP 0x000801" to a text. */
static void
add_note(char *text, size_t size, const struct rsoft_history_note *from, uint32_t key)
{
	const uint64_t info = __atomic_load_n(&from->info, __ATOMIC_RELAXED);
	const uint64_t qp_num = __atomic_load_n(&from->qp_num, __ATOMIC_RELAXED);
	const uint64_t wr_id = __atomic_load_n(&from->wr_id, __ATOMIC_RELAXED);
	const uint32_t rkey = (uint32_t)info, lcore = info >> 32 & 0xffff;
	const double us = (double)(rte_rdtsc() - __atomic_load_n(&from->tsc, __ATOMIC_RELAXED)) *
			1e6 / (double)rte_get_tsc_hz();
	size_t n = strlen(text);

	if (info >> 48 == RSOFT_HISTORY_NONE || rkey >> 8 != key >> 8)
		return;
	n += (size_t)snprintf(
			text + n, size - n, "; %s %.1f us ago by ", event_words[info >> 48], us);
	if (lcore == (LCORE_ID_ANY & 0xffff))
		n += (size_t)snprintf(text + n, size - n, "a thread without an lcore id");
	else
		n += (size_t)snprintf(text + n, size - n, "lcore %u", lcore);
	if (qp_num & RSOFT_HISTORY_HAS_WR)
		n += (size_t)snprintf(text + n, size - n,
				", request 0x%" PRIx64 " of QP 0x%06" PRIx64, wr_id,
				qp_num & ~RSOFT_HISTORY_HAS_WR);
	else if (qp_num != 0)
		n += (size_t)snprintf(text + n, size - n,
				", request of the peer of QP 0x%06" PRIx64, qp_num);
	if (rkey != key)
		snprintf(text + n, size - n, ", as 0x%08x", rkey);
}

/* Append "; MR `name`"; for a window, the name of its MR. */
static void
add_name(char *text, size_t size, struct rsoft_dev *dev, const struct rsoft_history *history,
		uint32_t key)
{
	const uint32_t below = (uint32_t)__atomic_load_n(&history->below, __ATOMIC_RELAXED);

	if (!is_of(history, key))
		return;
	if (below != 0) {
		history = history_of(dev, below);
		if (!is_of(history, below))
			return;
	}
	rte_ticketlock_lock(&dev->lock);
	if (history->name[0] != '\0')
		snprintf(text, size, "; %sMR `%s`", below != 0 ? "window of " : "", history->name);
	rte_ticketlock_unlock(&dev->lock);
}

/* Whether a refused key is the key of an MR with its tag inverted. */
static bool
is_inverted(const struct rsoft_dev *dev, const struct rmem_qp_error *error, uint32_t rkey)
{
	const uint64_t made = __atomic_load_n(&history_of(dev, rkey)->made.info, __ATOMIC_RELAXED);

	if (dev->lkey_xor == 0 ||
			(error->vendor_err != RMEM_VENDOR_ERR_KEY_TAG &&
					error->vendor_err != RMEM_VENDOR_ERR_KEY_INDEX))
		return false;
	return rsoft_key_of(dev, rkey) != NULL ||
			(made >> 48 != RSOFT_HISTORY_NONE && (uint32_t)made == rkey);
}

/*
 * Return the key of an error as an rkey. If an lkey was used as rkey, or an rkey as lkey, return
 * the key of the MR, and a text with the right key.
 */
static uint32_t
find_swapped_key(char *text, size_t size, const struct rsoft_dev *dev,
		const struct rmem_qp_error *error)
{
	const bool is_lkey = error->status == RMEM_WC_LOC_PROT_ERR;
	const uint32_t key = error->key ^ (is_lkey ? dev->lkey_xor : 0);
	const uint32_t other = key ^ dev->lkey_xor;
	const struct rsoft_key *had = rsoft_key_of(dev, other);

	text[0] = '\0';
	if (had != NULL && had->is_window) {
		if (!is_lkey)
			return key;
		snprintf(text, size, "; an rkey given as lkey: windows have no lkey");
	} else if (!is_inverted(dev, error, other)) {
		return key;
	} else if (is_lkey) {
		snprintf(text, size, "; an rkey given as lkey: the lkey is 0x%08x", key);
	} else {
		snprintf(text, size, "; an lkey given as rkey: the rkey is 0x%08x", other);
	}
	return other;
}

void
rsoft_history_report(
		const struct rmem_qp *qp, const struct rmem_qp_error *error, const char *memory)
{
	static const char *const sides[] = {
			[RMEM_QP_ERROR_SEND] = "request",
			[RMEM_QP_ERROR_RECV] = "receive",
			[RMEM_QP_ERROR_PEER] = "request of the peer",
	};
	struct rsoft_dev *dev = rsoft_dev_of(&qp->obj);
	struct rsoft_history *history;
	char text[480] = "";
	char mixup[80];
	uint32_t key;

	if (dev->history == NULL || error->key == 0)
		return;
	if (error->side == RMEM_QP_ERROR_SEND && error->status != RMEM_WC_LOC_PROT_ERR &&
			error->status != RMEM_WC_MW_BIND_ERR)
		return; /* the peer's key; its QP reports it */
	key = find_swapped_key(mixup, sizeof(mixup), dev, error);
	history = history_of(dev, key);
	add_name(text, sizeof(text), dev, history, key);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", memory);
	add_note(text, sizeof(text), &history->ended, key);
	add_note(text, sizeof(text), &history->made, key);
	RSOFT_LOG(WARNING, "sanitize: QP 0x%06x%s: %s (%s) failed: key 0x%08x: %s%s%s", qp->qp_num,
			RSOFT_QP_NAME(qp), sides[error->side], rmem_wc_status_str(error->status),
			error->key, rmem_wc_vendor_err_str(error->vendor_err), mixup,
			text[0] != '\0' ? text : "; no MR or window of this device had it");
}
