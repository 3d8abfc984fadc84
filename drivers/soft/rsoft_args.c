/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Arguments of the software device: one row each. */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>
#include <rte_lcore.h>

#include "rsoft_args.h"
#include "rsoft_profile.h"
#include "wire/rwire_hdr.h"

struct rsoft_arg {
	const char *key;
	size_t offset;
	uint64_t initial;
	uint64_t min;
	uint64_t max;
	const char *const *words; /* names of 0 to max, or NULL: numbers */
};

static const char *const rsoft_progress_words[RSOFT_PROGRESS_NB] = {"thread", "poll"};
const char *const rsoft_pin_arg_words[RSOFT_PIN_ARG_NB] = {"auto", "require", "off"};

#define RSOFT_ARG(name, initial, min, max)                                                         \
	{                                                                                          \
#name, offsetof(struct rsoft_args, name), initial, min, max, NULL                  \
	}

static const struct rsoft_arg rsoft_arg_table[] = {
		RSOFT_ARG(max_pd, 256, 1, 65536),
		/* Together they leave the index of a key 24 bits. */
		RSOFT_ARG(max_mr, 16384, 1, (1 << 24) - 2 - (1 << 20)),
		RSOFT_ARG(max_mw, 16384, 1, 1 << 20),
		RSOFT_ARG(max_cq, 256, 1, 65536),
		RSOFT_ARG(max_qp, 256, 1, 65536),
		RSOFT_ARG(max_cqe, 65536, 1, 4194304),
		RSOFT_ARG(max_wr, 16384, 1, 65536),
		RSOFT_ARG(max_sge, RSOFT_MAX_SGE, 1, RSOFT_MAX_SGE),
		RSOFT_ARG(max_inline, 256, 0, 1024),
		RSOFT_ARG(max_mr_size, UINT64_C(1) << 47, 4096, UINT64_C(1) << 47),
		RSOFT_ARG(max_page_list_len, 512, 1, 65535),
		RSOFT_ARG(max_mkey_entries, 512, 1, 65535),
		RSOFT_ARG(max_mkey_depth, 4, 1, RSOFT_MAX_DEPTH),
		RSOFT_ARG(max_iov, 512, 1, 65535),
		{"profile", offsetof(struct rsoft_args, profile), RSOFT_PROFILE_NONE, 0,
				RSOFT_PROFILE_NB - 1, rsoft_profile_words},
		{"progress", offsetof(struct rsoft_args, progress), RSOFT_PROGRESS_THREAD, 0,
				RSOFT_PROGRESS_NB - 1, rsoft_progress_words},
		{"pin", offsetof(struct rsoft_args, pin), RSOFT_PIN_ARG_AUTO, 0,
				RSOFT_PIN_ARG_NB - 1, rsoft_pin_arg_words},
		RSOFT_ARG(engine, 0, 0, RSOFT_MAX_ENGINES),
		RSOFT_ARG(loop, 0, 0, 1),
		RSOFT_ARG(mtu, 0, 256, RWIRE_MAX_MTU),
		RSOFT_ARG(odp_guard, 1, 0, 1),
		RSOFT_ARG(odp_uffd, 1, 0, 1),
		RSOFT_ARG(socket, UINT64_MAX, 0, RTE_MAX_NUMA_NODES - 1),
};

static uint64_t *
arg_value(const struct rsoft_arg *arg, struct rsoft_args *args)
{
	return RTE_PTR_ADD(args, arg->offset);
}

/* The highest value that the profile leaves. */
static uint64_t
arg_max(const struct rsoft_arg *arg, const struct rsoft_args *args)
{
	struct rsoft_args max = rsoft_profiles[args->profile].max;

	if (args->profile == RSOFT_PROFILE_NONE || arg->words != NULL)
		return arg->max;
	return RTE_MIN(arg->max, *arg_value(arg, &max));
}

