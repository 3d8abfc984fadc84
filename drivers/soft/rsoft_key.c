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

int
rsoft_keys_init(struct rsoft_dev *dev, int socket_id)
{
	uint32_t max = (uint32_t)dev->args.max_mr;
	int rc;

	dev->nb_keys = max + 1;
	dev->prefetch_keys = (size_t)dev->nb_keys * sizeof(*dev->keys) > RSOFT_KEY_CACHED_BYTES;
	dev->keys = rte_zmalloc_socket("rsoft_keys", (size_t)dev->nb_keys * sizeof(*dev->keys),
			RTE_CACHE_LINE_SIZE, socket_id);
	if (dev->keys == NULL) {
		RSOFT_LOG(ERR, "no memory for the %zu bytes of max_mr=%u keys",
				(size_t)dev->nb_keys * sizeof(*dev->keys), max);
		return -ENOMEM;
	}
	rc = rsoft_ids_init(&dev->key_ids, max, true, socket_id);
	if (rc == 0)
		rc = rsoft_ids_init(&dev->resting, max, false, socket_id);
	if (rc != 0) {
		RSOFT_LOG(ERR, "no memory for the free lists of max_mr=%u keys", max);
		rsoft_keys_fini(dev);
	}
	return rc;
}

void
rsoft_keys_fini(struct rsoft_dev *dev)
{
	rsoft_ids_fini(&dev->resting);
	rsoft_ids_fini(&dev->key_ids);
	rte_free(dev->keys);
	dev->keys = NULL;
}

/* The index that rests longest; 0 when none does. resting.free is a ring here. */
static uint32_t
rsoft_key_wake(struct rsoft_dev *dev)
{
	struct rsoft_ids *resting = &dev->resting;
	uint32_t index;

	if (resting->nb_free == 0)
		return 0;
	index = resting->free[dev->resting_head];
	dev->resting_head = (dev->resting_head + 1) % resting->max;
	resting->nb_free--;
	dev->keys[index].uses = 0;
	return index;
}

static void
rsoft_key_rest(struct rsoft_dev *dev, uint32_t index)
{
	struct rsoft_ids *resting = &dev->resting;

	resting->free[(dev->resting_head + resting->nb_free) % resting->max] = index;
	resting->nb_free++;
}

struct rsoft_key *
rsoft_key_alloc(struct rsoft_dev *dev, struct rsoft_mr *mr)
{
	struct rsoft_key *key = NULL;
	uint32_t index = 0, tag;

	rte_ticketlock_lock(&dev->lock);
	if (dev->key_ids.nb_free < dev->key_ids.max / RSOFT_KEY_REST_SHARE)
		index = rsoft_key_wake(dev);
	if (index == 0)
		index = rsoft_ids_get(&dev->key_ids);
	if (index == 0)
		index = rsoft_key_wake(dev);
	if (index != 0) {
		key = &dev->keys[index];
		tag = key->word == 0 ? rsoft_random() : rsoft_word_rkey(key->word) + 1;
		key->uses++;
		key->mr = mr;
		__atomic_store_n(&key->word, rsoft_key_word(index << 8 | (tag & 0xff), 0),
				__ATOMIC_RELEASE);
		RSOFT_COUNT(dev->nb_mr, 1);
	}
	rte_ticketlock_unlock(&dev->lock);
	return key;
}

int
rsoft_key_request(struct rsoft_dev *dev, struct rsoft_mr *mr, uint32_t rkey, struct rsoft_key **key)
{
	uint32_t index = rkey >> 8;
	bool is_free;

	if (index == 0 || index >= dev->nb_keys) {
		RSOFT_LOG(ERR, "requested key 0x%08x: its index %u is not 1 to max_mr=%u", rkey,
				index, dev->nb_keys - 1);
		return -EINVAL;
	}
	rte_ticketlock_lock(&dev->lock);
	is_free = rsoft_ids_take(&dev->key_ids, index);
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
	uint32_t index = (uint32_t)(key - dev->keys);

	rte_ticketlock_lock(&dev->lock);
	key->mr = NULL;
	key->pages = NULL;
	RSOFT_COUNT(dev->nb_mr, -1);
	if (key->uses >= 256)
		rsoft_key_rest(dev, index);
	else
		rsoft_ids_put(&dev->key_ids, index);
	rte_ticketlock_unlock(&dev->lock);
}
