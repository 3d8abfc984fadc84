/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * A cache of a's PD, and mapped memory: for the tests of caches.
 */

#ifndef TEST_CACHE_H
#define TEST_CACHE_H

#include <rmem_cache.h>

#include "../../lib/rmem_cache/rmem_cache_hooks_priv.h"
#include "fixture.h"
#include "test.h"

#define CX_PAGE  ((size_t)FX_PAGE)
#define CX_SIZE  (256 * CX_PAGE)
#define CX_WRITE (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE)

struct cache_fixture {
	struct rmem_cache *cache;
	uint8_t *mem; /* CX_SIZE bytes */
};

extern struct cache_fixture cx;

void cx_setup(void);
void cx_setup_uffd(void);
void cx_setup_hooks(void);
void cx_teardown(void);
/* Replace the cache. */
void cx_create(uint32_t monitor, uint32_t max_mrs, uint64_t max_size);
struct rmem_cache_stats cx_stats(void);
/* Memory, or NULL; at an address with MAP_FIXED or MAP_FIXED_NOREPLACE. */
void *cx_map(void *at, size_t size, int flags);
/* Get and put a page; whether it was a hit. */
bool cx_touch(uint32_t page);
/* Wait until the cache has none. */
void cx_expect_no_mrs(void);
/* After change() has replaced the pages of a held MR, another one is returned. */
void cx_expect_replaced(uint8_t *buf, size_t length, void (*change)(uint8_t *buf, size_t length));
/* The variable of librmem_cache_hooks.so, or NULL: it is not preloaded. */
struct cache_hooks *cx_hooks(void);

#endif /* TEST_CACHE_H */
