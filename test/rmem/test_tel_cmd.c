/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The registry of telemetry commands: what it refuses, and lists of more names than a reply has. */

#include <stdio.h>

#include <rmem_telemetry.h>

#include "fixture.h"

static int
list_none(struct rte_tel_data *d)
{
	return rte_tel_data_start_dict(d);
}

static int
get_none(const char *name, struct rte_tel_data *d)
{
	RTE_SET_USED(name);
	RTE_SET_USED(d);
	return -ENOENT;
}

TEST(tel_cmd, command_without_a_field_is_refused)
{
	const struct rmem_tel_cmd good = {"/test", "help", list_none, get_none, {0, 0}};
	struct rmem_tel_cmd cmd;

	TEST_ERR(rmem_telemetry_add(NULL), EINVAL);
	cmd = good;
	cmd.cmd = NULL;
	TEST_ERR(rmem_telemetry_add(&cmd), EINVAL);
	cmd = good;
	cmd.help = NULL;
	TEST_ERR(rmem_telemetry_add(&cmd), EINVAL);
	cmd = good;
	cmd.list = NULL;
	TEST_ERR(rmem_telemetry_add(&cmd), EINVAL);
	cmd = good;
	cmd.get = NULL;
	TEST_ERR(rmem_telemetry_add(&cmd), EINVAL);
}

TEST(tel_cmd, too_many_commands_are_refused)
{
	static struct rmem_tel_cmd cmds[8];
	static char names[RTE_DIM(cmds)][16];
	unsigned int i;
	int ret = 0;

	for (i = 0; i < RTE_DIM(cmds) && ret == 0; i++) {
		snprintf(names[i], sizeof(names[i]), "/test/%u", i);
		cmds[i] = (struct rmem_tel_cmd){names[i], "help", list_none, get_none, {0, 0}};
		ret = rmem_telemetry_add(&cmds[i]);
	}
	TEST_ERR(ret, ENOSPC);
	TEST_EQ(i, 5); /* after those of the libraries */
}

TEST(tel_cmd, names_beyond_the_array_are_counted)
{
	struct rte_tel_data *d = rte_tel_data_alloc();
	struct rmem_tel_names names;
	unsigned int i;

	TEST_ASSERT(d != NULL);
	TEST_OK(rmem_tel_names_begin(&names));
	for (i = 0; i < RTE_TEL_MAX_ARRAY_ENTRIES + 7; i++)
		rmem_tel_names_add(&names, "name");
	TEST_EQ(names.nb, RTE_TEL_MAX_ARRAY_ENTRIES + 7);
	TEST_OK(rmem_tel_names_end(&names, "names", d));
	rte_tel_data_free(names.d);
	rte_tel_data_free(d);
}

TEST_SUITE(tel_cmd, fx_setup_none, fx_teardown);
