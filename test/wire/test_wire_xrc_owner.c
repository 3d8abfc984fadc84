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

#define FOREIGN 0x123456u /* number of an SRQ that a socket of the test has */

static struct rwire_pkt
request_to(uint32_t srqn, uint32_t ahead)
{
	const struct rwire_qp *q = ((const struct rsoft_qp *)link_.recv)->wire;

	return (struct rwire_pkt){.service = RWIRE_XRC,
			.opcode = RWIRE_SEND_ONLY,
			.qpn = link_.recv->qp_num,
			.psn = rwire_psn_add(q->rsp.psn, ahead),
			.srqn = srqn,
			.payload_len = 8,
			.is_ack_req = true};
}

static void
deliver(uint32_t srqn, uint32_t ahead)
{
	static const uint8_t payload[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct rwire_pkt pkt = request_to(srqn, ahead);

	sim_inject(1, &link_.peer, &pkt, payload, true);
	link_progress();
}

/* Take the packet that the forwarder passes on, after an exchange of hellos. */
static int
accept_request(int listener, struct rwire_xrc_request *request)
{
	const struct rwire_xrc_hello hello = rwire_xrc_hello_of(0);
	uint8_t bytes[sizeof(*request) + MTU];
	int fd;

	deliver(FOREIGN, 0);
	fd = rwire_xrc_socket_accept(listener);
	TEST_ASSERT(fd >= 0);
	TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(hello));
	TEST_ASSERT(rwire_shm_send(fd, &hello, sizeof(hello), link_.file));
	link_progress();
	TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(*request) + 8);
	memcpy(request, bytes, sizeof(*request));
	TEST_EQ(request->opcode, RWIRE_SEND_ONLY);
	TEST_EQ(request->flags, RWIRE_XRC_ANSWERED);
	return fd;
}

static int
expect_answer(uint8_t syndrome)
{
	struct rwire_pkt got;

	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.opcode, RWIRE_ACKNOWLEDGE);
	TEST_EQ(got.syndrome, syndrome);
	return TEST_SUCCESS;
}

static int
expect_no_answer(void)
{
	struct rwire_pkt got;

	TEST_ASSERT(!sim_take(0, &got));
	return TEST_SUCCESS;
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
	struct rwire_xrc_request request;
	struct rwire_xrc_answer answer;
	unsigned int i;
	int fd, listener;

	for (i = 0; i < RTE_DIM(rows); i++) {
		link_open();
		listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
		TEST_ASSERT(listener >= 0);
		fd = accept_request(listener, &request);
		/* Of no request. */
		answer = (struct rwire_xrc_answer){.seq = request.seq + 1};
		TEST_EQ(send(fd, &answer, sizeof(answer), 0), (ssize_t)sizeof(answer));
		link_progress();
		TEST_RUN(expect_no_answer());
		answer = (struct rwire_xrc_answer){.seq = request.seq,
				.status = rows[i].status,
				.vendor_err = UINT32_MAX};
		if (rows[i].length != 0)
			TEST_EQ(send(fd, &answer, (size_t)rows[i].length, 0), rows[i].length);
		if (rows[i].length == 0)
			close(fd);
		link_progress();
		TEST_RUN(expect_answer(rows[i].syndrome));
		TEST_RUN(expect_no_answer());
		if (rows[i].length != 0)
			close(fd);
		close(listener);
		link_close();
	}
}

static void
answer_request(int fd, uint32_t seq, int32_t status)
{
	const struct rwire_xrc_answer answer = {.seq = seq, .status = status};

	TEST_EQ(send(fd, &answer, sizeof(answer), 0), (ssize_t)sizeof(answer));
	link_progress();
}

