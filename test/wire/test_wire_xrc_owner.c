/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Links of XRC domains: the XRC_RECV QP passes on requests to a process that answers with any
 * bytes. Its end of each link is a socket of the test.
 */

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rmem_driver.h>

#include "soft/wire/port/rwire_shm.h"
#include "soft/wire/port/rwire_xrc_socket.h"
#include "soft/wire/rwire_xrc.h"

#include "xrc_link.h"

static struct rwire_pkt
send_of(uint32_t length)
{
	RTE_SET_USED(length);
	return link_packet(RWIRE_SEND_ONLY, FOREIGN, 0);
}

static void
deliver(uint32_t srqn, uint32_t ahead)
{
	link_deliver(link_packet(RWIRE_SEND_ONLY, srqn, ahead));
}

static void
expect_ack(uint8_t syndrome)
{
	xrc_expect(RWIRE_ACKNOWLEDGE, syndrome);
}

/* A link over which a SEND was passed on. */
static void
open_owner(void)
{
	owner_open(send_of, 0);
	owner_take(RWIRE_SEND_ONLY, RWIRE_XRC_ANSWERED);
	TEST_EQ(owner_.payload_len, 8);
}

/* Any answer of an owner, and its end. */
TEST(wire_sim, peer_gets_the_answer_of_the_owner_of_an_srq)
{
	static const struct {
		int32_t status;
		uint8_t syndrome;
		ssize_t length; /* 0: the link ends */
	} rows[] = {
			{RMEM_WC_SUCCESS, RWIRE_AETH_ACK, sizeof(struct rwire_xrc_answer)},
			{RSOFT_WAIT_RNR, RWIRE_AETH_RNR | 1, sizeof(struct rwire_xrc_answer)},
			{RMEM_WC_REM_INV_REQ_ERR, RWIRE_AETH_NAK_INV,
					sizeof(struct rwire_xrc_answer)},
			{RMEM_WC_REM_ACCESS_ERR, RWIRE_AETH_NAK_ACC,
					sizeof(struct rwire_xrc_answer)},
			{RMEM_WC_REM_OP_ERR, RWIRE_AETH_NAK_OP, sizeof(struct rwire_xrc_answer)},
			{RSOFT_WAIT_AWAY, RWIRE_AETH_NAK_OP, sizeof(struct rwire_xrc_answer)},
			{INT32_MIN, RWIRE_AETH_NAK_OP, sizeof(struct rwire_xrc_answer)},
			{RMEM_WC_WR_FLUSH_ERR, RWIRE_AETH_NAK_OP, sizeof(struct rwire_xrc_answer)},
			{RMEM_WC_SUCCESS, RWIRE_AETH_NAK_INV, 1},
			{RMEM_WC_SUCCESS, RWIRE_AETH_NAK_INV, 0},
	};
	struct rwire_xrc_answer answer;
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		open_owner();
		/* Of no request. */
		owner_.request.seq++;
		owner_answer(RMEM_WC_SUCCESS, 0, 0);
		xrc_expect_nothing();
		answer = (struct rwire_xrc_answer){.seq = owner_.request.seq - 1,
				.status = rows[i].status,
				.vendor_err = UINT32_MAX};
		if (rows[i].length != 0)
			TEST_EQ(send(owner_.fd, &answer, (size_t)rows[i].length, 0),
					rows[i].length);
		else
			owner_hang_up();
		link_progress();
		expect_ack(rows[i].syndrome);
		xrc_expect_nothing();
		owner_close();
	}
}

