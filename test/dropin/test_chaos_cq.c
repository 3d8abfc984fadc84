/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A QP is destroyed or reset while rules of chaos= delay completions: no poll returns one of that
 * QP any more, and those of another QP of the CQ are not lost.
 */

#include "own_qp.h"

#define DEPTH 8
/* More than the rules' polls. */
#define NB_POLLS 1000

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct ibv_qp *
open_qp(void)
{
	struct ibv_qp *qp = create_rc(pd, cq, DEPTH);

	HOLDS(qp != NULL);
	connect_own(qp);
	return qp;
}

/* Send empty messages to the QP itself, which have arrived when this returns. */
static void
send_own(struct ibv_qp *qp, unsigned int nb)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1};

	for (; nb != 0; nb--) {
		HOLDS(ibv_post_recv(qp, &recv, &bad_recv) == 0);
		HOLDS(ibv_post_send(qp, &wr, &bad) == 0);
	}
}

/* Poll often; return the number of completions, which are all of that QP. */
static unsigned int
nb_polled(uint32_t qp_num)
{
	unsigned int i, nb = 0;
	struct ibv_wc wc;

	for (i = 0; i < NB_POLLS; i++) {
		int n = ibv_poll_cq(cq, 1, &wc);

		HOLDS(n >= 0);
		HOLDS(n == 0 || (wc.qp_num == qp_num && wc.status == IBV_WC_SUCCESS));
		nb += (unsigned int)n;
	}
	return nb;
}

static void
run(const char *name, bool is_destroyed)
{
	struct ibv_context *context = open_device(name);
	struct ibv_qp *qp, *other;
	struct ibv_wc wc;

	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0);
	HOLDS(pd != NULL && cq != NULL);
	qp = open_qp();
	other = open_qp();
	send_own(qp, 2);
	send_own(other, 1);
	send_own(qp, 1);
	/* A completion of the QP, which may be the second one, is delayed from here on. */
	HOLDS(ibv_poll_cq(cq, 1, &wc) == 0 || wc.qp_num == qp->qp_num);
	if (is_destroyed)
		HOLDS(ibv_destroy_qp(qp) == 0);
	else
		reset_qp(qp);
	HOLDS(nb_polled(other->qp_num) == 2);
	HOLDS(is_destroyed || ibv_destroy_qp(qp) == 0);
	send_own(other, 1);
	HOLDS(nb_polled(other->qp_num) == 2);
	HOLDS(ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
}

int
main(void)
{
	static const char *const names[] = {"soft0", "soft1", "soft2"};
	size_t i;

	HOLDS(setenv("RMEM_IBV",
			      "soft0,chaos=recv:LATE@polls:50|soft1,chaos=cq:LATE@polls:50|"
			      "soft2,chaos=cq:REORDER@polls:50",
			      1) == 0);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		run(names[i], true);
		run(names[i], false);
	}
	return 0;
}
