/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Queue pairs of the reliable connected (RC) service.
 *
 * A QP is made in the RESET state, goes to RTS by rmem_qp_connect(), to ERR by its first
 * error or by rmem_qp_set_error(), and back to RESET by rmem_qp_reset().
 */

#ifndef RMEM_QP_H
#define RMEM_QP_H

#include <stdint.h>
#include <sys/queue.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_cq;
struct rmem_pd;

/** Service of a QP, with verbs' value. */
enum rmem_qp_type {
	RMEM_QPT_RC = 2, /**< Reliable connected. */
};

/** State of a QP, with the names and values of enum ibv_qp_state. */
enum rmem_qp_state {
	RMEM_QPS_RESET = 0, /**< Not connected: nothing can be posted. */
	RMEM_QPS_RTS = 3,   /**< Connected: ready to send and to receive. */
	RMEM_QPS_ERR = 6,   /**< All requests are flushed. */
};

/** Complete every send request, signaled or not. */
#define RMEM_QP_SIG_ALL (1u << 0)
/**
 * Place every message where its receive says as it arrives, and never in its completion
 * (mlx5dv_create_qp(3), MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE); see
 * RMEM_DEV_CAPA_INLINE_RECV. Ignored by a device without it.
 */
#define RMEM_QP_NO_INLINE_RECV (1u << 1)

/** A queue pair (QP). Drivers extend it behind this head. */
struct rmem_qp {
	struct rmem_obj obj;       /**< Private head. */
	uint32_t qp_num;           /**< Number of the QP on its device. */
	struct rmem_pd *pd;        /**< PD it belongs to. */
	struct rmem_cq *send_cq;   /**< CQ of its send queue. */
	struct rmem_cq *recv_cq;   /**< CQ of its receive queue. */
	LIST_ENTRY(rmem_qp) entry; /**< Private: in the list of all. */
};

/** What a QP shall be. The caller zeroes it first. */
struct rmem_qp_conf {
	struct rmem_cq *send_cq;  /**< CQ for send requests. */
	struct rmem_cq *recv_cq;  /**< CQ for receives; may be the same. */
	uint32_t max_send_wr;     /**< Send requests outstanding, 0 to the device's limit. */
	uint32_t max_recv_wr;     /**< Receives outstanding, 0 to the device's limit. */
	uint16_t max_send_sge;    /**< SGEs of a send request, 0 to the device's limit. */
	uint16_t max_recv_sge;    /**< SGEs of a receive, 0 to the device's limit. */
	uint32_t max_inline_data; /**< Bytes of inline data, 0 to the device's limit. */
	uint16_t type;            /**< RMEM_QPT_RC. */
	uint16_t flags;           /**< Bitwise OR of RMEM_QP_*. */
	uint32_t access;          /**< Of RMEM_ACCESS_REMOTE: what the peer may ask for. */
	uint64_t reserved[2];     /**< Zero. */
};

/** Where a QP can be reached; plain bytes, made to be sent to the peer. */
struct rmem_qp_addr {
	uint8_t gid[16];     /**< Port of the device. */
	uint32_t qp_num;     /**< Number of the QP on its device. */
	uint32_t psn;        /**< First packet sequence number, where there are packets. */
	uint16_t lid;        /**< Port on an InfiniBand subnet, else 0. */
	uint8_t mtu;         /**< Path MTU as verbs codes it, or 0. */
	uint8_t reserved[5]; /**< Zero. */
};

/** How to connect a QP. The caller zeroes it first; the times are coded as in verbs. */
struct rmem_qp_conn {
	struct rmem_qp_addr remote; /**< The peer, from its rmem_qp_query(). */
	uint8_t timeout;       /**< Wait for an answer: 4.096 us * 2^timeout; 0 for ever; <= 31. */
	uint8_t retry_cnt;     /**< Tries again after that, 0 to 7. */
	uint8_t rnr_retry;     /**< Tries again when no receive is posted, 0 to 6; 7 for ever. */
	uint8_t min_rnr_timer; /**< Pause our peer makes before that, coded; 0 to 31. */
	uint8_t reserved[12];  /**< Zero. */
};

