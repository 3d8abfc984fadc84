/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fill commands of rdma_cm for the IDs of a program, so that many of them are valid. */

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "fuzz_cm.h"

uint32_t
fuzz_cm_pick(uint32_t channel, bool is_other, uint32_t n)
{
	uint32_t i, nb = 0;

	for (i = 0; i < fz.end_id; i++)
		nb += fz.ids[i].is_used && (fz.ids[i].channel == channel) != is_other;
	if (nb == 0)
		return n;
	for (i = 0, n %= nb;; i++) {
		if (fz.ids[i].is_used && (fz.ids[i].channel == channel) != is_other && n-- == 0)
			return i;
	}
}

static uint16_t
port_of(const struct step *step)
{
	const struct rcm_id *id = rcm_id_get(fuzz_cm_pick(MAX_CHANNELS, true, step->value >> 2));

	switch (step->value % 8) {
	case 1:
		return (uint16_t)(20000 + getpid() % 8000 + (step->value >> 3) % 4);
	case 2:
		return 1;
	case 3:
		return id != NULL ? id->src.port : 0;
	default:
		return 0;
	}
}

static socklen_t
fill_addr(const struct step *step, void *to, bool is_likely)
{
	static const char *const names[] = {"127.0.0.1", FUZZ_IP, "0.0.0.0", "::1",
			"::", "127.0.0.1", FUZZ_IP, "127.0.0.2", "::ffff:127.0.0.1", "224.1.2.3",
			"255.255.255.255", "203.0.113.9", "ff0e::1", "fe80::1", "2001:db8::1"};
	const char *name = names[step->what % (is_likely ? 7 : RTE_DIM(names))];
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port_of(step))};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = in.sin_port};

	if (inet_pton(AF_INET, name, &in.sin_addr) == 1) {
		memcpy(to, &in, sizeof(in));
		return sizeof(in);
	}
	CHECK(inet_pton(AF_INET6, name, &in6.sin6_addr) == 1);
	memcpy(to, &in6, sizeof(in6));
	return sizeof(in6);
}

/* The address of a listening ID; without one, or sometimes, any address. */
static socklen_t
fill_peer(const struct step *step, void *to)
{
	const struct rcm_id *id = NULL;
	struct rcm_addr addr;
	uint32_t handle, n = 0, i;

	for (i = 0; i < fz.end_id && step->what % 8 != 0; i++) {
		handle = (i + step->value) % fz.end_id;
		id = fz.ids[handle].is_used ? rcm_id_get(handle) : NULL;
		if (id != NULL && id->state == RCM_LISTEN && n++ == step->what / 8 % 4)
			break;
		id = NULL;
	}
	if (id == NULL)
		return fill_addr(step, to, false);
	addr = id->src;
	return rcm_sockaddr(&addr, to);
}

static void
fill_param(const struct step *step, struct rdma_ucm_conn_param *param)
{
	*param = (struct rdma_ucm_conn_param){.qp_num = 0x800000u + step->value,
			.qkey = step->what % 4 == 0 ? step->value : 0,
			.responder_resources = step->what,
			.initiator_depth = step->what,
			.retry_count = 7,
			.rnr_retry_count = step->what % 16,
			.private_data_len = step->what % 8 == 0 ? (uint8_t)step->value
								: step->what % 57,
			.srq = step->what & 1,
			.valid = 1};
	memset(param->private_data, step->what, sizeof(param->private_data));
}

static void
fill_create(const struct step *step, struct rdma_ucm_create_id *in)
{
	static const uint16_t spaces[] = {RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP,
			RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB, 99};

	in->uid = ++fz.last_uid;
	in->ps = spaces[step->what % RTE_DIM(spaces)];
	in->qp_type = (uint8_t)(IBV_QPT_RC + step->value % 4);
}

static void
fill_addrs(struct command *command, const struct step *step, uint32_t handle)
{
	struct rdma_ucm_resolve_addr *addr = &command->in.resolve_addr;
	struct rdma_ucm_resolve_ip *ip = &command->in.resolve_ip;

	switch (command->number) {
	case RDMA_USER_CM_CMD_BIND_IP:
		command->in.bind_ip.id = handle;
		(void)fill_addr(step, &command->in.bind_ip.addr, true);
		break;
	case RDMA_USER_CM_CMD_BIND:
		command->in.bind.id = handle;
		command->in.bind.addr_size =
				(uint16_t)fill_addr(step, &command->in.bind.addr, false);
		break;
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		ip->id = handle;
		(void)fill_peer(step, &ip->dst_addr);
		if (step->value % 4 == 0)
			(void)fill_addr(step, &ip->src_addr, false);
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		addr->id = handle;
		addr->dst_size = (uint16_t)fill_peer(step, &addr->dst_addr);
		if (step->value % 4 == 0)
			addr->src_size = (uint16_t)fill_addr(step, &addr->src_addr, false);
		break;
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		command->in.join_ip_mcast.id = handle;
		command->in.join_ip_mcast.uid = ++fz.last_uid;
		(void)fill_addr(step, &command->in.join_ip_mcast.addr, false);
		break;
	default:
		command->in.join_mcast.id = handle;
		command->in.join_mcast.uid = ++fz.last_uid;
		command->in.join_mcast.join_flags = step->value % 3;
		command->in.join_mcast.addr_size =
				(uint16_t)fill_addr(step, &command->in.join_mcast.addr, false);
		break;
	}
}

