/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Contexts: create, query, recover and destroy. */

#include <stdio.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include <rmem_obj_ref.h>

#include "rmem_lease_priv.h"
#include "rmem_lease_trace_priv.h"

#define LEASE_MAX_QUARANTINE_US UINT32_C(3600000000)

static const struct {
	uint64_t capa;
	const char *name;
} capas[] = {
		{RMEM_DEV_CAPA_FAST_REG, " RMEM_DEV_CAPA_FAST_REG"},
		{RMEM_DEV_CAPA_MW_TYPE_2B, " RMEM_DEV_CAPA_MW_TYPE_2B"},
		{RMEM_DEV_CAPA_UMR, " RMEM_DEV_CAPA_UMR"},
		{RMEM_DEV_CAPA_LOCAL_INV, " RMEM_DEV_CAPA_LOCAL_INV"},
};

/* Append the missing capabilities of the backends from first to end, exclusive. */
static void
format_lacking(uint64_t capa, uint32_t first, const struct lease_ops *end, char *text, size_t size)
{
	const struct lease_ops *ops;
	size_t used, j;
	uint32_t i;

	for (i = first; (ops = rmem_lease_ops_of(i)) != NULL && ops != end; i++) {
		if ((ops->capa & ~capa) == 0)
			continue;
		used = strlen(text);
		snprintf(text + used, size - used, "; no %s: the device lacks", ops->name);
		for (j = 0; j < RTE_DIM(capas); j++) {
			used = strlen(text);
			if ((ops->capa & ~capa & capas[j].capa) != 0)
				snprintf(text + used, size - used, "%s", capas[j].name);
		}
	}
}

/* Select the backend by the capabilities of the device; -EOPNOTSUPP and a log line. */
static int
choose_backend(struct rmem_lease_ctx *ctx, uint32_t backend, uint64_t capa)
{
	bool is_auto = backend == RMEM_LEASE_AUTO;
	char text[384] = "";

	ctx->backend = rmem_lease_ops_find(backend, capa);
	if (ctx->backend != NULL)
		return 0;
	format_lacking(capa, is_auto ? 1 : backend, is_auto ? NULL : rmem_lease_ops_of(backend + 1),
			text, sizeof(text));
	return LEASE_FAIL(EOPNOTSUPP, "%s: leases not supported%s%s", ctx->dev->name,
			is_auto ? "" : " with that backend", text);
}

/* Log the selected backend, and the missing capabilities of preferred backends. */
static void
log_backend(const struct rmem_lease_ctx *ctx, uint32_t backend, uint64_t capa)
{
	static uint8_t logged[RMEM_MAX_DEVS]; /* atomic: by device, bits of backends */
	uint8_t bit = (uint8_t)(1 << ctx->stats.backend);
	char text[384] = "";
	uint32_t level = RTE_LOG_INFO;

	if (backend == RMEM_LEASE_AUTO)
		format_lacking(capa, 1, ctx->backend, text, sizeof(text));
	/* At a higher level once per device and backend, not for each QP. */
	if (text[0] != '\0' &&
			(__atomic_fetch_or(&logged[ctx->dev->obj.dev_id], bit, __ATOMIC_RELAXED) &
					bit) == 0)
		level = RTE_LOG_NOTICE;
	RMEM_LOG_AT(level, rmem_lease_logtype, "rmem_lease",
			"%s: QP 0x%06x: leases are made of %s%s%s%s", ctx->dev->name,
			ctx->qp->qp_num, ctx->backend->name,
			backend != RMEM_LEASE_AUTO ? ", as configured" : "",
			ctx->mr_needs != 0 ? ", which need RMEM_ACCESS_MW_BIND of the MRs" : "",
			text);
}

static uint32_t
max_leases(const struct rmem_lease_conf *conf)
{
	return conf->max_leases != 0 ? conf->max_leases : RMEM_LEASE_DEFAULT_MAX;
}

