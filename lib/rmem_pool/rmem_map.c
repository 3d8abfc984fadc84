/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The map of a PD: finds the MR of an address.
 *
 * Lcores look up while control calls add and remove extents. There are two tables of extents,
 * sorted by address. The active table never changes. A change is made in the other table, under the
 * lock, which then becomes the active one. So a lookup never waits. It is repeated only if the
 * table that it reads was replaced and then changed: the version of a table is odd while the table
 * is written, and has increased afterwards. A release store makes the version odd, after the other
 * table became the active one, and before any extent is stored. A lookup that reads an extent (or
 * an odd version) with an acquire load therefore sees the new version (or the new active table) in
 * the next load.
 *
 * A table that became too small is kept until the map is freed, because a lookup may be reading it;
 * each new table is twice as large as the previous one. The map is freed with its last extent: the
 * caller of a lookup has a registration, and so at least one extent.
 */

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <rte_malloc.h>

#include "rmem_pool_priv.h"

#define MIN_EXTENTS 64

struct extent {
	uintptr_t base;
	size_t length;
	uint64_t keys; /* struct rmem_pool_keys */
};

struct table {
	struct table *older;
	uint64_t version;
	uint32_t cap;
	uint32_t nb;
	struct extent extent[];
};

struct rmem_map {
	struct table *active;
	struct table *spare; /* the other table, of the same size */
	struct rmem_pd *pd;
	struct rmem_map *next;
	struct table *retired;
};

/* Called by name, so that the linker includes their files from a static library with this file. */
RTE_INIT(rmem_pool_init)
{
	rmem_pool_telemetry_init();
	rmem_pool_audit_init();
}

/* Protects the list and all changes of the maps. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rmem_map *maps;

static struct rmem_map **
find_map(const struct rmem_pd *pd)
{
	struct rmem_map **map = &maps;

	while (*map != NULL && (*map)->pd != pd)
		map = &(*map)->next;
	return map;
}

static struct table *
alloc_table(uint32_t cap)
{
	struct table *table = rte_zmalloc("rmem_map_table",
			sizeof(*table) + cap * sizeof(struct extent), RTE_CACHE_LINE_SIZE);

	if (table != NULL)
		table->cap = cap;
	return table;
}

static void
free_map(struct rmem_map *map)
{
	struct table *table;

	while ((table = map->retired) != NULL) {
		map->retired = table->older;
		rte_free(table);
	}
	rte_free(map->active);
	rte_free(map->spare);
	rte_free(map);
}

static struct rmem_map *
new_map(struct rmem_pd *pd)
{
	struct rmem_map *map = rte_zmalloc("rmem_map", sizeof(*map), RTE_CACHE_LINE_SIZE);

	if (map == NULL)
		return NULL;
	map->pd = pd;
	map->active = alloc_table(MIN_EXTENTS);
	map->spare = alloc_table(MIN_EXTENTS);
	if (map->active == NULL || map->spare == NULL) {
		free_map(map);
		return NULL;
	}
	return map;
}

static void
retire(struct rmem_map *map, struct table *table)
{
	table->older = map->retired;
	map->retired = table;
}

/* Allocate two larger tables, and copy the extents to the active one. */
static int
grow(struct rmem_map *map, uint32_t nb)
{
	struct table *active = alloc_table(2 * nb), *spare = alloc_table(2 * nb);
	struct table *old = map->active;

	if (active == NULL || spare == NULL) {
		rte_free(active);
		rte_free(spare);
		return -ENOMEM;
	}
	active->nb = old->nb;
	memcpy(active->extent, old->extent, old->nb * sizeof(old->extent[0]));
	retire(map, map->spare);
	map->spare = spare;
	__atomic_store_n(&map->active, active, __ATOMIC_RELEASE);
	retire(map, old);
	return 0;
}

static void
put_extent(struct table *table, const struct extent *extent)
{
	struct extent *to = &table->extent[table->nb];

	__atomic_store_n(&to->base, extent->base, __ATOMIC_RELEASE);
	__atomic_store_n(&to->length, extent->length, __ATOMIC_RELEASE);
	__atomic_store_n(&to->keys, extent->keys, __ATOMIC_RELEASE);
	__atomic_store_n(&table->nb, table->nb + 1, __ATOMIC_RELEASE);
}

static struct table *
begin_change(struct rmem_map *map)
{
	struct table *spare = map->spare;

	__atomic_store_n(&spare->version, spare->version + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&spare->nb, 0, __ATOMIC_RELEASE);
	return spare;
}

static void
end_change(struct rmem_map *map)
{
	struct table *spare = map->spare;

	__atomic_store_n(&spare->version, spare->version + 1, __ATOMIC_RELEASE);
	map->spare = map->active;
	__atomic_store_n(&map->active, spare, __ATOMIC_RELEASE);
}

static struct extent
extent_of(const struct rmem_mr *mr)
{
	const struct rmem_pool_keys keys = {.lkey = mr->lkey, .rkey = mr->rkey};
	struct extent extent = {.base = (uintptr_t)mr->addr, .length = mr->length};

	memcpy(&extent.keys, &keys, sizeof(keys));
	return extent;
}

