/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Devices. A device whose peers are the processes of this host serves all addresses of the host; if
 * there are several, only the first is used, and for all links. Any other device serves the
 * addresses in its GID table.
 *
 * Invariant: is_removed[] is read and set under rcm_lock(), and never cleared.
 */

#include <assert.h>
#include <string.h>

#include "../verbs/ribv.h"
#include "rcm.h"

static_assert(RCM_MAX_DEVS == RIBV_MAX_DEVS, "the agent has an entry for QP 1 of each");

static bool is_removed[RCM_MAX_DEVS];

void
rcm_dev_remove(uint32_t number)
{
	is_removed[number] = true;
}

bool
rcm_dev_port(uint32_t number, uint32_t port_num, struct rmem_port_attr *port)
{
	struct rmem_dev_attr attr;

	return rmem_dev_attr_get(ribv_devs[number], &attr) == 0 && port_num <= attr.nb_ports &&
			rmem_dev_port_query(ribv_devs[number], port_num, port) == 0;
}

/* Query a device with the GID at an index of a port's table. */
static bool
get_gid(uint32_t number, const struct rmem_port_attr *port, uint32_t port_num, uint32_t index,
		struct rcm_dev *dev)
{
	struct rmem_gid_entry gid;

	if (is_removed[number] || rmem_dev_gid_query(ribv_devs[number], port_num, index, &gid) != 0)
		return false;
	dev->node_guid = ribv_node_guid(ribv_devs[number]);
	memcpy(dev->gid, gid.gid, sizeof(dev->gid));
	dev->port_num = (uint8_t)port_num;
	dev->sgid_index = (uint8_t)index;
	dev->lid = port->lid;
	dev->mtu = (uint8_t)port->active_mtu;
	dev->is_host = port->link_layer == RMEM_LINK_LAYER_INFINIBAND;
	return true;
}

bool
rcm_dev_gid(uint32_t number, uint32_t port_num, uint32_t index, struct rcm_dev *dev)
{
	struct rmem_port_attr port;

	return rmem_dev_port_query(ribv_devs[number], port_num, &port) == 0 &&
			index < port.gid_tbl_len && get_gid(number, &port, port_num, index, dev);
}

bool
rcm_dev_get(uint32_t number, struct rcm_dev *dev)
{
	return rcm_dev_gid(number, RIBV_PORT, 0, dev);
}

/* Whether a GID of the device is the address; if so, store it in dev. */
static bool
find_gid(uint32_t number, const uint8_t ip[16], struct rcm_dev *dev)
{
	struct rmem_port_attr port;
	uint32_t i, port_num;

	for (port_num = 1; rcm_dev_port(number, port_num, &port); port_num++) {
		for (i = 0; i < port.gid_tbl_len; i++) {
			if (get_gid(number, &port, port_num, i, dev) && !dev->is_host &&
					memcmp(dev->gid, ip, sizeof(dev->gid)) == 0)
				return true;
		}
	}
	return false;
}

bool
rcm_dev_of(const struct rcm_id *id, struct rcm_dev *dev)
{
	if (id->has_dev && find_gid(id->dev, id->src.ip, dev))
		return true;
	return rcm_dev_get(id->has_dev ? id->dev : 0, dev);
}

bool
rcm_dev_host(uint32_t *number, struct rcm_dev *dev)
{
	uint32_t i;

	for (i = 0; ribv_devs[i] != NULL; i++) {
		if (rcm_dev_get(i, dev) && dev->is_host) {
			*number = i;
			return true;
		}
	}
	return false;
}

bool
rcm_dev_find(const uint8_t ip[16], uint32_t *number, struct rcm_dev *dev)
{
	uint32_t i;

	for (i = 0; ribv_devs[i] != NULL; i++) {
		if (find_gid(i, ip, dev)) {
			*number = i;
			return true;
		}
	}
	return rcm_dev_host(number, dev);
}

bool
rcm_has_links(const struct rcm_id *id)
{
	struct rcm_dev dev;
	uint32_t number;

	if (id->has_dev)
		return rcm_dev_get(id->dev, &dev) && dev.is_host;
	return rcm_dev_host(&number, &dev);
}
