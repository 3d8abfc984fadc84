/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fast registration: REG_MR binds an MR to pages with a new key, which can be invalidated. */

#include <string.h>

#include "conf.h"

#define CAPA  (RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_LOCAL_INV)
#define WHERE "New Memory Extensions (2008): "

static void
setup(void)
{
	TEST_SKIP_IF((conf.info.page_size_cap & FX_PAGE) == 0, "the device has no pages of 4 KiB");
	conf_setup_fast();
}

/* a binds nb_pages of the list, from the first byte on. */
static int
bind(uint16_t nb_pages, uint64_t iova, uint32_t length)
{
	const struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, nb_pages, iova, length);

	return fx_send(fx.a.qp, &wr);
}

CONF_TEST(fast_reg, new_mr_grants_no_access, CAPA, 0,
		WHERE "an MR is allocated without a valid key")
{
	const struct rmem_mr_info info = fx_query(fx.fast.mr);

	TEST_ASSERT(fx.fast.mr->addr == NULL);
	TEST_EQ(fx.fast.mr->type, RMEM_MR_TYPE_FAST_REG);
	TEST_EQ(info.type, RMEM_MR_TYPE_FAST_REG);
	TEST_EQ(info.state, RMEM_MR_STATE_FREE);
	TEST_EQ(info.max_page_list_len, FX_FAST_PAGES);
	conf_denied_locally(fx_addr(fx.a.buf), fx.fast.mr->lkey);
	conf_denied_to_all(fx_addr(fx.a.buf), fx.fast.mr->rkey);
}

CONF_TEST(fast_reg, bound_mr_grants_access_to_its_range, CAPA, 0, WHERE "REG_MR makes it valid")
{
	const uint32_t length = FX_FAST_PAGES * FX_PAGE;
	uint64_t at = fx_addr(fx.a.buf);
	struct rmem_mr_info info;
	uint32_t rkey;

	TEST_STATUS(bind(FX_FAST_PAGES, at, length), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_REG_MR);
	rkey = fx.fast.mr->rkey;
	info = fx_query(fx.fast.mr);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.iova, at);
	TEST_EQ(info.length, length);
	TEST_EQ(info.rkey, rkey);
	TEST_EQ(info.lkey, fx.fast.mr->lkey);
	conf_granted(at, length, rkey, fx.a.buf);
	conf_denied(at - 1, 1, rkey);
	conf_denied(at + length - 4, 8, rkey);
	TEST_OK(fx_release(fx.fast.mr));
	conf_denied(at, 8, rkey);
}

/* The first byte is inside the first page, the last one inside the last; the iova is free. */
CONF_TEST(fast_reg, offset_and_length_limit_the_pages, CAPA, 0,
		WHERE "first_byte_offset and length")
{
	const uint64_t iova = (UINT64_C(0x77) << 44) + 100;

	TEST_STATUS(bind(3, iova, 2 * FX_PAGE + 50), RMEM_WC_SUCCESS);
	conf_granted(iova, 2 * FX_PAGE + 50, fx.fast.mr->rkey, fx.a.buf + 100);
	conf_granted(iova + 2 * FX_PAGE, 50, fx.fast.mr->rkey, fx.a.buf + 100 + 2 * FX_PAGE);
	conf_denied(iova - 1, 1, fx.fast.mr->rkey);
	conf_denied(iova + 2 * FX_PAGE + 49, 2, fx.fast.mr->rkey);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_STATUS(bind(1, FX_PAGE - 1, 1), RMEM_WC_SUCCESS);
	conf_granted(FX_PAGE - 1, 1, fx.fast.mr->rkey, fx.a.buf + FX_PAGE - 1);
	conf_denied(FX_PAGE, 1, fx.fast.mr->rkey);
}

