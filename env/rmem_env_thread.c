/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Ids of threads, and control threads; see rmem_env.h. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_thread.h>
#include <rte_version.h>

#include "rmem_env.h"

RTE_DEFINE_PER_LCORE(unsigned int, _lcore_id) = LCORE_ID_ANY;
RTE_DEFINE_PER_LCORE(int, _rte_errno);

static uint64_t ids[RMEM_ENV_MAX_THREADS / 64]; /* a bit for each one in use; atomic */
static RMEM_ENV_KEPT pthread_key_t key;         /* set in threads that have an id */
static RMEM_ENV_KEPT int key_errno;
static RMEM_ENV_KEPT pthread_once_t once = PTHREAD_ONCE_INIT;

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

/* With all signals blocked: those of a program are for its own threads. */
static int
start_thread(pthread_t *id, const char *name, const pthread_attr_t *attr, void *(*start)(void *),
		void *arg)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(id, attr, start, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret == 0)
		pthread_setname_np(*id, name);
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
struct start {
	rte_thread_func func;
	void *arg;
};

static void *
thread_main(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	start.func(start.arg);
	return NULL;
}

int
rte_thread_create_control(
		rte_thread_t *thread_id, const char *name, rte_thread_func func, void *arg)
{
	struct start *start = malloc(sizeof(*start));
	pthread_t id;
	int ret;

	if (start == NULL)
		return -ENOMEM;
	*start = (struct start){func, arg};
	ret = start_thread(&id, name, NULL, thread_main, start);
	if (ret != 0)
		free(start);
	else
		thread_id->opaque_id = (uintptr_t)id;
	return ret;
}
#endif
