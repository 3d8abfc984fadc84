/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Step 6: a storage server. The client leases a buffer, and sends the number of a block with the
 * key. The server reads the block of its file into a buffer of a pool and WRITEs it to the client,
 * which revokes the lease and has the block. Neither side gets a key of other memory.
 * dpdk-rmem-kv does this between hosts, for many clients.
 */

#include <stdlib.h>
#include <unistd.h>

#include <rmem_pool.h>

#include "leases.h"

#define BLOCK     4096u
#define NB_BLOCKS 256

/* A request: both sides know its format. */
struct request {
	uint64_t block;
	uint64_t addr;
	uint32_t rkey;
	uint32_t pad;
};

struct server {
	struct rmem_pool *pool;
	struct rmem_mr *requests; /* where requests are received */
	FILE *file;
};

/* Receive one request and serve it. */
static void
serve(struct pair *pair, struct server *server)
{
	struct request request;
	struct rmem_sge buf;
	struct rmem_wc wc;
	int n;

	while ((n = rmem_poll_cq(pair->peer_cq, &wc, 1)) == 0)
		;
	check("rmem_poll_cq", n);
	if (wc.status != RMEM_WC_SUCCESS || wc.byte_len != sizeof(request))
		rte_exit(EXIT_FAILURE, "no request: %s\n", rmem_wc_status_str(wc.status));
	memcpy(&request, server->requests->addr, sizeof(request));
	/* A client is not trusted. */
	if (request.block >= NB_BLOCKS)
		rte_exit(EXIT_FAILURE, "no such block\n");

	check("rmem_pool_get_sges", rmem_pool_get_sges(server->pool, &buf, 1));
	if (pread(fileno(server->file), (void *)(uintptr_t)buf.addr, BLOCK,
			    (off_t)(request.block * BLOCK)) != BLOCK)
		rte_exit(EXIT_FAILURE, "cannot read the file\n");
	n = pair_peer(pair, RMEM_WR_RDMA_WRITE, buf, request.addr, request.rkey);
	if (n != RMEM_WC_SUCCESS)
		rte_exit(EXIT_FAILURE, "WRITE: %s\n", rmem_wc_status_str((uint8_t)n));
	rmem_pool_put_sges(server->pool, &buf, 1);
}

static void
post_receive(struct pair *pair, const struct server *server)
{
	struct rmem_sge sge = {
			server->requests->iova, sizeof(struct request), server->requests->lkey};
	const struct rmem_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	check("rmem_post_recv", rmem_post_recv(pair->peer, &wr, 1));
}

static void
open_server(struct pair *pair, struct server *server)
{
	const struct rmem_pool_conf conf = {
			.name = "blocks",
			.nb_bufs = 63,
			.buf_size = BLOCK,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY,
	};
	uint64_t words[BLOCK / 8];
	uint64_t i, j;

	check("rmem_pool_create", rmem_pool_create(pair->pd, &conf, &server->pool));
	server->requests = pair_peer_memory(pair);
	server->file = tmpfile();
	for (i = 0; server->file != NULL && i < NB_BLOCKS; i++) {
		for (j = 0; j < RTE_DIM(words); j++)
			words[j] = i << 32 | j;
		if (fwrite(words, BLOCK, 1, server->file) != 1)
			break;
	}
	if (server->file == NULL || i != NB_BLOCKS || fflush(server->file) != 0)
		rte_exit(EXIT_FAILURE, "cannot write the file\n");
}

/* The client reads a block into its memory, after which it has a page for the request. */
static bool
read_block(struct pair *pair, struct server *server, struct rmem_lease_ctx *ctx,
		const struct rmem_mr *mr, uint64_t block)
{
	struct rmem_lease *lease = lease_grant(ctx, mr, mr->addr, BLOCK);
	const struct request request = {block, lease->remote_addr, lease->rkey, 0};
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND};
	const uint64_t *words = mr->addr;
	struct rmem_sge sge = {mr->iova + BLOCK, sizeof(request), mr->lkey};

	post_receive(pair, server);
	memcpy((char *)mr->addr + BLOCK, &request, sizeof(request));
	if (pair_run(pair->qp, wr, sge) != RMEM_WC_SUCCESS)
		return false;
	serve(pair, server);
	check("rmem_lease_revoke", rmem_lease_revoke(ctx, &lease, 1));
	lease_end(ctx);
	return words[0] == block << 32 && words[BLOCK / 8 - 1] == (block << 32 | (BLOCK / 8 - 1));
}

int
main(int argc, char **argv)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_MW_BIND;
	struct rmem_lease_ctx *ctx;
	struct server server;
	struct rmem_mr *mr;
	struct pair pair;
	uint64_t i, nb_right = 0;

	check("rte_eal_init", rte_eal_init(argc, argv));
	pair_open(&pair);
	open_server(&pair, &server);
	check("rmem_mr_reg",
			rmem_mr_reg(pair.pd, NULL, (size_t)2 * BLOCK, 0,
					access | RMEM_ACCESS_ALLOCATE_MR, &mr));
	ctx = lease_open(pair.qp, BLOCK);
	for (i = 0; i < 1000; i++)
		nb_right += read_block(&pair, &server, ctx, mr, i * 101 % NB_BLOCKS);
	expect("1000 blocks are read, each through a key of its own", nb_right == 1000);

	check("rmem_lease_ctx_destroy", rmem_lease_ctx_destroy(ctx));
	check("rmem_pool_destroy", rmem_pool_destroy(server.pool));
	check("rmem_mr_dereg", rmem_mr_dereg(server.requests));
	check("rmem_mr_dereg", rmem_mr_dereg(mr));
	fclose(server.file);
	pair_close(&pair);
	return rte_eal_cleanup();
}
