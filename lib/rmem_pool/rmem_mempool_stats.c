/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Statistics and audit of registered mempools. */

#include <rte_lcore.h>

#include <rte_mbuf.h>

#include "rmem_pool_cache_priv.h"
#include "rmem_pool_priv.h"
#include "rmem_tracked_priv.h"

/* State of a visit of all objects. */
struct visit {
	const struct rmem_mempool *reg;
	const void *lost; /* an object outside of all MRs */
	bool is_pinned;
};

int
rmem_mempool_stats_get(const struct rmem_mempool *reg, struct rmem_mempool_stats *stats)
{
	int ret;

	ret = rmem_mempool_check_reg(reg);
	if (ret != 0)
		return ret;
	if (stats == NULL)
		return POOL_FAIL(EINVAL, "statistics: NULL");
	ret = rmem_mempool_check_mp(reg);
	if (ret != 0)
		return ret;
	stats->nb_objs = reg->mp->populated_size;
	stats->nb_avail = rte_mempool_avail_count(reg->mp);
	stats->nb_cached = pool_cache_count(reg->mp);
	stats->nb_in_use = stats->nb_objs - RTE_MIN(stats->nb_avail, stats->nb_objs);
	stats->nb_chunks = reg->mp->nb_mem_chunks;
	stats->nb_mrs = reg->nb_mrs;
	stats->registered = reg->registered;
	stats->largest_mr = reg->length;
	return 0;
}

static void
visit_obj(struct rte_mempool *mp, void *opaque, void *obj, unsigned int idx)
{
	struct visit *visit = opaque;
	const struct rte_mbuf *m = obj;
	size_t length = mp->elt_size;

	RTE_SET_USED(idx);
	if (visit->is_pinned) {
		obj = m->buf_addr;
		length = m->buf_len;
	}
	if (visit->lost == NULL && length != 0 &&
			rmem_mempool_keys(visit->reg, obj, length).lkey == RMEM_KEY_NONE)
		visit->lost = obj;
}

static int
audit_caches(const struct rte_mempool *mp)
{
	uint32_t len, max;
	unsigned int i;

	for (i = 0; mp->cache_size != 0 && i < RTE_MAX_LCORE; i++) {
		len = pool_cache_len(mp, i, &max);
		if (len > max)
			return POOL_FAIL(EIO, "%s: cache of lcore %u overfull: %u (%u)", mp->name,
					i, len, max);
	}
	return 0;
}

static int
audit_owners(const struct rte_mempool *mp)
{
	const struct rmem_tracked *td = rmem_tracked_of(mp);
	const char *error = td == NULL ? NULL : rmem_tracked_find_error(td);

	return error == NULL ? 0 : POOL_FAIL(EIO, "%s: wrong %s", mp->name, error);
}

static int
audit_mrs(const struct rmem_mempool *reg)
{
	struct rmem_pool_keys keys;
	struct rmem_mr_info info;
	uint32_t i;

	for (i = 0; i < reg->nb_mrs; i++) {
		if (rmem_mr_query(reg->mrs[i], &info) != 0 || info.state != RMEM_MR_STATE_VALID)
			return POOL_FAIL(EIO, "%s: MR %u: no longer valid", reg->mp->name, i);
		keys = rmem_mempool_keys(reg, info.addr, info.length);
		if (keys.lkey != info.lkey || keys.rkey != info.rkey)
			return POOL_FAIL(EIO,
					"%s: MR %u has lkey 0x%08x and rkey 0x%08x, lookups return "
					"0x%08x and 0x%08x",
					reg->mp->name, i, info.lkey, info.rkey, keys.lkey,
					keys.rkey);
	}
	return 0;
}

int
rmem_mempool_audit(const struct rmem_mempool *reg)
{
	struct visit visit = {.reg = reg};
	int ret;

	ret = rmem_mempool_check_reg(reg);
	if (ret == 0)
		ret = rmem_mempool_check_mp(reg);
	if (ret == 0)
		ret = audit_mrs(reg);
	if (ret == 0)
		ret = audit_caches(reg->mp);
	if (ret == 0)
		ret = audit_owners(reg->mp);
	if (ret != 0)
		return ret;
	visit.is_pinned = rmem_mempool_is_pinned(reg->mp);
	rte_mempool_obj_iter(reg->mp, visit_obj, &visit);
	if (visit.lost == NULL)
		return 0;
	return POOL_FAIL(EFAULT, "%s: object outside of registered memory: %p (PD %p)",
			reg->mp->name, visit.lost, (void *)reg->pd);
}