static int
check_conf(const struct rmem_lease_conf *conf)
{
	const char *what = NULL;
	int ret;

	if (conf->backend > RMEM_LEASE_UMR)
		what = "backend is unknown";
	else if (conf->max_leases > RMEM_LEASE_MAX)
		what = "max_leases is above RMEM_LEASE_MAX";
	else if (conf->min_leases > max_leases(conf))
		what = "min_leases is above max_leases";
	else if (conf->max_length == 0)
		what = "max_length is 0";
	else if (conf->quarantine_us > LEASE_MAX_QUARANTINE_US)
		what = "quarantine_us is above one hour";
	else if (conf->flags != 0 || conf->pad != 0 || conf->reserved[0] != 0)
		what = "flags or reserved is not 0";
	if (what != NULL)
		return LEASE_FAIL(EINVAL, "configuration: %s", what);
	ret = rmem_name_check(conf->name);
	return ret != 0 ? ret : rmem_socket_check(conf->socket_id);
}

/* Set the smallest page size with which a page list of at most max_list pages covers any buffer. */
static int
set_pages(struct rmem_lease_ctx *ctx, const struct rmem_dev_info *info, uint32_t max_list)
{
	uint32_t log2;

	for (log2 = 12; log2 < 63; log2++) {
		uint64_t size = UINT64_C(1) << log2;
		uint64_t nb = (ctx->max_length + size - 2) / size + 1;

		if ((info->page_size_cap & size) == 0 || nb > max_list)
			continue;
		ctx->log2_page_size = log2;
		ctx->max_page_list_len = (uint32_t)nb;
		return 0;
	}
	return -EINVAL;
}

/* Select the backend and the settings that depend on it. */
static int
set_backend(struct rmem_lease_ctx *ctx, const struct rmem_lease_conf *conf)
{
	struct rmem_dev_info info;
	int ret = 0;

	if (rmem_dev_info_get(ctx->dev, &info) != 0)
		return -ENODEV;
	ret = choose_backend(ctx, conf->backend, info.capa);
	if (ret != 0)
		return ret;
	ctx->stats.backend = rmem_lease_ops_number(ctx->backend);
	ctx->max_length = conf->max_length;
	ctx->is_zero_based = ctx->stats.backend != RMEM_LEASE_MW &&
			(info.capa & RMEM_DEV_CAPA_REG_ZERO_BASED) != 0;
	ctx->has_iova = ctx->stats.backend != RMEM_LEASE_FAST_REG;
	if (ctx->stats.backend == RMEM_LEASE_MW) {
		ctx->mr_needs = RMEM_ACCESS_MW_BIND;
		ctx->mr_flags_bad = RMEM_MR_FD;
	}
	if (ctx->stats.backend == RMEM_LEASE_FAST_REG) {
		ret = set_pages(ctx, &info, RTE_MIN(info.max_page_list_len, LEASE_PAGES));
		if (ret != 0)
			ret = set_pages(ctx, &info, info.max_page_list_len);
		ctx->min_addr = (uintptr_t)1 << ctx->log2_page_size;
	}
	if (ret != 0 || conf->max_length > info.max_mr_size)
		return LEASE_FAIL(EINVAL, "%s: max_length not supported: %u (with %s)",
				ctx->dev->name, conf->max_length, ctx->backend->name);
	log_backend(ctx, conf->backend, info.capa);
	return 0;
}

/* Query the rights of the QP's peer, and the maximum number of outstanding requests. */
static int
set_qp(struct rmem_lease_ctx *ctx, struct rmem_qp *qp, uint32_t *depth)
{
	struct rmem_qp_attr attr;
	int ret = rmem_qp_query(qp, &attr);

	if (ret == 0 && qp->pd == NULL)
		ret = LEASE_FAIL(EINVAL, "QP 0x%06x: of XRC_RECV: posts no requests", qp->qp_num);
	if (ret != 0)
		return ret;
	ctx->qp = qp;
	ctx->access = attr.access;
	*depth = attr.max_send_wr;
	ctx->dev = rmem_pd_dev(qp->pd);
	return 0;
}

/* Memory of a context, in one allocation; the first pass only computes its size. */
struct lease_arena {
	uint8_t *at;
	size_t size;
};

