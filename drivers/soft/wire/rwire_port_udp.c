/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port over a UDP socket, without privileges.
 *
 * The ICRC covers the id and the DF bit of the IPv4 header, which the kernel writes. For a socket
 * that is not connected and must not fragment (IP_PMTUDISC_DO) the id is 0: never connect it.
 *
 * Others send a UDP checksum of 0 (IBTA annex A17), with IPv6 too, where a socket must permit it.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sendmmsg() */
#endif
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "../rsoft.h"
#include "rwire_port.h"

#define UDP_TX_FRAMES   64
#define UDP_FRAME_SIZE  RTE_ALIGN_CEIL(RWIRE_HEADROOM + RWIRE_MAX_PKT, 64)
#define UDP_SOCKET_SIZE (4 * 1024 * 1024)
#define UDP_OVERHEAD    (40 + 8 + RWIRE_BTH_LEN + RWIRE_MAX_EXT_LEN + 3 + RWIRE_ICRC_LEN)

/* Frames of one direction, with the arguments of sendmmsg() or recvmmsg(). */
struct udp_ring {
	struct rwire_frame frame[UDP_TX_FRAMES];
	struct mmsghdr msg[UDP_TX_FRAMES];
	struct iovec iov[UDP_TX_FRAMES];
	struct sockaddr_storage addr[UDP_TX_FRAMES];
	uint8_t data[UDP_TX_FRAMES][UDP_FRAME_SIZE];
};

struct udp_port {
	struct rwire_port port;
	uint32_t tx_first; /* frames to send: [tx_first, tx_next) */
	uint32_t tx_next;
	struct udp_ring tx;
	struct udp_ring rx;
};

static_assert(RWIRE_RX_BURST <= UDP_TX_FRAMES, "a burst fits into the ring");

static void
udp_ring_init(struct udp_ring *ring)
{
	unsigned int i;

	for (i = 0; i < UDP_TX_FRAMES; i++) {
		ring->frame[i].bth = ring->data[i] + RWIRE_HEADROOM;
		ring->frame[i].data = ring->frame[i].bth;
		ring->frame[i].has_icrc = true;
		ring->iov[i].iov_base = ring->frame[i].bth;
		ring->iov[i].iov_len = UDP_FRAME_SIZE - RWIRE_HEADROOM;
		ring->msg[i].msg_hdr.msg_iov = &ring->iov[i];
		ring->msg[i].msg_hdr.msg_iovlen = 1;
		ring->msg[i].msg_hdr.msg_name = &ring->addr[i];
		ring->msg[i].msg_hdr.msg_namelen = sizeof(ring->addr[i]);
	}
}

static void
udp_close(struct rwire_port *base)
{
	close(base->fd);
	free(base);
}

static void
udp_tx_flush(struct rwire_port *base)
{
	struct udp_port *port = (struct udp_port *)base;
	int n;

	while (port->tx_first != port->tx_next) {
		n = sendmmsg(base->fd, &port->tx.msg[port->tx_first],
				port->tx_next - port->tx_first, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
			return;
		if (n < 0) {
			if (errno == EINTR)
				continue;
			/* The first can't be sent: the network has lost it. */
			RSOFT_COUNT(base->stats.tx_dropped, 1);
			n = 1;
		}
		port->tx_first += (uint32_t)n;
	}
	port->tx_first = port->tx_next = 0;
}

static struct rwire_frame *
udp_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct udp_port *port = (struct udp_port *)base;
	struct rwire_frame *frame;

	if (port->tx_next == UDP_TX_FRAMES)
		udp_tx_flush(base);
	if (port->tx_next == UDP_TX_FRAMES)
		return NULL;
	frame = &port->tx.frame[port->tx_next];
	frame->flow.src = base->addr;
	frame->flow.dst = *dst;
	frame->flow.src_port = RWIRE_UDP_PORT;
	frame->flow.ip_id = 0;
	frame->is_id_known = true;
	return frame;
}

static void
udp_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct udp_port *port = (struct udp_port *)base;
	uint32_t i = port->tx_next++;

	port->tx.iov[i].iov_len = frame->len;
	port->tx.msg[i].msg_hdr.msg_namelen =
			rwire_addr_to_sockaddr(&frame->flow.dst, RWIRE_UDP_PORT, &port->tx.addr[i]);
	RSOFT_COUNT(base->stats.tx_packets, 1);
	RSOFT_COUNT(base->stats.tx_bytes, frame->len);
}

