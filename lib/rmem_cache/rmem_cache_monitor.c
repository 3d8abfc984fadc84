/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Monitors, which report changes of memory to the entries of a cache, and the control thread that
 * deregisters stale MRs without holders.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_pause.h>

#include "rmem_cache_hooks_priv.h"
#include "rmem_cache_priv.h"

#define LOG2_2M 21
#define LOG2_1G 30

/*
 * Caches that rmem_cache_invalidate() visits; nb_users counts the threads in this call. A thread
 * that removes a cache from its slot waits until there are none.
 */
static struct {
	struct rmem_cache *slot[RMEM_CACHE_MAX]; /* atomic */
	uint32_t nb_users;                       /* atomic */
} caches;

static struct cache_hooks *hooks; /* of the preloaded object, if it works; atomic */
static const void *probe;         /* atomic; NULL after rmem_cache_invalidate() of it */

const char *const rmem_cache_monitor_names[] = {"auto", "none", "userfaultfd", "caller", "hooks"};

/* Invalidate entries, and wake the control thread. On the thread of events, or in an allocator. */
static void
changed(struct rmem_cache *cache, uint64_t start, uint64_t end)
{
	uint64_t one = 1;

	/* The write does not fail: the counter of an eventfd does not overflow by 1. */
	if (rmem_cache_stale(cache, start, end) && write(cache->wake, &one, sizeof(one)) < 0)
		return;
}

static struct rmem_cache *
cache_of(const struct rmem_uffd_watch *watch)
{
	return (struct rmem_cache *)((uintptr_t)watch - offsetof(struct rmem_cache, watch));
}

static void
watch_event(struct rmem_uffd_watch *watch, uint64_t start, uint64_t end, bool is_unmapped)
{
	RTE_SET_USED(is_unmapped);
	changed(cache_of(watch), start, end);
}

static bool
watch_needs(const struct rmem_uffd_watch *watch, uint64_t start, uint64_t end)
{
	const struct rmem_cache *cache = cache_of(watch);
	uint32_t nb = __atomic_load_n(&cache->nb_slots, __ATOMIC_SEQ_CST);
	uint32_t i;

	for (i = 0; i < nb && !cache_overlaps(&cache->entries[i], start, end); i++)
		;
	return i < nb;
}

bool
rmem_cache_watch(struct rmem_cache *cache, struct cache_entry *entry)
{
	const uint8_t shifts[] = {(uint8_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE)),
			LOG2_2M, LOG2_1G};
	uint32_t i;
	int ret;

	if (cache->monitor == RMEM_CACHE_MONITOR_HOOKS)
		return __atomic_load_n(&hooks->nb_changing, __ATOMIC_SEQ_CST) == 0;
	if (cache->monitor != RMEM_CACHE_MONITOR_UFFD)
		return cache->monitor == RMEM_CACHE_MONITOR_CALLER;
	/* Hugepages must be whole. */
	for (i = 0, ret = -EINVAL; i < RTE_DIM(shifts) && ret == -EINVAL; i++) {
		ret = rmem_uffd_add(RTE_ALIGN_FLOOR(entry->start, UINT64_C(1) << shifts[i]),
				RTE_ALIGN_CEIL(entry->end, UINT64_C(1) << shifts[i]));
		if (ret == 0)
			entry->log2_watch = shifts[i];
	}
	return ret == 0;
}

void
rmem_cache_invalidate(const void *addr, size_t length)
{
	uint64_t start = (uintptr_t)addr;
	uint64_t end = RTE_MIN(length, UINT64_MAX - start) + start;
	struct rmem_cache *cache;
	int error = errno;
	uint32_t i;

	if (__atomic_load_n(&probe, __ATOMIC_RELAXED) == addr)
		__atomic_store_n(&probe, NULL, __ATOMIC_RELAXED);
	__atomic_fetch_add(&caches.nb_users, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < RMEM_CACHE_MAX; i++) {
		cache = __atomic_load_n(&caches.slot[i], __ATOMIC_SEQ_CST);
		if (cache != NULL && cache->index->is_owner)
			changed(cache, start, end);
	}
	__atomic_fetch_sub(&caches.nb_users, 1, __ATOMIC_SEQ_CST);
	errno = error;
}

