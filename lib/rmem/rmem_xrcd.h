/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Domains of the extended reliable connected service (XRC, IBTA annex A14).
 *
 * A QP of RMEM_QPT_XRC_SEND is connected to a QP of RMEM_QPT_XRC_RECV, as QPs of RC are. Each
 * request names an SRQ in rmem_send_wr::xrc. The SRQ must belong to the domain of the XRC_RECV QP;
 * otherwise the request completes with RMEM_WC_REM_INV_REQ_ERR. A SEND, or a WRITE with immediate
 * data, consumes a receive of this SRQ, which completes on the CQ of the SRQ. The keys of the
 * receive, and the rkeys of the request, must be of the PD of the SRQ; the rights of the peer are
 * those of the XRC_RECV QP. So one connection serves many receivers.
 */

#ifndef RMEM_XRCD_H
#define RMEM_XRCD_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_dev;

/** XRC domain. Drivers append their own fields. */
struct rmem_xrcd {
	struct rmem_obj obj;  /**< Private head. */
	uint32_t handle;      /**< Number of the domain; the same in all handles of a domain. */
	int fd;               /**< Of the file, or -1; private to class and driver. */
	uint64_t file[2];     /**< Device and inode of the file; likewise. */
	uint32_t nb_left;     /**< QPs that only other processes hold; private to the class. */
	uint32_t is_closed;   /**< 1: released when these QPs are destroyed; likewise. */
	uint64_t reserved[1]; /**< Zero. */
};

/** rmem_xrcd_conf::fd identifies the domain. */
#define RMEM_XRCD_FILE (1u << 0)
/** With RMEM_XRCD_FILE: create the domain if it does not exist, as O_CREAT. */
#define RMEM_XRCD_CREATE (1u << 1)
/** With RMEM_XRCD_CREATE: fail if it exists, as O_EXCL. */
#define RMEM_XRCD_EXCL (1u << 2)

/** Configuration of an XRC domain. The caller zeroes it first. */
struct rmem_xrcd_conf {
	int fd;               /**< With RMEM_XRCD_FILE: any file descriptor of the file; else 0. */
	uint32_t flags;       /**< Bitwise OR of RMEM_XRCD_*; 0 for a domain without a name. */
	const char *name;     /**< Name for logs, to 31 bytes, or NULL; copied. */
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Open an XRC domain.
 *
 * As ibv_open_xrcd(3). Calls with the same file (inode) open the same domain, each with its own
 * handle; a call without a file creates a new domain. The domain ends with its last handle.
 * Processes share it if their device is one of the kernel (verbs), or, with one user, devices of
 * soft with the same name and ip=.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param dev
 *   Device.
 * @param conf
 *   Configuration; not needed after the call. The file descriptor may be closed then.
 * @param[out] xrcd
 *   The domain. Written only on success. Release it with rmem_xrcd_dealloc().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, NULL conf or xrcd, an unknown flag, CREATE or an fd without
 *     FILE, EXCL without CREATE, an fd that is not open, a bad name, or a reserved field that is
 *     not zero.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_XRC.
 *   - -ENOENT: the file has no domain, without RMEM_XRCD_CREATE.
 *   - -EEXIST: the file has a domain, with RMEM_XRCD_EXCL.
 *   - -ENOMEM: no memory, or no file descriptor, for the domain.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_xrcd_alloc(
		struct rmem_dev *dev, const struct rmem_xrcd_conf *conf, struct rmem_xrcd **xrcd);

/**
 * Close a handle of an XRC domain.
 *
 * Control path. Safe to call from any thread, once for each handle.
 *
 * @param xrcd
 *   Handle to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not an XRC domain.
 *   - -EBUSY: SRQs or QPs were created with this handle.
 *   - -EIO: the device failed.
 */
int rmem_xrcd_dealloc(struct rmem_xrcd *xrcd);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_XRCD_H */
