/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Links of XRC domains: a process of the same user sends any bytes to an SRQ. The other end of each
 * link is a socket of the test.
 */

#include <fcntl.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rmem_driver.h>
#include <rmem_fast_reg.h>
#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "soft/mem/rsoft_grace.h"
#include "soft/wire/port/rwire_shm.h"
#include "soft/wire/port/rwire_xrc_socket.h"
#include "soft/wire/rwire_xrc.h"

#include "../rc.h"
#include "sides.h"
#include "xrc_link.h"

#define STEPS 20000

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
	link_progress();
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
	link_progress();
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
	char name[64];
	int path;
	struct rwire_xrc_hello hello;
	int fd, i;

	link_open();
	link_post(1, MTU);
	/* Of the file, but not opened: only looked up. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", link_.file);
	path = open(name, O_PATH | O_CLOEXEC);
	TEST_ASSERT(path >= 0);
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
	TEST_EQ(link_nb_posted(), 1);
	close(path);
	close(other);
	link_close();
}

TEST(wire_sim, xrc_link_executes_messages)
{
	struct rmem_wc wc;
	int fd;

	link_open();
	fd = dial_ok();
	put_request(fd, RWIRE_SEND_ONLY, 8);
	TEST_EQ(get_answer(fd), RSOFT_WAIT_RNR);
	link_post(7, 2 * MTU);
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
	link_close();
}

TEST(wire_sim, xrc_link_that_ends_returns_the_receive)
{
	struct rmem_wc wc;
	int fd;

	link_open();
	link_post(7, 2 * MTU);
	fd = dial_ok();
	put_request(fd, RWIRE_SEND_FIRST, MTU);
	TEST_EQ(link_nb_posted(), 0);
	close(fd);
	link_progress();
	TEST_EQ(link_nb_posted(), 1);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 0);
	/* The answer finds that the forwarder has ended. */
	fd = dial_ok();
	TEST_EQ(send(fd,
				&(struct rwire_xrc_request){.opcode = RWIRE_SEND_FIRST,
						.flags = RWIRE_XRC_ANSWERED},
				sizeof(struct rwire_xrc_request), 0),
			(ssize_t)sizeof(struct rwire_xrc_request));
	close(fd);
	link_progress();
	TEST_EQ(link_nb_posted(), 1);
	link_close();
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

	link_open();
	for (i = 0; i < RTE_DIM(rows); i++) {
		link_post(1, 8);
		link_post(2, 8);
		fd = dial_ok();
		put_request(fd, rows[i].opcode, rows[i].length);
		TEST_STATUS(get_answer(fd), rows[i].status);
		put_request(fd, RWIRE_SEND_ONLY, 1);
		TEST_STATUS(get_answer(fd),
				rows[i].status != RMEM_WC_SUCCESS ? rows[i].status
								  : RMEM_WC_REM_OP_ERR);
		TEST_ASSERT(link_nb_posted() >= 1);
		close(fd);
		link_progress();
		TEST_OK(rmem_srq_destroy(link_.srq));
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			TEST_ASSERT(wc.status != RMEM_WC_SUCCESS);
		xrc_make_srq(&sides[1], sides[1].pd, link_.domain, &link_.srq, &link_.number);
	}
	link_close();
}

/* A READ or an atomic in the memory of side 1. */
static struct rwire_xrc_request
rdma_request(uint8_t opcode, uint32_t length)
{
	return (struct rwire_xrc_request){.seq = 5,
			.opcode = opcode,
			.flags = RWIRE_XRC_ANSWERED,
			.access = RMEM_ACCESS_REMOTE,
			.rkey = sides[1].mr->rkey,
			.dma_len = length,
			.addr = (uintptr_t)sides[1].target,
			.compare = 1,
			.swap_add = 2};
}

static struct {
	struct rwire_xrc_answer head;
	uint8_t data[RWIRE_XRC_CHUNK + 1];
} got;

/* Send a request without payload; the status, with that many bytes of data. */
static int
exchange(int fd, const struct rwire_xrc_request *request, uint32_t len)
{
	ssize_t n;

	TEST_EQ(send(fd, request, sizeof(*request), 0), (ssize_t)sizeof(*request));
	link_progress();
	n = recv(fd, &got, sizeof(got), 0);
	if (n == 0)
		return RSOFT_WAIT_PEER;
	TEST_EQ(got.head.seq, 5);
	TEST_EQ(n, (ssize_t)(sizeof(got.head) + (got.head.status == RMEM_WC_SUCCESS ? len : 0)));
	return got.head.status;
}

