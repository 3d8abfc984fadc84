/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Queue pairs (QPs) of the services RC, UC, UD and XRC.
 *
 * A QP is created in the RESET state. rmem_qp_modify() moves it between the states of verbs.
 * rmem_qp_connect() moves it from RESET to RTS in one call. The first error moves it to ERR (UC: to
 * SQE), as does rmem_qp_set_error(). rmem_qp_reset() moves it back to RESET.
 */

#ifndef RMEM_QP_H
#define RMEM_QP_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_async_channel;
struct rmem_cq;
struct rmem_pd;
struct rmem_srq;
struct rmem_xrcd;

/** Service of a QP, with verbs' values. */
enum rmem_qp_type {
	RMEM_QPT_RC = 2, /**< Reliable connected. */
	/**
	 * Unreliable connected; needs RMEM_DEV_CAPA_UC.
	 *
	 * SEND and WRITE, with and without immediate data. A message that is lost, or that the peer
	 * refuses or has no receive for, is dropped; the request succeeds.
	 */
	RMEM_QPT_UC = 3,
	/**
	 * Unreliable datagram; needs RMEM_DEV_CAPA_UD.
	 *
	 * SEND, with and without immediate data, of at most one path MTU, to any UD QP (rmem_ah.h).
	 * A receive has RMEM_GRH_SIZE bytes of header before the data. A message that is lost, that
	 * has another Q_Key, has no receive, or is longer than the receive is dropped; the request
	 * succeeds. There is no connection: rmem_qp_modify() moves the QP to RTS.
	 */
	RMEM_QPT_UD = 4,
	/**
	 * Sender of XRC (rmem_xrcd.h); needs RMEM_DEV_CAPA_XRC.
	 *
	 * All requests of RC, to an XRC_RECV QP. The QP has no receives, and its recv_cq is its
	 * send_cq.
	 */
	RMEM_QPT_XRC_SEND = 9,
	/**
	 * Receiver of XRC; needs RMEM_DEV_CAPA_XRC.
	 *
	 * The QP belongs to an XRC domain. It has no PD, CQ, SRQ or queue: requests name an SRQ.
	 */
	RMEM_QPT_XRC_RECV = 10,
};

/** QP number of a message to a multicast group (IBTA 3.5.3). */
#define RMEM_MCAST_QPN UINT32_C(0xffffff)

/** State of a QP, with the names and values of enum ibv_qp_state. */
enum rmem_qp_state {
	RMEM_QPS_RESET = 0, /**< Not connected: posts are refused. */
	RMEM_QPS_INIT = 1,  /**< Receives may be posted; none is consumed. */
	RMEM_QPS_RTR = 2,   /**< Ready to receive: executes requests of the peer. */
	RMEM_QPS_RTS = 3,   /**< Connected: ready to send and to receive. */
	RMEM_QPS_SQD = 4,   /**< Send queue drained: posted requests wait for RTS. */
	RMEM_QPS_SQE = 5,   /**< UC, UD: a request failed; send requests are flushed. */
	RMEM_QPS_ERR = 6,   /**< All requests are flushed. */
};

/*
 * Attributes that rmem_qp_modify() sets, with the values of enum ibv_qp_attr_mask.
 */
