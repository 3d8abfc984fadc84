/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_cache_hooks.so reports each call that changes memory before the memory changes, and
 * malloc() keeps freed memory mapped. The calls that userfaultfd reports too: test_cache_change.c.
 */

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmem_uffd.h>

#include "test_cache.h"

#define ADVICE_GUARD_INSTALL 102 /* of Linux 6.13 */
#define ADVICE_GUARD_REMOVE  103

static void
discard_lazily(uint8_t *buf, size_t length)
{
	TEST_OK(madvise(buf, length, MADV_FREE));
}

static void
trim(uint8_t *buf, size_t length)
{
	RTE_SET_USED(buf);
	RTE_SET_USED(length);
	malloc_trim(0);
}

/* It may not be known to the kernel: then it changes nothing. */
static void
guard(uint8_t *buf, size_t length)
{
	if (madvise(buf, length, ADVICE_GUARD_INSTALL) == 0)
		TEST_OK(madvise(buf, length, ADVICE_GUARD_REMOVE));
}

TEST(cache_hooks, changed_memory_is_registered_again)
{
	uint8_t *buf = cx.mem + CX_PAGE;

	cx_expect_replaced(buf, 4 * CX_PAGE, discard_lazily);
	cx_expect_replaced(buf, 4 * CX_PAGE, trim);
	cx_expect_replaced(buf, 4 * CX_PAGE, guard);
}

/* The kernel rounds the length up, to the page of the buffer. */
static void
unmap_a_byte(uint8_t *buf, size_t length)
{
	void *page = RTE_PTR_ALIGN_FLOOR(buf, CX_PAGE);

	RTE_SET_USED(length);
	TEST_OK(munmap(page, 1));
	TEST_ASSERT(cx_map(page, CX_PAGE, MAP_FIXED_NOREPLACE) == page);
}

TEST_CALL(cache_hooks, last_page_of_a_call_is_registered_again,
		cx_expect_replaced(cx.mem + 8, 100, unmap_a_byte));

static void
punch(uint8_t *buf, size_t length)
{
	TEST_OK(madvise(buf, length, MADV_REMOVE));
}

