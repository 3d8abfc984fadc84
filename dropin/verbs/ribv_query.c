/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Queries of the device and its port, answered by the class. */

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ribv.h"

/* Device attributes of the class; zeros on failure. */
static struct rmem_dev_attr
dev_attr(const struct rmem_dev *dev)
{
	struct rmem_dev_attr attr;

	if (rmem_dev_attr_get(dev, &attr) != 0)
		memset(&attr, 0, sizeof(attr));
	return attr;
}

static __be64
guid_of(const uint8_t bytes[8])
{
	__be64 guid;

	memcpy(&guid, bytes, sizeof(guid));
	return guid;
}

static void
fill_attr(const struct rmem_dev *dev, struct ibv_device_attr *attr)
{
	const struct rmem_dev_attr own = dev_attr(dev);
	struct rmem_dev_info info;

	memset(attr, 0, sizeof(*attr));
	if (rmem_dev_info_get(dev, &info) != 0)
		return;
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", own.fw_ver);
	attr->node_guid = guid_of(own.node_guid);
	attr->sys_image_guid = guid_of(own.sys_image_guid);
	attr->vendor_id = own.vendor_id;
	attr->vendor_part_id = own.vendor_part_id;
	attr->hw_ver = own.hw_ver;
	attr->max_mr_size = info.max_mr_size;
	attr->page_size_cap = 0xfffff000;
	attr->max_qp = (int)info.max_qp;
	attr->max_qp_wr = (int)RTE_MIN(info.max_send_wr, info.max_recv_wr);
	attr->device_cap_flags = (unsigned int)own.cap_flags;
	attr->max_sge = (int)RTE_MIN(info.max_send_sge, info.max_recv_sge);
	attr->max_sge_rd = attr->max_sge;
	attr->max_cq = (int)info.max_cq;
	attr->max_cqe = (int)info.max_cqe;
	attr->max_mr = (int)info.max_mr;
	attr->max_mw = (int)info.max_mw;
	attr->max_pd = (int)info.max_pd;
	attr->max_srq = (int)info.max_srq;
	attr->max_srq_wr = (int)info.max_srq_wr;
	attr->max_srq_sge = (int)info.max_srq_sge;
	attr->max_mcast_grp = (int)own.max_mcast_grp;
	attr->max_mcast_qp_attach = (int)own.max_mcast_qp_attach;
	attr->max_total_mcast_qp_attach = (int)own.max_total_mcast_qp_attach;
	attr->max_ah = (int)RTE_MIN(own.max_ah, (uint32_t)RIBV_MAX_AHS);
	attr->max_qp_rd_atom = (int)own.max_dest_rd_atomic;
	attr->max_qp_init_rd_atom = (int)own.max_rd_atomic;
	attr->max_res_rd_atom = (int)own.max_res_rd_atomic;
	attr->atomic_cap = (enum ibv_atomic_cap)own.atomic_cap;
	attr->max_pkeys = (uint16_t)own.max_pkeys;
	attr->local_ca_ack_delay = (uint8_t)own.local_ca_ack_delay;
	attr->phys_port_cnt = (uint8_t)own.nb_ports;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_device)(context, attr);
	if (!ribv_has_device(context))
		return ENOENT;
	if (attr == NULL)
		return EINVAL;
	fill_attr(ribv_dev_of(context), attr);
	return 0;
}

int
ribv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex full;
	struct rmem_dev_info info;
	struct rmem_dev_attr own;

	if (!ribv_has_device(context))
		return ENOENT;
	if (attr == NULL || attr_size < sizeof(attr->orig_attr))
		return EINVAL;
	if (input != NULL && input->comp_mask != 0)
		return EINVAL;
	memset(attr, 0, attr_size);
	fill_attr(ribv_dev_of(context), &attr->orig_attr);
	if (rmem_dev_info_get(ribv_dev_of(context), &info) != 0)
		return EIO;
	own = dev_attr(ribv_dev_of(context));
	memset(&full, 0, sizeof(full));
	full.orig_attr = attr->orig_attr;
	full.odp_caps.general_caps = info.odp.general;
	full.odp_caps.per_transport_caps.rc_odp_caps = info.odp.rc;
	full.odp_caps.per_transport_caps.uc_odp_caps = info.odp.uc;
	full.odp_caps.per_transport_caps.ud_odp_caps = info.odp.ud;
	if ((own.cap_flags & IBV_DEVICE_XRC) != 0)
		full.xrc_odp_caps = info.odp.rc;
	full.completion_timestamp_mask = own.timestamp_mask;
	full.hca_core_clock = own.core_clock_khz;
	full.device_cap_flags_ex = own.cap_flags;
	full.phys_port_cnt_ex = own.nb_ports;
	full.max_dm_size = info.max_dm_size;
	if (info.capa & RMEM_DEV_CAPA_RATE_LIMIT) {
		full.packet_pacing_caps.qp_rate_limit_min = 1;
		full.packet_pacing_caps.qp_rate_limit_max = RIBV_MAX_RATE;
		full.packet_pacing_caps.supported_qpts =
				1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD;
	}
	if (info.capa & RMEM_DEV_CAPA_CQ_MODERATION) {
		full.cq_mod_caps.max_cq_count = RMEM_CQ_MAX_COUNT;
		full.cq_mod_caps.max_cq_period = RMEM_CQ_MAX_PERIOD_US;
	}
	/* A program compiled with an older header has a shorter struct. */
	memcpy(attr, &full, RTE_MIN(attr_size, sizeof(full)));
	return 0;
}

