/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Secondary processes that send garbled messages, and write garbage to the queues of their QPs;
 * see mp.h. The primary refuses the messages, and executes nothing of the queues.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>

#include "../../drivers/soft/base/rsoft.h"
#include "../../lib/rmem/rmem_mp_priv.h"
#include "mp.h"
#include "rc.h"

/* The thing that a process garbles. */
enum bad {
	BAD_SQ_PROD,
	BAD_OPCODE,
	BAD_SG_LIST,
	BAD_NUM_SGE,
	BAD_INLINE,
	BAD_ATOMIC,
	BAD_RQ_PROD,
	BAD_RECV_NUM_SGE,
	BAD_NB,
};

/* Send a message; the answer. */
static void
send_bytes(const void *data, size_t length, struct mp_rep *rep)
{
	const struct timespec timeout = {.tv_sec = 600};
	struct rte_mp_msg msg = {.name = MP_ACTION, .len_param = (int)length};
	struct rte_mp_reply replies;

	memcpy(msg.param, data, length);
	TEST_OK(rte_mp_request_sync(&msg, &replies, &timeout));
	TEST_EQ(replies.nb_received, 1);
	memcpy(rep, replies.msgs[0].param, sizeof(*rep));
	free(replies.msgs);
}

static void
is_refused(const struct mp_req *req, int error, struct mp_rep *rep)
{
	send_bytes(req, sizeof(*req), rep);
	TEST_EQ(rep->ret, -error);
}

/* Ids that are not those of a secondary process. */
static void
bad_ids(void)
{
	struct mp_req req = {.version = RMEM_VERSION, .op = MP_ATTACH, .name = MP_DEV};
	struct mp_rep rep;

	is_refused(&req, ESRCH, &rep);
	req.op = MP_DETACH;
	is_refused(&req, EINVAL, &rep);
	req.op = MP_ATTACH;
	req.id.pid = -1;
	is_refused(&req, ESRCH, &rep);
	req.id = rep.id; /* the primary */
	is_refused(&req, EINVAL, &rep);
	req.id.pid = getpid();
	req.id.start = 1;
	is_refused(&req, ESRCH, &rep);
}

void
mp_bad_messages(struct mp_shared *sh)
{
	uint8_t bytes[RTE_MP_MAX_PARAM_LEN];
	struct mp_rep rep;

	RTE_SET_USED(sh);
	memset(bytes, 0xff, sizeof(bytes));
	send_bytes(bytes, sizeof(bytes), &rep);
	TEST_EQ(rep.ret, -EPROTO);
	send_bytes(bytes, sizeof(struct mp_req), &rep);
	TEST_EQ(rep.ret, -EPROTO);
	bad_ids();
}

/* A request such as the library writes it, at the end of the queue. */
static struct rmem_send_wr *
next_request(struct rsoft_qp *qp)
{
	struct rsoft_sq *sq = &qp->sq;
	struct rmem_send_wr *wr = (struct rmem_send_wr *)(void *)(sq->ring +
			(size_t)(sq->prod & sq->mask) * sq->stride);

	*wr = (struct rmem_send_wr){.opcode = RMEM_WR_RDMA_WRITE, .flags = RMEM_SEND_SIGNALED};
	wr->sg_list = (struct rmem_sge *)(void *)(wr + 1);
	return wr;
}

static void
garble_request(struct rsoft_qp *qp, enum bad what)
{
	struct rmem_send_wr *wr = next_request(qp);
	struct rmem_sge *sge = (struct rmem_sge *)(void *)(wr + 1);

	*sge = (struct rmem_sge){.addr = UINT64_C(0x5a5a5a5a5a50), .length = 8};
	if (what == BAD_OPCODE)
		wr->opcode = UINT8_MAX;
	if (what == BAD_SG_LIST)
		wr->sg_list = (struct rmem_sge *)(uintptr_t)UINT64_C(0x5a5a5a5a5a50);
	if (what == BAD_NUM_SGE || what == BAD_SG_LIST)
		wr->num_sge = what == BAD_NUM_SGE ? UINT16_MAX : 1;
	if (what == BAD_INLINE) {
		wr->num_sge = 1;
		wr->flags |= RMEM_SEND_INLINE;
	}
	if (what == BAD_ATOMIC)
		wr->opcode = RMEM_WR_ATOMIC_FETCH_AND_ADD;
	__atomic_fetch_add(&qp->sq.prod, 1, __ATOMIC_RELEASE);
}

void
mp_bad_queues(struct mp_shared *sh, unsigned int number)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)sh->qp;
	struct rmem_dev *dev;

	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	TEST_OK(rmem_qp_claim(sh->qp));
	if (number == BAD_SQ_PROD) {
		__atomic_fetch_add(&qp->sq.prod, UINT32_C(1) << 31, __ATOMIC_RELEASE);
	} else if (number == BAD_RQ_PROD) {
		__atomic_fetch_add(&qp->rq.prod, UINT32_C(1) << 31, __ATOMIC_RELEASE);
	} else if (number == BAD_RECV_NUM_SGE) {
		((struct rsoft_rqe *)(void *)(qp->rq.ring +
				 (size_t)(qp->rq.prod & qp->rq.mask) * qp->rq.stride))
				->num_sge = UINT32_MAX;
		__atomic_fetch_add(&qp->rq.prod, 1, __ATOMIC_RELEASE);
	} else {
		garble_request(qp, (enum bad)number);
	}
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* Nothing of the queue is executed: the QP moves to ERR. */
static void
moves_to_err(struct mp_shared *sh)
{
	struct rmem_qp_attr attr;
	struct rmem_wc wc;

	do {
		TEST_EQ(rmem_poll_cq(sh->peer_cq, &wc, 1), 0);
		TEST_OK(rmem_qp_query(sh->qp, &attr));
		TEST_ASSERT(attr.state == RMEM_QPS_RTS || attr.state == RMEM_QPS_ERR);
		sched_yield();
	} while (attr.state != RMEM_QPS_ERR);
	TEST_EQ(rmem_poll_cq(sh->qp->send_cq, &wc, 1), 0);
}

/* No receive is found: a message of the peer is not delivered. */
static void
has_no_receive(struct mp_shared *sh)
{
	struct rmem_sge sge = {.addr = (uintptr_t)&sh->buf[MP_PEER * MP_PART],
			.length = 16,
			.lkey = sh->mr->lkey};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);
	struct rmem_wc wc;

	TEST_EQ(rmem_post_send(sh->peer, &wr, 1), 1);
	TEST_EQ(rc_wait(sh->peer_cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_RNR_RETRY_EXC_ERR);
}

void
mp_bad_run(struct mp_shared *sh)
{
	struct rmem_mr *mr;
	unsigned int i;
	int pid, status;

	mp_run_role(sh, "bad_messages");
	mp_check_reaped(sh, false);
	for (i = 0; i < BAD_NB; i++) {
		mp_spawn(sh, "bad_queues", i, &pid);
		mp_wait_for(sh, pid, 1, false);
		if (i < BAD_RQ_PROD)
			moves_to_err(sh);
		else
			has_no_receive(sh);
		/* The queue is searched for the object. */
		TEST_OK(rmem_fast_reg_mr_alloc(sh->mr->pd, 4, &mr));
		TEST_OK(rmem_mr_dereg(mr));
		TEST_OK(kill(pid, SIGKILL));
		TEST_EQ(waitpid(pid, &status, 0), pid);
		mp_check_reaped(sh, true);
	}
}
