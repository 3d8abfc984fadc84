/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The caller chooses the key of an MR, and is told apart why it can't have it. */

#include <string.h>

#include "fixture.h"
#include "test.h"

static int
reg_key(struct rmem_pd *pd, uint32_t rkey, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {
			.addr = fx.a.buf,
			.length = 4096,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY,
			.requested_key = rkey,
	};
	int ret = rmem_mr_reg_attr(pd, &attr, mr);

	if (ret == 0)
		fx_track(*mr);
	return ret;
}

/* A device of so many MRs, and the PD on it. */
static struct rmem_pd *
small_dev(const char *args)
{
	return fx_pd(fx_dev("soft1", args));
}

/* An index that no MR has: there are far more than MRs. */
static uint32_t
free_key(uint8_t tag)
{
	uint32_t index = 1;

	while (index == fx.a.mr->rkey >> 8 || index == fx.b.mr->rkey >> 8)
		index++;
	return index << 8 | tag;
}

static int
requested_key_is_what_peers_use(void)
{
	static const uint8_t tags[] = {0, 1, 0x5a, 0xff};
	struct rmem_mr *mr = NULL;
	unsigned int i;

	for (i = 0; i < RTE_DIM(tags); i++) {
		uint32_t rkey = free_key(tags[i]);

		TEST_OK(reg_key(fx.a.pd, rkey, &mr));
		TEST_EQ(mr->rkey, rkey);
		TEST_ASSERT(mr->lkey != rkey);
		TEST_EQ(mr->lkey >> 8, rkey >> 8);
		TEST_EQ(fx_query(mr).rkey, rkey);
		fx_fill(fx.b.buf, 64, i);
		TEST_STATUS(fx_peer_write(mr->iova, 64, rkey), RMEM_WC_SUCCESS);
		TEST_MEM(fx.a.buf, fx.b.buf, 64);
		TEST_OK(fx_release(mr));
		TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 64, rkey), RMEM_WC_REM_ACCESS_ERR);
		TEST_OK(fx_reconnect());
	}
	return TEST_SUCCESS;
}

static int
key_in_use_is_eexist_whatever_the_tag(void)
{
	uint32_t rkey = free_key(7);
	struct rmem_mr *mr = NULL;
	struct rmem_mr *other = NULL;

	TEST_ERR(reg_key(fx.a.pd, fx.a.mr->rkey, &mr), EEXIST);
	TEST_ERR(reg_key(fx.a.pd, fx.a.mr->rkey ^ 1, &mr), EEXIST);
	TEST_OK(reg_key(fx.a.pd, rkey, &mr));
	TEST_ERR(reg_key(fx.a.pd, rkey, &other), EEXIST);
	TEST_ERR(reg_key(fx.a.pd, rkey + 1, &other), EEXIST);
	TEST_ASSERT(other == NULL);
	TEST_STATUS(fx_peer_write(mr->iova, 64, rkey), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mr));
	TEST_OK(reg_key(fx.a.pd, rkey + 1, &other));
	return TEST_SUCCESS;
}

/* The log names the limit. */
static int
key_out_of_range_is_einval(void)
{
	struct rmem_pd *pd = small_dev("max_mr=77");
	struct rmem_mr *mr = NULL;
	const char *log;
	int ret;

	TEST_ASSERT(pd != NULL);
	TEST_ERR(reg_key(pd, 0, &mr), EINVAL);
	TEST_ERR(reg_key(pd, 0xff, &mr), EINVAL);
	TEST_ERR(reg_key(pd, UINT32_MAX, &mr), EINVAL);
	fx_log_begin();
	ret = reg_key(pd, 78u << 8, &mr);
	log = fx_log_end();
	TEST_ERR(ret, EINVAL);
	TEST_ASSERT(strstr(log, "77") != NULL);
	TEST_ASSERT(mr == NULL);
	TEST_OK(reg_key(pd, 77u << 8, &mr));
	TEST_OK(reg_key(pd, 1u << 8, &mr));
	return TEST_SUCCESS;
}

