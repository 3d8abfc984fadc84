/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * REG_MR and UMR as requests of mlx5dv_wr_mkey_configure(3).
 *
 * Everything is checked before the first call of libmlx5, so a refused request has no effect. Also
 * checked are limits of the format that libmlx5 does not check: 2 GiB for an entry of a list; 16
 * bits for a block and for the bytes skipped after it.
 */

#include <errno.h>

#include <infiniband/mlx5dv.h>

#include "rverbs_mlx5.h"
#include "rverbs_range.h"

#define RVERBS_MLX5_MAX_LENGTH (UINT64_C(1) << 31)
#define RVERBS_MLX5_MAX_BLOCK  UINT16_MAX

#define RVERBS_MLX5_ACCESS (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE)

void
rverbs_mlx5_write_list(struct mlx5dv_qp_ex *qp, struct mlx5dv_mkey *mkey, uint32_t access,
		uint16_t nb, const struct ibv_sge *sges)
{
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = 0};

	mlx5dv_wr_mkey_configure(qp, mkey, 2, &attr);
	mlx5dv_wr_set_mkey_access_flags(qp, access & RVERBS_MLX5_ACCESS);
	mlx5dv_wr_set_mkey_layout_list(qp, nb, sges);
}

void
rverbs_mlx5_write_blocks(struct mlx5dv_qp_ex *qp, struct mlx5dv_mkey *mkey, uint32_t access,
		uint32_t repeat_count, uint16_t nb, const struct mlx5dv_mr_interleaved *blocks)
{
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = 0};

	mlx5dv_wr_mkey_configure(qp, mkey, 2, &attr);
	mlx5dv_wr_set_mkey_access_flags(qp, access & RVERBS_MLX5_ACCESS);
	mlx5dv_wr_set_mkey_layout_interleaved(qp, repeat_count, nb, blocks);
}

/* The keys are zero-based; IBTA C10-74: rights of the peer to modify need LOCAL_WRITE. */
static bool
is_access(uint32_t access, uint64_t iova)
{
	const uint32_t modify = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC;

	if ((access &
			    ~(RVERBS_MLX5_ACCESS | RMEM_ACCESS_ZERO_BASED |
					    RMEM_ACCESS_OPTIONAL_RANGE)) != 0)
		return false;
	return iova == 0 && ((access & RMEM_ACCESS_LOCAL_WRITE) != 0 || (access & modify) == 0);
}

static bool
is_mr(const struct rverbs_qp *qp, const struct rmem_mr *mr, enum rmem_mr_type type)
{
	return mr->type == type && mr->pd == qp->qp.pd;
}

/*
 * Note a request that binds an MR, and set the key of its handle, which is the key of the last
 * posted request. Invariant: the key in the handle of libmlx5 equals the key of the MR.
 */
static void
note(struct rverbs_qp *qp, struct rmem_mr *base, uint32_t pos, enum rverbs_mw_kind kind,
		uint8_t tag)
{
	struct rverbs_mw_op *op = rverbs_mw_ops_next(qp, pos);
	struct rverbs_mr *mr = rverbs_mr_of(base);
	uint32_t key = rmem_rkey_of_tag(base->rkey, tag);

	op->kind = (uint8_t)kind;
	op->old_key = base->rkey;
	op->mr = base;
	rverbs_mw_ops_push(qp);
	mr->nb_bound++;
	rverbs_mlx5_set_key(mr->mkey, key);
	__atomic_store_n(&base->rkey, key, __ATOMIC_RELAXED);
	__atomic_store_n(&base->lkey, key, __ATOMIC_RELAXED);
}

void
rverbs_mlx5_undo(const struct rverbs_mw_op *op)
{
	struct rverbs_mr *mr = rverbs_mr_of(op->mr);

	mr->nb_bound--;
	rverbs_mlx5_set_key(mr->mkey, op->old_key);
	__atomic_store_n(&op->mr->rkey, op->old_key, __ATOMIC_RELAXED);
	__atomic_store_n(&op->mr->lkey, op->old_key, __ATOMIC_RELAXED);
}

/* Whether the entries are valid; *length is the sum of their lengths. */
static bool
umr_check(const struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint64_t *length)
{
	const struct rmem_mkey_entry *entry = wr->umr.entries, *end = entry + wr->umr.nb_entries;
	bool is_list = wr->umr.repeat_count == 1;

	if (!is_mr(qp, wr->umr.mr, RMEM_MR_TYPE_INDIRECT) ||
			!is_access(wr->umr.access, wr->umr.iova) || wr->umr.nb_entries == 0 ||
			wr->umr.nb_entries > rmem_mr_drv(wr->umr.mr)->max_size ||
			wr->umr.repeat_count == 0)
		return false;
	for (*length = 0; entry != end; entry++) {
		if (entry->length == 0 || entry->reserved != 0)
			return false;
		if (entry->length > (is_list ? RVERBS_MLX5_MAX_LENGTH : RVERBS_MLX5_MAX_BLOCK))
			return false;
		if (!is_list && entry->skip > RVERBS_MLX5_MAX_BLOCK - entry->length)
			return false;
		*length += entry->length;
	}
	return true;
}

