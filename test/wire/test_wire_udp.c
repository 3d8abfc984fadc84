/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port over a UDP socket receives what other implementations send, and bursts of its own, also
 * where a message can't have several packets.
 */

#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/wire/port/rwire_port.h"

#include "../test.h"

#define NB_PACKETS 60

static struct rwire_port *port, *sender;

/* Send a datagram to the port, without a UDP checksum. */
static void
send_unchecked(const struct rwire_addr *addr, const void *data, size_t size)
{
	struct sockaddr_storage to;
	socklen_t len = rwire_addr_to_sockaddr(addr, RWIRE_UDP_PORT, &to);
	bool is_ipv4 = rwire_addr_is_ipv4(addr);
	int fd = socket(to.ss_family, SOCK_DGRAM, 0), one = 1;
	ssize_t n;

	TEST_ASSERT(fd >= 0);
	TEST_EQ(setsockopt(fd, is_ipv4 ? SOL_SOCKET : IPPROTO_UDP,
				is_ipv4 ? SO_NO_CHECK : UDP_NO_CHECK6_TX, &one, sizeof(one)),
			0);
	n = sendto(fd, data, size, 0, (const struct sockaddr *)&to, len);
	close(fd);
	TEST_EQ(n, size);
}

static void
receive(const char *ip)
{
	static const uint8_t data[20] = {RWIRE_ACKNOWLEDGE, 0x40, 0xff, 0xff, [19] = 0xee};
	struct rwire_frame *frames[RWIRE_RX_BURST];
	struct rwire_addr addr;
	struct pollfd pfd;

	TEST_ASSERT(rwire_addr_parse(ip, &addr));
	TEST_SKIP_IF(rwire_port_udp_open(&addr, &port) == -ENODEV, "no such address");
	TEST_ASSERT(port != NULL);
	send_unchecked(&addr, data, sizeof(data));
	pfd = (struct pollfd){.fd = port->fd, .events = POLLIN};
	TEST_EQ(poll(&pfd, 1, 600000), 1);
	TEST_EQ(port->ops->rx_burst(port, frames, RWIRE_RX_BURST), 1);
	TEST_EQ(frames[0]->len, sizeof(data));
	TEST_MEM(frames[0]->bth, data, sizeof(data));
}

TEST_CALL(wire_udp, ipv4_packets_without_a_checksum_are_received, receive("127.0.17.1"));
TEST_CALL(wire_udp, ipv6_packets_without_a_checksum_are_received, receive("::1"));

/* A burst with runs of one length, and packets between them that are longer or shorter. */
static uint32_t
payload_of(uint32_t i)
{
	return i < 20 ? 4096 : i < 40 ? 64 : i % 4 == 0 ? 1024 : 1000 - i % 4;
}

/* Of runs, which segmentation must not join. */
static uint8_t
class_of(uint32_t i)
{
	return i / 7 % 2 == 0 ? 0 : 0xfd;
}

static void
send_burst(const struct rwire_addr *to)
{
	uint32_t i;

	for (i = 0; i < NB_PACKETS; i++) {
		struct rwire_pkt pkt = {
				.opcode = RWIRE_SEND_ONLY, .psn = i, .payload_len = payload_of(i)};
		struct rwire_frame *frame = sender->ops->tx_get(sender, to);

		TEST_ASSERT(frame != NULL);
		memset(frame->bth + RWIRE_BTH_LEN, (int)i, pkt.payload_len);
		TEST_EQ(frame->grh.traffic_class, 0);
		frame->grh.traffic_class = class_of(i);
		frame->len = rwire_pkt_build(frame->bth, &pkt);
		rwire_icrc_set(frame->bth, frame->len, &frame->flow);
		sender->ops->tx_put(sender, frame);
	}
	sender->ops->tx_flush(sender);
}

/* The next burst of packets, which follow number *next. */
static void
check_burst(uint32_t *next)
{
	struct rwire_frame *frames[RWIRE_RX_BURST];
	struct rwire_pkt pkt;
	uint32_t i, n = port->ops->rx_burst(port, frames, RWIRE_RX_BURST);

	for (i = 0; i < n; i++, ++*next) {
		TEST_ASSERT(rwire_pkt_parse(frames[i]->bth, frames[i]->len, &pkt));
		TEST_EQ(pkt.psn, *next);
		TEST_EQ(pkt.payload_len, payload_of(*next));
		TEST_EQ(frames[i]->grh.traffic_class, class_of(*next));
		TEST_EQ(pkt.payload[pkt.payload_len - 1], (uint8_t)*next);
		/* The id that is expected, not any one. */
		TEST_ASSERT(rwire_icrc_is_good(
				frames[i]->bth, frames[i]->len, &frames[i]->flow, true));
	}
}

