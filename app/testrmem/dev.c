/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Devices, and the objects of a session on each: a PD, a pool and target MRs.
 *
 * Targets are blocks of an area that is divided into MRs of equal length. Block number b is in MR b
 * modulo their number; the pairs of the device own the blocks in turn. So each pair has its own
 * targets, in as many MRs as possible.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include <rmem_mbuf.h>
#include <rmem_pool.h>

#include "grant.h"
#include "remote.h"

/* Largest buffers that are cached by lcores; of larger ones too many would be idle. */
#define MAX_CACHED_SIZE (UINT64_C(64) * 1024)

static int
open_dev(struct testrmem_dev *dev)
{
	const char *comma = strchr(dev->spec, ',');
	char name[TESTRMEM_STR_SIZE];
	int ret;

	snprintf(name, sizeof(name), "%.*s",
			comma != NULL ? (int)(comma - dev->spec) : TESTRMEM_STR_SIZE - 1,
			dev->spec);
	ret = rmem_dev_create(name, comma != NULL ? comma + 1 : NULL, &dev->dev);
	if (ret == 0)
		ret = rmem_dev_info_get(dev->dev, &dev->info);
	if (ret != 0)
		testrmem_err("cannot create device '%s': %s", dev->spec, rte_strerror(-ret));
	return ret;
}

int
testrmem_devs_open(const struct testrmem_conf *conf, struct testrmem_dev *devs)
{
	uint32_t i;
	int ret;

	for (i = 0; i < conf->nb_devs; i++) {
		devs[i].spec = conf->devs[i];
		ret = open_dev(&devs[i]);
		if (ret != 0) {
			testrmem_devs_close(devs, i + 1);
			return ret;
		}
	}
	return 0;
}

int
testrmem_devs_close(struct testrmem_dev *devs, uint32_t nb_devs)
{
	int ret = 0;
	uint32_t i;

	for (i = 0; i < nb_devs; i++) {
		if (rmem_dev_close(devs[i].dev) != 0) {
			testrmem_err("cannot close device '%s'", devs[i].spec);
			ret = -EBUSY;
		}
		devs[i].dev = NULL;
	}
	return ret;
}

/* A counter, and its sum when the session was opened. */
struct stat_base {
	size_t offset;
	uint64_t sum;
};

static uint64_t
sum_stat(const struct testrmem_session *session, size_t offset)
{
	struct rmem_dev_stats stats;
	uint64_t value, sum = 0;
	uint32_t i;

	for (i = 0; i < session->nb_devs; i++) {
		if (rmem_dev_stats_get(session->devs[i].dev, &stats) != 0)
			continue;
		memcpy(&value, (const char *)&stats + offset, sizeof(value));
		sum += value;
	}
	return sum;
}

int
testrmem_stat_open(struct testrmem_session *session, size_t offset)
{
	struct stat_base *base = testrmem_alloc(1, sizeof(*base));

	if (base == NULL)
		return -ENOMEM;
	base->offset = offset;
	base->sum = sum_stat(session, offset);
	session->priv = base;
	return 0;
}

uint64_t
testrmem_stat_get(const struct testrmem_session *session)
{
	const struct stat_base *base = session->priv;

	return sum_stat(session, base->offset) - base->sum;
}

void
testrmem_stat_close(struct testrmem_session *session)
{
	rte_free(session->priv);
	session->priv = NULL;
}

/* A limit of a device, and the number that the run needs. */
struct need {
	const char *what;
	uint64_t need;
	uint64_t limit;
};

static int
check_needs(const struct testrmem_dev *dev, const struct need *needs, size_t nb_needs)
{
	size_t i;

	for (i = 0; i < nb_needs; i++) {
		if (needs[i].need > needs[i].limit) {
			testrmem_err("the run needs %" PRIu64 " %s, device '%s' has %" PRIu64,
					needs[i].need, needs[i].what, dev->spec, needs[i].limit);
			return -ENOSPC;
		}
	}
	return 0;
}

/* Rights that the MRs of the pool need for grants. */
static uint32_t
grant_access(const struct testrmem_engine *engine)
{
	return engine->grant != NULL ? engine->grant->pool_access : 0;
}

