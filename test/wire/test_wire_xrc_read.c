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

#define FOREIGN 0x123456u /* number of an SRQ that a socket of the test has */
#define ADDR    UINT64_C(0x123456789000)
#define RKEY    0x87654321u
#define CHUNK   ((uint32_t)RWIRE_XRC_CHUNK)
#define LONG    (2 * CHUNK + MTU + 1)
#define STEPS   20000u

/* The process of the SRQ. */
static struct {
	int listener, fd;
	struct rwire_xrc_request request; /* received last */
} owner;

static uint8_t
byte_at(uint32_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static struct rwire_pkt
packet_of(uint8_t opcode, uint32_t srqn, uint32_t ahead)
{
	const struct rwire_qp *q = ((const struct rsoft_qp *)link_.recv)->wire;

	return (struct rwire_pkt){.service = RWIRE_XRC,
			.opcode = opcode,
			.qpn = link_.recv->qp_num,
			.psn = rwire_psn_add(q->rsp.psn, ahead),
			.srqn = srqn,
			.addr = ADDR,
			.rkey = RKEY,
			.dma_len = LONG,
			.compare = 11,
			.swap_add = 12,
			.type = 1,
			.payload_len = rwire_opcode_info[opcode] & RWIRE_HAS_PAYLOAD ? 8 : 0,
			.is_ack_req = true};
}

static void
deliver(struct rwire_pkt pkt)
{
	static const uint8_t payload[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	sim_inject(1, &link_.peer, &pkt, payload, true);
	link_progress();
}

static struct rwire_pkt
read_of(uint32_t length)
{
	struct rwire_pkt pkt = packet_of(RWIRE_READ_REQUEST, FOREIGN, 0);

	pkt.dma_len = length;
	return pkt;
}

/* Accept the link of the forwarder, and exchange hellos. */
static void
accept_link(void)
{
	struct rwire_xrc_hello hello;

	owner.fd = rwire_xrc_socket_accept(owner.listener);
	TEST_ASSERT(owner.fd >= 0);
	TEST_EQ(recv(owner.fd, &hello, sizeof(hello), 0), (ssize_t)sizeof(hello));
	hello = rwire_xrc_hello_of(0);
	TEST_ASSERT(rwire_shm_send(owner.fd, &hello, sizeof(hello), link_.file));
	link_progress();
}

/* Receive the next request, which has no payload. */
static void
take_request(uint8_t opcode, uint8_t flags)
{
	TEST_EQ(recv(owner.fd, &owner.request, sizeof(owner.request), MSG_DONTWAIT | MSG_TRUNC),
			(ssize_t)sizeof(owner.request));
	TEST_EQ(owner.request.opcode, opcode);
	TEST_EQ(owner.request.flags, flags);
	TEST_EQ(owner.request.rkey, RKEY);
}

static void
expect_no_request(void)
{
	uint8_t byte;

	TEST_EQ(recv(owner.fd, &byte, sizeof(byte), MSG_DONTWAIT), -1);
}

/* A link with a request that waits. */
static void
open_owner(struct rwire_pkt (*first)(uint32_t), uint32_t length)
{
	link_open();
	owner.listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	TEST_ASSERT(owner.listener >= 0);
	deliver(first(length));
	accept_link();
}

static void
close_owner(void)
{
	if (owner.fd >= 0)
		close(owner.fd);
	close(owner.listener);
	link_close();
}

/* Answer the last request with len bytes of data, from an offset of the READ on. */
static void
answer(int32_t status, uint32_t at, uint32_t len)
{
	struct {
		struct rwire_xrc_answer head;
		uint8_t data[RWIRE_XRC_CHUNK + 8];
	} message;
	uint32_t i;

	message.head = (struct rwire_xrc_answer){.seq = owner.request.seq, .status = status};
	for (i = 0; i < len; i++)
		message.data[i] = byte_at(at + i);
	TEST_EQ(send(owner.fd, &message, sizeof(message.head) + len, 0),
			(ssize_t)(sizeof(message.head) + len));
	/* 64 packets are sent per call. */
	for (i = 0; i < 4; i++)
		link_progress();
}

static void
expect_nothing(void)
{
	struct rwire_pkt got;

	TEST_ASSERT(!sim_take(0, &got));
}

static struct rwire_pkt
expect_ack(uint8_t syndrome)
{
	struct rwire_pkt got = {.opcode = 0};

	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.opcode, RWIRE_ACKNOWLEDGE);
	TEST_EQ(got.syndrome, syndrome);
	return got;
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
			TEST_EQ(got.payload[i], byte_at(at + i));
		at += MTU;
	} while (at < end);
}

