/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Conversion of addresses between the program's and the IDs' format. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "../verbs/ribv.h"
#include "rcm.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool
rcm_is_ud(const struct rcm_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

static bool
is_zero(const uint8_t *bytes, size_t size)
{
	size_t i;

	for (i = 0; i < size && bytes[i] == 0; i++)
		;
	return i == size;
}

bool
rcm_is_any(const struct rcm_addr *addr)
{
	return addr->family == AF_INET ? is_zero(addr->ip + 12, 4) : is_zero(addr->ip, 16);
}

socklen_t
rcm_sockaddr(const struct rcm_addr *addr, void *sockaddr)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(addr->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
			.sin6_port = htons(addr->port),
			.sin6_scope_id = addr->scope_id};

	if (addr->family == AF_INET) {
		memcpy(&in.sin_addr, addr->ip + 12, sizeof(in.sin_addr));
		memcpy(sockaddr, &in, sizeof(in));
		return sizeof(in);
	}
	if (addr->family != AF_INET6)
		return 0;
	memcpy(&in6.sin6_addr, addr->ip, sizeof(in6.sin6_addr));
	memcpy(sockaddr, &in6, sizeof(in6));
	return sizeof(in6);
}

int
rcm_addr_of(const void *sockaddr, size_t size, struct rcm_addr *addr)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	sa_family_t family;

	memset(addr, 0, sizeof(*addr));
	if (size < sizeof(in))
		return -EINVAL;
	memcpy(&family, sockaddr, sizeof(family));
	addr->family = family;
	if (family == AF_INET) {
		memcpy(&in, sockaddr, sizeof(in));
		addr->port = ntohs(in.sin_port);
		memcpy(addr->ip, mapped, sizeof(mapped));
		memcpy(addr->ip + 12, &in.sin_addr, 4);
		return 0;
	}
	if (family != AF_INET6)
		return -EAFNOSUPPORT;
	if (size < sizeof(in6))
		return -EINVAL;
	memcpy(&in6, sockaddr, sizeof(in6));
	addr->port = ntohs(in6.sin6_port);
	addr->scope_id = in6.sin6_scope_id;
	memcpy(addr->ip, &in6.sin6_addr, sizeof(addr->ip));
	return 0;
}