static bool
slot_add(struct rmem_cache *cache)
{
	struct rmem_cache *none;
	uint32_t i;

	for (i = 0; i < RMEM_CACHE_MAX; i++) {
		none = NULL;
		if (__atomic_compare_exchange_n(&caches.slot[i], &none, cache, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static void
slot_del(const struct rmem_cache *cache)
{
	uint32_t i;

	for (i = 0; i < RMEM_CACHE_MAX; i++) {
		if (__atomic_load_n(&caches.slot[i], __ATOMIC_RELAXED) == cache)
			__atomic_store_n(&caches.slot[i], NULL, __ATOMIC_SEQ_CST);
	}
	while (__atomic_load_n(&caches.nb_users, __ATOMIC_SEQ_CST) != 0)
		rte_pause();
}

static void
run(void *arg)
{
	struct rmem_cache *cache = arg;
	uint64_t nb;

	while (read(cache->wake, &nb, sizeof(nb)) == (ssize_t)sizeof(nb) || errno == EINTR) {
		if (__atomic_load_n(&cache->is_end, __ATOMIC_ACQUIRE))
			return;
		pthread_mutex_lock(&cache->lock);
		rmem_cache_reap(cache);
		pthread_mutex_unlock(&cache->lock);
	}
}

static int
start_thread(struct rmem_cache *cache)
{
	cache->wake = eventfd(0, EFD_CLOEXEC);
	cache->thread.run = run;
	cache->thread.arg = cache;
	if (cache->wake >= 0 && rmem_thread_start(&cache->thread, "rmem-cache") == 0)
		return 0;
	if (cache->wake >= 0)
		close(cache->wake);
	return CACHE_FAIL(ENOMEM, "%s: no control thread: %s", cache->name, strerror(errno));
}

static void
stop_thread(struct rmem_cache *cache)
{
	uint64_t one = 1;

	__atomic_store_n(&cache->is_end, 1, __ATOMIC_RELEASE);
	if (write(cache->wake, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(cache->thread.id, NULL);
	close(cache->wake);
}

/* Whether munmap() reports to this library, and not to another copy of it, or to none. */
static bool
probe_hooks(struct cache_hooks *found)
{
	void (*none)(const void *, size_t) = NULL;
	void *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	(void)__atomic_compare_exchange_n(&found->invalidate, &none, rmem_cache_invalidate, false,
			__ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	__atomic_store_n(&probe, page, __ATOMIC_RELAXED);
	munmap(page, 1);
	return __atomic_load_n(&probe, __ATOMIC_RELAXED) == NULL;
}

/* Connect to the preloaded object; false if there is none, or calls do not reach it. */
static bool
find_hooks(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct cache_hooks *found = dlsym(RTLD_DEFAULT, CACHE_HOOKS_SYMBOL);

	if (found == NULL)
		return false;
	pthread_mutex_lock(&lock);
	if (!probe_hooks(found))
		found = NULL;
	else
		__atomic_store_n(&hooks, found, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return found != NULL;
}

/* In a child of fork(): calls in progress belong to other threads, which do not exist there. */
static void
forget_calls(void)
{
	caches.nb_users = 0;
	if (hooks != NULL)
		hooks->nb_changing = 0;
}

static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_calls);
}

/* Return 0, or -errno with a log line. */
static int
select_monitor(struct rmem_cache *cache, uint32_t monitor)
{
	/*
	 * Also with another monitor: hooks invalidate before the memory changes, so calls that
	 * reach them leave no race.
	 */
	bool has_hooks = find_hooks();
	int ret;

	cache->monitor = monitor;
	if (monitor == RMEM_CACHE_MONITOR_HOOKS && !has_hooks)
		return CACHE_FAIL(EOPNOTSUPP,
				"%s: no hooks: librmem_cache_hooks.so is not preloaded (LD_PRELOAD)",
				cache->name);
	if (monitor != RMEM_CACHE_MONITOR_AUTO && monitor != RMEM_CACHE_MONITOR_UFFD)
		return 0;
	ret = rmem_uffd_watch(&cache->watch);
	if (ret != 0 && monitor == RMEM_CACHE_MONITOR_UFFD)
		return CACHE_FAIL(
				EOPNOTSUPP, "%s: no userfaultfd: %s", cache->name, strerror(-ret));
	cache->monitor = ret == 0   ? RMEM_CACHE_MONITOR_UFFD
			: has_hooks ? RMEM_CACHE_MONITOR_HOOKS
				    : RMEM_CACHE_MONITOR_NONE;
	if (cache->monitor == RMEM_CACHE_MONITOR_NONE)
		RMEM_LOG_LINE(WARNING, rmem_cache_logtype, "rmem_cache",
				"%s: no userfaultfd, and librmem_cache_hooks.so is not preloaded:"
				" each put deregisters (see doc/cache.md)",
				cache->name);
	return 0;
}

int
rmem_cache_monitor_start(struct rmem_cache *cache, uint32_t monitor)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int ret = start_thread(cache);

	if (ret != 0)
		return ret;
	pthread_once(&once, watch_forks);
	cache->watch.event = watch_event;
	cache->watch.needs = watch_needs;
	ret = select_monitor(cache, monitor);
	if (ret != 0)
		goto stop_thread;
	if (slot_add(cache))
		return 0;
	ret = CACHE_FAIL(ENOSPC, "%s: too many caches (%d)", cache->name, RMEM_CACHE_MAX);
	if (cache->monitor == RMEM_CACHE_MONITOR_UFFD)
		rmem_uffd_unwatch(&cache->watch, 0, 0);
stop_thread:
	stop_thread(cache);
	return ret;
}

void
rmem_cache_monitor_stop(struct rmem_cache *cache)
{
	slot_del(cache);
	if (cache->monitor == RMEM_CACHE_MONITOR_UFFD)
		rmem_uffd_unwatch(&cache->watch, 0, 0);
	stop_thread(cache);
}
