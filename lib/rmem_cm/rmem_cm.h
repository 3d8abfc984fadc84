/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Connect QPs of two hosts with a communication manager (CM, IBTA chapter 12).
 *
 * Devices use rdma_cm(7) of the kernel; `soft` devices with an IP address use a CM of this library
 * on QP 1 of the device. Both CMs use the same protocol.
 *
 * The QPs are created by rmem_qp_create() and are in the RESET state. The messages carry the
 * address of each QP and private data of the caller, such as a descriptor of remote memory. Each
 * call has a timeout. A failed call leaves the QP in RESET.
 *
 * Inside: connection of QPs with rdma_cm or on QP 1, and the exchange of private data.
 * Callers: applications.
 * Not known here: drivers, the state of a QP beyond its address, pools, leases and caches.
 *
 * The QP must be of the device of the IP address. Peers are not authenticated: any host that
 * reaches the address can connect.
 *
 * For some time after the end of a connection rdma_cm rejects the same QP number of the same peer
 * (IBTA 12.9.8.3.1): create a new QP for a new connection.
 *
 * The CM of a `soft` device exists while the device has a listener, a connection or a call that
 * connects. It has a thread, and a PD and two CQs of the device, so rmem_dev_close() returns -EBUSY
 * during that time. The thread is registered with EAL, so it needs a free lcore id (RTE_MAX_LCORE).
 */

#ifndef RMEM_CM_H
#define RMEM_CM_H

#include <stdint.h>
#include <stdio.h>

#include <sys/socket.h>

#include <rmem_qp.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum number of bytes of private data in a request. */
#define RMEM_CM_MAX_REQUEST 24
/** Maximum number of bytes of private data in an answer. */
#define RMEM_CM_MAX_ANSWER 164
/** Maximum timeout, ms. */
#define RMEM_CM_MAX_TIMEOUT_MS 3600000

/** Listener: an address that peers connect to. */
struct rmem_cm_listener;
/** Connection. */
struct rmem_cm_conn;

/** Configuration of a connection. The caller zeroes it first. */
struct rmem_cm_conf {
	struct rmem_qp *qp; /**< QP in the RESET state. */
	const void *data;   /**< Private data for the peer; NULL for none. */
	uint32_t data_size; /**< Bytes of private data, 0 to the maximum of the message. */
	/** Timeout of the call, 1 to RMEM_CM_MAX_TIMEOUT_MS; of rmem_cm_accept(): for a request. */
	uint32_t timeout_ms;
	uint8_t timeout;       /**< As rmem_qp_conn::timeout. */
	uint8_t retry_cnt;     /**< As rmem_qp_conn::retry_cnt. */
	uint8_t rnr_retry;     /**< As rmem_qp_conn::rnr_retry. */
	uint8_t min_rnr_timer; /**< As rmem_qp_conn::min_rnr_timer. */
	uint8_t reserved[12];  /**< Zero. */
};

/** Peer of a connection. */
struct rmem_cm_peer {
	struct rmem_qp_addr addr;         /**< Address of its QP. */
	uint32_t data_size;               /**< Bytes of private data received. */
	uint8_t data[RMEM_CM_MAX_ANSWER]; /**< Private data, padded with zeros. */
	uint8_t reserved[32];             /**< Zero. */
};

/**
 * Listen at an address of an RDMA device.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param addr
 *   IPv4 or IPv6 address of this host, and a port that is not 0.
 * @param[out] listener
 *   The new listener. Written only on success. Release it with rmem_cm_listener_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL addr or listener, another family, or port 0.
 *   - -ENODEV: no RDMA device has that address, or the system has no rdma_cm.
 *   - -EEXIST: the port is in use.
 *   - -EPERM: rdma_cm: no permission.
 *   - -ENOMEM: no memory, thread or lcore id.
 *   - -EIO: rdma_cm or the device failed in another way, or QP 1 of the device is in use.
 */
int rmem_cm_listener_create(const struct sockaddr *addr, struct rmem_cm_listener **listener);

/**
 * Stop listening and release a listener.
 *
 * Requests that were not accepted are rejected. Connections are not affected. For the last listener
 * or connection of a `soft` device the call may wait up to 2 s, as rmem_cm_disconnect() does.
 *
 * Control path. No other thread may be in rmem_cm_accept() with the listener.
 *
 * @param listener
 *   Listener to release. NULL is allowed and has no effect.
 */
void rmem_cm_listener_destroy(struct rmem_cm_listener *listener);

