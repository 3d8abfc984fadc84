/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* State and commands of the program, used by the main lcore only. */

#ifndef APP_H
#define APP_H

#include "param.h"
#include "stats.h"

struct prompt;

struct app {
	struct testrmem_conf conf;
	struct testrmem_dev devs[TESTRMEM_MAX_DEVS];
	struct testrmem_session *session; /**< The run, or the last one; NULL before. */
	struct stats stats;
	struct prompt *prompt; /**< NULL without -i. */
	struct stats_file json;
	struct stats_file csv;
	bool is_running;
	bool is_start_requested;
	bool is_wait_requested; /**< Hold commands until the run has ended. */
	bool is_quit_requested;
	int exit_code; /**< Result of the commands, without the runs. */
};

/* prompt.c */
/** Create a prompt on stdin and stdout; NULL, with a message, if there is no memory. */
struct prompt *prompt_open(struct app *app);
void prompt_close(struct prompt *prompt);
/** Write the prompt again after other output. */
void prompt_show(const struct prompt *prompt);
/**
 * Wait for input at most wait_ms and execute the commands read, up to one that starts, stops or
 * waits. The end of the input quits, after the run if that has a limit.
 */
void prompt_serve(struct prompt *prompt, int wait_ms);

/** Name of command number i, or NULL after the last one. */
const char *prompt_command(int i);

/* script.c */
/** If there is a script, check its commands and read them in place of stdin; reports errors. */
int script_open(struct testrmem_conf *conf);

/* show.c */
/** Topics of the command show: name number i, or NULL after the last one. */
const char *show_name(int i);
/** Show a topic; false if there is no such topic. */
bool show(struct app *app, const char *name);

#endif /* APP_H */
