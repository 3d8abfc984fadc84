/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Properties of objects, written to a reply of telemetry or to a file.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rmem_telemetry.h>

#include "rmem_priv.h"

static void
print(const struct rmem_report *report, const char *name, const char *text)
{
	if (report->f != NULL)
		fprintf(report->f, "%*s%s: %s\n", (int)(2 * report->depth), "", name, text);
}

void
rmem_report_uint(struct rmem_report *report, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	if (report->d != NULL)
		rmem_tel_uint(report->d, name, value);
	else
		print(report, name, text);
}

void
rmem_report_bits(struct rmem_report *report, const char *name, uint64_t bits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, bits);
	rmem_report_text(report, name, text);
}

void
rmem_report_text(struct rmem_report *report, const char *name, const char *text)
{
	if (report->d != NULL)
		rte_tel_data_add_dict_string(report->d, name, text);
	else
		print(report, name, text);
}

void
rmem_report_begin(struct rmem_report *report, struct rmem_report *group, const char *name)
{
	memset(group, 0, sizeof(*group));
	if (report->d != NULL) {
		group->d = rte_tel_data_alloc();
		if (group->d != NULL)
			rte_tel_data_start_dict(group->d);
	} else if (report->f != NULL) {
		fprintf(report->f, "%*s%s:\n", (int)(2 * report->depth), "", name);
		group->f = report->f;
		group->depth = report->depth + 1;
	}
}

void
rmem_report_end(struct rmem_report *report, struct rmem_report *group, const char *name)
{
	if (group->d != NULL && rte_tel_data_add_dict_container(report->d, name, group->d, 0) != 0)
		rte_tel_data_free(group->d);
}

int
rmem_dump_begin(struct rmem_dump *dump)
{
	memset(dump, 0, sizeof(*dump));
	dump->f = open_memstream(&dump->text, &dump->size);
	return dump->f != NULL ? 0 : RMEM_FAIL(ENOMEM, "dump: no memory for the text");
}

int
rmem_dump_end(struct rmem_dump *dump, FILE *to)
{
	bool is_bad = ferror(dump->f) != 0;
	int ret = 0;

	if (fclose(dump->f) != 0 || is_bad)
		ret = RMEM_FAIL(ENOMEM, "dump: no memory for the text");
	else
		fwrite(dump->text, 1, dump->size, to);
	free(dump->text);
	return ret;
}
