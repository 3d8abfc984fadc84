/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fast-register MRs and page lists are made, bound by REG_MR, and used through every opcode. */

#include <string.h>
#include <sys/mman.h>

#include "fixture.h"
#include "test.h"

#define ALL (FX_FAST_PAGES * FX_PAGE)

TEST(fastreg, new_mr_is_free_and_opens_nothing)
{
	struct rmem_mr *mr = fx.fast.mr;
	struct rmem_mr_info info = fx_query(mr);
	struct rmem_send_wr wr;
	struct rmem_sge sge = {.addr = 0, .length = 1, .lkey = mr->lkey};

	TEST_ASSERT(mr->addr == NULL);
	TEST_EQ(mr->type, RMEM_MR_TYPE_FAST_REG);
	TEST_EQ(mr->max_page_list_len, FX_FAST_PAGES);
	TEST_EQ(info.type, RMEM_MR_TYPE_FAST_REG);
	TEST_EQ(info.state, RMEM_MR_STATE_FREE);
	TEST_EQ(info.max_page_list_len, FX_FAST_PAGES);
	TEST_STATUS(fx_peer_write(0, 1, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS));
	return TEST_SUCCESS;
}

TEST(fastreg, mr_alloc_refuses_bad_arguments)
{
	static uint64_t zeros[64];
	struct rmem_mr *mr = NULL;
	struct rmem_dev_info info;

	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_ERR(rmem_fast_reg_mr_alloc(NULL, 1, &mr), EINVAL);
	TEST_ERR(rmem_fast_reg_mr_alloc((struct rmem_pd *)zeros, 1, &mr), EINVAL);
	TEST_ERR(rmem_fast_reg_mr_alloc((struct rmem_pd *)fx.a.mr, 1, &mr), EINVAL);
	TEST_ERR(rmem_fast_reg_mr_alloc(fx.a.pd, 1, NULL), EINVAL);
	TEST_ERR(rmem_fast_reg_mr_alloc(fx.a.pd, 0, &mr), EINVAL);
	TEST_ERR(rmem_fast_reg_mr_alloc(fx.a.pd, info.max_page_list_len + 1, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	TEST_ASSERT(fx_fast_mr(fx.a.pd, info.max_page_list_len) != NULL);
	return TEST_SUCCESS;
}

TEST(fastreg, page_list_alloc_refuses_bad_arguments)
{
	static uint64_t zeros[64];
	struct rmem_fast_reg_page_list *list = NULL;
	struct rmem_dev *dev = fx.a.dev;
	struct rmem_dev_info info;

	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_ERR(rmem_fast_reg_page_list_alloc(NULL, 1, &list), EINVAL);
	TEST_ERR(rmem_fast_reg_page_list_alloc((struct rmem_dev *)zeros, 1, &list), EINVAL);
	TEST_ERR(rmem_fast_reg_page_list_alloc((struct rmem_dev *)fx.a.pd, 1, &list), EINVAL);
	TEST_ERR(rmem_fast_reg_page_list_alloc(dev, 1, NULL), EINVAL);
	TEST_ERR(rmem_fast_reg_page_list_alloc(dev, 0, &list), EINVAL);
	TEST_ERR(rmem_fast_reg_page_list_alloc(dev, info.max_page_list_len + 1, &list), EINVAL);
	TEST_ASSERT(list == NULL);
	list = fx_page_list(dev, info.max_page_list_len);
	TEST_ASSERT(list != NULL);
	TEST_EQ(list->max_page_list_len, info.max_page_list_len);
	return TEST_SUCCESS;
}

TEST(fastreg, page_list_free_refuses_what_is_no_list)
{
	static uint64_t zeros[64];

	TEST_OK(rmem_fast_reg_page_list_free(NULL));
	TEST_ERR(rmem_fast_reg_page_list_free((struct rmem_fast_reg_page_list *)zeros), EINVAL);
	TEST_ERR(rmem_fast_reg_page_list_free((struct rmem_fast_reg_page_list *)fx.a.pd), EINVAL);
	return TEST_SUCCESS;
}

static int
make_mr(void **mr)
{
	return rmem_fast_reg_mr_alloc(fx.a.pd, 64, (struct rmem_mr **)mr);
}

static int
make_list(void **list)
{
	return rmem_fast_reg_page_list_alloc(fx.a.dev, 64, (struct rmem_fast_reg_page_list **)list);
}

TEST(fastreg, no_memory_is_enomem_and_nothing_stays)
{
	TEST_RUN(fx_expect_enomem(make_mr));
	TEST_RUN(fx_expect_enomem(make_list));
	return TEST_SUCCESS;
}

/* The low byte of the rkey is the tag asked for; the rest stays. */
TEST(fastreg, reg_mr_makes_it_valid_under_the_new_tag)
{
	uint32_t old = fx.fast.mr->rkey;
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 3, 0x7fff10, 8000);
	struct rmem_mr_info info;

	wr.reg_mr.access = RMEM_ACCESS_REMOTE_READ;
	wr.reg_mr.key_tag = (uint8_t)(old + 77);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_REG_MR);
	TEST_EQ(fx.fast.mr->rkey, rmem_rkey_of_tag(old, (uint8_t)(old + 77)));
	info = fx_query(fx.fast.mr);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.iova, 0x7fff10);
	TEST_EQ(info.length, 8000);
	TEST_EQ(info.access, RMEM_ACCESS_REMOTE_READ);
	TEST_EQ(info.rkey, fx.fast.mr->rkey);
	TEST_EQ(info.lkey, fx.fast.mr->lkey);
	TEST_ASSERT(info.lkey != info.rkey);
	return TEST_SUCCESS;
}

