/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Selection of a backend, and its log line, with the capabilities that preferred ones lack. */

#include <stdio.h>
#include <string.h>

#include "rmem_lease_priv.h"

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

int
rmem_lease_backend_choose(struct rmem_lease_ctx *ctx, uint32_t backend, uint64_t capa)
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

void
rmem_lease_backend_log(const struct rmem_lease_ctx *ctx, uint32_t backend, uint64_t capa)
{
	static uint8_t logged[RMEM_MAX_DEVS]; /* atomic: by device, bits of backends */
	uint8_t bit = (uint8_t)(1 << ctx->stats.backend);
	char text[384] = "";
	uint32_t level = RTE_LOG_INFO;

	if (backend == RMEM_LEASE_AUTO)
		format_lacking(capa, 1, ctx->backend, text, sizeof(text));
	/* Once for a device, and not for each of its QPs. */
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
