/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory regions: exactly the registered range can be accessed. */

#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "conf.h"

#define ALL (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ)

/* Unaligned offsets, and lengths around those of pages and packets. */
static const uint32_t lengths[] = {1, 7, 64, 255, 1023, 1024, 1025, 4095, 4096, 4097, 16385, 60000};

CONF_TEST(mr, write_changes_only_its_range, 0, 0,
		"IBTA 9.4.3: a WRITE places its bytes at its address")
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		conf_granted(fx_addr(fx.a.buf), lengths[i], fx.a.mr->rkey, fx.a.buf);
		TEST_EQ(fx.wc.opcode, RMEM_WC_RDMA_WRITE);
		conf_granted(fx_addr(fx.a.buf) + 4093, lengths[i], fx.a.mr->rkey, fx.a.buf + 4093);
	}
}

CONF_TEST(mr, any_address_and_length_is_registered, 0, 0,
		"ibv_reg_mr(3): neither addr nor length need be aligned")
{
	static const size_t offsets[] = {0, 1, 7, FX_PAGE - 1};
	unsigned int i, j;

	for (i = 0; i < RTE_DIM(offsets); i++) {
		for (j = 0; j < RTE_DIM(lengths); j++) {
			uint8_t *addr = fx.a.buf + offsets[i];
			struct rmem_mr *mr = fx_mr(fx.a.pd, addr, lengths[j], ALL);

			conf_granted(fx_addr(addr), lengths[j], mr->rkey, addr);
		}
	}
}

CONF_TEST(mr, stack_heap_and_eal_memory_is_registered, 0, 0,
		"ibv_reg_mr(3): any memory of the process")
{
	static uint8_t *eal; /* not lost if the case ends by an injected fault */
	uint8_t stack[100] = {0};
	uint8_t *places[] = {stack, NULL, fx_mem(8, 100)};
	unsigned int i;

	rte_free(eal);
	eal = places[1] = rte_zmalloc("conf_mr", 100, 0);
	fx_fill(fx.b.buf, 100, 5);
	for (i = 0; i < RTE_DIM(places); i++) {
		struct rmem_mr *mr = fx_mr(fx.a.pd, places[i], 100, ALL);

		TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, fx_addr(places[i]), 100, mr->rkey),
				RMEM_WC_SUCCESS);
		TEST_MEM(places[i], fx.b.buf, 100);
		TEST_OK(fx_release(mr));
	}
	rte_free(eal);
	eal = NULL;
}

CONF_TEST(mr, read_returns_only_its_range, 0, 0,
		"IBTA 9.4.4: a READ returns the bytes at its address")
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		fx_fill(fx.a.buf, FX_BUF_SIZE, i);
		memset(fx.b.buf, 0, FX_BUF_SIZE);
		TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, fx_addr(fx.a.buf) + 4093, lengths[i],
					    fx.a.mr->rkey),
				RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_RDMA_READ);
		TEST_MEM(fx.b.buf, fx.a.buf + 4093, lengths[i]);
		TEST_ASSERT(fx_is_zero(fx.b.buf + lengths[i], FX_BUF_SIZE - lengths[i]));
	}
}

CONF_TEST(mr, message_fills_its_receive, 0, 0,
		"IBTA 9.4.1: a SEND fills the receive; ibv_poll_cq(3): byte_len")
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 5, 60000);
	unsigned int i;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		const struct rmem_sge from = fx_sge(fx.b.mr, 3, lengths[i]);
		const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

		fx_fill(fx.b.buf, FX_BUF_SIZE, i);
		memset(fx.a.buf, 0, FX_BUF_SIZE);
		TEST_EQ(fx_post_recv(fx.a.qp, i, &to, 1), 1);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_SEND);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
		TEST_EQ(fx.wc.qp_num, fx.a.qp->qp_num);
		TEST_EQ(fx.wc.wr_id, i);
		TEST_EQ(fx.wc.byte_len, lengths[i]);
		TEST_MEM(fx.a.buf + 5, fx.b.buf + 3, lengths[i]);
		TEST_ASSERT(fx_is_zero(fx.a.buf, 5));
		TEST_ASSERT(fx_is_zero(fx.a.buf + 5 + lengths[i], FX_BUF_SIZE - 5 - lengths[i]));
	}
}

