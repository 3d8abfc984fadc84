/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Children of fork(), of a secondary process and of the primary while one is attached; see mp.h.
 * A child has the memory of DPDK and the handles of its parent, and can use no device.
 */

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mempool.h>

#include "../../lib/rmem/rmem_mp_priv.h"
#include "mp.h"
#include "test.h"

#define NB_FORKS 32

static uint32_t is_over; /* the thread that calls ends; atomic */

static void
child_fast_path(struct mp_shared *sh)
{
	const struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_sge sge;
	const struct rmem_send_wr wr = mp_write_wr(sh, &sge, 8);
	struct rmem_wc wc;
	void *buf;

	TEST_ERR(rmem_post_send(sh->qp, &wr, 1), EOPNOTSUPP);
	TEST_ERR(rmem_post_send(sh->other[0], &wr, 1), EOPNOTSUPP);
	TEST_ERR(rmem_post_recv(sh->qp, &recv, 1), EOPNOTSUPP);
	TEST_ERR(rmem_srq_post_recv(sh->srq, &recv, 1), EOPNOTSUPP);
	TEST_ERR(rmem_poll_cq(sh->qp->send_cq, &wc, 1), EOPNOTSUPP);
	TEST_ERR(rmem_poll_cq(sh->other_cq, &wc, 1), EOPNOTSUPP);
	TEST_ERR(rte_mempool_get(sh->pool->mp, &buf), EOPNOTSUPP);
}

static void
child_control(struct mp_shared *sh, struct rmem_dev *dev)
{
	struct rmem_dev_info info;
	struct rmem_dev *made;
	struct rmem_mr *mr;

	TEST_ASSERT(rmem_dev_get_by_name(MP_DEV) == NULL && rmem_dev_next(NULL) == NULL);
	TEST_ERR(rmem_dev_create("soft7", NULL, &made), EOPNOTSUPP);
	TEST_ERR(rmem_dev_close(dev), EOPNOTSUPP);
	TEST_ERR(rmem_dev_info_get(dev, &info), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(sh->mr->pd, sh->buf, MP_PART, 0, 0, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_dereg(sh->mr), EOPNOTSUPP);
	TEST_ERR(rmem_qp_reset(sh->qp), EOPNOTSUPP);
	TEST_ERR(rmem_qp_destroy(sh->other[0]), EOPNOTSUPP);
	TEST_ERR(rmem_cq_destroy(sh->other_cq), EOPNOTSUPP);
	TEST_ERR(rmem_pool_destroy(sh->pool), EOPNOTSUPP);
}

static void
child_processes(struct mp_shared *sh, struct rmem_dev *dev)
{
	bool is_primary = rte_eal_process_type() == RTE_PROC_PRIMARY;
	struct rmem_dev *again;
	struct rmem_qp *qp;

	TEST_EQ(rmem_process_number(), 0);
	TEST_ERR(rmem_dev_attach(MP_DEV, &again), is_primary ? EINVAL : EOPNOTSUPP);
	TEST_ERR(rmem_dev_detach(dev), EINVAL);
	TEST_ERR(rmem_qp_claim(sh->qp), EINVAL);
	TEST_ERR(rmem_qp_unclaim(sh->qp), EINVAL);
	TEST_ERR(rmem_qp_lookup(dev, MP_QP, &qp), EINVAL);
}

/* All calls are refused. */
static void
use_in_child(struct mp_shared *sh, struct rmem_dev *dev)
{
	child_fast_path(sh);
	child_control(sh, dev);
	child_processes(sh, dev);
}

static void
expect_success(pid_t pid)
{
	int status = -1;

	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_EQ(status, 0);
}

static void *
call_until_over(void *arg)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
		rmem_dev_get_by_name(MP_DEV);
	return arg;
}

