/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The verbs device: lookup by name, open, probe, query and close; and its table of operations. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "rverbs_mlx5.h"
#include "rverbs_mw.h"
#include "rverbs_mwq.h"
#include "rverbs_ud.h"

static const char *const choices[] = {
		[RVERBS_AUTO] = "auto", [RVERBS_ON] = "on", [RVERBS_OFF] = "off"};
static const char *const mtus[] = {[0] = "active",
		[IBV_MTU_256] = "256",
		[IBV_MTU_512] = "512",
		[IBV_MTU_1024] = "1024",
		[IBV_MTU_2048] = "2048",
		[IBV_MTU_4096] = "4096"};

static int
parse_args(const char *str, struct rverbs_args *args)
{
	const struct rmem_arg rows[] = {
			RMEM_ARG_TEXT_ROW(struct rverbs_args, ibdev),
			RMEM_ARG_TEXT_ROW(struct rverbs_args, gid),
			RMEM_ARG_NUMBER_ROW(struct rverbs_args, port, 1, 1, UINT8_MAX),
			RMEM_ARG_WORD_ROW(struct rverbs_args, mtu, 0, mtus, RTE_DIM(mtus)),
			RMEM_ARG_NUMBER_ROW(struct rverbs_args, mkey_entries, 16, 0,
					RVERBS_MLX5_MAX_ENTRIES),
			RMEM_ARG_WORD_ROW(struct rverbs_args, mw_quirk, RVERBS_AUTO, choices,
					RTE_DIM(choices)),
	};
	const struct rmem_args_table table = {
			.prefix = "rmem_verbs",
			.page = "doc/driver_verbs.md",
			.args = rows,
			.nb_args = RTE_DIM(rows),
			.logtype = rverbs_logtype,
	};

	return rmem_args_parse(&table, str, args);
}

/* List the names of existing devices, for the log line about a missing one. */
static void
list_names(struct ibv_device **list, int nb, char *text, size_t size)
{
	size_t used = 0;
	int i;

	text[0] = '\0';
	for (i = 0; i < nb && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ", ",
				list[i]->name);
}

static struct ibv_device *
choose(struct ibv_device **list, int nb, const char *name)
{
	char names[512];
	int i;

	if (name[0] == '\0' && nb == 1)
		return list[0];
	for (i = 0; i < nb && name[0] != '\0'; i++) {
		if (strcmp(list[i]->name, name) == 0)
			return list[i];
	}
	list_names(list, nb, names, sizeof(names));
	if (nb == 0)
		RVERBS_LOG(ERR, "device: no RDMA device on this machine");
	else if (name[0] == '\0')
		RVERBS_LOG(ERR, "ibdev=: required, with several devices: %s", names);
	else
		RVERBS_LOG(ERR, "ibdev=%s: no such RDMA device (%s)", name, names);
	return NULL;
}

/* Log a failed open. libibverbs then searches elsewhere for the file, and reports that it does not
 * exist. */
static int
open_failed(const struct ibv_device *device, int err)
{
	char path[32 + IBV_SYSFS_NAME_MAX];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
	if (access(path, R_OK | W_OK) != 0 && (errno == EACCES || errno == EPERM))
		err = errno;
	if (err == EACCES || err == EPERM) {
		RVERBS_LOG(ERR, "%s: cannot be opened: %s (%s must be readable and writable)",
				device->name, strerror(err), path);
		return -EPERM;
	}
	RVERBS_LOG(ERR, "%s: cannot be opened: %s", device->name, strerror(err));
	return err == ENOENT ? -ENODEV : rverbs_err_fold(err, RVERBS_ERR_OPEN);
}

static int
open_dev(struct rverbs_dev *dev)
{
	struct ibv_device *device, **list;
	int nb = 0, ret = 0, err;

	list = ibv_get_device_list(&nb);
	if (list == NULL) {
		err = errno;
		if (err == ENOSYS) { /* a kernel without RDMA */
			(void)choose(NULL, 0, dev->args.ibdev);
			return -ENODEV;
		}
		RVERBS_LOG(ERR, "RDMA devices: cannot be listed: %s", strerror(err));
		return rverbs_err_fold(err, RVERBS_ERR_OPEN);
	}
	device = choose(list, nb, dev->args.ibdev);
	if (device == NULL) {
		ret = -ENODEV;
	} else {
		dev->context = ibv_open_device(device);
		if (dev->context == NULL)
			ret = open_failed(device, errno);
	}
	ibv_free_device_list(list);
	return ret;
}

/* Finish the creation, with an open device. */
static int
start(struct rverbs_dev *dev, uint16_t dev_id)
{
	int ret;

	ret = open_dev(dev);
	if (ret != 0)
		return ret;
	ret = rverbs_err_code(ibv_query_device_ex(dev->context, NULL, &dev->attr), RVERBS_ERR_OPEN,
			"ibv_query_device");
	if (ret == 0)
		ret = rverbs_port_open(dev);
	if (ret == 0)
		ret = rverbs_probe(dev);
	if (ret == 0 && dev->has_mw_quirk)
		ret = rverbs_mwq_table_open(dev_id);
	if (ret == 0)
		ret = rverbs_events_start(dev);
	if (ret != 0) {
		rverbs_mwq_table_close(dev_id);
		ibv_close_device(dev->context);
	}
	return ret;
}

