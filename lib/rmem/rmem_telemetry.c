/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Telemetry: the registry of commands, and the command for devices.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include <rmem_telemetry.h>

#include "rmem_priv.h"

/* A search, and its reply. */
struct query {
	const char *name;
	struct rte_tel_data *d;
	int ret;
};

#define CMDS_MAX 8

/* Objects of the class and of libraries above it; added by constructors, which run sequentially. */
static const struct rmem_tel_cmd *cmds[CMDS_MAX];
static unsigned int nb_cmds;

static int
handle(const char *cmd, const char *params, struct rte_tel_data *d)
{
	unsigned int i;

	for (i = 0; i < nb_cmds; i++) {
		if (strcmp(cmds[i]->cmd, cmd) == 0)
			break;
	}
	if (i == nb_cmds)
		return -ENOENT;
	return params == NULL || *params == '\0' ? cmds[i]->list(d) : cmds[i]->get(params, d);
}

int
rmem_telemetry_add(const struct rmem_tel_cmd *cmd)
{
	RMEM_CALL(NULL);

	if (cmd == NULL || cmd->cmd == NULL || cmd->help == NULL || cmd->list == NULL ||
			cmd->get == NULL)
		return RMEM_FAIL(EINVAL, "command: a field is NULL");
	if (nb_cmds == CMDS_MAX)
		return RMEM_FAIL(ENOSPC, "commands: table full (%d)", CMDS_MAX);
	cmds[nb_cmds++] = cmd;
	rte_telemetry_register_cmd(cmd->cmd, handle, cmd->help);
	return 0;
}

int
rmem_tel_names_begin(struct rmem_tel_names *names)
{
	memset(names, 0, sizeof(*names));
	names->d = rte_tel_data_alloc();
	return names->d == NULL ? -ENOMEM : rte_tel_data_start_array(names->d, RTE_TEL_STRING_VAL);
}

void
rmem_tel_names_add(struct rmem_tel_names *names, const char *name)
{
	if (names->nb++ < RTE_TEL_MAX_ARRAY_ENTRIES)
		rte_tel_data_add_array_string(names->d, name);
}

int
rmem_tel_names_end(struct rmem_tel_names *names, const char *key, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	rmem_tel_uint(d, "count", names->nb);
	return rte_tel_data_add_dict_container(d, key, names->d, 0);
}

static int
list_dev(struct rmem_dev *dev, void *arg)
{
	return rte_tel_data_add_array_string(arg, dev->name);
}

static void
add_limit(struct rte_tel_data *d, const char *name, uint64_t used, uint64_t max)
{
	struct rte_tel_data *pair = rte_tel_data_alloc();

	if (pair == NULL)
		return;
	rte_tel_data_start_dict(pair);
	rmem_tel_uint(pair, "used", used);
	rmem_tel_uint(pair, "max", max);
	rte_tel_data_add_dict_container(d, name, pair, 0);
}

static void
add_stats(struct rte_tel_data *d, struct rmem_dev *dev)
{
	struct rte_tel_data *dict;
	struct rmem_dev_stats stats;
	size_t i;

	memset(&stats, 0, sizeof(stats));
	if (rmem_obj_driver(&dev->obj)->ops.dev_stats_get(dev, &stats) != 0)
		return;
	dict = rte_tel_data_alloc();
	if (dict == NULL)
		return;
	rte_tel_data_start_dict(dict);
	for (i = 0; i < rmem_nb_dev_stats; i++)
		rmem_tel_uint(dict, rmem_dev_stats_names[i].name,
				rmem_dev_stat(&stats, &rmem_dev_stats_names[i]));
	rte_tel_data_add_dict_container(d, "stats", dict, 0);
}

static int
add_dev(struct rmem_dev *dev, void *arg)
{
	struct query *query = arg;
	struct rte_tel_data *d = query->d;
	struct rmem_dev_info info;

	if (strcmp(dev->name, query->name) != 0)
		return 0;
	query->ret = 0;
	rmem_dev_info_fill(dev, &info);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "name", dev->name);
	rte_tel_data_add_dict_string(d, "driver", info.driver_name);
	rte_tel_data_add_dict_int(d, "socket", dev->socket_id);
	rmem_tel_bits(d, "capabilities", info.capa);
	rmem_tel_bits(d, "access", info.access);
	add_limit(d, "pds", info.nb_pd, info.max_pd);
	add_limit(d, "mrs", info.nb_mr, info.max_mr);
	add_limit(d, "mws", info.nb_mw, info.max_mw);
	add_limit(d, "cqs", info.nb_cq, info.max_cq);
	add_limit(d, "qps", info.nb_qp, info.max_qp);
	add_limit(d, "srqs", info.nb_srq, info.max_srq);
	add_limit(d, "dms", info.nb_dm, info.max_dm);
	rmem_tel_uint(d, "max_mr_size", info.max_mr_size);
	add_stats(d, dev);
	return 1;
}

static int
list_devs(struct rte_tel_data *d)
{
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	return rmem_dev_visit(list_dev, d);
}

static int
get_dev(const char *name, struct rte_tel_data *d)
{
	struct query query = {.name = name, .d = d, .ret = -ENODEV};

	rmem_dev_visit(add_dev, &query);
	return query.ret;
}

void
rmem_telemetry_init(void)
{
	static const struct rmem_tel_cmd devs = {
			.cmd = "/rmem/dev",
			.help = "Names of the devices. Parameter: a name, for its limits and counters",
			.list = list_devs,
			.get = get_dev,
	};
	(void)rmem_telemetry_add(&devs);
}
