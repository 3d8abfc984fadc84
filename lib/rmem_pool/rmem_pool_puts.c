/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Checks of puts: each address must be the first byte of a buffer of the pool that is not free.
 *
 * The mempool of a pool with checks has the ops of this file, which call the ops of the
 * configuration. It has no caches, so that each get and put, also by rte_mempool_*(), calls the
 * ops. Other pools do not use this file.
 *
 * Invariant: the note of a buffer is free from before the buffer is enqueued until after it was
 * dequeued. So if a put finds the note free, the buffer was put before, and not got since.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/queue.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "rmem_pool_priv.h"

/* The last get or put of a buffer; atomic. */
struct puts_note {
	uint64_t tsc;
	uint32_t lcore;
	uint32_t is_free;
};

struct rmem_pool_puts {
	LIST_ENTRY(rmem_pool_puts) next;
	const struct rmem_pool *pool;
	char name[RTE_MEMPOOL_NAMESIZE];
	int inner;       /* index of the ops of the configuration */
	bool is_active;  /* and it is in the list */
	uint32_t nb_bad; /* counter: puts that were refused; atomic */
	uintptr_t first; /* address of buffer 0 */
	size_t stride;
	struct puts_note notes[]; /* by buffer */
};

/* Pools that check puts. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(puts_list, rmem_pool_puts) checked = LIST_HEAD_INITIALIZER(checked);

static struct rmem_pool_puts *
puts_of(const struct rte_mempool *mp)
{
	return mp->pool_config;
}

static const struct rte_mempool_ops *
inner_of(const struct rte_mempool *mp)
{
	return rte_mempool_get_ops(puts_of(mp)->inner);
}

static void
note(struct puts_note *note, uint32_t lcore)
{
	__atomic_store_n(&note->tsc, rte_rdtsc(), __ATOMIC_RELAXED);
	__atomic_store_n(&note->lcore, lcore, __ATOMIC_RELAXED);
}

/* Describe an lcore. */
static const char *
lcore_text(uint32_t lcore, char *text, size_t size)
{
	if (lcore == LCORE_ID_ANY)
		snprintf(text, size, "a thread without an lcore id");
	else
		snprintf(text, size, "lcore %u", lcore);
	return text;
}

/* Whether an address is within the buffers. */
static bool
is_within(const struct rmem_pool_puts *puts, const void *obj)
{
	return (uintptr_t)obj - puts->first < puts->stride * puts->pool->nb_bufs;
}

/* Describe the owner of an address outside of the pool. */
static void
owner_text(const void *obj, char *text, size_t size)
{
	const struct rmem_pool_puts *puts;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(puts, &checked, next) {
		if (is_within(puts, obj))
			break;
	}
	if (puts != NULL)
		snprintf(text, size, "memory of pool \"%s\"", puts->name);
	else
		snprintf(text, size, "other memory");
	pthread_mutex_unlock(&lock);
}

/* Count a bad put; whether it is logged: a few of many are. */
static bool
is_logged(struct rmem_pool_puts *puts, uint32_t *n)
{
	*n = __atomic_add_fetch(&puts->nb_bad, 1, __ATOMIC_RELAXED);
	return (*n & (*n - 1)) == 0;
}

static void
report_foreign(struct rmem_pool_puts *puts, const void *obj)
{
	uintptr_t offset = (uintptr_t)obj - puts->first;
	char by[40], what[64];
	uint32_t n;

	if (!is_logged(puts, &n))
		return;
	if (is_within(puts, obj))
		snprintf(what, sizeof(what), "%zu bytes after the start of buffer %zu",
				(size_t)offset % puts->stride, (size_t)offset / puts->stride);
	else
		owner_text(obj, what, sizeof(what));
	POOL_LOG(WARNING,
			"sanitize: pool \"%s\": put of %p by %s: not a buffer of it: %s: ignored (found %u times)",
			puts->name, obj, lcore_text(rte_lcore_id(), by, sizeof(by)), what, n);
}

