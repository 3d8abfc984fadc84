/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Posts: requests are converted to the class's format.
 *
 * Invariant: send_lock and recv_lock serialise the threads that post to a queue, because the class
 * allows one thread per queue.
 */

#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "ribv.h"

#define BURST 16

int
ribv_bind_wr(const struct ribv_qp *qp, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info, struct rmem_send_wr *wr)
{
	if (info == NULL || info->mr == NULL || ribv_check_bind(qp->context, mw, info->mr) != 0)
		return EINVAL;
	wr->bind_mw.mw = ((struct ribv_mw *)mw)->mw;
	wr->bind_mw.mr = ((struct ribv_mr *)info->mr)->mr;
	wr->bind_mw.addr = info->addr;
	wr->bind_mw.length = info->length;
	/* Only remote access flags apply to a window; programs also set LOCAL_WRITE, as for an
	 * MR. */
	wr->bind_mw.access = info->mw_access_flags & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE;
	wr->bind_mw.key_tag = (uint8_t)rkey;
	return 0;
}

uint32_t
ribv_bind_begin(struct ibv_mw *mw, uint32_t rkey)
{
	uint32_t old = mw->rkey;

	mw->rkey = (((struct ribv_mw *)mw)->mw->rkey & ~(uint32_t)UINT8_MAX) | (uint8_t)rkey;
	return old;
}

/*
 * Convert a request to the class's format; 0 or an errno. The program's SGEs are used in place,
 * because struct ibv_sge and struct rmem_sge have the same layout (rverbs_map.c). soft copies them
 * if the request has to wait, so they need not outlive the post.
 */
static int
wr_of_ibv(const struct ribv_qp *qp, const struct ibv_send_wr *ibv, struct rmem_send_wr *wr)
{
	static const uint8_t opcodes[] = {
			[IBV_WR_RDMA_WRITE] = RMEM_WR_RDMA_WRITE,
			[IBV_WR_RDMA_WRITE_WITH_IMM] = RMEM_WR_RDMA_WRITE_WITH_IMM,
			[IBV_WR_SEND] = RMEM_WR_SEND,
			[IBV_WR_SEND_WITH_IMM] = RMEM_WR_SEND_WITH_IMM,
			[IBV_WR_RDMA_READ] = RMEM_WR_RDMA_READ,
			[IBV_WR_ATOMIC_CMP_AND_SWP] = RMEM_WR_ATOMIC_CMP_AND_SWP,
			[IBV_WR_ATOMIC_FETCH_AND_ADD] = RMEM_WR_ATOMIC_FETCH_AND_ADD,
			[IBV_WR_LOCAL_INV] = RMEM_WR_LOCAL_INV,
			[IBV_WR_BIND_MW] = RMEM_WR_BIND_MW,
			[IBV_WR_SEND_WITH_INV] = RMEM_WR_SEND_WITH_INV,
	};

	if (((unsigned int)ibv->opcode >= RTE_DIM(opcodes) && ibv->opcode != IBV_WR_ATOMIC_WRITE) ||
			ibv->num_sge < 0 || ibv->num_sge > UINT16_MAX ||
			(ibv->sg_list == NULL && ibv->num_sge != 0) || ibv->send_flags > UINT8_MAX)
		return EINVAL;
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = ibv->wr_id;
	wr->sg_list = (const struct rmem_sge *)(const void *)ibv->sg_list;
	wr->num_sge = (uint16_t)ibv->num_sge;
	wr->opcode = likely((unsigned int)ibv->opcode < RTE_DIM(opcodes)) ? opcodes[ibv->opcode]
									  : RMEM_WR_ATOMIC_WRITE;
	wr->flags = (uint8_t)ibv->send_flags;
	wr->imm_data = ibv->imm_data;
	/* The caller dereferences the window of a bind, so refuse it here. */
	if (qp->is_ud && ibv->opcode == IBV_WR_BIND_MW)
		return EOPNOTSUPP;
	if (qp->is_ud)
		return ribv_ud_wr(qp, ibv->wr.ud.ah, ibv->wr.ud.remote_qpn, ibv->wr.ud.remote_qkey,
				wr);
	if (unlikely(qp->is_xrc))
		wr->xrc.remote_srqn = ibv->qp_type.xrc.remote_srqn;
	switch (ibv->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->atomic.remote_addr = ibv->wr.atomic.remote_addr;
		wr->atomic.compare_add = ibv->wr.atomic.compare_add;
		wr->atomic.swap = ibv->wr.atomic.swap;
		wr->atomic.rkey = ibv->wr.atomic.rkey;
		return 0;
	case IBV_WR_BIND_MW:
		return ribv_bind_wr(qp, ibv->bind_mw.mw, ibv->bind_mw.rkey, &ibv->bind_mw.bind_info,
				wr);
	default:
		wr->rdma.remote_addr = ibv->wr.rdma.remote_addr;
		wr->rdma.rkey = ibv->wr.rdma.rkey;
		return 0;
	}
}

int
ribv_post_errno(int ret)
{
	return ret < 0 ? ribv_errno(ret) : 0;
}

/* Post the requests. If none is accepted without an error, the queue is full: ENOMEM, as in
 * providers of NICs. */
