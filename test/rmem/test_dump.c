/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* rmem_*_dump() prints the properties of each object, by name and value. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmem_lease.h>
#include <rmem_pool.h>
#include <rmem_telemetry.h>

#include "fixture.h"

static char *text; /* of the last dump; freed at the next */
static size_t text_size;

static FILE *
open_text(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &text_size);
}

/* Whether the last dump has a line, indented or not. */
static bool
has_line(const char *line)
{
	const char *at = text;
	size_t len = strlen(line);

	for (; at != NULL && (at = strstr(at, line)) != NULL; at++) {
		if ((at == text || at[-1] == ' ' || at[-1] == '\n') && at[len] == '\n')
			return true;
	}
	printf("no line \"%s\" in:\n%s", line, text);
	return false;
}

/* Functions that dump an object into text; the result of the call. */
#define DUMPER(object)                                                                             \
	static int dump_##object(struct rmem_##object *handle)                                     \
	{                                                                                          \
		FILE *f = open_text();                                                             \
		int ret = rmem_##object##_dump(handle, f);                                         \
                                                                                                   \
		fclose(f);                                                                         \
		return ret;                                                                        \
	}

DUMPER(cq)
DUMPER(lease_ctx)
DUMPER(mr)
DUMPER(mw)
DUMPER(pd)
DUMPER(pool)
DUMPER(qp)
DUMPER(srq)

TEST(dump, pd_mr_mw_and_srq_are_printed)
{
	const struct rmem_mr_attr attr = {
			.addr = fx.a.buf, .length = 4096, .access = FX_ACCESS, .name = "bufs"};
	const struct rmem_srq_conf conf = {.max_wr = 4, .max_sge = 1, .name = "shared"};
	struct rmem_mw *mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	char line[64];
	struct rmem_srq *srq;
	struct rmem_mr *mr;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(dump_mr(mr));
	TEST_ASSERT(has_line("MR:") && has_line("name: bufs") && has_line("length: 4096"));
	snprintf(line, sizeof(line), "rkey: 0x%x", mr->rkey);
	TEST_ASSERT(has_line(line) && has_line("state: VALID") && has_line("type: user"));
	TEST_OK(dump_mw(mw));
	snprintf(line, sizeof(line), "rkey: 0x%x", mw->rkey);
	TEST_ASSERT(has_line("MW:") && has_line(line) && has_line("type: 2"));
	TEST_OK(dump_pd(fx.a.pd));
	TEST_ASSERT(has_line("PD:") && has_line("device: soft0"));
	TEST_OK(rmem_srq_create(fx.a.pd, &conf, &srq));
	fx_track(srq);
	TEST_OK(dump_srq(srq));
	TEST_ASSERT(has_line("SRQ:") && has_line("name: shared") && has_line("used: 0"));
}

TEST(dump, qp_is_printed_with_its_last_error)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), UINT32_MAX);
	char line[64];

	TEST_OK(dump_qp(fx.a.qp));
	TEST_ASSERT(has_line("QP:") && has_line("state: RTS") &&
			strstr(text, "last_error") == NULL);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
	TEST_OK(dump_qp(fx.a.qp));
	TEST_ASSERT(has_line("last_error:") && has_line("status: REM_ACCESS_ERR"));
	TEST_ASSERT(has_line("cause: KEY_INDEX") && has_line("key: 0xffffffff"));
	snprintf(line, sizeof(line), "peer_qp_num: %u", fx.b.qp->qp_num);
	TEST_ASSERT(has_line(line) && has_line("side: send") && has_line("errors: 1"));
	TEST_OK(dump_cq(fx.a.cq));
	TEST_ASSERT(has_line("CQ:") && has_line("overruns: 0"));
}