/** rmem_qp_attr::state. */
#define RMEM_QP_STATE (UINT32_C(1) << 0)
/** rmem_qp_attr::cur_state. */
#define RMEM_QP_CUR_STATE (UINT32_C(1) << 1)
/** rmem_qp_attr::en_sqd_async_notify. */
#define RMEM_QP_EN_SQD_ASYNC_NOTIFY (UINT32_C(1) << 2)
/** rmem_qp_attr::access. */
#define RMEM_QP_ACCESS_FLAGS (UINT32_C(1) << 3)
/** rmem_qp_attr::pkey_index. */
#define RMEM_QP_PKEY_INDEX (UINT32_C(1) << 4)
/** rmem_qp_attr::port_num. */
#define RMEM_QP_PORT (UINT32_C(1) << 5)
/** rmem_qp_attr::qkey. */
#define RMEM_QP_QKEY (UINT32_C(1) << 6)
/** rmem_qp_attr::ah. */
#define RMEM_QP_AV (UINT32_C(1) << 7)
/** rmem_qp_attr::path_mtu. */
#define RMEM_QP_PATH_MTU (UINT32_C(1) << 8)
/** rmem_qp_attr::timeout. */
#define RMEM_QP_TIMEOUT (UINT32_C(1) << 9)
/** rmem_qp_attr::retry_cnt. */
#define RMEM_QP_RETRY_CNT (UINT32_C(1) << 10)
/** rmem_qp_attr::rnr_retry. */
#define RMEM_QP_RNR_RETRY (UINT32_C(1) << 11)
/** rmem_qp_attr::rq_psn. */
#define RMEM_QP_RQ_PSN (UINT32_C(1) << 12)
/** rmem_qp_attr::max_rd_atomic. */
#define RMEM_QP_MAX_QP_RD_ATOMIC (UINT32_C(1) << 13)
/** rmem_qp_attr::min_rnr_timer. */
#define RMEM_QP_MIN_RNR_TIMER (UINT32_C(1) << 15)
/** rmem_qp_attr::sq_psn. */
#define RMEM_QP_SQ_PSN (UINT32_C(1) << 16)
/** rmem_qp_attr::max_dest_rd_atomic. */
#define RMEM_QP_MAX_DEST_RD_ATOMIC (UINT32_C(1) << 17)
/** rmem_qp_attr::dest_qp_num. */
#define RMEM_QP_DEST_QPN (UINT32_C(1) << 20)
/** rmem_qp_attr::rate_limit; needs RMEM_DEV_CAPA_RATE_LIMIT. */
#define RMEM_QP_RATE_LIMIT (UINT32_C(1) << 25)

/** Generate a completion for every send request, signaled or not. */
#define RMEM_QP_SIG_ALL (1u << 0)
/**
 * Disable inline receive; see RMEM_DEV_CAPA_INLINE_RECV.
 *
 * As MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE of mlx5dv_create_qp(3). Ignored by a device without
 * inline receive.
 */
#define RMEM_QP_NO_INLINE_RECV (1u << 1)
/**
 * Accept some invalid requests, and complete them with an error, as NICs do.
 *
 * These are WRITE, READ and atomics of UD, and datagrams whose address handle has another PD, with
 * RMEM_WC_LOC_QP_OP_ERR; atomics without exactly one SGE of 8 bytes, with RMEM_WC_LOC_LEN_ERR; and
 * calls of rmem_mw_bind() with an invalid PD, MR or range, with RMEM_WC_MW_BIND_ERR.
 *
 * All other invalid requests are still refused. Only drivers that execute requests themselves
 * support the flag; others return -EOPNOTSUPP.
 */
#define RMEM_QP_LATE_ERRORS (1u << 2)
/**
 * The general services QP, with number 1 (IBTA 3.9.4.4).
 *
 * It carries management datagrams (MADs), such as messages of the communication manager. Its type
 * is RMEM_QPT_UD, and its Q_Key RMEM_GSI_QKEY. A device has at most one, which counts as one of its
 * max_qp QPs. Needs RMEM_DEV_CAPA_GSI.
 */
#define RMEM_QP_GSI (1u << 3)

/** Q_Key of all QPs 1 (IBTA 10.2.5.3). */
#define RMEM_GSI_QKEY UINT32_C(0x80010000)

/** Queue pair (QP). */
struct rmem_qp {
	struct rmem_obj obj;     /**< Private head. */
	uint32_t qp_num;         /**< Number of the QP on its device. */
	struct rmem_pd *pd;      /**< PD that the QP belongs to; NULL for XRC_RECV. */
	struct rmem_cq *send_cq; /**< CQ of its send queue; NULL for XRC_RECV. */
	struct rmem_cq *recv_cq; /**< CQ of its receive queue; XRC_RECV: private to drivers. */
	struct rmem_srq *srq;    /**< SRQ of its receives; NULL: it has a receive queue. */
	uint16_t type;           /**< One of enum rmem_qp_type. */
	uint16_t reserved[3];    /**< Zero. */
};

/** Further configuration: rmem_qp_conf::ext. The caller zeroes it first. */
struct rmem_qp_ext {
	struct rmem_xrcd *xrcd; /**< XRC_RECV: domain of the QP; else NULL. */
	uint64_t reserved[7];   /**< Zero. */
};

