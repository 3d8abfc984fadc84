/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Links of XRC domains: READs and atomics for an SRQ of a process that answers with any bytes. Its
 * end of the link is a socket of the test.
 */

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rmem_driver.h>

#include "soft/wire/port/rwire_shm.h"
#include "soft/wire/port/rwire_xrc_socket.h"
#include "soft/wire/rwire_xrc.h"

#include "../rc.h"
#include "xrc_link.h"

#define CHUNK ((uint32_t)RWIRE_XRC_CHUNK)
#define LONG  (2 * CHUNK + MTU + 1)
#define STEPS 20000u

static struct rwire_pkt
read_of(uint32_t length)
{
	struct rwire_pkt pkt = link_packet(RWIRE_READ_REQUEST, FOREIGN, 0);

	pkt.dma_len = length;
	return pkt;
}

/* The responses of the bytes [at, end) of a READ of a length, whose first response has the PSN. */
static void
expect_data(uint32_t psn, uint32_t at, uint32_t end, uint32_t length)
{
	struct rwire_pkt got;
	uint32_t i, n;

	do {
		const bool is_first = at == 0, is_last = at + MTU >= length;

		TEST_ASSERT(sim_take(0, &got));
		TEST_EQ(got.service, RWIRE_XRC);
		TEST_EQ(got.psn, rwire_psn_add(psn, at / MTU));
		TEST_EQ(got.opcode,
				is_first && is_last        ? RWIRE_READ_RESPONSE_ONLY
						: is_first ? RWIRE_READ_RESPONSE_FIRST
						: is_last  ? RWIRE_READ_RESPONSE_LAST
							   : RWIRE_READ_RESPONSE_MIDDLE);
		n = RTE_MIN(MTU, length - at);
		TEST_EQ(got.payload_len, n);
		for (i = 0; i < n; i++)
			TEST_EQ(got.payload[i], owner_byte(at + i));
		at += MTU;
	} while (at < end);
}

TEST(wire_sim, peer_gets_what_the_owner_of_an_srq_reads)
{
	static const uint32_t lengths[] = {1, 0, MTU, MTU + 1, CHUNK - 1, CHUNK, CHUNK + 1, LONG};
	uint32_t at, i, n, psn;

	owner_open(read_of, lengths[0]);
	for (i = 0; i < RTE_DIM(lengths); i++) {
		psn = link_packet(RWIRE_READ_REQUEST, FOREIGN, 0).psn;
		if (i != 0)
			link_deliver(read_of(lengths[i]));
		for (at = 0; at < lengths[i] || at == 0; at += CHUNK) {
			n = RTE_MIN(lengths[i] - at, CHUNK);
			owner_take(RWIRE_READ_REQUEST,
					RWIRE_XRC_ANSWERED | (at == 0 ? 0 : RWIRE_XRC_AGAIN));
			TEST_EQ(owner_.request.addr, ADDR + at);
			TEST_EQ(owner_.request.dma_len, at == 0 ? lengths[i] : n);
			TEST_EQ(owner_.request.access, RMEM_ACCESS_REMOTE);
			xrc_expect_nothing();
			owner_answer(RMEM_WC_SUCCESS, at, n);
			expect_data(psn, at, at + n, lengths[i]);
			xrc_expect_nothing();
		}
		owner_expect_nothing();
	}
	owner_close();
}

static struct rwire_pkt
atomic_of(uint32_t length)
{
	RTE_SET_USED(length);
	return link_packet(RWIRE_COMPARE_SWAP, FOREIGN, 0);
}

static void
expect_result(uint64_t value)
{
	struct rwire_pkt got;

	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.opcode, RWIRE_ATOMIC_ACKNOWLEDGE);
	TEST_EQ(got.swap_add, value);
	xrc_expect_nothing();
}

