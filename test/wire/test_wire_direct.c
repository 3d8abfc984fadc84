/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The owner of keys grants peers direct access, ends it with the key or the QP, and waits for those
 * that are inside. The peer is shared memory that the cases write.
 */

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "../../drivers/soft/mem/rsoft_grant.h"
#include "../../drivers/soft/mem/rsoft_grace.h"
#include "../../drivers/soft/wire/rwire.h"
#include "../../drivers/soft/wire/port/rwire_copy.h"
#include "../../drivers/soft/wire/port/rwire_port.h"

#include "../perf/perf_row.h"
#include "../rc.h"

#define COPY 64

static struct perf_pair pair;
static struct rmem_mr *target;
static struct rsoft_grants shared;
static struct rsoft_grant_peer *peer;
static int connection[2];

static uint32_t
grant_by(struct rmem_qp *qp, const struct rmem_mr *mr)
{
	unsigned int lcore = rsoft_grace_enter();
	struct rsoft_grant *set = rsoft_grant_set(&shared, qp->qp_num, mr->rkey);
	uint32_t i, rights = 0;

	rsoft_grant_add(peer, (struct rsoft_qp *)qp, mr->rkey);
	rsoft_grace_leave(lcore);
	for (i = 0; i < RSOFT_GRANT_WAYS; i++) {
		if (set[i].rkey == mr->rkey && set[i].version % 2 == 0)
			rights |= set[i].rights;
	}
	return rights;
}

static uint32_t
grant(const struct rmem_mr *mr)
{
	return grant_by(pair.b, mr);
}

static bool
has_grants(void)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(shared.grant) && shared.grant[i].rights == 0; i++)
		;
	return i != RTE_DIM(shared.grant);
}

TEST(wire_direct, grant_ends_with_the_key)
{
	TEST_ASSERT((grant(target) & RMEM_ACCESS_REMOTE_WRITE) != 0);
	TEST_OK(rmem_mr_dereg(target));
	TEST_ASSERT(!has_grants());
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL);
}

TEST(wire_direct, grant_ends_with_the_right)
{
	struct rmem_qp_attr attr = {.access = RMEM_ACCESS_REMOTE_READ};

	TEST_ASSERT(grant(target) != 0);
	TEST_OK(rmem_qp_modify(pair.b, &attr, RMEM_QP_ACCESS_FLAGS));
	TEST_ASSERT(!has_grants());
	TEST_EQ(grant(target) & RMEM_ACCESS_REMOTE_WRITE, 0);
}

TEST(wire_direct, grant_ends_when_the_qp_fails)
{
	TEST_ASSERT(grant(target) != 0);
	(void)rsoft_qp_to_err((struct rsoft_qp *)pair.b);
	TEST_ASSERT(!has_grants());
	TEST_EQ(grant(target), 0);
}

TEST(wire_direct, key_of_another_pd_is_not_granted)
{
	struct rmem_mr *other = perf_mr(pair.pd, 4096);
	uint32_t rights;

	TEST_ASSERT(other != NULL);
	rights = grant(other);
	TEST_OK(rmem_mr_dereg(other));
	TEST_EQ(rights, 0);
}

/* Requests that the owner does not execute would not be counted. */
TEST(wire_direct, qp_that_counts_requests_of_its_peer_grants_nothing)
{
	static const uint32_t counts[] = {RMEM_QP_COUNT_RECV, RMEM_QP_COUNT_REMOTE_RDMA_WRITE};
	const struct rmem_qp_conf conf = rc_conf(pair.cq_b, 4, 4);
	struct rmem_counter *counter = NULL;
	struct rmem_qp *qps[RTE_DIM(counts)];
	uint32_t rights[RTE_DIM(counts)];
	unsigned int i;

	TEST_OK(rmem_counter_create(rmem_pd_dev(pair.pd_b), NULL, &counter));
	for (i = 0; i < RTE_DIM(counts); i++) {
		TEST_OK(rmem_qp_create(pair.pd_b, &conf, &qps[i]));
		TEST_OK(rmem_qp_attach_counter(qps[i], counter, counts[i]));
	}
	perf_qp_connect_pair(qps[0], qps[1]);
	for (i = 0; i < RTE_DIM(counts); i++)
		rights[i] = grant_by(qps[i], target);
	for (i = 0; i < RTE_DIM(counts); i++)
		TEST_OK(rmem_qp_destroy(qps[i]));
	TEST_OK(rmem_counter_destroy(counter));
	TEST_EQ(rights[0], RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_WRITE);
	TEST_EQ(rights[1], 0);
}

static void *
dereg_main(void *is_done)
{
	int ret = rmem_mr_dereg(target);

	__atomic_store_n((int *)is_done, ret == 0 ? 1 : -1, __ATOMIC_RELEASE);
	return NULL;
}

