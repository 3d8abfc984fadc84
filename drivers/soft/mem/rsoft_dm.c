/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Device memory; see rsoft_dm.h. */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "rsoft_dm.h"

/* Add the memory to the list and its bytes to the sum; false if too few bytes are left. */
static bool
dm_enter(struct rsoft_dev *dev, struct rsoft_dm *dm)
{
	bool is_left;

	rsoft_lock(&dev->lock);
	is_left = dm->dm.length <= dev->args.max_dm_size - dev->dm_bytes;
	if (is_left) {
		dev->dm_bytes += dm->dm.length;
		LIST_INSERT_HEAD(&dev->dms, dm, entry);
	}
	rte_ticketlock_unlock(&dev->lock);
	return is_left;
}

static int
dm_free(struct rmem_dm *base)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_dm *dm = rsoft_dm_of(base);

	rsoft_lock(&dev->lock);
	LIST_REMOVE(dm, entry);
	dev->dm_bytes -= base->length;
	rte_ticketlock_unlock(&dev->lock);
	rte_free(dm->bytes);
	return 0;
}

static int
dm_alloc(struct rmem_dm *base, const struct rmem_dm_conf *conf)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_dm *dm = rsoft_dm_of(base);

	if (!dm_enter(dev, dm)) {
		RSOFT_LOG(ERR,
				"device memory: too little is free: %zu bytes (max_dm_size=%" PRIu64
				")",
				base->length, dev->args.max_dm_size);
		return -ENOMEM;
	}
	dm->bytes = rte_zmalloc_socket("rsoft_dm", base->length,
			RTE_MAX(1u << conf->log2_align, (unsigned int)RTE_CACHE_LINE_SIZE),
			(int)(int64_t)dev->args.socket);
	if (dm->bytes != NULL)
		return 0;
	RSOFT_LOG(ERR, "device memory: no memory: %zu bytes", base->length);
	dm_free(base);
	return -ENOMEM;
}

static int
dm_copy_to(struct rmem_dm *dm, uint64_t offset, const void *src, size_t length)
{
	memcpy(rsoft_dm_of(dm)->bytes + offset, src, length);
	return 0;
}

static int
dm_copy_from(struct rmem_dm *dm, uint64_t offset, void *dst, size_t length)
{
	memcpy(dst, rsoft_dm_of(dm)->bytes + offset, length);
	return 0;
}

const struct rmem_dm_ops rsoft_dm_ops = {
		.dm_size = sizeof(struct rsoft_dm),
		.dm_alloc = dm_alloc,
		.dm_copy_from = dm_copy_from,
		.dm_copy_to = dm_copy_to,
		.dm_free = dm_free,
};
