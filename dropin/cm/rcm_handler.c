/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Handlers for the agent: a descriptor is ready, a timer has expired, descriptors of the agent are
 * lost, or a device has failed. This is the only file that uses all parts of the folder.
 *
 * Invariant: the link of a new connection is watched only after its first packet was looked for,
 * and ended if no ID has taken it after that packet.
 */

#include <rte_common.h>

#include "../verbs/ribv.h"
#include "rcm.h"

/* Read the first packet. An ID takes its request, or the engine answers it. */
static void
pending_ready(uint64_t link)
{
	struct rcm_packet packet;
	int ret = rcm_link_receive(link, &packet);

	if (ret == 0)
		return;
	if (ret == 1)
		(void)rcm_mad_packet(link, &packet);
	rcm_link_end(link);
}

static void
accept_one(int listening)
{
	uint64_t link = rcm_link_accept(listening);

	if (link == 0)
		return;
	pending_ready(link);
	rcm_link_watch(link);
}

static void
ready(uint32_t entry)
{
	struct rcm_id *id = rcm_id_get(entry);
	uint64_t link = rcm_link_pending(entry);

	if (entry >= RCM_GSI && entry < RCM_PENDING)
		rcm_mad_ready(entry - RCM_GSI);
	else if (entry == RCM_REPORT)
		rcm_mad_report();
	else if (link != 0)
		pending_ready(link);
	else if (id != NULL && id->state == RCM_LISTEN)
		accept_one(id->fd);
	else if (id != NULL)
		rcm_conn_ready(id);
}

/* The program has closed descriptors: forget these, and watch the others again. */
static void
lost(void)
{
	rcm_channels_check();
	rcm_links_check();
	rcm_mad_check();
}

/*
 * Removal of devices, as in cma_process_remove() and ucma_event_handler() of the kernel: each ID of
 * the device gets DEVICE_REMOVAL once, after its earlier events, and loses its connection and its
 * port. The program can only destroy it.
 */

/* An ID of a request that was not accepted has no uid, and gets no event. */
static void
remove_id(struct rcm_id *id)
{
	rcm_conn_close(id);
	id->state = RCM_ENDED;
	id->is_removed = true;
	id->fault.type = 0;
	rcm_id_timer(id, IBCM_NEVER);
	if (id->uid != 0)
		rcm_event_post(id, RCM_DEVICE_REMOVAL_EVENT, 0);
}

static void
remove_ids(uint32_t dev)
{
	struct rcm_id *id;
	uint32_t i = 0;

	for (; (id = rcm_id_next(&i)) != NULL; i++) {
		if (id->has_dev && id->dev == dev && !id->is_removed)
			remove_id(id);
	}
}

/* Remove the device before its IDs end: it can't send MADs any more. */
static void
remove_failed(void)
{
	uint32_t failed = rcm_watch_take();

	while (failed != 0) {
		uint32_t number = (uint32_t)__builtin_ctz(failed);

		failed &= failed - 1;
		rcm_dev_remove(number);
		remove_ids(number);
	}
}

/* A rule removes the device only for its IDs; the device itself continues to work. */
static void
id_time(struct rcm_id *id)
{
	if (id->fault.type != RMEM_RDMA_CM_DEVICE_REMOVAL) {
		rcm_conn_time(id);
		return;
	}
	rcm_chaos_happens(id);
	remove_ids(id->dev);
}

static const struct rcm_agent_handlers handlers = {
		.id_time = id_time,
		.lost = lost,
		.next = rcm_mad_next,
		.ready = ready,
		.time = rcm_mad_time,
		.woken = remove_failed,
};

RTE_INIT(rcm_handler_init)
{
	rcm_agent_handle(&handlers);
}

void
rcm_forked(void)
{
	rcm_links_forked();
	rcm_mad_forked();
	rcm_agent_forked();
	rcm_channels_forked();
}
