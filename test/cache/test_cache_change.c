/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * After memory of a cache was unmapped, moved or discarded, no MR of before is returned: with
 * userfaultfd, and with librmem_cache_hooks.so.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_cache.h"

/* After change() has replaced the pages of a held MR, another one is returned. */
void
cx_expect_replaced(uint8_t *buf, size_t length, void (*change)(uint8_t *buf, size_t length))
{
	uint64_t before = cx_stats().invalidations;
	struct rmem_mr *old, *mr;

	TEST_OK(rmem_cache_get(cx.cache, buf, length, CX_WRITE, &old));
	TEST_EQ(cx_stats().single_use, 0);
	change(buf, length);
	TEST_OK(rmem_cache_get(cx.cache, buf, length, CX_WRITE, &mr));
	TEST_ASSERT(mr->lkey != old->lkey);
	TEST_EQ(cx_stats().invalidations, before + 1);
	TEST_EQ(cx_stats().nb_stale, 1);
	TEST_STATUS(fx_peer_write(fx_addr(buf), 8, mr->rkey), RMEM_WC_SUCCESS);
	/* Its keys stay valid, and belong to no other MR. */
	TEST_EQ(fx_mr_state(old), RMEM_MR_STATE_VALID);
	TEST_OK(rmem_cache_put(cx.cache, old));
	TEST_EQ(cx_stats().nb_stale, 0);
	TEST_OK(rmem_cache_put(cx.cache, mr));
}

static void
unmap(uint8_t *buf, size_t length)
{
	TEST_OK(munmap(buf, length));
	TEST_ASSERT(cx_map(buf, length, MAP_FIXED_NOREPLACE) == buf);
}

static void
unmap_last_page(uint8_t *buf, size_t length)
{
	unmap(buf + length - CX_PAGE, CX_PAGE);
}

static void
map_over(uint8_t *buf, size_t length)
{
	TEST_ASSERT(cx_map(buf, length, MAP_FIXED) == buf);
}

static void
discard(uint8_t *buf, size_t length)
{
	TEST_OK(madvise(buf, length, MADV_DONTNEED));
}

static void
move(uint8_t *buf, size_t length)
{
	uint8_t *to = cx_map(NULL, length, 0);

	TEST_ASSERT(to != NULL);
	TEST_ASSERT(mremap(buf, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	TEST_ASSERT(cx_map(buf, length, MAP_FIXED_NOREPLACE) == buf);
	TEST_OK(munmap(to, length));
}

static void
move_over(uint8_t *buf, size_t length)
{
	uint8_t *from = cx_map(NULL, length, 0);

	TEST_ASSERT(from != NULL);
	TEST_ASSERT(mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, buf) == buf);
}

TEST(cache_uffd, unmapped_memory_is_registered_again)
{
	cx_expect_replaced(cx.mem, 4 * CX_PAGE, unmap);
	cx_expect_replaced(cx.mem + CX_PAGE, 4 * CX_PAGE, unmap_last_page);
}

TEST_CALL(cache_uffd, memory_mapped_over_is_registered_again,
		cx_expect_replaced(cx.mem, 4 * CX_PAGE, map_over));
TEST_CALL(cache_uffd, discarded_memory_is_registered_again,
		cx_expect_replaced(cx.mem, 4 * CX_PAGE, discard));

TEST(cache_uffd, moved_memory_is_registered_again)
{
	cx_expect_replaced(cx.mem, 4 * CX_PAGE, move);
	cx_expect_replaced(cx.mem, 4 * CX_PAGE, move_over);
}

static void
shrink_and_grow(uint8_t *buf, size_t length)
{
	TEST_ASSERT(sbrk(-(intptr_t)length) == buf + length);
	TEST_ASSERT(sbrk((intptr_t)length) == buf);
}

TEST(cache_uffd, end_of_the_heap_is_registered_again)
{
	uintptr_t skip = -(uintptr_t)sbrk(0) % CX_PAGE;
	uint8_t *buf;

	TEST_ASSERT(sbrk((intptr_t)skip) != (void *)-1);
	buf = sbrk(4 * CX_PAGE);
	TEST_ASSERT(buf != (void *)-1);
	cx_expect_replaced(buf, 4 * CX_PAGE, shrink_and_grow);
	TEST_ASSERT(sbrk(-(intptr_t)(4 * CX_PAGE + skip)) != (void *)-1);
}

/* free() unmaps it inside of libc. */
TEST(cache_uffd, freed_memory_is_deregistered)
{
	void *first, *buf = malloc(CX_SIZE);
	unsigned char resident;
	struct rmem_mr *mr;
	int ret;

	TEST_ASSERT(buf != NULL);
	ret = rmem_cache_get(cx.cache, buf, CX_SIZE, CX_WRITE, &mr);
	if (ret == 0)
		ret = rmem_cache_put(cx.cache, mr);
	first = (void *)RTE_ALIGN_CEIL((uintptr_t)buf, CX_PAGE);
	free(buf);
	TEST_OK(ret);
	if (mincore(first, CX_PAGE, &resident) == 0)
		test_skip("this allocator keeps freed memory mapped");
	cx_expect_no_mrs();
	TEST_EQ(cx_stats().invalidations, 1);
}

static void
check_file(int fd)
{
	struct rmem_mr *mr;
	void *mem;

	TEST_OK(ftruncate(fd, 2 * CX_PAGE));
	mem = mmap(NULL, 2 * CX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TEST_ASSERT(mem != MAP_FAILED);
	TEST_OK(rmem_cache_get(cx.cache, mem, 2 * CX_PAGE, CX_WRITE, &mr));
	TEST_STATUS(fx_peer_write(fx_addr(mem), 8, mr->rkey), RMEM_WC_SUCCESS);
	TEST_OK(munmap(mem, 2 * CX_PAGE));
	TEST_OK(rmem_cache_put(cx.cache, mr));
	/* Not watched by some kernels: then it was for a single use. */
	cx_expect_no_mrs();
	TEST_EQ(cx_stats().invalidations + cx_stats().single_use, 1);
}

TEST(cache_uffd, mapping_of_a_file_is_deregistered)
{
	char name[] = "/tmp/rmem-test-cache-XXXXXX";
	int ret, fd = mkstemp(name);

	TEST_ASSERT(fd >= 0);
	unlink(name);
	ret = TEST_TRY(check_file(fd));
	close(fd);
	TEST_RUN(ret);
}

TEST_CALL(cache_uffd, mapping_of_a_memfd_is_deregistered, fx_with_memfd(check_file));

/* 0 if the call in a child was refused, and the parent's MR is not affected. */
static int
in_child(struct rmem_mr *held)
{
	struct rmem_mr *mr;
	struct rmem_cache_stats stats;

	return rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &mr) != -EPERM ||
			rmem_cache_put(cx.cache, held) != -EPERM ||
			rmem_cache_flush(cx.cache, NULL, SIZE_MAX) != -EPERM ||
			rmem_cache_stats_get(cx.cache, &stats) != -EPERM ||
			rmem_cache_destroy(cx.cache) != -EPERM;
}

TEST(cache_uffd, child_of_fork_is_refused)
{
	struct rmem_mr *mr;
	int status = -1;
	pid_t pid;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, CX_WRITE, &mr));
	pid = fork();
	if (pid == 0)
		_exit(in_child(mr));
	TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
	TEST_EQ(status, 0);
	TEST_STATUS(fx_peer_write(fx_addr(cx.mem), 8, mr->rkey), RMEM_WC_SUCCESS);
	unmap(cx.mem, CX_PAGE);
	TEST_EQ(cx_stats().invalidations, 1);
	TEST_OK(rmem_cache_put(cx.cache, mr));
}

