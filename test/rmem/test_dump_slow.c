/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A dump to a stream that is not read makes no other thread wait. */

#include <stdlib.h>

#include <rmem_cache.h>
#include <rmem_lease.h>
#include <rmem_pool.h>
#include <rmem_telemetry.h>

#include "../slow_stream.h"
#include "fixture.h"

#define DUMPER(object)                                                                             \
	static int dump_##object(const void *handle, FILE *f)                                      \
	{                                                                                          \
		return rmem_##object##_dump(handle, f);                                            \
	}

DUMPER(cache)
DUMPER(cq)
DUMPER(dev)
DUMPER(lease_ctx)
DUMPER(mr)
DUMPER(mw)
DUMPER(pd)
DUMPER(pool)
DUMPER(qp)

TEST(dump_slow, devices_and_their_objects)
{
	const struct rmem_mw *mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);

	test_dump_slowly(dump_dev, fx.a.dev);
	test_dump_slowly(dump_pd, fx.a.pd);
	test_dump_slowly(dump_mr, fx.a.mr);
	test_dump_slowly(dump_mw, mw);
	test_dump_slowly(dump_cq, fx.a.cq);
	test_dump_slowly(dump_qp, fx.a.qp);
}

TEST(dump_slow, pools)
{
	const struct rmem_pool_conf conf = {.name = "slow",
			.nb_bufs = 8,
			.buf_size = 64,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_pool *pool;

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	test_dump_slowly(dump_pool, pool);
	TEST_OK(rmem_pool_destroy(pool));
}

TEST(dump_slow, caches)
{
	const struct rmem_cache_conf conf = {.name = "slow",
			.max_size = UINT64_MAX,
			.monitor = RMEM_CACHE_MONITOR_CALLER,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_cache *cache;
	struct rmem_mr *mr;

	TEST_OK(rmem_cache_create(fx.a.pd, &conf, &cache));
	TEST_OK(rmem_cache_get(cache, fx.a.buf, FX_PAGE, 0, &mr));
	test_dump_slowly(dump_cache, cache);
	TEST_OK(rmem_cache_put(cache, mr));
	TEST_OK(rmem_cache_destroy(cache));
}

TEST(dump_slow, contexts_of_leases)
{
	const struct rmem_lease_conf conf = {
			.max_leases = 4, .max_length = 4096, .socket_id = SOCKET_ID_ANY};
	struct rmem_lease_ctx *ctx;

	TEST_OK(rmem_lease_ctx_create(fx.a.qp, &conf, &ctx));
	test_dump_slowly(dump_lease_ctx, ctx);
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

TEST(dump_slow, text_without_memory_is_not_printed)
{
	char *text = NULL;
	struct rmem_dump dump;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_dump_begin(&dump));
	fprintf(dump.f, "whole\n");
	TEST_OK(rmem_dump_end(&dump, f));
	/* As a stream in memory that has no memory, a full device fails each write. */
	TEST_OK(rmem_dump_begin(&dump));
	fclose(dump.f);
	dump.f = fopen("/dev/full", "w");
	TEST_ASSERT(dump.f != NULL);
	fprintf(dump.f, "lost\n");
	FX_ERR_LOG(rmem_dump_end(&dump, f), ENOMEM, "no memory for the text");
	fclose(f);
	TEST_TEXT(text, "whole\n");
	TEST_EQ(size, strlen("whole\n"));
	free(text);
}

TEST_SUITE(dump_slow, fx_setup, fx_teardown);
