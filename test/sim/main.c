/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* dpdk-sim: runs of the simulator by arguments, and the tables of doc/scale.md. */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "sim_flow.h"

#define MS UINT64_C(1000000)

static const char usage[] =
		"usage: dpdk-sim [OPTION]...\n"
		"  --pattern incast|pairs|ring   to the first host, to every second, each to the next\n"
		"  --hosts N               10 by default\n"
		"  --op write|read\n"
		"  --model                 selective repeat, instead of the engine\n"
		"  --loss P, --reorder P   probabilities in percent\n"
		"  --delay US              maximum delay of reordered packets, 10 by default\n"
		"  --queue KIB             output queue of the switch for a host, 256 by default\n"
		"  --mbps N                rate of a link, 10000 by default\n"
		"  --latency US            of a link, 1 by default\n"
		"  --timeout N             4.096 us * 2^N, 14 by default\n"
		"  --retry N               7 by default\n"
		"  --mtu N, --size N, --depth N   path MTU, bytes of a message, messages in flight\n"
		"  --ms N                  virtual time, 100 by default\n"
		"  --down FROM-TO          the link of host 0 is down, in ms\n"
		"  --seed N\n"
		"  --table hosts|loss|reorder|flap|timeout   the table of doc/scale.md\n"
		"  --max-hosts N           of the tables, 1000 by default\n";

static const char *const patterns[] = {"incast", "pairs", "ring"};
static uint32_t max_hosts = 1000;