/* The result need not be aligned. */
CONF_TEST(mr, atomics_return_and_change_the_value, RMEM_DEV_CAPA_ATOMIC, RMEM_ACCESS_REMOTE_ATOMIC,
		"IBTA 9.4.5: the previous value is returned; all 64 bits are used")
{
	static const struct {
		uint8_t opcode;
		uint64_t compare_add, swap, after;
	} rows[] = {
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, UINT64_C(0x100000001), 0, 8},
			{RMEM_WR_ATOMIC_CMP_AND_SWP, 7, 99, 8},
			{RMEM_WR_ATOMIC_CMP_AND_SWP, 8, UINT64_C(0x1122334455667788),
					UINT64_C(0x1122334455667788)},
			{RMEM_WR_ATOMIC_CMP_AND_SWP, UINT64_C(0x1122334455667789), 1,
					UINT64_C(0x1122334455667788)},
			{RMEM_WR_ATOMIC_CMP_AND_SWP, UINT64_C(0x1122334455667788), 0, 0},
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 0, UINT64_MAX},
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 1},
	};
	uint64_t *word = (uint64_t *)(void *)(fx.a.buf + 64), before, result;
	const struct rmem_sge sge = fx_sge(fx.b.mr, 3, 8);
	unsigned int i;

	*word = UINT64_C(0xffffffff00000007);
	for (i = 0; i < RTE_DIM(rows); i++) {
		struct rmem_send_wr wr = fx_atomic(rows[i].opcode, &sge, fx_addr(word),
				fx.a.mr->rkey, rows[i].compare_add);

		before = *word;
		wr.atomic.swap = rows[i].swap;
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, i == 0 || i > 4 ? RMEM_WC_FETCH_ADD : RMEM_WC_COMP_SWAP);
		memcpy(&result, fx.b.buf + 3, sizeof(result));
		TEST_EQ(result, before);
		TEST_EQ(*word, rows[i].after);
	}
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64) && fx_is_zero(fx.a.buf + 72, 64));
	TEST_ASSERT(fx_is_zero(fx.b.buf, 3) && fx_is_zero(fx.b.buf + 11, 64));
}

CONF_TEST(mr, atomic_that_is_refused_changes_nothing, RMEM_DEV_CAPA_ATOMIC,
		RMEM_ACCESS_REMOTE_ATOMIC, "IBTA 10.6.3: all eight bytes must be in the MR")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 12, FX_ACCESS);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;

	memset(fx.b.buf, 0x33, 8);
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, fx_addr(fx.a.buf) + 8, mr->rkey, 1);
	conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
	TEST_EQ(fx.b.buf[0], 0x33);
	TEST_MEM(fx.b.buf + 1, fx.b.buf, 7);
}

/* Gathered from, and scattered to, several MRs; one SGE is empty. */
CONF_TEST(mr, sges_are_used_in_order, 0, 0,
		"ibv_post_send(3): sg_list is gathered and scattered in order")
{
	struct rmem_mr *other = fx_mr(fx.b.pd, fx.b.buf + 8192, 4096, RMEM_ACCESS_LOCAL_WRITE);
	struct rmem_sge sges[3] = {fx_sge(fx.b.mr, 100, 11), fx_sge(fx.b.mr, 0, 0)};
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, sges, fx_addr(fx.a.buf) + 9, fx.a.mr->rkey);

	TEST_SKIP_IF(conf.info.max_send_sge < RTE_DIM(sges), "the device takes fewer than 3 SGEs");
	sges[2] = fx_sge(other, 1, 3000);
	wr.num_sge = RTE_DIM(sges);
	fx_fill(fx.b.buf, FX_BUF_SIZE, 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 9, fx.b.buf + 100, 11);
	TEST_MEM(fx.a.buf + 20, fx.b.buf + 8193, 3000);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 3020, 4096));
	wr.opcode = RMEM_WR_RDMA_READ;
	memset(fx.b.buf, 0, FX_BUF_SIZE);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf + 100, fx.a.buf + 9, 11);
	TEST_MEM(fx.b.buf + 8193, fx.a.buf + 20, 3000);
	TEST_ASSERT(fx_is_zero(fx.b.buf + 111, 8193 - 111));
}

