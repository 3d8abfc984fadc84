/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Arguments of the verbs device. */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_kvargs.h>

#include "rverbs.h"

static int
arg_text(const char *key, const char *value, char *to)
{
	if (value[0] == '\0' || strlen(value) >= RVERBS_NAME_SIZE) {
		RVERBS_LOG(ERR, "%s='%s': length out of range (1 to %d characters)", key, value,
				RVERBS_NAME_SIZE - 1);
		return -EINVAL;
	}
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int
arg_number(const char *key, const char *value, uint32_t min, uint32_t max, uint32_t *to)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end != '\0') {
		RVERBS_LOG(ERR, "%s='%s': not a number", key, value);
		return -EINVAL;
	}
	if (errno != 0 || number < min || number > max) {
		RVERBS_LOG(ERR, "%s=%s: out of range (%u to %u)", key, value, min, max);
		return -EINVAL;
	}
	*to = (uint32_t)number;
	return 0;
}

static int
arg_choice(const char *key, const char *value, uint8_t *to)
{
	static const char *const names[] = {
			[RVERBS_AUTO] = "auto", [RVERBS_ON] = "on", [RVERBS_OFF] = "off"};
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++) {
		if (strcmp(value, names[i]) == 0) {
			*to = (uint8_t)i;
			return 0;
		}
	}
	RVERBS_LOG(ERR, "%s='%s': unknown value (auto, on or off)", key, value);
	return -EINVAL;
}

static int
arg_cm(const char *key, const char *value, bool *is_tcp)
{
	*is_tcp = strcmp(value, "tcp") == 0;
	if (*is_tcp || strcmp(value, "rdma") == 0)
		return 0;
	RVERBS_LOG(ERR, "%s='%s': unknown value (rdma or tcp)", key, value);
	return -EINVAL;
}

static int
arg_set(const char *key, const char *value, struct rverbs_args *args)
{
	int ret;

	if (value == NULL)
		value = "";
	if (strcmp(key, "ibdev") == 0)
		return arg_text(key, value, args->ibdev);
	if (strcmp(key, "gid") == 0)
		return arg_text(key, value, args->gid);
	if (strcmp(key, "port") == 0)
		return arg_number(key, value, 1, 255, &args->port);
	if (strcmp(key, "mtu") == 0) {
		ret = arg_number(key, value, 256, 4096, &args->mtu);
		if (ret == 0 && !rte_is_power_of_2(args->mtu)) {
			RVERBS_LOG(ERR, "mtu=%u: not a path MTU (256, 512, 1024, 2048 or 4096)",
					args->mtu);
			ret = -EINVAL;
		}
		return ret;
	}
	if (strcmp(key, "cm") == 0)
		return arg_cm(key, value, &args->is_cm_tcp);
	if (strcmp(key, "mw_quirk") == 0)
		return arg_choice(key, value, &args->mw_quirk);
	RVERBS_LOG(ERR, "arguments: unknown key: '%s' (see doc/driver_verbs.md)", key);
	return -EINVAL;
}

int
rverbs_args_parse(const char *str, struct rverbs_args *args)
{
	struct rte_kvargs *list;
	unsigned int i;
	int ret = 0;

	memset(args, 0, sizeof(*args));
	args->port = 1;
	if (str == NULL || str[0] == '\0')
		return 0;
	list = rte_kvargs_parse(str, NULL);
	if (list == NULL) {
		RVERBS_LOG(ERR, "arguments: not key=value,key=value: '%s'", str);
		return -EINVAL;
	}
	for (i = 0; i < list->count && ret == 0; i++) {
		if (rte_kvargs_count(list, list->pairs[i].key) > 1) {
			RVERBS_LOG(ERR, "arguments: repeated key: '%s'", list->pairs[i].key);
			ret = -EINVAL;
		} else {
			ret = arg_set(list->pairs[i].key, list->pairs[i].value, args);
		}
	}
	rte_kvargs_free(list);
	return ret;
}
