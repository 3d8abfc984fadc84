/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Settings of a run: numbers for "auto", and combinations that are refused. */

#include <errno.h>
#include <inttypes.h>

#include "param.h"

/* Maximum of requests in flight and bytes of buffers for depth "auto". */
#define AUTO_BURST       UINT64_C(32)
#define AUTO_DEPTH       UINT64_C(128)
#define AUTO_DEPTH_BYTES (UINT64_C(16) << 20)
#define AUTO_RUN_MS      UINT64_C(10000)
#define AUTO_PERIOD_MS   UINT64_C(1000)

static void
resolve_auto(struct testrmem_conf *conf)
{
	bool is_copy = conf->engine == &testrmem_engine_copy;

	if (conf->size == TESTRMEM_AUTO)
		conf->size = conf->engine->default_size;
	if (conf->burst == TESTRMEM_AUTO)
		conf->burst = conf->is_latency ? 1 : AUTO_BURST;
	if (conf->depth == TESTRMEM_AUTO && conf->is_latency) {
		conf->depth = conf->burst;
	} else if (conf->depth == TESTRMEM_AUTO) {
		conf->depth = RTE_MIN(AUTO_DEPTH, AUTO_DEPTH_BYTES / conf->size);
		conf->depth = RTE_MAX(conf->depth, conf->burst);
	}
	if (conf->run_ms == TESTRMEM_AUTO)
		conf->run_ms = conf->is_interactive || is_copy ? 0 : AUTO_RUN_MS;
	if (conf->period_ms == TESTRMEM_AUTO)
		conf->period_ms = conf->is_interactive ? 0 : AUTO_PERIOD_MS;
}

static int
check_latency(const struct testrmem_conf *conf)
{
	if (conf->engine == &testrmem_engine_copy || conf->engine->flags & ENGINE_MBUF)
		testrmem_err("latency is not measured in mode %s", conf->engine->name);
	else if (conf->listen[0] != '\0')
		testrmem_err("latency is measured by the host of --connect");
	else if (conf->depth != conf->burst)
		testrmem_err("latency is measured for one burst at a time: depth %" PRIu64
			     " is not burst %" PRIu64,
				conf->depth, conf->burst);
	else
		return 0;
	return -EINVAL;
}

static int
check_bidirectional(const struct testrmem_conf *conf)
{
	if (conf->engine->grant != NULL || conf->engine->flags & ENGINE_MBUF)
		testrmem_err("mode %s is not bidirectional: write, read, send, atomic, odp and"
			     " inline are",
				conf->engine->name);
	else if (conf->listen[0] != '\0' || conf->connect[0] != '\0')
		testrmem_err("two hosts do not run bidirectionally");
	else
		return 0;
	return -EINVAL;
}

static int
check_warm_up(const struct testrmem_conf *conf)
{
	if (conf->engine == &testrmem_engine_copy || conf->ops != 0)
		testrmem_err("warm-up needs a run limited by seconds, not by %s",
				conf->ops != 0 ? "ops" : "the end of a copy");
	else if (conf->listen[0] != '\0')
		testrmem_err("warm-up is an option of the host of --connect");
	else
		return 0;
	return -EINVAL;
}

/* Options that not all modes and runs have. */
static int
check_options(const struct testrmem_conf *conf)
{
	int ret = conf->is_latency ? check_latency(conf) : 0;

	if (ret == 0 && conf->is_histogram && !conf->is_latency) {
		testrmem_err("histogram needs latency");
		ret = -EINVAL;
	}
	if (ret == 0 && conf->is_bidirectional)
		ret = check_bidirectional(conf);
	if (ret == 0 && conf->warm_up_ms != 0)
		ret = check_warm_up(conf);
	return ret;
}

int
param_resolve(const struct testrmem_conf *conf, struct testrmem_conf *resolved)
{
	const struct testrmem_engine *engine = conf->engine;
	bool is_copy = engine == &testrmem_engine_copy;

	*resolved = *conf;
	resolve_auto(resolved);
	if (resolved->size > engine->max_size) {
		testrmem_err("size %" PRIu64 " is more than the %" PRIu32 " bytes of mode %s",
				resolved->size, engine->max_size, engine->name);
		return -EINVAL;
	}
	if (resolved->size != engine->default_size && engine->max_size == engine->default_size) {
		testrmem_err("size %" PRIu64 " is not the %" PRIu32 " bytes of mode %s",
				resolved->size, engine->max_size, engine->name);
		return -EINVAL;
	}
	if (resolved->depth < resolved->burst) {
		testrmem_err("depth %" PRIu64 " is less than burst %" PRIu64, resolved->depth,
				resolved->burst);
		return -EINVAL;
	}
	if (check_options(resolved) != 0)
		return -EINVAL;
	if (is_copy && (conf->input[0] == '\0' || conf->output[0] == '\0')) {
		testrmem_err("mode copy needs %s",
				conf->input[0] == '\0' ? "an input" : "an output");
		return -EINVAL;
	}
	return 0;
}
