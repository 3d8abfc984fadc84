/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Step 4: external buffers. Memory of the application is registered, and mbufs refer to it. */

#include <stdlib.h>
#include <sys/mman.h>

#include <rmem_mbuf.h>

#include "pair.h"

#define AREA_SIZE (1 << 20)

static int nb_freed;

static void
count_free(void *addr, void *opaque)
{
	RTE_SET_USED(addr);
	RTE_SET_USED(opaque);
	nb_freed++;
}

/* An mbuf whose data is at an address of the application. */
static struct rte_mbuf *
attach(const struct rmem_mempool *reg, void *addr, struct rte_mbuf_ext_shared_info *shared)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(reg->mp);

	if (m == NULL)
		rte_exit(EXIT_FAILURE, "no mbuf\n");
	shared->free_cb = count_free;
	rte_mbuf_ext_refcnt_set(shared, 1);
	rte_pktmbuf_attach_extbuf(m, addr, RTE_BAD_IOVA, 2048, shared);
	return m;
}

int
main(int argc, char **argv)
{
	const struct rmem_pktmbuf_pool_conf conf = {
			.name = "mbufs",
			.nb_mbufs = 255,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY,
	};
	struct rte_mbuf_ext_shared_info shared = {0};
	struct rmem_mr *mr, *peer_mr;
	struct rmem_mempool *reg;
	struct rmem_sge into;
	struct rte_mbuf *m;
	struct pair pair;
	char *area;

	check("rte_eal_init", rte_eal_init(argc, argv));
	pair_open(&pair);
	peer_mr = pair_peer_memory(&pair);
	check("rmem_pktmbuf_pool_create", rmem_pktmbuf_pool_create(pair.pd, &conf, &reg));

	/* Memory that no mempool has, such as a cache of the application. */
	area = mmap(NULL, AREA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		rte_exit(EXIT_FAILURE, "no memory\n");
	check("rmem_mr_reg",
			rmem_mr_reg(pair.pd, area, AREA_SIZE, (uintptr_t)area,
					RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ, &mr));
	check("rmem_extbuf_mr_add", rmem_extbuf_mr_add(mr));

	m = attach(reg, area + 4096, &shared);
	memcpy(rte_pktmbuf_append(m, 6), "cache", 6);
	expect("the mbuf has the key of the external memory", rmem_mbuf_rkey(reg, m) == mr->rkey);

	into = (struct rmem_sge){peer_mr->iova, 6, peer_mr->lkey};
	expect("the peer reads the external buffer",
			pair_peer(&pair, RMEM_WR_RDMA_READ, into, rmem_mbuf_iova(reg, m),
					rmem_mbuf_rkey(reg, m)) == RMEM_WC_SUCCESS &&
					strcmp(peer_mr->addr, "cache") == 0);
	rte_pktmbuf_free(m);
	expect("the buffer is returned to the application", nb_freed == 1);

	check("rmem_extbuf_mr_del", rmem_extbuf_mr_del(mr));
	check("rmem_mr_dereg", rmem_mr_dereg(mr));
	munmap(area, AREA_SIZE);
	check("rmem_pktmbuf_pool_destroy", rmem_pktmbuf_pool_destroy(reg));
	check("rmem_mr_dereg", rmem_mr_dereg(peer_mr));
	pair_close(&pair);
	return rte_eal_cleanup();
}
