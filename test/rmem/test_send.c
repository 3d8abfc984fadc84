/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* SEND finds its receive in order, waits when there is none, and inline payload is copied. */

#include <string.h>

#include "fixture.h"

TEST(send, sges_of_both_sides_need_not_match)
{
	struct rmem_mr *m1 = fx_mr(fx.b.pd, fx.b.buf + 8192, 100, RMEM_ACCESS_LOCAL_WRITE);
	const struct rmem_sge from[] = {fx_sge(fx.a.mr, 0, 7), fx_sge(fx.a.mr, 500, 93)};
	const struct rmem_sge to[] = {fx_sge(fx.b.mr, 0, 50), fx_sge(m1, 10, 30),
			fx_sge(fx.b.mr, 1000, 0), fx_sge(fx.b.mr, 100, 40)};
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, from, 2);
	uint8_t want[100];

	fx_fill(fx.a.buf, FX_BUF_SIZE, 3);
	memcpy(want, fx.a.buf, 7);
	memcpy(want + 7, fx.a.buf + 500, 93);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, to, 4), 1);
	fx_deliver(&fx.a, &fx.b, &wr);
	TEST_EQ(fx.wc.byte_len, 100);
	TEST_MEM(fx.b.buf, want, 50);
	TEST_MEM(fx.b.buf + 8192 + 10, want + 50, 30);
	TEST_MEM(fx.b.buf + 100, want + 80, 20);
	TEST_ASSERT(fx_is_zero(fx.b.buf + 120, 20));
}

TEST(send, requests_after_a_waiting_one_keep_their_order)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 16);
	const struct rmem_send_wr write = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	const struct rmem_send_wr send = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint32_t i;

	fx_fill(fx.a.buf, 16, 1);
	TEST_EQ(fx_post(fx.a.qp, &send), 1);
	for (i = 0; i < 20; i++) {
		struct rmem_send_wr wr = write;

		wr.wr_id = i;
		wr.flags = RMEM_SEND_SIGNALED;
		TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	}
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_ASSERT(fx_is_zero(fx.b.buf, 16));
	TEST_EQ(fx_post_recv(fx.b.qp, 8, NULL, 0), 1);
	fx_expect_done(fx.a.cq, 0, 20);
	TEST_MEM(fx.b.buf, fx.a.buf, 16);
}

TEST(send, inline_payload_is_reusable_after_the_post)
{
	uint8_t payload[32] = {0}, want[32];
	struct rmem_sge sges[] = {{.addr = fx_addr(payload), .length = 5},
			{.addr = fx_addr(payload + 5), .length = 27}};
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, sges, 2);

	fx_fill(payload, 32, 5);
	memcpy(want, payload, 32);
	wr.flags = RMEM_SEND_INLINE | RMEM_SEND_SIGNALED;
	/* It waits, for there is no receive. */
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	memset(payload, 0, 32);
	memset(sges, 0, sizeof(sges));
	TEST_EQ(fx_post_recv(fx.b.qp, 8, &to, 1), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, 32);
	TEST_MEM(fx.b.buf, want, 32);
}

TEST(send, inline_payloads_of_a_burst_are_all_kept)
{
	enum {
		NB = 16
	};
	struct rmem_send_wr wrs[NB];
	struct rmem_sge sges[NB];
	uint8_t payload[NB][64] = {{0}};
	uint32_t i;

	for (i = 0; i < NB; i++) {
		const struct rmem_sge to = fx_sge(fx.b.mr, 64 * i, 64);

		fx_fill(payload[i], 64, i);
		sges[i] = (struct rmem_sge){.addr = fx_addr(payload[i]), .length = 64 - i};
		wrs[i] = fx_wr(RMEM_WR_SEND, &sges[i], 1);
		wrs[i].flags = RMEM_SEND_INLINE;
		TEST_EQ(fx_post_recv(fx.b.qp, i, &to, 1), 1);
	}
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, NB), NB);
	for (i = 0; i < NB; i++) {
		TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.byte_len, 64 - i);
		TEST_MEM(fx.b.buf + 64 * (size_t)i, payload[i], 64 - i);
	}
}

TEST_SUITE(send, fx_setup, fx_teardown);