/** Configuration of a QP. The caller zeroes it first. */
struct rmem_qp_conf {
	struct rmem_cq *send_cq;  /**< CQ for send requests. */
	struct rmem_cq *recv_cq;  /**< CQ for receives; may be the same. */
	uint32_t max_send_wr;     /**< Send requests outstanding, 0 to the device's limit. */
	uint32_t max_recv_wr;     /**< Receives outstanding, 0 to the device's limit. */
	uint16_t max_send_sge;    /**< SGEs of a send request, 0 to the device's limit. */
	uint16_t max_recv_sge;    /**< SGEs of a receive, 0 to the device's limit. */
	uint32_t max_inline_data; /**< Bytes of inline data, 0 to the device's limit. */
	uint16_t type;            /**< One of enum rmem_qp_type. */
	uint16_t flags;           /**< Bitwise OR of RMEM_QP_*. */
	uint32_t access;          /**< Rights of the peer, of RMEM_ACCESS_REMOTE. */
	/**
	 * SRQ to take receives from, or NULL.
	 *
	 * With it, max_recv_wr and max_recv_sge are ignored, as by ibv_create_qp(3).
	 */
	struct rmem_srq *srq;
	struct rmem_async_channel *async_channel; /**< Channel for its events, or NULL. */
	void *context;                            /**< Any value, returned with its events. */
	const char *name; /**< Name for logs and telemetry, to 31 bytes, or NULL; copied. */
	const struct rmem_qp_ext *ext; /**< Further configuration, or NULL. */
};

/** Address of a QP; plain bytes that can be sent to the peer. */
struct rmem_qp_addr {
	uint8_t gid[16];     /**< GID of the port. */
	uint32_t qp_num;     /**< Number of the QP on its device. */
	uint32_t psn;        /**< First packet sequence number, if the device uses packets. */
	uint16_t lid;        /**< LID of the port on an InfiniBand subnet, else 0. */
	uint8_t mtu;         /**< Path MTU in the encoding of verbs, or 0. */
	uint8_t reserved[5]; /**< Zero. */
};

/** Configuration of a connection. The caller zeroes it first. Encodings are as in verbs. */
struct rmem_qp_conn {
	struct rmem_qp_addr remote; /**< Address of the peer, from its rmem_qp_query(). */
	uint8_t timeout;            /**< Ack timeout: 4.096 us * 2^timeout; 0 unlimited; <= 31. */
	uint8_t retry_cnt;          /**< Retries after a timeout, 0 to 7. */
	uint8_t rnr_retry;          /**< Retries if no receive is posted, 0 to 6; 7 unlimited. */
	uint8_t min_rnr_timer;      /**< Pause of the peer before a retry, encoded; 0 to 31. */
	uint8_t traffic_class;      /**< In the GRH, or in the IP header of RoCE (DSCP and ECN). */
	uint8_t reserved[11];       /**< Zero. */
};

/** Path to a peer, for a QP or an AH (rmem_ah.h); as struct ibv_ah_attr. */
struct rmem_ah_attr {
	uint8_t dgid[16];      /**< GID of the peer's port, if is_global. */
	uint32_t flow_label;   /**< Flow label of the GRH. */
	uint16_t dlid;         /**< LID of the peer's port on an InfiniBand subnet. */
	uint8_t is_global;     /**< 1 if packets have a GRH, else 0. */
	uint8_t sgid_index;    /**< Index of the own GID. */
	uint8_t hop_limit;     /**< Hop limit of the GRH. */
	uint8_t traffic_class; /**< Traffic class of the GRH. */
	uint8_t sl;            /**< Service level. */
	uint8_t src_path_bits; /**< Path bits of the own LID. */
	uint8_t static_rate;   /**< Maximum rate, encoded as in verbs. */
	uint8_t port_num;      /**< Own port. */
	uint8_t reserved[2];   /**< Zero. */
};

