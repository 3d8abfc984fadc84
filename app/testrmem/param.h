/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Parameters: one table for the options, the command set, show config and the help. */

#ifndef PARAM_H
#define PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "testrmem.h"

enum param_type {
	PARAM_DEV,    /**< Device; may be given several times. */
	PARAM_MODE,   /**< Name of an engine. */
	PARAM_NUM,    /**< Number with suffix. */
	PARAM_TIME,   /**< Seconds with a fraction, kept in milliseconds. */
	PARAM_STRING, /**< Path. */
	PARAM_FLAG,   /**< No value. */
};

/** A parameter, stored in a member of struct testrmem_conf. */
struct param {
	const char *name;
	char letter;     /**< Short option, or 0. */
	const char *arg; /**< Name of the value, NULL for none. */
	const char *help;
	enum param_type type;
	size_t offset;
	uint64_t min;
	uint64_t max;
	uint64_t def;
	/** Text of "auto", NULL if there is no such value; param_automatic() adds to it. */
	const char *automatic;
	bool is_fixed; /**< Cannot be changed by set. */
};

/** Ended by a NULL name. */
extern const struct param params[];

/** Set all to their defaults. */
void param_defaults(struct testrmem_conf *conf);
const struct param *param_find(const char *name);
/** Set one; reports an invalid value and returns -EINVAL, without a change. */
int param_set(struct testrmem_conf *conf, const struct param *param, const char *value);
/** Write the present value as text. */
void param_print(const struct testrmem_conf *conf, const struct param *param, char *text,
		size_t size);
/** Write what "auto" means as text. */
void param_automatic(const struct param *param, char *text, size_t size);
/** Write the allowed values as text. */
void param_range(const struct param *param, char *text, size_t size);
/* resolve.c */
/**
 * Replace TESTRMEM_AUTO by numbers and check the combination of values; -EINVAL with a message
 * if they are inconsistent.
 */
int param_resolve(const struct testrmem_conf *conf, struct testrmem_conf *resolved);

/* option.c */
/** The application's part of the command line; NULL without a "--". */
char **option_find(int argc, char **argv, int *nb_args);
/** Parse it; reports errors and returns -EINVAL. */
int option_parse(int argc, char **argv, struct testrmem_conf *conf);
/** Print the help. */
void option_usage(const char *program);

#endif /* PARAM_H */
