/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Log types and lines, on stderr unless a stream is set. */

#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_log.h>

#define MAX_TYPES 32

/* Those of EAL come first. */
static struct {
	const char *name;
	uint32_t level; /* atomic */
} types[RTE_LOGTYPE_FIRST_EXT_ID + MAX_TYPES];
static unsigned int nb_types = RTE_LOGTYPE_FIRST_EXT_ID;
static uint32_t global_level = RTE_LOG_DEBUG;            /* atomic */
static FILE *stream;                                     /* NULL: stderr; atomic */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the addition of types */

int
rte_log_register(const char *name)
{
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = RTE_LOGTYPE_FIRST_EXT_ID; i < nb_types; i++) {
		if (strcmp(types[i].name, name) == 0)
			break;
	}
	if (i == nb_types && i < RTE_DIM(types)) {
		types[i].name = name;
		types[i].level = RTE_LOG_INFO;
		nb_types++;
	}
	pthread_mutex_unlock(&lock);
	return i < RTE_DIM(types) ? (int)i : -ENOMEM;
}

int
rte_log_register_type_and_pick_level(const char *name, uint32_t level_def)
{
	int type = rte_log_register(name);

	if (type >= 0)
		rte_log_set_level((uint32_t)type, level_def);
	return type;
}

void
rte_log_set_global_level(uint32_t level)
{
	__atomic_store_n(&global_level, level, __ATOMIC_RELAXED);
}

uint32_t
rte_log_get_global_level(void)
{
	return __atomic_load_n(&global_level, __ATOMIC_RELAXED);
}

int
rte_log_get_level(uint32_t logtype)
{
	if (logtype >= RTE_DIM(types))
		return -1;
	return (int)__atomic_load_n(&types[logtype].level, __ATOMIC_RELAXED);
}

int
rte_log_set_level(uint32_t logtype, uint32_t level)
{
	if (logtype >= RTE_DIM(types) || level > RTE_LOG_DEBUG)
		return -1;
	__atomic_store_n(&types[logtype].level, level, __ATOMIC_RELAXED);
	return 0;
}

int
rte_log_set_level_pattern(const char *pattern, uint32_t level)
{
	unsigned int i;

	if (level > RTE_LOG_DEBUG)
		return -1;
	for (i = RTE_LOGTYPE_FIRST_EXT_ID; i < nb_types; i++) {
		if (fnmatch(pattern, types[i].name, 0) == 0)
			rte_log_set_level(i, level);
	}
	return 0;
}

int
rte_openlog_stream(FILE *f)
{
	__atomic_store_n(&stream, f, __ATOMIC_RELEASE);
	return 0;
}

int
rte_log(uint32_t level, uint32_t logtype, const char *format, ...)
{
	FILE *f = __atomic_load_n(&stream, __ATOMIC_ACQUIRE);
	va_list args;
	int ret;

	if (level > rte_log_get_global_level() || (int)level > rte_log_get_level(logtype))
		return 0;
	if (f == NULL)
		f = stderr;
	va_start(args, format);
	ret = vfprintf(f, format, args);
	va_end(args);
	fflush(f);
	return ret;
}
