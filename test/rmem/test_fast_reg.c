/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Fast registration on the software device: making and releasing MRs and lists, requests that
 * wait, bursts, READ_WITH_INV, and every opcode over scattered pages. The rules of REG_MR and
 * the invalidations are in conformance.
 */

#include <string.h>
#include <sys/mman.h>

#include "fixture.h"
#include "steps.h"
#include "umr_layout.h"

TEST(fastreg, number_of_pages_is_limited)
{
	struct rmem_fast_reg_page_list *list = NULL;
	struct rmem_mr *mr = NULL;
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);

	TEST_ERR(rmem_fast_reg_mr_alloc(fx.a.pd, 0, &mr), EINVAL);
	TEST_ERR(rmem_fast_reg_mr_alloc(fx.a.pd, info.max_page_list_len + 1, &mr), EINVAL);
	TEST_ERR(rmem_fast_reg_page_list_alloc(fx.a.dev, 0, &list), EINVAL);
	TEST_ERR(rmem_fast_reg_page_list_alloc(fx.a.dev, info.max_page_list_len + 1, &list),
			EINVAL);
	TEST_ASSERT(mr == NULL && list == NULL);
	list = fx_page_list(fx.a.dev, info.max_page_list_len);
	fx_fast_mr(fx.a.pd, info.max_page_list_len);
	TEST_EQ(list->max_page_list_len, info.max_page_list_len);
}

/* Lists of 1 to 8 pages, in descending order; the last byte of each is written. */
TEST(fastreg, list_of_each_length_has_all_of_its_pages)
{
	enum {
		MAX = 8
	};
	struct rmem_fast_reg_page_list *lists[MAX + 1];
	struct rmem_send_wr wr;
	struct rmem_mr *mr;
	uint32_t nb, i;

	for (nb = 1; nb <= MAX; nb++) {
		lists[nb] = fx_page_list(fx.a.dev, nb);
		for (i = 0; i < nb; i++)
			lists[nb]->page_list[i] = fx_addr(fx.a.buf) + (nb - 1 - i) * FX_PAGE;
	}
	for (nb = 1; nb <= MAX; nb++) {
		mr = fx_fast_mr(fx.a.pd, nb);
		wr = fx_reg(mr, lists[nb], (uint16_t)nb, 0, nb * FX_PAGE);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		fx.b.buf[0] = (uint8_t)nb;
		TEST_STATUS(fx_peer_write(nb * FX_PAGE - 1, 1, mr->rkey), RMEM_WC_SUCCESS);
		TEST_EQ(fx.a.buf[FX_PAGE - 1], nb);
		TEST_STATUS(fx_peer_write(0, 1, mr->rkey), RMEM_WC_SUCCESS);
		TEST_EQ(fx.a.buf[(nb - 1) * FX_PAGE], nb);
	}
}

/* A page of each size of the device, in a mapping of which only the start is touched. */
TEST(fastreg, every_page_size_of_the_device_is_bound)
{
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	uint64_t size;
	unsigned int bit;

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
}

