/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Devices: creation, capabilities and limits, statistics.
 *
 * The name of a device is the name of its driver followed by a number: "soft0" is a device of the
 * software driver.
 */

#ifndef RMEM_DEV_H
#define RMEM_DEV_H

#include <stdint.h>
#include <stdio.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum number of devices of a process. */
#define RMEM_MAX_DEVS 64

/** Fast registration: rmem_fast_reg_mr_alloc() and RMEM_WR_REG_MR. */
#define RMEM_DEV_CAPA_FAST_REG (UINT64_C(1) << 0)
/** RMEM_WR_LOCAL_INV. */
#define RMEM_DEV_CAPA_LOCAL_INV (UINT64_C(1) << 1)
/** RMEM_WR_SEND_WITH_INV. */
#define RMEM_DEV_CAPA_SEND_WITH_INV (UINT64_C(1) << 2)
/** RMEM_WR_RDMA_READ_WITH_INV. */
#define RMEM_DEV_CAPA_READ_WITH_INV (UINT64_C(1) << 3)
/** RMEM_WR_ATOMIC_CMP_AND_SWP and RMEM_WR_ATOMIC_FETCH_AND_ADD. */
#define RMEM_DEV_CAPA_ATOMIC (UINT64_C(1) << 4)
/** Requests execute on service lcores and not in the thread that posts or polls. */
#define RMEM_DEV_CAPA_ENGINE (UINT64_C(1) << 5)
/** Memory windows of type 1: rmem_mw_bind(). */
#define RMEM_DEV_CAPA_MW_TYPE_1 (UINT64_C(1) << 6)
/** Memory windows of type 2B: RMEM_WR_BIND_MW. */
#define RMEM_DEV_CAPA_MW_TYPE_2B (UINT64_C(1) << 7)
/** Indirect keys: rmem_mkey_alloc() and RMEM_WR_UMR. */
#define RMEM_DEV_CAPA_UMR (UINT64_C(1) << 8)
/** rmem_mr_rereg() keeps the keys of the MR. */
#define RMEM_DEV_CAPA_REREG (UINT64_C(1) << 9)
/** rmem_mr_reg_shared(). */
#define RMEM_DEV_CAPA_SHARED_MR (UINT64_C(1) << 10)
/** RMEM_MR_FD: memory of a file descriptor. The class provides it on every device. */
#define RMEM_DEV_CAPA_MR_FD (UINT64_C(1) << 11)
/** rmem_mr_attr::iov: one MR over several ranges. */
#define RMEM_DEV_CAPA_MR_IOV (UINT64_C(1) << 12)
/** RMEM_MR_REQUESTED_KEY: requested keys. */
#define RMEM_DEV_CAPA_REQUESTED_KEY (UINT64_C(1) << 13)
/** RMEM_MR_DISABLED and rmem_mr_enable(). */
#define RMEM_DEV_CAPA_MR_ENABLE (UINT64_C(1) << 14)
/** rmem_mr_bind_counter(). */
#define RMEM_DEV_CAPA_MR_COUNTER (UINT64_C(1) << 15)
/**
 * Inline receive.
 *
 * A message of at most rmem_dev_info::max_inline_recv bytes may be delivered in its completion, and
 * copied to the memory of the receive by the poll that returns it. The only visible difference is
 * the time at which the memory changes. A device may deliver only some messages inline. Disabled if
 * the environment has RMEM_SCATTER_TO_CQE=0 or the QP has RMEM_QP_NO_INLINE_RECV.
 */
