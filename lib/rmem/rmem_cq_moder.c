/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Moderation of the events of CQs: an event after a number of completions, or after a time.
 *
 * The file descriptor of a channel is an eventfd, which the kernel can't make readable at a given
 * time, so a thread waits for the deadlines. The thread exists while a CQ is moderated. A CQ that
 * waits for its deadline costs a wake-up per period.
 *
 * Invariants, under the lock:
 * - a CQ is in moders.waiting while it is armed, and has completions that would generate an event,
 *   but fewer than its count; the thread wakes up at the earliest deadline of the list;
 * - a CQ leaves the list only when its event is generated, also by a change of its moderation, or
 *   when the CQ is destroyed. So no event is lost.
 * Lock order: locks of a driver's queues, moders.lock, lock of a channel.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <rmem_thread.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"

struct rmem_cq_moder {
	struct rmem_cq *cq;
	uint32_t count;       /* completions for an event */
	uint32_t period_us;   /* 0: not moderated any more */
	uint32_t nb;          /* completions since the CQ was armed */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, if is_waiting */
	bool is_waiting;
	TAILQ_ENTRY(rmem_cq_moder) next; /* if is_waiting */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	TAILQ_HEAD(moder_list, rmem_cq_moder) waiting;
	uint64_t next_ns; /* next wake-up of the thread; UINT64_MAX: none; 0: not started yet */
	bool is_stopping;
} moders = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.waiting = TAILQ_HEAD_INITIALIZER(moders.waiting),
};

static struct {
	pthread_mutex_t lock;
	unsigned int nb_users;
	struct rmem_thread thread;
} user = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Remove a CQ from the waiting list, and count from 0 again; call with the lock held. */
static void
end_wait(struct rmem_cq_moder *moder)
{
	if (moder->is_waiting)
		TAILQ_REMOVE(&moders.waiting, moder, next);
	moder->is_waiting = false;
	moder->nb = 0;
}

/* Generate the event that a CQ waits for; call with the lock held. */
static void
fire(struct rmem_cq_moder *moder)
{
	end_wait(moder);
	__atomic_store_n(&moder->cq->events->armed, 0, __ATOMIC_RELEASE);
	rmem_comp_channel_put(moder->cq->channel, moder->cq->events);
}

/* Generate all due events. Return the next deadline, or 0; call with the lock held. */
static uint64_t
fire_due(uint64_t now)
{
	struct rmem_cq_moder *moder, *next;
	uint64_t earliest = 0;

	for (moder = TAILQ_FIRST(&moders.waiting); moder != NULL; moder = next) {
		next = TAILQ_NEXT(moder, next);
		if (moder->deadline_ns <= now)
			fire(moder);
		else if (earliest == 0 || moder->deadline_ns < earliest)
			earliest = moder->deadline_ns;
	}
	return earliest;
}

static void
run(void *arg)
{
	struct timespec until;

	RTE_SET_USED(arg);
	pthread_mutex_lock(&moders.lock);
	while (!moders.is_stopping) {
		moders.next_ns = fire_due(rmem_now_ns(CLOCK_MONOTONIC));
		if (moders.next_ns == 0) {
			moders.next_ns = UINT64_MAX;
			pthread_cond_wait(&moders.wake, &moders.lock);
		} else {
			until.tv_sec = (time_t)(moders.next_ns / 1000000000);
			until.tv_nsec = (long)(moders.next_ns % 1000000000);
			pthread_cond_timedwait(&moders.wake, &moders.lock, &until);
		}
	}
	pthread_mutex_unlock(&moders.lock);
}

static int
start(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&moders.wake, &attr);
	pthread_condattr_destroy(&attr);
	moders.is_stopping = false;
	user.thread.run = run;
	if (rmem_thread_start(&user.thread, "rmem-moder") == 0)
		return 0;
	pthread_cond_destroy(&moders.wake);
	return RMEM_FAIL(ENOMEM, "CQ: moderation: thread not started");
}

static int
add_user(void)
{
	int ret = 0;

	pthread_mutex_lock(&user.lock);
	if (user.nb_users == 0)
		ret = start();
	if (ret == 0)
		user.nb_users++;
	pthread_mutex_unlock(&user.lock);
	return ret;
}

