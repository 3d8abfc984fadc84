/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A program that mixes up lkey and rkey, on soft0,keys=same: it works as on most NICs. */

#include <stdint.h>
#include <stdlib.h>

#include "connect_qp.h"
#include "open_device.h"
#include "wait_wc.h"

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static uint8_t buf[4096] __attribute__((aligned(4096)));

/* WRITE 8 bytes of buf to its second half. */
static enum ibv_wc_status
write_by(uint32_t lkey, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)buf, 8, lkey};
	struct ibv_send_wr *bad,
			wr = {.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.sg_list = &sge,
					.num_sge = 1,
					.wr.rdma = {(uintptr_t)buf + 2048, rkey}};

	HOLDS(ibv_post_send(qp, &wr, &bad) == 0);
	return wait_wc(cq).status;
}

static void
create(const char *device)
{
	struct ibv_context *context;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {16, 1, 1, 1, 0}};

	HOLDS(setenv("RMEM_IBV", device, 1) == 0);
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	HOLDS(pd != NULL && cq != NULL);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	HOLDS(qp != NULL);
	connect_own(qp);
}

int
main(void)
{
	struct ibv_mr *all, *local;
	struct ibv_mw *mw;
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};

	create("soft0,keys=same");
	local = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	all = ibv_reg_mr(pd, buf, sizeof(buf),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	HOLDS(local != NULL && all != NULL && mw != NULL);
	HOLDS(all->lkey == all->rkey && local->lkey == local->rkey);
	buf[0] = 7;
	HOLDS(write_by(all->rkey, all->lkey) == IBV_WC_SUCCESS && buf[2048] == 7);
	/* The rights are those of the MR. */
	HOLDS(write_by(all->lkey, local->lkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(qp);
	HOLDS(write_by(all->lkey, local->rkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(qp);
	/* A window has an rkey only. */
	bind.bind_info = (struct ibv_mw_bind_info){
			all, (uintptr_t)buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE};
	HOLDS(ibv_bind_mw(qp, mw, &bind) == 0);
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(write_by(all->lkey, mw->rkey) == IBV_WC_SUCCESS);
	HOLDS(write_by(mw->rkey, all->rkey) == IBV_WC_LOC_PROT_ERR);
	HOLDS(ibv_dealloc_mw(mw) == 0 && ibv_dereg_mr(all) == 0 && ibv_dereg_mr(local) == 0);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
	return 0;
}
