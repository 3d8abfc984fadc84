/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Log lines and refusals, common to the class, its drivers and the libraries above it.
 *
 * A public function begins with RMEM_CALL(). The first function that detects an error returns
 * RMEM_FAIL_AS(), which logs a line with the name of the call, traces lib.rmem.error.call and
 * returns -errno; its callers pass that on. A driver logs its errors with RMEM_LOG_LINE(), and the
 * class traces what the driver returns.
 */

#ifndef RMEM_LOG_H
#define RMEM_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_log.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Log a line of a component: RMEM_LOG_LINE(ERR, logtype, "name", "format", ...). */
#define RMEM_LOG_LINE(level, logtype, prefix, ...)                                                 \
	RMEM_LOG_AT(RTE_LOG_##level, logtype, prefix, __VA_ARGS__)

/** Log a line; the level is a value: RMEM_LOG_AT(RTE_LOG_ERR, logtype, "name", "format", ...). */
#define RMEM_LOG_AT(level, logtype, prefix, ...)                                                   \
	rte_log((uint32_t)(level), (uint32_t)(logtype),                                            \
			RTE_FMT(prefix ": " RTE_FMT_HEAD(__VA_ARGS__, ) "\n",                      \
					RTE_FMT_TAIL(__VA_ARGS__, )))

/**
 * Begin a public call; see RMEM_CALL().
 *
 * Control path. Safe to call from any thread.
 *
 * @param name
 *   Name of the call; static.
 * @param obj
 *   Object that the call is for; may be NULL or invalid.
 *
 * @return
 *   Whether this is the outermost call of the thread, whose name is logged and traced.
 */
bool rmem_call_begin(const char *name, const void *obj);

/**
 * End a public call; see RMEM_CALL().
 *
 * Control path. Safe to call from any thread.
 *
 * @param is_outer
 *   Result of rmem_call_begin().
 */
void rmem_call_end(const bool *is_outer);

/** Name the call in log lines until it returns; first declaration of a public function. */
#define RMEM_CALL(obj)                                                                             \
	__attribute__((cleanup(rmem_call_end), unused)) const bool rmem_call_is_outer =            \
			rmem_call_begin(__func__, obj)

/**
 * Refuse a call: log an error and trace it; see RMEM_FAIL_AS().
 *
 * Control path. Safe to call from any thread.
 *
 * @param logtype
 *   Log type of the component.
 * @param prefix
 *   Name of the component, the first word of the line.
 * @param error
 *   Positive errno.
 * @param format
 *   Format of the line, followed by its arguments.
 */
void rmem_fail(int logtype, const char *prefix, int error, const char *format, ...)
		__rte_format_printf(4, 5);

/** Refuse a call of a component: return RMEM_FAIL_AS(logtype, "name", EINVAL, "format", ...). */
#define RMEM_FAIL_AS(logtype, prefix, error, ...)                                                  \
	(rmem_fail(logtype, prefix, error, __VA_ARGS__), -(error))

#ifdef __cplusplus
}
#endif

#endif /* RMEM_LOG_H */