TEST(wire_sim, xrc_link_executes_reads_and_atomics)
{
	static const uint32_t lengths[] = {1, 0, MTU + 1, RWIRE_XRC_CHUNK, SIZE};
	struct rwire_xrc_request request;
	uint64_t value = 1;
	unsigned int i;
	int fd;

	link_open();
	fd = dial_ok();
	for (i = 0; i < SIZE; i++)
		sides[1].target[i] = (uint8_t)(i * 7 + i / 251);
	for (i = 0; i < 2 * RTE_DIM(lengths); i++) {
		const uint32_t n = RTE_MIN(lengths[i / 2], (uint32_t)RWIRE_XRC_CHUNK);

		request = rdma_request(RWIRE_READ_REQUEST, lengths[i / 2]);
		request.flags |= i % 2 != 0 ? RWIRE_XRC_AGAIN : 0;
		TEST_STATUS(exchange(fd, &request, n), RMEM_WC_SUCCESS);
		TEST_MEM(got.data, sides[1].target, n);
	}
	memcpy(sides[1].target, &value, sizeof(value));
	for (i = 0; i < 3; i++) {
		request = rdma_request(i == 1 ? RWIRE_FETCH_ADD : RWIRE_COMPARE_SWAP, 0);
		TEST_STATUS(exchange(fd, &request, sizeof(value)), RMEM_WC_SUCCESS);
		memcpy(&value, got.data, sizeof(value));
		TEST_EQ(value, i == 0 ? 1 : 2 * i);
	}
	memcpy(&value, sides[1].target, sizeof(value));
	TEST_EQ(value, 4);
	close(fd);
	link_close();
}

/* With the rights that the forwarder reports, and only then. */
TEST(wire_sim, xrc_link_executes_flushes_and_atomic_writes)
{
	struct {
		struct rwire_xrc_request head;
		uint64_t value;
	} write;
	struct rwire_xrc_request flush;
	struct rmem_mr *mr;
	int fd;

	link_open();
	TEST_OK(rmem_mr_reg(sides[1].pd, sides[1].target, SIZE, (uintptr_t)sides[1].target,
			RMEM_ACCESS_FLUSH_GLOBAL, &mr));
	fd = dial_ok();
	write.head = rdma_request(RWIRE_ATOMIC_WRITE, sizeof(write.value));
	write.value = 77;
	TEST_EQ(send(fd, &write, sizeof(write), 0), (ssize_t)sizeof(write));
	link_progress();
	TEST_STATUS(get_answer(fd), RMEM_WC_SUCCESS);
	TEST_MEM(sides[1].target, &write.value, sizeof(write.value));
	flush = rdma_request(RWIRE_FLUSH, 8);
	flush.rkey = mr->rkey;
	flush.type = RMEM_FLUSH_GLOBAL;
	flush.access |= RMEM_ACCESS_FLUSH_GLOBAL;
	TEST_STATUS(exchange(fd, &flush, 0), RMEM_WC_SUCCESS);
	flush.access &= RMEM_ACCESS_REMOTE;
	TEST_STATUS(exchange(fd, &flush, 0), RMEM_WC_REM_INV_REQ_ERR);
	close(fd);
	/* Of another length than a word. */
	fd = dial_ok();
	TEST_EQ(send(fd, &write, sizeof(write) - 1, 0), (ssize_t)sizeof(write) - 1);
	link_progress();
	TEST_STATUS(get_answer(fd), RMEM_WC_REM_INV_REQ_ERR);
	close(fd);
	TEST_OK(rmem_mr_dereg(mr));
	link_close();
}

