/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Posts, in bursts: with the extended QP if the provider has it, otherwise as chains.
 *
 * A burst is checked and written in one pass, then passed to the device as a whole. If the device
 * refuses an extended burst, it accepts none of it: then requests are posted one by one, to find
 * the number that are accepted.
 */

#include <errno.h>
#include <string.h>

#include "rverbs_mlx5.h"
#include "rverbs_mw.h"
#include "rverbs_mwq.h"
#include "rverbs_ud.h"

#define RVERBS_CHAIN 32

/*
 * State of a burst that is being written; qp->windows and the counters are updated when it is
 * passed to the device.
 */
struct burst {
	struct rverbs_wqe *wqe; /* entry of the next request */
	uint64_t id;            /* wr_id of the next request for the device */
	uint64_t windows;       /* windows part of its note */
	uint64_t bytes;         /* bytes of the preceding requests */
};

/* Set the position of the next request in the ring. */
static inline void
burst_set(struct burst *burst, const struct rverbs_qp *qp, uint32_t pos)
{
	burst->wqe = &qp->sq.wqe[pos & qp->sq.mask];
	burst->id = qp->id | (uint16_t)pos;
}

/* Position of the next request. */
static inline uint32_t
burst_pos(const struct burst *burst, const struct rverbs_qp *qp)
{
	return qp->sq.prod + (uint16_t)((uint16_t)burst->id - (uint16_t)qp->sq.prod);
}

static uint64_t
wr_bytes(const struct rmem_send_wr *wr)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* Check the MR of a bind: an MR that is not VALID does not exist at the device; with the quirk its
 * state is checked. */
static __rte_always_inline int
check_bind(const struct rverbs_qp *qp, const struct rmem_send_wr *wr)
{
	if (unlikely(!rmem_wr_is_among(qp->limits.opcodes, wr) || !rmem_wr_objs_fit(&qp->qp, wr)))
		return rmem_wr_check_full(&qp->qp, &qp->limits, wr);
	if (likely(rmem_mr_state(wr->bind_mw.mr) == RMEM_MR_STATE_VALID))
		return 0;
	return qp->has_mw_quirk ? 0 : -EINVAL;
}

/*
 * Check a request: 0, -errno, or 1 if it binds an mkey. Providers such as rdma_rxe's sum the
 * lengths of a list in 32 bits, so 4 GiB would be 0.
 */
static __rte_always_inline int
check(const struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint64_t *bytes)
{
	int ret;

	*bytes = 0;
	if (wr->opcode == RMEM_WR_BIND_MW)
		return check_bind(qp, wr);
	ret = rmem_wr_check(&qp->qp, &qp->limits, wr);
	if (unlikely(ret != 0 || !rmem_wr_has_sges(wr)))
		return ret != 0 ? ret : rverbs_is_mkey_wr(wr);
	if (likely(wr->num_sge == 1)) {
		*bytes = wr->sg_list[0].length;
	} else {
		*bytes = wr_bytes(wr);
		if (unlikely(*bytes > UINT32_MAX))
			return -EINVAL;
	}
	return 0;
}

/* Note a request of the burst in the ring; return its wr_id for the device. */
static __rte_always_inline uint64_t
note_wr(const struct rmem_send_wr *wr, const struct burst *burst, uint64_t low)
{
	/* One store, because the rate of stores limits the rate of posts. */
	*burst->wqe = (struct rverbs_wqe){.wr_id = wr->wr_id, .note = burst->windows | low};
	return burst->id;
}

/*
 * Count a request that refers to windows, and return its rkey; sets *low to the low half of its
 * note. With the quirk, *is_bind becomes false if the bind must not be posted.
 */