TEST(wire_sim, peer_gets_what_the_owner_of_an_srq_reads)
{
	static const uint32_t lengths[] = {1, 0, MTU, MTU + 1, CHUNK - 1, CHUNK, CHUNK + 1, LONG};
	uint32_t at, i, n, psn;

	open_owner(read_of, lengths[0]);
	for (i = 0; i < RTE_DIM(lengths); i++) {
		psn = packet_of(RWIRE_READ_REQUEST, FOREIGN, 0).psn;
		if (i != 0)
			deliver(read_of(lengths[i]));
		for (at = 0; at < lengths[i] || at == 0; at += CHUNK) {
			n = RTE_MIN(lengths[i] - at, CHUNK);
			take_request(RWIRE_READ_REQUEST,
					RWIRE_XRC_ANSWERED | (at == 0 ? 0 : RWIRE_XRC_AGAIN));
			TEST_EQ(owner.request.addr, ADDR + at);
			TEST_EQ(owner.request.dma_len, at == 0 ? lengths[i] : n);
			TEST_EQ(owner.request.access, RMEM_ACCESS_REMOTE);
			expect_nothing();
			answer(RMEM_WC_SUCCESS, at, n);
			expect_data(psn, at, at + n, lengths[i]);
			expect_nothing();
		}
		expect_no_request();
	}
	close_owner();
}

static struct rwire_pkt
atomic_of(uint32_t length)
{
	RTE_SET_USED(length);
	return packet_of(RWIRE_COMPARE_SWAP, FOREIGN, 0);
}

static void
expect_result(uint64_t value)
{
	struct rwire_pkt got;

	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.opcode, RWIRE_ATOMIC_ACKNOWLEDGE);
	TEST_EQ(got.swap_add, value);
	expect_nothing();
}

/* A duplicate gets the stored result: the owner executes an atomic once. */
TEST(wire_sim, peer_gets_the_result_of_an_atomic_of_the_owner_of_an_srq)
{
	struct rwire_pkt pkt;
	uint64_t value = 0;
	uint32_t i;

	open_owner(atomic_of, 0);
	for (i = 0; i < sizeof(value); i++)
		value |= (uint64_t)byte_at(i) << 8 * i;
	pkt = atomic_of(0);
	take_request(RWIRE_COMPARE_SWAP, RWIRE_XRC_ANSWERED);
	TEST_EQ(owner.request.addr, ADDR);
	TEST_EQ(owner.request.compare, 11);
	TEST_EQ(owner.request.swap_add, 12);
	deliver(pkt); /* again, before the answer */
	expect_nothing();
	answer(RMEM_WC_SUCCESS, 0, sizeof(value));
	expect_result(value);
	deliver(pkt);
	expect_result(value);
	expect_no_request();
	deliver(packet_of(RWIRE_FETCH_ADD, FOREIGN, 0));
	take_request(RWIRE_FETCH_ADD, RWIRE_XRC_ANSWERED);
	deliver(pkt); /* dropped: another one waits */
	answer(RMEM_WC_SUCCESS, 0, sizeof(value));
	expect_result(value);
	close_owner();
}

static struct rwire_pkt
flush_of(uint32_t length)
{
	struct rwire_pkt pkt = packet_of(RWIRE_FLUSH, FOREIGN, 0);

	pkt.dma_len = length;
	pkt.level = 2;
	return pkt;
}

