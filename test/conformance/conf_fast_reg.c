/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fast registration: REG_MR opens pages under a new key, an invalidation closes them. */

#include <string.h>

#include "conf.h"

#define CAPA  (RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_LOCAL_INV)
#define WHERE "New Memory Extensions (2008): "

static int
setup(void)
{
	if ((conf.info.page_size_cap & FX_PAGE) == 0)
		return test_skip("the device has no pages of 4 KiB");
	return conf_setup_fast();
}

/* a binds nb_pages of the list, from the first byte on. */
static int
bind(uint16_t nb_pages, uint64_t iova, uint32_t length)
{
	const struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, nb_pages, iova, length);

	return fx_send(fx.a.qp, &wr);
}

CONF_TEST(fast_reg, new_mr_is_closed, CAPA, 0, WHERE "an MR is made without a key that opens")
{
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	return conf_closed(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey);
}

CONF_TEST(fast_reg, bound_mr_opens_its_range, CAPA, 0, WHERE "REG_MR makes it valid")
{
	uint64_t at = fx_addr(fx.a.buf);

	TEST_STATUS(bind(FX_FAST_PAGES, at, FX_FAST_PAGES * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_REG_MR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_RUN(conf_open(at, FX_FAST_PAGES * FX_PAGE, fx.fast.mr->rkey, fx.a.buf));
	TEST_RUN(conf_closed(at - 1, 1, fx.fast.mr->rkey));
	TEST_RUN(conf_closed(at + FX_FAST_PAGES * FX_PAGE - 4, 8, fx.fast.mr->rkey));
	return TEST_SUCCESS;
}

/* The first byte is inside the first page, the last one inside the last; the iova is free. */
CONF_TEST(fast_reg, offset_and_length_cut_the_pages, CAPA, 0, WHERE "first_byte_offset and length")
{
	const uint64_t iova = (UINT64_C(0x77) << 44) + 100;

	TEST_STATUS(bind(3, iova, 2 * FX_PAGE + 50), RMEM_WC_SUCCESS);
	TEST_RUN(conf_open(iova, 2 * FX_PAGE + 50, fx.fast.mr->rkey, fx.a.buf + 100));
	TEST_RUN(conf_open(iova + 2 * FX_PAGE, 50, fx.fast.mr->rkey, fx.a.buf + 100 + 2 * FX_PAGE));
	TEST_RUN(conf_closed(iova - 1, 1, fx.fast.mr->rkey));
	TEST_RUN(conf_closed(iova + 2 * FX_PAGE + 49, 2, fx.fast.mr->rkey));
	return TEST_SUCCESS;
}

CONF_TEST(fast_reg, pages_come_in_the_order_of_the_list, CAPA, 0, WHERE "the page list")
{
	const uint64_t iova = UINT64_C(1) << 40;
	unsigned int i;

	for (i = 0; i < FX_FAST_PAGES; i++)
		fx.fast.list->page_list[i] =
				fx_addr(fx.a.buf) + (FX_FAST_PAGES - 1 - i) * (2 * FX_PAGE);
	TEST_STATUS(bind(FX_FAST_PAGES, iova, FX_FAST_PAGES * FX_PAGE), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, FX_FAST_PAGES * FX_PAGE, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, iova, FX_FAST_PAGES * FX_PAGE, fx.fast.mr->rkey),
			RMEM_WC_SUCCESS);
	for (i = 0; i < FX_FAST_PAGES; i++) {
		const uint8_t *page = fx.a.buf + (FX_FAST_PAGES - 1 - i) * (2 * FX_PAGE);

		TEST_MEM(page, fx.b.buf + i * FX_PAGE, FX_PAGE);
		TEST_ASSERT(fx_is_zero(page + FX_PAGE, FX_PAGE));
	}
	return TEST_SUCCESS;
}

CONF_TEST(fast_reg, tag_is_the_callers, CAPA, 0, WHERE "the consumer owns the low byte of the key")
{
	static const uint8_t tags[] = {1, 2, 0, 255, 254, 128};
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < RTE_DIM(tags); i++) {
		uint32_t before = fx.fast.mr->rkey;

		wr = fx_reg(fx.fast.mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
		wr.reg_mr.key_tag = tags[i];
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_EQ(fx.fast.mr->rkey, rmem_rkey_of_tag(before, tags[i]));
		TEST_RUN(conf_open(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey, fx.a.buf));
		if (before != fx.fast.mr->rkey)
			TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, before));
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
		TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey));
	}
	return TEST_SUCCESS;
}

