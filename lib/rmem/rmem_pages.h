/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Pages of a range of memory, for drivers.
 */

#ifndef RMEM_PAGES_H
#define RMEM_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Get the whole system pages that contain a range.
 *
 * Control path. Safe to call from any thread.
 *
 * @param range
 *   Range of memory, mapped or not.
 * @param[out] first
 *   Address of the first page.
 * @param[out] end
 *   End of the last page.
 */
void rmem_pages_of(const struct iovec *range, uintptr_t *first, uintptr_t *end);

/**
 * Check whether the kernel can populate pages: MADV_POPULATE_* (Linux 5.14).
 *
 * Control path. Safe to call from any thread.
 *
 * @return
 *   Whether rmem_pages_populate() populates.
 */
bool rmem_pages_can_populate(void);

/**
 * Populate whole pages, as pinning them would.
 *
 * Has no effect if the kernel does not support it.
 *
 * Control path: may wait for pages. Safe to call from any thread.
 *
 * @param first
 *   Address of the first page.
 * @param end
 *   End of the last page.
 * @param is_write
 *   Whether they must be writable.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: pages of a device, or protected ones, which cannot be populated.
 *   - -EFAULT: pages that are not mapped, or cannot be allocated.
 */
int rmem_pages_populate(uintptr_t first, uintptr_t end, bool is_write);

/**
 * Get the limit of the bytes that this process may lock or pin: RLIMIT_MEMLOCK.
 *
 * Control path. Safe to call from any thread.
 *
 * @return
 *   Bytes; UINT64_MAX if there is no limit, or it does not apply to the thread (CAP_IPC_LOCK).
 */
uint64_t rmem_pages_lock_limit(void);

/**
 * Get the page size of a range of EAL memory.
 *
 * Control path. Safe to call from any thread.
 *
 * @param range
 *   Range of memory.
 *
 * @return
 *   Bytes of a page; 0 if part of the range is other memory.
 */
uint64_t rmem_pages_eal_size(const struct iovec *range);

/**
 * Parse the range at the start of a line of /proc/self/maps or smaps.
 *
 * Control path. Safe to call from any thread.
 *
 * @param line
 *   Line of the file.
 * @param[out] first
 *   First byte of the range.
 * @param[out] end
 *   End of the range.
 *
 * @return
 *   Whether the line begins with a range.
 */
bool rmem_pages_parse(const char *line, uintptr_t *first, uintptr_t *end);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_PAGES_H */
