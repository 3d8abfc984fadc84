/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The work of a call as the number of instructions of this process that it executes, which does not
 * depend on the load of the machine. They are counted by single-stepping. A call can also be
 * interrupted by another one after a number of instructions.
 */

#ifndef STEPS_H
#define STEPS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#ifdef __x86_64__
#define STEPS_CAN_COUNT true

static struct {
	volatile sig_atomic_t is_stepping;
	volatile uint64_t nb;
	uint64_t at; /* with other: call it after this number of instructions */
	void (*other)(void);
} steps;

static inline void
steps_trap(__attribute__((unused)) int sig, __attribute__((unused)) siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const greg_t trap = 0x100;

	if (steps.other != NULL && steps.nb == steps.at) {
		steps.is_stepping = 0;
		steps.other();
	}
	regs[REG_EFL] = steps.is_stepping ? regs[REG_EFL] | trap : regs[REG_EFL] & ~trap;
	steps.nb++;
}

/* Instructions of a call; UINT64_MAX if they can't be counted. */
static inline uint64_t
steps_of(void (*call)(void))
{
	struct sigaction action = {.sa_sigaction = steps_trap, .sa_flags = SA_SIGINFO}, old;

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGTRAP, &action, &old) != 0)
		return UINT64_MAX;
	steps.nb = 0;
	steps.is_stepping = 1;
	raise(SIGTRAP);
	call();
	steps.is_stepping = 0;
	/* The handler of the next trap ends it. */
	return sigaction(SIGTRAP, &old, NULL) == 0 ? steps.nb : UINT64_MAX;
}

/* Interrupt a call by another one; false: it ended before that instruction. */
static inline bool
steps_interrupt(void (*call)(void), uint64_t at, void (*other)(void))
{
	uint64_t nb;

	steps.at = at;
	steps.other = other;
	nb = steps_of(call);
	steps.other = NULL;
	return nb == at + 1;
}
#else
#define STEPS_CAN_COUNT false

static inline uint64_t
steps_of(__attribute__((unused)) void (*call)(void))
{
	return UINT64_MAX;
}

static inline bool
steps_interrupt(__attribute__((unused)) void (*call)(void), __attribute__((unused)) uint64_t at,
		__attribute__((unused)) void (*other)(void))
{
	return false;
}
#endif

#endif /* STEPS_H */
