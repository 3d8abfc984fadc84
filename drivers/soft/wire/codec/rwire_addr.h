/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Addresses: a RoCEv2 GID is an IPv6 address; for IPv4 it is ::ffff:a.b.c.d (IBTA A17.4.5.1).
 */

#ifndef RWIRE_ADDR_H
#define RWIRE_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <netinet/in.h>

struct rwire_addr {
	uint8_t gid[16];
};

#define RWIRE_ADDR_TEXT INET6_ADDRSTRLEN
#define RWIRE_MAX_LID   0xbfff /* largest unicast LID (IBTA 4.1.3) */

/* Parse an IPv4 or IPv6 address; false if it is neither. */
bool rwire_addr_from_text(const char *text, struct rwire_addr *addr);

/* Parse a unicast address; false if it is not one. */
bool rwire_addr_parse(const char *text, struct rwire_addr *addr);
const char *rwire_addr_text(const struct rwire_addr *addr, char text[RWIRE_ADDR_TEXT]);

bool rwire_addr_is_ipv4(const struct rwire_addr *addr);
/* Whether it can be the address of one host. */
bool rwire_addr_is_unicast(const struct rwire_addr *addr);

/* Whether it is the address of a multicast group. */
bool rwire_addr_is_mcast(const struct rwire_addr *addr);

/* Whether an interface with the first address also has the second: a loopback address covers
 * 127.0.0.0/8. */
bool rwire_addr_covers(const struct rwire_addr *one, const struct rwire_addr *addr);

/*
 * Convert a LID, 1 to RWIRE_MAX_LID, to the address of its process on the host's subnet of ip=host;
 * and the address to its LID, 0 if it has none.
 */
void rwire_addr_of_lid(uint16_t lid, struct rwire_addr *addr);
uint16_t rwire_addr_lid(const struct rwire_addr *addr);

/* Convert to and from a socket address; an IPv4 address has family AF_INET there. */
socklen_t rwire_addr_to_sockaddr(
		const struct rwire_addr *addr, uint16_t udp_port, struct sockaddr_storage *sa);
void rwire_addr_from_sockaddr(const struct sockaddr_storage *sa, struct rwire_addr *addr);

static inline bool
rwire_addr_is_equal(const struct rwire_addr *a, const struct rwire_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

#endif /* RWIRE_ADDR_H */
