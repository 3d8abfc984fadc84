/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Control threads that execute jobs.
 *
 * The memory of a job is split into pieces, which the threads process in parallel, alternating
 * between jobs. The thread that ends the last piece ends the job.
 *
 * Invariant: queue.lock protects the list of jobs, and the claimed and busy pieces of each. A job
 * that is not in the list and has no piece in progress belongs to the thread that ended its last
 * piece. The threads exist while there are users, which threads.lock protects. A user stays while
 * it has jobs, so no job is left when the threads end.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_getaffinity_np() */
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include <rmem_thread.h>

#include "rmem_job_priv.h"
#include "rmem_priv.h"

#define MAX_THREADS 8
/*
 * Large enough to make the cost of claiming negligible, small enough to let all threads end at
 * about the same time.
 */
#define PIECE_SIZE (UINT64_C(64) << 20)

TAILQ_HEAD(job_list, rmem_job);

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

/* Claim the next piece, up to a multiple of PIECE_SIZE; call with the lock held. */
static struct iovec
claim(struct rmem_job *job)
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
	/* Move it to the end of the list, so that small jobs do not wait for a large one. */
	if (!job->is_claimed)
		TAILQ_INSERT_TAIL(&queue.jobs, job, next);
	return piece;
}

/* End a piece. Return whether it was the last one of its job. Call with the lock held. */
static bool
end_piece(struct rmem_job *job, const struct iovec *piece, int error)
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

static void
run_jobs(void *arg)
{
	struct iovec piece;
	struct rmem_job *job;
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
		error = job->process(job, &piece);
		pthread_mutex_lock(&queue.lock);
		if (!end_piece(job, &piece, error))
			continue;
		pthread_mutex_unlock(&queue.lock);
		job->finish(job);
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
rmem_jobs_start(void)
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
rmem_jobs_stop(void)
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

void
rmem_job_put(struct rmem_job *job)
{
	pthread_mutex_lock(&queue.lock);
	TAILQ_INSERT_TAIL(&queue.jobs, job, next);
	pthread_cond_broadcast(&queue.wake);
	pthread_mutex_unlock(&queue.lock);
}
