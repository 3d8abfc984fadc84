/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A process; see xrc_process.h. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "xrc_process.h"

struct xrc_process own;
int file[2];
int life[2];
const char *network;
bool has_retries = true;
void (*execute_more)(const struct command *command, struct reply *reply);

uint8_t
byte_of(uint32_t seed, uint32_t i)
{
	return (uint8_t)(seed * 31 + i * 7 + i / 251);
}

static void
register_own(void)
{
	own.mr = ibv_reg_mr(own.pd, own.mem, SIZE, IBV_ACCESS_LOCAL_WRITE | RIGHTS);
	HOLDS(own.mr != NULL);
}

void
fill(uint8_t seed, uint32_t length)
{
	uint32_t i;

	own.mem[0] = seed;
	for (i = 1; i < length; i++)
		own.mem[i] = byte_of(seed, i);
}

void
open_own(unsigned int n)
{
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
	register_own();
	HOLDS(ibv_query_gid(own.context, 1, 0, &own.gid) == 0);
	HOLDS(ibv_query_port(own.context, 1, &port) == 0);
	own.lid = port.lid;
}

void
connect_to(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid, uint16_t lid,
		uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {.qp_access_flags = RIGHTS,
			.max_rd_atomic = 8,
			.max_dest_rd_atomic = 8,
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

static int
open_domain(int oflags, uint32_t i)
{
	struct ibv_xrcd_init_attr attr = {
			.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
			.fd = file[i],
			.oflags = oflags};

	own.xrcd = ibv_open_xrcd(own.context, &attr);
	return own.xrcd != NULL ? 0 : errno;
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
create_recv_qp(uint32_t slot)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = own.xrcd};

	own.qp[slot] = ibv_create_qp_ex(own.context, &attr);
	HOLDS(own.qp[slot] != NULL);
}

struct ibv_qp *
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
	struct ibv_qp *send = create_send_qp();
	struct ibv_wc wc;

	create_recv_qp(1);
	connect_to(own.qp[1], send->qp_num, &own.gid, own.lid, 7);
	connect_to(send, own.qp[1]->qp_num, &own.gid, own.lid, 7);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.qp_type.xrc.remote_srqn = number;
	HOLDS(ibv_post_send(send, &wr, &bad) == 0);
	wc = wait_wc(own.cq);
	HOLDS(ibv_destroy_qp(own.qp[1]) == 0 && ibv_destroy_qp(send) == 0);
	own.qp[1] = NULL;
	return wc;
}

void
close_all(void)
{
	unsigned int i;

	for (i = 0; i < NB_QPS; i++)
		HOLDS(own.qp[i] == NULL || ibv_destroy_qp(own.qp[i]) == 0);
	HOLDS(own.srq[0] == NULL || ibv_destroy_srq(own.srq[0]) == 0);
	HOLDS(own.srq[1] == NULL || ibv_destroy_srq(own.srq[1]) == 0);
	HOLDS(own.xrcd == NULL || ibv_close_xrcd(own.xrcd) == 0);
	HOLDS(ibv_dereg_mr(own.mr) == 0 && ibv_destroy_cq(own.cq) == 0);
	HOLDS(ibv_dealloc_pd(own.pd) == 0 && ibv_close_device(own.context) == 0);
	exit(0);
}

void
fork_waiting(int pipe_fd)
{
	const pid_t pid = fork();
	char byte;

	HOLDS(pid >= 0);
	if (pid != 0)
		return;
	HOLDS(pipe_fd < 0 || write(pipe_fd, "", 1) == 1);
	(void)!read(life[0], &byte, sizeof(byte));
	_exit(0);
}

static void
execute(const struct command *command, struct reply *reply)
{
	switch (command->op) {
	case OPEN_DOMAIN:
		reply->err = open_domain((int)command->a, command->b);
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
	case FILL:
		fill((uint8_t)command->a, command->b);
		break;
	case REGISTER:
		HOLDS(ibv_dereg_mr(own.mr) == 0);
		register_own();
		break;
	case CREATE_QP:
		create_recv_qp(command->a);
		reply->a = own.qp[command->a]->qp_num;
		break;
	case CONNECT:
		connect_to(own.qp[0], command->a, &command->gid, command->lid, 7);
		break;
	case SEND_OWN:
		reply->wc = send_own(command->a);
		break;
	case FORK:
		fork_waiting(-1);
		break;
	case END:
		close_all();
		break;
	default:
		execute_more(command, reply);
	}
}

static void
serve(int fd, unsigned int n, uid_t user)
{
	struct command command;
	struct reply reply;

	close(life[1]);
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

struct child
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

void
order(const struct child *child, struct command command)
{
	HOLDS(send(child->fd, &command, sizeof(command), 0) == sizeof(command));
}

struct reply
result(const struct child *child)
{
	struct reply reply;

	HOLDS(recv(child->fd, &reply, sizeof(reply), 0) == sizeof(reply));
	return reply;
}

struct reply
call(const struct child *child, enum op op, uint32_t a, uint32_t b)
{
	order(child, (struct command){.op = op, .a = a, .b = b});
	return result(child);
}

void
end_child(const struct child *child)
{
	int status;

	order(child, (struct command){.op = END});
	HOLDS(waitpid(child->pid, &status, 0) == child->pid && status == 0);
	close(child->fd);
}

void
kill_child(const struct child *child)
{
	HOLDS(kill(child->pid, SIGKILL) == 0 && waitpid(child->pid, NULL, 0) == child->pid);
	close(child->fd);
}
