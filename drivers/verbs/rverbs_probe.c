/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Capabilities of the device, each determined by a test: access rights of MRs, UC and UD QPs,
 * resizing of CQs, extended QPs, inline data; and, with a QP connected to itself, the result of an
 * atomic, the bytes transferred by on-demand MRs, and windows. All objects of the probe are
 * released.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rverbs_probe.h"

/* Indices in mem of the MR's memory, before and after the change. */
#define RVERBS_PROBE_HERE  256
#define RVERBS_PROBE_THERE 384
#define RVERBS_PROBE_BYTES 1024u

/* Whether a WRITE with the rkey of the MR writes at that index. */
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

/*
 * Probe the changes of ibv_rereg_mr(): change an MR over a part of the page; a WRITE must then
 * reach its new memory. Each change is probed on its own MR, because a failed change destroys it.
 */
static void
probe_rereg(struct rverbs_probe *probe)
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

#define RVERBS_PROBE_ATOMIC UINT64_C(0x0123456789abcdef)
#define RVERBS_SEND_OPS                                                                            \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |    \
			IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                  \
			IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

#define RVERBS_WINDOW_OPS                                                                          \
	(IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV)

static const struct rmem_qp_conf rverbs_probe_conf = {.type = RMEM_QPT_RC,
		.max_send_wr = 4,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1};

static bool
probe_access(struct rverbs_probe *probe, uint32_t access)
{
	struct ibv_mr *mr;

	mr = ibv_reg_mr_iova2(probe->pd, probe->mem, 4096, (uintptr_t)probe->mem, access);
	if (mr == NULL)
		return false;
	if (ibv_dereg_mr(mr) != 0)
		probe->is_stuck = true;
	return !probe->is_stuck;
}

/* Register the MR; optional rights are omitted if the device does not support them. */
static int
probe_mr(struct rverbs_probe *probe)
{
	struct rverbs_dev *dev = probe->dev;
	uint32_t access;
	int ret;

	dev->access = RVERBS_BASIC_ACCESS;
	if (probe_access(probe, dev->access | RMEM_ACCESS_REMOTE_ATOMIC))
		dev->access |= RMEM_ACCESS_REMOTE_ATOMIC;
	if (probe_access(probe, dev->access | RMEM_ACCESS_RELAXED_ORDERING))
		dev->access |= RMEM_ACCESS_RELAXED_ORDERING;
	if (probe_access(probe, dev->access | RMEM_ACCESS_MW_BIND))
		dev->access |= RMEM_ACCESS_MW_BIND;
	access = dev->access & ~RMEM_ACCESS_RELAXED_ORDERING;
	probe->mr = ibv_reg_mr_iova2(probe->pd, probe->mem, 4096, (uintptr_t)probe->mem, access);
	if (probe->mr != NULL)
		return 0;
	ret = rverbs_mr_refused(errno, "probe: ibv_reg_mr", probe->mem, 4096, (uintptr_t)probe->mem,
			access);
	return ret == -ENOMEM || ret == -ENOSPC ? ret : -EIO;
}

/* Probe UC QPs, by creating one. */
static void
probe_uc(struct rverbs_probe *probe)
{
	struct rmem_qp_conf conf = rverbs_probe_conf;
	struct ibv_qp *qp;

	conf.type = RMEM_QPT_UC;
	qp = rverbs_ibv_qp(probe->dev, probe->pd, probe->cq, probe->cq, &conf);
	if (qp == NULL)
		return;
	if (ibv_destroy_qp(qp) != 0)
		probe->is_held = true;
	else
		probe->dev->capa |= RMEM_DEV_CAPA_UC;
}

/* Probe multicast, by attaching a QP to a link-local group. */
static void
probe_mcast(struct rverbs_probe *probe, struct ibv_qp *qp)
{
	const union ibv_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b}};
	const uint16_t lid = 0xc001;

	if (ibv_attach_mcast(qp, &group, lid) == 0 && ibv_detach_mcast(qp, &group, lid) == 0)
		probe->dev->capa |= RMEM_DEV_CAPA_MCAST;
}

/* Probe UD QPs, by creating one, and an AH to the GID of the port. */
static void
probe_ud(struct rverbs_probe *probe)
{
	struct rverbs_dev *dev = probe->dev;
	const struct rmem_qp_conf conf = {
			.type = RMEM_QPT_UD, .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1};
	struct ibv_ah_attr attr = {.port_num = dev->port.num, .dlid = dev->port.lid};
	struct ibv_ah *ah;
	struct ibv_qp *qp;

	if (dev->port.link_layer == IBV_LINK_LAYER_ETHERNET || dev->port.lid == 0) {
		attr.is_global = 1;
		attr.grh.dgid = dev->port.gid;
		attr.grh.sgid_index = dev->port.gid_index;
	}
	qp = rverbs_ibv_qp(dev, probe->pd, probe->cq, probe->cq, &conf);
	if (qp == NULL)
		return;
	ah = ibv_create_ah(probe->pd, &attr);
	if (ah != NULL)
		dev->capa |= RMEM_DEV_CAPA_UD;
	if (ah != NULL && dev->attr.orig_attr.max_mcast_grp > 0)
		probe_mcast(probe, qp);
	if ((ah != NULL && ibv_destroy_ah(ah) != 0) || ibv_destroy_qp(qp) != 0)
		probe->is_held = true;
}

