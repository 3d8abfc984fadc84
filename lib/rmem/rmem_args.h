/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Parser of device arguments, for drivers.
 *
 * A table has one row for each argument. Each refused value is logged in one line: `key='value':
 * invalid value (limit)`.
 */

#ifndef RMEM_ARGS_H
#define RMEM_ARGS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of arguments. */
enum rmem_arg_kind {
	RMEM_ARG_NUMBER = 0, /**< Unsigned integer of 1, 2, 4 or 8 bytes, or bool; 0x for hex. */
	RMEM_ARG_WORD = 1,   /**< One of several words; its index is stored, as a number. */
	RMEM_ARG_TEXT = 2,   /**< Characters, stored in an array with a NUL. */
};

/** An argument. */
struct rmem_arg {
	const char *key;          /**< Name. */
	uint32_t kind;            /**< One of enum rmem_arg_kind. */
	uint32_t size;            /**< Bytes of the field. */
	size_t offset;            /**< Offset of the field in the struct of values. */
	uint64_t initial;         /**< Default of a number or word; a text is empty by default. */
	uint64_t min;             /**< Least number, index of a word, or length of a text. */
	uint64_t max;             /**< Greatest such value; below min: the argument is refused. */
	const char *const *words; /**< Names of the values up to max. */
	const char *note;         /**< Reason of the limits, for log lines; or NULL. */
	uint64_t reserved[2];     /**< Zero. */
};

/** Row for a number: RMEM_ARG_NUMBER(struct my_args, field, initial, min, max). */
#define RMEM_ARG_NUMBER_ROW(type, field, initial, min, max)                                        \
	{                                                                                          \
#field, RMEM_ARG_NUMBER, sizeof(((type *)NULL)->field), offsetof(type, field),     \
				initial, min, max, NULL, NULL,                                     \
		{                                                                                  \
			0, 0                                                                       \
		}                                                                                  \
	}

/** Row for one of the nb words of an array. */
#define RMEM_ARG_WORD_ROW(type, field, initial, words, nb)                                         \
	{                                                                                          \
#field, RMEM_ARG_WORD, sizeof(((type *)NULL)->field), offsetof(type, field),       \
				initial, 0, (nb)-1, words, NULL,                                   \
		{                                                                                  \
			0, 0                                                                       \
		}                                                                                  \
	}

/** Row for a text of at least one character that fits into the field. */
#define RMEM_ARG_TEXT_ROW(type, field)                                                             \
	{                                                                                          \
#field, RMEM_ARG_TEXT, sizeof(((type *)NULL)->field), offsetof(type, field), 0, 1, \
				sizeof(((type *)NULL)->field) - 1, NULL, NULL,                     \
		{                                                                                  \
			0, 0                                                                       \
		}                                                                                  \
	}

/** Ignore arguments that the table lacks, instead of refusing them. */
#define RMEM_ARGS_IGNORE_OTHERS (UINT32_C(1) << 0)

/** Arguments of a driver. */
struct rmem_args_table {
	const char *prefix;          /**< First word of log lines. */
	const char *page;            /**< Page that lists the arguments. */
	const struct rmem_arg *args; /**< Rows. */
	uint32_t nb_args;            /**< Number of rows. */
	int logtype;                 /**< Log type of the driver. */
	uint32_t flags;              /**< RMEM_ARGS_IGNORE_OTHERS, or 0. */
	uint32_t pad;                /**< Zero. */
	uint64_t reserved[2];        /**< Zero. */
};

/**
 * Set the fields of a struct to the values of arguments, or to their defaults.
 *
 * Control path. Safe to call from any thread.
 *
 * @param table
 *   Arguments of the driver.
 * @param str
 *   "key=value,key=value", as passed to rmem_dev_create(); NULL for none.
 * @param[out] values
 *   Struct with the fields; those without a row are not changed. Undefined on failure.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: str is not a list of pairs, an argument is unknown or given twice, or a value is
 *     not permitted; one line is logged.
 */
int rmem_args_parse(const struct rmem_args_table *table, const char *str, void *values);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_ARGS_H */