/** Attributes of a QP: result of rmem_qp_query(), and input of rmem_qp_modify(). */
struct rmem_qp_attr {
	uint32_t state;              /**< One of enum rmem_qp_state. */
	uint32_t access;             /**< Rights of the peer, of RMEM_ACCESS_REMOTE. */
	struct rmem_qp_addr addr;    /**< Address of this QP. */
	struct rmem_qp_addr remote;  /**< Address of its peer; zero if not connected. */
	uint32_t max_send_wr;        /**< As created. */
	uint32_t max_recv_wr;        /**< As created. */
	uint16_t max_send_sge;       /**< As created. */
	uint16_t max_recv_sge;       /**< As created. */
	uint32_t max_inline_data;    /**< As created. */
	uint32_t send_queued;        /**< Send requests accepted and not executed yet. */
	uint32_t recv_queued;        /**< Receives posted and not consumed yet. */
	uint64_t bad_rkeys;          /**< Requests of peers with an rkey not valid for this QP. */
	struct rmem_ah_attr ah;      /**< Path to the peer. */
	uint32_t cur_state;          /**< State that the caller expects; query: equal to state. */
	uint32_t path_mtu;           /**< Path MTU in the encoding of verbs, 1 to 5. */
	uint32_t dest_qp_num;        /**< Number of the peer's QP, 24 bits. */
	uint32_t rq_psn;             /**< First packet sequence number of the peer, 24 bits. */
	uint32_t sq_psn;             /**< First packet sequence number of this QP, 24 bits. */
	uint16_t pkey_index;         /**< Index of the P_Key. */
	uint8_t port_num;            /**< Port. */
	uint8_t timeout;             /**< As rmem_qp_conn::timeout. */
	uint8_t retry_cnt;           /**< As rmem_qp_conn::retry_cnt. */
	uint8_t rnr_retry;           /**< As rmem_qp_conn::rnr_retry. */
	uint8_t min_rnr_timer;       /**< As rmem_qp_conn::min_rnr_timer. */
	uint8_t max_rd_atomic;       /**< Outstanding READs, atomics; to rmem_dev_attr's max. */
	uint8_t max_dest_rd_atomic;  /**< READs and atomics of the peer; to rmem_dev_attr's max. */
	uint8_t sq_draining;         /**< Query in SQD: 1 while started requests are in progress. */
	uint8_t en_sqd_async_notify; /**< To SQD: 1 for RMEM_ASYNC_SQ_DRAINED. */
	uint8_t reserved_byte[5];    /**< Zero. */
	uint32_t qkey;               /**< Q_Key of a UD QP. */
	uint32_t rate_limit;         /**< Highest rate of sends, kbit/s; 0: unlimited. */
	uint64_t reserved[3];        /**< Zero. */
};

/** Side of an error: rmem_qp_error::side. */
enum rmem_qp_error_side {
	RMEM_QP_ERROR_SEND = 0, /**< A request of the send queue. */
	RMEM_QP_ERROR_RECV = 1, /**< A receive. */
	RMEM_QP_ERROR_PEER = 2, /**< A request of the peer; the peer gets the completion. */
};

/** The last error of a QP. */
struct rmem_qp_error {
	uint64_t time_ns;     /**< CLOCK_REALTIME; 0: there was none. */
	uint64_t wr_id;       /**< wr_id of the request or receive; 0 for a request of the peer. */
	uint64_t addr;        /**< Address that was accessed with the key, or 0. */
	uint32_t key;         /**< Refused key, if the device reports it, or 0. */
	uint32_t vendor_err;  /**< As rmem_wc::vendor_err. */
	uint32_t peer_qp_num; /**< QP number of the peer. */
	uint8_t status;       /**< One of enum rmem_wc_status. */
	uint8_t side;         /**< One of enum rmem_qp_error_side. */
	uint8_t opcode;       /**< enum rmem_wr_opcode; 0 for a receive. */
	uint8_t pad;          /**< Zero. */
	uint8_t peer_gid[16]; /**< GID of the peer. */
	uint64_t reserved[2]; /**< Zero. */
};

