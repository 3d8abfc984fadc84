/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Secondary processes that use two devices of the primary, one of which it closes and creates again
 * while they use the other; see mp.h.
 */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mp.h"
#include "rc.h"

#define NB_KILLS 4

static uint32_t nb_refs; /* of MP_DEV2, without processes */

static struct rmem_dev *
make_two(struct mp_two *two)
{
	const struct rmem_mr_attr attr = {.addr = two->buf,
			.length = sizeof(two->buf),
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			.name = MP_MR};
	const struct rmem_cq_conf conf = {.nb_cqe = 4 * MP_DEPTH};
	struct rmem_dev *dev;
	struct rmem_cq *cq;
	struct rmem_pd *pd;

	TEST_OK(rmem_dev_create(MP_DEV2, NULL, &dev));
	TEST_OK(rmem_pd_alloc(dev, &pd));
	TEST_OK(rmem_mr_reg_attr(pd, &attr, &two->mr));
	TEST_OK(rmem_cq_create(dev, &conf, &cq));
	TEST_OK(rmem_cq_create(dev, &conf, &two->peer_cq));
	mp_make_qp(pd, MP_QP, cq, 0, &two->qp);
	mp_make_qp(pd, "two-peer", two->peer_cq, 0, &two->peer);
	mp_connect_two(two->qp, two->peer);
	nb_refs = dev->obj.refs;
	return dev;
}

static void
close_two(struct mp_two *two, struct rmem_dev *dev)
{
	struct rmem_cq *cq = two->qp->send_cq, *peer_cq = two->peer_cq;
	struct rmem_pd *pd = two->mr->pd;

	two->peer_cq = NULL;
	TEST_OK(rmem_qp_destroy(two->qp));
	TEST_OK(rmem_qp_destroy(two->peer));
	TEST_OK(rmem_cq_destroy(cq));
	TEST_OK(rmem_cq_destroy(peer_cq));
	TEST_OK(rmem_mr_dereg(two->mr));
	TEST_OK(rmem_pd_dealloc(pd));
	TEST_OK(rmem_dev_close(dev));
}

static struct rmem_send_wr
two_wr(struct mp_two *two, struct rmem_sge *sge)
{
	struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_WRITE, sge,
			(uintptr_t)&two->buf[MP_TO * MP_PART], two->mr->rkey);

	*sge = (struct rmem_sge){.addr = (uintptr_t)&two->buf[MP_FROM * MP_PART],
			.length = MP_PART,
			.lkey = two->mr->lkey};
	wr.wr_id = 2;
	return wr;
}

/* On the first device, or also on the second: requests of both are outstanding at once. */
static void
write_round(struct mp_shared *sh, unsigned int round, bool is_both)
{
	struct rmem_sge sge, sge2;
	struct rmem_send_wr wr = mp_write_wr(sh, &sge, MP_PART), wr2;
	struct rmem_wc wc;

	memset(&sh->buf[MP_FROM * MP_PART], (int)(round | 1), MP_PART);
	TEST_EQ(rmem_post_send(sh->qp, &wr, 1), 1);
	if (is_both) {
		wr2 = two_wr(&sh->two, &sge2);
		memset(&sh->two.buf[MP_FROM * MP_PART], (int)(round & 0xfe), MP_PART);
		TEST_EQ(rmem_post_send(sh->two.qp, &wr2, 1), 1);
		TEST_EQ(rc_wait(sh->two.qp->send_cq, &wc), 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		TEST_EQ(wc.wr_id, wr2.wr_id);
		TEST_MEM(&sh->two.buf[MP_TO * MP_PART], &sh->two.buf[MP_FROM * MP_PART], MP_PART);
	}
	TEST_EQ(rc_wait(sh->qp->send_cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.wr_id, wr.wr_id);
	TEST_MEM(&sh->buf[MP_TO * MP_PART], &sh->buf[MP_FROM * MP_PART], MP_PART);
}

/* The number of the process is that of its first device; names are those of each device. */
static struct rmem_dev *
attach_two(struct mp_shared *sh)
{
	const uint16_t number = rmem_process_number();
	struct rmem_dev *dev;
	struct rmem_qp *qp;
	struct rmem_mr *mr;

	TEST_OK(rmem_dev_attach(MP_DEV2, &dev));
	TEST_EQ(rmem_process_number(), number);
	TEST_OK(rmem_qp_lookup(dev, MP_QP, &qp));
	TEST_ASSERT(qp == sh->two.qp);
	TEST_OK(rmem_mr_lookup(dev, MP_MR, &mr));
	TEST_ASSERT(mr == sh->two.mr);
	TEST_OK(rmem_qp_claim(qp));
	return dev;
}

void
mp_two_role(struct mp_shared *sh)
{
	struct rmem_dev *dev;
	struct rmem_sge sge;
	struct rmem_send_wr wr;
	unsigned int i = 0;
	struct rmem_qp *qp;
	struct rmem_wc wc;

	mp_attach(sh);
	TEST_OK(rmem_qp_lookup(rmem_dev_get_by_name(MP_DEV), MP_QP, &qp));
	TEST_ASSERT(qp == sh->qp);
	dev = attach_two(sh);
	for (; i < 2 * MP_DEPTH; i++)
		write_round(sh, i, true);
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&sh->is_going, __ATOMIC_ACQUIRE))
		write_round(sh, i++, true);
	TEST_OK(rmem_dev_detach(dev));
	wr = two_wr(&sh->two, &sge);
	TEST_ERR(rmem_post_send(sh->two.qp, &wr, 1), EOPNOTSUPP);
	TEST_ERR(rmem_poll_cq(sh->two.qp->send_cq, &wc, 1), EOPNOTSUPP);
	TEST_ERR(rmem_qp_claim(sh->two.qp), EINVAL);
	__atomic_store_n(&sh->progress, 2, __ATOMIC_RELEASE);
	while (__atomic_load_n(&sh->is_going, __ATOMIC_ACQUIRE) != 2)
		write_round(sh, i++, false);
	dev = attach_two(sh);
	for (; i < 2 * MP_DEPTH || i % 16 != 0; i++)
		write_round(sh, i, true);
	TEST_OK(rmem_dev_detach(dev));
	write_round(sh, i, false);
	TEST_OK(rmem_dev_detach(rmem_dev_get_by_name(MP_DEV)));
}

