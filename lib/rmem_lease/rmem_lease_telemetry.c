/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Telemetry: lease contexts, listed and by the name of their QP. A context is in the list from its
 * creation to its destruction. Only these two, telemetry, dumps and audits take the lock: no call
 * of the fast path does.
 */

#include <string.h>

#include <rte_ticketlock.h>

#include <rmem_telemetry.h>

#include <rmem_obj_ref.h>

#include "rmem_lease_priv.h"

/* Maximum number of MRs in a reply. */
#define MRS_MAX 64

TAILQ_HEAD(ctx_list, rmem_lease_ctx);

static rte_ticketlock_t lock = RTE_TICKETLOCK_INITIALIZER;
static struct ctx_list ctxs = TAILQ_HEAD_INITIALIZER(ctxs);

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Record the number of leases granted so far. Call with the lock held. */
static void
sample(struct rmem_lease_ctx *ctx)
{
	uint32_t at = ctx->nb_samples++;

	/* The first sample, of the creation, is kept. */
	if (at >= LEASE_SAMPLES)
		at = 1 + (at - 1) % (LEASE_SAMPLES - 1);
	ctx->samples[at].time_ns = now_ns();
	ctx->samples[at].granted = __atomic_load_n(&ctx->stats.granted, __ATOMIC_RELAXED);
}

void
rmem_lease_list_add(struct rmem_lease_ctx *ctx)
{
	rte_ticketlock_lock(&lock);
	sample(ctx);
	TAILQ_INSERT_TAIL(&ctxs, ctx, next);
	rte_ticketlock_unlock(&lock);
}

void
rmem_lease_list_del(struct rmem_lease_ctx *ctx)
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
			ret = rmem_lease_audit_ctx(ctx, dev);
	}
	rte_ticketlock_unlock(&lock);
	return ret;
}

/* Name of a context: the name of its QP in /rmem/qp. */
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

/*
 * Report bounds of the age of a lease, from samples before and after its grant. Call with the lock
 * held.
 */
static void
report_age(struct rmem_report *out, const struct rmem_lease_ctx *ctx, uint64_t serial)
{
	uint64_t now = now_ns(), before = ctx->samples[0].time_ns, after = now;
	uint32_t i;

	for (i = 1; i < RTE_MIN(ctx->nb_samples, (uint32_t)LEASE_SAMPLES); i++) {
		const struct lease_sample *at = &ctx->samples[i];

		if (at->granted <= serial)
			before = RTE_MAX(before, at->time_ns);
		else
			after = RTE_MIN(after, at->time_ns);
	}
	rmem_report_uint(out, "min_age_ms", (now - after) / 1000000);
	rmem_report_uint(out, "max_age_ms", (now - before) / 1000000);
}

/* Fields of a lease that telemetry reports. */
struct lease_copy {
	uint64_t id, serial, addr;
	uint32_t length, rkey;
	uint8_t state;
};

/*
 * Copy the lease of a slot. Return false if the slot has no lease whose key may be valid, or if the
 * lease ended during the call.
 */
static bool
copy_lease(const struct lease_slot *slot, struct lease_copy *copy)
{
	const struct rmem_lease *lease = &slot->lease;

	copy->id = __atomic_load_n(&lease->id, __ATOMIC_ACQUIRE);
	copy->state = __atomic_load_n(&lease->state, __ATOMIC_ACQUIRE);
	if (copy->state < RMEM_LEASE_GRANTING || copy->state > RMEM_LEASE_LOST)
		return false;
	copy->serial = __atomic_load_n(&slot->serial, __ATOMIC_RELAXED);
	copy->addr = (uintptr_t)__atomic_load_n(&lease->addr, __ATOMIC_RELAXED);
	copy->length = __atomic_load_n(&lease->length, __ATOMIC_RELAXED);
	copy->rkey = __atomic_load_n(&lease->rkey, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&lease->id, __ATOMIC_RELAXED) == copy->id;
}

/* Report the oldest lease whose key may be valid. Call with the lock held. */
static void
report_oldest(struct rmem_report *out, const struct rmem_lease_ctx *ctx)
{
	struct lease_copy oldest = {.serial = UINT64_MAX}, copy;
	struct rmem_report group;
	uint64_t granted;
	uint32_t i;

	for (i = 0; i < ctx->nb_slots; i++) {
		if (copy_lease(&ctx->slots[i], &copy) && copy.serial < oldest.serial)
			oldest = copy;
	}
	if (oldest.serial == UINT64_MAX)
		return;
	rmem_report_begin(out, &group, "oldest");
	rmem_report_uint(&group, "id", oldest.id);
	rmem_report_bits(&group, "rkey", oldest.rkey);
	rmem_report_bits(&group, "addr", oldest.addr);
	rmem_report_uint(&group, "length", oldest.length);
	rmem_report_uint(&group, "state", oldest.state);
	/* A lease that is being posted is not counted yet. */
	granted = __atomic_load_n(&ctx->stats.granted, __ATOMIC_RELAXED);
	rmem_report_uint(&group, "granted_since",
			granted > oldest.serial ? granted - oldest.serial - 1 : 0);
	report_age(&group, ctx, oldest.serial);
	rmem_report_end(out, &group, "oldest");
}

/* Report the number of leases of each MR, named by the rkey of the MR. */
static void
report_mrs(struct rmem_report *out, const struct rmem_lease_ctx *ctx)
{
	struct rmem_report group;
	uint32_t i, leases, nb = 0;
	char name[16];

	rmem_report_begin(out, &group, "mrs");
	for (i = 0; i <= ctx->nb_slots && nb < MRS_MAX; i++) {
		leases = __atomic_load_n(&ctx->holds[i].nb, __ATOMIC_RELAXED);
		if (leases == 0)
			continue;
		nb++;
		snprintf(name, sizeof(name), "0x%x",
				__atomic_load_n(&ctx->holds[i].rkey, __ATOMIC_RELAXED));
		rmem_report_uint(&group, name, leases);
	}
	rmem_report_end(out, &group, "mrs");
}

