/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Arguments of the software device: each key, its default and its bounds. Their forms are cases of
 * test_args_table.c.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"

/* The table of doc/driver_soft.md; engine and socket depend on the machine. */
static const struct row {
	const char *key;
	uint64_t initial;
	uint64_t min;
	uint64_t max;
	size_t offset; /* in struct rmem_dev_info, of 32 bits but for sizes */
} rows[] = {
		{"max_pd", 256, 1, 65536, offsetof(struct rmem_dev_info, max_pd)},
		{"max_mr", 16384, 1, 15728638, offsetof(struct rmem_dev_info, max_mr)},
		{"max_cq", 256, 1, 65536, offsetof(struct rmem_dev_info, max_cq)},
		{"max_qp", 256, 1, 65536, offsetof(struct rmem_dev_info, max_qp)},
		{"max_cqe", 65536, 1, 4194304, offsetof(struct rmem_dev_info, max_cqe)},
		{"max_wr", 16384, 1, 65536, offsetof(struct rmem_dev_info, max_send_wr)},
		{"max_sge", 16, 1, 16, offsetof(struct rmem_dev_info, max_send_sge)},
		{"max_inline", 256, 0, 1024, offsetof(struct rmem_dev_info, max_inline_data)},
		{"max_mr_size", UINT64_C(1) << 47, 4096, UINT64_C(1) << 47,
				offsetof(struct rmem_dev_info, max_mr_size)},
		{"max_page_list_len", 512, 1, 65535,
				offsetof(struct rmem_dev_info, max_page_list_len)},
		{"max_mw", 16384, 1, 1048576, offsetof(struct rmem_dev_info, max_mw)},
		{"max_mkey_entries", 512, 1, 65535,
				offsetof(struct rmem_dev_info, max_mkey_entries)},
		{"max_mkey_depth", 4, 1, 16, offsetof(struct rmem_dev_info, max_mkey_depth)},
		{"max_iov", 512, 1, 65535, offsetof(struct rmem_dev_info, max_iov)},
		{"max_srq", 256, 1, 65536, offsetof(struct rmem_dev_info, max_srq)},
		{"max_dm", 256, 1, 65536, offsetof(struct rmem_dev_info, max_dm)},
		{"max_dm_size", 1 << 20, 64, 1 << 30, offsetof(struct rmem_dev_info, max_dm_size)},
};

/* Memory that EAL has in the tests is too little for this many keys. */
#define IS_TOO_LARGE(row, value)                                                                   \
	(strncmp((row)->key, "max_m", 5) == 0 && strlen((row)->key) == 6 && (value) > 1000000)

static uint64_t
limit_of(const struct rmem_dev_info *info, const struct row *row)
{
	const uint8_t *field = (const uint8_t *)info + row->offset;
	uint32_t small;
	uint64_t large;

	if (strstr(row->key, "_size") != NULL) {
		memcpy(&large, field, sizeof(large));
		return large;
	}
	memcpy(&small, field, sizeof(small));
	return small;
}

static void
expect_limit(const struct row *row, const char *args, uint64_t want)
{
	struct rmem_dev *dev = fx_dev("soft1", args);
	struct rmem_dev_info info = fx_dev_info(dev);

	TEST_EQ(limit_of(&info, row), want);
	TEST_OK(fx_release(dev));
}

/* Refused with a line that has all the words; no device remains. */
static void
expect_refused(const char *args, const char *word1, const char *word2, const char *word3)
{
	const char *const words[] = {word1, word2, word3};
	struct rmem_dev *dev = NULL;
	const char *log;
	unsigned int i;
	int ret;

	fx_log_begin();
	ret = rmem_dev_create("soft1", args, &dev);
	log = fx_log_end();
	TEST_ERR(ret, EINVAL);
	TEST_ASSERT(dev == NULL);
	TEST_ASSERT(rmem_dev_get_by_name("soft1") == NULL);
	for (i = 0; i < RTE_DIM(words); i++) {
		if (words[i] != NULL && strstr(log, words[i]) == NULL) {
			test_note("of \"%s\" the log lacks \"%s\": %s", args, words[i], log);
			test_stop(TEST_FAILED);
		}
	}
}

TEST(args, no_arguments_give_the_defaults)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		expect_limit(&rows[i], NULL, rows[i].initial);
		expect_limit(&rows[i], "", rows[i].initial);
	}
}

TEST(args, smallest_and_largest_values_are_taken)
{
	char args[64];
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		const struct row *row = &rows[i];

		snprintf(args, sizeof(args), "%s=%" PRIu64, row->key, row->min);
		expect_limit(row, args, row->min);
		if (IS_TOO_LARGE(row, row->max))
			continue;
		snprintf(args, sizeof(args), "%s=%" PRIu64, row->key, row->max);
		expect_limit(row, args, row->max);
	}
}

TEST(args, values_out_of_range_are_refused_with_their_limits)
{
	char args[64], value[24], min[24], max[24];
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		const struct row *row = &rows[i];

		snprintf(min, sizeof(min), "%" PRIu64, row->min);
		snprintf(max, sizeof(max), "%" PRIu64, row->max);
		snprintf(value, sizeof(value), "%" PRIu64, row->max + 1);
		snprintf(args, sizeof(args), "%s=%s", row->key, value);
		expect_refused(args, row->key, value, max);
		snprintf(args, sizeof(args), "%s=18446744073709551616", row->key);
		expect_refused(args, row->key, "18446744073709551616", max);
		if (row->min == 0)
			continue;
		snprintf(args, sizeof(args), "%s=%" PRIu64, row->key, row->min - 1);
		expect_refused(args, row->key, min, max);
	}
}

TEST(args, bad_sockets_and_engines_are_refused)
{
	expect_refused("socket=4096", "socket", "4096", NULL);
	expect_refused("socket=31", "socket", "31", NULL);
	expect_refused("socket=-1", "socket", "-1", NULL);
	expect_refused("engine=9", "engine", "9", "8");
	expect_refused("odp_guard=2", "odp_guard", "0 to 1", NULL);
	expect_refused("odp_uffd=2", "odp_uffd", "0 to 1", NULL);
}

TEST(args, pin_is_one_of_four_words)
{
	static const char *const args[] = {"pin=auto", "pin=require", "pin=off", "pin=lock"};
	struct rmem_dev *dev;
	unsigned int i;

	for (i = 0; i < RTE_DIM(args); i++) {
		dev = fx_dev("soft1", args[i]);
		TEST_OK(fx_release(dev));
	}
	expect_refused("pin=yes", "pin='yes'", "auto", "lock");
}

/* It would take 1 GiB. */
TEST(args, more_keys_than_memory_is_enomem)
{
	struct rmem_dev *dev = NULL;
	int ret;

	fx_leave_memory(1u << 20);
	ret = rmem_dev_create("soft1", "max_mr=15728638", &dev);
	fx_free_memory();
	TEST_ERR(ret, ENOMEM);
	TEST_ASSERT(dev == NULL);
	TEST_ASSERT(rmem_dev_get_by_name("soft1") == NULL);
}

/* Later changes of the caller's string do not matter, nor does its length. */
TEST(args, long_arguments_are_parsed_completely)
{
	char args[512];
	size_t used = 0;

	used += (size_t)snprintf(args, sizeof(args), "max_pd=");
	memset(args + used, '0', 300);
	used += 300;
	snprintf(args + used, sizeof(args) - used, "5");
	expect_limit(&rows[0], args, 5);
}

TEST_SUITE(args, fx_setup_none, fx_teardown);
