/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port over a UDP socket, without privileges.
 *
 * The ICRC covers the id and the DF bit of the IPv4 header, which the kernel writes. The id is 0 if
 * the socket is not connected and must not fragment (IP_PMTUDISC_DO), so the socket is never
 * connected.
 *
 * A burst of packets of one length is sent as one message with UDP_SEGMENT, which the kernel
 * segments into packets with the ids 0, 1, 2 and so on. A receiver with UDP_GRO gets it as one
 * message.
 *
 * A socket with a unicast address receives only packets for it, so each multicast group and each
 * further GID has its own socket. If there are any, epoll selects the socket to receive from.
 * Packets are sent by the socket of their source GID.
 *
 * Peers send a UDP checksum of 0 (IBTA annex A17), also with IPv6, where the socket must permit it.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sendmmsg() */
#endif
#include <errno.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "../../base/rsoft.h"
#include "rwire_interface.h"
#include "rwire_port.h"

#define UDP_FRAMES      64
#define UDP_FRAME_SIZE  RTE_ALIGN_CEIL(RWIRE_HEADROOM + RWIRE_MAX_PKT, 64)
#define UDP_GSO_SIZE    65000 /* largest message of several packets, bytes */
#define UDP_RX_SIZE     (RWIRE_HEADROOM + 65536)
#define UDP_SOCKET_SIZE (4 * 1024 * 1024)
#define UDP_OVERHEAD    (40 + 8 + RWIRE_BTH_LEN + RWIRE_MAX_EXT_LEN + 3 + RWIRE_ICRC_LEN)
#define UDP_NB_IDS      8

/*
 * Control data of a message: segment size, as uint16_t (UDP_SEGMENT) or int (UDP_GRO); traffic
 * class (IP_TOS, IPV6_TCLASS), an int, but a byte in a received IP_TOS; and the hop limit of
 * multicast.
 */
struct udp_control {
	uint64_t words[3 * CMSG_SPACE(sizeof(int)) / sizeof(uint64_t)];
};

/* Packets to send: [first, next). */
struct udp_tx {
	uint32_t first;
	uint32_t next;
	bool has_gso;
	struct rwire_icrc_ids ids[UDP_NB_IDS]; /* by length */
	struct rwire_frame frame[UDP_FRAMES];
	struct iovec iov[UDP_FRAMES];
	struct mmsghdr msg[UDP_FRAMES];
	struct udp_control control[UDP_FRAMES];
	struct sockaddr_storage addr[UDP_FRAMES];
	uint8_t data[UDP_FRAMES][UDP_FRAME_SIZE];
};

/* Received messages: those of [next, nb) have packets left; in the next one, from offset on. */
struct udp_rx {
	uint32_t next;
	uint32_t nb;
	uint32_t offset;
	uint16_t segment; /* segment number at offset */
	uint32_t segment_size;
	uint8_t traffic_class; /* of the message at next, like segment_size */
	struct rwire_frame frame[RWIRE_RX_BURST];
	struct iovec iov[RWIRE_RX_BURST];
	struct mmsghdr msg[RWIRE_RX_BURST];
	struct udp_control control[RWIRE_RX_BURST];
	struct sockaddr_storage addr[RWIRE_RX_BURST];
	uint8_t data[RWIRE_RX_BURST][UDP_RX_SIZE];
};

/* A multicast group. */
struct udp_group {
	struct rwire_addr addr;
	int fd;
};

struct udp_port {
	struct rwire_port port; /* fd is an epoll descriptor */
	int fd;                 /* socket of the address */
	struct udp_group *groups;
	uint32_t nb_groups;
	uint32_t nb_gids; /* further GIDs */
	int rx_fd;        /* socket of the messages in rx */
	uint8_t rx_slot;  /* GID slot of the address of rx_fd; 0 for a group */
	struct rwire_addr srcs[RSOFT_GID_SLOTS];
	int gid_fds[RSOFT_GID_SLOTS]; /* sockets by GID slot; -1: none; [0] is fd */
	struct udp_tx tx;
	struct udp_rx rx;
};

