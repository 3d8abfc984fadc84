/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* For programs that are a test by themselves. */

#ifndef HOLDS_H
#define HOLDS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* End the program with a line if the condition is false. */
#define HOLDS(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s, errno %d\n", __FILE__,          \
					__LINE__, #condition, errno);                              \
			exit(EXIT_FAILURE);                                                        \
		}                                                                                  \
	} while (0)

/* Wait until a child has ended with success. */
static inline void
wait_child(pid_t pid)
{
	int status;

	HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

#endif