static int
dev_create(struct rmem_dev *base, const char *args)
{
	struct rverbs_dev *dev;
	int ret;

	dev = rte_zmalloc("rverbs_dev", sizeof(*dev), RTE_CACHE_LINE_SIZE);
	if (dev != NULL)
		dev->slots = rte_zmalloc("rverbs_slots", RVERBS_MAX_QP * sizeof(*dev->slots), 0);
	if (dev == NULL || dev->slots == NULL) {
		RVERBS_LOG(ERR, "device: no memory");
		ret = -ENOMEM;
		goto free;
	}
	dev->base_dev = base;
	rte_ticketlock_init(&dev->lock);
	TAILQ_INIT(&dev->mrs);
	ret = parse_args(args, &dev->args);
	if (ret == 0)
		ret = start(dev, base->obj.dev_id);
	if (ret != 0)
		goto free;
	dev->max_wr = RTE_MIN((uint32_t)dev->attr.orig_attr.max_qp_wr, RVERBS_MAX_DEPTH);
	rverbs_devs_set(base->obj.dev_id, dev);
	rmem_dev_drv(base)->priv = dev;
	return 0;

free:
	if (dev != NULL)
		rte_free(dev->slots);
	rte_free(dev);
	return ret;
}

static void
dev_close(struct rmem_dev *base)
{
	struct rverbs_dev *dev = rmem_dev_drv(base)->priv;

	rverbs_events_stop(dev);
	(void)rverbs_err_code(
			ibv_close_device(dev->context), RVERBS_ERR_RELEASE, "ibv_close_device");
	rverbs_devs_set(base->obj.dev_id, NULL);
	rverbs_mwq_table_close(base->obj.dev_id);
	rte_free(dev->slots);
	rte_free(dev);
	rmem_dev_drv(base)->priv = NULL;
}

static int
dev_info_get(struct rmem_dev *base, struct rmem_dev_info *info)
{
	struct rverbs_dev *dev = rmem_dev_drv(base)->priv;
	const struct ibv_device_attr *attr = &dev->attr.orig_attr;

	info->capa = dev->capa | RMEM_DEV_CAPA_ASYNC_EVENT;
	info->max_mr_size = attr->max_mr_size;
	info->max_msg_size = dev->port.max_msg_size;
	info->access = dev->access;
	info->odp = dev->odp;
	info->max_pd = (uint32_t)attr->max_pd;
	info->max_mr = (uint32_t)attr->max_mr;
	info->max_mw = rverbs_has_windows(dev->capa) ? (uint32_t)RTE_MAX(attr->max_mw, 0) : 0;
	info->max_cq = (uint32_t)attr->max_cq;
	info->max_qp = RTE_MIN((uint32_t)attr->max_qp, RVERBS_MAX_QP);
	info->max_cqe = (uint32_t)attr->max_cqe;
	if ((dev->capa & RMEM_DEV_CAPA_SRQ) != 0) {
		info->max_srq = RTE_MIN((uint32_t)attr->max_srq, RVERBS_MAX_SRQ);
		info->max_srq_wr = RTE_MIN((uint32_t)attr->max_srq_wr, RVERBS_MAX_DEPTH);
		info->max_srq_sge = RTE_MIN((uint32_t)attr->max_srq_sge, RVERBS_MAX_SGE);
	}
	if ((dev->capa & RMEM_DEV_CAPA_DM) != 0) {
		info->max_dm = UINT32_MAX; /* limited by size only */
		info->max_dm_size = dev->attr.max_dm_size;
	}
	if (rverbs_mlx5_is_on(dev)) {
		info->page_size_cap = RVERBS_PAGE_SIZE_CAP;
		info->max_page_list_len = dev->max_mkey_entries;
		info->max_mkey_entries = dev->max_mkey_entries;
		info->max_mkey_depth = 1;
	}
	info->max_send_wr = dev->max_wr;
	info->max_recv_wr = dev->max_wr;
	info->max_send_sge = RTE_MIN((uint32_t)attr->max_sge, RVERBS_MAX_SGE);
	info->max_recv_sge = info->max_send_sge;
	info->max_inline_data = dev->max_inline;
	return 0;
}

