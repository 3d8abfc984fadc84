/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The REG_MR request: check, then bind.
 *
 * A list of contiguous pages, such as a buffer in a hugepage, makes a key like a registered MR's.
 * Any other list is copied to the MR (KIND_PAGES), and so is a list with pages of on-demand MRs
 * that the signal handler does not guard: only the kernel may copy them.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "rsoft_mr.h"
#include "rsoft_odp.h"

/* Check the fields of the request against each other (IBTA 10.6.3); an enum rmem_vendor_err. */
static uint32_t
reg_mr_check_range(const struct rsoft_dev *dev, const struct rmem_send_wr *wr)
{
	uint64_t page_size = UINT64_C(1) << (wr->reg_mr.log2_page_size & 63);
	uint64_t room = page_size * wr->reg_mr.page_list_len;

	if ((RSOFT_PAGE_SIZE_CAP & page_size) == 0 || wr->reg_mr.log2_page_size > 63)
		return RMEM_VENDOR_ERR_PAGE_SIZE;
	/* Any iova is accepted, as by ib_map_mr_sg() in the kernel. */
	if (wr->reg_mr.first_byte_offset >= page_size)
		return RMEM_VENDOR_ERR_OFFSET;
	if (wr->reg_mr.length == 0 || wr->reg_mr.length > dev->args.max_mr_size ||
			wr->reg_mr.first_byte_offset + (uint64_t)wr->reg_mr.length > room)
		return RMEM_VENDOR_ERR_LENGTH;
	return wr->reg_mr.length - 1 <= UINT64_MAX - wr->reg_mr.iova ? RMEM_VENDOR_ERR_NONE
								     : RMEM_VENDOR_ERR_WRAP;
}

bool
rsoft_reg_mr_check_access(uint32_t access, uint64_t iova)
{
	if (access & RMEM_ACCESS_FLUSH_PERSISTENT)
		return false;
	if (access & ~(RSOFT_ACCESS | RMEM_ACCESS_ZERO_BASED | RMEM_ACCESS_OPTIONAL_RANGE))
		return false;
	if ((access & RMEM_ACCESS_ZERO_BASED) && iova != 0)
		return false;
	return (access & RMEM_ACCESS_LOCAL_WRITE) ||
			!(access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC));
}

/* Whether there is a page at each address, and none at 0. */
static __rte_always_inline bool
reg_mr_are_aligned(const uint64_t *page, uint32_t nb, uint64_t mask)
{
	uint32_t i = 0;

	do {
		if (page[i] == 0 || (page[i] & mask) != 0)
			return false;
	} while (++i < nb);
	return true;
}

static __rte_noinline uint32_t
reg_mr_check(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	const struct rmem_mr *mr = wr->reg_mr.mr;
	const struct rmem_fast_reg_page_list *list = wr->reg_mr.page_list;
	uint32_t vendor_err;

	if (mr->type != RMEM_MR_TYPE_FAST_REG)
		return RMEM_VENDOR_ERR_MR_TYPE;
	if (mr->pd->handle != qp->pd)
		return RMEM_VENDOR_ERR_KEY_PD;
	if (wr->reg_mr.page_list_len == 0 || wr->reg_mr.page_list_len > rmem_mr_drv(mr)->max_size ||
			wr->reg_mr.page_list_len > list->max_page_list_len)
		return RMEM_VENDOR_ERR_NB_PAGES;
	if (!rsoft_reg_mr_check_access(wr->reg_mr.access, wr->reg_mr.iova))
		return RMEM_VENDOR_ERR_ACCESS;
	vendor_err = reg_mr_check_range(qp->dev, wr);
	if (vendor_err == RMEM_VENDOR_ERR_NONE &&
			!reg_mr_are_aligned(list->page_list, wr->reg_mr.page_list_len,
					(UINT64_C(1) << wr->reg_mr.log2_page_size) - 1))
		return RMEM_VENDOR_ERR_PAGE_ADDR;
	return vendor_err;
}

/* Fields of a request that decide whether its shape is valid. */
union reg_fields {
	struct {
		uint32_t access;
		uint16_t page_list_len;
		uint8_t log2_page_size;
		uint8_t key_tag; /* any value */
	} of;
	uint64_t word;
};

#define REG_FIELD(field) offsetof(struct rmem_send_wr, reg_mr.field)

static_assert(REG_FIELD(page_list_len) == REG_FIELD(access) + 4 &&
				REG_FIELD(log2_page_size) == REG_FIELD(access) + 6 &&
				REG_FIELD(key_tag) == REG_FIELD(access) + 7,
		"in the order of union reg_fields");

/* No request has them: the tag is cleared. */
#define REG_FIELDS_NONE UINT64_MAX

static __rte_always_inline uint64_t
reg_mr_fields(const struct rmem_send_wr *wr)
{
	union reg_fields fields;

	memcpy(&fields, &wr->reg_mr.access, sizeof(fields));
	fields.of.key_tag = 0;
	return fields.word;
}

