/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by the files of the connection manager. Not installed.
 *
 * rdma_cm only carries messages: its IDs have no QP. Each of its connections has its own
 * non-blocking event channel, so calls can wait in poll(2) with a timeout.
 */

#ifndef RMEM_CM_PRIV_H
#define RMEM_CM_PRIV_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include <rmem_cm.h>
#include <rmem_log.h>

struct rmem_dev;

extern int rmem_cm_logtype;

/** Log a line: CM_LOG(ERR, "format", ...). */
#define CM_LOG(level, ...) RMEM_LOG_LINE(level, rmem_cm_logtype, "rmem_cm", __VA_ARGS__)

/** Refuse a call: return CM_FAIL(EINVAL, "format", ...). */
#define CM_FAIL(error, ...) RMEM_FAIL_AS(rmem_cm_logtype, "rmem_cm", error, __VA_ARGS__)

/** Bytes that precede the caller's bytes. */
#define CM_HEAD_SIZE 32
/** Bytes of a message, including the caller's. */
#define CM_MAX_SIZE (CM_HEAD_SIZE + RMEM_CM_MAX_ANSWER)
/** Maximum private data of rdma_cm: RDMA_PS_TCP, rdma_connect(3) and rdma_accept(3). */
#define CM_MAX_CONNECT 56
#define CM_MAX_ACCEPT  196

static_assert(CM_HEAD_SIZE + RMEM_CM_MAX_REQUEST == CM_MAX_CONNECT, "fills a request");
static_assert(CM_MAX_SIZE == CM_MAX_ACCEPT, "fills an answer");

/**
 * Operations of a transport. The caller has checked all arguments. It releases the resources of a
 * failed listen with unlisten, and of a failed accept or connect with close (is_connected false).
 */
struct cm_ops {
	int (*accept)(struct rmem_cm_listener *listener, const struct rmem_cm_conf *conf,
			const struct rmem_qp_addr *addr, struct rmem_cm_conn *conn,
			struct rmem_cm_peer *from);
	void (*close)(struct rmem_cm_conn *conn, bool is_connected);
	int (*connect)(struct rmem_cm_conn *conn, const struct sockaddr *remote,
			const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr,
			struct rmem_cm_peer *from);
	int (*listen)(struct rmem_cm_listener *listener, const struct sockaddr *addr);
	void (*unlisten)(struct rmem_cm_listener *listener);
	int (*wait_end)(struct rmem_cm_conn *conn, uint64_t end_ms);
};

extern const struct cm_ops rmem_cm_rdma_ops;
extern const struct cm_ops rmem_cm_mad_ops;

struct rmem_cm_listener {
	const struct cm_ops *ops;
	struct rdma_event_channel *channel; /**< For rdma_cm. */
	struct rdma_cm_id *id;              /**< For rdma_cm. */
	struct cm_port *port;               /**< For QP 1; else NULL. */
	struct ibcm_listener *of_cm;        /**< For QP 1. */
	struct cm_links *queue;             /**< For QP 1: requests. */
};

struct rmem_cm_conn {
	const struct cm_ops *ops;
	struct rdma_event_channel *channel; /**< For rdma_cm. */
	struct rdma_cm_id *id;              /**< For rdma_cm. */
	bool is_ended;                      /**< For rdma_cm. */
	struct cm_port *port;               /**< For QP 1; else NULL. */
	struct cm_link *link;               /**< For QP 1; else NULL. */
};

/** An event, copied and acknowledged. */
struct cm_event {
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;
	int status;
	uint8_t size;
	uint8_t data[UINT8_MAX];
};

/** Build a message. Return its size. */
uint8_t rmem_cm_pack(const struct rmem_qp_addr *addr, const void *data, uint32_t data_size,
		uint8_t message[CM_MAX_SIZE]);
/** Parse a message. Return 0 or -EBADMSG. Bytes after the message are ignored. */
int rmem_cm_unpack(const uint8_t *message, uint32_t size, struct rmem_cm_peer *peer);

/** Whether QPs of a device are connected on QP 1, and gid, if not NULL, is its GID. */
bool rmem_cm_has_gsi(struct rmem_dev *dev, const uint8_t *gid);
/** Find the device with this GID whose QPs are connected on QP 1; NULL: none. */
struct rmem_dev *rmem_cm_gsi_dev(const uint8_t gid[16]);
/** Connect the QP to the remote QP. Return 0, or the -errno of rmem_cm_connect(). */
int rmem_cm_connect_qp(const struct rmem_cm_conf *conf, const struct rmem_qp_addr *remote);
/** Copy an IPv4 or IPv6 address, which may be shorter than a struct sockaddr_storage. */
void rmem_cm_copy_sockaddr(const struct sockaddr *from, struct sockaddr_storage *to);
/** The GID of an IP address. */
void rmem_cm_sockaddr_gid(const struct sockaddr *addr, uint8_t gid[16]);

/** Create a non-blocking event channel. Without rdma_cm, log a line that begins with subject. */
int rmem_cm_channel_create(const char *subject, struct rdma_event_channel **channel);
/** Monotonic time, ms. */
uint64_t rmem_cm_now_ms(void);
/**
 * Time at which the wait for a peer's confirmation ends, ms, for an answer that is sent now. At
 * least 9 s, even if the timeout is shorter: the peer is connected once it has the answer, and its
 * confirmation may be lost.
 */
uint64_t rmem_cm_answer_end_ms(const struct rmem_cm_conf *conf);
/** Wait for the next event. Return -ETIMEDOUT at end_ms. */
int rmem_cm_next(struct rdma_event_channel *channel, uint64_t end_ms, struct cm_event *event);
/**
 * Wait for an event of this type. Fail if its status is not 0, or if another event ends the setup
 * of the connection.
 */
int rmem_cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
		uint64_t end_ms, struct cm_event *event);
/** Log the errno of a call, and return it as the -errno of rmem_cm_connect(). */
int rmem_cm_errno(const char *call);

/** rmem_cm_telemetry.c: add the commands of telemetry; called once, by a constructor. */
void rmem_cm_telemetry_init(void);

#endif /* RMEM_CM_PRIV_H */
