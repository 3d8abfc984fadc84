/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Arguments of the software device; doc/driver_soft.md lists them. */

#ifndef RSOFT_ARGS_H
#define RSOFT_ARGS_H

#include "base/rsoft.h"

/* Parse "key=value,..." or NULL over the defaults. 0, -EINVAL with a log line, or -ENOMEM. */
int rsoft_args_parse(const char *str, struct rsoft_args *args);

#endif /* RSOFT_ARGS_H */
