/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Requests that the peer refuses, or does not answer, end with the status that verbs define. */

#include <string.h>

#include "pair.h"

/* Post a request on a new connection; its status. */
static int
status_of(struct pair_end *end, const struct rmem_send_wr *wr)
{
	struct rmem_wc wc;

	TEST_RUN(end->post_send(wr));
	pair_wait(end, false, &wc);
	return wc.status;
}

/* A request for a length, with another rkey, address or length; the status. */
static int
refused(struct pair_end *end, uint8_t opcode, uint32_t rkey_diff, uint64_t addr_diff,
		uint32_t length)
{
	const struct pair_conf conf = PAIR_CONF;
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	pair_connect(&conf);
	wr = pair_wr(end, opcode, 0, length, &sge);
	if (opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD || opcode == RMEM_WR_ATOMIC_CMP_AND_SWP) {
		wr.atomic.rkey += rkey_diff;
		wr.atomic.remote_addr += addr_diff;
	} else {
		wr.rdma.rkey += rkey_diff;
		wr.rdma.remote_addr += addr_diff;
	}
	return status_of(end, &wr);
}

static void
bad_keys(struct pair_end *end)
{
	static const uint8_t opcodes[] = {
			RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ, RMEM_WR_ATOMIC_FETCH_AND_ADD};
	const uint64_t last = PAIR_SIZE - PAIR_TARGET - 8;
	const struct pair_conf conf = PAIR_CONF;
	unsigned int i;

	pair_open(&conf);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		TEST_STATUS(refused(end, opcodes[i], 0, last, 8), RMEM_WC_SUCCESS);
		TEST_STATUS(refused(end, opcodes[i], 1, 0, 8), RMEM_WC_REM_ACCESS_ERR);
		TEST_STATUS(refused(end, opcodes[i], 0x100, 0, 8), RMEM_WC_REM_ACCESS_ERR);
		TEST_STATUS(refused(end, opcodes[i], 0, last + 8, 8), RMEM_WC_REM_ACCESS_ERR);
	}
	TEST_STATUS(refused(end, RMEM_WR_RDMA_WRITE, 0, last, 9), RMEM_WC_REM_ACCESS_ERR);
	TEST_STATUS(refused(end, RMEM_WR_RDMA_READ, 0, last, 9), RMEM_WC_REM_ACCESS_ERR);
	TEST_STATUS(refused(end, RMEM_WR_RDMA_WRITE, 0, last - 50000, 50009),
			RMEM_WC_REM_ACCESS_ERR);
	/* Of no bytes, the key and the address do not matter (IBTA 9.3.3.1.1). */
	TEST_STATUS(refused(end, RMEM_WR_RDMA_WRITE, 1, last + 8, 0), RMEM_WC_SUCCESS);
	TEST_STATUS(refused(end, RMEM_WR_RDMA_READ, 1, last + 8, 0), RMEM_WC_SUCCESS);
}

TEST_CALL(interop, rxe_refuses_bad_keys_and_ranges, bad_keys(&pair_soft));
TEST_CALL(interop, soft_refuses_bad_keys_and_ranges, bad_keys(&pair_rxe));

/* After a request is refused, those that follow are flushed, and the memory is unchanged. */
static void
flushed(struct pair_end *end)
{
	const struct pair_conf conf = PAIR_CONF;
	struct pair_end *peer;
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;
	unsigned int i;

	pair_open(&conf);
	peer = pair_peer(end);
	memset(peer->memory + PAIR_TARGET, 0, 10000);
	memset(end->memory + PAIR_LOCAL, 0xff, 10000);
	for (i = 0; i < 4; i++) {
		wr = pair_wr(end, RMEM_WR_RDMA_WRITE, i * 1000, 1000, &sge);
		wr.wr_id = i;
		wr.rdma.rkey += i == 1;
		TEST_RUN(end->post_send(&wr));
	}
	for (i = 0; i < 4; i++) {
		pair_wait(end, false, &wc);
		TEST_EQ(wc.wr_id, i);
		TEST_STATUS(wc.status,
				i == 0                   ? RMEM_WC_SUCCESS
						: i == 1 ? RMEM_WC_REM_ACCESS_ERR
							 : RMEM_WC_WR_FLUSH_ERR);
	}
	for (i = 0; i < 10000; i++)
		TEST_EQ(peer->memory[PAIR_TARGET + i], i < 1000 ? 0xff : 0);
}

TEST_CALL(interop, requests_of_soft_are_flushed_after_an_error, flushed(&pair_soft));
TEST_CALL(interop, requests_of_rxe_are_flushed_after_an_error, flushed(&pair_rxe));

