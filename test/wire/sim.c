/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A network in memory; see sim.h. */

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "sim.h"
#include "stub_port.h"
#include "xorshift.h"

#define MAX_PACKETS 1024
#define RX_FRAMES   RWIRE_RX_BURST

struct packet {
	uint64_t at; /* when it arrives */
	uint64_t number;
	uint32_t len;
	bool is_used;
	uint8_t to;
	uint8_t traffic_class;
	struct rwire_flow flow;
	uint8_t data[RWIRE_MAX_PKT];
};

struct sim_port {
	struct rwire_port port;
	struct rwire_port *inner;
	struct stub_frame tx;
	struct stub_frame rx[RX_FRAMES];
};

struct sim_counts sim_counts;
struct sim_direct sim_direct;
static struct sim_port ports[2];
static struct packet packets[MAX_PACKETS];
static struct sim_faults faults;
static uint64_t now, step, next_number, state;

uint32_t
sim_random(uint32_t below)
{
	return (uint32_t)((uint64_t)xorshift32(&state) * below >> 32);
}

static uint64_t
sim_clock(void)
{
	return now;
}

static bool
hits(uint32_t share)
{
	return share != 0 && xorshift32(&state) < share;
}

static void
put_packet(unsigned int to, const struct rwire_frame *frame, uint64_t delay)
{
	struct packet *packet = packets;

	while (packet < packets + MAX_PACKETS && packet->is_used)
		packet++;
	if (packet == packets + MAX_PACKETS)
		return; /* one more that is lost */
	packet->at = now + delay;
	packet->number = next_number++;
	packet->len = frame->len;
	packet->to = (uint8_t)to;
	packet->flow = frame->flow;
	packet->traffic_class = frame->grh.traffic_class;
	memcpy(packet->data, frame->bth, frame->len);
	packet->is_used = true;
}

static uint64_t
random_delay(void)
{
	return step * (1 + sim_random(faults.delay_us + 1));
}

static struct rwire_frame *
sim_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	return stub_tx_get(base, &((struct sim_port *)base)->tx, dst);
}

static void
sim_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	unsigned int to = base == &ports[0].port;

	sim_counts.sent++;
	sim_counts.sent_of[frame->grh.traffic_class]++;
	if (hits(faults.loss)) {
		sim_counts.lost++;
		return;
	}
	if (hits(faults.dup)) {
		sim_counts.dups++;
		put_packet(to, frame, random_delay());
	}
	if (hits(faults.corrupt)) {
		sim_counts.damaged++;
		frame->bth[sim_random(frame->len)] ^= (uint8_t)(1u << sim_random(8));
	}
	if (hits(faults.trunc)) {
		sim_counts.damaged++;
		frame->len = 1 + sim_random(frame->len - 1);
	}
	put_packet(to, frame, random_delay());
}

/* The packet that arrives next at a device. */
static struct packet *
next_packet(unsigned int to)
{
	struct packet *best = NULL;
	unsigned int i;

	for (i = 0; i < MAX_PACKETS; i++) {
		struct packet *packet = &packets[i];

		if (packet->is_used && packet->to == to &&
				(best == NULL || packet->at < best->at ||
						(packet->at == best->at &&
								packet->number < best->number)))
			best = packet;
	}
	return best;
}

static uint32_t
sim_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct sim_port *port = (struct sim_port *)base;
	unsigned int to = base == &ports[1].port;
	struct packet *packet;
	uint32_t i;

	for (i = 0; i < n && i < RX_FRAMES; i++) {
		packet = next_packet(to);
		if (packet == NULL || packet->at > now)
			break;
		packet->is_used = false;
		frames[i] = stub_rx(&port->rx[i], packet->len, true, &packet->flow);
		memcpy(frames[i]->bth, packet->data, packet->len);
		frames[i]->grh.traffic_class = packet->traffic_class;
	}
	return i;
}

static void
sim_close(struct rwire_port *base)
{
	struct sim_port *port = (struct sim_port *)base;

	port->inner->ops->close(port->inner);
}

