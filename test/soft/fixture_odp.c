/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory on demand: pages of a's that nothing has touched, and MRs over them on both sides. */

#include <stdio.h>
#include <sys/mman.h>

#include "fixture_odp.h"

struct fx_odp fx_odp;

uint32_t
fx_odp_access(void)
{
	struct rmem_dev_info info;

	if (rmem_dev_info_get(fx.a.dev, &info) != 0 || (info.odp.rc & RMEM_ODP_ATOMIC) == 0)
		return FX_ODP_ACCESS & ~RMEM_ACCESS_REMOTE_ATOMIC;
	return FX_ODP_ACCESS;
}

bool
fx_odp_has_atomics(void)
{
	return (fx_odp_access() & RMEM_ACCESS_REMOTE_ATOMIC) != 0;
}

void
fx_setup_odp(void)
{
	struct rmem_dev_info info;

	fx_setup();
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	if ((info.odp.general & RMEM_ODP_SUPPORT) == 0)
		test_skip("this system has no on-demand paging");
	fx_odp.mem = fx_map(FX_ODP_SIZE);
	TEST_OK(mprotect(fx_odp.mem, FX_ODP_SIZE, PROT_READ | PROT_WRITE));
	/* Pages are checked one by one. */
	madvise(fx_odp.mem, FX_ODP_SIZE, MADV_NOHUGEPAGE);
	fx_odp.mr = fx_mr(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, fx_odp_access());
}

void
fx_need_guard(void)
{
	TEST_SKIP_IF(!fx_odp_has_atomics(), "nothing is guarded by a signal handler here");
}

uint8_t *
fx_odp_page(uint32_t page)
{
	return fx_odp.mem + (size_t)page * FX_PAGE;
}

bool
fx_odp_is_resident(uint32_t page)
{
	unsigned char resident = 0;

	return mincore(fx_odp_page(page), FX_PAGE, &resident) == 0 && (resident & 1) != 0;
}

int
fx_odp_protect(uint32_t page, int prot)
{
	return mprotect(fx_odp_page(page), FX_PAGE, prot);
}

int
fx_odp_unmap(uint32_t page)
{
	return munmap(fx_odp_page(page), FX_PAGE);
}

int
fx_odp_map(uint32_t page)
{
	void *at = fx_odp_page(page);

	return mmap(at, FX_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			       -1, 0) == at
			? 0
			: -errno;
}

struct rmem_mr_stats
fx_stats(struct rmem_mr *mr)
{
	struct rmem_mr_stats stats = {.page_faults = UINT64_MAX};

	if (rmem_mr_stats_get(mr, &stats) != 0)
		printf("fixture: no counters of an MR\n");
	return stats;
}

int
fx_odp_write(uint32_t page, uint32_t length)
{
	return fx_peer_write(fx_addr(fx_odp_page(page)), length, fx_odp.mr->rkey);
}

/* A message to the other side, with a receive posted if there is an SGE for it. */
static int
run_message(struct fx_side *from, struct fx_side *to, struct rmem_send_wr *wr,
		const struct rmem_sge *recv)
{
	struct rmem_wc sent;
	int status;

	TEST_EQ(fx_post_recv(to->qp, 1, recv, recv != NULL), 1);
	status = fx_send(from->qp, wr);
	if (status == RMEM_WC_LOC_PROT_ERR)
		return status;
	/* It has a reason unless it was flushed. */
	sent = fx.wc;
	fx_odp.recv_status = fx_wait(to->cq);
	if (fx_odp.recv_status == RMEM_WC_WR_FLUSH_ERR)
		fx.wc = sent;
	return status;
}

int
fx_odp_do(enum fx_odp_op op, uint64_t addr, uint32_t length)
{
	struct rmem_sge own = {.addr = addr, .length = length, .lkey = fx_odp.mr->lkey};
	const struct rmem_sge peer = fx_sge(fx.b.mr, 0, length);
	struct rmem_sge result = fx_sge(fx.b.mr, 0, sizeof(uint64_t));
	struct rmem_send_wr wr;

	fx_odp.recv_status = RMEM_WC_SUCCESS;
	switch (op) {
	case FX_ODP_WRITE_TO:
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &peer, addr, fx_odp.mr->rkey);
		return fx_send(fx.b.qp, &wr);
	case FX_ODP_WRITE_FROM:
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &own, fx.b.mr->iova, fx.b.mr->rkey);
		return fx_send(fx.a.qp, &wr);
	case FX_ODP_READ_FROM:
		wr = fx_rdma(RMEM_WR_RDMA_READ, &peer, addr, fx_odp.mr->rkey);
		return fx_send(fx.b.qp, &wr);
	case FX_ODP_READ_TO:
		wr = fx_rdma(RMEM_WR_RDMA_READ, &own, fx.b.mr->iova, fx.b.mr->rkey);
		return fx_send(fx.a.qp, &wr);
	case FX_ODP_SEND:
		wr = fx_wr(RMEM_WR_SEND, &own, 1);
		return run_message(&fx.a, &fx.b, &wr, &peer);
	case FX_ODP_RECV:
		wr = fx_wr(RMEM_WR_SEND, &peer, 1);
		return run_message(&fx.b, &fx.a, &wr, &own);
	case FX_ODP_WRITE_IMM:
		wr = fx_rdma(RMEM_WR_RDMA_WRITE_WITH_IMM, &peer, addr, fx_odp.mr->rkey);
		return run_message(&fx.b, &fx.a, &wr, NULL);
	case FX_ODP_ADD:
		wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &result, addr, fx_odp.mr->rkey, 5);
		return fx_send(fx.b.qp, &wr);
	case FX_ODP_SWAP:
		wr = fx_atomic(RMEM_WR_ATOMIC_CMP_AND_SWP, &result, addr, fx_odp.mr->rkey, 0);
		wr.atomic.swap = 7;
		return fx_send(fx.b.qp, &wr);
	case FX_ODP_ATOMIC_WRITE:
		wr = fx_rdma(RMEM_WR_ATOMIC_WRITE, &result, addr, fx_odp.mr->rkey);
		return fx_send(fx.b.qp, &wr);
	case FX_ODP_ADD_RESULT:
	default:
		own.length = sizeof(uint64_t);
		wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &own, fx.b.mr->iova, fx.b.mr->rkey, 5);
		return fx_send(fx.a.qp, &wr);
	}
}

bool
fx_odp_is_local(enum fx_odp_op op)
{
	return op == FX_ODP_WRITE_FROM || op == FX_ODP_READ_TO || op == FX_ODP_SEND ||
			op == FX_ODP_ADD_RESULT;
}

bool
fx_odp_modifies(enum fx_odp_op op)
{
	return op != FX_ODP_WRITE_FROM && op != FX_ODP_READ_FROM && op != FX_ODP_SEND;
}

bool
fx_odp_can(enum fx_odp_op op)
{
	return (op != FX_ODP_ADD && op != FX_ODP_SWAP && op != FX_ODP_ATOMIC_WRITE) ||
			fx_odp_has_atomics();
}

bool
fx_odp_is_word(enum fx_odp_op op)
{
	return op == FX_ODP_ADD || op == FX_ODP_SWAP || op == FX_ODP_ADD_RESULT ||
			op == FX_ODP_ATOMIC_WRITE;
}

int
fx_odp_refusal(enum fx_odp_op op)
{
	if (fx_odp_is_local(op))
		return RMEM_WC_LOC_PROT_ERR;
	return op == FX_ODP_RECV ? RMEM_WC_REM_OP_ERR : RMEM_WC_REM_ACCESS_ERR;
}
