/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Registered mempools: create and destroy.
 *
 * Memory of up to max_mr_size bytes is one MR with ALLOCATE_MR. Larger memory is one chunk, divided
 * into slices of 2^log2_slice bytes. The MR of a slice covers the whole buffers that start in it,
 * at most 2^log2_slice + buf_size - 1 bytes: no buffer crosses two MRs, none is padded. Slices
 * smaller than the distance of two buffers hold one buffer or none.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memzone.h>

#include <rmem_chunk.h>

#include "rmem_pool_cache_priv.h"
#include "rmem_pool_priv.h"
#include "rmem_pool_trace_priv.h"
#include "rmem_tracked_priv.h"

static_assert(offsetof(struct rmem_sge, lkey) + sizeof(uint32_t) == sizeof(struct rmem_sge) &&
				offsetof(struct rmem_sge, length) == sizeof(uint64_t),
		"length and lkey of an SGE are its second word");
static_assert(offsetof(struct rmem_pool, cache_layout) < RTE_CACHE_LINE_MIN_SIZE,
		"the fast path reads one line of the pool");

/* Parameters of a creation. */
struct plan {
	const struct rmem_pool_conf *conf;
	struct rmem_dev_info info;
	size_t length;   /* Bytes of all buffers with their headers. */
	size_t stride;   /* Bytes from one buffer to the next. */
	bool has_checks; /* Puts are checked. */
};

/* State of a walk over the buffers, which registers slice by slice. */
struct walk {
	struct rmem_pool *pool;
	uint32_t access;
	size_t slice;   /* Slice of the buffers [begin, end). */
	uint8_t *begin; /* NULL if there is none. */
	uint8_t *end;
	int ret;
};

/* Create the mempool without memory, and calculate its length. */
static int
create_mempool(struct rmem_pool *pool, struct plan *plan)
{
	const struct rmem_pool_conf *conf = plan->conf;
	size_t min_chunk, align;
	ssize_t length;
	int ret;

	/* The device uses the virtual addresses of its MR, not IO addresses. */
	pool->mp = rte_mempool_create_empty(conf->name, conf->nb_bufs, conf->buf_size,
			plan->has_checks ? 0 : conf->cache_size, 0, conf->socket_id,
			RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool->mp == NULL)
		return rmem_pool_mempool_error(conf, rte_errno);
	ret = rmem_pool_set_ops(pool->mp, conf);
	if (ret != 0)
		return ret;
	ret = plan->has_checks ? rmem_pool_puts_alloc(pool) : 0;
	if (ret != 0)
		return ret;
	length = rte_mempool_op_calc_mem_size_default(
			pool->mp, conf->nb_bufs, 0, &min_chunk, &align);
	if (length < 0)
		return rmem_pool_mempool_error(conf, (int)-length);
	plan->length = (size_t)length;
	plan->stride = (size_t)pool->mp->header_size + pool->mp->elt_size + pool->mp->trailer_size;
	return 0;
}

/* Allocate the keys of the slices and the list of their MRs. */
static int
alloc_keys(struct rmem_pool *pool, size_t nb_slices)
{
	struct rmem_pool_keys *keys;
	size_t size = nb_slices * (sizeof(*keys) + sizeof(void *));

	if (nb_slices <= UINT32_MAX)
		keys = rte_zmalloc_socket(
				"rmem_pool_keys", size, RTE_CACHE_LINE_SIZE, pool->mp->socket_id);
	else
		keys = NULL;
	if (keys == NULL)
		return POOL_FAIL(ENOMEM, "%s: no memory: keys of %zu slices, %zu bytes",
				pool->mp->name, nb_slices, size);
	pool->keys = keys;
	rmem_pool_priv(pool)->nb_slices = (uint32_t)nb_slices;
	pool->mrs = (struct rmem_mr **)(keys + nb_slices);
	return 0;
}

