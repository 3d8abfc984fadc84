/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * CRC-32; see rwire_crc.h. With carry-less multiplication 64 bytes are folded at once: V. Gopal et
 * al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.
 * Without it, words are moved by shifts: S. Russell, "Chorba: A novel CRC32 implementation", 2024.
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_cpuflags.h>
#include <rte_cycles.h>

#include "rwire_crc.h"

#define NB_SLICES   8
#define MOVED_WORDS 5 /* a word is moved to some of the next five */
#define MIN_MOVED   128

/* CRC of each byte value; slice i is for a byte that is followed by i zero bytes. */
static uint32_t crc_table[NB_SLICES][256]; /* constant after start */

/* Advance a CRC, without inversion, over len bytes. */
static uint32_t
crc_bytes(uint32_t crc, const uint8_t *data, uint32_t len)
{
	uint32_t low, high;

	for (; len >= NB_SLICES; len -= NB_SLICES, data += NB_SLICES) {
		memcpy(&low, data, sizeof(low));
		memcpy(&high, data + sizeof(low), sizeof(high));
		low = rte_le_to_cpu_32(low) ^ crc;
		high = rte_le_to_cpu_32(high);
		crc = crc_table[7][low & 0xff] ^ crc_table[6][low >> 8 & 0xff] ^
				crc_table[5][low >> 16 & 0xff] ^ crc_table[4][low >> 24] ^
				crc_table[3][high & 0xff] ^ crc_table[2][high >> 8 & 0xff] ^
				crc_table[1][high >> 16 & 0xff] ^ crc_table[0][high >> 24];
	}
	for (; len != 0; len--, data++)
		crc = crc >> 8 ^ crc_table[0][(crc ^ *data) & 0xff];
	return crc;
}

/*
 * Make all words but the last ones 0 by moving them to following words. The polynomial divides
 * x^300 + x^155 + x^117 + x^89 + 1, so the CRC remains the same if a bit is replaced by the bits
 * 145, 183, 211 and 300 after it. sum has the sums for the next words; sum[0] is for the word at
 * data. Return the number of bytes moved.
 */
static uint32_t
crc_move(uint64_t sum[MOVED_WORDS], const uint8_t *data, uint32_t len)
{
	uint64_t s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3], s4 = sum[4], word;
	uint32_t i;

	for (i = 0; len - i >= (MOVED_WORDS + 1) * sizeof(word); i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		word = rte_le_to_cpu_64(word) ^ s0;
		s0 = s1;
		s1 = s2 ^ word << 17 ^ word << 55;
		s2 = s3 ^ word >> 47 ^ word >> 9 ^ word << 19;
		s3 = s4 ^ word >> 45 ^ word << 44;
		s4 = word >> 20;
	}
	sum[0] = s0;
	sum[1] = s1;
	sum[2] = s2;
	sum[3] = s3;
	sum[4] = s4;
	return i;
}

/* Advance a CRC over len bytes; fast for long data. */
static uint32_t
crc_scalar(uint32_t crc, const uint8_t *data, uint32_t len)
{
	uint64_t sum[MOVED_WORDS] = {crc}, words[MOVED_WORDS];
	uint32_t i, done;

	if (len < MIN_MOVED)
		return crc_bytes(crc, data, len);
	done = crc_move(sum, data, len);
	memcpy(words, data + done, sizeof(words));
	for (i = 0; i < MOVED_WORDS; i++)
		words[i] ^= rte_cpu_to_le_64(sum[i]);
	crc = crc_bytes(0, (const uint8_t *)words, sizeof(words));
	done += (uint32_t)sizeof(words);
	return crc_bytes(crc, data + done, len - done);
}

uint32_t
rwire_crc_scalar(const uint8_t *data, uint32_t len)
{
	return ~crc_scalar(UINT32_MAX, data, len);
}

#ifdef RTE_ARCH_X86_64
#include <immintrin.h>

typedef uint32_t (*crc_wide_t)(uint32_t crc, const uint8_t *data, uint32_t len);

static crc_wide_t crc_wide_fn; /* constant after start; NULL: shifts are faster */

/* Fold x by the distance of the constants in k, and add the next 16 bytes. */
__attribute__((target("sse4.1,pclmul"))) static __rte_always_inline __m128i
crc_fold(__m128i x, __m128i k, __m128i next)
{
	__m128i low = _mm_clmulepi64_si128(x, k, 0x00);
	__m128i high = _mm_clmulepi64_si128(x, k, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

static __rte_always_inline __m128i
crc_load(const uint8_t *data)
{
	return _mm_loadu_si128((const __m128i *)(const void *)data);
}

/* Reduce 128 bits to the CRC: by 64 bits, by 32 bits, then with Barrett's reduction. */
__attribute__((target("sse4.1,pclmul"))) static __rte_always_inline uint32_t
crc_reduce(__m128i x)
{
	const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
	const __m128i by_4 = _mm_set_epi64x(0, 0x0163cd6124);
	const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
	const __m128i low_32 = _mm_setr_epi32(-1, 0, -1, 0);
	__m128i t;

	x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by_16, 0x10));
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low_32), by_4, 0x00);
	x = _mm_xor_si128(_mm_srli_si128(x, 4), t);
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low_32), barrett, 0x10);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low_32), barrett, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, t), 1);
}

