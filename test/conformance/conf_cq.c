/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A completion queue is resized, and keeps its completions; completions have timestamps. */

#include "conf.h"

#define CAPA RMEM_DEV_CAPA_CQ_RESIZE

static struct {
	struct rmem_cq *cq; /* of qp, alone */
	struct rmem_qp *qp;
	struct rmem_qp *peer;
} cc;

static void
setup(void)
{
	conf_setup();
	cc.cq = fx_cq(fx.a.dev, 4);
	cc.qp = conf_qp(fx.a.pd, cc.cq, RMEM_ACCESS_REMOTE);
	cc.peer = conf_qp(fx.b.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	TEST_OK(conf_connect(cc.qp, cc.peer));
}

/* n messages of the peer complete receives, numbered from first on. */
static void
receive(uint64_t first, uint32_t n)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8), to = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	uint32_t i;

	for (i = 0; i < n; i++) {
		TEST_EQ(fx_post_recv(cc.qp, first + i, &to, 1), 1);
		TEST_STATUS(fx_send(cc.peer, &wr), RMEM_WC_SUCCESS);
	}
}

static void
expect(uint64_t first, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		TEST_STATUS(fx_wait(cc.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.wr_id, first + i);
		TEST_EQ(fx.wc.qp_num, cc.qp->qp_num);
	}
}

CONF_TEST(cq, resize_keeps_completions_in_order, CAPA, 0, "IBTA 11.2.8: Resize CQ")
{
	static const uint32_t sizes[] = {64, 8, 100, 4};
	unsigned int i;

	receive(10, 3);
	for (i = 0; i < RTE_DIM(sizes); i++) {
		TEST_OK(rmem_cq_resize(cc.cq, sizes[i]));
		TEST_ASSERT(cc.cq->nb_cqe >= sizes[i]);
	}
	expect(10, 3);
	TEST_EQ(rmem_poll_cq(cc.cq, &fx.wc, 1), 0);
}

CONF_TEST(cq, larger_queue_holds_more_completions, CAPA, 0, "IBTA 11.2.8; ibv_resize_cq(3)")
{
	receive(0, 2);
	TEST_OK(rmem_cq_resize(cc.cq, 32));
	receive(2, 30);
	expect(0, 32);
}

CONF_TEST(cq, resize_below_the_completions_outstanding_is_refused, CAPA, 0, "ibv_resize_cq(3)")
{
	TEST_OK(rmem_cq_resize(cc.cq, 64));
	receive(0, 20);
	TEST_ERR(rmem_cq_resize(cc.cq, 10), EINVAL);
	TEST_ASSERT(cc.cq->nb_cqe >= 64);
	receive(20, 10);
	expect(0, 30);
	TEST_OK(rmem_cq_resize(cc.cq, 1));
	receive(30, 1);
	expect(30, 1);
}

/* Receives of inline messages are flushed. */
CONF_TEST(cq, resize_keeps_completions_of_a_destroyed_qp, CAPA, 0, "IBTA 10.2.4.4")
{
	receive(0, 3);
	TEST_OK(fx_release(cc.qp));
	TEST_ERR(rmem_cq_resize(cc.cq, 2), EINVAL);
	TEST_OK(rmem_cq_resize(cc.cq, 16));
	TEST_ASSERT(fx_wait(cc.cq) >= 0);
	TEST_EQ(fx.wc.wr_id, 0);
	TEST_OK(rmem_cq_resize(cc.cq, 2));
	TEST_ASSERT(fx_wait(cc.cq) >= 0);
	TEST_ASSERT(fx_wait(cc.cq) >= 0);
	TEST_EQ(fx.wc.wr_id, 2);
}

CONF_TEST(cq, resize_checks_its_arguments, 0, 0, "IBTA 11.2.8: Resize CQ")
{
	TEST_ERR(rmem_cq_resize(NULL, 8), EINVAL);
	TEST_ERR(rmem_cq_resize((void *)fx.a.qp, 8), EINVAL);
	TEST_ERR(rmem_cq_resize(cc.cq, 0), EINVAL);
	TEST_ERR(rmem_cq_resize(cc.cq, conf.info.max_cqe + 1), EINVAL);
	if ((conf.info.capa & CAPA) == 0)
		TEST_ERR(rmem_cq_resize(cc.cq, 8), EOPNOTSUPP);
}

/* Of a QP whose CQ takes them. */
CONF_TEST(cq, timestamps_are_of_the_clock_of_the_device, RMEM_DEV_CAPA_CQ_TIMESTAMP, 0,
		"ibv_create_cq_ex(3): IBV_WC_EX_WITH_COMPLETION_TIMESTAMP")
{
	const struct rmem_cq_conf with_times = {.nb_cqe = 16, .flags = RMEM_CQ_TIMESTAMP};
	uint64_t last, now;
	uint32_t i;

	cc.cq = fx_cq_by(fx.a.dev, &with_times);
	cc.qp = conf_qp(fx.a.pd, cc.cq, RMEM_ACCESS_REMOTE);
	cc.peer = conf_qp(fx.b.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	TEST_OK(conf_connect(cc.qp, cc.peer));
	TEST_OK(rmem_dev_clock_get(fx.a.dev, &last));
	receive(0, 10);
	for (i = 0; i < 10; i++) {
		TEST_STATUS(fx_wait(cc.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.wr_id, i);
		TEST_ASSERT(cc.cq->timestamps[0] >= last);
		last = cc.cq->timestamps[0];
	}
	TEST_OK(rmem_dev_clock_get(fx.a.dev, &now));
	TEST_ASSERT(last <= now);
}

TEST_SUITE(cq, setup, conf_teardown);