/*
 * Rights, page size and number of pages that reg_mr_check() has accepted, which most requests of a
 * burst have in common.
 */
struct reg_shape {
	uint64_t fields; /* of reg_mr_fields(), or REG_FIELDS_NONE */
	uint64_t page_mask;
	uint64_t room;       /* bytes of all pages */
	uint64_t max_length; /* of the device and the pages */
	uint32_t rights;     /* of the key */
	bool is_simple;      /* of reg_mr_run() */
};

static void
reg_mr_set_shape(
		struct reg_shape *shape, const struct rsoft_dev *dev, const struct rmem_send_wr *wr)
{
	/* Whether a zero-based key is valid depends on its iova, too. */
	const bool is_zero = (wr->reg_mr.access & RMEM_ACCESS_ZERO_BASED) != 0;

	shape->fields = is_zero ? REG_FIELDS_NONE : reg_mr_fields(wr);
	shape->page_mask = (UINT64_C(1) << wr->reg_mr.log2_page_size) - 1;
	shape->room = (shape->page_mask + 1) * wr->reg_mr.page_list_len;
	shape->max_length = RTE_MIN(shape->room, dev->args.max_mr_size);
	shape->rights = RSOFT_NEED_READ | RSOFT_INV | (wr->reg_mr.access & RSOFT_ACCESS);
	shape->is_simple = wr->reg_mr.page_list_len == 1 && dev->history == NULL &&
			__atomic_load_n(&rsoft_odp_nb_unguarded, __ATOMIC_ACQUIRE) == 0;
}

/* Whether reg_mr_check() accepts a request of this shape; nb is its number of pages. */
static __rte_always_inline bool
reg_mr_fits(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, const struct reg_shape *shape,
		uint32_t nb)
{
	const struct rmem_mr *mr = wr->reg_mr.mr;
	const struct rmem_fast_reg_page_list *list = wr->reg_mr.page_list;
	uint64_t length = wr->reg_mr.length, offset = wr->reg_mr.first_byte_offset;

	return reg_mr_fields(wr) == shape->fields && mr->type == RMEM_MR_TYPE_FAST_REG &&
			mr->pd->handle == qp->pd && nb <= rmem_mr_drv(mr)->max_size &&
			nb <= list->max_page_list_len && offset <= shape->page_mask &&
			length - 1 < shape->max_length && offset + length <= shape->room &&
			length - 1 <= UINT64_MAX - wr->reg_mr.iova &&
			reg_mr_are_aligned(list->page_list, nb, shape->page_mask);
}

/* Whether each page begins where the previous one ends. */
static inline bool
reg_mr_is_contiguous(const struct rmem_send_wr *wr)
{
	const uint64_t *page = wr->reg_mr.page_list->page_list;
	uint32_t i;

	for (i = 1; i < wr->reg_mr.page_list_len; i++) {
		if (page[i] - page[i - 1] != UINT64_C(1) << wr->reg_mr.log2_page_size)
			return false;
	}
	return true;
}

/* Whether there is a page that only the kernel may copy. */
static __rte_noinline bool
reg_mr_is_unguarded(const struct rmem_send_wr *wr)
{
	const uint64_t *page = wr->reg_mr.page_list->page_list;
	uint32_t i;

	for (i = 0; i < wr->reg_mr.page_list_len; i++) {
		if (rsoft_odp_is_unguarded(page[i], UINT64_C(1) << wr->reg_mr.log2_page_size))
			return true;
	}
	return false;
}

/* Map the pages by a copy of the list; return the rights of the key. */
static __rte_noinline uint32_t
reg_mr_do_pages(struct rsoft_mr *mr, const struct rmem_send_wr *wr)
{
	const uint64_t *page = wr->reg_mr.page_list->page_list;
	struct rsoft_key *key = mr->key;
	uint32_t i;

	for (i = 0; i < wr->reg_mr.page_list_len; i++)
		mr->pages[i] = page[i];
	RSOFT_BIND_SET(key->kind, RSOFT_KIND_PAGES);
	RSOFT_BIND_SET(key->map_offset, wr->reg_mr.first_byte_offset);
	key->pages = mr->pages;
	return RSOFT_SLOW;
}

/* Fill a BUSY key; return its rights. */
static __rte_always_inline uint32_t
reg_mr_do(struct rsoft_mr *mr, const struct rmem_send_wr *wr, uint32_t rights)
{
	struct rsoft_key *key = mr->key;

	RSOFT_BIND_SET(key->iova, wr->reg_mr.iova);
	RSOFT_BIND_SET(key->length, wr->reg_mr.length);
	RSOFT_BIND_SET(key->log2_page_size, wr->reg_mr.log2_page_size);
	mr->odp = unlikely(__atomic_load_n(&rsoft_odp_nb_unguarded, __ATOMIC_ACQUIRE) != 0) &&
					reg_mr_is_unguarded(wr)
			? &rsoft_odp_raw
			: NULL;
	if (likely(mr->odp == NULL && reg_mr_is_contiguous(wr))) {
		RSOFT_BIND_SET(key->kind, RSOFT_KIND_BASE);
		RSOFT_BIND_SET(key->base,
				(uint8_t *)(uintptr_t)wr->reg_mr.page_list->page_list[0] +
						wr->reg_mr.first_byte_offset);
	} else {
		rights |= reg_mr_do_pages(mr, wr);
	}
	return rights;
}

