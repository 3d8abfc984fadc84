/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Driver interface; doc/writing_a_driver.md describes it with an example.
 *
 * The class allocates every object, zeroed and of the size given by the driver, in DPDK shared
 * memory, sets its public part, counts references and makes all checks that need no knowledge of
 * the device; then it calls the driver. A failed op must change nothing. The class, not the op,
 * frees an object after its creation failed or its release succeeded.
 */

#ifndef RMEM_DRIVER_H
#define RMEM_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include <rmem.h>
#include <rmem_args.h>
#include <rmem_driver_event.h>
#include <rmem_driver_mp.h>
#include <rmem_log.h>
#include <rmem_obj_ref.h>
#include <rmem_pages.h>
#include <rmem_process.h>
#include <rmem_thread.h>
#include <rmem_wr_info.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_driver;

/*
 * Parts of objects shared by class and drivers, hidden from applications, like struct verbs_mr of
 * rdma-core. The other objects have no such part.
 */

/** Device. */
struct rmem_dev_drv {
	struct rmem_dev dev;              /**< Public part. */
	const struct rmem_driver *driver; /**< Driver of this process. */
	void *priv;                       /**< State of the driver, in shared memory. */
	/** Fast path of this device, if dev_create sets it; NULL: rmem_driver::fp. */
	const struct rmem_fp_ops *fp;
	/**
	 * Function of a provider of rdma_cm over the device, or NULL.
	 *
	 * Called by the thread that reports RMEM_ASYNC_DEVICE_FATAL, which may hold locks of the
	 * driver.
	 */
	void (*failed)(struct rmem_dev *dev);
};

/** rmem_qp_drv::is_opened: another process executes its calls; set by the class. */
#define RMEM_QP_OPENED_CALLS 1
/** The device has the QP, as the kernel: its calls are those of a QP of this process. */
#define RMEM_QP_OPENED_DEVICE 2

/** Head of a driver's QP. */
struct rmem_qp_drv {
	struct rmem_qp qp;                /**< Public part. */
	struct rmem_qp_error *last_error; /**< Private to the class: rmem_qp_note_error(). */
	uint16_t flags;                   /**< RMEM_QP_* of its configuration; set by the class. */
	uint16_t is_opened;               /**< RMEM_QP_OPENED_*; 0: not of rmem_qp_get_shared(). */
	uint16_t has_openers;             /**< 1: rmem_qp_hold() holds it; by the class, atomic. */
	uint16_t reserved[1];             /**< Zero. */
	struct rmem_async_events *async;  /**< Private to the class: events, or NULL. */
};

/** Completion channel. */
struct rmem_comp_channel_drv {
	struct rmem_comp_channel channel; /**< Public part. */
	void *priv;                       /**< State of a driver that has its own channels. */
	uint64_t reserved[2];             /**< Zero. */
};

/**
 * Check whether a GID is a multicast GID.
 *
 * As rdma_is_multicast_addr() of the kernel: ff00::/8, or an IPv4-mapped address of 224.0.0.0/4.
 *
 * @param gid
 *   GID, 16 bytes.
 *
 * @return
 *   True if it is.
 */
