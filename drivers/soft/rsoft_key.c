/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The key table; see rsoft_key.h. */

#include <errno.h>

#include <rte_malloc.h>

#include "rsoft_ids.h"
#include "rsoft_key.h"

/* A resting index is used again when fewer than one in this many are free. */
#define RSOFT_KEY_REST_SHARE 8
/* A table beyond this does not stay in a core's cache: fetch ahead over a burst. */
#define RSOFT_KEY_CACHED_BYTES (UINT32_C(256) * 1024)

static int
rsoft_key_pool_init(struct rsoft_key_pool *pool, uint32_t first, uint32_t max, int socket_id)
{
	int rc;

	pool->first = first;
	rc = rsoft_ids_init(&pool->ids, max, true, socket_id);
	if (rc == 0)
		rc = rsoft_ids_init(&pool->resting, max, false, socket_id);
	return rc;
}

static void
rsoft_key_pool_fini(struct rsoft_key_pool *pool)
{
	rsoft_ids_fini(&pool->resting);
	rsoft_ids_fini(&pool->ids);
}

int
rsoft_keys_init(struct rsoft_dev *dev, int socket_id)
{
	uint32_t max_mr = (uint32_t)dev->args.max_mr;
	uint32_t max_mw = (uint32_t)dev->args.max_mw;
	uint32_t i;
	int rc;

	dev->nb_keys = max_mr + max_mw + 1;
	dev->prefetch_keys = (size_t)dev->nb_keys * sizeof(*dev->keys) > RSOFT_KEY_CACHED_BYTES;
	dev->keys = rte_zmalloc_socket("rsoft_keys", (size_t)dev->nb_keys * sizeof(*dev->keys),
			RTE_CACHE_LINE_SIZE, socket_id);
	if (dev->keys == NULL) {
		RSOFT_LOG(ERR, "no memory for the %zu bytes of max_mr=%u and max_mw=%u keys",
				(size_t)dev->nb_keys * sizeof(*dev->keys), max_mr, max_mw);
		return -ENOMEM;
	}
	rc = rsoft_key_pool_init(&dev->mr_keys, 0, max_mr, socket_id);
	if (rc == 0)
		rc = rsoft_key_pool_init(&dev->mw_keys, max_mr, max_mw, socket_id);
	if (rc != 0) {
		RSOFT_LOG(ERR, "no memory for the free lists of max_mr=%u and max_mw=%u keys",
				max_mr, max_mw);
		rsoft_keys_fini(dev);
		return rc;
	}
	for (i = max_mr + 1; i < dev->nb_keys; i++)
		dev->keys[i].is_window = 1;
	return 0;
}

void
rsoft_keys_fini(struct rsoft_dev *dev)
{
	rsoft_key_pool_fini(&dev->mw_keys);
	rsoft_key_pool_fini(&dev->mr_keys);
	rte_free(dev->keys);
	dev->keys = NULL;
}

/* The place in the pool that rests longest; 0 when none does. resting.free is a ring here. */
static uint32_t
rsoft_key_wake(struct rsoft_dev *dev, struct rsoft_key_pool *pool)
{
	struct rsoft_ids *resting = &pool->resting;
	uint32_t id;

	if (resting->nb_free == 0)
		return 0;
	id = resting->free[pool->resting_head];
	pool->resting_head = (pool->resting_head + 1) % resting->max;
	resting->nb_free--;
	dev->keys[pool->first + id].uses = 0;
	return id;
}

static void
rsoft_key_rest(struct rsoft_key_pool *pool, uint32_t id)
{
	struct rsoft_ids *resting = &pool->resting;

	resting->free[(pool->resting_head + resting->nb_free) % resting->max] = id;
	resting->nb_free++;
}

/* Take a place; 0 when there is none. */
static uint32_t
rsoft_key_pool_get(struct rsoft_dev *dev, struct rsoft_key_pool *pool)
{
	uint32_t id = 0;

	if (pool->ids.nb_free < pool->ids.max / RSOFT_KEY_REST_SHARE)
		id = rsoft_key_wake(dev, pool);
	if (id == 0)
		id = rsoft_ids_get(&pool->ids);
	if (id == 0)
		id = rsoft_key_wake(dev, pool);
	return id;
}

struct rsoft_key *
rsoft_key_alloc(struct rsoft_dev *dev, struct rsoft_mr *mr)
{
	struct rsoft_key_pool *pool = mr != NULL ? &dev->mr_keys : &dev->mw_keys;
	uint32_t *nb = mr != NULL ? &dev->nb_mr : &dev->nb_mw;
	struct rsoft_key *key = NULL;
	uint32_t id, index, tag;

	rte_ticketlock_lock(&dev->lock);
	id = rsoft_key_pool_get(dev, pool);
	if (id != 0) {
		index = pool->first + id;
		key = &dev->keys[index];
		tag = key->word == 0 ? rsoft_random() : rsoft_word_rkey(key->word) + 1;
		key->uses++;
		key->mr = mr;
		__atomic_store_n(&key->word, rsoft_key_word(index << 8 | (tag & 0xff), 0),
				__ATOMIC_RELEASE);
		RSOFT_COUNT(*nb, 1);
	}
	rte_ticketlock_unlock(&dev->lock);
	return key;
}

int
rsoft_key_request(struct rsoft_dev *dev, struct rsoft_mr *mr, uint32_t rkey, struct rsoft_key **key)
{
	uint32_t index = rkey >> 8;
	bool is_free;

	if (index == 0 || index > dev->mr_keys.ids.max) {
		RSOFT_LOG(ERR, "requested key 0x%08x: its index %u is not 1 to max_mr=%u", rkey,
				index, dev->mr_keys.ids.max);
		return -EINVAL;
	}
	rte_ticketlock_lock(&dev->lock);
	is_free = rsoft_ids_take(&dev->mr_keys.ids, index);
	if (is_free) {
		*key = &dev->keys[index];
		(*key)->mr = mr;
		__atomic_store_n(&(*key)->word, rsoft_key_word(rkey, 0), __ATOMIC_RELEASE);
		RSOFT_COUNT(dev->nb_mr, 1);
	}
	rte_ticketlock_unlock(&dev->lock);
	if (!is_free) {
		RSOFT_LOG(ERR, "requested key 0x%08x: its index %u is in use or rests", rkey,
				index);
		return -EEXIST;
	}
	return 0;
}

void
rsoft_key_free(struct rsoft_dev *dev, struct rsoft_key *key)
{
	struct rsoft_key_pool *pool = key->is_window ? &dev->mw_keys : &dev->mr_keys;
	uint32_t *nb = key->is_window ? &dev->nb_mw : &dev->nb_mr;
	uint32_t id = (uint32_t)(key - dev->keys) - pool->first;

	rte_ticketlock_lock(&dev->lock);
	key->mr = NULL;
	key->pages = NULL;
	RSOFT_COUNT(*nb, -1);
	if (key->uses >= 256)
		rsoft_key_rest(pool, id);
	else
		rsoft_ids_put(&pool->ids, id);
	rte_ticketlock_unlock(&dev->lock);
}