/* A duplicate gets the response without the owner: it was executed. */
TEST(wire_sim, peer_gets_the_response_of_a_flush_by_the_owner_of_an_srq)
{
	struct rwire_pkt pkt, got;
	unsigned int i;

	open_owner(flush_of, LONG);
	pkt = flush_of(LONG);
	take_request(RWIRE_FLUSH, RWIRE_XRC_ANSWERED);
	TEST_EQ(owner.request.addr, ADDR);
	TEST_EQ(owner.request.dma_len, LONG);
	TEST_EQ(owner.request.type, 1);
	TEST_EQ(owner.request.level, 2);
	answer(RMEM_WC_SUCCESS, 0, 0);
	for (i = 0; i < 2; i++) {
		TEST_ASSERT(sim_take(0, &got));
		TEST_EQ(got.opcode, RWIRE_READ_RESPONSE_ONLY);
		TEST_EQ(got.psn, pkt.psn);
		TEST_EQ(got.payload_len, 0);
		expect_nothing();
		deliver(pkt);
	}
	expect_no_request();
	close_owner();
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
		open_owner(i % 2 == 0 ? read_of : atomic_of, LONG);
		take_request(i % 2 == 0 ? RWIRE_READ_REQUEST : RWIRE_COMPARE_SWAP,
				RWIRE_XRC_ANSWERED);
		answer(rows[i / 2].status, 0, rows[i / 2].length);
		(void)expect_ack(rows[i / 2].syndrome);
		expect_nothing();
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			;
		close_owner();
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
		open_owner(read_of, LONG);
		psn = read_of(LONG).psn;
		link_post(1, 8);
		take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED);
		answer(RMEM_WC_SUCCESS, 0, CHUNK);
		expect_data(psn, 0, CHUNK, LONG);
		take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
		deliver(packet_of(RWIRE_SEND_ONLY, link_.number, 0)); /* held */
		if (endings[i].length != UINT32_MAX) {
			answer(endings[i].status, CHUNK, endings[i].length);
		} else {
			close(owner.fd);
			owner.fd = -1;
			link_progress();
		}
		TEST_EQ(expect_ack(endings[i].syndrome).psn, rwire_psn_add(psn, CHUNK / MTU));
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			TEST_ASSERT(wc.status != RMEM_WC_SUCCESS);
		TEST_EQ(((const struct rsoft_qp *)link_.recv)->state, RMEM_QPS_ERR);
		close_owner();
	}
}

/* Also one to an SRQ of this process: it must not pass the READ. */
TEST(wire_sim, packets_during_an_xrc_read_are_executed_after_it)
{
	struct rwire_pkt read;
	struct rmem_wc wc;
	uint32_t psn;

	open_owner(read_of, LONG);
	link_post(3, 8);
	read = read_of(LONG);
	psn = read.psn;
	take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED);
	answer(RMEM_WC_SUCCESS, 0, CHUNK);
	expect_data(psn, 0, CHUNK, LONG);
	take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
	deliver(packet_of(RWIRE_SEND_ONLY, link_.number, 0));
	deliver(packet_of(RWIRE_FETCH_ADD, FOREIGN, 1));
	deliver(read); /* again, whole and in part */
	read.psn = rwire_psn_add(psn, 1);
	deliver(read);
	expect_nothing();
	answer(RMEM_WC_SUCCESS, CHUNK, CHUNK);
	expect_data(psn, CHUNK, 2 * CHUNK, LONG);
	take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
	TEST_EQ(link_nb_posted(), 1);
	expect_no_request();
	answer(RMEM_WC_SUCCESS, 2 * CHUNK, LONG - 2 * CHUNK);
	expect_data(psn, 2 * CHUNK, LONG, LONG);
	(void)expect_ack(RWIRE_AETH_ACK);
	expect_nothing();
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	take_request(RWIRE_FETCH_ADD, RWIRE_XRC_ANSWERED);
	answer(RMEM_WC_SUCCESS, 0, 8);
	TEST_ASSERT(sim_take(0, &read));
	TEST_EQ(read.opcode, RWIRE_ATOMIC_ACKNOWLEDGE);
	expect_nothing();
	close_owner();
}

/* It is read again from the owner, also amid a message to another SRQ; if that fails, no effect. */
TEST(wire_sim, duplicate_xrc_read_is_read_again_by_the_owner)
{
	struct rwire_pkt read, part;
	struct rmem_wc wc;
	unsigned int i;

	open_owner(read_of, 2 * MTU);
	link_post(3, 2 * MTU);
	read = read_of(2 * MTU);
	take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED);
	answer(RMEM_WC_SUCCESS, 0, 2 * MTU);
	expect_data(read.psn, 0, 2 * MTU, 2 * MTU);
	part = packet_of(RWIRE_SEND_FIRST, link_.number, 0);
	part.payload_len = MTU;
	sim_inject(1, &link_.peer, &part, sides[1].local, true);
	link_progress();
	(void)expect_ack(RWIRE_AETH_ACK);
	for (i = 0; i < 3; i++) {
		deliver(read);
		take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
		TEST_EQ(owner.request.dma_len, 2 * MTU);
		if (i == 2)
			break;
		answer(i == 0 ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR, 0, i == 0 ? 2 * MTU : 0);
		if (i == 0)
			expect_data(read.psn, 0, 2 * MTU, 2 * MTU);
		expect_nothing();
	}
	/* The rest of the message is held, and executed although the link ends. */
	part = packet_of(RWIRE_SEND_LAST, link_.number, 0);
	part.payload_len = 8;
	deliver(part);
	expect_nothing();
	close(owner.fd);
	owner.fd = -1;
	link_progress();
	(void)expect_ack(RWIRE_AETH_ACK);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.byte_len, MTU + 8);
	/* Without the SRQ, or in part beyond the requests that were executed. */
	close(owner.listener);
	owner.listener = -1;
	deliver(read);
	read.dma_len = 64 * MTU;
	deliver(read);
	expect_nothing();
	close_owner();
}

