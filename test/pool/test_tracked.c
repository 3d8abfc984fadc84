/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Tracked pools: each buffer has an owner, and those of a dead process are freed. This process
 * stands for others by their numbers.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>

#include <rmem_driver.h>
#include <rmem_mbuf.h>
#include <rmem_pool.h>
#include <rmem_tracked.h>

#include "../../lib/rmem_pool/rmem_tracked_priv.h"

#include "fixture_pool.h"

#define NB_BUFS  1021u /* the last word of owners is not full */
#define SIZE     2048u
#define MAX_DIR  128u /* pools that processes find by name */
#define OPS_NAME "rmem_tracked"

static struct rmem_pool *pool;
static struct rmem_sge sges[NB_BUFS];
static void *bufs[NB_BUFS];

static struct rmem_pool_conf
good_conf(void)
{
	return (struct rmem_pool_conf){.name = "tracked_test",
			.nb_bufs = NB_BUFS,
			.buf_size = SIZE,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_POOL_TRACKED};
}

static void
setup(void)
{
	const struct rmem_pool_conf conf = good_conf();

	pool = NULL;
	fx_setup();
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
}

static void
destroy_pool(void)
{
	TEST_OK(rmem_pool_destroy(pool));
	pool = NULL;
}

static void
teardown(void)
{
	bool is_ok = rmem_process_number_set(0) == 0;

	is_ok = rmem_pool_destroy(pool) == 0 && is_ok;
	pool = NULL;
	TEST_ASSERT(TEST_TRY(fx_teardown()) == TEST_SUCCESS && is_ok);
}

/* Get buffers as another process does. */
static void
get_as(uint16_t process, unsigned int n)
{
	TEST_OK(rmem_process_number_set(process));
	TEST_OK(rte_mempool_get_bulk(pool->mp, bufs, n));
	TEST_OK(rmem_process_number_set(0));
}

static void
expect_free(unsigned int n)
{
	TEST_EQ(rte_mempool_avail_count(pool->mp), n);
}

TEST(tracked, buffer_belongs_to_the_process_that_got_it)
{
	unsigned int i;

	TEST_EQ(rmem_process_number(), RMEM_PROCESS_PRIMARY);
	TEST_OK(rmem_pool_get_sges(pool, sges, 20));
	for (i = 0; i < 20; i++) {
		void *buf = (void *)(uintptr_t)sges[i].addr;

		TEST_EQ(rmem_tracked_owner(pool->mp, buf), RMEM_PROCESS_PRIMARY);
		TEST_EQ(sges[i].length, SIZE);
		TEST_EQ(sges[i].lkey, rmem_pool_lkey(pool, buf));
	}
	expect_free(NB_BUFS - 20);
	get_as(7, 3);
	TEST_EQ(rmem_tracked_owner(pool->mp, bufs[0]), 7);
	/* Another process may put a buffer back too. */
	rte_mempool_put_bulk(pool->mp, bufs, 3);
	TEST_EQ(rmem_tracked_owner(pool->mp, bufs[2]), 0);
	rmem_pool_put_sges(pool, sges, 20);
	expect_free(NB_BUFS);
}

TEST(tracked, every_buffer_is_got_once_in_any_burst)
{
	fx_every_buffer_in_any_burst(pool);
}

TEST(tracked, get_of_too_many_takes_none)
{
	get_as(3, NB_BUFS - 5);
	TEST_ERR(rmem_pool_get_sges(pool, sges, 6), ENOENT);
	TEST_ERR(rmem_pool_get_sges(pool, sges, NB_BUFS + 1), ENOENT);
	expect_free(5);
	TEST_OK(rmem_pool_get_sges(pool, sges, 5));
	expect_free(0);
	rmem_pool_put_sges(pool, sges, 5);
	TEST_EQ(rmem_tracked_reap(3), NB_BUFS - 5);
	expect_free(NB_BUFS);
}

