/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Receives: short messages, which a device may deliver in completions, arrive like long ones, with
 * and without inline receive.
 */

#include <string.h>

#include "conf.h"

/* Replace the QP of a by one with these flags. */
static void
use_flags(uint16_t flags)
{
	struct rmem_qp_conf qp = fx_qp_conf(fx.a.cq, RTE_MIN(64u, conf.info.max_recv_wr));

	qp.max_send_sge = (uint16_t)RTE_MIN(qp.max_send_sge, conf.info.max_send_sge);
	qp.max_recv_sge = (uint16_t)RTE_MIN(qp.max_recv_sge, conf.info.max_recv_sge);
	qp.max_inline_data = 0;
	qp.access &= conf.info.access;
	qp.flags = flags;
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = fx_qp_by(fx.a.pd, &qp);
	conf_reconnect();
}

/* b's message of this length fills a's receive and no other byte. */
static void
try_message(const struct rmem_sge *to, uint32_t num_sge, uint32_t length)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 1, length);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	fx_fill(fx.b.buf, 1024, length + 1);
	memset(fx.a.buf, 0, 1024);
	TEST_EQ(fx_post_recv(fx.a.qp, length, to, num_sge), 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.wr_id, length);
	TEST_EQ(fx.wc.byte_len, length);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_EQ(fx.wc.flags & (RMEM_WC_WITH_IMM | RMEM_WC_WITH_INV), 0);
}

static void
try_lengths(void)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 512);
	uint32_t length;

	for (length = 0; length <= conf.info.max_inline_recv + 2 || length <= 130; length++) {
		try_message(&to, 1, length);
		TEST_MEM(fx.a.buf, fx.b.buf + 1, length);
		TEST_ASSERT(fx_is_zero(fx.a.buf + length, 1024 - length));
	}
}

CONF_TEST(recv, short_messages_arrive, 0, 0, "mlx5dv_create_qp(3): scatter to CQE is transparent")
{
	try_lengths();
}

CONF_TEST(recv, short_messages_arrive_without_inline_receive, 0, 0,
		"mlx5dv_create_qp(3): MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE")
{
	use_flags(RMEM_QP_NO_INLINE_RECV);
	try_lengths();
}

CONF_TEST(recv, short_messages_are_scattered, 0, 0, "ibv_post_recv(3): sg_list in order")
{
	struct rmem_sge to[3] = {
			fx_sge(fx.a.mr, 0, 5), fx_sge(fx.a.mr, 0, 0), fx_sge(fx.a.mr, 100, 200)};
	uint32_t length;

	TEST_SKIP_IF(conf.info.max_recv_sge < RTE_DIM(to), "the device supports fewer than 3 SGEs");
	for (length = 1; length <= 70; length++) {
		uint32_t first = RTE_MIN(length, 5u);

		try_message(to, RTE_DIM(to), length);
		TEST_MEM(fx.a.buf, fx.b.buf + 1, first);
		TEST_MEM(fx.a.buf + 100, fx.b.buf + 6, length - first);
		TEST_ASSERT(fx_is_zero(fx.a.buf + first, 100 - first));
		TEST_ASSERT(fx_is_zero(fx.a.buf + 100 + length - first, 100));
	}
}

/* Many messages before the first poll: each keeps its data. */
CONF_TEST(recv, inline_received_messages_wait_in_their_completions, 0, 0,
		"mlx5dv_create_qp(3): a message is its own until it is polled")
{
	struct rmem_sge from[16], to[16];
	struct rmem_send_wr wrs[16];
	unsigned int i;

	fx_fill(fx.b.buf, 1024, 3);
	for (i = 0; i < RTE_DIM(wrs); i++) {
		to[i] = fx_sge(fx.a.mr, 64 * i, 64);
		from[i] = fx_sge(fx.b.mr, 64 * i, 1 + 4 * i);
		wrs[i] = fx_wr(RMEM_WR_SEND, &from[i], 1);
		wrs[i].flags = i == 15 ? RMEM_SEND_SIGNALED : 0;
		TEST_EQ(fx_post_recv(fx.a.qp, i, &to[i], 1), 1);
	}
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < RTE_DIM(wrs); i++) {
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.wr_id, i);
		TEST_EQ(fx.wc.byte_len, 1 + 4 * i);
		TEST_MEM(fx.a.buf + 64 * i, fx.b.buf + 64 * i, 1 + 4 * i);
		TEST_ASSERT(fx_is_zero(fx.a.buf + 64 * i + 1 + 4 * i, 64 - 1 - 4 * i));
	}
}

CONF_TEST(recv, immediate_data_arrives, 0, 0, "ibv_poll_cq(3): imm_data")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8), to = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_IMM, &from, 1);

	fx_fill(fx.b.buf, 8, 1);
	wr.imm_data = 0x89abcdef;
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_ASSERT((fx.wc.flags & RMEM_WC_WITH_IMM) != 0);
	TEST_EQ(fx.wc.imm_data, 0x89abcdef);
	TEST_MEM(fx.a.buf, fx.b.buf, 8);
}

