/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Ranges at the edges of keys and of the address space, for every kind of key: 128-bit arithmetic
 * decides what must succeed. RMEM_SEED=number replays a run.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "fixture.h"

#define MAX_LENGTH (2 * FX_PAGE)
#define NB_RANDOM  120u
#define NB_TARGETS 3u
#define SPACE      (UINT64_C(1) << 47)

__extension__ typedef unsigned __int128 u128;

/* Range of a key: [first, first + length), which may end at 2^64. */
struct target {
	uint64_t first;
	uint64_t length;
	uint32_t rkey;
	uint32_t lkey;     /* 0: none */
	bool is_all_space; /* only the buffer in it is touched */
};

static uint64_t state, seed;
static uint64_t nb_succeeded, nb_refused;
static struct target target;

static uint64_t
draw(uint64_t limit)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint64_t)(((u128)(state ^ state >> 29) * limit) >> 64);
}

static bool
is_inside(uint64_t addr, uint64_t length)
{
	return length == 0 ||
			(addr >= target.first &&
					(u128)addr + length <= (u128)target.first + target.length);
}

/* Memory that may be copied; an implicit MR covers more than is mapped. */
static bool
is_wanted(uint64_t addr, uint64_t length)
{
	return !target.is_all_space || !is_inside(addr, length) ||
			(addr >= fx_addr(fx.a.buf) &&
					addr + length <= fx_addr(fx.a.buf) + FX_BUF_SIZE);
}

static void
judge(const char *what, uint64_t addr, uint64_t length, int status, int want)
{
	if (status != want)
		test_note("RMEM_SEED=0x%" PRIx64 ": %s of %" PRIu64 " bytes at 0x%" PRIx64
			  ", key of %" PRIu64 " at 0x%" PRIx64 ": %s",
				seed, what, length, addr, target.length, target.first,
				status < 0 ? strerror(-status) : rmem_wc_status_str(status));
	TEST_STATUS(status, want);
	if (status != RMEM_WC_SUCCESS) {
		nb_refused++;
		fx_reconnect();
		return;
	}
	nb_succeeded++;
}

static void
try_remote(uint8_t opcode, uint64_t addr, uint32_t length)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, length);
	const struct rmem_send_wr wr = fx_rdma(opcode, &sge, addr, target.rkey);
	const int want = is_inside(addr, length) ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR;

	judge(opcode == RMEM_WR_RDMA_READ ? "READ" : "WRITE", addr, length, fx_send(fx.b.qp, &wr),
			want);
}

static void
try_local(uint64_t addr, uint32_t length)
{
	const struct rmem_sge sge = {addr, length, target.lkey};
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	int want = is_inside(addr, length) ? RMEM_WC_SUCCESS : RMEM_WC_LOC_PROT_ERR;

	if (length > UINT32_C(1) << 31)
		want = RMEM_WC_LOC_LEN_ERR;
	judge("local WRITE", addr, length, fx_send(fx.a.qp, &wr), want);
}

/* Of eight bytes; those of memory need not be aligned or together. */
static void
try_atomic(uint64_t addr)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr =
			fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, addr, target.rkey, 1);
	int status = fx_send(fx.b.qp, &wr), want = RMEM_WC_SUCCESS;

	if (addr % 8 != 0 || (is_inside(addr, 8) && status == RMEM_WC_REM_INV_REQ_ERR))
		want = RMEM_WC_REM_INV_REQ_ERR;
	else if (!is_inside(addr, 8))
		want = RMEM_WC_REM_ACCESS_ERR;
	judge("atomic", addr, 8, status, want);
}

static void
try_all(uint64_t addr, uint64_t length)
{
	if (is_wanted(addr, length) && length <= FX_BUF_SIZE) {
		try_remote(RMEM_WR_RDMA_WRITE, addr, (uint32_t)length);
		try_remote(RMEM_WR_RDMA_READ, addr, (uint32_t)length);
	}
	if (is_wanted(addr, length) && target.lkey != 0)
		try_local(addr, (uint32_t)length);
	if (is_wanted(addr, 8))
		try_atomic(addr);
}

static void
try_edges(void)
{
	const uint64_t end = target.first + target.length; /* 0: 2^64 */
	const uint64_t addrs[] = {0, 1, target.first - 1, target.first, target.first + 1,
			target.first + target.length / 2, end - 8, end - 1, end, end + 1,
			UINT64_C(1) << 32, SPACE - 1, SPACE, UINT64_C(1) << 63, UINT64_MAX - 1,
			UINT64_MAX};
	const uint64_t lengths[] = {0, 1, 2, target.length - 1, target.length, target.length + 1,
			FX_BUF_SIZE, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX};
	size_t i, j;

	for (i = 0; i < RTE_DIM(addrs); i++) {
		for (j = 0; j < RTE_DIM(lengths); j++) {
			if (lengths[j] <= UINT32_MAX)
				try_all(addrs[i], lengths[j]);
		}
	}
	for (i = 0; i < NB_RANDOM; i++) {
		uint64_t addr = target.is_all_space ? fx_addr(fx.a.buf) + draw(FX_BUF_SIZE)
						    : target.first - 64 + draw(target.length + 128);

		try_all(addr, draw(2 * RTE_MIN(target.length, MAX_LENGTH)));
	}
}

