/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Ids of threads, and control threads; see rmem_env.h. */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_thread.h>
#include <rte_version.h>

#include <rmem_thread.h>

#include "rmem_env.h"

RTE_DEFINE_PER_LCORE(unsigned int, _lcore_id) = LCORE_ID_ANY;
RTE_DEFINE_PER_LCORE(int, _rte_errno);

static uint64_t ids[RMEM_ENV_MAX_THREADS / 64]; /* a bit for each one in use; atomic */
static RMEM_ENV_KEPT pthread_key_t key;         /* set in threads that have an id */
static RMEM_ENV_KEPT int key_errno;
static RMEM_ENV_KEPT pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t nb_begun, nb_ended; /* control threads; atomic */

static void
end_of_thread(void *arg)
{
	RTE_SET_USED(arg);
	rte_thread_unregister();
}

static void
create_key(void)
{
	key_errno = pthread_key_create(&key, end_of_thread);
}

/* The lowest free id, or LCORE_ID_ANY. */
static unsigned int
take_id(void)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(ids); i++) {
		uint64_t used = __atomic_load_n(&ids[i], __ATOMIC_RELAXED);

		while (used != UINT64_MAX) {
			unsigned int bit = (unsigned int)__builtin_ctzll(~used);

			if (__atomic_compare_exchange_n(&ids[i], &used, used | UINT64_C(1) << bit,
					    true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return 64 * i + bit;
		}
	}
	return LCORE_ID_ANY;
}

int
rte_thread_register(void)
{
	unsigned int id;

	if (rte_lcore_id() != LCORE_ID_ANY)
		return 0;
	pthread_once(&once, create_key);
	id = key_errno == 0 ? take_id() : LCORE_ID_ANY;
	if (id == LCORE_ID_ANY || pthread_setspecific(key, &key) != 0) {
		rte_errno = ENOMEM;
		if (id != LCORE_ID_ANY)
			__atomic_fetch_and(
					&ids[id / 64], ~(UINT64_C(1) << id % 64), __ATOMIC_RELEASE);
		return -1;
	}
	RTE_PER_LCORE(_lcore_id) = id;
	return 0;
}

void
rte_thread_unregister(void)
{
	unsigned int id = rte_lcore_id();

	if (id == LCORE_ID_ANY)
		return;
	RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
	__atomic_fetch_and(&ids[id / 64], ~(UINT64_C(1) << id % 64), __ATOMIC_RELEASE);
}

#if RTE_VERSION < RTE_VERSION_NUM(23, 11, 0, 0)
typedef void *(*thread_func_t)(void *arg);
#else
typedef rte_thread_func thread_func_t;
#endif

struct start {
	thread_func_t func;
	void *arg;
	sem_t has_begun;
};

static void *
thread_main(void *arg)
{
	struct start *start = arg;
	thread_func_t func = start->func;
	void *func_arg = start->arg;

	__atomic_add_fetch(&nb_begun, 1, __ATOMIC_SEQ_CST);
	sem_post(&start->has_begun);
	(void)func(func_arg);
	__atomic_add_fetch(&nb_ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/*
 * With all signals blocked: signals of a program are for its own threads. The new thread frees
 * nothing, because its first call of malloc() or free() unmaps memory: the program may be about to
 * replace munmap(), as libfabric does when it opens a domain.
 */
static int
start_thread(pthread_t *id, const char *name, const pthread_attr_t *attr, thread_func_t func,
		void *arg)
{
	struct start start = {.func = func, .arg = arg};
	sigset_t all, old;
	int ret, state;

	sem_init(&start.has_begun, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = pthread_create(id, attr, thread_main, &start);
	if (ret == 0) {
		pthread_setname_np(*id, name);
		while (sem_wait(&start.has_begun) != 0)
			;
	}
	pthread_setcancelstate(state, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	sem_destroy(&start.has_begun);
	return -ret;
}

#if RTE_VERSION < RTE_VERSION_NUM(23, 11, 0, 0)
int
rte_ctrl_thread_create(pthread_t *thread, const char *name, const pthread_attr_t *attr,
		void *(*start_routine)(void *), void *arg)
{
	return start_thread(thread, name, attr, start_routine, arg);
}
#else
int
rte_thread_create_control(
		rte_thread_t *thread_id, const char *name, rte_thread_func func, void *arg)
{
	pthread_t id;
	int ret = start_thread(&id, name, NULL, func, arg);

	if (ret == 0)
		thread_id->opaque_id = (uintptr_t)id;
	return ret;
}
#endif

/*
 * Whether the main thread has ended, and all others but this one are control threads, which is one
 * itself. A thread that is beginning or ending counts as one of the program.
 */
static bool
is_alone(void)
{
	const uint64_t begun = __atomic_load_n(&nb_begun, __ATOMIC_SEQ_CST);
	const uint64_t ended = __atomic_load_n(&nb_ended, __ATOMIC_SEQ_CST);
	unsigned long nb_threads = 0;
	char line[512] = "", *at, state = '\0';
	FILE *file = fopen("/proc/self/stat", "re");
	int i;

	if (file == NULL)
		return false;
	at = fgets(line, sizeof(line), file) != NULL ? strrchr(line, ')') : NULL;
	fclose(file);
	if (at != NULL && at[1] != '\0')
		state = at[2];
	for (i = 2; i < 20 && at != NULL; i++) /* to field 20 of proc(5) */
		at = strchr(at + 1, ' ');
	if (at != NULL)
		nb_threads = strtoul(at, NULL, 10);
	return state == 'Z' && nb_threads == begun - ended + 1 &&
			begun == __atomic_load_n(&nb_begun, __ATOMIC_SEQ_CST) &&
			ended == __atomic_load_n(&nb_ended, __ATOMIC_SEQ_CST);
}

static void
end_run(void *arg)
{
	const struct timespec pause = {.tv_nsec = 50000000};

	RTE_SET_USED(arg);
	while (!is_alone())
		nanosleep(&pause, NULL);
	exit(EXIT_SUCCESS);
}

void
rmem_env_main_ended(void)
{
	static struct rmem_thread thread = {.run = end_run};
	static bool is_started; /* atomic */

	if (!__atomic_exchange_n(&is_started, true, __ATOMIC_RELAXED) &&
			rmem_thread_start(&thread, "rmem-end") == 0)
		pthread_detach(thread.id);
}
