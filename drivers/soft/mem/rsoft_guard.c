/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The signal handler, and the copy by the kernel; see rsoft_guard.h.
 *
 * Invariant: guard.before is written under guard_lock while the handler is not installed, and read
 * only by the handler.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv(), REG_RIP */
#endif
#include <assert.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <rte_common.h>

#include "rsoft_guard.h"

#define CHUNK 4096u

/* Copy a piece through a buffer, to find which side fails. */
static struct rsoft_guarded
copy_chunk(uint8_t *to, const uint8_t *from, size_t length)
{
	uint8_t buf[CHUNK];
	struct iovec own = {.iov_base = buf, .iov_len = length};
	struct iovec other = {.iov_base = (void *)(uintptr_t)from, .iov_len = length};
	struct rsoft_guarded end = {RSOFT_SIDE_NONE, 0};
	ssize_t n;

	n = process_vm_readv(getpid(), &own, 1, &other, 1, 0);
	if (n != (ssize_t)length) {
		end.side = RSOFT_SIDE_FROM;
		end.addr = (uintptr_t)from + (size_t)RTE_MAX(n, 0);
		return end;
	}
	other.iov_base = to;
	n = process_vm_writev(getpid(), &own, 1, &other, 1, 0);
	if (n != (ssize_t)length) {
		end.side = RSOFT_SIDE_TO;
		end.addr = (uintptr_t)to + (size_t)RTE_MAX(n, 0);
	}
	return end;
}

struct rsoft_guarded
rsoft_guard_copy_slow(void *to, const void *from, size_t length)
{
	bool is_backward = (uintptr_t)to - (uintptr_t)from < length;
	struct rsoft_guarded end = {RSOFT_SIDE_NONE, 0};
	size_t n, at, done = 0;

	for (; done < length && end.side == RSOFT_SIDE_NONE; done += n) {
		n = RTE_MIN(length - done, (size_t)CHUNK);
		at = is_backward ? length - done - n : done;
		end = copy_chunk((uint8_t *)to + at, (const uint8_t *)from + at, n);
	}
	return end;
}

bool
rsoft_guard_has_slow(void)
{
	uint64_t from = 1, to = 0;

	return rsoft_guard_copy_slow(&to, &from, sizeof(to)).side == RSOFT_SIDE_NONE && to == from;
}

#ifdef RSOFT_GUARD_HAS_FAST

#define NB_SIGNALS 2
/* Runs in a signal handler: no instrumentation. */
#define GUARD_PLAIN __attribute__((no_sanitize("address", "undefined", "thread")))

/* Labels in the code, not data. */
extern const uint8_t rsoft_guard_begin[], rsoft_guard_end[], rsoft_guard_stop[];

/* Symbols that the linker defines for the section. */
extern const struct rsoft_guard_entry __start_rsoft_guard_table[]
		__attribute__((visibility("hidden")));
extern const struct rsoft_guard_entry __stop_rsoft_guard_table[]
		__attribute__((visibility("hidden")));

static const int guard_signals[NB_SIGNALS] = {SIGSEGV, SIGBUS};

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
/* A child of fork() inherits the handler, so it must keep this variable (env/rmem_env.h). */
static __attribute__((section("rmem_kept"))) struct {
	unsigned int nb_users;
	bool is_installed;
	struct sigaction before[NB_SIGNALS];
} guard;

/* No previous handler: apply the default action of the signal. */
static void
guard_default(int sig, const siginfo_t *info)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	sigaction(sig, &action, NULL);
	/* A fault raises its signal again when the instruction is repeated; a signal that was sent
	 * must be raised here. */
	if (info->si_code <= 0)
		raise(sig);
}

/* Pass a signal that is not ours to the previous handler. */
static void
guard_chain(int sig, siginfo_t *info, void *context)
{
	struct sigaction *before = &guard.before[sig == SIGBUS];
	sigset_t mask = before->sa_mask;

	if (before->sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN) {
		guard_default(sig, info);
		return;
	}
	if ((before->sa_flags & SA_NODEFER) == 0)
		sigaddset(&mask, sig);
	pthread_sigmask(SIG_BLOCK, &mask, NULL); /* until this handler returns */
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(sig, info, context);
	else
		before->sa_handler(sig);
}

#ifdef __x86_64__

/* CPUID leaf 7: bits of EBX and EDX, and of EAX of subleaf 1. */
#define CPUID_ERMS     (1u << 9)
#define CPUID_FSRM     (1u << 4)
#define CPUID_AVX_VNNI (1u << 4)

