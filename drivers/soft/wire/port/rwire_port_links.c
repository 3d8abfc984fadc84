/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A port over several others, its parts: one for each port of the device, with an address of its
 * own. A packet is sent by the part of its source GID, and a received one has the GID slot of the
 * part that received it. Multicast belongs to the first part.
 *
 * Invariant: a frame belongs to the part `to`, or to that of its GID slot if it was received.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_common.h>

#include "rwire_port.h"

struct links_port {
	struct rwire_port port;
	struct rwire_port *to; /* part of the last tx_get() */
	uint32_t first;        /* part to receive from first */
	struct rwire_addr srcs[RSOFT_GID_SLOTS];
};

/* The part that sends from the GID slot that the sender has selected. */
static struct rwire_port *
links_part(const struct rwire_port *base)
{
	return base->parts[rsoft_gid_port(base->tx_slot) - 1];
}

static void
links_close(struct rwire_port *base)
{
	uint32_t i;

	for (i = 0; i < base->nb_parts; i++)
		base->parts[i]->ops->close(base->parts[i]);
	if (base->fd >= 0)
		close(base->fd);
	free(base);
}

static int
links_mcast_join(struct rwire_port *base, const struct rwire_addr *group)
{
	return base->parts[0]->ops->mcast_join(base->parts[0], group);
}

static void
links_mcast_leave(struct rwire_port *base, const struct rwire_addr *group)
{
	base->parts[0]->ops->mcast_leave(base->parts[0], group);
}

static int
links_mcast_members(struct rwire_port *base, const struct rwire_addr *group,
		struct rwire_addr members[RWIRE_MAX_MEMBERS])
{
	return base->parts[0]->ops->mcast_members(base->parts[0], group, members);
}

static uint32_t
links_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct links_port *port = (struct links_port *)base;
	uint32_t i, at = port->first, nb = 0, from;
	struct rwire_port *part;

	/* Another part first each time, so that none starves the others. */
	port->first = at + 1 < base->nb_parts ? at + 1 : 0;
	for (i = 0; i < base->nb_parts && nb < n; i++) {
		part = base->parts[at];
		from = nb;
		nb += part->ops->rx_burst(part, frames + nb, n - nb);
		for (; from < nb; from++)
			frames[from]->grh.gid_slot = rsoft_gid_slot(at + 1, 0);
		at = at + 1 < base->nb_parts ? at + 1 : 0;
	}
	return nb;
}

static void
links_rx_grant(struct rwire_port *base, const struct rwire_frame *frame, struct rsoft_qp *qp,
		uint32_t rkey)
{
	struct rwire_port *part = base->parts[rsoft_gid_port(frame->grh.gid_slot) - 1];

	part->ops->rx_grant(part, frame, qp, rkey);
}

static void
links_rx_release(struct rwire_port *base)
{
	uint32_t i;

	for (i = 0; i < base->nb_parts; i++)
		base->parts[i]->ops->rx_release(base->parts[i]);
}

static bool
links_rx_sleep(struct rwire_port *base)
{
	bool is_empty = true;
	uint32_t i;

	for (i = 0; i < base->nb_parts; i++) {
		if (!base->parts[i]->ops->rx_sleep(base->parts[i]))
			is_empty = false;
	}
	return is_empty;
}

static bool
links_tx_count(const struct rwire_port *base, const struct rwire_addr *dst, uint32_t *sent,
		uint32_t *taken)
{
	const struct rwire_port *part = links_part(base);

	return part->ops->tx_count(part, dst, sent, taken);
}

static enum rwire_copy_result
links_tx_direct(struct rwire_port *base, const struct rwire_addr *dst,
		struct rwire_copy_link *direct)
{
	struct rwire_port *part = links_part(base);

	return part->ops->tx_direct(part, dst, direct);
}

static void
links_tx_flush(struct rwire_port *base)
{
	uint32_t i;

	for (i = 0; i < base->nb_parts; i++)
		base->parts[i]->ops->tx_flush(base->parts[i]);
}

static struct rwire_frame *
links_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct links_port *port = (struct links_port *)base;

	port->to = links_part(base);
	return port->to->ops->tx_get(port->to, dst);
}

static void
links_tx_idle(struct rwire_port *base)
{
	uint32_t i;

	for (i = 0; i < base->nb_parts; i++)
		base->parts[i]->ops->tx_idle(base->parts[i]);
}

static bool
links_tx_is_late(struct rwire_port *base, uint64_t now, uint64_t wait, uint64_t deadline)
{
	struct rwire_port *to = ((struct links_port *)base)->to;

	return to->ops->tx_is_late(to, now, wait, deadline);
}

static void
links_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct rwire_port *to = ((struct links_port *)base)->to;

	to->ops->tx_put(to, frame);
}

static bool
links_tx_share(struct rwire_port *base, const uint8_t *data, uint32_t len)
{
	struct rwire_port *to = ((struct links_port *)base)->to;

	return to->ops->tx_share(to, data, len);
}

static const struct rwire_port_ops links_ops = {
		.close = links_close,
		.link_is_up = rwire_port_link_is_up, /* those of the parts are called */
		.mcast_join = links_mcast_join,
		.mcast_leave = links_mcast_leave,
		.mcast_members = links_mcast_members,
		.rx_burst = links_rx_burst,
		.rx_grant = links_rx_grant,
		.rx_release = links_rx_release,
		.rx_sleep = links_rx_sleep,
		.tx_count = links_tx_count,
		.tx_direct = links_tx_direct,
		.tx_flush = links_tx_flush,
		.tx_get = links_tx_get,
		.tx_idle = links_tx_idle,
		.tx_is_late = links_tx_is_late,
		.tx_put = links_tx_put,
		.tx_share = links_tx_share,
};

/* A descriptor that is readable while one of the parts' is; -1 if they have none, or on failure. */
static int
links_open_fd(struct rwire_port *const parts[], uint32_t nb)
{
	struct epoll_event event = {.events = EPOLLIN};
	uint32_t i;
	int fd;

	if (parts[0]->fd < 0)
		return -1;
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		return -1;
	for (i = 0; i < nb; i++) {
		if (epoll_ctl(fd, EPOLL_CTL_ADD, parts[i]->fd, &event) != 0) {
			close(fd);
			return -1;
		}
	}
	return fd;
}

int
rwire_port_links_open(struct rwire_port *const parts[], uint32_t nb, struct rwire_port **out)
{
	struct links_port *port = calloc(1, sizeof(*port));
	uint32_t i;

	if (port == NULL)
		return -ENOMEM;
	port->port = (struct rwire_port){.ops = &links_ops,
			.addr = parts[0]->addr,
			.srcs = port->srcs,
			.nb_parts = nb,
			.max_mtu = parts[0]->max_mtu,
			.has_icrc = parts[0]->has_icrc,
			.has_direct = parts[0]->has_direct,
			.has_share = parts[0]->has_share,
			.fd = links_open_fd(parts, nb)};
	if (port->port.fd < 0 && parts[0]->fd >= 0) {
		RSOFT_LOG(ERR, "ip=: epoll: %s", strerror(errno));
		free(port);
		return -ENOMEM;
	}
	for (i = 0; i < nb; i++) {
		port->port.parts[i] = parts[i];
		port->port.max_mtu = RTE_MIN(port->port.max_mtu, parts[i]->max_mtu);
		port->srcs[rsoft_gid_slot(i + 1, 0)] = parts[i]->addr;
	}
	*out = &port->port;
	return 0;
}
