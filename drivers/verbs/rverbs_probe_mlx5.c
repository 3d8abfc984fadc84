/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Probe of fast registration and indirect keys, on a QP of mlx5dv connected to itself: an mkey is
 * bound to a list, invalidated, and bound to repeated blocks with another tag. WRITEs with its keys
 * must transfer the right bytes, or be refused.
 */

#include <string.h>

#include <infiniband/mlx5dv.h>

#include "rverbs_mlx5.h"
#include "rverbs_probe.h"

/* Indices in mem of the pieces, 8 bytes each. */
#define RVERBS_PROBE_LIST_1 16
#define RVERBS_PROBE_LIST_2 32
#define RVERBS_PROBE_BLOCKS 48

#define RVERBS_PROBE_MKEY_CAPA                                                                     \
	(RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_UMR | RMEM_DEV_CAPA_LOCAL_INV |                    \
			RMEM_DEV_CAPA_REG_ZERO_BASED)

static const struct rmem_qp_conf rverbs_probe_mkey_conf = {.type = RMEM_QPT_RC,
		.max_send_wr = 4,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1};

struct rverbs_probe_mkey {
	struct rverbs_probe probe; /* with its own QP */
	struct mlx5dv_qp_ex *qp;
	struct mlx5dv_mkey *mkey;
};

static uint32_t
probe_key(const struct rverbs_probe_mkey *mkey, uint8_t tag)
{
	return rmem_rkey_of_tag(mkey->mkey->rkey, tag);
}

/* Begin a request that binds the mkey with a tag. */
static struct ibv_qp_ex *
probe_begin(const struct rverbs_probe_mkey *mkey, uint8_t tag)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(mkey->probe.qp);

	rverbs_mlx5_set_key(mkey->mkey, probe_key(mkey, tag));
	ibv_wr_start(ex);
	ex->wr_id = 0;
	ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	return ex;
}

static bool
probe_end(const struct rverbs_probe_mkey *mkey, struct ibv_qp_ex *ex)
{
	struct ibv_wc wc;

	return ibv_wr_complete(ex) == 0 && rverbs_probe_wait(&mkey->probe, &wc) == IBV_WC_SUCCESS &&
			wc.opcode == (enum ibv_wc_opcode)MLX5DV_WC_UMR;
}

static bool
probe_list(const struct rverbs_probe_mkey *mkey, uint8_t tag)
{
	const struct rverbs_probe *probe = &mkey->probe;
	const struct ibv_sge sges[] = {
			{(uintptr_t)&probe->mem[RVERBS_PROBE_LIST_1], 8, probe->mr->lkey},
			{(uintptr_t)&probe->mem[RVERBS_PROBE_LIST_2], 8, probe->mr->lkey}};
	struct ibv_qp_ex *ex = probe_begin(mkey, tag);

	rverbs_mlx5_write_list(mkey->qp, mkey->mkey, RVERBS_BASIC_ACCESS, RTE_DIM(sges), sges);
	return probe_end(mkey, ex);
}

/* Bind two blocks of 8 bytes, with 8 bytes in between. */
static bool
probe_blocks(const struct rverbs_probe_mkey *mkey, uint8_t tag)
{
	const struct rverbs_probe *probe = &mkey->probe;
	const struct mlx5dv_mr_interleaved block = {
			.addr = (uintptr_t)&probe->mem[RVERBS_PROBE_BLOCKS],
			.bytes_count = 8,
			.bytes_skip = 8,
			.lkey = probe->mr->lkey};
	struct ibv_qp_ex *ex = probe_begin(mkey, tag);

	rverbs_mlx5_write_blocks(mkey->qp, mkey->mkey, RVERBS_BASIC_ACCESS, 2, 1, &block);
	return probe_end(mkey, ex);
}

/* WRITE 16 bytes; return whether they arrive in both pieces, and the 8 bytes after the first stay
 * 0. */
