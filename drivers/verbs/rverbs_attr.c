/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Attributes of the device and of all its ports; port attributes are read from the device. */

#include <string.h>

#include <rte_byteorder.h>

#include "rverbs.h"

static struct rverbs_dev *
dev_of(const struct rmem_dev *base)
{
	return rmem_dev_drv(base)->priv;
}

int
rverbs_attr_get(struct rmem_dev *base, struct rmem_dev_attr *attr)
{
	const struct rverbs_dev *dev = dev_of(base);
	const struct ibv_device_attr *own = &dev->attr.orig_attr;

	memcpy(attr->fw_ver, own->fw_ver, sizeof(attr->fw_ver) - 1);
	memcpy(attr->node_guid, &own->node_guid, sizeof(attr->node_guid));
	memcpy(attr->sys_image_guid, &own->sys_image_guid, sizeof(attr->sys_image_guid));
	attr->cap_flags = own->device_cap_flags | dev->attr.device_cap_flags_ex;
	attr->timestamp_mask = dev->attr.completion_timestamp_mask;
	attr->core_clock_khz = dev->attr.hca_core_clock;
	attr->vendor_id = own->vendor_id;
	attr->vendor_part_id = own->vendor_part_id;
	attr->hw_ver = own->hw_ver;
	attr->nb_ports = own->phys_port_cnt;
	attr->max_pkeys = own->max_pkeys;
	attr->max_ah = (uint32_t)RTE_MAX(own->max_ah, 0);
	attr->max_mcast_grp = (uint32_t)RTE_MAX(own->max_mcast_grp, 0);
	attr->max_mcast_qp_attach = (uint32_t)RTE_MAX(own->max_mcast_qp_attach, 0);
	attr->max_total_mcast_qp_attach = (uint32_t)RTE_MAX(own->max_total_mcast_qp_attach, 0);
	attr->max_rd_atomic = (uint32_t)RTE_MAX(own->max_qp_init_rd_atom, 0);
	attr->max_dest_rd_atomic = (uint32_t)RTE_MAX(own->max_qp_rd_atom, 0);
	attr->max_res_rd_atomic = (uint32_t)RTE_MAX(own->max_res_rd_atom, 0);
	attr->atomic_cap = (uint32_t)own->atomic_cap;
	attr->local_ca_ack_delay = own->local_ca_ack_delay;
	return 0;
}

/* Providers return ticks of the clock of completions as nanoseconds, even if its rate differs. */
int
rverbs_attr_clock(struct rmem_dev *base, uint64_t *ticks)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	const struct rverbs_dev *dev = dev_of(base);
	int ret;

	if ((dev->capa & RMEM_DEV_CAPA_CQ_TIMESTAMP) == 0)
		return -EOPNOTSUPP;
	ret = ibv_query_rt_values_ex(dev->context, &values);
	if (ret != 0 || (values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0) {
		RVERBS_LOG(ERR, "ibv_query_rt_values_ex: no clock: %s", strerror(ret));
		return -EIO;
	}
	*ticks = (uint64_t)values.raw_clock.tv_sec * 1000000000 +
			(uint64_t)values.raw_clock.tv_nsec;
	return 0;
}

int
rverbs_attr_port(struct rmem_dev *base, uint32_t port_num, struct rmem_port_attr *attr)
{
	struct ibv_port_attr own;
	int ret;

	memset(&own, 0, sizeof(own));
	ret = rverbs_err_code(ibv_query_port(dev_of(base)->context, (uint8_t)port_num, &own),
			RVERBS_ERR_CHANGE, "ibv_query_port");
	if (ret != 0)
		return ret;
	attr->state = own.state;
	attr->max_mtu = own.max_mtu;
	attr->active_mtu = own.active_mtu;
	attr->gid_tbl_len = (uint32_t)RTE_MAX(own.gid_tbl_len, 0);
	attr->pkey_tbl_len = own.pkey_tbl_len;
	attr->cap_flags = own.port_cap_flags;
	attr->cap_flags2 = own.port_cap_flags2;
	attr->max_msg_size = own.max_msg_sz;
	attr->bad_pkeys = own.bad_pkey_cntr;
	attr->bad_qkeys = own.qkey_viol_cntr;
	attr->lid = own.lid;
	attr->sm_lid = own.sm_lid;
	attr->lmc = own.lmc;
	attr->sm_sl = own.sm_sl;
	attr->max_vl_num = own.max_vl_num;
	attr->subnet_timeout = own.subnet_timeout;
	attr->init_type_reply = own.init_type_reply;
	attr->active_width = own.active_width;
	attr->active_speed = own.active_speed;
	attr->phys_state = own.phys_state;
	attr->link_layer = own.link_layer;
	attr->flags = own.flags;
	return 0;
}

int
rverbs_attr_gid(struct rmem_dev *base, struct rmem_gid_entry *entry)
{
	struct ibv_gid_entry own;
	int err;

	memset(&own, 0, sizeof(own));
	err = ibv_query_gid_ex(dev_of(base)->context, entry->port_num, entry->index, &own, 0);
	if (err == ENODATA)
		return -ENOENT;
	if (err != 0)
		return rverbs_err_code(err, RVERBS_ERR_CHANGE, "ibv_query_gid_ex");
	memcpy(entry->gid, own.gid.raw, sizeof(entry->gid));
	entry->type = own.gid_type;
	entry->ifindex = own.ndev_ifindex;
	return 0;
}

int
rverbs_attr_pkey(struct rmem_dev *base, uint32_t port_num, uint32_t index, uint16_t *pkey)
{
	__be16 own = 0;
	int ret;

	ret = rverbs_err_minus(
			ibv_query_pkey(dev_of(base)->context, (uint8_t)port_num, (int)index, &own),
			"ibv_query_pkey");
	if (ret == 0)
		*pkey = rte_be_to_cpu_16(own);
	return ret;
}