/* A duplicate does not change the state of the link, of which a message is in progress. */
TEST(wire_sim, xrc_link_repeats_a_read_amid_a_message)
{
	struct rwire_xrc_request request;
	struct rmem_wc wc;
	int fd;

	link_open();
	link_post(7, 2 * MTU);
	fd = dial_ok();
	put_request(fd, RWIRE_SEND_FIRST, MTU);
	TEST_EQ(get_answer(fd), RMEM_WC_SUCCESS);
	request = rdma_request(RWIRE_READ_REQUEST, 8);
	request.flags |= RWIRE_XRC_AGAIN;
	TEST_STATUS(exchange(fd, &request, 8), RMEM_WC_SUCCESS);
	request.rkey ^= 1;
	TEST_STATUS(exchange(fd, &request, 8), RMEM_WC_REM_ACCESS_ERR);
	put_request(fd, RWIRE_SEND_LAST, 8);
	TEST_EQ(get_answer(fd), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_EQ(wc.byte_len, MTU + 8);
	close(fd);
	link_close();
}

/* No QP of the device has received the requests. */
TEST(wire_sim, xrc_link_counts_for_the_device)
{
	struct rwire_xrc_request request;
	struct rmem_dev_stats stats;
	int fd;

	link_open();
	link_post(7, MTU);
	fd = dial_ok();
	put_request(fd, RWIRE_SEND_ONLY, 8);
	TEST_EQ(get_answer(fd), RMEM_WC_SUCCESS);
	request = rdma_request(RWIRE_READ_REQUEST, 8);
	request.rkey ^= 1;
	TEST_STATUS(exchange(fd, &request, 0), RMEM_WC_REM_ACCESS_ERR);
	close(fd);
	link_progress();
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.recv_wrs, 1);
	TEST_EQ(stats.bad_rkeys, 1);
	TEST_EQ(stats.mem_faults, 0);
	link_close();
}

TEST(wire_sim, xrc_link_refuses_reads_and_atomics_without_the_key_or_right)
{
	static const struct {
		uint8_t opcode, flags;
		uint32_t length, access, rkey, addr; /* differences */
		int status;
		bool has_failed; /* the link executes nothing more */
	} rows[] = {
			{RWIRE_READ_REQUEST, 0, 8, 0, 1, 0, RMEM_WC_REM_ACCESS_ERR, true},
			{RWIRE_READ_REQUEST, 0, 64 * SIZE, 0, 0, 0, RMEM_WC_REM_ACCESS_ERR, true},
			{RWIRE_READ_REQUEST, 0, UINT32_MAX, 0, 0, 0, RMEM_WC_REM_INV_REQ_ERR, true},
			{RWIRE_READ_REQUEST, 0, 8, RMEM_ACCESS_REMOTE_READ, 0, 0,
					RMEM_WC_REM_INV_REQ_ERR, true},
			{RWIRE_READ_REQUEST, RWIRE_XRC_AGAIN, 8, 0, 1, 0, RMEM_WC_REM_ACCESS_ERR,
					false},
			{RWIRE_READ_REQUEST, RWIRE_XRC_AGAIN, 8, RMEM_ACCESS_REMOTE_READ, 0, 0,
					RMEM_WC_REM_ACCESS_ERR, false},
			{RWIRE_FETCH_ADD, 0, 0, 0, 1, 0, RMEM_WC_REM_ACCESS_ERR, true},
			{RWIRE_FETCH_ADD, 0, 0, 0, 0, 1, RMEM_WC_REM_INV_REQ_ERR, true},
			{RWIRE_COMPARE_SWAP, 0, 0, RMEM_ACCESS_REMOTE_ATOMIC, 0, 0,
					RMEM_WC_REM_INV_REQ_ERR, true},
	};
	struct rwire_xrc_request request;
	unsigned int i;
	int fd;

	link_open();
	for (i = 0; i < RTE_DIM(rows); i++) {
		fd = dial_ok();
		request = rdma_request(rows[i].opcode, rows[i].length);
		request.flags |= rows[i].flags;
		request.access ^= rows[i].access;
		request.rkey ^= rows[i].rkey;
		request.addr ^= rows[i].addr;
		TEST_STATUS(exchange(fd, &request, 0), rows[i].status);
		request = rdma_request(RWIRE_READ_REQUEST, 8);
		TEST_STATUS(exchange(fd, &request, 8),
				rows[i].has_failed ? rows[i].status : RMEM_WC_SUCCESS);
		close(fd);
	}
	link_close();
}

