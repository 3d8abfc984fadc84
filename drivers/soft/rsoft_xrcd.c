/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC domains; see rsoft_xrcd.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rsoft_fork.h"
#include "queue/rsoft_xrc.h"
#include "rsoft_qp.h"
#include "rsoft_xrcd.h"
#include "wire/rwire_xrc.h"
#include "wire/rwire_xrc_qp.h"

#define QP_TRIES 64 /* numbers tried for an XRC_RECV QP */

static struct rsoft_xrcd *
xrcd_of(struct rmem_xrcd *xrcd)
{
	return (struct rsoft_xrcd *)xrcd;
}

/* Whether the device has a handle of the same file. */
static bool
is_open(const struct rsoft_dev *dev, const struct rmem_xrcd *xrcd)
{
	const struct rsoft_xrcd *other;
	bool is_found = false;

	rsoft_lock(&rsoft_domain->lock);
	LIST_FOREACH(other, &dev->xrcds, next)
		is_found |= memcmp(other->xrcd.file, xrcd->file, sizeof(xrcd->file)) == 0;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return is_found;
}

/* List a handle, before it has a socket. */
static void
list_file(struct rsoft_dev *dev, struct rsoft_xrcd *xrcd)
{
	int state;

	rsoft_lock(&rsoft_domain->lock);
	state = rsoft_fork_begin();
	LIST_INSERT_HEAD(&dev->xrcds, xrcd, next);
	rsoft_fork_end(state);
	rte_ticketlock_unlock(&rsoft_domain->lock);
}

/* Unlist a handle and close its socket. */
static void
close_file(struct rsoft_xrcd *xrcd)
{
	int state;

	rsoft_lock(&rsoft_domain->lock);
	state = rsoft_fork_begin();
	LIST_REMOVE(xrcd, next);
	if (xrcd->socket >= 0)
		close(xrcd->socket);
	rsoft_fork_end(state);
	rte_ticketlock_unlock(&rsoft_domain->lock);
}

/* The class has found that no handle of this process makes EXCL fail. */
static int
open_file(struct rsoft_dev *dev, struct rsoft_xrcd *xrcd, uint32_t flags)
{
	bool is_known = is_open(dev, &xrcd->xrcd);
	int ret = 0;

	list_file(dev, xrcd);
	if (dev->wire != NULL)
		ret = rwire_xrc_domain_open(xrcd, &is_known,
				(flags & RMEM_XRCD_EXCL) != 0 || (flags & RMEM_XRCD_CREATE) == 0);
	if (ret == 0 && !is_known && (flags & RMEM_XRCD_CREATE) == 0)
		ret = -ENOENT;
	if (ret == 0 && is_known && (flags & RMEM_XRCD_EXCL) != 0)
		ret = -EEXIST;
	if (ret == -ENOENT || ret == -EEXIST)
		RSOFT_LOG(ERR, "XRC domain: file 0x%" PRIx64 ":%" PRIu64 ": %s", xrcd->xrcd.file[0],
				xrcd->xrcd.file[1], ret == -EEXIST ? "exists" : "does not exist");
	if (ret != 0)
		close_file(xrcd);
	return ret;
}

static int
xrcd_alloc(struct rmem_xrcd *base, const struct rmem_xrcd_conf *conf)
{
	struct rsoft_xrcd *xrcd = xrcd_of(base);
	int ret, state;

	xrcd->socket = -1;
	if ((conf->flags & RMEM_XRCD_FILE) == 0)
		return 0;
	/* The class holds a lock, which a thread cancelled in a system call would keep. */
	state = rsoft_cancel_disable();
	ret = open_file(rsoft_dev_of(&base->obj), xrcd, conf->flags);
	rsoft_cancel_restore(state);
	return ret;
}

static int
xrcd_dealloc(struct rmem_xrcd *base)
{
	if (base->fd >= 0)
		close_file(xrcd_of(base));
	return 0;
}

static const struct rsoft_xrc_claim claim = {
		.open = rwire_xrc_srq_open,
		.close = rwire_xrc_srq_close,
};

int
rsoft_xrcd_srq_create(struct rmem_srq *srq, const struct rmem_srq_conf *conf)
{
	return rsoft_xrc_srq_create(srq, conf, &claim);
}

int
rsoft_xrcd_srq_destroy(struct rmem_srq *srq)
{
	rwire_xrc_srq_close(rsoft_srq_of(srq));
	return rsoft_xrc_srq_destroy(srq);
}

/* Other processes can open a QP of a file's domain. Without a listener, the QP is of this one. */
static void
qp_publish(struct rsoft_qp *qp)
{
	unsigned int i;

	for (i = 0; i < QP_TRIES && rwire_xrc_qp_publish(qp) == -EADDRINUSE; i++)
		rsoft_qp_renumber(qp);
	if (qp->listener == NULL)
		RSOFT_LOG(WARNING, "QP 0x%06x: other processes can't open it", qp->qp.qp_num);
}

int
rsoft_xrcd_qp_create(struct rmem_qp *base, const struct rmem_qp_conf *conf)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	int ret = rsoft_qp_create(base, conf);

	if (ret == 0 && qp->dev->wire != NULL && rsoft_xrc_is_shared(qp))
		qp_publish(qp);
	return ret;
}

int
rsoft_xrcd_qp_destroy(struct rmem_qp *qp)
{
	struct rwire_xrc_qp_listener *listener = rwire_xrc_qp_withdraw((struct rsoft_qp *)qp);
	int ret = rsoft_qp_destroy(qp);

	free(listener);
	return ret;
}

static const struct rmem_qp_share_ops share_ops = {
		.qp_open = rwire_xrc_qp_open,
		.qp_call = rwire_xrc_qp_call,
		.qp_close = rwire_xrc_qp_close,
		.qp_event = rwire_xrc_qp_event,
		.qp_leave = rwire_xrc_qp_leave,
};

const struct rmem_xrc_ops rsoft_xrcd_ops = {
		.xrcd_size = sizeof(struct rsoft_xrcd),
		.flags = RMEM_XRC_OPS_SHARED,
		.srq_num_get = rsoft_xrc_srq_num_get,
		.xrcd_dealloc = xrcd_dealloc,
		.xrcd_alloc = xrcd_alloc,
		.share = &share_ops,
};
