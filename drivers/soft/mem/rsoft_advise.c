/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Advice on pages of on-demand MRs, executed synchronously or by a control thread.
 *
 * Invariant: the queue of jobs, each a range of a table, is protected by advise.lock. A table
 * outlives its jobs: rsoft_advise_cancel() removes them and waits for the current step.
 * Invariant: the thread exists only while there are jobs. The call that starts the next thread, or
 * cancels, joins it, so no thread is left when there are no on-demand MRs.
 */

#include <errno.h>
#include <pthread.h>

#include <rte_malloc.h>

#include "rsoft_key_hash.h"
#include "rsoft_mr.h"
#include "rsoft_odp.h"

/* Pages per step; limits how long a cancellation waits. */
#define STEP_PAGES 256u

struct advice_job {
	TAILQ_ENTRY(advice_job) next;
	struct rsoft_odp *odp;
	uint64_t first;
	uint64_t nb;
	int advice;
};

TAILQ_HEAD(advice_jobs, advice_job);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct advice_jobs jobs;
	struct rsoft_odp *busy; /* table of the current step */
	bool is_running;        /* the thread has not yet decided to end */
	bool is_started;        /* there is a thread to join */
	struct rmem_thread thread;
} advise = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.jobs = TAILQ_HEAD_INITIALIZER(advise.jobs),
};

/* Execute the next step of the first job. Under advise.lock. */
static void
advise_step(void)
{
	struct advice_job *job = TAILQ_FIRST(&advise.jobs);
	struct rsoft_odp *odp = job->odp;
	uint64_t first = job->first, nb = RTE_MIN(job->nb, STEP_PAGES);
	int advice = job->advice;

	job->first += nb;
	job->nb -= nb;
	if (job->nb == 0) {
		TAILQ_REMOVE(&advise.jobs, job, next);
		rte_free(job);
	}
	advise.busy = odp;
	pthread_mutex_unlock(&advise.lock);
	/* Missing pages are not reported here, but by the access that needs them. */
	rsoft_odp_prefetch(odp, first, nb, advice);
	pthread_mutex_lock(&advise.lock);
	advise.busy = NULL;
	pthread_cond_broadcast(&advise.changed);
}

static void
advise_run(void *arg)
{
	RTE_SET_USED(arg);
	pthread_mutex_lock(&advise.lock);
	while (!TAILQ_EMPTY(&advise.jobs))
		advise_step();
	advise.is_running = false;
	pthread_cond_broadcast(&advise.changed);
	pthread_mutex_unlock(&advise.lock);
}

/* Join a thread that has ended, or is about to without taking the lock. Under advise.lock. */
static void
advise_join(void)
{
	if (advise.is_started && !advise.is_running) {
		pthread_join(advise.thread.id, NULL);
		advise.is_started = false;
	}
}

/* Queue jobs for the thread. */
static int
advise_queue(struct advice_jobs *jobs)
{
	int ret = 0;

	pthread_mutex_lock(&advise.lock);
	if (!advise.is_running) {
		advise_join();
		advise.thread.run = advise_run;
		ret = rmem_thread_start(&advise.thread, "rmem-advise");
		advise.is_started = advise.is_running = ret == 0;
	}
	if (ret == 0)
		TAILQ_CONCAT(&advise.jobs, jobs, next);
	pthread_mutex_unlock(&advise.lock);
	if (ret == 0)
		return 0;
	RSOFT_LOG(ERR, "control thread: not started");
	return -ENOMEM;
}