static __rte_always_inline uint32_t
use_window(struct rverbs_qp *qp, const struct rmem_send_wr *wr, struct burst *burst, uint64_t *low,
		bool *is_bind, int *locked)
{
	const struct rverbs_mw_op *op;

	burst->windows += *is_bind ? RVERBS_NOTE_BIND : RVERBS_NOTE_INV;
	if (likely(!qp->has_mw_quirk)) {
		if (!*is_bind)
			return wr->invalidate_rkey;
		*low = wr->bind_mw.mw->rkey;
		return rverbs_mw_new_key(wr);
	}
	op = rverbs_mwq_accept(qp, wr, burst_pos(burst, qp), locked);
	*is_bind = op->kind == RVERBS_MW_BIND;
	return op->key;
}

/* Errno of a request for which there is no free entry. */
static int
full(const struct rverbs_qp *qp, const struct rmem_send_wr *wr)
{
	uint64_t bytes;
	int ret = check(qp, wr, &bytes);

	return ret < 0 ? ret : -ENOSPC;
}

/* Copy inline data in one piece, because rdma_rxe's provider counts the bytes of a list as 0 (seen
 * with rdma-core 44). */
static void
ex_inline(struct ibv_qp_ex *ex, const struct rmem_send_wr *wr)
{
	uint8_t data[RVERBS_MAX_INLINE];
	uint32_t i, length = 0;

	if (wr->num_sge == 1) {
		ibv_wr_set_inline_data(
				ex, (void *)(uintptr_t)wr->sg_list[0].addr, wr->sg_list[0].length);
		return;
	}
	for (i = 0; i < wr->num_sge; i++) {
		memcpy(data + length, (const void *)(uintptr_t)wr->sg_list[i].addr,
				wr->sg_list[i].length);
		length += wr->sg_list[i].length;
	}
	ibv_wr_set_inline_data(ex, data, length);
}

static __rte_always_inline void
ex_sges(struct ibv_qp_ex *ex, const struct rmem_send_wr *wr)
{
	if (unlikely((wr->flags & RMEM_SEND_INLINE) != 0))
		ex_inline(ex, wr);
	else if (likely(wr->num_sge == 1))
		ibv_wr_set_sge(ex, wr->sg_list[0].lkey, wr->sg_list[0].addr, wr->sg_list[0].length);
	else
		ibv_wr_set_sge_list(ex, wr->num_sge, (const struct ibv_sge *)wr->sg_list);
}

/* Write a BIND_MW, a LOCAL_INV or a SEND_WITH_INV, except for the SGEs. */
static __rte_always_inline void
ex_window(struct rverbs_qp *qp, struct ibv_qp_ex *ex, const struct rmem_send_wr *wr,
		struct burst *burst, uint64_t bytes, int *locked)
{
	bool is_bind = wr->opcode == RMEM_WR_BIND_MW;
	uint32_t key = use_window(qp, wr, burst, &bytes, &is_bind, locked);

	ex->wr_id = note_wr(wr, burst, bytes);
	ex->wr_flags = wr->flags;
	if (is_bind)
		rverbs_mw_write_bind(ex, wr, key);
	else if (wr->opcode == RMEM_WR_SEND_WITH_INV)
		ibv_wr_send_inv(ex, key);
	else
		ibv_wr_local_inv(ex, key);
}

/* Write a REG_MR or UMR; return 0, or the cause of a refusal. The burst is passed by value, so that
 * it stays in registers. */
static __rte_noinline int
ex_mkey(struct rverbs_qp *qp, const struct rmem_send_wr *wr, struct burst burst)
{
	burst.windows += RVERBS_NOTE_BIND;
	qp->ex->wr_id = note_wr(wr, &burst, 0);
	return rverbs_mlx5_write(qp, wr, burst_pos(&burst, qp));
}

