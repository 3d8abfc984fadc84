/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A CQ to which a claimed QP completes, and a QP of the primary: the process polls the completions
 * of both, and messages to the other QP are in memory that only the primary has mapped; see mp.h.
 */

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mp.h"
#include "rc.h"

#define LENGTH  16u  /* of a message, which fits in a completion */
#define LONG    128u /* of one that does not */
#define NB_LEFT 5u   /* completions that a process did not poll */

/* A QP of the primary that completes to the CQ of the claimed QP, and its peer. */
static struct {
	struct rmem_qp *qp, *peer;
	struct rmem_mr *mr; /* a page of the primary alone */
} own;

void
mp_cq_role(struct mp_shared *sh)
{
	struct rmem_dev *dev;
	struct rmem_wc wc;
	uint32_t i;

	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	/* A message in the CQ would be copied by the poll. */
	for (i = 1; i <= 2; i++) {
		TEST_ERR(rmem_qp_claim(sh->qp), EBUSY);
		__atomic_store_n(&sh->progress, i, __ATOMIC_RELEASE);
		while (__atomic_load_n(&sh->is_going, __ATOMIC_ACQUIRE) != i)
			sched_yield();
	}
	TEST_OK(rmem_qp_claim(sh->qp));
	__atomic_store_n(&sh->progress, 3, __ATOMIC_RELEASE);
	TEST_EQ(rc_wait(sh->qp->recv_cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.wr_id, 2);
	TEST_EQ(wc.byte_len, LENGTH);
	TEST_OK(rmem_dev_detach(dev));
}

/* Another process polls the CQ of the other QP. */
void
mp_cq_other(struct mp_shared *sh)
{
	struct rmem_dev *dev;
	struct rmem_qp *qp;

	RTE_SET_USED(sh);
	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	TEST_OK(rmem_qp_lookup(dev, "cq-own", &qp));
	TEST_ERR(rmem_qp_claim(qp), EBUSY);
	TEST_OK(rmem_dev_detach(dev));
}

/* Leave completions in the CQ. */
void
mp_cq_leave(struct mp_shared *sh)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr = mp_write_wr(sh, &sge, 8);

	mp_attach(sh);
	for (wr.wr_id = 0; wr.wr_id < NB_LEFT; wr.wr_id++)
		TEST_EQ(rmem_post_send(sh->qp, &wr, 1), 1);
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* A resize keeps them, after the process has been killed. */
static void
run_left(struct mp_shared *sh)
{
	struct rmem_cq *cq = sh->qp->send_cq;
	struct rmem_cq_stats stats = {0};
	struct rmem_wc wc;
	int pid, status;
	uint64_t i;

	mp_spawn(sh, "cq_left", 0, &pid);
	mp_wait_for(sh, pid, 1, true);
	while (stats.outstanding < NB_LEFT) {
		mp_serve(sh);
		TEST_OK(rmem_cq_stats_get(cq, &stats));
	}
	TEST_ERR(rmem_cq_resize(cq, 8 * MP_DEPTH), EBUSY);
	TEST_OK(kill(pid, SIGKILL));
	TEST_EQ(waitpid(pid, &status, 0), pid);
	while (__atomic_load_n(&sh->qp->obj.process, __ATOMIC_ACQUIRE) != 0)
		sched_yield();
	TEST_ERR(rmem_cq_resize(cq, NB_LEFT - 1), EINVAL);
	TEST_OK(rmem_cq_resize(cq, NB_LEFT));
	TEST_OK(rmem_cq_resize(cq, 8 * MP_DEPTH));
	for (i = 0; i < NB_LEFT; i++) {
		TEST_EQ(rmem_poll_cq(cq, &wc, 1), 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		TEST_EQ(wc.wr_id, i);
	}
	TEST_EQ(rmem_poll_cq(cq, &wc, 1), 0);
	TEST_OK(rmem_cq_resize(cq, 4 * MP_DEPTH));
	mp_check_reaped(sh, true);
}

static void
send_own(struct mp_shared *sh, uint64_t wr_id, uint32_t length)
{
	struct rmem_sge to = {
			.addr = (uintptr_t)own.mr->addr, .length = length, .lkey = own.mr->lkey};
	struct rmem_sge from = {.addr = (uintptr_t)&sh->buf[MP_PEER * MP_PART],
			.length = length,
			.lkey = sh->mr->lkey};
	const struct rmem_recv_wr recv = {.wr_id = wr_id, .sg_list = &to, .num_sge = 1};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &from);
	struct rmem_wc wc;

	memset(&sh->buf[MP_PEER * MP_PART], (int)wr_id, length);
	TEST_EQ(rmem_post_recv(own.qp, &recv, 1), 1);
	TEST_EQ(rmem_post_send(own.peer, &wr, 1), 1);
	TEST_EQ(rc_wait(sh->peer_cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
}

static void
run_shared(struct mp_shared *sh)
{
	struct rmem_wc wc;
	int pid, status;
	unsigned int i;

	send_own(sh, 1, LENGTH);
	mp_spawn(sh, "cq", 0, &pid);
	mp_wait_for(sh, pid, 1, true);
	/* It delivers the message before it, whose completion remains as it is. */
	send_own(sh, 1, LONG);
	__atomic_store_n(&sh->is_going, 1, __ATOMIC_RELEASE);
	mp_wait_for(sh, pid, 2, true);
	for (i = 0; i < 2; i++) {
		TEST_EQ(rc_wait(sh->qp->recv_cq, &wc), 1);
		TEST_EQ(wc.wr_id, 1);
	}
	__atomic_store_n(&sh->is_going, 2, __ATOMIC_RELEASE);
	mp_wait_for(sh, pid, 3, true);
	mp_run_role(sh, "cq_other");
	send_own(sh, 2, LENGTH);
	TEST_MEM(own.mr->addr, &sh->buf[MP_PEER * MP_PART], LENGTH);
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_EQ(status, 0);
}

void
mp_cq_run(struct mp_shared *sh)
{
	void *mem = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT(mem != MAP_FAILED);
	TEST_OK(rmem_mr_reg(sh->mr->pd, mem, LONG, 0, RMEM_ACCESS_LOCAL_WRITE, &own.mr));
	mp_make_qp(sh->mr->pd, "cq-own", sh->qp->recv_cq, 0, &own.qp);
	mp_make_qp(sh->mr->pd, "cq-peer", sh->peer_cq, 0, &own.peer);
	mp_connect_two(own.qp, own.peer);
	run_shared(sh);
	TEST_OK(rmem_qp_destroy(own.qp));
	TEST_OK(rmem_qp_destroy(own.peer));
	TEST_OK(rmem_mr_dereg(own.mr));
	TEST_OK(munmap(mem, LONG));
	mp_check_reaped(sh, true);
	run_left(sh);
}