static void
udp_close(struct rwire_port *base)
{
	struct udp_port *port = (struct udp_port *)base;
	uint32_t i;

	for (i = 0; i < port->nb_groups; i++)
		close(port->groups[i].fd);
	free(port->groups);
	for (i = 1; i < RSOFT_GID_SLOTS; i++) {
		if (port->gid_fds[i] >= 0)
			close(port->gid_fds[i]);
	}
	close(port->fd);
	close(base->fd);
	free(base);
}

/* Set the id that the kernel will give the packet: its index in the message. */
static void
udp_set_id(struct udp_tx *tx, struct rwire_frame *frame, uint32_t id)
{
	struct rwire_icrc_ids *ids = &tx->ids[frame->len / 4 % UDP_NB_IDS];
	uint32_t bits = frame->flow.ip_id ^ id;

	if (bits == 0 || !rwire_addr_is_ipv4(&frame->flow.dst))
		return;
	if (ids->len != frame->len)
		rwire_icrc_ids_init(ids, frame->len);
	rwire_icrc_change_id(frame->bth, ids, bits);
	frame->flow.ip_id = (uint16_t)id;
}

/* Number of packets from i on that fit in one message: all of one length, except a shorter last
 * one. */
static uint32_t
udp_group(const struct udp_tx *tx, uint32_t i)
{
	const struct rwire_frame *frame = &tx->frame[i];
	uint32_t n = 1, max = UDP_GSO_SIZE / frame->len;

	if (!tx->has_gso || frame->len < RWIRE_ICRC_LEN)
		return 1;
	for (; i + n < tx->next && n < max; n++) {
		const struct rwire_frame *next = &frame[n];

		if (next->len > frame->len || next->len < RWIRE_ICRC_LEN ||
				memcmp(&next->grh, &frame->grh, sizeof(next->grh)) != 0 ||
				!rwire_addr_is_equal(&next->flow.dst, &frame->flow.dst))
			break;
		if (next->len < frame->len)
			return n + 1;
	}
	return n;
}

static void
udp_add_control(struct msghdr *msg, void *control, int level, int type, const void *data,
		size_t size)
{
	struct cmsghdr *cmsg = RTE_PTR_ADD(control, msg->msg_controllen);

	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(cmsg), data, size);
	msg->msg_control = control;
	msg->msg_controllen += CMSG_SPACE(size);
}

/* Set fields of the IP header. Hop limit 0 selects the route's. */
static void
udp_add_grh(struct msghdr *msg, void *control, const struct rwire_frame *frame)
{
	int traffic_class = frame->grh.traffic_class, hop_limit = frame->grh.hop_limit;
	bool is_ipv4 = rwire_addr_is_ipv4(&frame->flow.dst);
	int level = is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6;

	if (traffic_class != 0)
		udp_add_control(msg, control, level, is_ipv4 ? IP_TOS : IPV6_TCLASS, &traffic_class,
				sizeof(traffic_class));
	if (hop_limit != 0)
		udp_add_control(msg, control, level, is_ipv4 ? IP_TTL : IPV6_HOPLIMIT, &hop_limit,
				sizeof(hop_limit));
}

/* Describe the packets [i, i + n) as a message. */
static void
udp_fill_msg(struct udp_tx *tx, struct mmsghdr *msg, struct udp_control *control, uint32_t i,
		uint32_t n)
{
	uint16_t size = (uint16_t)tx->frame[i].len;
	uint32_t at;

	memset(msg, 0, sizeof(*msg));
	msg->msg_hdr.msg_name = &tx->addr[i];
	msg->msg_hdr.msg_namelen = rwire_addr_to_sockaddr(
			&tx->frame[i].flow.dst, RWIRE_UDP_PORT, &tx->addr[i]);
	msg->msg_hdr.msg_iov = &tx->iov[i];
	msg->msg_hdr.msg_iovlen = n;
	for (at = 0; at < n; at++)
		udp_set_id(tx, &tx->frame[i + at], at);
	if (n != 1)
		udp_add_control(&msg->msg_hdr, control, IPPROTO_UDP, UDP_SEGMENT, &size,
				sizeof(size));
	if (unlikely((tx->frame[i].grh.traffic_class | tx->frame[i].grh.hop_limit) != 0))
		udp_add_grh(&msg->msg_hdr, control, &tx->frame[i]);
}

