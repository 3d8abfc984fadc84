/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Counters of a QP and of a CQ; the last error of a QP has key, address, peer and time. */

#include <string.h>
#include <time.h>

#include <rmem_driver.h>

#include "fixture.h"

static struct rmem_qp_stats
stats_of(const struct rmem_qp *qp)
{
	struct rmem_qp_stats stats;

	memset(&stats, 0xff, sizeof(stats));
	if (rmem_qp_stats_get(qp, &stats) != 0)
		memset(&stats, 0xff, sizeof(stats));
	return stats;
}

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

TEST(qp_stats, requests_are_counted)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 100);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	const struct rmem_send_wr send = fx_wr(RMEM_WR_SEND, &sge, 1);
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 100);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.a.qp, &send), RMEM_WC_SUCCESS);
	TEST_EQ(stats_of(fx.a.qp).send_wrs, 2);
	TEST_EQ(stats_of(fx.a.qp).bytes, 200);
	TEST_EQ(stats_of(fx.a.qp).recv_wrs, 0);
	TEST_EQ(stats_of(fx.b.qp).recv_wrs, 1);
	TEST_EQ(stats_of(fx.b.qp).send_wrs, 0);
	TEST_EQ(stats_of(fx.a.qp).last_error.time_ns, 0);
}

/* The last error of a QP. */
static void
expect_error(const struct rmem_qp *qp, uint8_t side, uint8_t status, uint32_t why, uint32_t key,
		uint64_t addr)
{
	const struct rmem_qp_error error = stats_of(qp).last_error;
	const struct rmem_qp *peer = qp == fx.a.qp ? fx.b.qp : fx.a.qp;

	TEST_EQ(error.side, side);
	TEST_EQ(error.status, status);
	TEST_EQ(error.vendor_err, why);
	TEST_EQ(error.key, key);
	TEST_EQ(error.addr, addr);
	TEST_EQ(error.peer_qp_num, peer->qp_num);
}

TEST(qp_stats, refused_write_is_the_last_error_of_both_sides)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge,
			fx_addr(fx.b.buf) + FX_BUF_SIZE - 4, fx.b.mr->rkey);
	uint64_t before = now_ns();
	struct rmem_qp_error error;

	wr.wr_id = 77;
	fx_expect(&wr, RMEM_WC_REM_ACCESS_ERR, RMEM_QPS_ERR, RMEM_QPS_ERR);
	expect_error(fx.a.qp, RMEM_QP_ERROR_SEND, RMEM_WC_REM_ACCESS_ERR, RMEM_VENDOR_ERR_KEY_RANGE,
			wr.rdma.rkey, wr.rdma.remote_addr);
	expect_error(fx.b.qp, RMEM_QP_ERROR_PEER, RMEM_WC_REM_ACCESS_ERR, RMEM_VENDOR_ERR_KEY_RANGE,
			wr.rdma.rkey, wr.rdma.remote_addr);
	error = stats_of(fx.a.qp).last_error;
	TEST_EQ(error.wr_id, 77);
	TEST_EQ(error.opcode, RMEM_WR_RDMA_WRITE);
	TEST_ASSERT(error.time_ns >= before && error.time_ns <= now_ns());
	TEST_EQ(stats_of(fx.a.qp).errors, 1);
	TEST_EQ(stats_of(fx.a.qp).rem_access_errors, 1);
}

TEST(qp_stats, flush_and_reset_keep_the_last_error)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr bad =
			fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.b.buf), UINT32_MAX);
	const struct rmem_send_wr good = fx_rdma_to(RMEM_WR_RDMA_READ, &sge, &fx.b);

	TEST_STATUS(fx_send(fx.a.qp, &bad), RMEM_WC_REM_ACCESS_ERR);
	TEST_STATUS(fx_send(fx.a.qp, &good), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(stats_of(fx.a.qp).flushed, 1);
	TEST_EQ(stats_of(fx.b.qp).bad_rkeys, 1);
	fx_reconnect();
	TEST_STATUS(fx_send(fx.a.qp, &good), RMEM_WC_SUCCESS);
	expect_error(fx.a.qp, RMEM_QP_ERROR_SEND, RMEM_WC_REM_ACCESS_ERR, RMEM_VENDOR_ERR_KEY_INDEX,
			UINT32_MAX, fx_addr(fx.b.buf));
}