/* Execute a request; return an enum rmem_vendor_err. */
static __rte_always_inline uint32_t
reg_mr_one(struct rsoft_qp *qp, const struct rmem_send_wr *wr, struct reg_shape *shape)
{
	struct rsoft_mr *mr = rsoft_mr_of(wr->reg_mr.mr);
	uint32_t rkey, reason;

	if (unlikely(!reg_mr_fits(qp, wr, shape, wr->reg_mr.page_list_len))) {
		reason = reg_mr_check(qp, wr);
		if (unlikely(reason != RMEM_VENDOR_ERR_NONE))
			return reason;
		reg_mr_set_shape(shape, qp->dev, wr);
	}
	if (unlikely(!rsoft_mr_take(mr, &rkey)))
		return RMEM_VENDOR_ERR_NOT_FREE;
	rsoft_key_bind(qp, mr->key, rkey, wr->reg_mr.key_tag, reg_mr_do(mr, wr, shape->rights), wr);
	return RMEM_VENDOR_ERR_NONE;
}

/*
 * Execute consecutive requests of a shape with one page, on a device without a history, while no
 * page is unguarded: until one is signaled, or needs reg_mr_one(). Return their number. The loop
 * calls no function, so its variables are in registers.
 */
static __rte_noinline uint32_t
reg_mr_run(const struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n, uint8_t always,
		const struct reg_shape *shape)
{
	const struct rmem_send_wr *wr;
	uint32_t rkey, i = 0;

	do {
		uint64_t iova, length, base;
		struct rsoft_mr *mr;
		struct rsoft_key *key;

		wr = (const void *)wrs;
		mr = rsoft_mr_of(wr->reg_mr.mr);
		if (unlikely(wr->opcode != RMEM_WR_REG_MR || !reg_mr_fits(qp, wr, shape, 1)))
			break;
		/* Loaded before: the locked instruction is a barrier for the compiler, too. */
		key = mr->key;
		iova = wr->reg_mr.iova;
		length = wr->reg_mr.length;
		base = wr->reg_mr.page_list->page_list[0] + wr->reg_mr.first_byte_offset;
		if (unlikely(!rsoft_mr_take(mr, &rkey)))
			break;
		RSOFT_BIND_SET(key->iova, iova);
		RSOFT_BIND_SET(key->length, length);
		RSOFT_BIND_SET(key->base, (uint8_t *)(uintptr_t)base);
		RSOFT_BIND_KEEP(key->kind, RSOFT_KIND_BASE);
		RSOFT_BIND_KEEP(key->log2_page_size, wr->reg_mr.log2_page_size);
		if (unlikely(mr->odp != NULL))
			mr->odp = NULL;
		rsoft_key_publish(key, rkey, wr->reg_mr.key_tag, shape->rights);
		wrs += stride;
	} while (++i < n && ((wr->flags | always) & RMEM_SEND_SIGNALED) == 0);
	return i;
}

/*
 * The locked instruction of each request waits for all preceding stores, so fields common to a
 * burst are stored once.
 */
uint32_t
rsoft_reg_mrs(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n, int *status,
		uint32_t *vendor_err)
{
	const uint8_t always = qp->sig_all ? RMEM_SEND_SIGNALED : 0;
	struct reg_shape shape = {.fields = REG_FIELDS_NONE};
	const struct rmem_send_wr *wr = (const void *)wrs;
	uint32_t reason, done, i = 0;

	*status = RMEM_WC_SUCCESS;
	do {
		done = shape.is_simple
				? reg_mr_run(qp, wrs + i * stride, stride, n - i, always, &shape)
				: 0;
		if (done == 0) {
			wr = (const void *)(wrs + i * stride);
			if (wr->opcode != RMEM_WR_REG_MR)
				break;
			reason = reg_mr_one(qp, wr, &shape);
			if (unlikely(reason != RMEM_VENDOR_ERR_NONE)) {
				*vendor_err = reason;
				*status = RMEM_WC_MW_BIND_ERR;
				RSOFT_COUNT(qp->stats.reg_mrs, i);
				return i + 1;
			}
			done = 1;
		}
		i += done;
		wr = (const void *)(wrs + (i - 1) * stride);
	} while (i < n && ((wr->flags | always) & RMEM_SEND_SIGNALED) == 0);
	RSOFT_COUNT(qp->stats.reg_mrs, i);
	return i;
}