/* Deregister the MR while the peer is inside: leave() ends that. */
static void
dereg_beside(void (*leave)(void))
{
	uint64_t token = __atomic_load_n(&shared.token, __ATOMIC_ACQUIRE);
	int is_done = 0, was_done;
	pthread_t thread;

	TEST_ASSERT(grant(target) != 0);
	__atomic_store_n(&shared.inside[RSOFT_GRANT_THREADS - 1].token, token, __ATOMIC_RELEASE);
	TEST_EQ(pthread_create(&thread, NULL, dereg_main, &is_done), 0);
	while (__atomic_load_n(&shared.token, __ATOMIC_ACQUIRE) == token)
		sched_yield();
	was_done = __atomic_load_n(&is_done, __ATOMIC_ACQUIRE);
	leave();
	TEST_EQ(pthread_join(thread, NULL), 0);
	shared.inside[RSOFT_GRANT_THREADS - 1].token = 0;
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL && !has_grants());
	TEST_EQ(is_done, 1);
	TEST_EQ(was_done, 0);
}

static void
leave_inside(void)
{
	__atomic_store_n(&shared.inside[RSOFT_GRANT_THREADS - 1].token, 0, __ATOMIC_RELEASE);
}

static void
end_peer(void)
{
	close(connection[1]);
	connection[1] = -1;
}

TEST_CALL(wire_direct, dereg_waits_for_a_peer_inside, dereg_beside(leave_inside));
TEST_CALL(wire_direct, dereg_does_not_wait_for_a_peer_that_ended, dereg_beside(end_peer));

static void *
cancelled_main(void *ret)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(state, NULL);
	*(int *)ret = rmem_mr_dereg(target);
	return NULL;
}

TEST(wire_direct, dereg_of_a_cancelled_thread_keeps_no_lock)
{
	int ret = -1, inside = RSOFT_GRANT_THREADS - 1;
	void *result = PTHREAD_CANCELED;
	pthread_t thread;

	TEST_ASSERT(grant(target) != 0);
	shared.inside[inside].token = shared.token;
	end_peer();
	TEST_EQ(pthread_create(&thread, NULL, cancelled_main, &ret), 0);
	TEST_EQ(pthread_join(thread, &result), 0);
	shared.inside[inside].token = 0;
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL);
	TEST_ASSERT(result != PTHREAD_CANCELED);
	TEST_OK(ret);
}

TEST(wire_direct, dereg_does_not_wait_for_a_peer_that_entered_later)
{
	TEST_ASSERT(grant(target) != 0);
	shared.inside[0].token = UINT64_MAX;
	TEST_OK(rmem_mr_dereg(target));
	shared.inside[0].token = 0;
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL);
}

/* Memory that this process and its children have at one address. */
static uint8_t remote[COPY];
static const uint8_t local[COPY] = {1, 2, 3};

/* Copy to it in a process: a grant names it. */
static int
copy_to(struct rwire_copy_peer *link)
{
	struct rsoft_grant *grant = rsoft_grant_set(&shared, 1, 0x100);
	struct rwire_copy copy = {.qp_num = 1,
			.right = RMEM_ACCESS_REMOTE_WRITE,
			.nb = 1,
			.range[0] = {.rkey = 0x100, .addr = (uintptr_t)remote, .length = COPY},
			.nb_local = 2,
			.local[1] = {(void *)(uintptr_t)local, COPY}};
	struct rwire_copy_link direct;
	int result;

	*grant = (struct rsoft_grant){.version = 2,
			.rights = RMEM_ACCESS_REMOTE_WRITE,
			.qp_num = 1,
			.rkey = 0x100,
			.iova = (uintptr_t)remote,
			.length = COPY,
			.base = (uintptr_t)remote};
	result = (int)rwire_copy_begin(link, &shared, &direct);
	if (result != RWIRE_COPY_DONE)
		return result;
	result = (int)rwire_copy_run(&direct, &copy);
	rwire_copy_end(&direct);
	return result;
}

static bool
may_copy(pid_t pid)
{
	const struct iovec iov = {remote, COPY};

	return process_vm_readv(pid, &iov, 1, &iov, 1, 0) == COPY;
}

TEST(wire_direct, memory_of_other_users_is_not_accessed)
{
	struct rwire_copy_peer link;

	if (!may_copy(getpid()))
		test_stop(TEST_SKIPPED);
	memset(remote, 0, COPY);
	rwire_copy_connect(&link, getpid(), geteuid() + 1);
	TEST_EQ(copy_to(&link), RWIRE_COPY_NO);
	TEST_EQ(remote[0], 0);
	rwire_copy_connect(&link, getpid(), geteuid());
	TEST_EQ(copy_to(&link), RWIRE_COPY_DONE);
	TEST_MEM(remote, local, COPY);
}

/* A child that sleeps, with the memory of this process as it is now; 0: none. */
static pid_t
start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	return RTE_MAX(pid, 0);
}