/* Find the index of the first extent that ends after base. */
static uint32_t
place_of(const struct table *table, uintptr_t base)
{
	uint32_t low = 0, high = table->nb;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct extent *extent = &table->extent[mid];

		if (extent->base + (extent->length - 1) < base)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int
check_free(const struct rmem_map *map, const struct rmem_mr *mr)
{
	const struct table *table = map->active;
	uint32_t at = place_of(table, (uintptr_t)mr->addr);
	const struct extent *extent = &table->extent[at];

	if (at == table->nb || extent->base > (uintptr_t)mr->addr + (mr->length - 1))
		return 0;
	return POOL_FAIL(EEXIST, "memory: already registered: %zu bytes at %p (PD %p)", mr->length,
			mr->addr, (const void *)map->pd);
}

/* Merge the MRs, sorted by address, into the existing extents. */
static void
merge(struct rmem_map *map, struct rmem_mr *const *mrs, uint32_t nb_mrs)
{
	const struct table *from = map->active;
	struct table *to = begin_change(map);
	uint32_t at = 0, i;

	for (i = 0; i < nb_mrs; i++) {
		const struct extent extent = extent_of(mrs[i]);

		while (at < from->nb && from->extent[at].base < extent.base)
			put_extent(to, &from->extent[at++]);
		put_extent(to, &extent);
	}
	while (at < from->nb)
		put_extent(to, &from->extent[at++]);
	end_change(map);
}

static int
add_locked(struct rmem_map *map, struct rmem_mr *const *mrs, uint32_t nb_mrs)
{
	uint32_t nb = map->active->nb + nb_mrs, i;
	int ret;

	for (i = 0; i < nb_mrs; i++) {
		ret = check_free(map, mrs[i]);
		if (ret != 0)
			return ret;
	}
	if (nb > map->active->cap) {
		ret = grow(map, nb);
		if (ret != 0)
			return POOL_FAIL(-ret, "lookup: no memory: %u MRs of PD %p", nb,
					(const void *)map->pd);
	}
	merge(map, mrs, nb_mrs);
	return 0;
}

int
rmem_map_add(struct rmem_mr *const *mrs, uint32_t nb_mrs, struct rmem_map **map)
{
	struct rmem_map **at, *new_one = NULL;
	int ret;

	pthread_mutex_lock(&lock);
	at = find_map(mrs[0]->pd);
	if (*at == NULL)
		*at = new_one = new_map(mrs[0]->pd);
	if (*at != NULL)
		ret = add_locked(*at, mrs, nb_mrs);
	else
		ret = POOL_FAIL(ENOMEM, "lookup: no memory: MRs of PD %p", (void *)mrs[0]->pd);
	if (ret == 0) {
		*map = *at;
	} else if (new_one != NULL) {
		*at = NULL;
		free_map(new_one);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

static bool
holds(const struct rmem_map *map, const struct rmem_mr *mr)
{
	const struct table *table = map->active;
	uint32_t at = place_of(table, (uintptr_t)mr->addr);
	const struct extent extent = extent_of(mr);

	return at < table->nb && table->extent[at].base == extent.base &&
			table->extent[at].length == extent.length;
}

static bool
is_of(const struct extent *extent, struct rmem_mr *const *mrs, uint32_t nb_mrs, uint32_t *next)
{
	if (*next < nb_mrs && extent->base == (uintptr_t)mrs[*next]->addr) {
		(*next)++;
		return true;
	}
	return false;
}

int
rmem_map_del(struct rmem_mr *const *mrs, uint32_t nb_mrs)
{
	struct rmem_map **at, *map;
	const struct table *from;
	uint32_t i, next = 0;
	struct table *to;
	int ret;

	pthread_mutex_lock(&lock);
	at = find_map(mrs[0]->pd);
	map = *at;
	ret = map != NULL ? 0 : -ENOENT;
	for (i = 0; i < nb_mrs && ret == 0; i++)
		ret = holds(map, mrs[i]) ? 0 : -ENOENT;
	if (ret == 0 && map->active->nb == nb_mrs) {
		*at = map->next;
		free_map(map);
	} else if (ret == 0) {
		from = map->active;
		to = begin_change(map);
		for (i = 0; i < from->nb; i++) {
			if (!is_of(&from->extent[i], mrs, nb_mrs, &next))
				put_extent(to, &from->extent[i]);
		}
		end_change(map);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/*
 * Find the keys of the bytes, or 0. The result is undefined if the table is written concurrently.
 */
static uint64_t
search(const struct table *table, uintptr_t addr, size_t length)
{
	uint32_t low = 0, high = __atomic_load_n(&table->nb, __ATOMIC_ACQUIRE);
	const struct extent *extent;
	uintptr_t offset;
	size_t size;

	/* Find the last extent that does not begin after addr. */
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (__atomic_load_n(&table->extent[mid].base, __ATOMIC_ACQUIRE) <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return 0;
	extent = &table->extent[low - 1];
	offset = addr - __atomic_load_n(&extent->base, __ATOMIC_ACQUIRE);
	size = __atomic_load_n(&extent->length, __ATOMIC_ACQUIRE);
	if (offset >= size || length > size - offset)
		return 0;
	return __atomic_load_n(&extent->keys, __ATOMIC_ACQUIRE);
}

struct rmem_pool_keys
rmem_mempool_keys_lookup(const struct rmem_mempool *reg, const void *addr, size_t length)
{
	const struct rmem_map *map = reg->map;
	struct rmem_pool_keys keys;
	const struct table *table;
	uint64_t version, found;

	do {
		table = __atomic_load_n(&map->active, __ATOMIC_ACQUIRE);
		version = __atomic_load_n(&table->version, __ATOMIC_ACQUIRE);
		found = search(table, (uintptr_t)addr, length);
	} while (unlikely((version & 1) != 0 ||
			version != __atomic_load_n(&table->version, __ATOMIC_RELAXED)));
	memcpy(&keys, &found, sizeof(keys));
	return keys;
}
