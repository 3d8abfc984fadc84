/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The requester's half of direct access; see rwire_direct.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv() */
#endif
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../rsoft_sq.h"
#include "rwire.h"
#include "rwire_direct.h"

/* Bytes that one access copies: grace periods of the target wait for it. */
#define DIRECT_MAX_COPY (UINT64_C(1) << 20)
/*
 * A program that has left so many completions in the CQ, or requests without one, sends a stream of
 * requests. Packets of one message each are faster then, and need no system call each.
 */
#define DIRECT_MAX_BEHIND 16u
#define DIRECT_MIN_STREAM 4096u /* bytes of a request from which that does not apply */

/* The channel. */

void
rwire_direct_connect(struct rwire_link *link, pid_t pid, uint32_t uid)
{
	memset(link, 0, sizeof(*link));
	if (uid == geteuid())
		link->pid = pid;
}

enum rwire_direct_result
rwire_direct_begin(
		struct rwire_link *link, struct rsoft_direct *shared, struct rwire_direct *direct)
{
	uint32_t used = __atomic_load_n(&link->used, __ATOMIC_RELAXED);

	if (__atomic_load_n(&link->is_refused, __ATOMIC_RELAXED))
		return RWIRE_DIRECT_NO;
	if (__atomic_load_n(&shared->token, __ATOMIC_ACQUIRE) == 0)
		return RWIRE_DIRECT_ASK;
	if (used == (1u << RSOFT_DIRECT_THREADS) - 1)
		return RWIRE_DIRECT_RETRY;
	direct->link = link;
	direct->shared = shared;
	direct->i = (uint32_t)__builtin_ctz(~used);
	/* Bits are set under tx_lock only. */
	__atomic_fetch_or(&link->used, 1u << direct->i, __ATOMIC_ACQUIRE);
	return RWIRE_DIRECT_DONE;
}

void
rwire_direct_end(const struct rwire_direct *direct)
{
	__atomic_fetch_and(&direct->link->used, ~(1u << direct->i), __ATOMIC_RELEASE);
}

void
rwire_direct_wait(struct rwire_link *link)
{
	unsigned int spins = 0;

	while (__atomic_load_n(&link->used, __ATOMIC_ACQUIRE) != 0)
		rsoft_relax(&spins);
}

/* The target grants the range: where it is in the process of the target; 0: it does not. */
static uint64_t
direct_find(struct rsoft_direct *shared, const struct rwire_range *range, uint64_t length)
{
	const struct rsoft_grant *grant = rsoft_grant_set(shared, range->qp_num, range->rkey);
	const struct rsoft_grant *end = grant + RSOFT_GRANT_WAYS;

	for (; grant < end; grant++) {
		uint32_t version = __atomic_load_n(&grant->version, __ATOMIC_ACQUIRE);
		uint32_t rights = __atomic_load_n(&grant->rights, __ATOMIC_RELAXED);
		uint64_t size = __atomic_load_n(&grant->length, __ATOMIC_RELAXED);
		uint64_t base = __atomic_load_n(&grant->base, __ATOMIC_RELAXED);
		uint64_t offset = range->addr - __atomic_load_n(&grant->iova, __ATOMIC_RELAXED);

		if (__atomic_load_n(&grant->rkey, __ATOMIC_RELAXED) != range->rkey ||
				__atomic_load_n(&grant->qp_num, __ATOMIC_RELAXED) != range->qp_num)
			continue;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (version % 2 != 0 ||
				__atomic_load_n(&grant->version, __ATOMIC_RELAXED) != version)
			return 0;
		if ((rights & range->right) == 0 || offset > size || length > size - offset)
			return 0;
		return base + offset;
	}
	return 0;
}

/* Copy by the kernel; an errno, or 0. */
static int
direct_move(pid_t pid, bool is_write, const struct iovec *iov, uint32_t nb_iov, uint64_t addr,
		uint64_t length)
{
	const struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = length};
	ssize_t n = is_write ? process_vm_writev(pid, iov, nb_iov, &remote, 1, 0)
			     : process_vm_readv(pid, iov, nb_iov, &remote, 1, 0);

	if (n < 0)
		return errno;
	return (uint64_t)n == length ? 0 : EFAULT;
}