CONF_TEST(fast_reg, pages_are_in_the_order_of_the_list, CAPA, 0, WHERE "the page list")
{
	const uint64_t iova = UINT64_C(1) << 40;
	unsigned int i;

	for (i = 0; i < FX_FAST_PAGES; i++)
		fx.fast.list->page_list[i] =
				fx_addr(fx.a.buf) + (FX_FAST_PAGES - 1 - i) * (2 * FX_PAGE);
	TEST_STATUS(bind(FX_FAST_PAGES, iova, FX_FAST_PAGES * FX_PAGE), RMEM_WC_SUCCESS);
	/* The list is the caller's again. */
	memset(fx.fast.list->page_list, 0, FX_FAST_PAGES * sizeof(uint64_t));
	TEST_OK(fx_release(fx.fast.list));
	fx_fill(fx.b.buf, FX_FAST_PAGES * FX_PAGE, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, iova, FX_FAST_PAGES * FX_PAGE, fx.fast.mr->rkey),
			RMEM_WC_SUCCESS);
	for (i = 0; i < FX_FAST_PAGES; i++) {
		const uint8_t *page = fx.a.buf + (FX_FAST_PAGES - 1 - i) * (2 * FX_PAGE);

		TEST_MEM(page, fx.b.buf + i * FX_PAGE, FX_PAGE);
		TEST_ASSERT(fx_is_zero(page + FX_PAGE, FX_PAGE));
	}
	/* From the last byte of the first page on. */
	for (i = 1; i <= FX_PAGE + 1; i += i < 8 ? 1 : FX_PAGE - 8) {
		fx_fill(fx.b.buf, i, i);
		TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, iova + FX_PAGE - 1, i, fx.fast.mr->rkey),
				RMEM_WC_SUCCESS);
		TEST_EQ(fx.a.buf[(2 * FX_FAST_PAGES - 1) * FX_PAGE - 1], fx.b.buf[0]);
		TEST_MEM(fx.a.buf + (2 * FX_FAST_PAGES - 4) * FX_PAGE, fx.b.buf + 1,
				RTE_MIN(i - 1, FX_PAGE));
	}
}

CONF_TEST(fast_reg, reg_mr_sets_the_requested_tag, CAPA, 0,
		WHERE "the consumer owns the low byte of the key")
{
	static const uint8_t tags[] = {1, 2, 2, 0, 255, 254, 128};
	uint32_t lkey = fx.fast.mr->lkey;
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < RTE_DIM(tags); i++) {
		uint32_t before = fx.fast.mr->rkey;

		wr = fx_reg(fx.fast.mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
		wr.reg_mr.key_tag = tags[i];
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_EQ(fx.fast.mr->rkey, rmem_rkey_of_tag(before, tags[i]));
		conf_granted(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey, fx.a.buf);
		if (before != fx.fast.mr->rkey)
			conf_denied(fx_addr(fx.a.buf), 8, before);
		if (lkey != fx.fast.mr->lkey)
			conf_denied_locally(fx_addr(fx.a.buf), lkey);
		lkey = fx.fast.mr->lkey;
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
		conf_denied(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey);
		conf_denied_locally(fx_addr(fx.a.buf), lkey);
	}
}

CONF_TEST(fast_reg, reg_mr_of_a_bound_mr_fails, CAPA, 0,
		WHERE "only an MR in the free state is registered")
{
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(bind(1, fx_addr(fx.a.buf), FX_PAGE), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	wr = fx_reg(fx.fast.mr, fx.fast.list, 2, fx_addr(fx.a.buf), 2 * FX_PAGE);
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	conf_granted(fx_addr(fx.a.buf), FX_PAGE, rkey, fx.a.buf);
	conf_denied(fx_addr(fx.a.buf) + FX_PAGE, 8, rkey);
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
			{RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
							RMEM_ACCESS_REMOTE_READ |
							RMEM_ACCESS_RELAXED_ORDERING,
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
			conf_granted(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey, fx.a.buf);
		else
			conf_denied(fx_addr(fx.a.buf), 8, fx.fast.mr->rkey);
		wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.a.buf), fx.fast.mr->rkey);
		if (rows[i].is_read)
			TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		else
			conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	}
}

