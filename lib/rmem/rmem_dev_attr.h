/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Attributes of a device, its ports, and their tables of GIDs and P_Keys.
 *
 * Encodings are as in verbs (ibv_query_device_ex(3), ibv_query_port(3)). Ports are numbered from
 * 1. The limits of objects and requests are in rmem_dev_info.
 */

#ifndef RMEM_DEV_ATTR_H
#define RMEM_DEV_ATTR_H

#include <stdint.h>

#include <rmem_dev.h>

#ifdef __cplusplus
extern "C" {
#endif

/** State of a port, with the values of enum ibv_port_state. */
enum rmem_port_state {
	RMEM_PORT_NOP = 0,          /**< Unknown. */
	RMEM_PORT_DOWN = 1,         /**< No link. */
	RMEM_PORT_INIT = 2,         /**< Link, not configured. */
	RMEM_PORT_ARMED = 3,        /**< Configured, not active. */
	RMEM_PORT_ACTIVE = 4,       /**< Packets are sent and received. */
	RMEM_PORT_ACTIVE_DEFER = 5, /**< Active, but the link has a short failure. */
};

/** Link layer of a port, with the values of IBV_LINK_LAYER_*. */
enum rmem_link_layer {
	RMEM_LINK_LAYER_UNSPECIFIED = 0, /**< Unknown. */
	RMEM_LINK_LAYER_INFINIBAND = 1,  /**< InfiniBand: addresses are LIDs, or GIDs. */
	RMEM_LINK_LAYER_ETHERNET = 2,    /**< RoCE: addresses are GIDs. */
};

/** Type of a GID, with the values of enum ibv_gid_type. */
enum rmem_gid_type {
	RMEM_GID_TYPE_IB = 0,      /**< InfiniBand. */
	RMEM_GID_TYPE_ROCE_V1 = 1, /**< RoCE v1. */
	RMEM_GID_TYPE_ROCE_V2 = 2, /**< RoCE v2: an IPv6 address, or a mapped IPv4 address. */
};

/** Attributes of a device. */
struct rmem_dev_attr {
	char fw_ver[64];             /**< Version of the firmware, zero-terminated. */
	uint8_t node_guid[8];        /**< GUID of the device, in network byte order. */
	uint8_t sys_image_guid[8];   /**< GUID of the system that it is part of. */
	uint64_t cap_flags;          /**< Bitwise OR of IBV_DEVICE_*. */
	uint64_t timestamp_mask;     /**< Valid bits of timestamps of completions; 0: none. */
	uint64_t core_clock_khz;     /**< Rate of the clock of timestamps, kHz; 0: none. */
	uint32_t vendor_id;          /**< IEEE OUI of the vendor; 0xffffff: none. */
	uint32_t vendor_part_id;     /**< Part number of the vendor. */
	uint32_t hw_ver;             /**< Version of the hardware. */
	uint32_t nb_ports;           /**< Ports, at least 1. */
	uint32_t max_pkeys;          /**< P_Keys of a port. */
	uint32_t max_ah;             /**< Address handles. */
	uint32_t max_rd_atomic;      /**< READs and atomics outstanding as the requester of a QP. */
	uint32_t max_dest_rd_atomic; /**< READs and atomics outstanding as the responder of a QP. */
	uint32_t max_res_rd_atomic;  /**< READs and atomics outstanding of all QPs. */
	uint32_t atomic_cap;         /**< enum ibv_atomic_cap: 0 none, 1 the device, 2 all. */
	uint32_t local_ca_ack_delay; /**< Time to acknowledge: 4.096 us * 2^value. */
	uint32_t max_mcast_grp;      /**< Multicast groups that QPs are attached to. */
	uint32_t max_mcast_qp_attach;       /**< QPs attached to one group. */
	uint32_t max_total_mcast_qp_attach; /**< QPs attached to all groups. */
	uint64_t reserved[7];               /**< Zero. */
};

/** Attributes of a port. */
struct rmem_port_attr {
	uint32_t state;           /**< One of enum rmem_port_state. */
	uint32_t max_mtu;         /**< Largest path MTU: 1 to 5, for 256 to 4096 bytes. */
	uint32_t active_mtu;      /**< Path MTU in force, in the same encoding. */
	uint32_t gid_tbl_len;     /**< Entries of the GID table. */
	uint32_t pkey_tbl_len;    /**< Entries of the P_Key table. */
	uint32_t cap_flags;       /**< Bitwise OR of IBV_PORT_*. */
	uint32_t cap_flags2;      /**< Bitwise OR of IBV_PORT_*_SUP of port_cap_flags2. */
	uint32_t max_msg_size;    /**< Bytes of the largest message. */
	uint32_t bad_pkeys;       /**< Packets dropped for their P_Key. */
	uint32_t bad_qkeys;       /**< Packets dropped for their Q_Key. */
	uint16_t lid;             /**< LID; 0 on Ethernet. */
	uint16_t sm_lid;          /**< LID of the subnet manager. */
	uint8_t lmc;              /**< Low bits of the LID that select a path. */
	uint8_t sm_sl;            /**< Service level of the subnet manager. */
	uint8_t max_vl_num;       /**< Virtual lanes, encoded. */
	uint8_t subnet_timeout;   /**< 4.096 us * 2^value. */
	uint8_t init_type_reply;  /**< As the subnet manager initialized it. */
	uint8_t active_width;     /**< Link width: 1 1x, 2 4x, 4 8x, 8 12x, 16 2x. */
	uint8_t phys_state;       /**< Physical state: 3 disabled, 5 link up. */
	uint8_t link_layer;       /**< One of enum rmem_link_layer. */
	uint32_t active_speed;    /**< Speed of a lane: 1 2.5, 2 5, 4 10, 16 14, 32 25 Gb/s ... */
	uint8_t flags;            /**< Bitwise OR of IBV_QPF_*: 1 a GRH is required. */
	uint8_t reserved_byte[3]; /**< Zero. */
	uint64_t reserved[6];     /**< Zero. */
};

/** Entry of the GID table of a port. */
struct rmem_gid_entry {
	uint8_t gid[16];      /**< GID. */
	uint32_t index;       /**< Index in the table. */
	uint32_t port_num;    /**< Port. */
	uint32_t type;        /**< One of enum rmem_gid_type. */
	uint32_t ifindex;     /**< Network interface; 0: unknown, or none. */
	uint64_t reserved[4]; /**< Zero. */
};

/**
 * Get the attributes of a device.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device to query.
 * @param[out] attr
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL attr.
 *   - -EOPNOTSUPP: the driver does not report them.
 *   - -EIO: the device failed.
 */
int rmem_dev_attr_get(const struct rmem_dev *dev, struct rmem_dev_attr *attr);

/**
 * Read the clock of the timestamps of completions (RMEM_CQ_TIMESTAMP).
 *
 * Control path, without a system call on a software device. Safe to call from any thread.
 *
 * @param dev
 *   Device of the clock.
 * @param[out] ticks
 *   Value of the clock; the bits of rmem_dev_attr::timestamp_mask are valid, and
 *   rmem_dev_attr::core_clock_khz is the rate. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL ticks.
 *   - -EOPNOTSUPP: the device has no such clock.
 *   - -EIO: the device failed.
 */
int rmem_dev_clock_get(const struct rmem_dev *dev, uint64_t *ticks);

/**
 * Get the attributes of a port.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device of the port.
 * @param port_num
 *   Port, 1 to rmem_dev_attr::nb_ports.
 * @param[out] attr
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, no such port, or NULL attr.
 *   - -EOPNOTSUPP: the driver does not report them.
 *   - -EIO: the device failed.
 */
int rmem_dev_port_query(const struct rmem_dev *dev, uint32_t port_num, struct rmem_port_attr *attr);

/**
 * Get an entry of the GID table of a port.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device of the port.
 * @param port_num
 *   Port, 1 to rmem_dev_attr::nb_ports.
 * @param index
 *   Index in the table, below rmem_port_attr::gid_tbl_len.
 * @param[out] entry
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, no such port or index, or NULL entry.
 *   - -ENOENT: the entry has no GID.
 *   - -EOPNOTSUPP: the driver does not report them.
 *   - -EIO: the device failed.
 */
int rmem_dev_gid_query(const struct rmem_dev *dev, uint32_t port_num, uint32_t index,
		struct rmem_gid_entry *entry);

/**
 * Get an entry of the P_Key table of a port.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device of the port.
 * @param port_num
 *   Port, 1 to rmem_dev_attr::nb_ports.
 * @param index
 *   Index in the table, below rmem_port_attr::pkey_tbl_len.
 * @param[out] pkey
 *   P_Key in host byte order; 0: the entry is empty. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, no such port or index, or NULL pkey.
 *   - -EOPNOTSUPP: the driver does not report them.
 *   - -EIO: the device failed.
 */
int rmem_dev_pkey_query(
		const struct rmem_dev *dev, uint32_t port_num, uint32_t index, uint16_t *pkey);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_DEV_ATTR_H */
