/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Mempools of any maker are registered whole, by extents, and looked up by address. */

#define ALLOW_EXPERIMENTAL_API /* rte_pktmbuf_pool_create_extbuf() in DPDK 22.11 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <rmem_mbuf.h>

#include "fixture.h"

#define NB_OBJS  256u
#define SIZE     2048u
#define EXT_SIZE ((size_t)1 << 20)

static struct rte_mempool *mp;
static struct rmem_mempool *reg;

static void
setup_none(void)
{
	mp = NULL;
	reg = NULL;
	fx_setup();
}

/* A mempool created without rmem. */
static void
setup(void)
{
	setup_none();
	mp = rte_mempool_create("mempool_test", NB_OBJS, SIZE, 32, 0, NULL, NULL, NULL, NULL,
			SOCKET_ID_ANY, 0);
	TEST_ASSERT(mp != NULL);
}

static void
setup_reg(void)
{
	setup();
	TEST_OK(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg));
}

static void
teardown(void)
{
	bool is_ok = rmem_mempool_unregister(reg) == 0;

	rte_mempool_free(mp);
	mp = NULL;
	reg = NULL;
	TEST_ASSERT(TEST_TRY(fx_teardown()) == TEST_SUCCESS && is_ok);
}

/* Memory of the system that a mempool is given, in pieces with gaps: as many extents. */
static void
populate_pieces(struct rte_mempool *pool, unsigned int nb_pieces, size_t size)
{
	uint8_t *mem = fx_mem(4096, 2 * nb_pieces * size);
	unsigned int i;

	for (i = 0; i < nb_pieces; i++) {
		/* The later ones first: they come in no order. */
		uint8_t *piece = mem + 2 * (nb_pieces - 1 - i) * size;

		TEST_ASSERT(rte_mempool_populate_iova(pool, (char *)piece, RTE_BAD_IOVA, size, NULL,
					    NULL) > 0);
	}
}

static struct rte_mempool *
empty_pool(unsigned int nb_objs)
{
	struct rte_mempool *pool = rte_mempool_create_empty("mempool_test", nb_objs, SIZE, 0, 0,
			SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);

	if (pool != NULL && rte_mempool_set_ops_byname(pool, "ring_mp_mc", NULL) != 0)
		return NULL;
	return pool;
}

/* a writes n bytes at obj to b, and b to obj. */
static void
expect_reachable(const struct rmem_mempool *by, void *obj, uint32_t n)
{
	struct rmem_sge sge = {rmem_mempool_iova(by, obj), n, rmem_mempool_lkey(by, obj)};
	struct rmem_send_wr wr;

	fx_fill(obj, n, (uint32_t)(uintptr_t)obj);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, obj, n);
	fx_fill(fx.b.buf, n, 77);
	TEST_STATUS(fx_peer_write(sge.addr, n, rmem_mempool_rkey(by, obj)), RMEM_WC_SUCCESS);
	TEST_MEM(obj, fx.b.buf, n);
}

static void
expect_all_reachable(unsigned int nb)
{
	static void *objs[NB_OBJS];
	unsigned int i;

	TEST_OK(rte_mempool_get_bulk(mp, objs, nb));
	for (i = 0; i < nb; i++)
		expect_reachable(reg, objs[i], SIZE);
	rte_mempool_put_bulk(mp, objs, nb);
}

TEST(mempool, registration_covers_all_objects_and_keeps_the_mempool)
{
	TEST_EQ(reg->nb_mrs, 1);
	TEST_ASSERT(reg->mp == mp && reg->pd == fx.a.pd);
	TEST_EQ(reg->access, FX_ACCESS);
	expect_all_reachable(NB_OBJS);
	TEST_EQ(rte_mempool_avail_count(mp), NB_OBJS);
}

