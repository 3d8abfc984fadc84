/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Step 5: reconnect. A refused request sets both QPs to the error state. They are reset and
 * connected again; earlier leases have ended, and their keys are not valid any more.
 */

#include "leases.h"

int
main(int argc, char **argv)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_MW_BIND;
	struct rmem_lease_ctx *ctx;
	struct rmem_lease *lease;
	struct rmem_mr *mr, *peer_mr;
	struct rmem_qp_attr attr;
	struct rmem_sge from;
	struct pair pair;
	uint32_t old_rkey;
	int i;

	check("rte_eal_init", rte_eal_init(argc, argv));
	pair_open(&pair);
	peer_mr = pair_peer_memory(&pair);
	check("rmem_mr_reg",
			rmem_mr_reg(pair.pd, NULL, 4096, 0, access | RMEM_ACCESS_ALLOCATE_MR, &mr));
	ctx = lease_open(pair.qp, 4096);
	lease = lease_grant(ctx, mr, mr->addr, 4096);
	old_rkey = lease->rkey;
	from = (struct rmem_sge){peer_mr->iova, 8, peer_mr->lkey};

	/* Twice: the second time with the key of before, which is as wrong as any other. */
	for (i = 0; i < 2; i++) {
		uint32_t wrong = i == 0 ? lease->rkey ^ 0x100 : old_rkey;

		expect("a WRITE with a wrong key is refused",
				pair_peer(&pair, RMEM_WR_RDMA_WRITE, from, lease->remote_addr,
						wrong) == RMEM_WC_REM_ACCESS_ERR);
		check("rmem_qp_query", rmem_qp_query(pair.peer, &attr));
		expect("the QP of the peer is in the error state", attr.state == RMEM_QPS_ERR);

		check("rmem_qp_reset", rmem_qp_reset(pair.qp));
		check("rmem_qp_reset", rmem_qp_reset(pair.peer));
		check("rmem_lease_recover", rmem_lease_recover(ctx));
		lease_end(ctx);
		pair_connect(&pair);

		lease = lease_grant(ctx, mr, mr->addr, 4096);
		expect("after the reconnection a new lease is valid",
				pair_peer(&pair, RMEM_WR_RDMA_WRITE, from, lease->remote_addr,
						lease->rkey) == RMEM_WC_SUCCESS);
	}
	check("rmem_lease_revoke", rmem_lease_revoke(ctx, &lease, 1));
	lease_end(ctx);

	check("rmem_lease_ctx_destroy", rmem_lease_ctx_destroy(ctx));
	check("rmem_mr_dereg", rmem_mr_dereg(mr));
	check("rmem_mr_dereg", rmem_mr_dereg(peer_mr));
	pair_close(&pair);
	return rte_eal_cleanup();
}