static int
check_capa(const struct testrmem_dev *dev, const struct testrmem_engine *engine)
{
	uint32_t access = (engine->target_access | grant_access(engine)) & ~dev->info.access;
	uint64_t capa = engine->capa & ~dev->info.capa;

	if (engine->grant != NULL)
		capa |= engine->grant->capa & ~dev->info.capa;
	if ((engine->flags & ENGINE_ON_DEMAND) && (dev->info.odp.general & RMEM_ODP_SUPPORT) == 0)
		access |= RMEM_ACCESS_ON_DEMAND;

	if (capa == 0 && access == 0)
		return 0;
	testrmem_err("device '%s' does not support mode %s: it lacks capability 0x%" PRIx64
		     ", access 0x%" PRIx32,
			dev->spec, engine->name, capa, access);
	return -EOPNOTSUPP;
}

int
testrmem_dev_check(struct testrmem_dev *dev, const struct testrmem_session *session)
{
	const struct testrmem_engine *engine = session->engine;
	const struct testrmem_conf *conf = &session->conf;
	uint32_t flags = engine->flags;
	/* Modes that grant connect another pair to test a revoked key. */
	uint64_t nb_pairs = dev->nb_pairs + (engine->grant != NULL ? 1 : 0);
	uint64_t nb_grants = engine->grant != NULL ? dev->nb_pairs * conf->depth + 1 : 0;
	uint64_t nb_mws = nb_grants != 0 && engine->grant->is_window ? nb_grants : 0;
	uint64_t nb_cqs = ((flags & ENGINE_MBUF) ? 4 : 2) * nb_pairs;
	uint64_t nb_qps = nb_cqs / testrmem_nb_directions(conf);
	uint64_t nb_cqes = conf->depth + ((flags & ENGINE_MBUF) ? conf->depth : 1);
	uint64_t nb_sges = flags & ENGINE_MBUF ? testrmem_nb_segs(conf->size) : 1;
	uint64_t nb_mrs = 1 + (engine->target_access != 0 ? conf->mrs : 0) + nb_grants - nb_mws;
	/* Buffers that a pair has in flight in addition to its requests. */
	uint64_t nb_more = testrmem_is_remote(session) ? conf->depth / conf->burst + 1 : 0;
	struct rmem_dev_info *info = &dev->info;
	int ret;

	ret = rmem_dev_info_get(dev->dev, info);
	if (ret != 0) {
		testrmem_err("cannot query device '%s': %s", dev->spec, rte_strerror(-ret));
		return ret;
	}
	const struct need needs[] = {
			{"protection domains (max_pd)", 1, info->max_pd - info->nb_pd},
			{"QPs (max_qp)", nb_qps, info->max_qp - info->nb_qp},
			{"CQs (max_cq)", nb_cqs, info->max_cq - info->nb_cq},
			{"MRs (max_mr)", nb_mrs + (nb_more != 0 ? 2 * dev->nb_pairs : 0),
					info->max_mr - info->nb_mr},
			{"memory windows (max_mw)", nb_mws, info->max_mw - info->nb_mw},
			{"send requests in flight on a QP (depth)", conf->depth + nb_more,
					info->max_send_wr},
			{"receives on a QP (depth)", flags & ENGINE_RECV ? conf->depth : 0,
					info->max_recv_wr},
			{"completions of a CQ (depth)", nb_cqes + 2 * nb_more, info->max_cqe},
			{"SGEs of a SEND (size)", nb_sges, info->max_send_sge},
			{"SGEs of a receive (size)", flags & ENGINE_RECV ? nb_sges : 0,
					info->max_recv_sge},
			{"bytes of a message (size)", conf->size, info->max_msg_size},
			{"bytes of inline data (size)", flags & ENGINE_INLINE ? conf->size : 0,
					info->max_inline_data},
			{"bytes of an inline receive (size)",
					flags & ENGINE_INLINE ? conf->size : 0,
					info->max_inline_recv},
	};

	ret = check_capa(dev, engine);
	return ret != 0 ? ret : check_needs(dev, needs, RTE_DIM(needs));
}