static const struct rsoft_arg *
arg_find(const char *key)
{
	const struct rsoft_arg *arg;

	for (arg = rsoft_arg_table; arg < rsoft_arg_table + RTE_DIM(rsoft_arg_table); arg++) {
		if (strcmp(arg->key, key) == 0)
			return arg;
	}
	RSOFT_LOG(ERR, "arguments: unknown key: '%s' (see doc/driver_soft.md)", key);
	return NULL;
}

static int
arg_word(const struct rsoft_arg *arg, const char *value, uint64_t *number)
{
	char names[64] = "";
	uint64_t i;

	for (i = 0; i <= arg->max; i++) {
		if (strcmp(arg->words[i], value) == 0) {
			*number = i;
			return 0;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
				i == 0 ? "" : ", ", arg->words[i]);
	}
	RSOFT_LOG(ERR, "%s='%s': unknown value (known: %s)", arg->key, value, names);
	return -EINVAL;
}

static int
arg_number(const struct rsoft_arg *arg, const char *value, const struct rsoft_args *args,
		uint64_t *number)
{
	uint64_t max = arg_max(arg, args);
	char *end;

	if (!isdigit((unsigned char)value[0])) {
		RSOFT_LOG(ERR, "%s='%s': not a number", arg->key, value);
		return -EINVAL;
	}
	errno = 0;
	*number = strtoull(value, &end, value[0] == '0' && value[1] == 'x' ? 16 : 10);
	if (*end != '\0') {
		RSOFT_LOG(ERR, "%s='%s': not a number", arg->key, value);
		return -EINVAL;
	}
	if (max < arg->min) {
		RSOFT_LOG(ERR, "%s=%s: no such limit (profile=%s)", arg->key, value,
				rsoft_profile_words[args->profile]);
		return -EINVAL;
	}
	if (errno != 0 || *number < arg->min || *number > max) {
		RSOFT_LOG(ERR, "%s=%s: out of range (%" PRIu64 " to %" PRIu64 "%s%s)", arg->key,
				value, arg->min, max, max < arg->max ? " with profile=" : "",
				max < arg->max ? rsoft_profile_words[args->profile] : "");
		return -EINVAL;
	}
	return 0;
}

/* Additional conditions of some argument values. */
static int
arg_check(const struct rsoft_arg *arg, const char *value, uint64_t number,
		const struct rsoft_args *args)
{
	if (arg->offset == offsetof(struct rsoft_args, socket))
		return rmem_socket_check((int)number);
	if (arg->offset == offsetof(struct rsoft_args, pin) &&
			args->profile != RSOFT_PROFILE_NONE && number != RSOFT_PIN_ARG_REQUIRE) {
		RSOFT_LOG(ERR, "pin=%s: not supported (profile=%s requires pin=require)", value,
				rsoft_profile_words[args->profile]);
		return -EINVAL;
	}
	return 0;
}

/* Set an argument that is text. False: the key is not one of those. */
static bool
arg_text(const char *key, const char *value, struct rsoft_args *args, int *ret)
{
	const struct {
		const char *key;
		char *text;
		size_t size;
	} texts[] = {{"fault", args->fault, sizeof(args->fault)},
			{"ip", args->ip, sizeof(args->ip)},
			{"neigh", args->neigh, sizeof(args->neigh)},
			{"pcap", args->pcap, sizeof(args->pcap)},
			{"port", args->port, sizeof(args->port)}};
	size_t i, len = value == NULL ? 0 : strlen(value);

	for (i = 0; i < RTE_DIM(texts); i++) {
		if (strcmp(texts[i].key, key) != 0)
			continue;
		*ret = len != 0 && len < texts[i].size ? 0 : -EINVAL;
		if (*ret == 0)
			memcpy(texts[i].text, value, len + 1);
		else
			RSOFT_LOG(ERR, "%s=: length out of range: %zu characters (1 to %zu)", key,
					len, texts[i].size - 1);
		return true;
	}
	return false;
}

