/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Lines "group step: result". */

#ifndef STEP_H
#define STEP_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static inline void __attribute__((format(printf, 2, 3)))
step(const char *name, const char *format, ...)
{
	va_list args;

	printf("%s: ", name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* The result of a call that returns 0, an errno, or -1 with errno set. */
static inline void
result(const char *name, int ret)
{
	step(name, "%s", ret == 0 ? "ok" : strerrorname_np(ret == -1 ? errno : ret));
}

static inline void
created(const char *name, const void *object)
{
	step(name, "%s", object != NULL ? "ok" : strerrorname_np(errno));
}

#endif
