/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Telemetry of pools and registered mempools: the list of them, and each by its name.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <rmem_telemetry.h>

#include "rmem_pool_cache_priv.h"
#include "rmem_pool_priv.h"
#include "rmem_tracked_priv.h"

/* A query for a mempool by name, and its registrations. */
struct query {
	const char *name;
	struct rmem_report out;
	struct rmem_report regs;
	uint32_t nb; /* registrations seen; 0: the mempool was not found yet */
	bool has_owners;
};

static int
list_pool(struct rmem_pool *pool, void *arg)
{
	/* Pools with other registrations are visited as registered mempools. */
	if (rmem_mempool_nb_regs(pool->mp) == 0)
		rmem_tel_names_add(arg, pool->mp->name);
	return 0;
}

/* List each mempool once, regardless of the number of its registrations. */
static int
list_mempool(struct rmem_mempool *reg, void *arg)
{
	const struct rmem_mempool_priv *other = rmem_mempool_priv(reg)->next;

	while (other != NULL && other->reg.mp != reg->mp)
		other = other->next;
	if (other == NULL)
		rmem_tel_names_add(arg, reg->mp->name);
	return 0;
}

static int
list_pools(struct rte_tel_data *d)
{
	struct rmem_tel_names names;

	if (rmem_tel_names_begin(&names) != 0)
		return -ENOMEM;
	rmem_pool_visit(list_pool, &names);
	rmem_mempool_visit(list_mempool, &names);
	return rmem_tel_names_end(&names, "pools", d);
}

/* Report the counts of a mempool; counting its objects visits all lcores. */
static void
begin(struct query *query, struct rte_mempool *mp)
{
	struct rmem_report *out = &query->out;
	unsigned int nb_avail = rte_mempool_avail_count(mp);

	if (out->d != NULL)
		rte_tel_data_start_dict(out->d);
	rmem_report_text(out, "name", mp->name);
	if (out->d != NULL)
		rte_tel_data_add_dict_int(out->d, "socket", mp->socket_id);
	rmem_report_uint(out, "objects", mp->populated_size);
	rmem_report_uint(out, "available", nb_avail);
	rmem_report_uint(out, "in_use", mp->populated_size - RTE_MIN(nb_avail, mp->populated_size));
	rmem_report_uint(out, "cached", pool_cache_count(mp));
	rmem_report_uint(out, "object_size", mp->elt_size);
}

static void
add_reg(struct query *query, struct rte_mempool *mp, const struct rmem_pd *pd,
		struct rmem_mr *const *mrs, uint32_t nb_mrs)
{
	struct rmem_report reg;
	uint64_t length = 0;
	char number[16];
	uint32_t i;

	if (query->nb == 0) {
		begin(query, mp);
		rmem_report_begin(&query->out, &query->regs, "registrations");
	}
	for (i = 0; i < nb_mrs; i++)
		length += mrs[i]->length;
	snprintf(number, sizeof(number), "%u", query->nb++);
	rmem_report_begin(&query->regs, &reg, number);
	rmem_report_text(&reg, "device", rmem_pool_dev_name(pd));
	rmem_report_uint(&reg, "mrs", nb_mrs);
	rmem_report_uint(&reg, "bytes", length);
	rmem_report_bits(&reg, "access", nb_mrs == 0 ? 0 : mrs[0]->access);
	rmem_report_end(&query->regs, &reg, number);
}

/* Report the number of buffers in use by each process, of a tracked pool. */
static void
add_owners(struct query *query, const struct rte_mempool *mp)
{
	const struct rmem_tracked *td = rmem_tracked_of(mp);
	uint32_t nb[TRACKED_MAX_OWNER + 1];
	struct rmem_report owners;
	char number[16];
	uint32_t i;

	if (td == NULL || query->has_owners)
		return;
	query->has_owners = true;
	rmem_report_uint(&query->out, "refused_puts",
			__atomic_load_n(&td->bad_puts, __ATOMIC_RELAXED));
	rmem_tracked_count(td, nb);
	rmem_report_begin(&query->out, &owners, "in_use_by_process");
	for (i = 1; i < RTE_DIM(nb); i++) {
		if (nb[i] == 0)
			continue;
		snprintf(number, sizeof(number), "%u", i);
		rmem_report_uint(&owners, number, nb[i]);
	}
	rmem_report_end(&query->out, &owners, "in_use_by_process");
}