TEST(tracked, buffers_of_a_dead_process_are_freed_once)
{
	TEST_OK(rmem_pool_get_sges(pool, sges, 9));
	get_as(2, 100);
	get_as(254, 11);
	TEST_EQ(rmem_tracked_reap(2), 100);
	TEST_EQ(rmem_tracked_reap(2), 0);
	TEST_EQ(rmem_tracked_reap(3), 0);
	expect_free(NB_BUFS - 20);
	TEST_EQ(rmem_tracked_reap(254), 11);
	rmem_pool_put_sges(pool, sges, 9);
	expect_free(NB_BUFS);
}

TEST(tracked, pools_are_reaped_together)
{
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pool *other = NULL;
	void *buf;

	conf.name = "tracked_other";
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &other));
	get_as(2, 4);
	TEST_OK(rmem_process_number_set(2));
	TEST_OK(rte_mempool_get(other->mp, &buf));
	TEST_OK(rmem_process_number_set(0));
	TEST_EQ(rmem_tracked_reap(2), 5);
	TEST_OK(rmem_pool_destroy(other));
}

TEST(tracked, received_buffers_outlive_their_sender)
{
	get_as(2, 4);
	TEST_EQ(rmem_tracked_own(pool->mp, bufs, 3, 2), 3);
	TEST_EQ(rmem_tracked_owner(pool->mp, bufs[0]), RMEM_PROCESS_PRIMARY);
	TEST_EQ(rmem_tracked_reap(2), 1);
	expect_free(NB_BUFS - 3);
	rte_mempool_put_bulk(pool->mp, bufs, 3);
	expect_free(NB_BUFS);
}

TEST(tracked, buffers_of_a_dead_sender_are_dropped)
{
	void *late[4], *again;

	get_as(2, 4);
	memcpy(late, bufs, sizeof(late));
	/* The second one was received in time. */
	TEST_EQ(rmem_tracked_own(pool->mp, &late[1], 1, 2), 1);
	TEST_EQ(rmem_tracked_reap(2), 3);
	/* The first one now belongs to process 3. */
	TEST_OK(rmem_process_number_set(3));
	TEST_OK(rte_mempool_get(pool->mp, &again));
	TEST_OK(rmem_process_number_set(0));
	TEST_ASSERT(again == late[0]);
	TEST_EQ(rmem_tracked_own(pool->mp, late, 4, 2), 0);
	TEST_EQ(rmem_tracked_owner(pool->mp, again), 3);
	/* Without the sender it would be taken, and what is free would be dropped. */
	memcpy(late, bufs, sizeof(late));
	TEST_EQ(rmem_tracked_own(pool->mp, late, 4, 0), 2);
	TEST_ASSERT(late[0] == bufs[0] && late[1] == bufs[1]);
	rte_mempool_put_bulk(pool->mp, late, 2);
	expect_free(NB_BUFS);
}

/* Refused puts leave the pool whole; the first one is logged. */
TEST(tracked, free_and_foreign_buffers_are_not_put)
{
	static uint8_t foreign[64];
	void *bad[4];

	TEST_OK(rte_mempool_get_bulk(pool->mp, bufs, 9));
	bad[0] = foreign;
	bad[1] = (uint8_t *)bufs[0] + 1;
	bad[2] = (uint8_t *)bufs[0] - 64;
	bad[3] = NULL;
	fx_log_begin();
	rte_mempool_put_bulk(pool->mp, bad, 4);
	TEST_TEXT(fx_log_end(), "put refused: 4 buffers");
	expect_free(NB_BUFS - 9);
	rte_mempool_put_bulk(pool->mp, bufs, 9);
	fx_log_begin();
	rte_mempool_put_bulk(pool->mp, bufs, 9);
	rte_mempool_put(pool->mp, bufs[8]);
	TEST_ASSERT(strstr(fx_log_end(), "put refused") == NULL);
	TEST_EQ(((struct rmem_tracked *)pool->mp->pool_data)->bad_puts, 4 + 9 + 1);
	expect_free(NB_BUFS);
	fx_every_buffer_once(pool, 32);
}

