/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Control calls on XRC domains of several processes; see rwire_xrc.h. */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../base/rsoft_fork.h"
#include "../mem/rsoft_grace.h"
#include "port/rwire_xrc_socket.h"
#include "rwire_xrc.h"

/* Listen at the first free slot; return it, or -ENOMEM. */
static int
take_slot(struct rsoft_xrcd *xrcd)
{
	uint32_t slot;
	int state;

	for (slot = 0; slot < RWIRE_XRC_SLOTS; slot++) {
		state = rsoft_fork_begin();
		xrcd->socket = rwire_xrc_socket_listen(&xrcd->xrcd, RWIRE_XRC_HANDLE, slot);
		rsoft_fork_end(state);
		if (xrcd->socket >= 0)
			return (int)slot;
		if (xrcd->socket != -EADDRINUSE)
			return xrcd->socket;
	}
	RSOFT_LOG(ERR, "XRC domain: file 0x%" PRIx64 ":%" PRIu64 ": opened %u times",
			xrcd->xrcd.file[0], xrcd->xrcd.file[1], RWIRE_XRC_SLOTS);
	return -ENOMEM;
}

int
rwire_xrc_domain_open(struct rsoft_xrcd *xrcd, bool *is_known, bool is_probing)
{
	int slot;

	if (!*is_known && is_probing)
		*is_known = rwire_xrc_socket_exists(&xrcd->xrcd, RWIRE_XRC_SLOTS);
	slot = take_slot(xrcd);
	if (slot < 0)
		return slot;
	/* Of two processes that create the domain at the same time, one has a lower slot. */
	if (!*is_known)
		*is_known = rwire_xrc_socket_exists(&xrcd->xrcd, (uint32_t)slot);
	return 0;
}

/* Lock for a control call, which must not be cancelled inside. */
static int
lock_rx(struct rwire *wire)
{
	int state;

	state = rsoft_cancel_disable();
	rsoft_lock(&wire->rx_lock);
	return state;
}

static void
unlock_rx(struct rwire *wire, int state)
{
	rte_ticketlock_unlock(&wire->rx_lock);
	rsoft_cancel_restore(state);
}

/* Listen for links to the SRQ of a listener: 0, -EADDRINUSE or -ENOMEM. Under rx_lock. */
static int
listen_at(struct rwire_xrc *xrc, struct rwire_xrc_listener *listener)
{
	const struct rsoft_srq *srq = listener->srq;
	int fd, state = rsoft_fork_begin();

	fd = rwire_xrc_socket_listen(srq->domain, RWIRE_XRC_SRQ, srq->number);
	listener->end = (struct rwire_xrc_end){.kind = RWIRE_XRC_LISTENER, .fd = fd};
	if (fd >= 0)
		LIST_INSERT_HEAD(&xrc->listeners, listener, next);
	rsoft_fork_end(state);
	return fd < 0 ? fd : 0;
}

/* Unlist a listener and close its socket. Under rx_lock. */
static void
unlisten(struct rwire_xrc *xrc, struct rwire_xrc_listener *listener)
{
	int state = rsoft_fork_begin();

	LIST_REMOVE(listener, next);
	rwire_xrc_socket_unwatch(xrc->epoll, &listener->end.fd);
	rsoft_fork_end(state);
}

int
rwire_xrc_srq_open(struct rsoft_srq *srq)
{
	struct rwire *wire = srq->owner.dev->wire;
	struct rwire_xrc_listener *listener;
	int state, ret = -ENOMEM;

	if (wire == NULL || srq->domain->fd < 0)
		return 0;
	listener = calloc(1, sizeof(*listener));
	state = lock_rx(wire);
	if (listener != NULL && rwire_xrc_begin(wire) == 0) {
		listener->srq = srq;
		ret = listen_at(wire->xrc, listener);
		if (ret == 0 && !rwire_xrc_watch(wire->xrc, &listener->end)) {
			unlisten(wire->xrc, listener);
			ret = -ENOMEM;
		}
	}
	unlock_rx(wire, state);
	if (ret == 0)
		return 0;
	if (ret != -EADDRINUSE)
		RSOFT_LOG(ERR, "SRQ 0x%06x: no memory for its socket", srq->number);
	free(listener);
	return ret;
}

static struct rwire_xrc_listener *
find_listener(const struct rwire_xrc *xrc, const struct rsoft_srq *srq)
{
	struct rwire_xrc_listener *listener;

	LIST_FOREACH(listener, &xrc->listeners, next) {
		if (listener->srq == srq)
			break;
	}
	return listener;
}

void
rwire_xrc_srq_close(struct rsoft_srq *srq)
{
	struct rwire *wire = srq->owner.dev->wire;
	struct rwire_xrc_in_list ins = LIST_HEAD_INITIALIZER(ins);
	struct rwire_xrc_listener *listener;
	struct rwire_xrc_in *in;
	int state;

	if (wire == NULL || srq->domain == NULL || srq->domain->fd < 0)
		return;
	state = lock_rx(wire);
	listener = find_listener(wire->xrc, srq);
	if (listener->is_off)
		wire->xrc->nb_off--;
	unlisten(wire->xrc, listener);
	while ((in = rwire_xrc_in_take(wire, srq)) != NULL)
		LIST_INSERT_HEAD(&ins, in, next);
	unlock_rx(wire, state);
	free(listener);
	/* A key that a request has invalidated may be in use until then. */
	if (!LIST_EMPTY(&ins))
		rsoft_grace_wait();
	while ((in = LIST_FIRST(&ins)) != NULL) {
		LIST_REMOVE(in, next);
		rwire_xrc_in_free(in);
	}
}

void
rwire_xrc_close(struct rwire *wire)
{
	if (wire->xrc == NULL)
		return;
	close(wire->xrc->epoll);
	free(wire->xrc);
}

/* Close a descriptor of the parent. */
static void
close_end(const struct rwire_xrc_end *end)
{
	if (end->fd >= 0)
		close(end->fd);
}

void
rwire_xrc_forked(const struct rsoft_dev *dev)
{
	const struct rwire_xrc *xrc = dev->wire->xrc;
	const struct rwire_xrc_listener *listener;
	const struct rwire_xrc_out *out;
	const struct rwire_xrc_in *in;
	const struct rsoft_xrcd *xrcd;

	LIST_FOREACH(xrcd, &dev->xrcds, next)
		close(xrcd->socket);
	if (xrc == NULL)
		return;
	LIST_FOREACH(listener, &xrc->listeners, next)
		close_end(&listener->end);
	LIST_FOREACH(in, &xrc->ins, next)
		close_end(&in->end);
	TAILQ_FOREACH(out, &xrc->outs, lru)
		close_end(&out->end);
	close(xrc->epoll);
}
