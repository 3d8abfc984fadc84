/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Within librmem_ibv.so. */

#ifndef RCM_PRELOAD_H
#define RCM_PRELOAD_H

#include "../rcm_ops.h"

/* The core is loaded. */
__attribute__((visibility("hidden"))) void rcm_preload_init(const struct rcm_ops *core);

#endif /* RCM_PRELOAD_H */
