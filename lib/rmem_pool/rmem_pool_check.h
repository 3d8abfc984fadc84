/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Before a pool is made or registered: which limit is short, by how much, and what to do.
 */

#ifndef RMEM_POOL_CHECK_H
#define RMEM_POOL_CHECK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_pd;
struct rmem_pool_conf;

/** A single buffer is larger than rmem_dev_info::max_mr_size. */
#define RMEM_POOL_LIMIT_MR_SIZE (UINT32_C(1) << 0)
/** Too few MRs, each with its keys, are left of rmem_dev_info::max_mr. */
#define RMEM_POOL_LIMIT_MRS (UINT32_C(1) << 1)
/** Too few free hugepages, or too little of EAL's memory when it runs without them. */
#define RMEM_POOL_LIMIT_MEMORY (UINT32_C(1) << 2)
/** RLIMIT_MEMLOCK is too low for a device that pins what it registers. */
#define RMEM_POOL_LIMIT_MEMLOCK (UINT32_C(1) << 3)

/** Bytes of rmem_pool_report::text, the closing NUL included. */
#define RMEM_POOL_TEXT_SIZE 512

/** What a pool needs, and what there is of it. */
struct rmem_pool_report {
	uint32_t limits;        /**< RMEM_POOL_LIMIT_* that are short; 0 when it fits. */
	uint32_t pad;           /**< Zero. */
	uint64_t length;        /**< Bytes to register; those of a new pool in whole pages. */
	uint64_t buf_size;      /**< Bytes of a buffer, which one MR has to hold. */
	uint64_t max_mr_size;   /**< Bytes of the largest MR. */
	uint64_t nb_mrs;        /**< MRs that it takes. */
	uint64_t nb_mrs_left;   /**< MRs that the device has left. */
	uint64_t page_size;     /**< Bytes of the pages of a new pool, else 0. */
	uint64_t nb_pages;      /**< Pages that a new pool takes, one for EAL included, else 0. */
	uint64_t nb_pages_left; /**< Pages that are free, UINT64_MAX when none are needed. */
	uint64_t memlock;       /**< Bytes that a device which pins would lock. */
	uint64_t memlock_left;  /**< Bytes that the process may lock yet, UINT64_MAX for any. */
	/** All of it as one line: what is short, by how much, and what to do. */
	char text[RMEM_POOL_TEXT_SIZE];
};

/**
 * Tell whether rmem_pool_create() finds what it needs, and what is short if not.
 *
 * It makes nothing. Others may take what it found free. Free pages are counted, not
 * their addresses: it can be wrong by one page. A short RLIMIT_MEMLOCK is told in the
 * report and is no failure, since not every device pins.
 *
 * Control path. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain that rmem_pool_create() shall get.
 * @param conf
 *   Configuration that it shall get.
 * @param[out] report
 *   Written on success, and when a limit is short.
 *
 * @return
 *   0 when it fits, otherwise:
 *   - -EINVAL: what rmem_pool_create() refuses as such (nothing is written, unless the
 *     limit is rmem_dev_info::max_mr_size), or NULL report.
 *   - -ENOSPC: the device has too few MRs left.
 *   - -ENOMEM: too little memory is free.
 *   - -ENODEV: the device is being closed.
 */
int rmem_pool_check(struct rmem_pd *pd, const struct rmem_pool_conf *conf,
		struct rmem_pool_report *report);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_POOL_CHECK_H */
