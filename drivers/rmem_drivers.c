/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The drivers built into the library, in the order of their lookup. */

#include <stddef.h>

#include "rmem_drivers.h"

extern const struct rmem_driver rsoft_driver;
extern const struct rmem_driver rverbs_driver;

const struct rmem_driver *const rmem_builtin_drivers[] = {
		&rsoft_driver,
#ifdef RMEM_HAS_VERBS
		&rverbs_driver,
#endif
		NULL,
};