TEST(wire_sim, packets_during_the_wait_for_an_owner_are_executed_after_it)
{
	struct rmem_wc wc;

	open_owner();
	link_post(3, 8);
	deliver(FOREIGN, 0); /* again */
	deliver(link_.number, 1);
	deliver(link_.number, 1);
	deliver(FOREIGN, 2);
	xrc_expect_nothing();
	TEST_EQ(link_nb_posted(), 1);
	owner_answer(RMEM_WC_SUCCESS, 0, 0);
	expect_ack(RWIRE_AETH_ACK);
	expect_ack(RWIRE_AETH_ACK);
	xrc_expect_nothing();
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	owner_take(RWIRE_SEND_ONLY, RWIRE_XRC_ANSWERED);
	TEST_EQ(owner_.payload_len, 8);
	/* The second one waits; a packet after a gap is requested after it. */
	deliver(link_.number, 2);
	owner_answer(RMEM_WC_SUCCESS, 0, 0);
	expect_ack(RWIRE_AETH_ACK);
	expect_ack(RWIRE_AETH_NAK_PSN);
	xrc_expect_nothing();
	owner_close();
}

/* The next packet of the peer, of a message of several packets. */
static void
deliver_part(uint32_t srqn, uint8_t opcode)
{
	struct rwire_pkt pkt = link_packet(opcode, srqn, 0);

	if (opcode == RWIRE_SEND_FIRST)
		pkt.payload_len = MTU;
	link_deliver(pkt);
}

/* It does not continue in an SRQ of another process, either way. */
TEST(wire_sim, xrc_message_has_one_srq_of_one_process)
{
	struct rmem_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		open_owner();
		link_post(1, 2 * MTU);
		owner_answer(RMEM_WC_SUCCESS, 0, 0);
		expect_ack(RWIRE_AETH_ACK);
		deliver_part(i == 0 ? FOREIGN : link_.number, RWIRE_SEND_FIRST);
		if (i == 0) {
			owner_take(RWIRE_SEND_FIRST, RWIRE_XRC_ANSWERED);
			TEST_EQ(owner_.payload_len, MTU);
			owner_answer(RMEM_WC_SUCCESS, 0, 0);
		}
		expect_ack(RWIRE_AETH_ACK);
		deliver_part(i == 0 ? link_.number : FOREIGN, RWIRE_SEND_LAST);
		expect_ack(RWIRE_AETH_NAK_INV);
		TEST_EQ(link_nb_posted(), i == 0);
		owner_expect_nothing();
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			TEST_STATUS(wc.status, RMEM_WC_WR_FLUSH_ERR);
		owner_close();
	}
}

/* Packets that are held are passed on as one. */
TEST(wire_sim, held_packets_of_an_xrc_message_need_one_answer)
{
	static const uint8_t opcodes[] = {RWIRE_SEND_FIRST, RWIRE_SEND_MIDDLE, RWIRE_SEND_MIDDLE,
			RWIRE_SEND_LAST_WITH_IMM};
	uint8_t payload[MTU];
	struct rwire_pkt pkt;
	uint32_t i;

	open_owner();
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		pkt = link_packet(opcodes[i], FOREIGN, i + 1);
		pkt.imm = 77;
		pkt.payload_len = i == 3 ? 5 : MTU;
		pkt.is_ack_req = i == 3;
		memset(payload, (int)i, sizeof(payload));
		sim_inject(1, &link_.peer, &pkt, payload, true);
		link_progress();
	}
	owner_answer(RMEM_WC_SUCCESS, 0, 0);
	expect_ack(RWIRE_AETH_ACK);
	owner_take(RWIRE_SEND_FIRST, RWIRE_XRC_ANSWERED);
	TEST_EQ(owner_.payload_len, MTU);
	owner_answer(RMEM_WC_SUCCESS, 0, 0);
	owner_take(RWIRE_SEND_LAST_WITH_IMM, RWIRE_XRC_SHARED | RWIRE_XRC_ANSWERED);
	TEST_EQ(owner_.payload_len, 2 * MTU + 5);
	TEST_EQ(owner_.request.imm, 77);
	for (i = 0; i < 2 * MTU + 5; i++)
		TEST_EQ(owner_.payload[i], 1 + i / MTU);
	xrc_expect_nothing();
	owner_answer(RMEM_WC_SUCCESS, 0, 0);
	pkt = xrc_expect(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK);
	TEST_EQ(rwire_psn_diff(send_of(0).psn, pkt.psn), 1);
	xrc_expect_nothing();
	owner_close();
}

