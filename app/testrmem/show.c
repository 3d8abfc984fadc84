/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The show command.
 */

#include <inttypes.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mempool.h>

#include <rmem_mempool.h>
#include <rmem_pool.h>

#include "app.h"
#include "grant.h"

/* Target MRs of a device that are listed one by one. */
#define MAX_LISTED 8

static bool
has_session(const struct app *app)
{
	if (app->session == NULL)
		printf("no run yet: use start\n");
	return app->session != NULL;
}

static void
show_config(struct app *app)
{
	char value[TESTRMEM_MAX_DEVS * TESTRMEM_STR_SIZE];
	const struct param *param;

	for (param = params; param->name != NULL; param++) {
		if (param->type == PARAM_FLAG)
			continue;
		param_print(&app->conf, param, value, sizeof(value));
		printf("%-13s %s\n", param->name, value);
	}
}

static void
show_device(struct app *app)
{
	uint32_t i;
	int ret;

	for (i = 0; i < app->conf.nb_devs; i++) {
		ret = rmem_dev_dump(app->devs[i].dev, stdout);
		if (ret != 0)
			testrmem_err("cannot show '%s': %s", app->devs[i].spec, rte_strerror(-ret));
	}
}

static void
print_mr(const char *what, struct rmem_mr *mr)
{
	struct rmem_mr_info info;
	int ret = rmem_mr_query(mr, &info);

	if (ret != 0) {
		testrmem_err("cannot show an MR: %s", rte_strerror(-ret));
		return;
	}
	printf("  %-8s iova 0x%" PRIx64 " length %" PRIu64 " lkey 0x%" PRIx32 " rkey 0x%" PRIx32
	       " access 0x%" PRIx32 " %s, pages of %" PRIu64 ", %" PRIu32 " extent%s\n",
			what, info.iova, info.length, info.lkey, info.rkey, info.access,
			info.state == RMEM_MR_STATE_VALID ? "valid" : "free", info.page_size,
			info.nb_extents, info.nb_extents == 1 ? "" : "s");
}

static void
show_mr(struct app *app)
{
	uint32_t i, j;

	if (!has_session(app))
		return;
	for (i = 0; i < app->session->nb_devs; i++) {
		const struct testrmem_dev *dev = &app->devs[i];

		printf("%s:\n", dev->dev->name);
		for (j = 0; dev->pool != NULL && j < dev->pool->nb_mrs; j++)
			print_mr("pool", dev->pool->mrs[j]);
		for (j = 0; dev->mbufs != NULL && j < dev->mbufs->nb_mrs; j++)
			print_mr("mbufs", dev->mbufs->mrs[j]);
		for (j = 0; j < RTE_MIN(dev->nb_mrs, (uint32_t)MAX_LISTED); j++)
			print_mr("target", dev->mrs[j]);
		if (dev->nb_mrs > MAX_LISTED)
			printf("  and %" PRIu32 " more target MRs\n", dev->nb_mrs - MAX_LISTED);
		if (app->session->engine->grant != NULL)
			printf("  %ss: %" PRIu64 "\n", app->session->engine->grant->name,
					dev->nb_pairs * app->session->conf.depth);
	}
}

static void
print_pool(const struct rte_mempool *mp, const char *what, uint32_t size, uint32_t nb_mrs)
{
	printf("%s: %" PRIu32 " %s of %" PRIu32 " bytes, %u available, %u in use, cache %" PRIu32
	       " per lcore, %" PRIu32 " registration%s\n",
			mp->name, mp->size, what, size, rte_mempool_avail_count(mp),
			rte_mempool_in_use_count(mp), mp->cache_size, nb_mrs,
			nb_mrs == 1 ? "" : "s");
}

static void
show_pool(struct app *app)
{
	uint32_t i;

	if (!has_session(app))
		return;
	for (i = 0; i < app->session->nb_devs; i++) {
		const struct testrmem_dev *dev = &app->devs[i];

		if (dev->pool != NULL)
			print_pool(dev->pool->mp, "buffers", dev->pool->buf_size,
					dev->pool->nb_mrs);
		else
			print_pool(dev->mbufs->mp, "mbufs", TESTRMEM_DATA_ROOM, dev->mbufs->nb_mrs);
	}
}

static void
show_dev_stats(const struct testrmem_dev *dev)
{
	struct rmem_dev_stats stats;
	int ret = rmem_dev_stats_get(dev->dev, &stats);

	if (ret != 0) {
		printf("%s: no counters (%s)\n", dev->dev->name, rte_strerror(-ret));
		return;
	}
	printf("%s: send_wrs %" PRIu64 " recv_wrs %" PRIu64 " bytes %" PRIu64 " reg_mrs %" PRIu64
	       " invalidates %" PRIu64 " errors %" PRIu64 " flushed %" PRIu64 "\n",
			dev->dev->name, stats.send_wrs, stats.recv_wrs, stats.bytes, stats.reg_mrs,
			stats.invalidates, stats.errors, stats.flushed);
	printf("%s: local_prot_errors %" PRIu64 " rem_access_errors %" PRIu64
	       " rnr_retries %" PRIu64 " queued %" PRIu64 " grace_waits %" PRIu64
	       " inline_recvs %" PRIu64 " mw_binds %" PRIu64 " umrs %" PRIu64 "\n",
			dev->dev->name, stats.local_prot_errors, stats.rem_access_errors,
			stats.rnr_retries, stats.queued, stats.grace_waits, stats.inline_recvs,
			stats.mw_binds, stats.umrs);
}

static void
show_stats(struct app *app)
{
	uint32_t i;

	if (app->session == NULL)
		printf("no run yet\n");
	else
		stats_print_table(&app->stats);
	for (i = 0; i < app->conf.nb_devs; i++)
		show_dev_stats(&app->devs[i]);
}

static const struct {
	const char *name;
	void (*show)(struct app *app);
} shows[] = {
		{"device", show_device},
		{"pool", show_pool},
		{"mr", show_mr},
		{"stats", show_stats},
		{"config", show_config},
};

const char *
show_name(int i)
{
	return i < (int)RTE_DIM(shows) ? shows[i].name : NULL;
}

bool
show(struct app *app, const char *name)
{
	size_t i;

	for (i = 0; i < RTE_DIM(shows); i++) {
		if (strcmp(shows[i].name, name) == 0) {
			shows[i].show(app);
			return true;
		}
	}
	return false;
}