/* Advance a CRC over len bytes, a multiple of 16 and at least 64. */
__attribute__((target("sse4.1,pclmul"))) static __rte_always_inline uint32_t
crc_pclmul(uint32_t crc, const uint8_t *data, uint32_t len)
{
	const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
	const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
	__m128i x[4];
	size_t i;

	for (i = 0; i < RTE_DIM(x); i++)
		x[i] = crc_load(data + 16 * i);
	x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
	for (data += 64, len -= 64; len >= 128; data += 128, len -= 128) {
		for (i = 0; i < 2 * RTE_DIM(x); i++)
			x[i % 4] = crc_fold(x[i % 4], by_64, crc_load(data + 16 * i));
	}
	for (; len >= 64; data += 64, len -= 64) {
		for (i = 0; i < RTE_DIM(x); i++)
			x[i] = crc_fold(x[i], by_64, crc_load(data + 16 * i));
	}
	for (i = 1; i < RTE_DIM(x); i++)
		x[0] = crc_fold(x[0], by_16, x[i]);
	for (; len != 0; data += 16, len -= 16)
		x[0] = crc_fold(x[0], by_16, crc_load(data));
	return crc_reduce(x[0]);
}

__attribute__((target("sse4.1,pclmul"))) static uint32_t
crc_sse(uint32_t crc, const uint8_t *data, uint32_t len)
{
	return crc_pclmul(crc, data, len);
}

/* The same with three-operand instructions: a third fewer instructions. */
__attribute__((target("avx,pclmul"))) static uint32_t
crc_avx(uint32_t crc, const uint8_t *data, uint32_t len)
{
	return crc_pclmul(crc, data, len);
}

/* Whether it is faster than shifts; an emulator multiplies bit by bit. */
static bool
crc_is_fast(crc_wide_t fn)
{
	static const uint8_t data[1024];
	uint64_t start, best[2] = {UINT64_MAX, UINT64_MAX};
	volatile uint32_t crc = 0;
	unsigned int i;

	/* Take the best of several runs, because the thread may be interrupted. */
	for (i = 0; i < 32; i++) {
		start = rte_rdtsc();
		crc = i % 2 != 0 ? fn(crc, data, sizeof(data))
				 : crc_scalar(crc, data, sizeof(data));
		best[i % 2] = RTE_MIN(best[i % 2], rte_rdtsc() - start);
	}
	return best[1] <= best[0];
}

/* Called after the tables are filled. */
static void
crc_wide_init(void)
{
	crc_wide_t fn = rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX) > 0 ? crc_avx : crc_sse;

	if (rte_cpu_get_flag_enabled(RTE_CPUFLAG_PCLMULQDQ) > 0 &&
			rte_cpu_get_flag_enabled(RTE_CPUFLAG_SSE4_1) > 0 && crc_is_fast(fn))
		crc_wide_fn = fn;
}

/* Advance a CRC over the first bytes of data; return how many. */
static uint32_t
crc_wide(uint32_t *crc, const uint8_t *data, uint32_t len)
{
	uint32_t nb = RTE_ALIGN_FLOOR(len, 16);

	if (crc_wide_fn == NULL || nb < 64)
		return 0;
	*crc = crc_wide_fn(*crc, data, nb);
	return nb;
}
#else
static void
crc_wide_init(void)
{
}

static uint32_t
crc_wide(uint32_t *crc, const uint8_t *data, uint32_t len)
{
	RTE_SET_USED(crc);
	RTE_SET_USED(data);
	RTE_SET_USED(len);
	return 0;
}
#endif

uint32_t
rwire_crc(const uint8_t *data, uint32_t len)
{
	uint32_t crc = UINT32_MAX;
	uint32_t nb = crc_wide(&crc, data, len);

	return ~crc_scalar(crc, data + nb, len - nb);
}

RTE_INIT(rwire_crc_init)
{
	uint32_t byte, i, crc;

	for (byte = 0; byte < 256; byte++) {
		crc = byte;
		for (i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ RWIRE_CRC_POLY : crc >> 1;
		crc_table[0][byte] = crc;
	}
	for (i = 1; i < NB_SLICES; i++) {
		for (byte = 0; byte < 256; byte++) {
			crc = crc_table[i - 1][byte];
			crc_table[i][byte] = crc >> 8 ^ crc_table[0][crc & 0xff];
		}
	}
	crc_wide_init();
}
