/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Jobs of the control threads (rmem_job.c). Not installed.
 */

#ifndef RMEM_JOB_PRIV_H
#define RMEM_JOB_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

/** A job, embedded in the caller's struct. The caller sets the ranges and the functions. */
struct rmem_job {
	TAILQ_ENTRY(rmem_job) next;  /**< In the list until all pieces are claimed. */
	struct iovec left;           /**< Part of a range not claimed yet; may be empty. */
	const struct iovec *further; /**< Ranges after `left`. */
	uint32_t nb_further;         /**< Number of these ranges. */
	/** Process a piece, in parallel with other pieces. Return 0, or -errno to end the job. */
	int (*process)(struct rmem_job *job, const struct iovec *piece);
	/** Release the job after its last piece. */
	void (*finish)(struct rmem_job *job);
	int error;            /**< First error; 0 until then. */
	struct iovec bad;     /**< Piece that failed. */
	bool is_claimed;      /**< Private: no longer in the list. */
	unsigned int nb_busy; /**< Private: pieces in progress. */
};

/** Add a user; the first one starts the threads. Return 0, or -ENOMEM with a log line. */
int rmem_jobs_start(void);

/** Remove a user, which must have no jobs; the last one ends the threads. */
void rmem_jobs_stop(void);

/** Execute a job; the threads own it until they call finish. */
void rmem_job_put(struct rmem_job *job);

#endif /* RMEM_JOB_PRIV_H */
