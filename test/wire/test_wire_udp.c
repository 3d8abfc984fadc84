/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The port over a UDP socket receives what other implementations send. */

#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/wire/rwire_port.h"

#include "../test.h"

static struct rwire_port *port;

/* Send a datagram to the port, without a UDP checksum. */
static int
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
	return TEST_SUCCESS;
}

static int
receive(const char *ip)
{
	static const uint8_t data[20] = {RWIRE_ACKNOWLEDGE, 0x40, 0xff, 0xff, [19] = 0xee};
	struct rwire_frame *frames[RWIRE_RX_BURST];
	struct rwire_addr addr;
	struct pollfd pfd;

	TEST_ASSERT(rwire_addr_parse(ip, &addr));
	if (rwire_port_udp_open(&addr, &port) == -ENODEV)
		return test_skip("no such address");
	TEST_ASSERT(port != NULL);
	TEST_RUN(send_unchecked(&addr, data, sizeof(data)));
	pfd = (struct pollfd){.fd = port->fd, .events = POLLIN};
	TEST_EQ(poll(&pfd, 1, 60000), 1);
	TEST_EQ(port->ops->rx_burst(port, frames, RWIRE_RX_BURST), 1);
	TEST_EQ(frames[0]->len, sizeof(data));
	TEST_MEM(frames[0]->bth, data, sizeof(data));
	return TEST_SUCCESS;
}

TEST(wire_udp, ipv4_packets_without_a_checksum_are_received)
{
	return receive("127.0.17.1");
}

TEST(wire_udp, ipv6_packets_without_a_checksum_are_received)
{
	return receive("::1");
}

static int
setup(void)
{
	port = NULL;
	return TEST_SUCCESS;
}

static int
teardown(void)
{
	if (port != NULL)
		port->ops->close(port);
	return TEST_SUCCESS;
}

TEST_SUITE(wire_udp, setup, teardown);
