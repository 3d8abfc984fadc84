/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The UMR request: reserve the MR, check and copy the entries, bind.
 *
 * An indirect key holds no references: its entries are checked here, to report errors early, and
 * again at each access.
 * Invariant: no key is below itself. A key lacks VALID while it is bound, so its own list can't
 * have it as an entry, and the walk finds it in the lists below.
 */

#include "rsoft_access.h"
#include "rsoft_list.h"
#include "rsoft_mr.h"

/* Check the request against its MR; an enum rmem_vendor_err. */
static uint32_t
umr_check(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	const struct rmem_mr *mr = wr->umr.mr;

	if (mr->type != RMEM_MR_TYPE_INDIRECT)
		return RMEM_VENDOR_ERR_MR_TYPE;
	if (mr->pd->handle != qp->pd)
		return RMEM_VENDOR_ERR_KEY_PD;
	if (wr->umr.nb_entries == 0 || wr->umr.nb_entries > rmem_mr_drv(mr)->max_size ||
			wr->umr.repeat_count == 0)
		return RMEM_VENDOR_ERR_NB_ENTRIES;
	return rsoft_reg_mr_check_access(wr->umr.access, wr->umr.iova) ? RMEM_VENDOR_ERR_NONE
								       : RMEM_VENDOR_ERR_ACCESS;
}

/*
 * Length of the range from the first byte of an entry's first block to the last byte of its last
 * block; false if it wraps around.
 */
static bool
umr_extent(const struct rsoft_list_entry *entry, uint32_t repeat_count, uint64_t *extent)
{
	return !__builtin_mul_overflow(entry->step, (uint64_t)repeat_count - 1, extent) &&
			!__builtin_add_overflow(*extent, entry->length, extent) &&
			*extent - 1 <= UINT64_MAX - entry->addr;
}

/* Copy the entries to a list and check their fields; an enum rmem_vendor_err. */
static uint32_t
umr_fill(struct rsoft_list *list, const struct rmem_send_wr *wr, uint64_t max_mr_size)
{
	uint64_t extent, length, at = 0;
	uint32_t i;

	for (i = 0; i < wr->umr.nb_entries; i++) {
		const struct rmem_mkey_entry *from = &wr->umr.entries[i];
		struct rsoft_list_entry *entry = &list->entry[i];

		entry->start = at;
		entry->addr = from->addr;
		entry->length = from->length;
		entry->lkey = from->lkey;
		entry->step = 0;
		if (entry->length == 0 || from->reserved != 0)
			return RMEM_VENDOR_ERR_ENTRY;
		if (wr->umr.repeat_count != 1 &&
				__builtin_add_overflow(from->length, from->skip, &entry->step))
			return RMEM_VENDOR_ERR_WRAP;
		if (!umr_extent(entry, wr->umr.repeat_count, &extent) ||
				__builtin_add_overflow(at, entry->length, &at))
			return RMEM_VENDOR_ERR_WRAP;
	}
	RSOFT_BIND_SET(list->nb_entries, wr->umr.nb_entries);
	RSOFT_BIND_SET(list->round, at);
	if (__builtin_mul_overflow(at, (uint64_t)wr->umr.repeat_count, &length) ||
			length > max_mr_size)
		return RMEM_VENDOR_ERR_LENGTH;
	return length - 1 <= UINT64_MAX - wr->umr.iova ? RMEM_VENDOR_ERR_NONE
						       : RMEM_VENDOR_ERR_WRAP;
}

/*
 * Check the entries of a list, and add the lists below that this walk has not visited to *todo.
 * Return true if an entry has the key index.
 */
static bool
umr_scan(const struct rsoft_list *list, uint32_t index, uint64_t walk, struct rsoft_list **todo)
{
	uint32_t i;

	for (i = 0; i < list->nb_entries; i++) {
		uint32_t lkey = list->entry[i].lkey;
		const struct rsoft_key *key;
		uint64_t word;

		if (i != 0 && list->entry[i - 1].lkey == lkey)
			continue; /* the same key as the previous entry */
		if (lkey >> 8 == index)
			return true;
		/* Lists belong to indirect MRs, whose keys are in the slots of their indexes. */
		key = rsoft_key_at(list->dev, lkey);
		word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
		if (rsoft_word_rkey(word) != (lkey ^ list->dev->lkey_xor) ||
				!(rsoft_word_rights(word) & RSOFT_VALID) ||
				key->kind != RSOFT_KIND_LIST || key->list->is_memory ||
				key->list->walk == walk)
			continue;
		key->list->walk = walk;
		key->list->next = *todo;
		*todo = key->list;
	}
	return false;
}

