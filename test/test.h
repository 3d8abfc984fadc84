/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Cases, suites and checks of the test program.
 *
 * A check that fails prints file, line and values, and ends the case, as test_skip() does: it jumps
 * to the innermost TEST_TRY() of its thread, without returning from the functions between. So a
 * function that has something to release after checks calls them in a TEST_TRY(). A check outside
 * of a TEST_TRY(), in a thread of its own or in a child process, ends the process.
 */

#ifndef TEST_H
#define TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rte_common.h>
#include <rte_malloc.h>

#define TEST_SUCCESS 0
#define TEST_FAILED  (-1)
#define TEST_SKIPPED 77 /* meson's exit status for a skipped test */

struct test_case {
	const char *name;
	void (*func)(void);
	const char *file; /* cases run in the order in which they stand in their files */
	int line;
	void (*setup)(void); /* NULL for the suite's */
	const char *rule;    /* of conformance: where the rule is written, */
	uint64_t capa;       /* the RMEM_DEV_CAPA_* and */
	uint32_t access;     /* the RMEM_ACCESS_* without which the case is skipped */
	struct test_case *next;
};

/* Cases; a set-up and the tear-down run around each of them. */
struct test_suite {
	const char *name;
	void (*setup)(void);
	void (*teardown)(void);
	struct test_case *const *cases;
};

/* A test known to the prompt and DPDK_TEST by name: a function, or else a suite. */
struct test_command {
	const char *name;
	void (*func)(void);
	struct test_suite suite;
	struct test_command *next;
};

