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
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "own_qp.h"

#define SIZE    (1u << 20)
#define SMALL   64u
#define LARGE   (200u * 1024 + 3) /* packets of all kinds, with answers in between */
#define NB_SRQS 2u
#define DEPTH   16u
#define USER    65534

enum op {
	OPEN_DOMAIN, /* a: flags; -1 if it must fail with EAGAIN or EINVAL */
	CREATE_SRQ,  /* a: index -> a: number */
	DESTROY_SRQ, /* a: index */
	POST,        /* a: index, b: length */
	WAIT,        /* -> wc, and whether the bytes are those of a message */
	CREATE_QP,   /* -> a: number */
	CONNECT,     /* a: number of the peer; of a QP that is reset first */
	OPEN_QP,     /* a: number of a QP of another process */
	SEND_OWN,    /* a: number of an SRQ: to it by QPs of this process -> wc */
	END,
};

struct command {
	enum op op;
	uint32_t a, b;
	union ibv_gid gid;
	uint16_t lid;
};

struct reply {
	uint32_t a;
	bool is_sound;
	uint64_t addr;
	uint32_t rkey;
	struct ibv_wc wc;
	union ibv_gid gid;
	uint16_t lid;
};

struct child {
	pid_t pid;
	int fd;
};

/* A process: the requester, or a child. */
static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq[NB_SRQS];
	struct ibv_qp *qp;
	uint8_t *mem;
	union ibv_gid gid;
	uint16_t lid;
	uint64_t nb_posted;
} own;

static int file;
static const char *network;
static bool has_retries = true;

static uint8_t
byte_of(uint32_t seed, uint32_t i)
{
	return (uint8_t)(seed * 31 + i * 7 + i / 251);
}

/* The n-th process has the n-th address of the network. */
static void
open_own(unsigned int n)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_port_attr port;
	char device[64];

	if (network != NULL) {
		snprintf(device, sizeof(device), "soft0,ip=%s.%u", network, n);
		HOLDS(setenv("RMEM_IBV", device, 1) == 0);
	}
	own.context = open_device("soft0");
	own.pd = ibv_alloc_pd(own.context);
	own.cq = ibv_create_cq(own.context, 256, NULL, NULL, 0);
	own.mem = aligned_alloc(4096, SIZE);
	HOLDS(own.pd != NULL && own.cq != NULL && own.mem != NULL);
	memset(own.mem, 0, SIZE);
	own.mr = ibv_reg_mr(own.pd, own.mem, SIZE, access);
	HOLDS(own.mr != NULL && ibv_query_gid(own.context, 1, 0, &own.gid) == 0);
	HOLDS(ibv_query_port(own.context, 1, &port) == 0);
	own.lid = port.lid;
}

static void
connect_to(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid, uint16_t lid,
		uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = peer,
			.timeout = has_retries ? 14 : 0,
			.retry_cnt = has_retries ? 7 : 0,
			.rnr_retry = rnr_retry,
			.min_rnr_timer = 1,
			.ah_attr.is_global = network != NULL,
			.ah_attr.grh.dgid = *gid,
			.ah_attr.grh.hop_limit = 1};

	reset_qp(qp);
	connect_qp_at(qp, attr, lid);
}

static struct ibv_xrcd *
open_domain(int oflags)
{
	struct ibv_xrcd_init_attr attr = {
			.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
			.fd = file,
			.oflags = oflags};

	return ibv_open_xrcd(own.context, &attr);
}

static void
create_srq(uint32_t i, uint32_t *number)
{
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = DEPTH, .max_sge = 1},
			.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
					IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
			.srq_type = IBV_SRQT_XRC,
			.pd = own.pd,
			.xrcd = own.xrcd,
			.cq = own.cq};

	own.srq[i] = ibv_create_srq_ex(own.context, &attr);
	HOLDS(own.srq[i] != NULL && ibv_get_srq_num(own.srq[i], number) == 0);
}

/* A receive in its own half of the memory, by turns. */
static void
post(uint32_t i, uint32_t length)
{
	const uint64_t at = own.nb_posted++ % 2 * (SIZE / 2);
	struct ibv_sge sge = {(uintptr_t)own.mem + at, length, own.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = at, .sg_list = &sge, .num_sge = 1};

	HOLDS(ibv_post_srq_recv(own.srq[i], &wr, &bad) == 0);
}

/* Whether a message was received whole: its first byte is its seed. */
static bool
is_sound(const struct ibv_wc *wc)
{
	const uint8_t *data = own.mem + (wc->opcode == IBV_WC_RECV ? wc->wr_id : 0);
	uint32_t i;

	for (i = 1; wc->status == IBV_WC_SUCCESS && i < wc->byte_len; i++) {
		if (data[i] != byte_of(data[0], i))
			return false;
	}
	return true;
}

