/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Each variant of the guarded copy copies its range and nothing else: all short lengths and those
 * around powers of two, all alignments, ranges that overlap, and faults at each offset. The
 * driver's files are compiled into this program, which forces each variant of this processor.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "soft/mem/rsoft_guard.h"

#include "../test.h"

#define LINE     64u
#define LONGEST  (65536u + 1)
#define SHORT    600u /* all lengths up to this one */
#define AREA     (LONGEST + 4 * LINE)
#define PAGE     4096u
#define OUTSIDE  0x5a
#define FAR_REP  SIZE_MAX
#define NEAR_REP 512u

static uint8_t *from_area, *to_area, *want_area;

static void
setup(void)
{
	size_t i;

	TEST_ASSERT(rsoft_guard_get());
	from_area = aligned_alloc(PAGE, RTE_ALIGN(AREA, PAGE));
	to_area = aligned_alloc(PAGE, RTE_ALIGN(AREA, PAGE));
	want_area = aligned_alloc(PAGE, RTE_ALIGN(AREA, PAGE));
	TEST_ASSERT(from_area != NULL && to_area != NULL && want_area != NULL);
	for (i = 0; i < AREA; i++)
		from_area[i] = (uint8_t)(i * 37 + i / 251);
	memset(to_area, OUTSIDE, AREA);
}

static void
teardown(void)
{
	free(from_area);
	free(to_area);
	free(want_area);
	rsoft_guard_put();
}

static bool
is_outside_kept(const uint8_t *at, size_t n)
{
	while (n != 0 && *at == OUTSIDE) {
		at++;
		n--;
	}
	return n == 0;
}

/* Copy to and from these alignments. */
static void
expect_copy(size_t length, size_t to_at, size_t from_at)
{
	uint8_t *to = to_area + LINE + to_at;
	const uint8_t *from = from_area + LINE + from_at;

	TEST_EQ(rsoft_guard_copy_fast(to, from, length).side, RSOFT_SIDE_NONE);
	if (memcmp(to, from, length) != 0 || !is_outside_kept(to - LINE, LINE) ||
			!is_outside_kept(to + length, LINE)) {
		test_note("length %zu, to %zu, from %zu", length, to_at, from_at);
		TEST_ASSERT(!"exactly the range is copied");
	}
	memset(to, OUTSIDE, length);
}

static void
expect_alignments(size_t length)
{
	size_t to, from;

	for (to = 0; to < LINE; to++) {
		for (from = 0; from < LINE; from++)
			expect_copy(length, to, from);
	}
}

/* All lengths and alignments. */
static void
expect_ranges(void)
{
	size_t length;
	unsigned int i;

	for (length = 0; length <= SHORT; length++)
		expect_alignments(length);
	for (length = 1024; length < LONGEST; length *= 2) {
		for (i = 0; i < LINE && length > 2048; i++) {
			expect_copy(length - 1, i, (i * 5 + 3) % LINE);
			expect_copy(length, i, 0);
			expect_copy(length + 1, 0, i);
			expect_copy(length, i, i);
		}
		for (i = 0; i < 3 && length <= 2048; i++)
			expect_alignments(length - 1 + i);
	}
}

/* Between ranges of one buffer, as memmove() does. */
static void
expect_overlap(size_t length, size_t to_at, size_t from_at)
{
	const size_t size = RTE_MAX(to_at, from_at) + length + LINE;

	memcpy(to_area, from_area, size);
	memcpy(want_area, from_area, size);
	memmove(want_area + to_at, want_area + from_at, length);
	TEST_EQ(rsoft_guard_copy_fast(to_area + to_at, to_area + from_at, length).side,
			RSOFT_SIDE_NONE);
	if (memcmp(to_area, want_area, size) != 0) {
		test_note("length %zu, to %zu, from %zu", length, to_at, from_at);
		TEST_ASSERT(!"as memmove() copies");
	}
}

static void
expect_overlaps(void)
{
	static const size_t longer[] = {640, 1023, 1024, 1025, 2048, 4095, 4096, 8193, 20000};
	size_t length, by;
	unsigned int i;

	for (length = 1; length <= SHORT; length++) {
		for (by = 0; by <= length; by += 1 + by / LINE) {
			expect_overlap(length, LINE, LINE + by);
			expect_overlap(length, LINE + by, LINE);
		}
	}
	for (i = 0; i < RTE_DIM(longer); i++) {
		for (by = 0; by <= 1024; by++) {
			expect_overlap(longer[i], by % LINE, by % LINE + by);
			expect_overlap(longer[i], by % LINE + by, by % LINE);
		}
	}
}

/* Pages 0 and 2 of each side are missing. */
static uint8_t *to_page, *from_page;

