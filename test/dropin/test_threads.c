/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Any number of threads use the device: 200 at a time create QPs, register, post and poll, and more
 * than there are ids one after the other. Nothing else of the process changes: processors, signal
 * masks, threads and files. A child of fork() while other threads are in calls has a device of its
 * own.
 */

#include <pthread.h>
#include <signal.h>

#include "own_qp.h"
#include "count_entries.h"

#define THREADS  200
#define WRITES   50
#define ROUNDS   24 /* of THREADS threads: more than there are ids */
#define CHILDREN 20
#define BUSY     4
#define POLLERS  4
#define POLLS    400000
#define SIZE     4096

/* Objects of a thread. */
struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *buf;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static pthread_barrier_t all_have_posted;
static pthread_key_t last_call; /* its destructor posts */
static bool is_stopped;         /* atomic */
static int nb_polls;            /* atomic */
static int nb_sides;            /* that busy threads have opened and closed; atomic */
static pthread_mutex_t pause_lock = PTHREAD_MUTEX_INITIALIZER; /* held: busy threads wait */
static int nb_files; /* that the process has open, with the device's */

static void
side_open(struct side *side)
{
	side->buf = aligned_alloc(SIZE, SIZE);
	side->cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	side->qp = create_rc(pd, side->cq, 4);
	HOLDS(side->buf != NULL && side->cq != NULL && side->qp != NULL);
	connect_own(side->qp);
}

static void
side_close(struct side *side)
{
	HOLDS(ibv_destroy_qp(side->qp) == 0 && ibv_destroy_cq(side->cq) == 0);
	free(side->buf);
}

/* Register, write the first half to the second, and release. */
static void
side_write(struct side *side, uint8_t byte)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, side->buf, SIZE, WRITABLE);

	HOLDS(mr != NULL);
	memset(side->buf, byte, SIZE / 2);
	memset(side->buf + SIZE / 2, ~byte, SIZE / 2);
	HOLDS(post_write(side->qp, mr, 0) == 0);
	HOLDS(wait_wc(side->cq).status == IBV_WC_SUCCESS);
	HOLDS(memcmp(side->buf, side->buf + SIZE / 2, SIZE / 2) == 0);
	HOLDS(ibv_dereg_mr(mr) == 0);
}

static void *
many_main(void *arg)
{
	uint8_t byte = (uint8_t)(uintptr_t)arg;
	struct side side;
	sigset_t mask;
	int i;

	side_open(&side);
	side_write(&side, byte);
	pthread_barrier_wait(&all_have_posted);
	for (i = 0; i < WRITES; i++)
		side_write(&side, byte);
	side_close(&side);
	HOLDS(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
	HOLDS(sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGTERM) == 0);
	return NULL;
}

/* All have an id at the same time. */
static void
many_at_a_time(void)
{
	pthread_t threads[THREADS];
	sigset_t mask, old;
	uintptr_t i;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	HOLDS(pthread_sigmask(SIG_BLOCK, &mask, &old) == 0);
	pthread_barrier_init(&all_have_posted, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_create(&threads[i], NULL, many_main, (void *)i) == 0);
	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	pthread_barrier_destroy(&all_have_posted);
	HOLDS(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
}

static void
poll_last(void *cq)
{
	struct ibv_wc wc;

	HOLDS(ibv_poll_cq(cq, 1, &wc) == 0);
}

static void *
short_main(void *cq)
{
	poll_last(cq);
	HOLDS(pthread_setspecific(last_call, cq) == 0);
	return NULL;
}

/* Threads return their ids when they end, also those that poll in a destructor. */
static void
many_in_turn(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	pthread_t threads[THREADS];
	int round, i;

	HOLDS(cq != NULL && pthread_key_create(&last_call, poll_last) == 0);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < THREADS; i++)
			HOLDS(pthread_create(&threads[i], NULL, short_main, cq) == 0);
		for (i = 0; i < THREADS; i++)
			HOLDS(pthread_join(threads[i], NULL) == 0);
	}
	HOLDS(ibv_destroy_cq(cq) == 0);
}

static void *
polling_main(void *cq)
{
	struct ibv_wc wc;

	while (__atomic_fetch_add(&nb_polls, 1, __ATOMIC_RELAXED) < POLLS)
		HOLDS(ibv_poll_cq(cq, 1, &wc) == 0);
	return NULL;
}

/* CPU time of POLLS polls by that many threads, which have one CPU; in ns. */
static int64_t
polls_cost(struct ibv_cq *cq, int nb_threads)
{
	pthread_t threads[POLLERS];
	struct timespec start, end;
	pthread_attr_t attr;
	cpu_set_t cpus;
	int i;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	HOLDS(pthread_attr_init(&attr) == 0);
	HOLDS(pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus) == 0);
	nb_polls = 0;
	HOLDS(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start) == 0);
	for (i = 0; i < nb_threads; i++)
		HOLDS(pthread_create(&threads[i], &attr, polling_main, cq) == 0);
	for (i = 0; i < nb_threads; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	HOLDS(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end) == 0);
	pthread_attr_destroy(&attr);
	return (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec;
}