static int
create_pool(struct testrmem_dev *dev, const struct testrmem_session *session)
{
	const struct testrmem_conf *conf = &session->conf;
	struct rmem_pool_conf pool_conf = {
			.buf_size = (uint32_t)conf->size,
			.access = RMEM_ACCESS_LOCAL_WRITE | grant_access(session->engine),
			.socket_id = dev->dev->socket_id,
	};
	uint64_t nb_bufs = dev->nb_pairs * conf->depth * session->engine->bufs_per_op + 2;
	struct rmem_pool_report report;
	char name[RTE_MEMPOOL_NAMESIZE];
	int ret;

	if (conf->size <= MAX_CACHED_SIZE) {
		pool_conf.cache_size = RTE_MIN(
				2 * (uint32_t)conf->burst, (uint32_t)RTE_MEMPOOL_CACHE_MAX_SIZE);
		/* Objects that can be idle in the caches, which flush at 1.5 of their size. */
		nb_bufs += UINT64_C(2) * pool_conf.cache_size * (session->nb_workers + 1);
	}
	snprintf(name, sizeof(name), "tr_%.20s", dev->dev->name);
	pool_conf.name = name;
	pool_conf.nb_bufs = (uint32_t)RTE_MIN(nb_bufs, (uint64_t)UINT32_MAX);
	ret = rmem_pool_create(dev->pd, &pool_conf, &dev->pool);
	if (ret == -ENOMEM && rmem_pool_check(dev->pd, &pool_conf, &report) == -ENOMEM)
		testrmem_err_memory("the pool", nb_bufs * conf->size);
	else if (ret != 0)
		testrmem_err("no pool of %" PRIu64 " buffers of %" PRIu64 " bytes on '%s': %s",
				nb_bufs, conf->size, dev->spec, rte_strerror(-ret));
	return ret;
}

/* Mbufs in flight, in receives, in the caches and on the lcores. */
static int
create_mbufs(struct testrmem_dev *dev, const struct testrmem_session *session)
{
	const struct testrmem_conf *conf = &session->conf;
	uint64_t nb_pkts = dev->nb_pairs * conf->depth * session->engine->bufs_per_op +
			session->nb_workers * conf->burst;
	struct rmem_pktmbuf_pool_conf pool_conf = {
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.cache_size = RTE_MIN(2 * (uint32_t)conf->burst,
					(uint32_t)RTE_MEMPOOL_CACHE_MAX_SIZE),
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = dev->dev->socket_id,
	};
	uint64_t nb_mbufs = nb_pkts * testrmem_nb_segs(conf->size) +
			UINT64_C(2) * pool_conf.cache_size * (session->nb_workers + 1);
	struct rmem_pool_report report;
	char name[RTE_MEMPOOL_NAMESIZE];
	int ret;

	snprintf(name, sizeof(name), "tr_%.20s", dev->dev->name);
	pool_conf.name = name;
	pool_conf.nb_mbufs = (uint32_t)RTE_MIN(nb_mbufs, (uint64_t)UINT32_MAX);
	ret = rmem_pktmbuf_pool_create(dev->pd, &pool_conf, &dev->mbufs);
	if (ret == -ENOMEM && rmem_pktmbuf_pool_check(dev->pd, &pool_conf, &report) == -ENOMEM)
		testrmem_err_memory("the pool", nb_mbufs * RTE_MBUF_DEFAULT_BUF_SIZE);
	else if (ret != 0)
		testrmem_err("no pool of %" PRIu64 " mbufs on '%s': %s", nb_mbufs, dev->spec,
				rte_strerror(-ret));
	return ret;
}

/* Distance of blocks: no two pairs write to a cache line. */
static uint64_t
block_stride(const struct testrmem_conf *conf)
{
	return RTE_ALIGN_CEIL(conf->size, (uint64_t)RTE_CACHE_LINE_SIZE);
}

static uint64_t
blocks_per_pair(const struct testrmem_dev *dev, const struct testrmem_conf *conf)
{
	return RTE_MAX(conf->depth, (conf->mrs + dev->nb_pairs - 1) / dev->nb_pairs);
}

static uint64_t
mr_length(const struct testrmem_dev *dev, const struct testrmem_conf *conf)
{
	uint64_t nb_blocks = blocks_per_pair(dev, conf) * dev->nb_pairs;

	return (nb_blocks + conf->mrs - 1) / conf->mrs * block_stride(conf);
}

