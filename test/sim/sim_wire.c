/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Flows of the engine of drivers/soft/wire: its port and its clock are those of the network.
 *
 * Requests are posted by rmem_post_send(). A packet is received by rwire_progress(), and the timer
 * of a QP is checked by the function that a poll calls for each QP that waits. Polls themselves
 * visit up to 64 QPs of the device, which would be the QPs of other hosts here, so completions are
 * taken from the CQ without that.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rmem_driver.h>

#include "../rc.h"
#include "../wire/stub_port.h"
#include "../wire/xorshift.h"
#include "sim_flow.h"
#include "soft/mem/rsoft_grace.h"
#include "soft/rsoft_post.h"

#define PATTERN_SIZE ((size_t)1 << 20) /* random bytes that all messages are taken from */

struct wire_flow {
	struct rmem_qp *req, *rsp;
	struct rsoft_qp *soft; /* of req */
	uint64_t posted, done; /* messages */
	uint64_t timer_at;     /* event that checks the timer; 0: none */
	uint64_t state;        /* of the random numbers */
	uint32_t una;          /* as counted last */
	uint32_t highest;      /* next PSN that was not sent with data */
	uint32_t *offset;      /* of the messages in flight, in the pattern */
};

struct wire {
	struct rwire_port port;
	struct sim *sim;
	struct rwire_port *inner;
	struct net_packet *arrived;
	struct net_packet *filling; /* of the last tx_get(); NULL: sent */
	struct rmem_dev *dev;
	struct rsoft_dev *soft;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_mr *mr;
	uint8_t *pattern, *target;
	size_t target_size;
	struct wire_flow *flows;
	uint32_t *flow_of; /* by QP number & qp_mask: 2 * flow + 1 for its responder */
};

static struct wire *wire_now; /* whose clock is read */

/* Virtual time in ns is the TSC of these programs: linked with --wrap. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
uint64_t __wrap_rte_get_tsc_hz(void);

uint64_t
__wrap_rte_get_tsc_hz(void)
{
	return 1000000000;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

static uint64_t
wire_clock(void)
{
	return wire_now->sim->net.now;
}

static struct wire_frame_body {
	struct rwire_frame frame;
	uint8_t data[];
} * body_of(struct net_packet *packet)
{
	return (struct wire_frame_body *)packet->body;
}

static struct rwire_frame *
wire_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct wire *wire = (struct wire *)base;
	struct wire_frame_body *body;

	/* A frame that was not filled is got again. */
	if (wire->filling == NULL)
		wire->filling = net_get(&wire->sim->net);
	body = body_of(wire->filling);
	memset(&body->frame, 0, sizeof(body->frame));
	body->frame.bth = body->frame.data = body->data + RWIRE_HEADROOM;
	body->frame.flow = (struct rwire_flow){
			.src = base->addr, .dst = *dst, .src_port = RWIRE_UDP_PORT};
	return &body->frame;
}

/* The sender is the peer of the QP that the packet is sent to. */
static void
wire_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct wire *wire = (struct wire *)base;
	struct sim *sim = wire->sim;
	struct net_packet *packet = wire->filling;
	struct sim_flow *flow;
	struct rwire_pkt pkt;
	uint32_t to;

	if (!rwire_pkt_parse(frame->bth, frame->len, &pkt))
		abort();
	wire->filling = NULL;
	to = wire->flow_of[pkt.qpn & wire->soft->qp_mask];
	packet->flow = to / 2;
	packet->psn = pkt.psn;
	packet->is_back = to % 2 == 0;
	packet->is_data = pkt.payload_len != 0;
	packet->len = frame->len + NET_OVERHEAD;
	flow = &sim->flows[packet->flow];
	/* Data of a READ are sent by its responder. */
	packet->src = packet->is_back == sim->conf.is_read ? flow->src : flow->dst;
	packet->dst = packet->is_back == sim->conf.is_read ? flow->dst : flow->src;
	if (packet->is_data)
		sim_count_sent(sim, packet->flow, pkt.psn, &wire->flows[packet->flow].highest);
	net_send(&sim->net, packet);
}

