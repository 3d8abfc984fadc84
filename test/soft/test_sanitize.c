/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* sanitize=1: the log of a failure has the requests and calls that made and ended its key. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"

/* Two sides of a device with that argument. */
static void
open_sides(const char *args)
{
	fx_sides_open(fx_dev("soft0", args));
}

/* The log of a WRITE of b with a key of a that is refused. */
static const char *
log_of_write(uint64_t addr, uint32_t rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, addr, rkey);
	const char *log;
	int status;

	fx_log_begin();
	status = fx_send(fx.b.qp, &wr);
	log = fx_log_end();
	return status == RMEM_WC_REM_ACCESS_ERR ? log : "";
}

static int
reg_named(const char *name, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {
			.addr = fx.a.buf, .length = FX_PAGE, .access = FX_ACCESS, .name = name};

	return rmem_mr_reg_attr(fx.a.pd, &attr, mr);
}

TEST(sanitize, key_of_a_deregistered_mr)
{
	struct rmem_mr *mr;
	const char *log;
	char text[64];
	uint32_t rkey;

	open_sides("sanitize=1");
	TEST_OK(reg_named("bufs", &mr));
	rkey = mr->rkey;
	TEST_OK(rmem_mr_dereg(mr));
	log = log_of_write(fx_addr(fx.a.buf), rkey);
	snprintf(text, sizeof(text), "sanitize: QP 0x%06x", fx.a.qp->qp_num);
	TEST_TEXT(log, text);
	snprintf(text, sizeof(text), "failed: key 0x%08x: KEY_STATE; MR `bufs`; dereg", rkey);
	TEST_TEXT(log, text);
	TEST_TEXT(log, " us ago by lcore ");
	TEST_ASSERT(strstr(log, "; registered ") != NULL);
	TEST_ASSERT(strstr(log, "request 0x") == NULL);
}

/* Its slot is not that of its index. */
TEST(sanitize, requested_key_of_a_deregistered_mr)
{
	struct rmem_mr_attr attr = {.length = FX_PAGE,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY,
			.requested_key = UINT32_C(0x12345678)};
	struct rmem_mr *mr;
	const char *log;
	int i;

	open_sides("sanitize=1");
	attr.addr = fx.a.buf;
	for (i = 0; i < 2; i++) {
		attr.name = i == 0 ? "former" : "asked";
		TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mr));
		TEST_OK(rmem_mr_dereg(mr));
	}
	log = log_of_write(fx_addr(fx.a.buf), (uint32_t)attr.requested_key);
	TEST_ASSERT(strstr(log, "; MR `asked`; deregistered ") != NULL);
	TEST_ASSERT(strstr(log, "; registered ") != NULL);
}

/* A key over the first page of a's buffer. */
static uint32_t
bind_page(void)
{
	struct rmem_mr *mr = fx_fast_mr(fx.a.pd, 1);
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	struct rmem_send_wr wr;

	fx_list_pages(list, fx.a.buf, 1);
	wr = fx_reg(mr, list, 1, fx_addr(fx.a.buf), FX_PAGE);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	return mr->rkey;
}

TEST(sanitize, key_that_a_request_invalidated)
{
	const char *log, *ended, *made;
	struct rmem_send_wr wr;
	char text[64];
	uint32_t rkey;

	open_sides("sanitize=1");
	rkey = bind_page();
	wr = fx_inv(rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	snprintf(text, sizeof(text), ", request 0x%" PRIx64 " of QP 0x%06x; bound ", fx.wc.wr_id,
			fx.a.qp->qp_num);
	log = log_of_write(fx_addr(fx.a.buf), rkey);
	TEST_TEXT(log, text);
	snprintf(text, sizeof(text), " of QP 0x%06x", fx.a.qp->qp_num);
	ended = strstr(log, "; invalidated ");
	made = strstr(log, "; bound ");
	TEST_ASSERT(ended != NULL && made != NULL && ended < made);
	TEST_ASSERT(strstr(ended, text) < made && strstr(made, text) != NULL);
}

/* By a SEND_WITH_INV. */
TEST(sanitize, key_that_the_peer_invalidated)
{
	struct rmem_send_wr wr;
	const char *log;
	char text[64];
	uint32_t rkey;

	open_sides("sanitize=1");
	rkey = bind_page();
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
	wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);
	wr.invalidate_rkey = rkey;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	log = log_of_write(fx_addr(fx.a.buf), rkey);
	snprintf(text, sizeof(text), ", request of the peer of QP 0x%06x; bound ", fx.a.qp->qp_num);
	TEST_TEXT(log, text);
}

