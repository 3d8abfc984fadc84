/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Errors, memory, signals and patterns, used by all files. Calls no other file. */

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "testrmem.h"

/* Room for two paths. */
#define LINE_SIZE (2 * TESTRMEM_STR_SIZE + 256)

static volatile sig_atomic_t is_interrupted;

/* With one write, since other lcores and the log write too. */
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

int
testrmem_pair_failed(struct testrmem_pair *pair, const char *what, const struct rmem_wc *wc)
{
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(pair->worker->session,
			"lcore %u, QP pair %" PRIu32 ": %s failed: %s (vendor_err 0x%" PRIx32 ")",
			pair->worker->lcore_id, pair->id, what, rmem_wc_status_str(wc->status),
			wc->vendor_err);
	return -EIO;
}

int
testrmem_pair_refused(struct testrmem_pair *pair, const char *what, int ret)
{
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(pair->worker->session, "lcore %u, QP pair %" PRIu32 ": %s: %s",
			pair->worker->lcore_id, pair->id, what,
			ret < 0 ? rte_strerror(-ret) : "not all requests were accepted");
	return ret < 0 ? ret : -EIO;
}

void
testrmem_err_memory(const char *what, uint64_t bytes)
{
	testrmem_err("no memory for %s (%" PRIu64 " KiB in all): give EAL more (reserve hugepages,"
		     " or with --no-huge a larger -m), or lower size, burst, depth, qps or mrs",
			what, (bytes + 1023) >> 10);
}

void *
testrmem_alloc(size_t n, size_t size)
{
	void *memory = rte_calloc("testrmem", n, size, RTE_CACHE_LINE_SIZE);

	if (memory == NULL)
		testrmem_err_memory("the tables", n * size);
	return memory;
}

bool
testrmem_is_interrupted(void)
{
	return is_interrupted != 0;
}

static void
on_signal(int number)
{
	RTE_SET_USED(number);
	is_interrupted = 1;
}

void
testrmem_catch_signals(void)
{
	/* The second one ends the program. */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void
testrmem_fill(void *addr, size_t length, uint64_t seed)
{
	uint8_t *byte = addr;
	uint64_t word = seed * UINT64_C(0x9e3779b97f4a7c15);
	size_t i;

	for (i = 0; i < length; i++) {
		if (i % sizeof(word) == 0) {
			word ^= word << 13;
			word ^= word >> 7;
			word ^= word << 17;
		}
		byte[i] = (uint8_t)(word >> (8 * (i % sizeof(word))));
	}
}