/*
 * Whether a key index is below a list, at any depth. Each list is checked once, for any number of
 * paths to it. Other UMRs of the device wait for the walk, which itself never waits.
 */
static bool
umr_is_below(struct rsoft_dev *dev, struct rsoft_list *list, uint32_t index)
{
	struct rsoft_list *todo = list;
	bool is_below = false;
	uint64_t walk;

	rsoft_lock(&dev->umr_lock);
	walk = ++dev->umr_walks;
	list->walk = walk;
	list->next = NULL;
	while (todo != NULL && !is_below) {
		list = todo;
		todo = list->next;
		is_below = umr_scan(list, index, walk, &todo);
	}
	rte_ticketlock_unlock(&dev->umr_lock);
	return is_below;
}

/*
 * Check that the keys of the entries are valid for the rights of the new key, and set the levels.
 * Return an enum rmem_vendor_err.
 */
static uint32_t
umr_check_below(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, struct rsoft_list *list,
		uint32_t index)
{
	const uint32_t need = rsoft_list_need(wr->umr.access);
	const uint32_t max_depth = (uint32_t)qp->dev->args.max_mkey_depth;
	uint32_t i, rights, levels = 0;

	for (i = 0; i < list->nb_entries; i++) {
		const struct rsoft_list_entry *entry = &list->entry[i];
		const struct rsoft_key *key;
		uint64_t extent, offset;

		umr_extent(entry, wr->umr.repeat_count, &extent);
		key = rsoft_access_key(qp, qp->dev->lkey_xor, entry->lkey, entry->addr, extent,
				need, &offset, &rights);
		if (key == NULL)
			return RMEM_VENDOR_ERR_KEY_BELOW;
		if (key->kind == RSOFT_KIND_LIST)
			levels = RTE_MAX(levels, (uint32_t)key->list->levels);
	}
	if (levels >= max_depth)
		return RMEM_VENDOR_ERR_DEPTH;
	list->levels = (uint8_t)(levels + 1);
	if (levels != 0 && umr_is_below(qp->dev, list, index))
		return RMEM_VENDOR_ERR_CYCLE;
	return RMEM_VENDOR_ERR_NONE;
}

/* Fill a BUSY key from its list; return its rights. */
static uint32_t
umr_do(struct rsoft_key *key, struct rsoft_list *list, const struct rmem_send_wr *wr)
{
	RSOFT_BIND_SET(key->iova, wr->umr.iova);
	RSOFT_BIND_SET(key->length, list->round * wr->umr.repeat_count);
	RSOFT_BIND_SET(key->kind, RSOFT_KIND_LIST);
	key->map_offset = 0;
	key->list = list;
	return RSOFT_NEED_READ | RSOFT_INV | RSOFT_SLOW | (wr->umr.access & RSOFT_ACCESS);
}

int
rsoft_umr(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t *vendor_err)
{
	struct rsoft_mr *mr = rsoft_mr_of(wr->umr.mr);
	uint32_t rkey;

	*vendor_err = umr_check(qp, wr);
	if (unlikely(*vendor_err != RMEM_VENDOR_ERR_NONE))
		return RMEM_WC_MW_BIND_ERR;
	if (unlikely(!rsoft_mr_take(mr, &rkey))) {
		*vendor_err = RMEM_VENDOR_ERR_NOT_FREE;
		return RMEM_WC_MW_BIND_ERR;
	}
	*vendor_err = umr_fill(mr->list, wr, qp->dev->args.max_mr_size);
	if (likely(*vendor_err == RMEM_VENDOR_ERR_NONE))
		*vendor_err = umr_check_below(qp, wr, mr->list, rkey >> 8);
	if (unlikely(*vendor_err != RMEM_VENDOR_ERR_NONE)) {
		rsoft_key_release(mr->key);
		return RMEM_WC_MW_BIND_ERR;
	}
	rsoft_key_bind(qp, mr->key, rkey, wr->umr.key_tag, umr_do(mr->key, mr->list, wr), wr);
	RSOFT_COUNT(qp->stats.umrs, 1);
	return RMEM_WC_SUCCESS;
}