/* Add a case to a suite; a function that runs with two set-ups is added twice. */
#define TEST_ADD(suite, function, tag, ...)                                                        \
	extern struct test_case *test_cases_##suite;                                               \
	static void function(void);                                                                \
	RTE_INIT(test_add_##tag##_##function)                                                      \
	{                                                                                          \
		static struct test_case test = {.name = #function,                                 \
				.func = function,                                                  \
				.file = __FILE__,                                                  \
				.line = __LINE__,                                                  \
				__VA_ARGS__};                                                      \
		test_add(&test_cases_##suite, &test);                                              \
	}                                                                                          \
	static void function(void)

/*
 * Define a case and add it to its suite:
 *
 *	TEST(mr, registered_mr_has_keys)
 *	{
 *		...
 *	}
 */
#define TEST(suite, function)              TEST_ADD(suite, function, own, .setup = NULL)
#define TEST_WITH(suite, function, set_up) TEST_ADD(suite, function, set_up, .setup = set_up)

/* These and those below need a semicolon after them. */
/* A case that is a call of a function that several cases share. */
#define TEST_CALL(suite, function, call)                                                           \
	TEST(suite, function)                                                                      \
	{                                                                                          \
		call;                                                                              \
	}                                                                                          \
	static void function(void)

#define REGISTER_RMEM_TEST(cmd, function)                                                          \
	static struct test_command test_command_##cmd;                                             \
	RTE_INIT(test_register_##cmd)                                                              \
	{                                                                                          \
		test_register(&test_command_##cmd);                                                \
	}                                                                                          \
	static struct test_command test_command_##cmd = {.name = #cmd, .func = function}

/* The cases of a list, with the set-up around each, as one autotest. */
#define TEST_SUITE_OF(object, set_up, tear_down, list)                                             \
	static struct test_command test_command_##object;                                          \
	RTE_INIT(test_register_##object)                                                           \
	{                                                                                          \
		test_register(&test_command_##object);                                             \
	}                                                                                          \
	static struct test_command test_command_##object = {.name = #object "_autotest",           \
			.suite = {#object, set_up, tear_down, &test_cases_##list}}

/* A suite and its list, to which the TEST()s of any file add; once for each suite. */
#define TEST_SUITE(object, set_up, tear_down)                                                      \
	struct test_case *test_cases_##object;                                                     \
	TEST_SUITE_OF(object, set_up, tear_down, object)

void test_add(struct test_case **cases, struct test_case *test);
void test_register(struct test_command *command);
const struct test_command *test_commands(void);
int test_run_command(const struct test_command *command);
int test_prompt(void);

/*
 * Start EAL: as rte_eal_init(), but unless the options select the lcores there are four
 * that share the processors this process may use. How many arguments were EAL's, or -1.
 */
int test_start_eal(int argc, char **argv);
/* The option for lcores first to last: "--lcores=(0-3)@(0,1)" on a machine with two processors. */
void test_print_lcores(char *text, size_t size, unsigned int first, unsigned int last);
/* Make a lcore serve where a device with these arguments (or NULL) needs one. */
int test_serve_lcore(const char *args);
/* Number of blocks and bytes allocated on the heaps of all sockets. */
struct rte_malloc_socket_stats test_heap(void);
/* The case that failed checks and notes refer to. */
void test_set_running(const char *name);

/* The checks below; each returns whether it held, and prints what it found when not. */
bool test_check(const char *file, int line, bool is_true, const char *text);
bool test_check_eq(const char *file, int line, const char *text, int64_t got, int64_t want);
bool test_check_errno(const char *file, int line, const char *text, int got, int want);
bool test_check_status(const char *file, int line, const char *text, int got, int want);
bool test_check_mem(const char *file, int line, const void *got, const void *want, size_t length);
bool test_check_text(const char *file, int line, const char *got, const char *part);
__rte_noreturn void test_skip(const char *reason);
void test_note(const char *format, ...) __rte_format_printf(1, 2);

/* Where a failed check continues. */
struct test_frame {
	jmp_buf env;
	struct test_frame *outer;
	pid_t pid;
	int result;
};

void test_enter(struct test_frame *frame);
int test_leave(struct test_frame *frame);
/* End the innermost TEST_TRY() with a result other than TEST_SUCCESS. */
__rte_noreturn void test_stop(int result);

/* Call a function of checks: TEST_SUCCESS if it returns, otherwise what ended it. */
#define TEST_TRY(call)                                                                             \
	__extension__({                                                                            \
		struct test_frame test_frame_;                                                     \
		test_enter(&test_frame_);                                                          \
		if (setjmp(test_frame_.env) == 0)                                                  \
			call;                                                                      \
		test_leave(&test_frame_);                                                          \
	})

#define TEST_SKIP_IF(condition, reason)                                                            \
	do {                                                                                       \
		if (condition)                                                                     \
			test_skip(reason);                                                         \
	} while (0)

#define TEST_STOP_UNLESS(held)                                                                     \
	do {                                                                                       \
		if (!(held))                                                                       \
			test_stop(TEST_FAILED);                                                    \
	} while (0)

#define TEST_ASSERT(condition)                                                                     \
	TEST_STOP_UNLESS(test_check(__FILE__, __LINE__, (condition), #condition))
/* Any two integers. */
#define TEST_EQ(got, want)                                                                         \
	TEST_STOP_UNLESS(test_check_eq(                                                            \
			__FILE__, __LINE__, #got " == " #want, (int64_t)(got), (int64_t)(want)))
/* A call that succeeds, and one that fails with -error. */
#define TEST_OK(call) TEST_STOP_UNLESS(test_check_errno(__FILE__, __LINE__, #call, (call), 0))
#define TEST_ERR(call, error)                                                                      \
	TEST_STOP_UNLESS(test_check_errno(__FILE__, __LINE__, #call, (call), -(error)))
/* A completion status, or -errno where there was none. */
#define TEST_STATUS(call, want)                                                                    \
	TEST_STOP_UNLESS(test_check_status(__FILE__, __LINE__, #call, (call), want))
#define TEST_MEM(got, want, length)                                                                \
	TEST_STOP_UNLESS(test_check_mem(__FILE__, __LINE__, got, want, length))
/* A text, of which this is a part. */
#define TEST_TEXT(got, part) TEST_STOP_UNLESS(test_check_text(__FILE__, __LINE__, got, part))
/* A function that returns TEST_SUCCESS, TEST_FAILED or TEST_SKIPPED, as TEST_TRY() does. */
#define TEST_RUN(call)                                                                             \
	do {                                                                                       \
		int test_result_ = (call);                                                         \
		if (test_result_ != TEST_SUCCESS)                                                  \
			test_stop(test_result_);                                                   \
	} while (0)

/* The lowest free descriptor. */
int test_free_fd(void);

#endif /* TEST_H */