/* Mostly one with which the last byte is the last of the address space. */
static uint64_t
draw_iova(uint64_t length, uint64_t in_page)
{
	uint64_t iova = draw(3) == 0 ? draw(UINT64_MAX - 2 * MAX_LENGTH) : UINT64_MAX - length + 1;

	/* An address with that offset in its page; 0 is the address itself. */
	iova = (iova & ~(uint64_t)(FX_PAGE - 1)) + in_page;
	return iova != 0 && iova <= UINT64_MAX - length + 1 ? iova : iova - FX_PAGE;
}

static uint64_t
draw_length(void)
{
	return 16 + draw(MAX_LENGTH - 16);
}

static void
set_target(const struct rmem_mr *mr, uint64_t first, uint64_t length)
{
	target = (struct target){first, length, mr->rkey, mr->lkey, false};
}

static void
reg_attr(struct rmem_mr_attr *attr, struct rmem_mr **mr)
{
	attr->socket_id = -1;
	TEST_OK(rmem_mr_reg_attr(fx.a.pd, attr, mr));
	fx_track(*mr);
	set_target(*mr, (*mr)->iova, (*mr)->length);
}

static void
make_mr_with(uint32_t access, struct rmem_mr **mr)
{
	struct rmem_mr_attr attr = {.access = FX_ACCESS | RMEM_ACCESS_MW_BIND | access};

	attr.addr = fx.a.buf + draw(FX_PAGE);
	attr.length = draw_length();
	if ((access & RMEM_ACCESS_ZERO_BASED) == 0 && draw(4) != 0)
		attr.iova = draw(2) != 0 ? UINT64_MAX - attr.length + 1 : draw_iova(attr.length, 0);
	reg_attr(&attr, mr);
}

static void
make_mr(void)
{
	struct rmem_mr *mr;

	make_mr_with(0, &mr);
}

static void
make_zero_based(void)
{
	struct rmem_mr *mr;

	make_mr_with(RMEM_ACCESS_ZERO_BASED, &mr);
}

static void
make_on_demand(void)
{
	struct rmem_mr *mr;

	make_mr_with(RMEM_ACCESS_ON_DEMAND, &mr);
}

static void
make_implicit(void)
{
	struct rmem_mr_attr attr = {
			.access = FX_ACCESS | RMEM_ACCESS_ON_DEMAND, .length = SIZE_MAX};
	struct rmem_mr *mr;

	reg_attr(&attr, &mr);
	target.length = SPACE;
	target.is_all_space = true;
}

static void
make_shared(void)
{
	struct rmem_mr *mr, *shared;

	make_mr_with(0, &mr);
	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, draw_iova(mr->length, 0), FX_ACCESS, &shared));
	fx_track(shared);
	set_target(shared, shared->iova, shared->length);
}

static void
make_fd(void)
{
	struct rmem_mr_attr attr = {.access = FX_ACCESS, .flags = RMEM_MR_FD};
	int fd = memfd_create("range", MFD_CLOEXEC);
	struct rmem_mr *mr;
	int result;

	TEST_ASSERT(fd >= 0);
	attr.fd = fd;
	attr.length = draw_length();
	attr.iova = draw_iova(attr.length, 0);
	result = ftruncate(fd, 2 * MAX_LENGTH) == 0 ? TEST_TRY(reg_attr(&attr, &mr)) : TEST_FAILED;
	close(fd);
	TEST_RUN(result);
}

static void
make_iov(void)
{
	const struct iovec iov[] = {{fx.a.buf + FX_PAGE + 3, 1 + draw(500)},
			{fx.a.buf + 5, 16 + draw(3000)}, {fx.a.buf + 8192, 1 + draw(8)}};
	struct rmem_mr_attr attr = {.access = FX_ACCESS, .iov = iov, .iov_count = 3};
	struct rmem_mr *mr;

	attr.length = iov[0].iov_len + iov[1].iov_len + iov[2].iov_len;
	attr.iova = UINT64_MAX - attr.length + 1;
	reg_attr(&attr, &mr);
}