CONF_TEST(fast_reg, bound_mr_is_not_bound_again, CAPA, 0,
		WHERE "only an MR in the free state is registered")
{
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(bind(1, fx_addr(fx.a.buf), FX_PAGE), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	wr = fx_reg(fx.fast.mr, fx.fast.list, 2, fx_addr(fx.a.buf), 2 * FX_PAGE);
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	TEST_RUN(conf_open(fx_addr(fx.a.buf), FX_PAGE, rkey, fx.a.buf));
	TEST_RUN(conf_closed(fx_addr(fx.a.buf) + FX_PAGE, 8, rkey));
	return TEST_SUCCESS;
}

CONF_TEST(fast_reg, rights_are_those_of_the_request, CAPA, 0, WHERE "access flags")
{
	static const struct {
		uint32_t access;
		bool is_read;
		bool is_write;
	} rows[] = {
			{RMEM_ACCESS_LOCAL_WRITE, false, false},
			{RMEM_ACCESS_REMOTE_READ, true, false},
			{RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE, false, true},
			{RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
							RMEM_ACCESS_REMOTE_READ,
					true, true},
	};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		wr = fx_reg(fx.fast.mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
		wr.reg_mr.access = rows[i].access;
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		if (rows[i].is_write)
			TEST_RUN(conf_open(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey, fx.a.buf));
		else
			TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey));
		wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.a.buf), fx.fast.mr->rkey);
		if (rows[i].is_read)
			TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		else
			TEST_RUN(conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr));
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	}
	return TEST_SUCCESS;
}

/* The iova need not have the place in its page that the first byte has. */
CONF_TEST(fast_reg, iova_is_the_callers, CAPA, 0,
		"ib_map_mr_sg(9): ib_mr::iova may be chosen before it is registered")
{
	static const uint64_t iovas[] = {0, 1, 0x123456789, UINT64_MAX - 8191};
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < RTE_DIM(iovas); i++) {
		wr = fx_reg(fx.fast.mr, fx.fast.list, 3, iovas[i], 2 * FX_PAGE);
		wr.reg_mr.first_byte_offset = 100;
		wr.reg_mr.access |= iovas[i] == 0 ? RMEM_ACCESS_ZERO_BASED : 0;
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_RUN(conf_open(iovas[i], 2 * FX_PAGE, fx.fast.mr->rkey, fx.a.buf + 100));
		TEST_RUN(conf_open(iovas[i] + 5000, 3, fx.fast.mr->rkey, fx.a.buf + 5100));
		TEST_RUN(conf_closed(iovas[i] - 1, 2, fx.fast.mr->rkey));
		TEST_RUN(conf_closed(iovas[i] + 2 * FX_PAGE - 1, 2, fx.fast.mr->rkey));
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	}
	return TEST_SUCCESS;
}

/* One field wrong at a time; afterwards the MR can still be bound. */
CONF_TEST(fast_reg, bad_requests_are_refused, CAPA, 0, WHERE "what a REG_MR must be")
{
	const struct rmem_send_wr good =
			fx_reg(fx.fast.mr, fx.fast.list, 2, fx_addr(fx.a.buf) + 100, FX_PAGE);
	struct rmem_send_wr wr = good;

	wr.reg_mr.length = 0;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.reg_mr.length = 2 * FX_PAGE - 99;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr = good;
	wr.reg_mr.first_byte_offset = FX_PAGE;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr = good;
	wr.reg_mr.page_list_len = FX_FAST_PAGES + 1;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr = good;
	wr.reg_mr.access = RMEM_ACCESS_REMOTE_WRITE;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr = good;
	fx.fast.list->page_list[1]++;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	fx.fast.list->page_list[1]--;
	TEST_STATUS(fx_send(fx.a.qp, &good), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

CONF_TEST(fast_reg, mr_and_qp_are_of_one_pd, CAPA, 0, "IBTA 10.2.3: one PD")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *mr = fx_fast_mr(pd, 1);
	struct rmem_send_wr wr;

	TEST_ASSERT(mr != NULL);
	wr = fx_reg(mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.reg_mr.mr = fx.a.mr; /* no fast-register MR */
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	return TEST_SUCCESS;
}

/* A request behind the binding uses the key that the binding will give. */
CONF_TEST(fast_reg, requests_behind_it_find_it_bound, CAPA, 0,
		"IBTA 10.8.3: later requests of the queue see it bound")
{
	struct rmem_sge sge = {.addr = fx_addr(fx.a.buf) + 10, .length = 100};
	struct rmem_send_wr wrs[3];

	fx_fill(fx.a.buf, FX_PAGE, 1);
	wrs[0] = fx_reg(fx.fast.mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 1), 1);
	sge.lkey = fx.fast.mr->lkey;
	wrs[1] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	wrs[2] = fx_inv(fx.fast.mr->rkey);
	wrs[2].flags = RMEM_SEND_SIGNALED | RMEM_SEND_FENCE;
	TEST_EQ(rmem_post_send(fx.a.qp, &wrs[1], 2), 2);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_LOCAL_INV);
	TEST_MEM(fx.b.buf, fx.a.buf + 10, 100);
	return TEST_SUCCESS;
}

CONF_TEST(fast_reg, many_lives_wrap_the_tag, CAPA, 0, WHERE "bound and invalidated for ever")
{
	struct rmem_send_wr wrs[2];
	unsigned int i;

	for (i = 0; i < 600; i++) {
		wrs[0] = fx_reg(fx.fast.mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
		wrs[1] = fx_inv(rmem_rkey_of_tag(fx.fast.mr->rkey, wrs[0].reg_mr.key_tag));
		wrs[1].flags = RMEM_SEND_SIGNALED;
		TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	}
	TEST_OK(fx_release(fx.fast.mr));
	return TEST_SUCCESS;
}

TEST_SUITE(fast_reg, setup, conf_teardown);
