/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "param.h"

#define KILO UINT64_C(1024)
#define MEGA (KILO * KILO)
#define GIGA (KILO * MEGA)

#define MAX_TIME_MS (UINT64_C(365) * 24 * 3600 * 1000)

#define AT(member) offsetof(struct testrmem_conf, member)

#define NUMBER(low, high, initial)                                                                 \
	.type = PARAM_NUM, .arg = "N", .min = (low), .max = (high), .def = (initial)
#define SECONDS_FROM(initial) .type = PARAM_TIME, .arg = "S", .max = MAX_TIME_MS, .def = (initial)
#define SECONDS               SECONDS_FROM(TESTRMEM_AUTO)
#define FILENAME              .type = PARAM_STRING, .arg = "FILE"
#define FLAG                  .type = PARAM_FLAG, .is_fixed = true

const struct param params[] = {
		{
				.name = "dev",
				.type = PARAM_DEV,
				.offset = AT(devs),
				.is_fixed = true,
				.arg = "NAME[,KEY=VALUE...]",
				.help = "device to use; may be repeated (default soft0)",
		},
		{
				.name = "mode",
				.type = PARAM_MODE,
				.offset = AT(engine),
				.arg = "MODE",
				.help = "operation (default write); see Modes",
		},
		{
				.name = "size",
				NUMBER(1, GIGA, TESTRMEM_AUTO),
				.offset = AT(size),
				.automatic = "by mode",
				.help = "bytes of an operation, or of a block of the file",
		},
		{
				.name = "burst",
				NUMBER(1, KILO, TESTRMEM_AUTO),
				.offset = AT(burst),
				.automatic = "32; with latency 1",
				.help = "requests posted in one call",
		},
		{
				.name = "depth",
				NUMBER(1, 64 * KILO, TESTRMEM_AUTO),
				.offset = AT(depth),
				.automatic = "128, or as many as 16M of buffers allow; with latency a burst",
				.help = "requests in flight on a QP pair, at least a burst",
		},
		{
				.name = "qps",
				NUMBER(1, KILO, 1),
				.offset = AT(qps),
				.help = "QP pairs per lcore",
		},
		{
				.name = "mrs",
				NUMBER(1, 16 * MEGA, 1),
				.offset = AT(mrs),
				.help = "MRs of the targets, in modes write, read, atomic and odp",
		},
		{
				.name = "ops",
				NUMBER(0, INT64_MAX, 0),
				.offset = AT(ops),
				.help = "operations per lcore, then end; 0 for no limit",
		},
		{
				.name = "seconds",
				SECONDS,
				.offset = AT(run_ms),
				.automatic = "10; copy and the prompt 0",
				.help = "duration of a run; 0 until Ctrl-C or stop",
		},
		{
				.name = "warm-up",
				SECONDS_FROM(0),
				.offset = AT(warm_up_ms),
				.help = "run this long before anything is counted or measured",
		},
		{
				.name = "stats-period",
				SECONDS,
				.offset = AT(period_ms),
				.automatic = "1; the prompt 0",
				.help = "interval between lines of rates; 0 for none",
		},
		{
				.name = "input",
				FILENAME,
				.offset = AT(input),
				.help = "file to copy (mode copy)",
		},
		{
				.name = "output",
				FILENAME,
				.offset = AT(output),
				.help = "destination of the copy (mode copy)",
		},
		{
				.name = "json",
				FILENAME,
				.offset = AT(json),
				.is_fixed = true,
				.help = "also write the results to this file, one JSON object per line",
		},
		{
				.name = "csv",
				FILENAME,
				.offset = AT(csv),
				.is_fixed = true,
				.help = "also write the results to this file as comma-separated values",
		},
		{
				.name = "latency",
				FLAG,
				.offset = AT(is_latency),
				.help = "measure the duration of each burst, one in flight per QP pair",
		},
		{
				.name = "histogram",
				FLAG,
				.offset = AT(is_histogram),
				.help = "with latency: print the distribution of the durations",
		},
		{
				.name = "bidirectional",
				FLAG,
				.offset = AT(is_bidirectional),
				.help = "both QPs of a pair post requests; not in modes that grant, and mbuf",
		},
		{
				.name = "sweep",
				.type = PARAM_STRING,
				.arg = "NAME=A..B",
				.offset = AT(sweep),
				.is_fixed = true,
				.help = "run with size, burst, depth, qps or mrs of A, 2A, 4A ... B",
		},
		{
				.name = "listen",
				.type = PARAM_STRING,
				.arg = "ADDR",
				.offset = AT(listen),
				.is_fixed = true,
				.help = "run as the host with the targets, at this IP address",
		},
		{
				.name = "connect",
				.type = PARAM_STRING,
				.arg = "ADDR",
				.offset = AT(connect),
				.is_fixed = true,
				.help = "run as the other host; all modes but mbuf, lease and copy",
		},
		{
				.name = "script",
				FILENAME,
				.offset = AT(script),
				.is_fixed = true,
				.help = "execute the commands of this file, as at the prompt",
		},
		{
				.name = "interactive",
				FLAG,
				.letter = 'i',
				.offset = AT(is_interactive),
				.help = "prompt for commands",
		},
		{
				.name = "help",
				FLAG,
				.letter = 'h',
				.offset = AT(is_help),
				.help = "print this help",
		},
		{.name = NULL},
};

