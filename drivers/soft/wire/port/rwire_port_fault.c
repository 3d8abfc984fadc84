/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A port that wraps another one and injects faults into the packets sent: it loses, duplicates,
 * reorders, truncates and corrupts them, or lets the device fail. The same seed and packets give
 * the same faults. While it is shut, no packet passes (rmem-ctl).
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "../../base/rsoft.h"
#include "../../base/rsoft_number.h"
#include "rwire_port.h"

#define FAULT_MAX_HELD 16

enum fault_kind {
	FAULT_LOSS,
	FAULT_DUP,
	FAULT_CORRUPT,
	FAULT_TRUNC,
	FAULT_KIND_NB,
};

static const char *const fault_names[FAULT_KIND_NB] = {"loss", "dup", "corrupt", "trunc"};

/* Fields of a packet for a copy of it. */
struct fault_head {
	uint32_t len;
	bool is_mcast;
	struct rwire_addr src, dst;
	struct rwire_addr hop; /* that of tx_get() */
	struct rsoft_grh grh;
};

/* A packet that is sent later. */
struct fault_held {
	uint32_t left; /* packets to send earlier; 0: the entry is free */
	struct fault_head head;
	uint8_t data[RWIRE_MAX_PKT];
};

struct fault_port {
	struct rwire_port port;
	struct rwire_port *inner;
	uint64_t random;
	uint32_t share[FAULT_KIND_NB]; /* of 2^32 */
	uint32_t reorder;              /* longest delay in packets; 0: none */
	uint64_t fatal;                /* packets left until the device fails */
	bool is_failing;               /* none is left; atomic */
	bool is_shut;                  /* atomic */
	bool has_failed;               /* by fail(); rx_lock */
	rwire_fail_t fail;
	struct rwire *wire;
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
fault_hits(struct fault_port *port, enum fault_kind kind)
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

static uint32_t
fault_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;
	struct fault_port *port = (struct fault_port *)base;
	uint32_t nb = inner->ops->rx_burst(inner, frames, n);

	if (__atomic_load_n(&port->is_shut, __ATOMIC_RELAXED))
		nb = 0;
	if (likely(!__atomic_load_n(&port->is_failing, __ATOMIC_RELAXED)))
		return nb;
	if (!port->has_failed)
		port->fail(port->wire, rte_lcore_id());
	port->has_failed = true;
	return 0;
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
	const struct rwire_port *inner = ((const struct fault_port *)base)->inner;

	return inner->ops->tx_count(inner, dst, sent, taken);
}

static struct rwire_frame *
fault_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;

	return inner->ops->tx_get(inner, dst);
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
	struct rwire_frame *frame = port->inner->ops->tx_get(port->inner, &head->hop);

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

/* Count a packet, or a flush, and send the packets that were held long enough. */
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

/* Hold one packet of 8, if an entry is free. */
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
	if (__atomic_load_n(&port->is_shut, __ATOMIC_RELAXED))
		return;
	if (fault_hits(port, FAULT_LOSS) || fault_hold(port, frame)) {
		fault_release(port);
		return;
	}
	is_twice = fault_hits(port, FAULT_DUP);
	if (is_twice)
		memcpy(copy, frame->bth, len);
	if (fault_hits(port, FAULT_CORRUPT))
		frame->bth[fault_random(port) % len] ^= (uint8_t)(1u << (fault_random(port) & 7));
	if (fault_hits(port, FAULT_TRUNC))
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

	/* No packet may follow for a long time. */
	fault_release(port);
	port->inner->ops->tx_flush(port->inner);
}

static void
fault_tx_idle(struct rwire_port *base)
{
	struct rwire_port *inner = ((struct fault_port *)base)->inner;

	inner->ops->tx_idle(inner);
}

static const struct rwire_port_ops fault_ops = {
		.close = fault_close,
		.link_is_up = rwire_port_link_is_up,
		.mcast_join = NULL, /* those of the innermost port are called */
		.mcast_leave = NULL,
		.mcast_members = NULL,
		.rx_burst = fault_rx_burst,
		.rx_grant = rwire_port_rx_grant,
		.rx_sleep = fault_rx_sleep,
		.tx_count = fault_tx_count,
		.tx_direct = rwire_port_tx_direct,
		.tx_flush = fault_tx_flush,
		.tx_get = fault_tx_get,
		.tx_idle = fault_tx_idle,
		.tx_is_late = rwire_port_tx_is_late,
		.tx_put = fault_tx_put,
		.tx_share = rwire_port_tx_share,
};

/* Parse "name:value"; false: not a fault, or the value is out of range. */
static bool
fault_parse_part(struct fault_port *port, const char *part)
{
	const char *value = strchr(part, ':');
	size_t len = value == NULL ? 0 : (size_t)(value - part);
	double number;
	unsigned int i;
	char *end;

	if (len == 0 || value[1] == '\0')
		return false;
	number = rsoft_strtod(value + 1, &end);
	if (*end != '\0' || !(number >= 0 && number <= (double)UINT32_MAX))
		return false;
	if (strncmp(part, "seed", len) == 0 && len == 4) {
		port->random = (uint64_t)number * 2 + 1;
		return true;
	}
	if (strncmp(part, "fatal", len) == 0 && len == 5) {
		port->fatal = (uint64_t)number;
		return true;
	}
	if (strncmp(part, "reorder", len) == 0 && len == 7) {
		port->reorder = (uint32_t)number;
		return number <= FAULT_MAX_HELD;
	}
	for (i = 0; i < FAULT_KIND_NB; i++) {
		if (strlen(fault_names[i]) == len && strncmp(part, fault_names[i], len) == 0) {
			if (number > 1)
				return false;
			port->share[i] = (uint32_t)(number * (double)UINT32_MAX);
			return true;
		}
	}
	return false;
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
				"1, reorder:N with N 0 to %u, fatal:N, seed:N",
				faults, part, FAULT_MAX_HELD);
		rc = -EINVAL;
	}
	free(copy);
	return rc;
}

int
rwire_port_fault_open(
		const char *faults, rwire_fail_t fail, struct rwire *wire, struct rwire_port **io)
{
	struct fault_port *port = calloc(1, sizeof(*port));
	int rc;

	if (port == NULL)
		return -ENOMEM;
	port->inner = *io;
	port->random = 1;
	port->fatal = UINT64_MAX;
	port->fail = fail;
	port->wire = wire;
	rc = faults[0] != '\0' ? fault_parse(port, faults) : 0;
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
rwire_port_fault_shut(struct rwire_port *base, bool is_shut)
{
	struct fault_port *port = (struct fault_port *)base;

	__atomic_store_n(&port->is_shut, is_shut, __ATOMIC_RELAXED);
}

void
rwire_port_fault_fail(struct rwire_port *base)
{
	struct fault_port *port = (struct fault_port *)base;

	__atomic_store_n(&port->is_failing, true, __ATOMIC_RELAXED);
}