static int
arg_set(const char *key, const char *value, struct rsoft_args *args)
{
	const struct rsoft_arg *arg;
	uint64_t number = 0;
	int ret;

	if (arg_text(key, value, args, &ret))
		return ret;
	arg = arg_find(key);
	if (arg == NULL)
		return -EINVAL;
	if (value == NULL)
		value = "";
	if (arg->words != NULL)
		ret = arg_word(arg, value, &number);
	else
		ret = arg_number(arg, value, args, &number);
	if (ret == 0)
		ret = arg_check(arg, value, number, args);
	if (ret == 0)
		*arg_value(arg, args) = number;
	return ret;
}

static bool
arg_is_profile(const struct rte_kvargs_pair *pair)
{
	return strcmp(pair->key, "profile") == 0;
}

/* The profile first, since it lowers the defaults and the ranges of the others. */
static int
args_set(const struct rte_kvargs *list, struct rsoft_args *args)
{
	const struct rsoft_arg *arg;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < list->count && ret == 0; i++) {
		if (rte_kvargs_count(list, list->pairs[i].key) > 1) {
			RSOFT_LOG(ERR, "arguments: repeated key: '%s'", list->pairs[i].key);
			ret = -EINVAL;
		}
	}
	for (i = 0; i < list->count && ret == 0; i++) {
		if (arg_is_profile(&list->pairs[i]))
			ret = arg_set("profile", list->pairs[i].value, args);
	}
	for (arg = rsoft_arg_table; arg < rsoft_arg_table + RTE_DIM(rsoft_arg_table); arg++) {
		/* Not of socket, whose default is above its range. */
		if (arg_max(arg, args) < arg->max)
			*arg_value(arg, args) = RTE_MIN(arg->initial, arg_max(arg, args));
	}
	if (args->profile != RSOFT_PROFILE_NONE)
		args->pin = RSOFT_PIN_ARG_REQUIRE;
	for (i = 0; i < list->count && ret == 0; i++) {
		if (!arg_is_profile(&list->pairs[i]))
			ret = arg_set(list->pairs[i].key, list->pairs[i].value, args);
	}
	return ret;
}

/* The wire: without ip= there is none, and its requests are not executed by engines. */
static int
args_check_wire(const struct rsoft_args *args)
{
	const char *extra = args->fault[0] != '\0' ? "fault"
			: args->neigh[0] != '\0'   ? "neigh"
			: args->pcap[0] != '\0'    ? "pcap"
			: args->port[0] != '\0'    ? "port"
			: args->mtu != 0           ? "mtu"
			: args->loop != 0          ? "loop"
			: args->progress != 0      ? "progress"
						   : NULL;

	if (args->ip[0] == '\0' && extra != NULL) {
		RSOFT_LOG(ERR, "%s=: not supported without ip=", extra);
		return -EINVAL;
	}
	if (args->ip[0] != '\0' && args->engine != 0) {
		RSOFT_LOG(ERR, "ip=: cannot be combined with engine=");
		return -EINVAL;
	}
	return 0;
}

int
rsoft_args_parse(const char *str, struct rsoft_args *args)
{
	struct rte_kvargs *list;
	unsigned int i;
	int ret;

	memset(args, 0, sizeof(*args));
	for (i = 0; i < RTE_DIM(rsoft_arg_table); i++)
		*arg_value(&rsoft_arg_table[i], args) = rsoft_arg_table[i].initial;
	if (str == NULL || str[0] == '\0')
		return 0;
	list = rte_kvargs_parse(str, NULL);
	if (list == NULL) {
		RSOFT_LOG(ERR, "arguments: not key=value,key=value: '%s'", str);
		return -EINVAL;
	}
	ret = args_set(list, args);
	rte_kvargs_free(list);
	return ret == 0 ? args_check_wire(args) : ret;
}
