/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The software device: create, query and close; its PDs; and its table of operations. */

#include <errno.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "chaos/rsoft_chaos.h"
#include "rsoft_dev.h"
#include "queue/rsoft_cq.h"
#include "rsoft_engine.h"
#include "mem/rsoft_dm.h"
#include "mem/rsoft_grace.h"
#include "base/rsoft_ids.h"
#include "mem/rsoft_key_table.h"
#include "mem/rsoft_mr.h"
#include "mem/rsoft_mw.h"
#include "mem/rsoft_odp.h"
#include "mem/rsoft_pin.h"
#include "base/rsoft_profile.h"
#include "rsoft_qp.h"
#include "rsoft_post.h"
#include "queue/rsoft_srq.h"
#include "rsoft_stats.h"
#include "queue/rsoft_ud.h"
#include "queue/rsoft_xrc.h"
#include "rsoft_xrcd.h"
#include "wire/rwire.h"

#define RSOFT_CAPA                                                                                 \
	(RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_LOCAL_INV | RMEM_DEV_CAPA_SEND_WITH_INV |          \
			RMEM_DEV_CAPA_READ_WITH_INV | RMEM_DEV_CAPA_ATOMIC |                       \
			RMEM_DEV_CAPA_REQUESTED_KEY | RMEM_DEV_CAPA_MR_COUNTER |                   \
			RMEM_DEV_CAPA_MR_ENABLE | RMEM_DEV_CAPA_INLINE_RECV |                      \
			RMEM_DEV_CAPA_MW_TYPE_1 | RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_REREG | \
			RMEM_DEV_CAPA_SHARED_MR | RMEM_DEV_CAPA_UMR | RMEM_DEV_CAPA_MR_IOV |       \
			RMEM_DEV_CAPA_SRQ | RMEM_DEV_CAPA_SRQ_RESIZE |                             \
			RMEM_DEV_CAPA_COMP_CHANNEL | RMEM_DEV_CAPA_UC | RMEM_DEV_CAPA_UD |         \
			RMEM_DEV_CAPA_CQ_RESIZE | RMEM_DEV_CAPA_ASYNC_EVENT |                      \
			RMEM_DEV_CAPA_MCAST | RMEM_DEV_CAPA_ATOMIC_WRITE | RMEM_DEV_CAPA_FLUSH |   \
			RMEM_DEV_CAPA_NULL_MR | RMEM_DEV_CAPA_CQ_TIMESTAMP | RMEM_DEV_CAPA_XRC |   \
			RMEM_DEV_CAPA_CQ_MODERATION | RMEM_DEV_CAPA_DM |                           \
			RMEM_DEV_CAPA_QP_COUNTER | RMEM_DEV_CAPA_RATE_LIMIT)

RTE_LOG_REGISTER(rsoft_logtype, pmd.rmem.soft, NOTICE)

static void
dev_free(struct rsoft_dev *dev)
{
	rsoft_xrc_fini(dev);
	rte_free(dev->qps);
	rsoft_ids_fini(&dev->qp_ids);
	rsoft_keys_fini(dev);
	rsoft_chaos_close(dev->chaos);
	rte_free(dev);
}

static int
dev_init_qps(struct rsoft_dev *dev, int socket_id)
{
	uint32_t max = (uint32_t)dev->args.max_qp;

	dev->qp_mask = rte_align32pow2(max + RSOFT_FIRST_QP) - 1;
	dev->qps = rte_zmalloc_socket(
			"rsoft_qps", (dev->qp_mask + 1) * sizeof(struct rsoft_qp *), 0, socket_id);
	if (dev->qps == NULL || rsoft_ids_init(&dev->qp_ids, max, true, socket_id) != 0) {
		RSOFT_LOG(ERR, "max_qp=%u: no memory for the table", max);
		return -ENOMEM;
	}
	return rsoft_xrc_init(dev, socket_id);
}

/* Parse the rules of chaos=; rules for packets belong to the wire. */
static int
dev_init_chaos(struct rsoft_dev *dev)
{
	struct rsoft_args *args = &dev->args;
	char fault[sizeof(args->fault)];
	int ret;

	if (args->chaos[0] == '\0')
		return 0;
	ret = rsoft_chaos_open(args->chaos, args->ip[0] != '\0', &dev->chaos);
	if (ret != 0)
		return ret;
	rsoft_chaos_packets(dev->chaos, fault, sizeof(fault));
	if (fault[0] == '\0')
		return 0;
	if (args->fault[0] != '\0') {
		RSOFT_LOG(ERR, "fault=%s: chaos= has items on packets (%s): use one of the two",
				args->fault, fault);
		return -EINVAL;
	}
	memcpy(args->fault, fault, sizeof(fault));
	return 0;
}

