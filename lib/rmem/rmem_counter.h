/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Counters of modifications of MRs by peers, and of completed requests of QPs.
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
struct rmem_qp;

/** Flag of a counter for QPs: count bytes instead of requests. */
#define RMEM_COUNTER_BYTES (UINT32_C(1) << 0)

/** Count WRITEs, WRITEs with immediate data and atomics of peers that modify the MR. */
#define RMEM_COUNTER_REMOTE_WRITE (UINT32_C(1) << 0)

/** Requests of a QP that a counter counts: the values of enum ibv_qp_attach_comp_cntr_op. */
enum rmem_qp_count {
	RMEM_QP_COUNT_SEND = 1 << 0,              /**< SENDs of the QP. */
	RMEM_QP_COUNT_RECV = 1 << 1,              /**< Receives that completed. */
	RMEM_QP_COUNT_RDMA_READ = 1 << 2,         /**< READs of the QP. */
	RMEM_QP_COUNT_REMOTE_RDMA_READ = 1 << 3,  /**< READs of its peer. */
	RMEM_QP_COUNT_RDMA_WRITE = 1 << 4,        /**< WRITEs of the QP. */
	RMEM_QP_COUNT_REMOTE_RDMA_WRITE = 1 << 5, /**< WRITEs of its peer. */
};

/** Number of the values of enum rmem_qp_count. */
#define RMEM_QP_NB_COUNTS 6

/** All of enum rmem_qp_count. */
#define RMEM_QP_COUNT_ALL ((UINT32_C(1) << RMEM_QP_NB_COUNTS) - 1)

/** Counter, in shared memory; read it with rmem_counter_read(). */
struct rmem_counter {
	struct rmem_obj obj;                /**< Private head. */
	uint32_t flags;                     /**< As created. */
	uint64_t value __rte_cache_aligned; /**< Private: atomic. */
	uint64_t errors;                    /**< Private: atomic. */
};

/** Counter creation parameters. The caller zeroes it first. */
struct rmem_counter_conf {
	uint32_t flags;       /**< RMEM_COUNTER_BYTES, or 0. */
	uint32_t pad;         /**< Zero. */
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Create a counter; its values are 0.
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
 *   Number of counted requests, or of their bytes, of all MRs and QPs that it was bound to.
 */
static inline uint64_t
rmem_counter_read(const struct rmem_counter *counter)
{
	return __atomic_load_n(&counter->value, __ATOMIC_ACQUIRE);
}

/**
 * Read how many requests of QPs completed in error.
 *
 * Fast path: one load. Safe to call from any thread. The handle is not checked.
 *
 * @param counter
 *   Counter to read.
 *
 * @return
 *   Number of requests that failed or were flushed. Requests counted for MRs never add to it.
 */
static inline uint64_t
rmem_counter_read_errors(const struct rmem_counter *counter)
{
	return __atomic_load_n(&counter->errors, __ATOMIC_ACQUIRE);
}

/**
 * Set a counter; concurrently counted requests may be lost.
 *
 * Fast path. Safe to call from any thread. The handle is not checked.
 *
 * @param counter
 *   Counter to set.
 * @param value
 *   New result of rmem_counter_read().
 */
static inline void
rmem_counter_set(struct rmem_counter *counter, uint64_t value)
{
	__atomic_store_n(&counter->value, value, __ATOMIC_RELEASE);
}

/**
 * Set the number of errors, as rmem_counter_set().
 *
 * @param counter
 *   Counter to set.
 * @param errors
 *   New result of rmem_counter_read_errors().
 */
static inline void
rmem_counter_set_errors(struct rmem_counter *counter, uint64_t errors)
{
	__atomic_store_n(&counter->errors, errors, __ATOMIC_RELEASE);
}

/**
 * Add to a counter; the sum wraps to 0.
 *
 * Fast path: one locked instruction. Safe to call from any thread. The handle is not checked.
 *
 * @param counter
 *   Counter to change.
 * @param amount
 *   Added to the result of rmem_counter_read().
 */
static inline void
rmem_counter_inc(struct rmem_counter *counter, uint64_t amount)
{
	__atomic_fetch_add(&counter->value, amount, __ATOMIC_RELEASE);
}

/**
 * Add to the number of errors, as rmem_counter_inc().
 *
 * @param counter
 *   Counter to change.
 * @param amount
 *   Added to the result of rmem_counter_read_errors().
 */
static inline void
rmem_counter_inc_errors(struct rmem_counter *counter, uint64_t amount)
{
	__atomic_fetch_add(&counter->errors, amount, __ATOMIC_RELEASE);
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
 *   - -EBUSY: it is bound to an MR, or attached to a QP.
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
 * Requests through a memory window are counted if the window was bound after the counter; otherwise
 * they may be counted or not. Requests through an indirect key are not counted.
 *
 * When a call with a NULL counter returns, the old counter no longer changes. Counting slows
 * requests down.
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
 *   - -EINVAL: NULL or not an MR; a fast-register MR or indirect key, a null MR, or an MR that is
 *     being released; not a counter, a counter of another device, of bytes, or that is being freed;
 *     or other flags.
 *   - -EBUSY: a counter is bound to the MR, or its registration is in progress or failed.
 *   - -EOPNOTSUPP: the device does not support counters.
 */
int rmem_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter, uint32_t flags);

/**
 * Attach a counter to a QP until the QP is destroyed (ibv_qp_attach_comp_cntr(3)).
 *
 * From then on, each request of the kinds in counts is counted once when it completes, signaled or
 * not. A successful request adds 1 to rmem_counter_read(), or its bytes if the counter has
 * RMEM_COUNTER_BYTES; a request that failed or was flushed adds 1 to rmem_counter_read_errors().
 * Requests with immediate data and *_WITH_INV count as their plain form; a WRITE with immediate
 * data is a WRITE of the peer and a receive. Atomics, ATOMIC_WRITEs and FLUSHes are not counted.
 *
 * The data of a counted receive, READ or WRITE of the peer is visible to a thread that has read the
 * counter. Reading counters makes no progress: without a service or thread of the device (engine=,
 * progress=), another thread must poll a CQ. Counting slows requests down.
 *
 * One counter may be attached to several QPs, and a QP may have a counter for each kind.
 *
 * Control path. Safe to call from any thread; no other thread may modify the QP.
 *
 * @param qp
 *   QP in RESET or INIT.
 * @param counter
 *   Counter of the same device; it can't be destroyed while attached.
 * @param counts
 *   Bitwise OR of enum rmem_qp_count, not 0.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP; NULL or not a counter, or a counter of another device or that is
 *     being freed; counts is 0 or has an unknown bit.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_QP_COUNTER.
 *   - -EBUSY: the QP is not in RESET or INIT.
 *   - -EEXIST: the QP has a counter for one of the kinds.
 *   - -EIO: the device failed.
 */
int rmem_qp_attach_counter(struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_COUNTER_H */
