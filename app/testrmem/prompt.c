/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The prompt, on librte_cmdline.
 *
 * Input is read here and fed to it character by character, so that the end of the input is noticed
 * and the characters after a start, stop or wait are held until it is done. Words that commands
 * select from are tokens of this file: they complete a word, and the command reports an unknown
 * one. Each setting has an instruction that completes its values; another one accepts unknown
 * settings.
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

#define NB_COMMANDS 9
/* Commands, and a set for each setting. */
#define MAX_INSTRUCTIONS (NB_COMMANDS + 24)

/* A word of a list. */
struct word_token {
	struct cmdline_token_hdr hdr;
	const char *(*name)(const struct word_token *token, int i); /* NULL after the last one. */
	const struct param *param; /* Whose value it is, or NULL. */
	bool is_other;             /* Takes no word of the list. */
};

/* A command in the format of cmdline. */
struct instruction {
	cmdline_parse_token_string_t name;
	cmdline_parse_token_string_t setting;
	struct word_token choice;
	struct word_token value;
	cmdline_parse_inst_t *inst;
};

struct prompt {
	struct app *app;
	struct instruction instructions[MAX_INSTRUCTIONS];
	cmdline_parse_ctx_t ctx[MAX_INSTRUCTIONS + 1];
	struct cmdline *cl;
	char input[256];
	size_t used; /* Of the input. */
	size_t size; /* Bytes of input available. */
	char last;   /* The character fed last. */
	bool is_terminal;
	bool is_input_over;
};

/* cmdline's callbacks get a constant only; there is one prompt. */
static struct prompt *the_prompt;

static const struct word_token *
word_of(const cmdline_parse_token_hdr_t *hdr)
{
	return (const struct word_token *)hdr;
}

/* Whether the list has the word. */
static bool
word_is_listed(const struct word_token *token, const char *text, size_t length)
{
	const char *name;
	int i;

	for (i = 0; (name = token->name(token, i)) != NULL; i++) {
		if (strlen(name) == length && memcmp(name, text, length) == 0)
			return true;
	}
	return false;
}

static int
word_parse(cmdline_parse_token_hdr_t *hdr, const char *text, void *result, unsigned int size)
{
	const struct word_token *token = word_of(hdr);
	unsigned int length = 0;

	while (!cmdline_isendoftoken(text[length]))
		length++;
	if (length == 0 || length >= STR_TOKEN_SIZE || (result != NULL && length >= size))
		return -1;
	if (token->is_other && word_is_listed(token, text, length))
		return -1;
	if (result != NULL)
		snprintf(result, size, "%.*s", (int)length, text);
	return (int)length;
}

static int
word_complete_nb(cmdline_parse_token_hdr_t *hdr)
{
	const struct word_token *token = word_of(hdr);
	int nb = 0;

	while (!token->is_other && token->name(token, nb) != NULL)
		nb++;
	return nb;
}

static int
word_complete(cmdline_parse_token_hdr_t *hdr, int i, char *text, unsigned int size)
{
	const char *name = word_of(hdr)->name(word_of(hdr), i);

	if (name == NULL || strlen(name) >= size)
		return -1;
	snprintf(text, size, "%s", name);
	return 0;
}

static int
word_help(cmdline_parse_token_hdr_t *hdr, char *text, unsigned int size)
{
	const struct word_token *token = word_of(hdr);
	size_t used = 0;
	const char *name;
	int i;

	if (token->is_other) {
		snprintf(text, size, "PARAMETER");
		return 0;
	}
	if (token->param != NULL) {
		param_range(token->param, text, size);
		if (text[0] == '\0' || token->param->type == PARAM_MODE)
			snprintf(text, size, "%s", token->param->arg);
		return 0;
	}
	for (i = 0; (name = token->name(token, i)) != NULL && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : "|", name);
	return 0;
}

static struct cmdline_token_ops word_ops = {
		.parse = word_parse,
		.complete_get_nb = word_complete_nb,
		.complete_get_elt = word_complete,
		.get_help = word_help,
};

static const char *
show_word(const struct word_token *token, int i)
{
	RTE_SET_USED(token);
	return show_name(i);
}

/* Parameters that set takes. */
static const char *
set_word(const struct word_token *token, int i)
{
	const struct param *param;

	RTE_SET_USED(token);
	for (param = params; param->name != NULL; param++) {
		if (!param->is_fixed && i-- == 0)
			return param->name;
	}
	return NULL;
}

/* Values of a parameter that are words. */
static const char *
value_word(const struct word_token *token, int i)
{
	if (token->param == NULL)
		return NULL;
	if (token->param->type == PARAM_MODE)
		return testrmem_engines[i] != NULL ? testrmem_engines[i]->name : NULL;
	return token->param->automatic != NULL && i == 0 ? "auto" : NULL;
}

