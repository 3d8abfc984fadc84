/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * dpdk-test-rmem: unit tests, run as DPDK's own dpdk-test is.
 *
 * usage: [DPDK_TEST=name[,name...]] dpdk-test-rmem [EAL options]
 *
 * With DPDK_TEST it runs these autotests and exits with 0, 1 (one failed) or 77 (all were
 * skipped); without, it prompts. Unless the EAL options select the lcores, it gets four
 * that share the processors it may use, so that lcores race on small machines too.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <rmem_dev.h>

#include "test.h"

/* Memory of the pool tests, sufficient for the largest of their pools. */
#define WANTED_HUGEPAGES 64u

/* RMEM_TEST_HUGE requires hugepages: without enough free ones no test runs. */
static bool
lacks_hugepages(void)
{
	static const char *const path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
	unsigned long nb = 0;
	char line[32];
	FILE *f;

	if (getenv("RMEM_TEST_HUGE") == NULL)
		return false;
	f = fopen(path, "r");
	if (f != NULL) {
		if (fgets(line, sizeof(line), f) != NULL)
			nb = strtoul(line, NULL, 10);
		fclose(f);
	}
	if (nb < WANTED_HUGEPAGES)
		printf("Test Skipped: %lu hugepages of 2 MiB are free, it takes %u\n", nb,
				WANTED_HUGEPAGES);
	return nb < WANTED_HUGEPAGES;
}

static const struct test_command *
find_command(const char *name)
{
	const struct test_command *command = test_commands();

	while (command != NULL && strcmp(command->name, name) != 0)
		command = command->next;
	return command;
}

/* Looks all names up before it runs one. */
static int
run_list(const char *names)
{
	bool is_all_skipped = true;
	bool is_failed = false;
	char *rest = NULL;
	char *list;
	char *name;
	int pass;
	int result;

	for (pass = 0; pass < 2 && !is_failed; pass++) {
		list = strdup(names);
		if (list == NULL)
			return EXIT_FAILURE;
		for (name = strtok_r(list, ", ", &rest); name != NULL;
				name = strtok_r(NULL, ", ", &rest)) {
			const struct test_command *command = find_command(name);

			if (command == NULL) {
				fprintf(stderr, "DPDK_TEST: no test is named \"%s\"\n", name);
				is_failed = true;
			} else if (pass == 1) {
				result = test_run_command(command);
				is_failed |= result != TEST_SUCCESS && result != TEST_SKIPPED;
				is_all_skipped &= result == TEST_SKIPPED;
			}
		}
		free(list);
	}
	if (is_failed)
		return EXIT_FAILURE;
	return is_all_skipped ? TEST_SKIPPED : EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	const char *names = getenv("DPDK_TEST");
	int result;

	/* Of a test that crashes, its name is known. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (lacks_hugepages())
		return TEST_SKIPPED;
	if (test_start_eal(argc, argv) < 0) {
		fprintf(stderr, "EAL does not start: %s\n", rte_strerror(rte_errno));
		return EXIT_FAILURE;
	}
	if (test_serve_lcore(getenv("RMEM_TEST_ARGS")) != 0)
		return EXIT_FAILURE;
	if (names != NULL && names[0] != '\0')
		result = run_list(names);
	else
		result = test_prompt();
	/* A failed test may leave a device, whose thread uses the memory and the ports of EAL. */
	if (rmem_dev_next(NULL) == NULL)
		rte_eal_cleanup();
	return result;
}