/* An MR of 200 bytes inside the buffer, which is inside another MR. */
CONF_TEST(mr, remote_access_beyond_the_mr_is_refused, 0, 0,
		"IBTA 10.6.3: an rkey is valid for the MR's range and no other byte")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf + 5000, 200, ALL);
	uint64_t at = fx_addr(fx.a.buf) + 5000;

	conf_granted(at, 200, mr->rkey, fx.a.buf + 5000);
	conf_granted(at + 199, 1, mr->rkey, fx.a.buf + 5199);
	conf_denied(at - 1, 1, mr->rkey);
	conf_denied(at - 1, 201, mr->rkey);
	conf_denied_to_all(at - 8, mr->rkey);
	conf_denied_to_all(at + 193, mr->rkey);
	conf_denied_to_all(at + 200, mr->rkey);
	conf_denied_to_all(0, mr->rkey);
	conf_denied(at, 201, mr->rkey);
	conf_denied(at + 199, 2, mr->rkey);
	conf_denied(at + 200, 1, mr->rkey);
	fx_fill(fx.a.buf, FX_BUF_SIZE, 1);
	memset(fx.b.buf, 0, FX_BUF_SIZE);
	conf_status(CONF_REMOTE_KEY, conf_do(RMEM_WR_RDMA_READ, at, 201, mr->rkey));
	TEST_ASSERT(fx_is_zero(fx.b.buf, FX_BUF_SIZE));
	conf_reconnect();
	conf_denied(at + 4096, 8, mr->rkey);
}

/* A device must not compare the sum of address and length. */
CONF_TEST(mr, remote_range_that_wraps_is_refused, 0, 0,
		"IBTA 10.6.3: address + length must not overflow the check")
{
	static const uint64_t far[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 4095};
	uint64_t at = fx_addr(fx.a.buf);
	unsigned int i;

	for (i = 0; i < RTE_DIM(far); i++) {
		conf_denied(far[i], 8, fx.a.mr->rkey);
		conf_denied(far[i], 40000, fx.a.mr->rkey);
	}
	conf_denied(at + (UINT64_C(1) << 32), 8, fx.a.mr->rkey);
	conf_denied(at ^ (UINT64_C(1) << 63), 8, fx.a.mr->rkey);
}

CONF_TEST(mr, local_access_beyond_the_mr_fails, 0, 0,
		"IBTA 10.6.3: an lkey is valid for the MR's range and no other byte")
{
	struct rmem_mr *mr = fx_mr(fx.b.pd, fx.b.buf + 5000, 200, ALL);
	static const int64_t offsets[] = {-1, 193, 200, 4096};
	struct rmem_sge sge = {.length = 8, .lkey = mr->lkey};
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);
	unsigned int i;

	fx_fill(fx.b.buf, FX_BUF_SIZE, 1);
	for (i = 0; i < RTE_DIM(offsets); i++) {
		sge.addr = fx_addr(fx.b.buf) + 5000 + (uint64_t)offsets[i];
		conf_refused(CONF_LOCAL_KEY, fx.b.qp, &wr);
	}
	sge.addr = UINT64_MAX - 3;
	conf_refused(CONF_LOCAL_KEY, fx.b.qp, &wr);
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
	sge.addr = fx_addr(fx.b.buf) + 5192;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf + 5192, 8);
}