/* The iova need not have the offset in its page that the first byte has. */
CONF_TEST(fast_reg, reg_mr_sets_the_requested_iova, CAPA, 0,
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
		conf_granted(iovas[i], 2 * FX_PAGE, fx.fast.mr->rkey, fx.a.buf + 100);
		conf_granted(iovas[i] + 5000, 3, fx.fast.mr->rkey, fx.a.buf + 5100);
		conf_denied(iovas[i] - 1, 2, fx.fast.mr->rkey);
		conf_denied(iovas[i] + 2 * FX_PAGE - 1, 2, fx.fast.mr->rkey);
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	}
}

/* The same after a good REG_MR in one post, which succeeds. */
static void
second_is_refused(const struct rmem_send_wr *bad)
{
	const uint16_t nb = RTE_MAX(1, RTE_MIN(bad->reg_mr.page_list_len, FX_FAST_PAGES));
	struct rmem_fast_reg_page_list *list = fx_page_list(conf.dev, FX_FAST_PAGES);
	struct rmem_mr *mr = fx_fast_mr(fx.a.pd, FX_FAST_PAGES);
	struct rmem_send_wr wrs[2];
	bool is_zero;

	fx_list_pages(list, fx.a.buf, FX_FAST_PAGES);
	/* The good one has the same number of pages, and is zero-based if the other is. */
	is_zero = (bad->reg_mr.access & RMEM_ACCESS_ZERO_BASED) != 0;
	wrs[0] = fx_reg(mr, list, nb, is_zero ? 0 : fx_addr(fx.a.buf), 100);
	wrs[0].reg_mr.access |= is_zero ? RMEM_ACCESS_ZERO_BASED : 0;
	wrs[0].flags = 0;
	wrs[1] = *bad;
	if (rmem_post_send(fx.a.qp, wrs, 2) == 2) {
		conf_status(CONF_BIND, fx_wait(fx.a.cq));
		conf_expect_err(fx.a.qp);
		conf_reconnect();
	}
	TEST_STATUS(fx_invalidate(mr->rkey), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mr));
	TEST_OK(fx_release(list));
}

/* It is still FREE, and its key is not valid. */
static void
refused(const struct rmem_send_wr *wr)
{
	conf_refused(CONF_BIND, fx.a.qp, wr);
	second_is_refused(wr);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	conf_denied(wr->reg_mr.iova, 1, fx.fast.mr->rkey);
}

CONF_TEST(fast_reg, invalid_ranges_are_refused, CAPA, 0,
		WHERE "length, offset and address of a REG_MR")
{
	const uint64_t at = fx_addr(fx.a.buf) + 100;
	const struct {
		uint64_t iova;
		uint32_t offset, length, access;
	} rows[] = {
			{at, 100, 0, FX_ACCESS},
			{at, 100, 2 * FX_PAGE - 99, FX_ACCESS},
			{at, 100, UINT32_MAX, FX_ACCESS},
			{at, FX_PAGE, 100, FX_ACCESS},
			{at, 100 + FX_PAGE, 100, FX_ACCESS},
			{at, UINT32_MAX, 100, FX_ACCESS},
			{at, 100, 100, FX_ACCESS | RMEM_ACCESS_ZERO_BASED},
			{UINT64_MAX - (FX_PAGE - 1), 0, FX_PAGE + 1, FX_ACCESS},
	};
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 2, at, 100);
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		wr.reg_mr.iova = rows[i].iova;
		wr.reg_mr.first_byte_offset = rows[i].offset;
		wr.reg_mr.length = rows[i].length;
		wr.reg_mr.access = rows[i].access;
		refused(&wr);
	}
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
}

