/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections of rdma_cm.
 *
 * Processes of one host: an ID listens at a name of the abstract namespace (rcm_port.c). Other
 * hosts: rcm_mad.c.
 *
 * A connection carries messages of one size. A request is the first one. All that a peer sends is
 * checked here and in rcm_conn.c; until a connection has sent a request, it is one of MAX_PENDING,
 * of which the oldest is closed for a new one.
 */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define MAX_PENDING 64

static_assert(sizeof(struct rcm_msg) == 292, "a message has no padding");

/* A connection without a request. */
struct pending {
	bool is_used;
	int fd;
	uint64_t cookie;
	uint32_t len;
	uint32_t age;
	struct rcm_msg msg;
};

static int spare = -1;   /* closed to refuse a connection when no other descriptor is free */
static uint32_t now_age; /* of the last connection accepted */
static struct pending pending[MAX_PENDING];

/* The cookie distinguishes a socket from others with its number; 0: no socket, or none. */
static uint64_t
cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

/* Close a socket, unless the program has closed it. */
static void
close_sock(int fd, uint64_t cookie)
{
	if (fd < 0 || cookie_of(fd) != cookie)
		return;
	rcm_agent_unwatch(fd);
	/* A child of clone() may have it open, too. */
	shutdown(fd, SHUT_RDWR);
	rcm_close(fd);
}

/* Have a descriptor to close when no other is free. */
static void
keep_spare(void)
{
	if (rcm_agent_is_same_file(spare))
		return;
	spare = eventfd(0, EFD_CLOEXEC);
	if (spare >= 0 && rcm_agent_record(spare) != 0) {
		rcm_close(spare);
		spare = -1;
	}
}

void
rcm_port_take(struct rcm_id *id, int fd)
{
	id->fd = fd;
	id->cookie = cookie_of(fd);
}

