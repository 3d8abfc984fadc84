/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Attributes of the device and its ports. With a wire a port is a RoCE v2 port, one per address
 * of ip=, or, with ip=host, an InfiniBand port with the LID of its address. Without a wire it is an
 * InfiniBand port with RSOFT_LID, by which QPs of the device reach each other.
 */

#include <errno.h>
#include <stdio.h>

#include "queue/rsoft_addr.h"
#include "queue/rsoft_group.h"
#include "rsoft_dev.h"
#include "base/rsoft_profile.h"
#include "wire/rwire.h"

/* Values of enum ibv_device_cap_flags and ibv_port_cap_flags, because libibverbs is optional. */
#define DEVICE_SYS_IMAGE_GUID     (UINT64_C(1) << 11)
#define DEVICE_RC_RNR_NAK_GEN     (UINT64_C(1) << 12)
#define DEVICE_SRQ_RESIZE         (UINT64_C(1) << 13)
#define DEVICE_MEM_WINDOW         (UINT64_C(1) << 17)
#define DEVICE_XRC                (UINT64_C(1) << 20)
#define DEVICE_MEM_MGT_EXTENSIONS (UINT64_C(1) << 21)
#define DEVICE_MEM_WINDOW_TYPE_2B (UINT64_C(1) << 24)
#define DEVICE_FLUSH              (UINT64_C(3) << 38) /* GLOBAL, PERSISTENT */
#define DEVICE_ATOMIC_WRITE       (UINT64_C(1) << 40)
#define PORT_IP_BASED_GIDS        (UINT32_C(1) << 26)

#define NO_VENDOR     0xffffff
#define WIDTH_4X      2
#define SPEED_25G     32 /* speed of a lane; nominal */
#define PHYS_LINK_UP  5
#define PHYS_DISABLED 3

static struct rsoft_dev *
dev_of(const struct rmem_dev *base)
{
	return rmem_dev_drv(base)->priv;
}

static uint64_t
cap_flags(uint64_t capa)
{
	uint64_t flags = DEVICE_SYS_IMAGE_GUID | DEVICE_RC_RNR_NAK_GEN;

	if (capa & RMEM_DEV_CAPA_SRQ_RESIZE)
		flags |= DEVICE_SRQ_RESIZE;
	if (capa & RMEM_DEV_CAPA_MW_TYPE_1)
		flags |= DEVICE_MEM_WINDOW;
	if (capa & RMEM_DEV_CAPA_MW_TYPE_2B)
		flags |= DEVICE_MEM_WINDOW_TYPE_2B;
	if (capa & RMEM_DEV_CAPA_LOCAL_INV)
		flags |= DEVICE_MEM_MGT_EXTENSIONS;
	if (capa & RMEM_DEV_CAPA_XRC)
		flags |= DEVICE_XRC;
	if (capa & RMEM_DEV_CAPA_FLUSH)
		flags |= DEVICE_FLUSH;
	if (capa & RMEM_DEV_CAPA_ATOMIC_WRITE)
		flags |= DEVICE_ATOMIC_WRITE;
	return flags;
}

int
rsoft_attr_get(struct rmem_dev *base, struct rmem_dev_attr *attr)
{
	struct rsoft_dev *dev = dev_of(base);
	const uint64_t capa = rsoft_profile_of(dev)->capa;
	const uint32_t version = RMEM_VERSION;

	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%u.%u.%u", version >> 16, version >> 8 & 0xff,
			version & 0xff);
	rsoft_addr_guid(dev, attr->node_guid);
	rsoft_addr_guid(dev, attr->sys_image_guid);
	attr->cap_flags = cap_flags(capa);
	attr->vendor_id = NO_VENDOR;
	attr->vendor_part_id = 1;
	attr->hw_ver = 1;
	attr->nb_ports = dev->tables.nb_ports;
	attr->max_pkeys = dev->wire != NULL ? dev->tables.nb_pkeys : 1;
	if (capa & RMEM_DEV_CAPA_UD)
		attr->max_ah = INT32_MAX; /* limited by memory */
	if (capa & RMEM_DEV_CAPA_MCAST) {
		attr->max_mcast_grp = RSOFT_MAX_GROUPS;
		attr->max_mcast_qp_attach = RSOFT_MAX_GROUP_QPS;
		attr->max_total_mcast_qp_attach = RSOFT_MAX_GROUPS * RSOFT_MAX_GROUP_QPS;
	}
	attr->max_rd_atomic = attr->max_dest_rd_atomic = RSOFT_MAX_RD_ATOMIC;
	attr->max_res_rd_atomic = RSOFT_MAX_RD_ATOMIC * (uint32_t)dev->args.max_qp;
	if (capa & RMEM_DEV_CAPA_CQ_TIMESTAMP) {
		attr->timestamp_mask = UINT64_MAX;
		attr->core_clock_khz = RSOFT_CLOCK_KHZ;
	}
	attr->atomic_cap = (capa & RMEM_DEV_CAPA_ATOMIC) != 0;
	return 0;
}

