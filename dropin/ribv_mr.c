/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Protection domains, memory regions and memory windows. */

#include <errno.h>
#include <stdlib.h>

#include "ribv.h"

static bool
pd_is(const struct ibv_pd *pd)
{
	return ribv_is(pd, RIBV_PD, pd->handle);
}

static bool
mr_is(const struct ibv_mr *mr)
{
	return ribv_is(mr, RIBV_MR, mr->handle);
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct ribv_pd *pd;
	int ret;

	if (!ribv_is_ours(context))
		return RIBV_NEXT(ibv_alloc_pd)(context);
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL || !ribv_enter(pd, RIBV_PD, &pd->ibv.handle)) {
		free(pd);
		return ribv_fail(ENOMEM);
	}
	pd->ibv.context = context;
	ret = rmem_pd_alloc(ribv_dev, &pd->pd);
	if (ret == 0)
		return &pd->ibv;
	ribv_leave(pd->ibv.handle);
	free(pd);
	return ribv_fail(ribv_errno(ret));
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	int ret;

	if (!ribv_is_ours(pd->context))
		return RIBV_NEXT(ibv_dealloc_pd)(pd);
	if (!pd_is(pd))
		return ENOENT;
	ret = rmem_pd_dealloc(((struct ribv_pd *)pd)->pd);
	if (ret != 0)
		return -ret;
	ribv_leave(pd->handle);
	free(pd);
	return 0;
}

static struct ibv_mr *
mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct ribv_mr *mr;
	int ret;

	if (!pd_is(pd))
		return ribv_fail(ENOENT);
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL || !ribv_enter(mr, RIBV_MR, &mr->ibv.handle)) {
		free(mr);
		return ribv_fail(ENOMEM);
	}
	/* A device may ignore these bits (ibv_reg_mr(3)). */
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	ret = rmem_mr_reg(((struct ribv_pd *)pd)->pd, addr, length, iova, access, &mr->mr);
	if (ret != 0) {
		ribv_leave(mr->ibv.handle);
		free(mr);
		return ribv_fail(ribv_errno(ret));
	}
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.lkey = mr->mr->lkey;
	mr->ibv.rkey = mr->mr->rkey;
	return &mr->ibv;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (!ribv_is_ours(pd->context))
		return RIBV_NEXT(ibv_reg_mr)(pd, addr, length, access);
	return mr_reg(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	if (!ribv_is_ours(pd->context))
		return RIBV_NEXT(ibv_reg_mr_iova)(pd, addr, length, iova, access);
	return mr_reg(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (!ribv_is_ours(pd->context))
		return RIBV_NEXT(ibv_reg_mr_iova2)(pd, addr, length, iova, access);
	return mr_reg(pd, addr, length, iova, access);
}

int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	enum rmem_rereg_result result = RMEM_REREG_OK;
	struct ribv_mr *own = (struct ribv_mr *)mr;
	int ret;

	if (!ribv_is_ours(mr->context))
		return RIBV_NEXT(ibv_rereg_mr)(mr, flags, pd, addr, length, access);
	if (!mr_is(mr) || ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && (pd == NULL || !pd_is(pd)))) {
		errno = ENOENT;
		return IBV_REREG_MR_ERR_INPUT;
	}
	ret = rmem_mr_rereg(own->mr, (uint32_t)flags,
			(flags & IBV_REREG_MR_CHANGE_PD) != 0 ? ((struct ribv_pd *)pd)->pd : NULL,
			addr, length, (uint32_t)access, &result);
	if (ret != 0) {
		errno = ribv_errno(ret);
		return (int)result != 0 ? (int)result : IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		mr->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	mr->lkey = own->mr->lkey;
	mr->rkey = own->mr->rkey;
	return 0;
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	int ret;

	if (!ribv_is_ours(mr->context))
		return RIBV_NEXT(ibv_dereg_mr)(mr);
	if (!mr_is(mr))
		return ENOENT;
	ret = rmem_mr_dereg(((struct ribv_mr *)mr)->mr);
	if (ret != 0)
		return -ret;
	ribv_leave(mr->handle);
	free(mr);
	return 0;
}

struct ibv_mw *
ribv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ribv_mw *mw;
	int ret;

	if (!pd_is(pd))
		return ribv_fail(ENOENT);
	mw = calloc(1, sizeof(*mw));
	if (mw == NULL || !ribv_enter(mw, RIBV_MW, &mw->ibv.handle)) {
		free(mw);
		return ribv_fail(ENOMEM);
	}
	ret = rmem_mw_alloc(((struct ribv_pd *)pd)->pd, (enum rmem_mw_type)type, &mw->mw);
	if (ret != 0) {
		ribv_leave(mw->ibv.handle);
		free(mw);
		return ribv_fail(ribv_errno(ret));
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.type = type;
	mw->ibv.rkey = mw->mw->rkey;
	return &mw->ibv;
}

int
ribv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const struct ibv_mw_bind_info *info = &bind->bind_info;
	struct rmem_mw_bind own = {.wr_id = bind->wr_id,
			.flags = bind->send_flags,
			.bind_info.addr = info->addr,
			.bind_info.length = info->length,
			.bind_info.access = info->mw_access_flags &
					~(unsigned int)IBV_ACCESS_LOCAL_WRITE};
	int ret;

	if (!ribv_is(qp, RIBV_QP, qp->handle) || !ribv_is(mw, RIBV_MW, mw->handle))
		return ENOENT;
	if (info->mr != NULL && !mr_is(info->mr))
		return ENOENT;
	if (!ribv_env_attach())
		return ENOMEM;
	own.bind_info.mr = info->mr != NULL ? ((struct ribv_mr *)info->mr)->mr : NULL;
	pthread_spin_lock(&((struct ribv_qp *)qp)->send_lock);
	ret = rmem_mw_bind(((struct ribv_qp *)qp)->qp, ((struct ribv_mw *)mw)->mw, &own);
	pthread_spin_unlock(&((struct ribv_qp *)qp)->send_lock);
	if (ret == 0)
		mw->rkey = ((struct ribv_mw *)mw)->mw->rkey;
	return ret == -ENOSPC ? ENOMEM : ribv_errno(ret);
}

int
ribv_dealloc_mw(struct ibv_mw *mw)
{
	int ret;

	if (!ribv_is(mw, RIBV_MW, mw->handle))
		return ENOENT;
	ret = rmem_mw_dealloc(((struct ribv_mw *)mw)->mw);
	if (ret != 0)
		return -ret;
	ribv_leave(mw->handle);
	free(mw);
	return 0;
}
