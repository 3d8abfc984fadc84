/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Links: connections between processes of one host. An ID listens at a name of the abstract
 * namespace (rcm_port.c). A connection to that name carries the MADs of one ID in packets, which
 * the caller passes to the engine.
 *
 * Invariant: the number of a link is the handle of its ID plus 1 or, until an ID has taken it, the
 * number of its entry in pending[]. At most MAX_PENDING links have not sent a request; a new link
 * replaces the oldest of them.
 * Invariant: the length and the MTU of each packet are checked here, and everything else in the
 * engine.
 */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define MAX_PENDING 64

static_assert(sizeof(struct rcm_packet) == 276, "a packet has no padding");

/* A connection that has not sent a request yet. */
struct pending {
	bool is_used;
	int fd;
	uint64_t cookie;
	uint32_t age;
};

static int spare = -1;   /* closed to refuse a connection when no other descriptor is free */
static uint32_t now_age; /* age of the connection accepted last */
static struct pending pending[MAX_PENDING];

/* Keep a spare descriptor, to be closed when no other is free. */
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

static enum rcm_scope
listener_scope(const struct rcm_id *id)
{
	if (!rcm_is_any(&id->src))
		return RCM_SCOPE_ADDR;
	return id->src.family == AF_INET || id->is_afonly ? RCM_SCOPE_FAMILY : RCM_SCOPE_DUAL;
}

/* Largest backlog: each request that the program has not taken uses a descriptor, so limit them to
 * half of RLIMIT_NOFILE. */
static uint32_t
max_requests(void)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return (uint32_t)RTE_MAX(RTE_MIN(limit.rlim_cur / 2, (rlim_t)RCM_MAX_BACKLOG), (rlim_t)1);
}

int
rcm_link_listen(struct rcm_id *id)
{
	char name[RCM_MAX_NAME];
	int ret;

	keep_spare();
	id->backlog = RTE_MIN(id->backlog, max_requests());
	/* This socket holds the port name that the ID was bound to. */
	if (id->fd >= 0) {
		(void)listen(id->fd, SOMAXCONN);
		rcm_name_keep(&id->names[RCM_NAME_PORT], id->fd);
	}
	rcm_listener_name(id, &id->src, listener_scope(id), name);
	rcm_sock_take(id, rcm_sock_open());
	if (id->fd < 0 || rcm_name_bind(id->fd, name) != 0 || listen(id->fd, (int)id->backlog) != 0)
		ret = -errno;
	else
		ret = rcm_agent_watch(id->fd, id->handle, EPOLLIN);
	if (ret != 0)
		rcm_sock_drop(id);
	return ret;
}

/*
 * Check the owner of the listener that the ID has connected to at a scope. A listener of a wider
 * scope and of another user can exist only if one of the two took its name against the rules of
 * ports: the one that does not own the port. Return 0, -EPERM if the connected listener is not the
 * owner, or another negative errno if the owner is unknown.
 */
static int
check_owner(const struct rcm_id *id, enum rcm_scope scope)
{
	uid_t user = 0, other = 0, owner = 0;
	char text[RCM_MAX_NAME];
	int ret, found;

	ret = rcm_sock_user(id->fd, &user);
	while (ret == 0 && ++scope < RCM_NB_SCOPES) {
		rcm_listener_name(id, &id->dst, scope, text);
		found = rcm_name_user(text, &other);
		if (found == -ECONNREFUSED || (found == 0 && other == user))
			continue;
		rcm_port_owner_name(id, id->dst.port, text);
		ret = rcm_name_user(text, &owner);
		if (ret == 0 && owner != user && (found != 0 || owner == other))
			ret = -EPERM;
	}
	return ret;
}

/* Connect to the ID that listens at the destination address, or at all addresses. */
static int
connect_host(struct rcm_id *id)
{
	char text[RCM_MAX_NAME];
	enum rcm_scope scope;
	int ret = -ECONNREFUSED;

	for (scope = RCM_SCOPE_ADDR; scope < RCM_NB_SCOPES && ret == -ECONNREFUSED; scope++) {
		if (id->fd < 0)
			rcm_sock_take(id, rcm_sock_open());
		if (id->fd < 0)
			return -errno;
		rcm_listener_name(id, &id->dst, scope, text);
		ret = rcm_name_connect(id->fd, text);
		if (ret != 0)
			continue;
		ret = check_owner(id, scope);
		if (ret == -EPERM) {
			ret = rcm_port_reopen(id);
			ret = ret == 0 ? -ECONNREFUSED : ret;
		} else if (ret != 0) {
			ret = -ECONNRESET;
		}
	}
	return ret;
}

int
rcm_link_connect(struct rcm_id *id)
{
	struct rcm_dev dev;

	if (!rcm_dev_of(id, &dev))
		return -ENODEV;
	return dev.is_host ? connect_host(id) : 0;
}

/* Number of the link of an ID; 0 means no link. */
uint64_t
rcm_link_of(const struct rcm_id *id)
{
	return (uint64_t)id->handle + 1;
}

