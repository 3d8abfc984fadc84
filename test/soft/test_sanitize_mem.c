/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * sanitize=1: memory that is unmapped or protected while it is registered ends the requests that
 * access it, without a signal, and the log has the MR and the address.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fixture_odp.h"

#define NB_PAGES 4u

static uint8_t *mem;
static struct rmem_mr *mr;

static int
reg_named(const char *name, void *addr, size_t length, struct rmem_mr **made)
{
	const struct rmem_mr_attr attr = {.addr = addr,
			.length = length,
			.iova = (uintptr_t)addr,
			.access = FX_ACCESS | RMEM_ACCESS_MW_BIND,
			.name = name};

	return fx_reg_attr(fx.a.pd, &attr, made);
}

static void
setup(void)
{
	fx_sides_open(fx_dev("soft0", "sanitize=1"));
	fx_need_guard();
	mem = fx_map(NB_PAGES * FX_PAGE);
	TEST_OK(mprotect(mem, NB_PAGES * FX_PAGE, PROT_READ | PROT_WRITE));
	TEST_RUN(reg_named("bufs", mem, NB_PAGES * FX_PAGE, &mr));
}

static void
lose(unsigned int page)
{
	TEST_OK(munmap(mem + page * FX_PAGE, FX_PAGE));
}

/* The log has the failure of a request with a key, and the address. */
static void
expect_missing(const char *log, const char *side, uint32_t key, const void *at, const char *why)
{
	char text[160];

	snprintf(text, sizeof(text), ": %s failed: key 0x%08x: PAGE_FAULT", side, key);
	TEST_TEXT(log, text);
	snprintf(text, sizeof(text), "; its memory at 0x%" PRIxPTR " is %s", (uintptr_t)at, why);
	TEST_TEXT(log, text);
}

/* A request that is refused for its memory at this address. */
static void
expect_refusal(struct rmem_qp *qp, const struct rmem_send_wr *wr, int status, uint32_t key,
		const void *at, const char *why)
{
	bool is_local = status == RMEM_WC_LOC_PROT_ERR;
	const char *log;

	fx_log_begin();
	TEST_STATUS(fx_send(qp, wr), status);
	log = fx_log_end();
	expect_missing(log,
			is_local ? "request (LOC_PROT_ERR)"
				 : "request of the peer (REM_ACCESS_ERR)",
			key, at, why);
	TEST_TEXT(log, "MR `bufs`;");
	fx_reconnect();
}

TEST(sanitize_mem, requests_of_the_peer_to_unmapped_memory)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64), word = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(mem) + FX_PAGE - 32, mr->rkey);

	lose(1);
	lose(2);
	expect_refusal(fx.b.qp, &wr, RMEM_WC_REM_ACCESS_ERR, mr->rkey, mem + FX_PAGE, "not mapped");
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &word, fx_addr(mem) + 2 * FX_PAGE, mr->rkey,
			1);
	expect_refusal(fx.b.qp, &wr, RMEM_WC_REM_ACCESS_ERR, mr->rkey, mem + 2 * FX_PAGE,
			"not mapped");
}

/* The key is that of the SGE whose memory is missing, also in the statistics. */
TEST(sanitize_mem, sges_of_lost_memory)
{
	const struct rmem_sge sge[] = {fx_sge(fx.a.mr, 0, 8), fx_sge(mr, 3 * FX_PAGE, 8)};
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, sge, &fx.b);
	struct rmem_qp_stats stats;

	TEST_OK(mprotect(mem + 3 * FX_PAGE, FX_PAGE, PROT_NONE));
	wr.num_sge = 2;
	expect_refusal(fx.a.qp, &wr, RMEM_WC_LOC_PROT_ERR, mr->lkey, mem + 3 * FX_PAGE,
			"protected, or beyond the end of its file");
	lose(3);
	expect_refusal(fx.a.qp, &wr, RMEM_WC_LOC_PROT_ERR, mr->lkey, mem + 3 * FX_PAGE,
			"not mapped");
	TEST_OK(rmem_qp_stats_get(fx.a.qp, &stats));
	TEST_EQ(stats.last_error.key, mr->lkey);
}