static void
dev_init_lists(struct rsoft_dev *dev)
{
	TAILQ_INIT(&dev->pending);
	LIST_INIT(&dev->dms);
	LIST_INIT(&dev->dying_qps);
	LIST_INIT(&dev->groups);
	LIST_INIT(&dev->srqs);
	LIST_INIT(&dev->xrcds);
}

static int
dev_create(struct rmem_dev *base, const char *args_str)
{
	struct rsoft_args args;
	struct rsoft_dev *dev;
	int ret, socket_id;

	ret = rsoft_args_parse(args_str, &args);
	if (ret == 0)
		ret = rsoft_domain_get();
	if (ret != 0)
		return ret;
	socket_id = (int)(int64_t)args.socket;
	dev = rte_zmalloc_socket("rsoft_dev", sizeof(*dev), RTE_CACHE_LINE_SIZE, socket_id);
	if (dev == NULL) {
		RSOFT_LOG(ERR, "device: no memory: %zu bytes", sizeof(*dev));
		return -ENOMEM;
	}
	dev->args = args;
	dev->dev_id = base->obj.dev_id;
	dev->is_odp_supported = (rsoft_profile_of(dev)->access & RMEM_ACCESS_ON_DEMAND) != 0 &&
			rsoft_odp_is_supported(dev);
	rte_ticketlock_init(&dev->lock);
	rte_ticketlock_init(&dev->pending_lock);
	rte_ticketlock_init(&dev->group_lock);
	dev_init_lists(dev);
	dev->tables.nb_ports = 1;
	ret = dev_init_chaos(dev);
	if (ret == 0)
		ret = rsoft_keys_init(dev, socket_id);
	if (ret == 0)
		ret = dev_init_qps(dev, socket_id);
	if (ret == 0 && args.ip[0] != '\0')
		ret = rwire_open(dev, base, rsoft_post_progress);
	if (ret == 0)
		ret = rsoft_engines_start(dev, base->name);
	if (ret != 0) {
		rwire_close(dev);
		dev_free(dev);
		return ret;
	}
	rsoft_lock(&rsoft_domain->lock);
	dev->cookie = ++rsoft_domain->next_cookie;
	rsoft_domain->dev[dev->dev_id] = dev;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rmem_dev_drv(base)->priv = dev;
	if (args.sanitize != 0)
		rmem_dev_drv(base)->fp = &rsoft_thread_check_fp;
	if (dev->chaos != NULL)
		rmem_dev_drv(base)->fp = &rsoft_chaos_fp;
	base->socket_id = socket_id;
	return 0;
}

static void
dev_close(struct rmem_dev *base)
{
	struct rsoft_dev *dev = rmem_dev_drv(base)->priv;

	rsoft_lock(&rsoft_domain->lock);
	rsoft_domain->dev[dev->dev_id] = NULL;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_engines_stop(dev);
	rwire_close(dev);
	rsoft_grace_wait();
	if (dev->has_guard)
		rsoft_guard_put();
	dev_free(dev);
	rmem_dev_drv(base)->priv = NULL;
}

