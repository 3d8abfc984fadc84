/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Tables of GIDs and P_Keys of the fake device. */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "fake.h"

/* Link-local v1 and v2, then IPv4 v1 and v2 in turn; all of them, or none as the kernel does. */
ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
		uint32_t flags, size_t size)
{
	static const uint8_t v4[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
	static const uint8_t local[] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1};
	unsigned int i, nb = fake.nb_other_gids + fake.nb_gids;

	RTE_SET_USED(context);
	RTE_SET_USED(flags);
	RTE_SET_USED(size);
	if (fake_fails("query_gid_table"))
		return -errno;
	if (nb > max)
		return -EINVAL;
	for (i = 0; i < nb; i++) {
		bool is_other = i < fake.nb_other_gids;
		unsigned int index = is_other ? i : i - fake.nb_other_gids;

		memset(&entries[i], 0, sizeof(entries[i]));
		memcpy(entries[i].gid.raw, index < 2 ? local : v4, 16);
		entries[i].gid_index = index;
		entries[i].port_num = is_other ? 2 : 1;
		entries[i].gid_type = index % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	}
	return (ssize_t)nb;
}

/* The entries of the table; the last is empty. */
int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct ibv_gid_entry all[8] = {0};
	ssize_t i, nb;

	RTE_SET_USED(flags);
	RTE_SET_USED(size);
	if (fake_fails("query_gid_ex"))
		return errno;
	nb = _ibv_query_gid_table(context, all, RTE_DIM(all), 0, sizeof(all[0]));
	for (i = 0; i + 1 < nb; i++) {
		if (all[i].port_num == port && all[i].gid_index == index) {
			*entry = all[i];
			return 0;
		}
	}
	return ENODATA;
}

int
ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	RTE_SET_USED(context);
	RTE_SET_USED(port);
	RTE_SET_USED(index);
	if (fake_fails("query_pkey"))
		return -1;
	*pkey = htobe16(0x7fff);
	return 0;
}
