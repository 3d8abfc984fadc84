/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Registered memory stays the program's: it may be unmapped, moved, discarded, protected and forked
 * as if no MR covered it, and a device accesses what its addresses are now, or completes with an
 * error. With each pin=, with and without CAP_IPC_LOCK.
 */

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture_odp.h"
#include "fixture_pin.h"

#define NB   4u
#define SIZE (NB * FX_PAGE)

#define ADVICE_COLD           20
#define ADVICE_PAGEOUT        21
#define ADVICE_DONTNEED_LATER 24 /* MADV_DONTNEED_LOCKED of Linux 5.18 */

/* The memory of an MR, and what its peer writes: the second page of four. */
static uint8_t *mem;
static struct rmem_mr *mr;

static void *
map(void *at, int flags)
{
	void *new = mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	return new != MAP_FAILED ? new : NULL;
}

/* Register mem, whose bytes are 1. */
static void
reg(void)
{
	TEST_ASSERT(mem != NULL);
	memset(mem, 1, SIZE);
	memset(fx.b.buf, 2, 64);
	mr = fx_mr(fx.a.pd, mem, SIZE, FX_ACCESS);
}

static void
dereg(void)
{
	TEST_OK(fx_release(mr));
	munmap(mem, SIZE);
}

/* The peer's WRITE arrives, and the rest of the page has this value. */
static void
expect_there(uint8_t *page, uint8_t rest)
{
	TEST_STATUS(fx_peer_write(fx_addr(page), 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(page[0], 2);
	TEST_EQ(page[63], 2);
	TEST_EQ(page[64], rest);
}

/* Neither a peer nor this side accesses the page; nothing raises a signal. */
static void
expect_gone(const uint8_t *page)
{
	static const struct {
		enum rmem_wr_opcode opcode;
		uint32_t length;
	} writes[] = {{RMEM_WR_RDMA_WRITE, 64}, {RMEM_WR_ATOMIC_WRITE, 8}};
	unsigned int i;

	for (i = 0; i < RTE_DIM(writes); i++) {
		const struct rmem_sge own = {fx_addr(page), writes[i].length, mr->lkey};
		const struct rmem_sge peer = fx_sge(fx.b.mr, 0, writes[i].length);
		struct rmem_send_wr wr = fx_rdma(writes[i].opcode, &peer, fx_addr(page), mr->rkey);

		if (writes[i].opcode == RMEM_WR_ATOMIC_WRITE &&
				!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_ATOMIC_WRITE))
			continue;
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
		TEST_EQ(fx.wc.vendor_err, RMEM_VENDOR_ERR_PAGE_FAULT);
		fx_reconnect();
		wr = fx_rdma_to(writes[i].opcode, &own, &fx.b);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
		fx_reconnect();
	}
	/* The rest of the MR is as before. */
	expect_there(mem, 1);
}

static void
on_args(const char *args, void (*func)(void))
{
	uint64_t before;

	fx_sides_open(fx_dev("soft10", args));
	fx_need_guard();
	before = pin_counted();
	mem = map(NULL, MAP_PRIVATE);
	reg();
	func();
	dereg();
	TEST_EQ(pin_counted(), before);
	fx_teardown();
}

static void
on_each(void (*func)(void))
{
	static const char *const args[] = {"pin=auto", "pin=require", "pin=off", "profile=mlx5"};
	unsigned int i;
	int ret = TEST_SUCCESS;

	for (i = 0; i < 2 * RTE_DIM(args) && ret == TEST_SUCCESS; i++) {
		if (i % 2 != 0)
			TEST_OK(pin_set_may_lock(false));
		ret = TEST_TRY(on_args(args[i / 2], func));
		TEST_OK(pin_set_may_lock(true));
		if (ret == TEST_FAILED)
			test_note("with %s%s", args[i / 2],
					i % 2 != 0 ? " without CAP_IPC_LOCK" : "");
	}
	TEST_RUN(ret);
}

/* A case that runs on each device. */
#define ON_EACH(rule)                                                                              \
	static void rule##_there(void);                                                            \
	TEST(pin_change, rule)                                                                     \
	{                                                                                          \
		on_each(rule##_there);                                                             \
	}                                                                                          \
	static void rule##_there(void)

ON_EACH(unmapped_memory_is_an_error)
{
	TEST_OK(munmap(mem + FX_PAGE, FX_PAGE));
	expect_gone(mem + FX_PAGE);
}

ON_EACH(region_without_any_memory_is_deregistered)
{
	TEST_OK(munmap(mem, SIZE));
	TEST_STATUS(fx_peer_write(fx_addr(mem), 64, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
}

ON_EACH(memory_mapped_over_is_accessed)
{
	TEST_ASSERT(map(mem, MAP_PRIVATE | MAP_FIXED) == mem);
	expect_there(mem + FX_PAGE, 0);
}

/* Each advice is accepted; it may be of a newer kernel. */
static void
discard(int advice)
{
	if (madvise(mem, SIZE, advice) != 0) {
		TEST_EQ(errno, EINVAL);
		TEST_EQ(advice, ADVICE_DONTNEED_LATER);
		return;
	}
	expect_there(mem + FX_PAGE, 0);
}

ON_EACH(discarded_memory_is_zero)
{
	discard(MADV_DONTNEED);
	memset(mem, 1, SIZE);
	discard(ADVICE_DONTNEED_LATER);
}

/* The kernel frees these pages when it needs them. */
ON_EACH(memory_may_be_discarded_lazily)
{
	uint8_t rest;

	TEST_OK(madvise(mem, SIZE, MADV_FREE));
	rest = mem[FX_PAGE + 64];
	TEST_ASSERT(rest == 0 || rest == 1);
	TEST_STATUS(fx_peer_write(fx_addr(mem + FX_PAGE), 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(mem[FX_PAGE + 63], 2);
}

ON_EACH(memory_may_be_reclaimed)
{
	TEST_OK(madvise(mem, SIZE, ADVICE_COLD));
	TEST_OK(madvise(mem, SIZE, ADVICE_PAGEOUT));
	expect_there(mem + FX_PAGE, 1);
}

ON_EACH(removed_memory_is_zero)
{
	dereg();
	mem = map(NULL, MAP_SHARED);
	reg();
	TEST_OK(madvise(mem, SIZE, MADV_REMOVE));
	expect_there(mem + FX_PAGE, 0);
}

/* The addresses of the MR are those of before. */
ON_EACH(moved_memory_is_an_error)
{
	uint8_t *to = map(NULL, MAP_PRIVATE);

	TEST_ASSERT(to != NULL);
	TEST_ASSERT(mremap(mem + FX_PAGE, FX_PAGE, FX_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
			to);
	expect_gone(mem + FX_PAGE);
	TEST_EQ(to[0], 1);
	TEST_OK(munmap(to, SIZE));
}

ON_EACH(protected_memory_is_an_error)
{
	TEST_OK(mprotect(mem + FX_PAGE, FX_PAGE, PROT_NONE));
	expect_gone(mem + FX_PAGE);
	TEST_OK(mprotect(mem + FX_PAGE, FX_PAGE, PROT_READ | PROT_WRITE));
	expect_there(mem + FX_PAGE, 1);
}

/* The parent's memory is accessed; the child has a copy of before, and may discard it. */
ON_EACH(memory_of_the_parent_is_accessed_after_fork)
{
	int fds[2], status = -1;
	uint8_t go = 0;
	pid_t pid;
	bool is_ok;

	TEST_OK(pipe(fds));
	pid = fork();
	if (pid == 0) {
		is_ok = read(fds[0], &go, 1) == 1 && mem[FX_PAGE] == 1 &&
				madvise(mem, SIZE, MADV_DONTNEED) == 0 && mem[FX_PAGE] == 0 &&
				munmap(mem, SIZE) == 0;
		_exit(is_ok ? 0 : 1);
	}
	TEST_ASSERT(pid > 0);
	expect_there(mem + FX_PAGE, 1);
	TEST_EQ(write(fds[1], &go, 1), 1);
	TEST_ASSERT(waitpid(pid, &status, 0) == pid);
	TEST_EQ(status, 0);
	close(fds[0]);
	close(fds[1]);
	expect_there(mem + FX_PAGE, 1);
}

/* The heap, whose end this case alone moves. */
ON_EACH(heap_may_shrink)
{
	uintptr_t skip = -(uintptr_t)sbrk(0) % FX_PAGE;
	uint8_t *old = mem;

	TEST_OK(fx_release(mr));
	TEST_ASSERT(sbrk((intptr_t)skip) != (void *)-1);
	mem = sbrk(SIZE);
	TEST_ASSERT(mem != (void *)-1);
	reg();
	TEST_ASSERT(sbrk(-(intptr_t)(3 * FX_PAGE)) == mem + SIZE);
	expect_gone(mem + FX_PAGE);
	TEST_ASSERT(sbrk(3 * FX_PAGE) == mem + FX_PAGE);
	expect_there(mem + FX_PAGE, 0);
	TEST_OK(fx_release(mr));
	TEST_ASSERT(sbrk(-(intptr_t)(SIZE + skip)) != (void *)-1);
	mem = old;
	reg();
}

/* The memory of a file: a hole is zeros, and after its end there is none. */
static void
change_file(int fd)
{
	dereg();
	TEST_OK(ftruncate(fd, SIZE));
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TEST_ASSERT(mem != MAP_FAILED);
	reg();
	TEST_OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FX_PAGE, 2 * FX_PAGE));
	expect_there(mem + FX_PAGE, 0);
	TEST_OK(ftruncate(fd, FX_PAGE));
	expect_gone(mem + FX_PAGE);
	TEST_OK(ftruncate(fd, SIZE));
	expect_there(mem + FX_PAGE, 0);
}

ON_EACH(file_may_have_holes_and_be_truncated)
{
	fx_with_memfd(change_file);
}

TEST_SUITE(pin_change, fx_setup_none, fx_teardown);