/* It consumes a receive, whose memory is unchanged. */
CONF_TEST(recv, write_with_immediate_consumes_a_receive, 0, 0,
		"IBTA 9.4.3: RDMA WRITE with Immediate consumes a receive")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 32), to = fx_sge(fx.a.mr, 4096, 64);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE_WITH_IMM, &from, &fx.a);

	fx_fill(fx.b.buf, 32, 1);
	wr.imm_data = 0xdeadbeef;
	TEST_EQ(fx_post_recv(fx.a.qp, 5, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RDMA_WRITE);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_ASSERT((fx.wc.flags & RMEM_WC_WITH_IMM) != 0);
	TEST_EQ(fx.wc.qp_num, fx.a.qp->qp_num);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV_RDMA_WITH_IMM);
	TEST_EQ(fx.wc.wr_id, 5);
	TEST_EQ(fx.wc.imm_data, 0xdeadbeef);
	TEST_EQ(fx.wc.byte_len, 32);
	TEST_MEM(fx.a.buf, fx.b.buf, 32);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 4096, 64));
}

/* Bytes written by the owner after the reset are not overwritten by later polls. */
CONF_TEST(recv, reset_drops_messages_that_were_not_polled, 0, 0,
		"IBTA 10.3.1.1: after Reset the memory of receives belongs to the consumer")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 32), to = fx_sge(fx.a.mr, 0, 64);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	uint8_t mine[64];

	fx_fill(fx.b.buf, 32, 1);
	TEST_EQ(fx_post_recv(fx.a.qp, 5, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	memset(mine, 0x77, sizeof(mine));
	memcpy(fx.a.buf, mine, sizeof(mine));
	fx_drain(fx.a.cq);
	TEST_MEM(fx.a.buf, mine, sizeof(mine));
}

/* The message is longer than the receive, or than one without SGEs; later receives remain. */
CONF_TEST(recv, message_too_long_fails_both, 0, 0, "IBTA 11.6.2: length errors")
{
	static const uint32_t lengths[] = {1, 65, 600, 5000};
	unsigned int i;

	fx_fill(fx.b.buf, 8192, 1);
	for (i = 0; i < RTE_DIM(lengths); i++) {
		const uint32_t first = (lengths[i] - 1) / 2, rest = lengths[i] - 1 - first;
		const struct rmem_sge to[] = {
				fx_sge(fx.a.mr, 0, first), fx_sge(fx.a.mr, 8192, rest)};
		const struct rmem_sge from = fx_sge(fx.b.mr, 0, lengths[i]);
		const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

		TEST_EQ(fx_post_recv(fx.a.qp, 1, to, lengths[i] == 1 ? 0 : 2), 1);
		TEST_EQ(fx_post_recv(fx.a.qp, 2, NULL, 0), 1);
		conf_status(CONF_TOO_LONG, fx_send(fx.b.qp, &wr));
		conf_status(CONF_RECV_LENGTH, fx_wait(fx.a.cq));
		TEST_EQ(fx.wc.wr_id, 1);
		fx_expect_flush(fx.a.cq, 2, 1);
		TEST_ASSERT(fx_is_zero(fx.a.buf + first, 8192 - first));
		TEST_ASSERT(fx_is_zero(fx.a.buf + 8192 + rest, 4096));
		conf_expect_err(fx.a.qp);
		conf_reconnect();
	}
}

CONF_TEST(recv, receive_with_an_invalid_lkey_fails_both, 0, 0,
		"IBTA 10.6.3: a receive's memory is checked when the message arrives")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64), good = fx_sge(fx.a.mr, 0, 64);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_sge bad[] = {good, good, good, good, good, good};
	unsigned int i, nb = RTE_DIM(bad);

	bad[0].lkey = 0;
	bad[1].lkey = UINT32_MAX;
	bad[2].lkey ^= 0x5500;
	bad[3].addr = fx_addr(fx.a.buf) + FX_BUF_SIZE - 63;
	bad[4].addr = UINT64_MAX - 62;
	bad[5].lkey = fx.a.mr->rkey;
	if (fx.a.mr->rkey == fx.a.mr->lkey)
		nb--;
	fx_fill(fx.b.buf, 64, 1);
	for (i = 0; i < nb; i++) {
		TEST_EQ(fx_post_recv(fx.a.qp, 1, &bad[i], 1), 1);
		TEST_EQ(fx_post_recv(fx.a.qp, 2, &good, 1), 1);
		conf_status(CONF_PEER_MEMORY, fx_send(fx.b.qp, &wr));
		conf_status(CONF_RECV_KEY, fx_wait(fx.a.cq));
		TEST_EQ(fx.wc.wr_id, 1);
		fx_expect_flush(fx.a.cq, 2, 1);
		conf_reconnect();
	}
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
}

CONF_TEST(recv, receives_are_consumed_in_order, 0, 0, "IBTA 10.8.3.3: receive queues are FIFOs")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 1), to = fx_sge(fx.a.mr, 0, 1);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	unsigned int i;

	for (i = 0; i < 20; i++)
		TEST_EQ(fx_post_recv(fx.a.qp, 100 + i, &to, 1), 1);
	/* These take none. */
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, fx_addr(fx.a.buf), 8, fx.a.mr->rkey),
			RMEM_WC_SUCCESS);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, fx_addr(fx.a.buf), 8, fx.a.mr->rkey),
			RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	for (i = 0; i < 20; i++) {
		fx_deliver(&fx.b, &fx.a, &wr);
		TEST_EQ(fx.wc.wr_id, 100 + i);
	}
}

TEST_SUITE(recv, conf_setup, conf_teardown);
