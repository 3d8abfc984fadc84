/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Commands of rdma_cm: check their lengths and run them.
 *
 * Invariant: a command runs under rcm_lock(), in a thread that can't be cancelled, on a copy of its
 * input. Fields that the program did not pass are 0 in the copy.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <rmem_log.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define NO_CHANNEL 1 /* not an errno: the descriptor is not a channel */

RTE_LOG_REGISTER(rcm_logtype, lib.rmem.ibv.cm, NOTICE)

/* The commands and their minimum input sizes; newer ABIs append fields. GET_EVENT is not in the
 * table because it waits. */
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
		[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {rcm_join_ip_mcast,
				sizeof(struct rdma_ucm_join_ip_mcast)},
		[RDMA_USER_CM_CMD_LEAVE_MCAST] = {rcm_leave_mcast,
				sizeof(struct rdma_ucm_destroy_id)},
		[RDMA_USER_CM_CMD_MIGRATE_ID] = {rcm_migrate_id,
				sizeof(struct rdma_ucm_migrate_id)},
		[RDMA_USER_CM_CMD_QUERY] = {rcm_query, sizeof(struct rdma_ucm_query)},
		[RDMA_USER_CM_CMD_BIND] = {rcm_bind, sizeof(struct rdma_ucm_bind)},
		[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {rcm_resolve_addr,
				sizeof(struct rdma_ucm_resolve_addr)},
		[RDMA_USER_CM_CMD_JOIN_MCAST] = {rcm_join_mcast,
				sizeof(struct rdma_ucm_join_mcast)},
};

/* Command names for the log. */
static const char *const names[] = {
		[RDMA_USER_CM_CMD_CREATE_ID] = "CREATE_ID",
		[RDMA_USER_CM_CMD_DESTROY_ID] = "DESTROY_ID",
		[RDMA_USER_CM_CMD_BIND_IP] = "BIND_IP",
		[RDMA_USER_CM_CMD_CONNECT] = "CONNECT",
		[RDMA_USER_CM_CMD_LISTEN] = "LISTEN",
		[RDMA_USER_CM_CMD_ACCEPT] = "ACCEPT",
		[RDMA_USER_CM_CMD_REJECT] = "REJECT",
		[RDMA_USER_CM_CMD_DISCONNECT] = "DISCONNECT",
		[RDMA_USER_CM_CMD_RESOLVE_IP] = "RESOLVE_IP",
		[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = "RESOLVE_ROUTE",
		[RDMA_USER_CM_CMD_QUERY_ROUTE] = "QUERY_ROUTE",
		[RDMA_USER_CM_CMD_INIT_QP_ATTR] = "INIT_QP_ATTR",
		[RDMA_USER_CM_CMD_GET_EVENT] = "GET_EVENT",
		[RDMA_USER_CM_CMD_GET_OPTION] = "GET_OPTION",
		[RDMA_USER_CM_CMD_SET_OPTION] = "SET_OPTION",
		[RDMA_USER_CM_CMD_NOTIFY] = "NOTIFY",
		[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = "JOIN_IP_MCAST",
		[RDMA_USER_CM_CMD_LEAVE_MCAST] = "LEAVE_MCAST",
		[RDMA_USER_CM_CMD_MIGRATE_ID] = "MIGRATE_ID",
		[RDMA_USER_CM_CMD_QUERY] = "QUERY",
		[RDMA_USER_CM_CMD_BIND] = "BIND",
		[RDMA_USER_CM_CMD_RESOLVE_ADDR] = "RESOLVE_ADDR",
		[RDMA_USER_CM_CMD_JOIN_MCAST] = "JOIN_MCAST",
};

static void
log_refused(uint32_t cmd, int ret)
{
	const char *name = cmd < RTE_DIM(names) ? names[cmd] : NULL;

	RMEM_LOG_LINE(ERR, rcm_logtype, "rmem_ibv", "rdma_cm: %s (command %u) refused: %s",
			name != NULL ? name : "unknown", cmd, strerror(-ret));
}

/* Data that the program wrote, as far as a command reads it. */
struct written {
	struct rdma_ucm_cmd_hdr hdr;
	uint8_t in[sizeof(((struct rcm_cmd *)NULL)->in)];
};

static int
run(int fd, const struct written *written, int cancel_state)
{
	const uint32_t number = written->hdr.cmd;
	struct rcm_cmd cmd = {.channel = rcm_channel_of(fd),
			.in_len = RTE_MIN((size_t)written->hdr.in, sizeof(cmd.in)),
			.out_len = written->hdr.out,
			.cancel_state = cancel_state};

	memcpy(&cmd.in, written->in, cmd.in_len);
	if (number == RDMA_USER_CM_CMD_GET_EVENT)
		return cmd.in_len < sizeof(cmd.in.get_event) ? -EINVAL : rcm_get_event(fd, &cmd);
	if (number >= RTE_DIM(commands))
		return -ENOSYS;
	if (cmd.in_len < commands[number].in_len)
		return -EINVAL;
	return commands[number].run(&cmd);
}

/* Copy the data; 0 or a negative errno. */
static int
read_data(uintptr_t data, size_t size, struct written *written)
{
	size_t n = RTE_MIN(size, sizeof(*written)), len;

	memset(written, 0, sizeof(*written));
	if (size < sizeof(written->hdr))
		return -EINVAL;
	if (rcm_user_read(written, data, n) == n)
		return written->hdr.in > size - sizeof(written->hdr) ? -EINVAL : 0;
	/* Not all of it is mapped: the command may need less. */
	if (rcm_user_read(&written->hdr, data, sizeof(written->hdr)) != sizeof(written->hdr))
		return -EFAULT;
	if (written->hdr.in > size - sizeof(written->hdr))
		return -EINVAL;
	len = RTE_MIN((size_t)written->hdr.in, sizeof(written->in));
	return rcm_user_read(written->in, data + sizeof(written->hdr), len) == len ? 0 : -EFAULT;
}

/* Run the command that the program wrote to a channel. */
static int
run_data(int fd, const void *data, size_t size, int cancel_state)
{
	struct written written;
	int ret = read_data((uintptr_t)data, size, &written);

	if (ret != 0)
		return ret;
	ret = run(fd, &written, cancel_state);
	/* An empty event queue (EAGAIN) and a signal (EINTR) are not logged. */
	if (ret != 0 && ret != -EAGAIN && ret != -EINTR && ret != -ERESTART)
		log_refused(written.hdr.cmd, ret);
	return ret;
}

static int
run_locked(int fd, const void *data, size_t size, int cancel_state)
{
	int ret = NO_CHANNEL;

	rcm_lock();
	if (rcm_channel_of(fd) != NULL)
		ret = run_data(fd, data, size, cancel_state);
	rcm_unlock();
	return ret;
}

/*
 * In a child of fork(): accept DESTROY_ID for an inherited ID and do nothing, because the parent
 * keeps the ID and no event of it was reported to the child. Other commands fail with EINVAL, as
 * write() to the descriptor does.
 */
static ssize_t
write_inherited(int fd, const void *data, size_t size, rcm_write_t next)
{
	const struct rdma_ucm_destroy_id_resp resp = {.events_reported = 0};
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_destroy_id in;
	} cmd;
	ssize_t ret = next(fd, data, size);

	if (ret >= 0 || errno != EINVAL || size != sizeof(cmd))
		return ret;
	if (rcm_user_read(&cmd, (uintptr_t)data, sizeof(cmd)) != sizeof(cmd))
		return ribv_minus_one(EFAULT);
	if (cmd.hdr.cmd != RDMA_USER_CM_CMD_DESTROY_ID || cmd.hdr.out < sizeof(resp))
		return ribv_minus_one(EINVAL);
	if (rcm_user_write(cmd.in.response, &resp, sizeof(resp)) != 0)
		return ribv_minus_one(EFAULT);
	return (ssize_t)size;
}

static ssize_t
write_channel(int fd, const void *data, size_t size, rcm_write_t next)
{
	int ret, state;

	if (rcm_is_inherited(fd))
		return write_inherited(fd, data, size, next);
	if (!rcm_is_owner())
		return next(fd, data, size);
	/* Cancellation is enabled only while the thread waits, never while it holds the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while ((ret = run_locked(fd, data, size, state)) == -ERESTART)
		sched_yield();
	pthread_setcancelstate(state, NULL);
	if (ret == NO_CHANNEL)
		return next(fd, data, size);
	return ret != 0 ? ribv_minus_one(-ret) : (ssize_t)size;
}

const struct rcm_ops rcm_core_ops = {
		.open = rcm_channel_open,
		.write = write_channel,
		.close = rcm_channel_close,
		.adopt = rcm_channel_adopt,
		.is_channel = rcm_is_channel,
		.fds = rcm_channel_fds,
};
