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
	if (rwire_port_udp_open(&addr, &port) == -ENODEV)
		test_skip("no such address");
	TEST_ASSERT(port != NULL);
	send_unchecked(&addr, data, sizeof(data));
	pfd = (struct pollfd){.fd = port->fd, .events = POLLIN};
	TEST_EQ(poll(&pfd, 1, 600000), 1);
	TEST_EQ(port->ops->rx_burst(port, frames, RWIRE_RX_BURST), 1);
	TEST_EQ(frames[0]->len, sizeof(data));
	TEST_MEM(frames[0]->bth, data, sizeof(data));
}

TEST(wire_udp, ipv4_packets_without_a_checksum_are_received)
{
	receive("127.0.17.1");
}

TEST(wire_udp, ipv6_packets_without_a_checksum_are_received)
{
	receive("::1");
}

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
		TEST_EQ(setsockopt(sender->fd, level, option, &one, sizeof(one)), 0);
	send_burst(&dst);
	receive_burst();
}

TEST(wire_udp, ip_ids_of_a_burst_match_the_icrcs)
{
	send_and_receive("127.0.17.2", "127.0.17.3", 0, 0);
}

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
TEST(wire_udp, burst_is_sent_packet_by_packet_without_segmentation)
{
	send_and_receive("127.0.17.2", "127.0.17.3", SOL_SOCKET, SO_NO_CHECK);
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
