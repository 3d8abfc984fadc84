/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Copies and atomics that report memory that is not there, instead of raising a signal.
 *
 * The fast way, on x86-64: a handler of SIGSEGV and SIGBUS. It looks whether the instruction that
 * faulted is in one of a few functions in assembly, which it makes return, or in a stretch that a
 * table in the program names (rsoft_guard_table), as the kernel's exception table does; there it
 * continues at the place the table gives. So an access that succeeds costs nothing for being
 * guarded. Every other signal is passed to the handler that was there before, under the mask and
 * flags of that one. The handler is installed while it is held (rsoft_guard_get), and removed
 * afterwards unless another one was installed on top, which then may still call it.
 *
 * All memory of keys is accessed this way, whether the handler is there or not. Without it a
 * fault raises its signal.
 *
 * The slow way, anywhere: the kernel copies, by process_vm_readv() and process_vm_writev() on
 * this process. It has no atomics.
 */

#ifndef RSOFT_GUARD_H
#define RSOFT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

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

/*
 * Unblock both signals in the calling thread. The kernel does not hold back a signal that an
 * instruction raised: it kills the process when the thread blocks it.
 */
void rsoft_guard_unblock(void);

/* Copy between ranges that may overlap. Bytes copied before a failure stay copied. */
struct rsoft_guarded rsoft_guard_copy_slow(void *to, const void *from, size_t length);

/*
 * Report accesses in assembly to the sanitizers: of memory that must be there, as pages on demand
 * may be replaced at any time. Beyond 47 bits a sanitizer has no shadow memory.
 */
#define RSOFT_GUARD_HAS_SHADOW(to, from) ((((uintptr_t)(to) | (uintptr_t)(from)) >> 47) == 0)

#if defined(__SANITIZE_ADDRESS__)
void __asan_loadN(void *addr, long length);
void __asan_storeN(void *addr, long length);

static inline void
rsoft_guard_announce(void *to, const void *from, size_t length)
{
	if (!RSOFT_GUARD_HAS_SHADOW(to, from))
		return;
	__asan_loadN((void *)(uintptr_t)from, (long)length);
	__asan_storeN(to, (long)length);
}

#define rsoft_guard_announce_atomic(word) rsoft_guard_announce(word, word, sizeof(*(word)))
#elif defined(__SANITIZE_THREAD__)
void __tsan_read_range(void *addr, long length);
void __tsan_write_range(void *addr, long length);
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);

static inline void
rsoft_guard_announce(void *to, const void *from, size_t length)
{
	if (!RSOFT_GUARD_HAS_SHADOW(to, from))
		return;
	__tsan_read_range((void *)(uintptr_t)from, (long)length);
	__tsan_write_range(to, (long)length);
}

static inline void
rsoft_guard_announce_atomic(uint64_t *word)
{
	__tsan_acquire(word);
	__tsan_release(word);
}
#else
#define rsoft_guard_announce(to, from, length)
#define rsoft_guard_announce_atomic(word)
#endif

#if defined(__x86_64__) && defined(__linux__)
/* In rsoft_guard_x86_64.S. */
struct rsoft_guarded rsoft_guard_x86_copy(void *to, const void *from, size_t length);
struct rsoft_guarded rsoft_guard_x86_add(uint64_t *word, uint64_t add, uint64_t *before);
struct rsoft_guarded rsoft_guard_x86_swap(uint64_t *word, uint64_t *before, uint64_t swap);

#define rsoft_guard_copy rsoft_guard_x86_copy
#define rsoft_guard_add  rsoft_guard_x86_add
#define rsoft_guard_swap rsoft_guard_x86_swap

/* Instructions that may fault, and where to continue then: distances from each field. */
struct rsoft_guard_entry {
	int32_t begin;
	int32_t end;
	int32_t resume;
};

#ifdef __AVX__
#define RSOFT_GUARD_MOV "vmovups"
#else
#define RSOFT_GUARD_MOV "movups"
#endif

/* Copy 64 bytes, all loaded before any is stored, without a call. False: some are not there. */
static __rte_always_inline bool
rsoft_guard_copy64(void *to, const void *from)
{
	__asm__ goto("1:	" RSOFT_GUARD_MOV " (%1), %%xmm0\n"
		     "	" RSOFT_GUARD_MOV " 16(%1), %%xmm1\n"
		     "	" RSOFT_GUARD_MOV " 32(%1), %%xmm2\n"
		     "	" RSOFT_GUARD_MOV " 48(%1), %%xmm3\n"
		     "	" RSOFT_GUARD_MOV " %%xmm0, (%0)\n"
		     "	" RSOFT_GUARD_MOV " %%xmm1, 16(%0)\n"
		     "	" RSOFT_GUARD_MOV " %%xmm2, 32(%0)\n"
		     "	" RSOFT_GUARD_MOV " %%xmm3, 48(%0)\n"
		     "2:\n"
		     "	.pushsection rsoft_guard_table, \"a\"\n"
		     "	.balign 4\n"
		     "	.long 1b - ., 2b - ., %l[gone] - .\n"
		     "	.popsection\n"
			:
			: "r"(to), "r"(from)
			: "memory", "xmm0", "xmm1", "xmm2", "xmm3"
			: gone);
	return true;
gone:
	return false;
}
#else
/* Nothing is guarded here but by the kernel, and rsoft_guard_get() fails. */
static __rte_always_inline bool
rsoft_guard_copy64(void *to, const void *from)
{
	struct {
		uint64_t word[8];
	} line;

	memcpy(&line, from, sizeof(line));
	memcpy(to, &line, sizeof(line));
	return true;
}

static inline struct rsoft_guarded
rsoft_guard_copy(void *to, const void *from, size_t length)
{
	memmove(to, from, length);
	return (struct rsoft_guarded){RSOFT_SIDE_NONE, 0};
}

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

/*
 * Copy between ranges that may overlap, the fast way. 64 bytes, the size that counts most, take no
 * call; when they are not all there they are tried again, to name the side.
 */
static __rte_always_inline struct rsoft_guarded
rsoft_guard_copy_fast(void *to, const void *from, size_t length)
{
	if (likely(length == 64) && likely(rsoft_guard_copy64(to, from)))
		return (struct rsoft_guarded){RSOFT_SIDE_NONE, 0};
	return rsoft_guard_copy(to, from, length);
}

/* The atomics, the fast way; *before is what the word held, with swap after what it should. */
static inline struct rsoft_guarded
rsoft_guard_add_fast(uint64_t *word, uint64_t add, uint64_t *before)
{
	rsoft_guard_announce_atomic(word);
	return rsoft_guard_add(word, add, before);
}

static inline struct rsoft_guarded
rsoft_guard_swap_fast(uint64_t *word, uint64_t *before, uint64_t swap)
{
	rsoft_guard_announce_atomic(word);
	return rsoft_guard_swap(word, before, swap);
}

#endif /* RSOFT_GUARD_H */
