/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Protection domains, memory regions and memory windows.
 *
 * Invariant: only parent domains are counted in a PD of this library. The class counts all other
 * objects, and refuses to deallocate a PD in use.
 * Invariant: the keys in the public part of an MR are copies for the program. Control calls use the
 * object of the class.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ribv.h"

#define PAGE 4096u

/* Access flags accepted for MRs of dma-bufs, and RELAXED_ORDERING (ibv_reg_dmabuf_mr(3)). */
#define DMABUF_ACCESS                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
			IBV_ACCESS_REMOTE_ATOMIC)

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct ribv_pd *pd;
	int ret;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_alloc_pd)(context);
	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	pd = ribv_new();
	if (pd == NULL)
		return NULL;
	pd->ibv.context = pd->context = context;
	ret = rmem_pd_alloc(ribv_dev_of(context), &pd->pd);
	if (ret != 0) {
		ribv_leave(pd);
		return ribv_fail(ribv_errno(ret));
	}
	pd->ibv.handle = pd->handle = ribv_enter(pd, RIBV_PD);
	ribv_handle_publish_pd(pd);
	return &pd->ibv;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct ribv_pd *own = (struct ribv_pd *)pd;
	int ret;

	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_dealloc_pd)(pd);
	if (!ribv_is_pd(pd))
		return ribv_leave_inherited(pd, RIBV_PD);
	if (own->parent != NULL) {
		ribv_parent_domain_free(own);
		return 0;
	}
	if (own->is_foreign || ribv_handle_pd_has_parents(own))
		return EBUSY;
	ret = ribv_handle_withdraw(pd->context, own->handle);
	if (ret != 0)
		return ret;
	ret = rmem_pd_dealloc(own->pd);
	if (ret != 0) {
		ribv_handle_publish_pd(own);
		return -ret;
	}
	ribv_handle_pd_ended(own);
	ribv_leave(own);
	return 0;
}

static unsigned int
access_of_ibv(unsigned int access)
{
	/* A device may ignore the optional flags (ibv_reg_mr(3)). */
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	/* HUGETLB is only a hint for page faults; the class uses the page size of the memory. */
	if ((access & IBV_ACCESS_ON_DEMAND) != 0)
		access &= ~(unsigned int)IBV_ACCESS_HUGETLB;
	return access;
}

struct ibv_mr *
ribv_mr_reg(struct ibv_pd *pd, const struct rmem_mr_attr *attr, const struct ribv_dm *dm)
{
	struct ribv_mr *mr = ribv_new();
	int ret;

	if (mr == NULL)
		return NULL;
	mr->pd = (struct ribv_pd *)pd;
	if (attr != NULL)
		ret = rmem_mr_reg_attr(mr->pd->pd, attr, &mr->mr);
	else
		ret = rmem_null_mr_alloc(mr->pd->pd, &mr->mr);
	if (ret != 0) {
		ribv_leave(mr);
		return ribv_fail(ribv_errno(ret));
	}
	mr->ibv.context = mr->pd->context;
	mr->ibv.pd = pd;
	mr->ibv.lkey = mr->mr->lkey;
	mr->ibv.rkey = mr->mr->rkey;
	if (dm != NULL) {
		mr->dm = dm->handle;
		mr->dm_offset = attr->ext->dm_offset;
	}
	mr->ibv.handle = mr->handle = ribv_enter(mr, RIBV_MR);
	ribv_handle_publish_mr(mr);
	return &mr->ibv;
}

/* Register memory of the process at an iova. */
static struct ibv_mr *
reg_plain(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct rmem_mr_attr attr = {.addr = addr,
			.length = length,
			.iova = iova,
			.access = access_of_ibv(access),
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_MR_IOVA};
	struct ibv_mr *mr;

	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	/* Only an implicit ODP MR may have address NULL: nothing is mapped there. */
	if (addr == NULL && length != 0 && (access & IBV_ACCESS_ON_DEMAND) == 0)
		return ribv_fail(EFAULT);
	mr = ribv_mr_reg(pd, &attr, NULL);
	if (mr == NULL)
		return NULL;
	mr->addr = addr;
	mr->length = length;
	((struct ribv_mr *)mr)->is_plain = true;
	((struct ribv_mr *)mr)->is_on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
	return mr;
}

