/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program for test_findings.py: one wrong use, which its argument names, or none. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "own_qp.h"

#define DEPTH    4
#define NOINLINE __attribute__((noinline)) /* a function of its own in the stacks */

static uint8_t buf[4096];
static struct objects own;

static int
post(uint32_t lkey, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)buf, 64, lkey};
	struct ibv_send_wr *bad,
			wr = {.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = flags,
					.wr.rdma = {(uintptr_t)buf + 2048, own.mr->rkey}};

	return ibv_post_send(own.qp, &wr, &bad);
}

static NOINLINE void
correct(void)
{
	HOLDS(post(own.mr->lkey, IBV_SEND_SIGNALED) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
}

/* A context, and two PDs of one place. */
static NOINLINE void
leak(void)
{
	struct ibv_context *context = open_device("soft0");
	volatile int i;

	for (i = 0; i < 2; i++)
		HOLDS(ibv_alloc_pd(context) != NULL);
}

static NOINLINE void
full(void)
{
	int i;

	for (i = 0; i < DEPTH; i++)
		HOLDS(post(own.mr->lkey, 0) == 0);
	HOLDS(post(own.mr->lkey, 0) == ENOMEM);
}

static NOINLINE void
key(void)
{
	HOLDS(post(own.mr->lkey ^ 1, IBV_SEND_SIGNALED) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_LOC_PROT_ERR);
}

static const struct {
	const char *name;
	void (*run)(void);
} uses[] = {
		{"correct", correct},
		{"full", full},
		{"key", key},
		{"leak", leak},
};

int
main(int argc, char **argv)
{
	size_t i;

	HOLDS(argc == 2);
	own = open_objects(buf, sizeof(buf), DEPTH);
	for (i = 0; strcmp(uses[i].name, argv[1]) != 0; i++)
		HOLDS(i + 1 < sizeof(uses) / sizeof(uses[0]));
	uses[i].run();
	close_objects(&own);
	puts("end");
	return 0;
}