int
ribv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint64_t ticks;
	int ret;

	if (!ribv_has_device(context))
		return ENOENT;
	if (values == NULL || (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK) != 0)
		return EINVAL;
	if (values->comp_mask == 0)
		return 0;
	ret = rmem_dev_clock_get(ribv_dev_of(context), &ticks);
	if (ret != 0)
		return ribv_errno(ret);
	/* In ticks, as providers of libibverbs report it. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)ticks;
	return 0;
}

int
ribv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		size_t len)
{
	struct ibv_port_attr full;
	struct rmem_port_attr own;
	int ret;

	if (!ribv_is_context(context))
		return ENOENT;
	if (attr == NULL)
		return EINVAL;
	ret = rmem_dev_port_query(ribv_dev_of(context), port_num, &own);
	if (ret != 0)
		return ribv_errno(ret);
	memset(&full, 0, sizeof(full));
	full.state = (enum ibv_port_state)own.state;
	full.phys_state = own.phys_state;
	full.max_mtu = (enum ibv_mtu)own.max_mtu;
	full.active_mtu = (enum ibv_mtu)own.active_mtu;
	full.gid_tbl_len = (int)own.gid_tbl_len;
	full.pkey_tbl_len = (uint16_t)own.pkey_tbl_len;
	full.port_cap_flags = own.cap_flags;
	full.port_cap_flags2 = (uint16_t)own.cap_flags2;
	full.max_msg_sz = own.max_msg_size;
	full.bad_pkey_cntr = own.bad_pkeys;
	full.qkey_viol_cntr = own.bad_qkeys;
	full.lid = own.lid;
	full.sm_lid = own.sm_lid;
	full.lmc = own.lmc;
	full.sm_sl = own.sm_sl;
	full.max_vl_num = own.max_vl_num;
	full.subnet_timeout = own.subnet_timeout;
	full.init_type_reply = own.init_type_reply;
	full.active_width = own.active_width;
	full.active_speed = (uint8_t)own.active_speed;
#ifdef RIBV_HAS_ACTIVE_SPEED_EX
	full.active_speed_ex = own.active_speed;
#endif
	full.link_layer = own.link_layer;
	full.flags = own.flags;
	memcpy(attr, &full, RTE_MIN(len, sizeof(full)));
	return 0;
}

int
ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_port)(context, port_num, attr);
	return ribv_query_port(context, port_num, (struct ibv_port_attr *)attr,
			offsetof(struct ibv_port_attr, flags));
}

#ifdef RIBV_HAS_PORT_SPEED

/* Speeds of a lane in units of 0.1 Gb/s, by the bits of active_speed; and lanes by the bits of the
 * width, where 2X is the last. */
static const uint16_t lane_speeds[] = {25, 50, 100, 100, 140, 250, 500, 1000, 2000};
static const uint8_t lanes[] = {1, 4, 8, 12, 2};

int
ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	struct rmem_port_attr own;
	uint32_t speed, width;
	int ret;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_port_speed)(context, port_num, port_speed);
	if (!ribv_is_context(context))
		return ENOENT;
	if (port_speed == NULL)
		return EINVAL;
	ret = rmem_dev_port_query(ribv_dev_of(context), port_num, &own);
	if (ret != 0)
		return ribv_errno(ret);
	if (own.active_speed == 0 || own.active_width == 0)
		return EOPNOTSUPP;
	speed = (uint32_t)__builtin_ctz(own.active_speed);
	width = (uint32_t)__builtin_ctz(own.active_width);
	if (speed >= RTE_DIM(lane_speeds) || width >= RTE_DIM(lanes))
		return EOPNOTSUPP;
	*port_speed = (uint64_t)lane_speeds[speed] * lanes[width];
	return 0;
}

#endif