static void
report_double(struct rmem_pool_puts *puts, const void *obj, const struct puts_note *last)
{
	uint64_t tsc = __atomic_load_n(&last->tsc, __ATOMIC_RELAXED);
	uint32_t lcore = __atomic_load_n(&last->lcore, __ATOMIC_RELAXED);
	double us = (double)(rte_rdtsc() - tsc) * 1e6 / (double)rte_get_tsc_hz();
	char by[40], before[40];
	uint32_t n;

	if (!is_logged(puts, &n))
		return;
	POOL_LOG(WARNING,
			"sanitize: pool \"%s\": put of buffer %zu (%p) by %s: put twice, previously %.1f us ago by %s: ignored (found %u times)",
			puts->name, (size_t)(last - puts->notes), obj,
			lcore_text(rte_lcore_id(), by, sizeof(by)), us,
			lcore_text(lcore, before, sizeof(before)), n);
}

/* Note that a buffer is put. Return false if it must not be put; then this was reported. */
static bool
note_put(struct rmem_pool_puts *puts, const void *obj, uint32_t lcore)
{
	uintptr_t offset = (uintptr_t)obj - puts->first;
	size_t i = offset / puts->stride;

	if (unlikely(!is_within(puts, obj) || offset % puts->stride != 0)) {
		report_foreign(puts, obj);
		return false;
	}
	if (unlikely(__atomic_exchange_n(&puts->notes[i].is_free, 1, __ATOMIC_ACQ_REL) != 0)) {
		report_double(puts, obj, &puts->notes[i]);
		return false;
	}
	note(&puts->notes[i], lcore);
	return true;
}

static int
puts_enqueue(struct rte_mempool *mp, void *const *objs, unsigned int n)
{
	const struct rte_mempool_ops *ops = inner_of(mp);
	struct rmem_pool_puts *puts = puts_of(mp);
	uint32_t lcore = rte_lcore_id();
	unsigned int i, done = 0;
	int ret = 0;

	if (!puts->is_active)
		return ops->enqueue(mp, objs, n);
	for (i = 0; i < n && ret == 0; i++) {
		if (likely(note_put(puts, objs[i], lcore)))
			continue;
		ret = i == done ? 0 : ops->enqueue(mp, &objs[done], i - done);
		done = i + 1;
	}
	return done == n || ret != 0 ? ret : ops->enqueue(mp, &objs[done], n - done);
}

static int
puts_dequeue(struct rte_mempool *mp, void **objs, unsigned int n)
{
	struct rmem_pool_puts *puts = puts_of(mp);
	uint32_t lcore = rte_lcore_id();
	unsigned int i;
	int ret;

	ret = inner_of(mp)->dequeue(mp, objs, n);
	if (ret < 0 || !puts->is_active)
		return ret;
	for (i = 0; i < n; i++) {
		struct puts_note *at =
				&puts->notes[((uintptr_t)objs[i] - puts->first) / puts->stride];

		note(at, lcore);
		__atomic_store_n(&at->is_free, 0, __ATOMIC_RELEASE);
	}
	return ret;
}

/* The inner ops get the pool_config that they would get without the checks. */
static int
puts_alloc(struct rte_mempool *mp)
{
	struct rmem_pool_puts *puts = puts_of(mp);
	int ret;

	mp->pool_config = NULL;
	ret = rte_mempool_get_ops(puts->inner)->alloc(mp);
	mp->pool_config = puts;
	return ret;
}

static void
puts_free(struct rte_mempool *mp)
{
	if (inner_of(mp)->free != NULL)
		inner_of(mp)->free(mp);
}

static unsigned int
puts_get_count(const struct rte_mempool *mp)
{
	return inner_of(mp)->get_count(mp);
}

