/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Registered mbuf pools are pools of mbufs like any, and the keys are those of the data. */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <rmem_mbuf.h>

#include "fixture.h"

#define NB_MBUFS  512u
#define PRIV_SIZE 16u

static struct rmem_mempool *pool;
static struct rmem_mempool *other;

static struct rmem_pktmbuf_pool_conf
good_conf(const char *name)
{
	return (struct rmem_pktmbuf_pool_conf){.name = name,
			.nb_mbufs = NB_MBUFS,
			.cache_size = 32,
			.priv_size = PRIV_SIZE,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
}

static void
setup_none(void)
{
	pool = NULL;
	other = NULL;
	fx_setup();
}

static void
setup(void)
{
	const struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_test");

	setup_none();
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
}

static void
teardown(void)
{
	bool is_ok = rmem_pktmbuf_pool_destroy(other) == 0;

	is_ok = rmem_pktmbuf_pool_destroy(pool) == 0 && is_ok;
	pool = NULL;
	other = NULL;
	TEST_ASSERT(TEST_TRY(fx_teardown()) == TEST_SUCCESS && is_ok);
}

/* An mbuf with so many bytes of data. */
static struct rte_mbuf *
filled(const struct rmem_mempool *from, uint16_t length, uint32_t seed)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(from->mp);

	if (m != NULL)
		fx_fill(rte_pktmbuf_append(m, length), length, seed);
	return m;
}

/* a WRITEs the chain to b's buffer, where it arrives; pool's registration is asked. */
static void
expect_written(const struct rte_mbuf *m)
{
	static uint8_t flat[FX_BUF_SIZE];
	struct rmem_sge sge[4];
	struct rmem_send_wr wr;
	int nb;

	memset(fx.b.buf, 0, FX_BUF_SIZE);
	nb = rmem_mbuf_sges(pool, m, sge, RTE_DIM(sge));
	TEST_ASSERT(nb > 0);
	wr = fx_wr(RMEM_WR_RDMA_WRITE, sge, (uint16_t)nb);
	wr.rdma.remote_addr = fx_addr(fx.b.buf);
	wr.rdma.rkey = fx.b.mr->rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, rte_pktmbuf_read(m, 0, m->pkt_len, flat), m->pkt_len);
}

TEST(mbuf, pool_equals_one_of_rte_pktmbuf_pool_create)
{
	struct rte_mempool *plain;
	struct rte_mbuf *m, *p;

	plain = rte_pktmbuf_pool_create("mbuf_plain", NB_MBUFS, 32, PRIV_SIZE,
			RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	TEST_ASSERT(plain != NULL);
	TEST_EQ(pool->mp->size, NB_MBUFS);
	TEST_EQ(pool->mp->ops_index, plain->ops_index);
	TEST_EQ(pool->mp->elt_size, plain->elt_size);
	TEST_EQ(pool->mp->header_size, plain->header_size);
	TEST_EQ(pool->mp->cache_size, plain->cache_size);
	TEST_EQ(pool->mp->flags, plain->flags);
	TEST_EQ(rte_pktmbuf_priv_size(pool->mp), PRIV_SIZE);
	TEST_EQ(rte_pktmbuf_data_room_size(pool->mp), RTE_MBUF_DEFAULT_BUF_SIZE);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_MBUFS);
	m = rte_pktmbuf_alloc(pool->mp);
	p = rte_pktmbuf_alloc(plain);
	TEST_ASSERT(m != NULL && p != NULL);
	TEST_EQ(m->buf_len, p->buf_len);
	TEST_EQ(m->data_off, p->data_off);
	TEST_EQ(rte_mempool_virt2iova(m) == RTE_BAD_IOVA, rte_mempool_virt2iova(p) == RTE_BAD_IOVA);
	rte_mbuf_sanity_check(m, 1);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(p);
	rte_mempool_free(plain);
}

TEST(mbuf, memory_is_whole_pages_as_one_mr)
{
	struct rmem_mr_info info = fx_query(pool->mrs[0]);

	TEST_EQ(pool->nb_mrs, 1);
	TEST_EQ(pool->registered, info.length);
	TEST_EQ(info.length % info.page_size, 0);
	TEST_EQ((uintptr_t)info.addr % info.page_size, 0);
}

