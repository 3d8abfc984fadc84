/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The roles of secondary processes; see mp.h. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include <rmem_tracked.h>

#include "mp.h"
#include "rc.h"

static struct rmem_dev *dev;

/* Let the primary do the next step. */
static void
mp_step(struct mp_shared *sh, uint32_t progress)
{
	__atomic_store_n(&sh->progress, progress, __ATOMIC_RELEASE);
	while (__atomic_load_n(&sh->is_going, __ATOMIC_ACQUIRE) != progress)
		sched_yield();
}

static uint64_t
part(const struct mp_shared *sh, unsigned int i)
{
	return (uint64_t)(uintptr_t)&sh->buf[i * MP_PART];
}

/* By name; without hugepages EAL has no memzones here. */
static void
find_pool(const struct mp_shared *sh)
{
	struct rmem_pool *pool = NULL;
	int ret = rmem_pool_lookup("mp-pool", &pool);

	TEST_ASSERT(ret == 0 ? pool == sh->pool : ret == -ENOENT);
	TEST_OK(rmem_tracked_ops_set(sh->pool->mp));
}

void
mp_attach(struct mp_shared *sh)
{
	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	TEST_OK(rmem_qp_claim(sh->qp));
	find_pool(sh);
}

struct rmem_send_wr
mp_write_wr(const struct mp_shared *sh, struct rmem_sge *sge, uint32_t length)
{
	struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_WRITE, sge, part(sh, MP_TO), sh->mr->rkey);

	*sge = (struct rmem_sge){.addr = part(sh, MP_FROM), .length = length, .lkey = sh->mr->lkey};
	wr.wr_id = 1;
	return wr;
}

static struct rmem_send_wr
reg_wr(const struct mp_shared *sh, uint8_t tag)
{
	sh->list->page_list[0] = part(sh, MP_TO) & ~UINT64_C(4095);
	return (struct rmem_send_wr){.wr_id = 2,
			.opcode = RMEM_WR_REG_MR,
			.flags = RMEM_SEND_SIGNALED,
			.reg_mr.mr = sh->fast,
			.reg_mr.page_list = sh->list,
			.reg_mr.iova = part(sh, MP_TO),
			.reg_mr.length = MP_PART,
			.reg_mr.first_byte_offset = (uint32_t)(part(sh, MP_TO) & 4095),
			.reg_mr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			.reg_mr.page_list_len = 1,
			.reg_mr.log2_page_size = 12,
			.reg_mr.key_tag = tag};
}

void
mp_post_and_poll(const struct mp_shared *sh, const struct rmem_send_wr *wr, int status)
{
	struct rmem_wc wc;

	TEST_EQ(rmem_post_send(sh->qp, wr, 1), 1);
	TEST_EQ(rc_wait(sh->qp->send_cq, &wc), 1);
	TEST_STATUS(wc.status, status);
	TEST_EQ(wc.wr_id, wr->wr_id);
}

static void
traffic_one_sided(struct mp_shared *sh)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr = mp_write_wr(sh, &sge, MP_PART);
	char text[32] = "private memory of the process";
	uint64_t *word = (uint64_t *)(void *)&sh->buf[MP_TO * MP_PART];

	memset(&sh->buf[MP_FROM * MP_PART], 0x5a, MP_PART);
	mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
	TEST_MEM(&sh->buf[MP_TO * MP_PART], &sh->buf[MP_FROM * MP_PART], MP_PART);
	wr.flags |= RMEM_SEND_INLINE;
	sge = (struct rmem_sge){.addr = (uintptr_t)text, .length = sizeof(text)};
	mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
	TEST_MEM(&sh->buf[MP_TO * MP_PART], text, sizeof(text));
	wr = mp_write_wr(sh, &sge, MP_PART);
	wr.opcode = RMEM_WR_RDMA_READ;
	mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
	TEST_MEM(&sh->buf[MP_FROM * MP_PART], text, sizeof(text));
	*word = 5;
	wr = mp_write_wr(sh, &sge, 8);
	wr.opcode = RMEM_WR_ATOMIC_FETCH_AND_ADD;
	wr.atomic.remote_addr = part(sh, MP_TO);
	wr.atomic.compare_add = 2;
	wr.atomic.rkey = sh->mr->rkey;
	mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
	TEST_EQ(*word, 7);
}