TEST_WITH(mempool, each_extent_is_an_mr, setup_none)
{
	static void *objs[100];
	const unsigned int nb = RTE_DIM(objs);
	unsigned int i, j;

	mp = empty_pool(nb);
	TEST_ASSERT(mp != NULL);
	/* Four objects fit into each piece. */
	populate_pieces(mp, 25, 4 * rte_mempool_calc_obj_size(SIZE, mp->flags, NULL));
	TEST_OK(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg));
	TEST_EQ(reg->nb_mrs, mp->nb_mem_chunks);
	TEST_EQ(reg->nb_mrs, 25);
	for (i = 1; i < reg->nb_mrs; i++)
		TEST_ASSERT(reg->mrs[i]->addr > reg->mrs[i - 1]->addr);
	expect_all_reachable(nb);
	TEST_OK(rte_mempool_get_bulk(mp, objs, nb));
	for (i = 0; i < nb; i++) {
		const uint8_t *obj = objs[i];

		for (j = 0; j < reg->nb_mrs; j++) {
			const struct rmem_mr *mr = reg->mrs[j];
			const uint8_t *addr = mr->addr;

			if (obj >= addr && obj < addr + mr->length)
				TEST_EQ(rmem_mempool_lkey(reg, obj), mr->lkey);
		}
	}
	rte_mempool_put_bulk(mp, objs, nb);
	/* The memory between them is not of the mempool. */
	TEST_EQ(rmem_mempool_lkey(reg, (uint8_t *)reg->mrs[0]->addr + reg->mrs[0]->length),
			RMEM_KEY_NONE);
	TEST_EQ(rmem_mempool_lkey(reg, (uint8_t *)reg->mrs[0]->addr - 1), RMEM_KEY_NONE);
	TEST_OK(rmem_mempool_audit(reg));
}

TEST_WITH(mempool, adjacent_chunks_are_one_mr, setup_none)
{
	size_t size = 4 * rte_mempool_calc_obj_size(SIZE, RTE_MEMPOOL_F_NO_IOVA_CONTIG, NULL);
	uint8_t *mem = fx_mem(4096, 3 * size);
	static const unsigned int order[] = {2, 0, 1};
	unsigned int i;

	mp = empty_pool(12);
	TEST_ASSERT(mp != NULL);
	for (i = 0; i < RTE_DIM(order); i++)
		TEST_EQ(rte_mempool_populate_iova(mp, (char *)mem + order[i] * size, RTE_BAD_IOVA,
					size, NULL, NULL),
				4);
	TEST_OK(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg));
	TEST_EQ(mp->nb_mem_chunks, 3);
	TEST_EQ(reg->nb_mrs, 1);
	TEST_ASSERT(reg->mrs[0]->addr == mem);
	TEST_EQ(reg->mrs[0]->length, 3 * size);
	expect_all_reachable(12);
}

/* The MR of an object holds it, and has the keys that lookups give. */
static void
expect_mr(const struct rmem_mempool *by, const void *obj)
{
	const struct rmem_mr *mr = rmem_mempool_mr(by, obj, SIZE);

	TEST_ASSERT(mr != NULL);
	TEST_EQ(mr->lkey, rmem_mempool_lkey(by, obj));
	TEST_ASSERT((uintptr_t)obj - (uintptr_t)mr->addr <= mr->length - SIZE);
}

TEST(mempool, mr_of_an_object_is_known)
{
	const struct rmem_mr *first = reg->mrs[0], *last = reg->mrs[reg->nb_mrs - 1];
	void *obj;

	TEST_OK(rte_mempool_get(mp, &obj));
	expect_mr(reg, obj);
	rte_mempool_put(mp, obj);
	TEST_ASSERT(rmem_mempool_mr(reg, first->addr, 1) == first);
	TEST_ASSERT(rmem_mempool_mr(reg, (uint8_t *)first->addr - 1, 1) == NULL);
	TEST_ASSERT(rmem_mempool_mr(reg, (uint8_t *)last->addr + last->length - 1, 1) == last);
	TEST_ASSERT(rmem_mempool_mr(reg, (uint8_t *)last->addr + last->length - 1, 2) == NULL);
	TEST_ASSERT(rmem_mempool_mr(reg, (uint8_t *)last->addr + last->length, 1) == NULL);
	/* That of another registration of the PD. */
	TEST_ASSERT(rmem_mempool_mr(reg, fx.a.buf, 1) == NULL);
}

