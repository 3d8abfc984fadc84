/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Queue pairs are made as configured, connected, and refuse what they can't be. */

#include <string.h>

#include "fixture.h"

TEST(qp, new_qp_is_as_configured_and_in_reset)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 5);
	static const struct rmem_qp_addr nowhere;
	struct rmem_qp_attr attr;
	struct rmem_qp *qp;

	conf.max_recv_wr = 7;
	conf.max_send_sge = 2;
	conf.max_recv_sge = 3;
	conf.max_inline_data = 33;
	conf.access = RMEM_ACCESS_REMOTE_READ;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_ASSERT(qp->pd == fx.a.pd && qp->send_cq == fx.a.cq && qp->recv_cq == fx.a.cq);
	TEST_OK(rmem_qp_query(qp, &attr));
	TEST_EQ(attr.state, RMEM_QPS_RESET);
	TEST_EQ(attr.access, RMEM_ACCESS_REMOTE_READ);
	TEST_EQ(attr.max_send_wr, 5);
	TEST_EQ(attr.max_recv_wr, 7);
	TEST_EQ(attr.max_send_sge, 2);
	TEST_EQ(attr.max_recv_sge, 3);
	TEST_EQ(attr.max_inline_data, 33);
	TEST_EQ(attr.send_queued, 0);
	TEST_EQ(attr.recv_queued, 0);
	TEST_EQ(attr.addr.qp_num, qp->qp_num);
	TEST_MEM(&attr.remote, &nowhere, sizeof(nowhere));
}

/* Packets to a QP that was destroyed do not reach the next one in its place. */
TEST(qp, number_is_not_that_of_the_previous_qp)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_qp=1");
	struct rmem_pd *pd = fx_pd(dev);
	const struct rmem_qp_conf conf = fx_qp_conf(fx_cq(dev, 1), 1);
	uint32_t last = 0;
	struct rmem_qp *qp;
	unsigned int i;

	for (i = 0; i < 300; i++) {
		TEST_OK(rmem_qp_create(pd, &conf, &qp));
		TEST_ASSERT(qp->qp_num != last && qp->qp_num >> 24 == 0);
		last = qp->qp_num;
		TEST_OK(rmem_qp_destroy(qp));
	}
}

TEST(qp, create_refuses_missing_and_wrong_cqs)
{
	struct rmem_dev *dev = fx_dev("soft1", NULL);
	struct rmem_cq *wrong[] = {NULL, (struct rmem_cq *)fx.a.pd, fx_cq(dev, 4)};
	struct rmem_qp *qp = NULL;
	unsigned int i;

	TEST_ASSERT(wrong[2] != NULL);
	for (i = 0; i < RTE_DIM(wrong); i++) {
		struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 1);

		conf.send_cq = wrong[i];
		TEST_ERR(rmem_qp_create(fx.a.pd, &conf, &qp), EINVAL);
		conf.send_cq = fx.a.cq;
		conf.recv_cq = wrong[i];
		TEST_ERR(rmem_qp_create(fx.a.pd, &conf, &qp), EINVAL);
	}
	TEST_ASSERT(qp == NULL);
}

static int
create(const void *conf)
{
	struct rmem_qp *qp = NULL;
	int ret = rmem_qp_create(fx.a.pd, conf, &qp);

	return qp == NULL ? ret : 0;
}

TEST(qp, bad_fields_are_refused)
{
	const struct rmem_qp_ext bad_ext = {.reserved = {[6] = UINT64_C(1) << 63}};
	const struct rmem_qp_conf good = fx_qp_conf(fx.a.cq, 1);
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);

	{
		const struct fx_bad_field rows[] = {
				FX_BAD(rmem_qp_conf, max_send_wr, info.max_send_wr + 1, EINVAL),
				FX_BAD(rmem_qp_conf, max_recv_wr, info.max_recv_wr + 1, EINVAL),
				FX_BAD(rmem_qp_conf, max_send_sge, info.max_send_sge + 1, EINVAL),
				FX_BAD(rmem_qp_conf, max_recv_sge, info.max_recv_sge + 1, EINVAL),
				FX_BAD(rmem_qp_conf, max_inline_data, info.max_inline_data + 1,
						EINVAL),
				FX_BAD(rmem_qp_conf, access, RMEM_ACCESS_LOCAL_WRITE, EINVAL),
				FX_BAD(rmem_qp_conf, access, RMEM_ACCESS_REMOTE | UINT32_C(1) << 31,
						EINVAL),
				{"reserved of ext", offsetof(struct rmem_qp_conf, ext),
						sizeof(void *), (uintptr_t)&bad_ext, EINVAL},
		};

		fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), create);
		return;
	}
}

TEST(qp, create_refuses_unknown_types_and_flags)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 1);

	for (conf.type = 0; conf.type < RMEM_QPT_XRC_SEND; conf.type++) {
		if (conf.type < RMEM_QPT_RC || conf.type > RMEM_QPT_UD)
			TEST_ERR(create(&conf), EINVAL);
	}
	conf.type = RMEM_QPT_RC;
	for (conf.flags = 8; conf.flags != 0; conf.flags = (uint16_t)(conf.flags << 1))
		TEST_ERR(create(&conf), EINVAL);
}

TEST(qp, smallest_and_largest_qp_are_created)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 1);
	struct rmem_dev_info info;

	conf.max_recv_wr = 0;
	conf.max_recv_sge = 0;
	conf.max_send_sge = 1;
	conf.max_inline_data = 0;
	conf.access = 0;
	fx_qp_by(fx.a.pd, &conf);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	conf.max_send_wr = info.max_send_wr;
	conf.max_recv_wr = info.max_recv_wr;
	conf.max_send_sge = (uint16_t)info.max_send_sge;
	conf.max_recv_sge = (uint16_t)info.max_recv_sge;
	conf.max_inline_data = info.max_inline_data;
	fx_qp_by(fx.a.pd, &conf);
}