void
rsoft_advise_cancel(const struct rsoft_odp *odp)
{
	struct advice_job *job, *next;

	if (odp == NULL || !__atomic_load_n(&odp->is_advised, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&advise.lock);
	for (job = TAILQ_FIRST(&advise.jobs); job != NULL; job = next) {
		next = TAILQ_NEXT(job, next);
		if (job->odp == odp) {
			TAILQ_REMOVE(&advise.jobs, job, next);
			rte_free(job);
		}
	}
	/* The thread ends when there are no jobs. */
	while (advise.busy == odp || (TAILQ_EMPTY(&advise.jobs) && advise.is_running))
		pthread_cond_wait(&advise.changed, &advise.lock);
	advise_join();
	pthread_mutex_unlock(&advise.lock);
}

/* An MR named by an SGE, and its pages. */
struct advice_target {
	struct rsoft_mr *mr; /* held */
	uint64_t first;
	uint64_t nb;
};

/* Check an SGE against its MR, which is held so that its key can't change. */
static int
advise_check(const struct rmem_pd *pd, int advice, const struct rmem_sge *sge,
		struct advice_target *target)
{
	const struct rsoft_key *key = target->mr->key;
	uint32_t rights = rsoft_word_rights(__atomic_load_n(&key->word, __ATOMIC_ACQUIRE));
	uint64_t offset = sge->addr - key->iova;

	if (key->pd != pd->handle ||
			(advice == RMEM_ADVISE_PREFETCH_WRITE &&
					(rights & RMEM_ACCESS_LOCAL_WRITE) == 0)) {
		RSOFT_LOG(ERR, "advice: lkey of another PD, or without LOCAL_WRITE: 0x%08x",
				sge->lkey);
		return -EPERM;
	}
	if (key->kind != RSOFT_KIND_ODP) {
		RSOFT_LOG(ERR, "advice: lkey of an MR that is not on demand: 0x%08x", sge->lkey);
		return -EINVAL;
	}
	if (offset > key->length || sge->length > key->length - offset) {
		RSOFT_LOG(ERR,
				"advice: range outside of the MR: %u bytes at 0x%" PRIx64
				" (lkey 0x%08x)",
				sge->length, sge->addr, sge->lkey);
		return -EFAULT;
	}
	target->nb = 0;
	if (sge->length != 0)
		rsoft_odp_pages(key->odp, (uintptr_t)key->base + offset, sge->length,
				&target->first, &target->nb);
	return 0;
}

/* Find and hold the MR of an SGE. */
static int
advise_target(const struct rmem_pd *pd, int advice, const struct rmem_sge *sge,
		struct advice_target *target)
{
	struct rsoft_dev *dev = rsoft_dev_of(&pd->obj);
	struct rsoft_key *key;
	uint64_t word;
	int ret;

	target->mr = NULL;
	/* An MR releases its key under this lock before it is freed. */
	rsoft_lock(&dev->lock);
	key = rsoft_key_of(dev, sge->lkey ^ dev->lkey_xor);
	if (key != NULL && key->mr != NULL) {
		word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
		if (rsoft_word_rkey(word) == (sge->lkey ^ dev->lkey_xor) &&
				(rsoft_word_rights(word) & RSOFT_NEED_READ) == RSOFT_NEED_READ &&
				rmem_obj_hold(&key->mr->mr.obj))
			target->mr = key->mr;
	}
	rte_ticketlock_unlock(&dev->lock);
	if (target->mr == NULL) {
		RSOFT_LOG(ERR, "advice: lkey not valid: 0x%08x", sge->lkey);
		return -ENOENT;
	}
	ret = advise_check(pd, advice, sge, target);
	if (ret != 0)
		rmem_obj_unhold(&target->mr->mr.obj);
	return ret;
}

static int
advise_now(const struct advice_target *target, int advice)
{
	if (target->nb == 0 ||
			rsoft_odp_prefetch(target->mr->odp, target->first, target->nb, advice))
		return 0;
	RSOFT_LOG(ERR, "advice: range not mapped, or protected");
	return -EFAULT;
}

static int
advise_later(const struct advice_target *target, int advice)
{
	struct advice_jobs jobs = TAILQ_HEAD_INITIALIZER(jobs);
	struct advice_job *job;
	int ret;

	if (target->nb == 0)
		return 0;
	job = rte_zmalloc("rsoft_advice", sizeof(*job), 0);
	if (job == NULL) {
		RSOFT_LOG(ERR, "advice: no memory: %zu bytes", sizeof(*job));
		return -ENOMEM;
	}
	job->odp = target->mr->odp;
	job->first = target->first;
	job->nb = target->nb;
	job->advice = advice;
	__atomic_store_n(&job->odp->is_advised, 1, __ATOMIC_RELEASE);
	TAILQ_INSERT_TAIL(&jobs, job, next);
	ret = advise_queue(&jobs);
	if (ret != 0)
		rte_free(job);
	return ret;
}

int
rsoft_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge)
{
	struct advice_target target;
	uint32_t i;
	int ret;

	/* Check all SGEs first: a failed call changes nothing. */
	for (i = 0; i < num_sge; i++) {
		ret = advise_target(pd, advice, &sg_list[i], &target);
		if (ret != 0)
			return ret;
		rmem_obj_unhold(&target.mr->mr.obj);
	}
	for (i = 0; i < num_sge; i++) {
		ret = advise_target(pd, advice, &sg_list[i], &target);
		if (ret != 0)
			return ret;
		ret = (flags & RMEM_ADVISE_FLUSH) ? advise_now(&target, advice)
						  : advise_later(&target, advice);
		rmem_obj_unhold(&target.mr->mr.obj);
		if (ret != 0)
			return ret;
	}
	return 0;
}
