/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * With engine=<n> service lcores execute posted requests, without a poll.
 * The suites of the data path run on such a device too: see test/meson.build.
 */

#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_service.h>

#include <rmem_driver.h>

#include "fixture.h"

/* The last worker lcores become service lcores. */
static uint32_t serving[2];
static unsigned int nb_serving;

static void
start_serving(unsigned int nb)
{
	unsigned int lcore;

	for (lcore = RTE_MAX_LCORE; lcore-- > 0 && nb_serving < nb;) {
		if (!rte_lcore_is_enabled(lcore) || lcore == rte_get_main_lcore())
			continue;
		TEST_OK(rte_service_lcore_add(lcore));
		serving[nb_serving++] = lcore;
	}
	TEST_SKIP_IF(!(nb_serving == nb), "it takes worker lcores to serve");
}

static void
setup_none(void)
{
	nb_serving = 0;
	fx_setup_none();
}

static void
teardown(void)
{
	int result = TEST_TRY(fx_teardown());

	while (nb_serving > 0) {
		uint32_t lcore = serving[--nb_serving];

		rte_service_lcore_stop(lcore);
		rte_eal_wait_lcore(lcore);
		if (rte_service_lcore_del(lcore) != 0)
			result = TEST_FAILED;
	}
	TEST_RUN(result);
}

static void
open_sides(unsigned int nb_lcores, const char *args)
{
	start_serving(nb_lcores);
	fx_sides_open(fx_dev("soft0", args));
}

static void
setup(void)
{
	setup_none();
	open_sides(1, "engine=1");
}

TEST_WITH(engine, device_without_a_service_lcore_is_refused, setup_none)
{
	struct rmem_dev *dev = NULL;
	const char *log;
	int ret;

	TEST_SKIP_IF(rte_service_lcore_count() != 0, "EAL was given service lcores");
	fx_log_begin();
	ret = rmem_dev_create("soft0", "engine=1", &dev);
	log = fx_log_end();
	TEST_ERR(ret, EINVAL);
	TEST_ASSERT(dev == NULL);
	TEST_ASSERT(strstr(log, "engine=1") != NULL && strstr(log, "service lcore") != NULL);
}

TEST(engine, capability_reports_the_engine)
{
	TEST_ASSERT(fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_ENGINE));
}

/* Without a poll: the last request raises a flag in memory. */
TEST(engine, requests_run_without_a_poll)
{
	uint8_t *flag = fx.b.buf + FX_PAGE;
	struct rmem_send_wr wrs[2];
	struct rmem_sge sges[2];

	fx_fill(fx.a.buf, 1000, 1);
	fx.a.buf[FX_PAGE] = 1;
	sges[0] = fx_sge(fx.a.mr, 0, 1000);
	sges[1] = fx_sge(fx.a.mr, FX_PAGE, 8);
	wrs[0] = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sges[0], &fx.b);
	wrs[1] = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sges[1], fx_addr(flag), fx.b.mr->rkey, 1);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
	FX_AWAIT(__atomic_load_n((uint64_t *)(void *)flag, __ATOMIC_ACQUIRE) != 0);
	TEST_MEM(fx.b.buf, fx.a.buf, 1000);
}

TEST(engine, waiting_send_continues_without_a_poll)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint64_t deadline = fx_deadline();
	struct rmem_qp_attr attr;
	unsigned int spins = 0;

	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(fx_post_recv(fx.b.qp, 4, NULL, 0), 1);
	do {
		TEST_ASSERT(!fx_is_late(deadline));
		fx_relax(&spins);
		TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	} while (attr.send_queued != 0);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
}

/* However close the poll follows the completion. */
TEST(engine, entry_is_free_as_soon_as_its_completion_was_polled)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 1);
	uint32_t i;

	TEST_OK(fx_connect(qp, qp));
	for (i = 0; i < 20000; i++)
		TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
}

TEST(engine, reset_and_destroy_stop_what_is_being_executed)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, FX_BUF_SIZE);
	struct rmem_send_wr wr;
	uint32_t round, i;

	for (round = 0; round < 100; round++) {
		wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
		for (i = 0; i < FX_DEPTH; i++)
			TEST_EQ(fx_post(fx.a.qp, &wr), 1);
		if (round % 2 == 0) {
			fx_reconnect();
		} else {
			TEST_OK(fx_release(fx.a.qp));
			fx.a.qp = fx_qp(fx.a.pd, fx.a.cq, FX_DEPTH);
		}
		/* Nothing is written any more. */
		memset(fx.b.buf, 0x77, FX_BUF_SIZE);
		for (i = 0; i < FX_BUF_SIZE; i++)
			TEST_EQ(fx.b.buf[i], 0x77);
		fx_reconnect();
	}
}

TEST(engine, dereg_stops_what_is_being_executed)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, FX_BUF_SIZE / 2);
	struct rmem_send_wr wr;
	uint32_t round, i;

	for (round = 0; round < 100; round++) {
		struct rmem_mr *mr = fx_mr(fx.b.pd, fx.b.buf, FX_BUF_SIZE, FX_ACCESS);

		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), mr->rkey);
		for (i = 0; i < FX_DEPTH; i++)
			TEST_EQ(fx_post(fx.a.qp, &wr), 1);
		TEST_OK(fx_release(mr));
		memset(fx.b.buf, 0x77, FX_BUF_SIZE);
		for (i = 0; i < FX_BUF_SIZE; i++)
			TEST_EQ(fx.b.buf[i], 0x77);
		fx_reconnect();
	}
}

/* More engines than service lcores share them; QPs are spread over the engines. */
static void
expect_many_qps_run(unsigned int nb_lcores, const char *args)
{
	enum {
		NB = 9
	};
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	struct rmem_qp *qps[NB];
	int i, round;

	open_sides(nb_lcores, args);
	for (i = 0; i < NB; i++) {
		qps[i] = fx_qp(fx.a.pd, fx.a.cq, 4);
		TEST_OK(fx_connect(qps[i], qps[i]));
	}
	for (round = 0; round < 10; round++) {
		for (i = 0; i < NB; i++)
			TEST_STATUS(fx_send(qps[i], &wr), RMEM_WC_SUCCESS);
	}
}

TEST_WITH(engine, several_engines_share_one_service_lcore, setup_none)
{
	expect_many_qps_run(1, "engine=3");
}

TEST_WITH(engine, several_engines_have_their_own_service_lcores, setup_none)
{
	expect_many_qps_run(2, "engine=2");
}

TEST_WITH(engine, at_most_eight_engines_run, setup_none)
{
	expect_many_qps_run(1, "engine=8");
}

TEST_WITH(engine, device_is_closed_and_created_again, setup_none)
{
	int i;

	start_serving(1);
	for (i = 0; i < 20; i++) {
		struct rmem_dev *dev = fx_dev("soft0", "engine=2,max_mr=16");

		TEST_OK(fx_release(dev));
	}
}

/* A completion is visible before the engine has removed its request from the queue. */
TEST(engine, qp_can_be_claimed_when_its_completions_were_polled)
{
	struct rmem_wc wc[8];
	const struct rmem_mp_ops *mp = rmem_dev_drv(fx.a.dev)->driver->ops.mp;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		fx_post_writes(fx.a.qp, 0, RTE_DIM(wc));
		TEST_EQ(fx_poll(fx.a.cq, wc, RTE_DIM(wc)), RTE_DIM(wc));
		TEST_OK(mp->claim(fx.a.qp, 1));
		TEST_OK(mp->claim(fx.a.qp, 0));
		fx_reconnect();
	}
}

TEST_SUITE(engine, setup, teardown);
