/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Checks of the inline functions with RMEM_DEBUG, which this file defines. */

#undef RMEM_DEBUG
#define RMEM_DEBUG 1

#include <rmem_pool.h>

#include "fixture.h"

static uint64_t zeros[64] __rte_cache_aligned;

TEST(debug, post_send_refuses_null_and_wrong_handles)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);

	TEST_ERR(rmem_post_send(NULL, &wr, 1), EINVAL);
	TEST_ERR(rmem_post_send((struct rmem_qp *)zeros, &wr, 1), EINVAL);
	TEST_ERR(rmem_post_send((struct rmem_qp *)fx.a.cq, &wr, 1), EINVAL);
	TEST_ERR(rmem_post_send(fx.a.qp, NULL, 1), EINVAL);
	TEST_EQ(rmem_post_send(fx.a.qp, NULL, 0), 0);
	TEST_EQ(rmem_post_send(fx.a.qp, &wr, 1), 1);
}

TEST(debug, post_recv_refuses_null_and_wrong_handles)
{
	const struct rmem_recv_wr wr = {.wr_id = 1};

	TEST_ERR(rmem_post_recv(NULL, &wr, 1), EINVAL);
	TEST_ERR(rmem_post_recv((struct rmem_qp *)zeros, &wr, 1), EINVAL);
	TEST_ERR(rmem_post_recv((struct rmem_qp *)fx.a.cq, &wr, 1), EINVAL);
	TEST_ERR(rmem_post_recv(fx.a.qp, NULL, 1), EINVAL);
	TEST_EQ(rmem_post_recv(fx.a.qp, NULL, 0), 0);
	TEST_EQ(rmem_post_recv(fx.a.qp, &wr, 1), 1);
}

TEST(debug, srq_post_recv_refuses_null_and_wrong_handles)
{
	const struct rmem_srq_conf conf = {.max_wr = 4, .max_sge = 1};
	const struct rmem_recv_wr wr = {.wr_id = 1};
	struct rmem_srq *srq;

	TEST_OK(rmem_srq_create(fx.a.pd, &conf, &srq));
	TEST_ERR(rmem_srq_post_recv(NULL, &wr, 1), EINVAL);
	TEST_ERR(rmem_srq_post_recv((struct rmem_srq *)zeros, &wr, 1), EINVAL);
	TEST_ERR(rmem_srq_post_recv((struct rmem_srq *)fx.a.qp, &wr, 1), EINVAL);
	TEST_ERR(rmem_srq_post_recv(srq, NULL, 1), EINVAL);
	TEST_EQ(rmem_srq_post_recv(srq, NULL, 0), 0);
	TEST_EQ(rmem_srq_post_recv(srq, &wr, 1), 1);
	TEST_OK(rmem_srq_destroy(srq));
}

TEST(debug, poll_cq_refuses_null_and_wrong_handles)
{
	struct rmem_wc wc;

	TEST_ERR(rmem_poll_cq(NULL, &wc, 1), EINVAL);
	TEST_ERR(rmem_poll_cq((struct rmem_cq *)zeros, &wc, 1), EINVAL);
	TEST_ERR(rmem_poll_cq((struct rmem_cq *)fx.a.qp, &wc, 1), EINVAL);
	TEST_ERR(rmem_poll_cq(fx.a.cq, NULL, 1), EINVAL);
	TEST_EQ(rmem_poll_cq(fx.a.cq, NULL, 0), 0);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &wc, 1), 0);
}

TEST(debug, pool_get_refuses_null_and_wrong_handles)
{
	const struct rmem_pool_conf conf = {.name = "debug", .nb_bufs = 4, .buf_size = 64};
	struct rmem_pool *pool = NULL;
	struct rmem_sge sge = {0};

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_pool_get_sges(NULL, &sge, 1), EINVAL);
	TEST_ERR(rmem_pool_get_sges((struct rmem_pool *)zeros, &sge, 1), EINVAL);
	TEST_ERR(rmem_pool_get_sges((struct rmem_pool *)fx.a.qp, &sge, 1), EINVAL);
	TEST_ERR(rmem_pool_get_sges(pool, NULL, 1), EINVAL);
	TEST_OK(rmem_pool_get_sges(pool, NULL, 0));
	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	rmem_pool_put_sges(pool, &sge, 1);
	TEST_OK(rmem_pool_destroy(pool));
}

TEST_SUITE(debug, fx_setup, fx_teardown);
