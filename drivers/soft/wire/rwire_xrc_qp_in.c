/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC_RECV QPs of this process that others open; see rwire_xrc_qp.h. */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/rsoft_fork.h"
#include "port/rwire_shm.h"
#include "port/rwire_xrc_socket.h"
#include "rwire_xrc_qp.h"

#define IN_BURST 16 /* calls of a connection at once */

/* Listen for openers of the QP of a listener: 0, -EADDRINUSE or -ENOMEM. Under the lock. */
static int
listen_at(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_listener *listener)
{
	const struct rsoft_qp *qp = listener->qp;
	int fd, state = rsoft_fork_begin();

	fd = rwire_xrc_socket_listen(qp->domain, RWIRE_XRC_QP, qp->qp.qp_num);
	listener->end = (struct rwire_xrc_qp_end){.kind = RWIRE_XRC_QP_LISTENER, .fd = fd};
	if (fd >= 0)
		LIST_INSERT_HEAD(&qps->listeners, listener, next);
	rsoft_fork_end(state);
	return fd < 0 ? fd : 0;
}

/* Unlist a listener and close its socket. Under the lock. */
static void
unlisten(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_listener *listener)
{
	int state = rsoft_fork_begin();

	LIST_REMOVE(listener, next);
	rwire_xrc_socket_unwatch(qps->epoll, &listener->end.fd);
	rsoft_fork_end(state);
}

int
rwire_xrc_qp_listen(struct rwire_xrc_qps *qps, struct rsoft_qp *qp)
{
	struct rwire_xrc_qp_listener *listener = calloc(1, sizeof(*listener));
	int ret;

	if (listener == NULL)
		return -ENOMEM;
	listener->qp = qp;
	pthread_mutex_lock(&qps->lock);
	ret = listen_at(qps, listener);
	if (ret == 0 && !rwire_xrc_qp_watch(qps, &listener->end)) {
		unlisten(qps, listener);
		ret = -ENOMEM;
	}
	pthread_mutex_unlock(&qps->lock);
	if (ret == 0)
		qp->listener = listener;
	else
		free(listener);
	return ret;
}

struct rwire_xrc_qp_listener *
rwire_xrc_qp_withdraw(struct rsoft_qp *qp)
{
	struct rwire_xrc_qp_listener *listener = qp->listener;
	struct rwire_xrc_qps *qps;
	int state;

	if (listener == NULL)
		return NULL;
	qps = qp->dev->wire->xrc_qps;
	/* A thread cancelled in a system call would keep the lock. */
	state = rsoft_cancel_disable();
	pthread_mutex_lock(&qps->lock);
	unlisten(qps, listener);
	pthread_mutex_unlock(&qps->lock);
	rsoft_cancel_restore(state);
	return listener;
}

void
rwire_xrc_qp_event(struct rmem_qp *base, uint32_t type)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	const uint64_t one = 1;
	int state;

	__atomic_fetch_or(&qp->listener->events, UINT32_C(1) << type, __ATOMIC_RELEASE);
	/* A post that is cancelled here would keep its locks. */
	state = rsoft_cancel_disable();
	(void)!write(qp->dev->wire->xrc_qps->wake, &one, sizeof(one));
	rsoft_cancel_restore(state);
}

void
rwire_xrc_qp_in_close(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_in *in)
{
	struct rmem_qp *qp = in->qp;
	int state = rsoft_fork_begin();

	TAILQ_REMOVE(&qps->ins, in, next);
	rwire_xrc_socket_unwatch(qps->epoll, &in->end.fd);
	rsoft_fork_end(state);
	qps->nb--;
	free(in);
	if (qp == NULL)
		return;
	pthread_mutex_unlock(&qps->lock);
	rmem_qp_unhold(qp);
	pthread_mutex_lock(&qps->lock);
}

/* Make space for a connection, by closing the oldest one without a hello. */
static bool
has_space(struct rwire_xrc_qps *qps)
{
	struct rwire_xrc_qp_in *in, *oldest = NULL;

	if (qps->nb < qps->max)
		return true;
	TAILQ_FOREACH(in, &qps->ins, next) {
		if (in->qp == NULL)
			oldest = in;
	}
	if (oldest == NULL)
		return false;
	rwire_xrc_qp_in_close(qps, oldest);
	return true;
}

/* Accept a connection, and list it; NULL: there is none, or no space for it. */
static struct rwire_xrc_qp_in *
accept_listed(struct rwire_xrc_qps *qps, const struct rwire_xrc_qp_listener *listener)
{
	int fd, state = rsoft_fork_begin();
	struct rwire_xrc_qp_in *in = NULL;
	struct rwire_xrc_hello hello;

	fd = rwire_xrc_socket_accept(listener->end.fd);
	if (fd == -ENFILE)
		qps->is_starved = true;
	if (fd >= 0 && has_space(qps))
		in = calloc(1, sizeof(*in));
	if (in != NULL) {
		in->end = (struct rwire_xrc_qp_end){.kind = RWIRE_XRC_QP_IN, .fd = fd};
		TAILQ_INSERT_HEAD(&qps->ins, in, next);
	} else if (fd >= 0) {
		hello = rwire_xrc_hello_of(-ENOMEM);
		(void)rwire_shm_send(fd, &hello, sizeof(hello), -1);
		close(fd);
	}
	rsoft_fork_end(state);
	return in;
}

