/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* For programs that are a test by themselves. */

#ifndef HOLDS_H
#define HOLDS_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

/* Run it in a child of fork(), which must not fail: all of its objects end with it. */
static inline void
run_in_child(void (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		run();
		_exit(EXIT_SUCCESS);
	}
	wait_child(pid);
}

/* Whether a descriptor is readable now. */
static inline bool
is_readable(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return poll(&one, 1, 0) == 1;
}

static inline uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