struct ibv_mr *
ribv_alloc_null_mr(struct ibv_pd *pd)
{
	return ribv_is_pd(pd) ? ribv_mr_reg(pd, NULL, NULL) : ribv_fail(ENOENT);
}

/*
 * Check that address and iova have the same page offset, as the kernel does. The macro ibv_reg_mr()
 * passes the address as iova also with ZERO_BASED, where the MR starts at 0.
 */
static struct ibv_mr *
reg_at(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (ribv_is_pd(pd) && (((uintptr_t)addr ^ iova) & (PAGE - 1)) != 0)
		return ribv_fail(EINVAL);
	if ((access & IBV_ACCESS_ZERO_BASED) != 0)
		iova = 0;
	return reg_plain(pd, addr, length, iova, access);
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_reg_mr)(pd, addr, length, access);
	return reg_at(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_reg_mr_iova)(pd, addr, length, iova, access);
	return reg_at(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_reg_mr_iova2)(pd, addr, length, iova, access);
	return reg_at(pd, addr, length, iova, access);
}

/*
 * Accepts any fd that can be mapped, not only dma-bufs. As in libibverbs, the public addr is the
 * offset, although the memory is mapped elsewhere.
 */
struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		int access)
{
	struct rmem_mr_attr attr = {.length = length,
			.iova = iova,
			.access = (unsigned int)access & ~IBV_ACCESS_RELAXED_ORDERING,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_MR_FD | RMEM_MR_IOVA,
			.fd = fd,
			.fd_offset = offset};
	struct ibv_mr *mr;

	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access);
	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	if ((attr.access & ~DMABUF_ACCESS) != 0 || ((offset ^ iova) & (PAGE - 1)) != 0)
		return ribv_fail(EINVAL);
	if (fcntl(fd, F_GETFD) < 0)
		return ribv_fail(EBADF);
	mr = ribv_mr_reg(pd, &attr, NULL);
	if (mr == NULL)
		return NULL;
	mr->addr = (void *)(uintptr_t)offset;
	mr->length = length;
	return mr;
}

