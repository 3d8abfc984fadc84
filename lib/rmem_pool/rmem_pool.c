/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Registered mempools: making and destroying them.
 *
 * Memory of up to max_mr_size bytes is one ALLOCATE_MR. More is one chunk, cut into slices
 * of 2^log2_slice bytes. The MR of a slice covers the buffers that start in it, whole, and so
 * never more than 2^log2_slice + buf_size - 1 bytes: no buffer straddles, none is padded.
 * Slices smaller than the distance of two buffers hold one buffer or none.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_memzone.h>

#include <rmem.h>
#include <rmem_chunk.h>
#include <rmem_pool.h>

RTE_LOG_REGISTER(rmem_pool_logtype, lib.rmem.pool, NOTICE)

/* Log a line: POOL_LOG(ERR, "format", ...). */
#define POOL_LOG(level, ...)                                                                       \
	rte_log(RTE_LOG_##level, rmem_pool_logtype,                                                \
			RTE_FMT("rmem_pool: " RTE_FMT_HEAD(__VA_ARGS__, ) "\n",                    \
					RTE_FMT_TAIL(__VA_ARGS__, )))

_Static_assert(offsetof(struct rmem_sge, lkey) + sizeof(uint32_t) == sizeof(struct rmem_sge) &&
				offsetof(struct rmem_sge, length) == sizeof(uint64_t),
		"length and lkey of an SGE are its second word");
_Static_assert(offsetof(struct rmem_pool, tail) + sizeof(uint64_t) <= RTE_CACHE_LINE_MIN_SIZE,
		"the fast path reads one line of the pool");

/* What a creation goes by. */
struct plan {
	const struct rmem_pool_conf *conf;
	struct rmem_dev_info info;
	size_t length; /* Bytes of all buffers with their headers. */
	size_t stride; /* Bytes from one buffer to the next. */
};

/* Where a walk over the buffers is, to register slice by slice. */
struct walk {
	struct rmem_pool *pool;
	uint32_t access;
	size_t slice;   /* Slice of the buffers [begin, end). */
	uint8_t *begin; /* NULL when there is none. */
	uint8_t *end;
	int ret;
};

static int
check_name(const char *name)
{
	size_t len;

	if (name == NULL) {
		POOL_LOG(ERR, "got NULL for the name");
		return -EINVAL;
	}
	len = strnlen(name, RTE_MEMPOOL_NAMESIZE);
	if (len == 0 || len == RTE_MEMPOOL_NAMESIZE) {
		POOL_LOG(ERR, "name \"%.*s\" is not 1 to %d bytes long", (int)RTE_MEMPOOL_NAMESIZE,
				name, (int)RTE_MEMPOOL_NAMESIZE - 1);
		return -EINVAL;
	}
	return 0;
}

static int
check_numbers(const struct rmem_pool_conf *conf)
{
	if (conf->nb_bufs == 0) {
		POOL_LOG(ERR, "%s: nb_bufs is 0", conf->name);
		return -EINVAL;
	}
	if (conf->buf_size == 0 || conf->buf_size > RMEM_POOL_MAX_BUF_SIZE) {
		POOL_LOG(ERR, "%s: buf_size %u is not 1 to %u", conf->name, conf->buf_size,
				RMEM_POOL_MAX_BUF_SIZE);
		return -EINVAL;
	}
	if (conf->cache_size > RTE_MEMPOOL_CACHE_MAX_SIZE ||
			(uint64_t)conf->cache_size * 3 / 2 > conf->nb_bufs) {
		POOL_LOG(ERR, "%s: cache_size %u is above %d, or above nb_bufs %u / 1.5",
				conf->name, conf->cache_size, RTE_MEMPOOL_CACHE_MAX_SIZE,
				conf->nb_bufs);
		return -EINVAL;
	}
	return 0;
}

