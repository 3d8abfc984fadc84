/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by perf tests of two processes: each has a device and a QP, connected to that of the
 * other.
 *
 * The second process is this program with another test, on the CPU of the second lcore, and ends
 * with the first one. Single bytes on a socket start and end its rounds, so that it uses no CPU
 * while the baseline is measured.
 */

#ifndef PERF_TWO_H
#define PERF_TWO_H

#include <stdbool.h>
#include <sys/types.h>

#include "perf_row.h"

#define PERF_TWO_GO   'g' /* to the second process: a round starts */
#define PERF_TWO_STOP 's' /* to it: the round ends, if it does not end by itself */
#define PERF_TWO_DONE 'd' /* from it */

/* Sent by each process to the other. */
struct perf_two_side {
	struct rmem_qp_addr addr;
	uint64_t iova; /* of memory that the other may access */
	uint32_t rkey;
};

struct perf_two {
	struct perf_pair pair; /* dev, pd, cq_a, a */
	struct perf_two_side peer;
	int fd;
	pid_t child; /* 0: this is the second process */
};

/* Start the second process, and create the device and the QP of the first one. */
void perf_two_open(struct perf_two *two, const char *test, const char *args);

/* The same in the second process. */
void perf_two_join(struct perf_two *two, const char *args);

/* In both: exchange addresses and keys, mr may be NULL, and connect. */
void perf_two_connect(struct perf_two *two, const struct rmem_mr *mr);

int perf_two_send(struct perf_two *two, char byte);
/* Wait for a byte; -1: the other process has ended. */
int perf_two_recv(struct perf_two *two);
/* Whether a byte, or the end of the other process, waits. */
bool perf_two_is_called(const struct perf_two *two);

/* Close; in the first process, await the success of the second one. */
void perf_two_close(struct perf_two *two);

#endif /* PERF_TWO_H */
