/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Fast registration and indirect keys of NVIDIA devices, with mlx5dv of libmlx5.
 *
 * Both are mkeys of mlx5dv_create_mkey(3), bound by mlx5dv_wr_mkey_configure(3) on QPs of
 * mlx5dv_create_qp(3). An mkey is zero-based. libmlx5 takes its tag from the handle when the
 * request is written, so the driver sets the tag before that.
 *
 * The driver is not linked with libmlx5: dlopen(3) finds the functions in the loaded provider of
 * the device. A probe clears dev->max_mkey_entries unless everything works. A QP without mlx5
 * refuses such requests.
 */

#ifndef RVERBS_MLX5_H
#define RVERBS_MLX5_H

#include "rverbs_mw_op.h"

/* Maximum number of entries of an mkey, so that a request has at most RVERBS_MAX_INLINE bytes. */
#define RVERBS_MLX5_MAX_ENTRIES 63u

struct mlx5dv_mr_interleaved;

/* Whether a request binds an mkey. */
static inline bool
rverbs_is_mkey_wr(const struct rmem_send_wr *wr)
{
	return wr->opcode == RMEM_WR_UMR || wr->opcode == RMEM_WR_REG_MR;
}

/* Whether RC QPs are created with mlx5dv. */
static inline bool
rverbs_mlx5_is_on(const struct rverbs_dev *dev)
{
	return dev->max_mkey_entries != 0;
}

#ifdef RMEM_HAS_MLX5DV

/* Find the functions of the provider; false if it is not the device's provider. */
bool rverbs_mlx5_open(struct rverbs_dev *dev);
/* Create a QP that can bind mkeys of dev->max_mkey_entries; NULL with errno. Logs nothing. */
struct ibv_qp *rverbs_mlx5_create_qp(
		struct rverbs_dev *dev, const struct ibv_qp_init_attr_ex *conf);
/* The mlx5dv part of a QP; NULL if it has none. */
struct mlx5dv_qp_ex *rverbs_mlx5_qp(const struct rverbs_dev *dev, struct ibv_qp *qp);
/* Set mlx5 of a new QP, and the limits that depend on it. */
void rverbs_mlx5_set_qp(struct rverbs_qp *qp);
/* Create an mkey; NULL with errno. */
struct mlx5dv_mkey *rverbs_mlx5_create_mkey(
		const struct rverbs_dev *dev, struct ibv_pd *pd, uint32_t max_entries);
void rverbs_mlx5_set_key(struct mlx5dv_mkey *mkey, uint32_t key);

/* Operations of fast-register and of indirect MRs. */
int rverbs_mlx5_mr_alloc(struct rmem_mr *mr);
int rverbs_mlx5_mr_release(struct rmem_mr *mr);
void rverbs_mlx5_mr_query(const struct rmem_mr *mr, struct rmem_mr_info *info);
int rverbs_mlx5_page_list_alloc(struct rmem_fast_reg_page_list *page_list);
int rverbs_mlx5_page_list_free(struct rmem_fast_reg_page_list *page_list);

/* rverbs_mlx5_wr.c: write a request that binds an mkey to a list, or to repeated blocks. */
void rverbs_mlx5_write_list(struct mlx5dv_qp_ex *qp, struct mlx5dv_mkey *mkey, uint32_t access,
		uint16_t nb, const struct ibv_sge *sges);
void rverbs_mlx5_write_blocks(struct mlx5dv_qp_ex *qp, struct mlx5dv_mkey *mkey, uint32_t access,
		uint32_t repeat_count, uint16_t nb, const struct mlx5dv_mr_interleaved *blocks);
/*
 * Check a REG_MR or UMR of a QP with mlx5, write it, and note it in the ring at a position. Return
 * 0, or -EINVAL with nothing written.
 */
int rverbs_mlx5_write(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos);
/* Undo the effects of a noted request that the device did not accept. */
void rverbs_mlx5_undo(const struct rverbs_mw_op *op);

#else

static inline struct ibv_qp *
rverbs_mlx5_create_qp(struct rverbs_dev *dev, const struct ibv_qp_init_attr_ex *conf)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(conf);
	return NULL;
}

static inline void
rverbs_mlx5_set_qp(struct rverbs_qp *qp)
{
	rmem_wr_limits_set(&qp->limits, &qp->conf, qp->dev->capa);
}

/* The class refuses these operations, and the checks of a post refuse the requests. */
#define rverbs_mlx5_mr_alloc        NULL
#define rverbs_mlx5_page_list_alloc NULL
#define rverbs_mlx5_page_list_free  NULL

static inline int
rverbs_mlx5_mr_release(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	return -EOPNOTSUPP;
}

static inline void
rverbs_mlx5_mr_query(const struct rmem_mr *mr, struct rmem_mr_info *info)
{
	RTE_SET_USED(mr);
	RTE_SET_USED(info);
}

static inline int
rverbs_mlx5_write(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(wr);
	RTE_SET_USED(pos);
	return -EOPNOTSUPP;
}

static inline void
rverbs_mlx5_undo(const struct rverbs_mw_op *op)
{
	RTE_SET_USED(op);
}

#endif /* RMEM_HAS_MLX5DV */

#endif /* RVERBS_MLX5_H */
