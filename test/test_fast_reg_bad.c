/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * What is wrong with a REG_MR or a LOCAL_INV is told by MW_BIND_ERR, moves the QP to ERR, and
 * leaves the MR as it was (doc/driver_soft.md).
 */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define ALL (FX_FAST_PAGES * FX_PAGE)

static struct rmem_send_wr
good_reg(void)
{
	return fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES, fx_addr(fx.fast.pages), ALL);
}

/* The MR stays FREE, its keys open nothing, and a good REG_MR binds it still. */
static int
expect_reg_refused(const struct rmem_send_wr *wr)
{
	TEST_RUN(fx_expect_refusal(wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	TEST_STATUS(fx_peer_write(wr->reg_mr.iova, 1, fx.fast.mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	fx_list_pages(fx.fast.list, fx.fast.pages, FX_FAST_PAGES);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg_bad, reg_of_length_zero_is_refused)
{
	struct rmem_send_wr wr = good_reg();

	wr.reg_mr.length = 0;
	return expect_reg_refused(&wr);
}

TEST(fastreg_bad, reg_of_more_than_the_pages_hold_is_refused)
{
	struct rmem_send_wr wr = good_reg();

	wr.reg_mr.length++;
	TEST_RUN(expect_reg_refused(&wr));
	/* The part of the first page before the first byte counts. */
	wr = fx_reg(fx.fast.mr, fx.fast.list, 2, 0x1001, 2 * FX_PAGE);
	TEST_RUN(expect_reg_refused(&wr));
	wr.reg_mr.length = UINT32_MAX;
	TEST_RUN(expect_reg_refused(&wr));
	return TEST_SUCCESS;
}

TEST(fastreg_bad, reg_of_no_page_is_refused)
{
	struct rmem_send_wr wr = good_reg();

	wr.reg_mr.page_list_len = 0;
	return expect_reg_refused(&wr);
}

TEST(fastreg_bad, reg_of_more_pages_than_the_mr_takes_is_refused)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, FX_FAST_PAGES + 1);
	struct rmem_send_wr wr = good_reg();
	uint8_t *pages = fx_mem(FX_PAGE, ALL + FX_PAGE);

	TEST_ASSERT(list != NULL);
	fx_list_pages(list, pages, FX_FAST_PAGES + 1);
	wr.reg_mr.page_list = list;
	wr.reg_mr.page_list_len = FX_FAST_PAGES + 1;
	return expect_reg_refused(&wr);
}

TEST(fastreg_bad, reg_of_more_pages_than_the_list_has_is_refused)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 3);
	struct rmem_send_wr wr = good_reg();

	TEST_ASSERT(list != NULL);
	fx_list_pages(list, fx.fast.pages, 3);
	/* What is behind its end would do for a page. */
	list->max_page_list_len = 2;
	wr.reg_mr.page_list = list;
	wr.reg_mr.page_list_len = 3;
	wr.reg_mr.length = 2 * FX_PAGE;
	return expect_reg_refused(&wr);
}

TEST(fastreg_bad, reg_of_a_null_page_is_refused)
{
	struct rmem_send_wr wr = good_reg();

	fx.fast.list->page_list[3] = 0;
	TEST_RUN(expect_reg_refused(&wr));
	fx.fast.list->page_list[0] = 0;
	return expect_reg_refused(&wr);
}

TEST(fastreg_bad, reg_of_an_unaligned_page_is_refused)
{
	struct rmem_send_wr wr = good_reg();

	fx.fast.list->page_list[7] += 1;
	TEST_RUN(expect_reg_refused(&wr));
	fx.fast.list->page_list[0] += FX_PAGE / 2;
	TEST_RUN(expect_reg_refused(&wr));
	/* Aligned for pages of 4 KiB is not aligned for those of 8 KiB. */
	wr.reg_mr.log2_page_size = 13;
	wr.reg_mr.iova = 0;
	wr.reg_mr.first_byte_offset = 0;
	fx.fast.list->page_list[0] += fx.fast.list->page_list[0] % 8192 == 0 ? FX_PAGE : 0;
	return expect_reg_refused(&wr);
}

TEST(fastreg_bad, reg_of_a_first_byte_outside_the_first_page_is_refused)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 2, 0x1010, 100);

	wr.reg_mr.first_byte_offset = FX_PAGE;
	TEST_RUN(expect_reg_refused(&wr));
	wr.reg_mr.first_byte_offset = 0x10 + FX_PAGE;
	TEST_RUN(expect_reg_refused(&wr));
	wr.reg_mr.first_byte_offset = UINT32_MAX;
	return expect_reg_refused(&wr);
}

/* A key that starts at 0 has no other address. */
TEST(fastreg_bad, zero_based_reg_with_an_iova_is_refused)
{
	struct rmem_send_wr wr = good_reg();

	wr.reg_mr.access = FX_ACCESS | RMEM_ACCESS_ZERO_BASED;
	return expect_reg_refused(&wr);
}

TEST(fastreg_bad, reg_of_an_iova_that_wraps_is_refused)
{
	struct rmem_send_wr wr = fx_reg(
			fx.fast.mr, fx.fast.list, 2, UINT64_MAX - (FX_PAGE - 1), FX_PAGE + 1);

	return expect_reg_refused(&wr);
}

