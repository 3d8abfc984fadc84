/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The clock, random numbers, features of the processor, strings, rings; and traces, disabled. */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <rte_common.h>
#include <rte_cpuflags.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_random.h>
#include <rte_ring.h>
#include <rte_string_fns.h>
#include <rte_trace_point_register.h>

#define MEASURE_NS 5000000u /* of the TSC: exact to 1 in 10000 */

/* A time, by both clocks. */
struct instant {
	uint64_t tsc;
	uint64_t ns;
};

static struct instant loaded; /* the library was */
static uint64_t tsc_hz;       /* 0: not measured; atomic */

static struct instant
now(void)
{
	struct timespec ts;
	struct instant at;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	at.tsc = rte_rdtsc();
	at.ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return at;
}

RTE_INIT(rmem_env_init)
{
	loaded = now();
}

uint64_t
rte_get_tsc_hz(void)
{
	uint64_t hz = __atomic_load_n(&tsc_hz, __ATOMIC_RELAXED);
	struct instant at;

	if (hz != 0)
		return hz;
	do
		at = now();
	while (at.ns - loaded.ns < MEASURE_NS);
	hz = (uint64_t)((double)(at.tsc - loaded.tsc) * NS_PER_S / (double)(at.ns - loaded.ns));
	__atomic_store_n(&tsc_hz, hz, __ATOMIC_RELAXED);
	return hz;
}

uint64_t
rte_rand(void)
{
	uint64_t value = 0;

	/* Without the system call, a number is one that was not returned before. */
	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value))
		value = rte_rdtsc() * UINT64_C(0x9e3779b97f4a7c15);
	return value;
}

#ifdef RTE_ARCH_X86
int
rte_cpu_get_flag_enabled(enum rte_cpu_flag_t feature)
{
	switch (feature) {
	case RTE_CPUFLAG_PCLMULQDQ:
		return __builtin_cpu_supports("pclmul") != 0;
	case RTE_CPUFLAG_SSE4_1:
		return __builtin_cpu_supports("sse4.1") != 0;
	default:
		return -ENOENT;
	}
}
#endif

enum rte_proc_type_t
rte_eal_process_type(void)
{
	return RTE_PROC_PRIMARY;
}

const char *
rte_strerror(int errnum)
{
	return strerror(errnum);
}

ssize_t
rte_strscpy(char *dst, const char *src, size_t dsize)
{
	size_t length = strnlen(src, dsize);

	if (dsize == 0)
		return -E2BIG;
	if (length == dsize) {
		memcpy(dst, src, dsize - 1);
		dst[dsize - 1] = '\0';
		return -E2BIG;
	}
	memcpy(dst, src, length + 1);
	return (ssize_t)length;
}

#ifdef RTE_USE_LIBBSD
size_t
strlcpy(char *dst, const char *src, size_t size)
{
	return (size_t)snprintf(dst, size, "%s", src);
}
#endif

int
rte_ring_init(struct rte_ring *r, const char *name, unsigned int count, unsigned int flags)
{
	const unsigned int single = RING_F_SP_ENQ | RING_F_SC_DEQ;

	/* One producer and one consumer at a time, and any capacity. */
	if (flags != (single | RING_F_EXACT_SZ) || count == 0 || count >= RTE_RING_SZ_MASK)
		return -EINVAL;
	memset(r, 0, sizeof(*r));
	if (rte_strscpy(r->name, name, sizeof(r->name)) < 0)
		return -ENAMETOOLONG;
	r->flags = (int)flags;
	r->prod.sync_type = RTE_RING_SYNC_ST;
	r->cons.sync_type = RTE_RING_SYNC_ST;
	r->size = rte_align32pow2(count + 1);
	r->mask = r->size - 1;
	r->capacity = count;
	return 0;
}

/* No trace point is ever enabled: a program without EAL has no option for it. */

RTE_DEFINE_PER_LCORE(void *, trace_mem);
RTE_DEFINE_PER_LCORE(volatile int, trace_point_sz);

int
__rte_trace_point_register(rte_trace_point_t *trace, const char *name, void (*register_fn)(void))
{
	RTE_SET_USED(trace);
	RTE_SET_USED(name);
	RTE_SET_USED(register_fn);
	return 0;
}

void
__rte_trace_point_emit_field(size_t sz, const char *field, const char *type)
{
	RTE_SET_USED(sz);
	RTE_SET_USED(field);
	RTE_SET_USED(type);
}

void
__rte_trace_mem_per_thread_alloc(void)
{
}
