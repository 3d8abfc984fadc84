/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * A driver of no device, for tests of what the class does for any: each op says what it is told to
 * say. A test puts ops of its own in place of those that it is about, and registers the driver
 * once, as registered drivers stay for good.
 */

#ifndef STUB_DRIVER_H
#define STUB_DRIVER_H

#include <rmem_driver.h>

/* What the ops say, and what they saw. A test zeroes it before each case. */
struct stub_driver {
	uint64_t capa; /* of its devices: RMEM_DEV_CAPA_* */
	uint32_t access;
	int ret;      /* of the ops that make and release objects */
	int poll_ret; /* of polls */
	unsigned int nb_calls;
	unsigned int nb_posted;
	uint32_t next_key; /* index of the last key */
};

extern struct stub_driver stub;

/* The least that a driver can be. */
struct rmem_driver stub_driver_bare(const char *name);

/* One whose devices have objects of each kind, but do nothing else with them. */
struct rmem_driver stub_driver_full(const char *name);

/* What its devices say of themselves; dev may be NULL. */
int stub_dev_info_get(struct rmem_dev *dev, struct rmem_dev_info *info);

#endif /* STUB_DRIVER_H */