static ssize_t
puts_calc_mem_size(const struct rte_mempool *mp, uint32_t nb, uint32_t pg_shift, size_t *min_chunk,
		size_t *align)
{
	if (inner_of(mp)->calc_mem_size != NULL)
		return inner_of(mp)->calc_mem_size(mp, nb, pg_shift, min_chunk, align);
	return rte_mempool_op_calc_mem_size_default(mp, nb, pg_shift, min_chunk, align);
}

static int
puts_populate(struct rte_mempool *mp, unsigned int max, void *vaddr, rte_iova_t iova, size_t len,
		rte_mempool_populate_obj_cb_t *obj_cb, void *arg)
{
	if (inner_of(mp)->populate != NULL)
		return inner_of(mp)->populate(mp, max, vaddr, iova, len, obj_cb, arg);
	return rte_mempool_op_populate_default(mp, max, vaddr, iova, len, obj_cb, arg);
}

static const struct rte_mempool_ops puts_ops = {
		.name = PUTS_OPS_NAME,
		.alloc = puts_alloc,
		.free = puts_free,
		.enqueue = puts_enqueue,
		.dequeue = puts_dequeue,
		.get_count = puts_get_count,
		.calc_mem_size = puts_calc_mem_size,
		.populate = puts_populate,
};

/* Register the ops with the first pool that needs them: DPDK has few slots for ops. */
bool
rmem_pool_puts_register(const char *name)
{
	static int index = -1;
	bool is_there;

	pthread_mutex_lock(&lock);
	if (index < 0)
		index = rte_mempool_register_ops(&puts_ops);
	is_there = index >= 0;
	pthread_mutex_unlock(&lock);
	if (!is_there)
		POOL_LOG(WARNING,
				"sanitize: pool \"%s\": puts are not checked: no free slot for mempool ops",
				name);
	return is_there;
}

int
rmem_pool_puts_alloc(struct rmem_pool *pool)
{
	const char *name = pool->mp->name;
	size_t size = sizeof(struct rmem_pool_puts) + pool->nb_bufs * sizeof(struct puts_note);
	struct rmem_pool_puts *puts;

	puts = rte_zmalloc_socket("rmem_pool_puts", size, RTE_CACHE_LINE_SIZE, pool->mp->socket_id);
	if (puts == NULL)
		return POOL_FAIL(ENOMEM, "%s: no memory: checks of puts, %zu bytes", name, size);
	puts->pool = pool;
	snprintf(puts->name, sizeof(puts->name), "%s", name);
	puts->inner = pool->mp->ops_index;
	rmem_pool_priv(pool)->puts = puts;
	return rte_mempool_set_ops_byname(pool->mp, PUTS_OPS_NAME, puts);
}

static void
check_layout(struct rte_mempool *mp, void *opaque, void *obj, unsigned int i)
{
	struct rmem_pool_puts *puts = opaque;

	RTE_SET_USED(mp);
	if (i == 0)
		puts->first = (uintptr_t)obj;
	if ((uintptr_t)obj == puts->first + i * puts->stride)
		puts->notes[i].is_free = 1;
	else
		puts->is_active = false;
}

void
rmem_pool_puts_start(struct rmem_pool *pool)
{
	struct rmem_pool_puts *puts = rmem_pool_priv(pool)->puts;
	struct rte_mempool *mp = pool->mp;

	if (puts == NULL)
		return;
	puts->stride = (size_t)mp->header_size + mp->elt_size + mp->trailer_size;
	puts->is_active = true;
	rte_mempool_obj_iter(mp, check_layout, puts);
	if (!puts->is_active) {
		POOL_LOG(WARNING,
				"sanitize: pool \"%s\": puts are not checked: buffers are not at equal distances",
				puts->name);
		return;
	}
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&checked, puts, next);
	pthread_mutex_unlock(&lock);
}

void
rmem_pool_puts_free(struct rmem_pool_puts *puts)
{
	if (puts == NULL)
		return;
	pthread_mutex_lock(&lock);
	if (puts->is_active)
		LIST_REMOVE(puts, next);
	pthread_mutex_unlock(&lock);
	rte_free(puts);
}
