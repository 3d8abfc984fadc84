/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * dpdk-testrmem: transfers data over rmem devices and prints the rates; see doc/testrmem.md.
 */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "app.h"
#include "param.h"
#include "stats.h"

/* Interval at which the idle prompt checks for a signal. */
#define IDLE_MS 50

#define SWEEP_MAX 64

/* A series of runs with values of one parameter, each twice the one before. */
struct sweep {
	const struct param *param;
	uint64_t to;
	uint64_t value[SWEEP_MAX];
	struct stats_rates rates[SWEEP_MAX];
	uint32_t nb; /* runs that have ended */
};

static const char *const sweep_names[] = {"size", "burst", "depth", "qps", "mrs"};

struct ticker {
	struct app *app;
	uint64_t next_period;
};

/* Work of the main lcore every few milliseconds of a run. */
static void
tick(void *arg, int wait_ms)
{
	struct ticker *ticker = arg;
	struct app *app = ticker->app;
	const struct testrmem_conf *conf = &app->session->conf;
	uint64_t cycles_per_ms = rte_get_tsc_hz() / 1000;
	uint64_t elapsed;

	if (app->prompt != NULL)
		prompt_serve(app->prompt, wait_ms);
	else if (wait_ms > 0)
		poll(NULL, 0, wait_ms);
	elapsed = (rte_rdtsc() - app->stats.start_tsc) / cycles_per_ms;
	if (!app->session->is_warm && elapsed >= conf->warm_up_ms) {
		stats_clear(&app->stats);
		__atomic_store_n(&app->session->is_warm, 1, __ATOMIC_RELAXED);
	}
	if (conf->period_ms != 0 && elapsed >= ticker->next_period) {
		stats_print_period(&app->stats);
		ticker->next_period += conf->period_ms;
	}
	if (testrmem_is_interrupted())
		app->is_quit_requested = true;
	if (app->is_quit_requested ||
			(conf->run_ms != 0 && elapsed >= conf->warm_up_ms + conf->run_ms))
		testrmem_session_stop(app->session);
}

/* Run with the present settings and print the results: 0 or the exit code. */
static int
run(struct app *app)
{
	struct ticker ticker = {.app = app};
	int ret;

	testrmem_session_close(app->session);
	app->session = NULL;
	app->stats.session = NULL;
	ret = testrmem_session_open(&app->conf, app->devs, &app->session);
	if (ret != 0 || app->session == NULL)
		return TESTRMEM_EXIT_USAGE;
	ticker.next_period = app->session->conf.period_ms;
	app->is_running = true;
	stats_start(&app->stats, app->session);
	ret = testrmem_run(app->session, tick, &ticker);
	app->is_running = false;
	app->is_wait_requested = false;
	stats_print_table(&app->stats);
	if (ret == 0)
		ret = testrmem_session_verify(app->session);
	if (ret == 0)
		printf("verified: yes (%s)\n", app->session->engine->verified);
	else
		printf("verified: NO\n");
	ret |= stats_write(&app->stats, &app->json);
	ret |= stats_write(&app->stats, &app->csv);
	fflush(stdout);
	return ret == 0 ? 0 : TESTRMEM_EXIT_RUN;
}

static int
interact(struct app *app)
{
	int code = 0;

	app->exit_code = 0;
	app->prompt = prompt_open(app);
	if (app->prompt == NULL)
		return TESTRMEM_EXIT_USAGE;
	while (!app->is_quit_requested && !testrmem_is_interrupted()) {
		prompt_serve(app->prompt, IDLE_MS);
		if (app->is_start_requested) {
			app->is_start_requested = false;
			code = RTE_MAX(code, run(app));
			if (!app->is_quit_requested)
				prompt_show(app->prompt);
		}
	}
	prompt_close(app->prompt);
	app->prompt = NULL;
	return RTE_MAX(code, app->exit_code);
}

static int
open_file(const char *path, struct stats_file *out)
{
	if (path[0] == '\0')
		return 0;
	out->path = path;
	out->file = fopen(path, "we");
	if (out->file != NULL)
		return 0;
	testrmem_err("cannot write '%s': %s", path, strerror(errno));
	return TESTRMEM_EXIT_USAGE;
}

static int
close_file(struct stats_file *out)
{
	if (out->file == NULL || fclose(out->file) == 0)
		return 0;
	testrmem_err("cannot write '%s': %s", out->path, strerror(errno));
	return TESTRMEM_EXIT_RUN;
}

static uint64_t *
value_of(struct testrmem_conf *conf, const struct param *param)
{
	return (uint64_t *)((char *)conf + param->offset);
}

static const struct param *
sweep_param(const char *name)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(sweep_names); i++) {
		if (strcmp(name, sweep_names[i]) == 0)
			return param_find(name);
	}
	return NULL;
}