static void
traffic_messages(struct mp_shared *sh)
{
	struct rmem_sge sge = {.addr = part(sh, MP_TO), .length = MP_PART, .lkey = sh->mr->lkey};
	const struct rmem_recv_wr recv = {.wr_id = 7, .sg_list = &sge, .num_sge = 1};
	struct rmem_sge from;
	struct rmem_send_wr wr = mp_write_wr(sh, &from, 16);
	struct rmem_wc wc;

	TEST_EQ(rmem_post_recv(sh->qp, &recv, 1), 1);
	memcpy(&sh->buf[MP_PEER * MP_PART], "from the primary", 16);
	__atomic_store_n(&sh->nb_sends, 1, __ATOMIC_RELEASE);
	TEST_EQ(rc_wait(sh->qp->recv_cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.byte_len, 16);
	TEST_MEM(&sh->buf[MP_TO * MP_PART], "from the primary", 16);
	wr.opcode = RMEM_WR_SEND;
	wr.rdma.rkey = 0;
	wr.rdma.remote_addr = 0;
	mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
}

static void
traffic_keys(struct mp_shared *sh)
{
	struct rmem_send_wr reg = reg_wr(sh, (uint8_t)(sh->fast->rkey + 1));
	struct rmem_send_wr inv = {
			.wr_id = 3, .opcode = RMEM_WR_LOCAL_INV, .flags = RMEM_SEND_SIGNALED};
	const struct rmem_recv_wr recv = {.wr_id = 9};
	struct rmem_sge sge;
	struct rmem_send_wr wr;
	struct rmem_wc wc;

	mp_post_and_poll(sh, &reg, RMEM_WC_SUCCESS);
	wr = mp_write_wr(sh, &sge, 8);
	wr.rdma.rkey = sh->fast->rkey;
	mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
	inv.invalidate_rkey = sh->fast->rkey;
	mp_post_and_poll(sh, &inv, RMEM_WC_SUCCESS);
	mp_post_and_poll(sh, &wr, RMEM_WC_REM_ACCESS_ERR);
	/* In ERR: the primary flushes what is posted now. */
	TEST_EQ(rmem_post_recv(sh->qp, &recv, 1), 1);
	TEST_EQ(rc_wait(sh->qp->recv_cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_WR_FLUSH_ERR);
	mp_post_and_poll(sh, &wr, RMEM_WC_WR_FLUSH_ERR);
}

/* A request that RMEM_QP_LATE_ERRORS accepts is not a garbled one. */
static void
traffic_late(struct mp_shared *sh)
{
	const struct rmem_send_wr wr = {.wr_id = 10,
			.opcode = RMEM_WR_ATOMIC_FETCH_AND_ADD,
			.flags = RMEM_SEND_SIGNALED,
			.atomic.remote_addr = part(sh, MP_TO),
			.atomic.rkey = sh->mr->rkey};
	struct rmem_wc wc;

	TEST_OK(rmem_qp_claim(sh->other[0]));
	TEST_EQ(rmem_post_send(sh->other[0], &wr, 1), 1);
	TEST_EQ(rc_wait(sh->other_cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_LOC_LEN_ERR);
	TEST_EQ(wc.wr_id, wr.wr_id);
	TEST_OK(rmem_qp_unclaim(sh->other[0]));
}

/* The primary unmaps the memory between the requests, and maps it again. */
static void
role_on_demand(struct mp_shared *sh)
{
	struct rmem_send_wr reg = reg_wr(sh, (uint8_t)(sh->fast->rkey + 1));
	struct rmem_sge sge;
	struct rmem_send_wr wr = mp_write_wr(sh, &sge, MP_PART);
	unsigned int i;

	mp_attach(sh);
	memset(&sh->buf[MP_FROM * MP_PART], 0x33, MP_PART);
	wr.rdma.remote_addr = sh->odp->iova;
	wr.rdma.rkey = sh->odp->rkey;
	mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
	/* A key over its pages. */
	sh->list->page_list[0] = sh->odp->iova;
	reg.reg_mr.iova = sh->odp->iova;
	reg.reg_mr.first_byte_offset = 0;
	mp_post_and_poll(sh, &reg, RMEM_WC_SUCCESS);
	wr.rdma.rkey = sh->fast->rkey;
	mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
	for (i = 1; i <= 2; i++) {
		mp_step(sh, 2 * i - 1);
		wr.rdma.rkey = i == 1 ? sh->odp->rkey : sh->fast->rkey;
		mp_post_and_poll(sh, &wr, RMEM_WC_REM_ACCESS_ERR);
		mp_post_and_poll(sh, &wr, RMEM_WC_WR_FLUSH_ERR);
		mp_step(sh, 2 * i);
		mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
	}
	TEST_OK(rmem_dev_detach(dev));
}

static void
role_traffic(struct mp_shared *sh)
{
	struct rmem_dev_info info;
	struct rmem_qp *qp;
	struct rmem_mr *mr;

	TEST_EQ(rmem_process_number(), 0);
	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	TEST_ASSERT(rmem_process_number() > RMEM_PROCESS_PRIMARY);
	TEST_ASSERT(rmem_dev_get_by_name(MP_DEV) == dev);
	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_FAST_REG) != 0 && info.max_qp != 0);
	TEST_ASSERT(strcmp(info.driver_name, "soft") == 0);
	TEST_OK(rmem_qp_lookup(dev, MP_QP, &qp));
	TEST_ASSERT(qp == sh->qp);
	TEST_OK(rmem_mr_lookup(dev, MP_MR, &mr));
	TEST_ASSERT(mr == sh->mr);
	TEST_OK(rmem_qp_claim(qp));
	traffic_one_sided(sh);
	traffic_messages(sh);
	traffic_keys(sh);
	traffic_late(sh);
	TEST_OK(rmem_qp_unclaim(qp));
	TEST_OK(rmem_dev_detach(dev));
	TEST_EQ(rmem_process_number(), 0);
	TEST_ASSERT(rmem_dev_get_by_name(MP_DEV) == NULL);
}

static void
refused_calls(struct mp_shared *sh)
{
	static struct rmem_mkey_entry entry; /* not in memory of DPDK */
	const struct rmem_send_wr umr = {.opcode = RMEM_WR_UMR,
			.umr.mr = sh->mkey,
			.umr.entries = &entry,
			.umr.nb_entries = 1,
			.umr.repeat_count = 1};
	const struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_sge sge;
	const struct rmem_send_wr wr = mp_write_wr(sh, &sge, 8);
	struct rmem_qp *qp = NULL;
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_post_send(sh->peer, &wr, 1), EPERM);
	TEST_ERR(rmem_post_recv(sh->peer, &recv, 1), EPERM);
	TEST_ERR(rmem_srq_post_recv(sh->srq, &recv, 1), EOPNOTSUPP);
	TEST_ERR(rmem_post_send(sh->qp, &umr, 1), EFAULT);
	TEST_OK(rmem_qp_claim(sh->qp)); /* as after a lost answer */
	TEST_ERR(rmem_qp_unclaim(sh->peer), EINVAL);
	TEST_ERR(rmem_qp_claim(NULL), EINVAL);
	TEST_ERR(rmem_qp_claim((struct rmem_qp *)sh->mr), EINVAL);
	TEST_ERR(rmem_qp_lookup(dev, "no such QP", &qp), ENOENT);
	TEST_ERR(rmem_qp_lookup(dev, MP_MR, &qp), ENOENT);
	TEST_ERR(rmem_qp_lookup(dev, "", &qp), EINVAL);
	TEST_ERR(rmem_qp_lookup(dev, MP_QP, NULL), EINVAL);
	TEST_ERR(rmem_qp_lookup(NULL, MP_QP, &qp), EINVAL);
	TEST_ERR(rmem_mr_lookup(dev, "a name of thirty-two characters..", &mr), EINVAL);
	TEST_ERR(rmem_qp_reset(sh->qp), EOPNOTSUPP);
	TEST_ERR(rmem_mr_dereg(sh->fast), EOPNOTSUPP);
	TEST_ERR(rmem_dev_close(dev), EOPNOTSUPP);
	TEST_ASSERT(qp == NULL && mr == NULL);
}