CONF_TEST(mr, iova_may_be_0, 0, 0, "ibv_reg_mr_iova(3): requests address bytes by the iova")
{
	struct rmem_mr_attr attr = {
			.addr = fx.a.buf, .length = 1000, .access = ALL, .flags = RMEM_MR_IOVA};
	struct rmem_mr *mr;

	TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mr));
	fx_track(mr);
	TEST_EQ(mr->iova, 0);
	TEST_EQ(fx_query(mr).iova, 0);
	conf_granted(0, 1000, mr->rkey, fx.a.buf);
	conf_granted(999, 1, mr->rkey, fx.a.buf + 999);
	conf_denied(1000, 1, mr->rkey);
	conf_denied(fx_addr(fx.a.buf), 1, mr->rkey);
}

/* A device may require the same offset of iova and address in a page (ibv_reg_mr_iova(3)). */
CONF_TEST(mr, requests_use_the_iova, 0, 0, "ibv_reg_mr_iova(3): requests address bytes by the iova")
{
	const uint64_t iova = (UINT64_C(0x5a) << 40) + 100;
	struct rmem_mr *mr = NULL;
	struct rmem_sge sge;
	struct rmem_send_wr wr;

	TEST_OK(rmem_mr_reg(fx.a.pd, fx.a.buf + 4096 + 100, 1000, iova, ALL, &mr));
	fx_track(mr);
	TEST_EQ(mr->iova, iova);
	conf_granted(iova, 1000, mr->rkey, fx.a.buf + 4196);
	conf_granted(iova + 999, 1, mr->rkey, fx.a.buf + 5195);
	conf_denied(iova - 1, 1, mr->rkey);
	conf_denied(iova + 1000, 1, mr->rkey);
	conf_denied(fx_addr(fx.a.buf) + 4196, 8, mr->rkey);
	sge = fx_sge(mr, 10, 100);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	fx_fill(fx.a.buf, FX_BUF_SIZE, 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 4206, 100);
	sge.addr = fx_addr(fx.a.buf) + 4206;
	conf_refused(CONF_LOCAL_KEY, fx.a.qp, &wr);
}

CONF_TEST(mr, zero_based_mr_starts_at_0, 0, RMEM_ACCESS_ZERO_BASED,
		"ibv_reg_mr(3): IBV_ACCESS_ZERO_BASED, addresses are offsets")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf + 77, 1000, ALL | RMEM_ACCESS_ZERO_BASED);
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	TEST_EQ(mr->iova, 0);
	TEST_EQ(fx_query(mr).iova, 0);
	TEST_EQ(fx_query(mr).access, ALL | RMEM_ACCESS_ZERO_BASED);
	fx_fill(fx.a.buf, FX_BUF_SIZE, 1);
	sge = fx_sge(mr, 20, 80);
	TEST_EQ(sge.addr, 20);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 97, 80);
	conf_granted(0, 1000, mr->rkey, fx.a.buf + 77);
	conf_granted(999, 1, mr->rkey, fx.a.buf + 1076);
	conf_denied(999, 2, mr->rkey);
	conf_denied(1, 1000, mr->rkey);
	conf_denied(UINT64_MAX, 1, mr->rkey);
	conf_denied(fx_addr(fx.a.buf) + 77, 8, mr->rkey);
}

CONF_TEST(mr, mr_of_another_pd_is_refused, 0, 0,
		"IBTA 10.2.3: an MR is valid for QPs of its PD only")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *mr = fx_mr(pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS & conf.info.access);

	conf_denied_to_all(fx_addr(fx.a.buf), mr->rkey);
	conf_denied_locally(fx_addr(fx.a.buf), mr->lkey);
	TEST_ERR(rmem_pd_dealloc(pd), EBUSY);
}

CONF_TEST(mr, deregistered_mr_grants_no_access, 0, 0,
		"ibv_dereg_mr(3): the keys are no longer valid")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 4096, FX_ACCESS & conf.info.access);
	uint32_t lkey, rkey;

	lkey = mr->lkey;
	rkey = mr->rkey;
	conf_granted(fx_addr(fx.a.buf), 8, rkey, fx.a.buf);
	TEST_OK(fx_release(mr));
	conf_denied_to_all(fx_addr(fx.a.buf), rkey);
	conf_denied_locally(fx_addr(fx.a.buf), lkey);
}

