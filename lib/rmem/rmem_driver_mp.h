/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Secondary processes, for drivers and for libraries above the class; see rmem_mp.h.
 */

#ifndef RMEM_DRIVER_MP_H
#define RMEM_DRIVER_MP_H

#include <stdbool.h>
#include <stdint.h>

#include <rmem_fp.h>
#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Let a process post to a QP; process 0 ends the claim and resets the QP. */
typedef int (*rmem_mp_claim_t)(struct rmem_qp *qp, uint16_t process);
/** Return whether a request in the queue of a claimed QP names the object. */
typedef bool (*rmem_mp_has_posted_t)(const struct rmem_qp *qp, const struct rmem_obj *obj);
/** Invalidate the key of an MR or a window. Return whether it was valid. */
typedef bool (*rmem_mp_revoke_t)(struct rmem_obj *obj);

/**
 * Operations for secondary processes.
 *
 * A request of a claimed QP holds no references to objects, because a killed process could not
 * release them. Instead the class calls has_posted before it releases an object.
 */
struct rmem_mp_ops {
	rmem_mp_claim_t claim;           /**< QPs. */
	rmem_mp_has_posted_t has_posted; /**< QPs. */
	rmem_mp_revoke_t revoke;         /**< MRs and windows that requests bind. */
	void (*reserved[3])(void);       /**< NULL. */
	struct rmem_fp_ops fp;           /**< Fast path of secondary processes. */
};

/**
 * Check whether an address is in DPDK memory, which all processes share.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param addr
 *   Address.
 *
 * @return
 *   Whether it is.
 */
bool rmem_mp_is_shared(const void *addr);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_DRIVER_MP_H */