/* Nothing is read after the deregistration. */
TEST(wire_sim, xrc_link_reads_no_revoked_memory)
{
	struct rwire_xrc_request request;
	struct rmem_mr *mr;
	int fd;

	link_open();
	fd = dial_ok();
	TEST_OK(rmem_mr_reg(sides[1].pd, sides[1].target, SIZE, (uintptr_t)sides[1].target,
			RMEM_ACCESS_REMOTE_READ, &mr));
	request = rdma_request(RWIRE_READ_REQUEST, SIZE);
	request.rkey = mr->rkey;
	TEST_STATUS(exchange(fd, &request, RWIRE_XRC_CHUNK), RMEM_WC_SUCCESS);
	request.flags |= RWIRE_XRC_AGAIN;
	request.addr += RWIRE_XRC_CHUNK;
	request.dma_len = RWIRE_XRC_CHUNK;
	TEST_STATUS(exchange(fd, &request, RWIRE_XRC_CHUNK), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_STATUS(exchange(fd, &request, 0), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(got.head.vendor_err, RMEM_VENDOR_ERR_KEY_STATE);
	request.flags &= (uint8_t)~RWIRE_XRC_AGAIN;
	TEST_STATUS(exchange(fd, &request, 0), RMEM_WC_REM_ACCESS_ERR);
	close(fd);
	link_close();
}

TEST(wire_sim, xrc_link_with_a_bad_request_is_closed)
{
	static const uint8_t opcodes[] = {RWIRE_READ_REQUEST, RWIRE_FETCH_ADD, RWIRE_ACKNOWLEDGE,
			RWIRE_READ_RESPONSE_ONLY, 0x15, RWIRE_FLUSH, RWIRE_OPCODE_NB, 0xff};
	static const uint8_t no_reads[] = {
			RWIRE_SEND_ONLY, RWIRE_WRITE_ONLY, RWIRE_FETCH_ADD, RWIRE_ACKNOWLEDGE};
	struct rwire_xrc_request request;
	unsigned int i;
	int fd;

	link_open();
	link_post(1, 8);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		fd = dial_ok();
		put_request(fd, opcodes[i], 8);
		TEST_EQ(get_answer(fd), RSOFT_WAIT_PEER);
		close(fd);
	}
	for (i = 0; i < RTE_DIM(no_reads); i++) {
		fd = dial_ok();
		request = rdma_request(no_reads[i], 0);
		request.flags |= RWIRE_XRC_AGAIN;
		TEST_EQ(exchange(fd, &request, 0), RSOFT_WAIT_PEER);
		close(fd);
	}
	fd = dial_ok();
	TEST_EQ(send(fd, "x", 1, 0), 1);
	link_progress();
	TEST_EQ(get_answer(fd), RSOFT_WAIT_PEER);
	close(fd);
	TEST_EQ(link_nb_posted(), 1);
	link_close();
}

TEST(wire_sim, random_requests_of_an_xrc_link_are_harmless)
{
	static const uint32_t lengths[] = {0, 8, MTU};
	struct {
		struct rwire_xrc_request head;
		uint8_t payload[2 * MTU];
	} request;
	uint8_t bytes[sizeof(request)];
	struct rmem_wc wc;
	uint32_t i;
	int fd;

	link_open();
	fd = dial_ok();
	for (i = 0; i < STEPS; i++) {
		memset(&request, (int)sim_random(256), sizeof(request));
		request.head.opcode = (uint8_t)sim_random(RWIRE_OPCODE_NB);
		request.head.flags = (uint8_t)sim_random(16);
		request.head.access = RMEM_ACCESS_REMOTE;
		request.head.dma_len = sim_random(2) != 0 ? MTU : 8;
		request.head.addr = (uintptr_t)sides[1].target;
		request.head.rkey = sim_random(8) != 0 ? sides[1].mr->rkey : sim_random(UINT32_MAX);
		request.head.imm = request.head.rkey ^ sim_random(2);
		memcpy(bytes, &request, sizeof(bytes));
		if (sim_random(16) == 0)
			bytes[sim_random(sizeof(request.head))] ^= (uint8_t)sim_random(256);
		if (link_nb_posted() < 2)
			link_post(i, MTU + sim_random(MTU));
		if (send(fd, bytes,
				    sim_random(4) == 0
						    ? sim_random(sizeof(bytes))
						    : sizeof(request.head) + lengths[sim_random(3)],
				    MSG_NOSIGNAL) < 0 ||
				sim_random(64) == 0) {
			close(fd);
			link_progress();
			fd = dial_ok();
		}
		link_progress();
		while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1)
			;
	}
	close(fd);
	link_close();
}

/* A thread that uses keys until is_ending. */
struct user {
	pthread_t thread;
	bool is_inside, is_ending; /* atomic */
};

static void *
use_keys(void *arg)
{
	struct user *user = arg;
	unsigned int lcore;

	if (rte_thread_register() != 0)
		return arg;
	lcore = rsoft_grace_enter();
	__atomic_store_n(&user->is_inside, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&user->is_ending, __ATOMIC_ACQUIRE))
		sched_yield();
	rsoft_grace_leave(lcore);
	rte_thread_unregister();
	return NULL;
}