static inline bool
rmem_gid_is_mcast(const uint8_t gid[16])
{
	static const uint8_t ipv4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	if (gid[0] == 0xff)
		return true;
	return (gid[12] & 0xf0) == 0xe0 && memcmp(gid, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

/**
 * Get the part of a device that is shared with drivers.
 *
 * @param dev
 *   Device.
 *
 * @return
 *   The device.
 */
static inline struct rmem_dev_drv *
rmem_dev_drv(const struct rmem_dev *dev)
{
	return (struct rmem_dev_drv *)(uintptr_t)dev;
}

/** Create the device's state in rmem_dev_drv::priv from its arguments (NULL for none). */
typedef int (*rmem_dev_create_t)(struct rmem_dev *dev, const char *args);
/** Release rmem_dev_drv::priv; no object is left. */
typedef void (*rmem_dev_close_t)(struct rmem_dev *dev);
/** Fill limits and use; the class has set driver_name. */
typedef int (*rmem_dev_info_get_t)(struct rmem_dev *dev, struct rmem_dev_info *info);
/** Fill the counters. */
typedef int (*rmem_dev_stats_get_t)(struct rmem_dev *dev, struct rmem_dev_stats *stats);
/** Reset the counters to zero. */
typedef int (*rmem_dev_stats_reset_t)(struct rmem_dev *dev);
/** Fill the attributes of the device; the class has zeroed them. */
typedef int (*rmem_dev_attr_get_t)(struct rmem_dev *dev, struct rmem_dev_attr *attr);
/** Read the clock of rmem_cq::timestamps. */
typedef int (*rmem_dev_clock_get_t)(struct rmem_dev *dev, uint64_t *ticks);
/** Fill the attributes of a port, 1 to rmem_dev_attr::nb_ports; the class has zeroed them. */
typedef int (*rmem_dev_port_query_t)(
		struct rmem_dev *dev, uint32_t port_num, struct rmem_port_attr *attr);
/** Fill GID, type and interface of the entry of a port and an index that exist. */
typedef int (*rmem_dev_gid_query_t)(struct rmem_dev *dev, struct rmem_gid_entry *entry);
/** Get the P_Key, in host byte order, of a port and an index that exist. */
typedef int (*rmem_dev_pkey_query_t)(
		struct rmem_dev *dev, uint32_t port_num, uint32_t index, uint16_t *pkey);
/** Print the state of the driver, indented by two spaces. */
typedef int (*rmem_dev_dump_t)(struct rmem_dev *dev, FILE *f);

/**
 * Check the invariants of the driver: -EIO and a log line for the first violation.
 *
 * No other thread uses the device.
 */
typedef int (*rmem_dev_audit_t)(struct rmem_dev *dev);

/** Set pd->handle. */
typedef int (*rmem_pd_alloc_t)(struct rmem_pd *pd);
/** Release the resources of pd_alloc. */
typedef int (*rmem_pd_dealloc_t)(struct rmem_pd *pd);

/**
 * Register [addr, addr + length) at iova with access; set lkey and rkey.
 *
 * The class has set these fields of mr; attr has the checked arguments of the caller, for the other
 * attributes. With RMEM_DEV_CAPA_MR_IOV, rmem_mr_ranges() may return several. With
 * RMEM_DEV_CAPA_NULL_MR, an MR of RMEM_MR_TYPE_NULL has no address and the length SIZE_MAX, and
 * attr is zero. With RMEM_DEV_CAPA_DM, an MR of RMEM_MR_TYPE_DM has no address and the iova 0; it
 * covers bytes of rmem_mr_ext::dm.
 */
typedef int (*rmem_mr_reg_t)(struct rmem_mr *mr, const struct rmem_mr_attr *attr);
/**
 * Release an MR of mr_reg, fast_reg_mr_alloc or mkey_alloc.
 *
 * When it returns, no lcore accesses the memory.
 */
typedef int (*rmem_mr_dereg_t)(struct rmem_mr *mr);
/**
 * Start counting requests (RMEM_COUNTER_REMOTE_WRITE); a NULL counter stops.
 *
 * The driver adds to counter->value, with release, after the data was written. The op returns from
 * a stop only when no lcore uses the counter: the class may free it then.
 */
typedef int (*rmem_mr_bind_counter_t)(struct rmem_mr *mr, struct rmem_counter *counter);
/** Enable an MR registered with RMEM_MR_DISABLED; may be called twice. */
typedef int (*rmem_mr_enable_t)(struct rmem_mr *mr);
/** Correct the values of the class: state, access, keys, iova, length, page size. */
typedef int (*rmem_mr_query_t)(struct rmem_mr *mr, struct rmem_mr_info *info);
/**
 * Change the properties of an MR given by flags (RMEM_REREG_*), and keep its keys.
 *
 * The op returns when no access uses the previous registration any more. An MR over several ranges
 * becomes one over [addr, addr + length) if the translation changes. The other arguments are the
 * complete, checked properties of the new registration; the class stores them in mr afterwards. If
 * the translation changes, it sets the iova to addr or, for ZERO_BASED, to 0. A device that changed
 * the keys sets them in mr, and *result to NEW_KEYS. On failure, set *result unless it is
 * ERR_INPUT. On -EOPNOTSUPP, without a change, the class deregisters the MR and registers it again.
 */
typedef int (*rmem_mr_rereg_t)(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr,
		size_t length, uint32_t access, enum rmem_rereg_result *result);
/**
 * Process advice on pages of on-demand MRs of pd.
 *
 * The driver checks the keys, their PDs and rights, and the ranges; the class checks all other
 * arguments.
 */
typedef int (*rmem_mr_advise_t)(struct rmem_pd *pd, int advice, uint32_t flags,
		const struct rmem_sge *sg_list, uint32_t num_sge);
/**
 * Get the counters of on-demand paging of any MR of RMEM_MR_TYPE_USER.
 *
 * The class has zeroed them.
 */
typedef int (*rmem_mr_stats_get_t)(struct rmem_mr *mr, struct rmem_mr_stats *stats);
/** Register the memory of from, as mr_reg does; from is not released during the op. */
typedef int (*rmem_mr_share_t)(struct rmem_mr *mr, struct rmem_mr *from);

/** Allocate a FREE MR for rmem_mr_drv::max_size pages; set lkey and rkey. */
typedef int (*rmem_fast_reg_mr_alloc_t)(struct rmem_mr *mr);
/** Allocate a FREE MR for rmem_mr_drv::max_size entries of a UMR; set lkey and rkey. */
typedef int (*rmem_mkey_alloc_t)(struct rmem_mr *mr);
/** Set page_list->page_list to an array of max_page_list_len pages. */
typedef int (*rmem_page_list_alloc_t)(struct rmem_fast_reg_page_list *page_list);
/** Release the resources of page_list_alloc. */
typedef int (*rmem_page_list_free_t)(struct rmem_fast_reg_page_list *page_list);

/** Allocate a window that is not bound; set rkey. */
typedef int (*rmem_mw_alloc_t)(struct rmem_mw *mw);
/**
 * Queue a binding of a type 1 window on the QP and set mw->rkey.
 *
 * The class has checked the binding with rmem_mw_check_bind(). Length 0 unbinds; the MR may be NULL
 * then.
 */
typedef int (*rmem_mw_bind_t)(
		struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);
/** Release the resources of mw_alloc; afterwards no lcore accesses memory through the window. */
typedef int (*rmem_mw_dealloc_t)(struct rmem_mw *mw);

/**
 * Create a channel, and set its fd and rmem_comp_channel_drv::priv.
 *
 * A driver has all four operations of channels or none. Without them the class provides channels,
 * and the driver calls rmem_cq_notify().
 */
typedef int (*rmem_comp_channel_create_t)(struct rmem_comp_channel *channel);
/** Release the resources of comp_channel_create. */
typedef int (*rmem_comp_channel_destroy_t)(struct rmem_comp_channel *channel);
/**
 * Return the CQ of the next event, with a reference of rmem_obj_hold().
 *
 * Waits for an event, unless fd has O_NONBLOCK. Must not log -EAGAIN and -EINTR.
 */
typedef int (*rmem_comp_channel_get_event_t)(
		struct rmem_comp_channel *channel, struct rmem_cq **cq);
/** Arm a CQ with a channel. */
typedef int (*rmem_cq_req_notify_t)(struct rmem_cq *cq, bool is_solicited_only);
/** Moderate the events of a CQ; the class has checked the limits. */
typedef int (*rmem_cq_modify_t)(struct rmem_cq *cq, const struct rmem_cq_attr *attr);
/** Create the queue; may raise cq->nb_cqe. With RMEM_CQ_TIMESTAMP polls fill cq->timestamps. */
typedef int (*rmem_cq_create_t)(struct rmem_cq *cq, const struct rmem_cq_conf *conf);
/** Release the resources of cq_create. */
typedef int (*rmem_cq_destroy_t)(struct rmem_cq *cq);
/**
 * Change the size to at least nb_cqe, and set cq->nb_cqe to the new size.
 *
 * The class has checked nb_cqe with the limit of the device; -EINVAL if more completions are
 * outstanding.
 */
typedef int (*rmem_cq_resize_t)(struct rmem_cq *cq, uint32_t nb_cqe);

/** Fill outstanding and overruns; the class has set nb_cqe and zeroed all other fields. */
typedef int (*rmem_cq_stats_get_t)(struct rmem_cq *cq, struct rmem_cq_stats *stats);

/** Fill the counters of a QP since its creation, as dev_stats_get does; the class zeroed them. */
typedef int (*rmem_qp_stats_get_t)(struct rmem_qp *qp, struct rmem_dev_stats *stats);
/** Create the queues, in the RESET state; set qp_num. */
typedef int (*rmem_qp_create_t)(struct rmem_qp *qp, const struct rmem_qp_conf *conf);
/** Move the QP from RESET to RTS. */
typedef int (*rmem_qp_connect_t)(struct rmem_qp *qp, const struct rmem_qp_conn *conn);
/**
 * Set the attributes of mask, and the state.
 *
 * For all transitions except to RESET and ERR, for which the class calls qp_reset and qp_set_error.
 * The class has checked attributes and transition, with cur_state as the current state; return
 * -EBUSY if the QP is no longer in cur_state. The mask always has RMEM_QP_STATE; state may be equal
 * to cur_state.
 */
typedef int (*rmem_qp_modify_t)(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask);
/** Fill state, attributes, address and sizes. */
typedef int (*rmem_qp_query_t)(struct rmem_qp *qp, struct rmem_qp_attr *attr);
/** Move the QP to ERR. */
typedef int (*rmem_qp_set_error_t)(struct rmem_qp *qp);
/** Move the QP to RESET. */
typedef int (*rmem_qp_reset_t)(struct rmem_qp *qp);
/** Release the resources of qp_create. */
typedef int (*rmem_qp_destroy_t)(struct rmem_qp *qp);

/**
 * Attach a UD QP to a multicast group; success if it is already attached.
 *
 * The class has checked the type of the QP and the GID, the driver checks the LID.
 */
typedef int (*rmem_qp_attach_mcast_t)(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);
/** Detach a QP; -EINVAL if it is not attached. qp_destroy refuses an attached QP with -EBUSY. */
typedef int (*rmem_qp_detach_mcast_t)(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);

/**
 * Count completed requests of a QP (enum rmem_qp_count) until it is destroyed.
 *
 * The driver adds to counter->value, or to counter->errors, with release, after the data was
 * written and before the completion can be polled. The class has checked the state of the QP, and
 * that it has no counter for any of these requests; return -EBUSY if the QP has left the state.
 */
typedef int (*rmem_qp_attach_counter_t)(
		struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts);

/** Create the address handle; ah->pd is set. The class has checked port_num and is_global. */
typedef int (*rmem_ah_create_t)(struct rmem_ah *ah, const struct rmem_ah_attr *attr);
/** Release the resources of ah_create; requests posted with it are not affected. */
typedef int (*rmem_ah_destroy_t)(struct rmem_ah *ah);

/** Create the queue; srq->pd is set. */
typedef int (*rmem_srq_create_t)(struct rmem_srq *srq, const struct rmem_srq_conf *conf);
/**
 * Set the attributes of mask, which is not 0.
 *
 * The class has checked max_wr against the limits of the device. The driver checks max_wr against
 * the number of posted receives and the SRQ limit, and the SRQ limit against max_wr.
 */
typedef int (*rmem_srq_modify_t)(
		struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask);
/** Fill the attributes. */
typedef int (*rmem_srq_query_t)(struct rmem_srq *srq, struct rmem_srq_attr *attr);
/** Release the resources of srq_create; no QP uses it. */
typedef int (*rmem_srq_destroy_t)(struct rmem_srq *srq);

/** Steps of a connection of rdma_cm at which a device may inject a fault. */
enum rmem_rdma_cm_step {
	RMEM_RDMA_CM_RESOLVE_ADDR,  /**< The address is resolved. */
	RMEM_RDMA_CM_RESOLVE_ROUTE, /**< The route is resolved. */
	RMEM_RDMA_CM_CONNECT,       /**< A request is about to be sent. */
	RMEM_RDMA_CM_ACCEPT,        /**< A reply is about to be sent; not of UD. */
	RMEM_RDMA_CM_ESTABLISHED,   /**< The connection is established; not of UD. */
	RMEM_RDMA_CM_HAPPENS,       /**< No step: a fault chosen before happens now. */
};

/** Faults of a connection of rdma_cm. */
enum rmem_rdma_cm_fault_type {
	RMEM_RDMA_CM_REJECT = 1,     /**< The peer rejects. */
	RMEM_RDMA_CM_UNREACHABLE,    /**< The peer is not reached. */
	RMEM_RDMA_CM_TIMEOUT,        /**< No answer arrives. */
	RMEM_RDMA_CM_DISCONNECTED,   /**< The peer disconnects. */
	RMEM_RDMA_CM_DEVICE_REMOVAL, /**< The device is removed from rdma_cm. */
};

/** A fault of a connection. */
struct rmem_rdma_cm_fault {
	uint32_t type;        /**< enum rmem_rdma_cm_fault_type. */
	uint32_t reason;      /**< REJECT: reason (IBTA 12.6.7.2). */
	uint32_t delay_ms;    /**< Milliseconds until its event; 0: at the next message. */
	uint32_t rule;        /**< Private to the driver. */
	uint64_t nth;         /**< Private to the driver. */
	uint64_t reserved[1]; /**< Zero. */
};

/**
 * Decide whether a connection of rdma_cm fails at a step: 1 with *fault, or 0.
 *
 * For a provider of rdma_cm over the device. If the fault happens, the provider calls the op again
 * with RMEM_RDMA_CM_HAPPENS and the fault; the driver then logs the fault with the number of the
 * ID, and returns 0.
 */
typedef int (*rmem_rdma_cm_fault_t)(struct rmem_dev *dev, enum rmem_rdma_cm_step step,
		uint32_t number, struct rmem_rdma_cm_fault *fault);

/**
 * Open the domain rmem_xrcd::handle, of conf->fd if conf has RMEM_XRCD_FILE.
 *
 * With RMEM_XRC_OPS_SHARED: -ENOENT or -EEXIST, as rmem_xrcd_alloc().
 */
typedef int (*rmem_xrcd_alloc_t)(struct rmem_xrcd *xrcd, const struct rmem_xrcd_conf *conf);
/** Release the resources of xrcd_alloc; no SRQ or QP uses it. */
typedef int (*rmem_xrcd_dealloc_t)(struct rmem_xrcd *xrcd);
/** Get the number of an SRQ that was created with rmem_srq_ext::xrcd. */
typedef int (*rmem_srq_num_get_t)(struct rmem_srq *srq, uint32_t *srq_num);

/** Calls of QPs that other processes open: rmem_qp_call::op. */
enum rmem_qp_call_op {
	RMEM_QP_CALL_QUERY = 1, /**< rmem_qp_query(): fills attr. */
	RMEM_QP_CALL_MODIFY,    /**< rmem_qp_modify() with attr and mask. */
	RMEM_QP_CALL_CONNECT,   /**< rmem_qp_connect() with conn. */
	RMEM_QP_CALL_RESET,     /**< rmem_qp_reset(). */
	RMEM_QP_CALL_SET_ERROR, /**< rmem_qp_set_error(). */
};

/** A call of a QP by another process; plain bytes. */
struct rmem_qp_call {
	uint32_t op;   /**< enum rmem_qp_call_op. */
	uint32_t mask; /**< MODIFY: RMEM_QP_STATE and following bits; else 0. */
	union {
		struct rmem_qp_attr attr; /**< QUERY, MODIFY. */
		struct rmem_qp_conn conn; /**< CONNECT. */
	};
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Open an XRC_RECV QP of another process.
 *
 * As rmem_qp_get_shared(); qp->qp_num is its number. -ENOENT, -ENOSPC, -ENOMEM or -ETIMEDOUT.
 */
typedef int (*rmem_qp_open_t)(struct rmem_qp *qp, struct rmem_xrcd *xrcd);
/**
 * Let the other process execute a call of an opened QP.
 *
 * The result of rmem_qp_execute() there, -EIO if the process has ended, or -ETIMEDOUT.
 */
typedef int (*rmem_qp_call_t)(struct rmem_qp *qp, struct rmem_qp_call *call);
/** Release the resources of qp_open, and the reference to the QP. */
typedef void (*rmem_qp_close_t)(struct rmem_qp *qp);
/**
 * Report an event of a QP with rmem_qp_drv::has_openers to those processes.
 *
 * Called as rmem_qp_async_event(): must not wait.
 */
typedef void (*rmem_qp_event_t)(struct rmem_qp *qp, uint32_t type);
/** Release all QPs that only other processes hold (rmem_qp_is_left()). */
typedef void (*rmem_qp_leave_t)(struct rmem_dev *dev);

/**
 * Operations on QPs that several processes open; all are required. If qp_open sets
 * RMEM_QP_OPENED_DEVICE in each QP, qp_call, qp_close and qp_event are NULL: then the handle is
 * destroyed by qp_destroy.
 */
struct rmem_qp_share_ops {
	rmem_qp_open_t qp_open;   /**< QPs of other processes. */
	rmem_qp_call_t qp_call;   /**< QPs of other processes. */
	rmem_qp_close_t qp_close; /**< QPs of other processes. */
	rmem_qp_event_t qp_event; /**< QPs that other processes have opened. */
	rmem_qp_leave_t qp_leave; /**< QPs that other processes have opened. */
	uint64_t reserved[3];     /**< Zero. */
};

/** rmem_xrc_ops::flags: processes share the domain of a file; the driver finds if it exists. */
#define RMEM_XRC_OPS_SHARED (1u << 0)

/** Operations of XRC; all but share are required. */
struct rmem_xrc_ops {
	uint32_t xrcd_size;               /**< Bytes of its XRC domain, struct rmem_xrcd first. */
	uint32_t flags;                   /**< Bitwise OR of RMEM_XRC_OPS_*. */
	rmem_srq_num_get_t srq_num_get;   /**< SRQs of XRC. */
	rmem_xrcd_dealloc_t xrcd_dealloc; /**< XRC domains. */
	rmem_xrcd_alloc_t xrcd_alloc;     /**< XRC domains. */
	const struct rmem_qp_share_ops *share; /**< XRC_RECV QPs of other processes, or NULL. */
	uint64_t reserved[3];                  /**< Zero. */
};

/** Allocate dm->length bytes; the class has checked conf with the limits of the device. */
typedef int (*rmem_dm_alloc_t)(struct rmem_dm *dm, const struct rmem_dm_conf *conf);
/** Release the resources of dm_alloc; no MR uses it. */
typedef int (*rmem_dm_free_t)(struct rmem_dm *dm);
/** Copy to a range that is within the device memory. */
typedef int (*rmem_dm_copy_to_t)(
		struct rmem_dm *dm, uint64_t offset, const void *src, size_t length);
/** Copy from a range that is within the device memory. */
typedef int (*rmem_dm_copy_from_t)(struct rmem_dm *dm, uint64_t offset, void *dst, size_t length);

/** Export it as a new descriptor; -EOPNOTSUPP: the device can't. */
typedef int (*rmem_dm_export_fd_t)(struct rmem_dm *dm, int *fd);

/** Operations of device memory; all are required. */
struct rmem_dm_ops {
	uint32_t dm_size;                 /**< Bytes of its DM, struct rmem_dm first. */
	uint32_t pad;                     /**< Zero. */
	rmem_dm_alloc_t dm_alloc;         /**< Device memory. */
	rmem_dm_copy_from_t dm_copy_from; /**< Device memory. */
	rmem_dm_copy_to_t dm_copy_to;     /**< Device memory. */
	rmem_dm_export_fd_t dm_export_fd; /**< Device memory. */
	rmem_dm_free_t dm_free;           /**< Device memory. */
	uint64_t reserved[3];             /**< Zero. */
};

/** Control operations. A slot left NULL returns -EOPNOTSUPP. */
struct rmem_dev_ops {
	rmem_dev_create_t dev_create;           /**< Required. */
	rmem_dev_close_t dev_close;             /**< Required. */
	rmem_dev_info_get_t dev_info_get;       /**< Required. */
	rmem_dev_stats_get_t dev_stats_get;     /**< Counters. */
	rmem_dev_stats_reset_t dev_stats_reset; /**< Counters. */
	rmem_dev_dump_t dev_dump;               /**< Driver-specific output. */
	rmem_dev_audit_t dev_audit;             /**< Invariants, for debugging. */

	rmem_pd_alloc_t pd_alloc;     /**< PDs. */
	rmem_pd_dealloc_t pd_dealloc; /**< PDs. */

	rmem_mr_advise_t mr_advise;             /**< MRs: RMEM_ODP_SUPPORT. */
	rmem_mr_bind_counter_t mr_bind_counter; /**< MRs: RMEM_DEV_CAPA_MR_COUNTER. */
	rmem_mr_dereg_t mr_dereg;               /**< MRs. */
	rmem_mr_enable_t mr_enable;             /**< MRs: RMEM_DEV_CAPA_MR_ENABLE. */
	rmem_mr_query_t mr_query;               /**< MRs. */
	rmem_mr_reg_t mr_reg;                   /**< MRs. */
	rmem_mr_rereg_t mr_rereg;               /**< MRs, keeping their keys. */
	rmem_mr_share_t mr_share;               /**< MRs: RMEM_DEV_CAPA_SHARED_MR. */
	rmem_mr_stats_get_t mr_stats_get;       /**< MRs: RMEM_ODP_SUPPORT. */

	rmem_fast_reg_mr_alloc_t fast_reg_mr_alloc; /**< Fast registration. */
	rmem_page_list_alloc_t page_list_alloc;     /**< Fast registration. */
	rmem_page_list_free_t page_list_free;       /**< Fast registration. */

	rmem_mw_alloc_t mw_alloc;     /**< Memory windows. */
	rmem_mw_bind_t mw_bind;       /**< Memory windows. */
	rmem_mw_dealloc_t mw_dealloc; /**< Memory windows. */

	rmem_mkey_alloc_t mkey_alloc; /**< Indirect keys. */

	rmem_comp_channel_create_t comp_channel_create;   /**< Channels: NULL for the class's. */
	rmem_comp_channel_destroy_t comp_channel_destroy; /**< Channels: NULL for the class's. */
	rmem_comp_channel_get_event_t
			comp_channel_get_event; /**< Channels: NULL for the class's. */

	rmem_cq_create_t cq_create;         /**< CQs. */
	rmem_cq_destroy_t cq_destroy;       /**< CQs. */
	rmem_cq_req_notify_t cq_req_notify; /**< Channels: NULL for the class's. */

	rmem_qp_connect_t qp_connect;     /**< QPs. */
	rmem_qp_create_t qp_create;       /**< QPs. */
	rmem_qp_destroy_t qp_destroy;     /**< QPs. */
	rmem_qp_modify_t qp_modify;       /**< QPs: transitions one by one. */
	rmem_qp_query_t qp_query;         /**< QPs. */
	rmem_qp_reset_t qp_reset;         /**< QPs. */
	rmem_qp_set_error_t qp_set_error; /**< QPs. */

	rmem_dev_attr_get_t dev_attr_get;     /**< Attributes of the device. */
	rmem_dev_gid_query_t dev_gid_query;   /**< GIDs of ports. */
	rmem_dev_pkey_query_t dev_pkey_query; /**< P_Keys of ports. */
	rmem_dev_port_query_t dev_port_query; /**< Ports. */

	rmem_srq_create_t srq_create;   /**< SRQs: RMEM_DEV_CAPA_SRQ. */
	rmem_srq_destroy_t srq_destroy; /**< SRQs. */
	rmem_srq_modify_t srq_modify;   /**< SRQs. */
	rmem_srq_query_t srq_query;     /**< SRQs. */

	rmem_ah_create_t ah_create;   /**< AHs: RMEM_DEV_CAPA_UD. */
	rmem_ah_destroy_t ah_destroy; /**< AHs. */

	rmem_cq_resize_t cq_resize; /**< CQs: RMEM_DEV_CAPA_CQ_RESIZE. */

	rmem_cq_stats_get_t cq_stats_get; /**< CQs: counters. */
	rmem_qp_stats_get_t qp_stats_get; /**< QPs: counters. */

	const struct rmem_mp_ops *mp; /**< Secondary processes, or NULL. */

	rmem_qp_attach_mcast_t qp_attach_mcast; /**< Multicast: RMEM_DEV_CAPA_MCAST. */
	rmem_qp_detach_mcast_t qp_detach_mcast; /**< Multicast: RMEM_DEV_CAPA_MCAST. */
	rmem_cq_modify_t cq_modify;             /**< Channels: RMEM_DEV_CAPA_CQ_MODERATION. */
	rmem_dev_clock_get_t dev_clock_get;     /**< CQs: RMEM_DEV_CAPA_CQ_TIMESTAMP. */
	rmem_rdma_cm_fault_t rdma_cm_fault;     /**< Injected faults of connections. */
	const struct rmem_xrc_ops *xrc;         /**< XRC: RMEM_DEV_CAPA_XRC; or NULL. */
	const struct rmem_dm_ops *dm;           /**< Device memory: RMEM_DEV_CAPA_DM; or NULL. */
	rmem_qp_attach_counter_t qp_attach_counter; /**< QPs: RMEM_DEV_CAPA_QP_COUNTER. */
	void (*reserved[7])(void);                  /**< NULL. */
};

/** Version of this interface that a driver is compiled with: rmem_driver::version. */
#define RMEM_DRIVER_VERSION 3

/** A driver. The class keeps a copy, with functions for missing operations. */
struct rmem_driver {
	uint32_t version;        /**< RMEM_DRIVER_VERSION. */
	uint32_t srq_size;       /**< Bytes of its SRQ, struct rmem_srq first; 0 without SRQs. */
	uint32_t ah_size;        /**< Bytes of its AH, struct rmem_ah first; 0 without UD. */
	uint32_t reserved[1];    /**< Zero. */
	const char *name;        /**< Device names start with it: letters, at most 15. */
	uint32_t pd_size;        /**< Bytes of its PD, struct rmem_pd first. */
	uint32_t mr_size;        /**< Bytes of its MR, struct rmem_mr_drv first. */
	uint32_t mw_size;        /**< Bytes of its MW, struct rmem_mw first; 0 without windows. */
	uint32_t page_list_size; /**< Bytes of its page list, the public struct first. */
	uint32_t cq_size;        /**< Bytes of its CQ, struct rmem_cq first. */
	uint32_t qp_size;        /**< Bytes of its QP, struct rmem_qp_drv first. */
	struct rmem_dev_ops ops; /**< Control operations. */
	struct rmem_fp_ops fp;   /**< Fast path; post_send, post_recv and poll_cq are required. */
};

/**
 * Register a driver, so that rmem_dev_create() finds it by name.
 *
 * The drivers of the library are registered already.
 *
 * Control path. Safe to call from any thread.
 *
 * @param driver
 *   Driver; it is copied, except for its name, which must stay valid.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL driver, another version of the interface, a reserved field that is not
 *     zero, a bad name, an object smaller than its public part, or a required function is
 *     missing.
 *   - -EEXIST: a driver of that name is registered.
 *   - -ENOSPC: too many drivers.
 */
int rmem_driver_register(const struct rmem_driver *driver);

/**
 * Check that a window may be bound to part of an MR.
 *
 * Checks the types of window and MR, the PDs of window, MR and QP, the rights, and the range.
 * Drivers call it for RMEM_WR_BIND_MW, the class for rmem_mw_bind().
 *
 * Fast path: reads only, logs nothing. The MR must not be released during the call.
 *
 * @param qp
 *   QP whose request binds.
 * @param mw
 *   Window to bind.
 * @param info
 *   The binding: MR, range and access.
 *
 * @return
 *   0 when it may be bound, otherwise:
 *   - -EINVAL: an access bit that is not in RMEM_ACCESS_REMOTE (type 2: nor ZERO_BASED); an MR that
 *     is not of RMEM_MR_TYPE_USER; length 0, or a range that is not inside the MR.
 *   - -EOPNOTSUPP: the MR is of RMEM_MR_FD.
 *   - -EPERM: window, MR and QP are not of one PD, the MR lacks RMEM_ACCESS_MW_BIND, or
 *     LOCAL_WRITE for rights to modify.
 *   - -EBUSY: the MR is not in RMEM_MR_STATE_VALID: its registration is in progress or failed, or
 *     it is not enabled.
 */
int rmem_mw_check_bind(const struct rmem_qp *qp, const struct rmem_mw *mw,
		const struct rmem_mw_bind_info *info);

/**
 * Hold an XRC_RECV QP for another process that opens it.
 *
 * Until rmem_qp_unhold() the QP is not destroyed: rmem_qp_destroy() of this process returns 0, and
 * releases only its own handle.
 *
 * Control path. Safe to call from any thread. The domain must not be released during the call.
 *
 * @param xrcd
 *   Any handle of the domain of the QP.
 * @param qp_num
 *   Number of the QP.
 * @param[out] qp
 *   The QP. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -ENOENT: the domain has no such QP.
 *   - -ENOSPC: 65535 references are held.
 */
int rmem_qp_hold(const struct rmem_xrcd *xrcd, uint32_t qp_num, struct rmem_qp **qp);

/**
 * Release a reference of rmem_qp_hold().
 *
 * The last one of a QP without a handle destroys it.
 *
 * Control path, as rmem_qp_destroy(). Safe to call from any thread.
 *
 * @param qp
 *   QP.
 */
void rmem_qp_unhold(struct rmem_qp *qp);

/**
 * Check whether only other processes hold a QP.
 *
 * Then this process has destroyed all of its handles.
 *
 * Control path. Safe to call from any thread.
 *
 * @param qp
 *   QP that the caller holds by rmem_qp_hold().
 *
 * @return
 *   True if so.
 */
bool rmem_qp_is_left(const struct rmem_qp *qp);

/**
 * Execute a call of another process, which may have any content.
 *
 * Control path, as the call itself. Safe to call from any thread.
 *
 * @param qp
 *   QP that the caller holds by rmem_qp_hold().
 * @param call
 *   The call; QUERY fills its attributes.
 *
 * @return
 *   0 on success, otherwise as the call:
 *   - -EINVAL: also for an unknown call.
 *   - -EBUSY: the state of the QP.
 *   - -EOPNOTSUPP: the device can't change the attribute.
 *   - -ENOMEM: no memory for the connection.
 *   - -EIO: the device failed.
 */
int rmem_qp_execute(struct rmem_qp *qp, struct rmem_qp_call *call);

/**
 * Trace a failed request with the trace point lib.rmem.error.wc.
 *
 * A driver calls it for each completion with another status than SUCCESS, when it generates or
 * detects the completion.
 *
 * Fast path: a load and a branch while the point is off. Safe to call from any thread.
 *
 * @param dev_id
 *   Number of the QP's device: rmem_obj::dev_id.
 * @param qp_num
 *   Number of the QP.
 * @param wr_id
 *   wr_id of the request.
 * @param status
 *   One of enum rmem_wc_status.
 * @param vendor_err
 *   rmem_wc::vendor_err of the completion.
 */
void rmem_wc_trace_error(uint16_t dev_id, uint32_t qp_num, uint64_t wr_id, uint8_t status,
		uint32_t vendor_err);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_DRIVER_H */
