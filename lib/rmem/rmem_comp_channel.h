/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Completion channels: a file descriptor that reports completions, for threads that sleep.
 *
 * A CQ is bound to a channel when it is created (rmem_cq_conf::channel). rmem_cq_req_notify() arms
 * the CQ: the next completion generates one event and disarms the CQ. A thread that sleeps repeats
 * these steps: get the event, acknowledge it, arm the CQ, and poll until the CQ is empty. A
 * completion is then either polled, or generates the next event.
 */

#ifndef RMEM_COMP_CHANNEL_H
#define RMEM_COMP_CHANNEL_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_cq;
struct rmem_dev;

/** Completion channel. */
struct rmem_comp_channel {
	struct rmem_obj obj; /**< Private head. */
	int fd; /**< Readable while it has events: for poll() and O_NONBLOCK, not for read(). */
};

/**
 * Create a completion channel.
 *
 * Control path: allocates memory and a file descriptor. Safe to call from any thread.
 *
 * @param dev
 *   Device with RMEM_DEV_CAPA_COMP_CHANNEL.
 * @param[out] channel
 *   The new channel. Written only on success. Release it with rmem_comp_channel_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a device, or NULL channel.
 *   - -EOPNOTSUPP: the device has no channels.
 *   - -ENOMEM: no memory or file descriptor for the channel.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_comp_channel_create(struct rmem_dev *dev, struct rmem_comp_channel **channel);

/**
 * Get the next event of a channel (ibv_get_cq_event(3)).
 *
 * Waits for an event, unless the file descriptor has O_NONBLOCK. Each event must be acknowledged
 * with rmem_cq_ack_events(); until then the CQ cannot be destroyed.
 *
 * Control path: system calls. Safe to call from any thread, concurrently.
 *
 * @param channel
 *   Channel.
 * @param[out] cq
 *   CQ of the event.
 * @param[out] context
 *   rmem_cq_conf::context of the CQ; may be NULL.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a channel, or NULL cq.
 *   - -EAGAIN: there is no event, and the file descriptor has O_NONBLOCK.
 *   - -EINTR: a signal handler without SA_RESTART was called; before Linux 5.8, any handler.
 *   - -EIO: the device failed.
 */
int rmem_comp_channel_get_event(
		struct rmem_comp_channel *channel, struct rmem_cq **cq, void **context);

/**
 * Destroy a completion channel.
 *
 * Control path. Safe to call from any thread, once for each channel. No thread may wait for an
 * event of the channel.
 *
 * @param channel
 *   Channel to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a channel.
 *   - -EBUSY: CQs are bound to it.
 *   - -EIO: the device failed.
 */
int rmem_comp_channel_destroy(struct rmem_comp_channel *channel);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_COMP_CHANNEL_H */