static __rte_always_inline void
ex_write(struct rverbs_qp *qp, struct ibv_qp_ex *ex, const struct rmem_send_wr *wr,
		struct burst *burst, uint64_t bytes, int *locked)
{
	ex->wr_id = note_wr(wr, burst, bytes);
	ex->wr_flags = wr->flags;
	switch (wr->opcode) {
	case RMEM_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, wr->rdma.rkey, wr->rdma.remote_addr);
		break;
	case RMEM_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, wr->rdma.rkey, wr->rdma.remote_addr, wr->imm_data);
		break;
	case RMEM_WR_SEND:
		ibv_wr_send(ex);
		break;
	case RMEM_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, wr->imm_data);
		break;
	case RMEM_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, wr->rdma.rkey, wr->rdma.remote_addr);
		break;
	case RMEM_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, wr->atomic.rkey, wr->atomic.remote_addr,
				wr->atomic.compare_add, wr->atomic.swap);
		break;
	case RMEM_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, wr->atomic.rkey, wr->atomic.remote_addr,
				wr->atomic.compare_add);
		break;
	default: /* no other opcode passes check() */
		ex_window(qp, ex, wr, burst, bytes, locked);
		if (wr->opcode != RMEM_WR_SEND_WITH_INV)
			return;
	}
	ex_sges(ex, wr);
}

/* Check and write a BIND_MW, without the quirk; return 0, or the cause of a refusal. */
static __rte_always_inline int
ex_bind(struct rverbs_qp *qp, struct ibv_qp_ex *ex, const struct rmem_send_wr *wr,
		struct burst *burst)
{
	int ret = check_bind(qp, wr);

	if (unlikely(ret != 0))
		return ret;
	burst->windows += RVERBS_NOTE_BIND;
	ex->wr_id = note_wr(wr, burst, wr->bind_mw.mw->rkey);
	ex->wr_flags = wr->flags;
	rverbs_mw_write_bind(ex, wr, rverbs_mw_new_key(wr));
	return 0;
}

/* The same for a LOCAL_INV. */
static __rte_always_inline int
ex_local_inv(struct rverbs_qp *qp, struct ibv_qp_ex *ex, const struct rmem_send_wr *wr,
		struct burst *burst)
{
	if (unlikely(!rmem_wr_is_among(qp->limits.opcodes, wr)))
		return rmem_wr_check_full(&qp->qp, &qp->limits, wr);
	burst->windows += RVERBS_NOTE_INV;
	ex->wr_id = note_wr(wr, burst, 0);
	ex->wr_flags = wr->flags;
	ibv_wr_local_inv(ex, wr->invalidate_rkey);
	return 0;
}

/* Check and write a request: 0 or -errno. */
static __rte_always_inline int
ex_post(struct rverbs_qp *qp, struct ibv_qp_ex *ex, const struct rmem_send_wr *wr,
		struct burst *burst, int *locked, bool has_mw_quirk)
{
	uint64_t bytes;
	int ret;

	if (wr->opcode == RMEM_WR_BIND_MW && !has_mw_quirk)
		return ex_bind(qp, ex, wr, burst);
	if (wr->opcode == RMEM_WR_LOCAL_INV && !has_mw_quirk)
		return ex_local_inv(qp, ex, wr, burst);
	ret = check(qp, wr, &bytes);
	if (unlikely(ret != 0)) {
		ret = ret < 0 ? ret : ex_mkey(qp, wr, *burst);
		burst->windows += ret == 0 ? RVERBS_NOTE_BIND : 0;
		return ret;
	}
	ex_write(qp, ex, wr, burst, bytes, locked);
	burst->bytes += bytes;
	return 0;
}

/* Write requests to consecutive entries of the ring; return their number, and in *ret the cause if
 * not all. */
static __rte_always_inline uint32_t
ex_part(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr, struct burst *burst,
		int *locked, bool has_mw_quirk, int *ret)
{
	const struct rmem_send_wr *first = wr, *end = wr + nb_wr;
	struct ibv_qp_ex *ex = qp->ex;

	for (; wr != end; wr++, burst->wqe++, burst->id++) {
		*ret = ex_post(qp, ex, wr, burst, locked, has_mw_quirk);
		if (unlikely(*ret != 0))
			break;
	}
	return (uint32_t)(wr - first);
}

