/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Counters of what peers do to an MR.
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

/** A counter. It lies in shared memory; read it by rmem_counter_read(). */
struct rmem_counter {
	struct rmem_obj obj;                /**< Private head. */
	uint64_t value __rte_cache_aligned; /**< Private: atomic; alone in its cache line. */
};

/**
 * Allocate a counter, which starts at 0.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param dev
 *   Device that the counter belongs to.
 * @param[out] counter
 *   The new counter. Written only on success. Release it with rmem_counter_free().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL counter.
 *   - -ENOMEM: no memory for the counter.
 *   - -ENODEV: the device is being closed.
 */
int rmem_counter_alloc(struct rmem_dev *dev, struct rmem_counter **counter);

/**
 * Read a counter. Who sees a request counted sees all bytes that it wrote.
 *
 * Fast path: one load. Safe to call from any thread. The handle is not looked at.
 *
 * @param counter
 *   Counter to read.
 *
 * @return
 *   Its value: requests counted since it was allocated, over all MRs it was bound to.
 */
static inline uint64_t
rmem_counter_read(const struct rmem_counter *counter)
{
	return __atomic_load_n(&counter->value, __ATOMIC_ACQUIRE);
}

/**
 * Free a counter.
 *
 * Control path. Safe to call from any thread, once for each counter and when no thread
 * reads it.
 *
 * @param counter
 *   Counter to release; not valid any more on success. NULL is allowed and does nothing.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a counter.
 *   - -EBUSY: it is bound to an MR.
 */
int rmem_counter_free(struct rmem_counter *counter);

/**
 * Bind a counter to an MR, or unbind the one that is bound (fi_mr(3): fi_mr_bind).
 *
 * Each request of a peer that modified the MR is counted once, after its bytes are there: a
 * WRITE, with immediate data or without, of one byte or more; a fetch-and-add; a
 * compare-and-swap that swapped. What came before the binding, or beside it, may be counted or
 * not; so bind it while the MR is disabled (RMEM_MR_DISABLED). One counter may be bound to
 * several MRs, an MR to one counter. While bound, neither can be released.
 *
 * What comes through a memory window counts too, when the window was bound after the counter;
 * through one bound before it may not. What comes through an indirect key does not count.
 *
 * When an unbinding returns, the MR counts no more. Counting makes a request slower.
 *
 * Control path: unbinding waits for lcores that are executing a request. Safe to call from any
 * thread.
 *
 * @param mr
 *   MR registered by rmem_mr_reg() or rmem_mr_reg_attr(), enabled or not.
 * @param counter
 *   Counter of the same device; NULL unbinds the one that is bound, if there is one.
 * @param flags
 *   RMEM_COUNTER_REMOTE_WRITE.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, one that requests bind, one that is being released; not a
 *     counter, one of another device, one that is being freed; or other flags.
 *   - -EBUSY: a counter is bound to the MR, or its registration is under way or failed.
 *   - -EOPNOTSUPP: the device can't count.
 */
int rmem_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_COUNTER_H */
