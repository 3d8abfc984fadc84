/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A model of selective repeat, to compare the engine with: each packet after a gap is
 * acknowledged, and only lost packets are sent again.
 *
 * A packet counts as lost when SELECT_LATER packets that were sent after it are acknowledged, so
 * that the loss of a packet that was sent again is detected too; or by the timer, as in the engine.
 * Packets have no bytes.
 */

#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "sim_flow.h"
#include "soft/wire/rwire.h"

#define SELECT_LATER 3

struct model_flow {
	/* Requester. Invariant: una <= next <= una + window. */
	uint64_t una, next;
	uint64_t nb_sent; /* numbers the packets in the order in which they were sent */
	uint64_t sent_as[SIM_WINDOW];
	bool is_acked[SIM_WINDOW];
	uint8_t nb_later[SIM_WINDOW];
	uint64_t deadline; /* 0: no packet is in flight */
	uint64_t timer_at;
	uint8_t retry_left;
	uint32_t highest;
	/* Responder. */
	uint64_t expected;
	bool is_here[SIM_WINDOW]; /* packets after expected */
};

static void
model_send(struct sim *sim, uint32_t i, uint64_t number, bool is_end)
{
	struct model_flow *flow = &((struct model_flow *)sim->transport)[i];
	struct net_packet *packet = net_get(&sim->net);

	packet->src = sim->flows[i].src;
	packet->dst = sim->flows[i].dst;
	packet->flow = i;
	packet->psn = (uint32_t)number & RWIRE_PSN_MASK;
	packet->is_data = true;
	/* As the engine does, and for each packet that is sent again. */
	packet->is_ack_req = number % RWIRE_ACK_EVERY == RWIRE_ACK_EVERY - 1 ||
			number + 1 != flow->next || is_end;
	packet->len = NET_OVERHEAD + RWIRE_BTH_LEN + sim->conf.mtu + RWIRE_ICRC_LEN;
	flow->sent_as[number % SIM_WINDOW] = flow->nb_sent++;
	flow->nb_later[number % SIM_WINDOW] = 0;
	if (flow->deadline == 0)
		flow->deadline = sim->net.now + sim_timeout_ns(sim);
	sim_count_sent(sim, i, packet->psn, &flow->highest);
	net_send(&sim->net, packet);
}

static void
model_fill(struct sim *sim, uint32_t i)
{
	struct model_flow *flow = &((struct model_flow *)sim->transport)[i];
	uint64_t limit = sim->conf.nb_msgs * (sim->conf.msg_size / sim->conf.mtu), number;

	while (!sim->is_stopping && flow->next - flow->una < SIM_WINDOW &&
			(limit == 0 || flow->next < limit)) {
		number = flow->next++;
		flow->is_acked[number % SIM_WINDOW] = false;
		model_send(sim, i, number,
				flow->next == limit || flow->next - flow->una == SIM_WINDOW);
	}
	if (flow->deadline == 0 || (flow->timer_at != 0 && flow->timer_at <= flow->deadline))
		return;
	flow->timer_at = flow->deadline;
	net_timer(&sim->net, flow->deadline, i);
}

/* Send packets again that were sent before an acknowledged one. */
static void
model_repeat(struct sim *sim, uint32_t i, uint64_t acked_as)
{
	struct model_flow *flow = &((struct model_flow *)sim->transport)[i];
	uint64_t n;

	for (n = flow->una; n < flow->next; n++) {
		if (flow->is_acked[n % SIM_WINDOW] || flow->sent_as[n % SIM_WINDOW] >= acked_as)
			continue;
		if (++flow->nb_later[n % SIM_WINDOW] >= SELECT_LATER)
			model_send(sim, i, n, true);
	}
}