/* A duplicate gets the stored result: the owner executes an atomic once. */
TEST(wire_sim, peer_gets_the_result_of_an_atomic_of_the_owner_of_an_srq)
{
	struct rwire_pkt pkt;
	uint64_t value = 0;
	uint32_t i;

	owner_open(atomic_of, 0);
	for (i = 0; i < sizeof(value); i++)
		value |= (uint64_t)owner_byte(i) << 8 * i;
	pkt = atomic_of(0);
	owner_take(RWIRE_COMPARE_SWAP, RWIRE_XRC_ANSWERED);
	TEST_EQ(owner_.request.addr, ADDR);
	TEST_EQ(owner_.request.compare, 11);
	TEST_EQ(owner_.request.swap_add, 12);
	link_deliver(pkt); /* again, before the answer */
	xrc_expect_nothing();
	owner_answer(RMEM_WC_SUCCESS, 0, sizeof(value));
	expect_result(value);
	link_deliver(pkt);
	expect_result(value);
	owner_expect_nothing();
	link_deliver(link_packet(RWIRE_FETCH_ADD, FOREIGN, 0));
	owner_take(RWIRE_FETCH_ADD, RWIRE_XRC_ANSWERED);
	link_deliver(pkt); /* dropped: another one waits */
	owner_answer(RMEM_WC_SUCCESS, 0, sizeof(value));
	expect_result(value);
	owner_close();
}

static struct rwire_pkt
flush_of(uint32_t length)
{
	struct rwire_pkt pkt = link_packet(RWIRE_FLUSH, FOREIGN, 0);

	pkt.dma_len = length;
	pkt.level = 2;
	return pkt;
}

/* A duplicate gets the response without the owner: it was executed. */
TEST(wire_sim, peer_gets_the_response_of_a_flush_by_the_owner_of_an_srq)
{
	struct rwire_pkt pkt, got;
	unsigned int i;

	owner_open(flush_of, LONG);
	pkt = flush_of(LONG);
	owner_take(RWIRE_FLUSH, RWIRE_XRC_ANSWERED);
	TEST_EQ(owner_.request.addr, ADDR);
	TEST_EQ(owner_.request.dma_len, LONG);
	TEST_EQ(owner_.request.type, 1);
	TEST_EQ(owner_.request.level, 2);
	owner_answer(RMEM_WC_SUCCESS, 0, 0);
	for (i = 0; i < 2; i++) {
		TEST_ASSERT(sim_take(0, &got));
		TEST_EQ(got.opcode, RWIRE_READ_RESPONSE_ONLY);
		TEST_EQ(got.psn, pkt.psn);
		TEST_EQ(got.payload_len, 0);
		xrc_expect_nothing();
		link_deliver(pkt);
	}
	owner_expect_nothing();
	owner_close();
}

/* No byte that was not received is sent to the peer. */
TEST(wire_sim, owner_with_other_lengths_or_a_bad_status_gets_its_request_refused)
{
	static const struct {
		int32_t status;
		uint32_t length;
		uint8_t syndrome;
	} rows[] = {
			{RMEM_WC_SUCCESS, 0, RWIRE_AETH_NAK_INV},
			{RMEM_WC_SUCCESS, 7, RWIRE_AETH_NAK_INV},
			{RMEM_WC_SUCCESS, CHUNK - 1, RWIRE_AETH_NAK_INV},
			{RMEM_WC_SUCCESS, CHUNK + 1, RWIRE_AETH_NAK_INV},
			{RMEM_WC_REM_ACCESS_ERR, 8, RWIRE_AETH_NAK_INV},
			{RMEM_WC_REM_ACCESS_ERR, 0, RWIRE_AETH_NAK_ACC},
			{RMEM_WC_REM_INV_REQ_ERR, 0, RWIRE_AETH_NAK_INV},
			{RMEM_WC_LOC_PROT_ERR, 0, RWIRE_AETH_NAK_OP},
			{RSOFT_WAIT_AWAY, 0, RWIRE_AETH_NAK_OP},
			{RSOFT_WAIT_RNR, 0, RWIRE_AETH_RNR | 1},
	};
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < 2 * RTE_DIM(rows); i++) {
		owner_open(i % 2 == 0 ? read_of : atomic_of, LONG);
		owner_take(i % 2 == 0 ? RWIRE_READ_REQUEST : RWIRE_COMPARE_SWAP,
				RWIRE_XRC_ANSWERED);
		owner_answer(rows[i / 2].status, 0, rows[i / 2].length);
		xrc_expect(RWIRE_ACKNOWLEDGE, rows[i / 2].syndrome);
		xrc_expect_nothing();
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			;
		owner_close();
	}
}

/* Ways in which the second part of a READ ends. */
static const struct {
	int32_t status;
	uint8_t syndrome;
	uint32_t length;
} endings[] = {
		{RMEM_WC_REM_ACCESS_ERR, RWIRE_AETH_NAK_ACC, 0}, /* its key was revoked */
		{RMEM_WC_REM_INV_REQ_ERR, RWIRE_AETH_NAK_INV, 0},
		{RSOFT_WAIT_RNR, RWIRE_AETH_NAK_OP, 0}, {RMEM_WC_SUCCESS, RWIRE_AETH_NAK_INV, 1},
		{RMEM_WC_SUCCESS, RWIRE_AETH_NAK_INV, UINT32_MAX}, /* the link ends */
};