static void
print_head(void)
{
	printf("| run | hosts | Gbit/s | of the links | sent again | dropped | timeouts | failed | Jain | GB |\n"
	       "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
}

static double
peak_gb(void)
{
	struct rusage used;

	return getrusage(RUSAGE_SELF, &used) == 0 ? (double)used.ru_maxrss / 1e6 : 0;
}

static double
percent(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : 100 * (double)part / (double)whole;
}

static void
run(const char *name, const struct sim_conf *conf)
{
	struct sim_result result;
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	sim_run(conf, &result);
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("| %s%s | %u | %.2f | %.1f %% | %.2f %% | %.2f %% | %" PRIu64
	       " | %u | %.3f | %.1f |\n",
			name, conf->is_model ? ", selective repeat" : "", conf->nb_hosts,
			result.goodput, 100 * result.share, percent(result.resent, result.sent),
			percent(result.counts.sent - result.counts.delivered, result.counts.sent),
			result.timeouts, result.nb_failed, result.jain, peak_gb());
	if (conf->net.up_ns != 0)
		printf("first progress after %.3f ms, of all flows after %.3f ms, %u flows without\n",
				(double)result.up_first_ns / 1e6, (double)result.up_last_ns / 1e6,
				result.nb_not_up);
	fflush(stdout);
	fprintf(stderr,
			"%" PRIu64 " events in %.1f s, %" PRIu64
			" packets at a time, ended at %.1f ms\n",
			result.counts.events,
			(double)(to.tv_sec - from.tv_sec) +
					(double)(to.tv_nsec - from.tv_nsec) / 1e9,
			result.nb_allocated, (double)result.end_ns / 1e6);
}

/* The engine and the model. */
static void
run_both(const char *name, struct sim_conf conf)
{
	conf.is_model = false;
	run(name, &conf);
	conf.is_model = true;
	run(name, &conf);
}

/* Flows that do not share a link need less time, so that 10000 of them end soon. */
static void
table_hosts(const struct sim_conf *base)
{
	struct sim_conf conf = *base;
	uint32_t hosts;

	for (hosts = 10; hosts <= max_hosts; hosts *= 10) {
		conf.nb_hosts = hosts;
		run_both("incast", conf);
	}
	conf.pattern = SIM_RING;
	for (hosts = 10; hosts <= max_hosts; hosts *= 10) {
		conf.nb_hosts = hosts;
		conf.duration_ns = base->duration_ns / hosts;
		run_both("ring", conf);
	}
}

static void
table_loss(const struct sim_conf *base)
{
	static const double losses[] = {0, 0.0001, 0.001, 0.01};
	struct sim_conf conf = *base;
	char name[64];
	size_t i;

	conf.pattern = SIM_PAIRS;
	for (i = 0; i < RTE_DIM(losses); i++) {
		conf.net.loss = losses[i];
		snprintf(name, sizeof(name), "loss %g %%", 100 * losses[i]);
		run_both(name, conf);
	}
}

static void
table_reorder(const struct sim_conf *base)
{
	static const double shares[] = {0.0001, 0.001, 0.01};
	struct sim_conf conf = *base;
	char name[64];
	size_t i;

	conf.pattern = SIM_PAIRS;
	for (i = 0; i < RTE_DIM(shares); i++) {
		conf.net.reorder = shares[i];
		snprintf(name, sizeof(name), "reordered %g %%", 100 * shares[i]);
		run_both(name, conf);
	}
}

static void
table_timeout(const struct sim_conf *base)
{
	static const uint8_t timeouts[] = {14, 12, 10, 8, 6};
	struct sim_conf conf = *base;
	char name[64];
	size_t i;

	for (i = 0; i < RTE_DIM(timeouts); i++) {
		conf.timeout = timeouts[i];
		snprintf(name, sizeof(name), "timeout %u", timeouts[i]);
		run(name, &conf);
	}
}

static void
table_flap(const struct sim_conf *base)
{
	static const uint64_t lengths_ms[] = {1, 10, 100, 1000};
	struct sim_conf conf = *base;
	char name[64];
	size_t i;

	for (i = 0; i < RTE_DIM(lengths_ms); i++) {
		conf.net.down_ns = 20 * MS;
		conf.net.up_ns = conf.net.down_ns + lengths_ms[i] * MS;
		conf.duration_ns = conf.net.up_ns + 200 * MS;
		snprintf(name, sizeof(name), "down %" PRIu64 " ms", lengths_ms[i]);
		run(name, &conf);
	}
}

static bool
run_table(const char *name, const struct sim_conf *conf)
{
	static const struct {
		const char *name;
		void (*func)(const struct sim_conf *conf);
	} tables[] = {{"flap", table_flap}, {"hosts", table_hosts}, {"loss", table_loss},
			{"reorder", table_reorder}, {"timeout", table_timeout}};
	size_t i;

	for (i = 0; i < RTE_DIM(tables); i++) {
		if (strcmp(name, tables[i].name) != 0)
			continue;
		print_head();
		tables[i].func(conf);
		return true;
	}
	return false;
}

enum option_id {
	OPT_PATTERN,
	OPT_HOSTS,
	OPT_OP,
	OPT_MODEL,
	OPT_LOSS,
	OPT_REORDER,
	OPT_DELAY,
	OPT_QUEUE,
	OPT_MBPS,
	OPT_LATENCY,
	OPT_TIMEOUT,
	OPT_RETRY,
	OPT_MTU,
	OPT_SIZE,
	OPT_DEPTH,
	OPT_MS,
	OPT_DOWN,
	OPT_SEED,
	OPT_TABLE,
	OPT_MAX_HOSTS,
	OPT_HELP,
};

static const struct option options[] = {
		{"pattern", required_argument, NULL, OPT_PATTERN},
		{"hosts", required_argument, NULL, OPT_HOSTS},
		{"op", required_argument, NULL, OPT_OP},
		{"model", no_argument, NULL, OPT_MODEL},
		{"loss", required_argument, NULL, OPT_LOSS},
		{"reorder", required_argument, NULL, OPT_REORDER},
		{"delay", required_argument, NULL, OPT_DELAY},
		{"queue", required_argument, NULL, OPT_QUEUE},
		{"mbps", required_argument, NULL, OPT_MBPS},
		{"latency", required_argument, NULL, OPT_LATENCY},
		{"timeout", required_argument, NULL, OPT_TIMEOUT},
		{"retry", required_argument, NULL, OPT_RETRY},
		{"mtu", required_argument, NULL, OPT_MTU},
		{"size", required_argument, NULL, OPT_SIZE},
		{"depth", required_argument, NULL, OPT_DEPTH},
		{"ms", required_argument, NULL, OPT_MS},
		{"down", required_argument, NULL, OPT_DOWN},
		{"seed", required_argument, NULL, OPT_SEED},
		{"table", required_argument, NULL, OPT_TABLE},
		{"max-hosts", required_argument, NULL, OPT_MAX_HOSTS},
		{"help", no_argument, NULL, OPT_HELP},
		{NULL, 0, NULL, 0},
};

/* The whole value, not above max; a value that is not one ends the process. */
static uint32_t
number(const char *text, uint32_t max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || value > max) {
		fprintf(stderr, "%s: not a number up to %u\n%s", text, max, usage);
		exit(2);
	}
	return (uint32_t)value;
}

