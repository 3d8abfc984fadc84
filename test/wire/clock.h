/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The clock of timers, rwire_clock, under the control of a test. */

#ifndef CLOCK_H
#define CLOCK_H

#include <rte_cycles.h>

#include "../../drivers/soft/wire/rwire.h"

static struct {
	uint64_t (*real)(void); /* the clock while it is stopped; else NULL */
	uint64_t now;           /* TSC */
} test_clock;

static uint64_t
clock_read(void)
{
	return test_clock.now;
}

/* Stop the clock at the present time. */
static inline void
clock_stop(void)
{
	test_clock.real = rwire_clock;
	test_clock.now = test_clock.real();
	rwire_clock = clock_read;
}

/* Let the clock run again, if it was stopped. */
static inline void
clock_run(void)
{
	if (test_clock.real != NULL)
		rwire_clock = test_clock.real;
	test_clock.real = NULL;
}

/* Set the stopped clock forward by microseconds. */
static inline void
clock_pass(uint64_t us)
{
	test_clock.now += rte_get_tsc_hz() / US_PER_S * us;
}

#endif /* CLOCK_H */
