/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * News of pages that go from below on-demand MRs, by userfaultfd, where the kernel allows it.
 *
 * One file descriptor and one control thread serve the process, while there are tables of
 * explicit MRs that watch. The memory is registered for write protection, which is never
 * asked for, so that no access of the program is changed; but its munmap(), madvise() and
 * mremap() wait until the thread has read the event. So the thread takes no lock and allocates
 * nothing: whoever holds one may be waiting for it.
 *
 * Invariant: the slots of tables are written under uffd.lock, with release; the thread reads
 * them with acquire, between two steps of uffd.pass, which is odd meanwhile. Who takes a table
 * out of its slot waits until pass was even or has moved on, and then nobody uses it.
 */

#ifndef RSOFT_UFFD_H
#define RSOFT_UFFD_H

#include "rsoft_odp_table.h"

/* Have the table told of pages that go, if that can be. */
void rsoft_uffd_watch(struct rsoft_odp *odp);
void rsoft_uffd_unwatch(struct rsoft_odp *odp);

/* Pages of a table that is watched were populated: what was mapped since is watched too. */
void rsoft_uffd_renew(struct rsoft_odp *odp);

#endif /* RSOFT_UFFD_H */
