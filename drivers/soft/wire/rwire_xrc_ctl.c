/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Control calls on XRC domains of several processes; see rwire_xrc.h. */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../mem/rsoft_grace.h"
#include "port/rwire_xrc_socket.h"
#include "rwire_xrc.h"

/* Listen at the first free slot; return it, or -ENOMEM. */
static int
take_slot(struct rsoft_xrcd *xrcd)
{
	uint32_t slot;

	for (slot = 0; slot < RWIRE_XRC_SLOTS; slot++) {
		xrcd->socket = rwire_xrc_socket_listen(&xrcd->xrcd, RWIRE_XRC_HANDLE, slot);
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

int
rwire_xrc_srq_open(struct rsoft_srq *srq)
{
	struct rwire *wire = srq->owner.dev->wire;
	struct rwire_xrc_listener *listener;
	int fd, state, ret = -ENOMEM;

	if (wire == NULL || srq->domain->fd < 0)
		return 0;
	fd = rwire_xrc_socket_listen(srq->domain, RWIRE_XRC_SRQ, srq->number);
	if (fd < 0)
		return fd;
	listener = calloc(1, sizeof(*listener));
	state = lock_rx(wire);
	if (listener != NULL && rwire_xrc_begin(wire) == 0) {
		*listener = (struct rwire_xrc_listener){
				.end = {.kind = RWIRE_XRC_LISTENER, .fd = fd}, .srq = srq};
		if (rwire_xrc_watch(wire->xrc, &listener->end)) {
			LIST_INSERT_HEAD(&wire->xrc->listeners, listener, next);
			ret = 0;
		}
	}
	unlock_rx(wire, state);
	if (ret == 0)
		return 0;
	RSOFT_LOG(ERR, "SRQ 0x%06x: no memory for its socket", srq->number);
	free(listener);
	close(fd);
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
	LIST_REMOVE(listener, next);
	if (listener->is_off)
		wire->xrc->nb_off--;
	rwire_xrc_unwatch(wire->xrc, &listener->end);
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