TEST(cache_hooks, removed_pages_are_registered_again)
{
	uint8_t *buf = mmap(NULL, 4 * CX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	int ret;

	TEST_ASSERT(buf != MAP_FAILED);
	ret = TEST_TRY(cx_expect_replaced(buf, 4 * CX_PAGE, punch));
	TEST_OK(munmap(buf, 4 * CX_PAGE));
	TEST_RUN(ret);
}

static int segment;

static void
detach(uint8_t *buf, size_t length)
{
	RTE_SET_USED(length);
	TEST_OK(shmdt(buf));
	TEST_ASSERT(shmat(segment, buf, 0) == buf);
}

static void
attach_over(uint8_t *buf, size_t length)
{
	RTE_SET_USED(length);
	TEST_ASSERT(shmat(segment, buf, SHM_REMAP) == buf);
}

TEST(cache_hooks, shared_segment_is_registered_again)
{
	uint8_t *buf;
	int ret;

	segment = shmget(IPC_PRIVATE, 4 * CX_PAGE, IPC_CREAT | 0600);
	TEST_SKIP_IF(segment < 0, "no shared memory segment");
	buf = shmat(segment, NULL, 0);
	ret = buf != (void *)-1 ? TEST_SUCCESS : TEST_FAILED;
	if (ret == TEST_SUCCESS)
		ret = TEST_TRY(cx_expect_replaced(buf, 4 * CX_PAGE, detach));
	if (ret == TEST_SUCCESS)
		ret = TEST_TRY(cx_expect_replaced(buf, 4 * CX_PAGE, attach_over));
	TEST_OK(shmctl(segment, IPC_RMID, NULL));
	if (buf != (void *)-1)
		TEST_OK(shmdt(buf));
	TEST_RUN(ret);
}

static void
shrink_and_grow(uint8_t *buf, size_t length)
{
	TEST_OK(brk(buf));
	TEST_OK(brk(buf + length));
}

TEST(cache_hooks, end_of_the_heap_set_with_brk_is_registered_again)
{
	uint8_t *old = sbrk(0);
	uint8_t *buf = RTE_PTR_ALIGN_CEIL(old, CX_PAGE);

	TEST_OK(brk(buf + 4 * CX_PAGE));
	cx_expect_replaced(buf, 4 * CX_PAGE, shrink_and_grow);
	TEST_OK(brk(old));
}

/* Of the call that follows: its memory was mapped when it was reported, and it was counted. */
static struct {
	void *page;
	uint32_t nb_good; /* atomic: for the compiler munmap() cannot change it */
} spy;

static void
spy_invalidate(const void *addr, size_t length)
{
	unsigned char resident;

	if (addr == spy.page && length >= CX_PAGE && cx_hooks()->nb_changing == 1 &&
			mincore(spy.page, CX_PAGE, &resident) == 0)
		__atomic_fetch_add(&spy.nb_good, 1, __ATOMIC_RELAXED);
}

TEST(cache_hooks, call_is_reported_before_the_memory_changes)
{
	struct cache_hooks *hooks = cx_hooks();

	spy.page = cx.mem;
	spy.nb_good = 0;
	hooks->invalidate = spy_invalidate;
	munmap(cx.mem, CX_PAGE);
	hooks->invalidate = rmem_cache_invalidate;
	TEST_EQ(__atomic_load_n(&spy.nb_good, __ATOMIC_RELAXED), 1);
	TEST_EQ(hooks->nb_changing, 0);
}

/* As between the report of a call in another thread, and the change. */
TEST(cache_hooks, mr_registered_during_a_call_is_for_single_use)
{
	struct cache_hooks *hooks = cx_hooks();

	hooks->nb_changing++;
	TEST_ASSERT(!cx_touch(0) && !cx_touch(0));
	hooks->nb_changing--;
	TEST_EQ(cx_stats().single_use, 2);
	TEST_EQ(cx_stats().nb_mrs, 0);
	TEST_ASSERT(!cx_touch(0) && cx_touch(0));
}

/* The thread in the call does not exist in the child. */
TEST(cache_hooks, child_of_fork_has_no_calls_in_progress)
{
	struct cache_hooks *hooks = cx_hooks();
	int status = -1;
	pid_t pid;

	hooks->nb_changing++;
	pid = fork();
	if (pid == 0)
		_exit(hooks->nb_changing != 0 ? 1 : 0);
	hooks->nb_changing--;
	TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
	TEST_EQ(status, 0);
}

static void
ignore_event(struct rmem_uffd_watch *watch, uint64_t start, uint64_t end, bool is_unmapped)
{
	RTE_SET_USED(watch);
	RTE_SET_USED(start);
	RTE_SET_USED(end);
	RTE_SET_USED(is_unmapped);
}

static bool
need_nothing(const struct rmem_uffd_watch *watch, uint64_t start, uint64_t end)
{
	RTE_SET_USED(watch);
	RTE_SET_USED(start);
	RTE_SET_USED(end);
	return false;
}

/* Watchers of userfaultfd until no more are possible, or the kernel permits none. */
TEST(cache_hooks, auto_selects_hooks_without_userfaultfd)
{
	static struct rmem_uffd_watch watches[1025];
	uint32_t nb = 0;
	int ret;

	for (; nb < RTE_DIM(watches); nb++) {
		watches[nb] = (struct rmem_uffd_watch){ignore_event, need_nothing, {0}};
		if (rmem_uffd_watch(&watches[nb]) != 0)
			break;
	}
	ret = nb < RTE_DIM(watches) ? TEST_TRY(cx_create(RMEM_CACHE_MONITOR_AUTO, 0, UINT64_MAX))
				    : TEST_FAILED;
	while (nb > 0)
		rmem_uffd_unwatch(&watches[--nb], 0, 0);
	TEST_RUN(ret);
	TEST_EQ(cx_stats().monitor, RMEM_CACHE_MONITOR_HOOKS);
	TEST_ASSERT(!cx_touch(0) && cx_touch(0));
}

/* Blocks that malloc() would map, or that fill more than one heap of a thread (64 MiB). */
#define MAX_BLOCKS 1024u

struct blocks {
	uint32_t nb;
	size_t size;
	uint32_t nb_allocated;
	uintptr_t at[MAX_BLOCKS];
};

static void *
use_blocks(void *arg)
{
	struct blocks *blocks = arg;
	uint32_t i;

	for (i = 0; i < blocks->nb; i++) {
		uint8_t *block = malloc(blocks->size);

		if (block == NULL)
			break;
		block[blocks->size / 2] = 1;
		blocks->at[i] = (uintptr_t)block;
	}
	blocks->nb_allocated = i;
	while (i > 0)
		free((void *)blocks->at[--i]);
	return NULL;
}

static void
expect_mapped(const struct blocks *blocks)
{
	unsigned char resident;
	uintptr_t middle;
	uint32_t i;

	TEST_EQ(blocks->nb_allocated, blocks->nb);
	for (i = 0; i < blocks->nb; i++) {
		middle = blocks->at[i] + blocks->size / 2;
		TEST_OK(mincore((void *)RTE_ALIGN_FLOOR(middle, CX_PAGE), CX_PAGE, &resident));
		/* Discarded pages would be zero; MALLOC_PERTURB_ writes others. */
		TEST_ASSERT(*(volatile uint8_t *)middle != 0);
	}
}

TEST(cache_hooks, freed_memory_stays_mapped)
{
	static struct blocks blocks = {16, .size = 160 * 1024};

	use_blocks(&blocks);
	expect_mapped(&blocks);
}

TEST(cache_hooks, freed_memory_of_a_thread_stays_mapped)
{
	static struct blocks blocks[2] = {
			{MAX_BLOCKS, .size = 100 * 1024}, {16, .size = 2 * 1024 * 1024}};
	pthread_t id[2];
	uint32_t i;

	for (i = 0; i < 2; i++)
		TEST_OK(pthread_create(&id[i], NULL, use_blocks, &blocks[i]));
	for (i = 0; i < 2; i++)
		TEST_OK(pthread_join(id[i], NULL));
	expect_mapped(&blocks[0]);
	expect_mapped(&blocks[1]);
}

TEST_SUITE(cache_hooks, cx_setup_hooks, cx_teardown);
