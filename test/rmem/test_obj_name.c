/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Names of objects: checked, kept, and written to the log. */

#include <stdlib.h>
#include <string.h>

#include <rmem_lease.h>
#include <rmem_pool.h>

#include "fixture.h"

#define LONGEST "0123456789012345678901234567890" /* RMEM_NAME_SIZE - 1 bytes */

static struct rmem_pd *
named_pd(const char *name)
{
	const struct rmem_pd_attr attr = {.name = name};
	struct rmem_pd *pd;

	if (rmem_pd_alloc_attr(fx.a.dev, &attr, &pd) != 0)
		return NULL;
	fx_track(pd);
	return pd;
}

static struct rmem_mr_attr
mr_attr(const char *name)
{
	return (struct rmem_mr_attr){
			.addr = fx.a.buf, .length = FX_PAGE, .access = FX_ACCESS, .name = name};
}

TEST(obj_name, name_is_kept)
{
	const struct rmem_mr_attr attr = mr_attr("bufs");
	struct rmem_cq_conf cq_conf = {.nb_cqe = 4, .name = "cq of b"};
	struct rmem_srq_conf srq_conf = {.max_wr = 1, .name = "srq"};
	struct rmem_qp_conf qp_conf = fx_qp_conf(fx.a.cq, 4);
	struct rmem_pd *pd = named_pd(LONGEST);
	struct rmem_srq *srq;
	struct rmem_mr *mr;
	struct rmem_qp *qp;
	struct rmem_cq *cq;

	TEST_ASSERT(pd != NULL && strcmp(rmem_pd_name(pd), LONGEST) == 0);
	TEST_OK(fx_reg_attr(pd, &attr, &mr));
	TEST_ASSERT(strcmp(rmem_mr_name(mr), "bufs") == 0);
	cq = fx_cq_by(fx.a.dev, &cq_conf);
	TEST_ASSERT(strcmp(rmem_cq_name(cq), "cq of b") == 0);
	TEST_OK(rmem_srq_create(pd, &srq_conf, &srq));
	fx_track(srq);
	TEST_ASSERT(strcmp(rmem_srq_name(srq), "srq") == 0);
	qp_conf.name = "uplink";
	qp = fx_qp_by(pd, &qp_conf);
	TEST_ASSERT(strcmp(rmem_qp_name(qp), "uplink") == 0);
}

TEST(obj_name, object_without_a_name_has_an_empty_one)
{
	TEST_ASSERT(rmem_pd_name(fx.a.pd)[0] == '\0' && rmem_mr_name(fx.a.mr)[0] == '\0');
	TEST_ASSERT(rmem_cq_name(fx.a.cq)[0] == '\0' && rmem_qp_name(fx.a.qp)[0] == '\0');
	TEST_ASSERT(rmem_pd_name(NULL)[0] == '\0' && rmem_mr_name(NULL)[0] == '\0');
	TEST_ASSERT(rmem_cq_name(NULL)[0] == '\0' && rmem_qp_name(NULL)[0] == '\0');
	TEST_ASSERT(rmem_srq_name(NULL)[0] == '\0' && rmem_lease_ctx_name(NULL)[0] == '\0');
	TEST_ASSERT(rmem_mr_name((struct rmem_mr *)fx.a.qp)[0] == '\0');
}

/* Objects of each kind are refused with a bad name; nothing is created. */
static void
expect_refused(const char *name)
{
	const struct rmem_pd_attr pd_attr = {.name = name};
	const struct rmem_mr_attr attr = mr_attr(name);
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4, .name = name};
	const struct rmem_srq_conf srq_conf = {.max_wr = 1, .name = name};
	const struct rmem_lease_conf lease_conf = {.max_length = 1, .name = name};
	struct rmem_qp_conf qp_conf = fx_qp_conf(fx.a.cq, 4);
	void *out;

	qp_conf.name = name;
	TEST_ERR(rmem_name_check(name), EINVAL);
	TEST_ERR(rmem_pd_alloc_attr(fx.a.dev, &pd_attr, (struct rmem_pd **)&out), EINVAL);
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, (struct rmem_mr **)&out), EINVAL);
	TEST_ERR(rmem_cq_create(fx.a.dev, &cq_conf, (struct rmem_cq **)&out), EINVAL);
	TEST_ERR(rmem_srq_create(fx.a.pd, &srq_conf, (struct rmem_srq **)&out), EINVAL);
	TEST_ERR(rmem_qp_create(fx.a.pd, &qp_conf, (struct rmem_qp **)&out), EINVAL);
	TEST_ERR(rmem_lease_ctx_create(fx.a.qp, &lease_conf, (struct rmem_lease_ctx **)&out),
			EINVAL);
}

TEST(obj_name, name_that_is_too_long_is_refused)
{
	expect_refused(LONGEST "x");
	FX_ERR_LOG(rmem_name_check(LONGEST "x and more"), EINVAL, "up to 31 bytes");
}

TEST(obj_name, name_that_is_not_printable_is_refused)
{
	expect_refused("a\nb");
	expect_refused("\x7f");
	TEST_OK(rmem_name_check(NULL));
	TEST_OK(rmem_name_check(""));
}

TEST(obj_name, pd_attributes_are_checked)
{
	struct rmem_pd_attr attr = {.name = NULL};
	struct rmem_pd *pd = NULL;

	TEST_ERR(rmem_pd_alloc_attr(NULL, &attr, &pd), EINVAL);
	TEST_ERR(rmem_pd_alloc_attr(fx.a.dev, NULL, &pd), EINVAL);
	TEST_ERR(rmem_pd_alloc_attr(fx.a.dev, &attr, NULL), EINVAL);
	attr.reserved[2] = 1;
	TEST_ERR(rmem_pd_alloc_attr(fx.a.dev, &attr, &pd), EINVAL);
	TEST_ASSERT(pd == NULL);
}

TEST(obj_name, name_is_in_the_log)
{
	const struct rmem_mr_attr attr = mr_attr("bufs");
	struct rmem_pd *pd = named_pd("storage");
	struct rmem_name_text text;
	struct rmem_mr *mr;

	TEST_ASSERT(pd != NULL);
	TEST_OK(fx_reg_attr(pd, &attr, &mr));
	FX_ERR_LOG(rmem_pd_dealloc(pd), EBUSY, " \"storage\": in use: 1 references");
	TEST_ASSERT(strcmp(rmem_name_text("bufs", &text), " \"bufs\"") == 0);
	TEST_ASSERT(rmem_name_text("", &text)[0] == '\0');
}

TEST(obj_name, name_of_a_qp_is_in_the_log)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);
	struct rmem_qp *qp;

	conf.name = "uplink";
	qp = fx_qp_by(fx.a.pd, &conf);
	FX_ERR_LOG(rmem_qp_set_error(qp), EBUSY, " \"uplink\": wrong state");
}

TEST(obj_name, shared_mr_and_mr_of_a_pool_inherit_the_name)
{
	const struct rmem_pool_conf conf = {.name = "named_pool",
			.nb_bufs = 4,
			.buf_size = 64,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	const struct rmem_mr_attr attr = mr_attr("bufs");
	struct rmem_mr *mr, *shared;
	struct rmem_pool *pool;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, 0, FX_ACCESS, &shared));
	fx_track(shared);
	TEST_ASSERT(strcmp(rmem_mr_name(shared), "bufs") == 0);
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	TEST_ASSERT(strcmp(rmem_mr_name(pool->mrs[0]), "named_pool") == 0);
	TEST_OK(rmem_pool_destroy(pool));
}

TEST_SUITE(obj_name, fx_setup, fx_teardown);
