/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Fake memory windows: conforming, or with has_rxe_windows as of rdma_rxe, which checks only the
 * bounds of their MR. nb_crashes counts calls that would crash or block its kernel.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static struct fake_mw *fake_mws;

static struct ibv_mw *
fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct fake_mw *mw;

	if (fake.has_no_mw[type]) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mw = fake_new("alloc_mw", sizeof(*mw));
	if (mw == NULL)
		return NULL;
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.type = type;
	mw->ibv.rkey = mw->key = fake_new_key();
	mw->next = fake_mws;
	fake_mws = mw;
	return &mw->ibv;
}

static void
fake_unbind(struct fake_mw *mw)
{
	if (mw->mr != NULL)
		mw->mr->nb_mw--;
	mw->mr = NULL;
	mw->qp = NULL;
}

static int
fake_dealloc_mw(struct ibv_mw *ibv)
{
	struct fake_mw **at = &fake_mws, *mw = (struct fake_mw *)ibv;

	if (fake_keeps("dealloc_mw", mw))
		return errno;
	while (*at != mw)
		at = &(*at)->next;
	*at = mw->next;
	fake_unbind(mw);
	return fake_delete(mw);
}

static int
fake_bind_mw(struct ibv_qp *qp, struct ibv_mw *ibv, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad,
			wr = {.wr_id = bind->wr_id,
					.send_flags = bind->send_flags,
					.opcode = IBV_WR_BIND_MW};
	int ret;

	if (fake_fails("bind_mw"))
		return errno;
	wr.bind_mw.mw = ibv;
	wr.bind_mw.rkey = ibv_inc_rkey(ibv->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	ret = ibv_post_send(qp, &wr, &bad);
	if (ret == 0)
		ibv->rkey = wr.bind_mw.rkey;
	return ret;
}

void
fake_mw_ops(struct ibv_context *context)
{
	context->ops.alloc_mw = fake_alloc_mw;
	context->ops.dealloc_mw = fake_dealloc_mw;
	context->ops.bind_mw = fake_bind_mw;
}

static struct fake_mw *
fake_mw_find(uint32_t key)
{
	struct fake_mw *mw = fake_mws;

	while (mw != NULL && mw->key >> 8 != key >> 8)
		mw = mw->next;
	return mw;
}

void *
fake_mw_access(const struct fake_qp *qp, uint32_t key, uint64_t addr, uint64_t length,
		unsigned int right)
{
	const struct fake_mw *mw = fake_mw_find(key);
	uint64_t base, offset;

	if (mw == NULL || mw->key != key || mw->mr == NULL || (mw->access & right) != right ||
			(mw->qp != NULL && mw->qp != qp))
		return NULL;
	base = mw->access & IBV_ACCESS_ZERO_BASED ? 0 : mw->addr;
	if (!fake.has_rxe_windows && (addr < base || addr - base + length > mw->length))
		return NULL;
	/* Before the window, too, but in the MR. */
	offset = addr - base + (mw->addr - mw->mr->iova);
	if (offset + length > mw->mr->ibv.length)
		return NULL;
	return (uint8_t *)mw->mr->ibv.addr + offset;
}

int
fake_run_bind(struct fake_qp *qp, const struct fake_wqe *wqe, struct ibv_wc *wc)
{
	const struct ibv_mw_bind_info *info = &wqe->wr.bind_mw.bind_info;
	struct fake_mw *mw = fake_mw_find(wqe->mw_rkey);

	wc->opcode = IBV_WC_BIND_MW;
	if (info->mr == NULL && (fake.has_rxe_windows || info->length != 0)) {
		fake_crash("a binding without MR");
		return IBV_WC_MW_BIND_ERR;
	}
	if (mw == NULL || mw->key != wqe->mw_rkey || fake.is_bind_bad)
		return IBV_WC_MW_BIND_ERR;
	if (mw->ibv.type == IBV_MW_TYPE_2 && (mw->mr != NULL || info->length == 0))
		return IBV_WC_MW_BIND_ERR;
	fake_unbind(mw);
	mw->key = (mw->key & ~0xffu) | (wqe->wr.bind_mw.rkey & 0xff);
	if (info->length == 0)
		return IBV_WC_SUCCESS;
	mw->mr = (struct fake_mr *)info->mr;
	mw->mr->nb_mw++;
	mw->addr = info->addr;
	mw->length = info->length;
	mw->access = info->mw_access_flags;
	mw->qp = mw->ibv.type == IBV_MW_TYPE_2 ? qp : NULL;
	return IBV_WC_SUCCESS;
}

bool
fake_invalidate(const struct fake_qp *qp, uint32_t key)
{
	struct fake_mw *mw = fake_mw_find(key);

	if (mw == NULL || mw->key != key || mw->ibv.type != IBV_MW_TYPE_2)
		return false;
	if (mw->mr == NULL && fake.has_rxe_windows)
		fake_crash("an invalidation of what is not bound");
	if (mw->mr == NULL || (mw->qp != qp && !fake.has_rxe_windows))
		return false;
	if (!fake.is_inv_bad)
		fake_unbind(mw);
	return true;
}

unsigned int
fake_nb_bound_on(const struct fake_qp *qp)
{
	const struct fake_mw *mw;
	unsigned int nb = 0;

	for (mw = fake_mws; mw != NULL; mw = mw->next)
		nb += mw->qp == qp;
	return nb;
}
