/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Arguments of the verbs device: one row each. */

#include <string.h>

#include "rverbs_mlx5.h"

static const char *const choices[] = {
		[RVERBS_AUTO] = "auto", [RVERBS_ON] = "on", [RVERBS_OFF] = "off"};
static const char *const mtus[] = {[0] = "active",
		[IBV_MTU_256] = "256",
		[IBV_MTU_512] = "512",
		[IBV_MTU_1024] = "1024",
		[IBV_MTU_2048] = "2048",
		[IBV_MTU_4096] = "4096"};

int
rverbs_args_parse(const char *str, struct rverbs_args *args)
{
	const struct rmem_arg rows[] = {
			RMEM_ARG_TEXT_ROW(struct rverbs_args, ibdev),
			RMEM_ARG_TEXT_ROW(struct rverbs_args, gid),
			RMEM_ARG_NUMBER_ROW(struct rverbs_args, port, 1, 1, UINT8_MAX),
			RMEM_ARG_WORD_ROW(struct rverbs_args, mtu, 0, mtus, RTE_DIM(mtus)),
			RMEM_ARG_NUMBER_ROW(struct rverbs_args, mkey_entries, 16, 0,
					RVERBS_MLX5_MAX_ENTRIES),
			RMEM_ARG_WORD_ROW(struct rverbs_args, mw_quirk, RVERBS_AUTO, choices,
					RTE_DIM(choices)),
	};
	const struct rmem_args_table table = {
			.prefix = "rmem_verbs",
			.page = "doc/driver_verbs.md",
			.args = rows,
			.nb_args = RTE_DIM(rows),
			.logtype = rverbs_logtype,
	};

	return rmem_args_parse(&table, str, args);
}
