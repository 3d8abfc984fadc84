/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Directory of tracked pools: the primary process writes it, all processes read it.
 *
 * A reader takes no lock: rte_mempool_lookup() and rte_memzone_lookup() take a lock of EAL in
 * shared memory, which stays locked if the process is killed then. The directory is a memzone, so
 * a secondary process looks that up once.
 *
 * Invariant: the version of an entry is odd while the entry changes or has no pool, and another one
 * afterwards. It becomes odd before any field is stored, and each field is stored with release: a
 * reader that loads a new field with acquire sees the new version in the load that follows.
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <rte_memzone.h>

#include "rmem_pool_priv.h"
#include <rmem_tracked.h>
#include "rmem_tracked_priv.h"

#define DIR_NAME  "rmem_pools"
#define DIR_SIZE  128
#define NAME_SIZE 4 /* words */

struct entry {
	uint64_t version;         /* atomic, as all fields */
	uint64_t name[NAME_SIZE]; /* padded with zeros */
	struct rmem_pool *pool;   /* NULL: none */
} __rte_cache_aligned;

static_assert(NAME_SIZE * sizeof(uint64_t) >= RTE_MEMPOOL_NAMESIZE, "names of mempools fit");

/* Protects the directory, in the primary process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The directory, once this process found it; atomic. */
static struct entry *entries;

/* Find the directory; NULL if there is none yet. */
static struct entry *
find_dir(void)
{
	struct entry *dir = __atomic_load_n(&entries, __ATOMIC_ACQUIRE);
	const struct rte_memzone *mz;

	if (dir != NULL)
		return dir;
	mz = rte_memzone_lookup(DIR_NAME);
	if (mz == NULL)
		return NULL;
	dir = mz->addr;
	__atomic_store_n(&entries, dir, __ATOMIC_RELEASE);
	return dir;
}

/* Make the directory, with the lock held. */
static struct entry *
make_dir(void)
{
	const struct rte_memzone *mz;
	uint32_t i;

	mz = rte_memzone_reserve(DIR_NAME, DIR_SIZE * sizeof(struct entry), SOCKET_ID_ANY, 0);
	if (mz == NULL)
		return NULL;
	memset(mz->addr, 0, DIR_SIZE * sizeof(struct entry));
	for (i = 0; i < DIR_SIZE; i++)
		((struct entry *)mz->addr)[i].version = 1;
	__atomic_store_n(&entries, (struct entry *)mz->addr, __ATOMIC_RELEASE);
	return mz->addr;
}

static void
pack_name(const char *name, uint64_t *words)
{
	memset(words, 0, NAME_SIZE * sizeof(*words));
	memcpy(words, name, strnlen(name, RTE_MEMPOOL_NAMESIZE));
}

/* Fill an entry, or with NULL empty it; with the lock held. */
static void
write_entry(struct entry *entry, struct rmem_pool *pool)
{
	uint64_t version = __atomic_load_n(&entry->version, __ATOMIC_RELAXED) | 1;
	uint64_t name[NAME_SIZE] = {0};
	unsigned int i;

	__atomic_store_n(&entry->version, version, __ATOMIC_RELEASE);
	if (pool != NULL)
		pack_name(pool->mp->name, name);
	for (i = 0; i < NAME_SIZE; i++)
		__atomic_store_n(&entry->name[i], name[i], __ATOMIC_RELEASE);
	__atomic_store_n(&entry->pool, pool, __ATOMIC_RELEASE);
	if (pool != NULL)
		__atomic_store_n(&entry->version, version + 1, __ATOMIC_RELEASE);
}

/* Pool of an entry if it has that name, else NULL. */
static struct rmem_pool *
read_entry(const struct entry *entry, const uint64_t *name)
{
	uint64_t version = __atomic_load_n(&entry->version, __ATOMIC_ACQUIRE);
	struct rmem_pool *pool;
	uint64_t differ = 0;
	unsigned int i;

	if ((version & 1) != 0)
		return NULL;
	for (i = 0; i < NAME_SIZE; i++)
		differ |= __atomic_load_n(&entry->name[i], __ATOMIC_ACQUIRE) ^ name[i];
	pool = __atomic_load_n(&entry->pool, __ATOMIC_ACQUIRE);
	if (differ != 0 || __atomic_load_n(&entry->version, __ATOMIC_RELAXED) != version)
		return NULL;
	return pool;
}

int
rmem_pool_dir_add(struct rmem_pool *pool)
{
	struct entry *dir;
	int ret = -ENOSPC;
	uint32_t i;

	pthread_mutex_lock(&lock);
	dir = find_dir();
	if (dir == NULL)
		dir = make_dir();
	for (i = 0; dir != NULL && i < DIR_SIZE && ret != 0; i++) {
		if (__atomic_load_n(&dir[i].pool, __ATOMIC_RELAXED) == NULL) {
			write_entry(&dir[i], pool);
			ret = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	if (dir == NULL)
		return POOL_FAIL(ENOMEM, "%s: no memory: directory of pools, %zu bytes",
				pool->mp->name, DIR_SIZE * sizeof(struct entry));
	if (ret != 0)
		return POOL_FAIL(
				ENOSPC, "%s: too many tracked pools: %d", pool->mp->name, DIR_SIZE);
	return 0;
}

void
rmem_pool_dir_del(const struct rmem_pool *pool)
{
	struct entry *dir;
	uint32_t i;

	pthread_mutex_lock(&lock);
	dir = __atomic_load_n(&entries, __ATOMIC_ACQUIRE);
	for (i = 0; dir != NULL && i < DIR_SIZE; i++) {
		if (__atomic_load_n(&dir[i].pool, __ATOMIC_RELAXED) == pool)
			write_entry(&dir[i], NULL);
	}
	pthread_mutex_unlock(&lock);
}

int
rmem_pool_lookup(const char *name, struct rmem_pool **pool)
{
	RMEM_CALL(NULL);
	struct rmem_pool *found = NULL;
	uint64_t words[NAME_SIZE];
	const struct entry *dir;
	uint32_t i;
	int ret;

	if (name == NULL || pool == NULL)
		return POOL_FAIL(EINVAL, "%s: NULL", name == NULL ? "name" : "place of the result");
	dir = find_dir();
	if (strnlen(name, RTE_MEMPOOL_NAMESIZE) == RTE_MEMPOOL_NAMESIZE)
		dir = NULL;
	else
		pack_name(name, words);
	for (i = 0; dir != NULL && i < DIR_SIZE && found == NULL; i++)
		found = read_entry(&dir[i], words);
	if (found == NULL)
		return POOL_FAIL(ENOENT, "no tracked pool has the name: \"%s\"", name);
	ret = rmem_tracked_ops_set(found->mp);
	if (ret == 0)
		*pool = found;
	return ret;
}
