/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Probe of memory windows: bind, write, invalidate, and a WRITE that must be refused. Only bound
 * windows are invalidated, and the QP is destroyed after the windows: see rverbs_mwq.h.
 *
 * A crash can't be probed. But windows of rdma_rxe differ in two other respects: they only have the
 * bounds of their MR, and an invalidation is reported with another flag than in verbs. A device
 * whose windows are not correct in both respects has the quirk.
 */

#include <string.h>

#include "rverbs_probe.h"

#define RVERBS_PROBE_TARGET 2 /* index in mem */
/* Set by rdma_rxe (6.1 and 7.2) in wc_flags instead of IBV_WC_WITH_INV. */
#define RVERBS_KERNEL_WITH_INV (1u << 2)

#define RVERBS_RXE_VENDOR_ID 0xffffffu

/* Write with a key to mem[at]; return whether status and memory are as expected. */
static bool
probe_write_at(const struct rverbs_probe *probe, uint32_t key, uint32_t at, bool is_open)
{
	struct ibv_sge sge = {(uintptr_t)probe->mem, sizeof(uint64_t), probe->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	int status;

	probe->mem[0]++;
	wr.wr.rdma.remote_addr = (uintptr_t)&probe->mem[at];
	wr.wr.rdma.rkey = key;
	status = rverbs_probe_run_wr(probe, &wr);
	return is_open == (status == IBV_WC_SUCCESS) && status >= 0 &&
			is_open == (probe->mem[at] == probe->mem[0]);
}

static bool
probe_write(const struct rverbs_probe *probe, uint32_t key, bool is_open)
{
	return probe_write_at(probe, key, RVERBS_PROBE_TARGET, is_open);
}

/* Record the first sign of the quirk. */
static void
probe_sign(struct rverbs_dev *dev, const char *sign)
{
	if (dev->mw_sign == NULL)
		dev->mw_sign = sign;
}

/* Check that bytes of the MR after the end of the window are refused. The QP then fails. */
static void
probe_bounds(struct rverbs_probe *probe, uint32_t key)
{
	if (probe_write_at(probe, key, RVERBS_PROBE_TARGET + 1, false))
		rverbs_probe_connect(probe);
	else
		probe_sign(probe->dev, "a WRITE past the end of a window is not refused");
}

static struct ibv_mw_bind_info
probe_info(const struct rverbs_probe *probe)
{
	struct ibv_mw_bind_info info = {
			.mr = probe->mr,
			.addr = (uintptr_t)&probe->mem[RVERBS_PROBE_TARGET],
			.length = sizeof(uint64_t),
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return info;
}

static bool
probe_bind_1(const struct rverbs_probe *probe, struct ibv_mw *mw, uint64_t length)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	bind.bind_info = probe_info(probe);
	bind.bind_info.length = length;
	return ibv_bind_mw(probe->qp, mw, &bind) == 0 &&
			rverbs_probe_wait(probe, &wc) == IBV_WC_SUCCESS;
}

static bool
probe_type_1(struct rverbs_probe *probe, struct ibv_mw *mw)
{
	if (!probe_bind_1(probe, mw, sizeof(uint64_t)) || !probe_write(probe, mw->rkey, true))
		return false;
	probe_bounds(probe, mw->rkey);
	return probe_bind_1(probe, mw, 0);
}

static bool
probe_bind_2(const struct rverbs_probe *probe, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = probe_info(probe);
	if (rverbs_probe_run_wr(probe, &wr) != IBV_WC_SUCCESS)
		return false;
	mw->rkey = wr.bind_mw.rkey;
	return true;
}

static bool
probe_local_inv(const struct rverbs_probe *probe, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey};

	return probe_bind_2(probe, mw) && probe_write(probe, mw->rkey, true) &&
			(wr.invalidate_rkey = mw->rkey) != 0 &&
			rverbs_probe_run_wr(probe, &wr) == IBV_WC_SUCCESS;
}

/* Determine the flag by which the receive of a SEND_WITH_INV reports the invalidation. */
static bool
probe_inv_flag(struct rverbs_dev *dev, const struct ibv_wc *wc, uint32_t key)
{
	if ((wc->wc_flags & IBV_WC_WITH_INV) != 0) {
		dev->inv_flag = IBV_WC_WITH_INV;
	} else if ((wc->wc_flags & RVERBS_KERNEL_WITH_INV) != 0) {
		dev->inv_flag = RVERBS_KERNEL_WITH_INV;
		probe_sign(dev, "an invalidation is reported by another flag than IBV_WC_WITH_INV");
	} else {
		return false;
	}
	return wc->invalidated_rkey == key;
}

