/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * dpdk-test-wire-peer: two processes whose QPs exchange packets, of which one is killed.
 *
 * The peer, a child process, registers memory and calls no data path function. The parent executes
 * atomics, WRITEs and READs on it, kills it with SIGKILL amid them, and proves that each request
 * completes: the first that fails with RETRY_EXC_ERR, all later ones with WR_FLUSH_ERR. Then it
 * starts another peer at the same address and repeats that, and with a third one that it stops
 * with SIGSTOP: such a peer keeps its sockets, but no longer receives. In the end no object is
 * left.
 *
 * usage: dpdk-test-wire-peer ADDRESS PEER_ADDRESS [MORE_ARGUMENTS]
 */

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include <rte_eal.h>

#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_driver.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>

#define SIZE   65536
#define DEPTH  64
#define ROUNDS 3 /* the last with SIGSTOP */
#define NB_ADD 100

/* The side of a process, sent to the other through a pipe. */
struct side {
	struct rmem_qp_addr addr;
	uint64_t iova;
	uint32_t rkey;
};

struct end {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
	uint64_t *memory;
};

struct peer {
	pid_t pid;
	int to;
	int from;
};

static const char *more_args = "";

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);       \
			exit(EXIT_FAILURE);                                                        \
		}                                                                                  \
	} while (0)

static void
start_eal(void)
{
	static char name[] = "peer", huge[] = "--no-huge", shconf[] = "--no-shconf", m[] = "-m",
		    mb[] = "64", pci[] = "--no-pci", telemetry[] = "--no-telemetry",
		    level[] = "--log-level=lib.eal:error";
	char *argv[] = {name, huge, shconf, m, mb, pci, telemetry, level, NULL};

	CHECK(rte_eal_init(RTE_DIM(argv) - 1, argv) >= 0);
}

static void
open_end(struct end *end, const char *address)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 2 * DEPTH};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC,
			.max_send_wr = DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ |
					RMEM_ACCESS_REMOTE_ATOMIC};
	char args[128];

	snprintf(args, sizeof(args), "ip=%s%s", address, more_args);
	CHECK(rmem_dev_create("soft0", args, &end->dev) == 0);
	CHECK(rmem_pd_alloc(end->dev, &end->pd) == 0);
	CHECK(rmem_cq_create(end->dev, &cq_conf, &end->cq) == 0);
	conf.send_cq = conf.recv_cq = end->cq;
	CHECK(rmem_qp_create(end->pd, &conf, &end->qp) == 0);
	CHECK(posix_memalign((void **)&end->memory, 4096, SIZE) == 0);
	memset(end->memory, 0, SIZE);
	CHECK(rmem_mr_reg(end->pd, end->memory, SIZE, 0, RMEM_ACCESS_LOCAL_WRITE | conf.access,
			      &end->mr) == 0);
}

static void
connect_end(const struct end *end, const struct side *peer)
{
	const struct rmem_qp_conn conn = {
			.remote = peer->addr, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7};

	CHECK(rmem_qp_connect(end->qp, &conn) == 0);
}

static struct side
side_of(const struct end *end)
{
	struct rmem_qp_attr attr;
	struct side side;

	memset(&side, 0, sizeof(side));
	CHECK(rmem_qp_query(end->qp, &attr) == 0);
	side.addr = attr.addr;
	side.iova = end->mr->iova;
	side.rkey = end->mr->rkey;
	return side;
}

/* Exchange addresses, then wait for the end of the pipe or for SIGKILL. */
static int
peer_main(const char *address, int from, int to)
{
	struct end end = {0};
	struct side side, other;

	start_eal();
	open_end(&end, address);
	side = side_of(&end);
	CHECK(write(to, &side, sizeof(side)) == sizeof(side));
	CHECK(read(from, &other, sizeof(other)) == sizeof(other));
	connect_end(&end, &other);
	CHECK(write(to, "c", 1) == 1);
	while (read(from, &other, sizeof(other)) > 0)
		;
	return EXIT_SUCCESS;
}

/* Before EAL has started in this process: a peer for each round. */
static void
start_peer(struct peer *peer, const char *address)
{
	int to[2], from[2];

	CHECK(pipe(to) == 0 && pipe(from) == 0);
	peer->pid = fork();
	CHECK(peer->pid >= 0);
	if (peer->pid == 0) {
		close(to[1]);
		close(from[0]);
		/* The order to start: the address is free. */
		CHECK(read(to[0], &(char){0}, 1) == 1);
		exit(peer_main(address, to[0], from[1]));
	}
	close(to[0]);
	close(from[1]);
	peer->to = to[1];
	peer->from = from[0];
}

