/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Directory of tracked pools: the primary process writes it, all processes read it.
 *
 * A reader takes no lock: rte_mempool_lookup() and rte_memzone_lookup() take a lock of EAL in
 * shared memory, which stays locked if the process is killed while it holds the lock. The directory
 * is a memzone, so a secondary process looks up this memzone once.
 *
 * Invariant: the version of an entry is odd while the entry changes or has no pool, and has
 * increased afterwards. It becomes odd before any field is stored, and each field is stored with
 * release: a reader that loads a new field with acquire sees the new version in the load that
 * follows.
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <rte_memzone.h>

#include <rmem_mbuf.h>
#include <rmem_tracked.h>

#include "rmem_pool_priv.h"
#include "rmem_tracked_priv.h"

#define DIR_NAME  "rmem_pools"
#define DIR_SIZE  128
#define NAME_SIZE 4 /* words */

struct entry {
	uint64_t version;         /* atomic, as all fields */
	uint64_t name[NAME_SIZE]; /* padded with zeros */
	struct rmem_obj *obj;     /* pool, or registration of a pool of mbufs; NULL: none */
} __rte_cache_aligned;

static_assert(NAME_SIZE * sizeof(uint64_t) >= RTE_MEMPOOL_NAMESIZE, "names of mempools fit");

/* Protects the directory, in the primary process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The directory, after this process has found it; atomic. */
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

/* Create the directory. Call with the lock held. */
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

/* Fill an entry, or empty it if obj is NULL. Call with the lock held. */
static void
write_entry(struct entry *entry, struct rmem_obj *obj, const char *text)
{
	uint64_t version = __atomic_load_n(&entry->version, __ATOMIC_RELAXED) | 1;
	uint64_t name[NAME_SIZE];
	unsigned int i;

	__atomic_store_n(&entry->version, version, __ATOMIC_RELEASE);
	pack_name(text, name);
	for (i = 0; i < NAME_SIZE; i++)
		__atomic_store_n(&entry->name[i], name[i], __ATOMIC_RELEASE);
	__atomic_store_n(&entry->obj, obj, __ATOMIC_RELEASE);
	if (obj != NULL)
		__atomic_store_n(&entry->version, version + 1, __ATOMIC_RELEASE);
}

/* Read the object of an entry; NULL if the entry has another name. */
static struct rmem_obj *
read_entry(const struct entry *entry, const uint64_t *name)
{
	uint64_t version = __atomic_load_n(&entry->version, __ATOMIC_ACQUIRE);
	struct rmem_obj *obj;
	uint64_t differ = 0;
	unsigned int i;

	if ((version & 1) != 0)
		return NULL;
	for (i = 0; i < NAME_SIZE; i++)
		differ |= __atomic_load_n(&entry->name[i], __ATOMIC_ACQUIRE) ^ name[i];
	obj = __atomic_load_n(&entry->obj, __ATOMIC_ACQUIRE);
	if (differ != 0 || __atomic_load_n(&entry->version, __ATOMIC_RELAXED) != version)
		return NULL;
	return obj;
}

int
rmem_pool_dir_add(struct rmem_obj *obj, const char *name)
{
	struct entry *dir;
	int ret = -ENOSPC;
	uint32_t i;

	pthread_mutex_lock(&lock);
	dir = find_dir();
	if (dir == NULL)
		dir = make_dir();
	for (i = 0; dir != NULL && i < DIR_SIZE && ret != 0; i++) {
		if (__atomic_load_n(&dir[i].obj, __ATOMIC_RELAXED) == NULL) {
			write_entry(&dir[i], obj, name);
			ret = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	if (dir == NULL)
		return POOL_FAIL(ENOMEM, "%s: no memory: directory of pools, %zu bytes", name,
				DIR_SIZE * sizeof(struct entry));
	if (ret != 0)
		return POOL_FAIL(ENOSPC, "%s: too many tracked pools: %d", name, DIR_SIZE);
	return 0;
}

void
rmem_pool_dir_del(const struct rmem_obj *obj)
{
	struct entry *dir;
	uint32_t i;

	pthread_mutex_lock(&lock);
	dir = __atomic_load_n(&entries, __ATOMIC_ACQUIRE);
	for (i = 0; dir != NULL && i < DIR_SIZE; i++) {
		if (__atomic_load_n(&dir[i].obj, __ATOMIC_RELAXED) == obj)
			write_entry(&dir[i], NULL, "");
	}
	pthread_mutex_unlock(&lock);
}

/* Find an object of a type by its name. Return 0, or -errno with a log line. */
static int
find_obj(const char *name, uint32_t type, void *out, struct rmem_obj **obj)
{
	uint64_t words[NAME_SIZE];
	const struct entry *dir;
	uint32_t i;

	if (name == NULL || out == NULL)
		return POOL_FAIL(EINVAL, "%s: NULL", name == NULL ? "name" : "result");
	dir = find_dir();
	if (strnlen(name, RTE_MEMPOOL_NAMESIZE) == RTE_MEMPOOL_NAMESIZE)
		dir = NULL;
	else
		pack_name(name, words);
	for (i = 0; dir != NULL && i < DIR_SIZE; i++) {
		*obj = read_entry(&dir[i], words);
		if (*obj != NULL && (*obj)->type == type)
			return 0;
	}
	return POOL_FAIL(ENOENT, "no tracked pool %shas the name: \"%s\"",
			type == RMEM_OBJ_POOL ? "" : "of mbufs ", name);
}

int
rmem_pool_lookup(const char *name, struct rmem_pool **pool)
{
	RMEM_CALL(NULL);
	struct rmem_obj *obj;
	int ret;

	ret = find_obj(name, RMEM_OBJ_POOL, pool, &obj);
	if (ret == 0)
		ret = rmem_tracked_ops_set(((struct rmem_pool *)obj)->mp);
	if (ret == 0)
		*pool = (struct rmem_pool *)obj;
	return ret;
}

int
rmem_pktmbuf_pool_lookup(const char *name, struct rmem_mempool **reg)
{
	RMEM_CALL(NULL);
	struct rmem_obj *obj;
	int ret;

	ret = find_obj(name, RMEM_MEMPOOL_TAG, reg, &obj);
	if (ret == 0)
		ret = rmem_tracked_ops_set(((struct rmem_mempool *)obj)->mp);
	if (ret == 0)
		*reg = (struct rmem_mempool *)obj;
	return ret;
}
