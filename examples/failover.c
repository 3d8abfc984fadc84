/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Step 8: two devices. Messages are sent by one of them; when a request fails, the QPs are reset
 * and connected again, and the messages that had no completion are sent by the other device. The
 * receiver knows by their numbers which ones it has already. Let a port fail while it runs:
 *
 *   rmem-ctl port soft0 down; sleep 3; rmem-ctl port soft0 up
 *
 * It ends with Ctrl-C, or after a number of seconds: failover EAL-OPTIONS -- SECONDS.
 */

#include <inttypes.h>
#include <signal.h>

#include <rte_cycles.h>

#include "pair.h"

#define SLOTS    32 /* messages in flight */
#define RECEIVES 64
#define SIZE     64u

/* A device, with a QP that sends and one that receives. */
struct path {
	struct pair pair;
	struct rmem_mr *from, *to; /* of messages: SLOTS and RECEIVES */
};

/* Of all messages, from 0 on. */
struct flow {
	uint64_t posted;               /* messages before this one are in flight, or have arrived */
	uint64_t completed;            /* those before this one have arrived */
	uint64_t expected;             /* the next one of the receiver */
	uint64_t nb_again;             /* that arrived twice */
	uint32_t nb_failed;            /* paths that failed */
	uint64_t begin, last, longest; /* TSC: start, last completion, longest time without one */
};

static volatile sig_atomic_t is_over;

static void
stop(int signum)
{
	is_over = signum;
}

static double
seconds(uint64_t cycles)
{
	return (double)cycles / (double)rte_get_tsc_hz();
}

static void
post_receive(const struct path *path, uint64_t slot)
{
	struct rmem_sge sge = {path->to->iova + slot * SIZE, SIZE, path->to->lkey};
	const struct rmem_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	check("rmem_post_recv", rmem_post_recv(path->pair.peer, &wr, 1));
}

static void
path_start(struct path *path)
{
	uint64_t slot;

	pair_connect(&path->pair);
	for (slot = 0; slot < RECEIVES; slot++)
		post_receive(path, slot);
}

static void
path_open(struct path *path, const char *device, const char *args)
{
	pair_open_on(&path->pair, device, args);
	path->from = pair_peer_memory(&path->pair);
	path->to = pair_peer_memory(&path->pair);
	/* Connected by pair_open_on(): receives are all that is missing. */
	check("rmem_qp_reset", rmem_qp_reset(path->pair.qp));
	check("rmem_qp_reset", rmem_qp_reset(path->pair.peer));
	path_start(path);
}

static void
path_close(struct path *path)
{
	check("rmem_mr_dereg", rmem_mr_dereg(path->from));
	check("rmem_mr_dereg", rmem_mr_dereg(path->to));
	pair_close(&path->pair);
}

/* The receiver: each message once, and in order. */
static void
receive(struct path *path, struct flow *flow)
{
	struct rmem_wc wc[SLOTS];
	uint64_t number;
	int i, n;

	n = rmem_poll_cq(path->pair.peer_cq, wc, SLOTS);
	check("rmem_poll_cq", n);
	for (i = 0; i < n; i++) {
		if (wc[i].status != RMEM_WC_SUCCESS)
			continue; /* flushed */
		memcpy(&number, (char *)path->to->addr + wc[i].wr_id * SIZE, sizeof(number));
		if (number > flow->expected)
			rte_exit(EXIT_FAILURE, "message %" PRIu64 " is lost\n", flow->expected);
		flow->nb_again += number < flow->expected;
		flow->expected = RTE_MAX(flow->expected, number + 1);
		post_receive(path, wc[i].wr_id);
	}
}

static void
post(struct path *path, struct flow *flow)
{
	const uint64_t slot = flow->posted % SLOTS;
	struct rmem_sge sge = {path->from->iova + slot * SIZE, SIZE, path->from->lkey};
	const struct rmem_send_wr wr = {.wr_id = flow->posted,
			.opcode = RMEM_WR_SEND,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1};

	memcpy((char *)path->from->addr + slot * SIZE, &flow->posted, sizeof(flow->posted));
	check("rmem_post_send", rmem_post_send(path->pair.qp, &wr, 1));
	flow->posted++;
}

/* Completions of sends; the status of the first that failed, or SUCCESS. */
static uint8_t
complete(struct path *path, struct flow *flow)
{
	struct rmem_wc wc[SLOTS];
	uint64_t now = rte_rdtsc();
	int i, n;

	n = rmem_poll_cq(path->pair.cq, wc, SLOTS);
	check("rmem_poll_cq", n);
	for (i = 0; i < n; i++) {
		if (wc[i].status != RMEM_WC_SUCCESS)
			return wc[i].status;
		flow->completed = wc[i].wr_id + 1;
		flow->longest = RTE_MAX(flow->longest, now - flow->last);
		flow->last = now;
	}
	return RMEM_WC_SUCCESS;
}

/* The path failed: what has arrived is received, and the path is as new. */
static void
fail(struct path *path, const struct path *next, struct flow *flow, uint8_t status)
{
	printf("%.2f s: %s: %s; messages %" PRIu64 " to %" PRIu64 " are sent by %s\n",
			seconds(rte_rdtsc() - flow->begin), path->pair.dev->name,
			rmem_wc_status_str(status), flow->completed, flow->posted - 1,
			next->pair.dev->name);
	fflush(stdout);
	flow->nb_failed++;
	receive(path, flow);
	check("rmem_qp_reset", rmem_qp_reset(path->pair.qp));
	check("rmem_qp_reset", rmem_qp_reset(path->pair.peer));
	path_start(path);
	flow->posted = flow->completed;
}

static void
run(struct path paths[2], struct flow *flow, double limit)
{
	uint32_t active = 0;
	uint8_t status;

	flow->begin = flow->last = rte_rdtsc();
	while (!is_over && seconds(rte_rdtsc() - flow->begin) < limit) {
		while (flow->posted - flow->completed < SLOTS)
			post(&paths[active], flow);
		receive(&paths[active], flow);
		status = complete(&paths[active], flow);
		if (status == RMEM_WC_SUCCESS)
			continue;
		fail(&paths[active], &paths[!active], flow, status);
		active = !active;
	}
}

int
main(int argc, char **argv)
{
	static struct path paths[2];
	struct flow flow = {.posted = 0};
	double limit = 10;
	int n;

	n = rte_eal_init(argc, argv);
	check("rte_eal_init", n);
	if (argc > n + 1)
		limit = strtod(argv[n + 1], NULL);
	signal(SIGINT, stop);
	/* loop=1: the two QPs of a device exchange packets, so that its port matters. */
	path_open(&paths[0], "soft0", "ip=127.0.22.1,loop=1,control=1");
	path_open(&paths[1], "soft1", "ip=127.0.22.2,loop=1,control=1");
	run(paths, &flow, limit);
	printf("%" PRIu64 " messages arrived, none is lost, %" PRIu64 " came twice\n",
			flow.completed, flow.nb_again);
	printf("failovers: %u, longest time without a completion: %.0f ms\n", flow.nb_failed,
			1000 * seconds(flow.longest));
	path_close(&paths[0]);
	path_close(&paths[1]);
	return rte_eal_cleanup();
}
