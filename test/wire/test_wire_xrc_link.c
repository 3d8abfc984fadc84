/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Links of XRC domains: a process of the same user that sends requests to an SRQ, or that answers
 * them, sends any bytes. The other end of each link is a socket of the test.
 */

#include <fcntl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rmem_driver.h>
#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "soft/mem/rsoft_grace.h"
#include "soft/wire/port/rwire_shm.h"
#include "soft/wire/port/rwire_xrc_socket.h"
#include "soft/wire/rwire_xrc.h"

#include "../rc.h"
#include "sides.h"

#define MTU     256u
#define FOREIGN 0x123456u /* number of an SRQ that a socket of the test has */
#define STEPS   20000

/* Side 0 has the XRC_SEND QP, side 1 the XRC_RECV QP of a domain of a file, with an SRQ. */
static struct {
	int file;
	struct rmem_xrcd *domain;
	struct rmem_srq *srq;
	uint32_t number;
	struct rmem_qp *send, *recv;
	struct rwire_addr peer;
} link_;

static void
open_link(void)
{
	struct rmem_xrcd_conf domain_conf = {.flags = RMEM_XRCD_FILE | RMEM_XRCD_CREATE};
	struct rmem_srq_ext srq_ext = {.cq = NULL};
	const struct rmem_srq_conf srq_conf = {.max_wr = 4, .max_sge = 1, .ext = &srq_ext};
	struct rmem_qp_ext ext = {.xrcd = NULL};
	struct rmem_qp_conf send = {
			.type = RMEM_QPT_XRC_SEND, .max_send_wr = SLOTS, .max_send_sge = 1};
	const struct rmem_qp_conf recv = {
			.type = RMEM_QPT_XRC_RECV, .access = RMEM_ACCESS_REMOTE, .ext = &ext};
	const struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};

	open_sides(MTU);
	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &link_.peer));
	domain_conf.fd = link_.file = memfd_create("xrcd", MFD_CLOEXEC);
	TEST_OK(rmem_xrcd_alloc(sides[1].dev, &domain_conf, &link_.domain));
	srq_ext.xrcd = ext.xrcd = link_.domain;
	srq_ext.cq = sides[1].recv_cq;
	TEST_OK(rmem_srq_create(sides[1].pd, &srq_conf, &link_.srq));
	TEST_OK(rmem_srq_num_get(link_.srq, &link_.number));
	send.send_cq = send.recv_cq = sides[0].send_cq;
	TEST_OK(rmem_qp_create(NULL, &recv, &link_.recv));
	TEST_OK(rmem_qp_create(sides[0].pd, &send, &link_.send));
	rc_connect(link_.recv, link_.send, conn);
	rc_connect(link_.send, link_.recv, conn);
}

static void
close_link(void)
{
	TEST_OK(rmem_qp_destroy(link_.send));
	TEST_OK(rmem_qp_destroy(link_.recv));
	TEST_OK(rmem_srq_destroy(link_.srq));
	TEST_OK(rmem_xrcd_dealloc(link_.domain));
	close(link_.file);
	close_sides();
}

/* Let side 1 receive: completions of receives alone are in its CQs. */
static void
progress(void)
{
	struct rmem_wc wc;

	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
}

static void
post(uint64_t wr_id, uint32_t length)
{
	const struct rmem_sge sge = {.addr = (uintptr_t)sides[1].target,
			.length = length,
			.lkey = sides[1].mr->lkey};
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	TEST_EQ(rmem_srq_post_recv(link_.srq, &wr, 1), 1);
}

static uint32_t
nb_posted(void)
{
	struct rmem_srq_attr attr;

	return rmem_srq_query(link_.srq, &attr) == 0 ? attr.nb_wr : UINT32_MAX;
}

/* A forwarder: the test. */

static struct rwire_xrc_hello
make_hello(void)
{
	struct rwire_xrc_hello hello = rwire_xrc_hello_of(0);

	hello.qp_num = 0xff000077; /* 24 bits are used */
	hello.mtu = MTU;
	return hello;
}

/* Connect to the SRQ; the status of the hello that the owner returns. */
static int
dial(const struct rwire_xrc_hello *hello, int file, int *fd)
{
	struct rwire_xrc_hello got;

	*fd = rwire_xrc_socket_connect(link_.domain, RWIRE_XRC_SRQ, link_.number);
	TEST_ASSERT(*fd >= 0);
	TEST_ASSERT(rwire_shm_send(*fd, hello, sizeof(*hello), file));
	progress();
	TEST_EQ(recv(*fd, &got, sizeof(got), 0), (ssize_t)sizeof(got));
	return got.status;
}