static void
receive_burst(void)
{
	struct pollfd pfd = {.fd = port->fd, .events = POLLIN};
	uint32_t nb = 0;

	while (nb != NB_PACKETS) {
		if (port->ops->rx_sleep(port))
			TEST_EQ(poll(&pfd, 1, 600000), 1);
		check_burst(&nb);
	}
}

/* The socket of this process at an address. */
static int
socket_at(const struct rwire_addr *addr)
{
	struct sockaddr_storage own, sa;
	socklen_t len = rwire_addr_to_sockaddr(addr, RWIRE_UDP_PORT, &sa), size;
	int fd;

	for (fd = 0; fd < 256; fd++) {
		size = sizeof(own);
		memset(&own, 0, sizeof(own));
		if (getsockname(fd, (struct sockaddr *)&own, &size) == 0 && size == len &&
				memcmp(&own, &sa, len) == 0)
			break;
	}
	TEST_ASSERT(fd < 256);
	return fd;
}

/* Send a burst; without an option of the sockets if one is given. */
static void
send_and_receive(const char *from, const char *to, int level, int option)
{
	struct rwire_addr src, dst;
	int one = 1;

	TEST_ASSERT(rwire_addr_parse(from, &src) && rwire_addr_parse(to, &dst));
	TEST_OK(rwire_port_udp_open(&src, &sender));
	TEST_OK(rwire_port_udp_open(&dst, &port));
	if (option != 0)
		TEST_EQ(setsockopt(socket_at(&src), level, option, &one, sizeof(one)), 0);
	send_burst(&dst);
	receive_burst();
}

TEST_CALL(wire_udp, ip_ids_of_a_burst_match_the_icrcs,
		send_and_receive("127.0.17.2", "127.0.17.3", 0, 0));

TEST(wire_udp, traffic_classes_of_a_burst_arrive_by_ipv6)
{
	struct rwire_addr addr;

	receive("::1");
	TEST_ASSERT(rwire_addr_parse("::1", &addr));
	sender = port;
	send_burst(&addr);
	receive_burst();
}

/* Segmentation needs checksums: the kernel refuses it for this socket. */
TEST_CALL(wire_udp, burst_is_sent_packet_by_packet_without_segmentation,
		send_and_receive("127.0.17.2", "127.0.17.3", SOL_SOCKET, SO_NO_CHECK));

/* The host of a peer that does not read drops its packets: the port is never full. */
TEST(wire_udp, unread_packets_of_a_peer_do_not_fill_the_port)
{
	struct rwire_addr src, dst;
	unsigned int i;

	TEST_ASSERT(rwire_addr_parse("127.0.17.2", &src) && rwire_addr_parse("127.0.17.3", &dst));
	TEST_OK(rwire_port_udp_open(&src, &sender));
	TEST_OK(rwire_port_udp_open(&dst, &port));
	for (i = 0; i < 200; i++)
		send_burst(&dst);
}

/* Send a packet of a plain socket to a group, or to an address, on the loopback interface. */
static void
send_plain(const struct rwire_addr *to, uint8_t number)
{
	const struct ip_mreqn lo = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t data[20] = {RWIRE_ACKNOWLEDGE, 0x40, 0xff, 0xff, [19] = number};
	struct sockaddr_storage sa;
	socklen_t len = rwire_addr_to_sockaddr(to, RWIRE_UDP_PORT, &sa);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t n = -1;

	TEST_ASSERT(fd >= 0);
	if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo)) == 0)
		n = sendto(fd, data, sizeof(data), 0, (const struct sockaddr *)&sa, len);
	close(fd);
	TEST_EQ(n, sizeof(data));
}

/* The next packet is that of send_plain(). */
static void
expect_plain(const struct rwire_addr *to, uint8_t number)
{
	struct pollfd pfd = {.fd = port->fd, .events = POLLIN};
	struct rwire_frame *frames[RWIRE_RX_BURST];

	TEST_EQ(poll(&pfd, 1, 600000), 1);
	TEST_EQ(port->ops->rx_burst(port, frames, RWIRE_RX_BURST), 1);
	TEST_EQ(frames[0]->len, 20);
	TEST_EQ(frames[0]->bth[19], number);
	TEST_EQ(frames[0]->is_mcast, rwire_addr_is_mcast(to));
	TEST_ASSERT(rwire_addr_is_equal(&frames[0]->flow.dst, to));
}

static struct rwire_addr
addr_of(const char *text)
{
	struct rwire_addr addr;

	TEST_ASSERT(rwire_addr_from_text(text, &addr));
	return addr;
}

