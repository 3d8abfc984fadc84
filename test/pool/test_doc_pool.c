/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The examples of doc/pool.md and pool_tracked.md, compiled and run; see test_doc_examples.c. */

#include <stdio.h>
#include <string.h>

#include <rmem_mbuf.h>
#include <rmem_process.h>
#include <rmem_tracked.h>

#include "fixture.h"

/* example: mbuf_pool */
static int
open_mbufs(struct rmem_pd *pd, struct rmem_mempool **pool)
{
	const struct rmem_pktmbuf_pool_conf conf = {
			.name = "mbufs",
			.nb_mbufs = 8191,
			.cache_size = 256,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY,
	};

	return rmem_pktmbuf_pool_create(pd, &conf, pool);
}

/* Send a chain of up to 4 segments, of any pools. Free it when the request has completed. */
static int
send_chain(struct rmem_qp *qp, const struct rmem_mempool *pool, struct rte_mbuf *m)
{
	struct rmem_sge sge[4];
	struct rmem_send_wr wr = {
			.wr_id = (uintptr_t)m,
			.opcode = RMEM_WR_SEND,
			.sg_list = sge,
			.flags = RMEM_SEND_SIGNALED,
	};
	int nb;

	nb = rmem_mbuf_sges(pool, m, sge, RTE_DIM(sge));
	if (nb < 0)
		return nb; /* -ENOSPC: more segments; -ENOENT: memory that is not registered */
	wr.num_sge = (uint16_t)nb;
	return rmem_post_send(qp, &wr, 1);
}

/* Post an mbuf to receive into. */
static int
post_mbuf(struct rmem_qp *qp, const struct rmem_mempool *pool)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool->mp);
	struct rmem_recv_wr wr = {.wr_id = (uintptr_t)m, .num_sge = 1};
	struct rmem_sge sge;

	if (m == NULL)
		return -ENOENT;
	rmem_mbuf_tailroom_sges(pool, m, &sge, 1);
	wr.sg_list = &sge;
	return rmem_post_recv(qp, &wr, 1);
}

/* The mbuf of a receive that completed. */
static struct rte_mbuf *
received(const struct rmem_wc *wc)
{
	struct rte_mbuf *m = (struct rte_mbuf *)(uintptr_t)wc->wr_id;

	m->data_len = (uint16_t)wc->byte_len;
	m->pkt_len = wc->byte_len;
	return m;
}
/* end of example */

/* example: mempool_register */
/* One mempool for two devices: a registration for each. */
static int
register_with_both(struct rte_mempool *mp, struct rmem_pd *pd[2], struct rmem_mempool *reg[2])
{
	struct rmem_pool_report report;
	int i, ret;

	for (i = 0; i < 2; i++) {
		ret = rmem_mempool_check(mp, pd[i], &report);
		if (ret != 0) {
			fprintf(stderr, "device %d: %s\n", i, report.text);
			break;
		}
		ret = rmem_mempool_register(mp, pd[i], RMEM_ACCESS_LOCAL_WRITE, &reg[i]);
		if (ret != 0)
			break;
	}
	if (ret != 0 && i == 1)
		rmem_mempool_unregister(reg[0]);
	return ret;
}
/* end of example */

/* example: tracked_receive */
/* Buffers that process from enqueued: use those that are returned, and no others. */
static unsigned int
receive_tracked(struct rmem_pool *pool, struct rte_ring *ring, uint16_t from, void **bufs,
		unsigned int n)
{
	int nb;

	n = rte_ring_dequeue_burst(ring, bufs, n, NULL);
	nb = rmem_tracked_own(pool->mp, bufs, n, from);
	return nb < 0 ? 0 : (unsigned int)nb;
}
/* end of example */

TEST(doc_pool, mbufs_are_sent_and_received)
{
	struct rmem_mempool *pool;
	struct rte_mbuf *m, *in;

	TEST_OK(open_mbufs(fx.a.pd, &pool));
	TEST_EQ(post_mbuf(fx.b.qp, pool), 1);
	m = rte_pktmbuf_alloc(pool->mp);
	fx_fill(rte_pktmbuf_append(m, 100), 100, 1);
	TEST_EQ(send_chain(fx.a.qp, pool, m), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	in = received(&fx.wc);
	TEST_EQ(in->pkt_len, 100);
	TEST_MEM(rte_pktmbuf_mtod(in, uint8_t *), rte_pktmbuf_mtod(m, uint8_t *), 100);
	rte_pktmbuf_free(in);
	rte_pktmbuf_free(m);
	TEST_OK(rmem_pktmbuf_pool_destroy(pool));
}

TEST(doc_pool, mempool_serves_two_devices)
{
	struct rmem_pd *pd[2] = {fx.a.pd, fx_pd(fx_dev("soft1", NULL))};
	struct rmem_mempool *reg[2] = {NULL, NULL};
	struct rte_mempool *mp;
	unsigned int i;

	mp = rte_pktmbuf_pool_create(
			"doc_pool", 64, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	TEST_ASSERT(mp != NULL);
	TEST_OK(register_with_both(mp, pd, reg));
	for (i = 0; i < 2; i++) {
		TEST_ASSERT(reg[i]->mp == mp && reg[i]->pd == pd[i]);
		TEST_OK(rmem_mempool_unregister(reg[i]));
	}
	/* The second fails: the first is released. */
	pd[1] = fx.a.pd;
	TEST_ERR(register_with_both(mp, pd, reg), EEXIST);
	rte_mempool_free(mp);
}

TEST(doc_pool, buffers_of_a_dead_sender_are_not_received)
{
	const struct rmem_pool_conf conf = {.name = "doc_tracked",
			.nb_bufs = 8,
			.buf_size = 64,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_POOL_TRACKED};
	struct rte_ring *ring = rte_ring_create("doc_tracked", 8, SOCKET_ID_ANY, 0);
	struct rmem_pool *pool = NULL;
	void *bufs[4];

	TEST_ASSERT(ring != NULL);
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	TEST_OK(rmem_process_number_set(2));
	TEST_OK(rte_mempool_get_bulk(pool->mp, bufs, 4));
	TEST_OK(rmem_process_number_set(0));
	TEST_EQ(rte_ring_enqueue_bulk(ring, bufs, 4, NULL), 4);
	TEST_EQ(receive_tracked(pool, ring, 2, bufs, 2), 2);
	TEST_EQ(rmem_tracked_reap(2), 2);
	TEST_EQ(receive_tracked(pool, ring, 2, &bufs[2], 2), 0);
	rte_mempool_put_bulk(pool->mp, bufs, 2);
	TEST_OK(rmem_pool_destroy(pool));
	rte_ring_free(ring);
}

TEST_SUITE(doc_pool, fx_setup, fx_teardown);
