/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion channels are channels of libibverbs, with their descriptor. So the kernel lists the
 * events, and withdraws the events of a CQ that is destroyed.
 *
 * Invariants:
 * - The call that gets an event of libibverbs takes a reference to the CQ, then acknowledges the
 *   event. The acknowledgement of the application releases that reference. So the class refuses to
 *   destroy a CQ with unacknowledged events, and ibv_destroy_cq() waits only for a call between
 *   these two steps. Such a call finds that the CQ is being released, and drops the event; the CQ
 *   exists until then.
 * - A completion saved by the driver (rverbs_cq_save()) was in the CQ of the device, so it has
 *   generated the event of an armed CQ.
 *
 * A dropped event is lost if the device then refuses to destroy the CQ.
 */

#include <errno.h>

#include "rverbs.h"
#include "rverbs.h"

static struct ibv_comp_channel *
ibv_of(struct rmem_comp_channel *base)
{
	return ((struct rmem_comp_channel_drv *)base)->priv;
}

int
rverbs_channel_create(struct rmem_comp_channel *base)
{
	struct ibv_comp_channel *channel;

	channel = ibv_create_comp_channel(rverbs_dev_of(&base->obj)->context);
	if (channel == NULL) {
		/* EMFILE and ENFILE count as lack of memory, as for channels of the class. */
		if (errno == EMFILE || errno == ENFILE)
			errno = ENOMEM;
		return rverbs_err_code(-1, RVERBS_ERR_RESIZE, "ibv_create_comp_channel");
	}
	((struct rmem_comp_channel_drv *)base)->priv = channel;
	base->fd = channel->fd;
	return 0;
}

int
rverbs_channel_destroy(struct rmem_comp_channel *base)
{
	return rverbs_err_code(ibv_destroy_comp_channel(ibv_of(base)), RVERBS_ERR_RELEASE,
			"ibv_destroy_comp_channel");
}

int
rverbs_channel_get_event(struct rmem_comp_channel *base, struct rmem_cq **found)
{
	struct ibv_cq *cq;
	bool is_held;
	void *context;

	do {
		if (ibv_get_cq_event(ibv_of(base), &cq, &context) != 0) {
			if (errno == EAGAIN || errno == EINTR)
				return -errno;
			return rverbs_err_code(-1, RVERBS_ERR_CHANGE, "ibv_get_cq_event");
		}
		*found = &((struct rverbs_cq *)context)->cq;
		is_held = rmem_obj_hold(&(*found)->obj);
		ibv_ack_cq_events(cq, 1);
	} while (!is_held);
	return 0;
}

int
rverbs_cq_modify(struct rmem_cq *base, const struct rmem_cq_attr *attr)
{
	const struct ibv_cq_moderation_caps *caps = &rverbs_dev_of(&base->obj)->attr.cq_mod_caps;
	bool is_on = attr->period_us != 0 && attr->count != 1;
	struct ibv_modify_cq_attr own = {.attr_mask = IBV_CQ_ATTR_MODERATE};

	/* Larger values are reduced to the limits of the device. */
	if (is_on) {
		own.moderate.cq_count = (uint16_t)RTE_MIN(
				attr->count != 0 ? attr->count : RMEM_CQ_MAX_COUNT,
				(uint32_t)caps->max_cq_count);
		own.moderate.cq_period =
				(uint16_t)RTE_MIN(attr->period_us, (uint32_t)caps->max_cq_period);
	}
	return rverbs_err_code(ibv_modify_cq(rverbs_cq_of(base)->ibv, &own), RVERBS_ERR_RESIZE,
			"ibv_modify_cq");
}

int
rverbs_cq_req_notify(struct rmem_cq *base, bool is_solicited_only)
{
	return rverbs_err_code(ibv_req_notify_cq(rverbs_cq_of(base)->ibv, is_solicited_only),
			RVERBS_ERR_CHANGE, "ibv_req_notify_cq");
}
