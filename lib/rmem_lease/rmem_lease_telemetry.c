/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Telemetry: lease contexts, listed and by the name of their QP. A context is in the list from
 * its creation to its destruction, both of which take the lock; nothing else does.
 */

#include <string.h>

#include <rte_ticketlock.h>

#include <rmem_telemetry.h>

#include <rmem_driver.h>

#include "rmem_lease_priv.h"

TAILQ_HEAD(ctx_list, rmem_lease_ctx);

static rte_ticketlock_t lock = RTE_TICKETLOCK_INITIALIZER;
static struct ctx_list ctxs = TAILQ_HEAD_INITIALIZER(ctxs);

void
lease_list_add(struct rmem_lease_ctx *ctx)
{
	rte_ticketlock_lock(&lock);
	TAILQ_INSERT_TAIL(&ctxs, ctx, next);
	rte_ticketlock_unlock(&lock);
}

void
lease_list_del(struct rmem_lease_ctx *ctx)
{
	rte_ticketlock_lock(&lock);
	TAILQ_REMOVE(&ctxs, ctx, next);
	rte_ticketlock_unlock(&lock);
}

static int
audit(struct rmem_dev *dev)
{
	const struct rmem_lease_ctx *ctx;
	int ret = 0;

	rte_ticketlock_lock(&lock);
	TAILQ_FOREACH(ctx, &ctxs, next) {
		if (ret == 0 && ctx->obj.dev_id == dev->obj.dev_id)
			ret = lease_audit_ctx(ctx, dev);
	}
	rte_ticketlock_unlock(&lock);
	return ret;
}

/* The name of the QP in /rmem/qp. */
static void
ctx_name(const struct rmem_lease_ctx *ctx, char *name, size_t size)
{
	snprintf(name, size, "%s,%u", ctx->dev->name, ctx->qp->qp_num);
}

static int
list_ctxs(struct rte_tel_data *d)
{
	const struct rmem_lease_ctx *ctx;
	char name[RMEM_NAME_SIZE + 16];
	struct rmem_tel_names names;

	if (rmem_tel_names_begin(&names) != 0)
		return -ENOMEM;
	rte_ticketlock_lock(&lock);
	TAILQ_FOREACH(ctx, &ctxs, next) {
		ctx_name(ctx, name, sizeof(name));
		rmem_tel_names_add(&names, name);
	}
	rte_ticketlock_unlock(&lock);
	return rmem_tel_names_end(&names, "leases", d);
}

static void
tell_ctx(const struct rmem_lease_ctx *ctx, struct rte_tel_data *d)
{
	struct rmem_lease_stats stats;

	rmem_lease_stats_get(ctx, &stats);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "device", ctx->dev->name);
	rmem_tel_uint(d, "qp_num", ctx->qp->qp_num);
	rte_tel_data_add_dict_string(d, "backend", ctx->backend->name);
	rmem_tel_uint(d, "leases", stats.nb_leases);
	rmem_tel_uint(d, "peak_leases", stats.peak_leases);
	rmem_tel_uint(d, "max_leases", ctx->nb_slots);
	rmem_tel_uint(d, "keys", stats.nb_keys);
	rmem_tel_uint(d, "free_keys", stats.nb_free);
	rmem_tel_uint(d, "quarantined_keys", stats.nb_quarantined);
	rmem_tel_uint(d, "peak_keys", stats.peak_keys);
	rmem_tel_uint(d, "min_keys", stats.min_keys);
	rmem_tel_uint(d, "granted", stats.granted);
	rmem_tel_uint(d, "revoked", stats.revoked);
	rmem_tel_uint(d, "expired", stats.expired);
	rmem_tel_uint(d, "peer_invs", stats.peer_invs);
	rmem_tel_uint(d, "failed", stats.failed);
	rmem_tel_uint(d, "local_invs", stats.local_invs);
	rmem_tel_uint(d, "quarantines", stats.quarantines);
	rmem_tel_uint(d, "quarantine_refused", stats.quarantine_refused);
	rmem_tel_uint(d, "queue_full", stats.queue_full);
	rmem_tel_uint(d, "keys_allocated", stats.keys_allocated);
	rmem_tel_uint(d, "keys_trimmed", stats.keys_trimmed);
	rmem_tel_uint(d, "keys_replaced", stats.keys_replaced);
	rmem_tel_uint(d, "refused", stats.refused);
}

static int
get_lease(const char *params, struct rte_tel_data *d)
{
	const struct rmem_lease_ctx *ctx;
	char name[RMEM_NAME_SIZE + 16];
	int ret = -ENOENT;

	rte_ticketlock_lock(&lock);
	TAILQ_FOREACH(ctx, &ctxs, next) {
		ctx_name(ctx, name, sizeof(name));
		if (strcmp(name, params) == 0) {
			tell_ctx(ctx, d);
			ret = 0;
			break;
		}
	}
	rte_ticketlock_unlock(&lock);
	return ret;
}

RTE_INIT(rmem_lease_telemetry_init)
{
	static const struct rmem_tel_cmd cmd = {
			.cmd = "/rmem/lease",
			.help = "Lease contexts. Parameter: device,number of a QP, for its figures",
			.list = list_ctxs,
			.get = get_lease,
	};

	(void)rmem_audit_add(audit);
	(void)rmem_telemetry_add(&cmd);
}
