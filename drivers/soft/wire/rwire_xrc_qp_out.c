/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC_RECV QPs of other processes; see rwire_xrc_qp.h. */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../base/rsoft_fork.h"
#include "port/rwire_shm.h"
#include "port/rwire_xrc_socket.h"
#include "rwire_xrc_qp.h"

#define RETRY_MS 10

/* Types of events of XRC_RECV QPs. */
#define EVENTS                                                                                     \
	(UINT32_C(1) << RMEM_ASYNC_QP_FATAL | UINT32_C(1) << RMEM_ASYNC_QP_REQ_ERR |               \
			UINT32_C(1) << RMEM_ASYNC_QP_ACCESS_ERR |                                  \
			UINT32_C(1) << RMEM_ASYNC_COMM_EST)

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int
remaining(uint64_t until)
{
	uint64_t now = now_ms();

	return now < until ? (int)(until - now) : 0;
}

static int
fail_silent(const struct rsoft_qp *qp)
{
	RSOFT_LOG(ERR, "QP 0x%06x: of another process, which does not answer within %d ms",
			qp->qp.qp_num, RWIRE_XRC_QP_TIMEOUT_MS);
	return -ETIMEDOUT;
}

static int
fail_absent(const struct rsoft_qp *qp)
{
	RSOFT_LOG(ERR, "QP 0x%06x: not an XRC_RECV QP of a process with this XRC domain",
			qp->qp.qp_num);
	return -ENOENT;
}

/* Connect to the socket of the QP: 0, or an errno, which is logged. */
static int
reach(const struct rsoft_qp *qp, int *fd, uint64_t until)
{
	int ret, state;

	for (;;) {
		state = rsoft_fork_begin();
		*fd = ret = rwire_xrc_socket_connect(qp->domain, RWIRE_XRC_QP, qp->qp.qp_num);
		rsoft_fork_end(state);
		if (ret != -EAGAIN)
			break;
		/* The backlog is full. */
		if (remaining(until) == 0)
			return fail_silent(qp);
		(void)poll(NULL, 0, RETRY_MS);
	}
	if (ret == -ENFILE) {
		RSOFT_LOG(ERR, "QP 0x%06x: of another process: no file descriptor is free",
				qp->qp.qp_num);
		return -ENOMEM;
	}
	return ret < 0 ? fail_absent(qp) : 0;
}

/* Check the hello of the owner. */
static int
check_hello(const struct rsoft_qp *qp, int fd)
{
	struct rwire_xrc_hello hello = {.version = 0};
	bool is_truncated = false, is_file;
	int file;
	ssize_t len = rwire_shm_recv(fd, &hello, sizeof(hello), &file, &is_truncated);

	is_file = rwire_xrc_socket_is_file(qp->domain, file);
	if (file >= 0)
		close(file);
	if (!rwire_xrc_hello_is_valid(&hello, len, is_truncated))
		return fail_absent(qp);
	if (hello.status == 0 && is_file)
		return 0;
	if (hello.status != -ENOMEM && hello.status != -ENOSPC)
		return fail_absent(qp);
	RSOFT_LOG(ERR, "QP 0x%06x: of another process, which has %s left", qp->qp.qp_num,
			hello.status == -ENOMEM ? "no memory or descriptor" : "no reference");
	return hello.status;
}

/* Exchange hellos. */
static int
greet(const struct rsoft_qp *qp, int fd, uint64_t until)
{
	struct rwire_xrc_hello hello = rwire_xrc_hello_of(0);
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	int n, ms;

	hello.qp_num = qp->qp.qp_num;
	/* An owner that has closed the connection has sent its hello before. */
	if (!rwire_shm_send(fd, &hello, sizeof(hello), qp->domain->fd) && errno != EPIPE)
		return fail_absent(qp);
	do {
		ms = remaining(until);
		n = poll(&ready, 1, ms);
	} while (n <= 0 && ms != 0);
	return n <= 0 ? fail_silent(qp) : check_hello(qp, fd);
}

/* List a new connection, whose descriptor a child of fork() then closes. */
static struct rwire_xrc_qp_out *
out_new(struct rwire_xrc_qps *qps, struct rsoft_qp *qp)
{
	struct rwire_xrc_qp_out *out = calloc(1, sizeof(*out));
	pthread_condattr_t attr;
	int state;

	if (out == NULL)
		return NULL;
	out->end = (struct rwire_xrc_qp_end){.kind = RWIRE_XRC_QP_OUT, .fd = -1};
	out->qp = qp;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&out->cond, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_lock(&qps->lock);
	state = rsoft_fork_begin();
	LIST_INSERT_HEAD(&qps->outs, out, next);
	rsoft_fork_end(state);
	pthread_mutex_unlock(&qps->lock);
	return out;
}

/* Close a connection; is_open: it was ready for calls. */
static void
out_close(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_out *out, bool is_open)
{
	int state;

	pthread_mutex_lock(&qps->lock);
	state = rsoft_fork_begin();
	LIST_REMOVE(out, next);
	rwire_xrc_socket_unwatch(qps->epoll, &out->end.fd);
	rsoft_fork_end(state);
	qps->nb -= is_open;
	pthread_mutex_unlock(&qps->lock);
	pthread_cond_destroy(&out->cond);
	free(out);
}

