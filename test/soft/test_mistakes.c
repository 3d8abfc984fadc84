/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The table "Likely mistakes" of doc/errors.md: each is refused, and the cause is named. Other rows
 * are cases of test_vendor_err.c, test_qp_stats.c, test_dev.c, test_args.c, and of conformance.
 */

#include <string.h>

#include <rmem_lease.h>
#include <rmem_pool.h>

#include "fixture.h"

static void *out;

TEST(mistakes, configuration_that_is_not_zeroed)
{
	const struct rmem_qp_ext ext = {.reserved = {0xa5a5}};
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);

	conf.ext = &ext;
	FX_ERR_LOG(rmem_qp_create(fx.a.pd, &conf, (struct rmem_qp **)&out), EINVAL,
			"a reserved field is not zero");
}

TEST_CALL(mistakes, remote_write_without_local_write,
		FX_ERR_LOG(rmem_mr_reg(fx.a.pd, fx.a.buf, FX_PAGE, 0, RMEM_ACCESS_REMOTE_WRITE,
					   (struct rmem_mr **)&out),
				EINVAL, "LOCAL_WRITE"));
TEST_CALL(mistakes, handle_of_another_type,
		FX_ERR_LOG(rmem_mr_dereg((struct rmem_mr *)fx.a.qp), EINVAL, "expected a MR"));

TEST(mistakes, object_that_is_in_use)
{
	FX_ERR_LOG(rmem_pd_dealloc(fx.a.pd), EBUSY, "in use: ");
	FX_ERR_LOG(rmem_dev_close(fx.a.dev), EBUSY, "objects refer to it");
}

TEST(mistakes, number_over_a_limit)
{
	struct rmem_cq_conf conf = {.nb_cqe = UINT32_MAX};

	FX_ERR_LOG(rmem_cq_create(fx.a.dev, &conf, (struct rmem_cq **)&out), EINVAL,
			"nb_cqe out of range: 4294967295 (1 to ");
}

TEST(mistakes, connect_twice)
{
	const struct rmem_qp_conn conn = fx_conn();

	FX_ERR_LOG(rmem_qp_connect(fx.a.qp, &conn), EBUSY, "wrong state: 3 (must be RESET, 0)");
}

TEST(mistakes, lease_of_an_mr_of_another_pd)
{
	const struct rmem_lease_conf conf = {
			.max_leases = 4, .max_length = 4096, .socket_id = SOCKET_ID_ANY};
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_mr *mr = fx_mr(pd, fx.a.buf, FX_PAGE, FX_ACCESS);
	const struct rmem_lease_req req = {.mr = mr,
			.addr = fx.a.buf,
			.length = 64,
			.access = RMEM_ACCESS_REMOTE_READ};
	struct rmem_lease_ctx *ctx;
	struct rmem_lease *lease;

	TEST_OK(rmem_lease_ctx_create(fx.a.qp, &conf, &ctx));
	FX_ERR_LOG(rmem_lease_grant(ctx, &req, 1, &lease), EINVAL, "its PD is ");
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

TEST(mistakes, pool_with_buffers_in_use)
{
	const struct rmem_pool_conf conf = {.name = "mistaken",
			.nb_bufs = 4,
			.buf_size = 64,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_pool *pool;
	struct rmem_sge sge;

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	FX_ERR_LOG(rmem_pool_destroy(pool), EBUSY, "1 buffers not put back");
	rmem_pool_put_sges(pool, &sge, 1);
	TEST_OK(rmem_pool_destroy(pool));
}

TEST_SUITE(mistakes, fx_setup, fx_teardown);