TEST(fastreg_bad, reg_of_an_unknown_page_size_is_refused)
{
	static const uint8_t sizes[] = {0, 1, 11, 63, 64, 255};
	struct rmem_send_wr wr = good_reg();
	struct rmem_dev_info info;
	unsigned int i;

	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	wr.reg_mr.iova = 0;
	wr.reg_mr.first_byte_offset = 0;
	wr.reg_mr.length = 1;
	for (i = 0; i < RTE_DIM(sizes); i++) {
		TEST_ASSERT(sizes[i] > 63 || (info.page_size_cap >> sizes[i] & 1) == 0);
		wr.reg_mr.log2_page_size = sizes[i];
		TEST_RUN(expect_reg_refused(&wr));
	}
	return TEST_SUCCESS;
}

/* IBTA C10-72 */
TEST(fastreg_bad, reg_of_bad_access_is_refused)
{
	static const uint32_t bad[] = {
			RMEM_ACCESS_REMOTE_WRITE,
			RMEM_ACCESS_REMOTE_ATOMIC | RMEM_ACCESS_REMOTE_READ,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_ALLOCATE_MR,
			RMEM_ACCESS_LOCAL_WRITE | UINT32_C(1) << 4,
			RMEM_ACCESS_LOCAL_WRITE | UINT32_C(1) << 19,
			RMEM_ACCESS_LOCAL_WRITE | UINT32_C(1) << 31,
	};
	struct rmem_send_wr wr = good_reg();
	unsigned int i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		wr.reg_mr.access = bad[i];
		TEST_RUN(expect_reg_refused(&wr));
	}
	return TEST_SUCCESS;
}

TEST(fastreg_bad, reg_of_a_valid_mr_is_refused_and_it_stays_bound)
{
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	wr = good_reg();
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_STATUS(fx_peer_write(fx_addr(fx.fast.pages), 8, rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg_bad, reg_of_a_user_mr_is_refused_and_it_stays_as_it_was)
{
	struct rmem_send_wr wr = fx_reg(fx.a.mr, fx.fast.list, 1, 0, FX_PAGE);
	uint32_t rkey = fx.a.mr->rkey;

	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 8, rkey), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_zero(fx.fast.pages, ALL));
	return TEST_SUCCESS;
}

TEST(fastreg_bad, reg_of_an_mr_of_another_domain_is_refused)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_mr *mr = fx_fast_mr(pd, 1);
	struct rmem_send_wr wr;

	TEST_ASSERT(mr != NULL);
	wr = fx_reg(mr, fx.fast.list, 1, 0, FX_PAGE);
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_FREE);
	return TEST_SUCCESS;
}

static int
expect_inv_refused(uint32_t rkey)
{
	const struct rmem_send_wr wr = fx_inv(rkey);

	return fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS);
}

TEST(fastreg_bad, inv_of_an_unknown_key_is_refused)
{
	TEST_RUN(expect_inv_refused(0));
	TEST_RUN(expect_inv_refused(UINT32_MAX));
	TEST_RUN(expect_inv_refused(fx.fast.mr->rkey ^ 0x80000000u));
	TEST_RUN(expect_inv_refused(fx.fast.mr->rkey ^ 0x100u));
	return TEST_SUCCESS;
}

TEST(fastreg_bad, inv_of_a_free_mr_is_refused)
{
	TEST_RUN(expect_inv_refused(fx.fast.mr->rkey));
	return TEST_SUCCESS;
}

/* The kernel's rxe panics on this one. */
TEST(fastreg_bad, inv_a_second_time_is_refused)
{
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_RUN(expect_inv_refused(fx.fast.mr->rkey));
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg_bad, inv_of_another_tag_is_refused_and_the_key_works_on)
{
	uint32_t rkey;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	TEST_RUN(expect_inv_refused(rmem_rkey_of_tag(rkey, (uint8_t)(rkey + 1))));
	TEST_RUN(expect_inv_refused(rmem_rkey_of_tag(rkey, (uint8_t)(rkey - 1))));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_STATUS(fx_peer_write(fx_addr(fx.fast.pages), 8, rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg_bad, inv_of_an_lkey_is_refused)
{
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_RUN(expect_inv_refused(fx.fast.mr->lkey));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	return TEST_SUCCESS;
}

TEST(fastreg_bad, inv_of_a_user_mr_is_refused_and_it_works_on)
{
	TEST_RUN(expect_inv_refused(fx.a.mr->rkey));
	TEST_RUN(expect_inv_refused(fx.a.mr->lkey));
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 8, fx.a.mr->rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg_bad, inv_by_a_qp_of_another_domain_is_refused)
{
	struct fx_side other = {0};
	struct rmem_send_wr wr;

	TEST_RUN(fx_side_open(&other, fx.a.dev, fx_pd(fx.a.dev)));
	TEST_OK(fx_connect(other.qp, other.qp));
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.fast.mr->rkey);
	TEST_STATUS(fx_send(other.qp, &wr), RMEM_WC_MW_BIND_ERR);
	TEST_EQ(fx_state(other.qp), RMEM_QPS_ERR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	return TEST_SUCCESS;
}

TEST_SUITE(fastreg_bad, fx_setup_fast, fx_teardown);
