/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * An allocator that gives registered memory back to the kernel: buffers are freed while they are
 * registered, memory of calloc() is zero, and a WRITE to the next buffer arrives. Run by
 * devtools/gallery.sh with allocators that purge at once.
 */

#include "own_qp.h"

#define SIZE   ((size_t)1 << 20)
#define ROUNDS 32

static struct objects own;

static void
expect_zero(const uint8_t *bytes)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		HOLDS(bytes[i] == 0);
}

static void
copy(uint8_t *to, uint8_t *from)
{
	struct ibv_mr *mr = ibv_reg_mr(own.pd, to, SIZE, WRITABLE),
		      *of_from = ibv_reg_mr(own.pd, from, SIZE, 0);

	HOLDS(mr != NULL && of_from != NULL);
	HOLDS(write_to(own.qp, (struct ibv_sge){(uintptr_t)from, SIZE, of_from->lkey},
			      (uintptr_t)to, mr->rkey) == IBV_WC_SUCCESS);
	HOLDS(memcmp(to, from, SIZE) == 0);
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(of_from) == 0);
}

int
main(void)
{
	struct ibv_mr *mr;
	uint8_t *old, *new, *from = malloc(SIZE);
	int i;

	HOLDS(from != NULL);
	own = open_objects(&own, sizeof(own), 1);
	for (i = 0; i < ROUNDS; i++) {
		old = malloc(SIZE);
		HOLDS(old != NULL);
		memset(old, 0xff, SIZE);
		mr = ibv_reg_mr(own.pd, old, SIZE, WRITABLE);
		HOLDS(mr != NULL);
		free(old);
		new = calloc(1, SIZE);
		HOLDS(new != NULL);
		expect_zero(new);
		HOLDS(ibv_dereg_mr(mr) == 0);
		memset(from, i + 1, SIZE);
		copy(new, from);
		free(new);
	}
	close_objects(&own);
	free(from);
	return 0;
}
