/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Multicast groups that IDs of UD join. The event reports how to send to the group: path, QP number
 * and Q_Key. librdmacm then attaches the QP, which makes the device join the group.
 *
 * With RoCE, the GID of the group is its IP address. The processes of this host form an InfiniBand
 * subnet, where the address is mapped as in the kernel, and the LID is derived from the GID,
 * because there is no subnet manager.
 *
 * Invariant: a group is in the list `joined` from its event until LEAVE_MCAST or the destruction of
 * its ID. No queued event refers to a group that is not in the list.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define MCAST_PKEY    0xffff
#define MCAST_MIN_LID 0xc000
#define MCAST_NB_LIDS 0x3fff

/* A group that an ID has joined. Protected by rcm_lock(). */
struct rcm_mcast {
	struct rcm_mcast *next;
	struct rcm_id *id;
	uint64_t uid; /* set by the program */
	uint32_t handle;
	uint32_t nb_reported; /* events returned to the program */
};

static struct rcm_mcast *joined;
static uint32_t next_handle;

/* Form the GID on the subnet of this host (RFC 4391; cma_set_mgid() in the kernel). */
static void
subnet_gid(const struct rcm_id *id, const struct rcm_addr *addr, uint8_t gid[16])
{
	const uint8_t kind = id->ps == RDMA_PS_UDP ? 0x01 : 0x1b;
	const uint8_t head[6] = {0xff, 0x12, 0x40, kind, MCAST_PKEY >> 8, MCAST_PKEY & 0xff};

	if (addr->family == AF_INET6 && addr->ip[0] == 0xff && (addr->ip[1] & 0xf0) == 0x10 &&
			addr->ip[2] == 0xa0 && addr->ip[3] == 0x1b) {
		memcpy(gid, addr->ip, 16);
		return;
	}
	memset(gid, 0, 16);
	memcpy(gid, head, sizeof(head));
	if (addr->family == AF_INET) {
		memcpy(gid + 12, addr->ip + 12, 4);
		gid[12] &= 0x0f;
		return;
	}
	gid[2] = 0x60;
	memcpy(gid + 6, addr->ip + 6, 10);
}

/* Set the parameters of the event. */
static void
fill_event(const struct rcm_id *id, const struct rcm_addr *addr, const struct rcm_dev *dev,
		struct rdma_ucm_ud_param *ud)
{
	struct ib_uverbs_ah_attr *ah = &ud->ah_attr;

	ud->qp_num = RMEM_MCAST_QPN;
	ud->qkey = id->qkey;
	ah->is_global = 1;
	ah->port_num = RIBV_PORT;
	ah->grh.hop_limit = addr->family == AF_INET && !dev->is_host ? RCM_HOP_LIMIT : 1;
	if (!dev->is_host) {
		memcpy(ah->grh.dgid, addr->ip, sizeof(ah->grh.dgid));
		return;
	}
	subnet_gid(id, addr, ah->grh.dgid);
	ah->dlid = (uint16_t)(MCAST_MIN_LID +
			(ah->grh.dgid[14] << 8 | ah->grh.dgid[15]) % MCAST_NB_LIDS);
}

/* Check as the kernel does: a UD ID with a device, and any address, not only a multicast one. */
static int
check_join(const struct rcm_id *id, const struct rcm_addr *addr)
{
	if (!id->has_dev || (id->state != RCM_BOUND && id->state != RCM_ADDR_RESOLVED) ||
			!rcm_is_ud(id) || rcm_is_any(addr))
		return -EINVAL;
	return 0;
}

static int
join(const struct rcm_cmd *cmd, uint64_t response, struct rcm_id *id, uint64_t uid,
		const struct rcm_addr *addr)
{
	struct rdma_ucm_create_id_resp resp;
	struct rcm_mcast *mcast;
	struct rcm_event *event;
	struct rcm_dev dev;
	int ret;

	ret = check_join(id, addr);
	if (ret == 0 && !rcm_dev_of(id, &dev))
		ret = -ENODEV;
	if (ret != 0)
		return ret;
	mcast = calloc(1, sizeof(*mcast));
	event = mcast != NULL ? rcm_event_new(id, RCM_MULTICAST_JOIN_EVENT, 0) : NULL;
	resp.id = next_handle;
	ret = event == NULL ? -ENOMEM : rcm_respond(cmd, response, &resp, sizeof(resp));
	if (ret != 0) {
		free(event);
		free(mcast);
		return ret;
	}
	*mcast = (struct rcm_mcast){.next = joined, .id = id, .uid = uid, .handle = next_handle++};
	joined = mcast;
	event->mcast = mcast;
	event->resp.uid = uid;
	event->resp.id = mcast->handle;
	fill_event(id, addr, &dev, &event->resp.param.ud);
	rcm_event_queue(id->channel, event);
	return 0;
}

int
rcm_join_ip_mcast(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_join_ip_mcast *in = &cmd->in.join_ip_mcast;
	struct rcm_addr addr;
	struct rcm_id *id;
	int ret;

	if (cmd->out_len < sizeof(struct rdma_ucm_create_id_resp))
		return -ENOSPC;
	ret = rcm_addr_of(&in->addr, sizeof(in->addr), &addr);
	id = ret == 0 ? rcm_id_of(cmd, in->id, &ret) : NULL;
	return id != NULL ? join(cmd, in->response, id, in->uid, &addr) : ret;
}

int
rcm_join_mcast(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_join_mcast *in = &cmd->in.join_mcast;
	struct rcm_addr addr;
	struct rcm_id *id;
	int ret;

	if (cmd->out_len < sizeof(struct rdma_ucm_create_id_resp))
		return -ENOSPC;
	if (in->addr_size > sizeof(in->addr) ||
			(in->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
					in->join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER))
		return -EINVAL;
	ret = rcm_addr_of(&in->addr, in->addr_size, &addr);
	id = ret == 0 ? rcm_id_of(cmd, in->id, &ret) : NULL;
	return id != NULL ? join(cmd, in->response, id, in->uid, &addr) : ret;
}

/* Free a group and its queued events. */
static void
leave(struct rcm_mcast **at)
{
	struct rcm_mcast *mcast = *at;

	rcm_events_drop_mcast(mcast->id, mcast);
	*at = mcast->next;
	free(mcast);
}

int
rcm_leave_mcast(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_destroy_id *in = &cmd->in.destroy_id;
	struct rdma_ucm_destroy_id_resp resp;
	struct rcm_mcast **at = &joined;

	if (cmd->out_len < sizeof(resp))
		return -ENOSPC;
	while (*at != NULL && (*at)->handle != in->id)
		at = &(*at)->next;
	if (*at == NULL)
		return -ENOENT;
	if ((*at)->id->channel != cmd->channel)
		return -EINVAL;
	if ((*at)->id->is_removed)
		return -ENXIO;
	resp.events_reported = (*at)->nb_reported;
	leave(at);
	return rcm_respond(cmd, in->response, &resp, sizeof(resp));
}

void
rcm_mcast_reported(struct rcm_mcast *mcast)
{
	mcast->nb_reported++;
}

void
rcm_mcast_drop(const struct rcm_id *id)
{
	struct rcm_mcast **at = &joined;

	while (*at != NULL) {
		if ((*at)->id == id)
			leave(at);
		else
			at = &(*at)->next;
	}
}
