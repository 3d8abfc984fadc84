/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* That a check that fails fails its case, wherever it stands. */

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

#define NAME "failed_checks_fail"

static bool is_after; /* of the check that fails */
static bool is_torn_down;

/* The checks below print what they find. */
static void
setup(void)
{
	test_note("the next failures are expected");
	unsetenv("RMEM_CASE");
	is_after = false;
	is_torn_down = false;
}

static void
teardown(void)
{
}

static void
do_nothing(void)
{
}

static void
inner_teardown(void)
{
	is_torn_down = true;
}

static void
fail_eq(void)
{
	TEST_EQ(1 + 1, 3);
	is_after = true;
}

static void
fail_deep(void)
{
	fail_eq();
	is_after = true;
}

static void
skip(void)
{
	test_skip("as requested");
}

/* The result of a suite with this case alone. */
static int
run_case(void (*set_up)(void), void (*func)(void), void (*tear_down)(void))
{
	struct test_case test = {.name = "inner", .func = func};
	struct test_case *cases = &test;
	const struct test_command command = {
			.name = "inner", .suite = {"inner", set_up, tear_down, &cases}};
	int result = test_run_command(&command);

	test_set_running(NAME);
	return result;
}

TEST(harness, failed_check_fails_its_case)
{
	TEST_EQ(run_case(do_nothing, do_nothing, inner_teardown), TEST_SUCCESS);
	is_torn_down = false;
	TEST_EQ(run_case(do_nothing, fail_eq, inner_teardown), TEST_FAILED);
	TEST_ASSERT(is_torn_down);
	is_torn_down = false;
	TEST_EQ(run_case(do_nothing, fail_deep, inner_teardown), TEST_FAILED);
	TEST_ASSERT(is_torn_down && !is_after);
}

TEST(harness, failed_set_up_or_tear_down_fails_the_case)
{
	TEST_EQ(run_case(fail_deep, do_nothing, inner_teardown), TEST_FAILED);
	TEST_ASSERT(is_torn_down);
	TEST_EQ(run_case(do_nothing, do_nothing, fail_deep), TEST_FAILED);
	TEST_EQ(run_case(do_nothing, skip, fail_deep), TEST_FAILED);
	TEST_ASSERT(!is_after);
}

TEST(harness, skip_ends_its_case)
{
	TEST_EQ(run_case(do_nothing, skip, inner_teardown), TEST_SKIPPED);
	TEST_EQ(run_case(skip, fail_eq, inner_teardown), TEST_SKIPPED);
	TEST_ASSERT(is_torn_down);
}

TEST(harness, each_check_can_fail)
{
	static const uint8_t bytes[2][2] = {{1, 2}, {1, 3}};

	TEST_EQ(TEST_TRY(TEST_ASSERT(bytes[0][1] == 3)), TEST_FAILED);
	TEST_EQ(TEST_TRY(TEST_EQ(bytes[0][0], 2)), TEST_FAILED);
	TEST_EQ(TEST_TRY(TEST_OK(-EINVAL)), TEST_FAILED);
	TEST_EQ(TEST_TRY(TEST_ERR(0, EINVAL)), TEST_FAILED);
	TEST_EQ(TEST_TRY(TEST_ERR(-EPERM, EINVAL)), TEST_FAILED);
	TEST_EQ(TEST_TRY(TEST_STATUS(RMEM_WC_SUCCESS, RMEM_WC_WR_FLUSH_ERR)), TEST_FAILED);
	TEST_EQ(TEST_TRY(TEST_MEM(bytes[0], bytes[1], 2)), TEST_FAILED);
	TEST_EQ(TEST_TRY(TEST_RUN(TEST_SKIPPED)), TEST_SKIPPED);
	TEST_EQ(TEST_TRY(TEST_MEM(bytes[0], bytes[1], 1)), TEST_SUCCESS);
}

static void
fail_on_lcore(void *arg)
{
	RTE_SET_USED(arg);
	fail_deep();
}

static void
launch_and_join(void)
{
	fx_launch(fail_on_lcore, NULL, 0, 1);
	fx_join(1);
}

TEST(harness, failed_check_of_an_lcore_fails_the_join)
{
	TEST_SKIP_IF(fx_nb_workers() == 0, "it takes a worker lcore");
	TEST_EQ(TEST_TRY(launch_and_join()), TEST_FAILED);
	TEST_ASSERT(!is_after);
}

static void *
fail_in_thread(void *arg)
{
	RTE_SET_USED(arg);
	fail_deep();
	return NULL;
}

static void
run_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fail_in_thread, NULL) == 0)
		pthread_join(thread, NULL);
}

/* The exit status of a child that calls it and then ends well. */
static int
status_of_child(void (*func)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		func();
		_exit(EXIT_SUCCESS);
	}
	TEST_ASSERT(child > 0);
	TEST_EQ(waitpid(child, &status, 0), child);
	TEST_ASSERT(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(harness, failed_check_of_a_thread_or_child_ends_the_process)
{
	TEST_EQ(status_of_child(do_nothing), EXIT_SUCCESS);
	TEST_EQ(status_of_child(fail_deep), EXIT_FAILURE);
	TEST_EQ(status_of_child(run_thread), EXIT_FAILURE);
}

TEST_SUITE(harness, setup, teardown);
