/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Numbers of the processes that share DPDK's memory.
 */

#ifndef RMEM_PROCESS_H
#define RMEM_PROCESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Number of the primary process. */
#define RMEM_PROCESS_PRIMARY 1

/** Highest number of a process. */
#define RMEM_PROCESS_MAX 254

/**
 * Get the number of this process among those that share DPDK's memory.
 *
 * Fast path. Safe to call from any thread.
 *
 * @return
 *   RMEM_PROCESS_PRIMARY in the primary process. In a secondary one the number that it was given
 *   when it attached, 2 to RMEM_PROCESS_MAX, and 0 without. 0 also in a child of fork() of a
 *   process whose devices secondary processes can attach to, or which is one.
 */
uint16_t rmem_process_number(void);

/**
 * Set the number of this process, when it attaches.
 *
 * A number must not be given again while buffers of tracked pools belong to it, and should be
 * given again as late as possible: the address of a buffer that a dead process sent may be
 * received late (rmem_tracked_own()).
 *
 * Control path. Not while another thread uses a tracked pool.
 *
 * @param process
 *   Number, 0 for none: then the number of its type, as for rmem_process_number().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: above RMEM_PROCESS_MAX.
 */
int rmem_process_number_set(uint16_t process);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_PROCESS_H */
