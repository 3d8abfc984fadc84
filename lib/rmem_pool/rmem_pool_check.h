/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Checks of the limits before a pool is created or registered.
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
/** Too few free hugepages, or too little of EAL's memory if EAL runs without hugepages. */
#define RMEM_POOL_LIMIT_MEMORY (UINT32_C(1) << 2)
/** RLIMIT_MEMLOCK is too low for a device that pins registered memory. */
#define RMEM_POOL_LIMIT_MEMLOCK (UINT32_C(1) << 3)

/** Bytes of rmem_pool_report::text, the closing NUL included. */
#define RMEM_POOL_TEXT_SIZE 512

/** Requirements of a pool, and the resources available. */
struct rmem_pool_report {
	uint32_t limits;        /**< RMEM_POOL_LIMIT_* that are exceeded, or 0. */
	uint32_t pad;           /**< Zero. */
	uint64_t length;        /**< Bytes to register; whole pages for a new pool. */
	uint64_t buf_size;      /**< Bytes of a buffer, which one MR must cover. */
	uint64_t max_mr_size;   /**< Bytes of the largest MR. */
	uint64_t nb_mrs;        /**< MRs needed. */
	uint64_t nb_mrs_left;   /**< MRs that the device has left. */
	uint64_t page_size;     /**< Bytes of the pages of a new pool, else 0. */
	uint64_t nb_pages;      /**< Pages of a new pool, including one for EAL, else 0. */
	uint64_t nb_pages_left; /**< Free pages, UINT64_MAX if none are needed. */
	uint64_t memlock;       /**< Bytes that a device which pins memory would lock. */
	uint64_t memlock_left;  /**< Bytes that the process can still lock, UINT64_MAX for any. */
	uint64_t reserved[4];   /**< Zero. */
	/** The report as one line: the limits exceeded, by how much, and the remedy. */
	char text[RMEM_POOL_TEXT_SIZE];
};

/**
 * Check the resources that rmem_pool_create() needs, and report limits exceeded.
 *
 * The call allocates nothing; other allocations may use the resources before the pool is
 * created. Free pages are counted, not their addresses: the result can be wrong by one page. An
 * exceeded RLIMIT_MEMLOCK is reported and is not an error, since not every device pins memory.
 *
 * Control path. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain, as for rmem_pool_create().
 * @param conf
 *   Configuration, as for rmem_pool_create().
 * @param[out] report
 *   Written on success, and if a limit is exceeded.
 *
 * @return
 *   0 if the resources suffice, otherwise:
 *   - -EINVAL: arguments that rmem_pool_create() refuses with -EINVAL (nothing is written, unless
 *     the limit is rmem_dev_info::max_mr_size), or NULL report.
 *   - -ENOSPC: the device has too few MRs left.
 *   - -ENOMEM: too little memory is free.
 *   - -ENODEV: the device is being closed.
 */
int rmem_pool_check(const struct rmem_pd *pd, const struct rmem_pool_conf *conf,
		struct rmem_pool_report *report);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_POOL_CHECK_H */
