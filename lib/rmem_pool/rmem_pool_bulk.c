/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Getting and putting bulks. The cache of the lcore is accessed in place, so that SGEs are
 * written and read once, without an intermediate array of pointers; if it does not suffice, the
 * functions of the mempool are used.
 */

#include <stdbool.h>

#include <rte_common.h>
#include <rte_cpuflags.h>

#include "rmem_pool_cache_priv.h"
#include "rmem_pool_priv.h"

/* Number of buffers put back at a time with the functions of the mempool. */
#define PUT_BURST 64

/* Two words, copied as one. */
typedef uint64_t pair_t __attribute__((vector_size(16)));
/*
 * Two words in memory, of any type, aligned as a word. Only accessed through pointers: some
 * compilers for arm64 can't pass a vector by value that is aligned to less than its size.
 */
typedef uint64_t pair_mem_t __attribute__((vector_size(16), aligned(8), may_alias));

static bool is_avx2;

#ifdef RMEM_POOL_AVX2
RTE_INIT(rmem_pool_bulk_init)
{
	is_avx2 = rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX2) > 0;
}
#else
#define rmem_pool_fill_avx2    fill
#define rmem_pool_collect_avx2 collect
#endif

static inline void
store_two(struct rmem_sge *sge, void *const *objs, pair_t tails)
{
	const pair_t two = *(const pair_mem_t *)objs;

	*(pair_mem_t *)&sge[0] = __builtin_shufflevector(two, tails, 0, 2);
	/* Keep the order of the addresses, which compilers would reverse. */
	rte_compiler_barrier();
	*(pair_mem_t *)&sge[1] = __builtin_shufflevector(two, tails, 1, 3);
	rte_compiler_barrier();
}

static int
fill(struct rmem_sge *sge, void *const *objs, unsigned int n, uint64_t tail)
{
	const struct rmem_sge *end = sge + n;
	const pair_t tails = {tail, tail};

	for (; end - sge >= 4; sge += 4, objs += 4) {
		store_two(sge, objs, tails);
		store_two(sge + 2, objs + 2, tails);
	}
	for (; sge != end; sge++, objs++)
		*(pair_mem_t *)sge = (pair_t){(uintptr_t)*objs, tail};
	return 0;
}

static inline void
load_two(void **objs, const struct rmem_sge *sge)
{
	const pair_t one = *(const pair_mem_t *)&sge[0];
	const pair_t two = *(const pair_mem_t *)&sge[1];

	*(pair_mem_t *)objs = __builtin_shufflevector(one, two, 0, 2);
}

static void
collect(void **objs, const struct rmem_sge *sge, unsigned int n)
{
	const struct rmem_sge *end = sge + n;

	for (; end - sge >= 4; sge += 4, objs += 4) {
		load_two(objs, sge);
		load_two(objs + 2, sge + 2);
	}
	for (; sge != end; sge++, objs++)
		*objs = (void *)(uintptr_t)sge->addr;
}

/*
 * Get buffers with the functions of the mempool, which handle all caches, slices and checks. Out of
 * line: a function that only jumps to another saves no registers.
 */
static __rte_noinline int
get_plain(struct rmem_pool *pool, struct rmem_sge *sge, unsigned int n)
{
	struct rmem_sge one;
	unsigned int i;
	int ret = 0;
	void *obj;

	/* The pointers are stored at the front of the SGEs and spread out from the last one. */
	if (n != 0)
		ret = rte_mempool_get_bulk(pool->mp, (void **)sge, n);
	if (unlikely(ret != 0)) {
		__atomic_fetch_add(&rmem_pool_priv(pool)->failed_gets, 1, __ATOMIC_RELAXED);
		rmem_pool_note_level(pool);
		return ret == -EOPNOTSUPP ? ret : -ENOENT;
	}
	/* Without caches every get calls this function, so it must not be slowed down. */
	if (pool->cache_layout != 0)
		rmem_pool_note_level(pool);
	for (i = n; i-- > 0;) {
		memcpy(&obj, (uint8_t *)sge + i * sizeof(obj), sizeof(obj));
		one.addr = (uintptr_t)obj;
		one.length = pool->buf_size;
		one.lkey = rmem_pool_lkey(pool, obj);
		memcpy(&sge[i], &one, sizeof(one));
	}
	return 0;
}

/*
 * Put buffers that do not fit into the cache, or buffers of a pool of several slices: after a flush
 * of the cache, or with the functions of the mempool.
 */
static __rte_noinline void
put_slow(struct rmem_pool *pool, const struct rmem_sge *sge, unsigned int n)
{
	struct rte_mempool_cache *cache = pool_cache_any(pool);
	void **at = cache == NULL ? NULL : pool_cache_add(cache, n);
	void *objs[PUT_BURST];
	unsigned int nb;

	if (at == NULL && cache != NULL && pool_cache_flush(pool->mp, cache, n))
		at = pool_cache_add(cache, n);
	if (at != NULL) {
		collect(at, sge, n);
		return;
	}
	for (; n > 0; n -= nb, sge += nb) {
		nb = RTE_MIN(n, (unsigned int)PUT_BURST);
		collect(objs, sge, nb);
		rte_mempool_put_bulk(pool->mp, objs, nb);
	}
}

int
rmem_pool_get_sges_bulk(struct rmem_pool *pool, struct rmem_sge *sge, unsigned int n)
{
	struct rte_mempool_cache *cache = pool_cache(pool);
	void *const *objs;

	if (unlikely(cache == NULL))
		return get_plain(pool, sge, n);
	objs = pool_cache_take(cache, n);
	if (unlikely(objs == NULL))
		return get_plain(pool, sge, n);
	if (is_avx2)
		return rmem_pool_fill_avx2(sge, objs, n, pool->tail);
	return fill(sge, objs, n, pool->tail);
}

void
rmem_pool_put_sges_bulk(struct rmem_pool *pool, const struct rmem_sge *sge, unsigned int n)
{
	struct rte_mempool_cache *cache = pool_cache(pool);
	void **objs = NULL;

	if (likely(cache != NULL))
		objs = pool_cache_add(cache, n);
	if (unlikely(objs == NULL))
		put_slow(pool, sge, n);
	else if (is_avx2)
		rmem_pool_collect_avx2(objs, sge, n);
	else
		collect(objs, sge, n);
}