TEST(fastreg, peers_reach_the_bound_pages_and_no_byte_more)
{
	uint64_t start = fx_addr(fx.fast.pages);

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, ALL, 1);
	TEST_STATUS(fx_peer_write(start, ALL, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.fast.pages, fx.b.buf, ALL);
	TEST_STATUS(fx_peer_write(start + 1, ALL, fx.fast.mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_peer_write(start - 1, 2, fx.fast.mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_MEM(fx.fast.pages, fx.b.buf, ALL);
	return TEST_SUCCESS;
}

/* Pages out of order, the first and the last of them only in part. */
static int
bind_scattered(uint64_t iova, uint32_t length)
{
	static const uint8_t order[] = {5, 0, 7, 2};
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 4, iova, length);
	unsigned int i;

	for (i = 0; i < 4; i++)
		fx.fast.list->page_list[i] = fx_addr(fx.fast.pages + order[i] * FX_PAGE);
	return fx_send(fx.a.qp, &wr);
}

/* Where byte n of the MR bound by bind_scattered() lies. */
static uint8_t *
scattered(uint64_t iova, uint32_t n)
{
	static const uint8_t order[] = {5, 0, 7, 2};
	uint32_t at = (uint32_t)(iova % FX_PAGE) + n;

	return fx.fast.pages + order[at / FX_PAGE] * FX_PAGE + at % FX_PAGE;
}

TEST(fastreg, scattered_pages_are_written_in_their_order)
{
	const uint64_t iova = UINT64_C(0x5550000123);
	const uint32_t length = 3 * FX_PAGE;
	uint32_t i, nb = 0;

	TEST_STATUS(bind_scattered(iova, length), RMEM_WC_SUCCESS);
	memset(fx.b.buf, 0xee, FX_BUF_SIZE);
	TEST_STATUS(fx_peer_write(iova, length, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	for (i = 0; i < length; i++)
		TEST_EQ(*scattered(iova, i), 0xee);
	for (i = 0; i < ALL; i++)
		nb += fx.fast.pages[i] == 0xee;
	TEST_EQ(nb, length);
	return TEST_SUCCESS;
}

TEST(fastreg, transfers_cross_page_borders)
{
	static const uint32_t lengths[] = {1, 2, 8, FX_PAGE, FX_PAGE + 1, 2 * FX_PAGE + 5};
	const uint64_t iova = UINT64_C(0x5550000123);
	uint32_t i, j, at;

	TEST_STATUS(bind_scattered(iova, 3 * FX_PAGE), RMEM_WC_SUCCESS);
	for (i = 0; i < RTE_DIM(lengths); i++) {
		/* From the byte before the first border on. */
		at = FX_PAGE - 0x124;
		if (at + lengths[i] > 3 * FX_PAGE)
			at = 3 * FX_PAGE - lengths[i];
		fx_fill(fx.b.buf, lengths[i], i + 1);
		TEST_STATUS(fx_peer_write(iova + at, lengths[i], fx.fast.mr->rkey),
				RMEM_WC_SUCCESS);
		for (j = 0; j < lengths[i]; j++)
			TEST_EQ(*scattered(iova, at + j), fx.b.buf[j]);
	}
	return TEST_SUCCESS;
}

TEST(fastreg, scattered_pages_end_at_the_length)
{
	const uint64_t iova = UINT64_C(0x5550000123);
	uint32_t rkey;

	TEST_STATUS(bind_scattered(iova, 3 * FX_PAGE), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	TEST_STATUS(fx_peer_write(iova + 3 * FX_PAGE - 1, 2, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_peer_write(iova - 1, 1, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_peer_write(iova + 3 * FX_PAGE, 1, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_ASSERT(fx_is_zero(fx.fast.pages, ALL));
	return TEST_SUCCESS;
}

/* The list belongs to the caller again when the REG_MR completed. */
TEST(fastreg, binding_does_not_need_the_list_any_more)
{
	const uint64_t iova = UINT64_C(0x10000);

	TEST_STATUS(bind_scattered(iova, 4 * FX_PAGE), RMEM_WC_SUCCESS);
	memset(fx.fast.list->page_list, 0, FX_FAST_PAGES * sizeof(uint64_t));
	TEST_OK(fx_release(fx.fast.list));
	fx_fill(fx.b.buf, 4 * FX_PAGE, 4);
	TEST_STATUS(fx_peer_write(iova, 4 * FX_PAGE, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(scattered(iova, 0), fx.b.buf, FX_PAGE);
	TEST_MEM(scattered(iova, 3 * FX_PAGE), fx.b.buf + 3 * FX_PAGE, FX_PAGE);
	return TEST_SUCCESS;
}

TEST(fastreg, one_page_and_one_byte_is_bound)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 1, FX_PAGE - 1, 1);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx.b.buf[0] = 0x77;
	TEST_STATUS(fx_peer_write(FX_PAGE - 1, 1, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx.fast.pages[FX_PAGE - 1], 0x77);
	TEST_STATUS(fx_peer_write(FX_PAGE, 1, fx.fast.mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	return TEST_SUCCESS;
}

TEST(fastreg, iova_may_end_at_the_last_byte)
{
	const uint64_t iova = UINT64_MAX - (2 * FX_PAGE - 1);
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 2, iova, 2 * FX_PAGE);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 2 * FX_PAGE, 6);
	TEST_STATUS(fx_peer_write(iova, 2 * FX_PAGE, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.fast.pages, fx.b.buf, 2 * FX_PAGE);
	TEST_STATUS(fx_peer_write(UINT64_MAX, 2, fx.fast.mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	return TEST_SUCCESS;
}

/* A page of each size the device knows, in a stretch that is never touched but at its start. */
TEST(fastreg, every_page_size_of_the_device_is_bound)
{
	struct rmem_dev_info info;
	uint64_t size;
	unsigned int bit;

	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	for (bit = 0; bit < 64 && (info.page_size_cap >> bit) != 0; bit++) {
		struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, 64);
		uint8_t *mem, *page;

		size = UINT64_C(1) << bit;
		if ((info.page_size_cap & size) == 0)
			continue;
		mem = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		TEST_ASSERT(mem != MAP_FAILED);
		page = mem + (size - fx_addr(mem) % size) % size;
		fx.fast.list->page_list[0] = fx_addr(page);
		wr.reg_mr.log2_page_size = (uint8_t)bit;
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		fx_fill(fx.b.buf, 64, bit);
		TEST_STATUS(fx_peer_write(0, 64, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
		TEST_MEM(page, fx.b.buf, 64);
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
		munmap(mem, 2 * size);
	}
	return TEST_SUCCESS;
}

TEST(fastreg, rights_of_the_request_are_enforced)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr read;

	wr.reg_mr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	read = fx_rdma(RMEM_WR_RDMA_READ, &sge, 0, fx.fast.mr->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &read), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(0, 8, fx.fast.mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	wr.reg_mr.key_tag = rmem_rkey_next_tag(fx.fast.mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(0, 8, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	read.rdma.rkey = fx.fast.mr->rkey;
	TEST_STATUS(fx_send(fx.b.qp, &read), RMEM_WC_REM_ACCESS_ERR);
	return TEST_SUCCESS;
}

TEST(fastreg, relaxed_ordering_is_taken_as_a_hint)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);

	wr.reg_mr.access = FX_ACCESS | RMEM_ACCESS_RELAXED_ORDERING;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(0, 8, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg, two_bindings_with_a_list_each_are_posted_together)
{
	struct rmem_mr *mr = fx_fast_mr(fx.a.pd, 1);
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	struct rmem_send_wr wrs[2];

	TEST_ASSERT(mr != NULL && list != NULL);
	fx_list_pages(list, fx.fast.pages + FX_PAGE, 1);
	wrs[0] = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	wrs[1] = fx_reg(mr, list, 1, 0, FX_PAGE);
	wrs[1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 16, 8);
	TEST_STATUS(fx_peer_write(0, 8, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(8, 16, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.fast.pages, fx.b.buf, 8);
	TEST_MEM(fx.fast.pages + FX_PAGE + 8, fx.b.buf, 16);
	return TEST_SUCCESS;
}

/* A REG_MR that waits behind a SEND without a receive. */
static int
post_waiting_reg_mr(void)
{
	struct rmem_send_wr wrs[2];

	wrs[0] = fx_wr(RMEM_WR_SEND, NULL, 0);
	wrs[1] = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	wrs[1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
	TEST_ERR(rmem_mr_dereg(fx.fast.mr), EBUSY);
	TEST_ERR(rmem_fast_reg_page_list_free(fx.fast.list), EBUSY);
	return TEST_SUCCESS;
}

static int
expect_free_to_go(void)
{
	TEST_OK(fx_release(fx.fast.list));
	TEST_OK(fx_release(fx.fast.mr));
	return TEST_SUCCESS;
}

TEST(fastreg, mr_and_list_of_a_waiting_reg_mr_are_ebusy)
{
	TEST_RUN(post_waiting_reg_mr());
	TEST_EQ(fx_post_recv(fx.b.qp, 1, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_REG_MR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	return expect_free_to_go();
}

TEST(fastreg, reset_lets_mr_and_list_of_a_waiting_reg_mr_go)
{
	TEST_RUN(post_waiting_reg_mr());
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	return expect_free_to_go();
}

TEST(fastreg, destroy_lets_mr_and_list_of_a_waiting_reg_mr_go)
{
	TEST_RUN(post_waiting_reg_mr());
	TEST_OK(fx_release(fx.a.qp));
	return expect_free_to_go();
}

TEST(fastreg, flush_lets_mr_and_list_of_a_waiting_reg_mr_go)
{
	TEST_RUN(post_waiting_reg_mr());
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	return expect_free_to_go();
}

/* Without an MR or a page list the request is malformed: refused at the post. */
TEST(fastreg, request_without_mr_or_list_is_einval)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, NULL, 1, 0, FX_PAGE);

	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	wr.reg_mr.mr = NULL;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST_SUITE(fastreg, fx_setup_fast, fx_teardown);
