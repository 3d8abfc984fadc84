/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Event queues: results of operations in the background.
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

/** Maximum number of events of a queue. */
#define RMEM_EQ_MAX_EVENTS (UINT32_C(1) << 20)

/** Types of events. */
enum rmem_event_type {
	RMEM_EVENT_MR_COMPLETE = 1, /**< A registration has ended (fi_mr(3): FI_MR_COMPLETE). */
};

/** Event. */
struct rmem_event {
	uint32_t type;        /**< One of enum rmem_event_type. */
	int32_t status;       /**< 0 or -errno, as the call would have returned. */
	struct rmem_mr *mr;   /**< MR returned by the call. */
	void *context;        /**< rmem_mr_attr::context. */
	uint64_t reserved[1]; /**< Zero. */
};

/** Event queue (EQ). */
struct rmem_eq {
	struct rmem_obj obj; /**< Private head. */
	uint32_t nb_events;  /**< Maximum number of events. */
};

/** EQ creation parameters. The caller zeroes it first. */
struct rmem_eq_conf {
	uint32_t nb_events;   /**< Maximum number of events: 1 to RMEM_EQ_MAX_EVENTS. */
	uint32_t flags;       /**< No flag is defined: 0. */
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Create an event queue.
 *
 * With an EQ in rmem_mr_attr::eq, rmem_mr_reg_attr() leaves the registration to control threads of
 * EAL: one for each CPU available to control threads, up to 8. All EQs of the process share these
 * threads. They are started with the first EQ and joined with the last one, so that no registration
 * has to start a thread.
 *
 * Control path: allocates memory, may start threads. Safe to call from any thread.
 *
 * @param dev
 *   Device that the EQ belongs to.
 * @param conf
 *   Parameters; not needed after the call.
 * @param[out] eq
 *   The new EQ. Written only on success. Release it with rmem_eq_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, NULL conf or eq, nb_events out of range, an unknown flag,
 *     or a reserved field that is not zero.
 *   - -ENOMEM: no memory for the EQ, or no thread could be started.
 *   - -ENODEV: the device is being closed.
 */
int rmem_eq_create(struct rmem_dev *dev, const struct rmem_eq_conf *conf, struct rmem_eq **eq);

/**
 * Read events, in the order in which registrations ended, without waiting.
 *
 * Each accepted registration has one event, and none is lost. Until the event is read, the MR
 * cannot be deregistered and the EQ cannot be destroyed, so the MR of an event always exists. All
 * results of the registration are visible to the thread that has read its event.
 *
 * Safe to call from any thread, concurrently.
 *
 * @param eq
 *   EQ to read.
 * @param[out] events
 *   Array of nb_events events; only the number returned is written.
 * @param nb_events
 *   Maximum number of events to read; 0 is allowed.
 *
 * @return
 *   Number of events read, 0 if there is none, otherwise:
 *   - -EINVAL: NULL or not an EQ, or NULL events.
 */
int rmem_eq_read(struct rmem_eq *eq, struct rmem_event *events, uint16_t nb_events);

/**
 * Destroy an event queue.
 *
 * Control path: may wait for threads to end. Safe to call from any thread, once for each EQ. No
 * thread may read it.
 *
 * @param eq
 *   EQ to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not an EQ.
 *   - -EBUSY: registrations are in progress, or events are unread.
 */
int rmem_eq_destroy(struct rmem_eq *eq);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_EQ_H */
