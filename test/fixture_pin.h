/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Pages that a case registers, and whether the kernel has them locked.
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
};

extern uint8_t *pin_pages;         /* writable, followed by an unmapped page */
extern struct rmem_pd *pin_pds[3]; /* of devices with pin=auto, require and off */

/* Set-up and tear-down of a case; skips where mlock() has no effect. */
int pin_setup(void);
int pin_teardown(void);

/* Whether a page is locked: msync(MS_INVALIDATE) fails on it. */
bool pin_is_locked(size_t page);
/* The locked pages as a decimal number: a leading 1, then 0 or 1 for each page. */
uint64_t pin_locked(void);
/* Register a part of the pages with one of the devices. */
struct rmem_mr *pin_reg(unsigned int how, size_t first, size_t length);

#endif /* FIXTURE_PIN_H */