/* The queue takes as many requests as it is deep, and more once completions were polled. */
static void
refused_full(struct mp_shared *sh)
{
	struct rmem_sge sge;
	const struct rmem_send_wr wr = mp_write_wr(sh, &sge, 8);
	unsigned int i, round;
	struct rmem_wc wc;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < MP_DEPTH; i++)
			TEST_EQ(rmem_post_send(sh->qp, &wr, 1), 1);
		TEST_ERR(rmem_post_send(sh->qp, &wr, 1), ENOSPC);
		for (i = 0; i < MP_DEPTH; i++) {
			TEST_EQ(rc_wait(sh->qp->send_cq, &wc), 1);
			TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		}
	}
}

/* The pool keeps its buffers; the primary has one of them. */
static void
refused_puts(struct mp_shared *sh)
{
	uint8_t own[64];
	void *bufs[MP_BURST], *bad[2] = {own, NULL};

	TEST_OK(rte_mempool_get_bulk(sh->pool->mp, bufs, MP_BURST));
	TEST_EQ(rmem_tracked_owner(sh->pool->mp, bufs[0]), rmem_process_number());
	bad[1] = (uint8_t *)bufs[0] + 1;
	rte_mempool_put_bulk(sh->pool->mp, bad, 2);
	TEST_EQ(rte_mempool_avail_count(sh->pool->mp), MP_BUFS - 1 - MP_BURST);
	rte_mempool_put_bulk(sh->pool->mp, bufs, MP_BURST);
	rte_mempool_put_bulk(sh->pool->mp, bufs, MP_BURST);
	TEST_EQ(rte_mempool_avail_count(sh->pool->mp), MP_BUFS - 1);
}

