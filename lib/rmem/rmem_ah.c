/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Address handles. An AH holds a reference to its PD. A post copies the fields of the AH that its
 * request needs.
 */

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <netinet/in.h>

#include <rte_ip.h>

#include "rmem_priv.h"
#include "rmem_trace_priv.h"

static_assert(sizeof(struct rte_ipv6_hdr) == RMEM_GRH_SIZE, "a GRH has the form of IPv6");

static int
check_attr(const struct rmem_dev *dev, const struct rmem_ah_attr *attr)
{
	int ret = rmem_check_reserved(attr->reserved, sizeof(attr->reserved));

	if (ret != 0)
		return ret;
	if ((rmem_obj_info(&dev->obj)->capa & RMEM_DEV_CAPA_UD) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: no QPs of type UD", dev->name);
	if (attr->port_num == 0)
		return RMEM_FAIL(EINVAL, "%s: AH: port_num out of range: 0 (1 to %u)", dev->name,
				UINT8_MAX);
	if (attr->is_global > 1)
		return RMEM_FAIL(EINVAL, "%s: AH: is_global out of range: %u (0 to 1)", dev->name,
				attr->is_global);
	if (attr->is_global && rmem_gid_is_mcast(attr->dgid) &&
			(rmem_obj_info(&dev->obj)->capa & RMEM_DEV_CAPA_MCAST) == 0)
		return RMEM_FAIL(EINVAL, "%s: AH: multicast GID: no multicast on this device",
				dev->name);
	return 0;
}

int
rmem_ah_create(struct rmem_pd *pd, const struct rmem_ah_attr *attr, struct rmem_ah **ah)
{
	RMEM_CALL(pd);
	struct rmem_ah *new_ah;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD);
	if (ret == 0)
		ret = rmem_check_arg(attr, "attributes");
	if (ret == 0)
		ret = rmem_check_arg(ah, "AH pointer");
	if (ret == 0)
		ret = check_attr(rmem_obj_dev(&pd->obj), attr);
	if (ret != 0)
		return ret;
	new_ah = rmem_obj_create(&pd->obj, RMEM_OBJ_AH, rmem_obj_driver(&pd->obj)->ah_size, &ret);
	if (new_ah == NULL)
		return ret;
	new_ah->pd = pd;
	ret = RMEM_OP(pd, ah_create, new_ah, attr);
	if (ret != 0) {
		rmem_obj_drop(&new_ah->obj, &pd->obj);
		return ret;
	}
	*ah = new_ah;
	rmem_trace_ah_create(pd, new_ah, attr->dlid);
	return 0;
}

/* Find the index of the port's GID to which a message was sent. */
static int
find_gid(const struct rmem_dev *dev, uint32_t port_num, const uint8_t gid[16], bool is_roce_v2,
		uint8_t *index)
{
	struct rmem_port_attr port;
	struct rmem_gid_entry entry;
	uint32_t i;
	int ret;

	ret = rmem_dev_port_query(dev, port_num, &port);
	if (ret != 0)
		return ret;
	for (i = 0; i < port.gid_tbl_len && i <= UINT8_MAX; i++) {
		ret = rmem_dev_gid_query(dev, port_num, i, &entry);
		if (ret != 0 && ret != -ENOENT)
			return ret;
		if (ret != 0 || memcmp(entry.gid, gid, sizeof(entry.gid)) != 0 ||
				(entry.type == RMEM_GID_TYPE_ROCE_V2) != is_roce_v2)
			continue;
		*index = (uint8_t)i;
		return 0;
	}
	return RMEM_FAIL(ENOENT, "%s: AH: the message was not sent to a GID of port %u", dev->name,
			port_num);
}

/* Get the path to the source of a message, and its destination as a GID. False: unknown header. */
static bool
get_path(const void *grh, struct rmem_ah_attr *attr, uint8_t dst[16], bool *is_roce_v2)
{
	static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};
	struct rte_ipv6_hdr ip6;
	struct rte_ipv4_hdr ip4;
	rte_be16_t checksum;
	uint32_t vtc_flow;
	bool is_ip6;

	memcpy(&ip6, grh, sizeof(ip6));
	vtc_flow = rte_be_to_cpu_32(ip6.vtc_flow);
	memcpy(&ip4, (const uint8_t *)grh + sizeof(ip6) - sizeof(ip4), sizeof(ip4));
	is_ip6 = vtc_flow >> 28 == 6;
	/*
	 * The bytes before an IPv4 header are undefined (IBTA A17.4.5.2) and may look like IPv6, so
	 * verify the checksum in this case. rdma_rxe sets no checksum in messages of the host to
	 * itself.
	 */
	checksum = ip4.hdr_checksum;
	ip4.hdr_checksum = 0;
	if (ip4.version_ihl == RTE_IPV4_VHL_DEF && (!is_ip6 || rte_ipv4_cksum(&ip4) == checksum)) {
		memcpy(attr->dgid, ipv4_prefix, sizeof(ipv4_prefix));
		memcpy(attr->dgid + sizeof(ipv4_prefix), &ip4.src_addr, sizeof(ip4.src_addr));
		attr->traffic_class = ip4.type_of_service;
		memcpy(dst, ipv4_prefix, sizeof(ipv4_prefix));
		memcpy(dst + sizeof(ipv4_prefix), &ip4.dst_addr, sizeof(ip4.dst_addr));
		*is_roce_v2 = true;
		return true;
	}
	memcpy(attr->dgid, &ip6.src_addr, sizeof(attr->dgid));
	attr->traffic_class = (uint8_t)(vtc_flow >> 20);
	attr->flow_label = vtc_flow & 0xfffff;
	memcpy(dst, &ip6.dst_addr, 16);
	*is_roce_v2 = ip6.proto == IPPROTO_UDP;
	return is_ip6;
}

int
rmem_ah_attr_from_wc(const struct rmem_dev *dev, uint32_t port_num, const struct rmem_wc *wc,
		const void *grh, struct rmem_ah_attr *attr)
{
	RMEM_CALL(dev);
	struct rmem_ah_attr tmp;
	uint8_t own[16];
	bool is_roce_v2;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(wc, "completion");
	if (ret == 0)
		ret = rmem_check_arg(grh, "GRH");
	if (ret == 0)
		ret = rmem_check_arg(attr, "attributes");
	if (ret != 0)
		return ret;
	if ((wc->flags & RMEM_WC_GRH) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: AH: the message has no GRH", dev->name);
	memset(&tmp, 0, sizeof(tmp));
	if (!get_path(grh, &tmp, own, &is_roce_v2))
		return RMEM_FAIL(EINVAL, "%s: AH: not a GRH: neither IPv4 nor IPv6", dev->name);
	ret = find_gid(dev, port_num, own, is_roce_v2, &tmp.sgid_index);
	if (ret != 0)
		return ret;
	tmp.is_global = 1;
	tmp.hop_limit = UINT8_MAX;
	tmp.port_num = (uint8_t)port_num;
	*attr = tmp;
	return 0;
}

int
rmem_ah_destroy(struct rmem_ah *ah)
{
	RMEM_CALL(ah);
	int ret;

	if (ah == NULL)
		return 0;
	ret = rmem_obj_check(ah, RMEM_OBJ_AH);
	if (ret == 0)
		ret = rmem_obj_kill(&ah->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(ah, ah_destroy, ah);
	if (ret == 0)
		rmem_trace_ah_destroy(ah);
	return rmem_obj_end(&ah->obj, &ah->pd->obj, ret);
}