#define PAGE_FAULT_WRITE 2  /* bit of the processor's error code */
#define LOG2_SPACE       47 /* bits of a canonical user address */

/* The same as above. */
extern const uint8_t rsoft_guard_avx_end[], rsoft_guard_stop_avx[], rsoft_guard_abort[];

/* Read by the assembly functions; kept in a child of fork(). */
__attribute__((section("rmem_kept"))) struct rsoft_guard_choice rsoft_guard_choice = {
		.copy = rsoft_guard_x86_copy_sse2};

static_assert(offsetof(struct rsoft_guard_choice, rep_min) == 8 &&
				offsetof(struct rsoft_guard_choice, rep_min_skewed) == 16,
		"as in rsoft_guard_x86_64.S");

/* Family of an AMD processor: 25 (Zen 3, Zen 4) or 26 (Zen 5); 0: any other processor. */
static unsigned int
guard_amd_family(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (!__builtin_cpu_is("amd") || __get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0)
		return 0;
	return (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
}

/*
 * Choose the lengths from which `rep movsb` is as fast as vectors in the L2 cache
 * (doc/performance.md): never without ERMS, and shorter lengths with FSRM. On family 25 it is
 * slower in the caches and faster in memory, and 16 times slower if source and destination differ
 * in alignment.
 */
static void
guard_choose_rep(uint32_t features_b, uint32_t features_d, unsigned int amd_family)
{
	struct rsoft_guard_choice *choice = &rsoft_guard_choice;

	choice->rep_min = choice->rep_min_skewed = SIZE_MAX;
	if ((features_b & CPUID_ERMS) == 0)
		return;
	choice->rep_min = (features_d & CPUID_FSRM) ? 4096 : 8192;
	if (amd_family == 25)
		choice->rep_min = 16384;
	else
		choice->rep_min_skewed = choice->rep_min;
}

/*
 * Don't use 64-byte vectors on Intel processors without AVX-VNNI, where they lower the frequency.
 * __builtin_cpu_supports() is false if the kernel does not save the registers.
 */
RTE_INIT(guard_choose)
{
	uint32_t eax, ebx, ecx, edx, more = 0, unused;
	unsigned int amd_family;

	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0)
		return;
	if (eax >= 1)
		__get_cpuid_count(7, 1, &more, &unused, &unused, &unused);
	amd_family = guard_amd_family();
	guard_choose_rep(ebx, edx, amd_family);
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
			(amd_family != 0 || (more & CPUID_AVX_VNNI)))
		rsoft_guard_choice.copy = rsoft_guard_x86_copy_avx512;
	else
		rsoft_guard_choice.copy = rsoft_guard_x86_copy_avx2;
}

