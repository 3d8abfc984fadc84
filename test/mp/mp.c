/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Secondary processes that use a device of the primary, and are killed.
 *
 * usage: dpdk-test-mp [DEVICE_ARGS]
 *
 * The primary creates the objects (mp.h), and runs this program again for each role of a secondary
 * process (mp_role.c, mp_kill.c). It executes their requests, by its polls or with engine=.
 * The end of the primary is tested by a primary that is a child of this process.
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>

#include <rmem_tracked.h>

#include "mp.h"
#include "proc.h"
#include "rc.h"

#define DEV_ARGS "max_mr=64,max_mw=64,max_qp=8,max_cq=8"

static struct rmem_dev *dev;
static struct rmem_pd *pd;
static const struct mp_shared *shared;
static uint32_t nb_ends;  /* of processes; atomic */
static uint32_t nb_early; /* those whose QPs or keys were left; atomic */
static uint32_t nb_refs;  /* of the device, without processes */

/* A device that the main thread closes while a process attaches to it; atomic. */
static enum {
	CLOSE_NONE,
	CLOSE_ARMED,
	CLOSE_NOW,
	CLOSE_ENDED
} closing;
static struct rmem_dev *closed;

/* Called with the lock of the processes held, between the end of an attachment and the next one. */
static void
let_close(void)
{
	if (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) != CLOSE_ARMED)
		return;
	__atomic_store_n(&closing, CLOSE_NOW, __ATOMIC_RELEASE);
	while (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) == CLOSE_NOW &&
			!(__atomic_load_n(&closed->obj.refs, __ATOMIC_ACQUIRE) &
					RMEM_OBJ_REFS_DEAD))
		sched_yield();
}

static void
count_end(uint16_t process)
{
	/* As when their buffers are freed, which requests must no longer use. */
	if (shared->qp->obj.process == process || shared->fast->obj.process == process ||
			shared->mw->obj.process == process)
		__atomic_fetch_add(&nb_early, 1, __ATOMIC_RELEASE);
	if (process > RMEM_PROCESS_PRIMARY && process <= RMEM_PROCESS_MAX)
		__atomic_fetch_add(&nb_ends, 1, __ATOMIC_RELEASE);
	let_close();
}

RTE_INIT(mp_init)
{
	rmem_mp_end_add(count_end);
}

void
mp_make_qp(struct rmem_pd *parent, const char *name, struct rmem_cq *cq, uint32_t flags,
		struct rmem_qp **qp)
{
	struct rmem_qp_conf conf = rc_conf(cq, MP_DEPTH, MP_DEPTH);

	conf.max_inline_data = 64;
	conf.flags = flags;
	conf.name = name;
	TEST_OK(rmem_qp_create(parent, &conf, qp));
}

void
mp_connect_two(struct rmem_qp *a, struct rmem_qp *b)
{
	const struct rmem_qp_conn conn = {.timeout = 10, .retry_cnt = 1, .rnr_retry = 1};

	rc_connect(a, b, conn);
	rc_connect(b, a, conn);
}

void
mp_connect(struct mp_shared *sh)
{
	struct rmem_wc wc;

	TEST_OK(rmem_qp_reset(sh->qp));
	TEST_OK(rmem_qp_reset(sh->peer));
	while (rmem_poll_cq(sh->qp->send_cq, &wc, 1) > 0 || rmem_poll_cq(sh->peer_cq, &wc, 1) > 0)
		;
	mp_connect_two(sh->qp, sh->peer);
	TEST_OK(rmem_qp_reset(sh->other[0]));
	TEST_OK(rmem_qp_reset(sh->other[1]));
	mp_connect_two(sh->other[0], sh->other[1]);
}

