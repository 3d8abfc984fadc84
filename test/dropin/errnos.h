/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared by the files of test-errnos: objects of the device, and lines of failed calls. */

#ifndef ERRNOS_H
#define ERRNOS_H

#include <errno.h>

#include <infiniband/verbs.h>

#include "step.h"

#define STALE 9999 /* in errno before a call: it did not set it */

extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq;
extern struct ibv_mr *mr;
extern uint8_t *buf;

static inline const char *
name_of(int err)
{
	const char *name = err == STALE ? "not set" : err == 0 ? "0" : strerrorname_np(err);

	return name != NULL ? name : "unknown";
}

/* Print the result of a call that took place after errno was set to STALE. */
static inline void
print_failure(const char *call, int ret)
{
	const int err = errno;

	if (ret == 0)
		step(call, "ok");
	else if (ret == -1)
		step(call, "-1, errno %s", name_of(err));
	else if (ret < 0)
		step(call, "-%s%s%s", name_of(-ret), err == -ret ? "" : ", errno ",
				err == -ret ? "" : name_of(err));
	else
		step(call, "%s%s%s", name_of(ret), err == ret ? "" : ", errno ",
				err == ret ? "" : name_of(err));
}

static inline void
print_null(const char *call, const void *object)
{
	step(call, "%s", object != NULL ? "an object" : name_of(errno));
}

static inline void
print_rereg(const char *call, int ret)
{
	const int err = errno;

	step(call, "%d, errno %s", ret, name_of(err));
}

#define fails(call, expression)       print_failure(call, (errno = STALE, (expression)))
#define is_null(call, expression)     print_null(call, (errno = STALE, (expression)))
#define rereg_fails(call, expression) print_rereg(call, (errno = STALE, (expression)))

/* QPs and requests; the QPs are destroyed by the second one. */
void queue_pairs(void);
void queue_pairs_end(void);

#endif
