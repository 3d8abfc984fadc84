/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The XRC domain of a file in several processes: a requester sends to the XRC_RECV QP of one
 * process, for the SRQ of another one.
 *
 * usage: test-xrc_processes [NETWORK]: with the first three numbers of an address ("127.0.31"),
 * devices of UDP; else of ip=host.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "xrc_process.h"

#define USER 65534

/* The requester: the QP of the process P receives for the SRQs of P and S. */
static struct child p, s;
static uint32_t recv_num, number[NB_SRQS], own_number;

static void
reconnect(const struct child *to, uint8_t rnr_retry)
{
	struct reply reply;

	order(to,
			(struct command){.op = CONNECT,
					.a = own.qp[0]->qp_num,
					.gid = own.gid,
					.lid = own.lid});
	reply = result(to);
	connect_to(own.qp[0], recv_num, &reply.gid, reply.lid, rnr_retry);
}

/* A request of a message with a seed, or a WRITE to an address. */
static void
request(uint32_t srqn, enum ibv_wr_opcode opcode, uint32_t length, uint8_t seed,
		const struct reply *to)
{
	struct ibv_sge sge = {(uintptr_t)own.mem, length, own.mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1};

	fill(seed, length);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.imm_data = 0x1234;
	wr.qp_type.xrc.remote_srqn = srqn;
	if (to != NULL) {
		wr.wr.rdma.remote_addr = to->addr;
		wr.wr.rdma.rkey = to->rkey;
	}
	HOLDS(ibv_post_send(own.qp[0], &wr, &bad) == 0);
}

static void
is_received(const struct child *by, uint32_t length)
{
	struct reply reply;

	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	reply = call(by, WAIT, 0, 0);
	HOLDS(reply.wc.status == IBV_WC_SUCCESS && reply.wc.byte_len == length && reply.is_sound);
	HOLDS(reply.wc.qp_num == recv_num);
}

static void
status_is(enum ibv_wc_status status)
{
	const struct ibv_wc wc = wait_wc(own.cq);

	HOLDS(wc.status == status);
}

static void
messages_arrive(void)
{
	static const uint32_t lengths[] = {SMALL, 0, 1024, 1025, LARGE, 1, 64 * 1024};
	uint32_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		call(&s, POST, i % 2, SIZE / 2);
		request(number[i % 2], IBV_WR_SEND, lengths[i], (uint8_t)(i + 1), NULL);
		is_received(&s, lengths[i]);
		call(&p, POST, 0, SIZE / 2);
		request(own_number, IBV_WR_SEND_WITH_IMM, lengths[i], (uint8_t)i, NULL);
		is_received(&p, lengths[i]);
	}
}

/* One after the other: while P waits for S, it holds the rest. */
static void
bursts_arrive(void)
{
	struct reply reply;
	uint32_t i;

	for (i = 0; i < DEPTH; i++)
		call(i % 4 == 3 ? &p : &s, POST, i % 4 == 3 ? 0 : i % 2, SIZE / 2);
	for (i = 0; i < DEPTH; i++)
		request(i % 4 == 3 ? own_number : number[i % 2], IBV_WR_SEND, 5000, 9, NULL);
	for (i = 0; i < DEPTH; i++)
		status_is(IBV_WC_SUCCESS);
	for (i = 0; i < DEPTH; i++) {
		reply = call(i % 4 == 3 ? &p : &s, WAIT, 0, 0);
		HOLDS(reply.wc.status == IBV_WC_SUCCESS && reply.wc.byte_len == 5000);
		HOLDS(reply.is_sound);
	}
}

/* Nothing is lost in shared memory, and P drops nothing: so nothing is sent again. */
static void
bursts_arrive_without_retries(void)
{
	has_retries = network != NULL;
	reconnect(&p, 7);
	bursts_arrive();
	has_retries = true;
	reconnect(&p, 7);
}

/* Also of a requester in the process of the XRC_RECV QP. */
static void
own_messages_arrive(void)
{
	struct reply reply;

	call(&s, POST, 0, SMALL);
	HOLDS(call(&p, SEND_OWN, number[0], 0).wc.status == IBV_WC_SUCCESS);
	reply = call(&s, WAIT, 0, 0);
	HOLDS(reply.wc.status == IBV_WC_SUCCESS && reply.wc.byte_len == 1);
	HOLDS(call(&p, SEND_OWN, number[0] ^ 1, 0).wc.status == IBV_WC_REM_INV_REQ_ERR);
}

