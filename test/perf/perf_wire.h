/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/** @file Throughput between two devices with a wire, each polled by an lcore of its own. */

#ifndef PERF_WIRE_H
#define PERF_WIRE_H

#include "perf_row.h"

#define PERF_WIRE_BURST 16u

struct wire_job {
	struct perf_pair pair;
	struct rmem_mr *src;
	struct rmem_mr *dst;
	uint32_t size;
	uint32_t nb_bursts;
	uint8_t opcode;
	unsigned int lcore;
	uint32_t stop; /* atomic */
	int failure;   /* of the receiving lcore */
	struct rmem_sge sge[PERF_WIRE_BURST];
	struct rmem_send_wr wr[PERF_WIRE_BURST];
	struct rmem_sge recv_sge;
	struct rmem_recv_wr recv[PERF_WIRE_BURST];

	int sockets[2]; /* from, to */
	uint32_t packet;
	uint64_t received; /* atomic */
};

/* Two devices with a wire, a connected pair of QPs, memory and requests. */
void perf_wire_open(struct wire_job *job, const char *args, const char *args_b);

/* Compare the rates, report them, and close. */
void perf_wire_report(struct wire_job *job, perf_func_t yardstick, struct perf_row *row);

#endif /* PERF_WIRE_H */