TEST(wire_udp, packets_of_a_group_are_received_until_it_is_left)
{
	const struct rwire_addr own = addr_of("127.0.17.1"), group = addr_of("239.17.0.1");
	const struct rwire_addr second = addr_of("239.17.0.2"), other = addr_of("239.17.0.3");
	const struct rwire_addr from = addr_of("127.0.17.2");

	TEST_OK(rwire_port_udp_open(&own, &port));
	TEST_OK(port->ops->mcast_join(port, &group));
	TEST_OK(port->ops->mcast_join(port, &second));
	send_plain(&group, 1);
	expect_plain(&group, 1);
	send_plain(&own, 2);
	expect_plain(&own, 2);
	send_plain(&second, 3);
	expect_plain(&second, 3);
	/* Another device of the host is in that group. */
	TEST_OK(rwire_port_udp_open(&from, &sender));
	TEST_OK(sender->ops->mcast_join(sender, &other));
	send_plain(&other, 4);
	port->ops->mcast_leave(port, &group);
	send_plain(&group, 5);
	send_plain(&second, 6);
	expect_plain(&second, 6);
	port->ops->mcast_leave(port, &second);
	send_plain(&second, 7);
	send_plain(&own, 8);
	expect_plain(&own, 8);
	sender->ops->mcast_leave(sender, &other);
}

TEST(wire_udp, packets_left_of_a_group_are_dropped_with_it)
{
	const struct rwire_addr own = addr_of("127.0.17.1"), group = addr_of("239.17.0.4");
	struct pollfd pfd;
	struct rwire_frame *frames[1];

	TEST_OK(rwire_port_udp_open(&own, &port));
	TEST_OK(port->ops->mcast_join(port, &group));
	send_plain(&group, 1);
	send_plain(&group, 2);
	pfd = (struct pollfd){.fd = port->fd, .events = POLLIN};
	TEST_EQ(poll(&pfd, 1, 600000), 1);
	TEST_EQ(port->ops->rx_burst(port, frames, 1), 1);
	port->ops->mcast_leave(port, &group);
	send_plain(&own, 3);
	expect_plain(&own, 3);
}

/* As a child of fork() has it. */
TEST(wire_udp, socket_that_a_child_has_too_is_left)
{
	const struct rwire_addr own = addr_of("127.0.17.1"), group = addr_of("239.17.0.6");
	struct pollfd pfd = {.events = POLLIN};
	int fd, copy;

	TEST_OK(rwire_port_udp_open(&own, &port));
	fd = test_free_fd();
	TEST_OK(port->ops->mcast_join(port, &group));
	pfd.fd = copy = dup(fd);
	TEST_ASSERT(copy >= 0);
	port->ops->mcast_leave(port, &group);
	send_plain(&group, 1);
	TEST_EQ(poll(&pfd, 1, 600000), 1);
	pfd.fd = port->fd;
	TEST_EQ(poll(&pfd, 1, 0), 0);
	send_plain(&own, 2);
	expect_plain(&own, 2);
	close(copy);
}

TEST(wire_udp, packet_to_a_group_reaches_its_members)
{
	const struct rwire_addr own = addr_of("127.0.17.1"), group = addr_of("239.17.0.5");
	const struct rwire_addr from = addr_of("127.0.17.2");
	struct rwire_pkt pkt = {.service = RWIRE_UD,
			.opcode = RWIRE_SEND_ONLY,
			.qpn = 0xffffff,
			.payload_len = 8};
	struct rwire_frame *frame, *frames[RWIRE_RX_BURST];
	struct pollfd pfd;

	TEST_OK(rwire_port_udp_open(&from, &sender));
	TEST_OK(rwire_port_udp_open(&own, &port));
	TEST_OK(port->ops->mcast_join(port, &group));
	TEST_EQ(sender->ops->mcast_members(sender, &group, NULL), -1);
	frame = sender->ops->tx_get(sender, &group);
	TEST_ASSERT(frame != NULL);
	frame->grh.traffic_class = 0x68;
	frame->grh.hop_limit = 3;
	memset(frame->bth, 0, 64);
	frame->len = rwire_pkt_build(frame->bth, &pkt);
	rwire_icrc_set(frame->bth, frame->len, &frame->flow);
	sender->ops->tx_put(sender, frame);
	sender->ops->tx_flush(sender);
	TEST_EQ(sender->stats.tx_dropped, 0);
	pfd = (struct pollfd){.fd = port->fd, .events = POLLIN};
	TEST_EQ(poll(&pfd, 1, 600000), 1);
	TEST_EQ(port->ops->rx_burst(port, frames, RWIRE_RX_BURST), 1);
	TEST_ASSERT(frames[0]->is_mcast);
	TEST_EQ(frames[0]->grh.traffic_class, 0x68);
	TEST_ASSERT(rwire_addr_is_equal(&frames[0]->flow.src, &sender->addr));
	TEST_ASSERT(rwire_icrc_is_good(frames[0]->bth, frames[0]->len, &frames[0]->flow, true));
}

static void
setup(void)
{
	port = sender = NULL;
}

static void
teardown(void)
{
	if (port != NULL)
		port->ops->close(port);
	if (sender != NULL && sender != port)
		sender->ops->close(sender);
}

TEST_SUITE(wire_udp, setup, teardown);
