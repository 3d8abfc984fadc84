/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The thread of XRC_RECV QPs that several processes open; see rwire_xrc_qp.h. */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../base/rsoft_profile.h"
#include "port/rwire_xrc_socket.h"
#include "rwire_xrc_qp.h"

#define XRC_QP_BURST 32 /* events of sockets at once */
#define STARVED_MS   20 /* pause without free descriptors */

/* Held while rwire::xrc_qps is created. */
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;

static void
dispatch(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_end *end)
{
	switch (end->kind) {
	case RWIRE_XRC_QP_LISTENER:
		rwire_xrc_qp_in_accept(qps, (struct rwire_xrc_qp_listener *)end);
		break;
	case RWIRE_XRC_QP_IN:
		rwire_xrc_qp_in_receive(qps, (struct rwire_xrc_qp_in *)end);
		break;
	case RWIRE_XRC_QP_OUT:
		rwire_xrc_qp_out_receive(qps, (struct rwire_xrc_qp_out *)end);
		break;
	}
}

/* Process what is ready. Under the lock. */
static void
serve(struct rwire_xrc_qps *qps)
{
	struct epoll_event event;
	uint64_t value;
	unsigned int i;

	(void)!read(qps->wake, &value, sizeof(value));
	rwire_xrc_qp_in_report(qps);
	if (qps->is_leaving) {
		rwire_xrc_qp_in_leave(qps);
		qps->is_leaving = false;
		pthread_cond_broadcast(&qps->left);
	}
	/* One at a time, because an event may close other connections. */
	for (i = 0; i < XRC_QP_BURST && epoll_wait(qps->epoll, &event, 1, 0) == 1; i++)
		dispatch(qps, event.data.ptr);
}

static void
qps_thread(void *arg)
{
	struct rwire_xrc_qps *qps = arg;
	struct pollfd fds[2] = {
			{.fd = qps->epoll, .events = POLLIN}, {.fd = qps->wake, .events = POLLIN}};
	bool is_stopping = false, is_starved;

	while (!is_stopping) {
		(void)poll(fds, RTE_DIM(fds), -1);
		pthread_mutex_lock(&qps->lock);
		qps->is_starved = false;
		serve(qps);
		is_starved = qps->is_starved;
		is_stopping = qps->is_stopping;
		pthread_mutex_unlock(&qps->lock);
		/* A listener stays readable. */
		if (is_starved)
			(void)poll(NULL, 0, STARVED_MS);
	}
}

static void
qps_free(struct rwire_xrc_qps *qps)
{
	if (qps->epoll >= 0)
		close(qps->epoll);
	if (qps->wake >= 0)
		close(qps->wake);
	free(qps);
}

static struct rwire_xrc_qps *
qps_new(void)
{
	struct rwire_xrc_qps *qps = calloc(1, sizeof(*qps));

	if (qps == NULL)
		return NULL;
	qps->epoll = epoll_create1(EPOLL_CLOEXEC);
	qps->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	qps->max = rwire_xrc_max_links();
	pthread_mutex_init(&qps->lock, NULL);
	pthread_cond_init(&qps->left, NULL);
	TAILQ_INIT(&qps->ins);
	qps->thread.run = qps_thread;
	qps->thread.arg = qps;
	if (qps->epoll >= 0 && qps->wake >= 0 && rmem_thread_start(&qps->thread, "rmem-xrc") == 0)
		return qps;
	qps_free(qps);
	return NULL;
}

/* Start the thread, unless it runs; NULL: no memory, descriptor or thread. */
static struct rwire_xrc_qps *
qps_begin(struct rwire *wire)
{
	pthread_mutex_lock(&begin_lock);
	if (wire->xrc_qps == NULL)
		wire->xrc_qps = qps_new();
	pthread_mutex_unlock(&begin_lock);
	if (wire->xrc_qps == NULL)
		RSOFT_LOG(ERR, "XRC domain: no memory, file descriptor or thread for its QPs");
	return wire->xrc_qps;
}

