/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The drivers built into the library.
 *
 * Inside: the table of the drivers that are built in; each driver has a folder.
 * Callers: lib/rmem/rmem_driver.c.
 * Not known here: the contents of the drivers.
 */

#ifndef RMEM_DRIVERS_H
#define RMEM_DRIVERS_H

#include <rmem_driver.h>

/* In the order they are searched; ended by NULL. */
extern const struct rmem_driver *const rmem_builtin_drivers[];

#endif /* RMEM_DRIVERS_H */
