/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Step 7: a secondary process, which may be killed. Started without arguments it is the primary,
 * which creates everything, and serves one secondary process after the other until SIGINT or
 * SIGTERM. With --proc-type=secondary it takes a buffer of the pool, writes a line to the primary,
 * and ends; with "-- crash" it kills itself while it has all the buffers. EAL shares the memory:
 * both need hugepages, and lcores of their own (-l).
 */

#include <signal.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_pause.h>

#include <rmem_mp.h>
#include <rmem_pool.h>

#include "pair.h"

#define NB_BUFS 255

static volatile sig_atomic_t is_ending;

static void
end(int signo)
{
	RTE_SET_USED(signo);
	is_ending = 1;
}

static enum rmem_qp_state
state_of(struct rmem_qp *qp)
{
	struct rmem_qp_attr attr;

	check("rmem_qp_query", rmem_qp_query(qp, &attr));
	return attr.state;
}

/* Until the secondary process has ended: print what it writes. */
static void
serve(struct pair *pair, const struct rmem_mr *target)
{
	const struct rmem_recv_wr recv = {.num_sge = 0};
	struct rmem_wc wc;
	int n;

	check("rmem_post_recv", rmem_post_recv(pair->peer, &recv, 1));
	while (!is_ending && state_of(pair->qp) != RMEM_QPS_RESET) {
		/* This poll also executes the requests of the secondary process. */
		n = rmem_poll_cq(pair->peer_cq, &wc, 1);
		check("rmem_poll_cq", n);
		if (n == 0)
			continue;
		if (wc.status == RMEM_WC_SUCCESS)
			printf("written by process %u: %s\n", wc.imm_data, (char *)target->addr);
		fflush(stdout);
	}
}

static void
primary(void)
{
	const struct rmem_pool_conf conf = {
			.name = "bufs",
			.nb_bufs = NB_BUFS,
			.buf_size = 2048,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_POOL_TRACKED,
	};
	struct rmem_mr_attr attr = {
			.length = 4096,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
					RMEM_ACCESS_ALLOCATE_MR,
			.name = "target",
	};
	struct rmem_pool *pool;
	struct rmem_mr *target;
	struct pair pair;

	signal(SIGINT, end);
	signal(SIGTERM, end);
	pair_open(&pair);
	check("rmem_pool_create", rmem_pool_create(pair.pd, &conf, &pool));
	check("rmem_mr_reg_attr", rmem_mr_reg_attr(pair.pd, &attr, &target));
	while (!is_ending) {
		printf("waiting for a secondary process\n");
		fflush(stdout);
		serve(&pair, target);
		if (is_ending)
			break;

		/* Its QP is reset first; then its buffers are put back. */
		while (rte_mempool_avail_count(pool->mp) != NB_BUFS)
			rte_pause();
		printf("it has ended: all %d buffers are in the pool\n", NB_BUFS);
		check("rmem_qp_reset", rmem_qp_reset(pair.peer));
		pair_connect(&pair);
	}
	check("rmem_mr_dereg", rmem_mr_dereg(target));
	check("rmem_pool_destroy", rmem_pool_destroy(pool));
	pair_close(&pair);
}

static void
secondary(bool is_crashing)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE_WITH_IMM};
	struct rmem_sge bufs[NB_BUFS];
	struct rmem_pool *pool;
	struct rmem_mr *target;
	struct rmem_dev *dev;
	struct rmem_qp *qp;

	check("rmem_dev_attach", rmem_dev_attach("soft0", &dev));
	check("rmem_qp_lookup", rmem_qp_lookup(dev, "qp", &qp));
	check("rmem_qp_claim", rmem_qp_claim(qp));
	check("rmem_pool_lookup", rmem_pool_lookup("bufs", &pool));
	check("rmem_mr_lookup", rmem_mr_lookup(dev, "target", &target));

	check("rmem_pool_get_sges", rmem_pool_get_sges(pool, bufs, is_crashing ? NB_BUFS : 1));
	if (is_crashing)
		kill(getpid(), SIGKILL);
	bufs[0].length = (uint32_t)snprintf((char *)(uintptr_t)bufs[0].addr, bufs[0].length,
					 "hello from lcore %u", rte_lcore_id()) +
			1;
	wr.imm_data = rmem_process_number();
	wr.rdma.remote_addr = target->iova;
	wr.rdma.rkey = target->rkey;
	expect("the WRITE succeeds", pair_run(qp, wr, bufs[0]) == RMEM_WC_SUCCESS);

	rmem_pool_put_sges(pool, bufs, 1);
	check("rmem_dev_detach", rmem_dev_detach(dev));
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);

	check("rte_eal_init", n);
	if (rte_eal_process_type() == RTE_PROC_PRIMARY)
		primary();
	else
		secondary(argc > n + 1 && strcmp(argv[n + 1], "crash") == 0);
	return rte_eal_cleanup();
}
