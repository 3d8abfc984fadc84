/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The floor of dropin_write_lat: two processes, each on a CPU, that write 2 bytes to the private
 * memory of each other in turn, by process_vm_writev(2) alone. Prints the round trip in ns, the
 * best of some rounds. Exits with 77 where the call or two CPUs are not permitted.
 */

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define TRIPS  20000u
#define ROUNDS 10

/* At the same address in both processes; each has its own. */
static uint16_t seen; /* atomic */

static void
give(pid_t peer, uint16_t value)
{
	const struct iovec from = {.iov_base = &value, .iov_len = sizeof(value)};
	const struct iovec to = {.iov_base = &seen, .iov_len = sizeof(seen)};

	if (process_vm_writev(peer, &from, 1, &to, 1, 0) != (ssize_t)sizeof(value))
		_exit(77);
}

static void
wait_for(uint16_t value)
{
	uint32_t i;

	for (i = 1; __atomic_load_n(&seen, __ATOMIC_ACQUIRE) != value; i++) {
		if (i % (1u << 20) == 0 && waitpid(-1, NULL, WNOHANG) > 0)
			_exit(77); /* the child could not */
	}
}

/* One of the CPUs that the process may use. */
static void
use_cpu(int index)
{
	cpu_set_t may, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(may), &may) != 0 || CPU_COUNT(&may) < 2)
		_exit(77);
	for (cpu = 0; !CPU_ISSET(cpu, &may) || index-- != 0; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		_exit(77);
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int
main(void)
{
	pid_t parent = getpid(), child;
	uint64_t best = UINT64_MAX, start;
	unsigned int i, round;
	int status;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	child = fork();
	if (child == -1)
		return 77;
	use_cpu(child == 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		for (i = 1; i <= ROUNDS * TRIPS; i++) {
			wait_for((uint16_t)i);
			give(parent, (uint16_t)i);
		}
		return 0;
	}
	for (i = 1, round = 0; round < ROUNDS; round++) {
		start = now_ns();
		for (; i <= (round + 1) * TRIPS; i++) {
			give(child, (uint16_t)i);
			wait_for((uint16_t)i);
		}
		start = now_ns() - start;
		best = start < best ? start : best;
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		return 77;
	printf("%.0f\n", (double)best / TRIPS);
	return 0;
}