/* Allocate the area: zeroed, or without pages for on-demand targets. */
static bool
alloc_area(struct testrmem_dev *dev, size_t length, bool is_on_demand)
{
	void *area;

	if (!is_on_demand) {
		dev->area = rte_zmalloc_socket(
				"testrmem_area", length, RTE_CACHE_LINE_SIZE, dev->dev->socket_id);
		return dev->area != NULL;
	}
	area = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return false;
	dev->area = area;
	dev->area_length = length;
	return true;
}

static void
free_area(struct testrmem_dev *dev)
{
	if (dev->area_length != 0)
		munmap(dev->area, dev->area_length);
	else
		rte_free(dev->area);
	dev->area = NULL;
	dev->area_length = 0;
}

static int
register_targets(struct testrmem_dev *dev, const struct testrmem_session *session)
{
	uint64_t length = mr_length(dev, &session->conf);
	uint32_t access = RMEM_ACCESS_LOCAL_WRITE | session->engine->target_access;
	int ret;

	if (session->engine->flags & ENGINE_ON_DEMAND)
		access |= RMEM_ACCESS_ON_DEMAND;
	if (!alloc_area(dev, length * session->conf.mrs, access & RMEM_ACCESS_ON_DEMAND)) {
		testrmem_err_memory("the targets", length * session->conf.mrs);
		return -ENOMEM;
	}
	dev->mrs = testrmem_alloc(session->conf.mrs, sizeof(void *));
	if (dev->mrs == NULL)
		return -ENOMEM;
	while (dev->nb_mrs < session->conf.mrs) {
		ret = rmem_mr_reg(dev->pd, dev->area + dev->nb_mrs * length, length, 0, access,
				&dev->mrs[dev->nb_mrs]);
		if (ret != 0) {
			testrmem_err("cannot register target MR %" PRIu32 " of %" PRIu64
				     " on '%s': %s",
					dev->nb_mrs + 1, session->conf.mrs, dev->spec,
					rte_strerror(-ret));
			return ret;
		}
		dev->nb_mrs++;
	}
	return 0;
}

int
testrmem_dev_setup(struct testrmem_dev *dev, const struct testrmem_session *session)
{
	int ret;

	ret = rmem_pd_alloc(dev->dev, &dev->pd);
	if (ret != 0) {
		testrmem_err("no protection domain on '%s': %s", dev->spec, rte_strerror(-ret));
		return ret;
	}
	ret = session->engine->flags & ENGINE_MBUF ? create_mbufs(dev, session)
						   : create_pool(dev, session);
	if (ret == 0 && session->engine->target_access != 0)
		ret = register_targets(dev, session);
	return ret;
}

void
testrmem_dev_teardown(struct testrmem_dev *dev)
{
	int ret = 0;

	while (dev->nb_mrs > 0)
		ret |= rmem_mr_dereg(dev->mrs[--dev->nb_mrs]);
	rte_free(dev->mrs);
	free_area(dev);
	if (dev->pool != NULL)
		ret |= rmem_pool_destroy(dev->pool);
	if (dev->mbufs != NULL)
		ret |= rmem_pktmbuf_pool_destroy(dev->mbufs);
	if (dev->pd != NULL)
		ret |= rmem_pd_dealloc(dev->pd);
	if (ret != 0)
		testrmem_err("objects of '%s' are still in use", dev->spec);
	dev->mrs = NULL;
	dev->pool = NULL;
	dev->mbufs = NULL;
	dev->pd = NULL;
	dev->nb_pairs = 0;
}

int
testrmem_dev_targets(const struct testrmem_dev *dev, struct testrmem_pair *pair)
{
	const struct testrmem_conf *conf = &pair->worker->session->conf;
	uint64_t nb_targets = blocks_per_pair(dev, conf);
	uint64_t i, block;

	pair->targets = testrmem_alloc(nb_targets, sizeof(*pair->targets));
	if (pair->targets == NULL)
		return -ENOMEM;
	pair->nb_targets = (uint32_t)nb_targets;
	for (i = 0; i < nb_targets; i++) {
		const struct rmem_mr *mr;

		block = i * dev->nb_pairs + pair->dev_index;
		mr = dev->mrs[block % conf->mrs];
		pair->targets[i].addr = mr->iova + block / conf->mrs * block_stride(conf);
		pair->targets[i].rkey = mr->rkey;
	}
	return 0;
}
