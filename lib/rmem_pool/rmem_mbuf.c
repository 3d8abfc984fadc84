/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Pools of mbufs over one chunk of whole pages, registered when the mbufs are initialized. They are
 * created with the steps of rte_pktmbuf_pool_create(), and have the same layout.
 */

#include <stdio.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf_pool_ops.h>

#include <rmem_chunk.h>
#include <rmem_mbuf.h>

#include "rmem_pool_priv.h"
#include "rmem_pool_trace_priv.h"
#include "rmem_tracked_priv.h"

/* Convert to the configuration of a pool whose buffers are whole mbufs, or -EINVAL. */
static int
convert(const struct rmem_pktmbuf_pool_conf *conf, struct rmem_pool_conf *pool_conf)
{
	if (conf == NULL)
		return POOL_FAIL(EINVAL, "configuration: NULL");
	if (conf->priv_size % RTE_MBUF_PRIV_ALIGN != 0)
		return POOL_FAIL(EINVAL, "priv_size: not a multiple of %u: %u",
				(unsigned int)RTE_MBUF_PRIV_ALIGN, conf->priv_size);
	if ((conf->flags & ~RMEM_POOL_TRACKED) != 0)
		return POOL_FAIL(EINVAL, "mbuf pool: unknown flags: 0x%x", conf->flags);
	*pool_conf = (struct rmem_pool_conf){
			.name = conf->name,
			.ops_name = conf->ops_name,
			.nb_bufs = conf->nb_mbufs,
			.buf_size = (uint32_t)sizeof(struct rte_mbuf) + conf->priv_size +
					conf->data_room_size,
			.cache_size = conf->cache_size,
			.access = conf->access,
			.socket_id = conf->socket_id,
			.flags = conf->flags,
			.reserved = {conf->reserved[0], conf->reserved[1]},
	};
	if (conf->ops_name == NULL && conf->flags == 0)
		pool_conf->ops_name = rte_mbuf_best_mempool_ops();
	return 0;
}

/*
 * Layout of the objects: the mempool library lets no object cross pages, if objects fit into a
 * page.
 */
struct layout {
	size_t stride;
	size_t page_size;
	uint32_t per_page; /* 0 if an object is larger than a page */
};

static struct layout
layout_of(const struct rmem_pool_conf *conf)
{
	struct layout layout = {
			.stride = rte_mempool_calc_obj_size(conf->buf_size, 0, NULL),
			.page_size = rmem_chunk_page_size(),
	};

	layout.per_page = (uint32_t)(layout.page_size / layout.stride);
	if (layout.per_page == 0)
		layout.stride = RTE_ALIGN_CEIL(layout.stride, layout.page_size);
	return layout;
}

static uint64_t
place_of(const struct layout *layout, uint32_t i)
{
	if (layout->per_page == 0)
		return (uint64_t)i * layout->stride;
	return (uint64_t)(i / layout->per_page) * layout->page_size +
			i % layout->per_page * layout->stride;
}

/* Compute the bytes of all objects, in a chunk that begins at a page. */
static uint64_t
length_of(const struct rmem_pool_conf *conf)
{
	struct layout layout = layout_of(conf);

	return RTE_ALIGN_CEIL(place_of(&layout, conf->nb_bufs - 1) + layout.stride,
			(uint64_t)layout.page_size);
}

/* Compute the number of MRs for all objects, each object in one MR. */
static uint64_t
count_mrs(const struct rmem_pool_conf *conf, uint64_t max_mr_size)
{
	struct layout layout = layout_of(conf);
	uint64_t begin = 0, place, nb = 1;
	uint32_t i;

	for (i = 1; i < conf->nb_bufs; i++) {
		place = place_of(&layout, i);
		if (place + conf->buf_size - begin > max_mr_size) {
			begin = place;
			nb++;
		}
	}
	return nb;
}