static void *
member(struct testrmem_conf *conf, const struct param *param)
{
	return (char *)conf + param->offset;
}

static uint64_t
number(const struct testrmem_conf *conf, const struct param *param)
{
	uint64_t value;

	memcpy(&value, (const char *)conf + param->offset, sizeof(value));
	return value;
}

static bool
has_number(const struct param *param)
{
	return param->type == PARAM_NUM || param->type == PARAM_TIME;
}

void
param_defaults(struct testrmem_conf *conf)
{
	const struct param *param;

	memset(conf, 0, sizeof(*conf));
	for (param = params; param->name != NULL; param++) {
		if (has_number(param))
			memcpy(member(conf, param), &param->def, sizeof(param->def));
	}
	conf->engine = testrmem_engines[0];
}

const struct param *
param_find(const char *name)
{
	const struct param *param;

	for (param = params; param->name != NULL; param++) {
		if (strcmp(param->name, name) == 0)
			return param;
	}
	return NULL;
}

/* "64K": a number and a suffix. */
static int
parse_number(const char *text, uint64_t *value)
{
	static const char suffixes[] = "kKmMgG";
	const char *suffix;
	uint64_t unit = 1;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno != 0)
		return -EINVAL;
	if (*end != '\0') {
		suffix = strchr(suffixes, *end);
		if (suffix == NULL || end[1] != '\0')
			return -EINVAL;
		unit <<= 10 * (1 + (suffix - suffixes) / 2);
	}
	return __builtin_mul_overflow(*value, unit, value) ? -EINVAL : 0;
}

/* "1.5": seconds, to milliseconds. */
static int
parse_time(const char *text, uint64_t *value)
{
	uint64_t digit = 100;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno != 0 || __builtin_mul_overflow(*value, UINT64_C(1000), value))
		return -EINVAL;
	if (*end == '.') {
		for (end++; *end >= '0' && *end <= '9'; end++) {
			if (__builtin_add_overflow(*value, digit * (uint64_t)(*end - '0'), value))
				return -EINVAL;
			digit /= 10;
		}
	}
	return *end == '\0' ? 0 : -EINVAL;
}

/* With a suffix where that is shorter to read. */
static void
print_size(uint64_t value, char *text, size_t size)
{
	if (value < 16 * KILO)
		snprintf(text, size, "%" PRIu64, value);
	else if (value % GIGA == 0)
		snprintf(text, size, "%" PRIu64 "G", value / GIGA);
	else if (value % MEGA == 0)
		snprintf(text, size, "%" PRIu64 "M", value / MEGA);
	else if (value % KILO == 0)
		snprintf(text, size, "%" PRIu64 "K", value / KILO);
	else
		snprintf(text, size, "%" PRIu64, value);
}

static void
print_number(const struct param *param, uint64_t value, char *text, size_t size)
{
	if (param->type == PARAM_TIME && value % 1000 == 0)
		snprintf(text, size, "%" PRIu64, value / 1000);
	else if (param->type == PARAM_TIME)
		snprintf(text, size, "%" PRIu64 ".%03" PRIu64, value / 1000, value % 1000);
	else
		print_size(value, text, size);
}

void
param_range(const struct param *param, char *text, size_t size)
{
	char min[32], max[32];
	size_t used = 0;
	int i;

	text[0] = '\0';
	if (param->type == PARAM_MODE) {
		for (i = 0; testrmem_engines[i] != NULL && used < size; i++)
			used += (size_t)snprintf(text + used, size - used, "%s%s",
					i == 0 ? "" : "|", testrmem_engines[i]->name);
	} else if (has_number(param)) {
		print_number(param, param->min, min, sizeof(min));
		if (param->max == INT64_MAX)
			snprintf(max, sizeof(max), "2^63 - 1");
		else
			print_number(param, param->max, max, sizeof(max));
		snprintf(text, size, "%s to %s%s", min, max,
				param->automatic != NULL ? ", or auto" : "");
	}
}

