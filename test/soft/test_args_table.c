/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Arguments by a table: each kind and size of a field, and the one form of a refusal. */

#include <stdio.h>
#include <string.h>

#include <rmem_args.h>

#include "fixture.h"

struct values {
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;
	bool is_on;
	uint8_t colour;
	char text[5];
	uint8_t other; /* without a row */
};

static const char *const colours[] = {"red", "green", "blue"};

static struct rmem_arg rows[] = {
		RMEM_ARG_NUMBER_ROW(struct values, u64, 7, 1, UINT64_MAX),
		RMEM_ARG_NUMBER_ROW(struct values, u32, 6, 0, UINT32_MAX),
		RMEM_ARG_NUMBER_ROW(struct values, u16, 5, 2, UINT16_MAX),
		RMEM_ARG_NUMBER_ROW(struct values, u8, 4, 0, 9),
		RMEM_ARG_NUMBER_ROW(struct values, is_on, true, 0, 1),
		RMEM_ARG_WORD_ROW(struct values, colour, 1, colours, RTE_DIM(colours)),
		RMEM_ARG_TEXT_ROW(struct values, text),
};

static struct rmem_args_table table;
static struct values values;

static void
setup(void)
{
	memset(&table, 0, sizeof(table));
	table.prefix = "args test";
	table.page = "the page";
	table.args = rows;
	table.nb_args = RTE_DIM(rows);
	table.logtype = RTE_LOGTYPE_USER1;
	memset(&values, 0xee, sizeof(values));
	fx_setup_none();
}

static void
expect_line(const char *str, const char *line)
{
	const char *log;
	int ret;

	fx_log_begin();
	ret = rmem_args_parse(&table, str, &values);
	log = fx_log_end();
	TEST_ERR(ret, EINVAL);
	if (strcmp(log, line) != 0)
		test_note("\"%s\" logs %s", str, log);
	TEST_EQ(strcmp(log, line), 0);
}

TEST(args_table, defaults_are_set)
{
	TEST_OK(rmem_args_parse(&table, NULL, &values));
	TEST_EQ(values.u64, 7);
	TEST_EQ(values.u32, 6);
	TEST_EQ(values.u16, 5);
	TEST_EQ(values.u8, 4);
	TEST_ASSERT(values.is_on);
	TEST_EQ(values.colour, 1);
	TEST_EQ(values.text[0], 0);
	TEST_EQ(values.other, 0xee);
}

TEST(args_table, fields_of_each_size_are_set)
{
	TEST_OK(rmem_args_parse(&table,
			"u64=18446744073709551615,u32=0xffffffff,u16=65535,u8=9,is_on=0,"
			"colour=blue,text=abcd",
			&values));
	TEST_EQ(values.u64, UINT64_MAX);
	TEST_EQ(values.u32, UINT32_MAX);
	TEST_EQ(values.u16, UINT16_MAX);
	TEST_EQ(values.u8, 9);
	TEST_ASSERT(!values.is_on);
	TEST_EQ(values.colour, 2);
	TEST_EQ(strcmp(values.text, "abcd"), 0);
	TEST_EQ(values.other, 0xee);
}

TEST(args_table, refusals_name_key_value_and_limit)
{
	expect_line("u8=10", "args test: u8='10': invalid value (0 to 9)\n");
	expect_line("u8=x", "args test: u8='x': invalid value (0 to 9)\n");
	expect_line("u8=", "args test: u8='': invalid value (0 to 9)\n");
	expect_line("u16=1", "args test: u16='1': invalid value (2 to 65535)\n");
	expect_line("is_on=yes", "args test: is_on='yes': invalid value (0 to 1)\n");
	expect_line("colour=0", "args test: colour='0': invalid value (red, green, blue)\n");
	expect_line("text=abcde", "args test: text='abcde': invalid value (1 to 4 characters)\n");
	expect_line("text=", "args test: text='': invalid value (1 to 4 characters)\n");
	expect_line("u8=1,u8=1", "args test: arguments: repeated key: 'u8'\n");
	expect_line("u8=1,u16=2,u8=3", "args test: arguments: repeated key: 'u8'\n");
	expect_line("u9=1,u9=1", "args test: arguments: repeated key: 'u9'\n");
	expect_line("u9=1", "args test: arguments: unknown key: 'u9' (see the page)\n");
	expect_line("u8=1,U8=1", "args test: arguments: unknown key: 'U8' (see the page)\n");
	expect_line("u16x=2", "args test: arguments: unknown key: 'u16x' (see the page)\n");
	expect_line("u1=2", "args test: arguments: unknown key: 'u1' (see the page)\n");
	expect_line("u8", "args test: u8='': invalid value (0 to 9)\n");
}

TEST(args_table, other_forms_of_numbers_and_lists_are_refused)
{
	static const char *const forms[] = {"u8=-1", "u8=+1", "u8= 1", "u8=1 ", "u8=1k", "u8=0x",
			"u8=0xg", "u8=1.5", "u8=1e3", "u8=0x1 ", "u8=--1",
			"u64=18446744073709551616", "u8=1=2", "=1", "u8=1,=2", "u8 =1",
			"u8=1;u16=2", "u8=[1,2]"};
	unsigned int i;

	for (i = 0; i < RTE_DIM(forms); i++) {
		int ret = rmem_args_parse(&table, forms[i], &values);

		if (ret != -EINVAL)
			test_note("\"%s\": %d", forms[i], ret);
		TEST_ERR(ret, EINVAL);
	}
	/* Not octal. */
	TEST_OK(rmem_args_parse(&table, "u16=010,u32=0x1f", &values));
	TEST_EQ(values.u16, 10);
	TEST_EQ(values.u32, 31);
}

TEST(args_table, limits_of_a_row_have_its_note)
{
	struct rmem_arg own[RTE_DIM(rows)];

	memcpy(own, rows, sizeof(own));
	own[3].max = 3;
	own[3].note = "on this device";
	own[5].max = 0;
	own[2].max = 1; /* below min */
	table.args = own;
	expect_line("u8=4", "args test: u8='4': invalid value (0 to 3 on this device)\n");
	expect_line("u16=2", "args test: u16='2': invalid value (none)\n");
	expect_line("colour=blue", "args test: colour='blue': invalid value (red)\n");
}

TEST(args_table, other_arguments_are_ignored_on_request)
{
	table.nb_args = 1;
	expect_line("u64=3,u8=1", "args test: arguments: unknown key: 'u8' (see the page)\n");
	table.flags = RMEM_ARGS_IGNORE_OTHERS;
	TEST_OK(rmem_args_parse(&table, "u8=1,u64=3,colour=none", &values));
	TEST_EQ(values.u64, 3);
	TEST_EQ(values.u8, 0xee);
	expect_line("u8=1,u8=2,u64=3", "args test: arguments: repeated key: 'u8'\n");
}

TEST_SUITE(args_table, setup, fx_teardown);
