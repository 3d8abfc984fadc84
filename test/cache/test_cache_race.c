/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Threads get, put and unmap concurrently: after munmap() has returned, no MR of before is
 * returned, also if other threads merge, evict and flush.
 */

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <rmem_uffd.h>

#include "test_cache.h"

#define NB_THREADS 4u
#define NB_ROUNDS  400u
#define NB_MRS     6u
#define PART       (CX_SIZE / NB_THREADS)
#define SHARED     (8 * CX_PAGE) /* of each thread's part: used by all, never unmapped */

struct racer {
	pthread_t id;
	uint8_t *part;
	uint64_t seed;
	int ret;
};

static uint32_t
draw(struct racer *racer, uint32_t limit)
{
	racer->seed = racer->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(racer->seed >> 33) % limit;
}

/* With few entries a get may find all of them held. */
static void
get(void *addr, size_t length, struct rmem_mr **mr)
{
	int ret;

	do {
		ret = rmem_cache_get(cx.cache, addr, length, RMEM_ACCESS_LOCAL_WRITE, mr);
	} while (ret == -ENOSPC);
	TEST_OK(ret);
	TEST_ASSERT((uint8_t *)(*mr)->addr <= (uint8_t *)addr &&
			(uint8_t *)addr + length <= (uint8_t *)(*mr)->addr + (*mr)->length);
}

static void
replace(uint8_t *buf, size_t length, uint32_t how)
{
	if (how == 0)
		TEST_OK(munmap(buf, length));
	TEST_ASSERT(mmap(buf, length, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == buf);
}

/* Memory of this thread alone, which it replaces while it holds the MR. */
static void
race_own(struct racer *racer)
{
	uint8_t *buf = racer->part + SHARED + draw(racer, 4) * CX_PAGE;
	size_t length = (1 + draw(racer, 4)) * CX_PAGE;
	struct rmem_mr *old, *mr;
	uint32_t lkey;

	get(buf, length, &old);
	lkey = old->lkey;
	replace(buf, length, draw(racer, 2));
	/* Held, so that no other MR has its key. */
	get(buf, length, &mr);
	TEST_ASSERT(mr->lkey != lkey);
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_OK(rmem_cache_put(cx.cache, old));
}

/* Memory of all threads, in ranges that overlap. */
static void
race_shared(struct racer *racer)
{
	uint8_t *buf = cx.mem + draw(racer, NB_THREADS) * PART + draw(racer, SHARED / 2);
	struct rmem_mr *mr;

	get(buf, 1 + draw(racer, SHARED / 2), &mr);
	TEST_OK(rmem_cache_put(cx.cache, mr));
	if (draw(racer, 8) == 0)
		TEST_ASSERT(rmem_cache_flush(cx.cache, buf, CX_PAGE) >= 0);
}

static void
race(struct racer *racer)
{
	uint32_t i;

	for (i = 0; i < NB_ROUNDS; i++) {
		race_own(racer);
		race_shared(racer);
	}
}

static void *
run(void *arg)
{
	struct racer *racer = arg;

	racer->ret = TEST_TRY(race(racer));
	return NULL;
}

static void
race_all(uint32_t monitor)
{
	struct racer racers[NB_THREADS];
	uint32_t i;

	/* Each thread may hold two: one more than that may be held, and others be evicted. */
	cx_create(monitor, 2 * NB_THREADS + NB_MRS, UINT64_MAX);
	for (i = 0; i < NB_THREADS; i++) {
		racers[i] = (struct racer){.part = cx.mem + i * PART, .seed = i + 1};
		TEST_OK(pthread_create(&racers[i].id, NULL, run, &racers[i]));
	}
	for (i = 0; i < NB_THREADS; i++)
		TEST_OK(pthread_join(racers[i].id, NULL));
	for (i = 0; i < NB_THREADS; i++)
		TEST_EQ(racers[i].ret, TEST_SUCCESS);
	TEST_EQ(rmem_cache_flush(cx.cache, NULL, SIZE_MAX), 0);
	TEST_EQ(cx_stats().nb_mrs, 0);
	TEST_EQ(cx_stats().size, 0);
}

TEST(cache_race, replaced_memory_is_registered_again)
{
	race_all(RMEM_CACHE_MONITOR_UFFD);
	TEST_ASSERT(cx_stats().invalidations >= NB_THREADS * NB_ROUNDS / 2);
	TEST_EQ(cx_stats().single_use, 0);
}

static void *
invalidate(void *arg)
{
	while (__atomic_load_n((uint32_t *)arg, __ATOMIC_RELAXED) == 0)
		rmem_cache_invalidate(cx.mem + CX_SIZE - 1, 1);
	return NULL;
}

/* Sooner or later the call falls between publication and registration. */
TEST(cache_race, mr_of_memory_that_changes_during_registration_is_for_single_use)
{
	uint64_t deadline = fx_deadline();
	uint32_t is_end = 0;
	struct rmem_mr *mr;
	pthread_t id;

	TEST_OK(pthread_create(&id, NULL, invalidate, &is_end));
	while (cx_stats().single_use == 0 && !fx_is_late(deadline)) {
		if (rmem_cache_get(cx.cache, cx.mem, CX_SIZE, 0, &mr) == 0)
			rmem_cache_put(cx.cache, mr);
	}
	__atomic_store_n(&is_end, 1, __ATOMIC_RELAXED);
	TEST_OK(pthread_join(id, NULL));
	TEST_ASSERT(cx_stats().single_use != 0);
}

struct waiter {
	uint32_t is_started; /* atomic */
	int ret;
	struct rmem_mr *mr;
};

static void *
get_one(void *arg)
{
	struct waiter *waiter = arg;

	__atomic_store_n(&waiter->is_started, 1, __ATOMIC_RELEASE);
	waiter->ret = rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &waiter->mr);
	return NULL;
}