/* Describe the packets of one GID as messages; return their number. */
static uint32_t
udp_fill_msgs(struct udp_tx *tx)
{
	uint8_t slot = tx->frame[tx->first].grh.gid_slot;
	uint32_t i, n, nb = 0;

	for (i = tx->first; i != tx->next && tx->frame[i].grh.gid_slot == slot; i += n) {
		n = udp_group(tx, i);
		udp_fill_msg(tx, &tx->msg[nb], &tx->control[nb], i, n);
		nb++;
	}
	return nb;
}

/* Handle a failure to send the first message. */
static void
udp_tx_error(struct udp_port *port, int error)
{
	struct udp_tx *tx = &port->tx;
	uint32_t n = (uint32_t)tx->msg[0].msg_hdr.msg_iovlen;

	if (error == EINTR)
		return;
	/* The device or the kernel does not support UDP segmentation. */
	if (n > 1 && (error == EIO || error == EINVAL || error == EOPNOTSUPP)) {
		tx->has_gso = false;
		return;
	}
	/* As if the network had dropped it. */
	RSOFT_COUNT(port->port.stats.tx_dropped, n);
	tx->first += n;
}

static void
udp_tx_flush(struct rwire_port *base)
{
	struct udp_port *port = (struct udp_port *)base;
	struct udp_tx *tx = &port->tx;
	int i, n, fd;

	while (tx->first != tx->next) {
		fd = port->gid_fds[tx->frame[tx->first].grh.gid_slot];
		n = sendmmsg(fd, tx->msg, udp_fill_msgs(tx), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
			return;
		if (n < 0)
			udp_tx_error(port, errno);
		for (i = 0; i < n; i++)
			tx->first += (uint32_t)tx->msg[i].msg_hdr.msg_iovlen;
	}
	tx->first = tx->next = 0;
}

static struct rwire_frame *
udp_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct udp_tx *tx = &((struct udp_port *)base)->tx;
	struct rwire_frame *frame;

	if (tx->next == UDP_FRAMES)
		udp_tx_flush(base);
	if (tx->next == UDP_FRAMES)
		return NULL;
	frame = &tx->frame[tx->next];
	frame->flow.dst = *dst;
	frame->flow.ip_id = 0;
	frame->grh = (struct rsoft_grh){0};
	return frame;
}

static void
udp_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct udp_tx *tx = &((struct udp_port *)base)->tx;

	tx->iov[tx->next++].iov_len = frame->len;
	RSOFT_COUNT(base->stats.tx_packets, 1);
	RSOFT_COUNT(base->stats.tx_bytes, frame->len);
}

/* Set the destination address of packets received next. */
static void
udp_set_dst(struct udp_port *port, const struct rwire_addr *addr, bool is_mcast)
{
	uint32_t i;

	for (i = 0; i < RWIRE_RX_BURST; i++) {
		port->rx.frame[i].flow.dst = *addr;
		port->rx.frame[i].is_mcast = is_mcast;
	}
}

/* Select a socket with packets, in turn; or the only socket. */
static int
udp_select(struct udp_port *port)
{
	struct epoll_event event = {.data.fd = port->fd};
	const struct rwire_addr *own = &port->port.addr;
	uint32_t i;

	(void)epoll_wait(port->port.fd, &event, 1, 0);
	if (event.data.fd == port->rx_fd)
		return port->rx_fd;
	port->rx_fd = event.data.fd;
	port->rx_slot = 0;
	for (i = 0; i < port->nb_groups && port->groups[i].fd != port->rx_fd; i++)
		;
	if (i < port->nb_groups) {
		udp_set_dst(port, &port->groups[i].addr, true);
		return port->rx_fd;
	}
	for (i = 1; i < RSOFT_GID_SLOTS; i++) {
		if (port->gid_fds[i] == port->rx_fd) {
			own = &port->srcs[i];
			port->rx_slot = (uint8_t)i;
		}
	}
	udp_set_dst(port, own, false);
	return port->rx_fd;
}