static int
bad_sweep(const char *text)
{
	testrmem_err("bad value '%s' for sweep: want NAME=FROM..TO, such as size=64..64K; NAME is"
		     " size, burst, depth, qps or mrs",
			text);
	return -EINVAL;
}

/* Parse conf->sweep and set the first value; -EINVAL with a message. */
static int
sweep_open(struct testrmem_conf *conf, struct sweep *sweep)
{
	char text[TESTRMEM_STR_SIZE], *from, *to;
	uint64_t *value;

	memset(sweep, 0, sizeof(*sweep));
	snprintf(text, sizeof(text), "%s", conf->sweep);
	from = strchr(text, '=');
	to = strstr(text, "..");
	if (from == NULL || to == NULL || to < from)
		return bad_sweep(conf->sweep);
	*from++ = '\0';
	*to = '\0';
	to += 2;
	sweep->param = sweep_param(text);
	if (sweep->param == NULL || strcmp(from, "auto") == 0 || strcmp(to, "auto") == 0)
		return bad_sweep(conf->sweep);
	value = value_of(conf, sweep->param);
	if (param_set(conf, sweep->param, to) != 0)
		return -EINVAL;
	sweep->to = *value;
	if (param_set(conf, sweep->param, from) != 0)
		return -EINVAL;
	if (*value <= sweep->to)
		return 0;
	testrmem_err("bad value '%s' for sweep: %s is more than %s", conf->sweep, from, to);
	return -EINVAL;
}

/* Set the next value; false after the last one. */
static bool
sweep_next(struct sweep *sweep, struct testrmem_conf *conf)
{
	uint64_t *value = value_of(conf, sweep->param);

	if (*value > sweep->to / 2)
		return false;
	*value *= 2;
	return true;
}

static void
sweep_print(const struct sweep *sweep, bool is_latency)
{
	uint32_t i;

	printf("\n%12s %10s %9s%s\n", sweep->param->name, "Mops/s", "GB/s",
			is_latency ? "    p50 us    p99 us" : "");
	for (i = 0; i < sweep->nb; i++) {
		const struct stats_rates *rates = &sweep->rates[i];

		printf("%12" PRIu64 " %10.3f %9.3f", sweep->value[i], rates->mops, rates->gbytes);
		if (is_latency)
			printf(" %9.3f %9.3f", rates->p50_us, rates->p99_us);
		printf("\n");
	}
	fflush(stdout);
}

/* A run for each value; then a table of all. */
static int
run_sweep(struct app *app)
{
	struct sweep sweep;
	int code;

	if (sweep_open(&app->conf, &sweep) != 0)
		return TESTRMEM_EXIT_USAGE;
	do {
		code = run(app);
		if (code != 0)
			break;
		sweep.value[sweep.nb] = *value_of(&app->conf, sweep.param);
		sweep.rates[sweep.nb++] = stats_rates(&app->stats);
	} while (!app->is_quit_requested && sweep_next(&sweep, &app->conf));
	sweep_print(&sweep, app->conf.is_latency);
	return code;
}

static int
run_app(struct app *app)
{
	int code;

	code = open_file(app->conf.json, &app->json);
	if (code == 0)
		code = open_file(app->conf.csv, &app->csv);
	app->csv.is_csv = true;
	if (code == 0 && testrmem_devs_open(&app->conf, app->devs) == 0) {
		if (app->conf.is_interactive)
			code = interact(app);
		else
			code = app->conf.sweep[0] != '\0' ? run_sweep(app) : run(app);
		testrmem_session_close(app->session);
		if (testrmem_devs_close(app->devs, app->conf.nb_devs) != 0)
			code = RTE_MAX(code, TESTRMEM_EXIT_RUN);
	} else {
		code = TESTRMEM_EXIT_USAGE;
	}
	code = RTE_MAX(code, close_file(&app->json));
	return RTE_MAX(code, close_file(&app->csv));
}

int
main(int argc, char **argv)
{
	static struct app app;
	int nb_args, code;
	char **args;

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* A file over its limit is an error of write(2). */
	signal(SIGXFSZ, SIG_IGN);
	param_defaults(&app.conf);
	args = option_find(argc, argv, &nb_args);
	if (option_parse(nb_args, args, &app.conf) != 0 || script_open(&app.conf) != 0)
		return TESTRMEM_EXIT_USAGE;
	if (app.conf.is_help) {
		option_usage(argv[0]);
		return 0;
	}
	rte_set_application_usage_hook(option_usage);
	if (rte_eal_init(argc, argv) < 0) {
		testrmem_err("EAL does not start, see its log. EAL options that help: without"
			     " hugepages --no-huge -m 256, without a mounted hugetlbfs --in-memory,"
			     " with another DPDK program running --file-prefix=NAME,"
			     " if it cannot create its runtime directory --no-shconf");
		return TESTRMEM_EXIT_USAGE;
	}
	testrmem_catch_signals();
	code = run_app(&app);
	rte_eal_cleanup();
	return code;
}