static int
dial_ok(void)
{
	const struct rwire_xrc_hello hello = make_hello();
	int fd;

	TEST_EQ(dial(&hello, link_.file, &fd), 0);
	return fd;
}

static void
put_request(int fd, uint8_t opcode, uint32_t length)
{
	struct {
		struct rwire_xrc_request head;
		uint8_t payload[4 * MTU];
	} request = {.head = {.seq = 5, .opcode = opcode, .flags = RWIRE_XRC_ANSWERED}};

	memset(request.payload, opcode, sizeof(request.payload));
	TEST_EQ(send(fd, &request, sizeof(request.head) + length, 0),
			(ssize_t)(sizeof(request.head) + length));
	progress();
}

/* The answer of the owner; RSOFT_WAIT_PEER: it has closed the link. */
static int
get_answer(int fd)
{
	struct rwire_xrc_answer answer = {.seq = 0};
	ssize_t n = recv(fd, &answer, sizeof(answer), 0);

	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return RSOFT_WAIT_PEER;
	TEST_EQ(n, (ssize_t)sizeof(answer));
	TEST_EQ(answer.seq, 5);
	return answer.status;
}

TEST(wire_sim, xrc_link_without_the_file_or_a_valid_hello_is_refused)
{
	const int other = memfd_create("other", MFD_CLOEXEC);
	const int path = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	struct rwire_xrc_hello hello;
	int fd, i;

	open_link();
	post(1, MTU);
	for (i = 0; i < 7; i++) {
		hello = make_hello();
		if (i == 3)
			hello.magic[7] = 'x';
		hello.version += i == 4;
		hello.mtu = i == 5 ? 255 : i == 6 ? 8192 : hello.mtu;
		TEST_EQ(dial(&hello,
					i == 0                   ? -1
							: i == 1 ? other
							: i == 2 ? path
								 : link_.file,
					&fd),
				RMEM_WC_REM_INV_REQ_ERR);
		TEST_EQ(recv(fd, &hello, sizeof(hello), 0), 0);
		close(fd);
	}
	TEST_EQ(nb_posted(), 1);
	close(path);
	close(other);
	close_link();
}

TEST(wire_sim, xrc_link_executes_messages)
{
	struct rmem_wc wc;
	int fd;

	open_link();
	fd = dial_ok();
	put_request(fd, RWIRE_SEND_ONLY, 8);
	TEST_EQ(get_answer(fd), RSOFT_WAIT_RNR);
	post(7, 2 * MTU);
	put_request(fd, RWIRE_SEND_FIRST, MTU);
	TEST_EQ(get_answer(fd), RMEM_WC_SUCCESS);
	put_request(fd, RWIRE_SEND_LAST, 8);
	TEST_EQ(get_answer(fd), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.wr_id, 7);
	TEST_EQ(wc.qp_num, 0x77);
	TEST_EQ(wc.byte_len, MTU + 8);
	close(fd);
	close_link();
}

TEST(wire_sim, xrc_link_that_ends_returns_the_receive)
{
	struct rmem_wc wc;
	int fd;

	open_link();
	post(7, 2 * MTU);
	fd = dial_ok();
	put_request(fd, RWIRE_SEND_FIRST, MTU);
	TEST_EQ(nb_posted(), 0);
	close(fd);
	progress();
	TEST_EQ(nb_posted(), 1);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 0);
	/* The answer finds that the forwarder has ended. */
	fd = dial_ok();
	TEST_EQ(send(fd,
				&(struct rwire_xrc_request){.opcode = RWIRE_SEND_FIRST,
						.flags = RWIRE_XRC_ANSWERED},
				sizeof(struct rwire_xrc_request), 0),
			(ssize_t)sizeof(struct rwire_xrc_request));
	close(fd);
	progress();
	TEST_EQ(nb_posted(), 1);
	close_link();
}

