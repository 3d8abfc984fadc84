/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The agent: the thread that waits for sockets and for the time, of all channels. It is started
 * when the first socket is watched, and then waits until the process ends.
 *
 * A thread of the program that waits for an event leads: it waits for the sockets, too, since to be
 * woken by the agent would take longer. The agent stands by then: it serves the sockets if no
 * thread has led for STANDBY_NS, or if a leader does not do so for IDLE_NS, as one that a handler
 * of a signal has left by siglongjmp().
 *
 * Invariant: a socket is removed from epoll before it is closed: a child of clone() may have it
 * open, too, and epoll would keep it.
 * Invariant: each use of the descriptors checks first that they belong to the agent (is_own()):
 * the program may have closed them, and have an epoll or a timer of its own with their numbers.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <rmem_thread.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define TIMER    UINT32_MAX /* the entry of the timer */
#define PAUSE_MS 10

#define STANDBY_NS UINT64_C(1000000)
#define IDLE_NS    UINT64_C(1000000000)

/* Magic interval that identifies the timerfd; the timer is armed again before it can repeat. */
#define INTERVAL_S ((time_t)0x726d6372) /* 60 years */

static const struct rcm_agent_handlers *handlers;
static int epoll_fd = -1; /* -1: none yet */
static int timer_fd = -1;
static bool is_running;  /* the thread waits in epoll */
static bool is_paused;   /* it sleeps for PAUSE_MS before that */
static uint64_t checked; /* rcm_nb_locked() when is_checked_own was set */
static bool is_checked_own;
static uint64_t armed_ns = IBCM_NEVER; /* the time that the timer is set to */
static struct ibcm_heap timers;        /* of IDs, which have memory in it */
static uintptr_t nb_opened;            /* generation of epoll_fd: a thread of an older one exits */
static struct rmem_thread thread;

static uint32_t is_woken; /* by rcm_agent_wake(), and not served yet; atomic */

static bool is_led;
static pthread_t leader;
static uint64_t nb_leads;
static bool is_idle; /* the agent waits until the leader has left */
static bool has_condition;
static pthread_cond_t left;

void
rcm_agent_handle(const struct rcm_agent_handlers *of)
{
	handlers = of;
}

static bool
has(int fd, uint32_t entry, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u32 = entry};

	return epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0;
}

static int
add(int fd, uint32_t entry, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u32 = entry};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* The kernel returns the interval with each query: no timer of a program has that one. */
static bool
is_own_timer(int fd)
{
	struct itimerspec set;

	return fd >= 0 && timerfd_gettime(fd, &set) == 0 && set.it_interval.tv_sec == INTERVAL_S;
}

/* Whether the descriptors are those that open_fds() made: the epoll has the timer. */
static bool
is_own(void)
{
	if (checked != rcm_nb_locked()) {
		checked = rcm_nb_locked();
		is_checked_own = epoll_fd >= 0 && is_own_timer(timer_fd) &&
				has(timer_fd, TIMER, EPOLLIN);
	}
	return is_checked_own;
}

static int
arm(int fd, uint64_t at_ns)
{
	struct itimerspec when = {.it_interval.tv_sec = INTERVAL_S};

	if (at_ns != IBCM_NEVER) {
		when.it_value.tv_sec = (time_t)(at_ns / 1000000000);
		when.it_value.tv_nsec = (long)(at_ns % 1000000000);
	}
	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) == 0 ? 0 : -errno;
}

static int
set_timer(uint64_t at_ns)
{
	int ret = arm(timer_fd, at_ns);

	armed_ns = at_ns;
	/* It may have been set by rcm_agent_wake() just before. */
	if (__atomic_load_n(&is_woken, __ATOMIC_SEQ_CST) != 0)
		ret = arm(timer_fd, 1);
	return ret;
}

