/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Arguments of devices in combination: faults of one of two devices, reports of a program that
 * forks, and rmem-ctl for one whose child has outlived it.
 *
 * usage: test-crossings chaos | sanitize | control RMEM-CTL
 */

#include "own_qp.h"
#include "run_control.h"

#define NB_WRITES 3

/* Objects of a device, and their memory. */
struct side {
	struct objects objects;
	char buf[64];
};

static struct side own; /* of a process with one */

static void
expect_writes(const struct objects *of, const enum ibv_wc_status wanted[NB_WRITES])
{
	int i;

	for (i = 0; i < NB_WRITES; i++)
		HOLDS(post_write(of->qp, of->mr, 0) == 0);
	for (i = 0; i < NB_WRITES; i++)
		HOLDS(wait_wc(of->cq).status == wanted[i]);
}

/* The second request of soft0 fails, with RMEM_IBV; none of soft1 does. */
static void
faults_are_of_one_device(void)
{
	static const enum ibv_wc_status failed[] = {
			IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR};
	static const enum ibv_wc_status well[] = {IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS};
	static struct side with, without;

	without.objects = open_objects_of("soft1", without.buf, sizeof(without.buf), NB_WRITES);
	with.objects = open_objects_of("soft0", with.buf, sizeof(with.buf), NB_WRITES);
	expect_writes(&without.objects, well);
	expect_writes(&with.objects, failed);
	expect_writes(&without.objects, well);
	close_objects(&with.objects);
	close_objects(&without.objects);
}

/* All that a process prints on stderr, in text. */
static void
run_child(void (*child)(void), char *text, size_t size)
{
	int fds[2];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	HOLDS(pipe(fds) == 0);
	pid = fork();
	HOLDS(pid >= 0);
	if (pid == 0) {
		HOLDS(dup2(fds[1], STDERR_FILENO) >= 0);
		child();
		exit(0);
	}
	close(fds[1]);
	while (len < size - 1 && (n = read(fds[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fds[0]);
	wait_child(pid);
}

static void
forks_and_leaves(void)
{
	pid_t pid;

	own.objects = open_objects_of("soft0", own.buf, sizeof(own.buf), NB_WRITES);
	pid = fork();
	/* The objects are those of the parent. */
	if (pid == 0)
		exit(0);
	wait_child(pid);
}

static void
forks_and_destroys(void)
{
	forks_and_leaves();
	close_objects(&own.objects);
}

/* A child has the objects of its parent, which alone reports those that it leaves. */
static void
reports_are_of_the_parent(void)
{
	static char text[16384];
	const char *first;

	run_child(forks_and_destroys, text, sizeof(text));
	HOLDS(text[0] == '\0');
	run_child(forks_and_leaves, text, sizeof(text));
	first = strstr(text, "QP not destroyed");
	HOLDS(first != NULL && strstr(first + 1, "QP not destroyed") == NULL);
}

/* Open the device, start a child that waits for the end of one pipe, and end when requested. */
static void
outlived(int ready, int go, int end)
{
	char byte = 0;

	own.objects = open_objects_of("soft0", own.buf, sizeof(own.buf), NB_WRITES);
	if (fork() == 0) {
		while (read(end, &byte, 1) > 0)
			;
		_exit(0);
	}
	HOLDS(write(ready, &byte, 1) == 1);
	HOLDS(read(go, &byte, 1) == 1);
	_exit(0);
}

/* A child that has outlived its parent does not answer, and is not waited for. */
static void
child_is_not_controlled(const char *program)
{
	int ready[2], go[2], end[2], status;
	char byte = 0, text[TEXT];
	pid_t pid;

	HOLDS(pipe(ready) == 0 && pipe(go) == 0 && pipe(end) == 0);
	pid = fork();
	HOLDS(pid >= 0);
	if (pid == 0) {
		close(end[1]);
		outlived(ready[1], go[0], end[0]);
	}
	HOLDS(read(ready[0], &byte, 1) == 1);
	HOLDS(control_process(program, "timeout 60", pid, "list", text) == 0 &&
			strstr(text, "ACTIVE") != NULL);
	HOLDS(write(go[1], &byte, 1) == 1);
	wait_child(pid);
	status = control_process(program, "timeout 60", pid, "list", text);
	HOLDS(status != 124 && strstr(text, "ACTIVE") == NULL);
}

int
main(int argc, char **argv)
{
	HOLDS(argc >= 2);
	if (strcmp(argv[1], "chaos") == 0)
		faults_are_of_one_device();
	else if (strcmp(argv[1], "sanitize") == 0)
		reports_are_of_the_parent();
	else
		child_is_not_controlled(argv[2]);
	return 0;
}
