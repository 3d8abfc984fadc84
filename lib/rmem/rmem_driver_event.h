/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Events that drivers generate: completions of CQs with a channel, and asynchronous events.
 */

#ifndef RMEM_DRIVER_EVENT_H
#define RMEM_DRIVER_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_cq;
struct rmem_dev;
struct rmem_qp;
struct rmem_qp_error;
struct rmem_srq;

/**
 * Generate an event of a CQ for a completion, if the CQ is armed for it.
 *
 * A driver that uses the channels of the class calls it for each completion of a CQ with a channel,
 * after the completion can be polled.
 *
 * Fast path: one locked instruction; with an event, a lock and a system call. Safe to call from any
 * thread. The CQ must not be destroyed during the call.
 *
 * @param cq
 *   CQ with a channel.
 * @param is_solicited
 *   Whether the completion is a receive with RMEM_WC_SOLICITED, or a failed request or receive.
 */
void rmem_cq_notify(struct rmem_cq *cq, bool is_solicited);

/**
 * Generate an asynchronous event of a CQ.
 *
 * Has no effect if the CQ is not bound to a channel, or while its last event of this type has not
 * been returned.
 *
 * Takes a lock and makes a system call. Safe to call from any thread, also with locks of the driver
 * held. The CQ must not be destroyed during the call.
 *
 * @param cq
 *   CQ.
 * @param type
 *   RMEM_ASYNC_CQ_ERR.
 */
void rmem_cq_async_event(struct rmem_cq *cq, uint32_t type);

/**
 * Generate an asynchronous event of a QP; as rmem_cq_async_event().
 *
 * @param qp
 *   QP.
 * @param type
 *   A type of events of QPs, of enum rmem_async_event_type.
 */
void rmem_qp_async_event(struct rmem_qp *qp, uint32_t type);

/**
 * Generate an asynchronous event of an SRQ; as rmem_cq_async_event().
 *
 * @param srq
 *   SRQ.
 * @param type
 *   RMEM_ASYNC_SRQ_LIMIT_REACHED or RMEM_ASYNC_SRQ_ERR.
 */
void rmem_srq_async_event(struct rmem_srq *srq, uint32_t type);

/**
 * Generate an asynchronous event of the device, or of its port.
 *
 * Each channel of the device reports the event. All port events of a device must be of the same
 * port. After RMEM_ASYNC_DEVICE_FATAL the class refuses posts with -ENODEV, and the creation and
 * changes of objects with -EIO; polls return the completions that the driver still has, then -EIO.
 * The driver must end the requests in progress before it reports the event.
 *
 * Safe to call from any thread. The device must not be closed during the call.
 *
 * @param dev
 *   Device.
 * @param type
 *   A type of events of devices or ports, of enum rmem_async_event_type.
 * @param port_num
 *   Port, the same in all calls for the device; 0 for RMEM_ASYNC_DEVICE_FATAL.
 */
void rmem_dev_async_event(struct rmem_dev *dev, uint32_t type, uint32_t port_num);

/**
 * Store the last error of a QP, for rmem_qp_stats_get() and telemetry.
 *
 * A driver calls it for each request, receive, or request of the peer that fails for another reason
 * than a flush, before its completion can be polled.
 *
 * Takes a lock of the class. Safe to call from any thread.
 *
 * @param qp
 *   QP.
 * @param error
 *   The error; time_ns is ignored.
 */
void rmem_qp_note_error(struct rmem_qp *qp, const struct rmem_qp_error *error);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_DRIVER_EVENT_H */
