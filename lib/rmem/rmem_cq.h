/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Completion queues; polled with rmem_poll_cq() of rmem_fp.h.
 */

#ifndef RMEM_CQ_H
#define RMEM_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_async_channel;
struct rmem_comp_channel;
struct rmem_cq_events;
struct rmem_dev;

/**
 * Take the time of each completion: rmem_cq::timestamps.
 *
 * Needs RMEM_DEV_CAPA_CQ_TIMESTAMP.
 */
#define RMEM_CQ_TIMESTAMP (1u << 0)
/**
 * Ignore an overrun (IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN).
 *
 * A completion without a free entry is lost, without an event and without an error of the CQ and
 * its QPs; rmem_cq_stats::overruns counts it, if the device does. Which completions are lost
 * depends on the device. A device that cannot ignore an overrun reports it.
 */
#define RMEM_CQ_IGNORE_OVERRUN (1u << 1)

/** Completion queue (CQ). Drivers append their own fields. */
struct rmem_cq {
	struct rmem_obj obj; /**< Private head. */
	uint32_t nb_cqe;     /**< Maximum number of completions; at least the requested one. */
	struct rmem_comp_channel *channel; /**< Channel that the CQ is bound to, or NULL. */
	void *context;                     /**< rmem_cq_conf::context. */
	struct rmem_cq_events *events;     /**< Private to the class. */
	/**
	 * Times of the completions of the last rmem_poll_cq(), by index.
	 *
	 * A time is taken when the completion is generated, in ticks of rmem_dev_clock_get(). The
	 * array is valid until the next poll or resize. NULL without RMEM_CQ_TIMESTAMP.
	 */
	const uint64_t *timestamps;
};

/** Configuration of a completion queue. The caller zeroes it first. */
struct rmem_cq_conf {
	uint32_t nb_cqe;                   /**< Completions to hold, 1 to rmem_dev_info::max_cqe. */
	uint32_t flags;                    /**< Bitwise OR of RMEM_CQ_*. */
	struct rmem_comp_channel *channel; /**< Channel of the device for its events, or NULL. */
	void *context;                     /**< Any value; returned with events of the CQ. */
	struct rmem_async_channel *async_channel; /**< Channel for asynchronous events, or NULL. */
	const char *name;     /**< Name for logs and telemetry, to 31 bytes, or NULL; copied. */
	uint64_t reserved[2]; /**< Zero. */
};

/** Largest rmem_cq_attr::count. */
#define RMEM_CQ_MAX_COUNT 65535u
/** Largest rmem_cq_attr::period_us. */
#define RMEM_CQ_MAX_PERIOD_US 65535u

/** Moderation of the events of a CQ, for its channel. The caller zeroes it first. */
struct rmem_cq_attr {
	uint32_t count;       /**< Completions per event, to RMEM_CQ_MAX_COUNT; 0: any number. */
	uint32_t period_us;   /**< Longest delay, to RMEM_CQ_MAX_PERIOD_US; 0: no moderation. */
	uint64_t reserved[2]; /**< Zero. */
};

/** Counters of a CQ. */
struct rmem_cq_stats {
	uint64_t nb_cqe;      /**< Completions that it holds. */
	uint64_t outstanding; /**< Completions reserved or written, and not polled yet. */
	uint64_t overruns;    /**< Completions lost because the CQ was full. */
	uint64_t reserved[3]; /**< Zero. */
};