int
rwire_xrc_qp_publish(struct rsoft_qp *qp)
{
	struct rwire_xrc_qps *qps = qps_begin(qp->dev->wire);
	int ret;

	if (qps == NULL)
		return -ENOMEM;
	ret = rwire_xrc_qp_listen(qps, qp);
	if (ret != 0 && ret != -EADDRINUSE)
		RSOFT_LOG(ERR, "QP 0x%06x: no memory for its socket", qp->qp.qp_num);
	return ret;
}

int
rwire_xrc_qp_open(struct rmem_qp *base, struct rmem_xrcd *xrcd)
{
	const struct rmem_qp_conf conf = {.type = RMEM_QPT_XRC_RECV};
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	struct rwire_xrc_qps *qps;

	/* For posts, which are refused. */
	rmem_wr_limits_set(&qp->limits, &conf, rsoft_profile_of(rsoft_dev_of(&base->obj))->capa);
	qp->dev = rsoft_dev_of(&base->obj);
	qp->xrcd = xrcd->handle;
	qp->domain = xrcd;
	if (qp->dev->wire == NULL) {
		RSOFT_LOG(ERR, "QP 0x%06x: QPs of other processes need ip=", base->qp_num);
		return -ENOENT;
	}
	qps = qps_begin(qp->dev->wire);
	return qps != NULL ? rwire_xrc_qp_connect(qps, qp) : -ENOMEM;
}

static void
wake(const struct rwire_xrc_qps *qps)
{
	const uint64_t one = 1;

	(void)!write(qps->wake, &one, sizeof(one));
}

void
rwire_xrc_qp_leave(struct rmem_dev *base)
{
	const struct rsoft_dev *dev = rmem_dev_drv(base)->priv;
	struct rwire_xrc_qps *qps = dev->wire != NULL ? dev->wire->xrc_qps : NULL;
	int state;

	if (qps == NULL)
		return;
	/* A thread cancelled in the wait would keep the lock. */
	state = rsoft_cancel_disable();
	pthread_mutex_lock(&qps->lock);
	qps->is_leaving = true;
	wake(qps);
	while (qps->is_leaving)
		pthread_cond_wait(&qps->left, &qps->lock);
	pthread_mutex_unlock(&qps->lock);
	rsoft_cancel_restore(state);
}

void
rwire_xrc_qp_end(struct rwire *wire)
{
	struct rwire_xrc_qps *qps = wire->xrc_qps;
	struct rwire_xrc_qp_in *in;

	if (qps == NULL)
		return;
	pthread_mutex_lock(&qps->lock);
	qps->is_stopping = true;
	wake(qps);
	pthread_mutex_unlock(&qps->lock);
	pthread_join(qps->thread.id, NULL);
	pthread_mutex_lock(&qps->lock);
	while ((in = TAILQ_FIRST(&qps->ins)) != NULL)
		rwire_xrc_qp_in_close(qps, in);
	pthread_mutex_unlock(&qps->lock);
	qps_free(qps);
	wire->xrc_qps = NULL;
}

static void
close_end(const struct rwire_xrc_qp_end *end)
{
	if (end->fd >= 0)
		close(end->fd);
}

void
rwire_xrc_qp_forked(const struct rsoft_dev *dev)
{
	const struct rwire_xrc_qps *qps = dev->wire->xrc_qps;
	const struct rwire_xrc_qp_listener *listener;
	const struct rwire_xrc_qp_out *out;
	const struct rwire_xrc_qp_in *in;

	pthread_mutex_init(&begin_lock, NULL);
	if (qps == NULL)
		return;
	LIST_FOREACH(listener, &qps->listeners, next)
		close_end(&listener->end);
	TAILQ_FOREACH(in, &qps->ins, next)
		close_end(&in->end);
	LIST_FOREACH(out, &qps->outs, next)
		close_end(&out->end);
	close(qps->epoll);
	close(qps->wake);
}