/* WRITEs reach the memory of the process that has the SRQ. */
static void
writes_arrive(void)
{
	struct reply reply = call(&s, POST, 0, 0), wc;

	request(number[0], IBV_WR_RDMA_WRITE, LARGE, 5, &reply);
	status_is(IBV_WC_SUCCESS);
	request(number[0], IBV_WR_RDMA_WRITE_WITH_IMM, LARGE, 6, &reply);
	status_is(IBV_WC_SUCCESS);
	wc = call(&s, WAIT, 0, 0);
	HOLDS(wc.wc.status == IBV_WC_SUCCESS && wc.wc.byte_len == LARGE && wc.is_sound);
	HOLDS(wc.wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wc.imm_data == 0x1234);
	reply.rkey ^= 0x100;
	request(number[0], IBV_WR_RDMA_WRITE, SMALL, 5, &reply);
	status_is(IBV_WC_REM_ACCESS_ERR);
	reconnect(&p, 7);
}

/* A READ, to the second half of the memory. */
static void
post_read(const struct reply *from, uint32_t srqn, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)own.mem + SIZE / 2, length, own.mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.opcode = IBV_WR_RDMA_READ,
					.sg_list = &sge,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = {from->addr, from->rkey}};

	wr.qp_type.xrc.remote_srqn = srqn;
	HOLDS(ibv_post_send(own.qp[0], &wr, &bad) == 0);
}

static void
is_read(uint8_t seed, uint32_t length)
{
	const uint8_t *data = own.mem + SIZE / 2;
	uint32_t i;

	status_is(IBV_WC_SUCCESS);
	HOLDS(length == 0 || data[0] == seed);
	for (i = 1; i < length; i++)
		HOLDS(data[i] == byte_of(seed, i));
}

/* READs return the memory of the process that has the SRQ, in order with other requests. */
static void
reads_arrive(void)
{
	static const uint32_t lengths[] = {SMALL, 0, 1024, 1025, LARGE, 1, SIZE / 2};
	struct reply reply;
	uint32_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		reply = call(&s, FILL, i, lengths[i]);
		post_read(&reply, number[i % 2], lengths[i]);
		is_read((uint8_t)i, lengths[i]);
	}
	for (i = 0; i < 4; i++) {
		call(&s, POST, 0, SMALL);
		request(number[0], IBV_WR_RDMA_WRITE, LARGE, (uint8_t)i, &reply);
		post_read(&reply, number[1], LARGE);
		status_is(IBV_WC_SUCCESS);
		is_read((uint8_t)i, LARGE);
		post_read(&reply, number[1], LARGE);
		post_read(&reply, number[0], SMALL);
		request(number[0], IBV_WR_SEND, SMALL, (uint8_t)i, NULL);
		status_is(IBV_WC_SUCCESS);
		is_read((uint8_t)i, SMALL);
		is_received(&s, SMALL);
	}
	call(&s, REGISTER, 0, 0);
	post_read(&reply, number[0], SMALL);
	status_is(IBV_WC_REM_ACCESS_ERR);
	reconnect(&p, 7);
}

/* An atomic on the first word of a process; the previous value. */
static uint64_t
atomic(const struct reply *to, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	uint64_t *result = (uint64_t *)(void *)own.mem;
	struct ibv_sge sge = {(uintptr_t)result, sizeof(*result), own.mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.opcode = opcode,
					.sg_list = &sge,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.atomic = {to->addr, compare_add, swap, to->rkey}};

	wr.qp_type.xrc.remote_srqn = number[0];
	HOLDS(ibv_post_send(own.qp[0], &wr, &bad) == 0);
	status_is(IBV_WC_SUCCESS);
	return *result;
}

static void
atomics_arrive(void)
{
	const struct reply reply = call(&s, FILL, 3, 8);
	uint64_t value;

	fill(3, sizeof(value));
	memcpy(&value, own.mem, sizeof(value));
	HOLDS(atomic(&reply, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0) == value);
	HOLDS(atomic(&reply, IBV_WR_ATOMIC_CMP_AND_SWP, value, 9) == value + 2);
	HOLDS(atomic(&reply, IBV_WR_ATOMIC_CMP_AND_SWP, value + 2, 9) == value + 2);
	HOLDS(atomic(&reply, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0) == 9);
}

