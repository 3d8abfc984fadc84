/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The environment of the class in a program without DPDK: EAL, without hugepages, devices and
 * files. EAL pins the thread that starts it, whose affinity is restored. Other threads are
 * registered with their first post or poll, and unregistered when they end. The memory of EAL is
 * shared with a child of fork(), which must not touch it: in the child there is no device, and no
 * object is of rmem.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "ribv.h"

#define MEMORY "256" /* MB; anonymous, and used as needed */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int start_errno;
static pthread_key_t thread_key;
static char log_line[256];

static void
thread_end(void *arg)
{
	RTE_SET_USED(arg);
	if (start_errno == 0)
		rte_thread_unregister();
}

static void
forked(void)
{
	start_errno = ENODEV;
	ribv_leave_all();
}

static int
first_cpu(const cpu_set_t *cpus)
{
	int cpu = 0;

	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, cpus))
		cpu++;
	return cpu;
}

/* EAL makes it also if it needs none. One in /tmp would be in the way of other users. */
static void
runtime_dir_remove(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s", rte_eal_get_runtime_dir());
	if (rmdir(path) != 0 || strncmp(path, "/tmp/", 5) != 0)
		return;
	*strrchr(path, '/') = '\0';
	rmdir(path); /* "dpdk"; not if it has others */
}

static void
start(void)
{
	const char *level = getenv("RMEM_IBV_LOG");
	char lcores[32], log[64], prefix[64];
	cpu_set_t cpus;
	char *argv[] = {(char[]){"rmem"}, (char[]){"--no-huge"}, (char[]){"-m"}, (char[]){MEMORY},
			(char[]){"--no-pci"}, (char[]){"--no-telemetry"}, (char[]){"--no-shconf"},
			(char[]){"--lcores"}, lcores, log, prefix};

	CPU_ZERO(&cpus);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	snprintf(lcores, sizeof(lcores), "0@%d", first_cpu(&cpus));
	snprintf(prefix, sizeof(prefix), "--file-prefix=rmem_ibv_%d", getpid());
	/* A program that provokes errors sees its errno, and no line. */
	snprintf(log, sizeof(log), "--log-level=*:%s", level != NULL ? level : "emergency");
	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		start_errno = ENODEV;
	else
		runtime_dir_remove();
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (start_errno == 0)
		start_errno = pthread_key_create(&thread_key, thread_end);
	pthread_atfork(NULL, NULL, forked);
}

int
ribv_env_start(void)
{
	pthread_once(&once, start);
	return start_errno;
}

bool
ribv_env_attach(void)
{
	if (likely(rte_lcore_id() != LCORE_ID_ANY))
		return true;
	if (rte_thread_register() != 0)
		return false;
	pthread_setspecific(thread_key, &thread_key);
	return true;
}

void
ribv_env_block(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

void
ribv_env_unblock(const sigset_t *old)
{
	const struct timespec now = {0};
	sigset_t size;

	/* Memory of EAL over RLIMIT_FSIZE, in place of which it takes other memory. */
	sigemptyset(&size);
	sigaddset(&size, SIGXFSZ);
	if (!sigismember(old, SIGXFSZ))
		sigtimedwait(&size, NULL, &now);
	pthread_sigmask(SIG_SETMASK, old, NULL);
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
	FILE *stream;

	if (getenv("RMEM_IBV_LOG") != NULL)
		return;
	/* Never closed: a thread of the device may be about to write. */
	stream = fopencookie(NULL, "w", functions);
	if (stream == NULL)
		return;
	rte_openlog_stream(stream);
	rte_log_set_level_pattern("*", RTE_LOG_ERR);
}

const char *
ribv_env_log_kept(void)
{
	if (getenv("RMEM_IBV_LOG") == NULL) {
		rte_log_set_level_pattern("*", RTE_LOG_EMERG);
		rte_openlog_stream(NULL);
	}
	return log_line;
}
