/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand MRs together with all else that MRs can be: windows and indirect keys over them,
 * re-registered, shared, counted, disabled, registered in the background.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_memory.h>

#include "fixture_odp.h"

#define IOVA UINT64_C(0x10000)

/* Writes reach the pages, which come one by one, and one that is protected gives an error. */
static void
expect_on_demand(uint64_t addr, uint32_t rkey)
{
	fx_fill(fx.b.buf, FX_PAGE, rkey);
	TEST_STATUS(fx_peer_write(addr, 64, rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(0), fx.b.buf, 64);
	TEST_ASSERT(!fx_odp_is_resident(2));
	TEST_STATUS(fx_peer_write(addr + FX_PAGE, FX_PAGE + 8, rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(1), fx.b.buf, FX_PAGE);
	TEST_OK(fx_odp_protect(1, PROT_NONE)); /* known */
	TEST_STATUS(fx_peer_write(addr + FX_PAGE, 64, rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_STATUS(fx_peer_write(addr + FX_PAGE - 16, 64, rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_OK(fx_odp_protect(1, PROT_READ | PROT_WRITE));
	TEST_STATUS(fx_peer_write(addr + FX_PAGE, 64, rkey), RMEM_WC_SUCCESS);
}

/* A window over the first bytes of the MR. */
static struct rmem_mw *
window(uint64_t length, uint32_t access)
{
	fx.mw.mr = fx_odp.mr;
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	TEST_STATUS(fx_mw_bind_2(0, length, access), RMEM_WC_SUCCESS);
	return fx.mw.two;
}

TEST(odp_mix, window_covers_an_on_demand_mr)
{
	struct rmem_mw *mw = window(FX_ODP_SIZE, RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_ZERO_BASED);

	fx_fill(fx.b.buf, FX_PAGE, 1);
	TEST_STATUS(fx_peer_write(FX_PAGE, 100, mw->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(1), fx.b.buf, 100);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 1);
	TEST_OK(fx_odp_protect(1, PROT_NONE));
	TEST_STATUS(fx_peer_write(FX_PAGE, 100, mw->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, FX_ODP_WHY);
}

static void
bind_mkey(struct rmem_mr *mkey, const struct rmem_mkey_entry *entries, uint32_t nb_entries)
{
	const struct rmem_send_wr wr = fx_umr(mkey, entries, nb_entries, IOVA);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

/* One block, then blocks of a few bytes, and a key over that key. */
TEST(odp_mix, indirect_key_covers_an_on_demand_mr)
{
	const struct rmem_mkey_entry one = fx_entry(fx_odp.mr, 0, FX_ODP_SIZE);
	const struct rmem_mkey_entry three[] = {fx_entry(fx_odp.mr, 0, FX_PAGE - 8),
			fx_entry(fx_odp.mr, FX_PAGE - 8, 8 + 100),
			fx_entry(fx_odp.mr, FX_PAGE + 100, FX_ODP_SIZE - FX_PAGE - 100)};
	struct rmem_mr *mkey = fx_mkey(fx.a.pd, 3), *upper = fx_mkey(fx.a.pd, 1);
	struct rmem_mkey_entry over = {.addr = IOVA, .length = FX_ODP_SIZE};

	bind_mkey(mkey, &one, 1);
	expect_on_demand(IOVA, mkey->rkey);
	TEST_OK(fx_release(mkey));
	mkey = fx_mkey(fx.a.pd, 3);
	TEST_OK(madvise(fx_odp.mem, FX_ODP_SIZE, MADV_DONTNEED));
	bind_mkey(mkey, three, 3);
	expect_on_demand(IOVA, mkey->rkey);
	TEST_OK(madvise(fx_odp.mem, FX_ODP_SIZE, MADV_DONTNEED));
	over.lkey = mkey->lkey;
	bind_mkey(upper, &over, 1);
	expect_on_demand(IOVA, upper->rkey);
}

/* All that is found below a key is found before a byte moves. */
TEST(odp_mix, indirect_key_over_unmapped_memory_transfers_no_byte)
{
	const struct rmem_mkey_entry entries[] = {
			fx_entry(fx_odp.mr, 3 * FX_PAGE, 64), fx_entry(fx_odp.mr, 5 * FX_PAGE, 64)};
	struct rmem_mr *mkey = fx_mkey(fx.a.pd, 2);

	bind_mkey(mkey, entries, 2);
	TEST_OK(fx_odp_protect(5, PROT_NONE));
	fx_fill(fx.b.buf, 128, 4);
	TEST_STATUS(fx_peer_write(IOVA, 128, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 8);
	TEST_EQ(fx_stats(fx_odp.mr).failed_faults, 1);
	TEST_OK(fx_odp_protect(5, PROT_READ | PROT_WRITE));
	TEST_ASSERT(fx_is_zero(fx_odp_page(3), FX_PAGE));
}

/* Bind a fast-register MR to the pages, in order or with two of them exchanged. */
static void
bind_fast(bool is_scattered, struct rmem_mr **mr)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, FX_ODP_PAGES);
	struct rmem_send_wr wr;

	*mr = fx_fast_mr(fx.a.pd, FX_ODP_PAGES);
	fx_list_pages(list, fx_odp.mem, FX_ODP_PAGES);
	if (is_scattered) {
		list->page_list[6] = fx_addr(fx_odp_page(7));
		list->page_list[7] = fx_addr(fx_odp_page(6));
	}
	wr = fx_reg(*mr, list, FX_ODP_PAGES, IOVA, FX_ODP_SIZE);
	wr.reg_mr.access = FX_ACCESS;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

/* It has the addresses of the pages, and no table of them. */
TEST(odp_mix, fast_register_mr_covers_an_on_demand_mr)
{
	struct rmem_mr *mr, *mkey;
	struct rmem_mkey_entry one = {.addr = IOVA, .length = FX_ODP_SIZE};
	uint32_t i;

	for (i = 0; i < 2; i++) {
		bind_fast(i == 1, &mr);
		expect_on_demand(IOVA, mr->rkey);
		TEST_OK(madvise(fx_odp.mem, FX_ODP_SIZE, MADV_DONTNEED));
		/* And an indirect key over it. */
		mkey = fx_mkey(fx.a.pd, 1);
		one.lkey = mr->lkey;
		bind_mkey(mkey, &one, 1);
		expect_on_demand(IOVA, mkey->rkey);
		TEST_OK(madvise(fx_odp.mem, FX_ODP_SIZE, MADV_DONTNEED));
	}
}

/*
 * The page of the last request is the cause. Events of an earlier madvise() may be handled late:
 * then the page is populated once more, and an indirect key reports the key that it is over.
 */
static void
expect_page_fault(bool is_indirect)
{
	if (!is_indirect || fx.wc.vendor_err != RMEM_VENDOR_ERR_KEY_BELOW)
		TEST_EQ(fx.wc.vendor_err, FX_ODP_WHY);
}

/* The rights of a window and of the keys that requests bind go beyond those of the MR. */
static void
expect_atomics(uint64_t addr, uint32_t rkey, bool is_indirect)
{
	const int status = fx_odp_has_atomics() ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR;
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	uint64_t word;

	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, addr + 8, rkey, 11);
	TEST_STATUS(fx_send(fx.b.qp, &wr), status);
	if (status == RMEM_WC_SUCCESS)
		TEST_OK(fx_odp_protect(0, PROT_NONE));
	else
		expect_page_fault(is_indirect);
	fx_reconnect();
	wr = fx_atomic(RMEM_WR_ATOMIC_CMP_AND_SWP, &sge, addr + 8, rkey, 0);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
	expect_page_fault(is_indirect);
	TEST_OK(fx_odp_protect(0, PROT_READ | PROT_WRITE));
	memcpy(&word, fx_odp.mem + 8, sizeof(word));
	TEST_EQ(word, status == RMEM_WC_SUCCESS ? 11 : 0);
	TEST_OK(madvise(fx_odp.mem, FX_ODP_SIZE, MADV_DONTNEED));
	fx_reconnect();
}

TEST(odp_mix, atomics_through_every_kind_of_key_follow_the_capability)
{
	const struct rmem_mkey_entry one = fx_entry(fx_odp.mr, 0, FX_ODP_SIZE);
	struct rmem_mw *mw = window(FX_ODP_SIZE, RMEM_ACCESS_REMOTE_ATOMIC);
	struct rmem_mr *mr, *mkey = fx_mkey(fx.a.pd, 1);

	expect_atomics(fx_odp.mr->iova, mw->rkey, false);
	bind_mkey(mkey, &one, 1);
	expect_atomics(IOVA, mkey->rkey, true);
	bind_fast(false, &mr);
	expect_atomics(IOVA, mr->rkey, false);
	bind_fast(true, &mr);
	expect_atomics(IOVA, mr->rkey, false);
}

/* To on-demand paging and back: the keys remain. */
TEST(odp_mix, rereg_sets_and_clears_on_demand)
{
	uint32_t plain = fx_odp_access() & ~RMEM_ACCESS_ON_DEMAND;
	uint32_t page, rkey = fx_odp.mr->rkey;
	enum rmem_rereg_result result;

	TEST_STATUS(fx_odp_write(0, 64), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mr_rereg(fx_odp.mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, plain, &result));
	TEST_EQ(result, RMEM_REREG_OK);
	TEST_EQ(fx_odp.mr->rkey, rkey);
	TEST_ASSERT(fx_odp_is_resident(FX_ODP_PAGES - 1));
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 0);
	TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mr_rereg(fx_odp.mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, fx_odp_access(),
			&result));
	TEST_EQ(fx_odp.mr->rkey, rkey);
	for (page = 0; page < FX_ODP_PAGES; page++)
		TEST_OK(fx_odp_map(page));
	expect_on_demand(fx_odp.mr->iova, rkey);
}

/* An MR that is not mapped entirely remains on demand. */
TEST(odp_mix, rereg_of_unmapped_memory_stays_on_demand)
{
	uint32_t plain = fx_odp_access() & ~RMEM_ACCESS_ON_DEMAND;
	enum rmem_rereg_result result;

	TEST_OK(fx_odp_protect(5, PROT_NONE));
	TEST_ERR(rmem_mr_rereg(fx_odp.mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, plain, &result),
			EFAULT);
	TEST_EQ(result, RMEM_REREG_ERR_DONT_FORK_NEW);
	TEST_OK(madvise(fx_odp.mem, FX_ODP_SIZE, MADV_DONTNEED));
	expect_on_demand(fx_odp.mr->iova, fx_odp.mr->rkey);
}

TEST(odp_mix, rereg_changes_rights_and_memory)
{
	struct rmem_mr *mr = fx_odp.mr;
	uint32_t read = RMEM_ACCESS_ON_DEMAND | RMEM_ACCESS_REMOTE_READ;

	TEST_STATUS(fx_odp_write(0, 64), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, read, NULL));
	TEST_EQ(fx_stats(mr).page_faults, 1);
	TEST_STATUS(fx_odp_write(0, 64), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 5);
	fx_reconnect();
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS | RMEM_REREG_CHANGE_TRANSLATION, NULL,
			fx_odp_page(4), 2 * FX_PAGE, fx_odp_access(), NULL));
	TEST_EQ(fx_stats(mr).page_faults, 0);
	TEST_STATUS(fx_odp_write(4, 2 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(mr).page_faults, 2);
	TEST_STATUS(fx_odp_write(0, 64), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, NULL, SIZE_MAX, 0, NULL));
	TEST_STATUS(fx_odp_write(7, 64), RMEM_WC_SUCCESS);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, NULL),
			EINVAL);
}

