/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* EAL for test programs: lcores that race on small machines too, and one that serves. */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "test.h"

static bool
has_lcore_option(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strncmp(argv[i], "-l", 2) == 0 || strncmp(argv[i], "-c", 2) == 0 ||
				strncmp(argv[i], "--lcores", 8) == 0)
			return true;
	}
	return false;
}

void
test_print_lcores(char *text, size_t size, unsigned int first, unsigned int last)
{
	const char *comma = "";
	cpu_set_t allowed;
	size_t used;
	int cpu;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
		CPU_ZERO(&allowed);
		CPU_SET(0, &allowed);
	}
	used = (size_t)snprintf(text, size, "--lcores=(%u-%u)@(", first, last);
	for (cpu = 0; cpu < CPU_SETSIZE && used < size - sizeof(",9999)"); cpu++) {
		if (CPU_ISSET(cpu, &allowed)) {
			used += (size_t)snprintf(text + used, size - used, "%s%d", comma, cpu);
			comma = ",";
		}
	}
	snprintf(text + used, size - used, ")");
}

int
test_start_eal(int argc, char **argv)
{
	static char lcores[512];
	bool is_added = !has_lcore_option(argc, argv);
	char **args;
	int result;

	args = calloc((size_t)argc + 2, sizeof(*args));
	if (args == NULL)
		return -1;
	memcpy(args, argv, (size_t)argc * sizeof(*args));
	if (is_added) {
		/* First, for what follows "--" is not EAL's. */
		test_print_lcores(lcores, sizeof(lcores), 0, 3);
		memmove(&args[2], &args[1], (size_t)(argc - 1) * sizeof(*args));
		args[1] = lcores;
		argc++;
	}
	result = rte_eal_init(argc, args);
	free(args);
	return is_added && result > 0 ? result - 1 : result;
}

static int32_t
yield(void *arg)
{
	RTE_SET_USED(arg);
	sched_yield();
	return 0;
}

/* A service lcore polls without a pause, which on few CPUs takes a time slice from the others. */
static int
add_yield(uint32_t lcore)
{
	const struct rte_service_spec spec = {.name = "test_yield",
			.callback = yield,
			.capabilities = RTE_SERVICE_CAP_MT_SAFE,
			.socket_id = SOCKET_ID_ANY};
	uint32_t id;

	if (rte_service_lcore_add(lcore) != 0 || rte_service_component_register(&spec, &id) != 0)
		return -1;
	rte_service_component_runstate_set(id, 1);
	rte_service_runstate_set(id, 1);
	return rte_service_map_lcore_set(id, lcore, 1);
}

/* The last one. */
int
test_serve_lcore(const char *args)
{
	unsigned int lcore;

	if (args == NULL || strstr(args, "engine=") == NULL || rte_service_lcore_count() != 0)
		return 0;
	for (lcore = RTE_MAX_LCORE; lcore-- > 0;) {
		if (rte_lcore_is_enabled(lcore) && lcore != rte_get_main_lcore())
			return add_yield(lcore);
	}
	fprintf(stderr, "%s: no lcore is left to serve\n", args);
	return -1;
}

struct rte_malloc_socket_stats
test_heap(void)
{
	struct rte_malloc_socket_stats sum = {0}, stats;
	unsigned int i;

	for (i = 0; i < rte_socket_count(); i++) {
		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) != 0)
			continue;
		sum.alloc_count += stats.alloc_count;
		sum.heap_allocsz_bytes += stats.heap_allocsz_bytes;
	}
	return sum;
}
