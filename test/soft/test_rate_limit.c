/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rate limits of QPs, on devices with packets: the payload takes at least its time. Nothing is
 * assumed about the time that it takes at most.
 */

#include <string.h>

#include <rte_cycles.h>

#include "fixture.h"

#define NB_MSGS 64u
#define MSG     2048u
#define KBPS    8000u /* 131 ms for all messages */
#define QKEY    7u

/* Less than their time by a burst of 10 ms, and more than the last message. */
#define MIN_MS 100u

static void
setup(void)
{
	fx_setup();
	fx_need_soft();
}

static struct rmem_qp *
make_qp(uint16_t type)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, NB_MSGS);

	conf.type = type;
	return fx_qp_by(fx.a.pd, &conf);
}

static void
set_rate(struct rmem_qp *qp, uint32_t kbps)
{
	const struct rmem_qp_attr attr = {.rate_limit = kbps};

	TEST_OK(rmem_qp_modify(qp, &attr, RMEM_QP_RATE_LIMIT));
}

/* Post all messages, and wait for their completions; return the time in ms. */
static uint64_t
run(struct rmem_qp *qp, const struct rmem_send_wr *wr)
{
	uint64_t begin = rte_get_timer_cycles();
	unsigned int i;

	for (i = 0; i < NB_MSGS; i++)
		TEST_EQ(fx_post(qp, wr), 1);
	for (i = 0; i < NB_MSGS; i++)
		TEST_STATUS(fx_wait(qp->send_cq), RMEM_WC_SUCCESS);
	return (rte_get_timer_cycles() - begin) * 1000 / rte_get_timer_hz();
}

/* Connect a QP with another one; WRITEs from side a to side b take their time. */
static void
expect_paced(uint16_t type)
{
	struct rmem_qp *qp = make_qp(type), *peer = make_qp(type);
	const struct rmem_sge from = fx_sge(fx.a.mr, 0, MSG);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &from, &fx.b);
	struct rmem_qp_attr attr;

	TEST_OK(fx_connect_pair(qp, peer));
	set_rate(qp, KBPS);
	wr.flags = RMEM_SEND_SIGNALED;
	memset(fx.a.buf, 0x42, MSG);
	TEST_ASSERT(run(qp, &wr) >= MIN_MS);
	/* The first message of UC may arrive after its completion. */
	if (type == RMEM_QPT_RC)
		TEST_EQ(memcmp(fx.a.buf, fx.b.buf, MSG), 0);
	set_rate(qp, 0);
	TEST_OK(rmem_qp_query(qp, &attr));
	TEST_EQ(attr.rate_limit, 0);
	(void)run(qp, &wr);
}

TEST_CALL(rate_limit, writes_of_rc_take_their_time, expect_paced(RMEM_QPT_RC));
TEST_CALL(rate_limit, writes_of_uc_take_their_time, expect_paced(RMEM_QPT_UC));

TEST(rate_limit, datagrams_take_their_time)
{
	struct rmem_qp *qp = make_qp(RMEM_QPT_UD), *peer = make_qp(RMEM_QPT_UD);
	const struct rmem_sge from = fx_sge(fx.a.mr, 0, MSG);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	TEST_OK(fx_ud_ready(qp, QKEY));
	TEST_OK(fx_ud_ready(peer, QKEY));
	wr.ud.ah = fx_ah_to(fx.a.pd, peer);
	wr.ud.remote_qpn = peer->qp_num;
	wr.ud.remote_qkey = QKEY;
	wr.flags = RMEM_SEND_SIGNALED;
	set_rate(qp, KBPS);
	TEST_ASSERT(run(qp, &wr) >= MIN_MS);
}

/* A reset drops the requests that wait for their time, and the limit: none completes later. */
TEST(rate_limit, reset_drops_requests_that_wait)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, 0, MSG);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &from, &fx.b);
	struct rmem_qp *qp = make_qp(RMEM_QPT_RC), *peer = make_qp(RMEM_QPT_RC);
	unsigned int i;

	TEST_OK(fx_connect_pair(qp, peer));
	set_rate(qp, 1);
	wr.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < NB_MSGS; i++)
		TEST_EQ(fx_post(qp, &wr), 1);
	TEST_OK(rmem_qp_reset(qp));
	TEST_OK(rmem_qp_reset(peer));
	fx_drain(fx.a.cq);
	TEST_OK(fx_connect_pair(qp, peer));
	(void)run(qp, &wr);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
}

/* The requests that wait are flushed without delay: at 1 kbit/s they take 17 minutes. */
TEST(rate_limit, error_flushes_requests_that_wait)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, 0, MSG);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &from, &fx.b);
	struct rmem_qp *qp = make_qp(RMEM_QPT_RC), *peer = make_qp(RMEM_QPT_RC);
	unsigned int i, nb_flushed = 0;

	TEST_OK(fx_connect_pair(qp, peer));
	set_rate(qp, 1);
	wr.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < NB_MSGS; i++) {
		wr.wr_id = i;
		TEST_EQ(fx_post(qp, &wr), 1);
	}
	TEST_OK(rmem_qp_set_error(qp));
	for (i = 0; i < NB_MSGS; i++) {
		nb_flushed += fx_wait(fx.a.cq) == RMEM_WC_WR_FLUSH_ERR;
		TEST_EQ(fx.wc.wr_id, i);
	}
	TEST_ASSERT(nb_flushed >= NB_MSGS / 2);
}

TEST_SUITE(rate_limit, setup, fx_teardown);
