/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC: domains, SRQs by number, and QPs of other processes. A domain by file is one of all
 * processes of the device.
 */

#include <errno.h>
#include <fcntl.h>

#include "rverbs.h"

static struct ibv_xrcd *
open_xrcd(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
			.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
			.fd = fd,
			.oflags = oflags};

	return ibv_open_xrcd(context, &attr);
}

static int
xrcd_alloc(struct rmem_xrcd *base, const struct rmem_xrcd_conf *conf)
{
	struct rverbs_xrcd *xrcd = rverbs_xrcd_of(base);
	bool has_file = (conf->flags & RMEM_XRCD_FILE) != 0;
	int oflags = 0;

	if (!has_file || (conf->flags & RMEM_XRCD_CREATE) != 0)
		oflags |= O_CREAT;
	if ((conf->flags & RMEM_XRCD_EXCL) != 0)
		oflags |= O_EXCL;
	xrcd->ibv = open_xrcd(rverbs_dev_of(&base->obj)->context, has_file ? conf->fd : -1, oflags);
	if (xrcd->ibv != NULL)
		return 0;
	/* The kernel: EAGAIN without O_CREAT, EINVAL with O_EXCL. */
	if (has_file && errno == EAGAIN && (oflags & O_CREAT) == 0)
		return -ENOENT;
	if (has_file && errno == EINVAL && (oflags & O_EXCL) != 0)
		return -EEXIST;
	return rverbs_err_null(NULL, "ibv_open_xrcd");
}

static int
xrcd_dealloc(struct rmem_xrcd *base)
{
	return rverbs_err_code(ibv_close_xrcd(rverbs_xrcd_of(base)->ibv), RVERBS_ERR_RELEASE,
			"ibv_close_xrcd");
}

static int
srq_num_get(struct rmem_srq *base, uint32_t *srq_num)
{
	return rverbs_err_code(ibv_get_srq_num(rverbs_srq_of(base)->ibv, srq_num),
			RVERBS_ERR_CHANGE, "ibv_get_srq_num");
}

static struct ibv_srq *
create_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq,
		const struct ibv_srq_init_attr *init)
{
	struct ibv_srq_init_attr_ex attr = {.srq_context = init->srq_context,
			.attr = init->attr,
			.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
					IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
			.srq_type = IBV_SRQT_XRC,
			.pd = pd,
			.xrcd = xrcd,
			.cq = cq};

	return ibv_create_srq_ex(pd->context, &attr);
}

struct ibv_srq *
rverbs_xrc_srq(struct ibv_pd *pd, const struct rmem_srq_ext *ext,
		const struct ibv_srq_init_attr *init)
{
	return create_srq(pd, rverbs_xrcd_of(ext->xrcd)->ibv, rverbs_cq_of(ext->cq)->ibv, init);
}

/* Probe by an SRQ with a number, in a domain of its own; false: an object was not released. */
bool
rverbs_xrc_probe(struct rverbs_dev *dev, struct ibv_pd *pd, struct ibv_cq *cq)
{
	const struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
	bool is_released = true;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t number;

	if ((dev->attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC) == 0 || dev->has_mw_quirk)
		return true;
	xrcd = open_xrcd(dev->context, -1, O_CREAT);
	if (xrcd == NULL)
		return true;
	srq = create_srq(pd, xrcd, cq, &init);
	if (srq != NULL) {
		if (ibv_get_srq_num(srq, &number) == 0)
			dev->capa |= RMEM_DEV_CAPA_XRC;
		is_released = ibv_destroy_srq(srq) == 0;
	}
	return is_released && ibv_close_xrcd(xrcd) == 0;
}

/* The kernel has the QPs: they remain until all processes have destroyed their handles. */
static void
qp_leave(struct rmem_dev *dev)
{
	RTE_SET_USED(dev);
}

static const struct rmem_qp_share_ops share_ops = {
		.qp_open = rverbs_qp_open,
		.qp_leave = qp_leave,
};

const struct rmem_xrc_ops rverbs_xrc_ops = {
		.xrcd_size = sizeof(struct rverbs_xrcd),
		.flags = RMEM_XRC_OPS_SHARED,
		.srq_num_get = srq_num_get,
		.xrcd_dealloc = xrcd_dealloc,
		.xrcd_alloc = xrcd_alloc,
		.share = &share_ops,
};
