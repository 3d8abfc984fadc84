/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Step 1: one lease. A peer gets a key of one buffer, WRITEs through it, and loses it. */

#include "leases.h"

int
main(int argc, char **argv)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_MW_BIND;
	struct rmem_lease_ctx *ctx;
	struct rmem_lease *lease;
	struct rmem_mr *mr, *peer_mr;
	struct pair pair;
	struct rmem_sge from;
	uint64_t addr;
	uint32_t rkey;
	char *buf;

	check("rte_eal_init", rte_eal_init(argc, argv));
	pair_open(&pair);
	peer_mr = pair_peer_memory(&pair);
	check("rmem_mr_reg",
			rmem_mr_reg(pair.pd, NULL, 4096, 0, access | RMEM_ACCESS_ALLOCATE_MR, &mr));
	ctx = lease_open(pair.qp, 64);
	buf = mr->addr;

	/* 64 bytes of the page, and no other. */
	lease = lease_grant(ctx, mr, buf + 128, 64);
	addr = lease->remote_addr;
	rkey = lease->rkey;
	memcpy(peer_mr->addr, "hello", 6);
	from = (struct rmem_sge){peer_mr->iova, 6, peer_mr->lkey};
	expect("the peer writes to the leased buffer",
			pair_peer(&pair, RMEM_WR_RDMA_WRITE, from, addr, rkey) == RMEM_WC_SUCCESS &&
					strcmp(buf + 128, "hello") == 0);

	check("rmem_lease_revoke", rmem_lease_revoke(ctx, &lease, 1));
	lease_end(ctx);
	memcpy(peer_mr->addr, "again", 6);
	expect("after the revocation it is refused",
			pair_peer(&pair, RMEM_WR_RDMA_WRITE, from, addr, rkey) ==
							RMEM_WC_REM_ACCESS_ERR &&
					strcmp(buf + 128, "hello") == 0);

	check("rmem_qp_reset", rmem_qp_reset(pair.qp));
	check("rmem_lease_recover", rmem_lease_recover(ctx));
	check("rmem_lease_ctx_destroy", rmem_lease_ctx_destroy(ctx));
	check("rmem_mr_dereg", rmem_mr_dereg(mr));
	check("rmem_mr_dereg", rmem_mr_dereg(peer_mr));
	pair_close(&pair);
	return rte_eal_cleanup();
}
