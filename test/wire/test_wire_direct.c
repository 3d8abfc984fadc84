/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The owner of keys grants peers direct access, ends it with the key or the QP, and waits for those
 * that are inside. The peer is shared memory that the cases write.
 */

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "../../drivers/soft/rsoft_direct.h"
#include "../../drivers/soft/rsoft_grace.h"
#include "../../drivers/soft/wire/rwire_direct.h"

#include "../perf.h"
#include "../test.h"

#define COPY 64

static struct perf_pair pair;
static struct rmem_mr *target;
static struct rsoft_direct shared;
static struct rsoft_direct_peer *peer;
static int connection[2];

static uint32_t
grant(const struct rmem_mr *mr)
{
	unsigned int lcore = rsoft_grace_enter();
	struct rsoft_grant *set = rsoft_grant_set(&shared, pair.b->qp_num, mr->rkey);
	uint32_t i, rights = 0;

	rsoft_direct_grant(peer, (struct rsoft_qp *)pair.b, mr->rkey);
	rsoft_grace_leave(lcore);
	for (i = 0; i < RSOFT_GRANT_WAYS; i++) {
		if (set[i].rkey == mr->rkey && set[i].version % 2 == 0)
			rights |= set[i].rights;
	}
	return rights;
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
	return TEST_SUCCESS;
}

TEST(wire_direct, grant_ends_with_the_right)
{
	struct rmem_qp_attr attr = {.access = RMEM_ACCESS_REMOTE_READ};

	TEST_ASSERT(grant(target) != 0);
	TEST_OK(rmem_qp_modify(pair.b, &attr, RMEM_QP_ACCESS_FLAGS));
	TEST_ASSERT(!has_grants());
	TEST_EQ(grant(target) & RMEM_ACCESS_REMOTE_WRITE, 0);
	return TEST_SUCCESS;
}

TEST(wire_direct, grant_ends_when_the_qp_fails)
{
	TEST_ASSERT(grant(target) != 0);
	(void)rsoft_qp_to_err((struct rsoft_qp *)pair.b);
	TEST_ASSERT(!has_grants());
	TEST_EQ(grant(target), 0);
	return TEST_SUCCESS;
}

TEST(wire_direct, key_of_another_pd_is_not_granted)
{
	struct rmem_mr *other = perf_mr(pair.pd, 4096);
	uint32_t rights;

	TEST_ASSERT(other != NULL);
	rights = grant(other);
	TEST_OK(rmem_mr_dereg(other));
	TEST_EQ(rights, 0);
	return TEST_SUCCESS;
}

static void *
dereg_main(void *is_done)
{
	int ret = rmem_mr_dereg(target);

	__atomic_store_n((int *)is_done, ret == 0 ? 1 : -1, __ATOMIC_RELEASE);
	return NULL;
}

/* Deregister the MR while the peer is inside: leave() ends that. */
static int
dereg_beside(void (*leave)(void))
{
	uint64_t token = __atomic_load_n(&shared.token, __ATOMIC_ACQUIRE);
	int is_done = 0, was_done;
	pthread_t thread;

	TEST_ASSERT(grant(target) != 0);
	__atomic_store_n(&shared.inside[RSOFT_DIRECT_THREADS - 1].token, token, __ATOMIC_RELEASE);
	TEST_EQ(pthread_create(&thread, NULL, dereg_main, &is_done), 0);
	while (__atomic_load_n(&shared.token, __ATOMIC_ACQUIRE) == token)
		sched_yield();
	was_done = __atomic_load_n(&is_done, __ATOMIC_ACQUIRE);
	leave();
	TEST_EQ(pthread_join(thread, NULL), 0);
	shared.inside[RSOFT_DIRECT_THREADS - 1].token = 0;
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL && !has_grants());
	TEST_EQ(is_done, 1);
	TEST_EQ(was_done, 0);
	return TEST_SUCCESS;
}

static void
leave_inside(void)
{
	__atomic_store_n(&shared.inside[RSOFT_DIRECT_THREADS - 1].token, 0, __ATOMIC_RELEASE);
}

static void
end_peer(void)
{
	close(connection[1]);
	connection[1] = -1;
}

TEST(wire_direct, dereg_waits_for_a_peer_inside)
{
	return dereg_beside(leave_inside);
}

TEST(wire_direct, dereg_does_not_wait_for_a_peer_that_ended)
{
	return dereg_beside(end_peer);
}

TEST(wire_direct, dereg_does_not_wait_for_a_peer_that_entered_later)
{
	TEST_ASSERT(grant(target) != 0);
	shared.inside[0].token = UINT64_MAX;
	TEST_OK(rmem_mr_dereg(target));
	shared.inside[0].token = 0;
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL);
	return TEST_SUCCESS;
}

/* The grant names memory of this process. */
static int
copy_from_user(uint32_t uid, struct rsoft_grant *grant, const uint8_t *from, uint8_t *to)
{
	const struct rwire_range range = {.qp_num = grant->qp_num,
			.rkey = grant->rkey,
			.addr = (uintptr_t)to,
			.right = RMEM_ACCESS_REMOTE_WRITE};
	const struct iovec iov = {(void *)(uintptr_t)from, COPY};
	struct rwire_direct direct;
	struct rwire_link link;
	int result;

	rwire_direct_connect(&link, getpid(), uid);
	TEST_EQ(rwire_direct_begin(&link, &shared, &direct), RWIRE_DIRECT_DONE);
	result = (int)rwire_direct_copy(&direct, &range, &iov, 1, COPY);
	rwire_direct_end(&direct);
	return result;
}

TEST(wire_direct, memory_of_other_users_is_not_accessed)
{
	static const uint8_t from[COPY] = {1, 2, 3};
	static uint8_t to[COPY];
	struct rsoft_grant *grant = rsoft_grant_set(&shared, 1, 0x100);
	const struct iovec iov = {to, COPY};

	if (process_vm_readv(getpid(), &iov, 1, &iov, 1, 0) != COPY)
		return TEST_SKIPPED;
	*grant = (struct rsoft_grant){.version = 2,
			.rights = RMEM_ACCESS_REMOTE_WRITE,
			.qp_num = 1,
			.rkey = 0x100,
			.iova = (uintptr_t)to,
			.length = COPY,
			.base = (uintptr_t)to};
	memset(to, 0, COPY);
	TEST_EQ(copy_from_user(geteuid() + 1, grant, from, to), RWIRE_DIRECT_NO);
	TEST_EQ(to[0], 0);
	TEST_EQ(copy_from_user(geteuid(), grant, from, to), RWIRE_DIRECT_DONE);
	TEST_MEM(to, from, COPY);
	return TEST_SUCCESS;
}

static int
setup(void)
{
	memset(&shared, 0, sizeof(shared));
	TEST_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, connection), 0);
	TEST_RUN(perf_pair_open_two(&pair, "max_qp=8", "max_qp=8"));
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(target != NULL);
	peer = rsoft_direct_open(rsoft_dev_of(&pair.b->obj), &shared, connection[0]);
	TEST_ASSERT(peer != NULL);
	return TEST_SUCCESS;
}

static int
teardown(void)
{
	rsoft_direct_close(peer);
	close(connection[0]);
	if (connection[1] >= 0)
		close(connection[1]);
	TEST_OK(rmem_mr_dereg(target));
	return perf_pair_close(&pair);
}

TEST_SUITE(wire_direct, setup, teardown);
