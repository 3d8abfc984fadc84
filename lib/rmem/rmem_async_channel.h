/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Asynchronous events: a file descriptor that reports errors and changes of state of QPs, CQs, SRQs
 * and the device.
 *
 * An object is bound to a channel when it is created (rmem_qp_conf::async_channel; likewise CQs and
 * SRQs). Events of the device are reported by each of its channels. An event that occurs several
 * times before it is returned is returned once; otherwise no event is lost.
 */

#ifndef RMEM_ASYNC_CHANNEL_H
#define RMEM_ASYNC_CHANNEL_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_cq;
struct rmem_dev;
struct rmem_qp;
struct rmem_srq;

/** Type of an asynchronous event, with the values of enum ibv_event_type (IBTA 11.6.3). */
enum rmem_async_event_type {
	RMEM_ASYNC_CQ_ERR = 0,             /**< CQ: overrun. */
	RMEM_ASYNC_QP_FATAL = 1,           /**< QP: completions can't be reported; it is in ERR. */
	RMEM_ASYNC_QP_REQ_ERR = 2,         /**< QP: invalid request of the peer; it is in ERR. */
	RMEM_ASYNC_QP_ACCESS_ERR = 3,      /**< QP: access violation of the peer; it is in ERR. */
	RMEM_ASYNC_COMM_EST = 4,           /**< QP: first request of the peer in RTR. */
	RMEM_ASYNC_SQ_DRAINED = 5,         /**< QP: drained, after a transition to SQD. */
	RMEM_ASYNC_DEVICE_FATAL = 8,       /**< Device: failed or removed. */
	RMEM_ASYNC_PORT_ACTIVE = 9,        /**< Port: active. */
	RMEM_ASYNC_PORT_ERR = 10,          /**< Port: down. */
	RMEM_ASYNC_LID_CHANGE = 11,        /**< Port: LID changed. */
	RMEM_ASYNC_PKEY_CHANGE = 12,       /**< Port: table of P_Keys changed. */
	RMEM_ASYNC_SM_CHANGE = 13,         /**< Port: another subnet manager. */
	RMEM_ASYNC_SRQ_ERR = 14,           /**< SRQ: failed. */
	RMEM_ASYNC_SRQ_LIMIT_REACHED = 15, /**< SRQ: fewer receives than its limit. */
	RMEM_ASYNC_QP_LAST_WQE_REACHED =
			16, /**< QP in ERR: it consumes no more receives of its SRQ. */
	RMEM_ASYNC_CLIENT_REREGISTER =
			17, /**< Port: clients must register again with the subnet manager. */
	RMEM_ASYNC_GID_CHANGE = 18, /**< Port: table of GIDs changed. */
};

/** Channel of asynchronous events. */
struct rmem_async_channel {
	struct rmem_obj obj; /**< Private head. */
	int fd; /**< Readable while it has events: for poll() and O_NONBLOCK, not for read(). */
};

/** Asynchronous event. */
struct rmem_async_event {
	uint32_t type;     /**< One of enum rmem_async_event_type. */
	uint32_t port_num; /**< Port of a port event; else 0. */
	union {
		struct rmem_cq *cq;   /**< CQ, for CQ events. */
		struct rmem_qp *qp;   /**< QP, for QP events. */
		struct rmem_srq *srq; /**< SRQ, for SRQ events. */
		struct rmem_dev *dev; /**< Device, for device and port events. */
	};
	void *context;        /**< Context of the configuration of the CQ, QP or SRQ; else NULL. */
	uint64_t reserved[1]; /**< Zero. */
};

/**
 * Create a channel of asynchronous events.
 *
 * Control path: allocates memory and a file descriptor. Safe to call from any thread.
 *
 * @param dev
 *   Device with RMEM_DEV_CAPA_ASYNC_EVENT.
 * @param[out] channel
 *   The new channel. Written only on success. Release it with rmem_async_channel_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL channel.
 *   - -EOPNOTSUPP: the device reports no asynchronous events.
 *   - -ENOMEM: no memory or file descriptor for the channel.
 *   - -ENODEV: the device is being closed.
 */
int rmem_async_channel_create(struct rmem_dev *dev, struct rmem_async_channel **channel);

/**
 * Get the next event of a channel (ibv_get_async_event(3)).
 *
 * Waits for an event, unless the file descriptor has O_NONBLOCK. Each event must be acknowledged
 * with rmem_async_event_ack(); until then its CQ, QP or SRQ cannot be destroyed. Events of
 * different objects are returned in the order in which they occurred.
 *
 * Control path: system calls. Safe to call from any thread, concurrently.
 *
 * @param channel
 *   Channel.
 * @param[out] event
 *   The event. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a channel, or NULL event.
 *   - -EAGAIN: there is no event, and the file descriptor has O_NONBLOCK.
 *   - -EINTR: a signal handler without SA_RESTART was called; before Linux 5.8, any handler.
 *   - -ENODEV: the channel was destroyed while the call waited.
 *   - -EIO: waiting failed.
 */
int rmem_async_channel_get_event(
		struct rmem_async_channel *channel, struct rmem_async_event *event);

/**
 * Acknowledge an event (ibv_ack_async_event(3)).
 *
 * Control path. Safe to call from any thread, once for each event.
 *
 * @param event
 *   Event that rmem_async_channel_get_event() returned.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL event, an unknown type, not an object of that type, or an object without
 *     unacknowledged events.
 */
int rmem_async_event_ack(const struct rmem_async_event *event);

/**
 * Get the name of a type of asynchronous events.
 *
 * @param type
 *   One of enum rmem_async_event_type.
 *
 * @return
 *   Name, "unknown" for other values.
 */
const char *rmem_async_event_type_str(uint32_t type);

/**
 * Destroy a channel of asynchronous events.
 *
 * A thread that waits in rmem_async_channel_get_event() returns from it with -ENODEV. Events of the
 * device that were not returned are dropped.
 *
 * Control path: waits for these threads. Safe to call from any thread, once for each channel. No
 * thread may begin another call with the channel.
 *
 * @param channel
 *   Channel to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a channel.
 *   - -EBUSY: CQs, QPs or SRQs are bound to it.
 */
int rmem_async_channel_destroy(struct rmem_async_channel *channel);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_ASYNC_CHANNEL_H */