/* Check as libibverbs does; a refusal of the class is an error of the command. Return an errno. */
static int
check_rereg(const struct ibv_mr *mr, int flags, const struct ibv_pd *pd, const void *addr,
		size_t length, int access)
{
	const bool has_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;

	if (!ribv_is_mr(mr) || (has_pd && !ribv_is_pd(pd)))
		return ENOENT;
	if (!((const struct ribv_mr *)mr)->is_plain ||
			((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 &&
					(length == 0 || addr == NULL)) ||
			(access != 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) ||
			(flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 ||
			(has_pd && pd->context != mr->context))
		return EINVAL;
	return 0;
}

int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	enum rmem_rereg_result result = RMEM_REREG_OK;
	struct ribv_mr *own = (struct ribv_mr *)mr;
	int ret;

	if (ribv_is_real(mr) && !ribv_is_own(pd))
		return RIBV_NEXT(ibv_rereg_mr)(mr, flags, pd, addr, length, access);
	ret = check_rereg(mr, flags, pd, addr, length, access);
	if (ret != 0) {
		errno = ret;
		return IBV_REREG_MR_ERR_INPUT;
	}
	ret = ribv_handle_withdraw(mr->context, own->handle);
	if (ret != 0) {
		errno = ret;
		return IBV_REREG_MR_ERR_CMD;
	}
	ret = rmem_mr_rereg(own->mr, (uint32_t)flags,
			(flags & IBV_REREG_MR_CHANGE_PD) != 0 ? ((struct ribv_pd *)pd)->pd : NULL,
			addr, length, access_of_ibv((unsigned int)access), &result);
	if (ret != 0) {
		if (result == RMEM_REREG_OK || result == RMEM_REREG_ERR_INPUT)
			ribv_handle_publish_mr(own);
		errno = ribv_errno(ret);
		return result != RMEM_REREG_OK && result != RMEM_REREG_ERR_INPUT
				? (int)result
				: IBV_REREG_MR_ERR_CMD;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		own->is_on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		own->pd = (struct ribv_pd *)pd;
		mr->pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	mr->lkey = own->mr->lkey;
	mr->rkey = own->mr->rkey;
	ribv_handle_publish_mr(own);
	return 0;
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	struct ribv_mr *own = (struct ribv_mr *)mr;
	int ret;

	if (ribv_is_real(mr))
		return RIBV_NEXT(ibv_dereg_mr)(mr);
	if (!ribv_is_mr(mr))
		return ribv_leave_inherited(mr, RIBV_MR);
	ret = own->foreign != NULL ? EBUSY : ribv_handle_withdraw(mr->context, own->handle);
	if (ret != 0)
		return ret;
	ribv_watch_dereg(ribv_context_of(own->pd->context)->dev, own->mr->lkey);
	ribv_sanitize_mr_end(own);
	ret = rmem_mr_dereg(own->mr);
	if (ret != 0) {
		ribv_handle_publish_mr(own);
		return -ret;
	}
	ribv_handle_mr_ended(own);
	ribv_leave(mr);
	return 0;
}

int
ribv_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		struct ibv_sge *sg_list, uint32_t num_sge)
{
	int ret;

	if (!ribv_is_pd(pd))
		return ENOENT;
	ret = rmem_mr_advise(((struct ribv_pd *)pd)->pd, (int)advice, flags,
			(const struct rmem_sge *)(const void *)sg_list, num_sge);
	return -ret;
}

struct ibv_mw *
ribv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ribv_mw *mw;
	int ret;

	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	mw = ribv_new();
	if (mw == NULL)
		return NULL;
	ret = rmem_mw_alloc(((struct ribv_pd *)pd)->pd, (enum rmem_mw_type)type, &mw->mw);
	if (ret != 0) {
		ribv_leave(mw);
		return ribv_fail(ribv_errno(ret));
	}
	mw->pd = (struct ribv_pd *)pd;
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.type = type;
	mw->ibv.rkey = mw->mw->rkey;
	mw->ibv.handle = ribv_enter(mw, RIBV_MW);
	return &mw->ibv;
}

int
ribv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const struct ibv_mw_bind_info *info;
	struct rmem_mw_bind own;
	int ret;

	if (!ribv_is_qp(qp) || ribv_slot(mw, RIBV_MW) == 0)
		return ENOENT;
	if (bind == NULL)
		return EINVAL;
	info = &bind->bind_info;
	ret = ribv_check_bind(qp->context, mw, info->mr);
	if (ret != 0)
		return ret;
	memset(&own, 0, sizeof(own));
	own.wr_id = bind->wr_id;
	own.flags = bind->send_flags;
	own.bind_info.addr = info->addr;
	own.bind_info.length = info->length;
	own.bind_info.access = info->mw_access_flags & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE;
	if (!ribv_env_attach())
		return ENOMEM;
	own.bind_info.mr = info->mr != NULL ? ((struct ribv_mr *)info->mr)->mr : NULL;
	ribv_lock(&((struct ribv_qp *)qp)->send_lock);
	ret = rmem_mw_bind(((struct ribv_qp *)qp)->qp, ((struct ribv_mw *)mw)->mw, &own);
	ribv_unlock(&((struct ribv_qp *)qp)->send_lock);
	if (ret == 0)
		mw->rkey = ((struct ribv_mw *)mw)->mw->rkey;
	return ribv_errno(ret);
}

int
ribv_dealloc_mw(struct ibv_mw *mw)
{
	int ret;

	if (!ribv_is_mw(mw))
		return ribv_leave_inherited(mw, RIBV_MW);
	ret = rmem_mw_dealloc(((struct ribv_mw *)mw)->mw);
	if (ret != 0)
		return -ret;
	ribv_leave(mw);
	return 0;
}