static void
umr_list(struct rverbs_qp *qp, const struct rmem_send_wr *wr)
{
	struct ibv_sge sges[RVERBS_MLX5_MAX_ENTRIES];
	uint32_t i;

	for (i = 0; i < wr->umr.nb_entries; i++) {
		sges[i].addr = wr->umr.entries[i].addr;
		sges[i].length = (uint32_t)wr->umr.entries[i].length;
		sges[i].lkey = wr->umr.entries[i].lkey;
	}
	rverbs_mlx5_write_list(qp->mlx5, rverbs_mr_of(wr->umr.mr)->mkey, wr->umr.access,
			(uint16_t)i, sges);
}

static void
umr_blocks(struct rverbs_qp *qp, const struct rmem_send_wr *wr)
{
	struct mlx5dv_mr_interleaved blocks[RVERBS_MLX5_MAX_ENTRIES];
	uint32_t i;

	for (i = 0; i < wr->umr.nb_entries; i++) {
		blocks[i].addr = wr->umr.entries[i].addr;
		blocks[i].bytes_count = (uint32_t)wr->umr.entries[i].length;
		blocks[i].bytes_skip = (uint32_t)wr->umr.entries[i].skip;
		blocks[i].lkey = wr->umr.entries[i].lkey;
	}
	rverbs_mlx5_write_blocks(qp->mlx5, rverbs_mr_of(wr->umr.mr)->mkey, wr->umr.access,
			wr->umr.repeat_count, (uint16_t)i, blocks);
}

static int
write_umr(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos)
{
	struct rverbs_mr *mr = rverbs_mr_of(wr->umr.mr);
	uint64_t length;

	if (!umr_check(qp, wr, &length))
		return -EINVAL;
	note(qp, wr->umr.mr, pos, RVERBS_MW_UMR, wr->umr.key_tag);
	mr->bound_access = wr->umr.access & RVERBS_MLX5_ACCESS;
	mr->bound_length = length * wr->umr.repeat_count;
	if (wr->umr.repeat_count == 1)
		umr_list(qp, wr);
	else
		umr_blocks(qp, wr);
	return 0;
}

static bool
reg_check(const struct rverbs_qp *qp, const struct rmem_send_wr *wr)
{
	uint64_t page_size = UINT64_C(1) << (wr->reg_mr.log2_page_size & 63);
	const uint64_t *page = wr->reg_mr.page_list->page_list;
	uint32_t i;

	if (!is_mr(qp, wr->reg_mr.mr, RMEM_MR_TYPE_FAST_REG) ||
			!is_access(wr->reg_mr.access, wr->reg_mr.iova) ||
			wr->reg_mr.log2_page_size > 63 || (page_size & RVERBS_PAGE_SIZE_CAP) == 0)
		return false;
	if (wr->reg_mr.page_list_len > rmem_mr_drv(wr->reg_mr.mr)->max_size ||
			wr->reg_mr.page_list_len > wr->reg_mr.page_list->max_page_list_len)
		return false;
	if (wr->reg_mr.length == 0 || wr->reg_mr.first_byte_offset >= page_size ||
			wr->reg_mr.first_byte_offset + (uint64_t)wr->reg_mr.length >
					page_size * wr->reg_mr.page_list_len)
		return false;
	for (i = 0; i < wr->reg_mr.page_list_len; i++) {
		if (page[i] == 0 || (page[i] & (page_size - 1)) != 0)
			return false;
	}
	return true;
}

/* Set one SGE for each page with bytes of the key; return their number. */
static uint16_t
reg_sges(const struct rmem_send_wr *wr, struct ibv_sge *sges)
{
	uint64_t page_size = UINT64_C(1) << wr->reg_mr.log2_page_size;
	uint64_t offset = wr->reg_mr.first_byte_offset, left = wr->reg_mr.length;
	uint16_t i;

	for (i = 0; left != 0; i++) {
		sges[i].addr = wr->reg_mr.page_list->page_list[i] + offset;
		sges[i].length = (uint32_t)RTE_MIN(left, page_size - offset);
		left -= sges[i].length;
		offset = 0;
	}
	return i;
}

static int
write_reg_mr(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos)
{
	struct rverbs_mr *mr = rverbs_mr_of(wr->reg_mr.mr);
	struct ibv_sge sges[RVERBS_MLX5_MAX_ENTRIES];
	uint16_t nb;

	if (!reg_check(qp, wr))
		return -EINVAL;
	nb = reg_sges(wr, sges);
	if (!rverbs_range_map(rverbs_pd_of(qp->qp.pd), wr->reg_mr.access & RMEM_ACCESS_LOCAL_WRITE,
			    sges, nb))
		return -EINVAL;
	note(qp, wr->reg_mr.mr, pos, RVERBS_MW_REG_MR, wr->reg_mr.key_tag);
	mr->bound_access = wr->reg_mr.access & RVERBS_MLX5_ACCESS;
	mr->bound_length = wr->reg_mr.length;
	rverbs_mlx5_write_list(qp->mlx5, mr->mkey, wr->reg_mr.access, nb, sges);
	return 0;
}

int
rverbs_mlx5_write(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos)
{
	qp->ex->wr_flags = wr->flags | IBV_SEND_INLINE; /* for the entries */
	return wr->opcode == RMEM_WR_UMR ? write_umr(qp, wr, pos) : write_reg_mr(qp, wr, pos);
}