/* Extents too large for an MR are cut between objects. */
TEST_WITH(mempool, large_extent_is_split_between_objects, setup_none)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=10000,max_mr=64");
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_mempool *cut = NULL;
	struct rmem_pool_report report;
	static void *objs[NB_OBJS];
	unsigned int i;

	mp = empty_pool(NB_OBJS);
	TEST_ASSERT(mp != NULL);
	TEST_EQ(rte_mempool_populate_default(mp), NB_OBJS);
	TEST_OK(rmem_mempool_check(mp, pd, &report));
	TEST_OK(rmem_mempool_register(mp, pd, FX_ACCESS, &cut));
	TEST_EQ(cut->nb_mrs, report.nb_mrs);
	TEST_EQ(cut->registered, report.length);
	/* Four objects fit into one, with the headers between them. */
	TEST_EQ(cut->nb_mrs, NB_OBJS / 4);
	TEST_OK(rte_mempool_get_bulk(mp, objs, NB_OBJS));
	for (i = 0; i < NB_OBJS; i++) {
		TEST_ASSERT(rmem_mempool_keys(cut, objs[i], SIZE).lkey != RMEM_KEY_NONE);
		expect_mr(cut, objs[i]);
	}
	/* Not over two of them. */
	TEST_ASSERT(rmem_mempool_mr(cut, cut->mrs[0]->addr, cut->mrs[0]->length + 1) == NULL);
	rte_mempool_put_bulk(mp, objs, NB_OBJS);
	TEST_OK(rmem_mempool_audit(cut));
	TEST_OK(rmem_mempool_unregister(cut));
}

/* A pool of mbufs over external memory of two pieces, known to EAL. */
static void
open_pinned(uint8_t **ext, unsigned int nb_mbufs)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rte_pktmbuf_extmem extmem[2];
	uint8_t *mem;

	mem = mmap(NULL, 2 * EXT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(mem != MAP_FAILED);
	memset(mem, 0, 2 * EXT_SIZE);
	TEST_OK(rte_extmem_register(mem, 2 * EXT_SIZE, NULL, 0, page));
	/* With a gap of an eighth between the two. */
	extmem[0] = (struct rte_pktmbuf_extmem){mem, RTE_BAD_IOVA, EXT_SIZE * 7 / 8, 2304};
	extmem[1] = (struct rte_pktmbuf_extmem){mem + EXT_SIZE, RTE_BAD_IOVA, EXT_SIZE, 2304};
	mp = rte_pktmbuf_pool_create_extbuf(
			"mempool_test", nb_mbufs, 16, 0, 2176, SOCKET_ID_ANY, extmem, 2);
	TEST_ASSERT(mp != NULL);
	*ext = mem;
}

static void
close_pinned(uint8_t *ext)
{
	TEST_OK(rmem_mempool_unregister(reg));
	reg = NULL;
	rte_mempool_free(mp);
	mp = NULL;
	TEST_OK(rte_extmem_unregister(ext, 2 * EXT_SIZE));
	TEST_OK(munmap(ext, 2 * EXT_SIZE));
}

