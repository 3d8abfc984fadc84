/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Copies and atomics that say so when memory is not there, instead of a signal.
 *
 * The fast way, on x86-64: a handler of SIGSEGV and SIGBUS that looks whether one of a few
 * functions in assembly was interrupted, and if so makes it return. Every other signal it
 * hands on to the handler that was there before, under the mask and flags of that one. It is
 * there while somebody holds it (rsoft_guard_get), and taken away afterwards unless another
 * handler was put on top, which then may still call it.
 *
 * The slow way, anywhere: the kernel copies, by process_vm_readv() and process_vm_writev() on
 * this process. It has no atomics.
 */

#ifndef RSOFT_GUARD_H
#define RSOFT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which side of a copy was not there. */
enum rsoft_side {
	RSOFT_SIDE_NONE = 0, /* all is done */
	RSOFT_SIDE_TO = 1,
	RSOFT_SIDE_FROM = 2,
};

/* How a guarded access ended. In two registers, as the assembly returns it. */
struct rsoft_guarded {
	uint64_t side;  /* enum rsoft_side */
	uintptr_t addr; /* unless NONE: what was not there */
};

/* Whether this processor has the fast way; and whether the kernel gives the slow one. */
bool rsoft_guard_has_fast(void);
bool rsoft_guard_has_slow(void);

/*
 * Have the handler there. False when another one stands before it, or it can't be put there:
 * then there is only the slow way, and nothing to put back.
 */
bool rsoft_guard_get(void);
void rsoft_guard_put(void);

/* Copy between ranges that may overlap. What was copied before a failure stays. */
struct rsoft_guarded rsoft_guard_copy_slow(void *to, const void *from, size_t length);

#if defined(__x86_64__) && defined(__linux__)
/* In rsoft_guard_x86_64.S; only while somebody holds the handler. */
struct rsoft_guarded rsoft_guard_x86_copy(void *to, const void *from, size_t length);
struct rsoft_guarded rsoft_guard_x86_add(uint64_t *word, uint64_t add, uint64_t *before);
struct rsoft_guarded rsoft_guard_x86_swap(uint64_t *word, uint64_t *before, uint64_t swap);

#define rsoft_guard_copy rsoft_guard_x86_copy
#define rsoft_guard_add  rsoft_guard_x86_add
#define rsoft_guard_swap rsoft_guard_x86_swap
#else
/* Nobody gets the handler here, so that the fast way is never gone. */
#define rsoft_guard_copy rsoft_guard_copy_slow

static inline struct rsoft_guarded
rsoft_guard_add(uint64_t *word, uint64_t add, uint64_t *before)
{
	*before = __atomic_fetch_add(word, add, __ATOMIC_SEQ_CST);
	return (struct rsoft_guarded){RSOFT_SIDE_NONE, 0};
}

static inline struct rsoft_guarded
rsoft_guard_swap(uint64_t *word, uint64_t *before, uint64_t swap)
{
	__atomic_compare_exchange_n(word, before, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return (struct rsoft_guarded){RSOFT_SIDE_NONE, 0};
}
#endif

#endif /* RSOFT_GUARD_H */
