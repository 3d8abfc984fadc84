/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Event queues: how what was asked for earlier has ended.
 */

#ifndef RMEM_EQ_H
#define RMEM_EQ_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_dev;
struct rmem_mr;

/** Events that a queue can hold at the most. */
#define RMEM_EQ_MAX_EVENTS (UINT32_C(1) << 20)

/** What an event tells of. */
enum rmem_event_type {
	RMEM_EVENT_MR_COMPLETE = 1, /**< A registration has ended (fi_mr(3): FI_MR_COMPLETE). */
};

/** An event. */
struct rmem_event {
	uint32_t type;      /**< One of enum rmem_event_type. */
	int32_t status;     /**< 0, or why it failed: what the call would have returned. */
	struct rmem_mr *mr; /**< MR that the call returned. */
	void *context;      /**< rmem_mr_attr::context. */
};

/** An event queue (EQ). */
struct rmem_eq {
	struct rmem_obj obj; /**< Private head. */
	uint32_t nb_events;  /**< Events it can hold. */
};

/**
 * Create an event queue.
 *
 * With an EQ in rmem_mr_attr::eq, rmem_mr_reg_attr() leaves the registration to control
 * threads (of EAL), of which there are as many as EAL's control threads have processors, 8 at
 * the most. They are shared by all EQs of the process, started with the first of them and
 * joined with the last, so that no registration has to start a thread and none is left behind.
 *
 * Control path: allocates memory, may start threads. Safe to call from any thread.
 *
 * @param dev
 *   Device that the EQ belongs to.
 * @param nb_events
 *   Registrations that can be under way or unread at a time, 1 to RMEM_EQ_MAX_EVENTS.
 * @param[out] eq
 *   The new EQ. Written only on success. Release it with rmem_eq_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, NULL eq, or nb_events out of range.
 *   - -ENOMEM: no memory for the EQ, or no thread could be started.
 *   - -ENODEV: the device is being closed.
 */
int rmem_eq_create(struct rmem_dev *dev, uint32_t nb_events, struct rmem_eq **eq);

/**
 * Read events, in the order in which registrations ended. It does not wait.
 *
 * Each registration that was accepted has one event, and none is lost. Until it is read, the
 * MR can't be deregistered and the EQ can't be destroyed; so an event never tells of an MR
 * that is gone. Who read an event sees all that the registration wrote.
 *
 * Safe to call from any thread, from several at a time.
 *
 * @param eq
 *   EQ to read.
 * @param[out] events
 *   Room for nb_events events; as many as the call returns are written.
 * @param nb_events
 *   Events to read at the most. 0 reads none.
 *
 * @return
 *   Number of events read, 0 when there is none, otherwise:
 *   - -EINVAL: NULL or not an EQ, or NULL events.
 */
int rmem_eq_read(struct rmem_eq *eq, struct rmem_event *events, uint16_t nb_events);

/**
 * Destroy an event queue.
 *
 * Control path: may wait for threads to end. Safe to call from any thread, once for each EQ
 * and when no thread reads it.
 *
 * @param eq
 *   EQ to release; not valid any more on success. NULL is allowed and does nothing.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not an EQ.
 *   - -EBUSY: registrations are under way, or events are unread.
 */
int rmem_eq_destroy(struct rmem_eq *eq);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_EQ_H */