static void
release(struct rmem_mr *mr)
{
	TEST_OK(fx_release(mr));
}

/* Requests in flight end before the call returns; later requests of the burst may fail. */
CONF_TEST(mr, no_write_arrives_after_dereg, 0, 0,
		"IBTA 11.2.8.5: no access after Deregister has returned")
{
	struct rmem_wc wcs[16];
	unsigned int i;

	conf_end_writes(fx_mr(fx.a.pd, fx.a.buf, 32768, ALL), release, wcs);
	for (i = 0; i < RTE_DIM(wcs) && wcs[i].status == RMEM_WC_SUCCESS; i++)
		;
	if (i < RTE_DIM(wcs))
		conf_status(CONF_REMOTE_KEY, wcs[i].status);
	for (i++; i < RTE_DIM(wcs); i++)
		TEST_STATUS(wcs[i].status, RMEM_WC_WR_FLUSH_ERR);
}

CONF_TEST(mr, receive_of_a_deregistered_mr_fails, 0, 0,
		"IBTA 10.6.3: a receive's memory is checked when the message arrives")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 4096, ALL);
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_sge to;

	to = fx_sge(mr, 0, 64);
	memset(fx.b.buf, 0xff, 64);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	TEST_OK(fx_release(mr));
	conf_status(CONF_PEER_MEMORY, fx_send(fx.b.qp, &wr));
	conf_status(CONF_RECV_KEY, fx_wait(fx.a.cq));
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
}

/* Unmapped: the second page, and the page after the third. */
CONF_TEST(mr, registration_of_unmapped_memory_is_refused, 0, 0,
		"ibv_reg_mr(3): unmapped memory can't be registered")
{
	struct rmem_mr *mr = NULL;
	uint8_t *pages = fx_map(4 * FX_PAGE), *third = pages + 2 * FX_PAGE;

	TEST_OK(munmap(pages + FX_PAGE, FX_PAGE));
	TEST_OK(munmap(pages + 3 * FX_PAGE, FX_PAGE));
	TEST_ERR(rmem_mr_reg(fx.a.pd, pages + FX_PAGE, 1, 0, 0, &mr), EFAULT);
	TEST_ERR(rmem_mr_reg(fx.a.pd, pages, 3 * FX_PAGE, 0, 0, &mr), EFAULT);
	TEST_ERR(rmem_mr_reg(fx.a.pd, third, FX_PAGE + 1, 0, 0, &mr), EFAULT);
	TEST_ERR(rmem_mr_reg(fx.a.pd, (void *)FX_PAGE, 1, 0, 0, &mr), EFAULT);
	fx_mr(fx.a.pd, third, FX_PAGE, 0);
	TEST_OK(mprotect(pages, FX_PAGE, PROT_READ | PROT_WRITE));
	TEST_OK(mprotect(third, FX_PAGE, PROT_READ | PROT_WRITE));
	TEST_ERR(rmem_mr_reg(fx.a.pd, pages, FX_PAGE + 1, 0, ALL, &mr), EFAULT);
	fx_mr(fx.a.pd, third, FX_PAGE, ALL);
	TEST_OK(mprotect(pages, FX_PAGE, PROT_NONE));
	TEST_ERR(rmem_mr_reg(fx.a.pd, pages, FX_PAGE, 0, ALL, &mr), EFAULT);
	TEST_ASSERT(mr == NULL);
}

CONF_TEST(mr, read_only_memory_takes_no_write_right, 0, 0,
		"ibv_reg_mr(3): LOCAL_WRITE needs memory that can be written")
{
	uint8_t *mem = fx_map(FX_PAGE);
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg(fx.a.pd, mem, FX_PAGE, 0, RMEM_ACCESS_LOCAL_WRITE, &mr), EFAULT);
	TEST_ASSERT(mr == NULL);
	mr = fx_mr(fx.a.pd, mem, FX_PAGE, RMEM_ACCESS_REMOTE_READ);
	memset(fx.b.buf, 0xff, 64);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, fx_addr(mem), 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, 64));
}