TEST(sanitize, key_that_nothing_had)
{
	open_sides("sanitize=1");
	TEST_TEXT(log_of_write(fx_addr(fx.a.buf), UINT32_MAX),
			"no MR or window of this device had it");
}

/* The key of an SGE is an lkey. */
TEST(sanitize, lkey_of_a_deregistered_mr)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_mr *mr;
	const char *log;
	int status;

	open_sides("sanitize=1");
	TEST_OK(reg_named("own", &mr));
	sge = fx_sge(mr, 0, 8);
	TEST_OK(rmem_mr_dereg(mr));
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	fx_log_begin();
	status = fx_send(fx.a.qp, &wr);
	log = fx_log_end();
	TEST_STATUS(status, RMEM_WC_LOC_PROT_ERR);
	TEST_TEXT(log, ": request (LOC_PROT_ERR) failed");
	TEST_ASSERT(strstr(log, "; MR `own`; deregistered ") != NULL);
}

/* The last status of a WRITE of b to a, and its log. */
static int
write_with(const char **log, uint32_t lkey, uint32_t rkey)
{
	const struct rmem_sge sge = {fx_addr(fx.b.buf), 8, lkey};
	const struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), rkey);
	int status;

	fx_log_begin();
	status = fx_send(fx.b.qp, &wr);
	*log = fx_log_end();
	fx_reconnect();
	return status;
}

TEST(sanitize, lkey_and_rkey_mixed_up)
{
	const char *log;
	char text[96];

	open_sides("sanitize=1");
	TEST_STATUS(write_with(&log, fx.b.mr->lkey, fx.a.mr->lkey), RMEM_WC_REM_ACCESS_ERR);
	snprintf(text, sizeof(text),
			"KEY_TAG; an lkey given as rkey: the rkey is 0x%08x; registered",
			fx.a.mr->rkey);
	TEST_TEXT(log, text);
	TEST_STATUS(write_with(&log, fx.b.mr->rkey, fx.a.mr->rkey), RMEM_WC_LOC_PROT_ERR);
	snprintf(text, sizeof(text),
			"KEY_TAG; an rkey given as lkey: the lkey is 0x%08x; registered",
			fx.b.mr->lkey);
	TEST_TEXT(log, text);
	TEST_STATUS(write_with(&log, fx.b.mr->lkey, fx.a.mr->rkey ^ 1), RMEM_WC_REM_ACCESS_ERR);
	TEST_ASSERT(strstr(log, "sanitize: ") != NULL && strstr(log, " given as ") == NULL);
}

/* Requested keys share an index; the key need not be the one registered last. */
TEST(sanitize, requested_keys_mixed_up)
{
	struct rmem_mr_attr attr = {
			.length = FX_PAGE, .access = FX_ACCESS, .flags = RMEM_MR_REQUESTED_KEY};
	struct rmem_mr *mr[3];
	const char *log;
	unsigned int i;

	open_sides("sanitize=1");
	attr.addr = fx.a.buf;
	for (i = 0; i < RTE_DIM(mr); i++) {
		attr.requested_key = 0x100 + i;
		TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mr[i]));
	}
	TEST_STATUS(write_with(&log, fx.b.mr->lkey, mr[0]->lkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_ASSERT(strstr(log, "an lkey given as rkey: the rkey is 0x00000100;") != NULL);
	for (i = 0; i < RTE_DIM(mr); i++)
		TEST_OK(rmem_mr_dereg(mr[i]));
}

/* Also with keys=same. */
TEST(sanitize, rkey_of_a_window_as_lkey)
{
	static const char *const args[] = {"sanitize=1", "sanitize=1,keys=same"};
	struct rmem_mw *mw;
	const char *log;
	unsigned int i;

	for (i = 0; i < RTE_DIM(args); i++) {
		open_sides(args[i]);
		TEST_OK(rmem_mw_alloc(fx.b.pd, RMEM_MW_TYPE_2, &mw));
		fx_track(mw);
		TEST_STATUS(write_with(&log, mw->rkey, fx.a.mr->rkey), RMEM_WC_LOC_PROT_ERR);
		TEST_ASSERT(strstr(log, "; an rkey given as lkey: windows have no lkey") != NULL);
		fx_teardown();
	}
}

TEST(sanitize, is_off_by_default)
{
	struct rmem_dev *dev;

	open_sides(NULL);
	TEST_ASSERT(strstr(log_of_write(fx_addr(fx.a.buf), UINT32_MAX), "sanitize") == NULL);
	TEST_ERR(rmem_dev_create("soft1", "sanitize=3", &dev), EINVAL);
}

TEST_SUITE(sanitize, fx_setup_none, fx_teardown);
