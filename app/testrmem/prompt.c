/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The prompt, on librte_cmdline.
 *
 * Input is read here and fed to it character by character: so an end of the input is noticed,
 * and what stands behind a start or stop waits until the main loop has done it. Words that
 * commands choose from are tokens of our own, which complete them but leave it to the command
 * to say what is wrong with another one.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>
#include <cmdline_socket.h>

#include "app.h"

#define PROMPT "testrmem> "
#define CTRL_C 0x03

#define NB_COMMANDS 7

/* A word out of a list. */
struct word_token {
	struct cmdline_token_hdr hdr;
	const char *(*name)(int i);
};

/* A command as cmdline wants it. */
struct instruction {
	cmdline_parse_token_string_t name;
	struct word_token choice;
	cmdline_parse_token_string_t value;
	cmdline_parse_inst_t *inst;
};

struct prompt {
	struct app *app;
	struct instruction instructions[NB_COMMANDS];
	cmdline_parse_ctx_t ctx[NB_COMMANDS + 1];
	struct cmdline *cl;
	char input[256];
	size_t used; /* Of the input. */
	size_t size; /* Of the input that is there. */
	bool is_terminal;
};

/* cmdline's callbacks get a constant only; there is one prompt. */
static struct prompt *the_prompt;

static int
word_parse(cmdline_parse_token_hdr_t *hdr, const char *text, void *result, unsigned int size)
{
	unsigned int length = 0;

	RTE_SET_USED(hdr);
	while (!cmdline_isendoftoken(text[length]))
		length++;
	if (length == 0 || length >= STR_TOKEN_SIZE || (result != NULL && length >= size))
		return -1;
	if (result != NULL)
		snprintf(result, size, "%.*s", (int)length, text);
	return (int)length;
}

static const struct word_token *
word_of(const cmdline_parse_token_hdr_t *hdr)
{
	return (const struct word_token *)hdr;
}

static int
word_complete_nb(cmdline_parse_token_hdr_t *hdr)
{
	int nb = 0;

	while (word_of(hdr)->name(nb) != NULL)
		nb++;
	return nb;
}

static int
word_complete(cmdline_parse_token_hdr_t *hdr, int i, char *text, unsigned int size)
{
	const char *name = word_of(hdr)->name(i);

	if (name == NULL || strlen(name) >= size)
		return -1;
	snprintf(text, size, "%s", name);
	return 0;
}

static int
word_help(cmdline_parse_token_hdr_t *hdr, char *text, unsigned int size)
{
	size_t used = 0;
	const char *name;
	int i;

	for (i = 0; (name = word_of(hdr)->name(i)) != NULL && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : "|", name);
	return 0;
}

static struct cmdline_token_ops word_ops = {
		.parse = word_parse,
		.complete_get_nb = word_complete_nb,
		.complete_get_elt = word_complete,
		.get_help = word_help,
};

/* Parameters that set takes. */
static const char *
set_name(int i)
{
	const struct param *param;

	for (param = params; param->name != NULL; param++) {
		if (!param->is_fixed && i-- == 0)
			return param->name;
	}
	return NULL;
}

/* All commands parse into this. */
struct words {
	cmdline_fixed_string_t command;
	cmdline_fixed_string_t name;
	cmdline_fixed_string_t value;
};

static void
tell_choice(const char *what, const char *word, const char *(*name)(int i))
{
	struct word_token token = {.name = name};
	char list[256];

	word_help(&token.hdr, list, sizeof(list));
	testrmem_err("unknown %s '%s': want one of %s", what, word, list);
}

static void
do_show(void *result, struct cmdline *cl, void *data)
{
	const struct words *words = result;

	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	if (!show(the_prompt->app, words->name))
		tell_choice("thing to show", words->name, show_name);
	fflush(stdout);
}

static void
do_set(void *result, struct cmdline *cl, void *data)
{
	const struct words *words = result;
	const struct param *param = param_find(words->name);

	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	if (the_prompt->app->is_running)
		testrmem_err("running: stop first");
	else if (param == NULL)
		tell_choice("parameter", words->name, set_name);
	else if (param->is_fixed)
		testrmem_err("%s can be given on the command line only", param->name);
	else
		param_set(&the_prompt->app->conf, param, words->value);
}

static void
do_start(void *result, struct cmdline *cl, void *data)
{
	RTE_SET_USED(result);
	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	if (the_prompt->app->is_running)
		testrmem_err("running already");
	else
		the_prompt->app->is_start_wanted = true;
}

static void
do_stop(void *result, struct cmdline *cl, void *data)
{
	RTE_SET_USED(result);
	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	if (the_prompt->app->is_running)
		testrmem_session_stop(the_prompt->app->session);
	else
		testrmem_err("not running");
}

static void
do_clear(void *result, struct cmdline *cl, void *data)
{
	struct app *app = the_prompt->app;
	uint32_t i;
	int ret;

	RTE_SET_USED(result);
	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	stats_clear(&app->stats);
	for (i = 0; i < app->conf.nb_devs; i++) {
		ret = rmem_dev_stats_reset(app->devs[i].dev);
		if (ret != 0 && ret != -EOPNOTSUPP)
			testrmem_err("counters of '%s' are not cleared", app->devs[i].spec);
	}
}

static void
do_quit(void *result, struct cmdline *cl, void *data)
{
	RTE_SET_USED(result);
	RTE_SET_USED(data);
	cmdline_quit(cl);
	the_prompt->app->is_quit_wanted = true;
}