static int
dev_dump(struct rmem_dev *base, FILE *f)
{
	struct rverbs_dev *dev = rmem_dev_drv(base)->priv;

	fprintf(f, "  ibdev %s, firmware %s, port %u %s, GID index %u, MTU %u\n",
			dev->context->device->name, dev->attr.orig_attr.fw_ver, dev->port.num,
			__atomic_load_n(&dev->port_down, __ATOMIC_RELAXED) ? "down" : "active",
			dev->port.gid_index, 128u << dev->port.mtu);
	fprintf(f, "  posts by %s, lists by %s, rereg 0x%x, on demand 0x%x, RC 0x%x\n",
			dev->send_ops != 0 ? "ibv_wr_*" : "ibv_post_send",
			dev->send_ops != 0 && !dev->is_list_bad ? "ibv_wr_*" : "ibv_post_send",
			dev->rereg, dev->odp.general, dev->odp.rc);
	if (rverbs_has_windows(dev->capa))
		fprintf(f, "  mw_quirk %s%s%s\n", dev->has_mw_quirk ? "on" : "off",
				dev->mw_sign != NULL ? ": " : "",
				dev->mw_sign != NULL ? dev->mw_sign : "");
	if (rverbs_mlx5_is_on(dev))
		fprintf(f, "  REG_MR and UMR by mlx5dv, %u entries\n", dev->max_mkey_entries);
	fprintf(f, "  asynchronous events: %" PRIu64 "%s\n",
			__atomic_load_n(&dev->nb_events, __ATOMIC_RELAXED),
			__atomic_load_n(&dev->is_removed, __ATOMIC_RELAXED) ? ", removed" : "");
	return 0;
}

extern const struct rmem_driver rverbs_driver;

const struct rmem_driver rverbs_driver = {
		.version = RMEM_DRIVER_VERSION,
		.name = "verbs",
		.pd_size = sizeof(struct rverbs_pd),
		.mr_size = sizeof(struct rverbs_mr),
		.mw_size = sizeof(struct rverbs_mw),
		.page_list_size = sizeof(struct rmem_fast_reg_page_list),
		.cq_size = sizeof(struct rverbs_cq),
		.qp_size = sizeof(struct rverbs_qp),
		.srq_size = sizeof(struct rverbs_srq),
		.ah_size = sizeof(struct rverbs_ah),
		.ops =
				{
						.dev_attr_get = rverbs_attr_get,
						.dev_clock_get = rverbs_attr_clock,
						.dev_create = dev_create,
						.dev_close = dev_close,
						.dev_info_get = dev_info_get,
						.dev_stats_get = rverbs_stats_get,
						.dev_stats_reset = rverbs_stats_reset,
						.dev_dump = dev_dump,
						.dev_gid_query = rverbs_attr_gid,
						.dev_pkey_query = rverbs_attr_pkey,
						.dev_port_query = rverbs_attr_port,

						.pd_alloc = rverbs_pd_alloc,
						.pd_dealloc = rverbs_pd_dealloc,

						.fast_reg_mr_alloc = rverbs_mlx5_mr_alloc,
						.mkey_alloc = rverbs_mlx5_mr_alloc,
						.page_list_alloc = rverbs_mlx5_page_list_alloc,
						.page_list_free = rverbs_mlx5_page_list_free,

						.mr_advise = rverbs_mr_advise,
						.mr_dereg = rverbs_mr_dereg,
						.mr_query = rverbs_mr_query,
						.mr_reg = rverbs_mr_reg,
						.mr_rereg = rverbs_mr_rereg,

						.mw_alloc = rverbs_mw_alloc,
						.mw_bind = rverbs_mw_bind,
						.mw_dealloc = rverbs_mw_dealloc,

						.comp_channel_create = rverbs_channel_create,
						.comp_channel_destroy = rverbs_channel_destroy,
						.comp_channel_get_event = rverbs_channel_get_event,

						.cq_create = rverbs_cq_create,
						.cq_destroy = rverbs_cq_destroy,
						.cq_modify = rverbs_cq_modify,
						.cq_req_notify = rverbs_cq_req_notify,
						.cq_resize = rverbs_cq_resize,
						.cq_stats_get = NULL,

						.qp_attach_counter = NULL,
						.qp_connect = rverbs_qp_connect,
						.qp_create = rverbs_qp_create,
						.qp_destroy = rverbs_qp_destroy,
						.qp_modify = rverbs_qp_modify,
						.qp_query = rverbs_qp_query,
						.qp_reset = rverbs_qp_reset,
						.qp_set_error = rverbs_qp_set_error,
						.qp_stats_get = rverbs_qp_stats_get,

						.srq_create = rverbs_srq_create,
						.srq_destroy = rverbs_srq_destroy,
						.srq_modify = rverbs_srq_modify,
						.srq_query = rverbs_srq_query,

						.ah_create = rverbs_ah_create,
						.ah_destroy = rverbs_ah_destroy,

						.qp_attach_mcast = rverbs_qp_attach_mcast,
						.qp_detach_mcast = rverbs_qp_detach_mcast,

						.rdma_cm_fault = NULL, /* a NIC injects no faults */

						.dm = &rverbs_dm_ops,
						.mp = NULL,
						.xrc = &rverbs_xrc_ops,

						/* The class refuses these operations. */
						.dev_audit = NULL,
						.mr_bind_counter = NULL,
						.mr_enable = NULL,
						.mr_share = NULL,
						.mr_stats_get = NULL,
				},
		.fp =
				{
						.post_send = rverbs_post_send,
						.post_recv = rverbs_post_recv,
						.poll_cq = rverbs_poll_cq,
						.srq_post_recv = rverbs_srq_post_recv,
				},
};