static void
role_refused(struct mp_shared *sh)
{
	struct rmem_dev *again = NULL;
	struct rmem_sge sge;
	const struct rmem_send_wr wr = mp_write_wr(sh, &sge, 8);
	void *buf;

	TEST_ERR(rmem_post_send(sh->qp, &wr, 1), EOPNOTSUPP);
	TEST_ERR(rmem_qp_claim(sh->qp), EINVAL);
	TEST_ERR(rmem_dev_attach("soft7", &again), ENODEV);
	TEST_ERR(rmem_dev_attach(MP_DEV3 "0", &again), ENODEV);
	TEST_ERR(rmem_dev_attach(NULL, &again), EINVAL);
	TEST_ERR(rmem_dev_attach(MP_DEV, NULL), EINVAL);
	TEST_ERR(rmem_dev_detach((struct rmem_dev *)sh), EINVAL);
	mp_attach(sh);
	TEST_ERR(rmem_dev_attach(MP_DEV, &again), EALREADY);
	TEST_ASSERT(again == NULL);
	TEST_ASSERT(rmem_mp_is_shared(sh) && !rmem_mp_is_shared(&wr));
	refused_calls(sh);
	refused_full(sh);
	mp_send_wrong(sh);
	refused_puts(sh);
	TEST_OK(rmem_dev_detach(dev));
	TEST_ERR(rmem_dev_detach(dev), EINVAL);
	TEST_OK(rmem_dev_detach(NULL));
	/* Without a number; the buffer is the primary's. */
	rte_mempool_put(sh->pool->mp, sh->kept);
	TEST_ERR(rte_mempool_get(sh->pool->mp, &buf), EOPNOTSUPP);
	TEST_ERR(rmem_post_send(sh->qp, &wr, 1), EOPNOTSUPP);
	mp_lose_answers(sh);
}

/* Its lcore is one of the primary's: see main(). */
static void
role_clash(struct mp_shared *sh)
{
	RTE_SET_USED(sh);
	TEST_ERR(rmem_dev_attach(MP_DEV, &dev), EEXIST);
}

