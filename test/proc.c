/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Primary and secondary processes; see proc.h. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_memory.h>
#include <rte_per_lcore.h>

#include "proc.h"
#include "test.h"

#define WANTED_HUGE 64ul
#define PREFIX_SIZE 64
#define NB_OWN_ARGS 7 /* program, secondary, prefix, hugepages, address, length, descriptor */

/* Without hugepages: one mapping of one descriptor. */
struct memory {
	void *addr;
	size_t length;
	int fd;
};

static char prefix[PREFIX_SIZE];
static bool is_huge;

static int
find_memory(const struct rte_memseg_list *msl, const struct rte_memseg *ms, void *arg)
{
	struct memory *memory = arg;

	memory->addr = msl->base_va;
	memory->length = msl->len;
	memory->fd = rte_memseg_get_fd(ms);
	return 1;
}

/* Enough hugepages are free, and this user may share files in a mount of hugetlbfs. */
static bool
has_hugepages(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
	unsigned long nb_free = 0;
	char line[512], dir[256], type[32];
	bool is_found = false;

	if (f != NULL && fgets(line, sizeof(line), f) != NULL)
		nb_free = strtoul(line, NULL, 10);
	if (f != NULL)
		fclose(f);
	f = nb_free >= WANTED_HUGE ? fopen("/proc/mounts", "r") : NULL;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		is_found |= sscanf(line, "%*s %255s %31s", dir, type) == 2 &&
				strcmp(type, "hugetlbfs") == 0 && access(dir, W_OK) == 0;
	if (f != NULL)
		fclose(f);
	return is_found;
}

bool
proc_can_start(void)
{
	is_huge = getenv("RMEM_TEST_HUGE") != NULL;
	if (is_huge && !has_hugepages()) {
		printf("skipped: requires %lu free hugepages of 2 MiB and a mount of hugetlbfs\n",
				WANTED_HUGE);
		return false;
	}
	return true;
}

static int
start_eal(const char *program, unsigned int first, unsigned int last, bool is_secondary)
{
	char name[256], prefix_arg[PREFIX_SIZE + 16], lcores[512];
	char no_huge[] = "--no-huge", memory[] = "-m128", no_pci[] = "--no-pci";
	char no_telemetry[] = "--no-telemetry", secondary[] = "--proc-type=secondary";
	char quiet[] = "--log-level=lib.eal:critical";
	char *argv[8] = {name, lcores, prefix_arg, no_pci, no_telemetry, quiet};
	int argc = 6;

	snprintf(name, sizeof(name), "%s", program);
	test_print_lcores(lcores, sizeof(lcores), first, last);
	snprintf(prefix_arg, sizeof(prefix_arg), "--file-prefix=%s", prefix);
	if (!is_huge)
		argv[argc++] = no_huge;
	argv[argc++] = is_secondary ? secondary : memory;
	return test_start_eal(argc, argv);
}

int
proc_start_primary(const char *program, unsigned int first, unsigned int last)
{
	char dir[] = "/tmp/rmem-proc-XXXXXX";

	/* EAL would share its files in /tmp/dpdk, which may be another user's. */
	if (getuid() != 0 && getenv("XDG_RUNTIME_DIR") == NULL)
		TEST_ASSERT(mkdtemp(dir) != NULL && setenv("XDG_RUNTIME_DIR", dir, 1) == 0);
	snprintf(prefix, sizeof(prefix), "rmem_proc_%d", (int)getpid());
	TEST_ASSERT(start_eal(program, first, last, false) >= 0);
	return TEST_SUCCESS;
}

pid_t
proc_spawn(const char *const *args)
{
	const char *argv[NB_OWN_ARGS + PROC_MAX_ARGS + 1] = {
			"/proc/self/exe", "secondary", prefix, is_huge ? "huge" : "no-huge"};
	struct memory memory = {.fd = -1};
	char at[3][24];
	int i;
	pid_t pid;

	if (!is_huge)
		rte_memseg_walk(find_memory, &memory);
	snprintf(at[0], sizeof(at[0]), "%" PRIxPTR, (uintptr_t)memory.addr);
	snprintf(at[1], sizeof(at[1]), "%zx", memory.length);
	snprintf(at[2], sizeof(at[2]), "%d", memory.fd);
	for (i = 0; i < 3; i++)
		argv[4 + i] = at[i];
	for (i = 0; i < PROC_MAX_ARGS && args[i] != NULL; i++)
		argv[NB_OWN_ARGS + i] = args[i];
	pid = fork();
	if (pid == 0) {
		execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}

bool
proc_is_secondary(int argc, char **argv)
{
	return argc >= NB_OWN_ARGS && strcmp(argv[1], "secondary") == 0;
}

char **
proc_start_secondary(char **argv, unsigned int lcore)
{
	void *addr = (void *)(uintptr_t)strtoull(argv[4], NULL, 16);
	size_t length = strtoull(argv[5], NULL, 16);
	int fd = (int)strtol(argv[6], NULL, 10);
	int ret;

	is_huge = strcmp(argv[3], "huge") == 0;
	snprintf(prefix, sizeof(prefix), "%s", argv[2]);
	ret = start_eal(argv[0], lcore, lcore, true);
	if (rte_eal_process_type() != RTE_PROC_SECONDARY || (is_huge && ret < 0))
		return NULL;
	if (!is_huge) {
		if (mmap(addr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
				addr)
			return NULL;
		RTE_PER_LCORE(_lcore_id) = lcore;
	}
	return argv + NB_OWN_ARGS;
}
