/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The agent: a thread that waits for the sockets and timers of all channels. It starts when the
 * first socket is watched, and runs until the process ends.
 *
 * A program thread that waits for an event leads: it also waits for the sockets, because waking it
 * from the agent takes longer. The agent then stands by. It handles the sockets itself if no thread
 * has led for STANDBY_NS, or if the leader does not handle them for IDLE_NS, for example because a
 * signal handler left the wait with siglongjmp().
 *
 * Invariant: all variables are read and written under rcm_lock(), except is_woken and timer_fd in
 * rcm_agent_wake().
 * Invariant: timerfd_settime() is followed by a load of is_woken in set_timer(), and preceded by
 * its store in rcm_agent_wake(). So whichever call sets the timer last, a wake-up is not lost.
 * Invariant: a socket is removed from epoll before it is closed, because a child of clone() may
 * still have it open and epoll would keep it.
 * Invariant: each use of the descriptors first checks that they belong to the agent (is_own()),
 * because the program may have closed them and reused their numbers for its own epoll or timer.
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

#define TIMER    UINT32_MAX /* epoll data of the timer */
#define PAUSE_MS 10

#define STANDBY_NS UINT64_C(1000000)
#define IDLE_NS    UINT64_C(1000000000)

/* Magic interval that identifies the timerfd; the timer is armed again before it can repeat. */
#define INTERVAL_S ((time_t)0x726d6372) /* 60 years */

static const struct rcm_agent_handlers *handlers;
static int epoll_fd = -1; /* -1: none yet */
static int timer_fd = -1;
static bool is_running;  /* the thread exists */
static bool is_paused;   /* sleep PAUSE_MS before the next wait */
static uint64_t checked; /* rcm_nb_locked() when is_checked_own was set */
static bool is_checked_own;
static uint64_t armed_ns = IBCM_NEVER; /* time to which the timerfd is set */
static struct ibcm_heap timers;        /* of IDs; rcm_timer_reserve() allocates its entries */
static uintptr_t nb_opened;            /* generation of epoll_fd; an agent of an older one exits */
static struct rmem_thread thread;

static uint32_t is_woken; /* rcm_agent_wake() was called; atomic */

static bool is_led;
static pthread_t leader;
static uint64_t nb_leads;
static bool is_idle; /* the agent waits for the leader to leave */
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

/* Check the timer by its interval, which timerfd_gettime() returns; timers of programs have
 * others. */
static bool
is_own_timer(int fd)
{
	struct itimerspec set;

	return fd >= 0 && timerfd_gettime(fd, &set) == 0 && set.it_interval.tv_sec == INTERVAL_S;
}

/* Whether the descriptors still are the ones of open_fds(): the epoll contains the timer. Checked
 * once each time the lock is taken. */
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
	/* rcm_agent_wake() may have armed the timer just before. */
	if (__atomic_load_n(&is_woken, __ATOMIC_SEQ_CST) != 0)
		ret = arm(timer_fd, 1);
	return ret;
}

/*
 * Takes no lock: the caller may hold a lock for which a thread with rcm_lock() waits. Store
 * is_woken before arming the timer, while set_timer() arms it before loading is_woken. So either
 * this call arms the timer last, or set_timer() finds is_woken and arms it again.
 */
void
rcm_agent_wake(void)
{
	int fd = __atomic_load_n(&timer_fd, __ATOMIC_RELAXED);

	__atomic_store_n(&is_woken, 1, __ATOMIC_SEQ_CST);
	if (is_own_timer(fd))
		(void)arm(fd, 1);
}

/* Open the agent's descriptors, unless they are open; 0 or a negative errno. */
static int
open_fds(void)
{
	bool is_lost = epoll_fd >= 0;
	int ret;

	if (is_own())
		return 0;
	/*
	 * Don't close the previous descriptors: the program may have reused their numbers. An agent
	 * that still waits on them finds another nb_opened, and exits without using the new ones.
	 */
	is_running = is_led = false;
	nb_opened++;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	/* Relaxed: rcm_agent_wake() checks the file before it uses the number. */
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
	/* If this thread is still the leader, it left its last wait without rcm_agent_unlead(). */
	if (is_paused || !is_own() || !is_running ||
			(is_led && !pthread_equal(leader, pthread_self())))
		return 0;
	/* nb_leads shows the agent that a thread has led since the agent last held the lock. */
	is_led = true;
	leader = pthread_self();
	nb_leads++;
	*fd = epoll_fd;
	return nb_opened;
}

void
rcm_agent_unlead(uintptr_t number)
{
	/* The descriptors have changed since; is_led describes the new ones. */
	if (number != nb_opened || !is_led)
		return;
	is_led = false;
	if (is_idle)
		pthread_cond_broadcast(&left);
	is_idle = false;
}

/* Wait for the descriptors without the lock; false if they were closed. */
static bool
wait_ready(void)
{
	struct pollfd one = {.fd = epoll_fd, .events = POLLIN};
	int n, pause_ms = is_paused ? PAUSE_MS : 0;

	is_paused = false;
	rcm_unlock();
	if (pause_ms != 0)
		poll(NULL, 0, pause_ms);
	/* poll() consumes no event: if the number refers to a file of the program by now, no event
	 * is lost. */
	n = poll(&one, 1, -1);
	rcm_lock();
	return n >= 0 || errno == EINTR;
}

/* Wait while other threads lead; true if no thread leads, and none has led since the last call. */
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
 * The agent's thread. It holds the lock except while it waits, and checks the generation whenever
 * it has taken the lock again. It ends when the descriptors are lost; the next rcm_agent_start()
 * starts another thread.
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

/* The condition uses CLOCK_MONOTONIC, as rcm_wait() requires. It is never destroyed, because the
 * agent may wait on it at exit. */
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
 * EPOLL_CTL_MOD fails if the number now refers to another file, because epoll identifies an entry
 * by file and number.
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

	/* A timer that expires too early is harmless: it finds nothing to do. */
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

/* Close the descriptors; the parent keeps its own. */
void
rcm_agent_forked(void)
{
	if (!is_own())
		return;
	rcm_close(epoll_fd);
	rcm_close(timer_fd);
}