TEST(wire_sim, packets_during_the_wait_for_an_owner_are_executed_after_it)
{
	struct rwire_xrc_request request;
	struct rmem_wc wc;
	int fd, listener;

	link_open();
	link_post(3, 8);
	listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	fd = accept_request(listener, &request);
	deliver(FOREIGN, 0); /* again */
	deliver(link_.number, 1);
	deliver(link_.number, 1);
	deliver(FOREIGN, 2);
	TEST_RUN(expect_no_answer());
	TEST_EQ(link_nb_posted(), 1);
	answer_request(fd, request.seq, RMEM_WC_SUCCESS);
	TEST_RUN(expect_answer(RWIRE_AETH_ACK));
	TEST_RUN(expect_answer(RWIRE_AETH_ACK));
	TEST_RUN(expect_no_answer());
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_EQ(recv(fd, &request, sizeof(request), MSG_TRUNC), (ssize_t)sizeof(request) + 8);
	/* The second one waits; a packet after a gap is requested after it. */
	deliver(link_.number, 2);
	answer_request(fd, request.seq, RMEM_WC_SUCCESS);
	TEST_RUN(expect_answer(RWIRE_AETH_ACK));
	TEST_RUN(expect_answer(RWIRE_AETH_NAK_PSN));
	TEST_RUN(expect_no_answer());
	close(fd);
	close(listener);
	link_close();
}

/* The next packet of the peer, of a message of several packets. */
static void
deliver_part(uint32_t srqn, uint8_t opcode)
{
	static const uint8_t payload[MTU];
	struct rwire_pkt pkt = request_to(srqn, 0);

	pkt.opcode = opcode;
	pkt.payload_len = opcode == RWIRE_SEND_FIRST ? MTU : 8;
	sim_inject(1, &link_.peer, &pkt, payload, true);
	link_progress();
}

/* It does not continue in an SRQ of another process, either way. */
TEST(wire_sim, xrc_message_has_one_srq_of_one_process)
{
	struct rwire_xrc_request request;
	uint8_t bytes[sizeof(request) + MTU];
	struct rmem_wc wc;
	int fd, i, listener;

	for (i = 0; i < 2; i++) {
		link_open();
		link_post(1, 2 * MTU);
		listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
		fd = accept_request(listener, &request);
		answer_request(fd, request.seq, RMEM_WC_SUCCESS);
		TEST_RUN(expect_answer(RWIRE_AETH_ACK));
		deliver_part(i == 0 ? FOREIGN : link_.number, RWIRE_SEND_FIRST);
		if (i == 0) {
			TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
			memcpy(&request, bytes, sizeof(request));
			answer_request(fd, request.seq, RMEM_WC_SUCCESS);
		}
		TEST_RUN(expect_answer(RWIRE_AETH_ACK));
		deliver_part(i == 0 ? link_.number : FOREIGN, RWIRE_SEND_LAST);
		TEST_RUN(expect_answer(RWIRE_AETH_NAK_INV));
		TEST_EQ(link_nb_posted(), i == 0);
		TEST_EQ(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			TEST_STATUS(wc.status, RMEM_WC_WR_FLUSH_ERR);
		close(fd);
		close(listener);
		link_close();
	}
}

/* Packets that are held are passed on as one. */
TEST(wire_sim, held_packets_of_an_xrc_message_need_one_answer)
{
	static const uint8_t opcodes[] = {RWIRE_SEND_FIRST, RWIRE_SEND_MIDDLE, RWIRE_SEND_MIDDLE,
			RWIRE_SEND_LAST_WITH_IMM};
	uint8_t payload[MTU], bytes[sizeof(struct rwire_xrc_request) + 3 * MTU];
	struct rwire_xrc_request request;
	struct rwire_pkt pkt;
	int fd, listener;
	uint32_t i;

	link_open();
	listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	fd = accept_request(listener, &request);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		pkt = request_to(FOREIGN, i + 1);
		pkt.opcode = opcodes[i];
		pkt.imm = 77;
		pkt.payload_len = i == 3 ? 5 : MTU;
		pkt.is_ack_req = i == 3;
		memset(payload, (int)i, sizeof(payload));
		sim_inject(1, &link_.peer, &pkt, payload, true);
		link_progress();
	}
	answer_request(fd, request.seq, RMEM_WC_SUCCESS);
	TEST_RUN(expect_answer(RWIRE_AETH_ACK));
	TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(request) + MTU);
	memcpy(&request, bytes, sizeof(request));
	TEST_EQ(request.opcode, RWIRE_SEND_FIRST);
	answer_request(fd, request.seq, RMEM_WC_SUCCESS);
	TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(request) + 2 * MTU + 5);
	memcpy(&request, bytes, sizeof(request));
	TEST_EQ(request.opcode, RWIRE_SEND_LAST_WITH_IMM);
	TEST_EQ(request.imm, 77);
	TEST_EQ(request.flags, RWIRE_XRC_SHARED | RWIRE_XRC_ANSWERED);
	for (i = 0; i < 2 * MTU + 5; i++)
		TEST_EQ(bytes[sizeof(request) + i], 1 + i / MTU);
	TEST_RUN(expect_no_answer());
	answer_request(fd, request.seq, RMEM_WC_SUCCESS);
	TEST_ASSERT(sim_take(0, &pkt));
	TEST_EQ(pkt.syndrome, RWIRE_AETH_ACK);
	TEST_EQ(rwire_psn_diff(request_to(FOREIGN, 0).psn, pkt.psn), 1);
	TEST_RUN(expect_no_answer());
	close(fd);
	close(listener);
	link_close();
}