/* Of the 16 combinations of rights, those to modify by peers need LOCAL_WRITE. */
CONF_TEST(mr, bad_registrations_are_refused, 0, 0,
		"ibv_reg_mr(3): remote rights to modify need LOCAL_WRITE; bad ranges")
{
	const uint32_t known =
			RMEM_ACCESS_FLUSH | RMEM_ACCESS_OPTIONAL_RANGE | RMEM_ACCESS_ALLOCATE_MR;
	void *buf = fx.a.buf, *high = (void *)(UINTPTR_MAX - 62);
	struct rmem_mr *mr = NULL;
	uint32_t access, bit;

	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, 64, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, buf, SIZE_MAX, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, high, 64, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, buf, 64, UINT64_MAX - 62, 0, &mr), EINVAL);
	for (access = 0; access < 16; access++) {
		if ((access & RMEM_ACCESS_LOCAL_WRITE) == 0 &&
				(access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)) !=
						0)
			TEST_ERR(rmem_mr_reg(fx.a.pd, buf, 64, 0, access, &mr), EINVAL);
	}
	for (bit = 8; bit < 32; bit++) {
		access = RMEM_ACCESS_LOCAL_WRITE | UINT32_C(1) << bit;
		if ((access & known) == 0)
			TEST_ERR(rmem_mr_reg(fx.a.pd, buf, 64, 0, access, &mr), EINVAL);
	}
	TEST_ASSERT(mr == NULL);
}

/* Unsupported optional bits are ignored: each bit, and all. */
CONF_TEST(mr, optional_rights_are_accepted, 0, 0,
		"ibv_reg_mr(3): IBV_ACCESS_OPTIONAL_RANGE is ignored where unknown")
{
	const uint32_t all = RMEM_ACCESS_OPTIONAL_RANGE & ~RMEM_ACCESS_ALLOCATE_MR;
	struct rmem_mr *mr;
	uint32_t bit;

	for (bit = 0; bit <= 32; bit++) {
		uint32_t optional = bit == 32 ? all : all & UINT32_C(1) << bit;

		if (optional == 0)
			continue;
		mr = fx_mr(fx.a.pd, fx.a.buf, 4096, ALL | optional);
		conf_granted(fx_addr(fx.a.buf), 4096, mr->rkey, fx.a.buf);
		conf_denied(fx_addr(fx.a.buf) + 4096, 1, mr->rkey);
	}
}

/* Each MR has rights and a range of its own over the same bytes. */
CONF_TEST(mr, overlapping_mrs_are_independent, 0, 0,
		"IBTA 10.6.2: several independent MRs over the same memory")
{
	struct rmem_mr *readable = fx_mr(fx.a.pd, fx.a.buf, 8192, RMEM_ACCESS_REMOTE_READ);
	struct rmem_mr *writable = fx_mr(fx.a.pd, fx.a.buf + 4000, 1000,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE);
	uint64_t at = fx_addr(fx.a.buf) + 4000;

	conf_denied(at, 8, readable->rkey);
	conf_granted(at, 1000, writable->rkey, fx.a.buf + 4000);
	conf_denied(at - 1, 8, writable->rkey);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, at, 8, readable->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 4000, 8);
	TEST_OK(fx_release(writable));
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, at, 8, readable->rkey), RMEM_WC_SUCCESS);
}

CONF_TEST(mr, each_of_many_mrs_grants_access_to_its_own_bytes, 0, 0,
		"IBTA 10.6.2: keys of valid MRs differ")
{
	enum {
		nb = 256,
		size = FX_BUF_SIZE / nb
	};
	struct rmem_mr *mrs[nb];
	unsigned int i, j;

	for (i = 0; i < nb; i++) {
		mrs[i] = fx_mr(fx.a.pd, fx.a.buf + i * size, size, ALL);
		for (j = 0; j < i; j++)
			TEST_ASSERT(mrs[j]->rkey != mrs[i]->rkey && mrs[j]->lkey != mrs[i]->lkey);
	}
	for (i = 0; i < nb; i++)
		conf_granted(fx_addr(fx.a.buf) + i * size, size, mrs[i]->rkey, fx.a.buf + i * size);
	for (i = 0; i + 1 < nb; i += 51)
		conf_denied(fx_addr(fx.a.buf) + (i + 1) * size, 8, mrs[i]->rkey);
}

