/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A port that wraps another port and injects faults into the packets sent: it drops, duplicates,
 * reorders, truncates and corrupts them, or lets the device fail. The same seed and packets give
 * the same faults. While a port of the device is shut (rmem-ctl), all its packets are dropped.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "../../base/rsoft.h"
#include "../../base/rsoft_fault.h"
#include "../../base/rsoft_number.h"
#include "../../chaos/rsoft_chaos.h"
#include "rwire_port.h"

#define FAULT_MAX_HELD 16

/* Fields needed to send a copy of a packet. */
struct fault_head {
	uint32_t len;
	bool is_mcast;
	struct rwire_addr src, dst;
	struct rwire_addr hop; /* address passed to tx_get() */
	struct rsoft_grh grh;
};

/* A packet held back. */
struct fault_held {
	uint32_t left; /* packets to send before it; 0: the entry is free */
	struct fault_head head;
	uint8_t data[RWIRE_MAX_PKT];
};

/* State of a port of the device. */
struct fault_link {
	bool is_shut;          /* atomic */
	bool is_down;          /* last reported state; rx_lock */
	uint64_t down_until;   /* down by a rule until then, TSC; 0: not down; atomic */
	uint64_t frozen_until; /* the same without an event */
};

struct fault_port {
	struct rwire_port port;
	struct rwire_port *inner;
	uint64_t random;
	uint32_t share[RSOFT_FAULT_NB_SHARES]; /* probability in units of 2^-32 */
	uint32_t seen;                         /* items given, as bits; the last is for seed: */
	uint32_t reorder;                      /* longest delay in packets; 0: none */
	uint64_t fatal;                        /* packets left until the device fails */
	bool is_failing;                       /* fail at the next burst; atomic */
	bool has_failed;                       /* fail() was called; rx_lock */
	struct rwire_fault_conf conf;
	struct fault_link links[RSOFT_MAX_PORTS];
	uint64_t gid_until;  /* a GID is removed until then, TSC; 0: not removed; atomic */
	uint64_t next_at;    /* time of the next rule with a time, TSC; rx_lock */
	uint64_t started;    /* TSC at creation */
	bool is_gid_removed; /* last reported state; rx_lock */
	struct fault_held held[FAULT_MAX_HELD];
};

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators". */
static uint32_t
fault_random(struct fault_port *port)
{
	port->random ^= port->random >> 12;
	port->random ^= port->random << 25;
	port->random ^= port->random >> 27;
	return (uint32_t)(port->random * UINT64_C(0x2545f4914f6cdd1d) >> 32);
}

static bool
fault_hits(struct fault_port *port, enum rsoft_fault kind)
{
	return port->share[kind] != 0 && fault_random(port) < port->share[kind];
}

static void
fault_close(struct rwire_port *base)
{
	struct fault_port *port = (struct fault_port *)base;

	port->inner->ops->close(port->inner);
	free(port);
}

/* Whether the packet's port of the device loses it. */
static bool
fault_is_shut(const struct fault_port *port, const struct rwire_frame *frame)
{
	const struct fault_link *link = &port->links[rsoft_gid_port(frame->grh.gid_slot) - 1];

	return __atomic_load_n(&link->is_shut, __ATOMIC_RELAXED) ||
			__atomic_load_n(&link->down_until, __ATOMIC_RELAXED) != 0 ||
			__atomic_load_n(&link->frozen_until, __ATOMIC_RELAXED) != 0;
}

/* Start the effect of a rule; the next received burst reports it. */
static void
fault_begin(struct fault_port *port, enum rsoft_chaos_port what,
		const struct rsoft_chaos_port_hit *hit)
{
	struct fault_link *link = &port->links[hit->port_num - 1];
	uint64_t until = rte_rdtsc() + rte_get_tsc_hz() / 1000 * hit->ms;

	if (what == RSOFT_CHAOS_DOWN)
		__atomic_store_n(&link->down_until, until, __ATOMIC_RELAXED);
	else if (what == RSOFT_CHAOS_FREEZE)
		__atomic_store_n(&link->frozen_until, until, __ATOMIC_RELAXED);
	else if (what == RSOFT_CHAOS_GID)
		__atomic_store_n(&port->gid_until, until, __ATOMIC_RELAXED);
	else if (what == RSOFT_CHAOS_FATAL)
		__atomic_store_n(&port->is_failing, true, __ATOMIC_RELAXED);
}

