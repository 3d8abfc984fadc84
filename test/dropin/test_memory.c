/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Registered memory of a verbs program stays its own: it is discarded and unmapped as any other. */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connect_qp.h"
#include "open_device.h"
#include "wait_wc.h"

#define PAGE   4096
#define SIZE   (4 * PAGE)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr, *from_mr;
static uint8_t from[64];
static uint8_t *mem;

/* A new QP writes to the second page; the status. */
static enum ibv_wc_status
write_there(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
			.send_cq = cq,
			.recv_cq = cq,
			.cap = {1, 1, 1, 1, 0}};
	struct ibv_sge sge = {(uintptr_t)from, sizeof(from), from_mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_wc wc;

	HOLDS(qp != NULL);
	connect_own(qp);
	wr.wr.rdma.remote_addr = (uintptr_t)mem + PAGE;
	wr.wr.rdma.rkey = mr->rkey;
	HOLDS(ibv_post_send(qp, &wr, &bad) == 0);
	wc = wait_wc(cq);
	HOLDS(ibv_destroy_qp(qp) == 0);
	return wc.status;
}

static void
discard(int advice)
{
	memset(mem, 1, SIZE);
	HOLDS(madvise(mem, SIZE, advice) == 0);
	HOLDS(write_there() == IBV_WC_SUCCESS);
	HOLDS(mem[PAGE] == 2 && mem[PAGE + 63] == 2);
	HOLDS(advice != MADV_DONTNEED || mem[PAGE + 64] == 0);
}

static void
fork_it(void)
{
	int status = -1;
	pid_t pid = fork();
	bool is_ok;

	if (pid == 0) {
		is_ok = madvise(mem, SIZE, MADV_DONTNEED) == 0 && munmap(mem, SIZE) == 0;
		_exit(is_ok ? 0 : 1);
	}
	HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	HOLDS(write_there() == IBV_WC_SUCCESS && mem[PAGE] == 2);
}

int
main(void)
{
	struct ibv_context *context = open_device("soft0");

	memset(from, 2, sizeof(from));
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	HOLDS(pd != NULL && cq != NULL);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HOLDS(mem != MAP_FAILED);
	from_mr = ibv_reg_mr(pd, from, sizeof(from), 0);
	mr = ibv_reg_mr(pd, mem, SIZE, ACCESS);
	HOLDS(from_mr != NULL && mr != NULL);
	discard(MADV_DONTNEED);
	discard(MADV_FREE);
	fork_it();
	HOLDS(mmap(mem, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			      0) == mem);
	HOLDS(write_there() == IBV_WC_SUCCESS && mem[PAGE] == 2);
	HOLDS(munmap(mem + PAGE, PAGE) == 0);
	HOLDS(write_there() == IBV_WC_REM_ACCESS_ERR);
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(from_mr) == 0);
	printf("ok\n");
	return 0;
}