/*
 * Without the lock, which a thread may hold that waits for a lock of the caller's. In the order of
 * set_timer(): of the two calls that set the timer, either this one is the last, or the other one
 * finds is_woken.
 */
void
rcm_agent_wake(void)
{
	int fd = __atomic_load_n(&timer_fd, __ATOMIC_RELAXED);

	__atomic_store_n(&is_woken, 1, __ATOMIC_SEQ_CST);
	if (is_own_timer(fd))
		(void)arm(fd, 1);
}

/* Make the descriptors of the agent, unless it has them; 0 or a negative errno. */
static int
open_fds(void)
{
	bool is_lost = epoll_fd >= 0;
	int ret;

	if (is_own())
		return 0;
	/*
	 * The former descriptors are not closed: their numbers are the program's now. A thread that
	 * waits with them finds another nb_opened, and exits without touching the new ones.
	 */
	is_running = is_led = false;
	nb_opened++;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	/* Relaxed: rcm_agent_wake() has the number alone, and checks the file. */
	__atomic_store_n(&timer_fd, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
			__ATOMIC_RELAXED);
	ret = epoll_fd < 0 || timer_fd < 0 ? -EMFILE : set_timer(IBCM_NEVER);
	if (ret == 0)
		ret = add(timer_fd, TIMER, EPOLLIN);
	if (ret != 0) {
		if (epoll_fd >= 0)
			rcm_close(epoll_fd);
		if (timer_fd >= 0)
			rcm_close(timer_fd);
		epoll_fd = -1;
		__atomic_store_n(&timer_fd, -1, __ATOMIC_RELAXED);
		return ret;
	}
	is_checked_own = true;
	if (is_lost) {
		handlers->lost();
		rcm_timer_set();
	}
	return 0;
}

uintptr_t
rcm_agent_lead(int *fd)
{
	/* A thread that waits again has left without rcm_agent_unlead(). */
	if (is_paused || !is_own() || !is_running ||
			(is_led && !pthread_equal(leader, pthread_self())))
		return 0;
	/* By nb_leads the agent knows that threads have led since it last had the lock. */
	is_led = true;
	leader = pthread_self();
	nb_leads++;
	*fd = epoll_fd;
	return nb_opened;
}

void
rcm_agent_unlead(uintptr_t number)
{
	/* The descriptors of then are lost: is_led is of others. */
	if (number != nb_opened || !is_led)
		return;
	is_led = false;
	if (is_idle)
		pthread_cond_broadcast(&left);
	is_idle = false;
}

/* Wait for the descriptors, without the lock; false: they belong to the program now. */
static bool
wait_ready(void)
{
	struct pollfd one = {.fd = epoll_fd, .events = POLLIN};
	int n, pause_ms = is_paused ? PAUSE_MS : 0;

	is_paused = false;
	rcm_unlock();
	if (pause_ms != 0)
		poll(NULL, 0, pause_ms);
	/* Takes no event, which may be of the program: the number is another file then. */
	n = poll(&one, 1, -1);
	rcm_lock();
	return n >= 0 || errno == EINTR;
}

/* Wait while threads lead; true: none does, and none has since the last call. */
static bool
stand_by(uint64_t *seen)
{
	if (nb_leads != *seen) {
		*seen = nb_leads;
		rcm_wait(&left, STANDBY_NS);
		return false;
	}
	if (!is_led)
		return true;
	is_idle = true;
	rcm_wait(&left, IDLE_NS);
	if (is_idle && rcm_agent_run())
		is_led = false;
	is_idle = false;
	return false;
}

/*
 * The thread. It has the lock but while it waits, and checks the generation each time it gets it
 * back. It ends by itself when the descriptors are lost; the next rcm_agent_start() makes another
 * one.
 */
static void
wait_and_run(void *arg)
{
	const uintptr_t opened = (uintptr_t)arg;
	uint64_t seen;

	rcm_lock();
	seen = nb_leads;
	while (opened == nb_opened && is_own()) {
		if (!stand_by(&seen))
			continue;
		if (!wait_ready())
			break;
		if (opened == nb_opened)
			(void)rcm_agent_run();
	}
	if (opened == nb_opened)
		is_running = false;
	rcm_unlock();
}