/**
 * Create a completion queue.
 *
 * The CQ must hold all completions that can be outstanding on the queue pairs attached to it. After
 * an overrun rmem_poll_cq() returns the saved completions, then -EIO permanently, and the queue
 * pairs move to the error state (IBTA C11-39), unless the CQ has RMEM_CQ_IGNORE_OVERRUN.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param dev
 *   Device that the CQ belongs to.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] cq
 *   The new CQ. Written only on success. Release it with rmem_cq_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, NULL conf or cq, nb_cqe 0 or over the limit, an
 *     unknown flag, a channel that is not one or is of another device, or a reserved field that is
 *     not zero.
 *   - -EOPNOTSUPP: RMEM_CQ_TIMESTAMP, and the device lacks RMEM_DEV_CAPA_CQ_TIMESTAMP.
 *   - -ENOSPC: the device already has rmem_dev_info::max_cq queues.
 *   - -ENOMEM: no memory for the CQ.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_cq_create(struct rmem_dev *dev, const struct rmem_cq_conf *conf, struct rmem_cq **cq);

/**
 * Change the number of completions that a CQ holds.
 *
 * Completions that were not polled stay in the CQ, in order. As at creation, the CQ must hold all
 * completions that can be outstanding.
 *
 * Control path: allocates memory. Safe to call from any thread while others post to the queue pairs
 * attached to the CQ, but not while another thread polls, resizes or destroys the CQ.
 *
 * @param cq
 *   CQ. On success rmem_cq::nb_cqe is its new size.
 * @param nb_cqe
 *   Completions to hold, 1 to rmem_dev_info::max_cqe.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a CQ, nb_cqe 0, over the limit, or below the number of completions
 *     outstanding.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_CQ_RESIZE.
 *   - -EBUSY: a secondary process has claimed a QP attached to the CQ (rmem_qp_claim()).
 *   - -ENOMEM: no memory for the CQ.
 *   - -EIO: the device failed, or the CQ had an overrun.
 */
int rmem_cq_resize(struct rmem_cq *cq, uint32_t nb_cqe);

/**
 * Destroy a completion queue; completions that were not polled are lost.
 *
 * Control path. Safe to call from any thread, once for each CQ. No thread may poll it.
 *
 * @param cq
 *   CQ to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a CQ.
 *   - -EBUSY: queue pairs are attached to it, or events are not acknowledged (ibv_destroy_cq(3)
 *     waits for the acknowledgement).
 *   - -EIO: the device failed.
 */
int rmem_cq_destroy(struct rmem_cq *cq);

/**
 * Arm a CQ: the next completion generates an event of its channel (IBTA 11.4.2.2).
 *
 * Completions that are already in the CQ may generate no event: poll them after this call. Arming
 * for solicited completions does not change a CQ that is armed for all; an event disarms both.
 *
 * Control path, without a system call on a software device. Safe to call from any thread.
 *
 * @param cq
 *   CQ with a channel.
 * @param is_solicited_only
 *   Whether only receives of messages sent with RMEM_SEND_SOLICITED, and failed requests and
 *   receives, generate an event.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a CQ, or one without a channel.
 *   - -EIO: the device failed.
 */
int rmem_cq_req_notify(struct rmem_cq *cq, bool is_solicited_only);

/**
 * Moderate the events of a CQ (ibv_modify_cq(3)).
 *
 * An armed CQ generates its event when it has count completions since it was armed, or period_us
 * after the first of them. Completions that would generate no event (rmem_cq_req_notify()) do not
 * count. An event that is due when the moderation changes is generated at once.
 *
 * Control path: the first moderated CQ of a process starts a thread. Safe to call from any thread,
 * but not while another thread modifies or destroys the CQ.
 *
 * @param cq
 *   CQ. Without a channel the call has no effect.
 * @param attr
 *   Moderation; not needed after the call.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a CQ, NULL attr, a value over its limit, or a reserved field that is not
 *     zero.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_CQ_MODERATION.
 *   - -ENOMEM: no memory or thread.
 *   - -EIO: the device failed.
 */
int rmem_cq_modify(struct rmem_cq *cq, const struct rmem_cq_attr *attr);

/**
 * Acknowledge events of a CQ that rmem_comp_channel_get_event() returned.
 *
 * Control path: several may be acknowledged at once. Safe to call from any thread.
 *
 * @param cq
 *   CQ with a channel.
 * @param nb_events
 *   Number of events.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a CQ, one without a channel, or nb_events exceeds the number of
 *     unacknowledged events.
 */
int rmem_cq_ack_events(struct rmem_cq *cq, uint32_t nb_events);

/**
 * Get the counters of a CQ.
 *
 * Control path. Safe to call from any thread.
 *
 * @param cq
 *   CQ to query.
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a CQ, or NULL stats.
 *   - -EOPNOTSUPP: the device does not report counters.
 */
int rmem_cq_stats_get(const struct rmem_cq *cq, struct rmem_cq_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_CQ_H */
