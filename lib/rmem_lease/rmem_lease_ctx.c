/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The check of a context handle, and its statistics. Calls no other file of the library. */

#include <pthread.h>
#include <string.h>

#include <rmem_obj_ref.h>
#include <rmem_process.h>

#include "rmem_lease_priv.h"

RTE_LOG_REGISTER(rmem_lease_logtype, lib.rmem.lease, NOTICE)

uint32_t rmem_lease_ctx_tag;

static void
forked(void)
{
	if (rmem_process_number() == 0)
		rmem_lease_ctx_tag = 0;
}

static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

void
rmem_lease_set_tag(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	__atomic_store_n(&rmem_lease_ctx_tag, LEASE_TAG, __ATOMIC_RELAXED);
}

int
rmem_lease_check_ctx(const struct rmem_lease_ctx *ctx)
{
	int ret = rmem_process_check();

	if (ret != 0)
		return ret;
	if (ctx != NULL && ctx->obj.type == rmem_lease_ctx_tag)
		return 0;
	return LEASE_FAIL(EINVAL, "context: not a lease context: %p", (const void *)ctx);
}

int
rmem_lease_stats_get(const struct rmem_lease_ctx *ctx, struct rmem_lease_stats *stats)
{
	RMEM_CALL(ctx);
	uint64_t words[sizeof(*stats) / sizeof(uint64_t)];
	const uint64_t *from;
	uint32_t i;
	int ret = rmem_lease_check_ctx(ctx);

	if (ret != 0)
		return ret;
	if (stats == NULL)
		return LEASE_FAIL(EINVAL, "statistics: NULL");
	from = (const uint64_t *)&ctx->stats;
	for (i = 0; i < RTE_DIM(words); i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	memcpy(stats, words, sizeof(*stats));
	return 0;
}
