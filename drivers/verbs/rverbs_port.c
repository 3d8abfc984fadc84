/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The port of a device, and its GID. */

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>

#include "rverbs.h"

static const uint8_t rverbs_v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Preference of a GID: RoCE v2 over v1, IPv4 and global over link-local. */
static int
gid_rank(const struct ibv_gid_entry *entry)
{
	const uint8_t *raw = entry->gid.raw;
	bool is_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
	int rank = entry->gid_type == IBV_GID_TYPE_ROCE_V1 ? 0 : 4;

	if (memcmp(raw, rverbs_v4_prefix, sizeof(rverbs_v4_prefix)) == 0)
		return rank + 2;
	return is_local ? rank : rank + 1;
}

/* Parse the requested address; false if the text is not an address. */
static bool
gid_parse(const char *text, union ibv_gid *gid)
{
	if (inet_pton(AF_INET6, text, gid->raw) == 1)
		return true;
	memcpy(gid->raw, rverbs_v4_prefix, sizeof(rverbs_v4_prefix));
	return inet_pton(AF_INET, text, gid->raw + sizeof(rverbs_v4_prefix)) == 1;
}

static bool
gid_is_zero(const union ibv_gid *gid)
{
	return gid->global.subnet_prefix == 0 && gid->global.interface_id == 0;
}

/* Select the requested GID of the port, or the best one; NULL if there is none. */
static const struct ibv_gid_entry *
gid_choose(const struct rverbs_dev *dev, const struct ibv_gid_entry *table, ssize_t nb)
{
	const char *text = dev->args.gid;
	const struct ibv_gid_entry *best = NULL;
	bool is_index = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
	union ibv_gid gid = {{0}};
	ssize_t i;

	if (text[0] != '\0' && !is_index && !gid_parse(text, &gid))
		return NULL;
	for (i = 0; i < nb; i++) {
		const struct ibv_gid_entry *entry = &table[i];

		if (entry->port_num != dev->args.port || gid_is_zero(&entry->gid) ||
				entry->gid_index > UINT8_MAX)
			continue;
		if (is_index && entry->gid_index != strtoul(text, NULL, 10))
			continue;
		if (text[0] != '\0' && !is_index && memcmp(&gid, &entry->gid, sizeof(gid)) != 0)
			continue;
		if (best == NULL || gid_rank(entry) > gid_rank(best))
			best = entry;
	}
	return best;
}

/*
 * Number of table entries for the GIDs of all ports, which the kernel returns at once. 0 and a log
 * line if the number is not known.
 */
static size_t
gid_max_entries(const struct rverbs_dev *dev)
{
	uint32_t i, nb_ports = dev->attr.orig_attr.phys_port_cnt;
	struct ibv_port_attr attr;
	size_t room = 1;

	for (i = 1; i <= nb_ports; i++) {
		if (rverbs_err_code(ibv_query_port(dev->context, (uint8_t)i, &attr),
				    RVERBS_ERR_OPEN, "ibv_query_port") != 0)
			return 0;
		room += (size_t)RTE_MAX(attr.gid_tbl_len, 0);
	}
	return room;
}

/* Select the GID from the table. */
static int
gid_take(struct rverbs_dev *dev, const struct ibv_gid_entry *table, ssize_t nb)
{
	const struct ibv_gid_entry *entry = gid_choose(dev, table, nb);

	if (entry == NULL) {
		RVERBS_LOG(ERR, "%s: port %u has no usable GID%s%s among %zd: configure an address of its network interface, or select another GID with gid=",
				dev->context->device->name, dev->args.port,
				dev->args.gid[0] != '\0' ? " " : "", dev->args.gid, nb);
		return -ENODEV;
	}
	dev->port.gid = entry->gid;
	dev->port.gid_index = (uint8_t)entry->gid_index;
	return 0;
}

static int
gid_open(struct rverbs_dev *dev)
{
	size_t room = gid_max_entries(dev);
	struct ibv_gid_entry *table;
	ssize_t nb;
	int ret;

	if (room == 0)
		return -EIO;
	table = calloc(room, sizeof(*table));
	if (table == NULL) {
		RVERBS_LOG(ERR, "GID table: no memory: %zu entries", room);
		return -ENOMEM;
	}
	nb = ibv_query_gid_table(dev->context, table, room, 0);
	ret = nb < 0 ? rverbs_err_minus((int)nb, "ibv_query_gid_table") : gid_take(dev, table, nb);
	free(table);
	return ret;
}

static int
port_check(struct rverbs_dev *dev, const struct ibv_port_attr *attr)
{
	const char *name = dev->context->device->name;

	if (attr->state != IBV_PORT_ACTIVE) {
		RVERBS_LOG(ERR, "%s: port %u is not active: state %d (check the link)", name,
				dev->args.port, attr->state);
		return -ENODEV;
	}
	dev->port.mtu = (uint8_t)attr->active_mtu;
	if (dev->args.mtu != 0) {
		if (dev->args.mtu > dev->port.mtu) {
			RVERBS_LOG(ERR, "%s: mtu=%u: above that of the port (%u, port %u)", name,
					128u << dev->args.mtu, 128u << attr->active_mtu,
					dev->args.port);
			return -EINVAL;
		}
		dev->port.mtu = dev->args.mtu;
	}
	return 0;
}

int
rverbs_port_open(struct rverbs_dev *dev)
{
	struct ibv_port_attr attr;
	int ret;

	if (dev->args.port > dev->attr.orig_attr.phys_port_cnt) {
		RVERBS_LOG(ERR, "%s: port=%u: no such port (1 to %u)", dev->context->device->name,
				dev->args.port, dev->attr.orig_attr.phys_port_cnt);
		return -EINVAL;
	}
	ret = rverbs_err_code(ibv_query_port(dev->context, dev->args.port, &attr), RVERBS_ERR_OPEN,
			"ibv_query_port");
	if (ret == 0)
		ret = port_check(dev, &attr);
	if (ret != 0)
		return ret;
	dev->port.num = dev->args.port;
	dev->port.link_layer = attr.link_layer;
	dev->port.lid = attr.lid;
	dev->port.max_msg_size = attr.max_msg_sz;
	return gid_open(dev);
}