TEST(tracked, bad_calls_are_refused)
{
	struct rte_mempool *plain;
	void *buf = NULL;

	TEST_ERR(rmem_tracked_reap(0), EINVAL);
	TEST_ERR(rmem_tracked_reap(RMEM_PROCESS_PRIMARY), EINVAL);
	TEST_ERR(rmem_tracked_reap(RMEM_PROCESS_MAX + 1), EINVAL);
	TEST_ERR(rmem_process_number_set(RMEM_PROCESS_MAX + 1), EINVAL);
	TEST_ERR(rmem_tracked_own(NULL, &buf, 1, 2), EINVAL);
	TEST_ERR(rmem_tracked_own(pool->mp, &buf, 1, RMEM_PROCESS_MAX + 1), EINVAL);
	TEST_EQ(rmem_tracked_own(pool->mp, &buf, 1, 2), 0);
	TEST_EQ(rmem_tracked_own(pool->mp, &buf, 0, 2), 0);
	TEST_ERR(rmem_tracked_owner(NULL, buf), EINVAL);
	TEST_ERR(rmem_tracked_ops_set(NULL), EINVAL);
	TEST_ERR(rmem_tracked_owner(pool->mp, buf), EINVAL);
	plain = rte_mempool_create("plain", 8, 64, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	TEST_ASSERT(plain != NULL);
	TEST_ERR(rmem_tracked_own(plain, &buf, 1, 2), EINVAL);
	TEST_ERR(rmem_tracked_owner(plain, buf), EINVAL);
	rte_mempool_free(plain);
}

static int
create(const void *conf)
{
	struct rmem_pool *made = NULL;
	int ret = rmem_pool_create(fx.a.pd, conf, &made);

	return made == NULL ? ret : 0;
}

TEST(tracked, caches_and_other_ops_are_refused)
{
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_pool_conf, cache_size, 1, EINVAL),
			FX_BAD(rmem_pool_conf, ops_name, "stack", EINVAL),
			FX_BAD(rmem_pool_conf, ops_name, OPS_NAME, EINVAL),
			FX_BAD(rmem_pool_conf, flags, RMEM_POOL_TRACKED | 4, EINVAL),
			FX_BAD(rmem_pool_conf, flags, UINT32_MAX, EINVAL),
	};
	struct rmem_pool_conf conf = good_conf();

	conf.name = "tracked_bad";
	fx_expect_bad_fields(&conf, sizeof(conf), rows, RTE_DIM(rows), create);
	conf.flags = 0;
	conf.ops_name = OPS_NAME;
	TEST_ERR(create(&conf), EINVAL);
	TEST_ASSERT(rte_mempool_lookup("tracked_bad") == NULL);
}

TEST(tracked, pool_with_owned_buffers_is_not_destroyed)
{
	get_as(2, 5);
	FX_ERR_LOG(rmem_pool_destroy(pool), EBUSY, "5 of process 2");
	TEST_EQ(rmem_tracked_reap(2), 5);
	destroy_pool();
}

TEST(tracked, pool_is_found_by_name)
{
	const char *long_name = "a_name_that_is_longer_than_a_mempool_can_have";
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pool *found = NULL, *plain = NULL;
	struct rmem_mempool *mbufs = NULL;

	TEST_OK(rmem_pool_lookup("tracked_test", &found));
	TEST_ASSERT(found == pool);
	found = NULL;
	TEST_ERR(rmem_pool_lookup(NULL, &found), EINVAL);
	TEST_ERR(rmem_pool_lookup("tracked_test", NULL), EINVAL);
	TEST_ERR(rmem_pool_lookup("tracked", &found), ENOENT);
	TEST_ERR(rmem_pool_lookup("", &found), ENOENT);
	TEST_ERR(rmem_pool_lookup(long_name, &found), ENOENT);
	TEST_ERR(rmem_pktmbuf_pool_lookup("tracked_test", &mbufs), ENOENT);
	conf.name = "plain";
	conf.flags = 0;
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &plain));
	TEST_ERR(rmem_pool_lookup("plain", &found), ENOENT);
	TEST_OK(rmem_pool_destroy(plain));
	destroy_pool();
	TEST_ERR(rmem_pool_lookup("tracked_test", &found), ENOENT);
	TEST_ASSERT(found == NULL);
}