static void
fault_count_packet(struct fault_port *port, const struct rwire_frame *frame)
{
	struct rsoft_chaos_port_hit hit;
	enum rsoft_chaos_port what = rsoft_chaos_packet(
			port->conf.chaos, rsoft_gid_port(frame->grh.gid_slot), &hit);

	if (unlikely(what != 0))
		fault_begin(port, what, &hit);
}

/* Whether the time is over; if so, set until to 0. */
static bool
fault_is_over(uint64_t *until, uint64_t now)
{
	uint64_t value = __atomic_load_n(until, __ATOMIC_RELAXED);

	/* A rule that hits concurrently sets a later time. */
	return value != 0 && now >= value &&
			__atomic_compare_exchange_n(until, &value, 0, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED);
}

/* Report changes that rules have made to the state of the ports and the GID. */
static void
fault_report(struct fault_port *port)
{
	bool is_removed = __atomic_load_n(&port->gid_until, __ATOMIC_RELAXED) != 0, is_down;
	uint32_t i;

	for (i = 0; i < RSOFT_MAX_PORTS; i++) {
		is_down = __atomic_load_n(&port->links[i].down_until, __ATOMIC_RELAXED) != 0;
		if (is_down == port->links[i].is_down)
			continue;
		port->links[i].is_down = is_down;
		port->conf.shut(port->conf.wire, i + 1, is_down);
	}
	if (is_removed != port->is_gid_removed) {
		port->is_gid_removed = is_removed;
		port->conf.change_gid(port->conf.wire, is_removed);
	}
}

/* Execute rules with a time, end effects of rules, and report events. Under rx_lock. */
static void
fault_run_rules(struct fault_port *port)
{
	uint64_t now = rte_rdtsc(), next_ms;
	struct rsoft_chaos_port_hit hit = {.port_num = 1};
	enum rsoft_chaos_port what;
	uint32_t i;

	if (now >= port->next_at) {
		what = rsoft_chaos_time(port->conf.chaos, &hit, &next_ms);
		fault_begin(port, what, &hit);
		port->next_at = next_ms == UINT64_MAX
				? UINT64_MAX
				: port->started + rte_get_tsc_hz() / 1000 * next_ms;
	}
	/* Report a fault that has begun, even if its time is already over. */
	fault_report(port);
	for (i = 0; i < RSOFT_MAX_PORTS; i++) {
		fault_is_over(&port->links[i].frozen_until, now);
		fault_is_over(&port->links[i].down_until, now);
	}
	fault_is_over(&port->gid_until, now);
	fault_report(port);
}

/* Drop the packets of ports that are shut; return the number of the others. */
static uint32_t
fault_drop(const struct fault_port *port, struct rwire_frame *frames[], uint32_t n)
{
	uint32_t i, nb = 0;

	for (i = 0; i < n; i++) {
		if (!fault_is_shut(port, frames[i]))
			frames[nb++] = frames[i];
	}
	return nb;
}

static uint32_t
fault_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;
	struct fault_port *port = (struct fault_port *)base;
	uint32_t nb = inner->ops->rx_burst(inner, frames, n);

	if (unlikely(port->conf.chaos != NULL))
		fault_run_rules(port);
	nb = fault_drop(port, frames, nb);
	if (likely(!__atomic_load_n(&port->is_failing, __ATOMIC_RELAXED)))
		return nb;
	if (!port->has_failed)
		port->conf.fail(port->conf.wire, rte_lcore_id());
	port->has_failed = true;
	return 0;
}

static void
fault_rx_release(struct rwire_port *base)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;

	inner->ops->rx_release(inner);
}

static bool
fault_rx_sleep(struct rwire_port *base)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;

	return inner->ops->rx_sleep(inner);
}

static bool
fault_tx_count(const struct rwire_port *base, const struct rwire_addr *dst, uint32_t *sent,
		uint32_t *taken)
{
	struct rwire_port *inner = ((const struct fault_port *)base)->inner;

	rwire_port_set_tx_slot(inner, base->tx_slot);
	return inner->ops->tx_count(inner, dst, sent, taken);
}