/* Hold a QP until the primary lets it go: another process can't have the QP, or the lcore. */
static void
role_hold(struct mp_shared *sh)
{
	mp_attach(sh);
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&sh->is_going, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void
role_late(struct mp_shared *sh)
{
	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	TEST_ERR(rmem_qp_claim(sh->qp), EBUSY);
}

static void
role_same_lcore(struct mp_shared *sh)
{
	role_clash(sh);
}

/* Bind keys and leave requests that name objects in the queue, then wait for the end. */
static void
role_binds(struct mp_shared *sh)
{
	const struct rmem_send_wr reg = reg_wr(sh, (uint8_t)(sh->fast->rkey + 1));
	const struct rmem_send_wr bind = {.wr_id = 4,
			.opcode = RMEM_WR_BIND_MW,
			.flags = RMEM_SEND_SIGNALED,
			.bind_mw.mw = sh->mw,
			.bind_mw.mr = sh->mr,
			.bind_mw.addr = part(sh, MP_TO),
			.bind_mw.length = MP_PART,
			.bind_mw.access = RMEM_ACCESS_REMOTE_WRITE,
			.bind_mw.key_tag = (uint8_t)(sh->mw->rkey + 1)};

	mp_attach(sh);
	mp_post_and_poll(sh, &reg, RMEM_WC_SUCCESS);
	mp_post_and_poll(sh, &bind, RMEM_WC_SUCCESS);
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&sh->is_going, __ATOMIC_ACQUIRE))
		sched_yield();
	/* Refused when it is executed; the primary reads it before. */
	TEST_EQ(rmem_post_send(sh->qp, &reg, 1), 1);
	__atomic_store_n(&sh->progress, 2, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* Leave buffers of the pool in requests, then wait for the end. */
static void
role_flight(struct mp_shared *sh)
{
	struct rmem_recv_wr recv = {.wr_id = 9, .num_sge = 1};
	struct rmem_sge from, sges[MP_BURST];
	struct rmem_send_wr wr = mp_write_wr(sh, &from, 64);

	mp_attach(sh);
	TEST_OK(rmem_pool_get_sges(sh->pool, sges, MP_BURST));
	recv.sg_list = &sges[0];
	TEST_EQ(rmem_post_recv(sh->qp, &recv, 1), 1);
	wr.sg_list = &sges[1];
	TEST_EQ(rmem_post_send(sh->qp, &wr, 1), 1);
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* Take all buffers that are left, then wait for the end. */
static void
role_drain(struct mp_shared *sh)
{
	void *buf;

	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	find_pool(sh);
	while (rte_mempool_get(sh->pool->mp, &buf) == 0)
		TEST_EQ(rmem_tracked_owner(sh->pool->mp, buf), rmem_process_number());
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* Detach with a buffer, so often that a number is given again: its buffers were freed. */
static void
role_numbers(struct mp_shared *sh)
{
	const unsigned int nb = RMEM_PROCESS_MAX - RMEM_PROCESS_PRIMARY;
	unsigned int i, first = 0;
	void *buf;

	for (i = 0; i <= nb; i++) {
		TEST_OK(rmem_dev_attach(MP_DEV, &dev));
		find_pool(sh);
		if (i == 0)
			first = rmem_process_number();
		TEST_EQ(rmem_process_number() == first, i % nb == 0);
		TEST_EQ(rte_mempool_avail_count(sh->pool->mp), MP_BUFS);
		TEST_OK(rte_mempool_get(sh->pool->mp, &buf));
		TEST_EQ(rmem_tracked_owner(sh->pool->mp, buf), rmem_process_number());
		TEST_OK(rmem_dev_detach(dev));
		TEST_EQ(rmem_tracked_owner(sh->pool->mp, buf), 0);
	}
}

/* Traffic without end. */
static void
role_loop(struct mp_shared *sh)
{
	void *bufs[MP_BURST];
	struct rmem_sge sge;
	struct rmem_send_wr wr[2],
			inv = {.wr_id = 3,
					.opcode = RMEM_WR_LOCAL_INV,
					.flags = RMEM_SEND_SIGNALED};
	struct rmem_wc wc;

	mp_attach(sh);
	for (;;) {
		TEST_OK(rte_mempool_get_bulk(sh->pool->mp, bufs, MP_BURST));
		wr[0] = mp_write_wr(sh, &sge, MP_PART);
		wr[1] = reg_wr(sh, (uint8_t)(sh->fast->rkey + 1));
		TEST_EQ(rmem_post_send(sh->qp, wr, 2), 2);
		inv.invalidate_rkey = sh->fast->rkey;
		TEST_EQ(rmem_post_send(sh->qp, &inv, 1), 1);
		TEST_EQ(rc_wait(sh->qp->send_cq, &wc), 1);
		TEST_EQ(rc_wait(sh->qp->send_cq, &wc), 1);
		TEST_EQ(rc_wait(sh->qp->send_cq, &wc), 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		rte_mempool_put_bulk(sh->pool->mp, bufs, MP_BURST);
		__atomic_fetch_add(&sh->progress, 1, __ATOMIC_RELEASE);
	}
}

static struct {
	uint32_t nb;
	uint32_t last; /* at which the process is killed */
	volatile sig_atomic_t is_on;
} steps;

#ifdef __x86_64__
static void
step(int sig, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
	const greg_t trap = 0x100;

	RTE_SET_USED(sig);
	RTE_SET_USED(info);
	*flags = steps.is_on ? *flags | trap : *flags & ~trap;
	if (steps.is_on && ++steps.nb == steps.last)
		kill(getpid(), SIGKILL);
}

static void
begin_steps(void)
{
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaction(SIGTRAP, &action, NULL);
	steps.is_on = 1;
	raise(SIGTRAP);
}
#else
static void
begin_steps(void)
{
}
#endif

/* Make a call, and die at an instruction of it. */
static void
role_step(struct mp_shared *sh, const char *what, uint32_t last)
{
	const struct rmem_recv_wr recv = {.wr_id = 9};
	struct rmem_sge sge;
	struct rmem_send_wr wr[2] = {mp_write_wr(sh, &sge, 64), mp_write_wr(sh, &sge, 64)};
	void *bufs[MP_BURST];
	struct rmem_wc wc[2];
	int n = 0;

	steps.last = last;
	mp_attach(sh);
	if (strcmp(what, "put") == 0)
		TEST_OK(rte_mempool_get_bulk(sh->pool->mp, bufs, MP_BURST));
	wr[0].flags |= RMEM_SEND_INLINE;
	if (strcmp(what, "reg") == 0)
		wr[0] = reg_wr(sh, (uint8_t)(sh->fast->rkey + 1));
	if (strcmp(what, "poll") == 0) {
		TEST_EQ(rmem_post_send(sh->qp, wr, 2), 2);
		while (rc_wait(sh->qp->send_cq, &wc[0]) != 1)
			;
	}
	begin_steps();
	if (strcmp(what, "recv") == 0)
		n = rmem_post_recv(sh->qp, &recv, 1);
	else if (strcmp(what, "poll") == 0)
		n = rmem_poll_cq(sh->qp->send_cq, wc, 2);
	else if (strcmp(what, "get") == 0)
		n = rte_mempool_get_bulk(sh->pool->mp, bufs, MP_BURST);
	else if (strcmp(what, "put") == 0)
		rte_mempool_put_bulk(sh->pool->mp, bufs, MP_BURST);
	else
		n = rmem_post_send(sh->qp, wr, 2);
	steps.is_on = 0;
	__atomic_store_n(&sh->nb_steps, steps.nb, __ATOMIC_RELEASE);
	TEST_ASSERT(n >= 0);
}

/* Post until the primary has ended. */
static void
role_orphan(struct mp_shared *sh)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr = mp_write_wr(sh, &sge, 8);
	const struct rmem_recv_wr recv = {.wr_id = 9};
	struct rmem_wc wc;
	int ret;

	mp_attach(sh);
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	while ((ret = rmem_post_send(sh->qp, &wr, 1)) != -ENODEV) {
		TEST_ASSERT(ret == 1 || ret == -ENOSPC);
		ret = rmem_poll_cq(sh->qp->send_cq, &wc, 1);
		TEST_ASSERT(ret >= 0 || ret == -ENODEV);
		sched_yield();
	}
	while ((ret = rmem_poll_cq(sh->qp->send_cq, &wc, 1)) > 0)
		;
	TEST_EQ(ret, -ENODEV);
	TEST_ERR(rmem_post_recv(sh->qp, &recv, 1), ENODEV);
	TEST_ERR(rmem_qp_unclaim(sh->qp), ENODEV);
	TEST_ERR(rmem_dev_detach(dev), ENODEV);
	TEST_ASSERT(rmem_dev_get_by_name(MP_DEV) == NULL);
}

void
mp_role_run(struct mp_shared *sh, char **args)
{
	static const struct {
		const char *name;
		void (*run)(struct mp_shared *sh);
	} roles[] = {{"traffic", role_traffic}, {"on_demand", role_on_demand},
			{"refused", role_refused}, {"clash", role_clash}, {"hold", role_hold},
			{"late", role_late}, {"same_lcore", role_same_lcore}, {"binds", role_binds},
			{"loop", role_loop}, {"orphan", role_orphan}, {"flight", role_flight},
			{"drain", role_drain}, {"numbers", role_numbers},
			{"bad_messages", mp_bad_messages}, {"attach_again", mp_attach_again},
			{"fork", mp_fork_role}, {"fork_orphan", mp_fork_orphan},
			{"two", mp_two_role}, {"two_loop", mp_two_loop},
			{"not_claimed", mp_refused_role}, {"cq", mp_cq_role},
			{"cq_left", mp_cq_leave}, {"cq_other", mp_cq_other}};
	size_t i;

	test_set_running(args[0]);
	for (i = 0; i < RTE_DIM(roles); i++) {
		if (strcmp(args[0], roles[i].name) == 0)
			break;
	}
	if (i < RTE_DIM(roles))
		roles[i].run(sh);
	else if (strcmp(args[0], "bad_queues") == 0)
		mp_bad_queues(sh, (unsigned int)strtoul(args[1], NULL, 10));
	else
		role_step(sh, args[0], (uint32_t)strtoul(args[1], NULL, 10));
}