TEST(qp, control_calls_refuse_null_and_wrong_handles)
{
	static uint64_t zeros[64] __rte_cache_aligned;
	struct rmem_qp *const wrong[] = {NULL, (struct rmem_qp *)zeros, (struct rmem_qp *)fx.a.cq};
	const struct rmem_qp_conn conn = fx_conn();
	struct rmem_qp_attr attr;
	unsigned int i;

	for (i = 0; i < RTE_DIM(wrong); i++) {
		TEST_ERR(rmem_qp_connect(wrong[i], &conn), EINVAL);
		TEST_ERR(rmem_qp_query(wrong[i], &attr), EINVAL);
		TEST_ERR(rmem_qp_set_error(wrong[i]), EINVAL);
		TEST_ERR(rmem_qp_reset(wrong[i]), EINVAL);
		TEST_ERR(rmem_qp_destroy(wrong[i]), wrong[i] == NULL ? 0 : EINVAL);
	}
	TEST_ERR(rmem_qp_query(fx.a.qp, NULL), EINVAL);
}

/* Nothing refers to a QP yet, so the count is set here. */
TEST(qp, destroy_of_a_referenced_qp_is_ebusy)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);

	__atomic_fetch_add(&fx.a.qp->obj.refs, 1, __ATOMIC_SEQ_CST);
	TEST_ERR(rmem_qp_destroy(fx.a.qp), EBUSY);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	__atomic_fetch_sub(&fx.a.qp->obj.refs, 1, __ATOMIC_SEQ_CST);
	TEST_OK(fx_release(fx.a.qp));
}

static struct rmem_qp *unconnected;

static int
connect_unconnected(const void *conn)
{
	int ret = rmem_qp_connect(unconnected, conn);

	TEST_EQ(fx_state(unconnected), ret == 0 ? RMEM_QPS_RTS : RMEM_QPS_RESET);
	return ret;
}

/* A QP number has 24 bits; a gid is that of some software device. */
TEST(qp, connect_refuses_bad_fields)
{
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_qp_conn, timeout, 32, EINVAL),
			FX_BAD(rmem_qp_conn, retry_cnt, 8, EINVAL),
			FX_BAD(rmem_qp_conn, rnr_retry, 8, EINVAL),
			FX_BAD(rmem_qp_conn, min_rnr_timer, 32, EINVAL),
			FX_BAD(rmem_qp_conn, reserved[10], 1, EINVAL),
			FX_BAD(rmem_qp_conn, remote.reserved[4], 1, EINVAL),
			FX_BAD(rmem_qp_conn, remote.qp_num, UINT32_C(1) << 24, EINVAL),
			FX_BAD(rmem_qp_conn, remote.qp_num, UINT32_MAX, EINVAL),
			FX_BAD(rmem_qp_conn, remote.gid[0], 0xff, EINVAL),
	};
	struct rmem_qp_conn good = fx_conn();
	struct rmem_qp_attr attr;

	unconnected = fx_qp(fx.a.pd, fx.a.cq, 4);
	TEST_OK(rmem_qp_query(fx.b.qp, &attr));
	good.remote = attr.addr;
	TEST_ERR(rmem_qp_connect(unconnected, NULL), EINVAL);
	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), connect_unconnected);
	good.timeout = 31;
	good.retry_cnt = 7;
	good.rnr_retry = 7;
	good.min_rnr_timer = 31;
	TEST_OK(connect_unconnected(&good));
}

TEST(qp, connected_qp_reports_its_peer_and_a_reset_one_none)
{
	static const struct rmem_qp_addr nowhere;
	struct rmem_dev_attr limits;
	struct rmem_qp_attr a, b;

	TEST_OK(rmem_dev_attr_get(fx.a.dev, &limits));
	TEST_OK(rmem_qp_query(fx.a.qp, &a));
	TEST_OK(rmem_qp_query(fx.b.qp, &b));
	TEST_EQ(a.state, RMEM_QPS_RTS);
	TEST_EQ(a.max_rd_atomic, limits.max_rd_atomic);
	TEST_EQ(a.max_dest_rd_atomic, limits.max_dest_rd_atomic);
	TEST_MEM(&a.remote, &b.addr, sizeof(a.remote));
	TEST_MEM(&b.remote, &a.addr, sizeof(b.remote));
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_query(fx.a.qp, &b));
	TEST_EQ(b.state, RMEM_QPS_RESET);
	TEST_MEM(&b.remote, &nowhere, sizeof(nowhere));
	TEST_MEM(&b.addr.gid, &a.addr.gid, sizeof(a.addr.gid));
	TEST_EQ(b.addr.qp_num, a.addr.qp_num);
}

TEST(qp, query_counts_queued_requests)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_qp_attr attr;
	int i;

	for (i = 0; i < 3; i++)
		TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	for (i = 0; i < 4; i++)
		TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_EQ(attr.send_queued, 3);
	TEST_EQ(attr.recv_queued, 4);
	for (i = 0; i < 3; i++) {
		TEST_EQ(fx_post_recv(fx.b.qp, (uint64_t)i, NULL, 0), 1);
		while (rmem_poll_cq(fx.b.cq, &fx.wc, 1) == 0)
			TEST_EQ(rmem_poll_cq(fx.a.cq, &fx.wc, 0), 0);
	}
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_EQ(attr.send_queued, 0);
	TEST_EQ(attr.recv_queued, 3);
}

TEST_SUITE(qp, fx_setup, fx_teardown);