static uint64_t
link_of_pending(const struct pending *one)
{
	return (uint64_t)(RCM_PENDING + 1) + (uint64_t)(one - pending);
}

/* Find the pending connection with that link; NULL if there is none. */
static struct pending *
pending_of(uint64_t link)
{
	uint64_t i = link - (RCM_PENDING + 1);

	return i < MAX_PENDING && pending[i].is_used ? &pending[i] : NULL;
}

static int
fd_of(uint64_t link)
{
	const struct pending *one = pending_of(link);
	const struct rcm_id *id = rcm_id_get((uint32_t)link - 1);

	return one != NULL ? one->fd : id != NULL ? id->fd : -1;
}

int
rcm_link_send(uint64_t link, const uint8_t mad[IBCM_MAD_LEN])
{
	struct rcm_packet packet = {.reserved = 0};
	struct rcm_dev dev;
	uint32_t number;
	ssize_t n;

	if (!rcm_dev_host(&number, &dev))
		return -ENODEV;
	memcpy(packet.gid, dev.gid, sizeof(packet.gid));
	packet.lid = htobe16(dev.lid);
	packet.mtu = dev.mtu;
	memcpy(packet.mad, mad, IBCM_MAD_LEN);
	/* Doesn't block: the socket buffer has space for the few messages of a connection. */
	n = send(fd_of(link), &packet, sizeof(packet), MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)sizeof(packet) ? 0 : -errno;
}

/* Read a packet; 1, 0 if there is none, or a negative errno if the connection has ended. */
static int
receive(int fd, struct rcm_packet *packet)
{
	ssize_t n = recv(fd, packet, sizeof(*packet), MSG_DONTWAIT | MSG_TRUNC);

	/* recv() reports ECONNRESET once, before remaining packets, if the peer had unread data. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(fd, packet, sizeof(*packet), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	return n == (ssize_t)sizeof(*packet) && packet->mtu >= 1 && packet->mtu <= 5 ? 1 : -EPROTO;
}

int
rcm_link_receive(uint64_t link, struct rcm_packet *packet)
{
	return receive(fd_of(link), packet);
}

static void
pending_end(struct pending *one)
{
	rcm_sock_close(one->fd, one->cookie);
	one->is_used = false;
}

int
rcm_link_take(struct rcm_id *id, uint64_t link)
{
	struct pending *one = pending_of(link);
	int ret;

	if (one == NULL)
		return -ECONNRESET;
	ret = rcm_agent_watch(one->fd, id->handle, EPOLLIN);
	if (ret != 0)
		return ret;
	id->fd = one->fd;
	id->cookie = one->cookie;
	one->is_used = false;
	return 0;
}

/* Accept and close a connection for which no descriptor is free. */
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

uint64_t
rcm_link_accept(int listening)
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
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		refuse_one(listening);
	if (fd < 0)
		return 0;
	if (one->is_used)
		pending_end(one);
	*one = (struct pending){
			.is_used = true, .fd = fd, .cookie = rcm_sock_cookie(fd), .age = ++now_age};
	return link_of_pending(one);
}

uint64_t
rcm_link_pending(uint32_t entry)
{
	uint64_t link = (uint64_t)entry + 1;

	return pending_of(link) != NULL ? link : 0;
}

void
rcm_link_watch(uint64_t link)
{
	struct pending *one = pending_of(link);

	if (one != NULL && rcm_agent_watch(one->fd, (uint32_t)link - 1, EPOLLIN) != 0)
		pending_end(one);
}

void
rcm_link_end(uint64_t link)
{
	struct pending *one = pending_of(link);

	if (one != NULL)
		pending_end(one);
}

void
rcm_links_check(void)
{
	struct rcm_id *id;
	uint32_t i = 0;

	for (; (id = rcm_id_next(&i)) != NULL; i++) {
		rcm_sock_check(id);
		/* An ID with a running timer is not watched: it waits to retry, or DISCONNECTED is
		 * delayed. */
		if (id->fd >= 0 && id->state >= RCM_LISTEN && id->timer.at == 0)
			(void)rcm_agent_watch(id->fd, id->handle, EPOLLIN);
	}
	for (i = 0; i < MAX_PENDING; i++) {
		if (pending[i].is_used)
			pending_end(&pending[i]);
	}
}

void
rcm_links_forked(void)
{
	const struct rcm_id *id;
	uint32_t i = 0, j;

	for (; (id = rcm_id_next(&i)) != NULL; i++) {
		rcm_sock_leave(id->fd, id->cookie);
		for (j = 0; j < RCM_NB_NAMES; j++) {
			if (id->names[j].cookie != 0)
				rcm_sock_leave(id->names[j].fd, id->names[j].cookie);
		}
	}
	for (i = 0; i < MAX_PENDING; i++) {
		if (pending[i].is_used)
			rcm_sock_leave(pending[i].fd, pending[i].cookie);
	}
	if (rcm_agent_is_same_file(spare))
		rcm_close(spare);
}
