/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The prompt: every autotest is a command, "list" names them, "quit" leaves. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>
#include <cmdline_socket.h>

#include "test.h"

static bool is_failed;

struct cmd_result {
	cmdline_fixed_string_t name;
};

static void
run_autotest(void *parsed, struct cmdline *cl, void *data)
{
	const struct cmd_result *result = parsed;
	const struct test_command *command;

	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	for (command = test_commands(); command != NULL; command = command->next) {
		if (strcmp(command->name, result->name) == 0 &&
				test_run_command(command) == TEST_FAILED)
			is_failed = true;
	}
}

static void
run_list(void *parsed, struct cmdline *cl, void *data)
{
	const struct test_command *command;

	RTE_SET_USED(parsed);
	RTE_SET_USED(data);
	for (command = test_commands(); command != NULL; command = command->next)
		cmdline_printf(cl, "%s\n", command->name);
}

static void
run_quit(void *parsed, struct cmdline *cl, void *data)
{
	RTE_SET_USED(parsed);
	RTE_SET_USED(data);
	cmdline_quit(cl);
}

/* Its choices, "name#name...", are put in when the prompt starts. */
static cmdline_parse_token_string_t autotest_name =
		TOKEN_STRING_INITIALIZER(struct cmd_result, name, "");
static cmdline_parse_token_string_t list_name =
		TOKEN_STRING_INITIALIZER(struct cmd_result, name, "list");
static cmdline_parse_token_string_t quit_name =
		TOKEN_STRING_INITIALIZER(struct cmd_result, name, "quit");

__extension__ static cmdline_parse_inst_t autotest_command = {
		.f = run_autotest,
		.help_str = "run an autotest",
		.tokens = {(void *)&autotest_name, NULL},
};
__extension__ static cmdline_parse_inst_t list_command = {
		.f = run_list,
		.help_str = "list the autotests",
		.tokens = {(void *)&list_name, NULL},
};
__extension__ static cmdline_parse_inst_t quit_command = {
		.f = run_quit,
		.help_str = "leave",
		.tokens = {(void *)&quit_name, NULL},
};

static cmdline_parse_ctx_t context[] = {
		&autotest_command,
		&list_command,
		&quit_command,
		NULL,
};

static char *
join_names(void)
{
	const struct test_command *command;
	size_t size = 1;
	char *names;

	for (command = test_commands(); command != NULL; command = command->next)
		size += strlen(command->name) + 1;
	names = calloc(1, size);
	if (names == NULL)
		return NULL;
	for (command = test_commands(); command != NULL; command = command->next) {
		size_t used = strlen(names);

		snprintf(names + used, size - used, "%s%s", command->name,
				command->next != NULL ? "#" : "");
	}
	return names;
}

int
test_prompt(void)
{
	char *names = join_names();
	struct cmdline *cl;

	if (names == NULL)
		return EXIT_FAILURE;
	autotest_name.string_data.str = names;
	cl = cmdline_stdin_new(context, "RTE>>");
	if (cl == NULL) {
		free(names);
		return EXIT_FAILURE;
	}
	cmdline_interact(cl);
	cmdline_stdin_exit(cl);
	free(names);
	return is_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