static void
udp_receive(struct udp_port *port)
{
	struct udp_rx *rx = &port->rx;
	uint32_t i;
	int n;

	/* Reset the lengths that the last call has changed. */
	for (i = 0; i < rx->nb; i++) {
		rx->msg[i].msg_hdr.msg_namelen = sizeof(rx->addr[i]);
		rx->msg[i].msg_hdr.msg_controllen = sizeof(rx->control[i]);
	}
	n = recvmmsg(unlikely((port->nb_groups | port->nb_gids) != 0) ? udp_select(port) : port->fd,
			rx->msg, RWIRE_RX_BURST, MSG_DONTWAIT, NULL);
	rx->next = 0;
	rx->nb = n > 0 ? (uint32_t)n : 0;
}

/* Get the length of each packet of a message except the last, and the traffic class. */
static void
udp_read_control(struct udp_rx *rx, struct mmsghdr *msg)
{
	struct cmsghdr *cmsg;
	int value;

	rx->segment_size = msg->msg_len;
	rx->traffic_class = 0;
	for (cmsg = CMSG_FIRSTHDR(&msg->msg_hdr); cmsg != NULL;
			cmsg = CMSG_NXTHDR(&msg->msg_hdr, cmsg)) {
		if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_TOS) {
			rx->traffic_class = *CMSG_DATA(cmsg);
			continue;
		}
		memcpy(&value, CMSG_DATA(cmsg), sizeof(value));
		if (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_TCLASS)
			rx->traffic_class = (uint8_t)value;
		else if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO && value > 0)
			rx->segment_size = (uint32_t)value;
	}
}

/* Get the next packet of the received messages; false if it is too long. */
static bool
udp_take(struct udp_port *port, struct rwire_frame *frame)
{
	struct udp_rx *rx = &port->rx;
	struct mmsghdr *msg = &rx->msg[rx->next];
	const struct sockaddr_in *from = (const struct sockaddr_in *)&rx->addr[rx->next];
	uint32_t len;

	if (rx->offset == 0)
		udp_read_control(rx, msg);
	len = RTE_MIN(rx->segment_size, msg->msg_len - rx->offset);
	/* The headroom overlaps the end of the packet received before. */
	frame->bth = frame->data = rx->data[rx->next] + RWIRE_HEADROOM + rx->offset;
	frame->len = len;
	frame->grh = (struct rsoft_grh){
			.traffic_class = rx->traffic_class, .gid_slot = port->rx_slot};
	rwire_addr_from_sockaddr(&rx->addr[rx->next], &frame->flow.src);
	/* The port is at the same offset in both families. */
	frame->flow.src_port = ntohs(from->sin_port);
	/* A guess; no socket reports the id. */
	frame->flow.ip_id = rx->segment;
	RSOFT_COUNT(port->port.stats.rx_packets, 1);
	RSOFT_COUNT(port->port.stats.rx_bytes, len);
	rx->offset += len;
	rx->segment++;
	if (rx->offset == msg->msg_len) {
		rx->offset = 0;
		rx->segment = 0;
		rx->next++;
	}
	return len <= RWIRE_MAX_PKT;
}

static uint32_t
udp_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct udp_port *port = (struct udp_port *)base;
	struct udp_rx *rx = &port->rx;
	uint32_t nb = 0;

	if (rx->next == rx->nb)
		udp_receive(port);
	while (nb < n && rx->next != rx->nb) {
		frames[nb] = &rx->frame[nb];
		nb += udp_take(port, frames[nb]);
	}
	return nb;
}

/* Before a sleep on the socket: check whether packets of a message are left. */
static bool
udp_rx_sleep(struct rwire_port *base)
{
	const struct udp_port *port = (const struct udp_port *)base;

	return port->rx.next == port->rx.nb;
}

/* Set the options that a socket needs to receive packets; options that an old kernel lacks are
 * ignored. */
