/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared receive queues (SRQ): receives of several QPs, filled by rmem_srq_post_recv() of
 * rmem_fp.h.
 *
 * A QP uses an SRQ if rmem_qp_conf::srq names it. Each message that needs a receive consumes the
 * oldest one of the SRQ, which completes on the receive CQ of the QP. The keys of a receive must be
 * of the PD of the SRQ, which may differ from the PD of the QP. When a QP moves to ERR, a receive
 * that it has already taken is flushed; all others remain in the SRQ. Move a QP to ERR before it is
 * reset or destroyed; otherwise a receive that it has taken may be lost (IBTA 10.2.9.4).
 */

#ifndef RMEM_SRQ_H
#define RMEM_SRQ_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_async_channel;
struct rmem_async_events;
struct rmem_cq;
struct rmem_pd;
struct rmem_xrcd;

/*
 * Attributes that rmem_srq_modify() sets, with the values of enum ibv_srq_attr_mask.
 */
/** rmem_srq_attr::max_wr; requires RMEM_DEV_CAPA_SRQ_RESIZE. */
#define RMEM_SRQ_MAX_WR (UINT32_C(1) << 0)
/** rmem_srq_attr::srq_limit. */
#define RMEM_SRQ_LIMIT (UINT32_C(1) << 1)

/** Shared receive queue (SRQ). Drivers append their own fields. */
struct rmem_srq {
	struct rmem_obj obj;             /**< Private head. */
	struct rmem_pd *pd;              /**< PD that the SRQ belongs to. */
	struct rmem_async_events *async; /**< Private to the class. */
};

/** Further configuration: rmem_srq_conf::ext. The caller zeroes it first. */
struct rmem_srq_ext {
	struct rmem_xrcd *xrcd; /**< XRC domain of the SRQ (rmem_xrcd.h), or NULL. */
	struct rmem_cq *cq;     /**< With xrcd: CQ of its receives; else NULL. */
	uint64_t reserved[6];   /**< Zero. */
};

/** Configuration of an SRQ. The caller zeroes it first. */
struct rmem_srq_conf {
	uint32_t max_wr;  /**< Receives posted, 1 to rmem_dev_info::max_srq_wr. */
	uint32_t max_sge; /**< SGEs of a receive, 0 to rmem_dev_info::max_srq_sge. */
	struct rmem_async_channel *async_channel; /**< Channel for its events, or NULL. */
	void *context;                            /**< Any value, returned with its events. */
	const char *name; /**< Name for logs and telemetry, to 31 bytes, or NULL; copied. */
	const struct rmem_srq_ext *ext; /**< Further configuration, or NULL. */
};

/** Attributes of an SRQ: result of rmem_srq_query(), and input of rmem_srq_modify(). */
struct rmem_srq_attr {
	uint32_t max_wr;    /**< Receives posted at the same time; at least the requested number. */
	uint32_t max_sge;   /**< SGEs of a receive; at least the requested number. */
	uint32_t srq_limit; /**< Armed limit; 0: not armed. */
	uint32_t nb_wr;     /**< Receives posted and not consumed, if the device reports it. */
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Create a shared receive queue.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain of the keys of its receives.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] srq
 *   The new SRQ. Written only on success. Release it with rmem_srq_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL conf or srq, max_wr 0, a number over its limit,
 *     async_channel is not a channel or belongs to another device, a domain without a CQ, a CQ
 *     without a domain, a domain or CQ of another device, or a reserved field that is not zero.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_SRQ, or with a domain RMEM_DEV_CAPA_XRC.
 *   - -ENOSPC: the device already has rmem_dev_info::max_srq shared receive queues.
 *   - -ENOMEM: no memory for the SRQ.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_srq_create(struct rmem_pd *pd, const struct rmem_srq_conf *conf, struct rmem_srq **srq);

/**
 * Resize an SRQ, or arm its limit.
 *
 * When the SRQ has fewer than rmem_srq_attr::srq_limit receives, it generates
 * RMEM_ASYNC_SRQ_LIMIT_REACHED, and the limit is disarmed (0 again; IBTA 10.2.9.3). A srq_limit of
 * 0 disarms it without an event. A failed call changes nothing.
 *
 * Control path: a resize allocates memory. Safe to call from any thread, concurrently with posts
 * and messages.
 *
 * @param srq
 *   SRQ to modify.
 * @param attr
 *   Attributes named by @p mask; the others are not used. Not needed after the call.
 * @param mask
 *   Bitwise OR of RMEM_SRQ_MAX_WR and RMEM_SRQ_LIMIT.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an SRQ, NULL attr, an unknown bit, max_wr that is 0, over the limit of
 *     the device, or less than the receives posted or the limit in force, srq_limit over max_wr, or
 *     a reserved field that is not zero.
 *   - -EOPNOTSUPP: RMEM_SRQ_MAX_WR without RMEM_DEV_CAPA_SRQ_RESIZE.
 *   - -ENOMEM: no memory for the receives.
 *   - -EIO: the device failed.
 */
int rmem_srq_modify(struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask);

/**
 * Query the sizes and the limit of an SRQ.
 *
 * Control path. Safe to call from any thread.
 *
 * @param srq
 *   SRQ to query.
 * @param[out] attr
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an SRQ, or NULL attr.
 *   - -EIO: the device failed.
 */
int rmem_srq_query(const struct rmem_srq *srq, struct rmem_srq_attr *attr);

/**
 * Destroy an SRQ; its receives are dropped without a completion.
 *
 * Control path. Safe to call from any thread, once for each SRQ. No thread may post to it.
 *
 * @param srq
 *   SRQ to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not an SRQ.
 *   - -EBUSY: queue pairs use it, or its events are not acknowledged.
 *   - -EIO: the device failed.
 */
int rmem_srq_destroy(struct rmem_srq *srq);

/**
 * Get the number of an SRQ of XRC, which requests name in rmem_send_wr::xrc.
 *
 * As ibv_get_srq_num(3). Control path. Safe to call from any thread.
 *
 * @param srq
 *   SRQ created with rmem_srq_ext::xrcd.
 * @param[out] srq_num
 *   Number, 24 bits. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an SRQ, an SRQ without an XRC domain, or NULL srq_num.
 *   - -EIO: the device failed.
 */
int rmem_srq_num_get(const struct rmem_srq *srq, uint32_t *srq_num);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_SRQ_H */
