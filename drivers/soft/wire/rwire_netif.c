/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Links; see rwire_netif.h. rtnetlink reports every change, even if a link was down only between
 * two reads.
 */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "port/rwire_interface.h"
#include "rwire.h"

/* IFF_LOWER_UP of <linux/if.h>, which can't be included together with <net/if.h>. */
#define LOWER_UP (UINT32_C(1) << 16)

/*
 * Whether an interface is up and has a carrier, as for rdma_rxe. IFF_RUNNING, the operational
 * state, may follow the carrier a second later.
 */
static bool
is_up(uint32_t flags)
{
	return (flags & IFF_UP) != 0 && (flags & LOWER_UP) != 0;
}

/* Report the state of the host if it differs from the last reported one. */
static void
set_state(struct rwire *wire, struct rwire_netif *netif, uint32_t found)
{
	const uint32_t state = netif->shut != 0 ? found & ~RWIRE_NETIF_UP : found;
	const uint32_t changed = netif->state ^ state;
	char text[RWIRE_ADDR_TEXT];

	netif->found = found;
	netif->state = state;
	if (changed == 0)
		return;
	RSOFT_LOG(NOTICE, "ip=%s: port is %s, %s address", rwire_addr_text(&netif->addr, text),
			state & RWIRE_NETIF_UP ? "active" : "down",
			state & RWIRE_NETIF_GID ? "with its" : "without");
	if (changed & RWIRE_NETIF_UP)
		rmem_dev_async_event(wire->base_dev,
				state & RWIRE_NETIF_UP ? RMEM_ASYNC_PORT_ACTIVE
						       : RMEM_ASYNC_PORT_ERR,
				netif->port_num);
	if (changed & RWIRE_NETIF_GID)
		rmem_dev_async_event(wire->base_dev, RMEM_ASYNC_GID_CHANGE, netif->port_num);
}

/* Network namespace of this thread; 0: unknown. */
static uint64_t
netns_of_thread(void)
{
	struct stat st;

	return stat("/proc/thread-self/ns/net", &st) == 0 ? st.st_ino : 0;
}

/* Read the current state; the parts that can't be read keep their value. */
static uint32_t
scan(struct rwire_netif *netif, uint32_t unknown)
{
	struct rwire_interface interface;
	int rc = -EIO;
	uint32_t ifindex;

	/* A thread that has called setns() would read the interfaces of another namespace. */
	if (netns_of_thread() == netif->netns)
		rc = rwire_interface_find(&netif->addr, &interface);

	if (rc != 0)
		return rc == -ENOENT ? netif->found & ~RWIRE_NETIF_GID : unknown;
	ifindex = if_nametoindex(interface.name);
	if (ifindex != 0)
		netif->ifindex = ifindex;
	return RWIRE_NETIF_GID | (is_up(interface.flags) ? RWIRE_NETIF_UP : 0);
}

/* Whether the message is about the address of the port. */
static bool
is_own_addr(const struct rwire_netif *netif, struct nlmsghdr *msg)
{
	struct ifaddrmsg *ifa = NLMSG_DATA(msg);
	size_t len = IFA_PAYLOAD(msg), size = ifa->ifa_family == AF_INET ? 4 : 16;
	struct rwire_addr addr;
	struct rtattr *attr;
	bool has_local = false, is_own = false;

	memset(&addr, 0, sizeof(addr));
	if (size == 4)
		addr.gid[10] = addr.gid[11] = 0xff;
	for (attr = IFA_RTA(ifa); RTA_OK(attr, len) && !has_local; attr = RTA_NEXT(attr, len)) {
		if ((attr->rta_type != IFA_LOCAL && attr->rta_type != IFA_ADDRESS) ||
				RTA_PAYLOAD(attr) != size)
			continue;
		/* For an interface with a peer, IFA_ADDRESS is the address of the peer. */
		has_local = attr->rta_type == IFA_LOCAL;
		memcpy(addr.gid + sizeof(addr.gid) - size, RTA_DATA(attr), size);
		is_own = rwire_addr_covers(&addr, &netif->addr);
	}
	return is_own;
}

static void
take_message(struct rwire *wire, struct rwire_netif *netif, struct nlmsghdr *msg)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(msg);
	/* Another family: the interface became a port of a bridge, or no longer is one. */
	bool is_link = (uint32_t)ifi->ifi_index == netif->ifindex && ifi->ifi_family == AF_UNSPEC;

	switch (msg->nlmsg_type) {
	case RTM_NEWLINK:
		if (is_link && is_up(ifi->ifi_flags))
			set_state(wire, netif, netif->found | RWIRE_NETIF_UP);
		else if (is_link)
			set_state(wire, netif, netif->found & ~RWIRE_NETIF_UP);
		break;
	case RTM_DELLINK:
		if (is_link)
			set_state(wire, netif, netif->found & ~RWIRE_NETIF_UP);
		break;
	case RTM_DELADDR:
		if (!is_own_addr(netif, msg))
			break;
		set_state(wire, netif, netif->found & ~RWIRE_NETIF_GID);
		/* Another address in 127.0.0.0/8 may remain. */
		set_state(wire, netif, scan(netif, netif->found));
		break;
	case RTM_NEWADDR:
		if (is_own_addr(netif, msg))
			set_state(wire, netif, scan(netif, netif->found | RWIRE_NETIF_GID));
		break;
	default:
		break;
	}
}

