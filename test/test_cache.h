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

int cx_setup(void);
int cx_setup_uffd(void);
int cx_teardown(void);
/* Replace the cache. */
int cx_create(uint32_t monitor, uint32_t max_mrs, uint64_t max_size);
struct rmem_cache_stats cx_stats(void);

#endif /* TEST_CACHE_H */