static struct rmem_send_wr
make_wr(const struct end *end, struct rmem_sge *sge, const struct side *side, uint8_t opcode)
{
	struct rmem_send_wr wr = {.opcode = opcode,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = sge,
			.num_sge = 1};

	*sge = (struct rmem_sge){.addr = end->mr->iova, .length = 8, .lkey = end->mr->lkey};
	if (opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD) {
		wr.atomic.remote_addr = side->iova;
		wr.atomic.rkey = side->rkey;
		wr.atomic.compare_add = 1;
	} else {
		wr.rdma.remote_addr = side->iova + 4096;
		wr.rdma.rkey = side->rkey;
		sge->length = SIZE / 2;
	}
	return wr;
}

static struct rmem_wc
poll_one(const struct end *end)
{
	struct rmem_wc wc;
	int n;

	/* The peer's thread needs a processor too. */
	while ((n = rmem_poll_cq(end->cq, &wc, 1)) == 0)
		sched_yield();
	CHECK(n == 1);
	return wc;
}

/* Each addition is executed once. */
static void
add(const struct end *end, const struct side *side)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr = make_wr(end, &sge, side, RMEM_WR_ATOMIC_FETCH_AND_ADD);
	uint64_t i;

	for (i = 0; i < NB_ADD; i++) {
		CHECK(rmem_post_send(end->qp, &wr, 1) == 1);
		CHECK(poll_one(end).status == RMEM_WC_SUCCESS);
		CHECK(end->memory[0] == i);
	}
}

/* Keep the queue full of WRITEs and READs; signal the peer after the first completions. */
static void
kill_amid(const struct end *end, const struct side *side, pid_t pid, int signal_number)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ};
	uint64_t posted = 0, done = 0, ok = 0;
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;
	bool has_failed = false;

	while (!has_failed || done != posted) {
		while (!has_failed && posted - done < DEPTH) {
			wr = make_wr(end, &sge, side, opcodes[posted % RTE_DIM(opcodes)]);
			wr.wr_id = posted++;
			CHECK(rmem_post_send(end->qp, &wr, 1) == 1);
		}
		wc = poll_one(end);
		CHECK(wc.wr_id == done);
		done++;
		if (has_failed) {
			CHECK(wc.status == RMEM_WC_WR_FLUSH_ERR);
		} else if (wc.status != RMEM_WC_SUCCESS) {
			CHECK(wc.status == RMEM_WC_RETRY_EXC_ERR);
			has_failed = true;
		} else if (++ok == DEPTH) {
			CHECK(kill(pid, signal_number) == 0);
		}
	}
	CHECK(ok >= DEPTH);
	printf("%" PRIu64 " requests succeeded, then RETRY_EXC_ERR\n", ok);
}

static void
close_end(struct end *end)
{
	struct rmem_dev_info info;

	CHECK(rmem_qp_destroy(end->qp) == 0);
	CHECK(rmem_mr_dereg(end->mr) == 0);
	CHECK(rmem_cq_destroy(end->cq) == 0);
	CHECK(rmem_pd_dealloc(end->pd) == 0);
	CHECK(rmem_dev_info_get(end->dev, &info) == 0);
	CHECK(info.nb_qp == 0 && info.nb_mr == 0);
	CHECK(rmem_dev_close(end->dev) == 0);
	free(end->memory);
}

int
main(int argc, char **argv)
{
	struct peer peers[ROUNDS];
	struct side side, mine;
	struct end end;
	char byte;
	int i;

	CHECK(argc == 3 || argc == 4);
	if (argc == 4)
		more_args = argv[3];
	for (i = 0; i < ROUNDS; i++)
		start_peer(&peers[i], argv[2]);
	start_eal();
	open_end(&end, argv[1]);
	for (i = 0; i < ROUNDS; i++) {
		CHECK(write(peers[i].to, "s", 1) == 1);
		CHECK(read(peers[i].from, &side, sizeof(side)) == sizeof(side));
		mine = side_of(&end);
		CHECK(write(peers[i].to, &mine, sizeof(mine)) == sizeof(mine));
		CHECK(read(peers[i].from, &byte, 1) == 1);
		connect_end(&end, &side);
		add(&end, &side);
		kill_amid(&end, &side, peers[i].pid, i == ROUNDS - 1 ? SIGSTOP : SIGKILL);
		CHECK(kill(peers[i].pid, SIGKILL) == 0);
		CHECK(waitpid(peers[i].pid, NULL, 0) == peers[i].pid);
		CHECK(rmem_qp_reset(end.qp) == 0);
	}
	close_end(&end);
	rte_eal_cleanup();
	return EXIT_SUCCESS;
}