void
param_automatic(const struct param *param, char *text, size_t size)
{
	const char *separator = "; ";
	const struct testrmem_engine *engine;
	char value[32];
	size_t used;
	int i;

	if (param->offset != AT(size)) {
		snprintf(text, size, "%s", param->automatic);
		return;
	}
	/* The default of the first mode, which most modes have, then the others. */
	print_size(testrmem_engines[0]->default_size, value, sizeof(value));
	used = (size_t)snprintf(text, size, "%s", value);
	for (i = 0; (engine = testrmem_engines[i]) != NULL && used < size; i++) {
		if (engine->default_size == testrmem_engines[0]->default_size)
			continue;
		print_size(engine->default_size, value, sizeof(value));
		used += (size_t)snprintf(text + used, size - used, "%s%s %s", separator,
				engine->name, value);
		separator = ", ";
	}
}

static void
print_automatic(const struct param *param, char *text, size_t size)
{
	char automatic[128];

	param_automatic(param, automatic, sizeof(automatic));
	snprintf(text, size, "auto (%s)", automatic);
}

static int
set_number(struct testrmem_conf *conf, const struct param *param, const char *text)
{
	bool is_time = param->type == PARAM_TIME;
	uint64_t value = TESTRMEM_AUTO;
	char range[128];
	int ret = 0;

	if (param->automatic == NULL || strcmp(text, "auto") != 0) {
		ret = is_time ? parse_time(text, &value) : parse_number(text, &value);
		if (ret == 0 && (value < param->min || value > param->max))
			ret = -EINVAL;
	}
	if (ret != 0) {
		param_range(param, range, sizeof(range));
		testrmem_err("bad value '%s' for %s: want %s, %s", text, param->name,
				is_time ? "seconds" : "a number (suffix K, M or G)", range);
		return ret;
	}
	memcpy(member(conf, param), &value, sizeof(value));
	return 0;
}

static int
set_mode(struct testrmem_conf *conf, const char *text)
{
	char range[128];
	int i;

	for (i = 0; testrmem_engines[i] != NULL; i++) {
		if (strcmp(testrmem_engines[i]->name, text) == 0) {
			conf->engine = testrmem_engines[i];
			return 0;
		}
	}
	param_range(param_find("mode"), range, sizeof(range));
	testrmem_err("bad value '%s' for mode: want one of %s", text, range);
	return -EINVAL;
}

static int
set_string(char *string, const struct param *param, const char *text)
{
	if (text[0] == '\0' || strlen(text) >= TESTRMEM_STR_SIZE) {
		testrmem_err("bad value '%.40s' for %s: want 1 to %d characters, it has %zu", text,
				param->name, TESTRMEM_STR_SIZE - 1, strlen(text));
		return -EINVAL;
	}
	memcpy(string, text, strlen(text) + 1);
	return 0;
}

static int
set_dev(struct testrmem_conf *conf, const struct param *param, const char *text)
{
	int ret;

	if (conf->nb_devs == TESTRMEM_MAX_DEVS) {
		testrmem_err("bad value '%s' for dev: at most %d devices can be used", text,
				TESTRMEM_MAX_DEVS);
		return -EINVAL;
	}
	ret = set_string(conf->devs[conf->nb_devs], param, text);
	if (ret == 0)
		conf->nb_devs++;
	return ret;
}

int
param_set(struct testrmem_conf *conf, const struct param *param, const char *value)
{
	switch (param->type) {
	case PARAM_DEV:
		return set_dev(conf, param, value);
	case PARAM_MODE:
		return set_mode(conf, value);
	case PARAM_NUM:
	case PARAM_TIME:
		return set_number(conf, param, value);
	case PARAM_STRING:
		return set_string(member(conf, param), param, value);
	case PARAM_FLAG:
		*(bool *)member(conf, param) = true;
		return 0;
	}
	return -EINVAL;
}

static void
print_devs(const struct testrmem_conf *conf, char *text, size_t size)
{
	size_t used = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; i < conf->nb_devs && used < size; i++)
		used += (size_t)snprintf(
				text + used, size - used, "%s%s", i == 0 ? "" : " ", conf->devs[i]);
}

void
param_print(const struct testrmem_conf *conf, const struct param *param, char *text, size_t size)
{
	const char *value = (const char *)conf + param->offset;

	switch (param->type) {
	case PARAM_DEV:
		print_devs(conf, text, size);
		break;
	case PARAM_MODE:
		snprintf(text, size, "%s", conf->engine->name);
		break;
	case PARAM_NUM:
	case PARAM_TIME:
		if (number(conf, param) == TESTRMEM_AUTO)
			print_automatic(param, text, size);
		else
			print_number(param, number(conf, param), text, size);
		break;
	case PARAM_STRING:
		snprintf(text, size, "%s", value[0] == '\0' ? "-" : value);
		break;
	case PARAM_FLAG:
		snprintf(text, size, "%s", *(const bool *)value ? "yes" : "no");
		break;
	}
}
