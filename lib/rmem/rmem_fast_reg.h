/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fast registration: bind an MR to pages with work requests.
 *
 * This is IB_WR_REG_MR of the kernel, proposed in 2008 as "RDMA: New Memory Extensions". The MR is
 * allocated once and bound any number of times by requests on the send queue, without a system
 * call.
 *
 * Life of such an MR: rmem_fast_reg_mr_alloc() allocates it as FREE; RMEM_WR_REG_MR binds it to
 * the pages of a page list and makes it VALID with a new key tag; RMEM_WR_LOCAL_INV (or the
 * peer's RMEM_WR_SEND_WITH_INV) makes it FREE again; rmem_mr_dereg() releases it.
 */

#ifndef RMEM_FAST_REG_H
#define RMEM_FAST_REG_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_dev;
struct rmem_mr;
struct rmem_pd;

/**
 * List of pages for one RMEM_WR_REG_MR.
 *
 * The device owns the list from the post of the REG_MR until its completion: use one list for each
 * REG_MR in flight.
 */
struct rmem_fast_reg_page_list {
	struct rmem_obj obj;        /**< Private head. */
	uint32_t max_page_list_len; /**< Maximum number of pages. */
	uint64_t *page_list;        /**< IO address of each page, a multiple of the page size. The
			       *  software device takes virtual addresses, and a verbs device
			       *  addresses in VALID MRs of the PD. */
};

/**
 * Allocate an MR for fast registration, in the state FREE.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the MR belongs to.
 * @param max_page_list_len
 *   Maximum number of pages of a REG_MR, 1 to rmem_dev_info::max_page_list_len.
 * @param[out] mr
 *   The new MR. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL mr, or max_page_list_len out of range.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_FAST_REG.
 *   - -ENOSPC: the device already has rmem_dev_info::max_mr regions.
 *   - -ENOMEM: no memory for the MR.
 *   - -ENODEV: the device is being closed.
 */
int rmem_fast_reg_mr_alloc(struct rmem_pd *pd, uint32_t max_page_list_len, struct rmem_mr **mr);

/**
 * Allocate a page list for REG_MR requests.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param dev
 *   Device of the REG_MR requests.
 * @param max_page_list_len
 *   Maximum number of pages, 1 to rmem_dev_info::max_page_list_len.
 * @param[out] page_list
 *   The new list. Written only on success. Release it with
 *   rmem_fast_reg_page_list_free().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, NULL page_list, or max_page_list_len out of range.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_FAST_REG.
 *   - -ENOMEM: no memory for the list.
 *   - -ENODEV: the device is being closed.
 */
int rmem_fast_reg_page_list_alloc(struct rmem_dev *dev, uint32_t max_page_list_len,
		struct rmem_fast_reg_page_list **page_list);

/**
 * Free a page list.
 *
 * Control path. Safe to call from any thread, once for each list.
 *
 * @param page_list
 *   List to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a page list.
 *   - -EBUSY: a REG_MR with this list waits in a send queue.
 */
int rmem_fast_reg_page_list_free(struct rmem_fast_reg_page_list *page_list);

/**
 * Get the rkey of an MR after a REG_MR with the given tag.
 *
 * As ib_update_fast_reg_key() of the kernel, ibv_inc_rkey() of verbs.
 *
 * Fast path.
 *
 * @param rkey
 *   Any rkey of the MR, such as rmem_mr::rkey.
 * @param key_tag
 *   Tag of the REG_MR.
 *
 * @return
 *   The rkey after that REG_MR.
 */
static inline uint32_t
rmem_rkey_of_tag(uint32_t rkey, uint8_t key_tag)
{
	return (rkey & ~UINT32_C(0xff)) | key_tag;
}

/**
 * Get the tag for the next REG_MR of an MR; it makes the current key invalid.
 *
 * Fast path.
 *
 * @param rkey
 *   Current rkey of the MR.
 *
 * @return
 *   The current tag plus one; it wraps after 256 registrations.
 */
static inline uint8_t
rmem_rkey_next_tag(uint32_t rkey)
{
	return (uint8_t)(rkey + 1);
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_FAST_REG_H */
