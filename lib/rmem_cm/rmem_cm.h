/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Connect QPs of two hosts by the connection manager of rdma_cm(7).
 *
 * The QPs are those of rmem_qp_create(), in the RESET state; what goes over the wire is the
 * address of each, and bytes of the caller: room for the descriptor of remote memory. Calls wait
 * for as long as they are told, and no longer. One that fails leaves the QP in RESET.
 *
 * The QP must be of the device that the IP address belongs to. Whoever reaches the address can
 * connect: nothing here proves who the peer is.
 *
 * The manager does not accept a QP number of the same peer again for a while after the end of its
 * connection (IBTA 12.9.8.3.1): make a new QP for a new connection.
 */

#ifndef RMEM_CM_H
#define RMEM_CM_H

#include <stdint.h>

#include <sys/socket.h>

#include <rmem_qp.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of the caller that a request carries. */
#define RMEM_CM_MAX_REQUEST 24
/** Bytes of the caller that an answer carries. */
#define RMEM_CM_MAX_ANSWER 164
/** Longest wait, ms. */
#define RMEM_CM_MAX_TIMEOUT_MS 3600000

/** An address that peers connect to. */
struct rmem_cm_listener;
/** A connection. */
struct rmem_cm_conn;

/** How to connect. The caller zeroes it first; the coded times are those of rmem_qp_conn. */
struct rmem_cm_conf {
	struct rmem_qp *qp; /**< In the RESET state. */
	const void *data;   /**< For the peer; NULL when there are none. */
	uint32_t data_size; /**< Bytes of it, 0 to the limit. */
	/** For the whole call, 1 to RMEM_CM_MAX_TIMEOUT_MS; accepting, once more for who came. */
	uint32_t timeout_ms;
	uint8_t timeout;       /**< As rmem_qp_conn::timeout. */
	uint8_t retry_cnt;     /**< As rmem_qp_conn::retry_cnt. */
	uint8_t rnr_retry;     /**< As rmem_qp_conn::rnr_retry. */
	uint8_t min_rnr_timer; /**< As rmem_qp_conn::min_rnr_timer. */
	uint8_t reserved[12];  /**< Zero. */
};

/** Who is at the other end. */
struct rmem_cm_peer {
	struct rmem_qp_addr addr;         /**< Of its QP. */
	uint32_t data_size;               /**< Bytes that it sent. */
	uint8_t data[RMEM_CM_MAX_ANSWER]; /**< They; zero behind. */
};

/**
 * Listen at an address of an RDMA device.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param addr
 *   IPv4 or IPv6 address of this host, and a port that is not 0.
 * @param[out] listener
 *   The new listener. Written only on success. Release it with rmem_cm_unlisten().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL addr or listener, another family, or port 0.
 *   - -ENODEV: no RDMA device has that address, or the system has no rdma_cm.
 *   - -EEXIST: something listens there already.
 *   - -EPERM: no permission.
 *   - -ENOMEM: no memory.
 *   - -EIO: rdma_cm failed in another way.
 */
int rmem_cm_listen(const struct sockaddr *addr, struct rmem_cm_listener **listener);

/**
 * End listening. Requests that were not accepted are rejected; connections stay.
 *
 * Control path. Not while another thread accepts from it.
 *
 * @param listener
 *   Listener to release. NULL is allowed and does nothing.
 */
void rmem_cm_unlisten(struct rmem_cm_listener *listener);

/**
 * Wait for a peer and connect a QP to its QP.
 *
 * A request that is no good is rejected, and the call fails; it can be called again.
 *
 * Control path: waits, and allocates memory. One thread at a time for each listener.
 *
 * @param listener
 *   Where the peer comes to.
 * @param conf
 *   The QP, and up to RMEM_CM_MAX_ANSWER bytes for the peer; not needed after the call.
 * @param[out] peer
 *   Who it is, and up to RMEM_CM_MAX_REQUEST bytes of it. Written only on success; may be NULL.
 * @param[out] conn
 *   The connection. Written only on success. Release it with rmem_cm_close().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL listener, conf or conn, not a QP, a number out of range, bytes without data,
 *     or a reserved field that is not zero.
 *   - -EBUSY: the QP is not in the RESET state.
 *   - -ETIMEDOUT: no peer came, or it went silent.
 *   - -EBADMSG: what the peer sent is not of rmem, of another version, or of a wrong length, or
 *     the address in it can't be that of a QP.
 *   - -ECONNREFUSED: the peer gave up.
 *   - -EHOSTUNREACH: the peer can't be reached any more.
 *   - -ENODEV: the QP is of another device than the address, or the device is gone.
 *   - -EPERM: no permission.
 *   - -ENOMEM: no memory.
 *   - -EIO: rdma_cm or the device failed in another way.
 */
int rmem_cm_accept(struct rmem_cm_listener *listener, const struct rmem_cm_conf *conf,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **conn);

/**
 * Connect a QP to that of a peer that listens.
 *
 * Control path: waits, and allocates memory. Safe to call from any thread.
 *
 * @param addr
 *   IPv4 or IPv6 address of the peer, and a port that is not 0.
 * @param conf
 *   The QP, and up to RMEM_CM_MAX_REQUEST bytes for the peer; not needed after the call.
 * @param[out] peer
 *   Who it is, and up to RMEM_CM_MAX_ANSWER bytes of it. Written only on success; may be NULL.
 * @param[out] conn
 *   The connection. Written only on success. Release it with rmem_cm_close().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL addr, conf or conn, another family, port 0, not a QP, a number out of range,
 *     bytes without data, or a reserved field that is not zero.
 *   - -EBUSY: the QP is not in the RESET state.
 *   - -ETIMEDOUT: the peer does not answer.
 *   - -EHOSTUNREACH: no such host within half of the time, or no way to it.
 *   - -ECONNREFUSED: nobody listens there, or the peer rejected the request; the log has the
 *     reason, as IBTA 12.6.7.2 numbers it.
 *   - -EBADMSG: what the peer sent is not of rmem, of another version, or of a wrong length, or
 *     the address in it can't be that of a QP.
 *   - -ENODEV: the way there leads through no RDMA device, or through another than the QP's; the
 *     device is gone; or the system has no rdma_cm.
 *   - -EPERM: no permission.
 *   - -ENOMEM: no memory.
 *   - -EIO: rdma_cm or the device failed in another way.
 */
int rmem_cm_connect(const struct sockaddr *addr, const struct rmem_cm_conf *conf,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **conn);

/**
 * Wait for the peer to end the connection.
 *
 * The end of a peer's program is one too. The QP's state is not changed.
 *
 * Control path: waits. One thread at a time for each connection.
 *
 * @param conn
 *   Connection.
 * @param timeout_ms
 *   How long, 0 to RMEM_CM_MAX_TIMEOUT_MS.
 *
 * @return
 *   0 when it has ended, otherwise:
 *   - -EINVAL: NULL conn, or a number out of range.
 *   - -ETIMEDOUT: it has not.
 *   - -ENODEV: the device is gone.
 *   - -EIO: rdma_cm failed.
 */
int rmem_cm_wait_end(struct rmem_cm_conn *conn, uint32_t timeout_ms);

/**
 * End a connection, and tell the peer. The QP's state is not changed: reset or destroy it.
 *
 * Control path. Not while another thread uses the connection.
 *
 * @param conn
 *   Connection to release. NULL is allowed and does nothing.
 */
void rmem_cm_close(struct rmem_cm_conn *conn);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_CM_H */