TEST(wire_sim, xrc_read_that_fails_in_the_middle_is_refused_from_there)
{
	struct rmem_wc wc;
	unsigned int i;
	uint32_t psn;

	for (i = 0; i < RTE_DIM(endings); i++) {
		owner_open(read_of, LONG);
		psn = read_of(LONG).psn;
		link_post(1, 8);
		owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED);
		owner_answer(RMEM_WC_SUCCESS, 0, CHUNK);
		expect_data(psn, 0, CHUNK, LONG);
		owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
		link_deliver(link_packet(RWIRE_SEND_ONLY, link_.number, 0)); /* held */
		if (endings[i].length != UINT32_MAX) {
			owner_answer(endings[i].status, CHUNK, endings[i].length);
		} else {
			owner_hang_up();
		}
		TEST_EQ(xrc_expect(RWIRE_ACKNOWLEDGE, endings[i].syndrome).psn,
				rwire_psn_add(psn, CHUNK / MTU));
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			TEST_ASSERT(wc.status != RMEM_WC_SUCCESS);
		TEST_EQ(((const struct rsoft_qp *)link_.recv)->state, RMEM_QPS_ERR);
		owner_close();
	}
}

/* Also one to an SRQ of this process: it must not pass the READ. */
TEST(wire_sim, packets_during_an_xrc_read_are_executed_after_it)
{
	struct rwire_pkt read;
	struct rmem_wc wc;
	uint32_t psn;

	owner_open(read_of, LONG);
	link_post(3, 8);
	read = read_of(LONG);
	psn = read.psn;
	owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED);
	owner_answer(RMEM_WC_SUCCESS, 0, CHUNK);
	expect_data(psn, 0, CHUNK, LONG);
	owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
	link_deliver(link_packet(RWIRE_SEND_ONLY, link_.number, 0));
	link_deliver(link_packet(RWIRE_FETCH_ADD, FOREIGN, 1));
	link_deliver(read); /* again, whole and in part */
	read.psn = rwire_psn_add(psn, 1);
	link_deliver(read);
	xrc_expect_nothing();
	owner_answer(RMEM_WC_SUCCESS, CHUNK, CHUNK);
	expect_data(psn, CHUNK, 2 * CHUNK, LONG);
	owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
	TEST_EQ(link_nb_posted(), 1);
	owner_expect_nothing();
	owner_answer(RMEM_WC_SUCCESS, 2 * CHUNK, LONG - 2 * CHUNK);
	expect_data(psn, 2 * CHUNK, LONG, LONG);
	xrc_expect(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK);
	xrc_expect_nothing();
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	owner_take(RWIRE_FETCH_ADD, RWIRE_XRC_ANSWERED);
	owner_answer(RMEM_WC_SUCCESS, 0, 8);
	TEST_ASSERT(sim_take(0, &read));
	TEST_EQ(read.opcode, RWIRE_ATOMIC_ACKNOWLEDGE);
	xrc_expect_nothing();
	owner_close();
}

/* It is read again from the owner, also amid a message to another SRQ; if that fails, no effect. */
TEST(wire_sim, duplicate_xrc_read_is_read_again_by_the_owner)
{
	struct rwire_pkt read, part;
	struct rmem_wc wc;
	unsigned int i;

	owner_open(read_of, 2 * MTU);
	link_post(3, 2 * MTU);
	read = read_of(2 * MTU);
	owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED);
	owner_answer(RMEM_WC_SUCCESS, 0, 2 * MTU);
	expect_data(read.psn, 0, 2 * MTU, 2 * MTU);
	part = link_packet(RWIRE_SEND_FIRST, link_.number, 0);
	part.payload_len = MTU;
	sim_inject(1, &link_.peer, &part, sides[1].local, true);
	link_progress();
	xrc_expect(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK);
	for (i = 0; i < 3; i++) {
		link_deliver(read);
		owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
		TEST_EQ(owner_.request.dma_len, 2 * MTU);
		if (i == 2)
			break;
		owner_answer(i == 0 ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR, 0,
				i == 0 ? 2 * MTU : 0);
		if (i == 0)
			expect_data(read.psn, 0, 2 * MTU, 2 * MTU);
		xrc_expect_nothing();
	}
	/* The rest of the message is held, and executed although the link ends. */
	part = link_packet(RWIRE_SEND_LAST, link_.number, 0);
	part.payload_len = 8;
	link_deliver(part);
	xrc_expect_nothing();
	owner_hang_up();
	xrc_expect(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.byte_len, MTU + 8);
	/* Without the SRQ, or in part beyond the requests that were executed. */
	close(owner_.listener);
	owner_.listener = -1;
	link_deliver(read);
	read.dma_len = 64 * MTU;
	link_deliver(read);
	xrc_expect_nothing();
	owner_close();
}