static enum rwire_copy_result
sim_tx_direct(struct rwire_port *base, const struct rwire_addr *dst, struct rwire_copy_link *direct)
{
	struct rwire *wire = rsoft_domain->dev[0]->wire;

	RTE_SET_USED(dst);
	if (!sim_direct.is_on || base != &ports[0].port)
		return RWIRE_COPY_NO;
	sim_direct.nb_received += rte_ticketlock_is_locked(&wire->rx_lock);
	if (!sim_direct.has_grant)
		return RWIRE_COPY_ASK;
	return rwire_copy_begin(&sim_direct.link, &sim_direct.shared, direct);
}

static const struct rwire_port_ops sim_ops = {
		.close = sim_close,
		.link_is_up = rwire_port_link_is_up,
		.mcast_join = NULL, /* those of the innermost port are called */
		.mcast_leave = NULL,
		.mcast_members = NULL,
		.rx_burst = sim_rx_burst,
		.rx_grant = rwire_port_rx_grant,
		.rx_release = rwire_port_rx_release,
		.rx_sleep = rwire_port_rx_sleep,
		.tx_count = rwire_port_tx_count,
		.tx_direct = sim_tx_direct,
		.tx_flush = stub_tx_flush,
		.tx_get = sim_tx_get,
		.tx_idle = rwire_port_tx_idle,
		.tx_is_late = rwire_port_tx_is_late,
		.tx_put = sim_tx_put,
		.tx_share = rwire_port_tx_share,
};

void
sim_attach(unsigned int i, struct rsoft_dev *dev)
{
	struct sim_port *port = &ports[i];

	memset(port, 0, sizeof(*port));
	port->inner = stub_attach(dev, &port->port, &sim_ops);
	port->port.has_direct = true;
}

void
sim_start(uint64_t seed, const struct sim_faults *wanted)
{
	state = xorshift_state(seed);
	faults = *wanted;
	step = rte_get_tsc_hz() / 1000000;
	now = now == 0 ? 1000 * rte_get_tsc_hz() : now;
	rwire_clock = sim_clock;
	sim_clear();
}

void
sim_clear(void)
{
	unsigned int i;

	for (i = 0; i < MAX_PACKETS; i++)
		packets[i].is_used = false;
}

/* Encode and send a packet; its ICRC is wrong with is_bad. */
static void
inject(unsigned int to, const struct rwire_addr *src, struct rwire_pkt *pkt, const void *payload,
		uint8_t traffic_class, bool is_bad)
{
	uint8_t data[RWIRE_HEADROOM + RWIRE_MAX_PKT];
	struct rwire_frame frame = {.bth = data + RWIRE_HEADROOM,
			.grh = {.traffic_class = traffic_class},
			.flow = {.src = *src, .dst = ports[to].port.addr}};

	if (pkt->payload_len != 0)
		memcpy(frame.bth + rwire_hdr_len(rwire_pkt_info(pkt)), payload, pkt->payload_len);
	frame.len = rwire_pkt_build(frame.bth, pkt);
	rwire_icrc_set(frame.bth, frame.len, &frame.flow);
	frame.bth[frame.len - 1] ^= is_bad;
	put_packet(to, &frame, 0);
}

void
sim_inject(unsigned int to, const struct rwire_addr *src, struct rwire_pkt *pkt,
		const void *payload, bool is_good)
{
	inject(to, src, pkt, payload, 0, !is_good);
}

void
sim_inject_class(unsigned int to, const struct rwire_addr *src, struct rwire_pkt *pkt,
		const void *payload, uint8_t traffic_class)
{
	inject(to, src, pkt, payload, traffic_class, false);
}

bool
sim_take(unsigned int to, struct rwire_pkt *pkt)
{
	struct packet *packet = next_packet(to);

	if (packet == NULL)
		return false;
	packet->is_used = false;
	return rwire_pkt_parse(packet->data, packet->len, pkt);
}

void
sim_step(bool is_idle)
{
	now += is_idle ? 100 * step : step;
}

void
sim_jump(int64_t seconds)
{
	now += (uint64_t)seconds * rte_get_tsc_hz();
}
