/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The reports of the drop-in on the stderr of this process. */

#ifndef LOG_H
#define LOG_H

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../holds.h"

static int log_fd;

/* Write stderr to a file; the descriptor for log_end(). */
static inline int
log_begin(void)
{
	int out = dup(STDERR_FILENO);

	log_fd = memfd_create("log", 0);
	HOLDS(out >= 0 && log_fd >= 0 && dup2(log_fd, STDERR_FILENO) == STDERR_FILENO);
	return out;
}

static inline void
log_end(int out)
{
	HOLDS(dup2(out, STDERR_FILENO) == STDERR_FILENO);
}

/* The text so far. */
static inline const char *
log_text(void)
{
	static char text[65536];
	ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);

	HOLDS(n >= 0);
	text[n] = '\0';
	return text;
}

#endif /* LOG_H */
