/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Watchers of memory: events of what they share, and none after the last one was removed. */

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmem_uffd.h>

#include "fixture.h"

#define SIZE (4 * FX_PAGE)

struct watcher {
	struct rmem_uffd_watch watch;
	uint64_t start; /* atomic, as all */
	uint32_t nb_unmapped;
	uint32_t nb_discarded;
};

static uint8_t *mem;

static struct watcher *
watcher_of(const struct rmem_uffd_watch *watch)
{
	return (struct watcher *)(uintptr_t)watch;
}

static void
event(struct rmem_uffd_watch *watch, uint64_t start, uint64_t end, bool is_unmapped)
{
	struct watcher *watcher = watcher_of(watch);

	if (start < watcher->start + SIZE && watcher->start < end)
		__atomic_fetch_add(is_unmapped ? &watcher->nb_unmapped : &watcher->nb_discarded, 1,
				__ATOMIC_RELAXED);
}

static bool
needs(const struct rmem_uffd_watch *watch, uint64_t start, uint64_t end)
{
	const struct watcher *watcher = watcher_of(watch);

	return start < watcher->start + SIZE && watcher->start < end;
}

static void
expect_events(struct watcher *watcher, uint32_t nb_discarded, uint32_t nb_unmapped)
{
	rmem_uffd_settle();
	rmem_uffd_wait();
	TEST_EQ(__atomic_load_n(&watcher->nb_discarded, __ATOMIC_RELAXED), nb_discarded);
	TEST_EQ(__atomic_load_n(&watcher->nb_unmapped, __ATOMIC_RELAXED), nb_unmapped);
}

static void
check_shared(struct watcher *one, struct watcher *two)
{
	uint64_t start = fx_addr(mem), end = start + SIZE;

	TEST_OK(rmem_uffd_add(start, end));
	TEST_ERR(rmem_uffd_add(start + SIZE, start + SIZE), EINVAL);
	TEST_OK(madvise(mem, FX_PAGE, MADV_DONTNEED));
	expect_events(one, 1, 0);
	expect_events(two, 1, 0);
	/* The other one needs it. */
	rmem_uffd_unwatch(&one->watch, start, end);
	TEST_OK(madvise(mem, FX_PAGE, MADV_DONTNEED));
	TEST_OK(munmap(mem + FX_PAGE, FX_PAGE));
	expect_events(one, 1, 0);
	expect_events(two, 2, 1);
	two->start = 0;
	rmem_uffd_del(start, end);
	two->start = start;
	TEST_OK(madvise(mem, FX_PAGE, MADV_DONTNEED));
	expect_events(two, 2, 1);
}

TEST(uffd, watchers_share_memory)
{
	struct watcher one = {.watch = {.event = event, .needs = needs}, .start = fx_addr(mem)};
	struct watcher two = one;
	int ret = rmem_uffd_watch(&one.watch);

	TEST_SKIP_IF(ret == -EOPNOTSUPP, "the kernel gives this user no userfaultfd");
	TEST_OK(ret);
	TEST_OK(rmem_uffd_watch(&two.watch));
	ret = TEST_TRY(check_shared(&one, &two));
	rmem_uffd_unwatch(&two.watch, 0, 0);
	TEST_EQ(__atomic_load_n(&rmem_uffd_pass, __ATOMIC_RELAXED) & 1, 0);
	TEST_RUN(ret);
}

/* 0 if a child watches its own memory with a watcher of its own, and the parent's one is over. */
static int
watch_in_child(struct watcher *parent)
{
	struct watcher own = {.watch = {.event = event, .needs = needs}, .start = fx_addr(mem)};
	uint64_t start = fx_addr(mem), end = start + SIZE;
	uint32_t nb;

	if (rmem_uffd_add(start, end) != -EOPNOTSUPP || rmem_uffd_watch(&own.watch) != 0 ||
			rmem_uffd_add(start, end) != 0)
		return 1;
	rmem_uffd_unwatch(&parent->watch, start, start);
	if (madvise(mem, FX_PAGE, MADV_DONTNEED) != 0)
		return 2;
	rmem_uffd_settle();
	nb = __atomic_load_n(&own.nb_discarded, __ATOMIC_RELAXED);
	rmem_uffd_unwatch(&own.watch, start, end);
	return nb == 1 && __atomic_load_n(&parent->nb_discarded, __ATOMIC_RELAXED) == 0 ? 0 : 3;
}

static void
check_child(struct watcher *one)
{
	int status = -1;
	pid_t pid;

	TEST_OK(rmem_uffd_add(fx_addr(mem), fx_addr(mem) + SIZE));
	pid = fork();
	if (pid == 0)
		_exit(watch_in_child(one));
	TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
	TEST_EQ(status, 0);
	TEST_OK(madvise(mem, FX_PAGE, MADV_DONTNEED));
	expect_events(one, 1, 0);
}

/* fork(2): the child has a copy of the descriptor, but not the thread; userfaultfd(2). */
TEST(uffd, child_of_fork_watches_its_own_memory)
{
	struct watcher one = {.watch = {.event = event, .needs = needs}, .start = fx_addr(mem)};
	int ret = rmem_uffd_watch(&one.watch);

	TEST_SKIP_IF(ret == -EOPNOTSUPP, "the kernel gives this user no userfaultfd");
	TEST_OK(ret);
	ret = TEST_TRY(check_child(&one));
	rmem_uffd_unwatch(&one.watch, fx_addr(mem), fx_addr(mem) + SIZE);
	TEST_RUN(ret);
}

static void
setup(void)
{
	fx_setup_none();
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(mem != MAP_FAILED);
}

static void
teardown(void)
{
	munmap(mem, SIZE);
	fx_teardown();
}

TEST_SUITE(uffd, setup, teardown);