TEST(odp_mix, rereg_of_allocated_memory_is_not_on_demand)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, NULL, FX_PAGE, FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR);

	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, fx_odp_access(), NULL),
			EINVAL);
}

TEST(odp_mix, shared_mrs_have_their_own_pages)
{
	struct rmem_mr *mr, *plain;

	TEST_STATUS(fx_odp_write(0, 64), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mr_reg_shared(fx_odp.mr, fx.a.pd, 0, fx_odp_access(), &mr));
	fx_track(mr);
	TEST_EQ(fx_stats(mr).pages, 0);
	expect_on_demand(mr->iova, mr->rkey);
	TEST_ASSERT(!fx_odp_is_resident(5));
	TEST_OK(rmem_mr_reg_shared(fx_odp.mr, fx.a.pd, 0, FX_ACCESS, &plain));
	fx_track(plain);
	TEST_ASSERT(fx_odp_is_resident(5));
}

TEST(odp_mix, counter_counts_on_demand_writes)
{
	struct rmem_counter *counter = fx_counter(fx.a.dev);
	uint64_t n;

	TEST_OK(rmem_mr_bind_counter(fx_odp.mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	TEST_STATUS(fx_odp_write(0, 64), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_odp_write(0, 2 * FX_PAGE), RMEM_WC_SUCCESS);
	n = 2;
	if (fx_odp_has_atomics()) {
		TEST_STATUS(fx_odp_do(FX_ODP_ADD, fx_odp.mr->iova, 8), RMEM_WC_SUCCESS);
		n++;
	}
	TEST_EQ(rmem_counter_read(counter), n);
	TEST_OK(fx_odp_protect(0, PROT_NONE));
	TEST_STATUS(fx_odp_write(0, 64), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_EQ(rmem_counter_read(counter), n);
	TEST_OK(fx_odp_protect(0, PROT_READ | PROT_WRITE));
	TEST_OK(rmem_mr_bind_counter(fx_odp.mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
	expect_on_demand(fx_odp.mr->iova, fx_odp.mr->rkey);
}

static struct rmem_mr_attr
attr_of_all(void)
{
	return (struct rmem_mr_attr){
			.addr = fx_odp.mem, .length = FX_ODP_SIZE, .access = fx_odp_access()};
}

TEST(odp_mix, disabled_mr_is_on_demand_when_enabled)
{
	struct rmem_mr_attr attr = attr_of_all();
	struct rmem_mr *mr;

	attr.flags = RMEM_MR_DISABLED;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_EQ(fx_stats(mr).failed_faults, 0);
	TEST_OK(rmem_mr_enable(mr));
	expect_on_demand(mr->iova, mr->rkey);
}

TEST(odp_mix, background_registration_touches_nothing)
{
	struct rmem_mr_attr attr = attr_of_all();
	struct rmem_event event;
	struct rmem_mr *mr;

	attr.eq = fx_eq(fx.a.dev, 1);
	TEST_OK(fx_odp_unmap(3));
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	event = fx_event(attr.eq);
	TEST_OK(fx_odp_map(3));
	TEST_EQ(event.status, 0);
	TEST_ASSERT(!fx_odp_is_resident(0));
	expect_on_demand(mr->iova, mr->rkey);
}

/* A chosen iova, a range that is not of whole pages, and zero-based. */
TEST(odp_mix, on_demand_mr_has_any_iova)
{
	struct rmem_mr *mr;

	TEST_OK(rmem_mr_reg(fx.a.pd, fx_odp.mem + 100, 2 * FX_PAGE, 7, fx_odp_access(), &mr));
	fx_track(mr);
	fx_fill(fx.b.buf, FX_PAGE, 11);
	TEST_STATUS(fx_peer_write(7, FX_PAGE, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp.mem + 100, fx.b.buf, FX_PAGE);
	TEST_EQ(fx_stats(mr).pages, 2);
	TEST_OK(rmem_mr_reg(fx.a.pd, fx_odp.mem + 5, FX_PAGE, 0,
			fx_odp_access() | RMEM_ACCESS_ZERO_BASED, &mr));
	fx_track(mr);
	TEST_STATUS(fx_peer_write(0, FX_PAGE, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp.mem + 5, fx.b.buf, FX_PAGE);
}

static void
setup_inline(void)
{
	TEST_EQ(setenv("RMEM_SCATTER_TO_CQE", "1", 1), 0);
	fx_setup_odp();
	TEST_EQ(unsetenv("RMEM_SCATTER_TO_CQE"), 0);
}

/* A message in its completion when its MR becomes an on-demand one, and when a page is lost. */
TEST_WITH(odp_mix, inline_message_is_copied_to_pages_on_demand, setup_inline)
{
	const struct rmem_sge peer = fx_sge(fx.b.mr, 0, 32);
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx_odp.mem, FX_PAGE, FX_ACCESS);
	const struct rmem_sge own = fx_sge(mr, 0, 64);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &peer, 1);
	unsigned int i;

	fx_fill(fx.b.buf, 32, 13);
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_mr_rereg(
				mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, NULL));
		TEST_EQ(fx_post_recv(fx.a.qp, 1, &own, 1), 1);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		TEST_EQ(fx_dev_stats(fx.a.dev).inline_recvs, 1 + i);
		TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, fx_odp_access(),
				NULL));
		if (i == 1)
			TEST_OK(fx_odp_protect(0, PROT_NONE));
		TEST_STATUS(fx_wait(fx.a.cq), i == 0 ? RMEM_WC_SUCCESS : RMEM_WC_LOC_PROT_ERR);
		if (i == 0)
			TEST_MEM(fx_odp.mem, fx.b.buf, 32);
	}
}

TEST_SUITE(odp_mix, fx_setup_odp, fx_teardown);
