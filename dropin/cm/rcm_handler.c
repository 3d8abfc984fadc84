/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Handlers of the agent: what is done for a descriptor that is ready, for a timer that has expired,
 * and when descriptors of the agent are lost. Only this file knows all parts of the folder.
 *
 * Invariant: the link of a new connection is watched only after its first packet was looked for,
 * and ended if no ID has taken it by that packet.
 */

#include <rte_common.h>

#include "rcm.h"

/* The first packet has a request, which an ID takes, or the engine answers. */
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

/* The program has closed descriptors: forget those that are other files now, watch the rest. */
static void
lost(void)
{
	rcm_channels_check();
	rcm_links_check();
	rcm_mad_check();
}

static const struct rcm_agent_handlers handlers = {
		.id_time = rcm_conn_time,
		.lost = lost,
		.next = rcm_mad_next,
		.ready = ready,
		.time = rcm_mad_time,
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