static struct ibv_qp *
probe_try_qp(const struct rverbs_probe *probe, uint32_t max_inline)
{
	struct rmem_qp_conf conf = rverbs_probe_conf;

	conf.max_inline_data = max_inline;
	return rverbs_ibv_qp(probe->dev, probe->pd, probe->cq, probe->cq, &conf);
}

/* Probe the extended QP, and the maximum of inline data. */
static int
probe_qp(struct rverbs_probe *probe)
{
	static const uint64_t send_ops[] = {
			RVERBS_SEND_OPS | RVERBS_WINDOW_OPS, RVERBS_SEND_OPS, 0};
	static const uint32_t inline_sizes[] = {RVERBS_MAX_INLINE, 512, 256, 128, 64, 32};
	struct rverbs_dev *dev = probe->dev;
	struct ibv_qp *qp;
	size_t i;

	for (i = 0; i < RTE_DIM(send_ops) && probe->qp == NULL; i++) {
		dev->send_ops = send_ops[i];
		probe->qp = probe_try_qp(probe, 0);
	}
	if (probe->qp == NULL)
		return rverbs_err_null(NULL, "ibv_create_qp, to try the device");
	for (i = 0; i < RTE_DIM(inline_sizes); i++) {
		qp = probe_try_qp(probe, inline_sizes[i]);
		if (qp == NULL)
			continue;
		dev->max_inline = inline_sizes[i];
		return rverbs_err_code(ibv_destroy_qp(qp), RVERBS_ERR_OPEN, "ibv_destroy_qp");
	}
	return 0;
}

/*
 * A QP that can't be connected to itself can't be connected to a peer either: devices loop back
 * packets to their own GID, or LID on InfiniBand.
 */
static int
probe_check(const struct rverbs_probe *probe)
{
	const struct rverbs_dev *dev = probe->dev;
	char gid[INET6_ADDRSTRLEN] = "";

	if (probe->is_connected)
		return 0;
	inet_ntop(AF_INET6, dev->port.gid.raw, gid, sizeof(gid));
	RVERBS_LOG(ERR, "%s: no QP can be connected over port %u by GID %u, %s: %s: configure an address of its network interface, or select another GID with gid=",
			dev->context->device->name, dev->port.num, dev->port.gid_index, gid,
			strerror(probe->connect_err < 0 ? EIO : probe->connect_err));
	return -ENODEV;
}

/*
 * Probe a list of two SGEs with the extended QP: rdma_rxe's provider uses the length of the first
 * SGE for each (rdma-core 44).
 */
static bool
probe_list(const struct rverbs_probe *probe)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(probe->qp);
	uint64_t *from = probe->mem + 8, *to = probe->mem + 16;
	struct ibv_sge sges[] = {{(uintptr_t)from, 8, probe->mr->lkey},
			{(uintptr_t)(from + 1), 16, probe->mr->lkey}};
	struct ibv_wc wc;
	int i;

	if (ex == NULL || !probe->is_connected)
		return true;
	for (i = 0; i < 3; i++)
		from[i] = RVERBS_PROBE_ATOMIC + (uint64_t)i;
	ibv_wr_start(ex);
	ex->wr_id = 0;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, probe->mr->rkey, (uintptr_t)to);
	ibv_wr_set_sge_list(ex, RTE_DIM(sges), sges);
	return ibv_wr_complete(ex) == 0 && rverbs_probe_wait(probe, &wc) == IBV_WC_SUCCESS &&
			memcmp(from, to, 24) == 0;
}

/* Probe an atomic. */
static bool
probe_atomic(const struct rverbs_probe *probe)
{
	struct ibv_sge sge = {(uintptr_t)probe->mem, sizeof(uint64_t), probe->mr->lkey};
	struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

	if (!probe->is_connected || (probe->dev->access & RMEM_ACCESS_REMOTE_ATOMIC) == 0)
		return false;
	probe->mem[1] = RVERBS_PROBE_ATOMIC;
	wr.wr.atomic.remote_addr = (uintptr_t)&probe->mem[1];
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.rkey = probe->mr->rkey;
	return rverbs_probe_run_wr(probe, &wr) == IBV_WC_SUCCESS &&
			probe->mem[0] == RVERBS_PROBE_ATOMIC &&
			probe->mem[1] == RVERBS_PROBE_ATOMIC + 1;
}

