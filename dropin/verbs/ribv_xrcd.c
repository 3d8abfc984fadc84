/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC domains, and the numbers of SRQs. */

#include <errno.h>
#include <fcntl.h>

#include "ribv.h"

/* As the kernel: EAGAIN without O_CREAT, EINVAL with O_EXCL. */
static int
xrcd_errno(int ret, int fd)
{
	switch (ret) {
	case -ENOENT:
		return EAGAIN;
	case -EEXIST:
		return EINVAL;
	case -EINVAL:
		return fd != -1 && fcntl(fd, F_GETFD) < 0 ? EBADF : EINVAL;
	default:
		return ribv_errno(ret);
	}
}

struct ibv_xrcd *
ribv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct rmem_xrcd_conf conf = {.flags = 0};
	struct ribv_xrcd *xrcd;
	int ret;

	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	if (attr == NULL)
		return ribv_fail(EINVAL);
	/* libibverbs refuses any other mask in the same way. */
	if (attr->comp_mask != mask)
		return ribv_fail(EOPNOTSUPP);
	if ((attr->oflags & ~(O_CREAT | O_EXCL)) != 0)
		return ribv_fail(EINVAL);
	if (attr->fd != -1) {
		conf.fd = attr->fd;
		conf.flags = RMEM_XRCD_FILE;
		if ((attr->oflags & O_CREAT) != 0)
			conf.flags |= RMEM_XRCD_CREATE;
		if ((attr->oflags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
			conf.flags |= RMEM_XRCD_EXCL;
	}
	xrcd = ribv_new();
	if (xrcd == NULL)
		return NULL;
	ret = rmem_xrcd_alloc(ribv_dev_of(context), &conf, &xrcd->xrcd);
	if (ret != 0) {
		ribv_leave(xrcd);
		return ribv_fail(xrcd_errno(ret, attr->fd));
	}
	xrcd->ibv.context = xrcd->context = context;
	ribv_enter(xrcd, RIBV_XRCD);
	return &xrcd->ibv;
}

int
ribv_close_xrcd(struct ibv_xrcd *xrcd)
{
	int ret;

	if (!ribv_is_xrcd(xrcd))
		return ribv_leave_inherited(xrcd, RIBV_XRCD);
	ret = rmem_xrcd_dealloc(((struct ribv_xrcd *)xrcd)->xrcd);
	if (ret == 0)
		ribv_leave(xrcd);
	return -ret;
}

int
ribv_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	int ret;

	if (!ribv_is_srq(srq))
		return ENOENT;
	if (srq_num == NULL || ((struct ribv_srq *)srq)->cq == NULL)
		return EINVAL;
	ret = rmem_srq_num_get(((struct ribv_srq *)srq)->srq, srq_num);
	return ret != 0 ? ribv_errno(ret) : 0;
}
