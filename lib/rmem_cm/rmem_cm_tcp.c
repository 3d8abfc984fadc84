/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections of devices without rdma_cm, over TCP: the messages of rdma_cm (request, answer,
 * ready) between rmem programs, at the IP address of the device. The TCP connection remains open,
 * and its end is that of the connection of the QPs.
 *
 * A listener keeps the connections whose request is not complete, and waits for all of them at
 * once, so a peer that sends nothing delays no other.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include <rte_common.h>

#include "rmem_cm_priv.h"

#define TCP_BACKLOG     16
#define TCP_MAX_PENDING 16

enum tcp_type {
	TCP_REQUEST = 1,
	TCP_ANSWER = 2,
	TCP_READY = 3,
	TCP_REJECT = 4,
};

/* Precedes each message. */
struct tcp_head {
	uint8_t type; /* enum tcp_type */
	uint8_t size; /* of the message that follows */
	uint8_t zero[2];
};

/* A connection whose request is not complete. */
struct cm_tcp_pending {
	int fd;          /* -1: none */
	uint64_t number; /* in the order of accept(2) */
	uint64_t end_ms;
	size_t size; /* bytes received */
	uint8_t data[sizeof(struct tcp_head) + CM_MAX_SIZE];
};

/* Log errno; returns it as the -errno of rmem_cm_connect(). */
static int
tcp_error(const char *call)
{
	int error = errno;

	/* ENOTCONN: of getpeername(), when the peer has reset the connection. */
	if (error == ECONNREFUSED || error == ECONNRESET || error == EPIPE || error == ENOTCONN) {
		CM_LOG(ERR, "%s: %s", call, strerror(error));
		return -ECONNREFUSED;
	}
	if (error == ETIMEDOUT)
		return -ETIMEDOUT;
	errno = error;
	return rmem_cm_errno(call);
}

/* Wait until a file descriptor is ready. */
static int
tcp_wait(int fd, short events, uint64_t end_ms)
{
	struct pollfd pfd = {.fd = fd, .events = events};
	uint64_t now;
	int n;

	do {
		now = rmem_cm_now_ms();
		n = poll(&pfd, 1, now < end_ms ? (int)(end_ms - now) : 0);
		if (n == 0)
			return -ETIMEDOUT;
	} while (n < 0 && errno == EINTR);
	return n < 0 ? tcp_error("poll") : 0;
}

/* Send or receive all of size bytes; -ECONNREFUSED: the peer has closed. */
static int
tcp_move(int fd, void *data, size_t size, bool is_send, uint64_t end_ms)
{
	uint8_t *at = data;
	ssize_t n;
	int ret;

	while (size != 0) {
		n = is_send ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);
		if (n > 0) {
			at += n;
			size -= (size_t)n;
			continue;
		}
		if (n == 0) {
			CM_LOG(ERR, "peer: closed the connection");
			return -ECONNREFUSED;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return tcp_error(is_send ? "send" : "recv");
		ret = tcp_wait(fd, is_send ? POLLOUT : POLLIN, end_ms);
		if (ret != 0)
			return ret;
	}
	return 0;
}

static int
tcp_send(int fd, enum tcp_type type, const uint8_t *message, uint8_t size, uint64_t end_ms)
{
	const struct tcp_head head = {.type = (uint8_t)type, .size = size};
	uint8_t data[sizeof(head) + CM_MAX_SIZE];

	memcpy(data, &head, sizeof(head));
	if (size != 0)
		memcpy(data + sizeof(head), message, size);
	return tcp_move(fd, data, sizeof(head) + size, true, end_ms);
}

/* The attempt has failed already; a peer that does not get this sees the connection end. */
static void
tcp_reject(int fd)
{
	const struct tcp_head head = {.type = TCP_REJECT};

	(void)send(fd, &head, sizeof(head), MSG_NOSIGNAL);
}

/* Whether the message that follows is of a type: 0, -ECONNREFUSED or -EBADMSG. */
static int
tcp_check_head(const struct tcp_head *head, enum tcp_type type)
{
	if (head->type == TCP_REJECT) {
		CM_LOG(ERR, "peer: rejected the request");
		return -ECONNREFUSED;
	}
	if (head->type == type && head->zero[0] == 0 && head->zero[1] == 0 &&
			head->size <= CM_MAX_SIZE)
		return 0;
	CM_LOG(ERR, "peer: not a message of rmem: type %u, %u bytes", head->type, head->size);
	return -EBADMSG;
}

