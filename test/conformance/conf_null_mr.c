/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Null MRs: reads are zero, writes are discarded, and peers have no access. */

#include <string.h>

#include "conf.h"

#define CAPA RMEM_DEV_CAPA_NULL_MR
#define RULE "ibv_alloc_null_mr(3)"

/* Longer than what a device stores for it, at any address. */
#define SKIP UINT32_C(20001)
#define ADDR UINT64_C(0x7ffffffffff01)

static struct rmem_mr *
null_mr(struct rmem_pd *pd)
{
	struct rmem_mr *mr = NULL;

	if (rmem_null_mr_alloc(pd, &mr) != 0)
		return NULL;
	fx_track(mr);
	return mr;
}

/* Bytes of b, of its null MR, and of b again. */
static struct rmem_mr *
three(struct rmem_sge sge[3])
{
	struct rmem_mr *null = null_mr(fx.b.pd);

	if (null == NULL)
		return NULL;
	sge[0] = fx_sge(fx.b.mr, 0, 64);
	sge[1] = (struct rmem_sge){.addr = ADDR, .length = SKIP, .lkey = null->lkey};
	sge[2] = fx_sge(fx.b.mr, 64, 64);
	return null;
}

CONF_TEST(null_mr, has_the_maximum_length_and_no_address, CAPA, 0, RULE)
{
	struct rmem_mr *null = null_mr(fx.a.pd);
	struct rmem_mr_info info;

	TEST_ASSERT(null != NULL);
	TEST_ASSERT(null->addr == NULL);
	TEST_EQ(null->length, SIZE_MAX);
	info = fx_query(null);
	TEST_EQ(info.type, RMEM_MR_TYPE_NULL);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.access, RMEM_ACCESS_LOCAL_WRITE);
	TEST_EQ(info.lkey, null->lkey);
	TEST_EQ(info.iova, 0);
}

CONF_TEST(null_mr, write_from_it_writes_zeros, CAPA, 0, RULE)
{
	static const uint8_t zeros[SKIP];
	struct rmem_send_wr wr;
	struct rmem_sge sge[3];

	TEST_ASSERT(three(sge) != NULL);
	fx_fill(fx.a.buf, SKIP + 128, 1);
	fx_fill(fx.b.buf, 128, 2);
	wr = conf_request(RMEM_WR_RDMA_WRITE, sge, fx_addr(fx.a.buf), fx.a.mr->rkey);
	wr.num_sge = 3;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
	TEST_MEM(fx.a.buf + 64, zeros, SKIP);
	TEST_MEM(fx.a.buf + 64 + SKIP, fx.b.buf + 64, 64);
}

/* READs discard their data, or the WRITEs of later sizes would find it. */
CONF_TEST(null_mr, writes_of_all_sizes_write_zeros, CAPA, 0, RULE)
{
	static const uint32_t lengths[] = {1, 8, 63, 64, 65, 4096, SKIP};
	struct rmem_mr *null = null_mr(fx.b.pd);
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	unsigned int i;

	TEST_ASSERT(null != NULL);
	for (i = 0; i < RTE_DIM(lengths); i++) {
		sge = (struct rmem_sge){.addr = i, .length = lengths[i], .lkey = null->lkey};
		fx_fill(fx.a.buf, SKIP + 1, i);
		fx.a.buf[lengths[i]] = 0xa5;
		wr = conf_request(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.a.buf), fx.a.mr->rkey);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		wr.opcode = RMEM_WR_RDMA_WRITE;
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		TEST_ASSERT(fx_is_zero(fx.a.buf, lengths[i]));
		TEST_EQ(fx.a.buf[lengths[i]], 0xa5);
	}
}

CONF_TEST(null_mr, read_into_it_skips_bytes, CAPA, 0, RULE)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge[3];
	unsigned int i;

	TEST_ASSERT(three(sge) != NULL);
	fx_fill(fx.a.buf, SKIP + 128, 1);
	wr = conf_request(RMEM_WR_RDMA_READ, sge, fx_addr(fx.a.buf), fx.a.mr->rkey);
	wr.num_sge = 3;
	/* The second READ finds nothing that the first one wrote. */
	for (i = 0; i < 2; i++) {
		memset(fx.b.buf, 0, 128);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		TEST_MEM(fx.b.buf, fx.a.buf, 64);
		TEST_MEM(fx.b.buf + 64, fx.a.buf + 64 + SKIP, 64);
	}
	wr = conf_request(RMEM_WR_RDMA_WRITE, &sge[1], fx_addr(fx.a.buf), fx.a.mr->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_zero(fx.a.buf, SKIP));
}

/* The header of a message alone is received. */
CONF_TEST(null_mr, receive_into_it_discards_the_rest, CAPA, 0, RULE)
{
	struct rmem_mr *null = null_mr(fx.a.pd);
	struct rmem_sge send = fx_sge(fx.b.mr, 0, 64 + SKIP);
	struct rmem_sge sge[2];
	struct rmem_send_wr wr;

	TEST_ASSERT(null != NULL);
	sge[0] = fx_sge(fx.a.mr, 0, 64);
	sge[1] = (struct rmem_sge){.addr = 0, .length = UINT32_MAX, .lkey = null->lkey};
	memset(fx.a.buf, 0, 128);
	fx_fill(fx.b.buf, 64 + SKIP, 3);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, sge, 2), 1);
	wr = fx_wr(RMEM_WR_SEND, &send, 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.byte_len, 64 + SKIP);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 64, 64));
}

CONF_TEST(null_mr, send_of_it_sends_zeros, CAPA, 0, RULE)
{
	struct rmem_mr *null = null_mr(fx.b.pd);
	struct rmem_sge recv = fx_sge(fx.a.mr, 0, SKIP);
	struct rmem_sge sge = {.addr = 1, .length = SKIP};
	struct rmem_send_wr wr;

	TEST_ASSERT(null != NULL);
	sge.lkey = null->lkey;
	fx_fill(fx.a.buf, SKIP, 4);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &recv, 1), 1);
	wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_ASSERT(fx_is_zero(fx.a.buf, SKIP));
}

CONF_TEST(null_mr, peers_cannot_access_it, CAPA, 0, RULE)
{
	struct rmem_mr *null = null_mr(fx.a.pd);

	TEST_ASSERT(null != NULL);
	conf_denied_to_all(0, null->rkey);
	conf_denied_to_all(fx_addr(fx.a.buf), null->rkey);
}

CONF_TEST(null_mr, key_is_not_valid_in_another_pd, CAPA, 0, "IBTA C10-10")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *null;

	TEST_ASSERT(pd != NULL);
	null = null_mr(pd);
	TEST_ASSERT(null != NULL);
	conf_denied_locally(0, null->lkey);
}

CONF_TEST(null_mr, key_is_not_valid_after_dereg, CAPA, 0, "IBTA 11.2.8.6")
{
	struct rmem_mr *null = null_mr(fx.a.pd);
	uint32_t lkey;

	TEST_ASSERT(null != NULL);
	lkey = null->lkey;
	TEST_OK(fx_release(null));
	conf_denied_locally(0, lkey);
}

TEST_SUITE(null_mr, conf_setup, conf_teardown);
