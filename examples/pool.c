/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Step 2: a pool. All buffers are registered by one call; each get returns them with their keys. */

#include <rmem_pool.h>

#include "pair.h"

#define NB_BUFS 32

int
main(int argc, char **argv)
{
	const struct rmem_pool_conf conf = {
			.name = "bufs",
			.nb_bufs = 1023,
			.buf_size = 2048,
			.cache_size = 64,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			.socket_id = SOCKET_ID_ANY,
	};
	struct rmem_sge bufs[NB_BUFS], from;
	struct rmem_pool *pool;
	struct rmem_mr *peer_mr;
	struct pair pair;
	uint32_t i, nb_right = 0;

	check("rte_eal_init", rte_eal_init(argc, argv));
	pair_open(&pair);
	peer_mr = pair_peer_memory(&pair);
	check("rmem_pool_create", rmem_pool_create(pair.pd, &conf, &pool));

	/* A burst of buffers, as an SGE each: address, length and lkey for own requests. */
	check("rmem_pool_get_sges", rmem_pool_get_sges(pool, bufs, NB_BUFS));
	for (i = 0; i < NB_BUFS; i++) {
		void *buf = (void *)(uintptr_t)bufs[i].addr;

		/* Peers take the address and the rkey of a buffer. */
		memcpy(peer_mr->addr, &i, sizeof(i));
		from = (struct rmem_sge){peer_mr->iova, sizeof(i), peer_mr->lkey};
		if (pair_peer(&pair, RMEM_WR_RDMA_WRITE, from, rmem_pool_iova(pool, buf),
				    rmem_pool_rkey(pool, buf)) == RMEM_WC_SUCCESS)
			nb_right += memcmp(buf, &i, sizeof(i)) == 0;
	}
	expect("the peer writes to 32 buffers of the pool", nb_right == NB_BUFS);
	rmem_pool_put_sges(pool, bufs, NB_BUFS);

	check("rmem_pool_destroy", rmem_pool_destroy(pool));
	check("rmem_mr_dereg", rmem_mr_dereg(peer_mr));
	pair_close(&pair);
	return rte_eal_cleanup();
}