TEST(mbuf, every_mbuf_has_the_keys_of_its_mr)
{
	static struct rte_mbuf *mbufs[NB_MBUFS];
	unsigned int i;

	TEST_OK(rte_pktmbuf_alloc_bulk(pool->mp, mbufs, NB_MBUFS));
	TEST_ASSERT(rte_pktmbuf_alloc(pool->mp) == NULL);
	for (i = 0; i < NB_MBUFS; i++) {
		TEST_EQ(rmem_mbuf_lkey(pool, mbufs[i]), pool->mrs[0]->lkey);
		TEST_EQ(rmem_mbuf_rkey(pool, mbufs[i]), pool->mrs[0]->rkey);
		TEST_EQ(rmem_mbuf_iova(pool, mbufs[i]), rte_pktmbuf_mtod(mbufs[i], uintptr_t));
	}
	rte_pktmbuf_free_bulk(mbufs, NB_MBUFS);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_MBUFS);
}

TEST(mbuf, peer_writes_straight_into_an_mbuf)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool->mp);

	TEST_ASSERT(m != NULL);
	fx_fill(fx.b.buf, 1000, 5);
	TEST_STATUS(fx_peer_write(rmem_mbuf_iova(pool, m), 1000, rmem_mbuf_rkey(pool, m)),
			RMEM_WC_SUCCESS);
	TEST_MEM(rte_pktmbuf_append(m, 1000), fx.b.buf, 1000);
	rte_pktmbuf_free(m);
}

TEST(mbuf, chain_is_written_by_one_request)
{
	struct rte_mbuf *m = filled(pool, 700, 1);

	TEST_OK(rte_pktmbuf_chain(m, filled(pool, 1, 2)));
	TEST_OK(rte_pktmbuf_chain(m, filled(pool, 2048, 3)));
	TEST_EQ(m->nb_segs, 3);
	expect_written(m);
	rte_pktmbuf_free(m);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_MBUFS);
}

TEST(mbuf, segments_without_data_take_no_sge)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool->mp);
	struct rmem_sge sge[4];

	TEST_EQ(rmem_mbuf_sges(pool, m, sge, 0), 0);
	TEST_OK(rte_pktmbuf_chain(m, filled(pool, 10, 1)));
	TEST_OK(rte_pktmbuf_chain(m, rte_pktmbuf_alloc(pool->mp)));
	TEST_OK(rte_pktmbuf_chain(m, filled(pool, 20, 1)));
	TEST_EQ(rmem_mbuf_sges(pool, m, sge, 2), 2);
	TEST_EQ(sge[0].length, 10);
	TEST_EQ(sge[1].length, 20);
	expect_written(m);
	rte_pktmbuf_free(m);
}

TEST(mbuf, chain_longer_than_the_list_is_enospc)
{
	struct rte_mbuf *m = filled(pool, 10, 1);
	struct rmem_sge sge[2];

	TEST_OK(rte_pktmbuf_chain(m, filled(pool, 10, 2)));
	TEST_EQ(rmem_mbuf_sges(pool, m, sge, 2), 2);
	TEST_OK(rte_pktmbuf_chain(m, filled(pool, 10, 3)));
	TEST_ERR(rmem_mbuf_sges(pool, m, sge, 2), ENOSPC);
	TEST_ERR(rmem_mbuf_tailroom_sges(pool, m, sge, 2), ENOSPC);
	TEST_ERR(rmem_mbuf_sges(pool, m, sge, 0), ENOSPC);
	rte_pktmbuf_free(m);
}

TEST(mbuf, send_arrives_in_the_tailroom_of_a_chain)
{
	struct rte_mbuf *in = rte_pktmbuf_alloc(pool->mp), *out = filled(pool, 2000, 9);
	uint32_t first = rte_pktmbuf_tailroom(in) - 1500;
	struct rmem_sge sge[2];
	struct rmem_send_wr wr;

	/* A receive that begins with what is there: 1500 bytes fit into the first segment. */
	TEST_ASSERT(rte_pktmbuf_append(in, (uint16_t)first) != NULL);
	TEST_OK(rte_pktmbuf_chain(in, rte_pktmbuf_alloc(pool->mp)));
	TEST_EQ(rmem_mbuf_tailroom_sges(pool, in, sge, 2), 2);
	TEST_EQ(sge[0].length, 1500);
	TEST_EQ(sge[1].length, rte_pktmbuf_tailroom(in->next));
	TEST_EQ(fx_post_recv(fx.b.qp, 7, sge, 2), 1);
	TEST_EQ(rmem_mbuf_sges(pool, out, sge, 1), 1);
	wr = fx_wr(RMEM_WR_SEND, sge, 1);
	fx_deliver(&fx.a, &fx.b, &wr);
	TEST_EQ(fx.wc.byte_len, 2000);
	TEST_MEM(rte_pktmbuf_mtod_offset(in, uint8_t *, first), rte_pktmbuf_mtod(out, uint8_t *),
			1500);
	TEST_MEM(rte_pktmbuf_mtod(in->next, uint8_t *),
			rte_pktmbuf_mtod_offset(out, uint8_t *, 1500), 500);
	rte_pktmbuf_free(in);
	rte_pktmbuf_free(out);
}

