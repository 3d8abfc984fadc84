/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Network interfaces of the host, and their addresses. */

#ifndef RWIRE_INTERFACE_H
#define RWIRE_INTERFACE_H

#include <stdint.h>

#include <net/if.h>

#include "../codec/rwire_addr.h"

/* An interface of the host. */
struct rwire_interface {
	char name[IF_NAMESIZE];
	uint32_t flags; /* IFF_* */
};

/* Find the interface with the address: 0, -ENOENT (none) or -EIO (unknown). */
int rwire_interface_find(const struct rwire_addr *addr, struct rwire_interface *interface);

#endif /* RWIRE_INTERFACE_H */
