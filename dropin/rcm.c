/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The commands: their lengths, and what runs them. */

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "rcm.h"
#include "ribv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void
rcm_lock(void)
{
	pthread_mutex_lock(&lock);
}

bool
rcm_trylock(void)
{
	return pthread_mutex_trylock(&lock) == 0;
}

void
rcm_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

int
rcm_respond(const struct rcm_cmd *cmd, uint64_t to, const void *resp, size_t size)
{
	if (cmd->out_len < size)
		return -ENOSPC;
	if (to == 0)
		return -EFAULT;
	memcpy((void *)(uintptr_t)to, resp, size);
	return 0;
}

/* Multicast. */
static int
refuse(const struct rcm_cmd *cmd)
{
	RTE_SET_USED(cmd);
	return -EOPNOTSUPP;
}

/* Commands, and the least bytes of their input: fields were added at the ends. GET_EVENT waits, so
 * it is not among them. */
static const struct {
	rcm_run_t run;
	size_t in_len;
} commands[] = {
		[RDMA_USER_CM_CMD_CREATE_ID] = {rcm_create_id, sizeof(struct rdma_ucm_create_id)},
		[RDMA_USER_CM_CMD_DESTROY_ID] = {rcm_destroy_id,
				sizeof(struct rdma_ucm_destroy_id)},
		[RDMA_USER_CM_CMD_BIND_IP] = {rcm_bind_ip, sizeof(struct rdma_ucm_bind_ip)},
		[RDMA_USER_CM_CMD_RESOLVE_IP] = {rcm_resolve_ip,
				sizeof(struct rdma_ucm_resolve_ip)},
		[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {rcm_resolve_route,
				sizeof(struct rdma_ucm_resolve_route)},
		[RDMA_USER_CM_CMD_QUERY_ROUTE] = {rcm_query_route,
				offsetof(struct rdma_ucm_query, option)},
		[RDMA_USER_CM_CMD_CONNECT] = {rcm_connect, offsetof(struct rdma_ucm_connect, ece)},
		[RDMA_USER_CM_CMD_LISTEN] = {rcm_listen, sizeof(struct rdma_ucm_listen)},
		[RDMA_USER_CM_CMD_ACCEPT] = {rcm_accept, offsetof(struct rdma_ucm_accept, ece)},
		[RDMA_USER_CM_CMD_REJECT] = {rcm_reject, sizeof(struct rdma_ucm_reject)},
		[RDMA_USER_CM_CMD_DISCONNECT] = {rcm_disconnect,
				sizeof(struct rdma_ucm_disconnect)},
		[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {rcm_init_qp_attr,
				sizeof(struct rdma_ucm_init_qp_attr)},
		[RDMA_USER_CM_CMD_GET_OPTION] = {rcm_get_option, 0},
		[RDMA_USER_CM_CMD_SET_OPTION] = {rcm_set_option,
				sizeof(struct rdma_ucm_set_option)},
		[RDMA_USER_CM_CMD_NOTIFY] = {rcm_notify, sizeof(struct rdma_ucm_notify)},
		[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {refuse, 0},
		[RDMA_USER_CM_CMD_LEAVE_MCAST] = {refuse, 0},
		[RDMA_USER_CM_CMD_MIGRATE_ID] = {rcm_migrate_id,
				sizeof(struct rdma_ucm_migrate_id)},
		[RDMA_USER_CM_CMD_QUERY] = {rcm_query, sizeof(struct rdma_ucm_query)},
		[RDMA_USER_CM_CMD_BIND] = {rcm_bind, sizeof(struct rdma_ucm_bind)},
		[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {rcm_resolve_addr,
				sizeof(struct rdma_ucm_resolve_addr)},
		[RDMA_USER_CM_CMD_JOIN_MCAST] = {refuse, 0},
};

static int
run(int fd, const struct rdma_ucm_cmd_hdr *hdr, const uint8_t *data, int cancel_state)
{
	struct rcm_cmd cmd = {.in_len = RTE_MIN((size_t)hdr->in, sizeof(cmd.in)),
			.out_len = hdr->out,
			.cancel_state = cancel_state};
	int ret;

	memcpy(&cmd.in, data, cmd.in_len);
	if (hdr->cmd == RDMA_USER_CM_CMD_GET_EVENT)
		return cmd.in_len < sizeof(cmd.in.get_event) ? -EINVAL : rcm_get_event(fd, &cmd);
	if (hdr->cmd >= RTE_DIM(commands))
		return -ENOSYS;
	if (cmd.in_len < commands[hdr->cmd].in_len)
		return -EINVAL;
	rcm_lock();
	cmd.channel = rcm_channel_of(fd);
	ret = cmd.channel != NULL ? commands[hdr->cmd].run(&cmd) : -EBADF;
	rcm_unlock();
	return ret;
}

ssize_t
rcm_write(int fd, const void *data, size_t size)
{
	struct rdma_ucm_cmd_hdr hdr;
	int ret, state;

	if (!rcm_is_channel(fd))
		return __write(fd, data, size);
	if (data == NULL)
		return ribv_minus_one(EFAULT);
	if (size < sizeof(hdr))
		return ribv_minus_one(EINVAL);
	memcpy(&hdr, data, sizeof(hdr));
	if (hdr.in > size - sizeof(hdr))
		return ribv_minus_one(EINVAL);
	/* A thread is cancelled while it waits, and never while it holds the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = run(fd, &hdr, (const uint8_t *)data + sizeof(hdr), state);
	pthread_setcancelstate(state, NULL);
	return ret != 0 ? ribv_minus_one(-ret) : (ssize_t)size;
}