/* An index with all its tags given out rests: not even a request gets it. */
static int
resting_key_is_eexist(void)
{
	struct rmem_pd *pd = small_dev("max_mr=1");
	struct rmem_mr *mr = NULL;
	int i;

	TEST_ASSERT(pd != NULL);
	for (i = 0; i < 256; i++) {
		TEST_OK(rmem_mr_reg(pd, fx.a.buf, 64, 0, 0, &mr));
		TEST_OK(rmem_mr_dereg(mr));
	}
	mr = NULL;
	TEST_ERR(reg_key(pd, 1u << 8, &mr), EEXIST);
	TEST_ASSERT(mr == NULL);
	mr = fx_mr(pd, fx.a.buf, 64, 0);
	TEST_ASSERT(mr != NULL);
	TEST_OK(fx_release(mr));
	TEST_OK(reg_key(pd, 1u << 8, &mr));
	return TEST_SUCCESS;
}

static int
the_same_key_comes_back_for_ever(void)
{
	uint32_t rkey = free_key(3);
	struct rmem_mr *mr = NULL;
	int i;

	for (i = 0; i < 1000; i++) {
		TEST_OK(reg_key(fx.a.pd, rkey, &mr));
		TEST_OK(fx_release(mr));
	}
	return TEST_SUCCESS;
}

/* All keys of a device by request, in an order of their own, and then there is none left. */
static int
every_key_of_a_device_can_be_asked_for(void)
{
	struct rmem_pd *pd = small_dev("max_mr=64");
	struct rmem_mr *mr = NULL;
	struct rmem_mr *last = NULL;
	uint32_t i;

	TEST_ASSERT(pd != NULL);
	for (i = 0; i < 64; i++) {
		TEST_OK(reg_key(pd, (i * 29 % 64 + 1) << 8 | i, &mr));
		TEST_EQ(mr->rkey, (i * 29 % 64 + 1) << 8 | i);
	}
	TEST_ERR(rmem_mr_reg(pd, fx.a.buf, 64, 0, 0, &last), ENOSPC);
	TEST_ASSERT(last == NULL);
	TEST_OK(fx_release(mr));
	TEST_ASSERT(fx_mr(pd, fx.a.buf, 64, 0) != NULL);
	return TEST_SUCCESS;
}

static int
key_without_the_flag_is_einval(void)
{
	const struct rmem_mr_attr attr = {
			.addr = fx.a.buf, .length = 64, .requested_key = free_key(1)};
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	return TEST_SUCCESS;
}

static int
unknown_flags_are_einval(void)
{
	const uint32_t known = RMEM_MR_REQUESTED_KEY | RMEM_MR_DISABLED;
	struct rmem_mr_attr attr = {.addr = fx.a.buf, .length = 64};
	struct rmem_mr *mr = NULL;
	uint32_t bit;

	for (bit = 0; bit < 32; bit++) {
		attr.flags = UINT32_C(1) << bit;
		if ((attr.flags & known) != 0)
			continue;
		TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
		attr.flags |= RMEM_MR_DISABLED;
		TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	}
	TEST_ASSERT(mr == NULL);
	return TEST_SUCCESS;
}

static const struct test_case requested_key_cases[] = {
		TEST_CASE(requested_key_is_what_peers_use),
		TEST_CASE(key_in_use_is_eexist_whatever_the_tag),
		TEST_CASE(key_out_of_range_is_einval),
		TEST_CASE(resting_key_is_eexist),
		TEST_CASE(the_same_key_comes_back_for_ever),
		TEST_CASE(every_key_of_a_device_can_be_asked_for),
		TEST_CASE(key_without_the_flag_is_einval),
		TEST_CASE(unknown_flags_are_einval),
};

REGISTER_RMEM_SUITE(requested_key, fx_setup, fx_teardown, requested_key_cases);
