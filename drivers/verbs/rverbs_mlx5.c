/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Functions of libmlx5, QPs, and mkeys as MRs; see rverbs_mlx5.h. */

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include <rte_malloc.h>

#include "rverbs_mlx5.h"

#define RVERBS_MLX5_LIB "libmlx5.so.1"

/* Bytes of an entry in a request, and of the header of inline data. */
#define RVERBS_MLX5_ENTRY  16u
#define RVERBS_MLX5_HEADER 4u

#define SYMBOL(name)                                                                               \
	{                                                                                          \
		"mlx5dv_" #name, offsetof(struct rverbs_mlx5, name)                                \
	}

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {SYMBOL(create_mkey), SYMBOL(create_qp), SYMBOL(destroy_mkey), SYMBOL(is_supported),
		SYMBOL(qp_ex_from_ibv_qp_ex)};

/*
 * RTLD_NOLOAD: libibverbs has loaded the provider of the device, and never unloads it. If libmlx5
 * is not loaded, the provider is another one.
 */
bool
rverbs_mlx5_open(struct rverbs_dev *dev)
{
	void *lib = dlopen(RVERBS_MLX5_LIB, RTLD_LAZY | RTLD_NOLOAD), *symbol = lib;
	size_t i;

	if (lib == NULL)
		return false;
	for (i = 0; i < RTE_DIM(symbols) && symbol != NULL; i++) {
		symbol = dlsym(lib, symbols[i].name);
		memcpy((uint8_t *)&dev->mlx5 + symbols[i].offset, &symbol, sizeof(symbol));
	}
	dlclose(lib);
	if (symbol == NULL)
		RVERBS_LOG(INFO, "%s: has no %s", RVERBS_MLX5_LIB, symbols[i - 1].name);
	return symbol != NULL && dev->mlx5.is_supported(dev->context->device);
}

/*
 * The entries are inline data of the request; entries of blocks follow a header of the size of an
 * entry. Mkeys do not work with data in completions (mlx5dv_create_mkey(3)).
 */
struct ibv_qp *
rverbs_mlx5_create_qp(struct rverbs_dev *dev, const struct ibv_qp_init_attr_ex *conf)
{
	uint32_t max_inline = (dev->max_mkey_entries + 1) * RVERBS_MLX5_ENTRY - RVERBS_MLX5_HEADER;
	struct ibv_qp_init_attr_ex attr = *conf;
	struct mlx5dv_qp_init_attr mlx5 = {
			.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
					MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
			.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
			.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};

	attr.cap.max_inline_data = RTE_MAX(attr.cap.max_inline_data, max_inline);
	/* cppcheck-suppress returnDanglingLifetime ; the function keeps neither */
	return dev->mlx5.create_qp(dev->context, &attr, &mlx5);
}

/* A QP of ibv_create_qp_ex() also has the struct, but without functions. */
struct mlx5dv_qp_ex *
rverbs_mlx5_qp(const struct rverbs_dev *dev, struct ibv_qp *ibv)
{
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp_ex *qp;

	if (!rverbs_mlx5_is_on(dev) || ibv->qp_type != IBV_QPT_RC)
		return NULL;
	ex = ibv_qp_to_qp_ex(ibv);
	qp = ex != NULL ? dev->mlx5.qp_ex_from_ibv_qp_ex(ex) : NULL;
	return qp != NULL && qp->wr_mkey_configure != NULL ? qp : NULL;
}

/* These requests are larger: a QP with too many of them is created without mlx5dv. */
void
rverbs_mlx5_set_qp(struct rverbs_qp *qp)
{
	const uint64_t both = RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_UMR;
	uint64_t capa = qp->dev->capa;

	qp->mlx5 = rverbs_mlx5_qp(qp->dev, qp->ibv);
	if (qp->mlx5 == NULL && (capa & both) != 0 && qp->conf.type == RMEM_QPT_RC)
		RVERBS_LOG(WARNING,
				"QP %u: no REG_MR and UMR: not created with %u requests of %u entries",
				qp->ibv->qp_num, qp->conf.max_send_wr, qp->dev->max_mkey_entries);
	rmem_wr_limits_set(&qp->limits, &qp->conf, qp->mlx5 != NULL ? capa : capa & ~both);
}

struct mlx5dv_mkey *
rverbs_mlx5_create_mkey(const struct rverbs_dev *dev, struct ibv_pd *pd, uint32_t max_entries)
{
	struct mlx5dv_mkey_init_attr attr = {
			.pd = pd,
			.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
					MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG |
					MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE,
			.max_entries = (uint16_t)(max_entries + 1), /* header of blocks */
	};

	/* cppcheck-suppress returnDanglingLifetime ; the function does not keep it */
	return dev->mlx5.create_mkey(&attr);
}

void
rverbs_mlx5_set_key(struct mlx5dv_mkey *mkey, uint32_t key)
{
	mkey->lkey = mkey->rkey = key;
}

int
rverbs_mlx5_mr_alloc(struct rmem_mr *base)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct rverbs_mr *mr = rverbs_mr_of(base);
	int ret;

	mr->mkey = rverbs_mlx5_create_mkey(
			dev, rverbs_pd_of(base->pd)->ibv, rmem_mr_drv(base)->max_size);
	ret = rverbs_err_null(mr->mkey, "mlx5dv_create_mkey");
	if (ret != 0)
		return ret;
	base->lkey = mr->mkey->lkey;
	base->rkey = mr->mkey->rkey;
	return 0;
}

int
rverbs_mlx5_mr_release(struct rmem_mr *base)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);

	return rverbs_err_code(dev->mlx5.destroy_mkey(rverbs_mr_of(base)->mkey), RVERBS_ERR_RELEASE,
			"mlx5dv_destroy_mkey");
}

/* Return the state as posted: the device does not report invalidations. */
void
rverbs_mlx5_mr_query(const struct rmem_mr *base, struct rmem_mr_info *info)
{
	const struct rverbs_mr *mr = (const struct rverbs_mr *)base;

	info->state = mr->nb_bound != 0 ? RMEM_MR_STATE_VALID : RMEM_MR_STATE_FREE;
	if (info->state == RMEM_MR_STATE_FREE)
		return;
	info->access = mr->bound_access;
	info->length = mr->bound_length;
}

int
rverbs_mlx5_page_list_alloc(struct rmem_fast_reg_page_list *page_list)
{
	page_list->page_list = rte_zmalloc("rverbs_page_list",
			page_list->max_page_list_len * sizeof(*page_list->page_list), 0);
	if (page_list->page_list != NULL)
		return 0;
	RVERBS_LOG(ERR, "page list: no memory: %u pages", page_list->max_page_list_len);
	return -ENOMEM;
}

/* A post copies the pages of its request. */
int
rverbs_mlx5_page_list_free(struct rmem_fast_reg_page_list *page_list)
{
	rte_free(page_list->page_list);
	return 0;
}