/* Clones of an mbuf of another pool: the keys are of the memory, not of the clone's pool. */
TEST(mbuf, clone_has_the_keys_of_its_data)
{
	struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_other");
	struct rte_mbuf *m, *clone, *twice;

	conf.priv_size = 0;
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &other));
	m = filled(other, 300, 4);
	clone = rte_pktmbuf_clone(m, pool->mp);
	TEST_ASSERT(clone != NULL && RTE_MBUF_CLONED(clone));
	TEST_EQ(rmem_mbuf_lkey(pool, clone), other->mrs[0]->lkey);
	TEST_EQ(rmem_mbuf_rkey(pool, clone), other->mrs[0]->rkey);
	TEST_EQ(rmem_mbuf_lkey(other, clone), other->mrs[0]->lkey);
	expect_written(clone);
	twice = rte_pktmbuf_clone(clone, pool->mp);
	TEST_EQ(rmem_mbuf_lkey(pool, twice), other->mrs[0]->lkey);
	rte_pktmbuf_free(twice);
	rte_pktmbuf_detach(clone);
	TEST_EQ(rmem_mbuf_lkey(pool, clone), pool->mrs[0]->lkey);
	rte_pktmbuf_free(clone);
	rte_pktmbuf_free(m);
	clone = rte_pktmbuf_alloc(pool->mp);
	TEST_EQ(rmem_mbuf_lkey(pool, clone), pool->mrs[0]->lkey);
	rte_pktmbuf_free(clone);
}

TEST(mbuf, chain_of_two_pools_and_its_copy_are_written)
{
	const struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_other");
	struct rte_mbuf *m = filled(pool, 50, 4), *copy;

	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &other));
	TEST_OK(rte_pktmbuf_chain(m, filled(other, 60, 5)));
	expect_written(m);
	copy = rte_pktmbuf_copy(m, other->mp, 0, UINT32_MAX);
	TEST_ASSERT(copy != NULL);
	TEST_EQ(rmem_mbuf_lkey(pool, copy), other->mrs[0]->lkey);
	expect_written(copy);
	rte_pktmbuf_free(copy);
	rte_pktmbuf_free(m);
}

static void
count_free(void *addr, void *opaque)
{
	RTE_SET_USED(addr);
	++*(unsigned int *)opaque;
}

/* An mbuf with an external buffer of 4 KiB of memory at mem, and 100 bytes of data. */
static struct rte_mbuf *
attached(uint8_t *mem, unsigned int *nb_freed)
{
	struct rte_mbuf_ext_shared_info *shinfo;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool->mp);
	uint16_t length = 4096;

	shinfo = rte_pktmbuf_ext_shinfo_init_helper(mem, &length, count_free, nb_freed);
	rte_pktmbuf_attach_extbuf(m, mem, RTE_BAD_IOVA, length, shinfo);
	fx_fill(rte_pktmbuf_append(m, 100), 100, 8);
	return m;
}

