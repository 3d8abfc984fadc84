/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* With RMEM_IBV_CM: connections of the process, current and ended, when the program exits. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

char *
rcm_report(const struct ibcm *cm, const struct ibcm_log *log, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);
	const struct ibcm_sink sink = {f, print_text, print_number};

	if (f == NULL)
		return NULL;
	fprintf(f, "CM at exit of %s, process %d:\n", program_invocation_short_name, (int)getpid());
	print_number(f, "conns", ibcm_nb_ids(cm));
	print_number(f, "ended", log->nb_ended);
	ibcm_report_stats(&sink, &log->stats);
	ibcm_log_visit(log, print_conn, f);
	ibcm_visit(cm, print_conn, f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}