/* A get of more than the cache has fills the cache too. */
TEST(dump, low_water_of_a_pool_is_that_after_its_largest_get)
{
	const struct rmem_pool_conf conf = {.name = "dumped",
			.nb_bufs = 64,
			.buf_size = 64,
			.cache_size = 8,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_pool *pool;
	struct rmem_sge sge[48];

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	TEST_OK(rmem_pool_get_sges(pool, sge, RTE_DIM(sge)));
	rmem_pool_put_sges(pool, sge, RTE_DIM(sge));
	TEST_OK(dump_pool(pool));
	TEST_ASSERT(has_line("low_water: 8") && has_line("failed_gets: 0"));
	TEST_OK(rmem_pool_destroy(pool));
}

TEST(dump, pool_is_printed_with_low_water_and_failed_gets)
{
	const struct rmem_pool_conf conf = {.name = "dumped",
			.nb_bufs = 8,
			.buf_size = 64,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_pool *pool;
	struct rmem_sge sge[9];

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	TEST_OK(dump_pool(pool));
	TEST_ASSERT(has_line("name: dumped") && has_line("low_water: 8"));
	TEST_OK(rmem_pool_get_sges(pool, sge, 6));
	TEST_ERR(rmem_pool_get_sges(pool, &sge[6], 3), ENOENT);
	rmem_pool_put_sges(pool, sge, 6);
	TEST_OK(dump_pool(pool));
	TEST_ASSERT(has_line("low_water: 2") && has_line("failed_gets: 1"));
	TEST_ASSERT(has_line("available: 8") && has_line("registrations:"));
	TEST_ERR(rmem_pool_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_pool_dump((struct rmem_pool *)fx.a.qp, stdout), EINVAL);
	TEST_ERR(rmem_pool_dump(pool, NULL), EINVAL);
	TEST_OK(rmem_pool_destroy(pool));
}

/* Grant two leases of the buffer of a, print the context, and destroy it. */
static void
dump_leases(struct rmem_lease_ctx *ctx)
{
	struct rmem_lease_req req[2] = {{.mr = fx.a.mr,
			.addr = fx.a.buf,
			.length = 64,
			.access = RMEM_ACCESS_REMOTE_READ}};
	struct rmem_lease *lease[2];
	struct rmem_wc wc;
	char line[64];

	req[1] = req[0];
	TEST_EQ(rmem_lease_grant(ctx, req, 2, lease), 2);
	req[0].length = 0;
	TEST_ERR(rmem_lease_grant(ctx, req, 1, &lease[1]), EINVAL);
	TEST_OK(dump_lease_ctx(ctx));
	snprintf(line, sizeof(line), "rkey: 0x%x", lease[0]->rkey);
	TEST_ASSERT(has_line("name: leases") && has_line("granted: 2") && has_line(line));
	TEST_ASSERT(has_line("granted_since: 1") && has_line("refused: 1"));
	snprintf(line, sizeof(line), "0x%x: 2", fx.a.mr->rkey);
	TEST_ASSERT(has_line(line) && strstr(text, "reason: 0 bytes at") != NULL);
	TEST_OK(rmem_lease_revoke(ctx, lease, 1));
	while (rmem_lease_reclaim(ctx, lease, 1) != 1)
		TEST_ASSERT(rmem_lease_poll(ctx, &wc, 1) >= 0);
	TEST_OK(dump_lease_ctx(ctx));
	TEST_ASSERT(has_line("granted_since: 0") && has_line("leases: 1"));
}

TEST(dump, lease_context_is_printed_with_the_oldest_lease)
{
	const struct rmem_lease_conf conf = {.max_leases = 4,
			.max_length = 4096,
			.socket_id = SOCKET_ID_ANY,
			.name = "leases"};
	struct rmem_lease_ctx *ctx;
	struct rmem_lease *lease;

	TEST_OK(rmem_lease_ctx_create(fx.a.qp, &conf, &ctx));
	TEST_ASSERT(strcmp(rmem_lease_ctx_name(ctx), "leases") == 0);
	dump_leases(ctx);
	TEST_ERR(rmem_lease_ctx_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_lease_ctx_dump(ctx, NULL), EINVAL);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_lease_recover(ctx));
	TEST_EQ(rmem_lease_reclaim(ctx, &lease, 1), 1);
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

TEST(dump, groups_of_a_report_are_indented)
{
	struct rmem_report top = {.f = open_text()}, group;

	rmem_report_text(&top, "kind", "test");
	rmem_report_begin(&top, &group, "group");
	rmem_report_uint(&group, "number", 7);
	rmem_report_bits(&group, "bits", 0x1f);
	rmem_report_end(&top, &group, "group");
	fclose(top.f);
	TEST_ASSERT(strcmp(text, "kind: test\ngroup:\n  number: 7\n  bits: 0x1f\n") == 0);
}

TEST(dump, invalid_arguments_are_refused)
{
	TEST_ERR(rmem_pd_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_mr_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_mw_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_cq_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_srq_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_qp_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_qp_dump((struct rmem_qp *)fx.a.cq, stdout), EINVAL);
	TEST_ERR(rmem_qp_dump(fx.a.qp, NULL), EINVAL);
	TEST_ERR(rmem_mr_dump(fx.a.mr, NULL), EINVAL);
}

static void
teardown(void)
{
	free(text);
	text = NULL;
	fx_teardown();
}

TEST_SUITE(dump, fx_setup, teardown);