bool
rverbs_probe_send_inv(const struct rverbs_probe *probe, uint32_t key)
{
	struct ibv_send_wr *bad_send, wr = {.opcode = IBV_WR_SEND_WITH_INV};
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1};
	bool is_reported = false;
	struct ibv_wc wc;
	int i;

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.invalidate_rkey = key;
	if (ibv_post_recv(probe->qp, &recv, &bad_recv) != 0 ||
			ibv_post_send(probe->qp, &wr, &bad_send) != 0)
		return false;
	for (i = 0; i < 2; i++) {
		if (rverbs_probe_wait(probe, &wc) != IBV_WC_SUCCESS)
			return false;
		if (wc.opcode == IBV_WC_RECV)
			is_reported = probe_inv_flag(probe->dev, &wc, key);
	}
	return is_reported;
}

/* Bind again, because the QP has failed, to test the bounds if no sign of the quirk was found
 * yet. */
static bool
probe_bounds_2(struct rverbs_probe *probe, struct ibv_mw *mw)
{
	if (probe->dev->mw_sign != NULL)
		return true;
	rverbs_probe_connect(probe);
	if (!probe->is_connected || !probe_bind_2(probe, mw))
		return false;
	probe_bounds(probe, mw->rkey);
	return true;
}

static uint64_t
probe_type_2(struct rverbs_probe *probe, struct ibv_mw *mw)
{
	uint64_t capa = RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV;

	if (!probe_local_inv(probe, mw) || !probe_bind_2(probe, mw))
		return 0;
	if (!rverbs_probe_send_inv(probe, mw->rkey)) {
		/* The invalidation itself works: the window could be bound again. */
		probe_sign(probe->dev, "SEND_WITH_INV does not work");
		return capa;
	}
	capa |= RMEM_DEV_CAPA_SEND_WITH_INV;
	return probe_write(probe, mw->rkey, false) && probe_bounds_2(probe, mw) ? capa : 0;
}

static uint64_t
probe_type(struct rverbs_probe *probe, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(probe->pd, type);
	uint64_t capa = 0;

	if (mw == NULL)
		return 0;
	if (type == IBV_MW_TYPE_2)
		capa = probe_type_2(probe, mw);
	else if (probe_type_1(probe, mw))
		capa = RMEM_DEV_CAPA_MW_TYPE_1;
	/* If a window can't be released, the capability is cleared, and its PD stays in use. */
	return rverbs_err_code(ibv_dealloc_mw(mw), RVERBS_ERR_RELEASE, "ibv_dealloc_mw") == 0 ? capa
											      : 0;
}

static void
probe_quirk(struct rverbs_dev *dev)
{
	const char *name = dev->context->device->name;

	if (!rverbs_has_windows(dev->capa))
		return;
	if (dev->attr.orig_attr.vendor_id == RVERBS_RXE_VENDOR_ID)
		probe_sign(dev, "it has the vendor ID of rdma_rxe");
	dev->has_mw_quirk = dev->args.mw_quirk == RVERBS_ON ||
			(dev->args.mw_quirk == RVERBS_AUTO && dev->mw_sign != NULL);
	if (dev->mw_sign != NULL && !dev->has_mw_quirk)
		RVERBS_LOG(WARNING, "%s: mw_quirk=off, but %s: wrong invalidations may be fatal",
				name, dev->mw_sign);
}

void
rverbs_probe_windows(struct rverbs_probe *probe)
{
	struct rverbs_dev *dev = probe->dev;

	dev->inv_flag = IBV_WC_WITH_INV;
	if (!probe->is_connected || (dev->access & RMEM_ACCESS_MW_BIND) == 0)
		return;
	dev->capa |= probe_type(probe, IBV_MW_TYPE_1);
	if (dev->send_ops == 0 || (dev->send_ops & IBV_QP_EX_WITH_BIND_MW) != 0)
		dev->capa |= probe_type(probe, IBV_MW_TYPE_2);
	probe_quirk(dev);
}
