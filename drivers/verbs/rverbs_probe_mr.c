/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Probe of ibv_rereg_mr(): an MR over a part of the page is changed, and a WRITE must reach its new
 * memory. Each change is probed separately, on an MR of its own, since a failed change leaves none.
 */

#include "rverbs_probe.h"

/* Indices in mem: the memory of the MR, before and after the change. */
#define RVERBS_PROBE_HERE  256
#define RVERBS_PROBE_THERE 384
#define RVERBS_PROBE_BYTES 1024u

/* Whether a WRITE through the rkey of the MR arrives at that index. */
static bool
probe_reaches(struct rverbs_probe *probe, const struct ibv_mr *mr, uint64_t *at)
{
	struct ibv_sge sge = {(uintptr_t)probe->mem, sizeof(uint64_t), probe->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	bool is_well;

	if (!probe->is_connected)
		return false;
	probe->mem[0]++;
	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = mr->rkey;
	is_well = rverbs_probe_run_wr(probe, &wr) == IBV_WC_SUCCESS && *at == probe->mem[0];
	if (!is_well)
		rverbs_probe_connect(probe);
	return is_well;
}

static bool
probe_change(struct rverbs_probe *probe, struct ibv_mr *mr, uint32_t flag)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	uint64_t *here = probe->mem + RVERBS_PROBE_HERE, *there = probe->mem + RVERBS_PROBE_THERE;

	switch (flag) {
	case RMEM_REREG_CHANGE_TRANSLATION:
		return ibv_rereg_mr(mr, (int)flag, NULL, there, RVERBS_PROBE_BYTES, 0) == 0 &&
				probe_reaches(probe, mr, there);
	case RMEM_REREG_CHANGE_ACCESS:
		return ibv_rereg_mr(mr, (int)flag, NULL, NULL, 0, access) == 0 &&
				probe_reaches(probe, mr, here);
	default: /* to another PD and back */
		probe->other_pd = ibv_alloc_pd(probe->dev->context);
		return probe->other_pd != NULL &&
				ibv_rereg_mr(mr, (int)flag, probe->other_pd, NULL, 0, 0) == 0 &&
				ibv_rereg_mr(mr, (int)flag, probe->pd, NULL, 0, 0) == 0 &&
				probe_reaches(probe, mr, here);
	}
}

void
rverbs_probe_rereg(struct rverbs_probe *probe)
{
	static const uint32_t flags[] = {RMEM_REREG_CHANGE_TRANSLATION, RMEM_REREG_CHANGE_PD,
			RMEM_REREG_CHANGE_ACCESS};
	struct rverbs_dev *dev = probe->dev;
	uint64_t *here = probe->mem + RVERBS_PROBE_HERE;
	bool is_kept = true;
	struct ibv_mr *mr;
	uint32_t rkey;
	size_t i;

	for (i = 0; i < RTE_DIM(flags); i++) {
		mr = ibv_reg_mr_iova2(probe->pd, here, RVERBS_PROBE_BYTES, (uintptr_t)here,
				flags[i] == RMEM_REREG_CHANGE_ACCESS ? IBV_ACCESS_LOCAL_WRITE
								     : RVERBS_BASIC_ACCESS);
		if (mr == NULL)
			return;
		rkey = mr->rkey;
		if (probe_change(probe, mr, flags[i]))
			dev->rereg |= flags[i];
		is_kept = is_kept && (rkey == mr->rkey || flags[i] == RMEM_REREG_CHANGE_ACCESS);
		if (ibv_dereg_mr(mr) != 0)
			probe->is_stuck = true;
	}
	if (is_kept && dev->rereg == (flags[0] | flags[1] | flags[2]))
		dev->capa |= RMEM_DEV_CAPA_REREG;
}
