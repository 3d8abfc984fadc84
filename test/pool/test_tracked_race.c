/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Owners of buffers under races: no buffer has two owners, none is lost. Lcores stand for processes
 * that get, put, hand over and die while the main lcore reaps, by the functions below the mempool
 * ops.
 */

#include <string.h>

#include "../../lib/rmem_pool/rmem_tracked_priv.h"

#include "fixture.h"

#define MAX_WORKERS 3u
#define NB_BUFS     333u
#define STRIDE      192u
#define MAX_HELD    128u
#define MAX_BURST   24u
#define ROUNDS      40000u

/* A buffer: written by its owner only, without atomics, for the thread sanitizer to see. */
struct buffer {
	uint64_t value;
	uint32_t holder; /* atomic: number of the process that holds it */
};

/* An lcore that stands for a process. */
struct process {
	uint32_t seed;
	uint32_t number; /* atomic */
	uint32_t nb_held;
	void *held[MAX_HELD];
	uint32_t is_dead; /* atomic: 1 until it is reaped */
	uint32_t is_done; /* atomic */
} __rte_cache_aligned;

static struct process workers[MAX_WORKERS];
static struct rmem_tracked *td;
static uint8_t *memory;
static unsigned int nb_workers;

/* A buffer handed to an lcore: its address, above it the number of the sender; atomic. */
static uint64_t mailbox[MAX_WORKERS];

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

static struct buffer *
buffer_at(uint32_t i)
{
	return (struct buffer *)(void *)(memory + (size_t)i * STRIDE);
}

static void
make(void *mem)
{
	uint32_t i;

	memory = (uint8_t *)mem + RTE_ALIGN_CEIL(rmem_tracked_mem_size(NB_BUFS), (size_t)64);
	td = mem;
	rmem_tracked_init(td, NB_BUFS);
	for (i = 0; i < NB_BUFS; i++)
		TEST_ASSERT(rmem_tracked_add(td, buffer_at(i)));
	TEST_ASSERT(!rmem_tracked_add(td, buffer_at(0)));
	TEST_ASSERT(rmem_tracked_find_error(td) == NULL);
}

/* Hold a buffer, which no other process holds. */
static void
hold(struct process *process, void *obj)
{
	struct buffer *buffer = obj;

	TEST_EQ(__atomic_exchange_n(&buffer->holder, process->number, __ATOMIC_RELAXED), 0);
	buffer->value += process->number;
	process->held[process->nb_held++] = obj;
}

/* Hold a buffer no longer, before it is put or handed over. */
static void *
release(struct process *process, uint32_t i)
{
	struct buffer *buffer = process->held[i];

	buffer->value++;
	__atomic_store_n(&buffer->holder, 0, __ATOMIC_RELAXED);
	process->held[i] = process->held[--process->nb_held];
	return buffer;
}

static void
get_some(struct process *process, unsigned int lcore_id)
{
	unsigned int i, n = 1 + next_random(&process->seed) % MAX_BURST;
	void *objs[MAX_BURST];

	if (process->nb_held + n > MAX_HELD)
		return;
	if (rmem_tracked_get(td, objs, n, (uint8_t)process->number, lcore_id) != 0)
		return;
	for (i = 0; i < n; i++)
		hold(process, objs[i]);
}

static void
put_some(struct process *process, unsigned int lcore_id)
{
	unsigned int i, n = next_random(&process->seed) % (process->nb_held + 1);
	void *objs[MAX_HELD];

	for (i = 0; i < n; i++)
		objs[i] = release(process, next_random(&process->seed) % process->nb_held);
	TEST_EQ(rmem_tracked_put(td, objs, n, (uint8_t)process->number, lcore_id), 0);
}