/* The peer sends all of them again. */
TEST(wire_sim, packets_after_one_without_a_receive_are_dropped)
{
	open_owner();
	link_post(3, 8);
	deliver(link_.number, 1);
	deliver(link_.number, 2);
	owner_answer(RSOFT_WAIT_RNR, 0, 0);
	expect_ack(RWIRE_AETH_RNR | 1);
	xrc_expect_nothing();
	TEST_EQ(link_nb_posted(), 1);
	deliver(link_.number, 0);
	expect_ack(RWIRE_AETH_ACK);
	owner_close();
}

/* As many as a QP holds; the rest is requested again. */
TEST(wire_sim, packets_beyond_those_that_a_qp_holds_are_requested)
{
	const uint32_t max = RWIRE_XRC_HELD / MTU;
	struct rwire_pkt pkt, got;
	uint32_t i;

	open_owner();
	for (i = 1; i <= max; i++) {
		pkt = link_packet(RWIRE_WRITE_ONLY, link_.number, i);
		pkt.addr = (uintptr_t)sides[1].target;
		pkt.rkey = sides[1].mr->rkey;
		pkt.payload_len = pkt.dma_len = MTU;
		pkt.is_ack_req = false;
		link_deliver(pkt);
	}
	owner_answer(RMEM_WC_SUCCESS, 0, 0);
	expect_ack(RWIRE_AETH_ACK);
	got = xrc_expect(RWIRE_ACKNOWLEDGE, RWIRE_AETH_NAK_PSN);
	TEST_ASSERT(rwire_psn_diff(pkt.psn, got.psn) > 0);
	TEST_ASSERT(rwire_psn_diff(pkt.psn, got.psn) < (int32_t)max / 2);
	xrc_expect_nothing();
	owner_close();
}

/* Without a hello, or the file. */
TEST(wire_sim, owner_without_the_file_gets_no_request)
{
	struct rwire_xrc_hello hello;
	uint8_t byte;
	int i;

	for (i = 0; i < 3; i++) {
		link_open();
		owner_.listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
		deliver(FOREIGN, 0);
		owner_.fd = rwire_xrc_socket_accept(owner_.listener);
		TEST_EQ(recv(owner_.fd, &hello, sizeof(hello), 0), (ssize_t)sizeof(hello));
		hello = rwire_xrc_hello_of(i == 2 ? RSOFT_WAIT_RNR : 0);
		hello.version += i == 1;
		TEST_ASSERT(rwire_shm_send(
				owner_.fd, &hello, sizeof(hello), i == 1 ? link_.file : -1));
		link_progress();
		TEST_EQ(recv(owner_.fd, &byte, sizeof(byte), 0), 0);
		expect_ack(i == 2 ? RWIRE_AETH_RNR | 1 : RWIRE_AETH_NAK_INV);
		owner_close();
	}
}

/* It does not read the hello of the forwarder, whose socket reports ECONNRESET first. */
TEST(wire_sim, owner_without_space_for_a_link_is_tried_again)
{
	const struct rwire_xrc_hello hello = rwire_xrc_hello_of(RSOFT_WAIT_RNR);

	link_open();
	owner_.listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	deliver(FOREIGN, 0);
	owner_.fd = rwire_xrc_socket_accept(owner_.listener);
	TEST_ASSERT(rwire_shm_send(owner_.fd, &hello, sizeof(hello), -1));
	owner_hang_up();
	expect_ack(RWIRE_AETH_RNR | 1);
	owner_close();
}

/* The wait of a QP that is reset ends with its link. */
TEST(wire_sim, reset_qp_closes_its_xrc_links)
{
	uint8_t byte;

	open_owner();
	deliver(link_.number, 1); /* held */
	TEST_OK(rmem_qp_reset(link_.recv));
	TEST_EQ(recv(owner_.fd, &byte, sizeof(byte), 0), 0);
	owner_close();
}