/* All commands parse into this. */
struct words {
	cmdline_fixed_string_t command;
	cmdline_fixed_string_t name;
	cmdline_fixed_string_t value;
};

static void
log_choice(const char *what, const char *word,
		const char *(*name)(const struct word_token *token, int i))
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
		log_choice("thing to show", words->name, show_word);
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
		log_choice("parameter", words->name, set_word);
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
		the_prompt->app->is_start_requested = true;
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

/* Whether the run ends by itself. */
static bool
has_limit(const struct testrmem_session *session)
{
	return session->conf.ops != 0 || session->conf.run_ms != 0 ||
			session->engine == &testrmem_engine_copy;
}

static void
do_wait(void *result, struct cmdline *cl, void *data)
{
	struct app *app = the_prompt->app;

	RTE_SET_USED(result);
	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	if (!app->is_running)
		return;
	if (!has_limit(app->session))
		testrmem_err("the run has no limit to wait for: set ops or seconds before start");
	else
		app->is_wait_requested = true;
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
			testrmem_err("cannot reset the counters of '%s'", app->devs[i].spec);
	}
}

static void
do_quit(void *result, struct cmdline *cl, void *data)
{
	RTE_SET_USED(result);
	RTE_SET_USED(data);
	cmdline_quit(cl);
	the_prompt->app->is_quit_requested = true;
}

static void
do_stats(void *result, struct cmdline *cl, void *data)
{
	RTE_SET_USED(result);
	RTE_SET_USED(cl);
	RTE_SET_USED(data);
	testrmem_err("unknown command 'stats': use show stats");
}

static void do_help(void *result, struct cmdline *cl, void *data);

/* A command: a word, optionally a word of a list, optionally a value. */
struct command {
	const char *name;
	const char *help;
	void (*execute)(void *result, struct cmdline *cl, void *data);
	const char *(*choice)(const struct word_token *token, int i);
};

static const struct command commands[NB_COMMANDS] = {
		{"help", "help: list the commands", do_help, NULL},
		{"show", "show <what>: print device, pool, mr, stats or config", do_show,
				show_word},
		{"set", "set <parameter> <value>: change a setting of the next run", do_set,
				set_word},
		{"start", "start: run in the background", do_start, NULL},
		{"wait", "wait: wait until the run has ended", do_wait, NULL},
		{"stop", "stop: end the run and print its results", do_stop, NULL},
		{"clear", "clear: reset the counters", do_clear, NULL},
		{"quit", "quit: stop and exit", do_quit, NULL},
		{"stats", "stats: use show stats", do_stats, NULL},
};

const char *
prompt_command(int i)
{
	return i < (int)RTE_DIM(commands) ? commands[i].name : NULL;
}

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
	for (i = 0; set_word(NULL, i) != NULL; i++) {
		const struct param *param = param_find(set_word(NULL, i));

		param_range(param, range, sizeof(range));
		printf("  %-13s %s%s%s\n", param->name, param->help, range[0] != '\0' ? "; " : "",
				range);
	}
	printf("TAB completes, arrow keys recall earlier lines, Ctrl-C stops a run, Ctrl-D quits.\n");
	fflush(stdout);
}

/* Convert a command to the format of cmdline; with a parameter, the set of that parameter. */
static int
make_instruction(struct instruction *ins, const struct command *command, const struct param *param)
{
	const cmdline_parse_token_string_t name =
			TOKEN_STRING_INITIALIZER(struct words, command, command->name);
	bool is_set = command->execute == do_set;
	int nb = 0;

	ins->inst = calloc(1, sizeof(*ins->inst) + 4 * sizeof(void *));
	if (ins->inst == NULL)
		return -ENOMEM;
	ins->inst->f = command->execute;
	ins->inst->help_str = param != NULL ? param->help : command->help;
	ins->name = name;
	ins->inst->tokens[nb++] = &ins->name.hdr;
	if (param != NULL) {
		const cmdline_parse_token_string_t setting =
				TOKEN_STRING_INITIALIZER(struct words, name, param->name);

		ins->setting = setting;
		ins->inst->tokens[nb++] = &ins->setting.hdr;
	} else if (command->choice != NULL) {
		ins->choice.hdr.ops = &word_ops;
		ins->choice.hdr.offset = offsetof(struct words, name);
		ins->choice.name = command->choice;
		ins->choice.is_other = is_set;
		ins->inst->tokens[nb++] = &ins->choice.hdr;
	}
	if (is_set) {
		ins->value.hdr.ops = &word_ops;
		ins->value.hdr.offset = offsetof(struct words, value);
		ins->value.name = value_word;
		ins->value.param = param;
		ins->inst->tokens[nb++] = &ins->value.hdr;
	}
	return 0;
}

