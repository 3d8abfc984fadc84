/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* ATOMIC_WRITE of the annex "Memory Placement Extensions": eight bytes, at once and in order. */

#include <string.h>

#include "conf.h"

#define CAPA RMEM_DEV_CAPA_ATOMIC_WRITE

static struct rmem_send_wr
store_wr(const struct rmem_sge *sge, const uint8_t *to)
{
	return fx_rdma(RMEM_WR_ATOMIC_WRITE, sge, fx_addr(to), fx.a.mr->rkey);
}

static uint64_t
word_at(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

/* The source need not be aligned. */
CONF_TEST(word, atomic_write_stores_eight_bytes, CAPA, 0, "IBTA A19.4.2: 8 bytes of payload")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 3, 8);
	const struct rmem_send_wr wr = store_wr(&sge, fx.a.buf + 64);

	fx_fill(fx.b.buf, 64, 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_ATOMIC_WRITE);
	TEST_MEM(fx.a.buf + 64, fx.b.buf + 3, 8);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64) && fx_is_zero(fx.a.buf + 72, 64));
}

CONF_TEST(word, atomic_write_of_inline_data_needs_no_key, CAPA, 0,
		"ibv_wr_atomic_write(): the value is in the request")
{
	uint64_t value = UINT64_C(0x1122334455667788);
	const struct rmem_sge sge = {
			.addr = fx_addr(&value), .length = sizeof(value), .lkey = UINT32_MAX};
	struct rmem_send_wr wr = store_wr(&sge, fx.a.buf);

	if (conf.info.max_inline_data < sizeof(value))
		test_skip("the device supports less inline data");
	wr.flags = RMEM_SEND_INLINE;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(word_at(fx.a.buf), value);
}

CONF_TEST(word, atomic_write_has_one_sge_of_eight_bytes, CAPA, 0, "IBTA A19.4.2: 8 bytes, no other")
{
	static const uint32_t lengths[] = {0, 4, 7, 9, 16};
	struct rmem_sge sges[2] = {fx_sge(fx.b.mr, 0, 4), fx_sge(fx.b.mr, 4, 4)};
	struct rmem_send_wr wr = store_wr(sges, fx.a.buf);
	unsigned int i;

	wr.num_sge = 0;
	TEST_ERR(fx_post(fx.b.qp, &wr), EINVAL);
	wr.num_sge = 2;
	TEST_ERR(fx_post(fx.b.qp, &wr), EINVAL);
	wr.num_sge = 1;
	for (i = 0; i < RTE_DIM(lengths); i++) {
		sges[0].length = lengths[i];
		TEST_ERR(fx_post(fx.b.qp, &wr), EINVAL);
	}
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
}

CONF_TEST(word, unaligned_atomic_write_is_refused, CAPA, 0,
		"IBTA A19.4.2: the address is a multiple of 8")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	unsigned int i;

	fx_fill(fx.b.buf, 8, 1);
	for (i = 1; i < 8; i++) {
		const struct rmem_send_wr wr = store_wr(&sge, fx.a.buf + i);

		conf_refused(CONF_UNALIGNED, fx.b.qp, &wr);
		TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
	}
}

CONF_TEST(word, atomic_write_that_is_refused_changes_nothing, CAPA, 0,
		"IBTA 10.6.3: all eight bytes must be in the MR")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 12, FX_ACCESS & conf_access());
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = store_wr(&sge, fx.a.buf + 8);

	fx_fill(fx.b.buf, 8, 1);
	wr.rdma.rkey = mr->rkey;
	conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
}

/* WRITE of 16 bytes, ATOMIC_WRITE of the first 8, and a READ of all: one after the other. */
CONF_TEST(word, requests_of_a_qp_are_executed_in_order, CAPA, 0,
		"IBTA A19.4.2: an ATOMIC_WRITE is executed after the requests that precede it")
{
	enum {
		ROUNDS = 20
	};
	const struct rmem_sge sges[] = {
			fx_sge(fx.b.mr, 0, 16), fx_sge(fx.b.mr, 32, 8), fx_sge(fx.b.mr, 64, 16)};
	struct rmem_send_wr wrs[] = {
			fx_rdma_to(RMEM_WR_RDMA_WRITE, &sges[0], &fx.a),
			store_wr(&sges[1], fx.a.buf),
			fx_rdma_to(RMEM_WR_RDMA_READ, &sges[2], &fx.a),
	};
	unsigned int i;

	wrs[2].flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < ROUNDS; i++) {
		fx_fill(fx.b.buf, 40, i);
		TEST_EQ(rmem_post_send(fx.b.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
		TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_RDMA_READ);
		TEST_MEM(fx.b.buf + 64, fx.b.buf + 32, 8);
		TEST_MEM(fx.b.buf + 72, fx.b.buf + 8, 8);
	}
}

/* More than the responder keeps: they count as READs and atomics do. */
CONF_TEST(word, atomic_writes_of_a_burst_arrive_in_order, CAPA, 0,
		"IBTA A19.4.2: they use the responder resources of READs and atomics")
{
	enum {
		NB = 32
	};
	struct rmem_send_wr wrs[NB];
	struct rmem_sge sges[NB];
	unsigned int i;

	for (i = 0; i < NB; i++) {
		sges[i] = fx_sge(fx.b.mr, 8 * i, 8);
		wrs[i] = store_wr(&sges[i], fx.a.buf + i / 4 * 8);
	}
	fx_fill(fx.b.buf, 8 * NB, 3);
	wrs[NB - 1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, NB), NB);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < NB / 4; i++)
		TEST_MEM(fx.a.buf + 8 * i, fx.b.buf + 32 * i + 24, 8);
}

TEST_SUITE(word, conf_setup, conf_teardown);
