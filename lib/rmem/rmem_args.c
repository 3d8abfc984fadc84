/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Arguments of devices, parsed by the table of a driver.
 */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_kvargs.h>

#include <rmem_args.h>

#include "rmem_priv.h"

#define LIMIT_SIZE 160

#define ARGS_LOG(table, format, ...)                                                               \
	RMEM_LOG_LINE(ERR, (table)->logtype, "%s", format, (table)->prefix, __VA_ARGS__)

static void
set_number(const struct rmem_arg *arg, void *values, uint64_t number)
{
	uint8_t *field = (uint8_t *)values + arg->offset;
	uint32_t number32 = (uint32_t)number;
	uint16_t number16 = (uint16_t)number;
	uint8_t number8 = (uint8_t)number;

	if (arg->size == sizeof(number))
		memcpy(field, &number, sizeof(number));
	else if (arg->size == sizeof(number32))
		memcpy(field, &number32, sizeof(number32));
	else if (arg->size == sizeof(number16))
		memcpy(field, &number16, sizeof(number16));
	else
		memcpy(field, &number8, sizeof(number8));
}

static bool
set_word(const struct rmem_arg *arg, const char *value, void *values)
{
	uint64_t i;

	for (i = arg->min; i <= arg->max; i++) {
		if (strcmp(arg->words[i], value) == 0) {
			set_number(arg, values, i);
			return true;
		}
	}
	return false;
}

static bool
set_digits(const struct rmem_arg *arg, const char *value, void *values)
{
	uint64_t number;
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return false;
	errno = 0;
	number = strtoull(value, &end, value[0] == '0' && value[1] == 'x' ? 16 : 10);
	if (*end != '\0' || errno != 0 || number < arg->min || number > arg->max)
		return false;
	set_number(arg, values, number);
	return true;
}

static bool
set_text(const struct rmem_arg *arg, const char *value, void *values)
{
	size_t length = strlen(value);

	if (length < arg->min || length > arg->max || length >= arg->size)
		return false;
	memcpy((uint8_t *)values + arg->offset, value, length + 1);
	return true;
}

/* Print the permitted values, human-readable. */
static void
print_limit(const struct rmem_arg *arg, char *text, size_t size)
{
	const char *separator = "";
	size_t used = 0;
	uint64_t i;

	if (arg->max < arg->min)
		snprintf(text, size, "none");
	else if (arg->kind != RMEM_ARG_WORD)
		snprintf(text, size, "%" PRIu64 " to %" PRIu64 "%s", arg->min, arg->max,
				arg->kind == RMEM_ARG_TEXT ? " characters" : "");
	else
		for (i = arg->min; i <= arg->max && used < size; i++, separator = ", ")
			used += (size_t)snprintf(
					text + used, size - used, "%s%s", separator, arg->words[i]);
}

static int
set_arg(const struct rmem_args_table *table, const struct rmem_arg *arg, const char *value,
		void *values)
{
	char limit[LIMIT_SIZE];
	bool is_set;

	if (value == NULL)
		value = "";
	if (arg->kind == RMEM_ARG_TEXT)
		is_set = set_text(arg, value, values);
	else if (arg->kind == RMEM_ARG_WORD)
		is_set = set_word(arg, value, values);
	else
		is_set = set_digits(arg, value, values);
	if (is_set)
		return 0;
	print_limit(arg, limit, sizeof(limit));
	ARGS_LOG(table, "%s='%s': invalid value (%s%s%s)", arg->key, value, limit,
			arg->note == NULL ? "" : " ", arg->note == NULL ? "" : arg->note);
	return -EINVAL;
}

static const struct rmem_arg *
find(const struct rmem_args_table *table, const char *key)
{
	uint32_t i;

	for (i = 0; i < table->nb_args; i++) {
		if (strcmp(table->args[i].key, key) == 0)
			return &table->args[i];
	}
	return NULL;
}

/* Check that each key is known and not repeated. */
static int
check_keys(const struct rmem_args_table *table, const struct rte_kvargs *list)
{
	const char *key;
	unsigned int i;

	for (i = 0; i < list->count; i++) {
		key = list->pairs[i].key;
		if (rte_kvargs_count(list, key) > 1) {
			ARGS_LOG(table, "arguments: repeated key: '%s'", key);
			return -EINVAL;
		}
	}
	for (i = 0; i < list->count && (table->flags & RMEM_ARGS_IGNORE_OTHERS) == 0; i++) {
		key = list->pairs[i].key;
		if (find(table, key) == NULL) {
			ARGS_LOG(table, "arguments: unknown key: '%s' (see %s)", key, table->page);
			return -EINVAL;
		}
	}
	return 0;
}

int
rmem_args_parse(const struct rmem_args_table *table, const char *str, void *values)
{
	const struct rmem_arg *arg;
	struct rte_kvargs *list;
	unsigned int i;
	int ret;

	for (i = 0; i < table->nb_args; i++) {
		arg = &table->args[i];
		if (arg->kind == RMEM_ARG_TEXT)
			memset((uint8_t *)values + arg->offset, 0, arg->size);
		else
			set_number(arg, values, arg->initial);
	}
	if (str == NULL || str[0] == '\0')
		return 0;
	list = rte_kvargs_parse(str, NULL);
	if (list == NULL) {
		ARGS_LOG(table, "arguments: not key=value,key=value: '%s'", str);
		return -EINVAL;
	}
	ret = check_keys(table, list);
	for (i = 0; i < list->count && ret == 0; i++) {
		arg = find(table, list->pairs[i].key);
		if (arg != NULL)
			ret = set_arg(table, arg, list->pairs[i].value, values);
	}
	rte_kvargs_free(list);
	return ret;
}