/* A window of type 2 or 1 over a part of an MR. */
static void
make_window(enum rmem_mw_type type, uint32_t access)
{
	struct rmem_mw_bind bind = {.flags = RMEM_SEND_SIGNALED};
	uint64_t offset, length;
	struct rmem_send_wr wr;
	struct rmem_mw *mw;

	make_mr_with(0, &fx.mw.mr);
	mw = fx_mw(fx.a.pd, type);
	length = 1 + draw(fx.mw.mr->length);
	offset = draw(2) != 0 ? fx.mw.mr->length - length : draw(fx.mw.mr->length - length + 1);
	if (type == RMEM_MW_TYPE_2) {
		wr = fx_mw_wr(mw, offset, length, RMEM_ACCESS_REMOTE | access);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	} else {
		bind = fx_mw_bind(offset, length, RMEM_ACCESS_REMOTE);
		TEST_OK(rmem_mw_bind(fx.a.qp, mw, &bind));
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	}
	target = (struct target){
			access != 0 ? 0 : fx.mw.mr->iova + offset, length, mw->rkey, 0, false};
}

static void
make_window_1(void)
{
	make_window(RMEM_MW_TYPE_1, 0);
}

static void
make_window_2(void)
{
	make_window(RMEM_MW_TYPE_2, 0);
}

static void
make_window_zero_based(void)
{
	make_window(RMEM_MW_TYPE_2, RMEM_ACCESS_ZERO_BASED);
}

/* Pages in order, or not. */
static void
make_fast(void)
{
	struct rmem_mr *mr = fx_fast_mr(fx.a.pd, 4);
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 4);
	const uint32_t length = (uint32_t)draw_length();
	/* The last byte of all has the last place of its page. */
	const uint64_t iova = UINT64_MAX - length + 1;
	const uint64_t in_page = iova % FX_PAGE;
	struct rmem_send_wr wr;

	fx_list_pages(list, fx.a.buf, 4);
	if (draw(2) != 0) {
		list->page_list[0] = fx_addr(fx.a.buf) + 2 * FX_PAGE;
		list->page_list[2] = fx_addr(fx.a.buf);
	}
	wr = fx_reg(mr, list, (uint16_t)((in_page + length + FX_PAGE - 1) / FX_PAGE), iova, length);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	set_target(mr, iova, length);
}

/* Entries over an MR at the end of the address space, in one round or several. */
static void
make_indirect(uint32_t rounds)
{
	struct rmem_mr *mr = fx_mkey(fx.a.pd, 2);
	struct rmem_mkey_entry entries[2];
	struct rmem_mr_attr attr = {.access = FX_ACCESS, .addr = fx.a.buf, .length = MAX_LENGTH};
	struct rmem_send_wr wr;
	struct rmem_mr *below;
	uint64_t length;

	attr.iova = UINT64_MAX - MAX_LENGTH + 1;
	reg_attr(&attr, &below);
	entries[0] = fx_entry(below, draw(100), 1 + draw(400));
	entries[0].skip = draw(50);
	/* To the last byte in the last round. */
	length = 1 + draw(400);
	entries[1] = fx_entry(below, MAX_LENGTH - length - (rounds - 1) * (length + 7), length);
	entries[1].skip = 7;
	length = rounds * (entries[0].length + entries[1].length);
	wr = fx_umr(mr, entries, 2, UINT64_MAX - length + 1);
	wr.umr.repeat_count = rounds;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	set_target(mr, UINT64_MAX - length + 1, length);
}

static void
make_list(void)
{
	make_indirect(1);
}

static void
make_strided(void)
{
	make_indirect(2 + (uint32_t)draw(6));
}

/* Targets of one kind; what they are made of stays until the end of the case. */
static void
check_kind(void (*make)(void))
{
	const char *text = getenv("RMEM_SEED");
	unsigned int i;

	seed = text != NULL ? strtoull(text, NULL, 0) : rte_rdtsc();
	state = seed;
	nb_succeeded = 0;
	nb_refused = 0;
	for (i = 0; i < NB_TARGETS; i++) {
		make();
		try_edges();
	}
	/* Some requests succeeded and some failed: else this would prove little. */
	TEST_ASSERT(nb_succeeded > NB_TARGETS * 50 && nb_refused > NB_TARGETS * 50);
}

/* A case for each kind. */
#define KIND(kind)                                                                                 \
	TEST(range, ranges_of_##kind)                                                              \
	{                                                                                          \
		check_kind(make_##kind);                                                           \
	}

KIND(mr)
KIND(zero_based)
KIND(on_demand)
KIND(implicit)
KIND(shared)
KIND(fd)
KIND(iov)
KIND(window_1)
KIND(window_2)
KIND(window_zero_based)
KIND(fast)
KIND(list)
KIND(strided)

TEST_SUITE(range, fx_setup, fx_teardown);