static uint32_t
wire_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct wire *wire = (struct wire *)base;

	if (n == 0 || wire->arrived == NULL)
		return 0;
	frames[0] = &body_of(wire->arrived)->frame;
	frames[0]->has_icrc = true;
	frames[0]->is_id_known = true;
	wire->arrived = NULL;
	return 1;
}

static void
wire_port_close(struct rwire_port *base)
{
	struct wire *wire = (struct wire *)base;

	wire->inner->ops->close(wire->inner);
}

static const struct rwire_port_ops wire_ops = {
		.close = wire_port_close,
		.link_is_up = rwire_port_link_is_up,
		.mcast_join = NULL, /* those of the innermost port are called */
		.mcast_leave = NULL,
		.mcast_members = NULL,
		.rx_burst = wire_rx_burst,
		.rx_grant = rwire_port_rx_grant,
		.rx_release = rwire_port_rx_release,
		.rx_sleep = rwire_port_rx_sleep,
		.tx_count = rwire_port_tx_count,
		.tx_direct = rwire_port_tx_direct,
		.tx_flush = stub_tx_flush,
		.tx_get = wire_tx_get,
		.tx_idle = rwire_port_tx_idle,
		.tx_is_late = rwire_port_tx_is_late,
		.tx_put = wire_tx_put,
		.tx_share = rwire_port_tx_share,
};

/* Slot of a message, in which nothing else is written while it is in flight. */
static uint8_t *
wire_slot(const struct sim *sim, uint32_t flow, uint64_t msg)
{
	const struct wire *wire = sim->transport;

	return wire->target +
			((size_t)flow * sim->conf.depth + msg % sim->conf.depth) *
			sim->conf.msg_size;
}

static void
wire_post(struct sim *sim, uint32_t i)
{
	struct wire *wire = sim->transport;
	struct wire_flow *flow = &wire->flows[i];
	struct rmem_send_wr wr;
	struct rmem_sge sge = {.length = sim->conf.msg_size, .lkey = wire->mr->lkey};
	uint32_t offset = (uint32_t)((uint64_t)xorshift32(&flow->state) *
					(PATTERN_SIZE - sim->conf.msg_size) >>
			32);
	uintptr_t from = (uintptr_t)wire->pattern + offset;
	uintptr_t to = (uintptr_t)wire_slot(sim, i, flow->posted);

	flow->offset[flow->posted % sim->conf.depth] = offset;
	sge.addr = sim->conf.is_read ? to : from;
	wr = rc_rdma(sim->conf.is_read ? RMEM_WR_RDMA_READ : RMEM_WR_RDMA_WRITE, &sge,
			sim->conf.is_read ? from : to, wire->mr->rkey);
	wr.wr_id = flow->posted++;
	TEST_EQ(rmem_post_send(flow->req, &wr, 1), 1);
}

/* Post what the flow may have in flight. */
static void
wire_fill(struct sim *sim, uint32_t i)
{
	const struct sim_conf *conf = &sim->conf;
	struct wire *wire = sim->transport;
	struct wire_flow *flow = &wire->flows[i];

	while (!sim->is_stopping && !sim->flows[i].has_failed &&
			flow->posted - flow->done < conf->depth &&
			(conf->nb_msgs == 0 || flow->posted < conf->nb_msgs))
		wire_post(sim, i);
}

/* A message has ended: compare its bytes. */
static void
wire_end(struct sim *sim, const struct rmem_wc *wc)
{
	struct wire *wire = sim->transport;
	uint32_t i = wire->flow_of[wc->qp_num & wire->soft->qp_mask] / 2;
	struct wire_flow *flow = &wire->flows[i];

	if (wc->status != RMEM_WC_SUCCESS) {
		TEST_ASSERT(wc->status == RMEM_WC_RETRY_EXC_ERR ||
				wc->status == RMEM_WC_WR_FLUSH_ERR);
		sim->flows[i].has_failed = true;
		return;
	}
	TEST_EQ(wc->wr_id, flow->done);
	sim->nb_checked++;
	sim->nb_wrong += memcmp(wire_slot(sim, i, flow->done),
					 wire->pattern + flow->offset[flow->done % sim->conf.depth],
					 sim->conf.msg_size) != 0;
	flow->done++;
}