static void do_help(void *result, struct cmdline *cl, void *data);

/* A command: a word, perhaps another one out of a list, perhaps a value. */
struct command {
	const char *name;
	const char *help;
	void (*execute)(void *result, struct cmdline *cl, void *data);
	const char *(*choice)(int i);
	bool has_value;
};

static const struct command commands[NB_COMMANDS] = {
		{"help", "help: list the commands", do_help, NULL, false},
		{"show", "show <what>: print device, pool, mr, stats or config", do_show, show_name,
				false},
		{"set", "set <parameter> <value>: change a setting of the next run", do_set,
				set_name, true},
		{"start", "start: run with the present settings", do_start, NULL, false},
		{"stop", "stop: end the run and print its results", do_stop, NULL, false},
		{"clear", "clear: count from zero", do_clear, NULL, false},
		{"quit", "quit: stop and leave", do_quit, NULL, false},
};

static void
do_help(void *result, struct cmdline *cl, void *data)
{
	char range[128];
	int i;

	RTE_SET_USED(result);
	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	for (i = 0; i < (int)RTE_DIM(commands); i++)
		printf("%s\n", commands[i].help);
	printf("Parameters:\n");
	for (i = 0; set_name(i) != NULL; i++) {
		const struct param *param = param_find(set_name(i));

		param_range(param, range, sizeof(range));
		printf("  %-13s %s%s%s\n", param->name, param->help, range[0] != '\0' ? "; " : "",
				range);
	}
	printf("TAB completes, the up arrow brings back, Ctrl-C stops a run, Ctrl-D quits.\n");
	fflush(stdout);
}

/* Make cmdline's form of a command. */
static int
make_instruction(struct instruction *ins, const struct command *command)
{
	const cmdline_parse_token_string_t name =
			TOKEN_STRING_INITIALIZER(struct words, command, command->name);
	const cmdline_parse_token_string_t value =
			TOKEN_STRING_INITIALIZER(struct words, value, NULL);
	int nb = 0;

	ins->inst = calloc(1, sizeof(*ins->inst) + 4 * sizeof(void *));
	if (ins->inst == NULL)
		return -ENOMEM;
	ins->inst->f = command->execute;
	ins->inst->help_str = command->help;
	ins->name = name;
	ins->inst->tokens[nb++] = &ins->name.hdr;
	if (command->choice != NULL) {
		ins->choice.hdr.ops = &word_ops;
		ins->choice.hdr.offset = offsetof(struct words, name);
		ins->choice.name = command->choice;
		ins->inst->tokens[nb++] = &ins->choice.hdr;
	}
	if (command->has_value) {
		ins->value = value;
		ins->inst->tokens[nb++] = &ins->value.hdr;
	}
	return 0;
}

static void
free_prompt(struct prompt *prompt)
{
	size_t i;

	for (i = 0; prompt != NULL && i < RTE_DIM(commands); i++)
		free(prompt->instructions[i].inst);
	free(prompt);
}

struct prompt *
prompt_open(struct app *app)
{
	struct prompt *prompt = calloc(1, sizeof(*prompt));
	int ret = prompt == NULL ? -ENOMEM : 0;
	size_t i;

	for (i = 0; i < RTE_DIM(commands) && ret == 0; i++) {
		ret = make_instruction(&prompt->instructions[i], &commands[i]);
		prompt->ctx[i] = prompt->instructions[i].inst;
	}
	if (ret == 0)
		prompt->cl = cmdline_stdin_new(prompt->ctx, PROMPT);
	if (ret != 0 || prompt->cl == NULL) {
		testrmem_err("no memory for the prompt");
		free_prompt(prompt);
		return NULL;
	}
	prompt->app = app;
	prompt->is_terminal = isatty(STDIN_FILENO) == 1;
	the_prompt = prompt;
	return prompt;
}

void
prompt_close(struct prompt *prompt)
{
	if (prompt == NULL)
		return;
	cmdline_stdin_exit(prompt->cl);
	printf("\n");
	free_prompt(prompt);
	the_prompt = NULL;
}

void
prompt_show(const struct prompt *prompt)
{
	if (prompt == NULL)
		return;
	printf("%s", PROMPT);
	fflush(stdout);
}

/* Whether what comes next has to wait for the main loop. */
static bool
is_held(const struct app *app)
{
	return app->is_start_wanted || app->is_quit_wanted ||
			(app->is_running && testrmem_session_is_stopped(app->session));
}

static void
feed(struct prompt *prompt)
{
	struct app *app = prompt->app;

	while (prompt->used < prompt->size && !is_held(app)) {
		const char *c = &prompt->input[prompt->used++];

		/* The terminal makes no signal of it while the prompt is up. */
		if (*c == CTRL_C && prompt->is_terminal && app->is_running)
			testrmem_session_stop(app->session);
		else if (cmdline_in(prompt->cl, c, 1) < 0)
			app->is_quit_wanted = true;
	}
}

void
prompt_serve(struct prompt *prompt, int wait_ms)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	struct app *app = prompt->app;
	ssize_t got;

	feed(prompt);
	if (is_held(app)) {
		poll(NULL, 0, app->is_running ? wait_ms : 0);
		return;
	}
	if (poll(&fd, 1, wait_ms) <= 0)
		return;
	got = read(STDIN_FILENO, prompt->input, sizeof(prompt->input));
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (got <= 0) {
		app->is_quit_wanted = true;
		return;
	}
	prompt->used = 0;
	prompt->size = (size_t)got;
	feed(prompt);
}
