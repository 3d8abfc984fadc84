/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The pages below a range of memory: what EAL and the kernel know of them, and having them there.
 * For the class and for the drivers that are part of the library. Not installed.
 */

#ifndef RMEM_PAGES_PRIV_H
#define RMEM_PAGES_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/** The whole pages of the system's size that hold a range: from first up to end. */
void rmem_pages_of(const struct iovec *range, uintptr_t *first, uintptr_t *end);

/** Whether the kernel has MADV_POPULATE_READ and _WRITE: Linux 5.14. */
bool rmem_pages_can_populate(void);

/**
 * Have whole pages there, and writable if so asked, as pinning them would. Where the kernel can't
 * populate, nothing is done.
 *
 * @return
 *   0, or a positive errno: EINVAL for what a device maps, which has no pages to populate, as
 *   well as for pages that may not be used so; others for what is not mapped or can't be had.
 */
int rmem_pages_populate(uintptr_t first, uintptr_t end, bool is_write);

/** Size of the pages of a range that is all EAL's own, else 0. */
uint64_t rmem_pages_eal_size(const struct iovec *range);

/** The range that a line of /proc/self/maps or smaps begins with; false: there is none. */
bool rmem_pages_parse(const char *line, uintptr_t *first, uintptr_t *end);

#endif /* RMEM_PAGES_PRIV_H */