/* As the thread of events does, which is idle: nothing else is watched. */
TEST(cache_race, get_waits_for_an_event_that_is_processed)
{
	struct waiter waiter = {0};
	struct rmem_mr *old;
	pthread_t id;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &old));
	__atomic_fetch_add(&rmem_uffd_pass, 1, __ATOMIC_SEQ_CST);
	TEST_OK(pthread_create(&id, NULL, get_one, &waiter));
	FX_AWAIT(__atomic_load_n(&waiter.is_started, __ATOMIC_ACQUIRE) != 0);
	rmem_cache_invalidate(cx.mem, CX_PAGE);
	__atomic_fetch_add(&rmem_uffd_pass, 1, __ATOMIC_SEQ_CST);
	TEST_OK(pthread_join(id, NULL));
	TEST_OK(waiter.ret);
	TEST_ASSERT(waiter.mr != old);
	TEST_OK(rmem_cache_put(cx.cache, waiter.mr));
	TEST_OK(rmem_cache_put(cx.cache, old));
}

TEST_SUITE(cache_race, cx_setup_uffd, cx_teardown);

/* An MR that was registered during a call of another thread was for a single use. */
TEST_CALL(cache_hooks_race, replaced_memory_is_registered_again_with_hooks,
		race_all(RMEM_CACHE_MONITOR_HOOKS));

/* The MR of the last thread that had the page mapped, which holds it; atomic. */
static struct rmem_mr *previous;

/* Map the page, maybe before the munmap() of another thread has returned. */
static void
race_page(void)
{
	uint8_t *page = cx.mem + CX_SIZE / 2;
	struct rmem_mr *old, *mr = NULL;
	int ret;

	FX_AWAIT(cx_map(page, CX_PAGE, MAP_FIXED_NOREPLACE) != NULL);
	ret = TEST_TRY(get(page, CX_PAGE, &mr));
	old = ret == TEST_SUCCESS ? __atomic_exchange_n(&previous, mr, __ATOMIC_ACQ_REL) : NULL;
	TEST_OK(munmap(page, CX_PAGE));
	TEST_RUN(ret);
	TEST_ASSERT(mr != old);
	TEST_OK(old != NULL ? rmem_cache_put(cx.cache, old) : 0);
}

static void *
run_page(void *arg)
{
	struct racer *racer = arg;
	uint32_t i;

	for (i = 0; i < NB_ROUNDS && racer->ret == TEST_SUCCESS; i++)
		racer->ret = TEST_TRY(race_page());
	return NULL;
}

TEST(cache_hooks_race, page_mapped_during_munmap_is_registered_again)
{
	struct racer racers[NB_THREADS] = {0};
	uint32_t i;

	previous = NULL;
	TEST_OK(munmap(cx.mem + CX_SIZE / 2, CX_PAGE));
	for (i = 0; i < NB_THREADS; i++)
		TEST_OK(pthread_create(&racers[i].id, NULL, run_page, &racers[i]));
	for (i = 0; i < NB_THREADS; i++)
		TEST_OK(pthread_join(racers[i].id, NULL));
	for (i = 0; i < NB_THREADS; i++)
		TEST_EQ(racers[i].ret, TEST_SUCCESS);
	TEST_OK(rmem_cache_put(cx.cache, previous));
}

TEST_SUITE(cache_hooks_race, cx_setup_hooks, cx_teardown);