static void
end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* After exec() the process of the connection has another address space. */
TEST(wire_direct, another_address_space_is_not_accessed)
{
	struct rwire_copy_peer link;
	int before, after;
	pid_t pid;

	memset(remote, 0, COPY);
	rsoft_grant_close(peer);
	pid = start_child(); /* without the sentinel */
	peer = rsoft_grant_open(rsoft_dev_of(&pair.b->obj), &shared, connection[0]);
	TEST_ASSERT(pid != 0 && peer != NULL);
	if (!may_copy(pid)) {
		end_child(pid);
		test_stop(TEST_SKIPPED);
	}
	rwire_copy_connect(&link, getpid(), geteuid());
	before = copy_to(&link);
	memset(remote, 0, COPY);
	link.pid = pid;
	after = copy_to(&link);
	TEST_ASSERT(may_copy(pid)); /* remote is that of the child now */
	end_child(pid);
	TEST_EQ(before, RWIRE_COPY_DONE);
	TEST_EQ(after, RWIRE_COPY_NO);
	TEST_EQ(remote[0], 0);
}

/* The target waits for the thread that it finds inside. */
TEST(wire_direct, child_of_fork_is_inside_as_itself)
{
	struct rwire_copy_peer link;
	int status = -1;
	pid_t pid;

	if (!may_copy(getpid()))
		test_stop(TEST_SKIPPED);
	rwire_copy_connect(&link, getpid(), geteuid());
	TEST_EQ(copy_to(&link), RWIRE_COPY_DONE);
	TEST_EQ(shared.inside[0].tid, (uint32_t)gettid());
	pid = fork();
	if (pid == 0) {
		(void)copy_to(&link);
		_exit(shared.inside[0].tid == (uint32_t)getpid() ? 0 : 1);
	}
	TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
	TEST_EQ(status, 0);
}

/* A connection of a child that stops; the descriptor, or -1. */
static int
connect_stopped_child(pid_t *pid)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(name);
	int status, end = -1, fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	/* At a name that the kernel chooses. */
	if (bind(fd, (struct sockaddr *)&name, sizeof(name.sun_family)) != 0 ||
			getsockname(fd, (struct sockaddr *)&name, &size) != 0 || listen(fd, 1) != 0)
		goto close;
	*pid = fork();
	if (*pid == 0) {
		close(fd);
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect(fd, (struct sockaddr *)&name, size) == 0)
			raise(SIGSTOP);
		_exit(1);
	}
	if (waitpid(*pid, &status, WUNTRACED) == *pid && WIFSTOPPED(status))
		end = accept(fd, NULL, NULL);
close:
	close(fd);
	return end;
}

TEST(wire_direct, dereg_does_not_wait_for_a_peer_that_is_stopped)
{
	struct rsoft_grant_inside *inside = &shared.inside[2];
	struct rwire_copy_peer link;
	pid_t pid = 0;
	int fd;

	fd = connect_stopped_child(&pid);
	TEST_ASSERT(fd >= 0);
	rsoft_grant_close(peer);
	peer = rsoft_grant_open(rsoft_dev_of(&pair.b->obj), &shared, fd);
	TEST_ASSERT(peer != NULL && grant(target) != 0);
	inside->tid = (uint32_t)pid;
	inside->token = shared.token;
	TEST_OK(rmem_mr_dereg(target));
	/* It copies nothing when it continues, and gets no grant until it has left. */
	TEST_EQ(shared.sentinel, 0);
	rwire_copy_connect(&link, getpid(), geteuid());
	TEST_EQ(copy_to(&link), RWIRE_COPY_ASK);
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL);
	TEST_EQ(grant(target), 0);
	inside->token = 0;
	TEST_ASSERT(grant(target) != 0);
	TEST_ASSERT(shared.sentinel != 0);
	end_child(pid);
	close(fd);
}

static enum rwire_copy_result
no_direct(struct rwire_port *port, const struct rwire_addr *dst, struct rwire_copy_link *direct)
{
	RTE_SET_USED(port);
	RTE_SET_USED(dst);
	RTE_SET_USED(direct);
	return RWIRE_COPY_NO;
}

/* Requests after a SEND are executed directly as those before it were. */
TEST(wire_direct, send_does_not_end_direct_access)
{
	const struct rwire_port_ops ops = {.tx_direct = no_direct};
	static struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND};
	static struct rsoft_qp qp = {.state = RMEM_QPS_RTS};
	struct rwire_port port = {.ops = &ops, .has_direct = true};
	static struct rwire wire;
	static struct rwire_qp q = {.service = RWIRE_RC};

	wire.port = &port;
	q.wire = &wire;
	q.qp = &qp;
	qp.sq.ring = (void *)&wr;
	qp.sq.prod = 1;
	q.req.direct = RWIRE_DIRECT_WORKS;
	TEST_ASSERT(rwire_req_copy_run(&q, rte_lcore_id()));
	TEST_EQ(q.req.direct, RWIRE_DIRECT_WORKS);
}

static void
setup(void)
{
	memset(&shared, 0, sizeof(shared));
	TEST_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, connection), 0);
	perf_pair_open_two(&pair, "max_qp=8", "max_qp=8");
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL);
	peer = rsoft_grant_open(rsoft_dev_of(&pair.b->obj), &shared, connection[0]);
	TEST_ASSERT(peer != NULL);
}

static void
teardown(void)
{
	rsoft_grant_close(peer);
	close(connection[0]);
	if (connection[1] >= 0)
		close(connection[1]);
	TEST_OK(rmem_mr_dereg(target));
	perf_pair_close(&pair);
}

TEST_SUITE(wire_direct, setup, teardown);
