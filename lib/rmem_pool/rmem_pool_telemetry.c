/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Telemetry of pools and registered mempools: the list, and each by name.
 */

#include <errno.h>
#include <string.h>

#include <rmem_telemetry.h>

#include "rmem_pool_priv.h"

/* A query for a mempool by name, and its registrations. */
struct query {
	const char *name;
	struct rte_tel_data *d;
	struct rte_tel_data *regs; /* NULL: not found yet */
	uint32_t nb;               /* registrations seen */
};

static int
list_pool(struct rmem_pool *pool, void *arg)
{
	/* Pools with other registrations are visited as registered mempools. */
	if (rmem_mempool_nb_regs(pool->mp) == 0)
		rmem_tel_names_add(arg, pool->mp->name);
	return 0;
}

/* Once for each mempool, regardless of the number of its registrations. */
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

/* Counts of the mempool; counting its objects visits all lcores. */
static void
begin(struct query *query, struct rte_mempool *mp)
{
	struct rte_tel_data *d = query->d;
	unsigned int nb_avail = rte_mempool_avail_count(mp);

	query->regs = rte_tel_data_alloc();
	if (query->regs == NULL)
		return;
	rte_tel_data_start_dict(query->regs);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "name", mp->name);
	rte_tel_data_add_dict_int(d, "socket", mp->socket_id);
	rmem_tel_uint(d, "objects", mp->populated_size);
	rmem_tel_uint(d, "available", nb_avail);
	rmem_tel_uint(d, "in_use", mp->populated_size - RTE_MIN(nb_avail, mp->populated_size));
	rmem_tel_uint(d, "cached", rmem_pool_count_cached(mp));
	rmem_tel_uint(d, "object_size", mp->elt_size);
}

static void
add_reg(struct query *query, struct rte_mempool *mp, const struct rmem_pd *pd,
		struct rmem_mr *const *mrs, uint32_t nb_mrs)
{
	struct rte_tel_data *dict;
	uint64_t length = 0;
	char number[16];
	uint32_t i;

	if (query->regs == NULL)
		begin(query, mp);
	dict = rte_tel_data_alloc();
	if (query->regs == NULL || dict == NULL) {
		rte_tel_data_free(dict);
		return;
	}
	for (i = 0; i < nb_mrs; i++)
		length += mrs[i]->length;
	rte_tel_data_start_dict(dict);
	rte_tel_data_add_dict_string(dict, "device", rmem_pool_dev_name(pd));
	rmem_tel_uint(dict, "mrs", nb_mrs);
	rmem_tel_uint(dict, "bytes", length);
	rmem_tel_bits(dict, "access", nb_mrs == 0 ? 0 : mrs[0]->access);
	snprintf(number, sizeof(number), "%u", query->nb++);
	if (rte_tel_data_add_dict_container(query->regs, number, dict, 0) != 0)
		rte_tel_data_free(dict);
}

static int
tell_pool(struct rmem_pool *pool, void *arg)
{
	struct query *query = arg;

	if (strcmp(pool->mp->name, query->name) == 0)
		add_reg(query, pool->mp, pool->pd, pool->mrs, pool->nb_mrs);
	return 0;
}

static int
tell_mempool(struct rmem_mempool *reg, void *arg)
{
	struct query *query = arg;

	if (strcmp(reg->mp->name, query->name) == 0)
		add_reg(query, reg->mp, reg->pd, reg->mrs, reg->nb_mrs);
	return 0;
}

static int
get_pool(const char *name, struct rte_tel_data *d)
{
	struct query query = {.name = name, .d = d};

	rmem_pool_visit(tell_pool, &query);
	rmem_mempool_visit(tell_mempool, &query);
	if (query.regs == NULL)
		return -ENOENT;
	return rte_tel_data_add_dict_container(d, "registrations", query.regs, 0);
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
