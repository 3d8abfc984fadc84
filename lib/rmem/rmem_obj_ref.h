/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * References to objects of the class, for drivers and for libraries above the class.
 *
 * A library holds the objects that its own objects use, so that their release is refused with
 * -EBUSY. It includes this header; the operations of drivers are in rmem_driver.h.
 */

#ifndef RMEM_OBJ_REF_H
#define RMEM_OBJ_REF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rte_branch_prediction.h>

#include <rmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bit of rmem_obj::refs: the object is being released. */
#define RMEM_OBJ_REFS_DEAD (UINT32_C(1) << 31)

/**
 * Take a reference to an object, unless it is being released.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param obj
 *   Head of the object; its memory must stay allocated during the call.
 *
 * @return
 *   Whether a reference was taken; release it with rmem_obj_unhold().
 */
static inline bool
rmem_obj_hold(struct rmem_obj *obj)
{
	uint32_t refs = __atomic_fetch_add(&obj->refs, 1, __ATOMIC_ACQUIRE);

	if (likely((refs & RMEM_OBJ_REFS_DEAD) == 0))
		return true;
	/* A concurrent release changes only the bit RMEM_OBJ_REFS_DEAD, not the count. */
	__atomic_fetch_sub(&obj->refs, 1, __ATOMIC_RELAXED);
	return false;
}

/**
 * Release a reference of rmem_obj_hold().
 *
 * Fast path. Safe to call from any thread.
 *
 * @param obj
 *   Head of the object.
 */
static inline void
rmem_obj_unhold(struct rmem_obj *obj)
{
	__atomic_fetch_sub(&obj->refs, 1, __ATOMIC_RELEASE);
}

/**
 * Get the device of an object.
 *
 * Control path. Safe to call from any thread.
 *
 * @param obj
 *   Head of the object.
 *
 * @return
 *   Its device.
 */
struct rmem_dev *rmem_obj_dev(const struct rmem_obj *obj);

/** Head of a driver's MR. */
struct rmem_mr_drv {
	struct rmem_mr mr;            /**< Public part; one cache line. */
	uint32_t flags;               /**< RMEM_MR_FD; the other bits are private to the class. */
	uint16_t state;               /**< enum rmem_mr_state of a user MR; atomic. */
	uint16_t pad;                 /**< Zero. */
	uint32_t max_size;            /**< Pages or entries of a bound MR, else 0. */
	uint32_t iov_count;           /**< Ranges in iov, else 0. */
	const struct iovec *iov;      /**< Ranges of a user MR with several, else NULL. */
	struct rmem_counter *counter; /**< Bound counter, or NULL; private to the class. */
	struct rmem_obj *owner;       /**< Owner of the memory: MR or DM, or NULL; of the class. */
};

/**
 * Get the part of an MR that is shared with drivers.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param mr
 *   MR.
 *
 * @return
 *   The MR.
 */
static inline struct rmem_mr_drv *
rmem_mr_drv(const struct rmem_mr *mr)
{
	return (struct rmem_mr_drv *)(uintptr_t)mr;
}

/**
 * Get the state of a user MR, with acquire.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param mr
 *   MR of RMEM_MR_TYPE_USER.
 *
 * @return
 *   One of enum rmem_mr_state.
 */
static inline uint16_t
rmem_mr_state(const struct rmem_mr *mr)
{
	return __atomic_load_n(&rmem_mr_drv(mr)->state, __ATOMIC_ACQUIRE);
}

/**
 * Get the ranges of a user MR, one or several.
 *
 * Control path. Safe to call from any thread.
 *
 * @param mr
 *   MR of RMEM_MR_TYPE_USER.
 * @param one
 *   Memory for the range of an MR that has only one.
 * @param[out] iov
 *   The ranges: @p one, or the ranges of the MR.
 *
 * @return
 *   Number of ranges.
 */
uint32_t rmem_mr_ranges(const struct rmem_mr *mr, struct iovec *one, const struct iovec **iov);

/** Audit of a library above the class: 0, -EIO with a log line, or -ENOMEM. */
typedef int (*rmem_audit_t)(struct rmem_dev *dev);

/**
 * Add a function of a library above the class to rmem_dev_audit().
 *
 * For constructors (RTE_INIT). Not safe to call from several threads.
 *
 * @param audit
 *   Function that checks the objects of the library on a device.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL audit.
 *   - -ENOSPC: too many functions.
 */
int rmem_audit_add(rmem_audit_t audit);

/**
 * Check that a NUMA socket exists.
 *
 * Control path. Safe to call from any thread.
 *
 * @param socket_id
 *   NUMA socket, or SOCKET_ID_ANY.
 *
 * @return
 *   0 if it exists or is SOCKET_ID_ANY, otherwise:
 *   - -EINVAL: there is no such socket; one line is logged.
 */
int rmem_socket_check(int socket_id);

/**
 * Refuse a call in a secondary process of DPDK.
 *
 * The tables of devices and of functions are per process, and a killed process would not release
 * its locks.
 *
 * The class calls it wherever it checks a handle. For libraries above the class.
 *
 * Control path. Safe to call from any thread.
 *
 * @return
 *   0 in a primary process, otherwise:
 *   - -EOPNOTSUPP: this is a secondary process; one line is logged.
 */
int rmem_process_check(void);

/** Release the resources of a process that has ended. */
typedef void (*rmem_mp_end_t)(uint16_t process);

/**
 * Add a function that the primary calls when a process has ended.
 *
 * For libraries above the class. It is called in a control thread of the primary, also when the
 * process has detached from its last device, after its QPs were reset and its keys invalidated. It
 * must not wait for another thread.
 *
 * For constructors (RTE_INIT). Not safe to call from several threads.
 *
 * @param end
 *   Function.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL end.
 *   - -ENOSPC: too many functions.
 */
int rmem_mp_end_add(rmem_mp_end_t end);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_OBJ_REF_H */
