/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program, without any call of rmem, with RMEM_IBV_STATS: each process that has opened the
 * device appends one line of its own counters to the file when it exits. It executes itself.
 */

#include <inttypes.h>

#include "own_qp.h"

#define WRITES 3

static char buf[8192];

/* WRITE half of the buffer to the other one, n times. */
static void
transfer(int n)
{
	struct objects own = open_objects(buf, sizeof(buf), 4);

	for (; n > 0; n--) {
		HOLDS(post_write(own.qp, own.mr, 0) == 0);
		HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	}
	/* The counters of a QP remain those of the device. */
	HOLDS(ibv_destroy_qp(own.qp) == 0);
}

/* The process with the variable: two children, one with a device of its own, and one without. */
static void
report(void)
{
	pid_t pid;
	int n;

	transfer(WRITES);
	for (n = 0; n < 2; n++) {
		pid = fork();
		if (pid == 0) {
			if (n > 0)
				transfer(n);
			exit(0);
		}
		wait_child(pid);
	}
	/* Programs that use no device have no line. */
	pid = fork();
	if (pid == 0)
		execlp("true", "true", NULL);
	wait_child(pid);
}

static void
expect(FILE *file, int process, int nb_writes)
{
	char line[512], expected[512];

	HOLDS(fgets(line, sizeof(line), file) != NULL);
	snprintf(expected, sizeof(expected),
			"soft0: at exit of test-report, process %d: send_wrs=%d recv_wrs=0 bytes=%zu "
			"wire_tx_bytes=0 wire_rx_bytes=0 errors=0\n",
			process, nb_writes, (size_t)nb_writes * sizeof(buf) / 2);
	if (process == 0) { /* any */
		HOLDS(strchr(line, ':') != NULL && strstr(expected, ": send") != NULL);
		HOLDS(strcmp(strstr(line, ": send"), strstr(expected, ": send")) == 0);
		return;
	}
	HOLDS(strcmp(line, expected) == 0);
}

int
main(int argc, char **argv)
{
	char path[] = "/tmp/rmem-report.XXXXXX", line[8];
	FILE *file;
	pid_t pid;
	int fd;

	if (argc > 1) {
		report();
		return 0;
	}
	fd = mkstemp(path);
	HOLDS(fd >= 0 && setenv("RMEM_IBV_STATS", path, 1) == 0);
	pid = fork();
	if (pid == 0)
		execl(argv[0], argv[0], "child", NULL);
	wait_child(pid);
	file = fdopen(fd, "r");
	HOLDS(file != NULL && unlink(path) == 0);
	expect(file, 0, 1); /* of the child of the child */
	expect(file, pid, WRITES);
	HOLDS(fgets(line, sizeof(line), file) == NULL);
	fclose(file);
	printf("each process with a device reported its transfers\n");
	return 0;
}