TEST(mbuf, external_buffer_has_the_keys_of_its_mr)
{
	uint8_t *mem = fx_mem(4096, 8192);
	struct rmem_mr *mr = fx_mr(fx.a.pd, mem, 4096, FX_ACCESS);
	unsigned int nb_freed = 0;
	struct rmem_sge sge;
	struct rte_mbuf *m, *clone;

	m = attached(mem, &nb_freed);
	TEST_EQ(rmem_mbuf_lkey(pool, m), RMEM_KEY_NONE);
	TEST_EQ(rmem_mbuf_rkey(pool, m), RMEM_KEY_NONE);
	TEST_ERR(rmem_mbuf_sges(pool, m, &sge, 1), ENOENT);
	TEST_ERR(rmem_mbuf_tailroom_sges(pool, m, &sge, 1), ENOENT);
	TEST_OK(rmem_extbuf_mr_add(mr));
	TEST_EQ(rmem_mbuf_lkey(pool, m), mr->lkey);
	expect_written(m);
	clone = rte_pktmbuf_clone(m, pool->mp);
	TEST_EQ(rmem_mbuf_rkey(pool, clone), mr->rkey);
	expect_written(clone);
	rte_pktmbuf_free(m);
	TEST_EQ(nb_freed, 0);
	rte_pktmbuf_free(clone);
	TEST_EQ(nb_freed, 1);
	/* Half of it is in the MR. */
	m = attached(mem + 2048, &nb_freed);
	TEST_EQ(rmem_mbuf_sges(pool, m, &sge, 1), 1);
	TEST_ERR(rmem_mbuf_tailroom_sges(pool, m, &sge, 1), ENOENT);
	rte_pktmbuf_free(m);
	TEST_OK(rmem_extbuf_mr_del(mr));
	TEST_EQ(rmem_mempool_lkey(pool, mem), RMEM_KEY_NONE);
}

/* Lookups return its keys, which remain valid until it is removed. */
TEST(mbuf, added_mr_is_held)
{
	uint8_t *mem = fx_mem(4096, 8192);
	struct rmem_mr *mr = fx_mr(fx.a.pd, mem, 4096, FX_ACCESS);

	TEST_OK(rmem_extbuf_mr_add(mr));
	TEST_ERR(rmem_extbuf_mr_add(mr), EEXIST);
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, mem + 4096, 4096, 0, NULL),
			EBUSY);
	TEST_EQ(rmem_mempool_lkey(pool, mem), mr->lkey);
	TEST_OK(rmem_extbuf_mr_del(mr));
	TEST_ERR(rmem_extbuf_mr_del(mr), ENOENT);
	TEST_RUN(fx_release(mr));
}

/* Its own MR was not added, so that its keys remain. */
TEST(mbuf, mr_of_a_pool_is_not_removed)
{
	TEST_ERR(rmem_extbuf_mr_del(pool->mrs[0]), ENOENT);
	TEST_EQ(rmem_mempool_keys_lookup(pool, pool->mrs[0]->addr, 1).lkey, pool->mrs[0]->lkey);
}

TEST(mbuf, buffer_of_an_rmem_pool_is_found_as_external_buffer)
{
	const struct rmem_pool_conf conf = {.name = "mbuf_bufs",
			.nb_bufs = 64,
			.buf_size = 4096,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	unsigned int nb_freed = 0;
	struct rmem_pool *bufs;
	struct rmem_sge sge;
	struct rte_mbuf *m;

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &bufs));
	TEST_OK(rmem_pool_get_sges(bufs, &sge, 1));
	m = attached((uint8_t *)(uintptr_t)sge.addr, &nb_freed);
	TEST_EQ(rmem_mbuf_lkey(pool, m), sge.lkey);
	expect_written(m);
	rte_pktmbuf_free(m);
	TEST_EQ(nb_freed, 1);
	rmem_pool_put_sges(bufs, &sge, 1);
	TEST_OK(rmem_pool_destroy(bufs));
	TEST_EQ(rmem_mempool_lkey(pool, (void *)(uintptr_t)sge.addr), RMEM_KEY_NONE);
}

TEST(mbuf, unsupported_kinds_of_mrs_are_refused)
{
	uint8_t *mem = fx_mem(4096, 8192);
	struct rmem_mr *mr = fx_mr(fx.a.pd, mem, 4096, FX_ACCESS);
	struct rmem_mr *over = fx_mr(fx.a.pd, mem + 4000, 4096, FX_ACCESS);
	struct rmem_mr *elsewhere = NULL;

	TEST_ERR(rmem_extbuf_mr_add(NULL), EINVAL);
	TEST_ERR(rmem_extbuf_mr_add((struct rmem_mr *)fx.a.pd), EINVAL);
	TEST_ERR(rmem_extbuf_mr_add(fx_fast_mr(fx.a.pd, 1)), EINVAL);
	TEST_OK(rmem_mr_reg(fx.a.pd, mem, 4096, 4096, FX_ACCESS, &elsewhere));
	fx_track(elsewhere);
	TEST_ERR(rmem_extbuf_mr_add(elsewhere), EINVAL);
	TEST_ERR(rmem_extbuf_mr_add(fx_mr(fx.a.pd, mem, 0, FX_ACCESS)), EINVAL);
	TEST_ERR(rmem_extbuf_mr_del(NULL), EINVAL);
	TEST_ERR(rmem_extbuf_mr_del(mr), ENOENT);
	TEST_OK(rmem_extbuf_mr_add(mr));
	TEST_ERR(rmem_extbuf_mr_add(mr), EEXIST);
	TEST_ERR(rmem_extbuf_mr_add(over), EEXIST);
	TEST_ERR(rmem_extbuf_mr_add(pool->mrs[0]), EEXIST);
	TEST_ERR(rmem_extbuf_mr_del(over), ENOENT);
	TEST_OK(rmem_extbuf_mr_del(mr));
	TEST_OK(rmem_extbuf_mr_add(over));
	TEST_OK(rmem_extbuf_mr_del(over));
}