/* Without the right, and atomics that are not aligned. */
static void
bad_rights(struct pair_end *end)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_ATOMIC_FETCH_AND_ADD};
	struct pair_conf conf = PAIR_CONF;
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	unsigned int i;
	int status;

	conf.is_read_only = true;
	pair_open(&conf);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		wr = pair_wr(end, opcodes[i], 0, 8, &sge);
		status = status_of(end, &wr);
		TEST_ASSERT(status == RMEM_WC_REM_INV_REQ_ERR || status == RMEM_WC_REM_ACCESS_ERR);
		pair_connect(&conf);
	}
	wr = pair_wr(end, RMEM_WR_RDMA_READ, 0, 8, &sge);
	TEST_STATUS(status_of(end, &wr), RMEM_WC_SUCCESS);
	/* The library of rdma_rxe refuses the post. */
	if (end == &pair_soft)
		TEST_STATUS(refused(end, RMEM_WR_ATOMIC_FETCH_AND_ADD, 0, 4, 8),
				RMEM_WC_REM_INV_REQ_ERR);
}

TEST_CALL(interop, rxe_refuses_requests_without_the_right, bad_rights(&pair_soft));
TEST_CALL(interop, soft_refuses_requests_without_the_right, bad_rights(&pair_rxe));

static void
too_long(struct pair_end *end)
{
	const struct pair_conf conf = PAIR_CONF;
	struct pair_end *peer = pair_peer(end);
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;
	int status;

	pair_open(&conf);
	TEST_RUN(pair_post_recv(peer, 7, 0, 9999));
	wr = pair_wr(end, RMEM_WR_SEND, 0, 10000, &sge);
	status = status_of(end, &wr);
	pair_wait(peer, true, &wc);
	TEST_EQ(wc.wr_id, 7);
	/* Linux 6.1 reports a receive that is invalid, later kernels the length. */
	if (peer == &pair_rxe && status == RMEM_WC_REM_OP_ERR) {
		TEST_STATUS(wc.status, RMEM_WC_LOC_QP_OP_ERR);
		return;
	}
	TEST_STATUS(status, RMEM_WC_REM_INV_REQ_ERR);
	TEST_STATUS(wc.status, RMEM_WC_LOC_LEN_ERR);
}

TEST_CALL(interop, rxe_refuses_a_send_longer_than_the_receive, too_long(&pair_soft));
TEST_CALL(interop, soft_refuses_a_send_longer_than_the_receive, too_long(&pair_rxe));

/* No receive: wait for one without limit, or fail after the retries. */
static void
no_receive(struct pair_end *end)
{
	struct pair_conf conf = PAIR_CONF;
	struct pair_end *peer = pair_peer(end);
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;
	unsigned int i;

	pair_open(&conf);
	wr = pair_wr(end, RMEM_WR_SEND, 0, 10000, &sge);
	TEST_RUN(end->post_send(&wr));
	/* No completion may arrive first, however slow the machine is. */
	for (i = 0; i < 2000; i++)
		TEST_EQ(end->poll(false, &wc), 0);
	TEST_RUN(pair_post_recv(peer, 7, 0, 10000));
	pair_wait(end, false, &wc);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	pair_wait(peer, true, &wc);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.byte_len, 10000);
	for (conf.rnr_retry = 0; conf.rnr_retry <= 2; conf.rnr_retry += 2) {
		pair_connect(&conf);
		wr = pair_wr(end, RMEM_WR_RDMA_WRITE_WITH_IMM, 0, 8, &sge);
		TEST_STATUS(status_of(end, &wr), RMEM_WC_RNR_RETRY_EXC_ERR);
	}
}

TEST_CALL(interop, soft_retries_until_rxe_posts_a_receive, no_receive(&pair_soft));
TEST_CALL(interop, rxe_retries_until_soft_posts_a_receive, no_receive(&pair_rxe));

/* The QP of the peer is destroyed. */
static void
no_peer(struct pair_end *end)
{
	struct pair_conf conf = {.timeout = 10, .retry_cnt = 3, .rnr_retry = 7};
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	pair_open(&conf);
	TEST_RUN(pair_destroy_qp(pair_peer(end)));
	wr = pair_wr(end, RMEM_WR_RDMA_WRITE, 0, 10000, &sge);
	TEST_STATUS(status_of(end, &wr), RMEM_WC_RETRY_EXC_ERR);
}

TEST_CALL(interop, soft_reports_a_destroyed_qp_of_rxe, no_peer(&pair_soft));
TEST_CALL(interop, rxe_reports_a_destroyed_qp_of_soft, no_peer(&pair_rxe));
