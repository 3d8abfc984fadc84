/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program for test_findings.py: one wrong use, which its argument names, or none. */

#include <sys/mman.h>

#include "own_qp.h"

#define DEPTH    8
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

static void
post_recv(size_t offset)
{
	struct ibv_sge sge = {(uintptr_t)buf + offset, 128, own.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	HOLDS(ibv_post_recv(own.qp, &wr, &bad) == 0);
}

/* SEND 64 bytes to the QP itself. */
static void
send_own(void)
{
	struct ibv_sge sge = {(uintptr_t)buf, 64, own.mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED};
	int i;

	HOLDS(ibv_post_send(own.qp, &wr, &bad) == 0);
	for (i = 0; i < 2; i++)
		HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
}

static NOINLINE void
correct(void)
{
	HOLDS(post(own.mr->lkey, IBV_SEND_SIGNALED) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	post_recv(1024);
	send_own();
	memset(buf + 1024, 1, 128);
	/* One buffer of two receives has no pattern. */
	post_recv(1024);
	post_recv(1024);
	send_own();
	send_own();
}

static void
close_own(void)
{
	close_objects(&own);
}

/* Memory that is unmapped before its MR is deregistered; not of one for on-demand paging. */
static NOINLINE void
freed(void)
{
	void *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(own.pd, pages, 8192, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *paged = ibv_reg_mr(own.pd, pages, 8192, IBV_ACCESS_ON_DEMAND);

	HOLDS(pages != MAP_FAILED && mr != NULL && paged != NULL && munmap(pages, 8192) == 0);
	HOLDS(ibv_dereg_mr(paged) == 0 && ibv_dereg_mr(mr) == 0);
}

static NOINLINE void
recv_written(void)
{
	post_recv(1024);
	buf[1024 + 127] = 1;
	send_own();
}

/* The answer is made of a message that has not arrived. */
static NOINLINE void
poison(void)
{
	post_recv(1024);
	memcpy(buf, buf + 1024, 64);
	send_own();
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

/* A CQ of which no completion is polled. */
static NOINLINE void
unpolled(void)
{
	struct objects mine = open_objects(buf, sizeof(buf), DEPTH);

	HOLDS(post_write(mine.qp, mine.mr, 0) == 0);
	close_objects(&mine);
}

/* Posts to a QP that is in ERR; the first one is not signaled, and fails. */
static NOINLINE void
dead(void)
{
	uint64_t begin;
	int i;

	HOLDS(post(own.mr->lkey ^ 1, 0) == 0);
	/* As long as a request is in flight for a shorter time, it may be in progress. */
	begin = now_ns();
	while (now_ns() - begin < 2000000)
		;
	for (i = 0; i < DEPTH - 1; i++)
		HOLDS(post(own.mr->lkey, IBV_SEND_SIGNALED) == 0);
}

/* At exit, the event of a CQ is not acknowledged. */
static NOINLINE void
event(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(own.context);
	struct ibv_cq *of, *cq = ibv_create_cq(own.context, 4, NULL, channel, 0);
	struct ibv_qp *qp = create_rc(own.pd, cq, DEPTH);
	void *arg;

	HOLDS(qp != NULL && ibv_req_notify_cq(cq, 0) == 0);
	connect_own(qp);
	HOLDS(post_write(qp, own.mr, 0) == 0 && ibv_get_cq_event(channel, &of, &arg) == 0);
	HOLDS(of == cq && wait_wc(cq).status == IBV_WC_SUCCESS);
	puts("end");
	exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} uses[] = {
		{"correct", correct},
		{"dead", dead},
		{"event", event},
		{"freed", freed},
		{"full", full},
		{"key", key},
		{"leak", leak},
		{"poison", poison},
		{"recv_written", recv_written},
		{"unpolled", unpolled},
};

int
main(int argc, char **argv)
{
	size_t i;

	HOLDS(argc == 2);
	/* Registered before the first use of a device, and called after functions of the device. */
	if (strcmp(argv[1], "correct") == 0)
		HOLDS(atexit(close_own) == 0);
	own = open_objects(buf, sizeof(buf), DEPTH);
	for (i = 0; strcmp(uses[i].name, argv[1]) != 0; i++)
		HOLDS(i + 1 < sizeof(uses) / sizeof(uses[0]));
	uses[i].run();
	if (strcmp(argv[1], "correct") != 0)
		close_own();
	puts("end");
	return 0;
}