/* With the other PD a lookup finds no key, and after a registration its own keys. */
TEST(mbuf, several_devices_have_keys_of_their_own)
{
	struct rmem_dev *dev = fx_dev("soft1", NULL);
	struct rmem_mempool *reg = NULL;
	struct rmem_sge sge = {0}, first = {0};
	struct fx_side c = {0};
	struct rmem_send_wr wr;
	struct rte_mbuf *m;

	fx_side_open(&c, dev, fx_pd(dev));
	TEST_OK(fx_connect(c.qp, c.qp));
	TEST_OK(rmem_mempool_register(pool->mp, c.pd, FX_ACCESS, &reg));
	m = filled(pool, 64, 1);
	TEST_EQ(rmem_mbuf_sges(reg, m, &sge, 1), 1);
	TEST_EQ(sge.lkey, reg->mrs[0]->lkey);
	TEST_EQ(rmem_mbuf_sges(pool, m, &first, 1), 1);
	TEST_EQ(first.lkey, pool->mrs[0]->lkey);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(c.buf), c.mr->rkey);
	TEST_STATUS(fx_send(c.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(c.buf, rte_pktmbuf_mtod(m, uint8_t *), 64);
	expect_written(m);
	TEST_EQ(rmem_mempool_lkey(reg, fx.a.buf), RMEM_KEY_NONE);
	rte_pktmbuf_free(m);
	TEST_ERR(rmem_pktmbuf_pool_destroy(pool), EBUSY);
	TEST_OK(rmem_mempool_unregister(reg));
}

/* Beyond max_mr_size: no mbuf straddles two MRs, and each is found. */
TEST_WITH(mbuf, large_pool_takes_several_mrs, setup_none)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=65536,max_mr=64");
	struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_large");
	static struct rte_mbuf *mbufs[NB_MBUFS];
	struct rmem_pool_report report;
	struct rmem_mempool *reg = NULL;
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_sge sge = {0};
	unsigned int i;

	TEST_OK(rmem_pktmbuf_pool_check(pd, &conf, &report));
	TEST_OK(rmem_pktmbuf_pool_create(pd, &conf, &reg));
	TEST_ASSERT(reg->nb_mrs > 1);
	TEST_EQ(reg->nb_mrs, report.nb_mrs);
	for (i = 0; i < reg->nb_mrs; i++)
		TEST_ASSERT(reg->mrs[i]->length <= 65536);
	TEST_OK(rte_pktmbuf_alloc_bulk(reg->mp, mbufs, NB_MBUFS));
	for (i = 0; i < NB_MBUFS; i++) {
		TEST_EQ(rmem_mbuf_tailroom_sges(reg, mbufs[i], &sge, 1), 1);
		TEST_ASSERT(sge.lkey == rmem_mbuf_lkey(reg, mbufs[i]));
	}
	TEST_OK(rmem_mempool_audit(reg));
	rte_pktmbuf_free_bulk(mbufs, NB_MBUFS);
	TEST_OK(rmem_pktmbuf_pool_destroy(reg));
}

TEST(mbuf, destroy_while_mbufs_are_out_is_ebusy)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool->mp);

	TEST_ERR(rmem_pktmbuf_pool_destroy(pool), EBUSY);
	TEST_ASSERT(rmem_mbuf_lkey(pool, m) == pool->mrs[0]->lkey);
	rte_pktmbuf_free(m);
	__atomic_fetch_add(&pool->mrs[0]->obj.refs, 1, __ATOMIC_SEQ_CST);
	TEST_ERR(rmem_pktmbuf_pool_destroy(pool), EBUSY);
	__atomic_fetch_sub(&pool->mrs[0]->obj.refs, 1, __ATOMIC_SEQ_CST);
}

