/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Runs suites, keeps the list of autotests, and prints what a failed check found. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rmem.h>

#include "test.h"

static struct test_command *commands;
static const char *running = "none";
static __thread struct test_frame *frame_now;

void
test_enter(struct test_frame *frame)
{
	frame->outer = frame_now;
	frame->pid = getpid();
	frame->result = TEST_SUCCESS;
	frame_now = frame;
}

int
test_leave(struct test_frame *frame)
{
	frame_now = frame->outer;
	return frame->result;
}

void
test_stop(int result)
{
	/* The frames of a child process are copies of its parent's. */
	if (frame_now == NULL || frame_now->pid != getpid()) {
		fflush(stdout);
		_exit(EXIT_FAILURE);
	}
	frame_now->result = result;
	longjmp(frame_now->env, 1);
}

void
test_set_running(const char *name)
{
	running = name;
}

/* Keeps the list sorted by name. */
void
test_register(struct test_command *command)
{
	struct test_command **place = &commands;

	while (*place != NULL && strcmp((*place)->name, command->name) < 0)
		place = &(*place)->next;
	command->next = *place;
	*place = command;
}

/* Constructors run in an order of the linker's. */
static bool
is_before(const struct test_case *a, const struct test_case *b)
{
	int order = strcmp(a->file, b->file);

	return order != 0 ? order < 0 : a->line < b->line;
}

void
test_add(struct test_case **cases, struct test_case *test)
{
	while (*cases != NULL && is_before(*cases, test))
		cases = &(*cases)->next;
	test->next = *cases;
	*cases = test;
}

const struct test_command *
test_commands(void)
{
	return commands;
}

/* The tear-down also runs after a failed case, to release its objects. */
static int
run_case(const struct test_suite *suite, const struct test_case *test)
{
	void (*setup)(void) = test->setup != NULL ? test->setup : suite->setup;
	int result;

	running = test->name;
	result = TEST_TRY(setup());
	if (result == TEST_SUCCESS)
		result = TEST_TRY(test->func());
	else if (result != TEST_SKIPPED)
		printf("  %s: set-up failed\n", test->name);
	if (TEST_TRY(suite->teardown()) != TEST_SUCCESS)
		result = TEST_FAILED;
	return result;
}

static bool
has_case(const struct test_suite *suite, const char *name)
{
	const struct test_case *test = *suite->cases;

	while (test != NULL && strcmp(test->name, name) != 0)
		test = test->next;
	return test != NULL;
}

/* RMEM_CASE=name runs that case alone. */
static int
run_suite(const struct test_suite *suite)
{
	const char *only = getenv("RMEM_CASE");
	const struct test_case *test;
	unsigned int passed = 0;
	unsigned int failed = 0;
	unsigned int skipped = 0;

	if (only != NULL && !has_case(suite, only)) {
		printf("%s: no case %s\n", suite->name, only);
		return TEST_FAILED;
	}
	for (test = *suite->cases; test != NULL; test = test->next) {
		if (only != NULL && strcmp(only, test->name) != 0)
			continue;
		switch (run_case(suite, test)) {
		case TEST_SUCCESS:
			passed++;
			break;
		case TEST_SKIPPED:
			skipped++;
			break;
		default:
			failed++;
			printf("  %s failed\n", test->name);
			break;
		}
	}
	printf("%s: %u passed, %u failed, %u skipped\n", suite->name, passed, failed, skipped);
	if (failed != 0)
		return TEST_FAILED;
	return passed == 0 ? TEST_SKIPPED : TEST_SUCCESS;
}

int
test_run_command(const struct test_command *command)
{
	int result = command->func != NULL ? TEST_TRY(command->func()) : run_suite(&command->suite);

	if (result == TEST_SUCCESS)
		printf("Test OK\n");
	else if (result == TEST_SKIPPED)
		printf("Test Skipped\n");
	else
		printf("Test Failed\n");
	fflush(stdout);
	return result;
}

static void
print_place(const char *file, int line)
{
	printf("%s:%d: %s: ", file, line, running);
}

bool
test_check(const char *file, int line, bool is_true, const char *text)
{
	if (!is_true) {
		print_place(file, line);
		printf("not so: %s\n", text);
	}
	return is_true;
}

bool
test_check_eq(const char *file, int line, const char *text, int64_t got, int64_t want)
{
	if (got != want) {
		print_place(file, line);
		printf("%s: got %" PRId64 " (0x%" PRIx64 "), want %" PRId64 " (0x%" PRIx64 ")\n",
				text, got, (uint64_t)got, want, (uint64_t)want);
	}
	return got == want;
}

bool
test_check_errno(const char *file, int line, const char *text, int got, int want)
{
	if (got != want) {
		print_place(file, line);
		printf("%s: got %d", text, got);
		if (got < 0)
			printf(" (%s)", strerror(-got));
		printf(", want %d", want);
		if (want < 0)
			printf(" (%s)", strerror(-want));
		printf("\n");
	}
	return got == want;
}

bool
test_check_status(const char *file, int line, const char *text, int got, int want)
{
	if (got != want) {
		print_place(file, line);
		printf("%s: got %s, want %s\n", text,
				got < 0 ? strerror(-got) : rmem_wc_status_str(got),
				rmem_wc_status_str(want));
	}
	return got == want;
}

bool
test_check_mem(const char *file, int line, const void *got, const void *want, size_t length)
{
	const uint8_t *a = got;
	const uint8_t *b = want;
	size_t i;

	for (i = 0; i < length && a[i] == b[i]; i++)
		;
	if (i < length) {
		print_place(file, line);
		printf("byte %zu of %zu is 0x%02x, want 0x%02x\n", i, length, a[i], b[i]);
	}
	return i == length;
}

bool
test_check_text(const char *file, int line, const char *got, const char *part)
{
	bool is_there = strstr(got, part) != NULL;

	if (!is_there) {
		print_place(file, line);
		printf("no \"%s\" in: %s\n", part, got);
	}
	return is_there;
}

void
test_skip(const char *reason)
{
	printf("  %s skipped: %s\n", running, reason);
	test_stop(TEST_SKIPPED);
}

void
test_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("  %s: ", running);
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

int
test_free_fd(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	/* cppcheck-suppress deallocret */
	return fd;
}