static bool
probe_write(const struct rverbs_probe_mkey *mkey, uint8_t tag, uint32_t first, uint32_t second)
{
	const struct rverbs_probe *probe = &mkey->probe;
	struct ibv_sge sge = {(uintptr_t)probe->mem, 16, probe->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	probe->mem[0]++;
	probe->mem[1] = ~probe->mem[0];
	probe->mem[first + 1] = 0;
	wr.wr.rdma.rkey = probe_key(mkey, tag);
	return rverbs_probe_run_wr(probe, &wr) == IBV_WC_SUCCESS &&
			probe->mem[first] == probe->mem[0] && probe->mem[second] == probe->mem[1] &&
			probe->mem[first + 1] == 0;
}

/* Whether a WRITE is refused. The QP then fails, and is connected again. */
static bool
probe_refused(struct rverbs_probe_mkey *mkey, uint8_t tag)
{
	struct rverbs_probe *probe = &mkey->probe;
	struct ibv_sge sge = {(uintptr_t)probe->mem, 8, probe->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	wr.wr.rdma.rkey = probe_key(mkey, tag);
	if (rverbs_probe_run_wr(probe, &wr) != IBV_WC_REM_ACCESS_ERR)
		return false;
	rverbs_probe_connect(probe);
	return probe->is_connected;
}

static bool
probe_local_inv(const struct rverbs_probe_mkey *mkey, uint8_t tag)
{
	struct ibv_send_wr wr = {
			.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = probe_key(mkey, tag)};

	return rverbs_probe_run_wr(&mkey->probe, &wr) == IBV_WC_SUCCESS;
}

/* Whether the receive of a SEND_WITH_INV invalidates the mkey, if it invalidates windows. */
static bool
probe_send_inv(struct rverbs_probe_mkey *mkey, uint8_t tag)
{
	if ((mkey->probe.dev->capa & RMEM_DEV_CAPA_SEND_WITH_INV) == 0)
		return true;
	return rverbs_probe_send_inv(&mkey->probe, probe_key(mkey, tag)) &&
			probe_refused(mkey, tag);
}

/* Return NULL, or the name of what fails. */
static const char *
probe_requests(struct rverbs_probe_mkey *mkey)
{
	if (!probe_list(mkey, 1))
		return "a list";
	if (!probe_write(mkey, 1, RVERBS_PROBE_LIST_1, RVERBS_PROBE_LIST_2))
		return "a WRITE to a list";
	if (!probe_local_inv(mkey, 1) || !probe_refused(mkey, 1))
		return "LOCAL_INV";
	if (!probe_blocks(mkey, 2))
		return "repeated blocks";
	if (!probe_write(mkey, 2, RVERBS_PROBE_BLOCKS, RVERBS_PROBE_BLOCKS + 2))
		return "a WRITE to repeated blocks";
	if (!probe_refused(mkey, 1))
		return "the tag of the key";
	return probe_send_inv(mkey, 2) ? NULL : "SEND_WITH_INV";
}

/* Create the QP, and an mkey with as many entries as the device accepts; return NULL, or the
 * error. */
static const char *
probe_objects(struct rverbs_probe_mkey *mkey)
{
	struct rverbs_probe *probe = &mkey->probe;
	struct rverbs_dev *dev = probe->dev;
	struct ibv_wc wc;
	uint32_t nb;

	for (nb = dev->args.mkey_entries; nb != 0 && mkey->qp == NULL; nb /= 2) {
		dev->max_mkey_entries = nb;
		probe->qp = rverbs_ibv_qp(
				dev, probe->pd, probe->cq, probe->cq, &rverbs_probe_mkey_conf);
		if (probe->qp == NULL)
			return "ibv_create_qp";
		mkey->qp = rverbs_mlx5_qp(dev, probe->qp);
		if (mkey->qp != NULL)
			break;
		if (ibv_destroy_qp(probe->qp) != 0) {
			probe->is_held = true;
			nb = 1;
		}
		probe->qp = NULL;
	}
	if (mkey->qp == NULL)
		return "mlx5dv_create_qp";
	mkey->mkey = rverbs_mlx5_create_mkey(dev, probe->pd, dev->max_mkey_entries);
	if (mkey->mkey == NULL)
		return "mlx5dv_create_mkey";
	rverbs_probe_connect(probe);
	while (ibv_poll_cq(probe->cq, 1, &wc) > 0) /* completions of a failed probe */
		;
	return probe->is_connected ? NULL : "the connection of the QP";
}

void
rverbs_probe_mlx5(struct rverbs_probe *probe)
{
	struct rverbs_probe_mkey mkey = {.probe = *probe};
	struct rverbs_dev *dev = probe->dev;
	const char *what;

	if (dev->args.mkey_entries == 0 || dev->send_ops == 0 || dev->is_list_bad ||
			dev->has_mw_quirk || !rverbs_mlx5_open(dev))
		return;
	mkey.probe.qp = NULL;
	mkey.probe.is_connected = false;
	what = probe_objects(&mkey);
	if (what == NULL)
		what = probe_requests(&mkey);
	if (mkey.mkey != NULL && dev->mlx5.destroy_mkey(mkey.mkey) != 0)
		mkey.probe.is_held = true;
	if (mkey.probe.qp != NULL && ibv_destroy_qp(mkey.probe.qp) != 0)
		mkey.probe.is_held = true;
	probe->is_held = mkey.probe.is_held;
	if (what == NULL) {
		dev->capa |= RVERBS_PROBE_MKEY_CAPA;
		return;
	}
	dev->max_mkey_entries = 0;
	RVERBS_LOG(NOTICE, "%s: REG_MR and UMR are not offered: does not work: %s",
			dev->context->device->name, what);
}