/* A thread without a CPU, in a poll, makes the others wait for the CPU rather than use it. */
static void
many_poll_one_cq(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	int64_t one, many;

	HOLDS(cq != NULL);
	one = polls_cost(cq, 1);
	many = polls_cost(cq, POLLERS);
	printf("%d polls: %.0f ms by one thread, %.0f ms by %d\n", POLLS, (double)one / 1e6,
			(double)many / 1e6, POLLERS);
	HOLDS(many < 8 * one);
	HOLDS(ibv_destroy_cq(cq) == 0);
}

static void *
busy_main(void *arg)
{
	struct side side;

	while (!__atomic_load_n(&is_stopped, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&pause_lock);
		pthread_mutex_unlock(&pause_lock);
		side_open(&side);
		side_write(&side, (uint8_t)(uintptr_t)arg);
		side_close(&side);
		__atomic_add_fetch(&nb_sides, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Fork while other threads are in calls. They do not take the CPU from the child. */
static pid_t
fork_between_calls(void)
{
	int nb = __atomic_load_n(&nb_sides, __ATOMIC_RELAXED);
	pid_t pid;

	while (__atomic_load_n(&nb_sides, __ATOMIC_RELAXED) < nb + BUSY)
		sched_yield();
	pid = fork();
	if (pid > 0)
		pthread_mutex_lock(&pause_lock);
	return pid;
}

static void
child_main(void)
{
	struct side side;

	alarm(600); /* rather than wait for a lock of a thread that is not there */
	HOLDS(ibv_alloc_pd(context) == NULL && errno == ENOENT);
	/* Its sockets would hide the end of the parent from peers. */
	HOLDS(count_entries("/proc/self/fd") < nb_files);
	/* The device, its name too, is that from before fork(). */
	context = ibv_open_device(context->device);
	HOLDS(context != NULL && strcmp(ibv_get_device_name(context->device), "soft0") == 0);
	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL);
	side_open(&side);
	side_write(&side, 1);
	side_close(&side);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	_exit(0);
}

static void
children_have_devices(void)
{
	pthread_t threads[BUSY];
	struct side side;
	pid_t pid;
	int i;

	side_open(&side);
	for (i = 0; i < BUSY; i++)
		HOLDS(pthread_create(&threads[i], NULL, busy_main, (void *)(uintptr_t)i) == 0);
	for (i = 0; i < CHILDREN; i++) {
		side_write(&side, (uint8_t)i);
		pid = fork_between_calls();
		if (pid == 0)
			child_main();
		wait_child(pid);
		pthread_mutex_unlock(&pause_lock);
	}
	__atomic_store_n(&is_stopped, true, __ATOMIC_RELAXED);
	for (i = 0; i < BUSY; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	side_write(&side, 1);
	side_close(&side);
}

/* The name of EAL's files and hugepages, of its memory, or of its library. */
static bool
has_eal(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	bool is_there = false;

	HOLDS(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		is_there |= strstr(line, "librte_") != NULL || strstr(line, "huge") != NULL ||
				strstr(line, "rtemap") != NULL;
	fclose(f);
	return is_there;
}

static void *
list_cancelled(void *arg)
{
	struct ibv_device **list;

	pthread_cancel(pthread_self());
	list = ibv_get_device_list(NULL);
	HOLDS(list != NULL);
	ibv_free_device_list(list);
	pthread_testcancel();
	return arg;
}

/* The first call of the process loads the device, in a thread that is cancelled. */
static void
cancelled_thread_lists_first(void)
{
	pthread_t thread;
	void *result;

	HOLDS(pthread_create(&thread, NULL, list_cancelled, NULL) == 0);
	HOLDS(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

int
main(void)
{
	cpu_set_t before, after;
	int nb_tasks;

	sched_getaffinity(0, sizeof(before), &before);
	cancelled_thread_lists_first();
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL);
	nb_files = count_entries("/proc/self/fd");
	nb_tasks = count_entries("/proc/self/task");
	many_at_a_time();
	many_in_turn();
	many_poll_one_cq();
	children_have_devices();
	sched_getaffinity(0, sizeof(after), &after);
	HOLDS(CPU_EQUAL(&before, &after) && !has_eal());
	HOLDS(count_entries("/proc/self/fd") == nb_files &&
			count_entries("/proc/self/task") == nb_tasks);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	printf("%d threads at a time, %d in turn, %d children\n", THREADS, THREADS * ROUNDS,
			CHILDREN);
	return 0;
}