/* A REG_MR that waits after a SEND without a receive. */
static void
post_waiting_reg_mr(void)
{
	struct rmem_send_wr wrs[2];

	wrs[0] = fx_wr(RMEM_WR_SEND, NULL, 0);
	wrs[1] = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	wrs[1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
	TEST_ERR(rmem_mr_dereg(fx.fast.mr), EBUSY);
	TEST_ERR(rmem_fast_reg_page_list_free(fx.fast.list), EBUSY);
}

TEST(fastreg, mr_and_list_of_a_waiting_reg_mr_are_ebusy)
{
	post_waiting_reg_mr();
	TEST_EQ(fx_post_recv(fx.b.qp, 1, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_REG_MR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_OK(fx_release(fx.fast.list));
	TEST_OK(fx_release(fx.fast.mr));
}

/* By a reset, a flush and the destruction. */
TEST(fastreg, end_of_a_waiting_reg_mr_releases_mr_and_list)
{
	post_waiting_reg_mr();
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	fx_reconnect();
	post_waiting_reg_mr();
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	fx_reconnect();
	post_waiting_reg_mr();
	TEST_OK(fx_release(fx.a.qp));
	TEST_OK(fx_release(fx.fast.list));
	TEST_OK(fx_release(fx.fast.mr));
}

/* 32 MRs a burst: all registered, then all written, then all revoked, the last signaled. */
TEST(fastreg, bursts_of_32_are_posted_at_once)
{
	enum {
		NB = 32
	};
	static struct rmem_fast_reg_page_list *lists[NB];
	static struct rmem_send_wr wrs[2 * NB];
	static struct rmem_mr *mrs[NB];
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	uint32_t i;

	for (i = 0; i < NB; i++) {
		mrs[i] = fx_fast_mr(fx.a.pd, 1);
		lists[i] = fx_page_list(fx.a.dev, 1);
		fx_list_pages(lists[i], fx.a.buf + (i % 16) * FX_PAGE, 1);
		wrs[i] = fx_reg(mrs[i], lists[i], 1, 64 * i, 64);
		wr = fx_inv(rmem_rkey_of_tag(mrs[i]->rkey, wrs[i].reg_mr.key_tag));
		wrs[NB + i] = wr;
	}
	wrs[NB - 1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, NB), NB);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < NB; i++) {
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, 64 * i, mrs[i]->rkey);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	}
	wrs[2 * NB - 1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, &wrs[NB], NB), NB);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < NB; i++)
		TEST_EQ(fx_mr_state(mrs[i]), RMEM_MR_STATE_FREE);
}

/* One MR bound, revoked and bound to other pages by one post. */
TEST(fastreg, mr_is_bound_twice_by_one_post)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	struct rmem_send_wr wrs[3];

	fx_list_pages(list, fx.fast.pages + FX_PAGE, 1);
	wrs[0] = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	wrs[1] = fx_inv(rmem_rkey_of_tag(fx.fast.mr->rkey, wrs[0].reg_mr.key_tag));
	wrs[2] = fx_reg(fx.fast.mr, list, 1, 0, FX_PAGE);
	wrs[2].reg_mr.key_tag = (uint8_t)(wrs[0].reg_mr.key_tag + 1);
	wrs[2].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 3), 3);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	fx.b.buf[0] = 0x42;
	TEST_STATUS(fx_peer_write(0, 1, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx.fast.pages[FX_PAGE], 0x42);
	TEST_EQ(fx.fast.pages[0], 0);
}

