/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Tracked mempools: each buffer has an owner, a process.
 *
 * The primary process of DPDK and its secondary processes share a pool with RMEM_POOL_TRACKED. A
 * get makes the calling process the owner of the buffers; a put makes them free. A process can be
 * killed at any instruction: it leaves no lock, and rmem_tracked_reap() frees the buffers that it
 * owned.
 *
 * Processes have numbers: 1 is the primary process; a secondary process gets a number from 2 on
 * when it attaches (rmem_process_number()). Until then, and after it has detached from its last
 * device, its gets and puts are refused; the first refusal is logged.
 */

#ifndef RMEM_TRACKED_H
#define RMEM_TRACKED_H

#include <stdint.h>

#include <rte_mempool.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Become the owner of buffers received from another process.
 *
 * Until this call the buffers belong to the process that got them, and are freed if that process
 * dies, even if their addresses are in a ring by then. Buffers that do not belong to process @p
 * from are removed from the array: they were freed when the sender died, and must not be used.
 *
 * Fast path: an atomic operation for each buffer. Safe to call from any thread.
 *
 * @param mp
 *   Mempool of a tracked pool, such as rmem_pool::mp.
 * @param[in,out] objs
 *   Buffers. On return, the buffers that this process owns come first, in the same order.
 * @param n
 *   Number of buffers; 0 is allowed.
 * @param from
 *   Number of the process that sent them. With 0 the owner may be any process: then a buffer that
 *   was freed and got again by a third process is taken from that process.
 *
 * @return
 *   Number of buffers that this process owns, otherwise:
 *   - -EINVAL: mp is not a tracked mempool, or from is not the number of a process.
 *   - -EOPNOTSUPP: this process has no number.
 */
int rmem_tracked_own(struct rte_mempool *mp, void **objs, unsigned int n, uint16_t from);

/**
 * Get the owner of a buffer.
 *
 * Control path. Safe to call from any thread.
 *
 * @param mp
 *   Mempool of a tracked pool.
 * @param obj
 *   First byte of the buffer.
 *
 * @return
 *   Number of the process, 0 if the buffer is free, otherwise:
 *   - -EINVAL: mp is not a tracked mempool, or obj is not a buffer of it.
 */
int rmem_tracked_owner(const struct rte_mempool *mp, const void *obj);

/**
 * Register the mempool ops of a tracked mempool in this process.
 *
 * rmem_pool_lookup() calls it. A secondary process that was given the address of the mempool calls
 * it before it gets or puts.
 *
 * Control path. Safe to call from any thread.
 *
 * @param mp
 *   Mempool of a tracked pool.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL mp.
 *   - -EOPNOTSUPP, -ENOSPC: as rmem_pool_lookup().
 */
int rmem_tracked_ops_set(const struct rte_mempool *mp);

/**
 * Free the buffers of a process that died, in all tracked mempools.
 *
 * A second call finds nothing to free. The process must be dead, not only silent; its number must
 * not be given to another process before the call returns. Buffers that other processes received
 * from it, and do not own yet, are freed, too.
 *
 * Control path, in the primary process. Safe to call from any thread, also while other processes
 * get and put.
 *
 * @param process
 *   Number of the process.
 *
 * @return
 *   Number of buffers freed, otherwise:
 *   - -EINVAL: not the number of a secondary process.
 *   - -EOPNOTSUPP: this is a secondary process.
 */
int rmem_tracked_reap(uint16_t process);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_TRACKED_H */
