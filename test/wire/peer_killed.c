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
 * with SIGSTOP: such a peer keeps its sockets, but no longer receives.
 *
 * The fourth one owns a domain of XRC, with its QP and SRQ, and is killed as the first. The fifth
 * one is the requester, killed amid its SENDs, WRITEs, READs and atomics: the parent, its target,
 * keeps its QP and each of its receives. Between the peers, a request to the address of the one
 * that ended fails too. When a peer is killed is random; RMEM_SEED repeats it. In the end no object
 * and no file descriptor is left.
 *
 * usage: dpdk-test-wire-peer ADDRESS PEER_ADDRESS [MORE_ARGUMENTS]
 */

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_driver.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>
#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "../holds.h"

#define SIZE      65536
#define DEPTH     64
#define ROUNDS    5
#define STOPPED   2 /* the round with SIGSTOP */
#define XRC       3 /* the round whose peer owns an XRC domain */
#define REQUESTER 4 /* the round whose peer is the requester */
#define NB_RECV   8
#define NB_ADD    100
#define MAX_SPINS 1000

/* The side of a process, sent to the other through a pipe. */
struct side {
	struct rmem_qp_addr addr;
	uint64_t iova;
	uint32_t rkey;
	uint32_t srq_num; /* in the round XRC */
};

struct end {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_qp *others[2]; /* of the parent: RC and XRC_SEND; qp is one of them */
	struct rmem_srq *srq;      /* of the peer of the round XRC */
	struct rmem_mr *mr;
	uint64_t *memory;
};

struct peer {
	pid_t pid;
	int to;
	int from;
};

static const char *more_args = "";

static void
start_eal(void)
{
	static char name[] = "peer", huge[] = "--no-huge", shconf[] = "--no-shconf", m[] = "-m",
		    mb[] = "64", pci[] = "--no-pci", telemetry[] = "--no-telemetry",
		    level[] = "--log-level=lib.eal:error";
	char *argv[] = {name, huge, shconf, m, mb, pci, telemetry, level, NULL};

	HOLDS(rte_eal_init(RTE_DIM(argv) - 1, argv) >= 0);
}

/* The peer of XRC: it ends with its objects. */
static void
open_domain(struct end *end, uint32_t access)
{
	const struct rmem_xrcd_conf xrcd_conf = {.flags = 0};
	struct rmem_qp_ext qp_ext = {.xrcd = NULL};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_XRC_RECV, .access = access, .ext = &qp_ext};
	struct rmem_srq_ext srq_ext = {.cq = end->cq};
	const struct rmem_srq_conf srq_conf = {.max_wr = NB_RECV, .max_sge = 1, .ext = &srq_ext};

	HOLDS(rmem_xrcd_alloc(end->dev, &xrcd_conf, &qp_ext.xrcd) == 0);
	srq_ext.xrcd = qp_ext.xrcd;
	HOLDS(rmem_srq_create(end->pd, &srq_conf, &end->srq) == 0);
	HOLDS(rmem_qp_create(NULL, &conf, &end->qp) == 0);
}

/* round is that of a peer, or ROUNDS for the parent. */
static void
open_end(struct end *end, const char *address, int round)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 2 * DEPTH};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC,
			.max_send_wr = DEPTH,
			.max_recv_wr = NB_RECV,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ |
					RMEM_ACCESS_REMOTE_ATOMIC};
	char args[128];

	snprintf(args, sizeof(args), "ip=%s%s", address, more_args);
	HOLDS(rmem_dev_create("soft0", args, &end->dev) == 0);
	HOLDS(rmem_pd_alloc(end->dev, &end->pd) == 0);
	HOLDS(rmem_cq_create(end->dev, &cq_conf, &end->cq) == 0);
	conf.send_cq = conf.recv_cq = end->cq;
	if (round == XRC)
		open_domain(end, conf.access);
	else
		HOLDS(rmem_qp_create(end->pd, &conf, &end->qp) == 0);
	if (round == ROUNDS) {
		const struct rmem_qp_conf xrc = {.type = RMEM_QPT_XRC_SEND,
				.send_cq = end->cq,
				.max_send_wr = DEPTH,
				.max_send_sge = 1};

		end->others[0] = end->qp;
		HOLDS(rmem_qp_create(end->pd, &xrc, &end->others[1]) == 0);
	}
	HOLDS(posix_memalign((void **)&end->memory, 4096, SIZE) == 0);
	memset(end->memory, 0, SIZE);
	HOLDS(rmem_mr_reg(end->pd, end->memory, SIZE, 0, RMEM_ACCESS_LOCAL_WRITE | conf.access,
			      &end->mr) == 0);
}

static void
connect_end(const struct end *end, const struct side *peer)
{
	const struct rmem_qp_conn conn = {
			.remote = peer->addr, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7};

	HOLDS(rmem_qp_connect(end->qp, &conn) == 0);
}