/* The second of two MRs bound by one post was bound to two scattered pages before. */
TEST(fastreg, mr_of_scattered_pages_is_bound_to_one_page)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 2);
	uint8_t *page = fx.fast.pages + fx_addr(fx.fast.pages) % (2 * FX_PAGE);
	struct rmem_mr *other = fx_fast_mr(fx.a.pd, 1);
	struct rmem_mr_info info;
	struct rmem_send_wr wrs[2];

	fx_list_pages(list, fx.fast.pages + FX_PAGE, 2);
	list->page_list[1] = fx_addr(fx.fast.pages);
	wrs[0] = fx_reg(fx.fast.mr, list, 2, 0, 2 * FX_PAGE);
	TEST_STATUS(fx_send(fx.a.qp, &wrs[0]), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	fx_list_pages(list, page, 1);
	wrs[0] = fx_reg(other, list, 1, 0, FX_PAGE);
	wrs[1] = fx_reg(fx.fast.mr, list, 1, 0, FX_PAGE);
	wrs[0].reg_mr.log2_page_size = wrs[1].reg_mr.log2_page_size = 13;
	wrs[1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	memset(&info, 0, sizeof(info));
	TEST_OK(rmem_mr_query(fx.fast.mr, &info));
	TEST_EQ(info.page_size, 2 * FX_PAGE);
	TEST_EQ(info.nb_pages, 1);
	fx.b.buf[0] = 0x42;
	TEST_STATUS(fx_peer_write(0, 1, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(page[0], 0x42);
}

/* Of three REG_MRs in one post the second is refused: the first is bound, the third is flushed. */
TEST(fastreg, refused_one_of_a_burst_flushes_the_rest)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	struct rmem_send_wr wrs[3];
	struct rmem_mr *mrs[3];
	uint32_t i;

	fx_list_pages(list, fx.a.buf, 1);
	for (i = 0; i < RTE_DIM(wrs); i++) {
		mrs[i] = fx_fast_mr(fx.a.pd, 1);
		wrs[i] = fx_reg(mrs[i], list, 1, 0, 64);
		wrs[i].flags = RMEM_SEND_SIGNALED;
		wrs[i].wr_id = i;
	}
	wrs[1].reg_mr.length = 0;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_MW_BIND_ERR);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_EQ(fx.wc.vendor_err, RMEM_VENDOR_ERR_LENGTH);
	fx_expect_flush(fx.a.cq, 2, 1);
	TEST_EQ(fx_mr_state(mrs[0]), RMEM_MR_STATE_VALID);
	TEST_EQ(fx_mr_state(mrs[1]), RMEM_MR_STATE_FREE);
	TEST_EQ(fx_mr_state(mrs[2]), RMEM_MR_STATE_FREE);
}

TEST(fastreg, read_with_inv_of_a_bad_key_is_refused)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_READ_WITH_INV, &sge, &fx.b);
	uint32_t bad[5];
	unsigned int i;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	bad[0] = 0;
	bad[1] = fx.fast.mr->rkey ^ 1;
	bad[2] = fx.fast.mr->lkey;
	bad[3] = fx.a.mr->rkey;
	bad[4] = UINT32_MAX;
	for (i = 0; i < RTE_DIM(bad); i++) {
		wr.invalidate_rkey = bad[i];
		fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS);
	}
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS);
}

TEST(fastreg, read_with_inv_that_fails_to_read_invalidates_nothing)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_rdma(
			RMEM_WR_RDMA_READ_WITH_INV, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey ^ 1);

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	fx_expect_refusal(&wr, RMEM_WC_REM_ACCESS_ERR, RMEM_QPS_ERR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
}

/* It is the domain of the receiving QP that counts. */
TEST(fastreg, send_with_inv_into_another_domain_fails_the_receive)
{
	struct fx_side other = {0};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);

	fx_side_open(&other, fx.a.dev, fx_pd(fx.a.dev));
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_pair(fx.a.qp, other.qp));
	TEST_EQ(fx_post_recv(other.qp, 9, NULL, 0), 1);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(other.cq), RMEM_WC_REM_INV_REQ_ERR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
}

/* Three pages of a's buffer in this order, from an odd place in the first. */

#define IOVA   UINT64_C(0x345600f01)
#define LENGTH (2u * FX_PAGE + 100u)

static const uint8_t order[] = {6, 1, 4};
static struct layout pages;

static void
setup_pages(void)
{
	fx_setup_fast();
	layout_pages(&pages, fx.fast.mr, order, RTE_DIM(order), IOVA, LENGTH);
}

static uint8_t *
byte_at(uint32_t n)
{
	return fx.a.buf + pages.place[n];
}

static struct rmem_sge
page_sge(uint32_t first, uint32_t length)
{
	return (struct rmem_sge){IOVA + first, length, fx.fast.mr->lkey};
}

TEST_WITH(fastreg, every_opcode_uses_scattered_pages, setup_pages)
{
	layout_check_all(&pages);
}

/* On both sides of the border between the first and the second page. */
TEST_WITH(fastreg, atomics_use_scattered_pages, setup_pages)
{
	const uint32_t border = FX_PAGE - (uint32_t)(IOVA % FX_PAGE);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8), result = page_sge(border - 3, 8);
	uint64_t value = UINT64_C(0x1122334455667788);
	struct rmem_send_wr wr;
	uint32_t i, at;

	for (i = 0; i < 2; i++) {
		at = border - 8 + 8 * i;
		wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, IOVA + at, fx.fast.mr->rkey,
				value);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		TEST_MEM(byte_at(at), &value, 8);
		wr = fx_atomic(RMEM_WR_ATOMIC_CMP_AND_SWP, &sge, IOVA + at, fx.fast.mr->rkey,
				value);
		wr.atomic.swap = ++value;
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		TEST_MEM(byte_at(at), &value, 8);
	}
	/* The result of one lands across the border. */
	memcpy(fx.b.buf, &value, 8);
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &result, fx_addr(fx.b.buf), fx.b.mr->rkey, 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(byte_at(border - 3), &value, 3);
	TEST_MEM(byte_at(border), (uint8_t *)&value + 3, 5);
}

