/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Registrations executed by control threads.
 *
 * A job is a registration. Its memory is split into pieces, which the threads populate in
 * parallel, alternating between jobs; the thread that ends the last piece calls the driver to
 * register the MR and puts the event.
 *
 * Invariant: queue.lock protects the list of jobs, and the claimed and busy pieces of each. A job
 * that is not in the list and has no piece in progress belongs to the thread that ended its last
 * piece. Until then no other thread writes the MR: it is PENDING, which every call refuses. The
 * threads exist from the first EQ to the last, under threads.lock; an EQ is not destroyed while a
 * job for it exists, so no job is left when they end.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_getaffinity_np() */
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include <rte_malloc.h>

#include <rmem_pages.h>
#include <rmem_thread.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

#define MAX_THREADS 8
/* Large enough that the cost of claiming is negligible, small enough that threads end together. */
#define PIECE_SIZE (UINT64_C(64) << 20)

struct job {
	TAILQ_ENTRY(job) next; /* in queue.jobs while pieces are left to claim */
	struct rmem_mr *mr;
	struct rmem_mr_attr attr;
	struct iovec left;           /* part of a range not claimed yet */
	const struct iovec *further; /* following ranges, nb_further of them */
	uint32_t nb_further;
	struct iovec bad; /* piece that failed */
	bool is_claimed;  /* no longer in the list */
	unsigned int nb_busy;
	int error;
};

TAILQ_HEAD(job_list, job);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job_list jobs;
	bool is_stopping;
} queue = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.wake = PTHREAD_COND_INITIALIZER,
		.jobs = TAILQ_HEAD_INITIALIZER(queue.jobs),
};

