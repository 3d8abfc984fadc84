/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Arguments of the software device, one row each. A profile lowers the defaults and ranges of the
 * other rows, so it is parsed first.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_lcore.h>

#include "rsoft_dev.h"
#include "base/rsoft_profile.h"
#include "mem/rsoft_pin.h"
#include "wire/codec/rwire_hdr.h"

static const char *const progress_words[RSOFT_PROGRESS_NB] = {"thread", "poll", "engine"};
static const char *const keys_words[RSOFT_KEYS_NB] = {"different", "same"};

#define NUMBER(name, initial, min, max)                                                            \
	RMEM_ARG_NUMBER_ROW(struct rsoft_args, name, initial, min, max)
#define WORD(name, initial, words, nb)                                                             \
	RMEM_ARG_WORD_ROW(struct rsoft_args, name, initial, words, nb)
#define TEXT(name) RMEM_ARG_TEXT_ROW(struct rsoft_args, name)

static const struct rmem_arg rows[] = {
		WORD(profile, RSOFT_PROFILE_NONE, rsoft_profile_words, RSOFT_PROFILE_NB),
		WORD(pin, RSOFT_PIN_ARG_AUTO, rsoft_pin_arg_words, RSOFT_PIN_ARG_NB),
		WORD(keys, RSOFT_KEYS_DIFFERENT, keys_words, RSOFT_KEYS_NB),
		WORD(progress, RSOFT_PROGRESS_THREAD, progress_words, RSOFT_PROGRESS_NB),
		NUMBER(max_pd, 256, 1, 65536),
		/* The sum of both fits in the 24 bits of an index. */
		NUMBER(max_mr, 16384, 1, (1 << 24) - 2 - (1 << 20)),
		NUMBER(max_mw, 16384, 1, 1 << 20),
		NUMBER(max_cq, 256, 1, 65536),
		NUMBER(max_qp, 256, 1, 65536),
		NUMBER(max_srq, 256, 1, 65536),
		NUMBER(max_dm, 256, 1, 65536),
		NUMBER(max_dm_size, 1 << 20, 64, UINT64_C(1) << 30),
		NUMBER(max_cqe, 65536, 1, 4194304),
		NUMBER(max_wr, 16384, 1, 65536),
		NUMBER(max_sge, RSOFT_MAX_SGE, 1, RSOFT_MAX_SGE),
		NUMBER(max_inline, 256, 0, 1024),
		NUMBER(max_mr_size, UINT64_C(1) << 47, 4096, UINT64_C(1) << 47),
		NUMBER(max_page_list_len, 512, 1, 65535),
		NUMBER(max_mkey_entries, 512, 1, 65535),
		NUMBER(max_mkey_depth, 4, 1, RSOFT_MAX_DEPTH),
		NUMBER(max_iov, 512, 1, 65535),
		NUMBER(control, 0, 0, 1),
		NUMBER(direct, 1, 0, 1),
		NUMBER(engine, 0, 0, RSOFT_MAX_ENGINES),
		NUMBER(loop, 0, 0, 1),
		NUMBER(mtu, 0, 256, RWIRE_MAX_MTU),
		NUMBER(sanitize, 0, 0, 2),
		NUMBER(share, 0, 0, 1),
		NUMBER(odp_guard, 1, 0, 1),
		NUMBER(odp_uffd, 1, 0, 1),
		NUMBER(socket, UINT64_MAX, 0, RTE_MAX_NUMA_NODES - 1),
		TEXT(allow),
		TEXT(chaos),
		TEXT(fault),
		TEXT(gids),
		TEXT(ip),
		TEXT(neigh),
		TEXT(pcap),
		TEXT(pkeys),
		TEXT(port),
};

/* Restrict a row to the values of a profile; note is the reason. */
static void
restrict_row(struct rmem_arg *row, const struct rsoft_args *max, const char *note)
{
	uint64_t limit;

	if (row->offset == offsetof(struct rsoft_args, pin)) {
		row->initial = row->min = row->max = RSOFT_PIN_ARG_REQUIRE;
		row->note = note;
		return;
	}
	if (row->offset == offsetof(struct rsoft_args, keys))
		row->initial = max->keys;
	if (row->kind != RMEM_ARG_NUMBER)
		return;
	memcpy(&limit, (const uint8_t *)max + row->offset, sizeof(limit));
	if (limit >= row->max)
		return;
	row->max = limit;
	row->initial = RTE_MIN(row->initial, limit);
	row->note = note;
}

/* Check the arguments of the wire: without ip= there is none; engines that execute its requests
 * also receive. */
static int
check_wire(const struct rsoft_args *args)
{
	const char *extra = args->allow[0] != '\0' ? "allow"
			: args->fault[0] != '\0'   ? "fault"
			: args->gids[0] != '\0'    ? "gids"
			: args->neigh[0] != '\0'   ? "neigh"
			: args->pcap[0] != '\0'    ? "pcap"
			: args->pkeys[0] != '\0'   ? "pkeys"
			: args->port[0] != '\0'    ? "port"
			: args->mtu != 0           ? "mtu"
			: args->loop != 0          ? "loop"
			: args->share != 0         ? "share"
			: args->control != 0       ? "control"
			: args->progress != 0      ? "progress"
						   : NULL;

	if (args->ip[0] == '\0' && extra != NULL) {
		RSOFT_LOG(ERR, "%s=: not supported without ip=", extra);
		return -EINVAL;
	}
	if (args->share != 0 && args->odp_guard == 0) {
		RSOFT_LOG(ERR, "share=1: not supported with odp_guard=0");
		return -EINVAL;
	}
	if (args->control != 0 && args->progress != RSOFT_PROGRESS_THREAD) {
		RSOFT_LOG(ERR, "control=1: needs progress=thread");
		return -EINVAL;
	}
	if (args->ip[0] == '\0' || (args->engine != 0) == (args->progress == RSOFT_PROGRESS_ENGINE))
		return 0;
	RSOFT_LOG(ERR, "ip=: engine= needs progress=engine, and conversely");
	return -EINVAL;
}

int
rsoft_args_parse(const char *str, struct rsoft_args *args)
{
	struct rmem_args_table table = {
			.prefix = "rmem_soft",
			.page = "doc/driver_soft.md",
			.args = rows,
			.nb_args = 1, /* profile= */
			.logtype = rsoft_logtype,
			.flags = RMEM_ARGS_IGNORE_OTHERS,
	};
	struct rmem_arg own[RTE_DIM(rows)];
	char note[32];
	unsigned int i;
	int ret;

	ret = rmem_args_parse(&table, str, args);
	if (ret != 0)
		return ret;
	snprintf(note, sizeof(note), "with profile=%s", rsoft_profile_words[args->profile]);
	memcpy(own, rows, sizeof(own));
	for (i = 0; i < RTE_DIM(rows) && args->profile != RSOFT_PROFILE_NONE; i++)
		restrict_row(&own[i], &rsoft_profiles[args->profile].max, note);
	table.args = own;
	table.nb_args = RTE_DIM(own);
	table.flags = 0;
	ret = rmem_args_parse(&table, str, args);
	if (ret == 0 && args->socket != UINT64_MAX)
		ret = rmem_socket_check((int)args->socket);
	return ret == 0 ? check_wire(args) : ret;
}