#define RMEM_DEV_CAPA_INLINE_RECV (UINT64_C(1) << 16)
/** RMEM_QP_GSI: QP 1 of the device. Without this capability the kernel owns QP 1. */
#define RMEM_DEV_CAPA_GSI (UINT64_C(1) << 17)
/** Shared receive queues: rmem_srq_create(). */
#define RMEM_DEV_CAPA_SRQ (UINT64_C(1) << 18)
/** rmem_srq_modify() with RMEM_SRQ_MAX_WR. */
#define RMEM_DEV_CAPA_SRQ_RESIZE (UINT64_C(1) << 19)
/** rmem_comp_channel_create(). */
#define RMEM_DEV_CAPA_COMP_CHANNEL (UINT64_C(1) << 20)
/** QPs of RMEM_QPT_UC. */
#define RMEM_DEV_CAPA_UC (UINT64_C(1) << 21)
/** QPs of RMEM_QPT_UD, and rmem_ah_create(). */
#define RMEM_DEV_CAPA_UD (UINT64_C(1) << 22)
/** rmem_cq_resize(). */
#define RMEM_DEV_CAPA_CQ_RESIZE (UINT64_C(1) << 23)
/** Asynchronous events; see rmem_async_channel.h. */
#define RMEM_DEV_CAPA_ASYNC_EVENT (UINT64_C(1) << 24)
/** Incorrect use is detected and logged, at some cost: `soft` with sanitize=1. Pools check puts. */
#define RMEM_DEV_CAPA_SANITIZE (UINT64_C(1) << 25)
/** REG_MR and UMR support only zero-based keys: their iova must be 0. */
#define RMEM_DEV_CAPA_REG_ZERO_BASED (UINT64_C(1) << 26)
/** Multicast of UD: rmem_qp_attach_mcast(), and AHs with multicast GIDs. */
#define RMEM_DEV_CAPA_MCAST (UINT64_C(1) << 27)
/** RMEM_WR_ATOMIC_WRITE. */
#define RMEM_DEV_CAPA_ATOMIC_WRITE (UINT64_C(1) << 28)
/** RMEM_WR_FLUSH. */
#define RMEM_DEV_CAPA_FLUSH (UINT64_C(1) << 29)
/** Null MRs: rmem_null_mr_alloc(). */
#define RMEM_DEV_CAPA_NULL_MR (UINT64_C(1) << 30)
/** XRC: rmem_xrcd_alloc(), and QPs of RMEM_QPT_XRC_SEND and RMEM_QPT_XRC_RECV. */
#define RMEM_DEV_CAPA_XRC (UINT64_C(1) << 32)
/** RMEM_CQ_TIMESTAMP. */
#define RMEM_DEV_CAPA_CQ_TIMESTAMP (UINT64_C(1) << 34)
/** rmem_cq_modify(). */
#define RMEM_DEV_CAPA_CQ_MODERATION (UINT64_C(1) << 35)
/** Device memory: rmem_dm_alloc(), and rmem_mr_ext::dm. */
#define RMEM_DEV_CAPA_DM (UINT64_C(1) << 36)
/** rmem_qp_attach_counter(). */
#define RMEM_DEV_CAPA_QP_COUNTER (UINT64_C(1) << 37)
/** RMEM_QP_RATE_LIMIT. */
#define RMEM_DEV_CAPA_RATE_LIMIT (UINT64_C(1) << 38)

/** Device. */
struct rmem_dev {
	struct rmem_obj obj;       /**< Private head. */
	char name[RMEM_NAME_SIZE]; /**< Name. */
	int socket_id;             /**< NUMA socket of its memory, or SOCKET_ID_ANY. */
};

/** Bit of rmem_odp_caps::general: MRs with RMEM_ACCESS_ON_DEMAND. */
#define RMEM_ODP_SUPPORT (UINT32_C(1) << 0)
/** Bit of rmem_odp_caps::general: MRs over the whole address space (NULL, SIZE_MAX). */
#define RMEM_ODP_SUPPORT_IMPLICIT (UINT32_C(1) << 1)
/*
 * Operations supported on on-demand MRs, for each transport; the values equal
 * enum ibv_odp_transport_cap_bits.
 */
