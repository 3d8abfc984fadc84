/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A program that has received messages, and exits without destroying its QPs, acknowledges them
 * first, although its peer reads later: the ring has no space for all acknowledgements.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "own_qp.h"

#define NB_QPS  200 /* the ring has 128 packets */
#define BATCH   100 /* fits in the ring of the messages */
#define ROUNDS  10
#define SLOW_NS UINT64_C(250000000) /* half of what exit() waits */

struct place {
	uint16_t lid;
	uint32_t qpns[NB_QPS];
};

struct end {
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_qp *qps[NB_QPS];
	int fd;
};

static uint64_t *exit_at; /* ns, shared by both processes */

static void
send_all(int fd, const void *data, size_t size)
{
	HOLDS(send(fd, data, size, 0) == (ssize_t)size);
}

static void
recv_all(int fd, void *data, size_t size)
{
	HOLDS(recv(fd, data, size, MSG_WAITALL) == (ssize_t)size);
}

/* Open a device, and connect its QPs with those of the other process. */
static void
open_end(struct end *end, const char *args, int fd)
{
	const struct ibv_qp_attr conn = {
			.path_mtu = IBV_MTU_256, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	struct ibv_recv_wr *bad, recv = {.num_sge = 0};
	struct place own, peer;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	struct ibv_pd *pd;
	uint32_t i;

	HOLDS(setenv("RMEM_IBV", args, 1) == 0);
	end->fd = fd;
	end->context = open_device("soft0");
	pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 2 * NB_QPS, NULL, NULL, 0);
	HOLDS(pd != NULL && end->cq != NULL && ibv_query_port(end->context, 1, &port) == 0);
	own.lid = port.lid;
	for (i = 0; i < NB_QPS; i++) {
		end->qps[i] = create_rc(pd, end->cq, 1);
		HOLDS(end->qps[i] != NULL);
		own.qpns[i] = end->qps[i]->qp_num;
	}
	send_all(fd, &own, sizeof(own));
	recv_all(fd, &peer, sizeof(peer));
	for (i = 0; i < NB_QPS; i++) {
		attr = conn;
		attr.dest_qp_num = peer.qpns[i];
		connect_qp_at(end->qps[i], attr, peer.lid);
		HOLDS(ibv_post_recv(end->qps[i], &recv, &bad) == 0);
	}
	send_all(fd, "", 1);
	recv_all(fd, &own, 1);
}

/* Receive the messages, and end with acknowledgements that wait for space. */
static int
receive_and_exit(int fd)
{
	struct end end;
	uint32_t i;

	open_end(&end, "soft0,ip=host", fd);
	for (i = 1; i <= NB_QPS; i++) {
		HOLDS(wait_wc(end.cq).status == IBV_WC_SUCCESS);
		if (i == NB_QPS)
			__atomic_store_n(exit_at, now_ns(), __ATOMIC_RELAXED);
		if (i % BATCH == 0)
			send_all(fd, "", 1);
	}
	return 0;
}

/* Send the messages, and poll when all have arrived. False: this process was too slow. */
static bool
send_to_exiting(int fd)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	uint32_t i, nb_failed = 0;
	struct end end;
	bool is_slow;
	char byte;

	open_end(&end, "soft0,ip=host,progress=poll", fd);
	for (i = 0; i < NB_QPS; i++) {
		if (i == BATCH)
			recv_all(fd, &byte, 1);
		HOLDS(ibv_post_send(end.qps[i], &wr, &bad) == 0);
	}
	recv_all(fd, &byte, 1);
	nb_failed += wait_wc(end.cq).status != IBV_WC_SUCCESS;
	is_slow = now_ns() - __atomic_load_n(exit_at, __ATOMIC_RELAXED) > SLOW_NS;
	for (i = 1; i < NB_QPS; i++)
		nb_failed += wait_wc(end.cq).status != IBV_WC_SUCCESS;
	printf("%u of %d failed%s\n", nb_failed, NB_QPS, is_slow ? ", slow" : "");
	HOLDS(nb_failed == 0 || is_slow);
	return !is_slow;
}

/* One round, in processes of its own; the exit status of the sender. */
static int
round_of(void)
{
	int fds[2], status;
	pid_t sender, receiver;

	HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	receiver = fork();
	if (receiver == 0)
		exit(receive_and_exit(fds[0]));
	sender = fork();
	if (sender == 0)
		exit(send_to_exiting(fds[1]) ? 0 : 77);
	close(fds[0]);
	close(fds[1]);
	HOLDS(sender > 0 && waitpid(receiver, &status, 0) == receiver && status == 0);
	HOLDS(waitpid(sender, &status, 0) == sender && WIFEXITED(status));
	return WEXITSTATUS(status);
}

int
main(void)
{
	int i, status = 77;

	exit_at = mmap(NULL, sizeof(*exit_at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	HOLDS(exit_at != MAP_FAILED);
	for (i = 0; i < ROUNDS && status == 77; i++)
		status = round_of();
	return status;
}
