/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The current public call of a thread, which prefixes its errors. Nested calls keep the outer name.
 */

#include <stdarg.h>
#include <stdio.h>

#include "rmem_priv.h"
#include "rmem_trace_priv.h"

RTE_LOG_REGISTER(rmem_logtype, lib.rmem, NOTICE)

static __thread struct {
	const char *name; /* NULL: the thread is in no call */
	const void *obj;
} call;

bool
rmem_call_begin(const char *name, const void *obj)
{
	if (call.name != NULL)
		return false;
	call.name = name;
	call.obj = obj;
	return true;
}

void
rmem_call_end(const bool *is_outer)
{
	if (*is_outer)
		call.name = NULL;
}

int
rmem_traced(int ret)
{
	if (ret < 0 && call.name != NULL)
		rmem_trace_error_call(call.name, call.obj, -ret);
	return ret;
}

void
rmem_fail(int logtype, const char *prefix, int error, const char *format, ...)
{
	const char *name = call.name != NULL ? call.name : "";
	char text[1024];
	va_list args;

	va_start(args, format);
	/* clang-tidy 14 loses va_start() in a file that several programs compile. */
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	rte_log(RTE_LOG_ERR, (uint32_t)logtype, "%s: %s%s%s\n", prefix, name,
			name[0] == '\0' ? "" : ": ", text);
	rmem_traced(-error);
}

unsigned int
rmem_version(void)
{
	return RMEM_VERSION;
}