static void
udp_set_receive(int fd, bool is_ipv4)
{
	const int size = UDP_SOCKET_SIZE, one = 1;

	/* As large as permitted; with CAP_NET_ADMIN beyond net.core.rmem_max. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	(void)setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
	(void)setsockopt(fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
			is_ipv4 ? IP_RECVTOS : IPV6_RECVTCLASS, &one, sizeof(one));
}

/* Index of the interface with the address; 0: unknown. */
static unsigned int
udp_ifindex(const struct rwire_addr *addr)
{
	struct rwire_interface interface;

	return rwire_interface_find(addr, &interface) == 0 ? if_nametoindex(interface.name) : 0;
}

/* Bind a socket to a group, and join it on the interface of the address. False with errno set. */
static bool
udp_join_socket(const struct udp_port *port, int fd, const struct rwire_addr *group)
{
	const int zero = 0, one = 1;
	unsigned int ifindex = udp_ifindex(&port->port.addr);
	struct ip_mreqn req4 = {.imr_ifindex = (int)ifindex};
	struct ipv6_mreq req6 = {.ipv6mr_interface = ifindex};
	bool is_ipv4 = rwire_addr_is_ipv4(group);
	struct sockaddr_storage sa;
	socklen_t len = rwire_addr_to_sockaddr(group, RWIRE_UDP_PORT, &sa);

	/* Other sockets of the host may join the group, and this socket receives only its group. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0)
		return false;
	(void)setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &one, sizeof(one));
	(void)setsockopt(fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
			is_ipv4 ? IP_MULTICAST_ALL : IPV6_MULTICAST_ALL, &zero, sizeof(zero));
	udp_set_receive(fd, is_ipv4);
	if (is_ipv4) {
		memcpy(&req4.imr_multiaddr, group->gid + 12, sizeof(req4.imr_multiaddr));
		memcpy(&req4.imr_address, port->port.addr.gid + 12, sizeof(req4.imr_address));
		return bind(fd, (const struct sockaddr *)&sa, len) == 0 &&
				setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &req4,
						sizeof(req4)) == 0;
	}
	((struct sockaddr_in6 *)&sa)->sin6_scope_id = ifindex;
	memcpy(&req6.ipv6mr_multiaddr, group->gid, sizeof(req6.ipv6mr_multiaddr));
	return bind(fd, (const struct sockaddr *)&sa, len) == 0 &&
			setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &req6, sizeof(req6)) == 0;
}

static int
udp_mcast_join(struct rwire_port *base, const struct rwire_addr *group)
{
	struct udp_port *port = (struct udp_port *)base;
	struct udp_group *groups =
			reallocarray(port->groups, port->nb_groups + 1, sizeof(port->groups[0]));
	struct epoll_event event = {.events = EPOLLIN};
	char text[RWIRE_ADDR_TEXT];
	int fd, err;

	if (groups == NULL)
		return -ENOMEM;
	port->groups = groups;
	fd = socket(rwire_addr_is_ipv4(group) ? AF_INET : AF_INET6,
			SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	event.data.fd = fd;
	if (fd >= 0 && udp_join_socket(port, fd, group) &&
			epoll_ctl(base->fd, EPOLL_CTL_ADD, fd, &event) == 0) {
		groups[port->nb_groups++] = (struct udp_group){.addr = *group, .fd = fd};
		return 0;
	}
	err = errno;
	RSOFT_LOG(ERR, "multicast group %s: not joined: %s", rwire_addr_text(group, text),
			strerror(err));
	if (fd >= 0)
		close(fd);
	return err == ENOMEM || err == ENOBUFS || err == EMFILE || err == ENFILE ? -ENOMEM : -EIO;
}

/* Close a socket from which received packets may be left. */
static void
udp_close_rx(struct udp_port *port, int fd)
{
	if (fd == port->rx_fd) {
		port->rx.next = port->rx.nb;
		port->rx.offset = port->rx.segment = 0;
		port->rx_fd = port->fd;
		port->rx_slot = 0;
		udp_set_dst(port, &port->port.addr, false);
	}
	/* A close does not end its watch if a child has the socket too. */
	(void)epoll_ctl(port->port.fd, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

static void
udp_mcast_leave(struct rwire_port *base, const struct rwire_addr *group)
{
	struct udp_port *port = (struct udp_port *)base;
	uint32_t i;

	for (i = 0; !rwire_addr_is_equal(&port->groups[i].addr, group); i++)
		;
	udp_close_rx(port, port->groups[i].fd);
	port->groups[i] = port->groups[--port->nb_groups];
}

static const struct rwire_port_ops udp_ops = {
		.close = udp_close,
		.link_is_up = rwire_port_link_is_up,
		.mcast_join = udp_mcast_join,
		.mcast_leave = udp_mcast_leave,
		.mcast_members = rwire_port_mcast_members,
		.rx_burst = udp_rx_burst,
		.rx_grant = rwire_port_rx_grant,
		.rx_release = rwire_port_rx_release,
		.rx_sleep = udp_rx_sleep,
		.tx_count = rwire_port_tx_count,
		.tx_direct = rwire_port_tx_direct,
		.tx_flush = udp_tx_flush,
		.tx_get = udp_tx_get,
		.tx_idle = rwire_port_tx_idle,
		.tx_is_late = rwire_port_tx_is_late,
		.tx_put = udp_tx_put,
		.tx_share = rwire_port_tx_share,
};

/* MTU of the interface with the address; 0: unknown. */
static uint32_t
udp_interface_mtu(int fd, const struct rwire_addr *addr)
{
	struct rwire_interface interface;
	struct ifreq ifr = {0};

	if (rwire_interface_find(addr, &interface) != 0)
		return 0;
	memcpy(ifr.ifr_name, interface.name, sizeof(ifr.ifr_name));
	return ioctl(fd, SIOCGIFMTU, &ifr) == 0 ? (uint32_t)ifr.ifr_mtu : 0;
}

/* Largest path MTU whose packets fit the interface. */
static uint32_t
udp_max_mtu(int fd, const struct rwire_addr *addr)
{
	uint32_t mtu = RWIRE_MAX_MTU, link = udp_interface_mtu(fd, addr);

	if (link == 0)
		link = 1500;
	while (mtu > 256 && mtu + UDP_OVERHEAD > link)
		mtu /= 2;
	return mtu;
}

static int
udp_fail(const struct rwire_addr *addr, const char *what)
{
	char text[RWIRE_ADDR_TEXT];
	int err = errno;

	rwire_addr_text(addr, text);
	switch (err) {
	case EADDRNOTAVAIL:
		RSOFT_LOG(ERR, "ip=%s: not an address of this host", text);
		return -ENODEV;
	case EADDRINUSE:
		RSOFT_LOG(ERR,
				"ip=%s: UDP port %u is in use: another soft device has the "
				"address, or rdma_rxe is loaded in this network namespace",
				text, RWIRE_UDP_PORT);
		return -EEXIST;
	default:
		RSOFT_LOG(ERR, "ip=%s: %s: %s", text, what, strerror(err));
		if (err == EACCES || err == EPERM)
			return -EPERM;
		return err == ENOMEM || err == ENOBUFS ? -ENOMEM : -EIO;
	}
}

/* Send messages to groups by the interface of the address, and also to other sockets of this
 * host. */
static void
udp_set_mcast(int fd, const struct rwire_addr *addr)
{
	const int ifindex = (int)udp_ifindex(addr), one = 1;
	struct ip_mreqn req = {.imr_ifindex = ifindex};

	if (rwire_addr_is_ipv4(addr)) {
		memcpy(&req.imr_address, addr->gid + 12, sizeof(req.imr_address));
		(void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &req, sizeof(req));
		(void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &one, sizeof(one));
		return;
	}
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &ifindex, sizeof(ifindex));
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &one, sizeof(one));
}

static int
udp_socket(const struct rwire_addr *addr, int *out)
{
	const int size = UDP_SOCKET_SIZE;
	bool is_ipv4 = rwire_addr_is_ipv4(addr);
	int discover = is_ipv4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO, one = 1;
	struct sockaddr_storage sa;
	socklen_t sa_len = rwire_addr_to_sockaddr(addr, RWIRE_UDP_PORT, &sa);
	int fd, rc;

	/* A link-local address needs an interface, by which the socket then sends. */
	if (!is_ipv4 && IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)&sa)->sin6_addr))
		((struct sockaddr_in6 *)&sa)->sin6_scope_id = udp_ifindex(addr);
	fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return udp_fail(addr, "no socket");
	if (setsockopt(fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
			    is_ipv4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &discover,
			    sizeof(discover)) != 0 ||
			(!is_ipv4 &&
					setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &one,
							sizeof(one)) != 0) ||
			bind(fd, (const struct sockaddr *)&sa, sa_len) != 0) {
		rc = udp_fail(addr, "bind()");
		close(fd);
		return rc;
	}
	udp_set_receive(fd, is_ipv4);
	udp_set_mcast(fd, addr);
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	*out = fd;
	return 0;
}

