/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Registered memory of a verbs program stays its own: it is discarded and unmapped as any other. */

#include <sys/mman.h>

#include "own_qp.h"

#define PAGE 4096
#define SIZE (4 * PAGE)

static struct objects own; /* its memory is from */
static struct ibv_mr *mr;
static uint8_t from[64];
static uint8_t *mem;

/* A new QP writes to the second page; the status. */
static enum ibv_wc_status
write_there(void)
{
	struct ibv_qp *qp = create_rc(own.pd, own.cq, 1);
	enum ibv_wc_status status;

	HOLDS(qp != NULL);
	connect_own(qp);
	status = write_to(qp, (struct ibv_sge){(uintptr_t)from, sizeof(from), own.mr->lkey},
			(uintptr_t)mem + PAGE, mr->rkey);
	HOLDS(ibv_destroy_qp(qp) == 0);
	return status;
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
	pid_t pid = fork();
	bool is_ok;

	if (pid == 0) {
		is_ok = madvise(mem, SIZE, MADV_DONTNEED) == 0 && munmap(mem, SIZE) == 0;
		_exit(is_ok ? 0 : 1);
	}
	wait_child(pid);
	HOLDS(write_there() == IBV_WC_SUCCESS && mem[PAGE] == 2);
}

int
main(void)
{
	memset(from, 2, sizeof(from));
	own = open_objects(from, sizeof(from), 1);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HOLDS(mem != MAP_FAILED);
	mr = ibv_reg_mr(own.pd, mem, SIZE, WRITABLE);
	HOLDS(mr != NULL);
	discard(MADV_DONTNEED);
	discard(MADV_FREE);
	fork_it();
	HOLDS(mmap(mem, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			      0) == mem);
	HOLDS(write_there() == IBV_WC_SUCCESS && mem[PAGE] == 2);
	HOLDS(munmap(mem + PAGE, PAGE) == 0);
	HOLDS(write_there() == IBV_WC_REM_ACCESS_ERR);
	HOLDS(ibv_dereg_mr(mr) == 0);
	printf("ok\n");
	return 0;
}