/* Receive a message of a type; TCP_READY has no address, and leaves the peer as it is. */
static int
tcp_receive(int fd, enum tcp_type type, uint64_t end_ms, struct rmem_cm_peer *peer)
{
	uint8_t message[CM_MAX_SIZE];
	struct tcp_head head;
	int ret;

	ret = tcp_move(fd, &head, sizeof(head), false, end_ms);
	if (ret == 0)
		ret = tcp_check_head(&head, type);
	if (ret != 0)
		return ret;
	ret = tcp_move(fd, message, head.size, false, end_ms);
	return ret == 0 && type != TCP_READY ? rmem_cm_unpack(message, head.size, peer) : ret;
}

/* The address of the QP must be the one that the peer connected from, which it has proved. */
static int
tcp_check_peer(int fd, const struct rmem_cm_peer *peer)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	uint8_t gid[16];

	if (getpeername(fd, (struct sockaddr *)&addr, &len) != 0)
		return tcp_error("getpeername");
	rmem_cm_sockaddr_gid((const struct sockaddr *)&addr, gid);
	if (memcmp(gid, peer->addr.gid, sizeof(gid)) == 0)
		return 0;
	CM_LOG(ERR, "peer: address of its QP is not the one that it connects from");
	return -EBADMSG;
}

static int
tcp_socket(int family, int *fd)
{
	*fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return *fd < 0 ? tcp_error("socket") : 0;
}

static socklen_t
tcp_addr_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

static int
tcp_listen(struct rmem_cm_listener *listener, const struct sockaddr *addr)
{
	struct sockaddr_storage local;
	const int one = 1;
	int i, ret;

	listener->pending = calloc(TCP_MAX_PENDING, sizeof(*listener->pending));
	if (listener->pending == NULL)
		return -ENOMEM;
	for (i = 0; i < TCP_MAX_PENDING; i++)
		listener->pending[i].fd = -1;
	rmem_cm_copy_sockaddr(addr, &local);
	ret = tcp_socket(local.ss_family, &listener->fd);
	if (ret != 0)
		return ret;
	(void)setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener->fd, (const struct sockaddr *)&local, tcp_addr_len(&local)) != 0)
		return tcp_error("bind");
	return listen(listener->fd, TCP_BACKLOG) == 0 ? 0 : tcp_error("listen");
}

static void
tcp_drop(struct cm_tcp_pending *pending)
{
	close(pending->fd);
	pending->fd = -1;
}

static void
tcp_unlisten(struct rmem_cm_listener *listener)
{
	int i;

	for (i = 0; listener->pending != NULL && i < TCP_MAX_PENDING; i++) {
		if (listener->pending[i].fd >= 0)
			tcp_drop(&listener->pending[i]);
	}
	free(listener->pending);
	if (listener->fd >= 0)
		close(listener->fd);
}

/* Close the connection that has waited longest; its entry, NULL: none waits. */
static struct cm_tcp_pending *
tcp_evict(struct rmem_cm_listener *listener, const char *why)
{
	struct cm_tcp_pending *entry, *oldest = NULL;

	for (entry = listener->pending; entry < listener->pending + TCP_MAX_PENDING; entry++) {
		if (entry->fd >= 0 && (oldest == NULL || entry->number < oldest->number))
			oldest = entry;
	}
	if (oldest != NULL) {
		CM_LOG(WARNING, "connection: closed without a request: %s", why);
		tcp_drop(oldest);
	}
	return oldest;
}

static struct cm_tcp_pending *
tcp_free_entry(struct rmem_cm_listener *listener)
{
	struct cm_tcp_pending *entry;

	for (entry = listener->pending; entry < listener->pending + TCP_MAX_PENDING; entry++) {
		if (entry->fd < 0)
			return entry;
	}
	return tcp_evict(listener, "too many others wait (" RTE_STR(TCP_MAX_PENDING) ")");
}

/* Whether accept(2) failed for one connection only: the errors of Linux to retry after. */
static bool
tcp_is_lost(int error)
{
	switch (error) {
	case EINTR:
	case ECONNABORTED:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ENETDOWN:
	case ENETUNREACH:
	case ENONET:
	case ENOPROTOOPT:
	case EOPNOTSUPP:
	case EPROTO:
		return true;
	default:
		return false;
	}
}

