/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The table "Likely mistakes" of doc/errors.md: each is refused, and the cause is named. Other rows
 * are cases of test_vendor_err.c, test_qp_stats.c, test_dev.c and test_args.c.
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

TEST(mistakes, post_before_connect)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 4);

	TEST_ERR(rmem_post_send(qp, &wr, 1), EBUSY);
}

TEST(mistakes, connect_twice)
{
	const struct rmem_qp_conn conn = fx_conn();

	FX_ERR_LOG(rmem_qp_connect(fx.a.qp, &conn), EBUSY, "wrong state: 3 (must be RESET, 0)");
}

/* A WRITE of a ends with this status and cause. */
static void
expect(const struct rmem_send_wr *wr, int status, const char *cause)
{
	TEST_STATUS(fx_send(fx.a.qp, wr), status);
	TEST_ASSERT(strcmp(rmem_wc_vendor_err_str(fx.wc.vendor_err), cause) == 0);
}

TEST(mistakes, wrong_keys_and_addresses)
{
	const struct rmem_mr *foreign = fx_mr(fx_pd(fx.a.dev), fx.a.buf, FX_PAGE, FX_ACCESS);
	const struct rmem_mr *weak = fx_mr(fx.b.pd, fx.b.buf, FX_PAGE, RMEM_ACCESS_LOCAL_WRITE);
	struct rmem_mr *gone = fx_mr(fx.b.pd, fx.b.buf, FX_PAGE, FX_ACCESS);
	const uint32_t lkey = fx.a.mr->lkey, rkey = fx.b.mr->rkey;
	const uint64_t at = fx_addr(fx.b.buf);
	const struct {
		uint32_t lkey;
		uint32_t rkey;
		uint64_t addr;
		int status;
		const char *cause;
	} rows[] = {
			{lkey, fx.b.mr->lkey, at, RMEM_WC_REM_ACCESS_ERR, "KEY_TAG"}, /* an lkey */
			{fx.a.mr->rkey, rkey, at, RMEM_WC_LOC_PROT_ERR, "KEY_TAG"},   /* an rkey */
			{lkey, rkey, 0, RMEM_WC_REM_ACCESS_ERR, "KEY_RANGE"}, /* an offset */
			{lkey, weak->rkey, at, RMEM_WC_REM_ACCESS_ERR, "KEY_RIGHT"},
			{foreign->lkey, rkey, at, RMEM_WC_LOC_PROT_ERR, "KEY_PD"},
	};
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		sge.lkey = rows[i].lkey;
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, rows[i].addr, rows[i].rkey);
		expect(&wr, rows[i].status, rows[i].cause);
		fx_reconnect();
	}
	sge.lkey = lkey;
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, at, gone->rkey);
	TEST_OK(fx_release(gone));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
	TEST_ASSERT(fx.wc.vendor_err == RMEM_VENDOR_ERR_KEY_STATE ||
			fx.wc.vendor_err == RMEM_VENDOR_ERR_KEY_INDEX);
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
