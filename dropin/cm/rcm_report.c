/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* With RMEM_IBV_CM: connections of the process, current and ended, when the program exits. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ibcm_report.h"
#include "rcm.h"

static void
print_text(void *arg, const char *name, const char *text)
{
	fprintf(arg, "  %s: %s\n", name, text);
}

static void
print_number(void *arg, const char *name, uint64_t number)
{
	fprintf(arg, "  %s: %" PRIu64 "\n", name, number);
}

static void
print_conn(void *arg, const struct ibcm_info *info)
{
	const struct ibcm_sink sink = {arg, print_text, print_number};

	fprintf(arg, "connection 0x%" PRIx32 ":\n", info->local_id);
	ibcm_report_info(&sink, info);
}

/* Append with one call, since processes share the file. */
static void
append(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		fprintf(stderr, "rmem_ibv: RMEM_IBV_CM=%s: %s\n", path, strerror(errno));
	if (fd >= 0)
		rcm_close(fd);
}

void
rcm_report(const struct ibcm *cm, const struct ibcm_log *log)
{
	const char *path = getenv("RMEM_IBV_CM");
	char *text = NULL;
	size_t len = 0;
	FILE *f = path != NULL ? open_memstream(&text, &len) : NULL;
	const struct ibcm_sink sink = {f, print_text, print_number};

	if (f == NULL)
		return;
	fprintf(f, "CM at exit of %s, process %d:\n", program_invocation_short_name, (int)getpid());
	print_number(f, "conns", ibcm_nb_ids(cm));
	print_number(f, "ended", log->nb_ended);
	ibcm_report_stats(&sink, &log->stats);
	ibcm_log_visit(log, print_conn, f);
	ibcm_visit(cm, print_conn, f);
	if (fclose(f) == 0)
		append(path, text, len);
	free(text);
}