TEST(mbuf, keys_of_a_destroyed_pool_are_refused)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool->mp);
	uint64_t addr = rmem_mbuf_iova(pool, m);
	uint32_t rkey = rmem_mbuf_rkey(pool, m);

	rte_pktmbuf_free(m);
	TEST_OK(rmem_pktmbuf_pool_destroy(pool));
	pool = NULL;
	TEST_STATUS(fx_peer_write(addr, 8, rkey), RMEM_WC_REM_ACCESS_ERR);
}

/* Invalid mbuf pools and registrations are refused, and leave no object. */

static void
expect_refused_by(struct rmem_pd *pd, const struct rmem_pktmbuf_pool_conf *conf, int error)
{
	struct rmem_pool_report report;
	struct rmem_dev_info info;

	TEST_ERR(rmem_pktmbuf_pool_create(pd, conf, &pool), error);
	TEST_ASSERT(pool == NULL);
	TEST_ASSERT(rte_mempool_lookup("mbuf_bad") == NULL);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mr, 2);
	if (error == EINVAL)
		TEST_ERR(rmem_pktmbuf_pool_check(pd, conf, &report), EINVAL);
}

static int
create(const void *conf)
{
	return TEST_TRY(expect_refused_by(fx.a.pd, conf, EINVAL)) == TEST_SUCCESS ? -EINVAL : 0;
}

TEST_WITH(mbuf, null_and_wrong_handles_are_refused, setup_none)
{
	const struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_bad");
	struct rmem_mempool *reg = NULL;
	static uint64_t zeros[64] __rte_cache_aligned;

	expect_refused_by(NULL, &conf, EINVAL);
	expect_refused_by((struct rmem_pd *)fx.a.dev, &conf, EINVAL);
	expect_refused_by(fx.a.pd, NULL, EINVAL);
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, NULL), EINVAL);
	TEST_ERR(rmem_pktmbuf_pool_check(fx.a.pd, &conf, NULL), EINVAL);
	TEST_OK(rmem_pktmbuf_pool_destroy(NULL));
	TEST_ERR(rmem_pktmbuf_pool_destroy((struct rmem_mempool *)zeros), EINVAL);
	TEST_ERR(rmem_pktmbuf_pool_destroy((struct rmem_mempool *)fx.a.pd), EINVAL);
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_mempool_unregister(pool), EINVAL);
	TEST_OK(rmem_mempool_unregister(NULL));
	TEST_ERR(rmem_mempool_unregister((struct rmem_mempool *)zeros), EINVAL);
	TEST_ERR(rmem_mempool_register(NULL, fx.a.pd, FX_ACCESS, &reg), EINVAL);
	TEST_ERR(rmem_mempool_register(pool->mp, NULL, FX_ACCESS, &reg), EINVAL);
	TEST_ERR(rmem_mempool_register(pool->mp, fx_pd(fx.a.dev), FX_ACCESS, NULL), EINVAL);
	TEST_ASSERT(reg == NULL);
}

TEST_WITH(mbuf, bad_fields_are_refused, setup_none)
{
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_pktmbuf_pool_conf, name, NULL, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, name, "", EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, name, "a_name_that_is_longer_than_25",
					EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, nb_mbufs, 0, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, nb_mbufs, 47, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, cache_size, RTE_MEMPOOL_CACHE_MAX_SIZE + 1,
					EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, priv_size, RTE_MBUF_PRIV_ALIGN + 1, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, access, FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR,
					EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, access, FX_ACCESS | RMEM_ACCESS_ZERO_BASED,
					EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, flags, 1, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, reserved[1], 1, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, socket_id, 77, EINVAL),
	};
	const struct rmem_pktmbuf_pool_conf good = good_conf("mbuf_bad");
	struct rmem_pktmbuf_pool_conf conf = good;

	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), create);
	/* rmem_pktmbuf_pool_check() does not check these. */
	conf.ops_name = "no_such_ops";
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool), EINVAL);
	conf = good;
	conf.access = RMEM_ACCESS_REMOTE_WRITE;
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool), EINVAL);
	conf.access = FX_ACCESS | UINT32_C(1) << 31;
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool), EINVAL);
	TEST_ASSERT(pool == NULL && rte_mempool_lookup("mbuf_bad") == NULL);
}

