/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC domains; see rsoft_xrcd.h. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "queue/rsoft_xrc.h"
#include "rsoft_xrcd.h"
#include "wire/rwire_xrc.h"

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

/* The class has found that no handle of this process makes EXCL fail. */
static int
open_file(const struct rsoft_dev *dev, struct rsoft_xrcd *xrcd, uint32_t flags)
{
	bool is_known = is_open(dev, &xrcd->xrcd);
	int ret = 0;

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
	if (ret != 0 && xrcd->socket >= 0)
		close(xrcd->socket);
	return ret;
}

static int
xrcd_alloc(struct rmem_xrcd *base, const struct rmem_xrcd_conf *conf)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_xrcd *xrcd = xrcd_of(base);
	int ret;

	xrcd->socket = -1;
	if ((conf->flags & RMEM_XRCD_FILE) == 0)
		return 0;
	ret = open_file(dev, xrcd, conf->flags);
	if (ret != 0)
		return ret;
	rsoft_lock(&rsoft_domain->lock);
	LIST_INSERT_HEAD(&dev->xrcds, xrcd, next);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return 0;
}

static int
xrcd_dealloc(struct rmem_xrcd *base)
{
	struct rsoft_xrcd *xrcd = xrcd_of(base);

	if (base->fd < 0)
		return 0;
	rsoft_lock(&rsoft_domain->lock);
	LIST_REMOVE(xrcd, next);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (xrcd->socket >= 0)
		close(xrcd->socket);
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

const struct rmem_xrc_ops rsoft_xrcd_ops = {
		.xrcd_size = sizeof(struct rsoft_xrcd),
		.flags = RMEM_XRC_OPS_SHARED,
		.srq_num_get = rsoft_xrc_srq_num_get,
		.xrcd_dealloc = xrcd_dealloc,
		.xrcd_alloc = xrcd_alloc,
};