TEST(qp_stats, last_error_names_the_sge_that_was_refused)
{
	struct rmem_sge sge[3] = {
			fx_sge(fx.a.mr, 0, 8), fx_sge(fx.a.mr, 8, 8), fx_sge(fx.a.mr, 16, 8)};
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, sge, &fx.b);
	struct rmem_qp_error error;
	struct rmem_qp *qp;

	conf.max_send_sge = 3;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_RUN(fx_connect(qp, qp));
	wr.num_sge = 3;
	wr.rdma.rkey = fx.a.mr->rkey;
	wr.rdma.remote_addr = fx_addr(fx.a.buf);
	sge[1].lkey ^= 1;
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_LOC_PROT_ERR);
	error = stats_of(qp).last_error;
	TEST_EQ(error.key, sge[1].lkey);
	TEST_EQ(error.addr, sge[1].addr);
	TEST_EQ(error.vendor_err, fx.wc.vendor_err);
}

TEST(qp_stats, refused_binding_names_its_key)
{
	const uint32_t rkey = fx.a.mr->rkey;
	const struct rmem_send_wr inv = fx_inv(rkey);

	TEST_STATUS(fx_send(fx.a.qp, &inv), RMEM_WC_MW_BIND_ERR);
	expect_error(fx.a.qp, RMEM_QP_ERROR_SEND, RMEM_WC_MW_BIND_ERR, RMEM_VENDOR_ERR_NOT_INV,
			rkey, 0);
}

TEST(qp_stats, refused_receive_is_the_last_error_of_its_qp)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	struct rmem_sge to = fx_sge(fx.b.mr, 0, 8);

	to.addr += FX_BUF_SIZE;
	TEST_EQ(fx_post_recv(fx.b.qp, 5, &to, 1), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_OP_ERR);
	expect_error(fx.a.qp, RMEM_QP_ERROR_SEND, RMEM_WC_REM_OP_ERR, RMEM_VENDOR_ERR_RECV, 0, 0);
	expect_error(fx.b.qp, RMEM_QP_ERROR_RECV, RMEM_WC_LOC_PROT_ERR, RMEM_VENDOR_ERR_KEY_RANGE,
			to.lkey, to.addr);
	TEST_EQ(stats_of(fx.b.qp).last_error.wr_id, 5);
}

TEST(qp_stats, error_of_a_driver_is_stored_with_its_time)
{
	const struct rmem_qp_error error = {.status = RMEM_WC_GENERAL_ERR,
			.vendor_err = 98,
			.key = 0x1234,
			.peer_qp_num = fx.b.qp->qp_num};
	uint64_t before = now_ns();

	rmem_qp_note_error(fx.a.qp, &error);
	expect_error(fx.a.qp, RMEM_QP_ERROR_SEND, RMEM_WC_GENERAL_ERR, 98, 0x1234, 0);
	TEST_ASSERT(stats_of(fx.a.qp).last_error.time_ns >= before);
}

TEST(qp_stats, invalid_arguments_are_refused)
{
	struct rmem_qp_stats stats;
	struct rmem_cq_stats cq_stats;

	TEST_ERR(rmem_qp_stats_get(NULL, &stats), EINVAL);
	TEST_ERR(rmem_qp_stats_get((struct rmem_qp *)fx.a.cq, &stats), EINVAL);
	TEST_ERR(rmem_qp_stats_get(fx.a.qp, NULL), EINVAL);
	TEST_ERR(rmem_cq_stats_get(NULL, &cq_stats), EINVAL);
	TEST_ERR(rmem_cq_stats_get((struct rmem_cq *)fx.a.qp, &cq_stats), EINVAL);
	TEST_ERR(rmem_cq_stats_get(fx.a.cq, NULL), EINVAL);
}

/* Wait until a CQ has these numbers: an engine executes requests later. */
static void
expect_cq(const struct rmem_cq *cq, uint64_t outstanding, uint64_t overruns)
{
	uint64_t deadline = fx_deadline();
	struct rmem_cq_stats stats;
	unsigned int spins = 0;

	do {
		fx_relax(&spins);
		TEST_OK(rmem_cq_stats_get(cq, &stats));
	} while ((stats.outstanding != outstanding || stats.overruns != overruns) &&
			!fx_is_late(deadline));
	TEST_EQ(stats.nb_cqe, cq->nb_cqe);
	TEST_EQ(stats.outstanding, outstanding);
	TEST_EQ(stats.overruns, overruns);
}

TEST(qp_stats, overruns_of_a_cq_are_counted)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 2};
	struct rmem_cq *cq = fx_cq_by(fx.a.dev, &cq_conf);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);
	struct rmem_qp *qp;
	unsigned int i;

	wr.flags = RMEM_SEND_SIGNALED;
	qp = fx_qp(fx.a.pd, cq, 8);
	TEST_RUN(fx_connect(qp, qp));
	for (i = 0; i < cq->nb_cqe; i++)
		TEST_EQ(fx_post(qp, &wr), 1);
	expect_cq(cq, cq->nb_cqe, 0);
	TEST_EQ(fx_post(qp, &wr), 1);
	expect_cq(cq, cq->nb_cqe, 1);
}

TEST_SUITE(qp_stats, fx_setup, fx_teardown);