/* Set the keys of a slice; keys is const for readers on the fast path. */
static void
set_keys(struct rmem_pool *pool, size_t slice, struct rmem_mr *mr)
{
	struct rmem_pool_keys *keys = (struct rmem_pool_keys *)(uintptr_t)pool->keys;

	keys[slice].lkey = mr->lkey;
	keys[slice].rkey = mr->rkey;
	pool->mrs[pool->nb_mrs++] = mr;
}

/* Allocate and register all memory as one ALLOCATE_MR. */
static int
reg_one(struct rmem_pool *pool, const struct plan *plan)
{
	struct rmem_mr_attr attr = {
			.length = plan->length,
			.access = plan->conf->access | RMEM_ACCESS_ALLOCATE_MR,
			.socket_id = plan->conf->socket_id,
			.name = plan->conf->name,
	};
	struct rmem_sge sge;
	struct rmem_mr *mr;
	int ret;

	ret = alloc_keys(pool, 1);
	if (ret != 0)
		return ret;
	ret = rmem_mr_reg_attr(pool->pd, &attr, &mr);
	if (ret != 0)
		return ret;
	pool->base = (uintptr_t)mr->addr;
	pool->log2_slice = RMEM_POOL_ONE_SLICE;
	sge.length = pool->buf_size;
	sge.lkey = mr->lkey;
	memcpy(&pool->tail, &sge.length, sizeof(pool->tail));
	set_keys(pool, 0, mr);
	return 0;
}

/*
 * Allocate memory and keys for several MRs, which are registered when the buffers are initialized.
 */
static int
alloc_slices(struct rmem_pool *pool, const struct plan *plan)
{
	char name[RTE_MEMZONE_NAMESIZE];
	int ret;

	pool->log2_slice = rmem_pool_log2_slice(
			plan->info.max_mr_size, plan->conf->buf_size, plan->stride);
	ret = alloc_keys(pool, ((plan->length - 1) >> pool->log2_slice) + 1);
	if (ret != 0)
		return ret;
	snprintf(name, sizeof(name), "rmem_pool_%p", (void *)pool);
	return rmem_chunk_reserve(
			name, plan->length, plan->conf->socket_id, &rmem_pool_priv(pool)->mz);
}

/* Register the buffers of a slice, if it has any. */
static void
reg_slice(struct walk *walk)
{
	struct rmem_mr *mr;

	if (walk->begin == NULL || walk->ret != 0)
		return;
	walk->ret = rmem_mr_reg(walk->pool->pd, walk->begin, (size_t)(walk->end - walk->begin), 0,
			walk->access, &mr);
	if (walk->ret == 0)
		set_keys(walk->pool, walk->slice, mr);
}

/* Visit a buffer; the walk is in the order of addresses. */
static void
walk_buf(struct rte_mempool *mp, void *opaque, void *obj, unsigned int idx)
{
	struct walk *walk = opaque;
	size_t slice;

	RTE_SET_USED(mp);
	RTE_SET_USED(idx);
	slice = ((uintptr_t)obj - walk->pool->base) >> walk->pool->log2_slice;
	if (walk->begin == NULL || slice != walk->slice) {
		reg_slice(walk);
		walk->slice = slice;
		walk->begin = obj;
	}
	walk->end = (uint8_t *)obj + walk->pool->buf_size;
}

static int
reg_slices(struct rmem_pool *pool, uint32_t access)
{
	struct walk walk = {.pool = pool, .access = access};

	rte_mempool_obj_iter(pool->mp, walk_buf, &walk);
	reg_slice(&walk);
	return walk.ret;
}

/*
 * Release everything except the pool itself. Return 0, or the -errno of an MR that cannot be
 * deregistered.
 */
