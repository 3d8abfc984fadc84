/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The command line: options after "--", according to the table of parameters.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "param.h"
#include "remote.h"

#define MAX_PARAMS 32
/* Value of getopt_long() for parameter number n. */
#define OPTION(n) (256 + (n))

char **
option_find(int argc, char **argv, int *nb_args)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			*nb_args = argc - i;
			return argv + i;
		}
	}
	*nb_args = 0;
	return NULL;
}

static void
fill_options(struct option *options, char *letters)
{
	int i;

	*letters++ = ':';
	for (i = 0; params[i].name != NULL; i++) {
		options[i].name = params[i].name;
		options[i].has_arg = params[i].arg == NULL ? no_argument : required_argument;
		options[i].val = OPTION(i);
		if (params[i].letter != 0)
			*letters++ = params[i].letter;
	}
	*letters = '\0';
}

static const struct param *
find_letter(int letter)
{
	const struct param *param;

	for (param = params; param->name != NULL; param++) {
		if (param->letter != 0 && param->letter == letter)
			return param;
	}
	return NULL;
}

static int
parse_one(int option, char **argv, struct testrmem_conf *conf)
{
	const struct param *param;

	if (option == ':') {
		testrmem_err("option %s needs a value; --help lists the options", argv[optind - 1]);
		return -EINVAL;
	}
	param = option >= OPTION(0) ? &params[option - OPTION(0)] : find_letter(option);
	if (param == NULL) {
		testrmem_err("unknown option '%s'; --help lists the options", argv[optind - 1]);
		return -EINVAL;
	}
	return param_set(conf, param, optarg);
}

int
testrmem_addr_parse(const char *text, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *four = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(REMOTE_PORT);
		return 0;
	}
	if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(REMOTE_PORT);
		return 0;
	}
	testrmem_err("'%s' is not an IPv4 or IPv6 address", text);
	return -EINVAL;
}

/* Modes supported with two hosts. */
static int
check_remote(const struct testrmem_conf *conf)
{
	bool is_listener = conf->listen[0] != '\0';
	struct sockaddr_storage addr;

	if (is_listener && conf->connect[0] != '\0')
		testrmem_err("one of --listen and --connect, not both");
	else if (conf->engine->listener == NULL)
		testrmem_err("mode %s is not for two hosts: all but mbuf, lease and copy are",
				conf->engine->name);
	else if (conf->nb_devs != 1)
		testrmem_err("two hosts run with 1 device each, not %" PRIu32, conf->nb_devs);
	else if (conf->mrs != 1)
		testrmem_err("two hosts run with 1 target MR, not %" PRIu64, conf->mrs);
	else if (conf->is_interactive)
		testrmem_err("two hosts run without a prompt");
	else if (conf->sweep[0] != '\0')
		testrmem_err("two hosts run once, not for each value of a sweep");
	else
		return testrmem_addr_parse(is_listener ? conf->listen : conf->connect, &addr);
	return -EINVAL;
}

static int
check(const struct testrmem_conf *conf)
{
	const char *file = conf->input[0] != '\0' ? conf->input : conf->output;
	struct testrmem_conf resolved;

	if ((conf->listen[0] != '\0' || conf->connect[0] != '\0') && check_remote(conf) != 0)
		return -EINVAL;
	if (conf->is_interactive && conf->sweep[0] != '\0') {
		testrmem_err("a sweep cannot be combined with the prompt");
		return -EINVAL;
	}
	/* The prompt can still set missing parameters; its command start checks them. */
	if (conf->is_interactive)
		return 0;
	if (conf->engine != &testrmem_engine_copy && file[0] != '\0') {
		testrmem_err("%s '%s' is for mode copy, not for mode %s",
				conf->input[0] != '\0' ? "input" : "output", file,
				conf->engine->name);
		return -EINVAL;
	}
	return param_resolve(conf, &resolved);
}

int
option_parse(int argc, char **argv, struct testrmem_conf *conf)
{
	struct option options[MAX_PARAMS] = {0};
	char letters[MAX_PARAMS + 2];
	int option, ret;

	fill_options(options, letters);
	opterr = 0;
	optind = 1;
	while (argc > 0 && (option = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		ret = parse_one(option, argv, conf);
		if (ret != 0)
			return ret;
	}
	if (conf->is_help)
		return 0;
	if (argc > 0 && optind < argc) {
		testrmem_err("unknown argument '%s'; --help lists the options", argv[optind]);
		return -EINVAL;
	}
	if (conf->nb_devs == 0) {
		ret = param_set(conf, param_find("dev"), "soft0");
		if (ret != 0)
			return ret;
	}
	/* A script is the input of the prompt. */
	if (conf->script[0] != '\0')
		conf->is_interactive = true;
	return check(conf);
}

static void
print_param(const struct param *param)
{
	char name[64], range[128], automatic[128];

	snprintf(name, sizeof(name), "--%s%s%s", param->name, param->arg != NULL ? " " : "",
			param->arg != NULL ? param->arg : "");
	if (param->letter != 0)
		printf("  -%c, %-18s %s\n", param->letter, name, param->help);
	else if (strlen(name) > 22)
		printf("  %s\n  %22s %s\n", name, "", param->help);
	else
		printf("  %-22s %s\n", name, param->help);
	param_range(param, range, sizeof(range));
	if (param->type == PARAM_MODE || range[0] == '\0')
		return;
	if (param->automatic != NULL) {
		param_automatic(param, automatic, sizeof(automatic));
		printf("  %22s %s (default auto: %s)\n", "", range, automatic);
		return;
	}
	printf("  %22s %s (default %" PRIu64 ")\n", "", range, param->def);
}

void
option_usage(const char *program)
{
	const char *name = strrchr(program, '/');
	const struct param *param;
	int i;

	name = name != NULL ? name + 1 : program;
	printf("\nUsage: %s [EAL options] -- [options]\n\n"
	       "Transfers data over pairs of connected QPs of rmem devices, and prints the rates.\n"
	       "Each worker lcore has its own QP pairs; a single lcore is main and worker lcore.\n\n",
			name);
	printf("Options:\n");
	for (param = params; param->name != NULL; param++)
		print_param(param);
	printf("\nModes:\n");
	for (i = 0; testrmem_engines[i] != NULL; i++)
		printf("  %-10s %s\n", testrmem_engines[i]->name, testrmem_engines[i]->help);
	printf("\nNumbers may have a suffix K, M or G, of 1024. Exit status: 0 done and verified,\n"
	       "1 invalid options or the start failed, 2 the run failed.\n\n"
	       "Examples:\n"
	       "  %s --no-huge -m 256 --no-pci -l 0 -- --mode fastreg --seconds 3\n"
	       "  %s -l 0-2 -- --dev soft0,max_mr=2000000 --mode write --mrs 1M\n"
	       "  %s -l 0,1 -- --mode copy --input a.iso --output b.iso\n"
	       "  %s -l 0,1 -- -i\n",
			name, name, name, name);
}
