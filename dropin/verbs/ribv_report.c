/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The counters of each device, reported as a line when the program exits. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ribv.h"

static bool is_registered, is_reported; /* reset in a child of fork() */

/* Append with one write(), because processes share the file. */
void
ribv_report_append(const char *variable, const char *text, size_t len)
{
	const char *path = getenv(variable);
	int fd;

	if (path == NULL)
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		fprintf(stderr, "rmem_ibv: %s=%s: %s\n", variable, path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void
report_of(struct rmem_dev *dev)
{
	struct rmem_dev_stats stats;
	char line[512];
	int len;

	if (rmem_dev_stats_get(dev, &stats) != 0)
		return;
	len = snprintf(line, sizeof(line),
			"%s: at exit of %s, process %d: send_wrs=%" PRIu64 " recv_wrs=%" PRIu64
			" bytes=%" PRIu64 " wire_tx_bytes=%" PRIu64 " wire_rx_bytes=%" PRIu64
			" errors=%" PRIu64 "\n",
			dev->name, program_invocation_short_name, (int)getpid(), stats.send_wrs,
			stats.recv_wrs, stats.bytes, stats.wire_tx_bytes, stats.wire_rx_bytes,
			stats.errors);
	len = RTE_MIN(len, (int)sizeof(line) - 1);
	ribv_report_append("RMEM_IBV_STATS", line, (size_t)len);
	if (ribv_env_logs(RTE_LOG_INFO))
		fprintf(stderr, "rmem_ibv: %s", line);
}

/* A child of fork() without devices has nothing to report. */
static void
report(void)
{
	uint32_t i;

	if (is_reported)
		return;
	for (i = 0; ribv_devs[i] != NULL; i++)
		report_of(ribv_devs[i]);
	is_reported = i != 0;
}

void
ribv_report_start(void)
{
	if (is_registered || (getenv("RMEM_IBV_STATS") == NULL && !ribv_env_logs(RTE_LOG_INFO)))
		return;
	is_registered = atexit(report) == 0;
}