/* A child does not wait for a lock that another thread of the parent had. */
static void
fork_in_calls(void)
{
	struct rmem_dev *made;
	pthread_t thread;
	unsigned int i;
	pid_t pid;
	int ret;

	__atomic_store_n(&is_over, 0, __ATOMIC_RELEASE);
	TEST_OK(pthread_create(&thread, NULL, call_until_over, NULL));
	for (i = 0; i < NB_FORKS; i++) {
		pid = fork();
		if (pid == 0) {
			ret = rmem_dev_create("soft7", NULL, &made);
			_exit(rmem_dev_get_by_name(MP_DEV) == NULL && ret == -EOPNOTSUPP ? 0 : 1);
		}
		expect_success(pid);
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	TEST_OK(pthread_join(thread, NULL));
}

static void
write_some(struct mp_shared *sh)
{
	struct rmem_sge sge;
	const struct rmem_send_wr wr = mp_write_wr(sh, &sge, MP_PART);
	unsigned int i;

	for (i = 0; i < 2 * MP_DEPTH; i++) {
		memset(&sh->buf[MP_FROM * MP_PART], (int)(i + 1), MP_PART);
		mp_post_and_poll(sh, &wr, RMEM_WC_SUCCESS);
		TEST_MEM(&sh->buf[MP_TO * MP_PART], &sh->buf[MP_FROM * MP_PART], MP_PART);
	}
}

void
mp_fork_role(struct mp_shared *sh)
{
	struct rmem_dev *dev;
	int begin[2], end[2];
	char byte = 0;
	pid_t pid;

	mp_attach(sh);
	dev = rmem_dev_get_by_name(MP_DEV);
	fork_in_calls();
	TEST_OK(pipe(begin));
	TEST_OK(pipe(end));
	pid = fork();
	if (pid == 0) {
		close(end[1]);
		use_in_child(sh, dev);
		/* Again after the parent has posted. */
		if (write(begin[1], &byte, 1) != 1 || read(end[0], &byte, 1) != 0)
			_exit(1);
		use_in_child(sh, dev);
		_exit(0);
	}
	close(begin[1]);
	TEST_EQ(read(begin[0], &byte, 1), 1);
	write_some(sh);
	close(end[1]);
	write_some(sh);
	expect_success(pid);
	TEST_OK(rmem_dev_detach(dev));
	/* Its channel to the primary is intact too. */
	mp_attach(sh);
	TEST_OK(rmem_dev_detach(rmem_dev_get_by_name(MP_DEV)));
}

void
mp_fork_orphan(struct mp_shared *sh)
{
	struct rmem_dev *dev;
	pid_t pid;

	mp_attach(sh);
	dev = rmem_dev_get_by_name(MP_DEV);
	pid = fork();
	if (pid == 0) {
		while (!__atomic_load_n(&sh->is_going, __ATOMIC_ACQUIRE))
			sched_yield();
		use_in_child(sh, dev);
		_exit(0);
	}
	sh->child = pid;
	__atomic_store_n(&sh->progress, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* The end of a secondary process is seen while its child lives. */
static void
kill_parent(struct mp_shared *sh)
{
	int pid, status, child;

	TEST_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
	mp_spawn(sh, "fork_orphan", 0, &pid);
	mp_wait_for(sh, pid, 1, true);
	child = sh->child;
	TEST_OK(kill(pid, SIGKILL));
	TEST_EQ(waitpid(pid, &status, 0), pid);
	mp_check_reaped(sh, true);
	mp_run_role(sh, "traffic");
	mp_check_reaped(sh, true);
	__atomic_store_n(&sh->is_going, 1, __ATOMIC_RELEASE);
	expect_success(child);
	TEST_OK(prctl(PR_SET_CHILD_SUBREAPER, 0));
}

/* The primary, while a secondary process posts. */
static void
fork_primary(struct mp_shared *sh)
{
	struct rmem_dev *dev = rmem_dev_get_by_name(MP_DEV);
	int pid, status = -1, ret;
	pid_t child;

	mp_spawn(sh, "loop", 0, &pid);
	mp_wait_for(sh, pid, 2, true);
	fork_in_calls();
	child = fork();
	if (child == 0) {
		use_in_child(sh, dev);
		_exit(0);
	}
	while ((ret = waitpid(child, &status, WNOHANG)) == 0)
		mp_serve(sh);
	TEST_ASSERT(ret == child && status == 0);
	mp_wait_for(sh, pid, __atomic_load_n(&sh->progress, __ATOMIC_ACQUIRE) + 10, true);
	TEST_OK(kill(pid, SIGKILL));
	TEST_EQ(waitpid(pid, &status, 0), pid);
	mp_check_reaped(sh, true);
}

void
mp_fork_leave(int pid)
{
	const struct mp_id id = {.pid = pid, .start = rmem_mp_start_time(pid)};
	struct pollfd fd = {.fd = rmem_mp_pidfd(&id), .events = POLLIN};

	TEST_ASSERT(fd.fd >= 0);
	if (fork() != 0)
		return;
	while (poll(&fd, 1, -1) != 1)
		;
	_exit(0);
}

void
mp_fork_run(struct mp_shared *sh)
{
	mp_run_role(sh, "fork");
	mp_check_reaped(sh, true);
	kill_parent(sh);
	fork_primary(sh);
}
