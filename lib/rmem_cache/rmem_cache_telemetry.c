/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Telemetry and dump. A cache is in the list from its creation to its destruction. Both take the
 * lock of the list without that of a cache; telemetry takes that of a cache within it.
 */

#include <string.h>

#include <rte_ticketlock.h>

#include <rmem_telemetry.h>

#include "rmem_cache_priv.h"

TAILQ_HEAD(cache_list, rmem_cache);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cache_list list = TAILQ_HEAD_INITIALIZER(list);

static struct rmem_cache *
cache_lookup(const char *name)
{
	struct rmem_cache *cache;

	TAILQ_FOREACH(cache, &list, next) {
		if (strcmp(cache->name, name) == 0)
			break;
	}
	return cache;
}

bool
rmem_cache_list_add(struct rmem_cache *cache)
{
	bool is_new;

	pthread_mutex_lock(&lock);
	is_new = cache_lookup(cache->name) == NULL;
	if (is_new)
		TAILQ_INSERT_TAIL(&list, cache, next);
	pthread_mutex_unlock(&lock);
	return is_new;
}

void
rmem_cache_list_del(struct rmem_cache *cache)
{
	pthread_mutex_lock(&lock);
	TAILQ_REMOVE(&list, cache, next);
	pthread_mutex_unlock(&lock);
}

static int
list_caches(struct rte_tel_data *d)
{
	const struct rmem_cache *cache;
	struct rmem_tel_names names;

	if (rmem_tel_names_begin(&names) != 0)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(cache, &list, next)
		rmem_tel_names_add(&names, cache->name);
	pthread_mutex_unlock(&lock);
	return rmem_tel_names_end(&names, "caches", d);
}

static void
add_cache(struct rmem_cache *cache, struct rte_tel_data *d)
{
	struct rmem_cache_stats stats;

	rte_tel_data_start_dict(d);
	if (rmem_cache_stats_get(cache, &stats) != 0)
		return;
	rte_tel_data_add_dict_string(d, "device", rmem_obj_dev(&cache->obj)->name);
	rte_tel_data_add_dict_string(d, "monitor", rmem_cache_monitor_names[stats.monitor]);
	rmem_tel_uint(d, "mrs", stats.nb_mrs);
	rmem_tel_uint(d, "stale_mrs", stats.nb_stale);
	rmem_tel_uint(d, "max_mrs", stats.max_mrs);
	rmem_tel_uint(d, "bytes", stats.size);
	rmem_tel_uint(d, "peak_bytes", stats.peak_size);
	rmem_tel_uint(d, "max_bytes", stats.max_size);
	rmem_tel_uint(d, "hits", stats.hits);
	rmem_tel_uint(d, "misses", stats.misses);
	rmem_tel_uint(d, "merges", stats.merges);
	rmem_tel_uint(d, "single_use", stats.single_use);
	rmem_tel_uint(d, "failures", stats.failures);
	rmem_tel_uint(d, "evictions", stats.evictions);
	rmem_tel_uint(d, "invalidations", stats.invalidations);
}

static int
get_cache(const char *params, struct rte_tel_data *d)
{
	struct rmem_cache *cache;

	pthread_mutex_lock(&lock);
	cache = cache_lookup(params);
	if (cache != NULL)
		add_cache(cache, d);
	pthread_mutex_unlock(&lock);
	return cache != NULL ? 0 : -ENOENT;
}

static const char *
state_name(const struct cache_entry *entry)
{
	if (entry->state == CACHE_LIVE)
		return "cached";
	return __atomic_load_n(&entry->refs, __ATOMIC_RELAXED) & CACHE_STALE ? "stale" : "left";
}

static void
dump_entry(const struct cache_entry *entry, FILE *f)
{
	fprintf(f, "  0x%" PRIx64 " to 0x%" PRIx64 ": lkey 0x%08x, access 0x%x, %s, %u holders\n",
			entry->start, entry->end, entry->mr->lkey, entry->access, state_name(entry),
			__atomic_load_n(&entry->refs, __ATOMIC_RELAXED) & CACHE_HOLDERS);
}

int
rmem_cache_dump(const struct rmem_cache *cache, FILE *f)
{
	RMEM_CALL(cache);
	struct rmem_cache_stats stats;
	int ret = rmem_cache_stats_get(cache, &stats);
	struct rmem_dump dump;
	uint32_t i;

	if (ret != 0)
		return ret;
	if (f == NULL)
		return CACHE_FAIL(EINVAL, "%s: file: NULL", cache->name);
	ret = rmem_dump_begin(&dump);
	if (ret != 0)
		return ret;
	fprintf(dump.f,
			"cache %s on %s: monitor %s, %u of %u MRs, %" PRIu64 " bytes, %" PRIu64
			" hits, %" PRIu64 " misses, %" PRIu64 " evictions, %" PRIu64
			" invalidations\n",
			cache->name, rmem_obj_dev(&cache->obj)->name,
			rmem_cache_monitor_names[stats.monitor], stats.nb_mrs, stats.max_mrs,
			stats.size, stats.hits, stats.misses, stats.evictions, stats.invalidations);
	cache_lock(cache);
	for (i = 0; i < cache->nb_slots; i++) {
		if (cache->entries[i].state != CACHE_FREE)
			dump_entry(&cache->entries[i], dump.f);
	}
	cache_unlock(cache);
	return rmem_dump_end(&dump, f);
}

RTE_INIT(rmem_cache_telemetry_init)
{
	static const struct rmem_tel_cmd cmd = {
			.cmd = "/rmem/cache",
			.help = "Registration caches. Parameter: name of a cache, for its statistics",
			.list = list_caches,
			.get = get_cache,
	};

	(void)rmem_telemetry_add(&cmd);
}
