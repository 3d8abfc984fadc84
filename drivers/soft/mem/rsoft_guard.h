/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Copies and atomics that report unmapped memory instead of raising a signal.
 *
 * Fast functions, on x86-64 and arm64: a handler of SIGSEGV and SIGBUS. If the faulting instruction
 * is in one of a few assembly functions, the handler makes that function return. If it is in a
 * range of a table (rsoft_guard_table, like the exception table of the kernel), execution continues
 * at the address given there. A successful access has no overhead. All other signals are passed to
 * the previous handler, with its mask and flags. The handler is installed while there are
 * references to it (rsoft_guard_get), and then removed, unless a later handler may call it.
 *
 * All memory of keys is accessed with these functions. Without the handler a fault raises its
 * signal.
 *
 * Slow functions, on all processors: the kernel copies, by process_vm_readv() and
 * process_vm_writev() on this process. There are no slow atomics.
 */

#ifndef RSOFT_GUARD_H
#define RSOFT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

/* The side of a copy whose memory is not mapped. */
enum rsoft_side {
	RSOFT_SIDE_NONE = 0, /* the copy is complete */
	RSOFT_SIDE_TO = 1,
	RSOFT_SIDE_FROM = 2,
};

/* Result of a guarded access, in two registers, as the assembly functions return it. */
struct rsoft_guarded {
	uint64_t side;  /* enum rsoft_side */
	uintptr_t addr; /* unless NONE: the unmapped address */
};

/* Whether this processor has the fast functions, and whether the kernel permits the slow
 * functions. */
bool rsoft_guard_has_fast(void);
bool rsoft_guard_has_slow(void);

/*
 * Take a reference to the handler; the first one installs it. False, without a reference, if it
 * can't be installed, or another handler was installed after it; then only the slow functions work.
 */
bool rsoft_guard_get(void);
void rsoft_guard_put(void);

/*
 * Unblock SIGSEGV and SIGBUS in the calling thread. The kernel kills a process if an instruction
 * raises a signal that its thread blocks.
 */
void rsoft_guard_unblock(void);

/* Copy between ranges that may overlap. Bytes copied before a failure stay copied. */
struct rsoft_guarded rsoft_guard_copy_slow(void *to, const void *from, size_t length);

/*
 * Report accesses by assembly to the sanitizers, except accesses to on-demand pages, which may be
 * replaced at any time. Sanitizers have no shadow memory beyond 47 bits.
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

static inline void
rsoft_guard_announce_load(const void *from, size_t length)
{
	if (RSOFT_GUARD_HAS_SHADOW(from, from))
		__asan_loadN((void *)(uintptr_t)from, (long)length);
}
#elif defined(__SANITIZE_THREAD__)
void __tsan_read_range(void *addr, long length);
void __tsan_write_range(void *addr, long length);
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);

/* Copies of this thread may race with others; the data is then discarded. */
#define rsoft_guard_ignore_begin() AnnotateIgnoreReadsBegin(__FILE__, __LINE__)
#define rsoft_guard_ignore_end()   AnnotateIgnoreReadsEnd(__FILE__, __LINE__)

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

static inline void
rsoft_guard_announce_load(const void *from, size_t length)
{
	if (RSOFT_GUARD_HAS_SHADOW(from, from))
		__tsan_read_range((void *)(uintptr_t)from, (long)length);
}
#else
#define rsoft_guard_announce(to, from, length)
#define rsoft_guard_announce_atomic(word)
#define rsoft_guard_announce_load(from, length)
#endif

#ifndef rsoft_guard_ignore_begin
#define rsoft_guard_ignore_begin()
#define rsoft_guard_ignore_end()
#endif

/* A range of instructions that may fault, and where to continue; each value is relative to its
 * field. */
struct rsoft_guard_entry {
	int32_t begin;
	int32_t end;
	int32_t resume;
};

/* Table entry: after a fault between the labels 1 and 2, execution continues at `gone`. */
#define RSOFT_GUARD_ENTRY                                                                          \
	"	.pushsection rsoft_guard_table, \"a\"\n"                                                 \
	"	.balign 4\n"                                                                             \
	"	.long 1b - ., 2b - ., %l[gone] - .\n"                                                    \
	"	.popsection\n"

/*
 * For each processor: a copy function, and the instructions of rsoft_guard_copy64(),
 * rsoft_guard_store() and rsoft_guard_move(), with the registers that they change. Operand 0 is the
 * destination, operand 1 the source or the value.
 */
#if defined(__x86_64__) && defined(__linux__)
#define RSOFT_GUARD_HAS_FAST

/* In rsoft_guard_x86_64.S. */
struct rsoft_guarded rsoft_guard_x86_copy_sse2(void *to, const void *from, size_t length);
struct rsoft_guarded rsoft_guard_x86_copy_avx2(void *to, const void *from, size_t length);
struct rsoft_guarded rsoft_guard_x86_copy_avx512(void *to, const void *from, size_t length);

/* The fast copy function for this processor; written at process start, and by tests. */
struct rsoft_guard_choice {
	struct rsoft_guarded (*copy)(void *to, const void *from, size_t length);
	/* Lengths from which AVX copies use `rep movsb`; at least 512. */
	uint64_t rep_min;
	uint64_t rep_min_skewed; /* for addresses that differ modulo 64 */
};

extern struct rsoft_guard_choice rsoft_guard_choice __attribute__((visibility("hidden")));

#define rsoft_guard_copy rsoft_guard_choice.copy