static void
make(struct mp_shared *sh, const char *args)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE | RMEM_ACCESS_MW_BIND;
	const struct rmem_mr_attr attr = {.addr = sh->buf,
			.length = sizeof(sh->buf),
			.access = access,
			.name = MP_MR};
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * MP_DEPTH};
	const struct rmem_srq_conf srq_conf = {.max_wr = 4};
	const struct rmem_pool_conf pool_conf = {.name = "mp-pool",
			.nb_bufs = MP_BUFS,
			.buf_size = 64,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_POOL_TRACKED};
	struct rmem_cq *cq;
	char text[256];

	shared = sh;
	snprintf(text, sizeof(text), "%s,%s", DEV_ARGS, args);
	TEST_OK(test_serve_lcore(text));
	TEST_OK(rmem_dev_create(MP_DEV, text, &dev));
	TEST_OK(rmem_pd_alloc(dev, &pd));
	TEST_OK(rmem_mr_reg_attr(pd, &attr, &sh->mr));
	TEST_OK(rmem_fast_reg_mr_alloc(pd, 4, &sh->fast));
	TEST_OK(rmem_fast_reg_page_list_alloc(dev, 4, &sh->list));
	TEST_OK(rmem_mkey_alloc(pd, 4, &sh->mkey));
	TEST_OK(rmem_mw_alloc(pd, RMEM_MW_TYPE_2, &sh->mw));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &cq));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &sh->peer_cq));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &sh->other_cq));
	TEST_OK(rmem_srq_create(pd, &srq_conf, &sh->srq));
	TEST_OK(rmem_pool_create(pd, &pool_conf, &sh->pool));
	mp_make_qp(pd, MP_QP, cq, 0, &sh->qp);
	mp_make_qp(pd, "mp-peer", sh->peer_cq, 0, &sh->peer);
	mp_make_qp(pd, "mp-other0", sh->other_cq, RMEM_QP_LATE_ERRORS, &sh->other[0]);
	mp_make_qp(pd, "mp-other1", sh->other_cq, 0, &sh->other[1]);
	nb_refs = dev->obj.refs;
	mp_connect(sh);
}

static void
release(struct mp_shared *sh)
{
	struct rmem_cq *cq = sh->qp->send_cq;

	TEST_OK(rmem_qp_destroy(sh->qp));
	TEST_OK(rmem_qp_destroy(sh->peer));
	TEST_OK(rmem_qp_destroy(sh->other[0]));
	TEST_OK(rmem_qp_destroy(sh->other[1]));
	TEST_OK(rmem_srq_destroy(sh->srq));
	TEST_OK(rmem_pool_destroy(sh->pool));
	TEST_OK(rmem_cq_destroy(cq));
	TEST_OK(rmem_cq_destroy(sh->peer_cq));
	TEST_OK(rmem_cq_destroy(sh->other_cq));
	TEST_OK(rmem_mw_dealloc(sh->mw));
	TEST_OK(rmem_mr_dereg(sh->mkey));
	TEST_OK(rmem_fast_reg_page_list_free(sh->list));
	TEST_OK(rmem_mr_dereg(sh->fast));
	TEST_OK(rmem_mr_dereg(sh->mr));
	TEST_OK(rmem_pd_dealloc(pd));
	TEST_OK(rmem_dev_close(dev));
}

static void
send_one(struct mp_shared *sh)
{
	struct rmem_sge sge = {.addr = (uintptr_t)&sh->buf[MP_PEER * MP_PART],
			.length = 16,
			.lkey = sh->mr->lkey};
	const struct rmem_recv_wr recv = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);

	TEST_EQ(rmem_post_recv(sh->peer, &recv, 1), 1);
	TEST_EQ(rmem_post_send(sh->peer, &wr, 1), 1);
}

void
mp_serve(struct mp_shared *sh)
{
	struct rmem_wc wc;

	if (__atomic_exchange_n(&sh->nb_sends, 0, __ATOMIC_ACQ_REL) != 0)
		send_one(sh);
	while (rmem_poll_cq(sh->peer_cq, &wc, 1) > 0)
		;
	while (sh->two.peer_cq != NULL && rmem_poll_cq(sh->two.peer_cq, &wc, 1) > 0)
		;
	sched_yield();
}

void
mp_spawn(struct mp_shared *sh, const char *role, unsigned int number, int *pid)
{
	char text[16], at[24];
	const char *args[] = {role, text, at, NULL};

	__atomic_store_n(&sh->progress, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&sh->is_going, 0, __ATOMIC_RELEASE);
	snprintf(text, sizeof(text), "%u", number);
	snprintf(at, sizeof(at), "%" PRIxPTR, (uintptr_t)sh);
	*pid = proc_spawn(args);
	TEST_ASSERT(*pid > 0);
}

static void
run_to_end(struct mp_shared *sh, int pid)
{
	int status, ret;

	while ((ret = waitpid(pid, &status, WNOHANG)) == 0)
		mp_serve(sh);
	TEST_EQ(ret, pid);
	TEST_EQ(status, 0);
}

void
mp_run_role(struct mp_shared *sh, const char *role)
{
	int pid;

	mp_spawn(sh, role, 0, &pid);
	run_to_end(sh, pid);
}

