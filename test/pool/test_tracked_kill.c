/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Owners of buffers in memory shared by processes, one of which is killed: at any instant while
 * others get and put, and at each instruction. No buffer is lost, and nothing waits for the dead.
 */

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/rmem_pool/rmem_tracked_priv.h"

#include "fixture.h"

#define NB_BUFS    45u
#define MAX_HELD   24u
#define MAX_BURST  13u
#define KILLS      200u
#define MAX_POINTS 120u /* instructions at which a process is killed */
#define PARENT     1
#define CHILD      2

/* In shared memory, followed by the owners. */
struct shared {
	uint32_t nb_rounds;       /* of the child; atomic */
	uint32_t holder[NB_BUFS]; /* by number of the buffer; atomic */
	uint8_t bufs[NB_BUFS][64];
} __rte_cache_aligned;

static struct shared *shared;
static struct rmem_tracked *td;

struct process {
	uint8_t number;
	uint32_t seed;
	uint32_t nb_held;
	void *held[MAX_HELD];
};

static size_t
memory_size(void)
{
	return sizeof(struct shared) + rmem_tracked_mem_size(NB_BUFS);
}

static void
setup(void)
{
	uint32_t i;

	shared = mmap(NULL, memory_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	TEST_ASSERT(shared != MAP_FAILED);
	td = (struct rmem_tracked *)(shared + 1);
	rmem_tracked_init(td, NB_BUFS);
	for (i = 0; i < NB_BUFS; i++)
		TEST_ASSERT(rmem_tracked_add(td, shared->bufs[i]));
}

static void
teardown(void)
{
	TEST_OK(munmap(shared, memory_size()));
}

static uint32_t *
holder_of(const void *buf)
{
	return &shared->holder[((uintptr_t)buf - (uintptr_t)shared->bufs) /
			sizeof(shared->bufs[0])];
}

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* Get some buffers and put some; false if one is held by another process. */
static bool
get_and_put(struct process *process)
{
	unsigned int i, n = next_random(&process->seed) % MAX_BURST;
	bool is_ok = true;
	void *objs[MAX_BURST];

	if (process->nb_held + n <= MAX_HELD &&
			rmem_tracked_get(td, objs, n, process->number, process->number) == 0) {
		for (i = 0; i < n; i++) {
			is_ok &= __atomic_exchange_n(holder_of(objs[i]), process->number,
						 __ATOMIC_RELAXED) == 0;
			process->held[process->nb_held++] = objs[i];
		}
	}
	n = next_random(&process->seed) % MAX_BURST;
	for (i = 0; i < n && process->nb_held > 0; i++) {
		objs[i] = process->held[--process->nb_held];
		is_ok &= rmem_tracked_owner_of(td, objs[i]) == process->number;
		__atomic_store_n(holder_of(objs[i]), 0, __ATOMIC_RELAXED);
	}
	return rmem_tracked_put(td, objs, i, process->number, process->number) == 0 && is_ok;
}

/* The child: until it is killed, or finds an error. */
static void
run_child(uint32_t seed)
{
	struct process process = {.number = CHILD, .seed = seed};

	while (get_and_put(&process))
		__atomic_fetch_add(&shared->nb_rounds, 1, __ATOMIC_RELAXED);
	_exit(1);
}

/* After the death of the child: its buffers are freed, those of the parent are not. */
static void
expect_whole(uint32_t nb_held)
{
	uint32_t i, nb[TRACKED_MAX_OWNER + 1], nb_child;

	TEST_ASSERT(rmem_tracked_find_error(td) == NULL);
	rmem_tracked_count(td, nb);
	nb_child = nb[CHILD];
	TEST_EQ(nb[0] + nb[PARENT] + nb[CHILD], NB_BUFS);
	for (i = 0; i < NB_BUFS; i++) {
		int owner = rmem_tracked_owner_of(td, shared->bufs[i]);

		/* The child dies between its get, or put, and the change of the holder. */
		if (owner == CHILD)
			shared->holder[i] = 0;
		TEST_EQ(shared->holder[i], owner == PARENT ? PARENT : 0);
	}
	TEST_EQ(rmem_tracked_reap_from(td, CHILD, NULL), nb_child);
	TEST_EQ(rmem_tracked_reap_from(td, CHILD, NULL), 0);
	rmem_tracked_count(td, nb);
	TEST_EQ(nb[PARENT], nb_held);
	TEST_EQ(nb[0], NB_BUFS - nb_held);
}

static void
kill_child(struct process *parent, uint32_t nb_rounds)
{
	uint64_t deadline = fx_deadline();
	bool is_ok = true;
	uint32_t i, more;
	int status;
	pid_t pid;

	__atomic_store_n(&shared->nb_rounds, 0, __ATOMIC_RELAXED);
	more = next_random(&parent->seed) % 64;
	pid = fork();
	TEST_ASSERT(pid >= 0);
	if (pid == 0)
		run_child(parent->seed);
	while (is_ok && __atomic_load_n(&shared->nb_rounds, __ATOMIC_RELAXED) < nb_rounds &&
			!fx_is_late(deadline)) {
		is_ok = get_and_put(parent);
		sched_yield();
	}
	for (i = 0; i < more && is_ok; i++)
		is_ok = get_and_put(parent);
	TEST_OK(kill(pid, SIGKILL));
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_ASSERT(is_ok && !fx_is_late(deadline));
	TEST_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	expect_whole(parent->nb_held);
}

TEST(tracked_kill, buffers_of_a_killed_process_are_not_lost)
{
	struct process parent = {.number = PARENT, .seed = 1};
	uint32_t i;

	for (i = 0; i < KILLS; i++)
		kill_child(&parent, next_random(&parent.seed) % 200);
}

/* Every way to change an owner: all of a word, a part of it, one by one, and of another process. */
static void
run_steps(void)
{
	void *objs[29], *all[NB_BUFS], *taken = shared->bufs[NB_BUFS - 1];

	if (rmem_tracked_get(td, objs, 29, CHILD, CHILD) != 0)
		_exit(1);
	rmem_tracked_put(td, &objs[3], 1, CHILD, CHILD);
	rmem_tracked_put(td, &objs[8], 8, CHILD, CHILD);
	if (rmem_tracked_get(td, all, NB_BUFS, CHILD, CHILD) == 0 ||
			!rmem_tracked_take(td, taken, CHILD, PARENT))
		_exit(1);
	rmem_tracked_put(td, &objs[16], 11, CHILD, CHILD);
	_exit(0);
}

/* Run the steps for nb instructions, then kill; *nb is less if they end before. -1: no ptrace. */
static void
step(uint64_t *nb)
{
	uint64_t i;
	int status;
	pid_t pid;

	pid = fork();
	TEST_ASSERT(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(2);
		raise(SIGSTOP);
		run_steps();
	}
	TEST_EQ(waitpid(pid, &status, 0), pid);
	for (i = 0; i < *nb && WIFSTOPPED(status); i++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0)
			break;
		TEST_EQ(waitpid(pid, &status, 0), pid);
	}
	*nb = i;
	if (WIFSTOPPED(status)) {
		TEST_OK(kill(pid, SIGKILL));
		TEST_EQ(waitpid(pid, &status, 0), pid);
	}
	TEST_SKIP_IF(WIFEXITED(status) && WEXITSTATUS(status) == 2, "no ptrace");
	TEST_ASSERT(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
}

/* The parent owns the last buffer, for the child to take. */
static void
own_last(void)
{
	void *objs[NB_BUFS], *last = shared->bufs[NB_BUFS - 1];
	uint32_t i;

	*holder_of(last) = PARENT;
	if (rmem_tracked_owner_of(td, last) == PARENT)
		return;
	TEST_OK(rmem_tracked_get(td, objs, NB_BUFS, PARENT, PARENT));
	for (i = 0; i < NB_BUFS; i++) {
		if (objs[i] != last)
			TEST_EQ(rmem_tracked_put(td, &objs[i], 1, PARENT, PARENT), 0);
	}
}

static void
step_and_check(uint64_t *nb)
{
	int ret;

	own_last();
	ret = TEST_TRY(step(nb));
	if (ret != TEST_SUCCESS) {
		TEST_RUN(ret);
		return;
	}
	expect_whole(rmem_tracked_owner_of(td, shared->bufs[NB_BUFS - 1]) == PARENT);
}

TEST(tracked_kill, killed_at_any_instruction_a_process_loses_no_buffer)
{
	uint64_t all = UINT64_MAX, at, distance, nb;
	int ret = TEST_TRY(step_and_check(&all));

	if (ret != TEST_SUCCESS) {
		TEST_RUN(ret);
		return;
	}
	distance = all / MAX_POINTS + 1;
	for (at = 0; at < all; at += distance) {
		nb = at;
		step_and_check(&nb);
	}
	test_note("killed at each %u. of %u instructions", (unsigned int)distance,
			(unsigned int)all);
}

TEST_SUITE(tracked_kill, setup, teardown);
