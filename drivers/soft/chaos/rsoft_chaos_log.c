/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The log of injected faults. After a first line with its version, it has one line per fault:
 *
 * 0.001234 SEND:RETRY_EXC_ERR@qp:1@nth:100 # QP 0x000812, request 0x7
 *
 * that is, the seconds since the device was created, and a rule that injects only this fault, which
 * replay: reads.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rsoft_chaos_rule.h"

static uint64_t
log_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Write a line with one write(), so that lines of several threads do not mix. */
static void
log_write(const struct rsoft_chaos *chaos, const char *line, int length)
{
	if (write(chaos->log_fd, line, (size_t)length) != length)
		RSOFT_LOG(WARNING, "chaos=: 'log:%s': a line is lost: %s", chaos->log,
				strerror(errno));
}

int
rsoft_chaos_log_open(struct rsoft_chaos *chaos)
{
	chaos->started = log_clock();
	chaos->log_fd = -1;
	if (chaos->log[0] == '\0')
		return 0;
	chaos->log_fd = open(chaos->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (chaos->log_fd < 0) {
		RSOFT_LOG(ERR, "chaos=: 'log:%s': %s", chaos->log, strerror(errno));
		return -EINVAL;
	}
	log_write(chaos, RSOFT_CHAOS_LOG_HEAD "\n", sizeof(RSOFT_CHAOS_LOG_HEAD));
	return 0;
}

void
rsoft_chaos_log_close(struct rsoft_chaos *chaos)
{
	if (chaos->log_fd >= 0)
		close(chaos->log_fd);
}

uint64_t
rsoft_chaos_now_ms(const struct rsoft_chaos *chaos)
{
	return (log_clock() - chaos->started) / 1000000;
}

static void
log_line(const struct rsoft_chaos *chaos, const char *rule, const char *detail, const char *clause)
{
	uint64_t us = (log_clock() - chaos->started) / 1000;
	char line[256];
	int length;

	RSOFT_LOG(INFO, "chaos: %s: %s (%s)", rule, detail, clause);
	if (chaos->log_fd < 0)
		return;
	length = snprintf(line, sizeof(line), "%" PRIu64 ".%06" PRIu64 " %s # %s (%s)\n",
			us / 1000000, us % 1000000, rule, detail, clause);
	if (length > 0 && (size_t)length < sizeof(line))
		log_write(chaos, line, length);
}

void
rsoft_chaos_log(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		const char *where, uint64_t nth, const char *detail)
{
	char text[RSOFT_CHAOS_TEXT + 64];

	snprintf(text, sizeof(text), "%s%s@nth:%" PRIu64, rule->text, where, nth);
	log_line(chaos, text, detail, rule->clause);
}

void
rsoft_chaos_log_at(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		const char *filter, uint64_t value, const char *detail)
{
	char text[RSOFT_CHAOS_TEXT + 64];

	snprintf(text, sizeof(text), "%s@%s:%" PRIu64, rule->text, filter, value);
	log_line(chaos, text, detail, rule->clause);
}