static int
check_socket(const struct rmem_pool_conf *conf)
{
	unsigned int i;

	if (conf->socket_id == SOCKET_ID_ANY)
		return 0;
	for (i = 0; i < rte_socket_count(); i++) {
		if (rte_socket_id_by_idx(i) == conf->socket_id)
			return 0;
	}
	POOL_LOG(ERR, "%s: there is no NUMA socket %d, only %u of them", conf->name,
			conf->socket_id, rte_socket_count());
	return -EINVAL;
}

static int
check_conf(const struct rmem_pool_conf *conf)
{
	int ret;

	ret = check_name(conf->name);
	if (ret == 0)
		ret = check_numbers(conf);
	if (ret == 0)
		ret = check_socket(conf);
	if (ret != 0)
		return ret;
	if ((conf->access & RMEM_ACCESS_ALLOCATE_MR) != 0) {
		POOL_LOG(ERR, "%s: access 0x%x has ALLOCATE_MR, which a pool sets itself",
				conf->name, conf->access);
		return -EINVAL;
	}
	if ((conf->access & RMEM_ACCESS_ZERO_BASED) != 0) {
		POOL_LOG(ERR, "%s: access 0x%x has ZERO_BASED, but buffers go by their address",
				conf->name, conf->access);
		return -EINVAL;
	}
	if (conf->flags != 0) {
		POOL_LOG(ERR, "%s: unknown flags 0x%x", conf->name, conf->flags);
		return -EINVAL;
	}
	if (conf->reserved[0] != 0 || conf->reserved[1] != 0) {
		POOL_LOG(ERR, "%s: a reserved field is not zero", conf->name);
		return -EINVAL;
	}
	return 0;
}

static int
check_args(const struct rmem_pd *pd, const struct rmem_pool_conf *conf, struct rmem_pool **pool)
{
	if (pd == NULL || pd->obj.type != RMEM_OBJ_PD) {
		POOL_LOG(ERR, "got %p (tag 0x%x), expected a PD", (const void *)pd,
				pd == NULL ? 0 : pd->obj.type);
		return -EINVAL;
	}
	if (conf == NULL || pool == NULL) {
		POOL_LOG(ERR, "got NULL for the %s",
				conf == NULL ? "configuration" : "pool pointer");
		return -EINVAL;
	}
	return check_conf(conf);
}

/* Ask the device of a PD what it can do. */
static int
get_info(const struct rmem_pd *pd, struct rmem_dev_info *info)
{
	struct rmem_dev *dev;

	RMEM_DEV_FOREACH(dev) {
		if (dev->obj.dev_id == pd->obj.dev_id)
			return rmem_dev_info_get(dev, info);
	}
	POOL_LOG(ERR, "PD %p has no device any more", (const void *)pd);
	return -ENODEV;
}

/* What a failed call of the mempool library means to our caller. */
static int
mempool_error(const struct rmem_pool_conf *conf, int err)
{
	switch (err) {
	case EEXIST:
		POOL_LOG(ERR, "a mempool \"%s\" exists already", conf->name);
		return -EEXIST;
	case EINVAL:
		POOL_LOG(ERR, "%s: the mempool refuses %u buffers of %u bytes, cache %u, ops %s",
				conf->name, conf->nb_bufs, conf->buf_size, conf->cache_size,
				conf->ops_name == NULL ? "default" : conf->ops_name);
		return -EINVAL;
	default:
		POOL_LOG(ERR,
				"%s: no memory for the mempool itself, %u buffers with a cache "
				"of %u for each of %d lcores: %s",
				conf->name, conf->nb_bufs, conf->cache_size, RTE_MAX_LCORE,
				rte_strerror(err));
		return -ENOMEM;
	}
}