/** Data of SENDs. */
#define RMEM_ODP_SEND (UINT32_C(1) << 0)
/** Receives. */
#define RMEM_ODP_RECV (UINT32_C(1) << 1)
/** WRITEs, on either side. */
#define RMEM_ODP_WRITE (UINT32_C(1) << 2)
/** READs, on either side. */
#define RMEM_ODP_READ (UINT32_C(1) << 3)
/** Atomics. */
#define RMEM_ODP_ATOMIC (UINT32_C(1) << 4)
/** Receives of a shared receive queue. */
#define RMEM_ODP_SRQ_RECV (UINT32_C(1) << 5)
/** ATOMIC_WRITE; the value of the kernel, as rdma-core defines none. */
#define RMEM_ODP_ATOMIC_WRITE (UINT32_C(1) << 7)

/** On-demand paging capabilities (struct ibv_odp_caps). All 0: not supported. */
struct rmem_odp_caps {
	uint32_t general;     /**< RMEM_ODP_SUPPORT and RMEM_ODP_SUPPORT_IMPLICIT. */
	uint32_t rc;          /**< RMEM_ODP_SEND to RMEM_ODP_SRQ_RECV on reliable connections. */
	uint32_t uc;          /**< RMEM_ODP_SEND to RMEM_ODP_SRQ_RECV on unreliable connections. */
	uint32_t ud;          /**< RMEM_ODP_SEND to RMEM_ODP_SRQ_RECV with unreliable datagrams. */
	uint32_t reserved[4]; /**< Zero. */
};

/** Capabilities and limits of a device, and objects in use. */
struct rmem_dev_info {
	const char *driver_name;    /**< Name of the driver, static. */
	uint64_t capa;              /**< Bitwise OR of RMEM_DEV_CAPA_*. */
	uint64_t max_mr_size;       /**< Bytes of the largest MR. */
	uint64_t max_msg_size;      /**< Bytes of the largest message. */
	uint64_t page_size_cap;     /**< Page sizes of REG_MR: bit n set for 2^n bytes. */
	uint32_t access;            /**< RMEM_ACCESS_* bits supported for MRs. */
	uint32_t max_pd;            /**< Protection domains. */
	uint32_t max_mr;            /**< Memory regions of all types. */
	uint32_t max_cq;            /**< Completion queues. */
	uint32_t max_qp;            /**< Queue pairs. */
	uint32_t max_cqe;           /**< Completions of one CQ. */
	uint32_t max_send_wr;       /**< Send requests outstanding on one QP. */
	uint32_t max_recv_wr;       /**< Receives outstanding on one QP. */
	uint32_t max_send_sge;      /**< SGEs of one send request. */
	uint32_t max_recv_sge;      /**< SGEs of one receive. */
	uint32_t max_inline_data;   /**< Bytes of one inline send. */
	uint32_t max_page_list_len; /**< Pages of one fast-register MR. */
	uint32_t max_inline_recv;   /**< Bytes of a message received inline, or 0. */
	uint32_t max_mw;            /**< Memory windows. */
	uint32_t max_mkey_entries;  /**< Entries of one indirect MR. */
	uint32_t max_mkey_depth;    /**< Levels of indirect MRs over each other. */
	uint32_t max_iov;           /**< Ranges of one MR. */
	uint32_t nb_pd;             /**< Protection domains in use. */
	uint32_t nb_mr;             /**< Memory regions in use. */
	uint32_t nb_cq;             /**< Completion queues in use. */
	uint32_t nb_qp;             /**< Queue pairs in use. */
	uint32_t nb_mw;             /**< Memory windows in use. */
	struct rmem_odp_caps odp;   /**< On-demand paging. */
	uint8_t gid[16];            /**< `soft` with ip=: its IP address as a GID; else 0. */
	uint32_t max_srq;           /**< Shared receive queues. */
	uint32_t max_srq_wr;        /**< Receives posted to one SRQ. */
	uint32_t max_srq_sge;       /**< SGEs of one receive of an SRQ. */
	uint32_t nb_srq;            /**< Shared receive queues in use. */
	uint64_t max_dm_size;       /**< Bytes of device memory, of one object and in total. */
	uint32_t max_dm;            /**< Device memories. */
	uint32_t nb_dm;             /**< Device memories in use. */
	uint64_t reserved[4];       /**< Zero. */
};

