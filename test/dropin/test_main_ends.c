/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A program whose main thread ends by pthread_exit() ends with its last thread, not before,
 * although threads of the library run.
 */

#include <pthread.h>

#include "count_entries.h"
#include "own_qp.h"

#define EARLY_MS 300

static int go[2];    /* a byte: the thread may end */
static int alive[2]; /* closed when the process has ended */

/* Open the device, and end when the parent permits it. */
static void *
use_device(void *arg)
{
	struct ibv_context *context = open_device("soft0");
	char byte;

	HOLDS(count_entries("/proc/self/task") > 2);
	HOLDS(write(alive[1], "x", 1) == 1);
	HOLDS(read(go[0], &byte, 1) == 1);
	HOLDS(ibv_close_device(context) == 0);
	return arg;
}

/* The thread opens it first. */
static void
main_ends_later(void)
{
	pthread_t thread;

	HOLDS(pthread_create(&thread, NULL, use_device, NULL) == 0);
	open_device("soft0");
	pthread_exit(NULL);
}

/* Whether the main thread of this process is one that has ended. */
static bool
has_main_ended(void)
{
	FILE *file = fopen("/proc/self/stat", "r");
	char line[512], *at;

	HOLDS(file != NULL && fgets(line, sizeof(line), file) != NULL);
	fclose(file);
	at = strrchr(line, ')');
	return at != NULL && at[1] != '\0' && at[2] == 'Z';
}

static void *
use_device_alone(void *arg)
{
	while (!has_main_ended())
		poll(NULL, 0, 1);
	return use_device(arg);
}

static void
main_ends_first(void)
{
	pthread_t thread;

	HOLDS(pthread_create(&thread, NULL, use_device_alone, NULL) == 0);
	pthread_exit(NULL);
}

static void *
fork_thread(void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		main_ends_later();
	wait_child(pid);
	return arg;
}

/* The main thread of a child is the one that has called fork(). */
static void
main_of_child_ends(void)
{
	pthread_t thread;

	HOLDS(pthread_create(&thread, NULL, fork_thread, NULL) == 0);
	HOLDS(pthread_join(thread, NULL) == 0);
	exit(0);
}

/* Wait until the device is open, and then for the end, which is not before the byte. */
static void
expect_end(pid_t pid)
{
	struct pollfd one = {.fd = alive[0], .events = POLLIN};
	char byte;

	close(alive[1]);
	close(go[0]);
	HOLDS(read(alive[0], &byte, 1) == 1);
	HOLDS(poll(&one, 1, EARLY_MS) == 0);
	HOLDS(write(go[1], "x", 1) == 1);
	wait_child(pid);
	HOLDS(read(alive[0], &byte, 1) == 0);
	close(alive[0]);
	close(go[1]);
}

int
main(void)
{
	static void (*const cases[])(void) = {main_ends_later, main_ends_first, main_of_child_ends};
	size_t i;
	pid_t pid;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		HOLDS(pipe(go) == 0 && pipe(alive) == 0);
		pid = fork();
		HOLDS(pid >= 0);
		if (pid == 0) {
			close(alive[0]);
			close(go[1]);
			cases[i]();
		}
		expect_end(pid);
	}
	return 0;
}