static struct rwire_frame *
fault_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;

	return rwire_port_tx_get(inner, base->tx_slot, dst);
}

static struct fault_head
fault_head_of(const struct rwire_frame *frame)
{
	return (struct fault_head){.len = frame->len,
			.is_mcast = frame->is_mcast,
			.src = frame->flow.src,
			.dst = frame->flow.dst,
			.hop = frame->is_mcast ? frame->hop : frame->flow.dst,
			.grh = frame->grh};
}

/* Send a copy of a packet. */
static void
fault_send_copy(struct fault_port *port, const uint8_t *data, const struct fault_head *head)
{
	struct rwire_frame *frame = rwire_port_tx_get(port->inner, head->grh.gid_slot, &head->hop);

	if (frame == NULL)
		return;
	frame->is_mcast = head->is_mcast;
	frame->flow.src = head->src;
	frame->flow.dst = head->dst;
	frame->grh = head->grh;
	memcpy(frame->bth, data, head->len);
	frame->len = head->len;
	port->inner->ops->tx_put(port->inner, frame);
	frame->is_mcast = false;
}

/* Count a packet or a flush, and send the packets that were held long enough. */
static void
fault_release(struct fault_port *port)
{
	unsigned int i;

	for (i = 0; i < FAULT_MAX_HELD; i++) {
		struct fault_held *held = &port->held[i];

		if (held->left != 0 && --held->left == 0)
			fault_send_copy(port, held->data, &held->head);
	}
}

/* Hold back one packet in 8, if an entry is free. */
static bool
fault_hold(struct fault_port *port, const struct rwire_frame *frame)
{
	unsigned int i;

	if (port->reorder == 0 || (fault_random(port) & 7) != 0)
		return false;
	for (i = 0; i < FAULT_MAX_HELD && port->held[i].left != 0; i++)
		;
	if (i == FAULT_MAX_HELD)
		return false;
	port->held[i].left = 1 + fault_random(port) % port->reorder;
	port->held[i].head = fault_head_of(frame);
	memcpy(port->held[i].data, frame->bth, frame->len);
	return true;
}

static void
fault_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct fault_port *port = (struct fault_port *)base;
	const struct fault_head head = fault_head_of(frame);
	uint8_t copy[RWIRE_MAX_PKT];
	uint32_t len = frame->len;
	bool is_twice;

	if (port->fatal == 0) {
		__atomic_store_n(&port->is_failing, true, __ATOMIC_RELAXED);
		return;
	}
	port->fatal--;
	if (unlikely(port->conf.chaos != NULL))
		fault_count_packet(port, frame);
	if (fault_is_shut(port, frame))
		return;
	if (fault_hits(port, RSOFT_FAULT_LOSS) || fault_hold(port, frame)) {
		fault_release(port);
		return;
	}
	is_twice = fault_hits(port, RSOFT_FAULT_DUP);
	if (is_twice)
		memcpy(copy, frame->bth, len);
	if (fault_hits(port, RSOFT_FAULT_CORRUPT))
		frame->bth[fault_random(port) % len] ^= (uint8_t)(1u << (fault_random(port) & 7));
	if (fault_hits(port, RSOFT_FAULT_TRUNC))
		frame->len = 1 + fault_random(port) % (len - 1);
	port->inner->ops->tx_put(port->inner, frame);
	if (is_twice)
		fault_send_copy(port, copy, &head);
	fault_release(port);
}

static void
fault_tx_flush(struct rwire_port *base)
{
	struct fault_port *port = (struct fault_port *)base;

	/* Count the flush too: there may be no packet for a long time. */
	fault_release(port);
	port->inner->ops->tx_flush(port->inner);
}

static void
fault_tx_idle(struct rwire_port *base)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;

	inner->ops->tx_idle(inner);
}

static bool
fault_tx_is_late(struct rwire_port *base, uint64_t now, uint64_t wait, uint64_t deadline)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;

	return inner->ops->tx_is_late(inner, now, wait, deadline);
}