static double
probability(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= 0 && value <= 100)) {
		fprintf(stderr, "%s: not a percentage\n%s", text, usage);
		exit(2);
	}
	return value / 100;
}

static bool
parse_down(const char *text, struct net_conf *net)
{
	const char *dash = strchr(text, '-');
	char from[16];

	if (dash == NULL || (size_t)(dash - text) >= sizeof(from))
		return false;
	snprintf(from, sizeof(from), "%.*s", (int)(dash - text), text);
	net->down_ns = number(from, 1000000) * MS;
	net->up_ns = number(dash + 1, 1000000) * MS;
	return net->down_ns < net->up_ns;
}

/* Options of the network; false: not one. */
static bool
parse_net(int id, const char *text, struct net_conf *net)
{
	switch (id) {
	case OPT_LOSS:
		net->loss = probability(text);
		return true;
	case OPT_REORDER:
		net->reorder = probability(text);
		return true;
	case OPT_DELAY:
		net->reorder_ns = 1000 * number(text, 1000000);
		return true;
	case OPT_QUEUE:
		net->queue_bytes = 1024 * number(text, 1 << 20);
		return true;
	case OPT_MBPS:
		net->mbps = number(text, 1000000);
		return net->mbps != 0;
	case OPT_LATENCY:
		net->latency_ns = 1000 * number(text, 1000000);
		return true;
	case OPT_DOWN:
		return parse_down(text, net);
	case OPT_SEED:
		net->seed = number(text, UINT32_MAX);
		return true;
	default:
		return false;
	}
}

static bool
parse_pattern(const char *text, struct sim_conf *conf)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(patterns); i++) {
		if (strcmp(text, patterns[i]) != 0)
			continue;
		conf->pattern = (enum sim_pattern)i;
		return true;
	}
	return false;
}

static bool
parse_op(const char *text, struct sim_conf *conf)
{
	conf->is_read = strcmp(text, "read") == 0;
	return conf->is_read || strcmp(text, "write") == 0;
}

static bool
parse(int id, const char *text, struct sim_conf *conf)
{
	switch (id) {
	case OPT_PATTERN:
		return parse_pattern(text, conf);
	case OPT_OP:
		return parse_op(text, conf);
	case OPT_HOSTS:
		conf->nb_hosts = number(text, 32768);
		return conf->nb_hosts >= 2;
	case OPT_MODEL:
		conf->is_model = true;
		return true;
	case OPT_TIMEOUT:
		conf->timeout = (uint8_t)number(text, 31);
		return true;
	case OPT_RETRY:
		conf->retry_cnt = (uint8_t)number(text, 7);
		return true;
	case OPT_MTU:
		conf->mtu = number(text, 4096);
		return conf->mtu >= 256;
	case OPT_SIZE:
		conf->msg_size = number(text, 1 << 19);
		return conf->msg_size != 0;
	case OPT_DEPTH:
		conf->depth = number(text, 1024);
		return conf->depth != 0;
	case OPT_MS:
		conf->duration_ns = number(text, 1000000) * MS;
		return true;
	case OPT_MAX_HOSTS:
		max_hosts = number(text, 32768);
		return true;
	default:
		return parse_net(id, text, &conf->net);
	}
}

static void
start_eal(char *program)
{
	static char args[][32] = {"--no-huge", "--no-shconf", "-m", "512", "--no-pci",
			"--no-telemetry", "-l0", "--log-level=*:error"};
	char *eal[1 + RTE_DIM(args)] = {program};
	unsigned int i;

	for (i = 0; i < RTE_DIM(args); i++)
		eal[1 + i] = args[i];
	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		exit(EXIT_FAILURE);
}

int
main(int argc, char **argv)
{
	struct sim_conf conf = sim_conf(SIM_INCAST, 10);
	const char *table = NULL;
	int id;

	conf.net.reorder_ns = 10000;
	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (id == OPT_HELP) {
			fputs(usage, stdout);
			return 0;
		}
		if (id == OPT_TABLE)
			table = optarg;
		else if (id == '?' || !parse(id, optarg, &conf)) {
			fputs(usage, stderr);
			return 2;
		}
	}
	start_eal(argv[0]);
	if (table == NULL) {
		print_head();
		run("run", &conf);
	} else if (!run_table(table, &conf)) {
		fputs(usage, stderr);
		return 2;
	}
	rte_eal_cleanup();
	return 0;
}
