/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Copies that another process can end; see rsoft_gate.h. */

#include <assert.h>
#include <stddef.h>

#include <rte_common.h>

#include "rsoft_gate.h"
#include "rsoft_guard.h"

#define GATE_TAIL  64u          /* bytes stored last */
#define GATE_PIECE (64u * 1024) /* bytes of a sequence, which may be repeated */

#if defined(__x86_64__) && defined(__linux__) && !defined(__ILP32__)

/* Offsets in struct rseq, which the C library may not declare. */
#define RSEQ_CPU_ID 4
#define RSEQ_CS     8

/* Results of the assembly functions besides those of rsoft_guard.h: rsoft_guard_x86_64.S. */
#define GATE_RESTART 4

typedef struct rsoft_guarded gate_copy_t(
		void *to, const void *from, size_t length, const struct rsoft_gate *gate);

/* In rsoft_guard_x86_64.S: one for all lengths, and those that store the last bytes. */
gate_copy_t rsoft_guard_x86_gated;
gate_copy_t rsoft_guard_x86_gated_64, rsoft_guard_x86_gated_line, rsoft_guard_x86_gated_16,
		rsoft_guard_x86_gated_8, rsoft_guard_x86_gated_3;

static_assert(offsetof(struct rsoft_gate, open_value) == 8 &&
				offsetof(struct rsoft_gate, alive) == 16 &&
				offsetof(struct rsoft_gate, alive_value) == 24 &&
				offsetof(struct rsoft_gate, rseq) == 32,
		"as in rsoft_guard_x86_64.S");

/* Defined by the C library from glibc 2.35 on. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

bool
rsoft_gate_begin(struct rsoft_gate *gate)
{
	uint8_t *thread;

	if (&__rseq_size == NULL || &__rseq_offset == NULL || __rseq_size == 0)
		return false;
	__asm__("movq %%fs:0, %0" : "=r"(thread));
	gate->rseq = thread + __rseq_offset;
	/* Negative: the kernel does not know this thread. */
	return *(const volatile int32_t *)(thread + __rseq_offset + RSEQ_CPU_ID) >= 0;
}

void
rsoft_gate_end(const struct rsoft_gate *gate)
{
	/* The kernel reads the descriptor that this names: it must not be unloaded before. */
	*(volatile uint64_t *)((uint8_t *)gate->rseq + RSEQ_CS) = 0;
}

/* The function that stores the last bytes. */
static gate_copy_t *
gate_tail(uint64_t length)
{
	if (length >= 16)
		return length == 64 && rsoft_guard_choice.copy == rsoft_guard_x86_copy_avx512
				? rsoft_guard_x86_gated_line
				: rsoft_guard_x86_gated_64;
	if (length >= 8)
		return rsoft_guard_x86_gated_16;
	return length >= 4 ? rsoft_guard_x86_gated_8 : rsoft_guard_x86_gated_3;
}

static bool
gate_run(gate_copy_t *copy, const struct rsoft_gate *gate, void *to, const void *from,
		uint64_t length)
{
	uint64_t result;

	do
		result = copy(to, from, length, gate).side;
	while (unlikely(result == GATE_RESTART));
	return likely(result == RSOFT_SIDE_NONE);
}

uint64_t
rsoft_gate_copy(const struct rsoft_gate *gate, void *to, const void *from, uint64_t length)
{
	uint64_t done = 0, n;

	rsoft_guard_announce(to, from, length);
	for (; length - done > GATE_TAIL; done += n) {
		n = RTE_MIN(length - done - GATE_TAIL, (uint64_t)GATE_PIECE);
		if (!gate_run(rsoft_guard_x86_gated, gate, (uint8_t *)to + done,
				    (const uint8_t *)from + done, n))
			return done;
	}
	n = length - done;
	if (n != 0 &&
			!gate_run(gate_tail(n), gate, (uint8_t *)to + done,
					(const uint8_t *)from + done, n))
		return done;
	return length;
}

#else

bool
rsoft_gate_begin(struct rsoft_gate *gate)
{
	RTE_SET_USED(gate);
	return false;
}

void
rsoft_gate_end(const struct rsoft_gate *gate)
{
	RTE_SET_USED(gate);
}

uint64_t
rsoft_gate_copy(const struct rsoft_gate *gate, void *to, const void *from, uint64_t length)
{
	RTE_SET_USED(gate);
	RTE_SET_USED(to);
	RTE_SET_USED(from);
	RTE_SET_USED(length);
	return 0;
}

#endif
