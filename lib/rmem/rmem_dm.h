/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Device memory (DM), which programs access with copies and through MRs.
 *
 * rmem_mr_reg_attr() registers a range of device memory, with rmem_mr_ext::dm. The MR is
 * zero-based: requests of peers and SGEs address it by offsets from the beginning of the range.
 */

#ifndef RMEM_DM_H
#define RMEM_DM_H

#include <stddef.h>
#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_dev;

/** Device memory. Drivers append their own fields. */
struct rmem_dm {
	struct rmem_obj obj;  /**< Private head. */
	size_t length;        /**< Bytes. */
	uint64_t reserved[2]; /**< Zero. */
};

/** rmem_dm_conf::flags: the memory of a descriptor from rmem_dm_export_fd(), of any process. */
#define RMEM_DM_FD (UINT32_C(1) << 0)

/** Configuration of device memory. The caller zeroes it first. */
struct rmem_dm_conf {
	size_t length;        /**< Bytes, 1 to rmem_dev_info::max_dm_size. */
	uint32_t log2_align;  /**< Its address in the device is a multiple of 2^n; 0 to 12. */
	uint32_t flags;       /**< 0 or RMEM_DM_FD. */
	const char *name;     /**< Name for logs and telemetry, to 31 bytes, or NULL; copied. */
	int fd;               /**< With RMEM_DM_FD: the descriptor, not kept; else 0. */
	uint32_t reserved[3]; /**< Zero. */
};

/**
 * Allocate device memory.
 *
 * As ibv_alloc_dm(3). On `soft` the memory is zeroed; on other devices its contents are undefined.
 *
 * With RMEM_DM_FD it is memory that another device has allocated and exported, as ibv_import_dm(3)
 * does by handle: both have the same bytes. It does not count in the device's max_dm_size.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param dev
 *   Device.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] dm
 *   The memory. Written only on success. Release it with rmem_dm_free().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, NULL conf or dm, a flag, a bad name, a length or log2_align
 *     out of range, or a reserved field that is not zero.
 *   - -EINVAL: RMEM_DM_FD with an fd that is not from rmem_dm_export_fd() of `soft`, or has less
 *     than length bytes; an fd without the flag.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_DM, or RMEM_DM_FD on a device of verbs.
 *   - -ENOSPC: the device already has rmem_dev_info::max_dm device memories.
 *   - -ENOMEM: too little free memory of the device, or no memory for the object.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_dm_alloc(struct rmem_dev *dev, const struct rmem_dm_conf *conf, struct rmem_dm **dm);

/**
 * Free device memory.
 *
 * Control path. Safe to call from any thread, once for each object.
 *
 * @param dm
 *   Memory to free; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not device memory.
 *   - -EBUSY: an MR is registered on it.
 *   - -EIO: the device failed.
 */
int rmem_dm_free(struct rmem_dm *dm);

/**
 * Export device memory as a file descriptor.
 *
 * As ibv_dm_export_dmabuf_fd(3). On `soft` the descriptor can be mapped, registered with
 * RMEM_MR_FD, and passed to other processes, which import it with RMEM_DM_FD. The bytes exist until
 * the last descriptor, mapping or device memory of them is released.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dm
 *   Memory to export.
 * @param[out] fd
 *   Descriptor with FD_CLOEXEC, owned by the caller. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not device memory, or NULL fd.
 *   - -EOPNOTSUPP: the device exports none; on `soft`: the process could not create a file of that
 *     size when the memory was allocated (RLIMIT_FSIZE, RLIMIT_NOFILE, memfd_create(2)).
 *   - -ENOMEM: no further descriptor (RLIMIT_NOFILE).
 *   - -EIO: the device failed.
 */
int rmem_dm_export_fd(struct rmem_dm *dm, int *fd);

/**
 * Copy to device memory.
 *
 * As ibv_memcpy_to_dm(3). Requests that access the same bytes during the copy may find them partly
 * written.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dm
 *   Memory to write.
 * @param offset
 *   Offset of the first byte in it. A device of verbs may require multiples of 4, also of length.
 * @param src
 *   Bytes to copy, in memory of the process.
 * @param length
 *   Bytes; 0 is allowed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not device memory, NULL src, a range that is not within it, or an alignment
 *     that the device does not support.
 *   - -EIO: the device failed.
 */
int rmem_dm_copy_to(struct rmem_dm *dm, uint64_t offset, const void *src, size_t length);

/**
 * Copy from device memory.
 *
 * As ibv_memcpy_from_dm(3). Bytes that requests write during the copy may be copied partly written.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dm
 *   Memory to read.
 * @param offset
 *   Offset of the first byte in it. A device of verbs may require multiples of 4, also of length.
 * @param[out] dst
 *   Memory of the process, of length bytes. Written only on success.
 * @param length
 *   Bytes; 0 is allowed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not device memory, NULL dst, a range that is not within it, or an alignment
 *     that the device does not support.
 *   - -EIO: the device failed.
 */
int rmem_dm_copy_from(struct rmem_dm *dm, uint64_t offset, void *dst, size_t length);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_DM_H */