static struct side
side_of(const struct end *end)
{
	struct rmem_qp_attr attr;
	struct side side;

	memset(&side, 0, sizeof(side));
	HOLDS(rmem_qp_query(end->qp, &attr) == 0);
	side.addr = attr.addr;
	side.iova = end->mr->iova;
	side.rkey = end->mr->rkey;
	if (end->srq != NULL)
		HOLDS(rmem_srq_num_get(end->srq, &side.srq_num) == 0);
	return side;
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
	wr.xrc.remote_srqn = side->srq_num;
	return wr;
}

static struct rmem_wc
poll_one(const struct end *end)
{
	unsigned int spins = 0;
	struct rmem_wc wc;
	int n;

	/* The peer's thread needs a processor too, and a timeout of the peer takes seconds. */
	while ((n = rmem_poll_cq(end->cq, &wc, 1)) == 0) {
		if (++spins < MAX_SPINS)
			sched_yield();
		else
			rte_delay_us_sleep(100);
	}
	HOLDS(n == 1);
	return wc;
}

/* Execute requests until SIGKILL. */
static void
request(const struct end *end, const struct side *side)
{
	static const uint8_t opcodes[] = {RMEM_WR_SEND, RMEM_WR_RDMA_WRITE,
			RMEM_WR_ATOMIC_FETCH_AND_ADD, RMEM_WR_RDMA_READ};
	uint64_t posted = 0, done = 0;
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	for (;;) {
		for (; posted - done < DEPTH; posted++) {
			wr = make_wr(end, &sge, side, opcodes[posted % RTE_DIM(opcodes)]);
			if (wr.opcode == RMEM_WR_SEND)
				sge.length = 8;
			HOLDS(rmem_post_send(end->qp, &wr, 1) == 1);
		}
		HOLDS(poll_one(end).status == RMEM_WC_SUCCESS);
		done++;
	}
}

/* Exchange addresses, then wait for the end of the pipe or for SIGKILL. */
static int
peer_main(const char *address, int from, int to, int round)
{
	struct end end = {0};
	struct side side, other;

	start_eal();
	open_end(&end, address, round);
	side = side_of(&end);
	HOLDS(write(to, &side, sizeof(side)) == sizeof(side));
	HOLDS(read(from, &other, sizeof(other)) == sizeof(other));
	connect_end(&end, &other);
	HOLDS(write(to, "c", 1) == 1);
	HOLDS(read(from, &(char){0}, 1) == 1); /* the other one is connected too */
	if (round == REQUESTER)
		request(&end, &other);
	while (read(from, &other, sizeof(other)) > 0)
		;
	return EXIT_SUCCESS;
}

/* Before EAL has started in this process: a peer for each round. */
static void
start_peer(struct peer *peer, const char *address, int round)
{
	int to[2], from[2];

	HOLDS(pipe(to) == 0 && pipe(from) == 0);
	peer->pid = fork();
	HOLDS(peer->pid >= 0);
	if (peer->pid == 0) {
		close(to[1]);
		close(from[0]);
		/* The order to start: the address is free. */
		HOLDS(read(to[0], &(char){0}, 1) == 1);
		exit(peer_main(address, to[0], from[1], round));
	}
	close(to[0]);
	close(from[1]);
	peer->to = to[1];
	peer->from = from[0];
}

/* Each addition is executed once. */
static void
add(const struct end *end, const struct side *side)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr = make_wr(end, &sge, side, RMEM_WR_ATOMIC_FETCH_AND_ADD);
	uint64_t i;

	for (i = 0; i < NB_ADD; i++) {
		HOLDS(rmem_post_send(end->qp, &wr, 1) == 1);
		HOLDS(poll_one(end).status == RMEM_WC_SUCCESS);
		HOLDS(end->memory[0] == i);
	}
}

/* Keep the queue full of WRITEs and READs; signal the peer after the first completions. */
static void
kill_amid(const struct end *end, const struct side *side, pid_t pid, int signal_number)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ};
	uint64_t posted = 0, done = 0, ok = 0, last = 1 + (uint64_t)rand() % (2 * DEPTH);
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;
	bool has_failed = false;

	while (!has_failed || done != posted) {
		while (!has_failed && posted - done < DEPTH) {
			wr = make_wr(end, &sge, side, opcodes[posted % RTE_DIM(opcodes)]);
			wr.wr_id = posted++;
			HOLDS(rmem_post_send(end->qp, &wr, 1) == 1);
		}
		wc = poll_one(end);
		HOLDS(wc.wr_id == done);
		done++;
		if (has_failed) {
			HOLDS(wc.status == RMEM_WC_WR_FLUSH_ERR);
		} else if (wc.status != RMEM_WC_SUCCESS) {
			HOLDS(wc.status == RMEM_WC_RETRY_EXC_ERR);
			has_failed = true;
		} else if (++ok == last) {
			HOLDS(kill(pid, signal_number) == 0);
		}
	}
	HOLDS(ok >= last);
	printf("%" PRIu64 " requests succeeded, then RETRY_EXC_ERR\n", ok);
}

static void
post_receive(const struct end *end)
{
	const struct rmem_sge sge = {
			.addr = end->mr->iova + SIZE - 8, .length = 8, .lkey = end->mr->lkey};
	const struct rmem_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	HOLDS(rmem_post_recv(end->qp, &wr, 1) == 1);
}