/* Whether a process has ended. It is left to waitpid(). */
static bool
has_ended(int pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
			info.si_pid != 0;
}

void
mp_wait_for(struct mp_shared *sh, int pid, uint32_t progress, bool is_serving)
{
	while (__atomic_load_n(&sh->progress, __ATOMIC_ACQUIRE) < progress) {
		TEST_ASSERT(!has_ended(pid));
		if (is_serving)
			mp_serve(sh);
		else
			sched_yield();
	}
}

/*
 * Rules of port: and device: need ip=, whose control thread can't be one of EAL's while there are
 * secondary processes: the device is refused, and they go on.
 */
static void
refuse_port_rules(void)
{
	struct rmem_dev *made;
	char args[80];

	/* Other runs of this program have other names. */
	snprintf(args, sizeof(args), "ip=127.0.16.102,port=shm:mp%d,chaos=port:PORT_ERR@at:1",
			(int)getpid());
	TEST_ERR(rmem_dev_create(MP_DEV2, args, &made), ENOSPC);
	TEST_ERR(rmem_dev_create(MP_DEV2, "chaos=port:PORT_ERR@at:1", &made), EINVAL);
	TEST_ASSERT(rmem_dev_get_by_name(MP_DEV2) == NULL);
}

static void
held_qp_is_refused(struct mp_shared *sh)
{
	int holder;

	mp_spawn(sh, "hold", 0, &holder);
	mp_wait_for(sh, holder, 1, true);
	TEST_ERR(rmem_qp_destroy(sh->qp), EBUSY);
	TEST_ERR(rmem_cq_resize(sh->qp->send_cq, 8 * MP_DEPTH), EBUSY);
	TEST_OK(rmem_cq_resize(sh->other_cq, 8 * MP_DEPTH));
	TEST_ERR(rmem_dev_close(dev), EBUSY);
	refuse_port_rules();
	mp_run_role(sh, "clash");
	mp_run_role(sh, "same_lcore");
	mp_run_role(sh, "late");
	__atomic_store_n(&sh->is_going, 1, __ATOMIC_RELEASE);
	run_to_end(sh, holder);
	mp_check_reaped(sh, true);
	TEST_OK(rmem_cq_resize(sh->qp->send_cq, 4 * MP_DEPTH));
}

/* Memory that only the primary has mapped, and whose pages are populated by the request. */
static void
use_on_demand(struct mp_shared *sh, void *mem, size_t size)
{
	unsigned int i;
	int pid;

	mp_spawn(sh, "on_demand", 0, &pid);
	for (i = 1; i <= 4; i++) {
		mp_wait_for(sh, pid, i, true);
		if (i % 2 == 0) {
			mp_connect(sh);
			TEST_ASSERT(mmap(mem, size, PROT_READ | PROT_WRITE,
						    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
						    0) == mem);
		} else {
			TEST_OK(munmap(mem, size));
		}
		__atomic_store_n(&sh->is_going, i, __ATOMIC_RELEASE);
	}
	run_to_end(sh, pid);
	mp_check_reaped(sh, true);
	TEST_MEM(mem, &sh->buf[MP_FROM * MP_PART], size);
}

static void
write_on_demand(struct mp_shared *sh)
{
	const size_t size = MP_PART;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	TEST_ASSERT(mem != MAP_FAILED);
	ret = rmem_mr_reg(pd, mem, size, 0,
			RMEM_ACCESS_ON_DEMAND | RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			&sh->odp);
	TEST_ASSERT(ret == 0 || ret == -EOPNOTSUPP);
	if (ret == 0) {
		nb_refs = dev->obj.refs;
		use_on_demand(sh, mem, size);
		TEST_OK(rmem_mr_dereg(sh->odp));
	}
	nb_refs = dev->obj.refs;
	TEST_OK(munmap(mem, size));
}

/* A process that attaches holds the device from the search on. */
static void
close_in_attach(struct mp_shared *sh)
{
	int pid, ret;

	TEST_OK(rmem_dev_create(MP_DEV2, NULL, &closed));
	__atomic_store_n(&closing, CLOSE_ARMED, __ATOMIC_RELEASE);
	mp_spawn(sh, "attach_again", 0, &pid);
	while (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) == CLOSE_ARMED) {
		TEST_ASSERT(!has_ended(pid));
		sched_yield();
	}
	ret = rmem_dev_close(closed);
	__atomic_store_n(&closing, CLOSE_ENDED, __ATOMIC_RELEASE);
	run_to_end(sh, pid);
	TEST_ERR(ret, EBUSY);
	TEST_OK(rmem_dev_close(closed));
}