static struct {
	pthread_mutex_t lock;
	unsigned int nb_users;
	unsigned int nb;
	struct rmem_thread all[MAX_THREADS];
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Claim the next piece, which ends at a multiple of its size; call with the lock held. */
static struct iovec
claim(struct job *job)
{
	uintptr_t at = (uintptr_t)job->left.iov_base;
	struct iovec piece = job->left;

	piece.iov_len = RTE_MIN(piece.iov_len, (size_t)(PIECE_SIZE - at % PIECE_SIZE));
	job->left.iov_base = (void *)(at + piece.iov_len);
	job->left.iov_len -= piece.iov_len;
	job->nb_busy++;
	if (job->left.iov_len == 0 && job->nb_further != 0) {
		job->left = *job->further++;
		job->nb_further--;
	}
	TAILQ_REMOVE(&queue.jobs, job, next);
	job->is_claimed = job->left.iov_len == 0;
	/* At the end of the list, so that small jobs do not wait for a large one. */
	if (!job->is_claimed)
		TAILQ_INSERT_TAIL(&queue.jobs, job, next);
	return piece;
}

/* End a piece; returns whether it was the last. Call with the lock held. */
static bool
end_piece(struct job *job, const struct iovec *piece, int error)
{
	job->nb_busy--;
	if (error != 0 && job->error == 0) {
		job->error = error;
		job->bad = *piece;
		if (!job->is_claimed)
			TAILQ_REMOVE(&queue.jobs, job, next);
		job->is_claimed = true;
	}
	return job->is_claimed && job->nb_busy == 0;
}

/* Populate the pages if the kernel supports that; otherwise the driver checks them. */
static int
populate(const struct iovec *piece, const struct rmem_mr *mr)
{
	bool is_write = (mr->access & RMEM_ACCESS_LOCAL_WRITE) != 0;
	uintptr_t first, end;
	int error;

	if (piece->iov_len == 0)
		return 0;
	rmem_pages_of(piece, &first, &end);
	error = rmem_pages_populate(first, end, is_write);
	/* Memory mapped by a device has no pages to populate: the driver of the MR handles it. */
	return error == 0 || (error == -EINVAL && (rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0)
			? 0
			: -EFAULT;
}

/* Register the MR when all memory is populated, or set it to ERROR, and put the event. */
static void
finish(struct job *job)
{
	struct rmem_event event = {
			.type = RMEM_EVENT_MR_COMPLETE,
			.status = job->error,
			.mr = job->mr,
			.context = job->attr.context,
	};
	struct rmem_eq *eq = job->attr.eq;

	if (job->error != 0) {
		RMEM_LOG(ERR, "MR of %zu bytes: range not mapped%s: [%p, +%zu)", job->mr->length,
				(job->attr.access & RMEM_ACCESS_LOCAL_WRITE) != 0 ? " and writable"
										  : "",
				job->bad.iov_base, job->bad.iov_len);
		rmem_mr_set_state(job->mr, RMEM_MR_STATE_ERROR);
	} else {
		event.status = rmem_mr_do_reg(job->mr, &job->attr);
	}
	rmem_trace_mr_complete(job->mr, event.status, job->mr->lkey, job->mr->rkey);
	rte_free(job);
	rmem_eq_put(eq, &event);
}

static void
run_jobs(void *arg)
{
	struct iovec piece;
	struct job *job;
	int error;

	RTE_SET_USED(arg);
	pthread_mutex_lock(&queue.lock);
	for (;;) {
		job = TAILQ_FIRST(&queue.jobs);
		if (job == NULL && queue.is_stopping)
			break;
		if (job == NULL) {
			pthread_cond_wait(&queue.wake, &queue.lock);
			continue;
		}
		piece = claim(job);
		pthread_mutex_unlock(&queue.lock);
		error = populate(&piece, job->mr);
		pthread_mutex_lock(&queue.lock);
		if (!end_piece(job, &piece, error))
			continue;
		pthread_mutex_unlock(&queue.lock);
		finish(job);
		pthread_mutex_lock(&queue.lock);
	}
	pthread_mutex_unlock(&queue.lock);
}

/* Start a thread for each processor of control threads; call with the lock held. */
static int
start_threads(void)
{
	unsigned int wanted = 1;
	cpu_set_t cpus;
	char name[16];

	queue.is_stopping = false;
	for (threads.nb = 0; threads.nb < wanted; threads.nb++) {
		snprintf(name, sizeof(name), "rmem-reg-%u", threads.nb % MAX_THREADS);
		threads.all[threads.nb].run = run_jobs;
		if (rmem_thread_start(&threads.all[threads.nb], name) != 0)
			break;
		if (threads.nb == 0 &&
				pthread_getaffinity_np(threads.all[0].id, sizeof(cpus), &cpus) == 0)
			wanted = RTE_MIN((unsigned int)CPU_COUNT(&cpus), MAX_THREADS);
	}
	return threads.nb != 0 ? 0 : RMEM_FAIL(ENOMEM, "control thread: not started");
}

int
rmem_async_start(void)
{
	int ret = 0;

	pthread_mutex_lock(&threads.lock);
	if (threads.nb_users == 0)
		ret = start_threads();
	if (ret == 0)
		threads.nb_users++;
	pthread_mutex_unlock(&threads.lock);
	return ret;
}

void
rmem_async_stop(void)
{
	pthread_mutex_lock(&threads.lock);
	if (--threads.nb_users == 0) {
		pthread_mutex_lock(&queue.lock);
		queue.is_stopping = true;
		pthread_cond_broadcast(&queue.wake);
		pthread_mutex_unlock(&queue.lock);
		while (threads.nb > 0)
			pthread_join(threads.all[--threads.nb].id, NULL);
	}
	pthread_mutex_unlock(&threads.lock);
}

int
rmem_async_reg(struct rmem_mr *new_mr, const struct rmem_mr_attr *attr, struct rmem_mr **mr)
{
	const struct iovec *iov;
	struct iovec one;
	struct job *job;
	int ret;

	job = rte_zmalloc("rmem_job", sizeof(*job), 0);
	if (job == NULL)
		return RMEM_FAIL(ENOMEM, "registration: no memory: %zu bytes", sizeof(*job));
	ret = rmem_eq_reserve(attr->eq, new_mr);
	if (ret != 0) {
		rte_free(job);
		return ret;
	}
	job->mr = new_mr;
	job->attr = *attr;
	/* The ranges of the caller may be freed; the MR has a copy. */
	job->attr.iov = rmem_mr_drv(new_mr)->iov;
	job->attr.iov_count = rmem_mr_drv(new_mr)->iov_count;
	/* Memory of ALLOCATE_MR is populated already; on-demand MRs are not populated. */
	if ((new_mr->access & (RMEM_ACCESS_ALLOCATE_MR | RMEM_ACCESS_ON_DEMAND)) == 0) {
		job->nb_further = rmem_mr_ranges(new_mr, &one, &iov) - 1;
		job->left = iov[0];
		job->further = iov + 1;
	}
	rmem_mr_set_state(new_mr, RMEM_MR_STATE_PENDING);
	rmem_trace_mr_start(new_mr->pd, new_mr, new_mr->length);
	rmem_obj_list(&new_mr->obj);
	/* Before the event can be read (fi_mr(3)). */
	*mr = new_mr;
	pthread_mutex_lock(&queue.lock);
	TAILQ_INSERT_TAIL(&queue.jobs, job, next);
	pthread_cond_broadcast(&queue.wake);
	pthread_mutex_unlock(&queue.lock);
	return 0;
}