int
rsoft_attr_clock(struct rmem_dev *base, uint64_t *ticks)
{
	if ((rsoft_profile_of(dev_of(base))->capa & RMEM_DEV_CAPA_CQ_TIMESTAMP) == 0)
		return -EOPNOTSUPP;
	*ticks = rsoft_clock();
	return 0;
}

int
rsoft_attr_port(struct rmem_dev *base, uint32_t port_num, struct rmem_port_attr *attr)
{
	struct rsoft_dev *dev = dev_of(base);

	attr->state = RMEM_PORT_ACTIVE;
	attr->phys_state = PHYS_LINK_UP;
	attr->max_mtu = attr->active_mtu = RSOFT_MTU_NONE;
	attr->gid_tbl_len = attr->pkey_tbl_len = 1;
	attr->max_msg_size = (uint32_t)rsoft_profile_of(dev)->max_msg_size;
	attr->active_width = WIDTH_4X;
	attr->active_speed = SPEED_25G;
	attr->max_vl_num = 1;
	attr->link_layer = RMEM_LINK_LAYER_INFINIBAND;
	if (dev->wire == NULL) {
		attr->lid = attr->sm_lid = RSOFT_LID;
		return 0;
	}
	if ((rwire_netif_get(dev->wire, port_num, NULL) & RWIRE_NETIF_UP) == 0) {
		attr->state = RMEM_PORT_DOWN;
		attr->phys_state = PHYS_DISABLED;
	}
	attr->max_mtu = rsoft_addr_mtu_code(dev->wire->port->max_mtu);
	attr->active_mtu = rsoft_addr_mtu_code(dev->address.mtu);
	attr->gid_tbl_len = dev->tables.nb_gids;
	attr->pkey_tbl_len = dev->tables.nb_pkeys;
	attr->lid = attr->sm_lid = rsoft_addr_lid(dev, port_num);
	attr->bad_pkeys = (uint32_t)__atomic_load_n(&dev->wire->stats.drop_pkey, __ATOMIC_RELAXED);
	attr->bad_qkeys = (uint32_t)__atomic_load_n(&dev->wire->stats.drop_qkey, __ATOMIC_RELAXED);
	if (attr->lid != 0)
		return 0;
	attr->link_layer = RMEM_LINK_LAYER_ETHERNET;
	attr->cap_flags = PORT_IP_BASED_GIDS;
	return 0;
}

int
rsoft_attr_gid(struct rmem_dev *base, struct rmem_gid_entry *entry)
{
	struct rsoft_dev *dev = dev_of(base);
	uint8_t slot = rsoft_gid_slot(entry->port_num, entry->index);
	bool has_gid;

	if (dev->wire != NULL &&
			(rwire_netif_get(dev->wire, entry->port_num, &entry->ifindex) &
					RWIRE_NETIF_GID) == 0 &&
			entry->index == 0)
		return -ENOENT;
	rsoft_lock(&rsoft_domain->lock);
	has_gid = rsoft_addr_gid_at(dev, slot, entry->gid);
	if (entry->index != 0)
		entry->ifindex = dev->tables.ifindex[slot];
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (!has_gid)
		return -ENOENT;
	entry->type = dev->wire != NULL && dev->address.lid == 0 ? RMEM_GID_TYPE_ROCE_V2
								 : RMEM_GID_TYPE_IB;
	return 0;
}

int
rsoft_attr_pkey(struct rmem_dev *base, uint32_t port_num, uint32_t index, uint16_t *pkey)
{
	const struct rsoft_dev *dev = dev_of(base);

	*pkey = RWIRE_PKEY;
	if (dev->wire != NULL)
		*pkey = __atomic_load_n(&dev->tables.pkey[rsoft_pkey_slot(port_num, index)],
				__ATOMIC_RELAXED);
	return 0;
}