static const struct rwire_port_ops fault_ops = {
		.close = fault_close,
		.link_is_up = rwire_port_link_is_up,
		.mcast_join = NULL, /* the innermost port's are called */
		.mcast_leave = NULL,
		.mcast_members = NULL,
		.rx_burst = fault_rx_burst,
		.rx_grant = rwire_port_rx_grant,
		.rx_release = fault_rx_release,
		.rx_sleep = fault_rx_sleep,
		.tx_count = fault_tx_count,
		.tx_direct = rwire_port_tx_direct,
		.tx_flush = fault_tx_flush,
		.tx_get = fault_tx_get,
		.tx_idle = fault_tx_idle,
		.tx_is_late = fault_tx_is_late,
		.tx_put = fault_tx_put,
		.tx_share = rwire_port_tx_share,
};

/* Parse "name:value". False: not a fault, given twice, or the value is out of range. */
static bool
fault_parse_part(struct fault_port *port, const char *part)
{
	const char *value = part + strlen("seed:");
	bool is_seed = strncmp(part, "seed:", strlen("seed:")) == 0;
	enum rsoft_fault fault = is_seed ? RSOFT_FAULT_NB : rsoft_fault_of(part, &value);
	double number;
	char *end;

	if ((fault == RSOFT_FAULT_NB && !is_seed) || *value == '\0' ||
			(port->seen & UINT32_C(1) << fault) != 0)
		return false;
	number = rsoft_strtod(value, &end);
	if (*end != '\0' || !(number >= 0 && number <= (double)UINT32_MAX))
		return false;
	port->seen |= UINT32_C(1) << fault;
	switch (fault) {
	case RSOFT_FAULT_NB:
		port->random = (uint64_t)number * 2 + 1;
		return true;
	case RSOFT_FAULT_FATAL:
		port->fatal = (uint64_t)number;
		return true;
	case RSOFT_FAULT_REORDER:
		port->reorder = (uint32_t)number;
		return number <= FAULT_MAX_HELD;
	default:
		if (number > 1)
			return false;
		port->share[fault] = (uint32_t)(number * (double)UINT32_MAX);
		return true;
	}
}

static int
fault_parse(struct fault_port *port, const char *faults)
{
	char *copy = strdup(faults), *part, *rest = copy;
	int rc = copy == NULL ? -ENOMEM : 0;

	while (rc == 0 && (part = strsep(&rest, ";")) != NULL) {
		if (fault_parse_part(port, part))
			continue;
		RSOFT_LOG(ERR,
				"fault=%s: '%s' is not loss:P, dup:P, corrupt:P or trunc:P with P 0 to "
				"1, reorder:N with N 0 to %u, fatal:N, seed:N, each once",
				faults, part, FAULT_MAX_HELD);
		rc = -EINVAL;
	}
	free(copy);
	return rc;
}

int
rwire_port_fault_open(const struct rwire_fault_conf *conf, struct rwire_port **io)
{
	struct fault_port *port = calloc(1, sizeof(*port));
	int rc;

	if (port == NULL)
		return -ENOMEM;
	port->inner = *io;
	port->random = 1;
	port->fatal = UINT64_MAX;
	port->conf = *conf;
	port->started = rte_rdtsc();
	rc = conf->faults[0] != '\0' ? fault_parse(port, conf->faults) : 0;
	if (rc != 0) {
		free(port);
		return rc;
	}
	port->port.ops = &fault_ops;
	port->port.addr = port->inner->addr;
	port->port.max_mtu = port->inner->max_mtu;
	port->port.has_icrc = port->inner->has_icrc;
	port->port.fd = port->inner->fd;
	*io = &port->port;
	return 0;
}

void
rwire_port_fault_shut(struct rwire_port *base, uint32_t port_num, bool is_shut)
{
	struct fault_port *port = (struct fault_port *)base;

	__atomic_store_n(&port->links[port_num - 1].is_shut, is_shut, __ATOMIC_RELAXED);
}

void
rwire_port_fault_end(struct rwire_port *base, uint32_t port_num, bool is_down)
{
	struct fault_port *port = (struct fault_port *)base;
	struct fault_link *link = &port->links[port_num - 1];

	if (!is_down) {
		__atomic_store_n(&link->frozen_until, 0, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(&link->down_until, 0, __ATOMIC_RELAXED);
	fault_report(port);
}

void
rwire_port_fault_fail(struct rwire_port *base)
{
	struct fault_port *port = (struct fault_port *)base;

	__atomic_store_n(&port->is_failing, true, __ATOMIC_RELAXED);
}
