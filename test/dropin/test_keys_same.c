/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A program that mixes up lkey and rkey, on soft0,keys=same: it works as on most NICs. */

#include "own_qp.h"

static struct objects own;
static uint8_t buf[4096] __attribute__((aligned(4096)));

/* WRITE 8 bytes of buf to its second half. */
static enum ibv_wc_status
write_by(uint32_t lkey, uint32_t rkey)
{
	return write_to(own.qp, (struct ibv_sge){(uintptr_t)buf, 8, lkey}, (uintptr_t)buf + 2048,
			rkey);
}

int
main(void)
{
	struct ibv_mr *all, *local;
	struct ibv_mw *mw;
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};

	HOLDS(setenv("RMEM_IBV", "soft0,keys=same", 1) == 0);
	own = open_objects(buf, sizeof(buf), 16);
	local = ibv_reg_mr(own.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	all = ibv_reg_mr(own.pd, buf, sizeof(buf), WRITABLE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(own.pd, IBV_MW_TYPE_1);
	HOLDS(local != NULL && all != NULL && mw != NULL);
	HOLDS(all->lkey == all->rkey && local->lkey == local->rkey);
	buf[0] = 7;
	HOLDS(write_by(all->rkey, all->lkey) == IBV_WC_SUCCESS && buf[2048] == 7);
	/* The rights are those of the MR. */
	HOLDS(write_by(all->lkey, local->lkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(own.qp);
	HOLDS(write_by(all->lkey, local->rkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(own.qp);
	/* A window has an rkey only. */
	bind.bind_info = (struct ibv_mw_bind_info){
			all, (uintptr_t)buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE};
	HOLDS(ibv_bind_mw(own.qp, mw, &bind) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	HOLDS(write_by(all->lkey, mw->rkey) == IBV_WC_SUCCESS);
	HOLDS(write_by(mw->rkey, all->rkey) == IBV_WC_LOC_PROT_ERR);
	HOLDS(ibv_dealloc_mw(mw) == 0 && ibv_dereg_mr(all) == 0 && ibv_dereg_mr(local) == 0);
	close_objects(&own);
	return 0;
}