/** Counters of a device since it was created or its statistics were reset. */
struct rmem_dev_stats {
	uint64_t send_wrs;    /**< Send requests executed, including failed and flushed ones. */
	uint64_t recv_wrs;    /**< Receives consumed by a message. */
	uint64_t bytes;       /**< Payload bytes transferred. */
	uint64_t reg_mrs;     /**< Successful REG_MR requests. */
	uint64_t umrs;        /**< Successful UMR requests. */
	uint64_t invalidates; /**< Keys invalidated by requests of any kind. */
	uint64_t errors;      /**< Send requests that failed, except flushed ones. */
	uint64_t flushed;     /**< Send requests flushed. */
	uint64_t local_prot_errors; /**< Requests that failed with LOC_PROT_ERR. */
	uint64_t rem_access_errors; /**< Requests that failed with REM_ACCESS_ERR. */
	uint64_t rnr_retries;       /**< Attempts that found no receive posted. */
	uint64_t queued;            /**< Requests that could not execute when posted. */
	uint64_t grace_waits;       /**< Invalidations that waited for another lcore. */
	uint64_t inline_recvs;      /**< Messages delivered in their completion. */
	uint64_t mw_binds;          /**< Successful bindings of memory windows. */
	uint64_t odp_page_faults;   /**< Pages of on-demand MRs faulted in by requests. */
	uint64_t odp_invalidations; /**< Pages of on-demand MRs invalidated. */
	uint64_t odp_prefetches;    /**< Pages of on-demand MRs faulted in by advice. */
	uint64_t odp_pages;         /**< Pages of on-demand MRs in use now; never reset. */
	uint64_t odp_failed_faults; /**< Accesses to on-demand MRs without a page. */
	uint64_t bad_rkeys;         /**< Requests of peers with an rkey not valid for the QP. */
	uint64_t mem_faults;        /**< Requests and receives failed because of unmapped memory. */
	uint64_t wire_tx_packets;   /**< Packets sent. */
	uint64_t wire_tx_bytes;     /**< Bytes of packets sent, from the BTH to the ICRC. */
	uint64_t wire_tx_drops;     /**< Packets that the host refused to send. */
	uint64_t wire_rx_packets;   /**< Packets received. */
	uint64_t wire_rx_bytes;     /**< Bytes of packets received. */
	uint64_t wire_retransmits;  /**< Times that a QP sent again from its oldest packet. */
	uint64_t wire_timeouts;     /**< Expirations of the local ACK timeout. */
	uint64_t wire_duplicates;   /**< Requests received again. */
	/** Requests received after a gap in the PSNs; for UC, messages lost. */
	uint64_t wire_gaps;
	uint64_t wire_naks_sent;     /**< NAKs sent. */
	uint64_t wire_naks_received; /**< NAKs received. */
	uint64_t wire_rnr_naks_sent; /**< RNR NAKs sent. */
	uint64_t wire_malformed;     /**< Packets dropped: not a valid RoCE v2 packet. */
	uint64_t wire_icrc_errors;   /**< Packets dropped: a wrong ICRC. */
	uint64_t wire_unknown_qps;   /**< Packets dropped: no such QP is connected. */
	uint64_t wire_wrong_peers;   /**< Packets dropped: not from the QP's peer. */
	uint64_t wire_busy_drops;    /**< Requests dropped while a reply waited. */
	uint64_t drop_no_recv;       /**< Messages of UC and UD dropped: no receive was posted. */
	uint64_t drop_length;        /**< Messages of UC and UD dropped: longer than the receive. */
	uint64_t drop_access;        /**< Messages of UC and UD dropped: access refused. */
	uint64_t drop_no_peer;       /**< Messages of UC and UD dropped: no peer is ready. */
	uint64_t drop_qkey;          /**< Messages of UD dropped: wrong Q_Key. */
	uint64_t wire_ecn_marked;    /**< Packets of RC and UC with Congestion Experienced. */
	uint64_t wire_cnps_sent;     /**< Congestion notifications sent, at most one per 50 us. */
	uint64_t wire_cnps_received; /**< Congestion notifications of peers. */
	uint64_t reserved[2];        /**< Zero. */
};