static void
fill_need(const struct rmem_pool_conf *conf, const struct rmem_dev_info *info,
		struct rmem_need *need)
{
	rmem_pool_need(conf, info, need);
	need->length = length_of(conf);
	need->nb_mrs = 1;
	if (need->length > info->max_mr_size && conf->buf_size <= info->max_mr_size)
		need->nb_mrs = count_mrs(conf, info->max_mr_size);
}

/* Create a mempool of mbufs without memory. Return NULL on failure, with *ret. */
static struct rte_mempool *
create_mempool(const struct rmem_pktmbuf_pool_conf *conf, const struct rmem_pool_conf *pool_conf,
		int *ret)
{
	struct rte_pktmbuf_pool_private priv = {
			.mbuf_data_room_size = conf->data_room_size,
			.mbuf_priv_size = conf->priv_size,
	};
	struct rte_mempool *mp;

	mp = rte_mempool_create_empty(conf->name, conf->nb_mbufs, pool_conf->buf_size,
			conf->cache_size, sizeof(priv), conf->socket_id, 0);
	if (mp == NULL) {
		*ret = rmem_pool_mempool_error(pool_conf, rte_errno);
		return NULL;
	}
	*ret = rmem_pool_set_ops(mp, pool_conf);
	if (*ret != 0) {
		rte_mempool_free(mp);
		return NULL;
	}
	rte_pktmbuf_pool_init(mp, &priv);
	return mp;
}

/* Populate the mempool with its memory. */
static int
populate(struct rte_mempool *mp, const struct rmem_pool_conf *conf, const struct rte_memzone *mz)
{
	int ret;

	ret = rte_mempool_populate_virt(mp, mz->addr, mz->len, mz->hugepage_sz, NULL, NULL);
	if (ret < 0)
		return rmem_pool_mempool_error(conf, -ret);
	if (mp->populated_size != mp->size)
		return POOL_FAIL(ENOMEM, "%s: not all mbufs fit: %u of %u in %zu bytes", conf->name,
				mp->populated_size, mp->size, mz->len);
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	if ((conf->flags & RMEM_POOL_TRACKED) != 0)
		rmem_tracked_set_mbufs(mp);
	return 0;
}

/*
 * On failure the caller frees the mempool and its memory, unless part of the memory is still
 * registered: then *reg is set.
 */
static int
do_create(struct rmem_pd *pd, const struct rmem_pktmbuf_pool_conf *conf,
		const struct rmem_pool_conf *pool_conf, struct rte_mempool **mp,
		const struct rte_memzone **mz, struct rmem_mempool **reg)
{
	char name[RTE_MEMZONE_NAMESIZE];
	int ret;

	*reg = NULL;
	*mp = create_mempool(conf, pool_conf, &ret);
	if (*mp == NULL)
		return ret;
	snprintf(name, sizeof(name), "rmem_mbuf_%p", (void *)*mp);
	ret = rmem_chunk_reserve(name, (size_t)length_of(pool_conf), conf->socket_id, mz);
	if (ret == 0)
		ret = populate(*mp, pool_conf, *mz);
	if (ret == 0)
		ret = rmem_mempool_do_register(*mp, pd, conf->access, reg);
	if (*reg == NULL)
		return ret;
	rmem_mempool_priv(*reg)->mz = *mz;
	if (ret == 0)
		rmem_pool_trace_pktmbuf_create(conf->name, pd, *reg, conf->nb_mbufs,
				conf->data_room_size, conf->access, (*reg)->nb_mrs);
	return ret;
}

/* Common part of creation and check: the arguments, and the required resources. */
static int
prepare(const struct rmem_pd *pd, const struct rmem_pktmbuf_pool_conf *conf, const void *out,
		struct rmem_pool_conf *pool_conf, struct rmem_dev_info *info,
		struct rmem_need *need)
{
	int ret;

