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

/* Places in pin_pds. */
enum {
	PIN_AUTO,
	PIN_REQUIRE,
	PIN_OFF,
};

extern uint8_t *pin_pages;         /* writable, followed by an unmapped page */
extern struct rmem_pd *pin_pds[3]; /* of devices with pin=auto, require and off */

/* Around each case; skipped where mlock() does nothing. */
int pin_setup(void);
int pin_teardown(void);

/* Only memory that is locked can't be invalidated. */
bool pin_is_locked(size_t page);
/* The locked pages, as a number with one digit for each after a leading 1. */
uint64_t pin_locked(void);
/* An MR of one of the devices over a part of the pages. */
struct rmem_mr *pin_reg(unsigned int how, size_t first, size_t length);

#endif /* FIXTURE_PIN_H */