/** What rmem_qp_query() tells. */
struct rmem_qp_attr {
	uint32_t state;             /**< One of enum rmem_qp_state. */
	uint32_t access;            /**< What the peer may ask for. */
	struct rmem_qp_addr addr;   /**< Where this QP can be reached. */
	struct rmem_qp_addr remote; /**< Its peer; zero when not connected. */
	uint32_t max_send_wr;       /**< As created. */
	uint32_t max_recv_wr;       /**< As created. */
	uint16_t max_send_sge;      /**< As created. */
	uint16_t max_recv_sge;      /**< As created. */
	uint32_t max_inline_data;   /**< As created. */
	uint32_t send_queued;       /**< Send requests accepted and not executed yet. */
	uint32_t recv_queued;       /**< Receives posted and not consumed yet. */
	uint64_t bad_rkeys; /**< Requests of its peers by an rkey that is not valid for it. */
};

/**
 * Create a queue pair in the RESET state.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the QP belongs to.
 * @param conf
 *   What it shall be; not needed after the call.
 * @param[out] qp
 *   The new QP. Written only on success. Release it with rmem_qp_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL conf or qp, a missing CQ or one of another device, a
 *     number over its limit, an unknown type, flag or access bit, or a reserved field that
 *     is not zero.
 *   - -ENOSPC: the device has rmem_dev_info::max_qp queue pairs already.
 *   - -ENOMEM: no memory for the QP.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_qp_create(struct rmem_pd *pd, const struct rmem_qp_conf *conf, struct rmem_qp **qp);

/**
 * Connect a QP to its peer: from RESET to RTS.
 *
 * Both sides connect, each to the other's address. A request posted before the peer has
 * done so is tried again as rmem_qp_conn::timeout and retry_cnt say.
 *
 * Control path. Not while another thread uses the QP.
 *
 * @param qp
 *   QP in the RESET state.
 * @param conn
 *   The peer and how patient to be with it; not needed after the call.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, NULL conn, an address the device can't have, a coded time
 *     or count out of range, or a reserved field that is not zero.
 *   - -EBUSY: not in the RESET state.
 *   - -EIO: the device failed.
 */
int rmem_qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn);

/**
 * Ask for a QP's state, address and sizes.
 *
 * Control path. Safe to call from any thread.
 *
 * @param qp
 *   QP to ask.
 * @param[out] attr
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, or NULL attr.
 *   - -EIO: the device failed.
 */
int rmem_qp_query(struct rmem_qp *qp, struct rmem_qp_attr *attr);

/**
 * Move a QP to the ERR state: outstanding requests complete with
 * RMEM_WC_WR_FLUSH_ERR, and so does what is posted later.
 *
 * Control path: waits for lcores that are executing its requests. Safe to call from any
 * thread.
 *
 * @param qp
 *   QP in the RTS or ERR state.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP.
 *   - -EBUSY: in the RESET state.
 *   - -EIO: the device failed.
 */
int rmem_qp_set_error(struct rmem_qp *qp);

/**
 * Bring a QP back to the RESET state, from any state.
 *
 * Requests not executed are dropped without a completion; completions already in the CQs
 * stay there (IBTA C10-97). The QP can be connected again.
 *
 * Control path: waits for lcores that are executing its requests. Not while another
 * thread posts to the QP.
 *
 * @param qp
 *   QP to reset.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP.
 *   - -EIO: the device failed.
 */
int rmem_qp_reset(struct rmem_qp *qp);

/**
 * Destroy a QP, in any state. Requests not executed are dropped without a completion.
 *
 * Control path: waits for lcores that are executing its requests. Not while another
 * thread uses the QP; once for each QP.
 *
 * @param qp
 *   QP to release; not valid any more on success. NULL is allowed and does nothing.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a QP.
 *   - -EBUSY: something still refers to it.
 *   - -EIO: the device failed.
 */
int rmem_qp_destroy(struct rmem_qp *qp);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_QP_H */
