/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Registrations and buffers of headers after rdma-core 56. A function is compiled only if the
 * header declares it.
 */

#include <errno.h>
#include <stdlib.h>

#include "ribv.h"

#define PAGE 4096u

#ifdef RIBV_HAS_ALLOC_BUF

static bool
is_buf(const struct ibv_buf *buf)
{
	return ribv_slot(buf, RIBV_BUF) != 0;
}

/* Allocate ordinary memory, as providers without memory of their own do. */
void *
ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	struct ribv_buf *own;
	int err;

	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_alloc_buf)(pd, size, buf);
	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	if (buf == NULL)
		return ribv_fail(EINVAL);
	own = ribv_new();
	if (own == NULL)
		return NULL;
	err = posix_memalign(&own->addr, PAGE, size);
	if (err != 0) {
		ribv_leave(own);
		return ribv_fail(err);
	}
	own->size = size;
	own->pd = pd;
	ribv_enter(own, RIBV_BUF);
	*buf = (struct ibv_buf *)own;
	return own->addr;
}

void
ibv_free_buf(struct ibv_buf *buf)
{
	struct ribv_buf *own = (struct ribv_buf *)buf;
	void *addr;

	if (ribv_is_real(buf)) {
		RIBV_NEXT(ibv_free_buf)(buf);
		return;
	}
	if (!is_buf(buf))
		return;
	addr = own->addr;
	ribv_leave(own);
	free(addr);
}

struct ibv_mr *
ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access)
{
	struct ibv_mr_init_attr attr = {.length = length,
			.access = access,
			.comp_mask = IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_ADDR,
			.addr = addr,
			.buf = buf};

	if (ribv_is_real(pd) && !ribv_is_own(buf))
		return RIBV_NEXT(ibv_reg_buf_mr)(pd, buf, addr, length, access);
	return ibv_reg_mr_ex(pd, &attr);
}

/* Check that the range is inside the buffer, and the buffer is of that PD: 0 or an errno. */
static int
check_buf(const struct ibv_pd *pd, const struct ibv_mr_init_attr *attr)
{
	const struct ribv_buf *own = (const struct ribv_buf *)attr->buf;
	uint64_t offset;

	if (!is_buf(attr->buf))
		return ENOENT;
	offset = (uintptr_t)attr->addr - (uintptr_t)own->addr;
	if (own->pd != pd || (attr->comp_mask & IBV_REG_MR_MASK_ADDR) == 0 || offset > own->size ||
			attr->length > own->size - offset)
		return EINVAL;
	return 0;
}

#endif /* RIBV_HAS_ALLOC_BUF */

#ifdef RIBV_HAS_COMP_CNTR

/* Buffers are not dma-bufs. */
int
ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	if (ribv_is_real(buf))
		return RIBV_NEXT(ibv_export_buf_dmabuf_fd)(buf);
	return ribv_minus_one(is_buf(buf) ? ENODATA : ENOENT);
}

#endif /* RIBV_HAS_COMP_CNTR */

#ifdef RIBV_HAS_REG_MR_EX

/* As libibverbs does for a provider without this operation; DMA handles are refused. */
struct ibv_mr *
ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
	const uint64_t fd_mask =
			IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET | IBV_REG_MR_MASK_IOVA;
	uint64_t mask;

	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_reg_mr_ex)(pd, attr);
	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	if (attr == NULL)
		return ribv_fail(EINVAL);
	mask = attr->comp_mask;
#ifdef RIBV_HAS_ALLOC_BUF
	if ((mask & IBV_REG_MR_MASK_BUF) != 0) {
		int err = check_buf(pd, attr);

		if (err != 0)
			return ribv_fail(err);
		if ((mask & (IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET)) != 0)
			return ribv_fail(EINVAL);
		mask &= ~(uint64_t)IBV_REG_MR_MASK_BUF;
	}
#endif
	if ((mask & ~(fd_mask | IBV_REG_MR_MASK_ADDR)) != 0)
		return ribv_fail(EOPNOTSUPP);
	if (mask == fd_mask)
		return ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
				attr->access);
	if ((mask & ~(uint64_t)IBV_REG_MR_MASK_IOVA) != IBV_REG_MR_MASK_ADDR)
		return ribv_fail(EINVAL);
	return ibv_reg_mr_iova2(pd, attr->addr, attr->length,
			(mask & IBV_REG_MR_MASK_IOVA) != 0 ? attr->iova : (uintptr_t)attr->addr,
			(unsigned int)attr->access);
}

/* Devices of rmem have no TLP processing hints (TPH). */
struct ibv_dmah *
ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_alloc_dmah)(context, attr);
	return ribv_fail(ribv_is_context(context) ? EOPNOTSUPP : ENOENT);
}

int
ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	return ribv_is_real(dmah) ? RIBV_NEXT(ibv_dealloc_dmah)(dmah) : ENOENT;
}

#endif /* RIBV_HAS_REG_MR_EX */
