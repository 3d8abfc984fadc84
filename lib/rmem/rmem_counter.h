/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Counters of modifications of MRs by peers.
 */

#ifndef RMEM_COUNTER_H
#define RMEM_COUNTER_H

#include <stdint.h>

#include <rte_common.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_dev;
struct rmem_mr;

/** Count WRITEs, WRITEs with immediate data and atomics of peers that modify the MR. */
#define RMEM_COUNTER_REMOTE_WRITE (UINT32_C(1) << 0)

/** Counter, in shared memory; read it with rmem_counter_read(). */
struct rmem_counter {
	struct rmem_obj obj;                /**< Private head. */
	uint64_t value __rte_cache_aligned; /**< Private: atomic; alone in its cache line. */
};

/** Counter creation parameters. The caller zeroes it first. */
struct rmem_counter_conf {
	uint32_t flags;       /**< No flag is defined: 0. */
	uint32_t pad;         /**< Zero. */
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Create a counter with the value 0.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param dev
 *   Device that the counter belongs to.
 * @param conf
 *   Parameters, or NULL for none; not needed after the call.
 * @param[out] counter
 *   The new counter. Written only on success. Release it with rmem_counter_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, NULL counter, an unknown flag, or a reserved field that
 *     is not zero.
 *   - -ENOMEM: no memory for the counter.
 *   - -ENODEV: the device is being closed.
 */
int rmem_counter_create(struct rmem_dev *dev, const struct rmem_counter_conf *conf,
		struct rmem_counter **counter);

/**
 * Read a counter.
 *
 * The data of all counted requests is visible to the calling thread.
 *
 * Fast path: one load. Safe to call from any thread. The handle is not checked.
 *
 * @param counter
 *   Counter to read.
 *
 * @return
 *   Number of requests counted since the allocation, over all MRs it was bound to.
 */
static inline uint64_t
rmem_counter_read(const struct rmem_counter *counter)
{
	return __atomic_load_n(&counter->value, __ATOMIC_ACQUIRE);
}

/**
 * Destroy a counter.
 *
 * Control path. Safe to call from any thread, once for each counter and when no thread
 * reads it.
 *
 * @param counter
 *   Counter to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a counter.
 *   - -EBUSY: it is bound to an MR.
 */
int rmem_counter_destroy(struct rmem_counter *counter);

/**
 * Bind a counter to an MR, or unbind its counter (fi_mr(3): fi_mr_bind).
 *
 * Each request of a peer that modified the MR is counted once, after its data was written: a
 * WRITE, with or without immediate data, of at least one byte; a fetch-and-add; a
 * compare-and-swap that swapped. Requests before and during the binding may be counted or not:
 * bind it while the MR is disabled (RMEM_MR_DISABLED). One counter may be bound to several MRs,
 * an MR to one counter. While bound, neither can be released.
 *
 * Requests through a memory window are counted if the window was bound after the counter; if it
 * was bound before, they may not be. Requests through an indirect key are not counted.
 *
 * When an unbinding returns, the MR is no longer counted. Counting slows requests down.
 *
 * Control path: unbinding waits for lcores that are executing a request. Safe to call from any
 * thread.
 *
 * @param mr
 *   MR registered by rmem_mr_reg() or rmem_mr_reg_attr(), enabled or not.
 * @param counter
 *   Counter of the same device; NULL unbinds the current one, if any.
 * @param flags
 *   RMEM_COUNTER_REMOTE_WRITE.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, one bound by requests, a null MR, one that is being released;
 *     not a counter, one of another device, one that is being freed; or other flags.
 *   - -EBUSY: a counter is bound to the MR, or its registration is in progress or failed.
 *   - -EOPNOTSUPP: the device does not support counters.
 */
int rmem_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_COUNTER_H */
