/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Protection domains: associate queue pairs with memory regions.
 */

#ifndef RMEM_PD_H
#define RMEM_PD_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_dev;

/** Protection domain (PD). Drivers append their own fields. */
struct rmem_pd {
	struct rmem_obj obj; /**< Private head. */
	uint32_t handle;     /**< Number of the PD on its device. */
};

/** Attributes of a PD. The caller zeroes it first. */
struct rmem_pd_attr {
	const char *name;     /**< Name for logs and telemetry, to 31 bytes, or NULL; copied. */
	uint64_t reserved[3]; /**< Zero. */
};

/**
 * Allocate a protection domain on a device.
 *
 * Memory regions and queue pairs belong to one PD. A request fails if a key in it belongs to
 * another PD than its queue pair. The PD is owned by the caller.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param dev
 *   Device that the PD belongs to.
 * @param[out] pd
 *   The new PD. Written only on success. Release it with rmem_pd_dealloc().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL pd.
 *   - -ENOSPC: the device already has rmem_dev_info::max_pd domains.
 *   - -ENOMEM: no memory for the PD.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_pd_alloc(struct rmem_dev *dev, struct rmem_pd **pd);

/**
 * Allocate a protection domain with attributes; see rmem_pd_alloc().
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param dev
 *   Device that the PD belongs to.
 * @param attr
 *   Attributes; not needed after the call.
 * @param[out] pd
 *   The new PD. Written only on success. Release it with rmem_pd_dealloc().
 *
 * @return
 *   0 on success, otherwise what rmem_pd_alloc() returns, or:
 *   - -EINVAL: NULL attr, a name that is too long or not printable, or a reserved field that is
 *     not zero.
 */
int rmem_pd_alloc_attr(struct rmem_dev *dev, const struct rmem_pd_attr *attr, struct rmem_pd **pd);

/**
 * Deallocate a protection domain.
 *
 * Control path. Safe to call from any thread, once for each PD.
 *
 * @param pd
 *   PD to release; no longer valid on success, unchanged on failure. NULL is allowed and has no
 *   effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a PD.
 *   - -EBUSY: memory regions or queue pairs belong to it (IBTA C10-10).
 *   - -EIO: the device failed.
 */
int rmem_pd_dealloc(struct rmem_pd *pd);

/**
 * Get the device of a PD.
 *
 * A PD holds a reference to its device: the device cannot be closed before rmem_pd_dealloc().
 *
 * Control path. Safe to call from any thread, also while devices are created and closed.
 *
 * @param pd
 *   PD to query; NULL is allowed.
 *
 * @return
 *   The device, or NULL if pd is NULL or not a PD.
 */
struct rmem_dev *rmem_pd_dev(const struct rmem_pd *pd);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_PD_H */
