/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Grant and revoke one lease, and wait. Applications do so for bursts, in their poll loop. */

#ifndef LEASES_H
#define LEASES_H

#include <rmem_lease.h>

#include "pair.h"

/* Poll until it has the state. */
static inline void
lease_wait(struct rmem_lease_ctx *ctx, const struct rmem_lease *lease, uint8_t state)
{
	struct rmem_wc wc;

	while (lease->state != state)
		check("rmem_lease_poll", rmem_lease_poll(ctx, &wc, 1));
}

static inline struct rmem_lease *
lease_grant(struct rmem_lease_ctx *ctx, const struct rmem_mr *mr, void *buf, uint32_t length)
{
	const struct rmem_lease_req req = {
			.mr = mr,
			.addr = buf,
			.length = length,
			.access = RMEM_ACCESS_REMOTE_WRITE,
			.user = buf,
	};
	struct rmem_lease *lease;

	check("rmem_lease_grant", rmem_lease_grant(ctx, &req, 1, &lease));
	lease_wait(ctx, lease, RMEM_LEASE_GRANTED);
	return lease;
}

/* When it returns, the peer has no access any more. */
static inline void
lease_end(struct rmem_lease_ctx *ctx)
{
	struct rmem_lease *lease;
	struct rmem_wc wc;
	int n;

	while ((n = rmem_lease_reclaim(ctx, &lease, 1)) == 0)
		check("rmem_lease_poll", rmem_lease_poll(ctx, &wc, 1));
	check("rmem_lease_reclaim", n);
}

static inline struct rmem_lease_ctx *
lease_open(struct rmem_qp *qp, uint32_t max_length)
{
	const struct rmem_lease_conf conf = {
			.max_leases = 16, .max_length = max_length, .socket_id = SOCKET_ID_ANY};
	struct rmem_lease_ctx *ctx;

	check("rmem_lease_ctx_create", rmem_lease_ctx_create(qp, &conf, &ctx));
	return ctx;
}

#endif /* LEASES_H */