/* Probe completion channels, and the moderation of their events, which the device reports. */
static void
probe_channel(struct rverbs_probe *probe)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(probe->dev->context);
	struct ibv_cq *cq;

	if (channel == NULL)
		return;
	cq = ibv_create_cq(probe->dev->context, 1, NULL, channel, 0);
	if (cq != NULL && ibv_req_notify_cq(cq, 0) == 0) {
		probe->dev->capa |= RMEM_DEV_CAPA_COMP_CHANNEL;
		if (probe->dev->attr.cq_mod_caps.max_cq_period != 0)
			probe->dev->capa |= RMEM_DEV_CAPA_CQ_MODERATION;
	}
	if ((cq != NULL && ibv_destroy_cq(cq) != 0) || ibv_destroy_comp_channel(channel) != 0)
		probe->is_held = true;
}

/* Probe null MRs, which few providers have. */
static void
probe_null_mr(struct rverbs_probe *probe)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(probe->pd);

	if (mr == NULL)
		return;
	probe->dev->capa |= RMEM_DEV_CAPA_NULL_MR;
	if (ibv_dereg_mr(mr) != 0)
		probe->is_held = true;
}

static int
probe_run(struct rverbs_probe *probe)
{
	struct rverbs_dev *dev = probe->dev;
	int ret;

	probe->pd = ibv_alloc_pd(dev->context);
	ret = rverbs_err_null(probe->pd, "ibv_alloc_pd, to try the device");
	if (ret != 0)
		return ret;
	probe->cq = ibv_create_cq(dev->context, 8, NULL, NULL, 0);
	ret = rverbs_err_null(probe->cq, "ibv_create_cq, to try the device");
	if (ret == 0)
		ret = probe_mr(probe);
	if (ret == 0)
		ret = probe_qp(probe);
	if (ret != 0)
		return ret;
	rverbs_probe_connect(probe);
	ret = probe_check(probe);
	if (ret != 0)
		return ret;
	dev->is_list_bad = !probe_list(probe);
	if (dev->is_list_bad) /* the QP may have failed */
		rverbs_probe_connect(probe);
	if (probe_atomic(probe))
		dev->capa |= RMEM_DEV_CAPA_ATOMIC;
	probe_uc(probe);
	probe_ud(probe);
	if (dev->attr.packet_pacing_caps.qp_rate_limit_max != 0 &&
			(dev->attr.packet_pacing_caps.supported_qpts & 1u << IBV_QPT_RC) != 0)
		dev->capa |= RMEM_DEV_CAPA_RATE_LIMIT;
	if (ibv_resize_cq(probe->cq, 16) == 0)
		dev->capa |= RMEM_DEV_CAPA_CQ_RESIZE;
	rverbs_srq_probe(dev, probe->pd);
	probe_channel(probe);
	if (rverbs_cq_probe_times(dev, &probe->is_held))
		dev->capa |= RMEM_DEV_CAPA_CQ_TIMESTAMP;
	probe_null_mr(probe);
	if (!rverbs_dm_probe(dev, probe->pd))
		probe->is_held = true;
	probe_rereg(probe);
	rverbs_probe_on_demand(probe);
	rverbs_probe_windows(probe);
	if (!rverbs_xrc_probe(dev, probe->pd, probe->cq))
		probe->is_held = true;
	rverbs_probe_mlx5(probe);
	return probe_check(probe);
}

int
rverbs_probe(struct rverbs_dev *dev)
{
	struct rverbs_probe probe = {.dev = dev};
	int ret, rc2;

	probe.mem = aligned_alloc(4096, 4096);
	if (probe.mem == NULL) {
		RVERBS_LOG(ERR, "probe: no memory");
		return -ENOMEM;
	}
	memset(probe.mem, 0, 4096);
	ret = probe_run(&probe);
	rc2 = probe.qp != NULL ? ibv_destroy_qp(probe.qp) : 0;
	if (probe.mr != NULL && ibv_dereg_mr(probe.mr) != 0)
		probe.is_stuck = true;
	if (probe.is_held)
		rc2 |= EIO;
	if (!probe.is_stuck)
		free(probe.mem);
	else /* the device may still access it */
		rc2 |= EIO;
	if (probe.other_pd != NULL)
		rc2 |= ibv_dealloc_pd(probe.other_pd);
	if (probe.cq != NULL)
		rc2 |= ibv_destroy_cq(probe.cq);
	if (probe.pd != NULL)
		rc2 |= ibv_dealloc_pd(probe.pd);
	if (ret == 0 && rc2 != 0) {
		RVERBS_LOG(ERR, "probe: objects cannot be released");
		ret = -EIO;
	}
	return ret;
}
