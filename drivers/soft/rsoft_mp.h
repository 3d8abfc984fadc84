/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QPs claimed by secondary processes of DPDK.
 *
 * A secondary process writes requests and receives to the queues of its QPs, and reads completions.
 * The primary executes them: its engines, or its polls of any CQ of the device.
 *
 * Invariant: a secondary process takes no lock, holds no reference, and is in no grace section. Of
 * the shared memory it writes only what one store publishes, and of which it is the only writer:
 *   sq.prod, after the requests    rq.prod, after the receives    cq.cons, after its copies
 * and fields that only the thread that posts reads: sq.posted, sq.retired, sq.sig_head,
 * rq.cons_cached. So a process that is killed at any instruction leaves queues that are valid, and
 * delays no other thread. Requests that it had not published are lost.
 *
 * Without engines a claimed QP is in the pending list of its device until the claim ends.
 *
 * A killed process could not release the references that a queued request of the primary holds. So
 * a request of a claimed QP holds none; the release of an object looks for it in the
 * queues of claimed QPs.
 */

#ifndef RSOFT_MP_H
#define RSOFT_MP_H

#include "base/rsoft.h"

extern const struct rmem_mp_ops rsoft_mp_ops;

#endif /* RSOFT_MP_H */