/* Write requests; return their number, and in *ret the cause if not all. */
static __rte_always_inline uint32_t
ex_all(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr, struct burst *burst,
		int *ret)
{
	uint32_t n, done = 0, size = qp->sq.mask + 1, prod = qp->sq.prod;
	int locked = -1;

	do {
		burst_set(burst, qp, prod + done);
		n = RTE_MIN(nb_wr - done, size - ((prod + done) & qp->sq.mask));
		done += likely(!qp->has_mw_quirk)
				? ex_part(qp, wr + done, n, burst, &locked, false, ret)
				: ex_part(qp, wr + done, n, burst, &locked, true, ret);
	} while (*ret == 0 && done != nb_wr);
	rverbs_mwq_unlock_last(locked);
	return done;
}

/*
 * Post nb_wr requests; return the number accepted, or -errno if the first was refused; *is_refused
 * if the device refused all.
 */
static int
post_ex(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr, bool *is_refused)
{
	uint32_t n, room = rverbs_nb_free(&qp->sq, nb_wr), prod = qp->sq.prod;
	struct burst burst = {.windows = qp->windows};
	struct ibv_qp_ex *ex = qp->ex;
	int ret = 0;

	*is_refused = false;
	if (unlikely(room == 0))
		return full(qp, wr);
	ibv_wr_start(ex);
	n = ex_all(qp, wr, room, &burst, &ret);
	if (unlikely(n == 0)) {
		ibv_wr_abort(ex);
		return ret;
	}
	/* Publish prod first: another thread may poll the completion before the call returns. */
	__atomic_store_n(&qp->sq.prod, prod + n, __ATOMIC_RELEASE);
	ret = ibv_wr_complete(ex);
	if (unlikely(ret != 0)) {
		__atomic_store_n(&qp->sq.prod, prod, __ATOMIC_RELEASE);
		rverbs_mw_undo(qp, wr, prod, prod + n);
		*is_refused = true;
		return rverbs_err_post(ret);
	}
	qp->windows = burst.windows;
	qp->posted.bytes_posted += burst.bytes;
	return (int)n;
}

static int
post_one_by_one(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr)
{
	bool is_refused;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < nb_wr; i++) {
		ret = post_ex(qp, &wr[i], 1, &is_refused);
		if (ret != 1)
			break;
	}
	return i != 0 ? (int)i : ret;
}

/* Whether the request refers to windows. */
static bool
is_window(const struct rmem_send_wr *wr)
{
	const uint8_t window = RMEM_WR_BINDS | RMEM_WR_INVALIDATES | RMEM_WR_INVALIDATES_REMOTE;

	return (rmem_wr_info[wr->opcode].props & window) != 0;
}

static void
chain_fill(struct ibv_send_wr *to, const struct rmem_send_wr *wr, uint64_t id)
{
	to->wr_id = id;
	to->sg_list = (struct ibv_sge *)(uintptr_t)wr->sg_list;
	to->num_sge = wr->num_sge;
	to->opcode = (enum ibv_wr_opcode)rverbs_map_wr_opcode(wr->opcode);
	to->send_flags = wr->flags;
	to->imm_data = wr->imm_data;
	if (rmem_wr_info[wr->opcode].remote_access == RMEM_ACCESS_REMOTE_ATOMIC) {
		to->wr.atomic.remote_addr = wr->atomic.remote_addr;
		to->wr.atomic.compare_add = wr->atomic.compare_add;
		to->wr.atomic.swap = wr->atomic.swap;
		to->wr.atomic.rkey = wr->atomic.rkey;
	} else {
		to->wr.rdma.remote_addr = wr->rdma.remote_addr;
		to->wr.rdma.rkey = wr->rdma.rkey;
	}
}

/*
 * Fill in a request that refers to windows. Return the window if the chain must end with this
 * request, because the key of its next bind is derived from it. With the quirk, busy counts the
 * request until then.
 */
static struct rverbs_mw *
chain_window(struct rverbs_qp *qp, struct ibv_send_wr *to, const struct rmem_send_wr *wr,
		struct burst *burst, uint64_t bytes)
{
	bool is_bind = wr->opcode == RMEM_WR_BIND_MW;
	int locked = -1;
	uint32_t key = use_window(qp, wr, burst, &bytes, &is_bind, &locked);
	struct rverbs_mw *mw = is_bind ? rverbs_mw_of(wr->bind_mw.mw) : NULL;