void
mp_two_loop(struct mp_shared *sh)
{
	unsigned int i;

	mp_attach(sh);
	attach_two(sh);
	for (i = 0;; i++) {
		write_round(sh, i, true);
		__atomic_fetch_add(&sh->progress, 1, __ATOMIC_RELEASE);
	}
}

void
mp_refused_role(struct mp_shared *sh)
{
	struct rmem_dev *dev;
	struct rmem_qp *qp;

	RTE_SET_USED(sh);
	TEST_OK(rmem_dev_attach(MP_DEV2, &dev));
	TEST_OK(rmem_qp_lookup(dev, MP_QP, &qp));
	TEST_ERR(rmem_qp_claim(qp), EOPNOTSUPP);
	TEST_OK(rmem_dev_detach(dev));
}

/* No process claims a QP of the device. */
static void
run_refused(struct mp_shared *sh, struct rmem_dev *dev, enum rmem_qp_type type)
{
	const struct rmem_cq_conf conf = {.nb_cqe = MP_DEPTH};
	struct rmem_qp_conf qp_conf = {
			.type = type, .max_send_wr = 1, .max_send_sge = 1, .name = MP_QP};
	struct rmem_pd *pd;
	struct rmem_qp *qp;
	struct rmem_cq *cq;

	TEST_OK(rmem_pd_alloc(dev, &pd));
	TEST_OK(rmem_cq_create(dev, &conf, &cq));
	qp_conf.send_cq = qp_conf.recv_cq = cq;
	TEST_OK(rmem_qp_create(pd, &qp_conf, &qp));
	mp_run_role(sh, "not_claimed");
	TEST_EQ(qp->obj.process, 0);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_cq_destroy(cq));
	TEST_OK(rmem_pd_dealloc(pd));
	TEST_OK(rmem_dev_close(dev));
}

/* Those of ip=, whose bursts are packets or copies to mapped memory, and of XRC. */
void
mp_refused_run(struct mp_shared *sh)
{
	struct rmem_dev *dev;

	TEST_OK(rmem_dev_create(MP_DEV2, "ip=host,progress=poll", &dev));
	run_refused(sh, dev, RMEM_QPT_RC);
	TEST_OK(rmem_dev_create(MP_DEV2, NULL, &dev));
	run_refused(sh, dev, RMEM_QPT_XRC_SEND);
}

/* Wait until the process has left the device; its QP is in RESET then. */
static void
wait_for_end(struct mp_two *two, struct rmem_dev *dev)
{
	struct rmem_qp_attr attr;

	while (__atomic_load_n(&dev->obj.refs, __ATOMIC_ACQUIRE) != nb_refs)
		sched_yield();
	TEST_EQ(two->qp->obj.process, 0);
	TEST_OK(rmem_qp_query(two->qp, &attr));
	TEST_EQ(attr.state, RMEM_QPS_RESET);
	TEST_OK(rmem_dev_audit(dev));
}

static void
connect_again(struct mp_two *two)
{
	struct rmem_wc wc;

	TEST_OK(rmem_qp_reset(two->peer));
	while (rmem_poll_cq(two->qp->send_cq, &wc, 1) > 0 || rmem_poll_cq(two->peer_cq, &wc, 1) > 0)
		;
	mp_connect_two(two->qp, two->peer);
}

void
mp_two_run(struct mp_shared *sh)
{
	struct mp_two *two = &sh->two;
	struct rmem_dev *dev = make_two(two);
	int pid, status, ret;
	unsigned int i;

	mp_spawn(sh, "two", 0, &pid);
	mp_wait_for(sh, pid, 1, true);
	TEST_ERR(rmem_qp_destroy(two->qp), EBUSY);
	TEST_ERR(rmem_dev_close(dev), EBUSY);
	__atomic_store_n(&sh->is_going, 1, __ATOMIC_RELEASE);
	mp_wait_for(sh, pid, 2, true);
	wait_for_end(two, dev);
	close_two(two, dev);
	dev = make_two(two);
	__atomic_store_n(&sh->is_going, 2, __ATOMIC_RELEASE);
	while ((ret = waitpid(pid, &status, WNOHANG)) == 0)
		mp_serve(sh);
	TEST_ASSERT(ret == pid && status == 0);
	mp_check_reaped(sh, true);
	wait_for_end(two, dev);
	for (i = 1; i <= NB_KILLS; i++) {
		connect_again(two);
		mp_spawn(sh, "two_loop", 0, &pid);
		mp_wait_for(sh, pid, 10 * i, true);
		TEST_OK(kill(pid, SIGKILL));
		TEST_EQ(waitpid(pid, &status, 0), pid);
		mp_check_reaped(sh, true);
		wait_for_end(two, dev);
	}
	close_two(two, dev);
}