static void
start_user(struct user *user)
{
	*user = (struct user){.is_inside = false};
	TEST_EQ(pthread_create(&user->thread, NULL, use_keys, user), 0);
	while (!__atomic_load_n(&user->is_inside, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void
end_user(struct user *user)
{
	void *result;

	__atomic_store_n(&user->is_ending, true, __ATOMIC_RELEASE);
	TEST_EQ(pthread_join(user->thread, &result), 0);
	TEST_ASSERT(result == NULL);
}

/* Bind a fast-register MR of side 1, whose key a peer can invalidate. */
static void
bind_mr(struct rmem_mr *mr, struct rmem_fast_reg_page_list *list)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_REG_MR, .flags = RMEM_SEND_SIGNALED};
	struct rmem_wc wc;

	list->page_list[0] = RTE_ALIGN_CEIL((uintptr_t)sides[1].target, 4096);
	wr.reg_mr.mr = mr;
	wr.reg_mr.page_list = list;
	wr.reg_mr.page_list_len = 1;
	wr.reg_mr.log2_page_size = 12;
	wr.reg_mr.length = 4096;
	wr.reg_mr.iova = list->page_list[0];
	wr.reg_mr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	wr.reg_mr.key_tag = rmem_rkey_next_tag(mr->rkey);
	TEST_EQ(rmem_post_send(sides[1].qp, &wr, 1), 1);
	while (rmem_poll_cq(sides[1].send_cq, &wc, 1) == 0)
		;
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
}

/* The owner answers after the grace period of the key; a link that ends before is closed then. */
TEST(wire_sim, xrc_link_waits_for_the_grace_period_of_a_key)
{
	struct rwire_xrc_request request = {
			.seq = 5, .opcode = RWIRE_SEND_ONLY_WITH_INV, .flags = RWIRE_XRC_ANSWERED};
	struct rmem_fast_reg_page_list *list;
	struct rmem_mr *mr;
	struct user user;
	struct rmem_wc wc;
	int fd, i;

	link_open();
	TEST_OK(rmem_fast_reg_page_list_alloc(sides[1].dev, 1, &list));
	for (i = 0; i < 4; i++) {
		TEST_OK(rmem_fast_reg_mr_alloc(sides[1].pd, 1, &mr));
		bind_mr(mr, list);
		link_post(i, 8);
		fd = dial_ok();
		start_user(&user);
		request.imm = mr->rkey;
		TEST_EQ(send(fd, &request, sizeof(request), 0), (ssize_t)sizeof(request));
		link_progress();
		link_progress();
		TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 0);
		TEST_EQ(recv(fd, &request, sizeof(request), MSG_DONTWAIT), -1);
		if (i == 1)
			TEST_EQ(send(fd, &request, sizeof(request), 0), (ssize_t)sizeof(request));
		if (i == 2)
			close(fd);
		link_progress();
		end_user(&user);
		if (i == 3)
			break;
		link_progress();
		TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		TEST_EQ(wc.invalidated_rkey, mr->rkey);
		if (i < 2)
			TEST_STATUS(get_answer(fd), i == 0 ? RMEM_WC_SUCCESS : RSOFT_WAIT_PEER);
		if (i != 2)
			close(fd);
		TEST_OK(rmem_mr_dereg(mr));
	}
	/* The SRQ is destroyed during the wait. */
	TEST_OK(rmem_srq_destroy(link_.srq));
	TEST_OK(rmem_mr_dereg(mr));
	rmem_fast_reg_page_list_free(list);
	close(fd);
	xrc_make_srq(&sides[1], sides[1].pd, link_.domain, &link_.srq, &link_.number);
	link_close();
}

TEST(wire_sim, failed_device_ends_xrc_links)
{
	struct rwire *wire;
	unsigned int lcore;
	int fd;

	link_open();
	wire = ((const struct rsoft_dev *)rmem_dev_drv(sides[1].dev)->priv)->wire;
	link_post(1, 8);
	fd = dial_ok();
	lcore = rsoft_grace_enter();
	rwire_fail_dev(wire, lcore);
	rsoft_grace_leave(lcore);
	TEST_EQ(send(fd, "", 1, MSG_NOSIGNAL), -1);
	TEST_EQ(rwire_xrc_socket_connect(link_.domain, RWIRE_XRC_SRQ, link_.number), -ECONNREFUSED);
	TEST_EQ(link_nb_posted(), 1);
	close(fd);
	link_close();
}