static void
remove_user(void)
{
	pthread_mutex_lock(&user.lock);
	if (--user.nb_users == 0) {
		pthread_mutex_lock(&moders.lock);
		moders.is_stopping = true;
		pthread_cond_signal(&moders.wake);
		pthread_mutex_unlock(&moders.lock);
		pthread_join(user.thread.id, NULL);
		pthread_cond_destroy(&moders.wake);
	}
	pthread_mutex_unlock(&user.lock);
}

bool
rmem_cq_moder_notify(struct rmem_cq *cq, struct rmem_cq_moder *moder, uint32_t need)
{
	pthread_mutex_lock(&moders.lock);
	if (moder->period_us == 0) {
		pthread_mutex_unlock(&moders.lock);
		return false;
	}
	/* As in rmem_cq_notify(): a consumer that arms later finds the completion with its poll. */
	if ((__atomic_fetch_or(&cq->events->armed, 0, __ATOMIC_ACQ_REL) & need) == 0) {
		pthread_mutex_unlock(&moders.lock);
		return true;
	}
	if (++moder->nb >= moder->count) {
		fire(moder);
	} else if (!moder->is_waiting) {
		moder->is_waiting = true;
		moder->deadline_ns =
				rmem_now_ns(CLOCK_MONOTONIC) + (uint64_t)moder->period_us * 1000;
		TAILQ_INSERT_TAIL(&moders.waiting, moder, next);
		if (moder->deadline_ns < moders.next_ns)
			pthread_cond_signal(&moders.wake);
	}
	pthread_mutex_unlock(&moders.lock);
	return true;
}

/* Get the moderation of a CQ; it is created on the first use. */
static int
moder_of(struct rmem_cq *cq, struct rmem_cq_moder **moder)
{
	int ret;

	*moder = __atomic_load_n(&cq->events->moder, __ATOMIC_ACQUIRE);
	if (*moder != NULL)
		return 0;
	*moder = calloc(1, sizeof(**moder));
	if (*moder == NULL)
		return RMEM_FAIL(ENOMEM, "CQ %p: no memory for its moderation", (void *)cq);
	ret = add_user();
	if (ret != 0) {
		free(*moder);
		return ret;
	}
	(*moder)->cq = cq;
	__atomic_store_n(&cq->events->moder, *moder, __ATOMIC_RELEASE);
	return 0;
}

int
rmem_own_cq_modify(struct rmem_cq *cq, const struct rmem_cq_attr *attr)
{
	/* Without a period, an event could be delayed forever. */
	bool is_on = attr->period_us != 0 && attr->count != 1;
	struct rmem_cq_moder *moder;
	int ret;

	/* Without a channel there are no events. */
	if (cq->channel == NULL || (!is_on && cq->events->moder == NULL))
		return 0;
	ret = moder_of(cq, &moder);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&moders.lock);
	if (moder->is_waiting)
		fire(moder);
	moder->count = attr->count != 0 ? attr->count : UINT32_MAX;
	moder->period_us = is_on ? attr->period_us : 0;
	moder->nb = 0;
	pthread_mutex_unlock(&moders.lock);
	return 0;
}

void
rmem_cq_moder_free(struct rmem_cq_moder *moder)
{
	if (moder == NULL)
		return;
	pthread_mutex_lock(&moders.lock);
	end_wait(moder);
	pthread_mutex_unlock(&moders.lock);
	remove_user();
	free(moder);
}

int
rmem_cq_modify(struct rmem_cq *cq, const struct rmem_cq_attr *attr)
{
	RMEM_CALL(cq);
	int ret;

	ret = rmem_obj_check(cq, RMEM_OBJ_CQ);
	if (ret == 0)
		ret = rmem_check_arg(attr, "attributes");
	if (ret == 0)
		ret = rmem_check_reserved(attr->reserved, sizeof(attr->reserved));
	if (ret != 0)
		return ret;
	if (attr->count > RMEM_CQ_MAX_COUNT || attr->period_us > RMEM_CQ_MAX_PERIOD_US)
		return RMEM_FAIL(EINVAL, "CQ %p: moderation out of range: %u, %u us (%u, %u us)",
				(void *)cq, attr->count, attr->period_us, RMEM_CQ_MAX_COUNT,
				RMEM_CQ_MAX_PERIOD_US);
	if ((rmem_obj_info(&cq->obj)->capa & RMEM_DEV_CAPA_CQ_MODERATION) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "CQ %p: no moderation", (void *)cq);
	ret = rmem_check_live(&cq->obj);
	return ret != 0 ? ret : RMEM_OP(cq, cq_modify, cq, attr);
}
