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
 *   RMEM_PROCESS_PRIMARY in the primary process. In a secondary process the number that it got when
 *   it attached, 2 to RMEM_PROCESS_MAX, or 0 if it is not attached. In a child of fork(), 0 if the
 *   parent is a secondary process, or a primary process that secondary processes can attach to.
 */
uint16_t rmem_process_number(void);

/**
 * Set the number of this process, when it attaches.
 *
 * A number must not be reused while buffers of tracked pools belong to it, and should be reused as
 * late as possible: the address of a buffer that a dead process has sent may still be in a queue
 * (rmem_tracked_own()).
 *
 * Control path. No other thread may use a tracked pool.
 *
 * @param process
 *   Number; 0 restores the default: RMEM_PROCESS_PRIMARY in the primary, 0 in a secondary process.
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
