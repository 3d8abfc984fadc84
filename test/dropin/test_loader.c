/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * When the core is loaded: not by a child of vfork(), whose memory is that of its parent; while the
 * constructor of another library opens a file of the device, too.
 * Argument: a library with that constructor, early.c.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "own_qp.h"

#define FILE_OF_DEVICE "/sys/class/infiniband/soft0/node_type"

void run_early(void);

static pthread_t thread; /* its first call of verbs loads the core */
static pid_t caller;     /* its id; atomic */

static void *
call_verbs(void *arg)
{
	__atomic_store_n(&caller, gettid(), __ATOMIC_RELEASE);
	ibv_close_device(open_device("soft0"));
	return arg;
}

/* The constructor: this thread has the lock of the loader, for which the other one waits. */
void
run_early(void)
{
	pid_t tid;
	int fd;

	HOLDS(pthread_create(&thread, NULL, call_verbs, NULL) == 0);
	while ((tid = __atomic_load_n(&caller, __ATOMIC_ACQUIRE)) == 0 || !is_asleep(tid))
		sched_yield();
	fd = open(FILE_OF_DEVICE, O_RDONLY);
	HOLDS(fd >= 0 && close(fd) == 0);
}

static bool
is_core_loaded(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	bool is_loaded = false;
	char line[4096];

	HOLDS(maps != NULL);
	while (fgets(line, sizeof(line), maps) != NULL)
		is_loaded |= strstr(line, "librmem_ibv_core") != NULL;
	fclose(maps);
	return is_loaded;
}

static int
open_files(void *errors)
{
	int *err = errors;

	err[0] = open(FILE_OF_DEVICE, O_RDONLY) < 0 ? errno : 0;
	err[1] = open("/dev/infiniband/rdma_cm", O_RDWR) < 0 ? errno : 0;
	err[2] = chdir("/sys/class/infiniband/soft0") < 0 ? errno : 0;
	return 0;
}

/* Open files in a child that shares the memory; return what the errnos are. */
static void
open_in_child(int errors[3])
{
	static uint8_t stack[1 << 16] __attribute__((aligned(16)));
	pid_t pid = clone(open_files, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
			errors);

	wait_child(pid);
}

static void
child_that_shares_memory_loads_no_core(void)
{
	int errors[3];

	open_in_child(errors);
	HOLDS(errors[0] == ENOENT && errors[1] == ENOENT && errors[2] == ENOENT);
	HOLDS(!is_core_loaded());
}

static void
constructor_opens_a_file_while_the_core_is_loaded(const char *library)
{
	HOLDS(dlopen(library, RTLD_NOW) != NULL && caller != 0);
	HOLDS(pthread_join(thread, NULL) == 0 && is_core_loaded());
}

/* The files are those of the parent, and it has no channel that it did not open. */
static void
child_that_shares_memory_finds_files_of_a_loaded_core(void)
{
	int errors[3];

	open_in_child(errors);
	HOLDS(errors[0] == 0 && errors[1] == ENXIO && errors[2] == 0);
}

int
main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	child_that_shares_memory_loads_no_core();
	constructor_opens_a_file_while_the_core_is_loaded(argv[1]);
	child_that_shares_memory_finds_files_of_a_loaded_core();
	return 0;
}