/* Take the completions, post again, and let an event check the timer of the flow. */
static void
wire_after(struct sim *sim, uint32_t i)
{
	struct wire *wire = sim->transport;
	struct wire_flow *flow = &wire->flows[i];
	const struct rwire_req *req = &flow->soft->wire->req;
	struct rmem_wc wc;
	uint64_t at;

	if (rwire_psn_diff(req->una, flow->una) > 0) {
		sim_count_acked(sim, i, (uint32_t)rwire_psn_diff(req->una, flow->una));
		flow->una = req->una;
	}
	while (rsoft_post_poll(rsoft_cq_of(wire->cq), &wc, 1) == 1)
		wire_end(sim, &wc);
	wire_fill(sim, i);
	at = req->rnr_until != 0 ? req->rnr_until : req->deadline;
	if (at == 0 || sim->flows[i].has_failed || (flow->timer_at != 0 && flow->timer_at <= at))
		return;
	flow->timer_at = at;
	net_timer(&sim->net, at, i);
}

static void
wire_deliver(struct sim *sim, struct net_packet *packet)
{
	struct wire *wire = sim->transport;
	uint32_t flow = packet->flow;
	unsigned int lcore = rsoft_grace_enter();

	wire->arrived = packet;
	while (rwire_progress(wire->soft->wire, lcore) &&
			!TAILQ_EMPTY(&wire->soft->wire->reply_list))
		;
	rsoft_grace_leave(lcore);
	net_put(&sim->net, packet);
	wire_after(sim, flow);
}

static void
wire_timer(struct sim *sim, uint32_t i)
{
	struct wire *wire = sim->transport;
	struct wire_flow *flow = &wire->flows[i];
	unsigned int lcore;

	if (flow->timer_at != sim->net.now)
		return; /* an earlier one has been set since */
	flow->timer_at = 0;
	lcore = rsoft_grace_enter();
	rwire_progress(wire->soft->wire, lcore);
	rsoft_lock(&flow->soft->sq.lock);
	rsoft_post_drain(flow->soft, lcore);
	rte_ticketlock_unlock(&flow->soft->sq.lock);
	rsoft_grace_leave(lcore);
	wire_after(sim, i);
}

static void
wire_start(struct sim *sim, uint32_t i)
{
	wire_after(sim, i);
}

static void
wire_connect(struct sim *sim, uint32_t i)
{
	const struct rmem_qp_conn conn = {
			.timeout = sim->conf.timeout, .retry_cnt = sim->conf.retry_cnt};
	struct wire *wire = sim->transport;
	struct wire_flow *flow = &wire->flows[i];
	struct rmem_qp_conf conf = rc_conf(wire->cq, sim->conf.depth, 1);

	TEST_OK(rmem_qp_create(wire->pd, &conf, &flow->req));
	TEST_OK(rmem_qp_create(wire->pd, &conf, &flow->rsp));
	flow->soft = (struct rsoft_qp *)flow->req;
	/* Different ones, as real QPs have. */
	flow->una = flow->highest = rwire_psn_add(SIM_FIRST_PSN, i * 12347);
	flow->soft->psn = ((struct rsoft_qp *)flow->rsp)->psn = flow->una;
	flow->state = xorshift_state(sim->conf.net.seed + i);
	rc_connect(flow->req, flow->rsp, conn);
	rc_connect(flow->rsp, flow->req, conn);
	wire->flow_of[flow->req->qp_num & wire->soft->qp_mask] = 2 * i;
	wire->flow_of[flow->rsp->qp_num & wire->soft->qp_mask] = 2 * i + 1;
	flow->offset = calloc(sim->conf.depth, sizeof(*flow->offset));
	TEST_ASSERT(flow->offset != NULL);
}

