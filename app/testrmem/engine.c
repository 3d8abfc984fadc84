/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The engines by name, and how errors are told.
 */

#include <stdarg.h>

#include "testrmem.h"

/* Room for two paths. */
#define LINE_SIZE (2 * TESTRMEM_STR_SIZE + 256)

const struct testrmem_engine *const testrmem_engines[] = {
		&testrmem_engine_write,
		&testrmem_engine_read,
		&testrmem_engine_send,
		&testrmem_engine_mbuf,
		&testrmem_engine_atomic,
		&testrmem_engine_fastreg,
		&testrmem_engine_mw,
		&testrmem_engine_umr,
		&testrmem_engine_lease,
		&testrmem_engine_odp,
		&testrmem_engine_inline,
		&testrmem_engine_copy,
		NULL,
};

/* In one piece: other lcores and the log write too. */
static void
print_error(const char *line)
{
	fflush(stdout);
	fprintf(stderr, "testrmem: %s\n", line);
}

void
testrmem_err(const char *format, ...)
{
	char line[LINE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	print_error(line);
}

void
testrmem_fail(struct testrmem_session *session, const char *format, ...)
{
	char line[LINE_SIZE];
	va_list args;

	if (__atomic_exchange_n(&session->has_failed, 1, __ATOMIC_RELAXED) == 0) {
		va_start(args, format);
		vsnprintf(line, sizeof(line), format, args);
		va_end(args);
		print_error(line);
	}
	testrmem_session_stop(session);
}