static socklen_t
name_of(const char *text, struct sockaddr_un *name)
{
	size_t len = strlen(text);

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* The name begins with a zero, and ends where its length does. */
	memcpy(name->sun_path + 1, text, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

int
rcm_name_bind(int fd, const char *text)
{
	struct sockaddr_un name;
	socklen_t len = name_of(text, &name);

	return bind(fd, (struct sockaddr *)&name, len);
}

void
rcm_name_keep(struct rcm_name *name, int fd)
{
	name->fd = fd;
	name->cookie = cookie_of(fd);
}

void
rcm_name_close(struct rcm_name *name)
{
	if (name->cookie != 0 && cookie_of(name->fd) == name->cookie)
		rcm_close(name->fd);
	name->cookie = 0;
}

static enum rcm_scope
listener_scope(const struct rcm_id *id)
{
	if (!rcm_is_any(&id->src))
		return RCM_SCOPE_ADDR;
	return id->src.family == AF_INET || id->is_afonly ? RCM_SCOPE_FAMILY : RCM_SCOPE_DUAL;
}

int
rcm_port_listen(struct rcm_id *id)
{
	char name[RCM_MAX_NAME];
	struct rcm_dev dev;
	int ret;

	if (!rcm_dev_get(&dev))
		return -ENODEV;
	ret = rcm_port_unshare(id);
	if (ret != 0)
		return ret;
	if (!dev.is_host)
		return rcm_mad_listen(id);
	keep_spare();
	/* That of a port which the ID was given. */
	if (id->fd >= 0)
		rcm_name_keep(&id->names[RCM_NAME_PORT], id->fd);
	rcm_listener_name(id, &id->src, listener_scope(id), name);
	rcm_port_take(id, socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (id->fd < 0 || rcm_name_bind(id->fd, name) != 0 || listen(id->fd, (int)id->backlog) != 0)
		ret = -errno;
	if (ret == 0)
		ret = rcm_agent_watch(id->fd, id->handle, EPOLLIN);
	if (ret != 0)
		rcm_sock_close(id);
	return ret;
}

/* Connect to the ID that listens at the address, or at all. */
static int
connect_host(struct rcm_id *id)
{
	char text[RCM_MAX_NAME];
	struct sockaddr_un name;
	enum rcm_scope scope;
	socklen_t len;
	int ret = 0;

	if (id->fd < 0)
		rcm_port_take(id, socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (id->fd < 0)
		return -errno;
	for (scope = RCM_SCOPE_ADDR; scope < RCM_NB_SCOPES; scope++) {
		rcm_listener_name(id, &id->dst, scope, text);
		len = name_of(text, &name);
		ret = connect(id->fd, (struct sockaddr *)&name, len) == 0 ? 0 : -errno;
		if (ret != -ECONNREFUSED)
			break;
	}
	return ret;
}

int
rcm_port_connect(struct rcm_id *id)
{
	struct rcm_dev dev;

	if (!rcm_dev_get(&dev))
		return -ENODEV;
	return dev.is_host ? connect_host(id) : 0;
}

void
rcm_sock_close(struct rcm_id *id)
{
	close_sock(id->fd, id->cookie);
	id->fd = -1;
}

void
rcm_port_close(struct rcm_id *id)
{
	unsigned int i;

	rcm_sock_close(id);
	for (i = 0; i < RCM_NB_NAMES; i++)
		rcm_name_close(&id->names[i]);
	id->port_name[0] = '\0';
}

static void
addr_to_msg(const struct rcm_addr *addr, struct rcm_msg_addr *msg)
{
	msg->is_ipv4 = addr->family == AF_INET;
	msg->port = htobe16(addr->port);
	memcpy(msg->ip, addr->ip, sizeof(msg->ip));
}

int
rcm_send(struct rcm_id *id, enum rcm_type type)
{
	struct rcm_msg *msg = &id->own;
	struct rcm_dev dev;
	ssize_t n;

	if (!rcm_dev_get(&dev))
		return -ENODEV;
	if (!dev.is_host)
		return rcm_mad_send(id, type);
	msg->magic = htobe32(RCM_MAGIC);
	msg->type = (uint8_t)type;
	msg->ps = htobe16(id->ps);
	msg->lid = htobe16(dev.lid);
	msg->mtu = dev.mtu;
	memcpy(msg->gid, dev.gid, sizeof(msg->gid));
	addr_to_msg(&id->src, &msg->src);
	addr_to_msg(&id->dst, &msg->dst);
	/* The buffer of the socket has space for the few messages of a connection. */
	n = send(id->fd, msg, sizeof(*msg), MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)sizeof(*msg) ? 0 : n < 0 ? -errno : -EAGAIN;
}

static bool
is_valid(const struct rcm_msg *msg)
{
	return msg->magic == htobe32(RCM_MAGIC) && msg->type >= RCM_REQ && msg->type <= RCM_REJ &&
			msg->private_len <= RCM_MAX_PRIVATE && msg->mtu >= 1 && msg->mtu <= 5 &&
			be32toh(msg->qpn) <= 0xffffff && be32toh(msg->psn) <= 0xffffff &&
			msg->retry_count <= 7 && msg->rnr_retry_count <= 7;
}

int
rcm_recv(int fd, struct rcm_msg *msg, uint32_t *len)
{
	ssize_t n = recv(fd, (uint8_t *)msg + *len, sizeof(*msg) - *len, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	*len += (uint32_t)n;
	if (*len < sizeof(*msg))
		return 0;
	*len = 0;
	return is_valid(msg) ? 1 : -EPROTO;
}

/* The listening ID that a request is for. */
static struct rcm_id *
listener_of(const struct rcm_msg *msg)
{
	struct rcm_addr dst = {.family = msg->dst.is_ipv4 != 0 ? AF_INET : AF_INET6};
	struct rcm_id *id;
	uint32_t handle = 0;

	memcpy(dst.ip, msg->dst.ip, sizeof(dst.ip));
	for (; (id = rcm_id_next(&handle)) != NULL; handle++) {
		if (id->state != RCM_LISTEN || id->ps != be16toh(msg->ps) ||
				id->src.port != be16toh(msg->dst.port))
			continue;
		if (rcm_is_any(&id->src) ? id->src.family == dst.family ||
								(id->src.family == AF_INET6 &&
										!id->is_afonly)
					 : rcm_is_same_ip(&id->src, &dst))
			return id;
	}
	return NULL;
}

static void
pending_end(struct pending *one, bool is_closed)
{
	if (is_closed)
		close_sock(one->fd, one->cookie);
	else
		rcm_agent_unwatch(one->fd);
	one->is_used = false;
}

static void
pending_ready(struct pending *one)
{
	int fd = one->fd, ret = rcm_recv(fd, &one->msg, &one->len);
	struct rcm_id *listener;

	if (ret == 0)
		return;
	if (ret < 0 || one->msg.type != RCM_REQ) {
		pending_end(one, true);
		return;
	}
	listener = listener_of(&one->msg);
	pending_end(one, false);
	rcm_conn_request(listener, &one->msg, fd);
}

/* Close a connection for which no descriptor is free. */
static void
refuse_one(int listening)
{
	int fd;

	if (rcm_agent_is_same_file(spare)) {
		rcm_agent_unwatch(spare);
		rcm_close(spare);
		spare = -1;
		/* cppcheck-suppress nullPointer */
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			rcm_close(fd);
	}
	keep_spare();
	if (spare < 0)
		rcm_agent_pause();
}

/* Accept a connection. If there are too many without a request, the oldest one is closed. */
static void
accept_one(int listening)
{
	struct pending *one = &pending[0];
	uint32_t i;
	int fd;

	for (i = 0; i < MAX_PENDING && one->is_used; i++) {
		if (!pending[i].is_used || now_age - pending[i].age > now_age - one->age)
			one = &pending[i];
	}
	/* cppcheck-suppress nullPointer */
	fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		refuse_one(listening);
		return;
	}
	if (fd < 0)
		return;
	if (one->is_used)
		pending_end(one, true);
	*one = (struct pending){
			.is_used = true, .fd = fd, .cookie = cookie_of(fd), .age = ++now_age};
	if (rcm_agent_watch(fd, (uint32_t)(RCM_PENDING + (one - pending)), EPOLLIN) != 0)
		pending_end(one, true);
	else
		pending_ready(one);
}

void
rcm_port_ready(uint32_t entry)
{
	const struct rcm_id *id = rcm_id_get(entry);

	if (entry >= RCM_PENDING && entry - RCM_PENDING < MAX_PENDING &&
			pending[entry - RCM_PENDING].is_used)
		pending_ready(&pending[entry - RCM_PENDING]);
	else if (id != NULL)
		accept_one(id->fd);
}

void
rcm_port_check_id(struct rcm_id *id)
{
	if (id->fd >= 0 && cookie_of(id->fd) != id->cookie)
		id->fd = -1;
}

void
rcm_port_check(void)
{
	struct rcm_id *id;
	bool is_waiting; /* to connect again */
	uint32_t i = 0;

	for (; (id = rcm_id_next(&i)) != NULL; i++) {
		rcm_port_check_id(id);
		is_waiting = id->state == RCM_CONNECT && id->wake_ns != id->reply_until_ns;
		if (id->fd >= 0 && id->state >= RCM_LISTEN && !is_waiting)
			(void)rcm_conn_watch(id);
	}
	for (i = 0; i < MAX_PENDING; i++) {
		if (pending[i].is_used)
			pending_end(&pending[i], true);
	}
	rcm_mad_check();
}

/* The parent has the same sockets: they are neither shut down nor unwatched. */
static void
leave(int fd, uint64_t cookie)
{
	if (fd >= 0 && cookie_of(fd) == cookie)
		rcm_close(fd);
}

void
rcm_forked(void)
{
	const struct rcm_id *id;
	uint32_t i = 0, j;

	for (; (id = rcm_id_next(&i)) != NULL; i++) {
		leave(id->fd, id->cookie);
		for (j = 0; j < RCM_NB_NAMES; j++) {
			if (id->names[j].cookie != 0)
				leave(id->names[j].fd, id->names[j].cookie);
		}
	}
	for (i = 0; i < MAX_PENDING; i++) {
		if (pending[i].is_used)
			leave(pending[i].fd, pending[i].cookie);
	}
	if (rcm_agent_is_same_file(spare))
		rcm_close(spare);
	rcm_mad_forked();
	rcm_agent_forked();
}
