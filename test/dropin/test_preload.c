/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The preloaded library does nothing in a program without verbs: no thread, no descriptor, no
 * output, and less than 1 ms, or than the program's own start takes.
 * Argument: the library. The program runs itself with and without it.
 */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "count_entries.h"

#define RUNS  200
#define MS_NS 1000000
#define LINE  128

static const char *self, *library;

/* Run this program as a child; its output into out, of LINE bytes. Return the ns it took. */
static long
run(const char *argument, const char *preload, char *out)
{
	struct timespec begin, end;
	ssize_t n, len = 0;
	int status, fds[2];
	pid_t pid;

	if (pipe(fds) != 0)
		exit(1);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	pid = fork();
	if (pid == 0) {
		if (preload != NULL)
			setenv("LD_PRELOAD", preload, 1);
		else
			unsetenv("LD_PRELOAD");
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl(self, self, argument, (char *)NULL);
		_exit(1);
	}
	close(fds[1]);
	while (len < LINE - 1 && (n = read(fds[0], out + len, (size_t)(LINE - 1 - len))) > 0)
		len += n;
	out[len] = '\0';
	close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		exit(1);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (end.tv_sec - begin.tv_sec) * 1000 * MS_NS + end.tv_nsec - begin.tv_nsec;
}

static long
min(long a, long b)
{
	return a < b ? a : b;
}

int
main(int argc, char **argv)
{
	long with = 1000L * MS_NS, without = with;
	char plain[LINE], preloaded[LINE];
	int i;

	if (argc != 2)
		return 2;
	if (strcmp(argv[1], "nothing") == 0)
		return 0;
	if (strcmp(argv[1], "count") == 0) {
		printf("threads %d, descriptors %d\n", count_entries("/proc/self/task") - 2,
				count_entries("/proc/self/fd") - 3);
		return 0;
	}
	self = argv[0];
	library = argv[1];
	run("count", NULL, plain);
	run("count", library, preloaded);
	printf("%s%s", plain, preloaded);
	if (plain[0] == '\0' || strcmp(plain, preloaded) != 0)
		return 1;
	for (i = 0; i < RUNS; i++) {
		without = min(without, run("nothing", NULL, plain));
		with = min(with, run("nothing", library, preloaded));
		if (preloaded[0] != '\0')
			return 1;
	}
	printf("start without: %ld us, with: %ld us\n", without / 1000, with / 1000);
	return with - without < MS_NS || with < 2 * without ? 0 : 1;
}