/* Query an entry of the GID table; 0 or an errno. */
static int
query_gid(const struct ibv_context *context, uint32_t port_num, uint32_t index,
		struct rmem_gid_entry *entry)
{
	int ret = rmem_dev_gid_query(ribv_dev_of(context), port_num, index, entry);

	/* An entry without GID: ENODATA, see ibv_query_gid_ex(3). */
	return ret == -ENOENT ? ENODATA : ret != 0 ? ribv_errno(ret) : 0;
}

int
ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct rmem_gid_entry own;
	int err;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_gid)(context, port_num, index, gid);
	if (!ribv_is_context(context) || gid == NULL)
		return ribv_minus_one(EINVAL);
	err = query_gid(context, port_num, (uint32_t)index, &own);
	if (err != 0 && err != ENODATA)
		return ribv_minus_one(err);
	/* Zeros for an entry without GID, as libibverbs; newer functions fail. */
	if (err == ENODATA)
		memset(own.gid, 0, sizeof(own.gid));
	memcpy(gid->raw, own.gid, sizeof(gid->raw));
	return 0;
}

int
ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		unsigned int *type)
{
	struct rmem_gid_entry own;
	int err;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_gid_type)(context, port_num, index, type);
	if (!ribv_is_context(context) || type == NULL)
		return ribv_minus_one(EINVAL);
	err = query_gid(context, port_num, index, &own);
	if (err != 0 && err != ENODATA)
		return ribv_minus_one(err);
	/* sysfs has the same name for InfiniBand, RoCE v1 and no GID. */
	*type = err == 0 && own.type == RMEM_GID_TYPE_ROCE_V2;
	return 0;
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t index,
		struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct rmem_gid_entry own;
	int err;

	if (ribv_is_real(context))
		return RIBV_NEXT(_ibv_query_gid_ex)(
				context, port_num, index, entry, flags, entry_size);
	if (!ribv_is_context(context))
		return ENOENT;
	if (entry == NULL || flags != 0 || entry_size < sizeof(*entry))
		return EINVAL;
	err = query_gid(context, port_num, index, &own);
	if (err != 0)
		return err;
	memset(entry, 0, entry_size);
	memcpy(entry->gid.raw, own.gid, sizeof(entry->gid.raw));
	entry->gid_index = own.index;
	entry->port_num = own.port_num;
	entry->gid_type = own.type;
	entry->ndev_ifindex = own.ifindex;
	return 0;
}

static ssize_t
minus_errno(int err)
{
	errno = err;
	return -err;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
		uint32_t flags, size_t entry_size)
{
	struct rmem_port_attr port;
	uint32_t i, port_num;
	ssize_t n = 0;
	int err;

	if (ribv_is_real(context))
		return RIBV_NEXT(_ibv_query_gid_table)(
				context, entries, max_entries, flags, entry_size);
	if (!ribv_is_context(context))
		return minus_errno(ENOENT);
	for (port_num = 1; port_num <= dev_attr(ribv_dev_of(context)).nb_ports; port_num++) {
		if (rmem_dev_port_query(ribv_dev_of(context), port_num, &port) != 0)
			return minus_errno(EIO);
		for (i = 0; i < port.gid_tbl_len; i++) {
			if ((size_t)n == max_entries)
				return minus_errno(EINVAL);
			err = _ibv_query_gid_ex(context, port_num, i,
					(struct ibv_gid_entry *)((char *)entries +
							(size_t)n * entry_size),
					flags, entry_size);
			if (err != 0 && err != ENODATA)
				return minus_errno(err);
			n += err == 0;
		}
	}
	return n;
}

int
ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	uint16_t own;
	int ret;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_pkey)(context, port_num, index, pkey);
	if (!ribv_is_context(context) || pkey == NULL)
		return ribv_minus_one(EINVAL);
	/* libibverbs fails to read the file of sysfs, which does not exist. */
	ret = rmem_dev_pkey_query(ribv_dev_of(context), port_num, (uint32_t)index, &own);
	if (ret != 0)
		return ribv_minus_one(ENOENT);
	*pkey = htobe16(own);
	return 0;
}

int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct rmem_port_attr port;
	uint16_t own;
	uint32_t i;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_get_pkey_index)(context, port_num, pkey);
	if (!ribv_is_context(context))
		return ribv_minus_one(EINVAL);
	if (rmem_dev_port_query(ribv_dev_of(context), port_num, &port) != 0)
		return ribv_minus_one(ENOENT);
	for (i = 0; i < port.pkey_tbl_len; i++) {
		if (rmem_dev_pkey_query(ribv_dev_of(context), port_num, i, &own) == 0 &&
				htobe16(own) == pkey)
			return (int)i;
	}
	return ribv_minus_one(ENOENT);
}