/* The peer sends all of them again. */
TEST(wire_sim, packets_after_one_without_a_receive_are_dropped)
{
	struct rwire_xrc_request request;
	int fd, listener;

	link_open();
	link_post(3, 8);
	listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	fd = accept_request(listener, &request);
	deliver(link_.number, 1);
	deliver(link_.number, 2);
	answer_request(fd, request.seq, RSOFT_WAIT_RNR);
	TEST_RUN(expect_answer(RWIRE_AETH_RNR | 1));
	TEST_RUN(expect_no_answer());
	TEST_EQ(link_nb_posted(), 1);
	deliver(link_.number, 0);
	TEST_RUN(expect_answer(RWIRE_AETH_ACK));
	close(fd);
	close(listener);
	link_close();
}

/* As many as a QP holds; the rest is requested again. */
TEST(wire_sim, packets_beyond_those_that_a_qp_holds_are_requested)
{
	static const uint8_t payload[MTU];
	const uint32_t max = RWIRE_XRC_HELD / MTU;
	struct rwire_xrc_request request;
	struct rwire_pkt pkt, got = {.psn = 0};
	int fd, listener;
	uint32_t i;

	link_open();
	listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	fd = accept_request(listener, &request);
	for (i = 1; i <= max; i++) {
		pkt = request_to(link_.number, i);
		pkt.opcode = RWIRE_WRITE_ONLY;
		pkt.addr = (uintptr_t)sides[1].target;
		pkt.rkey = sides[1].mr->rkey;
		pkt.payload_len = pkt.dma_len = MTU;
		pkt.is_ack_req = false;
		sim_inject(1, &link_.peer, &pkt, payload, true);
		link_progress();
	}
	answer_request(fd, request.seq, RMEM_WC_SUCCESS);
	TEST_RUN(expect_answer(RWIRE_AETH_ACK));
	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.syndrome, RWIRE_AETH_NAK_PSN);
	TEST_ASSERT(rwire_psn_diff(pkt.psn, got.psn) > 0);
	TEST_ASSERT(rwire_psn_diff(pkt.psn, got.psn) < (int32_t)max / 2);
	TEST_RUN(expect_no_answer());
	close(fd);
	close(listener);
	link_close();
}

/* Without a hello, or the file. */
TEST(wire_sim, owner_without_the_file_gets_no_request)
{
	struct rwire_xrc_hello hello;
	uint8_t bytes[512];
	int fd, i, listener;

	for (i = 0; i < 3; i++) {
		link_open();
		listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
		deliver(FOREIGN, 0);
		fd = rwire_xrc_socket_accept(listener);
		TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(hello));
		hello = rwire_xrc_hello_of(i == 2 ? RSOFT_WAIT_RNR : 0);
		hello.version += i == 1;
		TEST_ASSERT(rwire_shm_send(fd, &hello, sizeof(hello), i == 1 ? link_.file : -1));
		link_progress();
		TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), 0);
		TEST_RUN(expect_answer(i == 2 ? RWIRE_AETH_RNR | 1 : RWIRE_AETH_NAK_INV));
		close(fd);
		close(listener);
		link_close();
	}
}

/* The wait of a QP that is reset ends with its link. */
TEST(wire_sim, reset_qp_closes_its_xrc_links)
{
	struct rwire_xrc_request request;
	int fd, listener;

	link_open();
	listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	fd = accept_request(listener, &request);
	deliver(link_.number, 1); /* held */
	TEST_OK(rmem_qp_reset(link_.recv));
	TEST_EQ(recv(fd, &request, sizeof(request), 0), 0);
	close(fd);
	close(listener);
	link_close();
}