void
rwire_xrc_qp_in_accept(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_listener *listener)
{
	struct rwire_xrc_qp_in *in = accept_listed(qps, listener);

	if (in == NULL)
		return;
	in->qp_num = listener->qp->qp.qp_num;
	qps->nb++;
	if (!rwire_xrc_qp_watch(qps, &in->end))
		rwire_xrc_qp_in_close(qps, in);
}

static struct rwire_xrc_qp_listener *
find_listener(const struct rwire_xrc_qps *qps, uint32_t qp_num)
{
	struct rwire_xrc_qp_listener *listener;

	LIST_FOREACH(listener, &qps->listeners, next) {
		if (listener->qp->qp.qp_num == qp_num)
			break;
	}
	return listener;
}

/* Receive the hello of an opener, hold the QP, and answer. */
static void
receive_hello(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_in *in)
{
	const struct rwire_xrc_qp_listener *listener = find_listener(qps, in->qp_num);
	struct rwire_xrc_hello hello = {.version = 0}, own;
	bool is_truncated = false, is_sent;
	int file, ret = -ENOENT;
	ssize_t len = rwire_shm_recv(in->end.fd, &hello, sizeof(hello), &file, &is_truncated);

	if (len == -EAGAIN)
		return;
	if (listener != NULL && rwire_xrc_hello_is_valid(&hello, len, is_truncated) &&
			rwire_xrc_socket_is_file(listener->qp->domain, file))
		ret = rmem_qp_hold(listener->qp->domain, in->qp_num, &in->qp);
	if (file >= 0)
		close(file);
	own = rwire_xrc_hello_of(ret);
	is_sent = len > 0 &&
			rwire_shm_send(in->end.fd, &own, sizeof(own),
					ret == 0 ? listener->qp->domain->fd : -1);
	if (ret != 0 || !is_sent)
		rwire_xrc_qp_in_close(qps, in);
}

/* Execute a call, without the lock, and answer it; false: the opener does not read answers. */
static bool
execute(struct rwire_xrc_qps *qps, const struct rwire_xrc_qp_in *in,
		struct rwire_xrc_qp_request *request)
{
	struct rwire_xrc_qp_answer answer = {.seq = request->seq};

	pthread_mutex_unlock(&qps->lock);
	answer.ret = rmem_qp_execute(in->qp, &request->call);
	pthread_mutex_lock(&qps->lock);
	if (request->call.op == RMEM_QP_CALL_QUERY && answer.ret == 0) {
		answer.has_attr = 1;
		answer.attr = request->call.attr;
	}
	return send(in->end.fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

void
rwire_xrc_qp_in_receive(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_in *in)
{
	struct rwire_xrc_qp_request request;
	unsigned int i;
	ssize_t len;

	if (in->qp == NULL) {
		receive_hello(qps, in);
		return;
	}
	for (i = 0; i < IN_BURST; i++) {
		len = recv(in->end.fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (len != (ssize_t)sizeof(request) || request.seq == 0 ||
				!execute(qps, in, &request)) {
			rwire_xrc_qp_in_close(qps, in);
			return;
		}
	}
}

/* Report events to the openers of a QP. */
static void
report(struct rwire_xrc_qps *qps, const struct rwire_xrc_qp_listener *listener, uint32_t events)
{
	struct rwire_xrc_qp_answer answer = {.seq = 0};
	struct rwire_xrc_qp_in *in;

	for (; events != 0; events &= events - 1) {
		answer.ret = __builtin_ctz(events);
		TAILQ_FOREACH(in, &qps->ins, next) {
			if (in->qp == &listener->qp->qp &&
					send(in->end.fd, &answer, sizeof(answer),
							MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
				in->has_failed = true;
		}
	}
}

void
rwire_xrc_qp_in_report(struct rwire_xrc_qps *qps)
{
	struct rwire_xrc_qp_listener *listener;
	struct rwire_xrc_qp_in *in, *next;

	LIST_FOREACH(listener, &qps->listeners, next) {
		if (__atomic_load_n(&listener->events, __ATOMIC_RELAXED) != 0)
			report(qps, listener,
					__atomic_exchange_n(
							&listener->events, 0, __ATOMIC_ACQUIRE));
	}
	for (in = TAILQ_FIRST(&qps->ins); in != NULL; in = next) {
		next = TAILQ_NEXT(in, next);
		if (in->has_failed)
			rwire_xrc_qp_in_close(qps, in);
	}
}

void
rwire_xrc_qp_in_leave(struct rwire_xrc_qps *qps)
{
	struct rwire_xrc_qp_in *in, *next;

	for (in = TAILQ_FIRST(&qps->ins); in != NULL; in = next) {
		next = TAILQ_NEXT(in, next);
		if (in->qp != NULL && rmem_qp_is_left(in->qp))
			rwire_xrc_qp_in_close(qps, in);
	}
}