static int
release_parts(struct rmem_pool *pool)
{
	int ret;

	/* Freed before the MRs: the lists of the mempool are in their memory. */
	rte_mempool_free(pool->mp);
	pool->mp = NULL;
	if (rmem_pool_priv(pool)->map != NULL)
		rmem_map_del(pool->mrs, pool->nb_mrs);
	rmem_pool_priv(pool)->map = NULL;
	while (pool->nb_mrs > 0) {
		ret = rmem_mr_dereg(pool->mrs[pool->nb_mrs - 1]);
		if (ret != 0)
			return ret;
		pool->nb_mrs--;
	}
	if (rmem_pool_priv(pool)->mz != NULL)
		rte_memzone_free(rmem_pool_priv(pool)->mz);
	rte_free((void *)(uintptr_t)pool->keys);
	rmem_pool_puts_free(rmem_pool_priv(pool)->puts);
	return 0;
}

/* Free the handle: another pool may have the same address afterwards. */
static void
free_pool(struct rmem_pool *pool)
{
	__atomic_store_n(&pool->obj.type, RMEM_OBJ_NONE, __ATOMIC_RELEASE);
	rte_free(pool);
}

/* Populate the mempool with its memory. */
static int
populate(struct rmem_pool *pool, const struct rmem_pool_conf *conf, size_t length)
{
	int ret;

	ret = rte_mempool_populate_iova(
			pool->mp, (char *)pool->base, RTE_BAD_IOVA, length, NULL, NULL);
	if (ret < 0)
		return rmem_pool_mempool_error(conf, -ret);
	if ((uint32_t)ret != conf->nb_bufs)
		return POOL_FAIL(ENOMEM, "%s: not all buffers fit: %d of %u in %zu bytes",
				conf->name, ret, conf->nb_bufs, length);
	return 0;
}

/* Fill a pool whose tag, PD and sizes are set; the caller releases it on failure. */
static int
do_create(struct rmem_pool *pool, struct plan *plan)
{
	const struct rmem_pool_conf *conf = plan->conf;
	bool is_one;
	int ret;

	ret = create_mempool(pool, plan);
	if (ret != 0)
		return ret;
	is_one = plan->length <= plan->info.max_mr_size;
	ret = is_one ? reg_one(pool, plan) : alloc_slices(pool, plan);
	if (ret != 0)
		return ret;
	if (!is_one)
		pool->base = (uintptr_t)rmem_pool_priv(pool)->mz->addr;
	ret = populate(pool, conf, plan->length);
	if (ret == 0 && !is_one)
		ret = reg_slices(pool, conf->access);
	if (ret == 0)
		ret = rmem_map_add(pool->mrs, pool->nb_mrs, &rmem_pool_priv(pool)->map);
	if (ret != 0)
		return ret;
	pool_cache_set(pool, &rmem_pool_priv(pool)->no_cache);
	rmem_pool_puts_start(pool);
	return (conf->flags & RMEM_POOL_TRACKED) != 0 ? rmem_pool_dir_add(&pool->obj, conf->name)
						      : 0;
}

/* Whether puts need the checks of rmem_pool_puts.c; tracked pools have their own. */
static bool
checks_puts(const struct rmem_pool_conf *conf, const struct rmem_dev_info *info)
{
	if ((conf->flags & RMEM_POOL_TRACKED) != 0)
		return false;
	return (conf->flags & RMEM_POOL_CHECK_PUTS) != 0 ||
			(info->capa & RMEM_DEV_CAPA_SANITIZE) != 0;
}