CONF_TEST(fast_reg, invalid_pages_are_refused, CAPA, 0, WHERE "the page list of a REG_MR")
{
	static const uint8_t sizes[] = {0, 1, 11, 63, 64, 255};
	struct rmem_fast_reg_page_list *longer = fx_page_list(conf.dev, FX_FAST_PAGES + 1);
	struct rmem_fast_reg_page_list *shorter = fx_page_list(conf.dev, 2);
	const struct rmem_send_wr good =
			fx_reg(fx.fast.mr, fx.fast.list, 3, fx_addr(fx.a.buf), 2 * FX_PAGE);
	uint64_t *pages = fx.fast.list->page_list;
	struct rmem_send_wr wr = good;
	unsigned int i;

	fx_list_pages(longer, fx.a.buf, FX_FAST_PAGES + 1);
	fx_list_pages(shorter, fx.a.buf, 2);
	wr.reg_mr.page_list_len = 0;
	refused(&wr);
	wr.reg_mr.page_list = longer;
	wr.reg_mr.page_list_len = FX_FAST_PAGES + 1;
	refused(&wr);
	wr.reg_mr.page_list = shorter;
	wr.reg_mr.page_list_len = 3;
	refused(&wr);
	wr = good;
	for (i = 0; i < 3; i += 2) {
		const uint64_t page = pages[i];

		pages[i] = 0;
		refused(&wr);
		pages[i] = page + 1;
		refused(&wr);
		pages[i] = page + FX_PAGE / 2;
		refused(&wr);
		pages[i] = page;
	}
	for (i = 0; i < RTE_DIM(sizes); i++) {
		TEST_ASSERT(sizes[i] > 63 || (conf.info.page_size_cap >> sizes[i] & 1) == 0);
		wr.reg_mr.log2_page_size = sizes[i];
		wr.reg_mr.first_byte_offset = 0;
		wr.reg_mr.length = 1;
		refused(&wr);
	}
	/* Aligned for pages of 4 KiB is not aligned for those of 8 KiB. */
	wr.reg_mr.log2_page_size = 13;
	pages[0] += pages[0] % 8192 == 0 ? FX_PAGE : 0;
	refused(&wr);
	fx_list_pages(fx.fast.list, fx.a.buf, FX_FAST_PAGES);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
}

CONF_TEST(fast_reg, invalid_rights_are_refused, CAPA, 0,
		"ibv_reg_mr(3): rights to modify need LOCAL_WRITE")
{
	static const uint32_t bad[] = {
			RMEM_ACCESS_REMOTE_WRITE,
			RMEM_ACCESS_REMOTE_ATOMIC | RMEM_ACCESS_REMOTE_READ,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_ALLOCATE_MR,
			RMEM_ACCESS_LOCAL_WRITE | UINT32_C(1) << 4,
			RMEM_ACCESS_LOCAL_WRITE | UINT32_C(1) << 19,
			RMEM_ACCESS_LOCAL_WRITE | UINT32_C(1) << 31,
	};
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
	unsigned int i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		wr.reg_mr.access = bad[i];
		refused(&wr);
	}
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
}

CONF_TEST(fast_reg, request_without_mr_or_list_is_refused, CAPA, 0,
		"rmem_wr.h: -EINVAL at the post")
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, NULL, 1, 0, FX_PAGE);

	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	wr.reg_mr.mr = NULL;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
}

CONF_TEST(fast_reg, reg_mr_in_another_pd_fails, CAPA, 0, "IBTA 10.2.3: one PD")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *mr = fx_fast_mr(pd, 1);
	struct rmem_send_wr wr;

	wr = fx_reg(mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	second_is_refused(&wr);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_FREE);
	wr.reg_mr.mr = fx.a.mr; /* no fast-register MR */
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	second_is_refused(&wr);
	conf_granted(fx_addr(fx.a.buf), 8, fx.a.mr->rkey, fx.a.buf);
}