	if (is_bind && qp->has_mw_quirk)
		mw->busy++;
	rverbs_mwq_unlock_last(locked);
	to->wr_id = note_wr(wr, burst, bytes);
	to->sg_list = (struct ibv_sge *)(uintptr_t)wr->sg_list;
	to->num_sge = wr->num_sge;
	to->send_flags = wr->flags;
	rverbs_mw_write_chain(to, wr, key, is_bind);
	return mw;
}

/* Post a chain; return the number that the device accepted, and in *ret the errno of the next. */
static uint32_t
chain_send(struct rverbs_qp *qp, const struct rmem_send_wr *wr, struct ibv_send_wr *chain,
		uint32_t nb_wr, int *ret)
{
	uint32_t prod = qp->sq.prod;
	struct ibv_send_wr *bad = NULL;
	uint32_t i = nb_wr;
	uint64_t note;
	int err;

	/* Publish prod first: another thread may poll the completion before the call returns. */
	__atomic_store_n(&qp->sq.prod, prod + nb_wr, __ATOMIC_RELEASE);
	err = ibv_post_send(qp->ibv, chain, &bad);
	if (err != 0) {
		i = bad >= chain && bad < chain + nb_wr ? (uint32_t)(bad - chain) : 0;
		__atomic_store_n(&qp->sq.prod, prod + i, __ATOMIC_RELEASE);
		if (qp->ahs != NULL)
			rverbs_ud_release(qp, prod + i, prod + nb_wr);
		else
			rverbs_mw_undo(qp, wr + i, prod + i, prod + nb_wr);
		*ret = rverbs_err_post(err == -1 ? errno : err);
	}
	for (; prod != qp->sq.prod; prod++, wr++) {
		note = qp->sq.wqe[prod & qp->sq.mask].note;
		qp->windows = RVERBS_NOTE_WINDOWS(note);
		if (wr->opcode != RMEM_WR_BIND_MW)
			qp->posted.bytes_posted += RVERBS_NOTE_LOW(note);
	}
	return i;
}

/* Post at most RVERBS_CHAIN requests; return their number, and in *ret the cause if not all. */
static uint32_t
post_chain(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr, int *ret)
{
	uint32_t i, room = rverbs_nb_free(&qp->sq, nb_wr);
	struct burst burst = {.windows = qp->windows};
	struct ibv_send_wr chain[RVERBS_CHAIN];
	struct rverbs_mw *mw = NULL;
	uint32_t n, key = 0;
	uint64_t bytes;

	*ret = 0;
	for (i = 0; i < nb_wr && mw == NULL; i++) {
		if (i >= room) {
			*ret = full(qp, &wr[i]);
			break;
		}
		*ret = check(qp, &wr[i], &bytes);
		if (*ret != 0)
			break;
		burst_set(&burst, qp, qp->sq.prod + i);
		if (is_window(&wr[i])) {
			mw = chain_window(qp, &chain[i], &wr[i], &burst, bytes);
			key = chain[i].bind_mw.rkey;
		} else {
			chain_fill(&chain[i], &wr[i], note_wr(&wr[i], &burst, bytes));
			if (qp->ahs != NULL)
				rverbs_ud_fill(qp, &chain[i], &wr[i], qp->sq.prod + i);
		}
		if (qp->qp.type == RMEM_QPT_XRC_SEND)
			chain[i].qp_type.xrc.remote_srqn = wr[i].xrc.remote_srqn;
		chain[i].next = i + 1 < RVERBS_CHAIN ? &chain[i + 1] : NULL;
	}
	if (i == 0)
		return 0;
	chain[i - 1].next = NULL;
	n = chain_send(qp, wr, chain, i, ret);
	if (mw != NULL && qp->has_mw_quirk)
		rverbs_mwq_sent(mw, key, n == i);
	else if (mw != NULL && n == i)
		mw->ibv->rkey = key;
	return n;
}

