/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Events of userfaultfd for evicted pages of on-demand MRs, where the kernel permits it.
 *
 * One file descriptor and one control thread serve the process, while there are tables of explicit
 * MRs that watch. The memory is registered for write protection, which is never enabled, so
 * accesses of the application are not affected. But its munmap(), madvise() and mremap() wait until
 * the thread has read the event. So the thread takes no lock and allocates nothing: a thread that
 * holds a lock may be waiting for it.
 *
 * Invariant: the slots of tables are written under uffd.lock, with release; the thread reads an
 * event and then the slots, with acquire, between two steps of uffd.pass, which is odd during that
 * time. A thread that removes a table from its slot waits until pass was even or has advanced; then
 * it is not in use.
 */

#ifndef RSOFT_UFFD_H
#define RSOFT_UFFD_H

#include "rsoft_odp_table.h"

/* Report evicted pages to the table, if possible. */
void rsoft_uffd_watch(struct rsoft_odp *odp);
void rsoft_uffd_unwatch(struct rsoft_odp *odp);

/* After pages of a watched table were populated: watch memory that was mapped since. */
void rsoft_uffd_renew(struct rsoft_odp *odp);

/* Wait until the pages that the caller had evicted are no longer in any table, nor counted. */
void rsoft_uffd_settle(void);

#endif /* RSOFT_UFFD_H */