static uint8_t *
map_pages(void)
{
	uint8_t *pages =
			mmap(NULL, (size_t)4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT(pages != MAP_FAILED);
	TEST_EQ(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	return pages + PAGE;
}

/*
 * A copy of which one side starts or ends in a missing page. The destination has old or new
 * bytes in the range, and old ones outside.
 */
static void
expect_fault(uint8_t *to, const uint8_t *from, size_t length, enum rsoft_side side)
{
	const uint8_t *bad = side == RSOFT_SIDE_TO ? to : from;
	struct rsoft_guarded end;
	size_t i;

	memset(to_page, OUTSIDE, PAGE);
	end = rsoft_guard_copy_fast(to, from, length);
	TEST_EQ(end.side, side);
	TEST_ASSERT(end.addr >= (uintptr_t)bad && end.addr < (uintptr_t)bad + length);
	TEST_ASSERT(end.addr - (uintptr_t)(side == RSOFT_SIDE_TO ? to_page : from_page) >= PAGE);
	for (i = 0; i < PAGE; i++) {
		size_t at = (uintptr_t)(to_page + i) - (uintptr_t)to;
		size_t in = (uintptr_t)from + at - (uintptr_t)from_page;

		if (to_page[i] != OUTSIDE)
			TEST_ASSERT(at < length && in < PAGE && to_page[i] == from_page[in]);
	}
}

/* For each number of bytes that are missing, at each end of each side. */
static void
expect_faults_of(size_t length)
{
	size_t n;

	for (n = 1; n <= length; n++) {
		expect_fault(to_page, from_page + PAGE - length + n, length, RSOFT_SIDE_FROM);
		expect_fault(to_page, from_page - n, length, RSOFT_SIDE_FROM);
		expect_fault(to_page + PAGE - length + n, from_page, length, RSOFT_SIDE_TO);
		expect_fault(to_page - n, from_page, length, RSOFT_SIDE_TO);
	}
}

static void
run_faults(void)
{
	static const size_t longer[] = {
			160, 192, 193, 255, 256, 257, 384, 385, 500, 511, 512, 513, 700, 1100};
	size_t length;
	unsigned int i;

	for (i = 0; i < PAGE; i++)
		from_page[i] = (uint8_t)(i % 89 + 1);
	for (length = 1; length <= 130; length++)
		expect_faults_of(length);
	for (i = 0; i < RTE_DIM(longer); i++)
		expect_faults_of(longer[i]);
}

static void
expect_faults(void)
{
	int result;

	to_page = map_pages();
	from_page = map_pages();
	result = TEST_TRY(run_faults());
	munmap(to_page - PAGE, (size_t)4 * PAGE);
	munmap(from_page - PAGE, (size_t)4 * PAGE);
	TEST_RUN(result);
}

/* Atomics, and loads and stores without a call, where a word is missing. */
static void
run_missing_words(void)
{
	uint64_t *gone = (uint64_t *)(void *)(to_page - LINE), *there = (uint64_t *)(void *)to_page;
	uint64_t before = 5;

	TEST_EQ(rsoft_guard_add_fast(gone, 1, &before).side, RSOFT_SIDE_TO);
	TEST_EQ(rsoft_guard_add_fast(gone, 1, &before).addr, (uintptr_t)gone);
	TEST_EQ(rsoft_guard_swap_fast(gone, &before, 1).side, RSOFT_SIDE_TO);
	TEST_EQ(before, 5);
	TEST_ASSERT(!rsoft_guard_store_fast(gone, 1));
	TEST_ASSERT(!rsoft_guard_move_fast(gone, there));
	TEST_ASSERT(!rsoft_guard_move_fast(there, gone));
	TEST_ASSERT(!rsoft_guard_copy64(gone, there));
	TEST_ASSERT(!rsoft_guard_copy64(there, gone));
	TEST_EQ(*there, 0);
}

static void
run_words(void)
{
	uint64_t *word = (uint64_t *)(void *)to_page, before = 0, from = 70;

	TEST_EQ(rsoft_guard_add_fast(word, 40, &before).side, RSOFT_SIDE_NONE);
	TEST_EQ(before, 0);
	TEST_EQ(rsoft_guard_swap_fast(word, &before, 50).side, RSOFT_SIDE_NONE);
	TEST_EQ(before, 40);
	TEST_EQ(*word, 40);
	TEST_EQ(rsoft_guard_swap_fast(word, &before, 50).side, RSOFT_SIDE_NONE);
	TEST_EQ(before, 40);
	TEST_EQ(*word, 50);
	TEST_ASSERT(rsoft_guard_store_fast(word, 60));
	TEST_EQ(*word, 60);
	TEST_ASSERT(rsoft_guard_move_fast(word, &from));
	TEST_EQ(*word, 70);
	TEST_EQ(mprotect(to_page, PAGE, PROT_READ), 0);
	before = 71;
	TEST_EQ(rsoft_guard_swap_fast(word, &before, 1).side, RSOFT_SIDE_TO);
	TEST_EQ(rsoft_guard_add_fast(word, 1, &before).side, RSOFT_SIDE_TO);
}

static int
try_words(void)
{
	int result = TEST_TRY(run_missing_words());

	return result != 0 ? result : TEST_TRY(run_words());
}

TEST(guard_copy, words_are_changed_or_reported)
{
	int result;

	to_page = map_pages();
	result = try_words();
	munmap(to_page - PAGE, (size_t)4 * PAGE);
	TEST_RUN(result);
}

#ifdef __x86_64__
/* Force a variant; the shortest length of `rep movsb` with it. */
static void
force_sse2(void)
{
	rsoft_guard_choice.copy = rsoft_guard_x86_copy_sse2;
}

static void
force_avx2(uint64_t rep_min)
{
	TEST_SKIP_IF(!__builtin_cpu_supports("avx2"), "variant avx2: this processor has no AVX2");
	rsoft_guard_choice.copy = rsoft_guard_x86_copy_avx2;
	rsoft_guard_choice.rep_min = rsoft_guard_choice.rep_min_skewed = rep_min;
}

static void
force_avx512(uint64_t rep_min)
{
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl"))
		test_skip("variant avx512: this processor has no AVX-512");
	rsoft_guard_choice.copy = rsoft_guard_x86_copy_avx512;
	rsoft_guard_choice.rep_min = rsoft_guard_choice.rep_min_skewed = rep_min;
}

/* The choice of the process. */
static struct rsoft_guard_choice chosen;

static void
setup_variant(void)
{
	setup();
	chosen = rsoft_guard_choice;
}

static void
teardown_variant(void)
{
	rsoft_guard_choice = chosen;
	teardown();
}

TEST(guard_copy, sse2_copies_its_range_alone)
{
	force_sse2();
	expect_ranges();
}

TEST(guard_copy, sse2_copies_overlaps_as_memmove)
{
	force_sse2();
	expect_overlaps();
}

TEST(guard_copy, sse2_reports_each_missing_byte)
{
	force_sse2();
	expect_faults();
}

TEST(guard_copy, avx2_copies_its_range_alone)
{
	force_avx2(FAR_REP);
	expect_ranges();
	force_avx2(NEAR_REP);
	expect_ranges();
}

TEST(guard_copy, avx2_copies_overlaps_as_memmove)
{
	force_avx2(FAR_REP);
	expect_overlaps();
	force_avx2(NEAR_REP);
	expect_overlaps();
}

TEST(guard_copy, avx2_reports_each_missing_byte)
{
	force_avx2(FAR_REP);
	expect_faults();
	force_avx2(NEAR_REP);
	expect_faults();
}

TEST(guard_copy, avx512_copies_its_range_alone)
{
	force_avx512(FAR_REP);
	expect_ranges();
	force_avx512(NEAR_REP);
	expect_ranges();
}

TEST(guard_copy, avx512_copies_overlaps_as_memmove)
{
	force_avx512(FAR_REP);
	expect_overlaps();
	force_avx512(NEAR_REP);
	expect_overlaps();
}

TEST(guard_copy, avx512_reports_each_missing_byte)
{
	force_avx512(FAR_REP);
	expect_faults();
	force_avx512(NEAR_REP);
	expect_faults();
}

/* The widest variant of the processor; where AVX-512 lowers the frequency, AVX2. */
TEST(guard_copy, process_uses_the_widest_variant)
{
	if (!__builtin_cpu_supports("avx2")) {
		TEST_ASSERT(chosen.copy == rsoft_guard_x86_copy_sse2);
		return;
	}
	TEST_ASSERT(chosen.rep_min >= NEAR_REP && chosen.rep_min_skewed >= chosen.rep_min);
	if (__builtin_cpu_is("amd") && __builtin_cpu_supports("avx512vl"))
		TEST_ASSERT(chosen.copy == rsoft_guard_x86_copy_avx512);
	else
		TEST_ASSERT(chosen.copy != rsoft_guard_x86_copy_sse2);
}

TEST_SUITE(guard_copy, setup_variant, teardown_variant);
#else
TEST_CALL(guard_copy, arm64_copies_its_range_alone, expect_ranges());
TEST_CALL(guard_copy, arm64_copies_overlaps_as_memmove, expect_overlaps());
TEST_CALL(guard_copy, arm64_reports_each_missing_byte, expect_faults());

TEST_SUITE(guard_copy, setup, teardown);
#endif
