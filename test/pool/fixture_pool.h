/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* All buffers of a pool, got in bursts of any size. */

#ifndef FIXTURE_POOL_H
#define FIXTURE_POOL_H

#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>

#include <rmem_pool.h>

#include "fixture.h"

static inline int
fx_compare_addr(const void *a, const void *b)
{
	const struct rmem_sge *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Each once, none over another; put back in another order. */
static inline void
fx_every_buffer_once(struct rmem_pool *pool, unsigned int burst)
{
	static struct rmem_sge sge[1024];
	unsigned int i, n, nb = pool->nb_bufs;

	TEST_ASSERT(nb <= RTE_DIM(sge));
	for (i = 0; i < nb; i += n) {
		n = RTE_MIN(burst, nb - i);
		TEST_OK(rmem_pool_get_sges(pool, &sge[i], n));
	}
	TEST_ERR(rmem_pool_get_sges(pool, sge, 1), ENOENT);
	qsort(sge, nb, sizeof(sge[0]), fx_compare_addr);
	for (i = 0; i < nb; i++) {
		memset((void *)(uintptr_t)sge[i].addr, (int)i, pool->buf_size);
		if (i != 0)
			TEST_ASSERT(sge[i].addr >= sge[i - 1].addr + pool->buf_size);
	}
	for (i = 0; i < nb; i += n) {
		n = RTE_MIN(burst, nb - i);
		rmem_pool_put_sges(pool, &sge[i], n);
	}
	TEST_EQ(rte_mempool_avail_count(pool->mp), nb);
}

static inline void
fx_every_buffer_in_any_burst(struct rmem_pool *pool)
{
	static const unsigned int bursts[] = {
			1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 512, 1000, 1024};
	unsigned int i;

	for (i = 0; i < RTE_DIM(bursts); i++)
		fx_every_buffer_once(pool, bursts[i]);
}

#endif /* FIXTURE_POOL_H */