/* Page lists on both sides, and SGEs of both kinds. */
TEST_WITH(fastreg, both_sides_use_scattered_pages, setup_pages)
{
	const struct rmem_sge sges[] = {
			fx_sge(fx.a.mr, 0, 100), page_sge(0, LENGTH), fx_sge(fx.a.mr, 100, 1)};
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.b.dev, 3);
	struct rmem_mr *mr = fx_fast_mr(fx.b.pd, 3);
	uint32_t i, at, where[] = {5, 2, 3};
	struct rmem_send_wr wr;
	uint8_t want;

	for (i = 0; i < 3; i++)
		list->page_list[i] = fx_addr(fx.b.buf + where[i] * FX_PAGE);
	wr = fx_reg(mr, list, 3, 0x1010, LENGTH + 101);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.a.buf, FX_BUF_SIZE, 14);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, sges, 0x1010, mr->rkey);
	wr.num_sge = 3;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	for (i = 0; i < LENGTH + 101; i++) {
		want = i < 100 ? fx.a.buf[i] : i < LENGTH + 100 ? *byte_at(i - 100) : fx.a.buf[100];
		at = 0x10 + i;
		TEST_EQ(fx.b.buf[where[at / FX_PAGE] * FX_PAGE + at % FX_PAGE], want);
	}
}

/* All is checked before any byte is copied: the message ends after the last page. */
TEST_WITH(fastreg, refused_access_moves_no_byte_of_any_page, setup_pages)
{
	const struct rmem_sge sge = page_sge(0, LENGTH + 1);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_READ, &sge, &fx.b);

	fx_fill(fx.b.buf, FX_BUF_SIZE, 11);
	TEST_STATUS(fx_peer_write(IOVA, LENGTH + 1, fx.fast.mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
}

static struct rmem_mr_info queried;
static int bound;

static void
query(void)
{
	queried.state = RMEM_MR_STATE_ERROR;
	rmem_mr_query(fx.fast.mr, &queried);
}

static void
bind_again(void)
{
	struct rmem_send_wr wr;

	bound = fx_invalidate(fx.fast.mr->rkey);
	wr = fx_reg(fx.fast.mr, fx.fast.list, 2, 8 * FX_PAGE, 2 * FX_PAGE);
	if (bound == RMEM_WC_SUCCESS)
		bound = fx_send(fx.a.qp, &wr);
}

/* At each instruction of the query, the MR is invalidated and bound again. */
TEST(fastreg, query_returns_one_binding)
{
	struct rmem_send_wr wr;
	bool is_interrupted;
	uint64_t at = 0;

	TEST_SKIP_IF(!STEPS_CAN_COUNT, "it takes an x86 processor");
	do {
		wr = fx_reg(fx.fast.mr, fx.fast.list, 4, 16 * FX_PAGE, 4 * FX_PAGE);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		is_interrupted = steps_interrupt(query, at++, bind_again);
		TEST_STATUS(bound, RMEM_WC_SUCCESS);
		if (queried.state == RMEM_MR_STATE_VALID) {
			TEST_EQ(queried.nb_pages, queried.iova == 8 * FX_PAGE ? 2 : 4);
			TEST_EQ(queried.length, queried.nb_pages * FX_PAGE);
			TEST_EQ(queried.iova, 4 * queried.length);
		} else {
			TEST_EQ(queried.state, RMEM_MR_STATE_FREE);
		}
		TEST_STATUS(fx_invalidate(fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	} while (is_interrupted);
	TEST_ASSERT(at > 20);
}

TEST_SUITE(fastreg, fx_setup_fast, fx_teardown);