TEST_WITH(mbuf, access_that_the_device_lacks_is_eopnotsupp, setup_none)
{
	struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_bad");
	struct rmem_mempool *reg = NULL;
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	uint32_t lacking;

	/* Verbs' bits 4 to 7: those that this device has not. */
	lacking = UINT32_C(0xf0) & ~info.access;
	TEST_SKIP_IF(lacking == 0, "the device has all access bits");
	conf.access = FX_ACCESS | lacking;
	expect_refused_by(fx.a.pd, &conf, EOPNOTSUPP);
	conf.access = FX_ACCESS;
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_mempool_register(pool->mp, fx_pd(fx.a.dev), FX_ACCESS | lacking, &reg),
			EOPNOTSUPP);
	TEST_ERR(rmem_mempool_register(pool->mp, fx_pd(fx.a.dev),
				 FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR, &reg),
			EINVAL);
	TEST_ERR(rmem_mempool_register(pool->mp, fx_pd(fx.a.dev),
				 FX_ACCESS | RMEM_ACCESS_ZERO_BASED, &reg),
			EINVAL);
}

TEST_WITH(mbuf, name_in_use_is_eexist, setup_none)
{
	const struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_bad");
	struct rmem_mempool *again = NULL;

	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &again), EEXIST);
	TEST_ASSERT(again == NULL);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_MBUFS);
}

TEST_WITH(mbuf, mbuf_larger_than_an_mr_is_refused, setup_none)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=4096"));
	struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_bad");
	struct rmem_pool_report report;
	struct rmem_mempool *reg = NULL;

	conf.data_room_size = 4096;
	expect_refused_by(pd, &conf, EINVAL);
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_mempool_register(pool->mp, pd, FX_ACCESS, &reg), EINVAL);
	TEST_ERR(rmem_mempool_check(pool->mp, pd, &report), EINVAL);
	TEST_EQ(report.limits, RMEM_POOL_LIMIT_MR_SIZE);
	TEST_EQ(report.max_mr_size, 4096);
	TEST_EQ(report.buf_size, pool->mp->elt_size);
}

TEST_WITH(mbuf, too_few_mrs_is_enospc, setup_none)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=16384,max_mr=4"));
	struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_bad");
	struct rmem_mempool *reg = NULL;
	struct rmem_pool_report report;

	FX_ERR_LOG(rmem_pktmbuf_pool_create(pd, &conf, &pool), ENOSPC, "mbuf_bad: short of MRs");
	TEST_ASSERT(rte_mempool_lookup("mbuf_bad") == NULL);
	TEST_ERR(rmem_pktmbuf_pool_check(pd, &conf, &report), ENOSPC);
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_mempool_register(pool->mp, pd, FX_ACCESS, &reg), ENOSPC);
	TEST_ERR(rmem_mempool_check(pool->mp, pd, &report), ENOSPC);
	TEST_ASSERT(reg == NULL);
}

TEST_WITH(mbuf, mempool_without_all_objects_is_ebusy, setup_none)
{
	struct rmem_mempool *reg = NULL;
	struct rmem_dev_info before, after;
	struct rmem_pool_report report;
	struct rte_mempool *mp;
	uint32_t i;
	size_t size;

	mp = rte_mempool_create_empty("mbuf_part", 8, 256, 0, 0, SOCKET_ID_ANY, 0);
	TEST_ASSERT(mp != NULL);
	TEST_OK(rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL));
	TEST_ERR(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg), EBUSY);
	size = rte_mempool_calc_obj_size(256, 0, NULL);
	TEST_EQ(rte_mempool_populate_iova(
				mp, fx_mem(4096, 5 * size), RTE_BAD_IOVA, 5 * size, NULL, NULL),
			5);
	TEST_ERR(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg), EBUSY);
	TEST_ERR(rmem_mempool_check(mp, fx.a.pd, &report), EBUSY);
	TEST_EQ(rte_mempool_populate_iova(
				mp, fx_mem(4096, 5 * size), RTE_BAD_IOVA, 5 * size, NULL, NULL),
			3);
	TEST_OK(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg));
	TEST_ERR(rmem_mempool_check(NULL, fx.a.pd, &report), EINVAL);
	TEST_ERR(rmem_mempool_check(mp, NULL, &report), EINVAL);
	TEST_ERR(rmem_mempool_check(mp, fx.a.pd, NULL), EINVAL);
	/* One of its MRs is in use: none is deregistered. */
	TEST_EQ(reg->nb_mrs, 2);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &before));
	for (i = 0; i < reg->nb_mrs; i++) {
		__atomic_fetch_add(&reg->mrs[i]->obj.refs, 1, __ATOMIC_SEQ_CST);
		TEST_ERR(rmem_mempool_unregister(reg), EBUSY);
		TEST_OK(rmem_dev_info_get(fx.a.dev, &after));
		TEST_EQ(after.nb_mr, before.nb_mr);
		__atomic_fetch_sub(&reg->mrs[i]->obj.refs, 1, __ATOMIC_SEQ_CST);
	}
	TEST_OK(rmem_mempool_unregister(reg));
	rte_mempool_free(mp);
}