static unsigned int
post_all(struct ribv_qp *qp, const struct rmem_send_wr *wr, unsigned int n, int *err)
{
	unsigned int done;
	int ret;

	for (done = 0; done < n; done += (unsigned int)ret) {
		ret = rmem_post_send(qp->qp, wr + done, (uint16_t)RTE_MIN(n - done, UINT16_MAX));
		if (ret <= 0) {
			*err = ret < 0 ? ribv_post_errno(ret) : ENOMEM;
			break;
		}
	}
	return done;
}

unsigned int
ribv_post_burst(struct ribv_qp *qp, const struct rmem_send_wr *wr, unsigned int n, int *err)
{
	unsigned int done, kept;

	if (likely(qp->watch == NULL))
		return post_all(qp, wr, n, err);
	/*
	 * Record before the post: another thread may poll the completion before it returns. Records
	 * of refused requests are removed, still under the send lock.
	 */
	kept = ribv_watch_send(qp->watch, wr, n);
	done = post_all(qp, wr, n, err);
	if (done < n)
		ribv_watch_sent(qp->watch, kept, done, *err);
	return done;
}

/* Convert and post up to BURST requests from *wr on; *wr is then the first one not accepted. */
static int
post_some(struct ribv_qp *qp, struct ibv_send_wr **wr)
{
	struct ibv_send_wr *of[BURST];
	struct rmem_send_wr own[BURST];
	uint32_t old_rkey[BURST]; /* rkey of each window before its bind */
	unsigned int i, n, done;
	int err = 0;

	for (n = 0; n < BURST && *wr != NULL; n++, *wr = (*wr)->next) {
		err = wr_of_ibv(qp, *wr, &own[n]);
		if (err != 0)
			break;
		of[n] = *wr;
		if (unlikely(own[n].opcode == RMEM_WR_BIND_MW))
			old_rkey[n] = ribv_bind_begin((*wr)->bind_mw.mw, (*wr)->bind_mw.rkey);
	}
	done = ribv_post_burst(qp, own, n, &err);
	if (done < n)
		*wr = of[done];
	/* In reverse order, to restore the first rkey if a window is bound twice. */
	for (i = n; i-- > done;) {
		if (own[i].opcode == RMEM_WR_BIND_MW)
			/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): of a binding */
			of[i]->bind_mw.mw->rkey = old_rkey[i];
	}
	return err;
}

/* Set *bad_wr only if a request is refused, as providers of NICs do: programs read it as a
 * result. */
static int
send_result(struct ibv_send_wr **bad_wr, struct ibv_send_wr *wr, int err)
{
	if (err != 0)
		*bad_wr = wr;
	return ribv_post_fail(err);
}

int
ribv_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ribv_qp *qp = (struct ribv_qp *)ibv;
	int err = 0;

	if (bad_wr == NULL)
		return ribv_post_fail(EINVAL);
	if (!ribv_may_post(ibv))
		return send_result(bad_wr, wr, EINVAL);
	if (!ribv_env_attach())
		return send_result(bad_wr, wr, ENOMEM);
	if (unlikely(qp->watch != NULL))
		ribv_caller = __builtin_return_address(0);
	/* Verbs allows several threads to post to a QP; the class allows one. */
	ribv_lock(&qp->send_lock);
	while (wr != NULL && err == 0)
		err = post_some(qp, &wr);
	ribv_unlock(&qp->send_lock);
	return send_result(bad_wr, wr, err);
}

int
ribv_recv_wr(const struct ibv_recv_wr *ibv, struct rmem_recv_wr *wr)
{
	if (ibv->num_sge < 0 || (ibv->sg_list == NULL && ibv->num_sge != 0))
		return -EINVAL;
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = ibv->wr_id;
	wr->sg_list = (const struct rmem_sge *)(const void *)ibv->sg_list;
	wr->num_sge = (uint32_t)ibv->num_sge;
	return 0;
}

/* Record before the post, as in ribv_post_burst(). */
static int
post_recv(struct ribv_qp *qp, const struct rmem_recv_wr *wr)
{
	bool is_kept;
	int ret;

	if (likely(qp->watch == NULL))
		return rmem_post_recv(qp->qp, wr, 1);
	is_kept = ribv_watch_recv(qp->watch, wr);
	ret = rmem_post_recv(qp->qp, wr, 1);
	if (ret != 1 && is_kept)
		ribv_watch_unrecv(qp->watch);
	return ret;
}

int
ribv_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ribv_qp *qp = (struct ribv_qp *)ibv;
	struct rmem_recv_wr own;
	int ret = 1;

	if (bad_wr == NULL)
		return ribv_post_fail(EINVAL);
	if (!ribv_may_post(ibv))
		return ribv_recv_result(bad_wr, wr, EINVAL);
	if (!ribv_env_attach())
		return ribv_recv_result(bad_wr, wr, ENOMEM);
	if (unlikely(qp->watch != NULL))
		ribv_caller = __builtin_return_address(0);
	ribv_lock(&qp->recv_lock);
	for (; wr != NULL && ret == 1; wr = ret == 1 ? wr->next : wr) {
		ret = ribv_recv_wr(wr, &own);
		if (ret == 0)
			ret = post_recv(qp, &own);
	}
	ribv_unlock(&qp->recv_lock);
	return ribv_recv_result(bad_wr, wr, ribv_post_errno(ret));
}