/* 398 and 455 buffers fit into the two pieces. */
TEST_WITH(mempool, pinned_external_buffers_are_registered, setup_none)
{
	const unsigned int nb = 600;
	static struct rte_mbuf *mbufs[600];
	struct rmem_sge sge;
	unsigned int i;
	uint8_t *ext;

	open_pinned(&ext, nb);
	TEST_OK(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg));
	TEST_EQ(reg->nb_mrs, 2);
	TEST_ASSERT(reg->mrs[0]->addr == ext && reg->mrs[1]->addr == ext + EXT_SIZE);
	TEST_OK(rte_pktmbuf_alloc_bulk(mp, mbufs, nb));
	for (i = 0; i < nb; i++) {
		TEST_ASSERT(RTE_MBUF_HAS_PINNED_EXTBUF(mbufs[i]));
		TEST_EQ(rmem_mbuf_tailroom_sges(reg, mbufs[i], &sge, 1), 1);
		expect_reachable(reg, rte_pktmbuf_mtod(mbufs[i], void *), 1500);
		TEST_EQ(rmem_mempool_lkey(reg, mbufs[i]), RMEM_KEY_NONE);
	}
	rte_pktmbuf_free_bulk(mbufs, nb);
	TEST_EQ(rte_mempool_avail_count(mp), nb);
	TEST_OK(rmem_mempool_audit(reg));
	close_pinned(ext);
}

TEST_WITH(mempool, pinned_buffers_beyond_max_mr_size_are_split, setup_none)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=40000,max_mr=64"));
	uint8_t *ext;
	uint32_t i;

	open_pinned(&ext, 600);
	TEST_OK(rmem_mempool_register(mp, pd, FX_ACCESS, &reg));
	/* 17 buffers of 2176 bytes, 2304 apart, in each. */
	TEST_EQ(reg->nb_mrs, 24 + 12);
	for (i = 0; i < reg->nb_mrs; i++)
		TEST_ASSERT(reg->mrs[i]->length <= 40000);
	TEST_OK(rmem_mempool_audit(reg));
	close_pinned(ext);
}

/* Many registrations make the map grow, and come out of it in any order. */
TEST(mempool, lookup_finds_the_registrations_of_other_mempools)
{
	struct rmem_mempool *regs[40];
	struct rte_mempool *mps[40];
	char name[RTE_MEMPOOL_NAMESIZE];
	unsigned int i, j;
	void *obj;

	for (i = 0; i < RTE_DIM(regs); i++) {
		snprintf(name, sizeof(name), "mempool_%u", i);
		mps[i] = rte_mempool_create_empty(
				name, 4, 128, 0, 0, SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
		TEST_ASSERT(mps[i] != NULL);
		TEST_OK(rte_mempool_set_ops_byname(mps[i], "ring_mp_mc", NULL));
		populate_pieces(mps[i], 4, rte_mempool_calc_obj_size(128, mps[i]->flags, NULL));
		TEST_OK(rmem_mempool_register(mps[i], fx.a.pd, FX_ACCESS, &regs[i]));
		TEST_EQ(regs[i]->nb_mrs, 4);
	}
	for (i = 0; i < RTE_DIM(regs); i++) {
		j = i * 7 % RTE_DIM(regs);
		TEST_OK(rte_mempool_get(mps[j], &obj));
		expect_reachable(regs[(j + 11) % RTE_DIM(regs)], obj, 128);
		rte_mempool_put(mps[j], obj);
	}
	for (i = 0; i < RTE_DIM(regs); i++) {
		j = i * 7 % RTE_DIM(regs);
		obj = regs[j]->mrs[0]->addr;
		TEST_OK(rmem_mempool_audit(regs[j]));
		TEST_OK(rmem_mempool_unregister(regs[j]));
		TEST_EQ(rmem_mempool_lkey(reg, obj), RMEM_KEY_NONE);
		rte_mempool_free(mps[j]);
	}
}

TEST(mempool, registering_twice_with_a_pd_is_eexist)
{
	struct rmem_mempool *again = NULL;
	struct rmem_dev_info info;
	struct rmem_pd *pd = fx_pd(fx.a.dev);

	TEST_ERR(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &again), EEXIST);
	TEST_ASSERT(again == NULL);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mr, 3);
	TEST_OK(rmem_mempool_register(mp, pd, FX_ACCESS, &again));
	TEST_ASSERT(rmem_mempool_lkey(again, mp->local_cache) == RMEM_KEY_NONE);
	TEST_ASSERT(reg->mrs[0]->lkey != again->mrs[0]->lkey);
	TEST_OK(rmem_mempool_unregister(again));
}