/* Errors of a request are those of all later ones. */
TEST(wire_sim, xrc_link_that_failed_executes_nothing)
{
	static const struct {
		uint8_t opcode;
		uint32_t length;
		int status;
	} rows[] = {
			{RWIRE_SEND_ONLY, 2 * MTU,
					RMEM_WC_REM_INV_REQ_ERR},        /* more than a packet */
			{RWIRE_SEND_ONLY, MTU, RMEM_WC_REM_INV_REQ_ERR}, /* than the receive */
			{RWIRE_SEND_LAST, 8, RMEM_WC_REM_INV_REQ_ERR},   /* of no message */
			{RWIRE_SEND_FIRST, MTU - 1, RMEM_WC_REM_INV_REQ_ERR},
			{RWIRE_WRITE_ONLY, 8, RMEM_WC_REM_INV_REQ_ERR}, /* its length is 0 */
			{RWIRE_WRITE_ONLY, 0, RMEM_WC_REM_INV_REQ_ERR}, /* no right */
			{RWIRE_SEND_ONLY_WITH_INV, 0, RMEM_WC_SUCCESS}, /* no key: QP in ERR */
	};
	struct rmem_wc wc;
	unsigned int i;
	int fd;

	open_link();
	for (i = 0; i < RTE_DIM(rows); i++) {
		post(1, 8);
		post(2, 8);
		fd = dial_ok();
		put_request(fd, rows[i].opcode, rows[i].length);
		TEST_STATUS(get_answer(fd), rows[i].status);
		put_request(fd, RWIRE_SEND_ONLY, 1);
		TEST_STATUS(get_answer(fd),
				rows[i].status != RMEM_WC_SUCCESS ? rows[i].status
								  : RMEM_WC_REM_OP_ERR);
		TEST_ASSERT(nb_posted() >= 1);
		close(fd);
		progress();
		TEST_OK(rmem_srq_destroy(link_.srq));
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			TEST_ASSERT(wc.status != RMEM_WC_SUCCESS);
		TEST_OK(rmem_srq_create(sides[1].pd,
				&(struct rmem_srq_conf){.max_wr = 4,
						.max_sge = 1,
						.ext = &(struct rmem_srq_ext){.xrcd = link_.domain,
								.cq = sides[1].recv_cq}},
				&link_.srq));
		TEST_OK(rmem_srq_num_get(link_.srq, &link_.number));
	}
	close_link();
}

TEST(wire_sim, xrc_link_with_a_bad_request_is_closed)
{
	static const uint8_t opcodes[] = {RWIRE_READ_REQUEST, RWIRE_FETCH_ADD, RWIRE_ACKNOWLEDGE,
			RWIRE_READ_RESPONSE_ONLY, 0x15, RWIRE_OPCODE_NB, 0xff};
	unsigned int i;
	int fd;

	open_link();
	post(1, 8);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		fd = dial_ok();
		put_request(fd, opcodes[i], 8);
		TEST_EQ(get_answer(fd), RSOFT_WAIT_PEER);
		close(fd);
	}
	fd = dial_ok();
	TEST_EQ(send(fd, "x", 1, 0), 1);
	progress();
	TEST_EQ(get_answer(fd), RSOFT_WAIT_PEER);
	close(fd);
	TEST_EQ(nb_posted(), 1);
	close_link();
}

TEST(wire_sim, random_requests_of_an_xrc_link_are_harmless)
{
	struct {
		struct rwire_xrc_request head;
		uint8_t payload[2 * MTU];
	} request;
	uint8_t bytes[sizeof(request)];
	struct rmem_wc wc;
	uint32_t i;
	int fd;

	open_link();
	fd = dial_ok();
	for (i = 0; i < STEPS; i++) {
		memset(&request, (int)sim_random(256), sizeof(request));
		request.head.opcode = (uint8_t)sim_random(RWIRE_OPCODE_NB);
		request.head.flags = (uint8_t)sim_random(8);
		request.head.dma_len = sim_random(2) != 0 ? MTU : 8;
		request.head.addr = (uintptr_t)sides[1].target;
		request.head.rkey = sim_random(8) != 0 ? sides[1].mr->rkey : sim_random(UINT32_MAX);
		request.head.imm = request.head.rkey ^ sim_random(2);
		memcpy(bytes, &request, sizeof(bytes));
		if (sim_random(16) == 0)
			bytes[sim_random(sizeof(request.head))] ^= (uint8_t)sim_random(256);
		if (nb_posted() < 2)
			post(i, MTU + sim_random(MTU));
		if (send(fd, bytes,
				    sim_random(4) == 0 ? sim_random(sizeof(bytes))
						       : sizeof(request.head) +
								    (sim_random(2) != 0 ? MTU : 8),
				    MSG_NOSIGNAL) < 0 ||
				sim_random(64) == 0) {
			close(fd);
			progress();
			fd = dial_ok();
		}
		progress();
		while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			;
	}
	close(fd);
	close_link();
}

TEST(wire_sim, failed_device_ends_xrc_links)
{
	struct rwire *wire;
	unsigned int lcore;
	int fd;

	open_link();
	wire = ((const struct rsoft_dev *)rmem_dev_drv(sides[1].dev)->priv)->wire;
	post(1, 8);
	fd = dial_ok();
	lcore = rsoft_grace_enter();
	rwire_fail_dev(wire, lcore);
	rsoft_grace_leave(lcore);
	TEST_EQ(send(fd, "", 1, MSG_NOSIGNAL), -1);
	TEST_EQ(rwire_xrc_socket_connect(link_.domain, RWIRE_XRC_SRQ, link_.number), -ECONNREFUSED);
	TEST_EQ(nb_posted(), 1);
	close(fd);
	close_link();
}