static void
udp_init(struct udp_port *port)
{
	struct udp_tx *tx = &port->tx;
	struct udp_rx *rx = &port->rx;
	unsigned int i;
	int zero = 0;

	port->srcs[0] = port->port.addr;
	port->gid_fds[0] = port->fd;
	for (i = 1; i < RSOFT_GID_SLOTS; i++)
		port->gid_fds[i] = -1;
	/* Without these options, each message is one packet. */
	tx->has_gso = setsockopt(port->fd, IPPROTO_UDP, UDP_SEGMENT, &zero, sizeof(zero)) == 0;
	port->rx_fd = port->fd;
	for (i = 0; i < UDP_FRAMES; i++) {
		tx->frame[i].bth = tx->frame[i].data = tx->data[i] + RWIRE_HEADROOM;
		tx->frame[i].flow.src = port->port.addr;
		tx->frame[i].flow.src_port = RWIRE_UDP_PORT;
		tx->frame[i].is_id_known = true;
		tx->iov[i].iov_base = tx->frame[i].bth;
	}
	for (i = 0; i < RWIRE_RX_BURST; i++) {
		rx->frame[i].has_icrc = true;
		rx->frame[i].flow.dst = port->port.addr;
		rx->iov[i].iov_base = rx->data[i] + RWIRE_HEADROOM;
		rx->iov[i].iov_len = UDP_RX_SIZE - RWIRE_HEADROOM;
		rx->msg[i].msg_hdr.msg_iov = &rx->iov[i];
		rx->msg[i].msg_hdr.msg_iovlen = 1;
		rx->msg[i].msg_hdr.msg_name = &rx->addr[i];
		rx->msg[i].msg_hdr.msg_namelen = sizeof(rx->addr[i]);
		rx->msg[i].msg_hdr.msg_control = &rx->control[i];
		rx->msg[i].msg_hdr.msg_controllen = sizeof(rx->control[i]);
	}
}