/* A request after the binding uses the key of the binding. */
CONF_TEST(fast_reg, later_requests_use_the_bound_mr, CAPA, 0,
		"IBTA 10.8.3: later requests of the queue use the binding")
{
	struct rmem_sge sge = {.addr = fx_addr(fx.a.buf) + 10, .length = 100};
	struct rmem_send_wr wrs[3];

	fx_fill(fx.a.buf, FX_PAGE, 1);
	wrs[0] = fx_reg(fx.fast.mr, fx.fast.list, 1, fx_addr(fx.a.buf), FX_PAGE);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 1), 1);
	sge.lkey = fx.fast.mr->lkey;
	wrs[1] = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	wrs[2] = fx_inv(fx.fast.mr->rkey);
	wrs[2].flags = RMEM_SEND_SIGNALED | RMEM_SEND_FENCE;
	TEST_EQ(rmem_post_send(fx.a.qp, &wrs[1], 2), 2);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_LOCAL_INV);
	TEST_MEM(fx.b.buf, fx.a.buf + 10, 100);
}

/* The rkey can be computed: registered, written and invalidated by one post. */
CONF_TEST(fast_reg, reg_mr_write_and_local_inv_are_posted_at_once, CAPA, 0,
		"IBTA 10.8.3: requests take effect in order")
{
	const uint32_t length = FX_FAST_PAGES * FX_PAGE;
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, length);
	struct rmem_send_wr wrs[3];
	uint32_t i, rkey;

	for (i = 0; i < 50; i++) {
		fx_fill(fx.b.buf, length, i);
		wrs[0] = fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES, fx_addr(fx.a.buf), length);
		rkey = rmem_rkey_of_tag(fx.fast.mr->rkey, wrs[0].reg_mr.key_tag);
		wrs[1] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), rkey);
		wrs[2] = fx_inv(rkey);
		wrs[2].flags = RMEM_SEND_SIGNALED | RMEM_SEND_FENCE;
		TEST_EQ(rmem_post_send(fx.a.qp, wrs, 3), 3);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_LOCAL_INV);
		TEST_EQ(fx.fast.mr->rkey, rkey);
		TEST_MEM(fx.a.buf, fx.b.buf, length);
	}
	TEST_ASSERT(fx_is_idle(fx.a.cq));
}

CONF_TEST(fast_reg, local_inv_of_a_free_mr_fails, CAPA, 0,
		"IBTA 10.6.6: only a valid key is invalidated")
{
	struct rmem_send_wr wr = fx_inv(fx.fast.mr->rkey);
	uint32_t rkey;

	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	wr = fx_inv(rmem_rkey_of_tag(rkey, (uint8_t)(rkey + 1)));
	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	wr = fx_inv(rmem_rkey_of_tag(rkey, (uint8_t)(rkey - 1)));
	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	wr = fx_inv(fx.fast.mr->lkey);
	if (fx.fast.mr->lkey != rkey)
		conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	conf_granted(fx_addr(fx.a.buf), 8, rkey, fx.a.buf);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr = fx_inv(rkey);
	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
}

/* The PD counts, not the QP. */
CONF_TEST(fast_reg, any_qp_of_the_pd_invalidates_the_mr, CAPA, 0,
		"IBTA 10.6.6: the PD of key and QP")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_qp *mine = conf_qp(pd, fx.a.cq, 0), *peer = conf_qp(pd, fx.b.cq, 0);
	struct rmem_send_wr wr;

	TEST_OK(conf_connect(mine, peer));
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.fast.mr->rkey);
	conf_status(CONF_INVALIDATE, fx_send(mine, &wr));
	conf_expect_err(mine);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
}

CONF_TEST(fast_reg, repeated_registration_wraps_the_tag, CAPA, 0,
		WHERE "bound and invalidated any number of times")
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
}

TEST_SUITE(fast_reg, setup, conf_teardown);
