/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Groups of rdma_cm: what may join, what the event has, and the events of groups that are left. */

#include <infiniband/verbs.h>

#include "cm_cmd.h"

#define MULTICAST_JOIN 12
#define UID            77u

static int fd;

static int
join(uint32_t id, const char *ip, uint16_t flags, uint32_t *group)
{
	struct rdma_ucm_create_id_resp resp = {.id = NO_ID};
	struct rdma_ucm_join_mcast in = {.response = (uintptr_t)&resp,
			.uid = UID,
			.id = id,
			.addr_size = sizeof(struct sockaddr_in),
			.join_flags = flags};
	struct sockaddr_in addr = cm_addr(ip, 0);
	int ret;

	memcpy(&in.addr, &addr, sizeof(addr));
	ret = cm_run(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(resp));
	*group = resp.id;
	return ret;
}

static int
join_ip(uint32_t id, const char *ip, uint32_t *group)
{
	struct rdma_ucm_create_id_resp resp = {.id = NO_ID};
	struct rdma_ucm_join_ip_mcast in = {.response = (uintptr_t)&resp, .uid = UID, .id = id};
	struct sockaddr_in addr = cm_addr(ip, 0);
	int ret;

	memcpy(&in.addr, &addr, sizeof(addr));
	ret = cm_run(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &in, sizeof(in), sizeof(resp));
	*group = resp.id;
	return ret;
}

/* Events that were reported, or -1 with errno set. */
static int
leave(int channel, uint32_t group)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&resp, .id = group};

	errno = cm_run(channel, RDMA_USER_CM_CMD_LEAVE_MCAST, &in, sizeof(in), sizeof(resp));
	return errno == 0 ? (int)resp.events_reported : -1;
}

static void
refused(uint32_t bound)
{
	uint32_t tcp = cm_create(fd, RDMA_PS_TCP), idle = cm_create(fd, RDMA_PS_UDP), group;

	HOLDS(cm_bind(fd, tcp, LOOPBACK, 0) == 0);
	HOLDS(join(tcp, "239.1.1.1", RDMA_MC_JOIN_FLAG_FULLMEMBER, &group) == EINVAL);
	HOLDS(join(idle, "239.1.1.1", RDMA_MC_JOIN_FLAG_FULLMEMBER, &group) == EINVAL);
	HOLDS(join(bound, "239.1.1.1", 7, &group) == EINVAL);
	HOLDS(join(bound, "0.0.0.0", RDMA_MC_JOIN_FLAG_FULLMEMBER, &group) == EINVAL);
	HOLDS(join(4711, "239.1.1.1", RDMA_MC_JOIN_FLAG_FULLMEMBER, &group) == ENOENT);
	HOLDS(group == NO_ID);
	HOLDS(leave(fd, 4711) == -1 && errno == ENOENT);
	HOLDS(cm_destroy(fd, tcp) == 0 && cm_destroy(fd, idle) == 0);
}

static void
check_event(const struct rdma_ucm_event_resp *event, uint32_t group)
{
	static const uint8_t gid[16] = {0xff, 0x12, 0x40, 1, 0xff, 0xff, [12] = 15, 2, 1, 3};

	HOLDS(event->uid == UID && event->id == group && event->status == 0);
	HOLDS(event->param.ud.qp_num == 0xffffff);
	HOLDS(event->param.ud.qkey == 0x01234567);
	HOLDS(event->param.ud.ah_attr.is_global == 1 && event->param.ud.ah_attr.port_num == 1);
	HOLDS(memcmp(event->param.ud.ah_attr.grh.dgid, gid, sizeof(gid)) == 0);
	HOLDS(event->param.ud.ah_attr.dlid >= 0xc000 && event->param.ud.ah_attr.dlid < 0xffff);
}

int
main(void)
{
	uint32_t id, first, second, third;
	struct rdma_ucm_event_resp event;
	int other;

	HOLDS(setenv("RMEM_IBV", "soft0,ip=host", 1) == 0);
	fd = cm_open();
	other = cm_open();
	id = cm_create(fd, RDMA_PS_UDP);
	HOLDS(cm_bind(fd, id, LOOPBACK, 0) == 0);
	refused(id);
	HOLDS(join(id, "239.2.1.3", RDMA_MC_JOIN_FLAG_FULLMEMBER, &first) == 0);
	HOLDS(join_ip(id, "239.2.1.3", &second) == 0);
	HOLDS(join(id, "239.2.1.4", RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, &third) == 0);
	HOLDS(first != second && second != third);
	HOLDS(leave(other, first) == -1 && errno == EINVAL);
	event = cm_expect(fd, MULTICAST_JOIN);
	check_event(&event, first);
	HOLDS(leave(fd, first) == 1);
	HOLDS(leave(fd, first) == -1 && errno == ENOENT);
	/* The event of a group that is left is dropped, that of the next one stays. */
	HOLDS(leave(fd, second) == 0);
	event = cm_expect(fd, MULTICAST_JOIN);
	HOLDS(event.id == third);
	HOLDS(cm_destroy(fd, id) == 2);
	HOLDS(leave(fd, third) == -1 && errno == ENOENT);
	HOLDS(close(fd) == 0 && close(other) == 0);
	return 0;
}