int
rmem_pool_create(struct rmem_pd *pd, const struct rmem_pool_conf *conf, struct rmem_pool **pool)
{
	RMEM_CALL(pd);
	struct plan plan = {.conf = conf};
	struct rmem_pool *new_pool;
	struct rmem_need need;
	int ret;

	ret = rmem_pool_check_args(pd, conf, pool);
	if (ret == 0)
		ret = rmem_pool_dev_info(pd, &plan.info);
	if (ret != 0)
		return ret;
	plan.has_checks = checks_puts(conf, &plan.info) && rmem_pool_puts_register(conf->name);
	rmem_pool_need(conf, &plan.info, &need);
	ret = rmem_pool_report_mrs(&need, &plan.info);
	if (ret != 0)
		return ret;
	new_pool = rte_zmalloc_socket("rmem_pool", sizeof(struct rmem_pool_priv),
			RTE_CACHE_LINE_SIZE, conf->socket_id);
	if (new_pool == NULL)
		return POOL_FAIL(ENOMEM, "%s: no memory: %zu bytes on socket %d", conf->name,
				sizeof(struct rmem_pool_priv), conf->socket_id);
	new_pool->obj.type = RMEM_OBJ_POOL;
	new_pool->obj.dev_id = pd->obj.dev_id;
	new_pool->pd = pd;
	new_pool->buf_size = conf->buf_size;
	new_pool->nb_bufs = conf->nb_bufs;
	rmem_pool_priv(new_pool)->low_water = conf->nb_bufs;
	ret = do_create(new_pool, &plan);
	if (ret != 0) {
		if (release_parts(new_pool) == 0)
			free_pool(new_pool);
		return ret;
	}
	rmem_pool_list_add(new_pool);
	*pool = new_pool;
	rmem_pool_trace_create(conf->name, pd, new_pool, new_pool->nb_bufs, new_pool->buf_size,
			conf->access, new_pool->nb_mrs);
	return 0;
}

/* Find references that prevent the destruction of a pool. */
static int
check_idle(const struct rmem_pool *pool)
{
	unsigned int nb_out = 0, nb_regs = 0;
	uint32_t i, refs = 0;

	if (pool->mp != NULL) {
		nb_out = rte_mempool_in_use_count(pool->mp);
		nb_regs = rmem_mempool_nb_regs(pool->mp);
	}
	for (i = 0; i < pool->nb_mrs; i++)
		refs += __atomic_load_n(&pool->mrs[i]->obj.refs, __ATOMIC_RELAXED);
	if (nb_out == 0 && nb_regs == 0 && refs == 0)
		return 0;
	if (nb_out != 0)
		rmem_tracked_log_owners(pool->mp);
	return POOL_FAIL(EBUSY,
			"%s: in use: %u buffers not put back, %u registrations, %u references to its MRs",
			pool->mp == NULL ? "pool" : pool->mp->name, nb_out, nb_regs, refs);
}

int
rmem_pool_destroy(struct rmem_pool *pool)
{
	RMEM_CALL(pool);
	int ret;

	if (pool == NULL)
		return 0;
	ret = rmem_process_check();
	if (ret != 0)
		return ret;
	if (pool->obj.type != RMEM_OBJ_POOL)
		return POOL_FAIL(EINVAL, "handle: %p (tag 0x%x), expected a pool", (void *)pool,
				pool->obj.type);
	if (!rmem_mempool_exists(pool->mp))
		pool->mp = NULL; /* the application freed it */
	ret = check_idle(pool);
	if (ret != 0)
		return ret;
	rmem_pool_list_del(pool);
	rmem_pool_dir_del(&pool->obj);
	ret = release_parts(pool);
	if (ret != 0)
		return ret;
	rmem_pool_trace_destroy(pool);
	free_pool(pool);
	return 0;
}

struct rmem_mr *
rmem_pool_mr(const struct rmem_pool *pool, const void *obj)
{
	size_t i = RTE_MIN(((uintptr_t)obj - pool->base) >> pool->log2_slice,
			(size_t)pool->nb_mrs - 1);

	/* Slices in which no buffer starts have no MR. */
	while ((uintptr_t)obj < (uintptr_t)pool->mrs[i]->addr) {
		if (i-- == 0)
			return NULL;
	}
	if ((uintptr_t)obj - (uintptr_t)pool->mrs[i]->addr >= pool->mrs[i]->length)
		return NULL;
	return pool->mrs[i];
}
