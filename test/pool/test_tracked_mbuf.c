/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Tracked pools of mbufs: those of a dead process are freed as new ones. */

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <rmem_driver.h>
#include <rmem_mbuf.h>
#include <rmem_tracked.h>

#include "fixture.h"

/* A process that dies with mbufs in a chain, attached, and with another reference. */
static void
die_with_mbufs(struct rmem_mempool *mbufs)
{
	struct rte_mbuf *m[3];

	TEST_OK(rmem_process_number_set(2));
	TEST_OK(rte_pktmbuf_alloc_bulk(mbufs->mp, m, 3));
	TEST_OK(rte_pktmbuf_chain(m[0], m[1]));
	rte_pktmbuf_attach(m[2], m[0]);
	TEST_EQ(rte_mbuf_refcnt_read(m[0]), 2);
	TEST_OK(rmem_process_number_set(0));
	TEST_EQ(rmem_tracked_reap(2), 3);
	TEST_EQ(rmem_tracked_reap(2), 0);
}

TEST(tracked_mbuf, mbufs_of_a_dead_process_are_freed_as_new)
{
	const struct rmem_pktmbuf_pool_conf conf = {.name = "tracked_mbufs",
			.nb_mbufs = 100,
			.data_room_size = 2048,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_POOL_TRACKED};
	struct rmem_mempool *mbufs = NULL, *found = NULL;
	struct rmem_pool *not_mbufs = NULL;
	struct rte_mbuf *m[100];
	unsigned int i;

	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &mbufs));
	die_with_mbufs(mbufs);
	TEST_OK(rte_pktmbuf_alloc_bulk(mbufs->mp, m, 100));
	for (i = 0; i < 100; i++) {
		TEST_EQ(rmem_tracked_owner(mbufs->mp, m[i]), RMEM_PROCESS_PRIMARY);
		TEST_ASSERT(RTE_MBUF_DIRECT(m[i]) && m[i]->next == NULL && m[i]->nb_segs == 1);
		TEST_EQ(rte_mbuf_refcnt_read(m[i]), 1);
		TEST_EQ(rmem_mempool_lkey(mbufs, m[i]), mbufs->mrs[0]->lkey);
	}
	TEST_ERR(rmem_pktmbuf_pool_destroy(mbufs), EBUSY);
	rte_pktmbuf_free_bulk(m, 100);
	TEST_OK(rmem_mempool_audit(mbufs));
	TEST_OK(rmem_pktmbuf_pool_lookup("tracked_mbufs", &found));
	TEST_ASSERT(found == mbufs);
	TEST_ERR(rmem_pool_lookup("tracked_mbufs", &not_mbufs), ENOENT);
	TEST_ERR(rmem_pktmbuf_pool_lookup(NULL, &found), EINVAL);
	TEST_ERR(rmem_pktmbuf_pool_lookup("tracked_mbufs", NULL), EINVAL);
	TEST_OK(rmem_pktmbuf_pool_destroy(mbufs));
	TEST_ERR(rmem_pktmbuf_pool_lookup("tracked_mbufs", &found), ENOENT);
}

TEST(tracked_mbuf, mbuf_pool_with_a_cache_or_ops_is_refused)
{
	struct rmem_pktmbuf_pool_conf conf = {.name = "tracked_mbufs",
			.nb_mbufs = 100,
			.data_room_size = 2048,
			.cache_size = 1,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_POOL_TRACKED};
	struct rmem_mempool *mbufs = NULL;

	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &mbufs), EINVAL);
	conf.cache_size = 0;
	conf.ops_name = "stack";
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &mbufs), EINVAL);
	conf.ops_name = NULL;
	conf.flags = RMEM_POOL_TRACKED | RMEM_POOL_CHECK_PUTS;
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &mbufs), EINVAL);
	TEST_ASSERT(mbufs == NULL && rte_mempool_lookup("tracked_mbufs") == NULL);
}

TEST_SUITE(tracked_mbuf, fx_setup, fx_teardown);