static void *
arena_alloc(struct lease_arena *arena, size_t nb, size_t size)
{
	void *mem = (void *)((uintptr_t)arena->at + arena->size);

	arena->size += RTE_ALIGN_CEIL(nb * size, (size_t)RTE_CACHE_LINE_SIZE);
	return mem;
}

static void
arena_layout(struct rmem_lease_ctx *ctx, struct lease_arena *arena, uint32_t nb_slots,
		uint32_t depth)
{
	uint32_t nb = rte_align32pow2(nb_slots);
	/*
	 * Two requests for each lease; leases that the peer ended add more, up to the size of the
	 * send queue.
	 */
	uint32_t nb_ops = rte_align32pow2(2 * RTE_MAX(RTE_MAX(nb_slots, depth), 2u));
	uint32_t nb_map = RTE_MAX(4 * nb, 64u);

	ctx->nb_slots = nb_slots;
	ctx->slots = arena_alloc(arena, nb_slots, sizeof(*ctx->slots));
	ctx->tags = arena_alloc(arena, nb_slots, sizeof(*ctx->tags));
	ctx->ops = arena_alloc(arena, nb_ops, sizeof(*ctx->ops));
	ctx->ops_mask = nb_ops - 1;
	ctx->free = arena_alloc(arena, nb_slots, sizeof(*ctx->free));
	ctx->empty = arena_alloc(arena, nb_slots, sizeof(*ctx->empty));
	ctx->quarantined.ring = arena_alloc(arena, nb, sizeof(uint32_t));
	ctx->revokes.ring = arena_alloc(arena, nb, sizeof(uint32_t));
	ctx->ended.ring = arena_alloc(arena, nb, sizeof(uint32_t));
	ctx->quarantined.mask = ctx->revokes.mask = ctx->ended.mask = nb - 1;
	ctx->heap = arena_alloc(arena, nb_slots, sizeof(*ctx->heap));
	ctx->holds = arena_alloc(arena, nb_slots + 1, sizeof(*ctx->holds));
	ctx->map = arena_alloc(arena, nb_map, sizeof(*ctx->map));
	ctx->map_mask = nb_map - 1;
	if (ctx->backend->capa & RMEM_DEV_CAPA_UMR)
		ctx->entries = arena_alloc(arena, nb_slots, sizeof(*ctx->entries));
}

/* Allocate a copy of a context, followed by its arrays. */
static struct rmem_lease_ctx *
alloc_ctx(struct rmem_lease_ctx *from, const struct rmem_lease_conf *conf, uint32_t depth)
{
	struct lease_arena arena = {.at = NULL, .size = 0};
	struct rmem_lease_ctx *ctx;
	uint32_t i, tag, nb = max_leases(conf);

	arena_alloc(&arena, 1, sizeof(*ctx));
	arena_layout(from, &arena, nb, depth);
	ctx = rte_zmalloc_socket("rmem_lease", arena.size, RTE_CACHE_LINE_SIZE, conf->socket_id);
	if (ctx == NULL) {
		(void)LEASE_FAIL(ENOMEM, "context: no memory: %zu bytes (max_leases %u)",
				arena.size, nb);
		return NULL;
	}
	*ctx = *from;
	arena.at = (uint8_t *)ctx;
	arena.size = 0;
	arena_alloc(&arena, 1, sizeof(*ctx));
	arena_layout(ctx, &arena, nb, depth);
	for (i = 0; i < nb; i++) {
		ctx->slots[i].lease.id = i;
		ctx->slots[i].heap_at = LEASE_NOWHERE;
		for (tag = 0; tag < LEASE_TAGS; tag++)
			ctx->tags[i][tag] = (uint8_t)tag;
		ctx->empty[i] = nb - 1 - i;
	}
	ctx->nb_empty = nb;
	rmem_lease_hold_init(ctx, nb + 1);
	for (i = 0; i < LEASE_BURST; i++) {
		ctx->wr[i].opcode = ctx->backend->opcode;
		if (ctx->stats.backend == RMEM_LEASE_FAST_REG)
			ctx->wr[i].reg_mr.log2_page_size = (uint8_t)ctx->log2_page_size;
		ctx->inv[i].opcode = RMEM_WR_LOCAL_INV;
	}
	return ctx;
}

