/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Devices: made by name, asked for what they can do, and closed.
 *
 * A device name is the name of a driver followed by a number: "soft0" is a device of the
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

/** Devices a process can have at a time. */
#define RMEM_MAX_DEVS 64

/** REG_MR on fast-register MRs: rmem_fast_reg_mr_alloc() and RMEM_WR_REG_MR. */
#define RMEM_DEV_CAPA_FAST_REG (UINT64_C(1) << 0)
/** RMEM_WR_LOCAL_INV. */
#define RMEM_DEV_CAPA_LOCAL_INV (UINT64_C(1) << 1)
/** RMEM_WR_SEND_WITH_INV. */
#define RMEM_DEV_CAPA_SEND_WITH_INV (UINT64_C(1) << 2)
/** RMEM_WR_RDMA_READ_WITH_INV. */
#define RMEM_DEV_CAPA_READ_WITH_INV (UINT64_C(1) << 3)
/** RMEM_WR_ATOMIC_CMP_AND_SWP and RMEM_WR_ATOMIC_FETCH_AND_ADD. */
#define RMEM_DEV_CAPA_ATOMIC (UINT64_C(1) << 4)
/** Requests run on service lcores and not in the thread that posts or polls. */
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
/** RMEM_MR_REQUESTED_KEY: the caller chooses the key of an MR. */
#define RMEM_DEV_CAPA_REQUESTED_KEY (UINT64_C(1) << 13)
/** RMEM_MR_DISABLED and rmem_mr_enable(). */
#define RMEM_DEV_CAPA_MR_ENABLE (UINT64_C(1) << 14)
/** rmem_mr_bind_counter(). */
#define RMEM_DEV_CAPA_MR_COUNTER (UINT64_C(1) << 15)
/**
 * Inline receive: a message of at most rmem_dev_info::max_inline_recv bytes may travel in its
 * completion, and is copied to the receive's memory by the poll that returns it. Nothing of
 * that shows, but for the memory, which changes at the poll. On unless the environment has
 * RMEM_SCATTER_TO_CQE=0 or the QP has RMEM_QP_NO_INLINE_RECV.
 */
#define RMEM_DEV_CAPA_INLINE_RECV (UINT64_C(1) << 16)

/** A device. Applications read its name. */
struct rmem_dev {
	struct rmem_obj obj;       /**< Private head. */
	char name[RMEM_NAME_SIZE]; /**< Name it was created with. */
	int socket_id;             /**< NUMA socket of its memory, or SOCKET_ID_ANY. */
	const void *driver;        /**< Private: driver of this process. */
	void *priv;                /**< Private: state of the driver, in shared memory. */
};

/** rmem_odp_caps::general: MRs with RMEM_ACCESS_ON_DEMAND. */
#define RMEM_ODP_SUPPORT (UINT32_C(1) << 0)
/** rmem_odp_caps::general: MRs over the whole address space (NULL, SIZE_MAX). */
#define RMEM_ODP_SUPPORT_IMPLICIT (UINT32_C(1) << 1)
/*
 * What an on-demand MR can be used for, on each transport; the values are those of verbs'
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

/** On-demand paging: what a device has of it (struct ibv_odp_caps). All 0: nothing. */
struct rmem_odp_caps {
	uint32_t general; /**< RMEM_ODP_SUPPORT and RMEM_ODP_SUPPORT_IMPLICIT. */
	uint32_t rc;      /**< RMEM_ODP_SEND to RMEM_ODP_SRQ_RECV on reliable connections. */
	uint32_t uc;      /**< The same on unreliable connections. */
	uint32_t ud;      /**< The same on unreliable datagrams. */
};

/** What a device can do, its limits, and what is in use. */
struct rmem_dev_info {
	const char *driver_name;    /**< Name of the driver, static. */
	uint64_t capa;              /**< Bitwise OR of RMEM_DEV_CAPA_*. */
	uint64_t max_mr_size;       /**< Bytes of the largest MR. */
	uint64_t max_msg_size;      /**< Bytes of the largest message. */
	uint64_t page_size_cap;     /**< Page sizes of REG_MR: bit n set for 2^n bytes. */
	uint32_t access;            /**< RMEM_ACCESS_* bits that mr_reg takes. */
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
};

