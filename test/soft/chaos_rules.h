/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Devices with rules of chaos=. */

#ifndef CHAOS_RULES_H
#define CHAOS_RULES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"

/* The device of fx.a, with the arguments of the run: an engine or the wire. */
static inline void
chaos_open(const char *rules)
{
	const char *more = getenv("RMEM_TEST_ARGS");
	char args[512];

	snprintf(args, sizeof(args), "chaos=%s%s%s", rules, more != NULL ? "," : "",
			more != NULL ? more : "");
	fx.a.dev = fx_dev("soft0", args);
	TEST_ASSERT(fx.a.dev != NULL);
}

/* Rules of which the events that fail are counted as bits, some of them: the log replays them. */
static inline void
chaos_expect_replay(uint64_t (*failures_of)(const char *rules), const char *rules)
{
	char path[] = "/tmp/rmem-chaos.XXXXXX", args[160];
	int fd = mkstemp(path);
	uint64_t first;

	TEST_ASSERT(fd >= 0);
	close(fd);
	snprintf(args, sizeof(args), "%s+log:%s", rules, path);
	first = failures_of(args);
	snprintf(args, sizeof(args), "replay:%s", path);
	TEST_ASSERT(first != 0);
	TEST_EQ(failures_of(args), first);
	unlink(path);
}

/* Rules, each with a text of the line that refuses it. */
static inline void
chaos_expect_illegal(const char *const bad[][2], unsigned int n)
{
	struct rmem_dev *dev;
	unsigned int i;
	char args[96];
	const char *log;

	for (i = 0; i < n; i++) {
		snprintf(args, sizeof(args), "chaos=%s", bad[i][0]);
		fx_log_begin();
		TEST_ERR(rmem_dev_create("soft0", args, &dev), EINVAL);
		log = fx_log_end();
		if (strstr(log, bad[i][1]) == NULL)
			printf("%s: %s\n", bad[i][0], log);
		TEST_ASSERT(strstr(log, bad[i][1]) != NULL);
	}
}

#endif /* CHAOS_RULES_H */