static void
model_ack(struct sim *sim, uint32_t i, const struct net_packet *packet)
{
	struct model_flow *flow = &((struct model_flow *)sim->transport)[i];
	const uint32_t base = (uint32_t)flow->una & RWIRE_PSN_MASK;
	int32_t nb = rwire_psn_diff(packet->ack, base), ahead = rwire_psn_diff(packet->psn, base);
	uint64_t una = flow->una, acked_as;

	TEST_ASSERT(nb <= SIM_WINDOW && ahead < SIM_WINDOW);
	if (nb < 0 || ahead < 0)
		return;
	acked_as = flow->sent_as[(una + (uint32_t)ahead) % SIM_WINDOW];
	flow->is_acked[(una + (uint32_t)ahead) % SIM_WINDOW] = true;
	flow->una += (uint32_t)nb;
	while (flow->una < flow->next && flow->is_acked[flow->una % SIM_WINDOW])
		flow->una++;
	if (flow->una != una) {
		flow->retry_left = sim->conf.retry_cnt;
		flow->deadline = flow->una == flow->next ? 0 : sim->net.now + sim_timeout_ns(sim);
		sim_count_acked(sim, i, (uint32_t)(flow->una - una));
	}
	model_repeat(sim, i, acked_as);
}

/* A packet arrives at the responder, which acknowledges it. */
static void
model_receive(struct sim *sim, struct net_packet *packet)
{
	struct model_flow *flow = &((struct model_flow *)sim->transport)[packet->flow];
	int32_t ahead = rwire_psn_diff(packet->psn, (uint32_t)flow->expected & RWIRE_PSN_MASK);
	bool is_needed;

	TEST_ASSERT(ahead < SIM_WINDOW);
	is_needed = packet->is_ack_req || ahead != 0;
	if (ahead >= 0)
		flow->is_here[(flow->expected + (uint32_t)ahead) % SIM_WINDOW] = true;
	while (flow->is_here[flow->expected % SIM_WINDOW])
		flow->is_here[flow->expected++ % SIM_WINDOW] = false;
	if (!is_needed) {
		net_put(&sim->net, packet);
		return;
	}
	packet->ack = (uint32_t)flow->expected & RWIRE_PSN_MASK;
	packet->is_data = false;
	packet->is_back = true;
	packet->len = NET_OVERHEAD + RWIRE_BTH_LEN + 4 + RWIRE_ICRC_LEN;
	packet->src = sim->flows[packet->flow].dst;
	packet->dst = sim->flows[packet->flow].src;
	net_send(&sim->net, packet);
}

static void
model_deliver(struct sim *sim, struct net_packet *packet)
{
	uint32_t flow = packet->flow;

	if (packet->is_data) {
		model_receive(sim, packet);
		return;
	}
	if (!sim->flows[flow].has_failed) {
		model_ack(sim, flow, packet);
		model_fill(sim, flow);
	}
	net_put(&sim->net, packet);
}

static void
model_timer(struct sim *sim, uint32_t i)
{
	struct model_flow *flow = &((struct model_flow *)sim->transport)[i];

	if (flow->timer_at != sim->net.now)
		return;
	flow->timer_at = 0;
	if (flow->deadline != 0 && flow->deadline <= sim->net.now) {
		sim->timeouts++;
		flow->deadline = 0;
		if (flow->retry_left-- == 0) {
			sim->flows[i].has_failed = true;
			return;
		}
		model_send(sim, i, flow->una, true);
	}
	model_fill(sim, i);
}

static void
model_open(struct sim *sim)
{
	struct model_flow *flows = calloc(sim->nb_flows, sizeof(*flows));
	uint32_t i;

	TEST_ASSERT(flows != NULL);
	for (i = 0; i < sim->nb_flows; i++)
		flows[i].retry_left = sim->conf.retry_cnt;
	sim->transport = flows;
}

static void
model_close(struct sim *sim)
{
	free(sim->transport);
}

const struct sim_transport sim_model = {
		.open = model_open,
		.start = model_fill,
		.deliver = model_deliver,
		.timer = model_timer,
		.close = model_close,
};