/* Release all keys, of slots in `free`, `quarantined` or `empty`. */
static int
release_all(struct rmem_lease_ctx *ctx)
{
	uint32_t i;
	int ret;

	for (i = 0; i < ctx->nb_slots; i++) {
		if (!ctx->slots[i].has_key)
			continue;
		ret = rmem_lease_release(ctx, &ctx->slots[i]);
		if (ret != 0) {
			rmem_lease_prune_lists(ctx);
			return ret;
		}
	}
	return 0;
}

static void
free_ctx(struct rmem_lease_ctx *ctx)
{
	rmem_obj_unhold(&ctx->qp->obj);
	__atomic_store_n(&ctx->obj.type, RMEM_OBJ_NONE, __ATOMIC_RELEASE);
	rte_free(ctx);
}

int
rmem_lease_ctx_create(
		struct rmem_qp *qp, const struct rmem_lease_conf *conf, struct rmem_lease_ctx **ctx)
{
	RMEM_CALL(qp);
	static uint16_t nb_created; /* atomic */
	struct rmem_lease_ctx *new_ctx, draft;
	uint32_t depth;
	int ret;

	if (conf == NULL || ctx == NULL)
		return LEASE_FAIL(EINVAL, "configuration or result: NULL");
	memset(&draft, 0, sizeof(draft));
	ret = check_conf(conf);
	if (ret == 0)
		ret = set_qp(&draft, qp, &depth);
	if (ret == 0)
		ret = set_backend(&draft, conf);
	if (ret != 0)
		return ret;
	draft.obj.type = LEASE_TAG;
	draft.obj.dev_id = qp->obj.dev_id;
	draft.wr_tag = (uint32_t)RMEM_LEASE_WR_ID << 16 |
			__atomic_fetch_add(&nb_created, 1, __ATOMIC_RELAXED);
	draft.quarantine = rte_get_tsc_hz() / 1000 *
			(conf->quarantine_us != 0 ? conf->quarantine_us
						  : RMEM_LEASE_DEFAULT_QUARANTINE_US) /
			1000;
	draft.stats.min_keys = conf->min_leases;
	if (conf->name != NULL)
		snprintf(draft.name, sizeof(draft.name), "%s", conf->name);
	draft.signal_every = RTE_MIN(RTE_MAX(depth / 2, 1u), LEASE_BURST);
	if (!rmem_obj_hold(&qp->obj))
		return LEASE_FAIL(EINVAL, "QP 0x%06x: is being destroyed", qp->qp_num);
	new_ctx = alloc_ctx(&draft, conf, depth);
	if (new_ctx == NULL) {
		rmem_obj_unhold(&qp->obj);
		return -ENOMEM;
	}
	ret = rmem_lease_make(new_ctx, conf->min_leases);
	if (ret != 0) {
		release_all(new_ctx);
		free_ctx(new_ctx);
		return ret;
	}
	lease_gauge(new_ctx);
	rmem_lease_list_add(new_ctx);
	rmem_lease_set_tag();
	*ctx = new_ctx;
	rmem_lease_trace_create(new_ctx, qp->qp_num, new_ctx->backend->name, conf->min_leases,
			new_ctx->nb_slots);
	return 0;
}

/*
 * Whether requests of the context have completions that were not polled: those after the last
 * signaled one have none. A reset drops requests.
 */
static bool
has_completions(const struct rmem_lease_ctx *ctx)
{
	struct rmem_qp_attr attr;

	return ctx->ops_tail - ctx->ops_head > ctx->nb_unsignaled &&
			(rmem_qp_query(ctx->qp, &attr) != 0 || attr.state != RMEM_QPS_RESET);
}