static int
dev_info_get(struct rmem_dev *base, struct rmem_dev_info *info)
{
	struct rsoft_dev *dev = rmem_dev_drv(base)->priv;
	const struct rsoft_profile *profile = rsoft_profile_of(dev);

	info->capa = (RSOFT_CAPA & profile->capa) | RMEM_DEV_CAPA_GSI;
	if (dev->nb_engines != 0)
		info->capa |= RMEM_DEV_CAPA_ENGINE;
	if (dev->args.sanitize != 0)
		info->capa |= RMEM_DEV_CAPA_SANITIZE;
	if (dev->wire != NULL) {
		/* Without a thread, no packets are received while the application sleeps. */
		if (dev->args.progress == RSOFT_PROGRESS_POLL)
			info->capa &= ~RMEM_DEV_CAPA_COMP_CHANNEL;
		memcpy(info->gid, dev->address.gid, sizeof(info->gid));
	}
	info->max_mr_size = dev->args.max_mr_size;
	info->max_msg_size = profile->max_msg_size;
	if (info->capa & RMEM_DEV_CAPA_FAST_REG)
		info->page_size_cap = RSOFT_PAGE_SIZE_CAP;
	info->access = RSOFT_ACCESS | RMEM_ACCESS_MW_BIND | RMEM_ACCESS_ZERO_BASED |
			RMEM_ACCESS_HUGETLB;
	info->access &= profile->access;
	if (dev->is_odp_supported)
		info->access |= RMEM_ACCESS_ON_DEMAND;
	rsoft_odp_caps(dev, &info->odp);
	info->max_pd = (uint32_t)dev->args.max_pd;
	info->max_mr = (uint32_t)dev->args.max_mr;
	info->max_mw = (uint32_t)dev->args.max_mw;
	info->max_cq = (uint32_t)dev->args.max_cq;
	info->max_qp = (uint32_t)dev->args.max_qp;
	info->max_cqe = (uint32_t)dev->args.max_cqe;
	info->max_srq = (uint32_t)dev->args.max_srq;
	info->max_dm = (uint32_t)dev->args.max_dm;
	info->max_dm_size = dev->args.max_dm_size;
	info->max_srq_wr = (uint32_t)dev->args.max_wr;
	info->max_srq_sge = (uint32_t)dev->args.max_sge;
	info->max_send_wr = (uint32_t)dev->args.max_wr;
	info->max_recv_wr = (uint32_t)dev->args.max_wr;
	info->max_send_sge = (uint32_t)dev->args.max_sge;
	info->max_recv_sge = (uint32_t)dev->args.max_sge;
	info->max_inline_data = (uint32_t)dev->args.max_inline;
	if (info->capa & RMEM_DEV_CAPA_INLINE_RECV)
		info->max_inline_recv = RSOFT_MAX_INLINE_RECV;
	info->max_page_list_len = (uint32_t)dev->args.max_page_list_len;
	info->max_mkey_entries = (uint32_t)dev->args.max_mkey_entries;
	info->max_iov = (uint32_t)dev->args.max_iov;
	info->max_mkey_depth = (uint32_t)dev->args.max_mkey_depth;
	return 0;
}

/* The free and the quarantined keys. Call with the lock of the device held. */
static void
nb_keys(const struct rsoft_key_pool *keys, uint32_t nb[2])
{
	nb[0] = keys->ids.nb_free;
	nb[1] = keys->quarantined.nb_free;
}

static int
dev_dump(struct rmem_dev *base, FILE *f)
{
	struct rsoft_dev *dev = rmem_dev_drv(base)->priv;
	uint32_t mr_keys[2], mw_keys[2];
	unsigned int i;

	/* The file may block. */
	rsoft_lock(&dev->lock);
	nb_keys(&dev->mr_keys, mr_keys);
	nb_keys(&dev->mw_keys, mw_keys);
	rte_ticketlock_unlock(&dev->lock);
	fprintf(f, "  keys: %u free, %u quarantined, of %" PRIu64 "\n", mr_keys[0], mr_keys[1],
			dev->args.max_mr);
	fprintf(f, "  window keys: %u free, %u quarantined, of %" PRIu64 "\n", mw_keys[0],
			mw_keys[1], dev->args.max_mw);
	fprintf(f, "  profile: %s\n", rsoft_profile_words[dev->args.profile]);
	fprintf(f, "  QPs that wait: %u\n",
			__atomic_load_n(&dev->nb_pending, __ATOMIC_RELAXED) -
					rwire_nb_pending(dev));
	rsoft_pin_dump(dev, f);
	for (i = 0; i < dev->nb_engines; i++)
		fprintf(f, "  engine %u: lcore %u, %u QPs\n", i, dev->engine[i].lcore_id,
				__atomic_load_n(&dev->engine[i].nb_qps, __ATOMIC_RELAXED));
	return 0;
}

static int
pd_alloc(struct rmem_pd *pd)
{
	struct rsoft_dev *dev = rsoft_dev_of(&pd->obj);
	int ret = dev->chaos != NULL ? rsoft_chaos_call(dev->chaos, RSOFT_CHAOS_PD_ALLOC) : 0;

	if (ret != 0)
		return ret;
	pd->handle = __atomic_add_fetch(&dev->next_pd, 1, __ATOMIC_RELAXED);
	return 0;
}