static int
post_chains(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr)
{
	uint32_t n, done = 0;
	int ret = 0;

	while (done < nb_wr && ret == 0) {
		n = RTE_MIN(nb_wr - done, (uint32_t)RVERBS_CHAIN);
		done += post_chain(qp, wr + done, n, &ret);
	}
	return done != 0 ? (int)done : ret;
}

/* Whether a request has more than one SGE, not inline. */
static bool
has_list(const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	uint16_t i;

	for (i = 0; i < nb_wr; i++) {
		if (wr[i].num_sge > 1 && (wr[i].flags & RMEM_SEND_INLINE) == 0)
			return true;
	}
	return false;
}

int
rverbs_post_send(struct rmem_qp *base, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	uint32_t gate = __atomic_load_n(&qp->gate, __ATOMIC_RELAXED);
	bool is_refused;
	int ret;

	if (unlikely(gate != RVERBS_GATE_OPEN)) {
		ret = rverbs_err_gate(qp, gate);
		if (ret != 0)
			return ret;
	}
	if (unlikely(nb_wr == 0))
		return 0;
	if (unlikely(qp->ex == NULL || (qp->is_list_bad && has_list(wr, nb_wr))))
		return post_chains(qp, wr, nb_wr);
	ret = post_ex(qp, wr, nb_wr, &is_refused);
	if (unlikely(is_refused && nb_wr > 1))
		ret = post_one_by_one(qp, wr, nb_wr);
	return ret;
}

/* Post at most RVERBS_CHAIN receives; return their number, and in *ret the cause if not all. */
static uint32_t
recv_chain(struct rverbs_qp *qp, const struct rmem_recv_wr *wr, uint32_t nb_wr, int *ret)
{
	uint32_t i, prod = qp->rq.prod, room = rverbs_nb_free(&qp->rq, nb_wr);
	struct ibv_recv_wr chain[RVERBS_CHAIN], *bad = NULL;
	int err;

	*ret = 0;
	for (i = 0; i < nb_wr; i++) {
		if (wr[i].num_sge > qp->max_recv_sge || wr[i].reserved != 0)
			*ret = -EINVAL;
		else if (i >= room)
			*ret = qp->qp.srq != NULL ? -EINVAL : -ENOSPC;
		if (*ret != 0)
			break;
		qp->rq.wqe[(prod + i) & qp->rq.mask].wr_id = wr[i].wr_id;
		chain[i].wr_id = qp->id | RVERBS_ID_RECV | (uint16_t)(prod + i);
		chain[i].sg_list = (struct ibv_sge *)(uintptr_t)wr[i].sg_list;
		chain[i].num_sge = (int)wr[i].num_sge;
		chain[i].next = i + 1 < RVERBS_CHAIN ? &chain[i + 1] : NULL;
	}
	if (i == 0)
		return 0;
	chain[i - 1].next = NULL;
	__atomic_store_n(&qp->rq.prod, prod + i, __ATOMIC_RELEASE);
	err = ibv_post_recv(qp->ibv, chain, &bad);
	if (err != 0) {
		i = bad >= chain && bad < chain + i ? (uint32_t)(bad - chain) : 0;
		__atomic_store_n(&qp->rq.prod, prod + i, __ATOMIC_RELEASE);
		*ret = rverbs_err_post(err == -1 ? errno : err);
	}
	return i;
}

int
rverbs_post_recv(struct rmem_qp *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	uint32_t gate = __atomic_load_n(&qp->gate, __ATOMIC_RELAXED);
	uint32_t n, done = 0;
	int ret = 0;

	if (unlikely(gate < RVERBS_GATE_INIT))
		return rverbs_err_gate(qp, gate);
	while (done < nb_wr && ret == 0) {
		n = RTE_MIN(nb_wr - done, (uint32_t)RVERBS_CHAIN);
		done += recv_chain(qp, wr + done, n, &ret);
	}
	return done != 0 ? (int)done : ret;
}
