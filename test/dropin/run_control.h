/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* rmem-ctl on the process itself, or another one. */

#ifndef RUN_CONTROL_H
#define RUN_CONTROL_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../holds.h"

#define TEXT 4096 /* longer than all that rmem-ctl prints */

/* The exit code of rmem-ctl for a process, with its output in text. */
static inline int
control_process(const char *program, const char *prefix, pid_t pid, const char *command,
		char text[TEXT])
{
	char line[512];
	size_t len;
	FILE *pipe;
	int status;

	snprintf(line, sizeof(line), "LD_PRELOAD= %s %s -p %d %s 2>&1", prefix, program, (int)pid,
			command);
	pipe = popen(line, "r");
	HOLDS(pipe != NULL);
	len = fread(text, 1, TEXT - 1, pipe);
	text[len] = '\0';
	status = pclose(pipe);
	HOLDS(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The same for this process. */
static inline int
run_control(const char *program, const char *prefix, const char *command, char text[TEXT])
{
	return control_process(program, prefix, getpid(), command, text);
}

/* The command succeeds, and prints a line about soft0 with the answer; nothing for "". */
static inline void
control_prints(const char *program, const char *command, const char *answer)
{
	char text[TEXT], expected[TEXT] = "";

	HOLDS(run_control(program, "", command, text) == 0);
	if (answer[0] != '\0')
		snprintf(expected, sizeof(expected), "%d soft0: %s\n", (int)getpid(), answer);
	if (strcmp(text, expected) != 0)
		printf("%s: %s instead of %s\n", command, text, expected);
	HOLDS(strcmp(text, expected) == 0);
}

/* The command fails with the status, and prints the reason. */
static inline void
control_refuses(const char *program, const char *command, int status, const char *reason)
{
	char text[TEXT];

	HOLDS(run_control(program, "", command, text) == status);
	HOLDS(strstr(text, reason) != NULL);
}

static inline enum ibv_port_state
port_state(struct ibv_context *context)
{
	struct ibv_port_attr attr;

	HOLDS(ibv_query_port(context, 1, &attr) == 0);
	HOLDS((attr.phys_state == 5) == (attr.state == IBV_PORT_ACTIVE));
	return attr.state;
}

static inline void
expect_event(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	HOLDS(ibv_get_async_event(context, &event) == 0 && event.event_type == type);
	ibv_ack_async_event(&event);
}

#endif /* RUN_CONTROL_H */
