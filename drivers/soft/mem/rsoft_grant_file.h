/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Files of granted memory, which peers map (wire/port/rwire_map.h), and the word by which they
 * detect the end of this process. This is the part of the process that owns the keys.
 *
 * A peer gets a descriptor by its number, with pidfd_getfd(2), for which the kernel requires the
 * same permission as for ptrace(2). Nothing is passed to it. The driver duplicates and closes no
 * descriptor of the application: the peer checks that the number still has the expected file.
 *
 * Only under the lock of rsoft_grant.c.
 */

#ifndef RSOFT_GRANT_FILE_H
#define RSOFT_GRANT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "rsoft_grant.h"

/*
 * Find the file that [base, base + length) maps, writable if is_written, and the offset of base in
 * it. NULL: the memory is not shared memory, is in several files, or no descriptor is open, or the
 * kernel can't report it. The file is in use until rsoft_grant_file_put().
 */
const struct rsoft_grant_file *rsoft_grant_file_get(
		const void *base, uint64_t length, bool is_written, uint64_t *offset);
void rsoft_grant_file_put(uint64_t id);

/*
 * The file with a futex that the kernel changes when this process ends; NULL: there is none. It is
 * held by a thread of this process, which calls this function again if the previous one has ended.
 */
const struct rsoft_grant_file *rsoft_grant_file_alive(void);

#endif /* RSOFT_GRANT_FILE_H */
