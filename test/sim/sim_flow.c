/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A run of flows over the network, its invariants and its figures; see sim_flow.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "sim_flow.h"
#include "soft/wire/rwire.h"

#define START_NS  UINT64_C(1000000000)
#define JITTER_NS 10000 /* flows start within it */
/* Bytes of a packet that are not payload: on the link, and BTH and ICRC. */
#define HEADERS (NET_OVERHEAD + RWIRE_BTH_LEN + RWIRE_ICRC_LEN)

struct sim_conf
sim_conf(enum sim_pattern pattern, uint32_t nb_hosts)
{
	return (struct sim_conf){.pattern = pattern,
			.nb_hosts = nb_hosts,
			.mtu = 1024,
			.msg_size = 16384,
			.depth = 5,
			.timeout = 14,
			.retry_cnt = 7,
			.duration_ns = 100000000,
			.net = {.mbps = 10000,
					.latency_ns = 1000,
					.queue_bytes = 256 * 1024,
					.seed = 1}};
}

uint64_t
sim_timeout_ns(const struct sim *sim)
{
	return UINT64_C(4096) << sim->conf.timeout;
}

void
sim_count_sent(struct sim *sim, uint32_t flow, uint32_t psn, uint32_t *highest)
{
	sim->flows[flow].sent++;
	if (rwire_psn_diff(psn, *highest) >= 0)
		*highest = rwire_psn_add(psn, 1);
	else
		sim->flows[flow].resent++;
}

void
sim_count_acked(struct sim *sim, uint32_t i, uint32_t nb)
{
	const struct net *net = &sim->net;
	struct sim_flow *flow = &sim->flows[i];

	flow->acked += nb;
	flow->done_at = net->now;
	if (flow->up_at == 0 && net->conf.up_ns != 0 && net->now >= net->conf.up_ns)
		flow->up_at = net->now;
}

static const struct sim_transport *
transport_of(const struct sim *sim)
{
	return sim->conf.is_model ? &sim_model : &sim_wire;
}

static void
on_deliver(void *user, struct net_packet *packet)
{
	struct sim *sim = user;

	transport_of(sim)->deliver(sim, packet);
}

/* Timers from nb_flows on start a flow. */
static void
on_timer(void *user, uint32_t id)
{
	struct sim *sim = user;

	if (id < sim->nb_flows)
		transport_of(sim)->timer(sim, id);
	else
		transport_of(sim)->start(sim, id - sim->nb_flows);
}

static void
open_flows(struct sim *sim)
{
	const struct sim_conf *conf = &sim->conf;
	bool is_incast = conf->pattern == SIM_INCAST;
	uint32_t step = conf->pattern == SIM_PAIRS ? 2 : 1, i;

	sim->nb_flows = is_incast ? conf->nb_hosts - 1 : conf->nb_hosts / step;
	sim->flows = calloc(sim->nb_flows, sizeof(*sim->flows));
	TEST_ASSERT(sim->flows != NULL);
	for (i = 0; i < sim->nb_flows; i++) {
		sim->flows[i].src = is_incast ? i + 1 : step * i;
		sim->flows[i].dst = is_incast ? 0 : (step * i + 1) % conf->nb_hosts;
	}
}

/* At the end of the time of the run. */
static void
measure(const struct sim *sim, struct sim_result *result)
{
	const struct sim_conf *conf = &sim->conf;
	uint64_t ns = sim->net.now - START_NS;
	double sum = 0, squares = 0, links, limit;
	uint32_t i;

	for (i = 0; i < sim->nb_flows; i++) {
		const struct sim_flow *flow = &sim->flows[i];

		result->sent += flow->sent;
		result->resent += flow->resent;
		result->acked += flow->acked;
		sum += (double)flow->acked;
		squares += (double)flow->acked * (double)flow->acked;
	}
	result->ns = ns;
	result->jain = squares == 0 ? 0 : sum * sum / squares / sim->nb_flows;
	result->goodput = (double)result->acked * conf->mtu * 8 / (double)ns;
	links = conf->pattern == SIM_INCAST ? 1 : sim->nb_flows;
	limit = links * conf->net.mbps / 1000 * conf->mtu / (conf->mtu + HEADERS);
	result->share = result->goodput / limit;
}

static void
measure_end(const struct sim *sim, struct sim_result *result)
{
	uint64_t up = sim->net.conf.up_ns;
	uint32_t i;

	result->counts = sim->net.counts;
	result->nb_flows = sim->nb_flows;
	result->timeouts = sim->timeouts;
	result->rewinds = sim->rewinds;
	result->nb_checked = sim->nb_checked;
	result->nb_wrong = sim->nb_wrong;
	result->nb_allocated = sim->net.nb_allocated;
	result->end_ns = sim->net.now - START_NS;
	for (i = 0; i < sim->nb_flows; i++) {
		const struct sim_flow *flow = &sim->flows[i];

		if (flow->done_at != 0)
			result->done_ns = RTE_MAX(result->done_ns, flow->done_at - START_NS);
		result->nb_failed += flow->has_failed;
		result->nb_not_up += flow->up_at == 0;
		if (flow->up_at == 0)
			continue;
		if (result->up_first_ns == 0 || flow->up_at - up < result->up_first_ns)
			result->up_first_ns = flow->up_at - up;
		result->up_last_ns = RTE_MAX(result->up_last_ns, flow->up_at - up);
	}
}

/* Invariants of each run that has ended. */
static void
check(const struct sim *sim)
{
	const struct net_counts *counts = &sim->net.counts;

	TEST_EQ(counts->sent, counts->delivered + counts->lost + counts->queue + counts->down);
	TEST_EQ(sim->net.nb_packets, 0);
	TEST_EQ(sim->nb_wrong, 0);
}

void
sim_run(const struct sim_conf *conf, struct sim_result *result)
{
	struct sim sim = {.conf = *conf};
	struct net_conf *net = &sim.conf.net;
	uint32_t i;

	memset(result, 0, sizeof(*result));
	net->nb_hosts = conf->nb_hosts;
	net->body_size = sizeof(struct rwire_frame) + RWIRE_HEADROOM + RWIRE_MAX_HDR + conf->mtu +
			3 + RWIRE_ICRC_LEN;
	net->deliver = on_deliver;
	net->timer = on_timer;
	net->user = &sim;
	if (net->up_ns != 0) {
		net->down_ns += START_NS;
		net->up_ns += START_NS;
	}
	open_flows(&sim);
	TEST_ASSERT(net_open(&sim.net, net));
	sim.net.now = START_NS;
	transport_of(&sim)->open(&sim);
	for (i = 0; i < sim.nb_flows; i++)
		net_timer(&sim.net, START_NS + net_random(&sim.net, JITTER_NS), sim.nb_flows + i);
	net_run(&sim.net, START_NS + conf->duration_ns);
	measure(&sim, result);
	sim.is_stopping = true;
	net_run(&sim.net, UINT64_MAX);
	transport_of(&sim)->close(&sim);
	measure_end(&sim, result);
	check(&sim);
	net_close(&sim.net);
	free(sim.flows);
}
