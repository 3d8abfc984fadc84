/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * What the files of the pool share. Not installed.
 */

#ifndef RMEM_POOL_PRIV_H
#define RMEM_POOL_PRIV_H

#include <rmem_pool.h>

/** Make n SGEs of the buffers at objs with AVX2; 0. */
int rmem_pool_fill_avx2(struct rmem_sge *sge, void *const *objs, unsigned int n, uint64_t tail);

/** Collect the buffers of n SGEs with AVX2. */
void rmem_pool_collect_avx2(void **objs, const struct rmem_sge *sge, unsigned int n);

#endif /* RMEM_POOL_PRIV_H */