static uint32_t
udp_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct udp_port *port = (struct udp_port *)base;
	struct udp_ring *ring = &port->rx;
	uint32_t i, nb = 0;
	int got;

	for (i = 0; i < n; i++)
		ring->msg[i].msg_hdr.msg_namelen = sizeof(ring->addr[i]);
	got = recvmmsg(base->fd, ring->msg, n, MSG_DONTWAIT, NULL);
	for (i = 0; (int)i < got; i++) {
		struct rwire_frame *frame = &ring->frame[i];
		const struct sockaddr_in *from = (const struct sockaddr_in *)&ring->addr[i];

		if ((ring->msg[i].msg_hdr.msg_flags & MSG_TRUNC) != 0)
			continue;
		frame->len = ring->msg[i].msg_len;
		frame->is_id_known = false;
		rwire_addr_from_sockaddr(&ring->addr[i], &frame->flow.src);
		frame->flow.dst = base->addr;
		/* At the same offset in both families. */
		frame->flow.src_port = ntohs(from->sin_port);
		frame->flow.ip_id = 0;
		RSOFT_COUNT(base->stats.rx_packets, 1);
		RSOFT_COUNT(base->stats.rx_bytes, frame->len);
		frames[nb++] = frame;
	}
	return nb;
}

static const struct rwire_port_ops udp_ops = {
		.close = udp_close,
		.rx_burst = udp_rx_burst,
		.rx_sleep = rwire_port_rx_sleep,
		.tx_flush = udp_tx_flush,
		.tx_get = udp_tx_get,
		.tx_put = udp_tx_put,
};

/* MTU of the interface that has the address; 0: unknown. */
static uint32_t
udp_interface_mtu(int fd, const struct rwire_addr *addr)
{
	struct ifaddrs *list, *ifa;
	struct ifreq ifr = {0};
	struct rwire_addr one;
	uint32_t mtu = 0;

	if (getifaddrs(&list) != 0)
		return 0;
	for (ifa = list; ifa != NULL && mtu == 0; ifa = ifa->ifa_next) {
		struct sockaddr_storage sa = {0};

		if (ifa->ifa_addr == NULL ||
				(ifa->ifa_addr->sa_family != AF_INET &&
						ifa->ifa_addr->sa_family != AF_INET6))
			continue;
		memcpy(&sa, ifa->ifa_addr,
				ifa->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
								    : sizeof(struct sockaddr_in6));
		rwire_addr_from_sockaddr(&sa, &one);
		/* All of 127.0.0.0/8 are addresses of the loopback interface, listed or not. */
		if (!rwire_addr_is_equal(&one, addr) &&
				!(rwire_addr_is_ipv4(addr) && rwire_addr_is_ipv4(&one) &&
						addr->gid[12] == 127 && one.gid[12] == 127))
			continue;
		snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifa->ifa_name);
		if (ioctl(fd, SIOCGIFMTU, &ifr) == 0)
			mtu = (uint32_t)ifr.ifr_mtu;
	}
	freeifaddrs(list);
	return mtu;
}

/* The largest path MTU whose packets fit the interface. */
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

static int
udp_socket(const struct rwire_addr *addr, int *out)
{
	const int size = UDP_SOCKET_SIZE;
	bool is_ipv4 = rwire_addr_is_ipv4(addr);
	int discover = is_ipv4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO, one = 1;
	struct sockaddr_storage sa;
	socklen_t sa_len = rwire_addr_to_sockaddr(addr, RWIRE_UDP_PORT, &sa);
	int fd, rc;

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
	/* As large as permitted; with CAP_NET_ADMIN, beyond net.core.rmem_max. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	*out = fd;
	return 0;
}

int
rwire_port_udp_open(const struct rwire_addr *addr, struct rwire_port **out)
{
	struct udp_port *port;
	int rc, fd = -1;

	rc = udp_socket(addr, &fd);
	if (rc != 0)
		return rc;
	port = calloc(1, sizeof(*port));
	if (port == NULL) {
		RSOFT_LOG(ERR, "port=udp: no memory: %zu bytes", sizeof(*port));
		close(fd);
		return -ENOMEM;
	}
	port->port.ops = &udp_ops;
	port->port.addr = *addr;
	port->port.fd = fd;
	port->port.has_icrc = true;
	port->port.max_mtu = udp_max_mtu(fd, addr);
	udp_ring_init(&port->tx);
	udp_ring_init(&port->rx);
	*out = &port->port;
	return 0;
}
