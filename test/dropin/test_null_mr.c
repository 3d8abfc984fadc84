/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Null MRs of verbs programs: made, read, released and not changed. Receives and peers are cases of
 * conformance.
 */

#include "own_qp.h"

#define SIZE 65536

static uint8_t mem[SIZE];
static struct objects own;
static struct ibv_mr *null;

static bool
is_filled(const uint8_t *from, size_t length, uint8_t value)
{
	size_t i;

	for (i = 0; i < length && from[i] == value; i++)
		;
	return i == length;
}

static void
write_of_it_is_zero(uint32_t length)
{
	const struct ibv_sge sge = {7, length, null->lkey};

	memset(mem, 0xa5, SIZE);
	HOLDS(write_to(own.qp, sge, (uintptr_t)mem, own.mr->rkey) == IBV_WC_SUCCESS);
	HOLDS(is_filled(mem, length, 0) && is_filled(mem + length, SIZE - length, 0xa5));
}

static void
cannot_be_changed(void)
{
	HOLDS(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0);
	HOLDS(errno == EINVAL);
}

int
main(void)
{
	static const uint32_t lengths[] = {1, 64, 3000, 20000, SIZE / 2};
	size_t i;

	own = open_objects(mem, sizeof(mem), 4);
	null = ibv_alloc_null_mr(own.pd);
	HOLDS(null != NULL && null->addr == NULL);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		write_of_it_is_zero(lengths[i]);
	HOLDS(ibv_dereg_mr(null) == 0);
	HOLDS(ibv_dereg_mr(null) == ENOENT);
	null = ibv_alloc_null_mr(own.pd);
	HOLDS(null != NULL);
	cannot_be_changed();
	HOLDS(ibv_dereg_mr(null) == 0);
	close_objects(&own);
	return 0;
}