/* Let the thread receive from a connection; false: no memory, or too many. */
static bool
out_open(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_out *out)
{
	bool is_open;

	pthread_mutex_lock(&qps->lock);
	is_open = qps->nb < qps->max && rwire_xrc_qp_watch(qps, &out->end);
	if (is_open) {
		qps->nb++;
		out->qp->out = out;
	}
	pthread_mutex_unlock(&qps->lock);
	return is_open;
}

static int
connect_new(struct rwire_xrc_qps *qps, struct rsoft_qp *qp)
{
	const uint64_t until = now_ms() + RWIRE_XRC_QP_TIMEOUT_MS;
	struct rwire_xrc_qp_out *out = out_new(qps, qp);
	int ret = 0;

	if (out != NULL)
		ret = reach(qp, &out->end.fd, until);
	if (out != NULL && ret == 0)
		ret = greet(qp, out->end.fd, until);
	if (out == NULL || (ret == 0 && !out_open(qps, out))) {
		RSOFT_LOG(ERR, "QP 0x%06x: of another process: no memory, or %u connections",
				qp->qp.qp_num, qps->max);
		ret = -ENOMEM;
	}
	if (out != NULL && ret != 0)
		out_close(qps, out, false);
	return ret;
}

int
rwire_xrc_qp_connect(struct rwire_xrc_qps *qps, struct rsoft_qp *qp)
{
	int ret, state;

	/* A thread cancelled in the wait would keep the connection, and the QP. */
	state = rsoft_cancel_disable();
	ret = connect_new(qps, qp);
	rsoft_cancel_restore(state);
	return ret;
}

/* Wait for a change of the state of a connection; false: it is too late. */
static bool
wait_until(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_out *out, uint64_t until)
{
	const struct timespec at = {.tv_sec = (time_t)(until / 1000),
			.tv_nsec = (long)(until % 1000 * 1000000)};

	return pthread_cond_timedwait(&out->cond, &qps->lock, &at) != ETIMEDOUT;
}

/* Send a call, and wait for its answer: 0, -ETIMEDOUT, or -EIO. Under the lock. */
static int
exchange(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_out *out, const struct rmem_qp_call *call)
{
	const uint64_t until = now_ms() + RWIRE_XRC_QP_TIMEOUT_MS;
	struct rwire_xrc_qp_request request = {.call = *call};
	bool is_late = false;

	while (out->is_calling && !out->is_dead && !is_late)
		is_late = !wait_until(qps, out, until);
	if (out->is_dead || out->is_calling)
		return out->is_dead ? -EIO : -ETIMEDOUT;
	out->seq = out->seq + 1 != 0 ? out->seq + 1 : 1;
	request.seq = out->seq;
	out->is_answered = false;
	if (send(out->end.fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -EIO;
	out->is_calling = true;
	while (!out->is_answered && !out->is_dead && !is_late)
		is_late = !wait_until(qps, out, until);
	out->is_calling = false;
	pthread_cond_broadcast(&out->cond);
	if (out->is_answered)
		return 0;
	return out->is_dead ? -EIO : -ETIMEDOUT;
}

int
rwire_xrc_qp_call(struct rmem_qp *base, struct rmem_qp_call *call)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	struct rwire_xrc_qps *qps = qp->dev->wire->xrc_qps;
	struct rwire_xrc_qp_answer answer;
	int state, ret;

	state = rsoft_cancel_disable();
	pthread_mutex_lock(&qps->lock);
	ret = exchange(qps, qp->out, call);
	answer = qp->out->answer;
	pthread_mutex_unlock(&qps->lock);
	rsoft_cancel_restore(state);
	if (ret == -ETIMEDOUT)
		return fail_silent(qp);
	if (ret != 0) {
		RSOFT_LOG(ERR, "QP 0x%06x: of another process, which has ended", base->qp_num);
		return ret;
	}
	if (answer.ret > 0 || answer.ret < -4095 ||
			(call->op == RMEM_QP_CALL_QUERY && answer.ret == 0 && answer.has_attr == 0))
		return -EIO;
	if (answer.ret == 0 && call->op == RMEM_QP_CALL_QUERY)
		call->attr = answer.attr;
	return answer.ret;
}

void
rwire_xrc_qp_close(struct rmem_qp *base)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	int state;

	/* A thread cancelled in a system call would keep the lock. */
	state = rsoft_cancel_disable();
	out_close(qp->dev->wire->xrc_qps, qp->out, true);
	rsoft_cancel_restore(state);
}

void
rwire_xrc_qp_out_receive(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_out *out)
{
	struct rwire_xrc_qp_answer answer;
	ssize_t len = recv(out->end.fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len != (ssize_t)sizeof(answer)) {
		rwire_xrc_socket_unwatch(qps->epoll, &out->end.fd);
		out->is_dead = true;
		rmem_qp_async_event(&out->qp->qp, RMEM_ASYNC_QP_FATAL);
		pthread_cond_broadcast(&out->cond);
	} else if (answer.seq == 0) {
		if (answer.ret >= 0 && answer.ret < 32 && (EVENTS >> answer.ret & 1) != 0)
			rmem_qp_async_event(&out->qp->qp, (uint32_t)answer.ret);
	} else if (out->is_calling && answer.seq == out->seq) {
		out->answer = answer;
		out->is_answered = true;
		pthread_cond_broadcast(&out->cond);
	}
}