static int
make_instructions(struct prompt *prompt)
{
	size_t nb = 0, i;
	int ret = 0;

	for (i = 0; i < RTE_DIM(commands) && ret == 0; i++)
		ret = make_instruction(&prompt->instructions[nb++], &commands[i], NULL);
	for (i = 0; i < RTE_DIM(commands); i++) {
		const struct param *param = commands[i].execute == do_set ? params : NULL;

		for (; param != NULL && param->name != NULL && ret == 0; param++) {
			if (param->is_fixed)
				continue;
			if (nb == MAX_INSTRUCTIONS)
				return -ENOSPC;
			ret = make_instruction(&prompt->instructions[nb++], &commands[i], param);
		}
	}
	for (i = 0; i < nb; i++)
		prompt->ctx[i] = prompt->instructions[i].inst;
	return ret;
}

static void
free_prompt(struct prompt *prompt)
{
	size_t i;

	for (i = 0; prompt != NULL && i < RTE_DIM(prompt->instructions); i++)
		free(prompt->instructions[i].inst);
	free(prompt);
}

struct prompt *
prompt_open(struct app *app)
{
	struct prompt *prompt = calloc(1, sizeof(*prompt));
	int ret = prompt == NULL ? -ENOMEM : make_instructions(prompt);

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

/* Whether the next command has to wait for the main loop. */
static bool
is_held(const struct app *app)
{
	return app->is_start_requested || app->is_quit_requested ||
			(app->is_running &&
					(app->is_wait_requested ||
							testrmem_session_is_stopped(app->session)));
}

static void
feed(struct prompt *prompt)
{
	struct app *app = prompt->app;

	while (prompt->used < prompt->size && !is_held(app)) {
		const char *c = &prompt->input[prompt->used++];

		prompt->last = *c;
		/* The terminal generates no signal while the prompt is active. */
		if (*c == CTRL_C && prompt->is_terminal && app->is_running)
			testrmem_session_stop(app->session);
		else if (cmdline_in(prompt->cl, c, 1) < 0)
			app->is_quit_requested = true;
	}
}

/* Read more input, after the command that is held. */
static void
read_input(struct prompt *prompt)
{
	ssize_t got;

	memmove(prompt->input, prompt->input + prompt->used, prompt->size - prompt->used);
	prompt->size -= prompt->used;
	prompt->used = 0;
	got = read(STDIN_FILENO, prompt->input + prompt->size,
			sizeof(prompt->input) - prompt->size);
	if (got > 0)
		prompt->size += (size_t)got;
	else if (got == 0 || (errno != EINTR && errno != EAGAIN))
		prompt->is_input_over = true;
}

/* While a wait holds the input, only Ctrl-C is processed, and drops the input before it. */
static void
watch(struct prompt *prompt, int wait_ms)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	bool is_full = prompt->size - prompt->used == sizeof(prompt->input);
	const char *found;

	if (!prompt->app->is_wait_requested || !prompt->is_terminal || prompt->is_input_over ||
			is_full) {
		poll(NULL, 0, wait_ms);
		return;
	}
	if (poll(&fd, 1, wait_ms) <= 0)
		return;
	read_input(prompt);
	found = memchr(prompt->input, CTRL_C, prompt->size);
	if (found != NULL) {
		prompt->used = (size_t)(found - prompt->input) + 1;
		testrmem_session_stop(prompt->app->session);
	}
}

/* The input has ended: quit, after a run that ends by itself. */
static void
end_input(struct prompt *prompt)
{
	struct app *app = prompt->app;

	if (prompt->last != '\0' && prompt->last != '\n' && prompt->last != '\r') {
		prompt->last = '\n';
		app->is_quit_requested = cmdline_in(prompt->cl, "\n", 1) < 0;
		return;
	}
	if (app->is_running && !prompt->is_terminal) {
		if (has_limit(app->session)) {
			app->is_wait_requested = true;
			return;
		}
		testrmem_err("the input ended, and the run has no limit: stopped;"
			     " set ops or seconds before start");
		app->exit_code = TESTRMEM_EXIT_USAGE;
	}
	app->is_quit_requested = true;
}

void
prompt_serve(struct prompt *prompt, int wait_ms)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	struct app *app = prompt->app;

	feed(prompt);
	if (is_held(app)) {
		watch(prompt, app->is_running ? wait_ms : 0);
		return;
	}
	if (!prompt->is_input_over) {
		if (poll(&fd, 1, wait_ms) <= 0)
			return;
		read_input(prompt);
	}
	feed(prompt);
	if (prompt->is_input_over && prompt->used == prompt->size && !is_held(app))
		end_input(prompt);
}