/* The address of the instruction that faulted. */
GUARD_PLAIN static uintptr_t
guard_pc(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

GUARD_PLAIN static void
guard_set_pc(ucontext_t *context, uintptr_t pc)
{
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
}

/*
 * Whether a fault is in an assembly function. The kernel has moved one in a restartable sequence to
 * the end of that sequence.
 */
GUARD_PLAIN static bool
guard_has(uintptr_t at)
{
	return (at >= (uintptr_t)rsoft_guard_begin && at < (uintptr_t)rsoft_guard_end) ||
			at == (uintptr_t)rsoft_guard_abort;
}

/* Make an assembly function return the side and the address. */
GUARD_PLAIN static void
guard_return(ucontext_t *context, const siginfo_t *info)
{
	greg_t *regs = context->uc_mcontext.gregs;
	bool is_write = (regs[REG_ERR] & PAGE_FAULT_WRITE) != 0;

	/* General protection fault: the address is not canonical, and is not reported. */
	if (info->si_code == SI_KERNEL)
		is_write = ((uintptr_t)regs[REG_RDI] >> LOG2_SPACE) != 0;
	regs[REG_RAX] = is_write ? RSOFT_SIDE_TO : RSOFT_SIDE_FROM;
	regs[REG_RDX] = (greg_t)(uintptr_t)info->si_addr;
	if ((uintptr_t)regs[REG_RIP] < (uintptr_t)rsoft_guard_avx_end)
		regs[REG_RIP] = (greg_t)(uintptr_t)rsoft_guard_stop_avx;
	else
		regs[REG_RIP] = (greg_t)(uintptr_t)rsoft_guard_stop;
}

#else

/* Start of the functions that access a destination alone. */
extern const uint8_t rsoft_guard_words[];

#define INSTRUCTION_LOADS (1u << 22) /* of the loads and stores in rsoft_guard_aarch64.S */

/* The address of the instruction that faulted. */
GUARD_PLAIN static uintptr_t
guard_pc(const ucontext_t *context)
{
	return context->uc_mcontext.pc;
}

GUARD_PLAIN static void
guard_set_pc(ucontext_t *context, uintptr_t pc)
{
	context->uc_mcontext.pc = pc;
}

GUARD_PLAIN static bool
guard_has(uintptr_t at)
{
	return at >= (uintptr_t)rsoft_guard_begin && at < (uintptr_t)rsoft_guard_end;
}

/* Make an assembly function return the side and the address. */
GUARD_PLAIN static void
guard_return(ucontext_t *context, const siginfo_t *info)
{
	uintptr_t pc = guard_pc(context);
	bool is_load = pc < (uintptr_t)rsoft_guard_words &&
			(*(const uint32_t *)pc & INSTRUCTION_LOADS) != 0;

	context->uc_mcontext.regs[0] = is_load ? RSOFT_SIDE_FROM : RSOFT_SIDE_TO;
	context->uc_mcontext.regs[1] = (uintptr_t)info->si_addr;
	guard_set_pc(context, (uintptr_t)rsoft_guard_stop);
}

#endif

/* Address at which to continue after a fault at an instruction; 0: not in the table. */
GUARD_PLAIN static uintptr_t
guard_resume(uintptr_t at)
{
	const struct rsoft_guard_entry *entry = __start_rsoft_guard_table;
	size_t left = ((uintptr_t)__stop_rsoft_guard_table - (uintptr_t)__start_rsoft_guard_table) /
			sizeof(*entry);

	for (; left != 0; left--, entry++) {
		if (at >= (uintptr_t)&entry->begin + (uintptr_t)(intptr_t)entry->begin &&
				at < (uintptr_t)&entry->end + (uintptr_t)(intptr_t)entry->end)
			return (uintptr_t)&entry->resume + (uintptr_t)(intptr_t)entry->resume;
	}
	return 0;
}

GUARD_PLAIN static void
guard_handler(int sig, siginfo_t *info, void *context)
{
	uintptr_t resume, at = guard_pc(context);

	if (info->si_code <= 0) {
		guard_chain(sig, info, context);
		return;
	}
	if (guard_has(at)) {
		guard_return(context, info);
		return;
	}
	resume = guard_resume(at);
	if (resume != 0)
		guard_set_pc(context, resume);
	else
		guard_chain(sig, info, context);
}

/* Whether our handler is the installed one. */
static bool
guard_is_first(void)
{
	struct sigaction now;
	unsigned int i;

	for (i = 0; i < NB_SIGNALS; i++) {
		if (sigaction(guard_signals[i], NULL, &now) != 0 ||
				(now.sa_flags & SA_SIGINFO) == 0 ||
				now.sa_sigaction != guard_handler)
			return false;
	}
	return true;
}

static void
guard_install(void)
{
	struct sigaction action;
	unsigned int i;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = guard_handler;
	/* Block no signals: guard_chain() sets the mask of the previous handler. */
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	sigemptyset(&action.sa_mask);
	for (i = 0; i < NB_SIGNALS; i++) {
		/* Store the previous handler before ours is installed, which reads it. */
		sigaction(guard_signals[i], NULL, &guard.before[i]);
		sigaction(guard_signals[i], &action, NULL);
	}
	guard.is_installed = true;
}

bool
rsoft_guard_has_fast(void)
{
	return true;
}

bool
rsoft_guard_get(void)
{
	bool is_there;

	pthread_mutex_lock(&guard_lock);
	if (!guard.is_installed)
		guard_install();
	is_there = guard_is_first();
	if (is_there)
		guard.nb_users++;
	pthread_mutex_unlock(&guard_lock);
	return is_there;
}

void
rsoft_guard_put(void)
{
	unsigned int i;

	pthread_mutex_lock(&guard_lock);
	/* A handler installed later may call this one; then it must stay. */
	if (--guard.nb_users == 0 && guard_is_first()) {
		for (i = 0; i < NB_SIGNALS; i++)
			sigaction(guard_signals[i], &guard.before[i], NULL);
		guard.is_installed = false;
	}
	pthread_mutex_unlock(&guard_lock);
}

void
rsoft_guard_unblock(void)
{
	sigset_t set;
	unsigned int i;

	sigemptyset(&set);
	for (i = 0; i < NB_SIGNALS; i++)
		sigaddset(&set, guard_signals[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

#else

bool
rsoft_guard_has_fast(void)
{
	return false;
}

bool
rsoft_guard_get(void)
{
	return false;
}

void
rsoft_guard_put(void)
{
}

void
rsoft_guard_unblock(void)
{
}

#endif