static void
create_recv_qp(void)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = own.xrcd};

	own.qp = ibv_create_qp_ex(own.context, &attr);
	HOLDS(own.qp != NULL);
}

static struct ibv_qp *
create_send_qp(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_XRC_SEND,
			.send_cq = own.cq,
			.cap = {.max_send_wr = DEPTH, .max_send_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(own.pd, &init);

	HOLDS(qp != NULL);
	return qp;
}

/* A request by two QPs of this process. */
static struct ibv_wc
send_own(uint32_t number)
{
	struct ibv_sge sge = {(uintptr_t)own.mem, 1, own.mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	struct ibv_qp *recv = own.qp, *send = create_send_qp();
	struct ibv_wc wc;

	create_recv_qp();
	connect_to(own.qp, send->qp_num, &own.gid, own.lid, 7);
	connect_to(send, own.qp->qp_num, &own.gid, own.lid, 7);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.qp_type.xrc.remote_srqn = number;
	HOLDS(ibv_post_send(send, &wr, &bad) == 0);
	wc = wait_wc(own.cq);
	HOLDS(ibv_destroy_qp(own.qp) == 0 && ibv_destroy_qp(send) == 0);
	own.qp = recv;
	return wc;
}

static void
open_qp_fails(uint32_t qp_num)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
					IBV_QP_OPEN_ATTR_TYPE,
			.qp_num = qp_num,
			.xrcd = own.xrcd,
			.qp_type = IBV_QPT_XRC_RECV};

	HOLDS(ibv_open_qp(own.context, &attr) == NULL && errno == EINVAL);
}

static void
close_all(void)
{
	HOLDS(own.qp == NULL || ibv_destroy_qp(own.qp) == 0);
	HOLDS(own.srq[0] == NULL || ibv_destroy_srq(own.srq[0]) == 0);
	HOLDS(own.srq[1] == NULL || ibv_destroy_srq(own.srq[1]) == 0);
	HOLDS(own.xrcd == NULL || ibv_close_xrcd(own.xrcd) == 0);
	HOLDS(ibv_dereg_mr(own.mr) == 0 && ibv_destroy_cq(own.cq) == 0);
	HOLDS(ibv_dealloc_pd(own.pd) == 0 && ibv_close_device(own.context) == 0);
	exit(0);
}

static void
execute(const struct command *command, struct reply *reply)
{
	switch (command->op) {
	case OPEN_DOMAIN:
		own.xrcd = open_domain((int)command->a);
		reply->a = own.xrcd != NULL ? 0 : (uint32_t)errno;
		break;
	case CREATE_SRQ:
		create_srq(command->a, &reply->a);
		break;
	case DESTROY_SRQ:
		HOLDS(ibv_destroy_srq(own.srq[command->a]) == 0);
		own.srq[command->a] = NULL;
		break;
	case POST:
		post(command->a, command->b);
		break;
	case WAIT:
		reply->wc = wait_wc(own.cq);
		reply->is_sound = is_sound(&reply->wc);
		break;
	case CREATE_QP:
		create_recv_qp();
		reply->a = own.qp->qp_num;
		break;
	case CONNECT:
		connect_to(own.qp, command->a, &command->gid, command->lid, 7);
		break;
	case OPEN_QP:
		open_qp_fails(command->a);
		break;
	case SEND_OWN:
		reply->wc = send_own(command->a);
		break;
	case END:
		close_all();
	}
}

