/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Pages that a case registers, the bytes that MRs count, and the pages that the kernel has locked.
 */

#ifndef FIXTURE_PIN_H
#define FIXTURE_PIN_H

#include "fixture.h"

#define PIN_NB_PAGES 8u
#define PIN_SIZE     (PIN_NB_PAGES * FX_PAGE)

/* Indexes of pin_pds. */
enum {
	PIN_AUTO,
	PIN_REQUIRE,
	PIN_OFF,
	PIN_LOCK,
	PIN_NB,
};

extern uint8_t *pin_pages;              /* writable, followed by an unmapped page */
extern struct rmem_pd *pin_pds[PIN_NB]; /* of devices with pin=auto, require, off and lock */

/* Set-up and tear-down of a case; the second skips where mlock() has no effect. */
void pin_setup(void);
void pin_setup_lock(void);
void pin_teardown(void);

/* Bytes that all MRs of the process count. */
uint64_t pin_counted(void);
/* Separate ranges that the devices have locked. */
uint64_t pin_nb_ranges(void);
/* Give this thread CAP_IPC_LOCK, which lifts RLIMIT_MEMLOCK, if it may have it; or remove it. */
int pin_set_may_lock(bool is_allowed);
/* Skip a case where mlock() has no effect. */
void pin_need_lock(void);
/* Whether a page is locked: msync(MS_INVALIDATE) fails on it. */
bool pin_is_locked(size_t page);
/* The locked pages as a decimal number: a leading 1, then 0 or 1 for each page. */
uint64_t pin_locked(void);
/* Register a part of the pages with one of the devices. */
struct rmem_mr *pin_reg(unsigned int how, size_t first, size_t length);
/*
 * Register and deregister random parts of the pages 2000 times, with each of nb devices in turn.
 * In between, expect(), which may be NULL, gets the first page of the part.
 */
void pin_race(uint64_t *seed, unsigned int how, unsigned int nb, void (*expect)(size_t page));
/* Run on one or two worker lcores, with a seed each; skips the case without one. */
void pin_on_lcores(void (*run)(void *seed));

#endif /* FIXTURE_PIN_H */