/* The mempool without memory, and what memory it needs. */
static int
create_mempool(struct rmem_pool *pool, struct plan *plan)
{
	const struct rmem_pool_conf *conf = plan->conf;
	size_t min_chunk, align;
	ssize_t length;
	int ret;

	/* The device sees virtual addresses through its MR: no care for IO addresses. */
	pool->mp = rte_mempool_create_empty(conf->name, conf->nb_bufs, conf->buf_size,
			conf->cache_size, 0, conf->socket_id, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool->mp == NULL)
		return mempool_error(conf, rte_errno);
	ret = rte_mempool_set_ops_byname(
			pool->mp, conf->ops_name == NULL ? "ring_mp_mc" : conf->ops_name, NULL);
	if (ret != 0)
		return mempool_error(conf, EINVAL);
	length = rte_mempool_op_calc_mem_size_default(
			pool->mp, conf->nb_bufs, 0, &min_chunk, &align);
	if (length < 0)
		return mempool_error(conf, (int)-length);
	plan->length = (size_t)length;
	plan->stride = (size_t)pool->mp->header_size + pool->mp->elt_size + pool->mp->trailer_size;
	return 0;
}

/* Room for the keys of the slices and for their MRs. */
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
	if (keys == NULL) {
		POOL_LOG(ERR, "%s: no memory for the keys of %zu slices: %zu bytes", pool->mp->name,
				nb_slices, size);
		return -ENOMEM;
	}
	pool->keys = keys;
	pool->nb_slices = (uint32_t)nb_slices;
	pool->mrs = (struct rmem_mr **)(keys + nb_slices);
	return 0;
}

/* The keys of a slice; keys is const for those who read it on the fast path. */
static void
set_keys(struct rmem_pool *pool, size_t slice, struct rmem_mr *mr)
{
	struct rmem_pool_keys *keys = (struct rmem_pool_keys *)(uintptr_t)pool->keys;

	keys[slice].lkey = mr->lkey;
	keys[slice].rkey = mr->rkey;
	pool->mrs[pool->nb_mrs++] = mr;
}