static void
missing_receive_is_waited_for(void)
{
	struct ibv_wc wc;
	uint32_t i;

	request(number[1], IBV_WR_SEND, LARGE, 7, NULL);
	for (i = 0; i < 1000; i++)
		HOLDS(ibv_poll_cq(own.cq, 1, &wc) == 0);
	call(&s, POST, 1, SIZE / 2);
	is_received(&s, LARGE);
	reconnect(&p, 0);
	request(number[1], IBV_WR_SEND, LARGE, 7, NULL);
	status_is(IBV_WC_RNR_RETRY_EXC_ERR);
	reconnect(&p, 7);
}

static void
refusals_reach_the_requester(void)
{
	struct reply reply;
	uint32_t length;

	for (length = SMALL; length <= LARGE; length += LARGE - SMALL) {
		call(&s, POST, 0, length - 1);
		request(number[0], IBV_WR_SEND, length, 7, NULL);
		status_is(IBV_WC_REM_INV_REQ_ERR);
		reply = call(&s, WAIT, 0, 0);
		HOLDS(reply.wc.status == IBV_WC_LOC_LEN_ERR && reply.wc.qp_num == recv_num);
		reconnect(&p, 7);
	}
	request(number[0] ^ 1, IBV_WR_SEND, LARGE, 7, NULL);
	status_is(IBV_WC_REM_INV_REQ_ERR);
	reconnect(&p, 7);
	call(&s, DESTROY_SRQ, 1, 0);
	request(number[1], IBV_WR_SEND, SMALL, 7, NULL);
	status_is(IBV_WC_REM_INV_REQ_ERR);
	reconnect(&p, 7);
	number[1] = call(&s, CREATE_SRQ, 1, 0).a;
}

static void
domain_is_shared(const struct child *other)
{
	HOLDS(call(other, OPEN_DOMAIN, O_CREAT | O_EXCL, 0).err == EINVAL);
	HOLDS(call(other, OPEN_DOMAIN, 0, 0).err == 0);
}

/* Receive by S: the length of the message. */
static uint32_t
next_length(void)
{
	const struct reply reply = call(&s, WAIT, 0, 0);

	HOLDS(reply.wc.status == IBV_WC_SUCCESS && reply.is_sound);
	return reply.wc.byte_len;
}

/* P is killed while it passes a message on: if that is not received, its receive is not lost. */
static void
killed_forwarder_loses_no_receive(const struct child *next)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		call(&s, POST, 0, SIZE / 2);
	request(number[0], IBV_WR_SEND, LARGE, 3, NULL);
	(void)sched_yield();
	kill_child(&p);
	p = *next;
	domain_is_shared(&p);
	own_number = call(&p, CREATE_SRQ, 0, 0).a;
	recv_num = call(&p, CREATE_QP, 0, 0).a;
	reconnect(&p, 7);
	request(number[0], IBV_WR_SEND, SMALL, 4, NULL);
	status_is(IBV_WC_SUCCESS);
	if (next_length() == LARGE) {
		HOLDS(next_length() == SMALL);
		return;
	}
	request(number[0], IBV_WR_SEND, SMALL, 5, NULL);
	status_is(IBV_WC_SUCCESS);
	HOLDS(next_length() == SMALL);
}

/* The next owner, with SRQs. */
static void
replace_owner(const struct child *next)
{
	unsigned int i;

	reconnect(&p, 7);
	s = *next;
	domain_is_shared(&s);
	for (i = 0; i < NB_SRQS; i++)
		number[i] = call(&s, CREATE_SRQ, i, 0).a;
}

/* The first READ that is not executed fails: one in progress too. */
static void
killed_owner_fails_reads(const struct child *next)
{
	const struct reply reply = call(&s, FILL, 1, LARGE);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	unsigned int i;

	for (i = 0; i < DEPTH; i++)
		post_read(&reply, number[i % 2], LARGE);
	(void)sched_yield();
	kill_child(&s);
	for (i = 0; i < DEPTH && status == IBV_WC_SUCCESS; i++)
		status = wait_wc(own.cq).status;
	HOLDS(status == IBV_WC_SUCCESS || status == IBV_WC_REM_INV_REQ_ERR);
	for (; i < DEPTH; i++)
		status_is(IBV_WC_WR_FLUSH_ERR);
	replace_owner(next);
}