int
rwire_port_udp_open(const struct rwire_addr *addr, struct rwire_port **out)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct udp_port *port;
	int rc, fd = -1, epoll;

	rc = udp_socket(addr, &fd);
	if (rc != 0)
		return rc;
	event.data.fd = fd;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	port = calloc(1, sizeof(*port));
	if (port == NULL || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		RSOFT_LOG(ERR, "port=udp: no memory: %zu bytes, or file descriptor", sizeof(*port));
		if (epoll >= 0)
			close(epoll);
		close(fd);
		free(port);
		return -ENOMEM;
	}
	port->port.ops = &udp_ops;
	port->port.addr = *addr;
	port->port.fd = epoll;
	port->fd = fd;
	port->port.has_icrc = true;
	port->port.has_syscall = true;
	port->port.has_interface = true;
	port->port.has_gids = true;
	port->port.max_mtu = udp_max_mtu(fd, addr);
	udp_init(port);
	*out = &port->port;
	return 0;
}

int
rwire_port_udp_gid(struct rwire_port *base, uint32_t slot, const struct rwire_addr *addr)
{
	struct udp_port *port = (struct udp_port *)base;
	struct epoll_event event = {.events = EPOLLIN};
	int rc, fd = -1;

	if (addr == NULL) {
		udp_close_rx(port, port->gid_fds[slot]);
		port->gid_fds[slot] = -1;
		port->nb_gids--;
		return 0;
	}
	rc = udp_socket(addr, &fd);
	if (rc != 0)
		return rc;
	event.data.fd = fd;
	if (epoll_ctl(base->fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		close(fd);
		return -ENOMEM;
	}
	port->srcs[slot] = *addr;
	port->gid_fds[slot] = fd;
	port->nb_gids++;
	/* The first GID of a port. */
	if (slot % RSOFT_MAX_GIDS == 0)
		base->max_mtu = RTE_MIN(base->max_mtu, udp_max_mtu(fd, addr));
	base->srcs = port->srcs;
	return 0;
}