static int
pd_dealloc(struct rmem_pd *pd)
{
	RTE_SET_USED(pd);
	return 0;
}

extern const struct rmem_driver rsoft_driver;

const struct rmem_driver rsoft_driver = {
		.version = RMEM_DRIVER_VERSION,
		.name = "soft",
		.pd_size = sizeof(struct rmem_pd),
		.mr_size = sizeof(struct rsoft_mr),
		.mw_size = sizeof(struct rsoft_mw),
		.page_list_size = sizeof(struct rsoft_page_list),
		.cq_size = sizeof(struct rsoft_cq),
		.qp_size = sizeof(struct rsoft_qp),
		.srq_size = sizeof(struct rsoft_srq),
		.ah_size = sizeof(struct rsoft_ah),
		.ops =
				{
						.dev_attr_get = rsoft_attr_get,
						.dev_audit = rsoft_audit,
						.dev_clock_get = rsoft_attr_clock,
						.dev_create = dev_create,
						.dev_close = dev_close,
						.dev_info_get = dev_info_get,
						.dev_stats_get = rsoft_stats_get,
						.dev_stats_reset = rsoft_stats_reset,
						.dev_dump = dev_dump,
						.dev_gid_query = rsoft_attr_gid,
						.dev_pkey_query = rsoft_attr_pkey,
						.dev_port_query = rsoft_attr_port,

						.pd_alloc = pd_alloc,
						.pd_dealloc = pd_dealloc,

						.mr_advise = rsoft_mr_advise,
						.mr_bind_counter = rsoft_mr_bind_counter,
						.mr_dereg = rsoft_mr_dereg,
						.mr_enable = rsoft_mr_enable,
						.mr_query = rsoft_mr_query,
						.mr_reg = rsoft_chaos_mr_reg,
						.mr_rereg = rsoft_chaos_mr_rereg,
						.mr_share = rsoft_mr_share,
						.mr_stats_get = rsoft_mr_stats_get,

						.fast_reg_mr_alloc = rsoft_chaos_fast_reg_mr_alloc,
						.page_list_alloc = rsoft_page_list_alloc,
						.page_list_free = rsoft_page_list_free,

						.mw_alloc = rsoft_chaos_mw_alloc,
						.mw_bind = rsoft_thread_check_bind_mw,
						.mw_dealloc = rsoft_mw_dealloc,

						.mkey_alloc = rsoft_chaos_mkey_alloc,

						.comp_channel_create = NULL,
						.comp_channel_destroy = NULL,
						.comp_channel_get_event = NULL,

						.cq_create = rsoft_chaos_cq_create,
						.cq_destroy = rsoft_chaos_cq_destroy,
						.cq_modify = NULL,
						.cq_req_notify = NULL,
						.cq_resize = rsoft_chaos_cq_resize,
						.cq_stats_get = rsoft_cq_stats_get,

						.qp_attach_counter = rsoft_qp_attach_counter,
						.qp_connect = rsoft_chaos_connect,
						.qp_create = rsoft_chaos_qp_create,
						.qp_destroy = rsoft_xrcd_qp_destroy,
						.qp_modify = rsoft_chaos_modify,
						.qp_query = rsoft_qp_query,
						.qp_reset = rsoft_qp_reset,
						.qp_set_error = rsoft_qp_set_error,
						.qp_stats_get = rsoft_qp_stats_get,

						.srq_create = rsoft_chaos_srq_create,
						.srq_destroy = rsoft_xrcd_srq_destroy,
						.srq_modify = rsoft_chaos_srq_modify,
						.srq_query = rsoft_srq_query,

						.ah_create = rsoft_chaos_ah_create,
						.ah_destroy = rsoft_ah_destroy,

						.qp_attach_mcast = rsoft_qp_attach_mcast,
						.qp_detach_mcast = rsoft_qp_detach_mcast,

						.rdma_cm_fault = rsoft_chaos_rdma_cm_fault,

						.dm = &rsoft_dm_ops,
						.mp = &rsoft_mp_ops,
						.xrc = &rsoft_xrcd_ops,
				},
		.fp =
				{
						.post_send = rsoft_post_send,
						.post_recv = rsoft_post_recv,
						.poll_cq = rsoft_poll_cq,
						.srq_post_recv = rsoft_srq_post_recv,
				},
};