/* An owner: the test has the SRQ of the number FOREIGN. */

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
	progress();
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
	progress();
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
		open_link();
		listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
		TEST_ASSERT(listener >= 0);
		fd = accept_request(listener, &request);
		/* Of no request. */
		answer = (struct rwire_xrc_answer){.seq = request.seq + 1};
		TEST_EQ(send(fd, &answer, sizeof(answer), 0), (ssize_t)sizeof(answer));
		progress();
		TEST_RUN(expect_no_answer());
		answer = (struct rwire_xrc_answer){.seq = request.seq,
				.status = rows[i].status,
				.vendor_err = UINT32_MAX};
		if (rows[i].length != 0)
			TEST_EQ(send(fd, &answer, (size_t)rows[i].length, 0), rows[i].length);
		if (rows[i].length == 0)
			close(fd);
		progress();
		TEST_RUN(expect_answer(rows[i].syndrome));
		TEST_RUN(expect_no_answer());
		if (rows[i].length != 0)
			close(fd);
		close(listener);
		close_link();
	}
}

static void
answer_request(int fd, uint32_t seq, int32_t status)
{
	const struct rwire_xrc_answer answer = {.seq = seq, .status = status};

	TEST_EQ(send(fd, &answer, sizeof(answer), 0), (ssize_t)sizeof(answer));
	progress();
}

TEST(wire_sim, packets_during_the_wait_for_an_owner_are_executed_after_it)
{
	struct rwire_xrc_request request;
	struct rmem_wc wc;
	int fd, listener;

	open_link();
	post(3, 8);
	listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	fd = accept_request(listener, &request);
	deliver(FOREIGN, 0); /* again */
	deliver(link_.number, 1);
	deliver(link_.number, 1);
	deliver(FOREIGN, 2);
	TEST_RUN(expect_no_answer());
	TEST_EQ(nb_posted(), 1);
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
	close_link();
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

	open_link();
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
		progress();
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
	close_link();
}

/* The peer sends all of them again. */
TEST(wire_sim, packets_after_one_without_a_receive_are_dropped)
{
	struct rwire_xrc_request request;
	int fd, listener;

	open_link();
	post(3, 8);
	listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	fd = accept_request(listener, &request);
	deliver(link_.number, 1);
	deliver(link_.number, 2);
	answer_request(fd, request.seq, RSOFT_WAIT_RNR);
	TEST_RUN(expect_answer(RWIRE_AETH_RNR | 1));
	TEST_RUN(expect_no_answer());
	TEST_EQ(nb_posted(), 1);
	deliver(link_.number, 0);
	TEST_RUN(expect_answer(RWIRE_AETH_ACK));
	close(fd);
	close(listener);
	close_link();
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

	open_link();
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
		progress();
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
	close_link();
}

/* Without a hello, or the file. */
TEST(wire_sim, owner_without_the_file_gets_no_request)
{
	struct rwire_xrc_hello hello;
	uint8_t bytes[512];
	int fd, i, listener;

	for (i = 0; i < 3; i++) {
		open_link();
		listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
		deliver(FOREIGN, 0);
		fd = rwire_xrc_socket_accept(listener);
		TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(hello));
		hello = rwire_xrc_hello_of(i == 2 ? RSOFT_WAIT_RNR : 0);
		hello.version += i == 1;
		TEST_ASSERT(rwire_shm_send(fd, &hello, sizeof(hello), i == 1 ? link_.file : -1));
		progress();
		TEST_EQ(recv(fd, bytes, sizeof(bytes), 0), 0);
		TEST_RUN(expect_answer(i == 2 ? RWIRE_AETH_RNR | 1 : RWIRE_AETH_NAK_INV));
		close(fd);
		close(listener);
		close_link();
	}
}

/* The wait of a QP that is reset ends with its link. */
TEST(wire_sim, reset_qp_closes_its_xrc_links)
{
	struct rwire_xrc_request request;
	int fd, listener;

	open_link();
	listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	fd = accept_request(listener, &request);
	deliver(link_.number, 1); /* held */
	TEST_OK(rmem_qp_reset(link_.recv));
	TEST_EQ(recv(fd, &request, sizeof(request), 0), 0);
	close(fd);
	close(listener);
	close_link();
}
