/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Network interfaces of the host; see rwire_interface.h. */

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

#include "rwire_interface.h"

static bool
is_of(const struct ifaddrs *ifa, const struct rwire_addr *addr)
{
	struct sockaddr_storage sa = {0};
	struct rwire_addr one;

	if (ifa->ifa_addr == NULL ||
			(ifa->ifa_addr->sa_family != AF_INET &&
					ifa->ifa_addr->sa_family != AF_INET6))
		return false;
	memcpy(&sa, ifa->ifa_addr,
			ifa->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							    : sizeof(struct sockaddr_in6));
	rwire_addr_from_sockaddr(&sa, &one);
	return rwire_addr_covers(&one, addr);
}

int
rwire_interface_find(const struct rwire_addr *addr, struct rwire_interface *interface)
{
	struct ifaddrs *list, *ifa;

	if (getifaddrs(&list) != 0)
		return -EIO;
	for (ifa = list; ifa != NULL && !is_of(ifa, addr); ifa = ifa->ifa_next)
		;
	if (ifa != NULL) {
		snprintf(interface->name, sizeof(interface->name), "%s", ifa->ifa_name);
		interface->flags = ifa->ifa_flags;
	}
	freeifaddrs(list);
	return ifa != NULL ? 0 : -ENOENT;
}