/**
 * Create a device.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param name
 *   Driver name followed by a number, such as "soft0"; below RMEM_NAME_SIZE bytes.
 * @param args
 *   Driver arguments as "key=value,key=value", or NULL for none. The driver's page in
 *   doc/ lists the keys.
 * @param[out] dev
 *   The new device. Written only on success. Release it with rmem_dev_close().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL name or dev, a name that is too long or has no number, or an unknown
 *     key or bad value in args.
 *   - -ENODEV: no driver has that name.
 *   - -EEXIST: a device of that name exists.
 *   - -ENOSPC: there are already RMEM_MAX_DEVS devices.
 *   - -ENOMEM: no memory for the device.
 *   - -EPERM: the process has no permission to use the device.
 *   - -EOPNOTSUPP: this is a secondary process.
 *   - -EIO: the device failed; the page of the driver lists further errors of hardware.
 */
int rmem_dev_create(const char *name, const char *args, struct rmem_dev **dev);

/**
 * Close a device and release its resources.
 *
 * Control path. Safe to call from any thread, once for each device.
 *
 * @param dev
 *   Device to close; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a device.
 *   - -EBUSY: objects of the device exist, or a secondary process is attached or attaching;
 *     the log has the number of references.
 */
int rmem_dev_close(struct rmem_dev *dev);

/**
 * Look up a device of this process by its name.
 *
 * A secondary process has no devices.
 *
 * Control path. Safe to call from any thread.
 *
 * @param name
 *   Name passed to rmem_dev_create(); NULL is allowed and returns NULL.
 *
 * @return
 *   The device, or NULL if there is none of that name.
 */
struct rmem_dev *rmem_dev_get_by_name(const char *name);

/**
 * Get the next device of this process; used by RMEM_DEV_FOREACH().
 *
 * Control path. No device may be created or closed during the iteration.
 *
 * @param prev
 *   Previous device, or NULL for the first one.
 *
 * @return
 *   The next device, or NULL after the last one.
 */
struct rmem_dev *rmem_dev_next(const struct rmem_dev *prev);

/** Loop over all devices; dev is a struct rmem_dev pointer. */
#define RMEM_DEV_FOREACH(dev) for ((dev) = rmem_dev_next(NULL); (dev); (dev) = rmem_dev_next(dev))

/**
 * Check the invariants of a device and its objects.
 *
 * Covers tables, queues, QP states, keys, pools and leases. For debugging and tests; the first
 * violation is logged.
 *
 * Control path: reads all tables. No other thread may use the device or its objects during the
 * call.
 *
 * @param dev
 *   Device to check.
 *
 * @return
 *   0 if all invariants hold, otherwise:
 *   - -EINVAL: NULL or not a device.
 *   - -EIO: an invariant does not hold: a bug, or memory was overwritten.
 *   - -ENOMEM: no memory for the check.
 *   - -EOPNOTSUPP: the driver has no audit; no violation was found in the other objects.
 */
int rmem_dev_audit(struct rmem_dev *dev);

/**
 * Get the capabilities and limits of a device, and the objects in use.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device to query.
 * @param[out] info
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL info.
 */
int rmem_dev_info_get(const struct rmem_dev *dev, struct rmem_dev_info *info);

/**
 * Get the counters of a device.
 *
 * Not an atomic snapshot: sums may be off by a few requests.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device to query.
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL stats.
 *   - -EOPNOTSUPP: the driver has no counters.
 */
int rmem_dev_stats_get(const struct rmem_dev *dev, struct rmem_dev_stats *stats);

/**
 * Reset the counters of a device to zero.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device to reset.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device.
 *   - -EOPNOTSUPP: the driver has no counters.
 */
int rmem_dev_stats_reset(struct rmem_dev *dev);

/**
 * Print the limits, objects in use and counters of a device, human-readable.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device to print.
 * @param f
 *   Stream to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL f.
 */
int rmem_dev_dump(const struct rmem_dev *dev, FILE *f);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_DEV_H */