CONF_TEST(mr, allocated_memory_is_accessible, 0, 0,
		"Optimized Memory Access: ALLOCATE_MR, memory of the library")
{
	struct rmem_mr_info info;
	struct rmem_mr *mr = NULL;

	TEST_OK(rmem_mr_reg(fx.a.pd, NULL, 100000, 0, ALL | RMEM_ACCESS_ALLOCATE_MR, &mr));
	fx_track(mr);
	TEST_ASSERT(mr->addr != NULL && mr->length >= 100000);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_ASSERT(info.page_size >= FX_PAGE && info.nb_extents >= 1);
	TEST_EQ(mr->length % info.page_size, 0);
	fx_fill(fx.b.buf, 40000, 7);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, mr->iova + mr->length - 40000, 40000, mr->rkey),
			RMEM_WC_SUCCESS);
	TEST_MEM((uint8_t *)mr->addr + mr->length - 40000, fx.b.buf, 40000);
	conf_denied(mr->iova + mr->length, 1, mr->rkey);
}

CONF_TEST(mr, query_returns_the_registration, 0, 0,
		"IBTA 11.2.8: Query Memory Region returns what was registered")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf + 10, 500, ALL);
	struct rmem_mr_info info;

	TEST_ASSERT(mr->addr == fx.a.buf + 10 && mr->pd == fx.a.pd);
	TEST_EQ(mr->length, 500);
	TEST_EQ(mr->access, ALL);
	TEST_EQ(mr->type, RMEM_MR_TYPE_USER);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_ASSERT(info.page_size >= FX_PAGE && info.nb_extents >= 1);
	TEST_EQ(info.max_page_list_len, 0);
	TEST_EQ(info.type, RMEM_MR_TYPE_USER);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_ASSERT(info.addr == fx.a.buf + 10);
	TEST_EQ(info.iova, fx_addr(fx.a.buf + 10));
	TEST_EQ(info.length, 500);
	TEST_EQ(info.access, ALL);
	TEST_EQ(info.lkey, mr->lkey);
	TEST_EQ(info.rkey, mr->rkey);
}

/* The MR has neither the bytes before fd_offset in its page nor those after its end. */
static void
expect_part(int fd)
{
	struct rmem_mr_attr attr = {.flags = RMEM_MR_FD | RMEM_MR_IOVA,
			.fd = fd,
			.fd_offset = FX_PAGE + 100,
			.length = FX_PAGE,
			.iova = UINT64_C(0x70000000) + 100,
			.access = conf_access()};
	struct rmem_mr *part = NULL;
	uint8_t bytes[3 * FX_PAGE];

	TEST_EQ(write(fd, memset(bytes, 0, sizeof(bytes)), sizeof(bytes)), sizeof(bytes));
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &part));
	fx_fill(fx.b.buf, FX_PAGE, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, attr.iova, FX_PAGE, part->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	TEST_ASSERT(fx_is_zero(bytes, FX_PAGE + 100));
	TEST_MEM(bytes + FX_PAGE + 100, fx.b.buf, FX_PAGE);
	TEST_ASSERT(fx_is_zero(bytes + 2 * FX_PAGE + 100, FX_PAGE - 100));
	conf_denied(attr.iova - 1, 1, part->rkey);
	conf_denied(attr.iova + 1, FX_PAGE, part->rkey);
	attr.fd_offset = 2 * FX_PAGE + 100;
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &part), EINVAL);
}

CONF_TEST(mr, part_of_a_file_begins_at_any_offset, RMEM_DEV_CAPA_MR_FD, 0, "ibv_reg_dmabuf_mr(3)")
{
	fx_with_memfd(expect_part);
}

TEST_SUITE(mr, conf_setup, conf_teardown);