#ifdef __AVX__
#define RSOFT_GUARD_MOVUPS(from, to) "vmovups " from ", " to "\n"
#else
#define RSOFT_GUARD_MOVUPS(from, to) "movups " from ", " to "\n"
#endif
#define RSOFT_GUARD_LOAD64                                                                         \
	RSOFT_GUARD_MOVUPS("(%1)", "%%xmm0")                                                       \
	RSOFT_GUARD_MOVUPS("16(%1)", "%%xmm1")                                                     \
	RSOFT_GUARD_MOVUPS("32(%1)", "%%xmm2")                                                     \
	RSOFT_GUARD_MOVUPS("48(%1)", "%%xmm3")
#define RSOFT_GUARD_STORE64                                                                        \
	RSOFT_GUARD_MOVUPS("%%xmm0", "(%0)")                                                       \
	RSOFT_GUARD_MOVUPS("%%xmm1", "16(%0)")                                                     \
	RSOFT_GUARD_MOVUPS("%%xmm2", "32(%0)")                                                     \
	RSOFT_GUARD_MOVUPS("%%xmm3", "48(%0)")
#define RSOFT_GUARD_CHANGES64 "xmm0", "xmm1", "xmm2", "xmm3"
#define RSOFT_GUARD_STORE8    "movq %1, (%0)\n"
#define RSOFT_GUARD_MOVE8     "movq (%1), %%rax\nmovq %%rax, (%0)\n"
#define RSOFT_GUARD_CHANGES8  "rax"
#elif defined(__aarch64__) && defined(__linux__)
#define RSOFT_GUARD_HAS_FAST

/* In rsoft_guard_aarch64.S. */
struct rsoft_guarded rsoft_guard_copy(void *to, const void *from, size_t length);

#define RSOFT_GUARD_LOAD64    "ldp q0, q1, [%1]\nldp q2, q3, [%1, #32]\n"
#define RSOFT_GUARD_STORE64   "stp q0, q1, [%0]\nstp q2, q3, [%0, #32]\n"
#define RSOFT_GUARD_CHANGES64 "v0", "v1", "v2", "v3"
#define RSOFT_GUARD_STORE8    "stlr %1, [%0]\n"
#define RSOFT_GUARD_MOVE8     "ldr x9, [%1]\nstlr x9, [%0]\n"
#define RSOFT_GUARD_CHANGES8  "x9"
#endif

#ifdef RSOFT_GUARD_HAS_FAST
/* In the same file as the copy function. */
struct rsoft_guarded rsoft_guard_add(uint64_t *word, uint64_t add, uint64_t *before);
struct rsoft_guarded rsoft_guard_swap(uint64_t *word, uint64_t *before, uint64_t swap);

/* Copy 64 bytes without a call; all are loaded before any is stored. False: a fault. */
static __rte_always_inline bool
rsoft_guard_copy64(void *to, const void *from)
{
	__asm__ goto("1:	" RSOFT_GUARD_LOAD64 RSOFT_GUARD_STORE64 "2:\n" RSOFT_GUARD_ENTRY
			:
			: "r"(to), "r"(from)
			: "memory", RSOFT_GUARD_CHANGES64
			: gone);
	return true;
gone:
	return false;
}

/* Store an aligned word with one store. False: a fault. */
static __rte_always_inline bool
rsoft_guard_store(uint64_t *word, uint64_t value)
{
	__asm__ goto("1:	" RSOFT_GUARD_STORE8 "2:\n" RSOFT_GUARD_ENTRY
			:
			: "r"(word), "r"(value)
			: "memory"
			: gone);
	return true;
gone:
	return false;
}

/* Load 8 bytes, and store them to an aligned word with one store. False: a fault. */
static __rte_always_inline bool
rsoft_guard_move(uint64_t *word, const void *from)
{
	__asm__ goto("1:	" RSOFT_GUARD_MOVE8 "2:\n" RSOFT_GUARD_ENTRY
			:
			: "r"(word), "r"(from)
			: "memory", RSOFT_GUARD_CHANGES8
			: gone);
	return true;
gone:
	return false;
}
#else
/* Without fast functions: rsoft_guard_get() fails, and only the slow functions are used. */
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

static inline bool
rsoft_guard_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	return true;
}

static inline bool
rsoft_guard_move(uint64_t *word, const void *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return rsoft_guard_store(word, value);
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
 * Fast copy between ranges that may overlap. 64 bytes, the most frequent size, need no call; after
 * a fault the copy is repeated by a function that returns the side.
 */
static __rte_always_inline struct rsoft_guarded
rsoft_guard_copy_fast(void *to, const void *from, size_t length)
{
	if (likely(length == 64) && likely(rsoft_guard_copy64(to, from)))
		return (struct rsoft_guarded){RSOFT_SIDE_NONE, 0};
	return rsoft_guard_copy(to, from, length);
}

/* Fast atomics; *before is the previous value of the word. */
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

static inline bool
rsoft_guard_store_fast(uint64_t *word, uint64_t value)
{
	rsoft_guard_announce_atomic(word);
	return rsoft_guard_store(word, value);
}

/* Load 8 bytes, and store them to an aligned word with one store. */
static inline bool
rsoft_guard_move_fast(uint64_t *word, const void *from)
{
	rsoft_guard_announce_load(from, sizeof(*word));
	rsoft_guard_announce_atomic(word);
	return rsoft_guard_move(word, from);
}

#endif /* RSOFT_GUARD_H */