static void
fill_conn(struct command *command, const struct step *step, uint32_t handle)
{
	const struct rcm_id *id = rcm_id_get(handle);

	switch (command->number) {
	case RDMA_USER_CM_CMD_CONNECT:
		command->in.connect.id = handle;
		fill_param(step, &command->in.connect.conn_param);
		break;
	case RDMA_USER_CM_CMD_ACCEPT:
		command->in.accept.id = handle;
		command->in.accept.uid = ++fz.last_uid;
		fill_param(step, &command->in.accept.conn_param);
		command->in.accept.conn_param.valid = id == NULL || id->state != RCM_REP_RECEIVED;
		break;
	case RDMA_USER_CM_CMD_REJECT:
		command->in.reject.id = handle;
		command->in.reject.private_data_len = step->what;
		command->in.reject.reason = step->value % 4 == 0 ? RCM_REJ_VENDOR_OPTION : 0;
		break;
	case RDMA_USER_CM_CMD_SET_OPTION:
		command->in.set_option.id = handle;
		command->in.set_option.level = step->what % 8 == 0;
		command->in.set_option.optname = step->value % 5;
		command->in.set_option.optlen =
				step->value % 5 == 1 || step->value % 5 == 2 ? sizeof(int) : 1;
		break;
	default:
		command->in.migrate_id.id = handle;
		command->in.migrate_id.fd = (uint32_t)fuzz_cm_fd(step->value % MAX_CHANNELS);
		break;
	}
}

/* Commands that consist of an ID begin with it. */
void
fuzz_cm_fill(struct command *command, const struct step *step, uint32_t handle)
{
	const uint32_t number = command->number;

	memset(&command->in, 0, sizeof(command->in));
	command->in_len = fuzz_cm_in_len(number);
	command->out_len = fuzz_cm_out_len(number);
	switch (number) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		fill_create(step, &command->in.create_id);
		break;
	case RDMA_USER_CM_CMD_DESTROY_ID:
		command->in.destroy_id.id = handle;
		break;
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
		command->in.destroy_id.id = fz.nb_groups == 0
				? step->value
				: fz.groups[step->value % fz.nb_groups].handle;
		break;
	case RDMA_USER_CM_CMD_QUERY:
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
		command->in.query.id = handle;
		command->in.query.option = step->value % 4;
		break;
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
		command->in.init_qp_attr.id = handle;
		command->in.init_qp_attr.qp_state = step->value % 5;
		break;
	case RDMA_USER_CM_CMD_CONNECT:
	case RDMA_USER_CM_CMD_ACCEPT:
	case RDMA_USER_CM_CMD_REJECT:
	case RDMA_USER_CM_CMD_SET_OPTION:
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		fill_conn(command, step, handle);
		break;
	case RDMA_USER_CM_CMD_BIND_IP:
	case RDMA_USER_CM_CMD_BIND:
	case RDMA_USER_CM_CMD_RESOLVE_IP:
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		fill_addrs(command, step, handle);
		break;
	default:
		command->in.notify.id = handle;
		command->in.notify.event = step->what % 4 == 0 ? step->value : IBV_EVENT_COMM_EST;
		break;
	}
}

uint32_t
fuzz_cm_due(uint32_t handle, uint32_t value)
{
	const struct rcm_id *id = rcm_id_get(handle);

	if (id == NULL || id->is_queued)
		return RDMA_USER_CM_CMD_CREATE_ID;
	switch (id->state) {
	case RCM_IDLE:
		return value % 4 == 0            ? RDMA_USER_CM_CMD_LISTEN
				: value % 4 == 1 ? RDMA_USER_CM_CMD_BIND_IP
						 : RDMA_USER_CM_CMD_RESOLVE_IP;
	case RCM_BOUND:
		return value % 3 == 0 ? RDMA_USER_CM_CMD_RESOLVE_ADDR : RDMA_USER_CM_CMD_LISTEN;
	case RCM_ADDR_RESOLVED:
		return rcm_is_ud(id) && value % 2 == 0 ? RDMA_USER_CM_CMD_JOIN_IP_MCAST
						       : RDMA_USER_CM_CMD_RESOLVE_ROUTE;
	case RCM_ROUTE_RESOLVED:
		return RDMA_USER_CM_CMD_CONNECT;
	case RCM_REQ_RECEIVED:
		return value % 8 == 0 ? RDMA_USER_CM_CMD_REJECT : RDMA_USER_CM_CMD_ACCEPT;
	case RCM_REP_RECEIVED:
		return RDMA_USER_CM_CMD_ACCEPT;
	case RCM_REP_SENT:
		return value % 4 == 0 ? RDMA_USER_CM_CMD_NOTIFY : RDMA_USER_CM_CMD_GET_EVENT;
	case RCM_ESTABLISHED:
		return value % 2 == 0 ? RDMA_USER_CM_CMD_INIT_QP_ATTR : RDMA_USER_CM_CMD_DISCONNECT;
	case RCM_ENDED:
		return RDMA_USER_CM_CMD_DESTROY_ID;
	default:
		return RDMA_USER_CM_CMD_GET_EVENT;
	}
}