/** Counters of a QP since its creation, as in struct rmem_dev_stats, and its last error. */
struct rmem_qp_stats {
	uint64_t send_wrs;               /**< Send requests executed, including failed ones. */
	uint64_t recv_wrs;               /**< Receives consumed by messages. */
	uint64_t bytes;                  /**< Bytes of send requests that succeeded. */
	uint64_t errors;                 /**< Send requests that failed and were not flushed. */
	uint64_t flushed;                /**< Requests and receives flushed. */
	uint64_t local_prot_errors;      /**< Requests with an invalid lkey. */
	uint64_t rem_access_errors;      /**< Requests that the peer refused. */
	uint64_t rnr_retries;            /**< Attempts that found no receive of the peer. */
	uint64_t reg_mrs;                /**< REG_MRs executed. */
	uint64_t invalidates;            /**< Keys invalidated. */
	uint64_t mw_binds;               /**< Windows bound. */
	uint64_t umrs;                   /**< UMRs executed. */
	uint64_t inline_recvs;           /**< Messages delivered in their completion. */
	uint64_t bad_rkeys;              /**< Requests of peers with an rkey not valid for them. */
	uint64_t mem_faults;             /**< Requests and receives whose memory is not mapped. */
	struct rmem_qp_error last_error; /**< Last error, including requests of the peer. */
	uint64_t reserved[4];            /**< Zero. */
};

/**
 * Create a queue pair in the RESET state.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * For XRC_SEND, recv_cq, max_recv_wr and max_recv_sge are ignored. For XRC_RECV, all fields are
 * ignored except type, access, flags, async_channel, context, name and ext.
 *
 * @param pd
 *   Protection domain the QP belongs to; NULL for XRC_RECV.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] qp
 *   The new QP. Written only on success. Release it with rmem_qp_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL conf or qp, a missing CQ, a CQ or SRQ of another device, an
 *     async_channel that is not one or of another device, a number over its limit, an unknown
 *     type, flag or access bit, RMEM_QP_GSI with another type than UD, an SRQ of XRC, an SRQ with
 *     XRC_SEND, a PD or no domain with XRC_RECV, a domain with another type, or a reserved field
 *     that is not zero.
 *   - -EOPNOTSUPP: the device lacks the capability for the type, or for RMEM_QP_GSI.
 *   - -EBUSY: RMEM_QP_GSI, and the device has such a QP.
 *   - -ENOSPC: the device already has rmem_dev_info::max_qp queue pairs.
 *   - -ENOMEM: no memory for the QP.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_qp_create(struct rmem_pd *pd, const struct rmem_qp_conf *conf, struct rmem_qp **qp);

/**
 * Get a QP of RMEM_QPT_XRC_RECV by its number.
 *
 * As ibv_open_qp(3), for the QPs of this process; rmem_qp_get_shared() is for those of other
 * processes. Returns the handle of rmem_qp_create(). Each call needs its own rmem_qp_destroy(), in
 * addition to that of rmem_qp_create(); the last one destroys the QP.
 *
 * A QP that only other processes still hold (rmem_qp_get_shared()) can be got again, but it has no
 * channel any more: its events are reported to the other processes only.
 *
 * Control path. Safe to call from any thread, but not during the last rmem_qp_destroy().
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
 *   - -EINVAL: NULL or not an XRC domain, or NULL qp.
 *   - -ENOENT: the domain has no such QP.
 *   - -ENOSPC: 65535 calls for the QP are not yet matched by rmem_qp_destroy().
 */
int rmem_qp_get(struct rmem_xrcd *xrcd, uint32_t qp_num, struct rmem_qp **qp);

/** Configuration of rmem_qp_get_shared(). The caller zeroes it first. */
struct rmem_qp_shared_conf {
	uint32_t qp_num;                          /**< Number of the QP. */
	uint32_t pad;                             /**< Zero. */
	struct rmem_async_channel *async_channel; /**< Channel for its events, or NULL. */
	void *context;                            /**< Any value, returned with its events. */
	const char *name;     /**< Name for logs and telemetry, to 31 bytes, or NULL; copied. */
	uint64_t reserved[4]; /**< Zero. */
};