/* Receive messages; kill the peer after some. Each receive completes once. */
static void
kill_requester(const struct end *end, pid_t pid)
{
	uint64_t received = 0, flushed = 0, last = 1 + (uint64_t)rand() % DEPTH;
	struct rmem_qp_attr attr;
	struct rmem_wc wc;

	for (; received < last; received++) {
		HOLDS(poll_one(end).status == RMEM_WC_SUCCESS);
		post_receive(end);
	}
	HOLDS(kill(pid, SIGKILL) == 0);
	HOLDS(waitpid(pid, NULL, 0) == pid);
	/* Messages that it has sent may still arrive. */
	HOLDS(rmem_qp_query(end->qp, &attr) == 0 && attr.state == RMEM_QPS_RTS);
	HOLDS(rmem_qp_set_error(end->qp) == 0);
	for (received = 0; received + flushed < NB_RECV;) {
		wc = poll_one(end);
		HOLDS(wc.status == RMEM_WC_WR_FLUSH_ERR || flushed == 0);
		flushed += wc.status == RMEM_WC_WR_FLUSH_ERR;
		received += wc.status == RMEM_WC_SUCCESS;
	}
	HOLDS(rmem_poll_cq(end->cq, &wc, 1) == 0);
	printf("%" PRIu64 " messages, then %" PRIu64 " receives flushed\n", last, flushed);
}

/* No process has the address of the last peer: its QP does not answer. */
static void
request_of_nobody(const struct end *end, const struct side *side)
{
	const struct rmem_qp_conn conn = {.remote = side->addr, .timeout = 10, .retry_cnt = 2};
	struct rmem_sge sge;
	struct rmem_send_wr wr = make_wr(end, &sge, side, RMEM_WR_RDMA_WRITE);

	HOLDS(rmem_qp_connect(end->qp, &conn) == 0);
	HOLDS(rmem_post_send(end->qp, &wr, 1) == 1);
	HOLDS(poll_one(end).status == RMEM_WC_RETRY_EXC_ERR);
	HOLDS(rmem_qp_reset(end->qp) == 0);
}

static unsigned int
nb_files(void)
{
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void
close_end(struct end *end)
{
	struct rmem_dev_info info;

	HOLDS(rmem_qp_destroy(end->others[0]) == 0);
	HOLDS(rmem_qp_destroy(end->others[1]) == 0);
	HOLDS(rmem_mr_dereg(end->mr) == 0);
	HOLDS(rmem_cq_destroy(end->cq) == 0);
	HOLDS(rmem_pd_dealloc(end->pd) == 0);
	HOLDS(rmem_dev_info_get(end->dev, &info) == 0);
	HOLDS(info.nb_qp == 0 && info.nb_mr == 0);
	HOLDS(rmem_dev_close(end->dev) == 0);
	free(end->memory);
}

/* Connect to a peer, and signal it amid requests of one of both. */
static void
run_round(struct end *end, int round, const struct peer *peer)
{
	struct side side, mine;
	char byte;
	int i;

	HOLDS(write(peer->to, "s", 1) == 1);
	HOLDS(read(peer->from, &side, sizeof(side)) == sizeof(side));
	end->qp = end->others[round == XRC];
	mine = side_of(end);
	HOLDS(write(peer->to, &mine, sizeof(mine)) == sizeof(mine));
	HOLDS(read(peer->from, &byte, 1) == 1);
	connect_end(end, &side);
	for (i = 0; round == REQUESTER && i < NB_RECV; i++)
		post_receive(end);
	HOLDS(write(peer->to, "c", 1) == 1);
	if (round == REQUESTER) {
		kill_requester(end, peer->pid);
	} else {
		add(end, &side);
		kill_amid(end, &side, peer->pid, round == STOPPED ? SIGSTOP : SIGKILL);
		HOLDS(kill(peer->pid, SIGKILL) == 0);
		HOLDS(waitpid(peer->pid, NULL, 0) == peer->pid);
	}
	HOLDS(rmem_qp_reset(end->qp) == 0);
	request_of_nobody(end, &side);
}

int
main(int argc, char **argv)
{
	const char *text = getenv("RMEM_SEED");
	struct peer peers[ROUNDS];
	unsigned int seed = text != NULL ? (unsigned int)strtoul(text, NULL, 10)
					 : (unsigned int)getpid();
	unsigned int files;
	struct end end = {0};
	int i;

	HOLDS(argc == 3 || argc == 4);
	if (argc == 4)
		more_args = argv[3];
	printf("RMEM_SEED=%u\n", seed);
	fflush(stdout);
	srand(seed);
	for (i = 0; i < ROUNDS; i++)
		start_peer(&peers[i], argv[2], i);
	start_eal();
	files = nb_files();
	open_end(&end, argv[1], ROUNDS);
	for (i = 0; i < ROUNDS; i++)
		run_round(&end, i, &peers[i]);
	close_end(&end);
	HOLDS(nb_files() == files);
	rte_eal_cleanup();
	return EXIT_SUCCESS;
}