/** Counters of a device since it was created or its statistics were reset. */
struct rmem_dev_stats {
	uint64_t send_wrs;    /**< Send requests executed, failed and flushed ones included. */
	uint64_t recv_wrs;    /**< Receives consumed by a message. */
	uint64_t bytes;       /**< Payload bytes moved. */
	uint64_t reg_mrs;     /**< REG_MR requests that succeeded. */
	uint64_t umrs;        /**< UMR requests that succeeded. */
	uint64_t invalidates; /**< Keys invalidated by requests of any kind. */
	uint64_t errors;      /**< Send requests that failed, flushed ones excluded. */
	uint64_t flushed;     /**< Send requests flushed. */
	uint64_t local_prot_errors; /**< Requests that failed on a local key. */
	uint64_t rem_access_errors; /**< Requests that failed on a remote key. */
	uint64_t rnr_retries;       /**< Tries that found no receive posted. */
	uint64_t queued;            /**< Requests that could not run when posted. */
	uint64_t grace_waits;       /**< Invalidations that had to wait for another lcore. */
	uint64_t inline_recvs;      /**< Messages that travelled in their completion. */
	uint64_t mw_binds;          /**< Bindings of memory windows that succeeded. */
	uint64_t odp_page_faults;   /**< Pages of on-demand MRs that requests had fetched. */
	uint64_t odp_invalidations; /**< Pages of on-demand MRs that went. */
	uint64_t odp_prefetches;    /**< Pages of on-demand MRs that advice had fetched. */
	uint64_t odp_pages;         /**< Pages that on-demand MRs have now; never reset. */
	uint64_t odp_failed_faults; /**< Accesses to on-demand MRs that found no page. */
	uint64_t bad_rkeys;  /**< Requests of peers by an rkey that is not valid for the QP. */
	uint64_t mem_faults; /**< Requests and receives that failed as memory was not there. */
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
 *   - -ENOSPC: there are RMEM_MAX_DEVS devices already.
 *   - -ENOMEM: no memory for the device.
 *   - -EPERM: the system does not let this process use the device.
 *   - -EOPNOTSUPP: this is a secondary process.
 *   - -EIO: the device fails; what else hardware may refuse is on the driver's page.
 */
int rmem_dev_create(const char *name, const char *args, struct rmem_dev **dev);

/**
 * Close a device and release what it holds.
 *
 * Control path. Safe to call from any thread, once for each device.
 *
 * @param dev
 *   Device to close; not valid any more on success. NULL is allowed and does nothing.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a device.
 *   - -EBUSY: objects of the device exist; the log counts them.
 */
int rmem_dev_close(struct rmem_dev *dev);

/**
 * Look a device up by its name, among those of this process: a secondary process has none.
 *
 * Control path. Safe to call from any thread.
 *
 * @param name
 *   Name given to rmem_dev_create(); NULL is allowed and finds nothing.
 *
 * @return
 *   The device, or NULL when there is none of that name.
 */
struct rmem_dev *rmem_dev_get_by_name(const char *name);

/**
 * Step through the devices of this process. RMEM_DEV_FOREACH() is the loop over it.
 *
 * Control path. No device may be created or closed meanwhile.
 *
 * @param prev
 *   Device to start behind, or NULL for the first one.
 *
 * @return
 *   The next device, or NULL behind the last one.
 */
struct rmem_dev *rmem_dev_next(const struct rmem_dev *prev);

/** Loop over all devices; dev is a struct rmem_dev pointer. */
#define RMEM_DEV_FOREACH(dev) for ((dev) = rmem_dev_next(NULL); (dev); (dev) = rmem_dev_next(dev))

/**
 * Check the invariants of all that a device and its objects hold: tables, queues, QP states,
 * keys, pools and leases. For debugging and tests; the first flaw that is found is logged.
 *
 * Control path: reads all tables. No other thread may use the device or its objects during the
 * call.
 *
 * @param dev
 *   Device to check.
 *
 * @return
 *   0 when all invariants hold, otherwise:
 *   - -EINVAL: NULL or not a device.
 *   - -EIO: an invariant does not hold: a bug, or memory was overwritten.
 *   - -ENOMEM: no memory for the check.
 *   - -EOPNOTSUPP: all that the driver does not hold is sound; the driver has no audit.
 */
int rmem_dev_audit(struct rmem_dev *dev);

/**
 * Get what a device can do, its limits, and how much is in use.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device to ask.
 * @param[out] info
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL info.
 */
int rmem_dev_info_get(struct rmem_dev *dev, struct rmem_dev_info *info);

/**
 * Get the counters of a device.
 *
 * They are read while lcores go on, so that sums may be a few requests apart.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device to ask.
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL stats.
 *   - -EOPNOTSUPP: the driver counts nothing.
 */
int rmem_dev_stats_get(struct rmem_dev *dev, struct rmem_dev_stats *stats);

/**
 * Start the counters of a device from zero.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dev
 *   Device to reset.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device.
 *   - -EOPNOTSUPP: the driver counts nothing.
 */
int rmem_dev_stats_reset(struct rmem_dev *dev);

/**
 * Print the state of a device for people: limits, what is in use, counters.
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
int rmem_dev_dump(struct rmem_dev *dev, FILE *f);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_DEV_H */
