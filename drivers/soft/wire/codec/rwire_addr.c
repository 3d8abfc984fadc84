/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Addresses; see rwire_addr.h. */

#include <arpa/inet.h>

#include "rwire_addr.h"

static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

bool
rwire_addr_is_ipv4(const struct rwire_addr *addr)
{
	return memcmp(addr->gid, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

bool
rwire_addr_is_unicast(const struct rwire_addr *addr)
{
	static const uint8_t any[16];

	/* Classes D and E, and ff00::/8. */
	if (rwire_addr_is_ipv4(addr))
		return addr->gid[12] < 224 && memcmp(addr->gid + 12, any, 4) != 0;
	return addr->gid[0] != 0xff && memcmp(addr->gid, any, sizeof(any)) != 0;
}

bool
rwire_addr_is_mcast(const struct rwire_addr *addr)
{
	return rwire_addr_is_ipv4(addr) ? addr->gid[12] >> 4 == 14 : addr->gid[0] == 0xff;
}

bool
rwire_addr_from_text(const char *text, struct rwire_addr *addr)
{
	memcpy(addr->gid, ipv4_prefix, sizeof(ipv4_prefix));
	return inet_pton(AF_INET, text, addr->gid + sizeof(ipv4_prefix)) == 1 ||
			inet_pton(AF_INET6, text, addr->gid) == 1;
}

bool
rwire_addr_parse(const char *text, struct rwire_addr *addr)
{
	return rwire_addr_from_text(text, addr) && rwire_addr_is_unicast(addr);
}

const char *
rwire_addr_text(const struct rwire_addr *addr, char text[RWIRE_ADDR_TEXT])
{
	if (rwire_addr_is_ipv4(addr))
		return inet_ntop(AF_INET, addr->gid + sizeof(ipv4_prefix), text, RWIRE_ADDR_TEXT);
	return inet_ntop(AF_INET6, addr->gid, text, RWIRE_ADDR_TEXT);
}

/* 127.76.0.0/16 on the loopback interface; the last 16 bits are the LID. */
static const uint8_t host_prefix[14] = {[10] = 0xff, [11] = 0xff, [12] = 127, [13] = 76};

void
rwire_addr_of_lid(uint16_t lid, struct rwire_addr *addr)
{
	memcpy(addr->gid, host_prefix, sizeof(host_prefix));
	addr->gid[14] = (uint8_t)(lid >> 8);
	addr->gid[15] = (uint8_t)lid;
}

uint16_t
rwire_addr_lid(const struct rwire_addr *addr)
{
	uint16_t lid = (uint16_t)(addr->gid[14] << 8 | addr->gid[15]);

	if (memcmp(addr->gid, host_prefix, sizeof(host_prefix)) != 0 || lid > RWIRE_MAX_LID)
		return 0;
	return lid;
}

socklen_t
rwire_addr_to_sockaddr(
		const struct rwire_addr *addr, uint16_t udp_port, struct sockaddr_storage *sa)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
	struct sockaddr_in *in = (struct sockaddr_in *)sa;

	memset(sa, 0, sizeof(*sa));
	if (rwire_addr_is_ipv4(addr)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(udp_port);
		memcpy(&in->sin_addr, addr->gid + sizeof(ipv4_prefix), 4);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(udp_port);
	memcpy(&in6->sin6_addr, addr->gid, sizeof(addr->gid));
	return sizeof(*in6);
}

void
rwire_addr_from_sockaddr(const struct sockaddr_storage *sa, struct rwire_addr *addr)
{
	if (sa->ss_family == AF_INET) {
		memcpy(addr->gid, ipv4_prefix, sizeof(ipv4_prefix));
		memcpy(addr->gid + sizeof(ipv4_prefix), &((const struct sockaddr_in *)sa)->sin_addr,
				4);
	} else {
		memcpy(addr->gid, &((const struct sockaddr_in6 *)sa)->sin6_addr, sizeof(addr->gid));
	}
}

bool
rwire_addr_covers(const struct rwire_addr *one, const struct rwire_addr *addr)
{
	return rwire_addr_is_equal(one, addr) ||
			(rwire_addr_is_ipv4(addr) && rwire_addr_is_ipv4(one) &&
					addr->gid[12] == 127 && one->gid[12] == 127);
}