TEST(wire_sim, reset_qp_ends_an_xrc_read)
{
	open_owner(read_of, LONG);
	take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED);
	answer(RMEM_WC_SUCCESS, 0, CHUNK);
	take_request(RWIRE_READ_REQUEST, RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN);
	TEST_OK(rmem_qp_reset(link_.recv));
	TEST_EQ(recv(owner.fd, &owner.request, 1, 0), 0);
	close_owner();
}

/* Bytes of data in an answer: mostly those of the last request. */
static uint32_t
random_len(void)
{
	if (sim_random(8) == 0)
		return sim_random(CHUNK + 8);
	return rwire_xrc_data_len(owner.request.opcode, owner.request.dma_len);
}

/* A packet of the peer: the next ones, or a duplicate. */
static void
deliver_any(void)
{
	static const uint8_t opcodes[] = {
			RWIRE_SEND_ONLY, RWIRE_READ_REQUEST, RWIRE_FETCH_ADD, RWIRE_ATOMIC_WRITE};
	static const uint32_t lengths[] = {0, 8, MTU, CHUNK};
	struct rwire_pkt pkt = packet_of(opcodes[sim_random(4)],
			sim_random(4) != 0 ? FOREIGN : link_.number, sim_random(3));

	pkt.psn -= sim_random(4) == 0 ? sim_random(300) : 0;
	pkt.psn &= RWIRE_PSN_MASK;
	pkt.dma_len = sim_random(2) != 0 ? lengths[sim_random(4)] : sim_random(LONG);
	deliver(pkt);
}

/* Accept a link again after it was closed. */
static void
accept_any(void)
{
	struct rwire_xrc_hello hello;

	if (owner.fd >= 0)
		return;
	owner.fd = rwire_xrc_socket_accept(owner.listener);
	if (owner.fd < 0)
		return;
	TEST_EQ(recv(owner.fd, &hello, sizeof(hello), 0), (ssize_t)sizeof(hello));
	hello = rwire_xrc_hello_of(0);
	(void)rwire_shm_send(owner.fd, &hello, sizeof(hello), link_.file);
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

	if (owner.fd < 0)
		return;
	while (recv(owner.fd, &owner.request, sizeof(owner.request), MSG_DONTWAIT) > 0)
		;
	message.head.seq = owner.request.seq + (sim_random(16) == 0);
	message.head.status = sim_random(8) == 0 ? errors[sim_random(4)] : RMEM_WC_SUCCESS;
	if (send(owner.fd, &message, sizeof(message.head) + random_len(),
			    MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 &&
			sim_random(64) != 0)
		return;
	close(owner.fd);
	owner.fd = -1;
}

/* Requests and answers in any order, and of any length. */
TEST(wire_sim, random_answers_of_an_xrc_link_are_harmless)
{
	const struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	struct rwire_pkt got;
	struct rmem_wc wc;
	uint32_t i;

	open_owner(read_of, LONG);
	for (i = 0; i < STEPS; i++) {
		deliver_any();
		accept_any();
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
	close_owner();
}

/* A READ of which the peer chooses the length. */
TEST(wire_sim, xrc_read_that_is_too_long_is_not_passed_on)
{
	struct rwire_pkt got;

	link_open();
	owner.listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	owner.fd = -1;
	deliver(read_of(UINT32_MAX));
	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.syndrome, RWIRE_AETH_NAK_INV);
	TEST_EQ(rwire_xrc_socket_accept(owner.listener), -EAGAIN);
	close_owner();
}