static void
wire_open_memory(struct sim *sim)
{
	struct wire *wire = sim->transport;
	uint64_t state = xorshift_state(sim->conf.net.seed);
	uint32_t value;
	size_t i, size;

	wire->target_size = (size_t)sim->nb_flows * sim->conf.depth * sim->conf.msg_size;
	size = PATTERN_SIZE + wire->target_size;
	wire->pattern = calloc(1, size);
	TEST_ASSERT(wire->pattern != NULL && sim->conf.msg_size < PATTERN_SIZE);
	wire->target = wire->pattern + PATTERN_SIZE;
	for (i = 0; i < PATTERN_SIZE; i += sizeof(value)) {
		value = xorshift32(&state);
		memcpy(wire->pattern + i, &value, sizeof(value));
	}
	TEST_OK(rmem_mr_reg(wire->pd, wire->pattern, size, (uintptr_t)wire->pattern,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE, &wire->mr));
}

static void
wire_open(struct sim *sim)
{
	struct wire *wire = calloc(1, sizeof(*wire));
	struct rmem_cq_conf cq_conf = {.nb_cqe = sim->nb_flows * (sim->conf.depth + 1)};
	char args[128];
	uint32_t i;

	TEST_ASSERT(wire != NULL);
	sim->transport = wire;
	wire->sim = sim;
	/* This port is replaced; unlike a UDP port it can exist in several processes. */
	snprintf(args, sizeof(args),
			"ip=127.0.16.1,port=shm:sim%d,loop=1,progress=poll,mtu=%u,max_qp=%u,max_cqe=%u",
			getpid(), sim->conf.mtu, 2 * sim->nb_flows, cq_conf.nb_cqe);
	TEST_OK(rmem_dev_create("soft0", args, &wire->dev));
	wire->soft = rmem_dev_drv(wire->dev)->priv;
	wire->inner = stub_attach(wire->soft, &wire->port, &wire_ops);
	wire_now = wire;
	rwire_clock = wire_clock;
	TEST_OK(rmem_pd_alloc(wire->dev, &wire->pd));
	TEST_OK(rmem_cq_create(wire->dev, &cq_conf, &wire->cq));
	wire_open_memory(sim);
	wire->flows = calloc(sim->nb_flows, sizeof(*wire->flows));
	wire->flow_of = calloc((size_t)wire->soft->qp_mask + 1, sizeof(*wire->flow_of));
	TEST_ASSERT(wire->flows != NULL && wire->flow_of != NULL);
	for (i = 0; i < sim->nb_flows; i++)
		wire_connect(sim, i);
}

static void
wire_close(struct sim *sim)
{
	struct wire *wire = sim->transport;
	struct rmem_dev_stats stats;
	uint32_t i;

	TEST_OK(rmem_dev_stats_get(wire->dev, &stats));
	sim->timeouts = stats.wire_timeouts;
	sim->rewinds = stats.wire_retransmits;
	for (i = 0; i < sim->nb_flows; i++) {
		struct wire_flow *flow = &wire->flows[i];

		TEST_ASSERT(flow->done == flow->posted || sim->flows[i].has_failed);
		TEST_OK(rmem_qp_destroy(flow->req));
		TEST_OK(rmem_qp_destroy(flow->rsp));
		free(flow->offset);
	}
	TEST_OK(rmem_mr_dereg(wire->mr));
	TEST_OK(rmem_cq_destroy(wire->cq));
	TEST_OK(rmem_pd_dealloc(wire->pd));
	TEST_OK(rmem_dev_close(wire->dev));
	if (wire->filling != NULL)
		net_put(&sim->net, wire->filling);
	free(wire->pattern);
	free(wire->flows);
	free(wire->flow_of);
	free(wire);
}

const struct sim_transport sim_wire = {
		.open = wire_open,
		.start = wire_start,
		.deliver = wire_deliver,
		.timer = wire_timer,
		.close = wire_close,
};