/* Report the counters that only pools have. */
static void
add_pool(struct query *query, const struct rmem_pool *pool)
{
	struct rmem_pool_priv *priv = rmem_pool_priv(pool);

	rmem_pool_note_level(pool);
	rmem_report_uint(&query->out, "low_water",
			__atomic_load_n(&priv->low_water, __ATOMIC_RELAXED));
	rmem_report_uint(&query->out, "failed_gets",
			__atomic_load_n(&priv->failed_gets, __ATOMIC_RELAXED));
	add_owners(query, pool->mp);
}

static int
report_pool(struct rmem_pool *pool, void *arg)
{
	struct query *query = arg;

	if (strcmp(pool->mp->name, query->name) != 0)
		return 0;
	add_reg(query, pool->mp, pool->pd, pool->mrs, pool->nb_mrs);
	return 0;
}

static int
report_level(struct rmem_pool *pool, void *arg)
{
	struct query *query = arg;

	if (strcmp(pool->mp->name, query->name) == 0)
		add_pool(query, pool);
	return 0;
}

static int
report_mempool(struct rmem_mempool *reg, void *arg)
{
	struct query *query = arg;

	if (strcmp(reg->mp->name, query->name) == 0)
		add_reg(query, reg->mp, reg->pd, reg->mrs, reg->nb_mrs);
	return 0;
}

static int
report_owners(struct rmem_mempool *reg, void *arg)
{
	struct query *query = arg;

	if (strcmp(reg->mp->name, query->name) == 0)
		add_owners(query, reg->mp);
	return 0;
}

/* Report the mempool query->name; -ENOENT if there is none. */
static int
report(struct query *query)
{
	rmem_pool_visit(report_pool, query);
	rmem_mempool_visit(report_mempool, query);
	if (query->nb == 0)
		return -ENOENT;
	rmem_report_end(&query->out, &query->regs, "registrations");
	rmem_pool_visit(report_level, query);
	rmem_mempool_visit(report_owners, query);
	return 0;
}

static int
get_pool(const char *name, struct rte_tel_data *d)
{
	struct query query = {.name = name, .out = {.d = d}};

	return report(&query);
}

int
rmem_pool_dump(const struct rmem_pool *pool, FILE *f)
{
	RMEM_CALL(pool);
	struct rmem_report top = {.f = NULL};
	struct rmem_dump dump;
	struct query query;
	int ret;

	if (rmem_process_check() != 0)
		return -EOPNOTSUPP;
	if (pool == NULL || pool->obj.type != RMEM_OBJ_POOL || f == NULL)
		return POOL_FAIL(EINVAL, "pool or file: NULL, or not a pool: %p",
				(const void *)pool);
	ret = rmem_dump_begin(&dump);
	if (ret != 0)
		return ret;
	top.f = dump.f;
	memset(&query, 0, sizeof(query));
	query.name = pool->mp->name;
	rmem_report_begin(&top, &query.out, "pool");
	(void)report(&query);
	rmem_report_end(&top, &query.out, "pool");
	return rmem_dump_end(&dump, f);
}

void
rmem_pool_telemetry_init(void)
{
	static const struct rmem_tel_cmd cmd = {
			.cmd = "/rmem/pool",
			.help = "Pools and registered mempools. Parameter: a name, for its numbers",
			.list = list_pools,
			.get = get_pool,
	};

	(void)rmem_telemetry_add(&cmd);
}
