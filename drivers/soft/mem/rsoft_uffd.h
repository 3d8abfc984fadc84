/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Events of userfaultfd (rmem_uffd.h) for evicted pages of on-demand MRs, where the kernel permits
 * it. Each table of an explicit MR is a watcher.
 */

#ifndef RSOFT_UFFD_H
#define RSOFT_UFFD_H

#include "rsoft_odp_table.h"

/* Report evicted pages to the table, if possible. */
void rsoft_uffd_watch(struct rsoft_odp *odp);
void rsoft_uffd_unwatch(struct rsoft_odp *odp);

/* After pages of a watched table were populated: watch memory that was mapped since. */
void rsoft_uffd_renew(struct rsoft_odp *odp);

#endif /* RSOFT_UFFD_H */