/**
 * Wait for a peer and connect a QP to its QP.
 *
 * The timeout limits the wait for a request. After that the call waits for the peer to confirm the
 * answer, up to timeout_ms or 9 s, whichever is longer: the answer is repeated during that time.
 *
 * An invalid request is rejected, and the call fails; the caller may call it again. Requests wait
 * in the order in which they arrive: at a `soft` device at most 64 from each address. A request
 * that its peer ends is dropped.
 *
 * Control path: waits, and allocates memory. One thread at a time for each listener.
 *
 * @param listener
 *   Listener of the address.
 * @param conf
 *   The QP, and up to RMEM_CM_MAX_ANSWER bytes for the peer; not needed after the call.
 * @param[out] peer
 *   Address of the peer's QP, and up to RMEM_CM_MAX_REQUEST bytes of its private data. Written
 *   only on success; may be NULL.
 * @param[out] conn
 *   The connection. Written only on success. Release it with rmem_cm_disconnect().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL listener, conf or conn, not a QP, a number out of range, bytes without data,
 *     or a reserved field that is not zero.
 *   - -EBUSY: the QP is not in the RESET state.
 *   - -ETIMEDOUT: no peer connected, or the peer did not confirm.
 *   - -EBADMSG: the message of the peer is not from rmem, of another version, of a wrong length,
 *     or has an invalid QP address.
 *   - -ECONNREFUSED: the peer aborted the connection.
 *   - -EHOSTUNREACH: rdma_cm: the peer is no longer reachable.
 *   - -ENODEV: the QP is of another device than the address, or the device was removed.
 *   - -EPERM: rdma_cm: no permission.
 *   - -ENOMEM: no memory.
 *   - -EIO: rdma_cm or the device failed in another way.
 */
int rmem_cm_accept(struct rmem_cm_listener *listener, const struct rmem_cm_conf *conf,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **conn);

/**
 * Connect a QP to the QP of a listening peer.
 *
 * Control path: waits, and allocates memory. Safe to call from any thread.
 *
 * @param addr
 *   IPv4 or IPv6 address of the peer, and a port that is not 0.
 * @param conf
 *   The QP, and up to RMEM_CM_MAX_REQUEST bytes for the peer; not needed after the call.
 * @param[out] peer
 *   Address of the peer's QP, and up to RMEM_CM_MAX_ANSWER bytes of its private data. Written
 *   only on success; may be NULL.
 * @param[out] conn
 *   The connection. Written only on success. Release it with rmem_cm_disconnect().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL addr, conf or conn, another family, port 0, not a QP, a number out of range,
 *     bytes without data, or a reserved field that is not zero.
 *   - -EBUSY: the QP is not in the RESET state.
 *   - -ETIMEDOUT: the peer does not answer. From a `soft` device also: no such host, or no process
 *     that has the address.
 *   - -EHOSTUNREACH: rdma_cm: no such host within half of the timeout, or no route to it.
 *   - -ECONNREFUSED: no listener, or the peer rejected the request; the log has the reason, with
 *     the number of IBTA 12.6.7.2.
 *   - -EBADMSG: the message of the peer is not from rmem, of another version, of a wrong length,
 *     or has an invalid QP address.
 *   - -ENODEV: the route uses no RDMA device, or another than the QP's; the address is of another
 *     IP version than the QP's; the device was removed; or the system has no rdma_cm.
 *   - -EPERM: rdma_cm: no permission.
 *   - -ENOMEM: no memory, thread or lcore id.
 *   - -EIO: rdma_cm or the device failed in another way, or QP 1 of the device is in use.
 */
int rmem_cm_connect(const struct sockaddr *addr, const struct rmem_cm_conf *conf,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **conn);

/**
 * Wait for the peer to end the connection.
 *
 * With rdma_cm the exit of the peer's process also ends the connection. A killed process with a
 * `soft` device does not end its connections: requests to it complete with RMEM_WC_RETRY_EXC_ERR.
 * The state of the QP is not changed.
 *
 * Control path: waits. One thread at a time for each connection.
 *
 * @param conn
 *   Connection.
 * @param timeout_ms
 *   Timeout, 0 to RMEM_CM_MAX_TIMEOUT_MS.
 *
 * @return
 *   0 if the connection has ended, otherwise:
 *   - -EINVAL: NULL conn, or a number out of range.
 *   - -ETIMEDOUT: the connection is still up.
 *   - -ENODEV: rdma_cm: the device was removed.
 *   - -EIO: rdma_cm failed.
 */
int rmem_cm_wait_disconnect(struct rmem_cm_conn *conn, uint32_t timeout_ms);

/**
 * End a connection, and notify the peer.
 *
 * The state of the QP is not changed: reset or destroy it.
 *
 * Control path. For the last listener or connection of a `soft` device the call waits until all
 * disconnected peers have answered, up to 2 s. No other thread may use the connection.
 *
 * @param conn
 *   Connection to release. NULL is allowed and has no effect.
 */
void rmem_cm_disconnect(struct rmem_cm_conn *conn);

/**
 * Print the connections of all `soft` devices.
 *
 * For each device that had a CM: its counters, the last 32 connections that ended, and those that
 * exist; one property in each line, as telemetry reports them.
 *
 * Connections of rdma_cm are not printed; rdma(8) shows them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL f.
 *   - -ENOMEM: no memory for the text.
 */
int rmem_cm_dump(FILE *f);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_CM_H */