/* Hand a buffer to the next lcore. */
static void
pass_one(struct process *process, unsigned int to)
{
	uint64_t letter, none = 0;
	void *obj;

	if (process->nb_held == 0)
		return;
	obj = release(process, 0);
	letter = (uint64_t)process->number << 56 | (uintptr_t)obj;
	if (!__atomic_compare_exchange_n(
			    &mailbox[to], &none, letter, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		TEST_EQ(rmem_tracked_put(td, &obj, 1, (uint8_t)process->number, to), 0);
}

/* Own what was handed to this lcore, unless its sender died in between. */
static void
receive_one(struct process *process, unsigned int index)
{
	uint64_t letter = __atomic_exchange_n(&mailbox[index], 0, __ATOMIC_ACQUIRE);
	void *obj = (void *)(uintptr_t)(letter & (UINT64_MAX >> 8));

	if (letter == 0 ||
			!rmem_tracked_take(
					td, obj, (uint8_t)process->number, (uint8_t)(letter >> 56)))
		return;
	if (process->nb_held < MAX_HELD) {
		hold(process, obj);
		return;
	}
	TEST_EQ(rmem_tracked_put(td, &obj, 1, (uint8_t)process->number, index), 0);
}

/* Die with all buffers, and go on as another process when they were reaped. */
static void
die(struct process *process)
{
	while (process->nb_held > 0)
		(void)release(process, 0);
	__atomic_store_n(&process->is_dead, 1, __ATOMIC_RELEASE);
	FX_AWAIT(__atomic_load_n(&process->is_dead, __ATOMIC_ACQUIRE) == 0);
}

static void
run(struct process *process)
{
	unsigned int index = (unsigned int)(process - workers);
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		get_some(process, index);
		put_some(process, index);
		pass_one(process, (index + 1) % nb_workers);
		receive_one(process, index);
		if (next_random(&process->seed) % 64 == 0)
			die(process);
	}
	while (process->nb_held > 0) {
		void *obj = release(process, 0);

		TEST_EQ(rmem_tracked_put(td, &obj, 1, (uint8_t)process->number, index), 0);
	}
}

static void
run_worker(void *arg)
{
	struct process *process = arg;
	int result = TEST_TRY(run(process));

	__atomic_store_n(&process->is_done, 1, __ATOMIC_RELEASE);
	TEST_RUN(result);
}

/* The reaper is the only user of a buffer that it resets. */
static void
reset_buffer(struct rmem_tracked *owners, void *obj)
{
	struct buffer *buffer = obj;

	TEST_EQ(rmem_tracked_owner_of(owners, obj), TRACKED_PRIMARY);
	buffer->value = 0;
}

/* Reap a dead process; its lcore then stands for one whose number none had recently. */
static bool
reap(struct process *process, uint8_t number)
{
	rmem_tracked_reset_t reset = number % 2 == 0 ? NULL : reset_buffer;
	uint8_t dead = (uint8_t)process->number;
	bool is_ok;

	rmem_tracked_reap_from(td, dead, reset);
	is_ok = rmem_tracked_reap_from(td, dead, reset) == 0;
	__atomic_store_n(&process->number, number, __ATOMIC_RELAXED);
	__atomic_store_n(&process->is_dead, 0, __ATOMIC_RELEASE);
	return is_ok;
}

static void
reap_all(void)
{
	unsigned int i, nb_done = 0, spins = 0, nb_bad = 0;
	uint8_t number = MAX_WORKERS + 1;

	while (nb_done < nb_workers) {
		nb_done = 0;
		for (i = 0; i < nb_workers; i++) {
			nb_done += __atomic_load_n(&workers[i].is_done, __ATOMIC_ACQUIRE);
			if (__atomic_load_n(&workers[i].is_dead, __ATOMIC_ACQUIRE) == 0)
				continue;
			if (++number > TRACKED_MAX_OWNER)
				number = MAX_WORKERS + 2;
			nb_bad += !reap(&workers[i], number);
		}
		fx_relax(&spins);
	}
	TEST_EQ(nb_bad, 0);
}

static void
setup(void)
{
	unsigned int i;
	void *mem;

	mem = fx_mem(RTE_CACHE_LINE_SIZE,
			RTE_ALIGN_CEIL(rmem_tracked_mem_size(NB_BUFS), (size_t)64) +
					(size_t)NB_BUFS * STRIDE);
	make(mem);
	nb_workers = RTE_MIN(fx_nb_workers(), MAX_WORKERS);
	memset(workers, 0, sizeof(workers));
	memset(mailbox, 0, sizeof(mailbox));
	for (i = 0; i < nb_workers; i++) {
		workers[i].number = i + 2;
		workers[i].seed = i * 7919 + 1;
	}
}

TEST(tracked_race, no_buffer_is_lost_or_owned_twice)
{
	uint32_t nb[TRACKED_MAX_OWNER + 1];
	unsigned int i;
	int result;

	fx_need_workers(2);
	fx_launch(run_worker, workers, sizeof(workers[0]), nb_workers);
	result = TEST_TRY(reap_all());
	fx_join(nb_workers);
	TEST_RUN(result);
	/* Buffers that were handed over and not received belong to their sender. */
	for (i = 0; i < nb_workers; i++)
		rmem_tracked_reap_from(td, (uint8_t)workers[i].number, NULL);
	rmem_tracked_count(td, nb);
	TEST_EQ(nb[0], NB_BUFS);
	TEST_EQ(rmem_tracked_count_free(td), NB_BUFS);
	TEST_ASSERT(rmem_tracked_find_error(td) == NULL);
}

TEST_SUITE(tracked_race, setup, fx_teardown);