/* The process has the value that the target has shown. */
static bool
direct_prove(const struct rwire_direct *direct)
{
	uint64_t proof = 0, want = __atomic_load_n(&direct->shared->proof, __ATOMIC_RELAXED);
	const struct iovec iov = {.iov_base = &proof, .iov_len = sizeof(proof)};
	bool is_proven;

	if (__atomic_load_n(&direct->link->is_proven, __ATOMIC_RELAXED))
		return true;
	is_proven = direct->link->pid != 0 &&
			direct_move(direct->link->pid, false, &iov, 1,
					__atomic_load_n(&direct->shared->proof_addr,
							__ATOMIC_RELAXED),
					sizeof(proof)) == 0 &&
			proof == want;
	__atomic_store_n(is_proven ? &direct->link->is_proven : &direct->link->is_refused, true,
			__ATOMIC_RELAXED);
	return is_proven;
}

enum rwire_direct_result
rwire_direct_copy(const struct rwire_direct *direct, const struct rwire_range *range,
		const struct iovec *iov, uint32_t nb_iov, uint64_t length)
{
	uint64_t *inside = &direct->shared->inside[direct->i].token;
	int err = 0;
	uint64_t addr;

	if (!direct_prove(direct))
		return RWIRE_DIRECT_NO;
	/* As rsoft_grace_enter(), in the grace periods of the target. */
	__atomic_store_n(inside, __atomic_load_n(&direct->shared->token, __ATOMIC_ACQUIRE),
			__ATOMIC_RELEASE);
	rte_smp_mb();
	addr = direct_find(direct->shared, range, length);
	if (addr != 0)
		err = direct_move(direct->link->pid, range->right == RMEM_ACCESS_REMOTE_WRITE, iov,
				nb_iov, addr, length);
	__atomic_store_n(inside, 0, __ATOMIC_RELEASE);
	if (addr == 0)
		return RWIRE_DIRECT_ASK;
	if (err == 0)
		return RWIRE_DIRECT_DONE;
	/* Memory that is not mapped is for the target, or the requester, to report. */
	if (err != EFAULT && err != ENOMEM)
		__atomic_store_n(&direct->link->is_refused, true, __ATOMIC_RELAXED);
	return RWIRE_DIRECT_NO;
}

/* The requests. */

static enum rwire_direct_result
direct_begin(struct rwire_qp *q, struct rwire_direct *direct)
{
	struct rwire_port *port = q->wire->port;
	enum rwire_direct_result result;
	unsigned int spins = 0;

	for (;;) {
		rsoft_lock(&q->wire->tx_lock);
		result = port->ops->tx_direct(port, &q->addr, direct);
		rte_ticketlock_unlock(&q->wire->tx_lock);
		if (result != RWIRE_DIRECT_RETRY)
			return result;
		rsoft_relax(&spins);
	}
}

/* Copy all bytes of a request, in pieces that the target checks one by one. */
static enum rwire_direct_result
direct_copy_all(struct rwire_qp *q, const struct rmem_send_wr *wr, uint64_t length)
{
	bool is_read = wr->opcode == RMEM_WR_RDMA_READ;
	struct rwire_range range = {.qp_num = q->qpn, .rkey = wr->rdma.rkey};
	enum rwire_direct_result result = RWIRE_DIRECT_DONE;
	struct iovec iov[RSOFT_MAX_SGE];
	struct rwire_direct direct;
	uint64_t done, n;
	uint32_t nb;

	range.right = is_read ? RMEM_ACCESS_REMOTE_READ : RMEM_ACCESS_REMOTE_WRITE;
	for (done = 0; done < length && result == RWIRE_DIRECT_DONE; done += n) {
		n = RTE_MIN(length - done, DIRECT_MAX_COPY);
		nb = rwire_sge_iov(q->qp, wr, done, (uint32_t)n, is_read, iov);
		if (nb == 0)
			return RWIRE_DIRECT_NO;
		result = direct_begin(q, &direct);
		if (result != RWIRE_DIRECT_DONE)
			return result;
		range.addr = wr->rdma.remote_addr + done;
		result = rwire_direct_copy(&direct, &range, iov, nb, n);
		rwire_direct_end(&direct);
	}
	return result;
}