/* A window, as of a lease. */
TEST(sanitize_mem, window_over_unmapped_memory)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr;
	const char *log;

	fx.mw.mr = mr;
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	TEST_STATUS(fx_mw_bind_2(FX_PAGE, FX_PAGE, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	lose(1);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, mr->iova + FX_PAGE, fx.mw.two->rkey);
	fx_log_begin();
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
	log = fx_log_end();
	TEST_TEXT(log, "; window of MR `bufs`; ");
	TEST_TEXT(log, "; bound ");
	expect_missing(log, "request of the peer (REM_ACCESS_ERR)", fx.mw.two->rkey, mem + FX_PAGE,
			"not mapped");
}

/* A message to unmapped memory, of a size that may be received inline or not. */
static void
receive(uint32_t length)
{
	const struct rmem_sge to = fx_sge(mr, 0, length), from = fx_sge(fx.b.mr, 0, length);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	const char *log;

	TEST_EQ(fx_post_recv(fx.a.qp, 7, &to, 1), 1);
	lose(0);
	wr.flags = RMEM_SEND_SIGNALED;
	fx_log_begin();
	TEST_EQ(rmem_post_send(fx.b.qp, &wr, 1), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_PROT_ERR);
	log = fx_log_end();
	expect_missing(log, "receive (LOC_PROT_ERR)", mr->lkey, mem, "not mapped");
}

TEST_CALL(sanitize_mem, receive_into_unmapped_memory, receive(512));
TEST_CALL(sanitize_mem, inline_receive_into_unmapped_memory, receive(32));

/* The keys of an SRQ are those of its PD. */
TEST(sanitize_mem, srq_receive_into_unmapped_memory)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	const struct rmem_srq_conf srq_conf = {.max_wr = 1, .max_sge = 1};
	const struct rmem_sge to = fx_sge(mr, 0, 512), from = fx_sge(fx.b.mr, 0, 512);
	const struct rmem_recv_wr recv = {.sg_list = &to, .num_sge = 1};
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_qp *qp;
	const char *log;

	TEST_OK(rmem_srq_create(fx.a.pd, &srq_conf, &conf.srq));
	conf.max_recv_wr = conf.max_recv_sge = 0;
	TEST_OK(rmem_qp_create(pd, &conf, &qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_RUN(fx_connect_pair(fx.b.qp, qp));
	TEST_EQ(rmem_srq_post_recv(conf.srq, &recv, 1), 1);
	lose(0);
	fx_log_begin();
	TEST_EQ(rmem_post_send(fx.b.qp, &wr, 1), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_PROT_ERR);
	log = fx_log_end();
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_srq_destroy(conf.srq));
	expect_missing(log, "receive (LOC_PROT_ERR)", mr->lkey, mem, "not mapped");
}

/* Memory that is mapped again is accessed, and nothing is logged. */
TEST(sanitize_mem, memory_that_is_mapped_again)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(mem), mr->rkey);

	TEST_ASSERT(mmap(mem, FX_PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem);
	fx_log_begin();
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_ASSERT(strstr(fx_log_end(), "sanitize") == NULL);
}

TEST(sanitize_mem, device_without_a_guard)
{
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	const char *log;

	fx_log_begin();
	dev = fx_dev("soft1", "sanitize=1,odp_guard=0");
	pd = fx_pd(dev);
	fx_mr(pd, mem, FX_PAGE, FX_ACCESS);
	log = fx_log_end();
	TEST_TEXT(log, "sanitize: memory that is unmapped before rmem_mr_dereg() raises a signal: odp_guard=0");
}

TEST_SUITE(sanitize_mem, setup, fx_teardown);