int
rmem_lease_ctx_destroy(struct rmem_lease_ctx *ctx)
{
	RMEM_CALL(ctx);
	int ret;

	if (ctx == NULL)
		return 0;
	ret = rmem_lease_check_ctx(ctx);
	if (ret != 0)
		return ret;
	if (ctx->stats.nb_leases != 0)
		return LEASE_FAIL(EBUSY, "context: in use: %u leases were not reclaimed",
				ctx->stats.nb_leases);
	if (has_completions(ctx))
		return LEASE_FAIL(EBUSY, "context: in use: a completion was not polled");
	ret = release_all(ctx);
	if (ret == -EBUSY)
		return LEASE_FAIL(EBUSY, "context: in use: a request has not completed");
	if (ret != 0)
		return ret;
	rmem_lease_list_del(ctx);
	rmem_lease_trace_destroy(ctx);
	free_ctx(ctx);
	return 0;
}

/* Whether a slot has a lease whose buffer the peer may still access. */
static bool
is_accessible(const struct lease_slot *slot)
{
	return slot->lease.state >= RMEM_LEASE_GRANTING && slot->lease.state <= RMEM_LEASE_LOST;
}

/* Replace the key of a slot whose state is not known, or that has a lease. */
static int
recover_slot(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	bool is_lost = is_accessible(slot);
	int ret;

	if (is_lost) {
		if (slot->heap_at != LEASE_NOWHERE)
			rmem_lease_heap_del(ctx, slot);
		LEASE_SET_STATE(&slot->lease, RMEM_LEASE_LOST);
	} else if (!slot->has_bind_failed || !slot->has_key || slot->is_stuck) {
		return 0;
	}
	ret = rmem_lease_replace(ctx, slot);
	if (ret != 0)
		return ret;
	slot->has_bind_failed = false;
	if (is_lost)
		rmem_lease_slot_end(ctx, slot, RMEM_LEASE_END_FAILED);
	return 0;
}

int
rmem_lease_recover(struct rmem_lease_ctx *ctx)
{
	RMEM_CALL(ctx);
	struct rmem_qp_attr attr;
	uint32_t i, nb_lost = 0;
	int ret = rmem_lease_check_ctx(ctx);

	if (ret == 0)
		ret = rmem_qp_query(ctx->qp, &attr);
	if (ret != 0)
		return ret;
	if (attr.state != RMEM_QPS_RESET)
		return LEASE_FAIL(EBUSY, "QP 0x%06x: wrong state: not in RESET", ctx->qp->qp_num);
	/* The send queue is empty; its requests may have been executed. */
	for (; ctx->ops_head != ctx->ops_tail; ctx->ops_head++)
		lease_op_slot(ctx, ctx->ops[ctx->ops_head & ctx->ops_mask])->has_bind_failed = true;
	ctx->nb_unsignaled = 0;
	ctx->revokes.head = ctx->revokes.tail;
	while (ctx->nb_staged > 0)
		rmem_lease_slot_end(ctx, &ctx->slots[ctx->staged[--ctx->nb_staged]],
				RMEM_LEASE_END_FAILED);
	for (i = 0; i < ctx->nb_slots && ret == 0; i++) {
		nb_lost += is_accessible(&ctx->slots[i]);
		ret = recover_slot(ctx, &ctx->slots[i]);
	}
	rmem_lease_prune_lists(ctx);
	if (ret == 0)
		rmem_lease_trace_recover(ctx, ctx->qp->qp_num, nb_lost);
	return ret;
}

int
rmem_lease_trim(struct rmem_lease_ctx *ctx)
{
	RMEM_CALL(ctx);
	uint32_t nb, i, spare;
	int ret = rmem_lease_check_ctx(ctx);

	if (ret != 0)
		return ret;
	/* Keys at the bottom of the stack were not used. */
	spare = ctx->stats.nb_keys - RTE_MIN(ctx->stats.nb_keys, ctx->stats.min_keys);
	nb = RTE_MIN(ctx->low_free, spare);
	for (i = 0; i < nb; i++) {
		ret = rmem_lease_release(ctx, &ctx->slots[ctx->free[i]]);
		if (ret != 0)
			break;
	}
	rmem_lease_prune_lists(ctx);
	ctx->low_free = ctx->nb_free;
	LEASE_COUNT(ctx->stats.keys_trimmed, i);
	rmem_lease_trace_trim(ctx, i);
	/* -EBUSY: the last request of a key has not completed, so the key was used. */
	return ret != 0 && ret != -EBUSY ? ret : (int)i;
}
