/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Null MRs of verbs programs: zeros and discarded bytes, in packets and in direct copies. */

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

/* The middle of a message is discarded. */
static void
receive_skips(uint32_t length)
{
	const uint32_t part = length / 3;
	struct ibv_sge in = {(uintptr_t)mem, 3 * part, own.mr->lkey};
	struct ibv_sge out[2] = {{0, 2 * part, null->lkey},
			{(uintptr_t)mem + SIZE - part, part, own.mr->lkey}};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = out, .num_sge = 2};
	struct ibv_send_wr *bad,
			wr = {.opcode = IBV_WR_SEND,
					.sg_list = &in,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED};
	uint32_t i;

	memset(mem, 0, SIZE);
	for (i = 0; i < 3; i++)
		memset(mem + i * part, 'a' + (int)i, part);
	HOLDS(ibv_post_recv(own.qp, &recv, &bad_recv) == 0);
	HOLDS(ibv_post_send(own.qp, &wr, &bad) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	HOLDS(is_filled(mem + SIZE - part, part, 'c') && is_filled(mem, part, 'a'));
}

static void
has_no_rkey(void)
{
	const struct ibv_sge sge = {(uintptr_t)mem, 64, own.mr->lkey};

	HOLDS(write_to(own.qp, sge, 0, null->rkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(own.qp);
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
	HOLDS(ibv_destroy_qp(own.qp) == 0);
	own.qp = create_qp_of(IBV_QPT_RC, own.pd, own.cq, NULL, (struct ibv_qp_cap){4, 4, 2, 2, 0});
	null = ibv_alloc_null_mr(own.pd);
	HOLDS(own.qp != NULL && null != NULL && null->addr == NULL);
	connect_own(own.qp);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		write_of_it_is_zero(lengths[i]);
		receive_skips(lengths[i] + 3);
	}
	has_no_rkey();
	HOLDS(ibv_dereg_mr(null) == 0);
	HOLDS(ibv_dereg_mr(null) == ENOENT);
	null = ibv_alloc_null_mr(own.pd);
	HOLDS(null != NULL);
	cannot_be_changed();
	HOLDS(ibv_dereg_mr(null) == 0);
	close_objects(&own);
	return 0;
}