/* Write by the keys that a process bound, from QPs of the primary. */
static void
write_by(struct mp_shared *sh, uint32_t rkey, int status)
{
	struct rmem_sge sge = {.addr = (uintptr_t)sh->buf, .length = 8, .lkey = sh->mr->lkey};
	const struct rmem_send_wr wr = rc_rdma(
			RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)&sh->buf[MP_TO * MP_PART], rkey);
	struct rmem_wc wc;

	TEST_EQ(rmem_post_send(sh->other[0], &wr, 1), 1);
	TEST_EQ(rc_wait(sh->other_cq, &wc), 1);
	TEST_STATUS(wc.status, status);
}

/* Keys end with the process that bound them; its queued requests keep their objects until then. */
static void
keys_end(struct mp_shared *sh, bool is_engine)
{
	uint32_t mw_rkey;
	int pid, status;

	mp_spawn(sh, "binds", 0, &pid);
	mp_wait_for(sh, pid, 1, true);
	write_by(sh, sh->fast->rkey, RMEM_WC_SUCCESS);
	mw_rkey = sh->mw->rkey;
	TEST_ASSERT(mw_rkey != 0);
	__atomic_store_n(&sh->is_going, 1, __ATOMIC_RELEASE);
	/* Without engines nothing executes the request while the primary does not poll. */
	mp_wait_for(sh, pid, 2, false);
	if (!is_engine) {
		TEST_ERR(rmem_mr_dereg(sh->fast), EBUSY);
		TEST_ERR(rmem_fast_reg_page_list_free(sh->list), EBUSY);
	}
	TEST_OK(kill(pid, SIGKILL));
	TEST_EQ(waitpid(pid, &status, 0), pid);
	mp_check_reaped(sh, true);
	write_by(sh, sh->fast->rkey, RMEM_WC_REM_ACCESS_ERR);
	mp_connect(sh);
	write_by(sh, mw_rkey, RMEM_WC_REM_ACCESS_ERR);
	mp_connect(sh);
}

void
mp_check_reaped(struct mp_shared *sh, bool has_claimed)
{
	struct rmem_qp_attr attr;

	/* Then its QPs and keys are released, and in a moment its buffers. */
	while (__atomic_load_n(&dev->obj.refs, __ATOMIC_ACQUIRE) != nb_refs ||
			rte_mempool_avail_count(sh->pool->mp) != MP_BUFS)
		sched_yield();
	TEST_EQ(sh->qp->obj.process, 0);
	TEST_ASSERT(sh->fast->obj.process <= RMEM_PROCESS_PRIMARY);
	TEST_ASSERT(sh->mw->obj.process <= RMEM_PROCESS_PRIMARY);
	TEST_EQ(sh->fast->obj.refs, 0);
	TEST_EQ(sh->list->obj.refs, 0);
	TEST_EQ(sh->mw->obj.refs, 0);
	TEST_OK(rmem_qp_query(sh->qp, &attr));
	if (has_claimed)
		TEST_EQ(attr.state, RMEM_QPS_RESET);
	TEST_EQ(attr.send_queued, 0);
	TEST_EQ(attr.recv_queued, 0);
	TEST_OK(rmem_dev_audit(dev));
	mp_connect(sh);
}

