/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program that polls an empty CQ: a poll that yields the CPU finds what the peer, which may
 * have got it, sends concurrently. */

#include <sys/syscall.h>

#include "own_qp.h"

#define NB        10
#define MAX_POLLS 1000000

/* A QP, connected to another, with a CQ of its own. */
static struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
} sides[2];

static __thread bool is_waiting; /* the peer sends when this thread yields */

int
sched_yield(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad_wr;

	if (!is_waiting)
		return (int)syscall(SYS_sched_yield);
	is_waiting = false;
	HOLDS(ibv_post_send(sides[1].qp, &wr, &bad_wr) == 0);
	return 0;
}

static void
create_side(struct side *side, struct ibv_context *context, struct ibv_pd *pd)
{
	side->cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	HOLDS(side->cq != NULL);
	side->qp = create_rc(pd, side->cq, NB);
	HOLDS(side->qp != NULL);
}

/* Poll until the peer has sent. */
static void
receive(void)
{
	struct ibv_recv_wr wr = {0}, *bad_wr;
	struct ibv_wc wc;
	int n, i = 0;

	HOLDS(ibv_post_recv(sides[0].qp, &wr, &bad_wr) == 0);
	is_waiting = true;
	do
		n = ibv_poll_cq(sides[0].cq, 1, &wc);
	while (is_waiting && n == 0 && ++i < MAX_POLLS);
	HOLDS(!is_waiting && n == 1 && wc.status == IBV_WC_SUCCESS);
}

int
main(void)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	int i;

	HOLDS(pd != NULL);
	for (i = 0; i < 2; i++)
		create_side(&sides[i], context, pd);
	for (i = 0; i < 2; i++)
		connect_qp(sides[i].qp,
				(struct ibv_qp_attr){.path_mtu = IBV_MTU_1024,
						.dest_qp_num = sides[1 - i].qp->qp_num});
	for (i = 0; i < NB; i++)
		receive();
	for (i = 0; i < 2; i++) {
		HOLDS(ibv_destroy_qp(sides[i].qp) == 0);
		HOLDS(ibv_destroy_cq(sides[i].cq) == 0);
	}
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	return 0;
}
