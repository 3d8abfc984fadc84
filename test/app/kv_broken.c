/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Makes leases that do not keep what they promise, below an unchanged dpdk-rmem-kv (linked with
 * --wrap): its checks must detect it. KV_BROKEN in the environment selects the fault.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include <rmem_lease.h>
#include <rmem_lease_desc.h>

#define MAX_BURST 64

int __real_rmem_lease_prepare(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req,
		uint16_t nb, struct rmem_lease **lease);
int __wrap_rmem_lease_prepare(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req,
		uint16_t nb, struct rmem_lease **lease);
int __real_rmem_lease_revoke(
		struct rmem_lease_ctx *ctx, struct rmem_lease *const *lease, uint16_t nb);
int __wrap_rmem_lease_revoke(
		struct rmem_lease_ctx *ctx, struct rmem_lease *const *lease, uint16_t nb);
int __real_rmem_lease_reclaim(struct rmem_lease_ctx *ctx, struct rmem_lease **lease, uint16_t nb);
int __wrap_rmem_lease_reclaim(struct rmem_lease_ctx *ctx, struct rmem_lease **lease, uint16_t nb);
int __real_rmem_lease_desc_get(const struct rmem_lease *lease, struct rmem_lease_desc *desc);
int __wrap_rmem_lease_desc_get(const struct rmem_lease *lease, struct rmem_lease_desc *desc);
int __real_rmem_lease_desc_unpack(
		const void *buf, size_t size, struct rmem_lease_desc *desc, uint32_t *part);
int __wrap_rmem_lease_desc_unpack(
		const void *buf, size_t size, struct rmem_lease_desc *desc, uint32_t *part);
int __real_rmem_lease_unseal(struct rmem_lease_sealer *sealer, const void *buf, size_t size,
		const void *with, size_t with_size, struct rmem_lease_desc *desc,
		struct rmem_lease_seal_info *info, uint32_t *part);
int __wrap_rmem_lease_unseal(struct rmem_lease_sealer *sealer, const void *buf, size_t size,
		const void *with, size_t with_size, struct rmem_lease_desc *desc,
		struct rmem_lease_seal_info *info, uint32_t *part);

static bool
is_broken(const char *what)
{
	const char *broken = getenv("KV_BROKEN");

	return broken != NULL && strcmp(broken, what) == 0;
}

/*
 * "value", "run": the lease covers other bytes; "run" only in bursts. "error": the error of bursts is
 * none of the kernel.
 */
int
__wrap_rmem_lease_prepare(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease)
{
	struct rmem_lease_req other[MAX_BURST];
	uint16_t i;

	if (nb > 1 && is_broken("error"))
		return -70000;
	if (nb > MAX_BURST || !(is_broken("value") || (is_broken("run") && nb > 1)))
		return __real_rmem_lease_prepare(ctx, req, nb, lease);
	for (i = 0; i < nb; i++) {
		other[i] = req[i];
		other[i].addr = (uint8_t *)req[i].addr - 1;
	}
	return __real_rmem_lease_prepare(ctx, other, nb, lease);
}

/* "revoke": a revoked lease is returned immediately, and its rkey remains valid. */
static struct rmem_lease given[MAX_BURST];
static uint16_t nb_given;

int
__wrap_rmem_lease_revoke(struct rmem_lease_ctx *ctx, struct rmem_lease *const *lease, uint16_t nb)
{
	uint16_t i;

	if (!is_broken("revoke"))
		return __real_rmem_lease_revoke(ctx, lease, nb);
	for (i = 0; i < nb && nb_given < MAX_BURST; i++) {
		given[nb_given] = *lease[i];
		given[nb_given++].end = RMEM_LEASE_END_REVOKED;
	}
	return 0;
}

int
__wrap_rmem_lease_reclaim(struct rmem_lease_ctx *ctx, struct rmem_lease **lease, uint16_t nb)
{
	static uint16_t nb_taken;
	struct rmem_lease *ended;
	int n = 0;
	uint16_t i;

	if (!is_broken("revoke"))
		return __real_rmem_lease_reclaim(ctx, lease, nb);
	while (n < nb && nb_taken < nb_given)
		lease[n++] = &given[nb_taken++];
	while (n < nb && __real_rmem_lease_reclaim(ctx, &ended, 1) == 1) {
		for (i = 0; i < nb_given && given[i].id != ended->id; i++)
			;
		if (i == nb_given)
			lease[n++] = ended;
	}
	return n;
}

/* "expire": a lease lasts a thousand times as long as in its descriptor; "slow": 1.5 times. */
int
__wrap_rmem_lease_desc_get(const struct rmem_lease *lease, struct rmem_lease_desc *desc)
{
	int ret = __real_rmem_lease_desc_get(lease, desc);

	if (ret == 0 && is_broken("expire"))
		desc->left_ns /= 1000;
	if (ret == 0 && is_broken("slow"))
		desc->left_ns = desc->left_ns / 3 * 2;
	return ret;
}

/* "change": an invalid descriptor is replaced by the last valid one. */
int
__wrap_rmem_lease_desc_unpack(
		const void *buf, size_t size, struct rmem_lease_desc *desc, uint32_t *part)
{
	static struct rmem_lease_desc last;
	int ret = __real_rmem_lease_desc_unpack(buf, size, desc, part);

	if (!is_broken("change"))
		return ret;
	if (ret > 0)
		last = *desc;
	*desc = last;
	return RMEM_LEASE_DESC_SIZE;
}

/* "unseal": a descriptor that is not sealed is accepted too. */
int
__wrap_rmem_lease_unseal(struct rmem_lease_sealer *sealer, const void *buf, size_t size,
		const void *with, size_t with_size, struct rmem_lease_desc *desc,
		struct rmem_lease_seal_info *info, uint32_t *part)
{
	int ret = is_broken("unseal") ? __real_rmem_lease_desc_unpack(buf, size, desc, part) : -1;

	if (ret > 0)
		return ret;
	return __real_rmem_lease_unseal(sealer, buf, size, with, with_size, desc, info, part);
}