static void
run_all(struct mp_shared *sh, bool is_engine)
{
	struct rmem_dev *third;

	/* By the first process of all: its requests count although none has ended before. */
	test_set_running("keys_end");
	keys_end(sh, is_engine);
	TEST_EQ(__atomic_load_n(&nb_ends, __ATOMIC_ACQUIRE), 1);
	test_set_running("traffic");
	mp_run_role(sh, "traffic");
	TEST_ERR(rmem_mp_end_add(NULL), EINVAL);
	mp_connect(sh);
	test_set_running("refused");
	TEST_OK(rte_mempool_get(sh->pool->mp, &sh->kept));
	TEST_EQ(strlen(MP_DEV3), RMEM_NAME_SIZE - 1);
	TEST_OK(rmem_dev_create(MP_DEV3, NULL, &third));
	mp_run_role(sh, "refused");
	TEST_OK(rmem_dev_close(third));
	TEST_EQ(rmem_tracked_owner(sh->pool->mp, sh->kept), RMEM_PROCESS_PRIMARY);
	rte_mempool_put(sh->pool->mp, sh->kept);
	mp_connect(sh);
	test_set_running("held_qp_is_refused");
	held_qp_is_refused(sh);
	mp_connect(sh);
	test_set_running("write_on_demand");
	write_on_demand(sh);
	test_set_running("close_in_attach");
	close_in_attach(sh);
	test_set_running("cq");
	mp_cq_run(sh);
	test_set_running("bad");
	mp_bad_run(sh);
	test_set_running("fork");
	mp_fork_run(sh);
	test_set_running("not_claimed");
	mp_refused_run(sh);
	test_set_running("two");
	mp_two_run(sh);
	test_set_running("kill");
	mp_kill_run(sh);
	test_set_running("buffers");
	mp_run_role(sh, "numbers");
	mp_kill_with_buffers(sh);
	TEST_EQ(__atomic_load_n(&nb_early, __ATOMIC_ACQUIRE), 0);
	test_set_running("traffic_again");
	mp_run_role(sh, "traffic");
	mp_check_reaped(sh, true);
}

static void
run_primary(char *program, const char *args)
{
	struct mp_shared *sh;

	TEST_RUN(proc_start_primary(program, 0, 1));
	sh = rte_zmalloc("mp", sizeof(*sh), 4096);
	TEST_ASSERT(sh != NULL);
	make(sh, args);
	run_all(sh, strstr(args, "engine=") != NULL);
	release(sh);
	rte_free(sh);
	rte_eal_cleanup();
}

/* A primary whose secondary process outlives it. */
static void
run_mortal(char *program, const char *args)
{
	struct mp_shared *sh;
	int pid;

	TEST_RUN(proc_start_primary(program, 0, 1));
	sh = rte_zmalloc("mp", sizeof(*sh), 4096);
	TEST_ASSERT(sh != NULL);
	make(sh, args);
	mp_spawn(sh, "orphan", 0, &pid);
	mp_wait_for(sh, pid, 1, true);
	mp_fork_leave(pid);
	kill(getpid(), SIGKILL);
	test_stop(TEST_FAILED);
}

static void
primary_ends(char *program, const char *args)
{
	int fds[2], status;
	char result = 0, fd[16];
	pid_t pid;

	TEST_OK(pipe(fds));
	pid = fork();
	TEST_ASSERT(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		snprintf(fd, sizeof(fd), "%d", fds[1]);
		setenv("MP_RESULT_FD", fd, 1);
		run_mortal(program, args);
		_exit(EXIT_FAILURE);
	}
	close(fds[1]);
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* Of the process that has outlived it; none if that failed. */
	TEST_EQ(read(fds[0], &result, 1), 1);
	TEST_EQ(result, 'y');
}

static void
run_secondary(int argc, char **argv)
{
	const char *role = argv[7];
	const char *fd = getenv("MP_RESULT_FD");
	unsigned int lcore = strcmp(role, "clash") == 0 ? 0
			: strcmp(role, "late") == 0 || strcmp(role, "drain") == 0 ||
					strcmp(role, "cq_other") == 0
			? MP_LCORE + 1
			: MP_LCORE;
	char **args = proc_start_secondary(argv, lcore);
	int ret;

	RTE_SET_USED(argc);
	TEST_ASSERT(args != NULL);
	/* A process that waits for a primary which has failed would not end. */
	if (fd == NULL)
		TEST_OK(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
	ret = TEST_TRY(mp_role_run((void *)(uintptr_t)strtoull(args[2], NULL, 16), args));
	if (ret == TEST_SUCCESS && fd != NULL && write((int)strtol(fd, NULL, 10), "y", 1) != 1)
		ret = TEST_FAILED;
	TEST_RUN(ret);
}

int
main(int argc, char **argv)
{
	const char *args = argc == 2 ? argv[1] : "";
	int result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (proc_is_secondary(argc, argv))
		return TEST_TRY(run_secondary(argc, argv)) == TEST_SUCCESS ? EXIT_SUCCESS
									   : EXIT_FAILURE;
	if (!proc_can_start())
		return TEST_SKIPPED;
	test_set_running("primary_ends");
	result = TEST_TRY(primary_ends(argv[0], args));
	if (result == TEST_SUCCESS)
		result = TEST_TRY(run_primary(argv[0], args));
	printf("mp: %s\n", result == TEST_SUCCESS ? "passed" : "failed");
	return result == TEST_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