TEST(tracked, as_many_pools_are_found_as_the_directory_holds)
{
	struct rmem_pool *pools[MAX_DIR], *found;
	struct rmem_pool_conf conf = {.nb_bufs = 1, .buf_size = 64, .flags = RMEM_POOL_TRACKED};
	char name[RTE_MEMPOOL_NAMESIZE];
	unsigned int i;

	conf.name = name;
	pools[0] = pool;
	for (i = 1; i < MAX_DIR; i++) {
		snprintf(name, sizeof(name), "tracked_%u", i);
		TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pools[i]));
	}
	snprintf(name, sizeof(name), "tracked_too_many");
	TEST_ERR(rmem_pool_create(fx.a.pd, &conf, &found), ENOSPC);
	TEST_ASSERT(rte_mempool_lookup(name) == NULL);
	for (i = 1; i < MAX_DIR; i++) {
		snprintf(name, sizeof(name), "tracked_%u", i);
		TEST_OK(rmem_pool_lookup(name, &found));
		TEST_ASSERT(found == pools[i]);
		TEST_OK(rmem_pool_destroy(found));
	}
}

/* As in a process that loaded other mempool drivers than the primary. */
TEST(tracked, ops_of_another_index_are_refused)
{
	struct rmem_pool *found = NULL;

	fx_log_begin();
	pool->mp->ops_index--;
	TEST_ERR(rmem_pool_lookup("tracked_test", &found), EOPNOTSUPP);
	pool->mp->ops_index++;
	TEST_TEXT(fx_log_end(), "load the same mempool drivers");
	TEST_ASSERT(found == NULL);
}

/* The ops in DPDK's table under another name, and all further slots in use. */
static void
with_full_table(struct rte_mempool_ops *ops)
{
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pool *found = NULL;

	TEST_ASSERT(strcmp(ops->name, OPS_NAME) == 0);
	ops->name[0] = 'x';
	rte_mempool_ops_table.num_ops = RTE_MEMPOOL_MAX_OPS_IDX;
	conf.name = "tracked_other";
	TEST_ERR(create(&conf), ENOSPC);
	TEST_ERR(rmem_pool_lookup("tracked_test", &found), ENOSPC);
	TEST_ASSERT(found == NULL);
}

TEST(tracked, full_table_of_mempool_ops_is_enospc)
{
	struct rte_mempool_ops *ops = rte_mempool_get_ops(pool->mp->ops_index);
	uint32_t nb = rte_mempool_ops_table.num_ops;
	int result = TEST_TRY(with_full_table(ops));

	ops->name[0] = 'r';
	rte_mempool_ops_table.num_ops = nb;
	TEST_ASSERT(rte_mempool_lookup("tracked_other") == NULL);
	TEST_RUN(result);
}

/* As in a secondary process that loaded fewer drivers, the ops not registered yet. */
static void
with_fewer_drivers(int index)
{
	struct rmem_pool *found = NULL;
	struct rte_mempool *mp;
	void *buf;

	rte_mempool_get_ops(index)->name[0] = 'x';
	rte_mempool_ops_table.num_ops = (uint32_t)index - 2;
	TEST_OK(rmem_pool_lookup("tracked_test", &found));
	TEST_EQ(rte_mempool_ops_table.num_ops, index + 1);
	TEST_OK(rte_mempool_get(found->mp, &buf));
	rte_mempool_put(found->mp, buf);
	/* A mempool with the ops of such a driver is refused. */
	mp = rte_mempool_create_empty("missing", 8, 64, 0, 0, SOCKET_ID_ANY, 0);
	TEST_ASSERT(mp != NULL);
	TEST_OK(rte_mempool_set_ops_byname(mp, "rmem_missing", NULL));
	TEST_ASSERT(rte_mempool_populate_default(mp) < 0);
	TEST_ERR(rte_mempool_ops_dequeue_bulk(mp, &buf, 1), EOPNOTSUPP);
	TEST_ERR(rte_mempool_ops_enqueue_bulk(mp, &buf, 1), EOPNOTSUPP);
	TEST_EQ(rte_mempool_avail_count(mp), 0);
	rte_mempool_free(mp);
}

