/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Creation and destruction of caches. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_malloc.h>

#include <rmem_pages.h>
#include <rmem_pd.h>

#include "rmem_cache_priv.h"

static int
check_conf(const struct rmem_cache_conf *conf)
{
	int ret;

	if (conf->monitor > RMEM_CACHE_MONITOR_HOOKS)
		return CACHE_FAIL(EINVAL, "monitor: unknown: %u (0 to %u)", conf->monitor,
				RMEM_CACHE_MONITOR_HOOKS);
	if (conf->max_mrs > RMEM_CACHE_MAX_MRS)
		return CACHE_FAIL(EINVAL, "max_mrs: out of range: %u (0 to %u)", conf->max_mrs,
				RMEM_CACHE_MAX_MRS);
	if (conf->flags != 0 || conf->reserved[0] != 0 || conf->reserved[1] != 0 ||
			conf->reserved[2] != 0 || conf->reserved[3] != 0)
		return CACHE_FAIL(EINVAL, "flags or reserved fields: not zero: flags 0x%x",
				conf->flags);
	if (conf->name != NULL && conf->name[0] == '\0')
		return CACHE_FAIL(EINVAL, "name: empty");
	ret = rmem_name_check(conf->name);
	if (ret != 0)
		return ret;
	return rmem_socket_check(conf->socket_id);
}

static void
set_conf(struct rmem_cache *cache, const struct rmem_cache_conf *conf)
{
	static uint32_t nb_created; /* atomic */
	uint32_t number = __atomic_fetch_add(&nb_created, 1, __ATOMIC_RELAXED);

	if (conf->name != NULL)
		snprintf(cache->name, sizeof(cache->name), "%s", conf->name);
	else
		snprintf(cache->name, sizeof(cache->name), "cache%u", number);
	cache->max_mrs = conf->max_mrs != 0 ? conf->max_mrs : RMEM_CACHE_DEFAULT_MRS;
	cache->stats.max_mrs = cache->max_mrs;
	cache->stats.max_size = conf->max_size != 0 ? conf->max_size : rmem_pages_lock_limit();
}

/* Allocate the index, in memory that the kernel clears in a child of fork(); false: no memory. */
static bool
alloc_index(struct rmem_cache *cache)
{
	uint32_t nb_hints = rte_align32pow2(4 * cache->max_mrs);
	size_t size = sizeof(*cache->index) +
			cache->max_mrs * (sizeof(uint64_t) + sizeof(*cache->slots)) +
			nb_hints * sizeof(*cache->hints);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	if (madvise(memory, size, MADV_WIPEONFORK) != 0) {
		munmap(memory, size);
		return false;
	}
	cache->index = memory;
	cache->index_size = size;
	cache->index->is_owner = 1;
	cache->slots = (uint32_t *)&cache->index->start[cache->max_mrs];
	cache->hints = &cache->slots[cache->max_mrs];
	cache->hint_shift = 64 - rte_log2_u32(nb_hints);
	return true;
}

static void
free_cache(struct rmem_cache *cache)
{
	cache->obj.type = RMEM_OBJ_NONE;
	if (cache->index != NULL)
		munmap(cache->index, cache->index_size);
	pthread_mutex_destroy(&cache->lock);
	rte_free(cache->entries);
	rte_free(cache);
}

static struct rmem_cache *
alloc_cache(const struct rmem_cache_conf *conf)
{
	struct rmem_cache *cache = rte_zmalloc_socket(
			"rmem_cache", sizeof(*cache), RTE_CACHE_LINE_SIZE, conf->socket_id);
	uint32_t i;

	if (cache == NULL)
		goto failed;
	pthread_mutex_init(&cache->lock, NULL);
	set_conf(cache, conf);
	cache->entries = rte_zmalloc_socket("rmem_cache", cache->max_mrs * sizeof(*cache->entries),
			RTE_CACHE_LINE_SIZE, conf->socket_id);
	if (cache->entries == NULL || !alloc_index(cache)) {
		free_cache(cache);
		goto failed;
	}
	for (i = 0; i < cache->max_mrs; i++)
		cache->entries[i].refs = CACHE_DEAD;
	return cache;

failed:
	(void)CACHE_FAIL(ENOMEM, "cache: no memory: %u MRs of %zu bytes",
			conf->max_mrs != 0 ? conf->max_mrs : RMEM_CACHE_DEFAULT_MRS,
			sizeof(*cache->entries));
	return NULL;
}

int
rmem_cache_create(struct rmem_pd *pd, const struct rmem_cache_conf *conf, struct rmem_cache **cache)
{
	RMEM_CALL(pd);
	struct rmem_cache *new_cache;
	int ret;

	if (conf == NULL || cache == NULL)
		return CACHE_FAIL(EINVAL, "configuration or result: NULL");
	ret = rmem_process_check();
	if (ret == 0 && rmem_pd_dev(pd) == NULL)
		ret = CACHE_FAIL(EINVAL, "PD: NULL or not a PD: %p", (void *)pd);
	if (ret == 0)
		ret = check_conf(conf);
	if (ret != 0)
		return ret;
	new_cache = alloc_cache(conf);
	if (new_cache == NULL)
		return -ENOMEM;
	new_cache->pd = pd;
	new_cache->obj.type = CACHE_TAG;
	new_cache->obj.dev_id = pd->obj.dev_id;
	if (!rmem_obj_hold(&pd->obj)) {
		ret = CACHE_FAIL(EINVAL, "PD %p: is being released", (void *)pd);
		goto free_cache;
	}
	ret = rmem_cache_monitor_start(new_cache, conf->monitor);
	if (ret != 0)
		goto unhold_pd;
	new_cache->stats.monitor = new_cache->monitor;
	__atomic_store_n(&rmem_cache_tag, CACHE_TAG, __ATOMIC_RELAXED);
	if (!rmem_cache_list_add(new_cache)) {
		ret = CACHE_FAIL(EEXIST, "%s: a cache with this name exists", new_cache->name);
		goto stop_monitor;
	}
	*cache = new_cache;
	return 0;

stop_monitor:
	rmem_cache_monitor_stop(new_cache);
unhold_pd:
	rmem_obj_unhold(&pd->obj);
free_cache:
	free_cache(new_cache);
	return ret;
}

int
rmem_cache_destroy(struct rmem_cache *cache)
{
	RMEM_CALL(cache);
	int ret;

	if (cache == NULL)
		return 0;
	ret = rmem_cache_flush(cache, NULL, SIZE_MAX);
	if (ret < 0)
		return ret;
	if (ret > 0)
		return CACHE_FAIL(EBUSY, "%s: in use: %d MRs are held, or have windows or leases",
				cache->name, ret);
	rmem_cache_list_del(cache);
	rmem_cache_monitor_stop(cache);
	rmem_obj_unhold(&cache->pd->obj);
	free_cache(cache);
	return 0;
}
