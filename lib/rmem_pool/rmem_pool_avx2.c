/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Bulks of SGEs with AVX2: 32 bytes at a time. Only this file is built with -mavx2; its functions
 * are called only if the CPU has AVX2.
 */

#include <immintrin.h>

#include "rmem_pool_priv.h"

/* Write two SGEs: a b a b -> a a b b -> a tail b tail. */
static inline void
store_two(struct rmem_sge *sge, void *const *objs, __m256d tails)
{
	__m256d two;

	two = _mm256_broadcast_pd((const __m128d *)(const void *)objs);
	two = _mm256_permute_pd(two, 0xc);
	two = _mm256_blend_pd(two, tails, 0xa);
	_mm256_storeu_pd((double *)(void *)sge, two);
}

int
rmem_pool_fill_avx2(struct rmem_sge *sge, void *const *objs, unsigned int n, uint64_t tail)
{
	const __m256d tails = _mm256_castsi256_pd(_mm256_set1_epi64x((long long)tail));
	const struct rmem_sge *end = sge + n;

	/* 8 SGEs per iteration: the CPU predicts only the end of short loops. */
	for (; end - sge >= 8; sge += 8, objs += 8) {
		store_two(sge, objs, tails);
		store_two(sge + 2, objs + 2, tails);
		store_two(sge + 4, objs + 4, tails);
		store_two(sge + 6, objs + 6, tails);
	}
	for (; end - sge >= 2; sge += 2, objs += 2)
		store_two(sge, objs, tails);
	for (; sge != end; sge++, objs++) {
		sge->addr = (uintptr_t)*objs;
		memcpy(&sge->length, &tail, sizeof(tail));
	}
	return 0;
}

/* Store the addresses of four SGEs: a c b d -> a b c d. */
static inline void
load_four(void **objs, const struct rmem_sge *sge)
{
	__m256i ab, cd, four;

	ab = _mm256_loadu_si256((const __m256i *)(const void *)sge);
	cd = _mm256_loadu_si256((const __m256i *)(const void *)(sge + 2));
	four = _mm256_unpacklo_epi64(ab, cd);
	four = _mm256_permute4x64_epi64(four, 0xd8);
	_mm256_storeu_si256((__m256i *)(void *)objs, four);
}

void
rmem_pool_collect_avx2(void **objs, const struct rmem_sge *sge, unsigned int n)
{
	const struct rmem_sge *end = sge + n;

	for (; end - sge >= 8; sge += 8, objs += 8) {
		load_four(objs, sge);
		load_four(objs + 4, sge + 4);
	}
	for (; sge != end; sge++, objs++)
		*objs = (void *)(uintptr_t)sge->addr;
}
