/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared by perf tests of two processes; see perf_two.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "perf_two.h"
#include "test.h"

#define FD_NAME "RMEM_PERF_TWO_FD"

/* In the child, whose end of the socket is fd: become the second process. */
static void
exec_second(const char *test, int cpu, int fd)
{
	char lcores[32], number[16];

	snprintf(lcores, sizeof(lcores), "0@%d", cpu);
	snprintf(number, sizeof(number), "%d", fd);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setenv("DPDK_TEST", test, 1) != 0 || setenv(FD_NAME, number, 1) != 0)
		_exit(EXIT_FAILURE);
	if (rte_eal_has_hugepages())
		execl("/proc/self/exe", "perf", "--no-pci", "--no-telemetry",
				"--log-level=lib.eal:error", "--lcores", lcores, "--in-memory",
				NULL);
	else
		execl("/proc/self/exe", "perf", "--no-pci", "--no-telemetry",
				"--log-level=lib.eal:error", "--lcores", lcores, "--no-huge", "-m",
				"256", "--no-shconf", NULL);
	_exit(EXIT_FAILURE);
}

static void
start_second(struct perf_two *two, const char *test)
{
	int fds[2], cpu = rte_lcore_to_cpu_id((int)rte_get_next_lcore(-1, 1, 0));

	TEST_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	fflush(stdout);
	two->child = fork();
	TEST_ASSERT(two->child >= 0);
	if (two->child == 0) {
		close(fds[0]);
		exec_second(test, cpu, fds[1]);
	}
	close(fds[1]);
	two->fd = fds[0];
}

static void
open_qp(struct perf_two *two, const char *args)
{
	struct perf_pair *pair = &two->pair;

	perf_dev_open(args, &pair->dev);
	TEST_OK(rmem_pd_alloc(pair->dev, &pair->pd));
	perf_qp_open(pair->dev, pair->pd, &pair->cq_a, &pair->a);
}

void
perf_two_open(struct perf_two *two, const char *test, const char *args)
{
	start_second(two, test);
	open_qp(two, args);
}

void
perf_two_join(struct perf_two *two, const char *args)
{
	const char *number = getenv(FD_NAME);

	TEST_ASSERT(number != NULL);
	two->fd = (int)strtol(number, NULL, 10);
	two->child = 0;
	open_qp(two, args);
}

void
perf_two_connect(struct perf_two *two, const struct rmem_mr *mr)
{
	struct perf_two_side side = {0};
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_query(two->pair.a, &attr));
	side.addr = attr.addr;
	if (mr != NULL) {
		side.iova = mr->iova;
		side.rkey = mr->rkey;
	}
	TEST_EQ(send(two->fd, &side, sizeof(side), MSG_NOSIGNAL), sizeof(side));
	TEST_EQ(recv(two->fd, &two->peer, sizeof(two->peer), 0), sizeof(two->peer));
	perf_qp_connect(two->pair.a, &two->peer.addr);
}

int
perf_two_send(struct perf_two *two, char byte)
{
	return send(two->fd, &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int
perf_two_recv(struct perf_two *two)
{
	char byte;

	return recv(two->fd, &byte, 1, 0) == 1 ? byte : -1;
}

bool
perf_two_is_called(const struct perf_two *two)
{
	struct pollfd fd = {.fd = two->fd, .events = POLLIN};

	return poll(&fd, 1, 0) != 0;
}

void
perf_two_close(struct perf_two *two)
{
	int status = 0;

	close(two->fd);
	TEST_OK(rmem_qp_destroy(two->pair.a));
	TEST_OK(rmem_cq_destroy(two->pair.cq_a));
	TEST_OK(rmem_pd_dealloc(two->pair.pd));
	TEST_OK(rmem_dev_close(two->pair.dev));
	if (two->child == 0)
		return;
	TEST_EQ(waitpid(two->child, &status, 0), two->child);
	TEST_EQ(status, 0);
}
