/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sweep.h"

static const char *const names[] = {"size", "burst", "depth", "qps", "mrs"};

static uint64_t *
value_of(struct testrmem_conf *conf, const struct param *param)
{
	return (uint64_t *)((char *)conf + param->offset);
}

static const struct param *
find(const char *name)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return param_find(name);
	}
	return NULL;
}

static int
bad(const char *text)
{
	testrmem_err("bad value '%s' for sweep: want NAME=FROM..TO, such as size=64..64K; NAME is"
		     " size, burst, depth, qps or mrs",
			text);
	return -EINVAL;
}

int
sweep_open(struct testrmem_conf *conf, struct sweep *sweep)
{
	char text[TESTRMEM_STR_SIZE], *from, *to;
	uint64_t *value;

	memset(sweep, 0, sizeof(*sweep));
	snprintf(text, sizeof(text), "%s", conf->sweep);
	from = strchr(text, '=');
	to = strstr(text, "..");
	if (from == NULL || to == NULL || to < from)
		return bad(conf->sweep);
	*from++ = '\0';
	*to = '\0';
	to += 2;
	sweep->param = find(text);
	if (sweep->param == NULL || strcmp(from, "auto") == 0 || strcmp(to, "auto") == 0)
		return bad(conf->sweep);
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

void
sweep_add(struct sweep *sweep, struct stats_rates rates)
{
	sweep->rates[sweep->nb++] = rates;
}

bool
sweep_next(struct sweep *sweep, struct testrmem_conf *conf)
{
	uint64_t *value = value_of(conf, sweep->param);

	sweep->value[sweep->nb - 1] = *value;
	if (*value > sweep->to / 2)
		return false;
	*value *= 2;
	return true;
}

void
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