TEST(mempool, unregistered_keys_are_refused)
{
	uint64_t addr = fx_addr(reg->mrs[0]->addr);
	uint32_t rkey = reg->mrs[0]->rkey;

	TEST_STATUS(fx_peer_write(addr + 4096, 8, rkey), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mempool_unregister(reg));
	reg = NULL;
	TEST_STATUS(fx_peer_write(addr + 4096, 8, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(rte_mempool_avail_count(mp), NB_OBJS);
}

TEST_WITH(mempool, registration_has_the_requested_rights, setup)
{
	void *obj;

	TEST_OK(rmem_mempool_register(mp, fx.a.pd, RMEM_ACCESS_REMOTE_READ, &reg));
	TEST_OK(rte_mempool_get(mp, &obj));
	TEST_STATUS(fx_peer_write(fx_addr(obj), 8, rmem_mempool_rkey(reg, obj)),
			RMEM_WC_REM_ACCESS_ERR);
	rte_mempool_put(mp, obj);
}

/* Each test of a range, at its ends. */
TEST(mempool, lookup_requires_the_whole_range)
{
	uint8_t *base = (uint8_t *)reg->base;
	size_t length = reg->length;

	TEST_ASSERT(rmem_mempool_keys(reg, base, length).lkey == reg->mrs[0]->lkey);
	TEST_EQ(rmem_mempool_keys(reg, base, length + 1).lkey, RMEM_KEY_NONE);
	TEST_EQ(rmem_mempool_keys(reg, base - 1, 1).lkey, RMEM_KEY_NONE);
	TEST_EQ(rmem_mempool_keys(reg, base - 1, 2).rkey, RMEM_KEY_NONE);
	TEST_ASSERT(rmem_mempool_keys(reg, base + length - 1, 1).rkey == reg->mrs[0]->rkey);
	TEST_EQ(rmem_mempool_keys(reg, base + length, 1).lkey, RMEM_KEY_NONE);
	TEST_EQ(rmem_mempool_keys(reg, base, SIZE_MAX).lkey, RMEM_KEY_NONE);
	TEST_EQ(rmem_mempool_keys_lookup(reg, NULL, 1).lkey, RMEM_KEY_NONE);
	TEST_ASSERT(rmem_mempool_keys_lookup(reg, base + 1, length - 1).lkey == reg->mrs[0]->lkey);
}

TEST(mempool, stats_count_objects_and_memory)
{
	struct rmem_mempool_stats stats;
	void *objs[3];

	TEST_OK(rte_mempool_get_bulk(mp, objs, 3));
	TEST_OK(rmem_mempool_stats_get(reg, &stats));
	TEST_EQ(stats.nb_objs, NB_OBJS);
	TEST_EQ(stats.nb_in_use, 3);
	TEST_EQ(stats.nb_avail, NB_OBJS - 3);
	TEST_ASSERT(stats.nb_cached > 0 && stats.nb_cached < NB_OBJS);
	TEST_EQ(stats.nb_chunks, mp->nb_mem_chunks);
	TEST_EQ(stats.nb_mrs, 1);
	TEST_EQ(stats.registered, reg->mrs[0]->length);
	TEST_EQ(stats.largest_mr, reg->mrs[0]->length);
	rte_mempool_put_bulk(mp, objs, 3);
	TEST_OK(rmem_mempool_stats_get(reg, &stats));
	TEST_EQ(stats.nb_in_use, 0);
	TEST_ERR(rmem_mempool_stats_get(reg, NULL), EINVAL);
	TEST_ERR(rmem_mempool_stats_get(NULL, &stats), EINVAL);
}

/* Each of its checks is violated deliberately. */
TEST(mempool, audit_detects_each_fault)
{
	uint32_t lkey = reg->keys.lkey, length;
	size_t reg_length = reg->length;

	TEST_OK(rmem_mempool_audit(reg));
	TEST_ERR(rmem_mempool_audit(NULL), EINVAL);
	TEST_ERR(rmem_mempool_audit((struct rmem_mempool *)fx.a.pd), EINVAL);
	reg->keys.lkey = lkey ^ 1;
	TEST_ERR(rmem_mempool_audit(reg), EIO);
	reg->keys.lkey = lkey;
	length = mp->local_cache[0].len;
	mp->local_cache[0].len = 2 * mp->local_cache[0].size;
	TEST_ERR(rmem_mempool_audit(reg), EIO);
	mp->local_cache[0].len = length;
	/* The last object is outside of the registration: its size is another. */
	mp->elt_size += (uint32_t)reg_length;
	TEST_ERR(rmem_mempool_audit(reg), EFAULT);
	mp->elt_size -= (uint32_t)reg_length;
	TEST_OK(rmem_mempool_audit(reg));
}

TEST(mempool, freed_mempool_is_noticed)
{
	struct rmem_mempool_stats stats;

	rte_mempool_free(mp);
	mp = NULL;
	TEST_ERR(rmem_mempool_audit(reg), ENOENT);
	TEST_ERR(rmem_mempool_stats_get(reg, &stats), ENOENT);
	TEST_OK(rmem_mempool_unregister(reg));
	reg = NULL;
}

/* Other registrations are added and removed while lcores look up keys. */
static struct {
	uint32_t stop;
	const uint8_t *obj;
	uint32_t lkey;
} race;

static void
look_up(void *arg)
{
	uint32_t nb = 0;

	RTE_SET_USED(arg);
	while (__atomic_load_n(&race.stop, __ATOMIC_RELAXED) == 0 || nb < 1000) {
		TEST_EQ(rmem_mempool_keys_lookup(reg, race.obj, SIZE).lkey, race.lkey);
		TEST_EQ(rmem_mempool_keys_lookup(reg, race.obj + SIZE + EXT_SIZE * 1024, 1).lkey,
				RMEM_KEY_NONE);
		nb++;
	}
}

static void
come_and_go(struct rmem_mr **mrs, unsigned int nb)
{
	unsigned int round, i;

	for (round = 0; round < 500; round++) {
		for (i = 0; i < nb; i++)
			TEST_OK(rmem_extbuf_mr_add(mrs[i]));
		for (i = nb; i-- > 0;)
			TEST_OK(rmem_extbuf_mr_del(mrs[i]));
	}
}

TEST(mempool, lookups_race_with_registrations)
{
	unsigned int nb = RTE_MIN(fx_nb_workers(), 2u), i;
	struct rmem_mr *mrs[100], *last;
	uint8_t *mem;
	int ret;

	fx_need_workers(1);
	/* The one that is looked up is after those added and removed, and so moves each time. */
	mem = fx_mem(4096, RTE_DIM(mrs) * 64 + SIZE);
	for (i = 0; i < RTE_DIM(mrs); i++)
		mrs[i] = fx_mr(fx.a.pd, mem + i * 64, 64, FX_ACCESS);
	last = fx_mr(fx.a.pd, mem + i * 64, SIZE, FX_ACCESS);
	TEST_OK(rmem_extbuf_mr_add(last));
	race.stop = 0;
	race.obj = last->addr;
	race.lkey = last->lkey;
	fx_launch(look_up, NULL, 0, nb);
	ret = TEST_TRY(come_and_go(mrs, RTE_DIM(mrs)));
	__atomic_store_n(&race.stop, 1, __ATOMIC_RELAXED);
	fx_join(nb);
	TEST_OK(rmem_extbuf_mr_del(last));
	TEST_RUN(ret);
}

TEST_SUITE(mempool, setup_reg, teardown);
