/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The work of a call as the number of instructions of this process that it executes, which does not
 * depend on the load of the machine. They are counted by single-stepping.
 */

#ifndef STEPS_H
#define STEPS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#ifdef __x86_64__
#define STEPS_CAN_COUNT true

static struct {
	volatile sig_atomic_t is_stepping;
	volatile uint64_t nb;
} steps;

static inline void
steps_trap(__attribute__((unused)) int sig, __attribute__((unused)) siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const greg_t trap = 0x100;

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
#else
#define STEPS_CAN_COUNT false

static inline uint64_t
steps_of(__attribute__((unused)) void (*call)(void))
{
	return UINT64_MAX;
}
#endif

#endif /* STEPS_H */
