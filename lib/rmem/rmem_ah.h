/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Address handles (AH): destinations of the messages of UD QPs.
 *
 * A QP of RMEM_QPT_UD has no peer. Each of its requests names an AH, and the number and the Q_Key
 * of the destination QP: rmem_send_wr::ud. The post reads the AH, so an AH can be destroyed while
 * requests that were posted with it are outstanding.
 *
 * An AH of a multicast group (rmem_qp_attach_mcast()) has the GID of the group and is_global 1;
 * requests with it name QP number RMEM_MCAST_QPN.
 */

#ifndef RMEM_AH_H
#define RMEM_AH_H

#include <stdint.h>

#include <rmem_obj.h>
#include <rmem_qp.h>
#include <rmem_wc.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_dev;
struct rmem_pd;

/** Bytes before the data in a receive of a UD QP: a GRH, or an IPv4 header in the last 20 bytes. */
#define RMEM_GRH_SIZE 40

/** Address handle (AH). Drivers append their own fields. */
struct rmem_ah {
	struct rmem_obj obj; /**< Private head. */
	struct rmem_pd *pd;  /**< PD that the AH belongs to. */
};

/**
 * Create an address handle.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain of the QPs that use the AH.
 * @param attr
 *   Path to the port of the peer; not needed after the call.
 * @param[out] ah
 *   The new AH. Written only on success. Release it with rmem_ah_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL attr or ah, a path that the device does not have, a value out
 *     of range, a multicast GID on a device without RMEM_DEV_CAPA_MCAST, or a reserved field that
 *     is not zero.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_UD.
 *   - -ENOMEM: no memory for the AH.
 *   - -EIO: the device failed.
 */
int rmem_ah_create(struct rmem_pd *pd, const struct rmem_ah_attr *attr, struct rmem_ah **ah);

/**
 * Initialize the attributes of an address handle to the sender of a message.
 *
 * As ibv_init_ah_from_wc(3), for messages with a GRH.
 *
 * Control path: queries the GIDs of the port. Safe to call from any thread.
 *
 * @param dev
 *   Device that received the message.
 * @param port_num
 *   Port of the QP that received the message.
 * @param wc
 *   Completion of the receive.
 * @param grh
 *   The first RMEM_GRH_SIZE bytes of the receive.
 * @param[out] attr
 *   Path to the sender, for rmem_ah_create(). Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, NULL wc, grh or attr, no such port, or a header that is
 *     neither of IPv4 nor of IPv6.
 *   - -ENOENT: the destination of the message is not a GID of the port, but a multicast group.
 *   - -EOPNOTSUPP: the message had no GRH, or the driver does not report GIDs.
 *   - -EIO: the device failed.
 */
int rmem_ah_attr_from_wc(const struct rmem_dev *dev, uint32_t port_num, const struct rmem_wc *wc,
		const void *grh, struct rmem_ah_attr *attr);

/**
 * Destroy an address handle.
 *
 * Requests that were posted with it are not affected.
 *
 * Control path. Once for each AH; no other thread may post with it.
 *
 * @param ah
 *   AH to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not an AH.
 *   - -EBUSY: the AH has references.
 *   - -EIO: the device failed.
 */
int rmem_ah_destroy(struct rmem_ah *ah);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_AH_H */