TEST(wire_sim, reset_qp_ends_an_xrc_read)
{
	owner_open(read_of, LONG);
	owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED);
	owner_answer(RMEM_WC_SUCCESS, 0, CHUNK);
	owner_take(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
	TEST_OK(rmem_qp_reset(link_.recv));
	TEST_EQ(recv(owner_.fd, &owner_.request, 1, 0), 0);
	owner_close();
}

/* Bytes of data in an answer: mostly those of the last request. */
static uint32_t
random_len(void)
{
	if (sim_random(8) == 0)
		return sim_random(CHUNK + 8);
	return rwire_xrc_data_len(owner_.request.opcode, owner_.request.dma_len);
}

/* A packet of the peer: the next ones, or a duplicate. */
static void
deliver_any(void)
{
	static const uint8_t opcodes[] = {
			RWIRE_SEND_ONLY, RWIRE_READ_REQUEST, RWIRE_FETCH_ADD, RWIRE_ATOMIC_WRITE};
	static const uint32_t lengths[] = {0, 8, MTU, CHUNK};
	struct rwire_pkt pkt = link_packet(opcodes[sim_random(4)],
			sim_random(4) != 0 ? FOREIGN : link_.number, sim_random(3));

	pkt.psn -= sim_random(4) == 0 ? sim_random(300) : 0;
	pkt.psn &= RWIRE_PSN_MASK;
	pkt.dma_len = sim_random(2) != 0 ? lengths[sim_random(4)] : sim_random(LONG);
	link_deliver(pkt);
}

static void
answer_any(void)
{
	static const int32_t errors[] = {
			RMEM_WC_REM_ACCESS_ERR, RSOFT_WAIT_RNR, RMEM_WC_WR_FLUSH_ERR, INT32_MIN};
	static struct {
		struct rwire_xrc_answer head;
		uint8_t data[RWIRE_XRC_CHUNK + 8];
	} message;

	if (owner_.fd < 0)
		return;
	while (recv(owner_.fd, &owner_.request, sizeof(owner_.request), MSG_DONTWAIT) > 0)
		;
	message.head.seq = owner_.request.seq + (sim_random(16) == 0);
	message.head.status = sim_random(8) == 0 ? errors[sim_random(4)] : RMEM_WC_SUCCESS;
	if (send(owner_.fd, &message, sizeof(message.head) + random_len(),
			    MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 &&
			sim_random(64) != 0)
		return;
	close(owner_.fd);
	owner_.fd = -1;
}

/* Requests and answers in any order, and of any length. */
TEST(wire_sim, random_answers_of_an_xrc_link_are_harmless)
{
	const struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	struct rwire_pkt got;
	struct rmem_wc wc;
	uint32_t i;

	owner_open(read_of, LONG);
	for (i = 0; i < STEPS; i++) {
		deliver_any();
		if (owner_.fd < 0)
			owner_accept();
		answer_any();
		link_progress();
		while (sim_take(0, &got))
			;
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			;
		if (link_nb_posted() < 2)
			link_post(i, MTU);
		if (((const struct rsoft_qp *)link_.recv)->state != RMEM_QPS_ERR)
			continue;
		TEST_OK(rmem_qp_reset(link_.recv));
		rc_connect(link_.recv, link_.send, conn);
	}
	owner_close();
}

/* A READ of which the peer chooses the length. */
TEST(wire_sim, xrc_read_that_is_too_long_is_not_passed_on)
{
	struct rwire_pkt got;

	link_open();
	owner_.listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	owner_.fd = -1;
	link_deliver(read_of(UINT32_MAX));
	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.syndrome, RWIRE_AETH_NAK_INV);
	TEST_EQ(rwire_xrc_socket_accept(owner_.listener), -EAGAIN);
	owner_close();
}