/**
 * Open a QP of RMEM_QPT_XRC_RECV that another process has created.
 *
 * As ibv_open_qp(3), by a domain of a file that both processes have opened. Each call returns a new
 * handle. On devices of verbs the kernel has the QP, which remains until all handles are destroyed.
 * On other devices a process has it, as follows.
 *
 * rmem_qp_query(), rmem_qp_modify(), rmem_qp_connect(), rmem_qp_reset() and
 * rmem_qp_set_error() of the handle are executed by the process of the QP, with its errors, and
 * fail with -ETIMEDOUT if it does not answer within 5 s (it may still execute the call), or with
 * -EIO if it has ended. All asynchronous events of the QP are also reported for the handle; the end
 * of its process, or of its device there, is reported as RMEM_ASYNC_QP_FATAL.
 *
 * The QP remains until each process has destroyed its handles: rmem_qp_destroy() of the process
 * that has created it releases only the handle there, and then its domain can be closed. It can't
 * outlive that process, nor the device there.
 *
 * Control path: waits for the other process, at most 5 s. Safe to call from any thread.
 *
 * @param xrcd
 *   A handle of the domain of the QP, opened with a file.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] qp
 *   The new handle. Written only on success. Release it with rmem_qp_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an XRC domain, NULL conf or qp, a number over 0xffffff, an async_channel
 *     that is not one or of another device, a bad name, or a reserved field that is not zero.
 *   - -EOPNOTSUPP: the device can't open QPs of other processes.
 *   - -ENOENT: no process of the domain has such a QP, or the domain has no file.
 *   - -ENOSPC: the device has rmem_dev_info::max_qp queue pairs, or the QP 65535 handles.
 *   - -ENOMEM: no memory, or no file descriptor, for the handle.
 *   - -ETIMEDOUT: the process of the QP does not answer.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_qp_get_shared(struct rmem_xrcd *xrcd, const struct rmem_qp_shared_conf *conf,
		struct rmem_qp **qp);

/**
 * Connect a QP to its peer: from RESET to RTS.
 *
 * Both sides connect, each to the address of the other. A request posted before the peer has
 * connected is retried according to rmem_qp_conn::timeout and retry_cnt.
 *
 * Control path. No other thread may use the QP.
 *
 * @param qp
 *   QP in the RESET state.
 * @param conn
 *   Peer, timeouts and retries; not needed after the call.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, a QP of UD, NULL conn, an address that the device does not
 *     support, a time or count out of range, or a reserved field that is not zero.
 *   - -EBUSY: not in the RESET state.
 *   - -EIO: the device failed, or the process of an opened QP has ended.
 *   - -ETIMEDOUT: the process of an opened QP does not answer.
 */
int rmem_qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn);

/**
 * Modify attributes of a QP, and move it to another state.
 *
 * As ibv_modify_qp(3) and IBTA 11.2.5.2. Without RMEM_QP_STATE the state remains. Each transition
 * requires some attributes and permits others, as documented for ibv_modify_qp(3) and the type of
 * the QP; alternate paths are not supported. A rate limit is permitted in RTS and from RTR to RTS,
 * and RESET removes it. In SQD, started requests are completed and all others wait; when the queue
 * is drained, a query returns rmem_qp_attr::sq_draining 0. A failed call changes nothing.
 *
 * rmem_qp_connect() makes the transitions to INIT, RTR and RTS in one call; RMEM_QPS_ERR and
 * RMEM_QPS_RESET have the effect of rmem_qp_set_error() and rmem_qp_reset().
 *
 * Control path: RESET, SQD, ERR and the removal of a right wait for lcores that execute requests of
 * the QP or its peer. No other thread may use the QP, except during transitions to ERR and SQD.
 *
 * @param qp
 *   QP to modify.
 * @param attr
 *   Attributes named by @p mask; the others are not used. Not needed after the call.
 * @param mask
 *   Bitwise OR of RMEM_QP_STATE to RMEM_QP_RATE_LIMIT.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, NULL attr, an unknown bit or state, a missing attribute or an
 *     attribute that the transition does not permit, a value out of range, an address that the
 *     device does not support, or a reserved field that is not zero.
 *   - -EBUSY: no transition leads from the state of the QP to the new one, or the QP is not in
 *     rmem_qp_attr::cur_state.
 *   - -EOPNOTSUPP: the device can't modify QPs, can't change an attribute of a connected QP, or
 *     lacks RMEM_DEV_CAPA_RATE_LIMIT.
 *   - -ENOMEM: no memory for the connection.
 *   - -EIO: the device failed, or the process of an opened QP has ended.
 *   - -ETIMEDOUT: the process of an opened QP does not answer.
 */
int rmem_qp_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask);

/**
 * Query the state, the attributes, the address and the sizes of a QP.
 *
 * Control path. Safe to call from any thread.
 *
 * @param qp
 *   QP to query.
 * @param[out] attr
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, or NULL attr.
 *   - -EIO: the device failed, or the process of an opened QP has ended.
 *   - -ETIMEDOUT: the process of an opened QP does not answer.
 */