	ret = convert(conf, pool_conf);
	if (ret == 0)
		ret = rmem_pool_check_args(pd, pool_conf, out);
	if (ret == 0)
		ret = rmem_pool_dev_info(pd, info);
	if (ret == 0)
		fill_need(pool_conf, info, need);
	return ret;
}

int
rmem_pktmbuf_pool_create(struct rmem_pd *pd, const struct rmem_pktmbuf_pool_conf *conf,
		struct rmem_mempool **reg)
{
	RMEM_CALL(pd);
	const struct rte_memzone *mz = NULL;
	struct rmem_pool_conf pool_conf;
	struct rte_mempool *mp = NULL;
	struct rmem_mempool *new_reg;
	struct rmem_dev_info info;
	struct rmem_need need;
	int ret;

	ret = prepare(pd, conf, reg, &pool_conf, &info, &need);
	if (ret == 0)
		ret = rmem_pool_report_mrs(&need, &info);
	if (ret != 0)
		return ret;
	ret = do_create(pd, conf, &pool_conf, &mp, &mz, &new_reg);
	if (ret == 0) {
		if ((conf->flags & RMEM_POOL_TRACKED) != 0)
			ret = rmem_pool_dir_add(&new_reg->obj, conf->name);
		if (ret == 0)
			*reg = new_reg;
		else
			rmem_pktmbuf_pool_destroy(new_reg);
	} else if (new_reg != NULL) {
		POOL_LOG(ERR, "%s: cannot be deregistered: %u MRs (the memory is not freed)",
				conf->name, new_reg->nb_mrs);
		rte_free(new_reg);
	} else {
		rte_mempool_free(mp);
		rte_memzone_free(mz);
	}
	return ret;
}

static int
check_pool(const struct rmem_mempool *reg)
{
	unsigned int nb_out, nb_regs;

	if (reg->obj.type != RMEM_MEMPOOL_TAG || rmem_mempool_priv(reg)->mz == NULL)
		return POOL_FAIL(EINVAL, "handle: %p (tag 0x%x), expected an mbuf pool",
				(const void *)reg, reg->obj.type);
	/* A mempool that the application freed has no mbufs in use. */
	nb_out = rmem_mempool_exists(reg->mp) ? rte_mempool_in_use_count(reg->mp) : 0;
	nb_regs = rmem_mempool_nb_regs(reg->mp) - 1;
	if (nb_out != 0)
		rmem_tracked_log_owners(reg->mp);
	if (nb_out != 0 || nb_regs != 0)
		return POOL_FAIL(EBUSY,
				"mbuf pool %p: in use: %u mbufs not freed, %u other registrations",
				(const void *)reg->mp, nb_out, nb_regs);
	return rmem_mempool_check_idle(reg);
}

int
rmem_pktmbuf_pool_destroy(struct rmem_mempool *reg)
{
	RMEM_CALL(reg);
	const struct rte_memzone *mz;
	struct rte_mempool *mp;
	int ret;

	if (reg == NULL)
		return 0;
	ret = check_pool(reg);
	if (ret != 0)
		return ret;
	mz = rmem_mempool_priv(reg)->mz;
	mp = rmem_mempool_exists(reg->mp) ? reg->mp : NULL;
	rmem_pool_dir_del(&reg->obj);
	ret = rmem_mempool_do_unregister(reg);
	if (ret != 0)
		return ret;
	rmem_pool_trace_pktmbuf_destroy(reg);
	rmem_mempool_free_reg(reg);
	rte_mempool_free(mp);
	rte_memzone_free(mz);
	return 0;
}

int
rmem_pktmbuf_pool_check(const struct rmem_pd *pd, const struct rmem_pktmbuf_pool_conf *conf,
		struct rmem_pool_report *report)
{
	struct rmem_pool_conf pool_conf;
	struct rmem_dev_info info;
	struct rmem_need need;
	int ret;

	ret = prepare(pd, conf, report, &pool_conf, &info, &need);
	if (ret != 0)
		return ret;
	return rmem_pool_report_fill(&need, &info, report);
}
