/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The core, librmem_ibv_core.so, which contains class and driver and is loaded on demand.
 *
 * Inside: the functions of libc and libibverbs that librmem_ibv.so defines, and the loader of
 *   the core.
 * Callers: the program, by the names of these functions.
 * Not known here: rmem, drivers, and objects of verbs and rdma_cm, which the core has.
 */

#ifndef RIBV_LOAD_H
#define RIBV_LOAD_H

#include <stdbool.h>

#include "../rcm_ops.h"
#include "../ribv_view.h"
#include "ribv_libc.h"

/* A function of libibverbs, and its definition in the core, or NULL until the core is loaded;
 * atomic. */
struct ribv_pass {
	const char *name;
	ribv_function_t to;
};

/* All functions that librmem_ibv.so passes on (ribv_preload.c). */
extern struct ribv_pass __start_ribv_pass[] RIBV_HIDDEN;
extern struct ribv_pass __stop_ribv_pass[] RIBV_HIDDEN;

/* Load the core if needed; false if it can't be loaded. */
RIBV_HIDDEN bool ribv_load(void);

/* Find a function of libibverbs; NULL if there is none. */
RIBV_HIDDEN ribv_function_t ribv_load_next(const char *name);

/* Return ribv_view_find() of the core, loading it if needed; NULL if it can't be loaded. */
RIBV_HIDDEN ribv_view_t ribv_core_view(void);

/* Write the path of a library in the directory of librmem_ibv.so; false if it is unknown. */
#define RIBV_LIBRARY_PATH 4096
RIBV_HIDDEN bool ribv_library_path(char path[RIBV_LIBRARY_PATH], const char *name);

/* rcm_preload.c: use the core, which is loaded. */
RIBV_HIDDEN void rcm_preload_init(const struct rcm_ops *core);

/* False in a child of vfork(), which shares the memory of its parent. */
RIBV_HIDDEN bool ribv_is_owner(void);

#endif /* RIBV_LOAD_H */