int rmem_qp_query(const struct rmem_qp *qp, struct rmem_qp_attr *attr);

/**
 * Move a QP to the ERR state.
 *
 * Outstanding requests and requests posted later complete with RMEM_WC_WR_FLUSH_ERR.
 *
 * Control path: waits for lcores that are executing its requests. Safe to call from any
 * thread.
 *
 * @param qp
 *   QP in another state than RESET.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP.
 *   - -EBUSY: in the RESET state.
 *   - -EIO: the device failed, or the process of an opened QP has ended.
 *   - -ETIMEDOUT: the process of an opened QP does not answer.
 */
int rmem_qp_set_error(struct rmem_qp *qp);

/**
 * Move a QP to the RESET state, from any state.
 *
 * Requests not executed are dropped without a completion; completions in the CQs remain
 * (IBTA C10-97). The QP can be connected again. If the device uses packets, rmem_qp_attr::addr may
 * have another psn then, which the peer needs for its rmem_qp_connect().
 *
 * Control path: waits for lcores that are executing its requests. No other thread may post to the
 * QP.
 *
 * @param qp
 *   QP to reset.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP.
 *   - -EIO: the device failed, or the process of an opened QP has ended.
 *   - -ETIMEDOUT: the process of an opened QP does not answer.
 */
int rmem_qp_reset(struct rmem_qp *qp);

/**
 * Destroy a QP, in any state.
 *
 * Requests not executed are dropped without a completion.
 *
 * Control path: waits for lcores that are executing its requests. Once for each QP; no other thread
 * may use it.
 *
 * @param qp
 *   QP to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a QP, or only other processes hold it.
 *   - -EBUSY: it has references, is attached to a multicast group, or its events are not
 *     acknowledged.
 *   - -EIO: the device failed.
 */
int rmem_qp_destroy(struct rmem_qp *qp);

/**
 * Attach a QP of UD to a multicast group.
 *
 * As ibv_attach_mcast(3). From then on each message to the group with the QP's Q_Key is delivered
 * to the QP and consumes a receive. Each attached QP gets a copy, including the sender. A device
 * that sends packets joins the group on its link. Attaching a QP twice has no effect. State changes
 * of the QP do not detach it.
 *
 * To send a message to a group, name an address handle with the GID of the group, and QP number
 * RMEM_MCAST_QPN. Any UD QP may send to a group.
 *
 * Control path: may allocate memory and join the group. Safe to call from any thread.
 *
 * @param qp
 *   QP of type RMEM_QPT_UD, in any state.
 * @param gid
 *   GID of the group, 16 bytes: ff00::/8, or an IPv4-mapped address of 224.0.0.0/4.
 * @param lid
 *   LID of the group on an InfiniBand subnet, 0xc000 to 0xfffe; else ignored.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, a QP of another type, NULL gid, not the GID of a group, a GID of
 *     another IP version than the address of the device, or a LID out of range.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_MCAST.
 *   - -ENOSPC: the device has rmem_dev_attr::max_mcast_grp groups, or the group has
 *     rmem_dev_attr::max_mcast_qp_attach QPs.
 *   - -ENOMEM: no memory for the group.
 *   - -EIO: the device failed, or the host did not join the group.
 */
int rmem_qp_attach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);

/**
 * Detach a QP from a multicast group.
 *
 * As ibv_detach_mcast(3). When it returns, no further message to the group is delivered to the QP.
 *
 * Control path: waits for lcores that are delivering messages. Safe to call from any thread.
 *
 * @param qp
 *   QP that is attached.
 * @param gid
 *   GID of the group, 16 bytes.
 * @param lid
 *   LID of the group, as attached.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, a QP of another type, NULL gid, not the GID of a group, a LID out
 *     of range, or a group that the QP is not attached to.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_MCAST.
 *   - -EIO: the device failed.
 */
int rmem_qp_detach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);

/**
 * Get the counters of a QP and its last error.
 *
 * Counters are not an atomic snapshot. A device that does not count per QP returns only the last
 * error. Flushes are not errors.
 *
 * Control path. Safe to call from any thread.
 *
 * @param qp
 *   QP to query.
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, or NULL stats.
 *   - -EIO: the device failed.
 */
int rmem_qp_stats_get(const struct rmem_qp *qp, struct rmem_qp_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_QP_H */
