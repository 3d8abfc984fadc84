/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The threads in calls of a queue, with sanitize=1: a report of two at the same time, and of a
 * thread that is not registered with EAL.
 *
 * A device with sanitize=1 has its own functions of the fast path: each stores its thread in the
 * queue, calls the ordinary one, and removes it. Other devices execute nothing of this file.
 *
 * Invariant: a thread is removed before its call returns. So a queue that one thread hands over to
 * another, with any ordering between them, is found free. A report is made only if the thread found
 * exists in this process, which one that was inside at a fork() does not.
 */

#ifndef RSOFT_THREAD_CHECK_H
#define RSOFT_THREAD_CHECK_H

#include "base/rsoft.h"

/* Of a device with sanitize=1. */
extern const struct rmem_fp_ops rsoft_thread_check_fp;

/* The same for rsoft_post_bind_mw(), of all devices. */
int rsoft_thread_check_bind_mw(
		struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);

#endif /* RSOFT_THREAD_CHECK_H */