/*
 * With a hole that the kernel cannot watch, the first page stays watched until the descriptor is
 * closed: a child with a copy of it would make munmap() wait forever.
 */
TEST(cache_uffd, child_of_fork_does_not_keep_memory_watched)
{
	uint8_t *file;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	TEST_ASSERT(fd >= 0 && !cx_touch(0));
	TEST_EQ(rmem_cache_flush(cx.cache, NULL, SIZE_MAX), 0);
	cx_expect_replaced(cx.mem, 2 * CX_PAGE, unmap);
	file = mmap(cx.mem + CX_PAGE, CX_PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	close(fd);
	TEST_ASSERT(file == cx.mem + CX_PAGE);
	pid = fork();
	if (pid == 0) {
		alarm(600);
		pause();
		_exit(0);
	}
	TEST_ASSERT(pid > 0);
	TEST_OK(rmem_cache_destroy(cx.cache));
	cx.cache = NULL;
	alarm(600);
	TEST_OK(munmap(cx.mem, CX_PAGE));
	alarm(0);
	TEST_OK(kill(pid, SIGKILL));
	TEST_ASSERT(waitpid(pid, NULL, 0) == pid);
}

/* A page of another cache; whether it was a hit. */
static bool
touch(struct rmem_cache *cache, uint8_t *page)
{
	struct rmem_cache_stats before, after;
	struct rmem_mr *mr;

	TEST_OK(rmem_cache_stats_get(cache, &before));
	TEST_OK(rmem_cache_get(cache, page, CX_PAGE, CX_WRITE, &mr));
	TEST_OK(rmem_cache_put(cache, mr));
	TEST_OK(rmem_cache_stats_get(cache, &after));
	return after.hits == before.hits + 1;
}

static void
check_two(struct rmem_cache *other)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		TEST_ASSERT(!cx_touch(i) && cx_touch(i));
		TEST_ASSERT(!touch(other, cx.mem + i * CX_PAGE));
		TEST_ASSERT(touch(other, cx.mem + i * CX_PAGE));
	}
	map_over(cx.mem, CX_PAGE);
	TEST_ASSERT(!cx_touch(0) && !touch(other, cx.mem) && touch(other, cx.mem));
	/* The end of one cache, and a flush of it, leave the memory of the other watched. */
	TEST_EQ(rmem_cache_flush(cx.cache, NULL, SIZE_MAX), 0);
	map_over(cx.mem, CX_PAGE);
	TEST_ASSERT(!touch(other, cx.mem) && touch(other, cx.mem));
	TEST_OK(rmem_cache_destroy(cx.cache));
	cx.cache = NULL;
	map_over(cx.mem + CX_PAGE, CX_PAGE);
	TEST_ASSERT(!touch(other, cx.mem + CX_PAGE));
}

TEST(cache_uffd, caches_of_two_devices_see_each_change)
{
	const struct rmem_cache_conf conf = {.name = "other",
			.max_size = UINT64_MAX,
			.monitor = cx_stats().monitor,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_cache *other;
	int ret;

	TEST_OK(rmem_cache_create(fx_pd(fx_dev("soft1", NULL)), &conf, &other));
	ret = TEST_TRY(check_two(other));
	TEST_OK(rmem_cache_destroy(other));
	TEST_RUN(ret);
}

TEST_SUITE(cache_uffd, cx_setup_uffd, cx_teardown);
TEST_SUITE_OF(cache_hooks_change, cx_setup_hooks, cx_teardown, cache_uffd);