/* Whether the program leaves completions in the CQ. */
static bool
direct_is_stream(const struct rsoft_run *run)
{
	const struct rsoft_qp *qp = run->qp;
	const struct rsoft_sq *sq = &qp->sq;
	uint32_t behind = RTE_MIN(DIRECT_MAX_BEHIND, sq->sig_mask + 1), tail = sq->sig_tail;
	uint32_t last = tail == 0 ? 0 : sq->sig[(tail - 1) & sq->sig_mask].sq_pos;

	if (run->nb_wc != 0)
		return run->nb_wc >= behind;
	if (run->done - last >= behind)
		return true;
	return tail >= behind &&
			!rsoft_cq_is_polled(rsoft_cq_of(qp->qp.send_cq),
					sq->sig[(tail - behind) & sq->sig_mask].cq_pos);
}

/* The length of a request that needs no packet if there is a grant; 0: it is another one. */
static uint64_t
direct_length(const struct rwire_qp *q, const struct rmem_send_wr *wr)
{
	uint64_t length;

	if (wr->opcode != RMEM_WR_RDMA_WRITE && wr->opcode != RMEM_WR_RDMA_READ)
		return 0;
	length = rsoft_sges_length(wr->sg_list, wr->num_sge, UINT64_MAX);
	return length <= q->qp->max_msg_size ? length : 0;
}

/* Execute the request at the head. */
static enum rwire_direct_result
direct_request(struct rwire_qp *q, const struct rsoft_run *run, const struct rmem_send_wr *wr,
		uint64_t length)
{
	enum rwire_direct_result result;

	if (length == 0 || (length < DIRECT_MIN_STREAM && direct_is_stream(run)))
		return RWIRE_DIRECT_NO;
	result = direct_copy_all(q, wr, length);
	if (result == RWIRE_DIRECT_DONE)
		q->req.direct = RWIRE_DIRECT_WORKS;
	else if (result == RWIRE_DIRECT_ASK &&
			(q->req.direct == RWIRE_DIRECT_UNKNOWN ||
					q->req.direct == RWIRE_DIRECT_WORKS))
		q->req.direct = RWIRE_DIRECT_ASKED;
	else
		q->req.direct = RWIRE_DIRECT_FAILED;
	return result;
}

bool
rwire_direct_is_near(const struct rwire_qp *q, const struct rmem_send_wr *wr)
{
	return (q->req.direct == RWIRE_DIRECT_ASKED || q->req.direct == RWIRE_DIRECT_WORKS) &&
			q->req.begun != q->qp->sq.cons && direct_length(q, wr) >= DIRECT_MIN_STREAM;
}

/* Whether a request may begin, and all preceding ones have completed. */
static bool
direct_is_next(const struct rwire_qp *q)
{
	const struct rsoft_sq *sq = &q->qp->sq;

	return !rsoft_sq_is_empty(sq) && q->req.begun == sq->cons && q->req.sq_pos == sq->cons &&
			q->req.rnr_until == 0 &&
			__atomic_load_n(&q->qp->state, __ATOMIC_RELAXED) == RMEM_QPS_RTS;
}

void
rwire_direct_run(struct rwire_qp *q, unsigned int lcore)
{
	const struct rmem_send_wr *wr;
	struct rsoft_run run;
	uint64_t length;

	if (q->wire->port->ops->tx_direct == NULL || q->service != RWIRE_RC || !direct_is_next(q))
		return;
	rsoft_run_begin(&run, q->qp, lcore, true);
	run.why = 0;
	while (direct_is_next(q)) {
		enum rwire_direct_result result;

		wr = rsoft_sq_slot(&q->qp->sq, q->qp->sq.cons);
		length = direct_length(q, wr);
		result = direct_request(q, &run, wr, length);
		q->req.is_grant_wanted = result == RWIRE_DIRECT_ASK;
		if (result != RWIRE_DIRECT_DONE)
			break;
		rsoft_run_succeed(&run, wr, length);
		rsoft_sq_pop(&q->qp->sq, 1);
		q->req.begun = ++q->req.sq_pos;
	}
	rsoft_run_end(&run);
}
