/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program, without any call of rmem, that posts FLUSHes by ibv_wr_flush(). */

#include "own_qp.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint8_t buf[64];

static struct ibv_qp_ex *
create_qp(unsigned int access)
{
	struct ibv_qp_init_attr_ex init = {.send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_RC,
			.cap = {16, 16, 1, 1, 0},
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = pd,
			.send_ops_flags = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE};
	struct ibv_qp_attr attr = {.qp_access_flags = access};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	HOLDS(qp != NULL);
	connect_own(qp);
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS) == 0);
	return ibv_qp_to_qp_ex(qp);
}

static enum ibv_wc_status
flush(struct ibv_qp_ex *qp, const struct ibv_mr *mr, size_t length, uint8_t type, uint8_t level)
{
	struct ibv_wc wc;

	ibv_wr_start(qp);
	qp->wr_id = 7;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, mr->rkey, (uintptr_t)buf, length, type, level);
	HOLDS(ibv_wr_complete(qp) == 0);
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	HOLDS(wc.wr_id == 7);
	HOLDS(wc.status != IBV_WC_SUCCESS || wc.opcode == IBV_WC_FLUSH);
	return wc.status;
}

int
main(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_mr *mr, *other;
	struct ibv_qp_ex *qp;

	context = open_device("soft0");
	HOLDS(ibv_query_device_ex(context, NULL, &attr) == 0);
	/* IB_DEVICE_FLUSH_GLOBAL and IB_DEVICE_FLUSH_PERSISTENT of the kernel. */
	HOLDS((attr.device_cap_flags_ex & (UINT64_C(1) << 38)) != 0);
	HOLDS((attr.device_cap_flags_ex & (UINT64_C(1) << 39)) != 0);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	HOLDS(pd != NULL && cq != NULL);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), WRITABLE | IBV_ACCESS_FLUSH_GLOBAL);
	other = ibv_reg_mr(pd, buf, sizeof(buf), WRITABLE);
	HOLDS(mr != NULL && other != NULL);
	qp = create_qp(IBV_ACCESS_REMOTE_WRITE);
	HOLDS(flush(qp, mr, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_REM_INV_REQ_ERR);
	HOLDS(ibv_destroy_qp(&qp->qp_base) == 0);
	qp = create_qp(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL);
	HOLDS(flush(qp, mr, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_SUCCESS);
	HOLDS(flush(qp, mr, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_SUCCESS);
	HOLDS(flush(qp, mr, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR) == IBV_WC_SUCCESS);
	ibv_wr_start(qp);
	ibv_wr_flush(qp, mr->rkey, (uintptr_t)buf, (size_t)UINT32_MAX + 1, IBV_FLUSH_GLOBAL,
			IBV_FLUSH_RANGE);
	HOLDS(ibv_wr_complete(qp) == EINVAL);
	HOLDS(flush(qp, other, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) == IBV_WC_REM_ACCESS_ERR);
	HOLDS(ibv_destroy_qp(&qp->qp_base) == 0 && ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(other) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	return 0;
}
