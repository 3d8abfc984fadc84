/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Common checks of pool configurations, and errors of the mempool library.
 */

#include <string.h>

#include <rte_errno.h>

#include "rmem_pool_priv.h"
#include "rmem_tracked_priv.h"

RTE_LOG_REGISTER(rmem_pool_logtype, lib.rmem.pool, NOTICE)

static int
check_name(const char *name)
{
	size_t len;

	if (name == NULL)
		return POOL_FAIL(EINVAL, "name: NULL");
	len = strnlen(name, RTE_MEMPOOL_NAMESIZE);
	if (len == 0 || len == RTE_MEMPOOL_NAMESIZE)
		return POOL_FAIL(EINVAL, "name: length out of range: \"%.*s\" (1 to %d bytes)",
				(int)RTE_MEMPOOL_NAMESIZE, name, (int)RTE_MEMPOOL_NAMESIZE - 1);
	return 0;
}

static int
check_numbers(const struct rmem_pool_conf *conf)
{
	if (conf->nb_bufs == 0)
		return POOL_FAIL(EINVAL, "%s: nb_bufs out of range: 0", conf->name);
	if (conf->buf_size == 0 || conf->buf_size > RMEM_POOL_MAX_BUF_SIZE)
		return POOL_FAIL(EINVAL, "%s: buf_size out of range: %u (1 to %u)", conf->name,
				conf->buf_size, RMEM_POOL_MAX_BUF_SIZE);
	if (conf->cache_size > RTE_MEMPOOL_CACHE_MAX_SIZE ||
			(uint64_t)conf->cache_size * 3 / 2 > conf->nb_bufs)
		return POOL_FAIL(EINVAL,
				"%s: cache_size out of range: %u (at most %d, and nb_bufs %u / 1.5)",
				conf->name, conf->cache_size, RTE_MEMPOOL_CACHE_MAX_SIZE,
				conf->nb_bufs);
	return 0;
}

static int
check_flags(const struct rmem_pool_conf *conf)
{
	const char *ops = conf->ops_name == NULL ? "" : conf->ops_name;

	if ((conf->flags & ~(RMEM_POOL_TRACKED | RMEM_POOL_CHECK_PUTS)) != 0)
		return POOL_FAIL(EINVAL, "%s: unknown flags: 0x%x", conf->name, conf->flags);
	if (strcmp(ops, PUTS_OPS_NAME) == 0)
		return POOL_FAIL(EINVAL, "%s: ops_name: %s (set the flag RMEM_POOL_CHECK_PUTS)",
				conf->name, ops);
	if ((conf->flags & RMEM_POOL_TRACKED) == 0) {
		if (strcmp(ops, TRACKED_OPS_NAME) != 0)
			return 0;
		return POOL_FAIL(EINVAL, "%s: ops_name: %s (set the flag RMEM_POOL_TRACKED)",
				conf->name, ops);
	}
	if (conf->cache_size != 0)
		return POOL_FAIL(EINVAL,
				"%s: a tracked pool has no caches, because no process would own cached buffers: "
				"cache_size %u (0)",
				conf->name, conf->cache_size);
	if (conf->ops_name != NULL)
		return POOL_FAIL(EINVAL, "%s: a tracked pool has its own mempool ops: %s (NULL)",
				conf->name, conf->ops_name);
	return 0;
}

static int
check_conf(const struct rmem_pool_conf *conf)
{
	int ret;

	ret = check_name(conf->name);
	if (ret == 0)
		ret = check_numbers(conf);
	if (ret == 0)
		ret = rmem_socket_check(conf->socket_id);
	if (ret != 0)
		return ret;
	if ((conf->access & RMEM_ACCESS_ALLOCATE_MR) != 0)
		return POOL_FAIL(EINVAL, "%s: ALLOCATE_MR not supported: access 0x%x", conf->name,
				conf->access);
	if ((conf->access & RMEM_ACCESS_ZERO_BASED) != 0)
		return POOL_FAIL(EINVAL, "%s: ZERO_BASED not supported: access 0x%x", conf->name,
				conf->access);
	ret = check_flags(conf);
	if (ret != 0)
		return ret;
	if (conf->reserved[0] != 0 || conf->reserved[1] != 0)
		return POOL_FAIL(EINVAL, "%s: a reserved field is not zero", conf->name);
	return 0;
}

int
rmem_pool_check_pd(const struct rmem_pd *pd)
{
	int ret = rmem_process_check();

	if (ret != 0)
		return ret;
	if (pd != NULL && pd->obj.type == RMEM_OBJ_PD)
		return 0;
	return POOL_FAIL(EINVAL, "handle: %p (tag 0x%x), expected a PD", (const void *)pd,
			pd == NULL ? 0 : pd->obj.type);
}

int
rmem_pool_check_args(const struct rmem_pd *pd, const struct rmem_pool_conf *conf, const void *out)
{
	int ret;

	ret = rmem_pool_check_pd(pd);
	if (ret != 0)
		return ret;
	if (conf == NULL || out == NULL)
		return POOL_FAIL(EINVAL, "%s: NULL", conf == NULL ? "configuration" : "result");
	return check_conf(conf);
}

const char *
rmem_pool_dev_name(const struct rmem_pd *pd)
{
	return rmem_pd_dev(pd)->name;
}

int
rmem_pool_dev_info(const struct rmem_pd *pd, struct rmem_dev_info *info)
{
	return rmem_dev_info_get(rmem_pd_dev(pd), info);
}

int
rmem_pool_set_ops(struct rte_mempool *mp, const struct rmem_pool_conf *conf)
{
	const char *name = conf->ops_name == NULL ? "ring_mp_mc" : conf->ops_name;
	int ret;

	if ((conf->flags & RMEM_POOL_TRACKED) != 0) {
		ret = rmem_tracked_ops_index();
		if (ret < 0)
			return ret;
		name = TRACKED_OPS_NAME;
	}
	if (rte_mempool_set_ops_byname(mp, name, NULL) != 0)
		return rmem_pool_mempool_error(conf, EINVAL);
	return 0;
}

int
rmem_pool_mempool_error(const struct rmem_pool_conf *conf, int err)
{
	switch (err) {
	case EEXIST:
		return POOL_FAIL(EEXIST, "mempool: name in use: \"%s\"", conf->name);
	case EINVAL:
		return POOL_FAIL(EINVAL,
				"%s: refused by the mempool: %u buffers of %u bytes, cache %u, ops %s",
				conf->name, conf->nb_bufs, conf->buf_size, conf->cache_size,
				conf->ops_name == NULL ? "default" : conf->ops_name);
	default:
		return POOL_FAIL(ENOMEM,
				"%s: no memory for the mempool: %u buffers, a cache of %u for each of %d lcores: %s",
				conf->name, conf->nb_bufs, conf->cache_size, RTE_MAX_LCORE,
				rte_strerror(err));
	}
}