TEST(tracked, slots_of_drivers_that_are_not_loaded_are_filled)
{
	struct rte_mempool_ops_table table = rte_mempool_ops_table;
	int index = pool->mp->ops_index, result = TEST_SKIPPED;

	if (index >= 2)
		result = TEST_TRY(with_fewer_drivers(index));
	rte_mempool_ops_table = table;
	TEST_RUN(result);
}

TEST(tracked, pool_of_several_regions_is_tracked)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=131072,max_mr=64");
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pool *large = NULL;
	unsigned int i;

	conf.name = "tracked_large";
	TEST_OK(rmem_pool_create(fx_pd(dev), &conf, &large));
	TEST_ASSERT(large->nb_mrs > 1);
	TEST_OK(rmem_pool_get_sges(large, sges, NB_BUFS));
	for (i = 0; i < NB_BUFS; i++) {
		void *buf = (void *)(uintptr_t)sges[i].addr;

		TEST_EQ(rmem_tracked_owner(large->mp, buf), RMEM_PROCESS_PRIMARY);
		TEST_EQ(sges[i].lkey, rmem_pool_mr(large, buf)->lkey);
	}
	rmem_pool_put_sges(large, sges, NB_BUFS);
	TEST_OK(rmem_pool_destroy(large));
}

/* Any mempool can have the ops: the distances of its buffers may differ. */
TEST(tracked, mempool_of_several_chunks_is_tracked)
{
	struct rte_mempool *mp = rte_mempool_create_empty(
			"tracked_mp", 64, 64, 0, 0, SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	uint8_t *chunk = fx_mem(4096, 65536);
	unsigned int i;

	TEST_ASSERT(mp != NULL);
	TEST_OK(rte_mempool_set_ops_byname(mp, OPS_NAME, NULL));
	/* From the last to the first, at no regular distance. */
	for (i = 8; i-- > 0 && mp->populated_size < mp->size;)
		TEST_ASSERT(rte_mempool_populate_iova(mp, (char *)chunk + i * 7168 + i * i * 64,
					    RTE_BAD_IOVA, 2048 + i * 64, NULL, NULL) > 0);
	TEST_EQ(mp->populated_size, mp->size);
	TEST_OK(rte_mempool_get_bulk(mp, bufs, 64));
	TEST_ERR(rte_mempool_get_bulk(mp, bufs, 1), ENOBUFS);
	for (i = 0; i < 64; i++)
		TEST_EQ(rmem_tracked_owner(mp, bufs[i]), RMEM_PROCESS_PRIMARY);
	rte_mempool_put_bulk(mp, bufs, 64);
	TEST_EQ(rte_mempool_avail_count(mp), 64);
	rte_mempool_free(mp);
}

TEST(tracked, wrong_owner_is_found_by_the_audit)
{
	struct rmem_tracked *td = pool->mp->pool_data;
	uint64_t word = td->words[3];
	void *obj = td->objs[7];

	TEST_OK(rmem_dev_audit(fx.a.dev));
	td->words[3] = word | 0xff;
	TEST_ERR(rmem_dev_audit(fx.a.dev), EIO);
	td->words[3] = word;
	td->objs[7] = td->objs[8];
	TEST_ERR(rmem_dev_audit(fx.a.dev), EIO);
	td->objs[7] = obj;
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST(tracked, owners_are_dumped)
{
	char *text = NULL;
	size_t size;
	FILE *f;

	get_as(2, 5);
	rte_mempool_put(pool->mp, (uint8_t *)bufs[0] + 1);
	f = open_memstream(&text, &size);
	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_pool_dump(pool, f));
	fclose(f);
	TEST_TEXT(text, "in_use_by_process:\n");
	TEST_TEXT(text, "2: 5\n");
	TEST_TEXT(text, "refused_puts: 1\n");
	free(text);
	TEST_EQ(rmem_tracked_reap(2), 5);
}

TEST_SUITE(tracked, setup, teardown);
