/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * A driver of no device, for tests of the class with any driver: each op returns a given
 * result. A test replaces the ops under test by its own, and registers the driver
 * once, since registered drivers are permanent.
 */

#ifndef STUB_DRIVER_H
#define STUB_DRIVER_H

#include <rmem_driver.h>

/* Results of the ops, and counters. A test zeroes it before each case. */
struct stub_driver {
	uint64_t capa; /* of its devices: RMEM_DEV_CAPA_* */
	uint32_t access;
	int ret;      /* of the ops that create and release objects */
	int poll_ret; /* of polls */
	unsigned int nb_calls;
	unsigned int nb_posted;
	uint32_t next_key; /* index of the last key */
};

extern struct stub_driver stub;

/* A driver with only the required ops. */
struct rmem_driver stub_driver_bare(const char *name);

/* A driver with objects of each kind, whose other ops do nothing. */
struct rmem_driver stub_driver_full(const char *name);

/* Register a driver that may be registered, and zero stub; skips if there are too many. */
void stub_register(const struct rmem_driver *driver);

/* Capabilities of its devices; dev may be NULL. */
int stub_dev_info_get(struct rmem_dev *dev, struct rmem_dev_info *info);

#endif /* STUB_DRIVER_H */