static void
serve(int fd, unsigned int n, uid_t user)
{
	struct command command;
	struct reply reply;

	HOLDS(user == 0 || setresuid(user, user, user) == 0);
	HOLDS(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	open_own(n);
	while (recv(fd, &command, sizeof(command), 0) == sizeof(command)) {
		memset(&reply, 0, sizeof(reply));
		execute(&command, &reply);
		reply.gid = own.gid;
		reply.lid = own.lid;
		reply.addr = (uintptr_t)own.mem;
		reply.rkey = own.mr->rkey;
		HOLDS(send(fd, &reply, sizeof(reply), 0) == sizeof(reply));
	}
	_exit(1);
}

static struct child
start(unsigned int n, uid_t user)
{
	struct child child;
	int pair[2];

	HOLDS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	child.pid = fork();
	HOLDS(child.pid >= 0);
	if (child.pid == 0) {
		close(pair[0]);
		serve(pair[1], n, user);
	}
	close(pair[1]);
	child.fd = pair[0];
	return child;
}

static void
order(const struct child *child, struct command command)
{
	HOLDS(send(child->fd, &command, sizeof(command), 0) == sizeof(command));
}

static struct reply
result(const struct child *child)
{
	struct reply reply;

	HOLDS(recv(child->fd, &reply, sizeof(reply), 0) == sizeof(reply));
	return reply;
}

static struct reply
call(const struct child *child, enum op op, uint32_t a, uint32_t b)
{
	order(child, (struct command){.op = op, .a = a, .b = b});
	return result(child);
}

static void
end_child(const struct child *child)
{
	int status;

	order(child, (struct command){.op = END});
	HOLDS(waitpid(child->pid, &status, 0) == child->pid && status == 0);
	close(child->fd);
}

static void
kill_child(const struct child *child)
{
	HOLDS(kill(child->pid, SIGKILL) == 0 && waitpid(child->pid, NULL, 0) == child->pid);
	close(child->fd);
}

/* The requester: the QP of the process P receives for the SRQs of P and S. */
static struct child p, s;
static uint32_t recv_num, number[NB_SRQS], own_number;

static void
reconnect(const struct child *to, uint8_t rnr_retry)
{
	struct reply reply;

	order(to,
			(struct command){.op = CONNECT,
					.a = own.qp->qp_num,
					.gid = own.gid,
					.lid = own.lid});
	reply = result(to);
	connect_to(own.qp, recv_num, &reply.gid, reply.lid, rnr_retry);
}

/* A request of a message with a seed, or a WRITE to an address. */
static void
request(uint32_t srqn, enum ibv_wr_opcode opcode, uint32_t length, uint8_t seed,
		const struct reply *to)
{
	struct ibv_sge sge = {(uintptr_t)own.mem, length, own.mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1};
	uint32_t i;

	own.mem[0] = seed;
	for (i = 1; i < length; i++)
		own.mem[i] = byte_of(seed, i);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.imm_data = 0x1234;
	wr.qp_type.xrc.remote_srqn = srqn;
	if (to != NULL) {
		wr.wr.rdma.remote_addr = to->addr;
		wr.wr.rdma.rkey = to->rkey;
	}
	HOLDS(ibv_post_send(own.qp, &wr, &bad) == 0);
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
	request(number[0], IBV_WR_RDMA_READ, SMALL, 5, &reply);
	status_is(IBV_WC_REM_INV_REQ_ERR);
	reconnect(&p, 7);
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
	HOLDS(call(other, OPEN_DOMAIN, O_CREAT | O_EXCL, 0).a == EINVAL);
	HOLDS(call(other, OPEN_DOMAIN, 0, 0).a == 0);
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

/* A request waits for a receive when S is killed, or finds it killed. */
static void
killed_owner_fails_requests(const struct child *next)
{
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

	HOLDS(call(other, OPEN_DOMAIN, 0, 0).a == EAGAIN);
	HOLDS(call(other, OPEN_DOMAIN, O_CREAT | O_EXCL, 0).a == 0);
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
	own.qp = create_send_qp();
}

/* The domain of P, which S opens too; each has an SRQ in it, or two. */
static void
open_domain_of_both(void)
{
	unsigned int i;

	HOLDS(call(&p, OPEN_DOMAIN, 0, 0).a == EAGAIN);
	HOLDS(call(&p, OPEN_DOMAIN, O_CREAT | O_EXCL, 0).a == 0);
	domain_is_shared(&s);
	for (i = 0; i < NB_SRQS; i++)
		number[i] = call(&s, CREATE_SRQ, i, 0).a;
	own_number = call(&p, CREATE_SRQ, 0, 0).a;
	recv_num = call(&p, CREATE_QP, 0, 0).a;
	call(&s, OPEN_QP, recv_num, 0);
	reconnect(&p, 7);
}

int
main(int argc, char **argv)
{
	const bool has_user = argc == 1 && geteuid() == 0;
	struct child others[2], user;

	network = argc == 2 ? argv[1] : NULL;
	file = memfd_create("xrcd", MFD_CLOEXEC);
	/* Before this process has a device, which a child would inherit. */
	p = start(2, 0);
	s = start(3, 0);
	others[0] = start(4, 0);
	others[1] = start(5, 0);
	if (has_user)
		user = start(6, USER);
	open_requester();
	open_domain_of_both();
	messages_arrive();
	bursts_arrive_without_retries();
	own_messages_arrive();
	writes_arrive();
	missing_receive_is_waited_for();
	refusals_reach_the_requester();
	messages_arrive();
	if (has_user)
		other_user_is_refused(&user);
	killed_forwarder_loses_no_receive(&others[0]);
	killed_owner_fails_requests(&others[1]);
	end_child(&s);
	end_child(&p);
	HOLDS(ibv_destroy_qp(own.qp) == 0);
	own.qp = NULL;
	close_all();
}