/* Accept the connections that wait. */
static int
tcp_admit(struct rmem_cm_listener *listener, uint64_t end_ms)
{
	struct cm_tcp_pending *entry;
	struct sockaddr_storage peer;
	socklen_t len;
	int i, fd;

	for (i = 0; i < TCP_MAX_PENDING; i++) {
		len = sizeof(peer);
		fd = accept4(listener->fd, (struct sockaddr *)&peer, &len,
				SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && tcp_is_lost(errno))
			continue;
		if (fd < 0 && errno == EMFILE) {
			/* First read the requests of those that this call has accepted. */
			if (i > 0)
				return 0;
			if (tcp_evict(listener, "no file descriptor for another one") != NULL)
				continue;
		}
		if (fd < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : tcp_error("accept");
		entry = tcp_free_entry(listener);
		entry->fd = fd;
		entry->number = listener->nb_accepted++;
		entry->size = 0;
		entry->end_ms = end_ms;
	}
	return 0;
}

/*
 * Receive what there is of a request. 0: it is complete; -EAGAIN: not yet; -ECONNREFUSED: the peer
 * has closed; -EBADMSG: it is not a request.
 */
static int
tcp_read_request(struct cm_tcp_pending *pending)
{
	struct tcp_head head = {0};
	size_t end = sizeof(head);
	ssize_t n;
	int ret;

	for (;;) {
		if (pending->size >= sizeof(head)) {
			memcpy(&head, pending->data, sizeof(head));
			ret = tcp_check_head(&head, TCP_REQUEST);
			if (ret != 0)
				return ret;
			end = sizeof(head) + head.size;
		}
		if (pending->size == end)
			return 0;
		n = recv(pending->fd, pending->data + pending->size, end - pending->size, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? -EAGAIN : -ECONNREFUSED;
		pending->size += (size_t)n;
	}
}

/*
 * The first connection with a complete request, or one that is not valid, is *ready. Those that
 * ended, or sent none for too long, are dropped.
 */
static int
tcp_find_request(struct rmem_cm_listener *listener, struct cm_tcp_pending **ready)
{
	struct cm_tcp_pending *entry;
	uint64_t now = rmem_cm_now_ms();
	int ret;

	for (entry = listener->pending; entry < listener->pending + TCP_MAX_PENDING; entry++) {
		if (entry->fd < 0)
			continue;
		ret = tcp_read_request(entry);
		*ready = entry;
		if (ret == 0 || ret == -EBADMSG)
			return ret;
		if (ret != -EAGAIN || now >= entry->end_ms)
			tcp_drop(entry);
	}
	return -EAGAIN;
}

/* Wait for a connection, or for more of a request. */
static int
tcp_wait_request(const struct rmem_cm_listener *listener, uint64_t end_ms)
{
	struct pollfd fds[1 + TCP_MAX_PENDING] = {{.fd = listener->fd, .events = POLLIN}};
	uint64_t now = rmem_cm_now_ms(), until = end_ms;
	int i;

	for (i = 0; i < TCP_MAX_PENDING; i++) {
		fds[1 + i].fd = listener->pending[i].fd; /* -1: ignored */
		fds[1 + i].events = POLLIN;
		if (fds[1 + i].fd >= 0)
			until = RTE_MIN(until, listener->pending[i].end_ms);
	}
	if (now >= end_ms)
		return -ETIMEDOUT;
	if (poll(fds, RTE_DIM(fds), now < until ? (int)(until - now) : 0) < 0 && errno != EINTR)
		return tcp_error("poll");
	return 0;
}

/* The fd of a connection, and its request. */
static int
tcp_next_request(struct rmem_cm_listener *listener, uint32_t timeout_ms, int *fd,
		struct rmem_cm_peer *from)
{
	uint64_t end_ms = rmem_cm_now_ms() + timeout_ms;
	struct cm_tcp_pending *ready;
	int ret;

	for (;;) {
		ret = tcp_admit(listener, rmem_cm_now_ms() + timeout_ms);
		if (ret != 0)
			return ret;
		ret = tcp_find_request(listener, &ready);
		if (ret != -EAGAIN)
			break;
		ret = tcp_wait_request(listener, end_ms);
		if (ret != 0)
			return ret;
	}
	*fd = ready->fd;
	ready->fd = -1;
	return ret != 0 ? ret
			: rmem_cm_unpack(ready->data + sizeof(struct tcp_head),
					  (uint32_t)(ready->size - sizeof(struct tcp_head)), from);
}

/* Answer a request, and wait until the peer is ready. */
static int
tcp_answer(struct rmem_cm_conn *conn, const struct rmem_cm_conf *conf,
		const struct rmem_qp_addr *addr, struct rmem_cm_peer *from)
{
	uint64_t end_ms = rmem_cm_now_ms() + conf->timeout_ms;
	uint8_t message[CM_MAX_SIZE];
	int ret;

	ret = tcp_send(conn->fd, TCP_ANSWER, message,
			rmem_cm_pack(addr, conf->data, conf->data_size, message), end_ms);
	if (ret == 0)
		ret = tcp_receive(conn->fd, TCP_READY, end_ms, from);
	if (ret != 0)
		(void)rmem_qp_reset(conf->qp);
	return ret;
}

static int
tcp_accept(struct rmem_cm_listener *listener, const struct rmem_cm_conf *conf,
		const struct rmem_qp_addr *addr, struct rmem_cm_conn *conn,
		struct rmem_cm_peer *from)
{
	int ret;

	if (memcmp(listener->gid, addr->gid, sizeof(addr->gid)) != 0) {
		CM_LOG(ERR, "IP address: not of the QP's device");
		return -ENODEV;
	}
	ret = tcp_next_request(listener, conf->timeout_ms, &conn->fd, from);
	if (ret == 0)
		ret = tcp_check_peer(conn->fd, from);
	if (ret == 0)
		ret = rmem_cm_connect_qp(conf, &from->addr);
	if (ret == 0)
		return tcp_answer(conn, conf, addr, from);
	if (conn->fd >= 0)
		tcp_reject(conn->fd);
	return ret;
}

/* Connect from the address of the QP, which the peer checks. */
static int
tcp_open(struct rmem_cm_conn *conn, const struct sockaddr_storage *to,
		const struct rmem_qp_addr *addr, uint64_t end_ms)
{
	struct sockaddr_storage from = {.ss_family = to->ss_family};
	socklen_t len = sizeof(int);
	uint8_t gid[16];
	int ret, error = 0;

	if (to->ss_family == AF_INET)
		memcpy(&((struct sockaddr_in *)&from)->sin_addr, addr->gid + 12, 4);
	else
		memcpy(&((struct sockaddr_in6 *)&from)->sin6_addr, addr->gid, 16);
	rmem_cm_sockaddr_gid((const struct sockaddr *)&from, gid);
	if (memcmp(gid, addr->gid, sizeof(gid)) != 0) {
		CM_LOG(ERR, "IP address: family of the QP's device is not that of the peer");
		return -ENODEV;
	}
	ret = tcp_socket(to->ss_family, &conn->fd);
	if (ret != 0)
		return ret;
	if (bind(conn->fd, (const struct sockaddr *)&from, tcp_addr_len(&from)) != 0)
		return tcp_error("bind");
	if (connect(conn->fd, (const struct sockaddr *)to, tcp_addr_len(to)) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return tcp_error("connect");
	ret = tcp_wait(conn->fd, POLLOUT, end_ms);
	if (ret != 0)
		return ret;
	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0)
		errno = error;
	return errno == 0 ? 0 : tcp_error("connect");
}

static int
tcp_connect(struct rmem_cm_conn *conn, const struct sockaddr *remote,
		const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr,
		struct rmem_cm_peer *from)
{
	uint64_t end_ms = rmem_cm_now_ms() + conf->timeout_ms;
	uint8_t message[CM_MAX_SIZE];
	struct sockaddr_storage to;
	int ret;

	rmem_cm_copy_sockaddr(remote, &to);
	ret = tcp_open(conn, &to, addr, end_ms);
	if (ret == 0)
		ret = tcp_send(conn->fd, TCP_REQUEST, message,
				rmem_cm_pack(addr, conf->data, conf->data_size, message), end_ms);
	if (ret == 0)
		ret = tcp_receive(conn->fd, TCP_ANSWER, end_ms, from);
	if (ret == 0)
		ret = tcp_check_peer(conn->fd, from);
	if (ret == 0)
		ret = rmem_cm_connect_qp(conf, &from->addr);
	if (ret != 0) {
		if (conn->fd >= 0)
			tcp_reject(conn->fd);
		return ret;
	}
	ret = tcp_send(conn->fd, TCP_READY, NULL, 0, end_ms);
	if (ret != 0)
		(void)rmem_qp_reset(conf->qp);
	return ret;
}

static int
tcp_wait_end(struct rmem_cm_conn *conn, uint64_t end_ms)
{
	uint8_t byte;
	ssize_t n;
	int ret;

	while (!conn->is_ended) {
		n = recv(conn->fd, &byte, sizeof(byte), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			ret = tcp_wait(conn->fd, POLLIN, end_ms);
			if (ret != 0)
				return ret == -ETIMEDOUT ? ret : -EIO;
			continue;
		}
		/* Closed, reset, or a byte that no message has: it has ended. */
		conn->is_ended = true;
	}
	return 0;
}

static void
tcp_close(struct rmem_cm_conn *conn, bool is_connected)
{
	RTE_SET_USED(is_connected);
	if (conn->fd >= 0)
		close(conn->fd);
}

const struct cm_ops rmem_cm_tcp_ops = {
		.accept = tcp_accept,
		.close = tcp_close,
		.connect = tcp_connect,
		.listen = tcp_listen,
		.unlisten = tcp_unlisten,
		.wait_end = tcp_wait_end,
};