static void
report_refusal(struct rmem_report *out, struct rmem_lease_ctx *ctx)
{
	char text[sizeof(ctx->refusal)];
	struct rmem_report group;
	uint64_t refused_ns = rmem_lease_last_refusal(ctx, text, sizeof(text));

	if (refused_ns == 0)
		return;
	rmem_report_begin(out, &group, "last_refusal");
	rmem_report_text(&group, "cause",
			rmem_lease_refusal_str(__atomic_load_n(
					&ctx->stats.last_refusal, __ATOMIC_RELAXED)));
	rmem_report_text(&group, "reason", text);
	rmem_report_uint(&group, "time_ns", refused_ns);
	rmem_report_end(out, &group, "last_refusal");
}

/* Report a context. Call with the lock held. */
static void
report_ctx(struct rmem_report *out, struct rmem_lease_ctx *ctx)
{
	struct rmem_lease_stats stats;

	rmem_lease_stats_get(ctx, &stats);
	rmem_report_text(out, "device", ctx->dev->name);
	rmem_report_uint(out, "qp_num", ctx->qp->qp_num);
	rmem_report_text(out, "name", ctx->name);
	rmem_report_text(out, "backend", ctx->backend->name);
	rmem_report_uint(out, "leases", stats.nb_leases);
	rmem_report_uint(out, "peak_leases", stats.peak_leases);
	rmem_report_uint(out, "max_leases", ctx->nb_slots);
	rmem_report_uint(out, "keys", stats.nb_keys);
	rmem_report_uint(out, "free_keys", stats.nb_free);
	rmem_report_uint(out, "quarantined_keys", stats.nb_quarantined);
	rmem_report_uint(out, "peak_keys", stats.peak_keys);
	rmem_report_uint(out, "min_keys", stats.min_keys);
	rmem_report_uint(out, "granted", stats.granted);
	rmem_report_uint(out, "revoked", stats.revoked);
	rmem_report_uint(out, "expired", stats.expired);
	rmem_report_uint(out, "peer_invs", stats.peer_invs);
	rmem_report_uint(out, "failed", stats.failed);
	rmem_report_uint(out, "local_invs", stats.local_invs);
	rmem_report_uint(out, "quarantines", stats.quarantines);
	rmem_report_uint(out, "quarantine_refused", stats.quarantine_refused);
	rmem_report_uint(out, "queue_full", stats.queue_full);
	rmem_report_uint(out, "keys_allocated", stats.keys_allocated);
	rmem_report_uint(out, "keys_trimmed", stats.keys_trimmed);
	rmem_report_uint(out, "keys_replaced", stats.keys_replaced);
	rmem_report_uint(out, "refused", stats.refused);
	report_oldest(out, ctx);
	report_mrs(out, ctx);
	report_refusal(out, ctx);
	sample(ctx);
}

/* Whether a context has this name: device and QP number, or device and name of the context. */
static bool
is_wanted(const struct rmem_lease_ctx *ctx, const char *wanted)
{
	char name[2 * RMEM_NAME_SIZE];

	ctx_name(ctx, name, sizeof(name));
	if (strcmp(name, wanted) == 0)
		return true;
	snprintf(name, sizeof(name), "%s,%s", ctx->dev->name, ctx->name);
	return ctx->name[0] != '\0' && strcmp(name, wanted) == 0;
}

static int
get_lease(const char *params, struct rte_tel_data *d)
{
	struct rmem_report out = {.d = d};
	struct rmem_lease_ctx *ctx;
	int ret = -ENOENT;

	rte_ticketlock_lock(&lock);
	TAILQ_FOREACH(ctx, &ctxs, next) {
		if (is_wanted(ctx, params)) {
			rte_tel_data_start_dict(d);
			report_ctx(&out, ctx);
			ret = 0;
			break;
		}
	}
	rte_ticketlock_unlock(&lock);
	return ret;
}

int
rmem_lease_ctx_dump(const struct rmem_lease_ctx *ctx, FILE *f)
{
	RMEM_CALL(ctx);
	struct rmem_report top = {.f = NULL}, out;
	int ret = rmem_lease_check_ctx(ctx);
	struct rmem_dump dump;

	if (ret != 0)
		return ret;
	if (f == NULL)
		return LEASE_FAIL(EINVAL, "file: NULL");
	ret = rmem_dump_begin(&dump);
	if (ret != 0)
		return ret;
	top.f = dump.f;
	rmem_report_begin(&top, &out, "lease context");
	rte_ticketlock_lock(&lock);
	report_ctx(&out, (struct rmem_lease_ctx *)(uintptr_t)ctx);
	rte_ticketlock_unlock(&lock);
	rmem_report_end(&top, &out, "lease context");
	return rmem_dump_end(&dump, f);
}

const char *
rmem_lease_ctx_name(const struct rmem_lease_ctx *ctx)
{
	return lease_is_ctx(ctx) ? ctx->name : "";
}

RTE_INIT(rmem_lease_telemetry_init)
{
	static const struct rmem_tel_cmd cmd = {
			.cmd = "/rmem/lease",
			.help = "Lease contexts. Parameter: device,number of a QP, for its statistics",
			.list = list_ctxs,
			.get = get_lease,
	};

	(void)rmem_audit_add(audit);
	(void)rmem_telemetry_add(&cmd);
}