static void
read_messages(struct rwire *wire, struct rwire_netif *netif)
{
	union {
		struct nlmsghdr msg;
		uint8_t bytes[16384];
	} buf;
	bool is_lost = false;
	struct nlmsghdr *msg;
	ssize_t n;
	int len;

	for (;;) {
		n = recv(netif->fd, &buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0 && errno == ENOBUFS) {
			is_lost = true;
			continue;
		}
		if (n <= 0)
			break;
		for (len = (int)n, msg = &buf.msg; NLMSG_OK(msg, (uint32_t)len);
				msg = NLMSG_NEXT(msg, len))
			take_message(wire, netif, msg);
	}
	/* Scan last: lost messages are later than the ones read. */
	if (is_lost)
		set_state(wire, netif, scan(netif, netif->found));
}

/* Under the lock. */
static void
read_link(struct rwire *wire, struct rwire_netif *netif)
{
	struct rwire_port *port = rwire_port_part(wire->inner, netif->port_num);
	int state;

	/* A thread cancelled in a system call would keep the locks. */
	state = rsoft_cancel_disable();
	if (netif->fd >= 0)
		read_messages(wire, netif);
	else
		set_state(wire, netif,
				RWIRE_NETIF_GID |
						(port->ops->link_is_up(port) ? RWIRE_NETIF_UP : 0));
	rsoft_cancel_restore(state);
}

static void
close_link(struct rwire_netif *netif)
{
	if (netif->fd >= 0)
		close(netif->fd);
	netif->fd = -1;
}

void
rwire_netif_init(struct rwire *wire)
{
	uint32_t i;

	for (i = 0; i < RSOFT_MAX_PORTS; i++) {
		rte_ticketlock_init(&wire->netif[i].lock);
		wire->netif[i].fd = -1;
	}
}

void
rwire_netif_open(struct rwire *wire, uint32_t port_num)
{
	const struct sockaddr_nl sa = {
			.nl_family = AF_NETLINK,
			.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	struct rwire_netif *netif = &wire->netif[port_num - 1];
	struct rwire_port *port = wire->inner, *part;
	uint32_t state;

	netif->port_num = port_num;
	netif->addr = port_num == 1 ? port->addr : port->srcs[rsoft_gid_slot(port_num, 0)];
	netif->state = RWIRE_NETIF_UP | RWIRE_NETIF_GID;
	part = rwire_port_part(port, port_num);
	if (!part->ops->link_is_up(part))
		netif->state = RWIRE_NETIF_GID;
	netif->found = netif->state;
	if (!port->has_interface)
		return;
	/* Bind before reading the state, so that no change is missed. */
	netif->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (netif->fd < 0 || bind(netif->fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0) {
		RSOFT_LOG(INFO, "ip=: no events of the interface: %s", strerror(errno));
		close_link(netif);
		return;
	}
	netif->netns = netns_of_thread();
	state = scan(netif, netif->state);
	if ((state & RWIRE_NETIF_GID) && netif->ifindex != 0)
		netif->found = netif->state = state;
	else
		close_link(netif);
}

void
rwire_netif_close(struct rwire *wire)
{
	uint32_t i;

	for (i = 0; i < RSOFT_MAX_PORTS; i++)
		close_link(&wire->netif[i]);
}

void
rwire_netif_poll(struct rwire *wire)
{
	uint32_t i;

	for (i = 0; i < wire->dev->tables.nb_ports; i++) {
		if (!rte_ticketlock_trylock(&wire->netif[i].lock))
			continue;
		read_link(wire, &wire->netif[i]);
		rte_ticketlock_unlock(&wire->netif[i].lock);
	}
}

uint32_t
rwire_netif_get(struct rwire *wire, uint32_t port_num, uint32_t *ifindex)
{
	struct rwire_netif *netif = &wire->netif[port_num - 1];
	uint32_t state;

	rsoft_lock(&netif->lock);
	read_link(wire, netif);
	state = netif->state;
	if (ifindex != NULL)
		*ifindex = netif->ifindex;
	rte_ticketlock_unlock(&netif->lock);
	return state;
}

void
rwire_netif_shut(struct rwire *wire, uint32_t port_num, uint32_t by, bool is_shut)
{
	struct rwire_netif *netif = &wire->netif[port_num - 1];

	rsoft_lock(&netif->lock);
	netif->shut = is_shut ? netif->shut | by : netif->shut & ~by;
	set_state(wire, netif, netif->found);
	rte_ticketlock_unlock(&netif->lock);
}
