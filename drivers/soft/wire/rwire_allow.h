/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Addresses from which QPs of a device receive packets: allow=. */

#ifndef RWIRE_ALLOW_H
#define RWIRE_ALLOW_H

#include "codec/rwire_addr.h"

#define RWIRE_MAX_ALLOW 16

struct rwire_prefix {
	struct rwire_addr addr;
	uint32_t len; /* prefix length of the GID in bits */
};

/* Permitted prefixes; if there are none, all addresses are permitted. */
struct rwire_allow {
	struct rwire_prefix prefix[RWIRE_MAX_ALLOW];
	uint32_t nb;
};

/* Parse prefixes, "ADDRESS[/LENGTH];...". Return 0, or -EINVAL, logged. */
int rwire_allow_parse(struct rwire_allow *allow, const char *text);

/* Whether an address matches one of the prefixes, or there are none. */
bool rwire_allow_has(const struct rwire_allow *allow, const struct rwire_addr *addr);

#endif /* RWIRE_ALLOW_H */