/* All memory as one MR that the class allocates. */
static int
reg_one(struct rmem_pool *pool, const struct plan *plan)
{
	struct rmem_mr_attr attr = {
			.length = plan->length,
			.access = plan->conf->access | RMEM_ACCESS_ALLOCATE_MR,
			.socket_id = plan->conf->socket_id,
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

/* log2 of the slices: as large as max_mr_size allows, or holding one buffer at most. */
static uint32_t
choose_slice(const struct plan *plan)
{
	uint64_t largest = plan->info.max_mr_size - plan->conf->buf_size + 1;

	return 63 - (uint32_t)__builtin_clzll(RTE_MAX(largest, (uint64_t)plan->stride));
}

/* Memory and keys for several MRs; they are registered when the buffers are there. */
static int
alloc_slices(struct rmem_pool *pool, const struct plan *plan)
{
	char name[RTE_MEMZONE_NAMESIZE];
	uint64_t nb_slices, nb_mrs, nb_left;
	int ret;

	pool->log2_slice = choose_slice(plan);
	nb_slices = ((plan->length - 1) >> pool->log2_slice) + 1;
	nb_mrs = RTE_MIN(nb_slices, (uint64_t)plan->conf->nb_bufs);
	nb_left = plan->info.max_mr - RTE_MIN(plan->info.nb_mr, plan->info.max_mr);
	if (nb_mrs > nb_left) {
		POOL_LOG(ERR,
				"%s: %zu bytes need %" PRIu64 " MRs with max_mr_size %" PRIu64
				", %" PRIu64 " of max_mr %u are left",
				plan->conf->name, plan->length, nb_mrs, plan->info.max_mr_size,
				nb_left, plan->info.max_mr);
		return -ENOSPC;
	}
	ret = alloc_keys(pool, nb_slices);
	if (ret != 0)
		return ret;
	snprintf(name, sizeof(name), "rmem_pool_%p", (void *)pool);
	return rmem_chunk_reserve(name, plan->length, plan->conf->socket_id, &pool->mz);
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

/* One buffer; they come in the order of their addresses. */
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

/* Release what there is. -errno is that of an MR that can't be deregistered. */
static int
release(struct rmem_pool *pool)
{
	int ret;

	/* First: the mempool keeps its lists in the memory of the MRs. */
	rte_mempool_free(pool->mp);
	pool->mp = NULL;
	while (pool->nb_mrs > 0) {
		ret = rmem_mr_dereg(pool->mrs[pool->nb_mrs - 1]);
		if (ret != 0)
			return ret;
		pool->nb_mrs--;
	}
	if (pool->mz != NULL)
		rte_memzone_free(pool->mz);
	rte_free((void *)(uintptr_t)pool->keys);
	__atomic_store_n(&pool->obj.type, RMEM_OBJ_NONE, __ATOMIC_RELEASE);
	rte_free(pool);
	return 0;
}

/* Give the mempool its memory. */
static int
populate(struct rmem_pool *pool, const struct rmem_pool_conf *conf, size_t length)
{
	int ret;

	ret = rte_mempool_populate_iova(
			pool->mp, (char *)pool->base, RTE_BAD_IOVA, length, NULL, NULL);
	if (ret < 0)
		return mempool_error(conf, -ret);
	if ((uint32_t)ret != conf->nb_bufs) {
		POOL_LOG(ERR, "%s: only %d of %u buffers fit into %zu bytes", conf->name, ret,
				conf->nb_bufs, length);
		return -ENOMEM;
	}
	return 0;
}

/* Fill a pool whose tag, PD and numbers are there; the caller releases it on failure. */
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
		pool->base = (uintptr_t)pool->mz->addr;
	ret = populate(pool, conf, plan->length);
	if (ret == 0 && !is_one)
		ret = reg_slices(pool, conf->access);
	if (ret == 0 && conf->cache_size != 0)
		pool->caches = pool->mp->local_cache;
	return ret;
}

int
rmem_pool_create(struct rmem_pd *pd, const struct rmem_pool_conf *conf, struct rmem_pool **pool)
{
	struct plan plan = {.conf = conf};
	struct rmem_pool *new_pool;
	int ret;

	ret = check_args(pd, conf, pool);
	if (ret == 0)
		ret = get_info(pd, &plan.info);
	if (ret != 0)
		return ret;
	if (conf->buf_size > plan.info.max_mr_size) {
		POOL_LOG(ERR, "%s: buf_size %u is above max_mr_size %" PRIu64, conf->name,
				conf->buf_size, plan.info.max_mr_size);
		return -EINVAL;
	}
	new_pool = rte_zmalloc_socket(
			"rmem_pool", sizeof(*new_pool), RTE_CACHE_LINE_SIZE, conf->socket_id);
	if (new_pool == NULL) {
		POOL_LOG(ERR, "%s: no memory for a pool of %zu bytes on socket %d", conf->name,
				sizeof(*new_pool), conf->socket_id);
		return -ENOMEM;
	}
	new_pool->obj.type = RMEM_OBJ_POOL;
	new_pool->obj.dev_id = pd->obj.dev_id;
	new_pool->pd = pd;
	new_pool->buf_size = conf->buf_size;
	new_pool->nb_bufs = conf->nb_bufs;
	ret = do_create(new_pool, &plan);
	if (ret != 0) {
		release(new_pool);
		return ret;
	}
	*pool = new_pool;
	return 0;
}

/* What keeps a pool from being destroyed. */
static int
check_idle(const struct rmem_pool *pool)
{
	unsigned int nb_out = 0;
	uint32_t i, refs = 0;

	if (pool->mp != NULL)
		nb_out = rte_mempool_in_use_count(pool->mp);
	for (i = 0; i < pool->nb_mrs; i++)
		refs += __atomic_load_n(&pool->mrs[i]->obj.refs, __ATOMIC_RELAXED);
	if (nb_out == 0 && refs == 0)
		return 0;
	POOL_LOG(ERR, "%s is in use: %u buffers are out, %u references to its MRs are left",
			pool->mp == NULL ? "pool" : pool->mp->name, nb_out, refs);
	return -EBUSY;
}

int
rmem_pool_destroy(struct rmem_pool *pool)
{
	int ret;

	if (pool == NULL)
		return 0;
	if (pool->obj.type != RMEM_OBJ_POOL) {
		POOL_LOG(ERR, "got %p (tag 0x%x), expected a pool", (void *)pool, pool->obj.type);
		return -EINVAL;
	}
	ret = check_idle(pool);
	if (ret != 0)
		return ret;
	return release(pool);
}
