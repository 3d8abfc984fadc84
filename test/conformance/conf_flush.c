/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* FLUSH of the annex "Memory Placement Extensions", to the type GLOBAL. */

#include <string.h>

#include "conf.h"

#define CAPA  RMEM_DEV_CAPA_FLUSH
#define RIGHT RMEM_ACCESS_FLUSH_GLOBAL

static struct rmem_mr *mr;

/* QPs of a with the rights, and an MR of a with FLUSH_GLOBAL. */
static void
allow(uint32_t access)
{
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = conf_qp(fx.a.pd, fx.a.cq, access);
	mr = fx_mr(fx.a.pd, fx.a.buf, 64, FX_ACCESS | RIGHT);
	conf_reconnect();
}

static struct rmem_send_wr
flush_wr(uint64_t addr, uint32_t length, uint8_t level)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_FLUSH, NULL, 0);

	wr.flush.remote_addr = addr;
	wr.flush.length = length;
	wr.flush.rkey = mr->rkey;
	wr.flush.type = RMEM_FLUSH_GLOBAL;
	wr.flush.level = level;
	return wr;
}

CONF_TEST(flush, flush_completes_after_the_writes_it_places, CAPA, 0,
		"IBTA A19.4.1: range and MR, also of no bytes")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wrs[4];
	unsigned int i;

	allow(RMEM_ACCESS_REMOTE | RIGHT);
	wrs[0] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), mr->rkey);
	wrs[1] = flush_wr(fx_addr(fx.a.buf) + 8, 56, RMEM_FLUSH_RANGE);
	wrs[2] = flush_wr(fx_addr(fx.a.buf) + 64, 0, RMEM_FLUSH_RANGE);
	wrs[3] = flush_wr(0, UINT32_MAX, RMEM_FLUSH_MR);
	for (i = 0; i < RTE_DIM(wrs); i++)
		wrs[i].flags = i == 0 ? 0 : RMEM_SEND_SIGNALED;
	fx_fill(fx.b.buf, 64, 1);
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	for (i = 1; i < RTE_DIM(wrs); i++) {
		TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_FLUSH);
		TEST_MEM(fx.a.buf, fx.b.buf, 64);
	}
}

CONF_TEST(flush, flush_beyond_the_mr_is_refused, CAPA, 0, "IBTA 10.6.3: the range of the MR")
{
	struct rmem_send_wr wr;

	allow(RMEM_ACCESS_REMOTE | RIGHT);
	wr = flush_wr(fx_addr(fx.a.buf) + 8, 57, RMEM_FLUSH_RANGE);
	conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
	wr = flush_wr(fx_addr(fx.a.buf) - 1, 0, RMEM_FLUSH_RANGE);
	conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
}

CONF_TEST(flush, flush_needs_the_right_of_the_mr, CAPA, 0, "IBTA A19.4.1: the right FLUSH_GLOBAL")
{
	struct rmem_send_wr wr;

	allow(RMEM_ACCESS_REMOTE | RIGHT);
	wr = flush_wr(fx_addr(fx.a.buf), 8, RMEM_FLUSH_RANGE);
	wr.flush.rkey = fx.a.mr->rkey;
	wr.flush.type = RMEM_FLUSH_PERSISTENT;
	conf_refused(CONF_QP_RIGHT, fx.b.qp, &wr);
	TEST_OK(fx_release(mr));
	mr = fx_mr(fx.a.pd, fx.a.buf, 64, FX_ACCESS);
	wr = flush_wr(fx_addr(fx.a.buf), 8, RMEM_FLUSH_RANGE);
	conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
	wr = flush_wr(fx_addr(fx.a.buf), 8, RMEM_FLUSH_MR);
	conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
}

CONF_TEST(flush, flush_needs_the_right_of_the_qp, CAPA, 0, "IBTA A19.4.1: the right of the QP")
{
	struct rmem_send_wr wr;

	allow(RMEM_ACCESS_REMOTE);
	wr = flush_wr(fx_addr(fx.a.buf), 8, RMEM_FLUSH_RANGE);
	conf_refused(CONF_QP_RIGHT, fx.b.qp, &wr);
}

CONF_TEST(flush, flush_without_a_known_type_or_level_is_einval, CAPA, 0,
		"IBTA A19.4.1: values of the FETH")
{
	struct rmem_send_wr wr;

	allow(RMEM_ACCESS_REMOTE | RIGHT);
	wr = flush_wr(fx_addr(fx.a.buf), 8, RMEM_FLUSH_MR + 1);
	TEST_ERR(fx_post(fx.b.qp, &wr), EINVAL);
	wr = flush_wr(fx_addr(fx.a.buf), 8, RMEM_FLUSH_RANGE);
	wr.flush.type = 0;
	TEST_ERR(fx_post(fx.b.qp, &wr), EINVAL);
	wr.flush.type = RMEM_FLUSH_PERSISTENT << 1;
	TEST_ERR(fx_post(fx.b.qp, &wr), EINVAL);
}

/* More than the responder keeps. */
CONF_TEST(flush, flushes_of_a_burst_complete, CAPA, 0,
		"IBTA A19.4.1: they use the responder resources of READs and atomics")
{
	enum {
		NB = 32
	};
	struct rmem_send_wr wrs[NB];
	unsigned int i;

	allow(RMEM_ACCESS_REMOTE | RIGHT);
	for (i = 0; i < NB; i++)
		wrs[i] = flush_wr(fx_addr(fx.a.buf), i, RMEM_FLUSH_RANGE);
	wrs[NB - 1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, NB), NB);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
}

TEST_SUITE(flush, conf_setup, conf_teardown);
