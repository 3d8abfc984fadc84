/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Requirements of a pool and resources left, for each limit, and the message if they do not
 * suffice.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rte_eal.h>
#include <rte_memory.h>

#include <rmem_chunk.h>

#include "rmem_pool_priv.h"

#define CAP_IPC_LOCK_BIT 14 /* capabilities(7) */

/* Read a number of /proc/self/status, such as "VmLck:"; 0 if it is missing. */
static uint64_t
status_number(const char *key, int base)
{
	uint64_t number = 0;
	char line[256];
	FILE *f;

	f = fopen("/proc/self/status", "r");
	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, key, strlen(key)) == 0)
			number = strtoull(line + strlen(key), NULL, base);
	}
	fclose(f);
	return number;
}

/*
 * Compute the bytes that the process may still lock. The kernel compares locked memory (mlock())
 * and the memory that verbs devices pin with the limit separately; with CAP_IPC_LOCK there is no
 * limit.
 */
static uint64_t
memlock_left(void)
{
	uint64_t locked, pinned;
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
			(status_number("CapEff:", 16) >> CAP_IPC_LOCK_BIT & 1) != 0)
		return UINT64_MAX;
	locked = status_number("VmLck:", 10) * 1024;
	pinned = status_number("VmPin:", 10) * 1024;
	locked = RTE_MAX(locked, pinned);
	return limit.rlim_cur - RTE_MIN((uint64_t)limit.rlim_cur, locked);
}

/* Append a sentence to the text. */
__rte_format_printf(2, 3) static void append(
		struct rmem_pool_report *report, const char *format, ...)
{
	size_t used = strlen(report->text);
	va_list args;

	if (used != 0)
		used += (size_t)snprintf(report->text + used, sizeof(report->text) - used, "; ");
	if (used >= sizeof(report->text))
		return;
	va_start(args, format);
	vsnprintf(report->text + used, sizeof(report->text) - used, format, args);
	va_end(args);
}

static void
check_mrs(struct rmem_pool_report *report)
{
	if (report->buf_size > report->max_mr_size) {
		report->limits |= RMEM_POOL_LIMIT_MR_SIZE;
		append(report,
				"short of max_mr_size: a buffer of %" PRIu64
				" bytes has to be in one MR, which holds %" PRIu64 ", %" PRIu64
				" less: make buffers smaller, or max_mr_size larger",
				report->buf_size, report->max_mr_size,
				report->buf_size - report->max_mr_size);
		return;
	}
	if (report->nb_mrs > report->nb_mrs_left) {
		report->limits |= RMEM_POOL_LIMIT_MRS;
		append(report,
				"short of MRs and keys: %" PRIu64
				" are needed with max_mr_size %" PRIu64 ", %" PRIu64
				" of max_mr are left, %" PRIu64
				" are missing: deregister some, or make max_mr or max_mr_size larger",
				report->nb_mrs, report->max_mr_size, report->nb_mrs_left,
				report->nb_mrs - report->nb_mrs_left);
	}
}

static void
check_memory(struct rmem_pool_report *report, int socket_id)
{
	uint64_t have, missing, kib = report->page_size / 1024;
	char where[32] = "any socket";

	have = rmem_chunk_free_pages(report->page_size, socket_id);
	report->nb_pages_left = have;
	if (have >= report->nb_pages)
		return;
	report->limits |= RMEM_POOL_LIMIT_MEMORY;
	missing = report->nb_pages - have;
	if (!rte_eal_has_hugepages()) {
		append(report,
				"short of memory: %" PRIu64 " pages of %" PRIu64
				" KiB are needed, %" PRIu64 " are free in one piece, %" PRIu64
				" are missing: add %" PRIu64 " to EAL's -m",
				report->nb_pages, kib, have, missing, (missing * kib >> 10) + 1);
		return;
	}
	if (socket_id != SOCKET_ID_ANY)
		snprintf(where, sizeof(where), "socket %d", socket_id);
	append(report,
			"short of hugepages: %" PRIu64 " of %" PRIu64
			" KiB are needed on %s, %" PRIu64 " are free, %" PRIu64
			" are missing: reserve them with nr_hugepages",
			report->nb_pages, kib, where, have, missing);
}