/* It continues when it runs again. */
static void
stopped_owner_is_waited_for(void)
{
	const struct reply reply = call(&s, FILL, 1, LARGE);

	HOLDS(kill(s.pid, SIGSTOP) == 0);
	HOLDS(waitpid(s.pid, NULL, WUNTRACED) == s.pid);
	post_read(&reply, number[0], LARGE);
	status_is(IBV_WC_RETRY_EXC_ERR);
	HOLDS(kill(s.pid, SIGCONT) == 0);
	reconnect(&p, 7);
	reads_arrive();
}

static void
forked_processes_continue(void)
{
	call(&p, FORK, 0, 0);
	call(&s, FORK, 0, 0);
	reads_arrive();
	messages_arrive();
}

/*
 * A request waits for a receive when S is killed, or finds it killed. Links and SRQs end with S
 * although its child of fork() continues.
 */
static void
killed_owner_fails_requests(const struct child *next)
{
	const struct reply reply = call(&s, FILL, 1, SMALL);

	post_read(&reply, number[0], SMALL);
	is_read(1, SMALL);
	call(&s, FORK, 0, 0);
	request(number[0], IBV_WR_SEND, LARGE, 3, NULL);
	kill_child(&s);
	status_is(IBV_WC_REM_INV_REQ_ERR);
	reconnect(&p, 7);
	request(number[1], IBV_WR_SEND, SMALL, 3, NULL);
	status_is(IBV_WC_REM_INV_REQ_ERR);
	reconnect(&p, 7);
	s = *next;
	domain_is_shared(&s);
}

/* A process of another user has a domain of its own. */
static void
other_user_is_refused(const struct child *other)
{
	const uint32_t qp_num = recv_num;

	HOLDS(call(other, OPEN_DOMAIN, 0, 0).err == EAGAIN);
	HOLDS(call(other, OPEN_DOMAIN, O_CREAT | O_EXCL, 0).err == 0);
	recv_num = call(other, CREATE_QP, 0, 0).a;
	reconnect(other, 7);
	request(number[0], IBV_WR_SEND, SMALL, 7, NULL);
	status_is(IBV_WC_REM_INV_REQ_ERR);
	recv_num = qp_num;
	reconnect(&p, 7);
	end_child(other);
}

static void
open_requester(void)
{
	open_own(1);
	own.qp[0] = create_send_qp();
}

/* The domain of P, which S opens too; each has an SRQ in it, or two. */
static void
open_domain_of_both(void)
{
	unsigned int i;

	HOLDS(call(&p, OPEN_DOMAIN, 0, 0).err == EAGAIN);
	HOLDS(call(&p, OPEN_DOMAIN, O_CREAT | O_EXCL, 0).err == 0);
	domain_is_shared(&s);
	for (i = 0; i < NB_SRQS; i++)
		number[i] = call(&s, CREATE_SRQ, i, 0).a;
	own_number = call(&p, CREATE_SRQ, 0, 0).a;
	recv_num = call(&p, CREATE_QP, 0, 0).a;
	reconnect(&p, 7);
}

int
main(int argc, char **argv)
{
	const bool has_user = argc == 1 && geteuid() == 0;
	struct child others[3], user;
	unsigned int i;

	network = argc == 2 ? argv[1] : NULL;
	file[0] = memfd_create("xrcd", MFD_CLOEXEC);
	HOLDS(pipe(life) == 0);
	/* Before this process has a device, which a child would inherit. */
	p = start(2, 0);
	s = start(3, 0);
	for (i = 0; i < 3; i++)
		others[i] = start(4 + i, 0);
	if (has_user)
		user = start(7, USER);
	open_requester();
	open_domain_of_both();
	messages_arrive();
	bursts_arrive_without_retries();
	own_messages_arrive();
	writes_arrive();
	reads_arrive();
	atomics_arrive();
	missing_receive_is_waited_for();
	refusals_reach_the_requester();
	messages_arrive();
	if (has_user)
		other_user_is_refused(&user);
	stopped_owner_is_waited_for();
	forked_processes_continue();
	killed_forwarder_loses_no_receive(&others[0]);
	killed_owner_fails_reads(&others[1]);
	killed_owner_fails_requests(&others[2]);
	end_child(&s);
	end_child(&p);
	HOLDS(ibv_destroy_qp(own.qp[0]) == 0);
	own.qp[0] = NULL;
	close_all();
}
