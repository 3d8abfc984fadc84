/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Addresses from which QPs of a device receive packets; see rwire_allow.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/rsoft.h"
#include "rwire_allow.h"

/* Parse a prefix in the first len bytes of text. */
static bool
allow_parse_one(const char *text, size_t len, struct rwire_prefix *prefix)
{
	uint32_t max, first;
	struct rwire_addr addr;
	unsigned long bits;
	char copy[64], *slash, *end;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	slash = strchr(copy, '/');
	if (slash != NULL)
		*slash = '\0';
	if (!rwire_addr_from_text(copy, &prefix->addr))
		return false;
	/* The address of a prefix may be all zero. */
	addr = prefix->addr;
	if (slash != NULL)
		addr.gid[15] |= 1;
	if (!rwire_addr_is_unicast(&addr))
		return false;
	/* An IPv4-mapped address in IPv6 notation has 128 bits. */
	first = strchr(copy, ':') == NULL ? 96 : 0;
	max = 128 - first;
	prefix->len = 128;
	if (slash == NULL)
		return true;
	bits = strtoul(slash + 1, &end, 10);
	prefix->len = first + (uint32_t)RTE_MIN(bits, (unsigned long)max);
	return slash[1] >= '0' && slash[1] <= '9' && *end == '\0' && bits <= max;
}

int
rwire_allow_parse(struct rwire_allow *allow, const char *text)
{
	size_t len;

	for (; *text != '\0'; text += len + (text[len] == ';')) {
		len = strcspn(text, ";");
		if (allow->nb < RWIRE_MAX_ALLOW &&
				allow_parse_one(text, len, &allow->prefix[allow->nb])) {
			allow->nb++;
			continue;
		}
		RSOFT_LOG(ERR, "allow=: '%.*s' is not ADDRESS or ADDRESS/LENGTH, or there are more than %u",
				(int)len, text, RWIRE_MAX_ALLOW);
		return -EINVAL;
	}
	return 0;
}

static bool
allow_matches(const struct rwire_prefix *prefix, const struct rwire_addr *addr)
{
	uint32_t nb = prefix->len / 8, mask = 0xff00u >> prefix->len % 8 & 0xff;

	return memcmp(prefix->addr.gid, addr->gid, nb) == 0 &&
			(mask == 0 || ((prefix->addr.gid[nb] ^ addr->gid[nb]) & mask) == 0);
}

bool
rwire_allow_has(const struct rwire_allow *allow, const struct rwire_addr *addr)
{
	uint32_t i;

	for (i = 0; i < allow->nb; i++) {
		if (allow_matches(&allow->prefix[i], addr))
			return true;
	}
	return allow->nb == 0;
}