static void
check_memlock(struct rmem_pool_report *report)
{
	if (report->memlock <= report->memlock_left)
		return;
	report->limits |= RMEM_POOL_LIMIT_MEMLOCK;
	append(report,
			"short of RLIMIT_MEMLOCK, for a device that pins: %" PRIu64
			" bytes must be locked, %" PRIu64 " may be, %" PRIu64
			" are missing: raise it by %" PRIu64
			" KiB (ulimit -l, LimitMEMLOCK) or grant CAP_IPC_LOCK",
			report->memlock, report->memlock_left,
			report->memlock - report->memlock_left,
			(report->memlock - report->memlock_left + 1023) / 1024);
}

int
rmem_pool_report_fill(const struct rmem_need *need, const struct rmem_dev_info *info,
		struct rmem_pool_report *report)
{
	memset(report, 0, sizeof(*report));
	report->buf_size = need->buf_size;
	report->max_mr_size = info->max_mr_size;
	report->nb_mrs = need->nb_mrs;
	report->nb_mrs_left = info->max_mr - RTE_MIN(info->nb_mr, info->max_mr);
	report->length = need->length;
	report->nb_pages_left = UINT64_MAX;
	if (need->is_new) {
		report->page_size = rmem_chunk_page_size();
		report->length = RTE_ALIGN_CEIL(need->length, report->page_size);
		/* The chunk starts at a page, after a header in the preceding page. */
		report->nb_pages = report->length / report->page_size + 1;
	}
	report->memlock = report->length;
	report->memlock_left = memlock_left();
	check_mrs(report);
	if (need->is_new)
		check_memory(report, need->socket_id);
	check_memlock(report);
	if ((report->limits & ~RMEM_POOL_LIMIT_MEMLOCK) == 0)
		append(report, "fits: %" PRIu64 " bytes as %" PRIu64 " MRs", report->length,
				report->nb_mrs);
	if ((report->limits & RMEM_POOL_LIMIT_MR_SIZE) != 0)
		return -EINVAL;
	if ((report->limits & RMEM_POOL_LIMIT_MRS) != 0)
		return -ENOSPC;
	return (report->limits & RMEM_POOL_LIMIT_MEMORY) != 0 ? -ENOMEM : 0;
}

int
rmem_pool_report_mrs(const struct rmem_need *need, const struct rmem_dev_info *info)
{
	struct rmem_pool_report report = {
			.buf_size = need->buf_size,
			.max_mr_size = info->max_mr_size,
			.nb_mrs = need->nb_mrs,
			.nb_mrs_left = info->max_mr - RTE_MIN(info->nb_mr, info->max_mr),
	};

	check_mrs(&report);
	if (report.limits == 0)
		return 0;
	return POOL_FAIL((report.limits & RMEM_POOL_LIMIT_MR_SIZE) != 0 ? EINVAL : ENOSPC, "%s: %s",
			need->name, report.text);
}

uint32_t
rmem_pool_log2_slice(uint64_t max_mr_size, size_t buf_size, size_t stride)
{
	uint64_t largest = max_mr_size - buf_size + 1;

	return 63 - (uint32_t)__builtin_clzll(RTE_MAX(largest, (uint64_t)stride));
}

void
rmem_pool_need(const struct rmem_pool_conf *conf, const struct rmem_dev_info *info,
		struct rmem_need *need)
{
	uint32_t stride = rte_mempool_calc_obj_size(
			conf->buf_size, RTE_MEMPOOL_F_NO_IOVA_CONTIG, NULL);

	*need = (struct rmem_need){
			.name = conf->name,
			.length = (uint64_t)stride * conf->nb_bufs,
			.buf_size = conf->buf_size,
			.nb_mrs = 1,
			.socket_id = conf->socket_id,
			.is_new = true,
	};
	if (need->length > info->max_mr_size && conf->buf_size <= info->max_mr_size)
		need->nb_mrs = RTE_MIN((uint64_t)conf->nb_bufs,
				((need->length - 1) >> rmem_pool_log2_slice(info->max_mr_size,
								       conf->buf_size, stride)) +
						1);
}

int
rmem_pool_check(const struct rmem_pd *pd, const struct rmem_pool_conf *conf,
		struct rmem_pool_report *report)
{
	struct rmem_dev_info info;
	struct rmem_need need;
	int ret;

	ret = rmem_pool_check_args(pd, conf, report);
	if (ret == 0)
		ret = rmem_pool_dev_info(pd, &info);
	if (ret != 0)
		return ret;
	rmem_pool_need(conf, &info, &need);
	return rmem_pool_report_fill(&need, &info, report);
}
