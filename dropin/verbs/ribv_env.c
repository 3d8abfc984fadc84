/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The environment of the class in a program without DPDK (env/rmem_env.h): threads, log, fork().
 *
 * fork(): the other threads of the parent do not exist in the child, so a lock that one of them
 * held is never released, and its calls never return. Therefore the child resets this library's
 * data, and the thread-local data of its only thread, to the values at the time the library was
 * loaded, except variables marked RMEM_ENV_KEPT. The child has no objects of the parent, except
 * that it can release them (ribv_leave_inherited()). The first function that needs a device creates
 * it. Memory allocated by the parent remains, unused.
 *
 * Invariant: the child has one thread during the reset, and afterwards refers to no data from
 * before it, except variables marked RMEM_ENV_KEPT.
 */

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "ribv.h"
#include "ribv_finding.h"
#include "rmem_env.h"

/* A part of this library's writable data. */
struct part {
	uint8_t *at;
	size_t size;
};

extern uint8_t __start_rmem_kept[] __attribute__((visibility("hidden")));
extern uint8_t __stop_rmem_kept[] __attribute__((visibility("hidden")));

static RMEM_ENV_KEPT struct part data;
static RMEM_ENV_KEPT uint8_t *loaded; /* copy of the data when it was loaded; NULL: none */
/* The parent's copy, kept so that leak checkers find the blocks it refers to. */
static RMEM_ENV_KEPT uint8_t *inherited;
static RMEM_ENV_KEPT void (*before_reset)(void);
static char log_line[256];
static bool has_checked; /* a device has sanitize=1 */

/* Find the data that is writable after loading, without pages that the loader protects (RELRO). */
static struct part
data_of(const struct dl_phdr_info *info)
{
	uintptr_t begin = UINTPTR_MAX, end = 0, constant = 0;
	const ElfW(Phdr) * header;
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		header = &info->dlpi_phdr[i];
		if (header->p_type == PT_LOAD && (header->p_flags & PF_W) != 0) {
			begin = RTE_MIN(begin, header->p_vaddr);
			end = RTE_MAX(end, header->p_vaddr + header->p_memsz);
		} else if (header->p_type == PT_GNU_RELRO) {
			constant = header->p_vaddr + header->p_memsz;
		}
	}
	begin = RTE_MAX(begin, constant);
	return (struct part){(uint8_t *)(info->dlpi_addr + begin), end - begin};
}

static int
find_data(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct part part = data_of(info);

	RTE_SET_USED(size);
	RTE_SET_USED(arg);
	if ((uintptr_t)&data - (uintptr_t)part.at >= part.size)
		return 0;
	data = part;
	return 1;
}

/* Reset the thread-local data of the calling thread to its initial values. */
static int
reset_thread(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct part part = data_of(info);
	const ElfW(Phdr) * header;
	int i;

	RTE_SET_USED(size);
	RTE_SET_USED(arg);
	if (part.at != data.at)
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		header = &info->dlpi_phdr[i];
		if (header->p_type != PT_TLS || info->dlpi_tls_data == NULL)
			continue;
		memset(info->dlpi_tls_data, 0, header->p_memsz);
		memcpy(info->dlpi_tls_data, (void *)(info->dlpi_addr + header->p_vaddr),
				header->p_filesz);
	}
	return 1;
}

/* Runs in the child of fork(). */
static void
forked(void)
{
	size_t before = (size_t)(__start_rmem_kept - data.at);
	size_t until = (size_t)(__stop_rmem_kept - data.at);
	int state;

	/* fork() is not a cancellation point; close() is. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	rmem_env_forked();
	ribv_obj_forked();
	before_reset();
	free(inherited);
	inherited = malloc(data.size);
	if (inherited != NULL)
		memcpy(inherited, data.at, data.size);
	rte_thread_unregister();
	dl_iterate_phdr(reset_thread, NULL);
	memcpy(data.at, loaded, before);
	memcpy(data.at + until, loaded + until, data.size - until);
	pthread_setcancelstate(state, NULL);
}

void
ribv_env_init(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	dl_iterate_phdr(find_data, NULL);
	loaded = data.size != 0 ? malloc(data.size) : NULL;
	if (loaded == NULL)
		return;
	memcpy(loaded, data.at, data.size);
	before_reset = child;
	pthread_atfork(prepare, parent, forked);
}

bool
ribv_env_attach(void)
{
	return likely(rte_lcore_id() != LCORE_ID_ANY) || rte_thread_register() == 0;
}

/* Level of RMEM_IBV_LOG: a number, or the start of a name. */
static uint32_t
level_of(const char *text)
{
	static const char *const names[] = {[RTE_LOG_EMERG] = "emergency",
			[RTE_LOG_ALERT] = "alert",
			[RTE_LOG_CRIT] = "critical",
			[RTE_LOG_ERR] = "error",
			[RTE_LOG_WARNING] = "warning",
			[RTE_LOG_NOTICE] = "notice",
			[RTE_LOG_INFO] = "info",
			[RTE_LOG_DEBUG] = "debug"};
	unsigned long number = strtoul(text, NULL, 10);
	uint32_t i;

	for (i = RTE_LOG_EMERG; i < RTE_DIM(names) && number == 0; i++) {
		if (text[0] != '\0' && strncmp(names[i], text, strlen(text)) == 0)
			number = i;
	}
	return number >= RTE_LOG_EMERG && number <= RTE_LOG_DEBUG ? (uint32_t)number
								  : RTE_LOG_EMERG;
}

bool
ribv_env_logs(uint32_t level)
{
	const char *text = getenv("RMEM_IBV_LOG");

	return text != NULL && level_of(text) >= level;
}

static ssize_t
log_write(void *cookie, const char *text, size_t size)
{
	const char *end = memchr(text, '\n', size);

	RTE_SET_USED(cookie);
	if (log_line[0] == '\0')
		snprintf(log_line, sizeof(log_line), "%.*s",
				(int)(end != NULL ? (size_t)(end - text) : size), text);
	return (ssize_t)size;
}

void
ribv_env_log_keep(void)
{
	const cookie_io_functions_t functions = {.write = log_write};
	const char *level = getenv("RMEM_IBV_LOG");
	FILE *stream;

	rte_log_set_level_pattern("*", level != NULL ? level_of(level) : RTE_LOG_ERR);
	/* Never closed: a thread of the device may still write to it. */
	stream = level == NULL ? fopencookie(NULL, "w", functions) : NULL;
	rte_openlog_stream(stream);
}

const char *
ribv_env_log_kept(bool is_checked)
{
	has_checked |= is_checked;
	/* Without RMEM_IBV_LOG: a program that provokes errors gets errno only, and no line. */
	if (getenv("RMEM_IBV_LOG") == NULL) {
		rte_log_set_level_pattern("*", RTE_LOG_EMERG);
		if (has_checked)
			rte_log_set_level_pattern("pmd.rmem.soft", RTE_LOG_WARNING);
	}
	rte_openlog_stream(has_checked ? ribv_finding_log() : NULL);
	return log_line;
}