/* The second of two extents can't be registered: the first one is released. */
TEST_WITH(mbuf, memory_that_cannot_be_written_is_efault, setup_none)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rmem_mempool *reg = NULL;
	struct rmem_dev_info info;
	struct rte_mempool *mp;
	uint8_t *mem;

	mem = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(mem != MAP_FAILED);
	if (madvise(mem, page, MADV_POPULATE_WRITE) == 0)
		test_skip("the emulator of this CPU ignores MADV_POPULATE_WRITE");
	TEST_OK(mprotect(mem, 3 * page, PROT_READ | PROT_WRITE));
	mp = rte_mempool_create_empty("mbuf_part", 2, (unsigned int)page - 512, 0, 0, SOCKET_ID_ANY,
			RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	TEST_ASSERT(mp != NULL);
	TEST_OK(rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL));
	TEST_EQ(rte_mempool_populate_iova(mp, (char *)mem, RTE_BAD_IOVA, page, NULL, NULL), 1);
	TEST_EQ(rte_mempool_populate_iova(
				mp, (char *)mem + 2 * page, RTE_BAD_IOVA, page, NULL, NULL),
			1);
	TEST_OK(mprotect(mem + 2 * page, page, PROT_READ));
	TEST_ERR(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg), EFAULT);
	TEST_ASSERT(reg == NULL);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mr, 2);
	TEST_OK(mprotect(mem + 2 * page, page, PROT_READ | PROT_WRITE));
	TEST_OK(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg));
	TEST_OK(rmem_mempool_unregister(reg));
	rte_mempool_free(mp);
	TEST_OK(munmap(mem, 3 * page));
}

/* With too little memory for each step in turn. */
TEST_WITH(mbuf, no_memory_is_enomem_and_nothing_stays, setup_none)
{
	const struct rmem_pktmbuf_pool_conf conf = good_conf("mbuf_bad");
	struct rmem_mempool *reg = NULL;
	struct rmem_dev_info info;
	size_t size;
	int ret = -1;

	for (size = 0; ret != 0; size = size * 3 / 2 + 1024) {
		fx_leave_memory(size);
		ret = rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool);
		fx_free_memory();
		TEST_ASSERT(ret == 0 || ret == -ENOMEM);
		TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
		TEST_EQ(info.nb_mr, ret == 0 ? 3 : 2);
		TEST_ASSERT((rte_mempool_lookup("mbuf_bad") == NULL) == (ret != 0));
	}
	for (ret = -1, size = 0; ret != 0; size += 64) {
		fx_leave_memory(size);
		ret = rmem_mempool_register(pool->mp, fx.b.pd, FX_ACCESS, &reg);
		if (ret == -EEXIST)
			ret = 0; /* There was memory for all but its place in the map. */
		fx_free_memory();
		TEST_ASSERT(ret == 0 || ret == -ENOMEM);
		TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
		TEST_EQ(info.nb_mr, 3);
	}
}

/* The first MR of a PD to be known to lookups needs a map. */
TEST_WITH(mbuf, no_memory_for_the_map_is_enomem, setup_none)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx_mem(4096, 4096), 4096, FX_ACCESS);

	fx_leave_memory(0);
	TEST_ERR(rmem_extbuf_mr_add(mr), ENOMEM);
	fx_free_memory();
	TEST_OK(rmem_extbuf_mr_add(mr));
	TEST_OK(rmem_extbuf_mr_del(mr));
	TEST_ERR(rmem_extbuf_mr_del(mr), ENOENT);
}

TEST_SUITE(mbuf, setup, teardown);
