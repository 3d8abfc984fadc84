/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Indirect keys: one key over ranges of other keys, as a list or as repeated blocks.
 *
 * As the memory keys of mlx5dv_create_mkey(3), bound by UMR requests.
 *
 * Life of such an MR, like a fast-register one: rmem_mkey_alloc() allocates it as FREE;
 * RMEM_WR_UMR binds it to entries and makes it VALID with a new key tag; RMEM_WR_LOCAL_INV (or the
 * peer's RMEM_WR_SEND_WITH_INV) makes it FREE again; rmem_mr_dereg() releases it.
 *
 * Each access checks the lkeys of the entries that it uses: if one is no longer valid, or lacks
 * LOCAL_WRITE for a modification, the whole request fails before data is copied. An indirect key
 * holds no references to the MRs of its entries: they may be released first.
 */

#ifndef RMEM_MKEY_H
#define RMEM_MKEY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_mr;
struct rmem_pd;

/**
 * Entry of an indirect key (struct mlx5dv_mr_interleaved).
 *
 * In round r of a UMR's repeat_count the entry covers length bytes from addr + r * (length + skip)
 * on.
 */
struct rmem_mkey_entry {
	uint64_t addr;     /**< First byte, relative to the iova of the lkey's MR. */
	uint64_t length;   /**< Bytes of a block, at least 1. No alignment needed. */
	uint64_t skip;     /**< Bytes between two blocks; ignored in a list. */
	uint32_t lkey;     /**< lkey of a VALID MR of any type in the same PD. */
	uint32_t reserved; /**< Zero. */
};

/**
 * Allocate an MR for indirect keys, in the state FREE.
 *
 * RMEM_WR_UMR binds it. Requests use its lkey and rkey like the keys of any MR, and rmem_mr_query()
 * returns its range.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the MR belongs to.
 * @param max_entries
 *   Maximum number of entries of a UMR, 1 to rmem_dev_info::max_mkey_entries.
 * @param[out] mr
 *   The new MR. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL mr, or max_entries out of range.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_UMR.
 *   - -ENOSPC: the device already has rmem_dev_info::max_mr regions.
 *   - -ENOMEM: no memory for the MR.
 *   - -ENODEV: the device is being closed.
 */
int rmem_mkey_alloc(struct rmem_pd *pd, uint32_t max_entries, struct rmem_mr **mr);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MKEY_H */
