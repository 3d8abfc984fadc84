/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* GIDs of devices without a wire. */

#ifndef RSOFT_GID_H
#define RSOFT_GID_H

#include <string.h>

#include "../base/rsoft.h"

/*
 * GID of a device without a wire: link-local, with the GUID of the device as its interface. The
 * GUID differs from all derived from a MAC address, which have ff fe in the middle: dev_id is below
 * RMEM_MAX_DEVS.
 */
struct rsoft_gid {
	uint8_t prefix[8];
	uint8_t tag[3];
	uint8_t dev_id;
	uint32_t cookie;
};

/* Replaces dev_id in the GUID of a device with a wire. */
#define RSOFT_GUID_WIRE 0xfe

static_assert(sizeof(struct rsoft_gid) == 16 && RMEM_MAX_DEVS < RSOFT_GUID_WIRE,
		"a GID has 16 bytes");

static const struct rsoft_gid rsoft_gid_local = {
		.prefix = {0xfe, 0x80},
		.tag = {0x02, 'r', 'm'},
};

/* Whether a device without a wire, of this process or another, has the GID. */
static inline bool
rsoft_gid_is_local(const uint8_t gid[16])
{
	return memcmp(gid, &rsoft_gid_local, offsetof(struct rsoft_gid, dev_id)) == 0 &&
			gid[offsetof(struct rsoft_gid, dev_id)] < RMEM_MAX_DEVS;
}

#endif /* RSOFT_GID_H */