/* Of CLOCK_MONOTONIC: rcm_wait() has its times. Never destroyed: the agent may wait at exit. */
static void
make_condition(void)
{
	pthread_condattr_t attr;

	if (has_condition)
		return;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&left, &attr);
	pthread_condattr_destroy(&attr);
	has_condition = true;
}

int
rcm_agent_start(void)
{
	int ret = open_fds();

	if (ret != 0 || is_running)
		return ret;
	make_condition();
	thread = (struct rmem_thread){.run = wait_and_run, .arg = (void *)nb_opened};
	ret = rmem_thread_start(&thread, "rmem-cm");
	if (ret == 0)
		pthread_detach(thread.id);
	is_running = ret == 0;
	return ret;
}

int
rcm_agent_record(int fd)
{
	int ret = open_fds();

	return ret == 0 ? add(fd, TIMER, 0) : ret;
}

/*
 * epoll knows a file and its number: changing its entry fails if the number has another file now.
 */
bool
rcm_agent_is_same_file(int fd)
{
	return fd >= 0 && is_own() && has(fd, TIMER, 0);
}

bool
rcm_agent_has(int fd, uint32_t entry)
{
	return fd >= 0 && is_own() && has(fd, entry, EPOLLIN);
}

int
rcm_agent_watch(int fd, uint32_t entry, uint32_t events)
{
	int ret = rcm_agent_start();

	if (ret != 0)
		return ret;
	ret = add(fd, entry, events);
	return ret == -EEXIST && has(fd, entry, events) ? 0 : ret;
}

void
rcm_agent_unwatch(int fd)
{
	if (is_own())
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

bool
rcm_timer_reserve(uint32_t nb)
{
	return ibcm_heap_reserve(&timers, nb);
}

void
rcm_id_timer(struct rcm_id *id, uint64_t at_ns)
{
	ibcm_heap_set(&timers, &id->timer, at_ns);
	rcm_timer_set();
}

static uint64_t
next_ns(void)
{
	const struct ibcm_timer *first = ibcm_heap_first(&timers);
	uint64_t next = handlers->next();

	return first != NULL && first->deadline < next ? first->deadline : next;
}

void
rcm_timer_set(void)
{
	uint64_t next = next_ns();

	/* One that is set to an earlier time finds nothing to do then. */
	if (next < armed_ns && is_own())
		(void)set_timer(next);
}

/* Run the timers that have expired. */
static void
run_timer(void)
{
	uint64_t now = rcm_now();
	struct ibcm_timer *first;

	if (__atomic_exchange_n(&is_woken, 0, __ATOMIC_SEQ_CST) != 0)
		handlers->woken();
	handlers->time(now);
	while ((first = ibcm_heap_first(&timers)) != NULL && first->deadline <= now) {
		ibcm_heap_set(&timers, first, IBCM_NEVER);
		handlers->id_time(
				(struct rcm_id *)((char *)first - offsetof(struct rcm_id, timer)));
	}
	(void)set_timer(next_ns());
}

void
rcm_agent_pause(void)
{
	is_paused = true;
}

bool
rcm_agent_run(void)
{
	struct epoll_event ready[16];
	int i, n = is_own() ? epoll_wait(epoll_fd, ready, RTE_DIM(ready), 0) : 0;

	for (i = 0; i < n; i++) {
		if (ready[i].data.u32 == TIMER)
			run_timer();
		else
			handlers->ready(ready[i].data.u32);
	}
	return n > 0;
}

/* The parent has the same files open. */
void
rcm_agent_forked(void)
{
	if (!is_own())
		return;
	rcm_close(epoll_fd);
	rcm_close(timer_fd);
}
