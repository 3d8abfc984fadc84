/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC of verbs programs: domains by file, a QP that is opened twice, an SRQ by its number, and what
 * is refused.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "own_qp.h"

static uint8_t mem[4096];
static struct objects own;
static struct ibv_xrcd *xrcd;
static struct ibv_srq *srq;
static uint32_t srq_num;

static struct ibv_xrcd *
open_xrcd_of(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
			.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
			.fd = fd,
			.oflags = oflags};

	return ibv_open_xrcd(context, &attr);
}

static struct ibv_xrcd *
open_xrcd(int fd, int oflags)
{
	return open_xrcd_of(own.context, fd, oflags);
}

static struct ibv_srq *
create_srq(struct ibv_xrcd *of)
{
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 4, .max_sge = 1},
			.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
					IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
			.srq_type = IBV_SRQT_XRC,
			.pd = own.pd,
			.xrcd = of,
			.cq = own.cq};

	return ibv_create_srq_ex(own.context, &attr);
}

static struct ibv_qp *
create_recv(struct ibv_xrcd *of)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = of};

	return ibv_create_qp_ex(own.context, &attr);
}

static struct ibv_qp *
create_send(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_XRC_SEND,
			.send_cq = own.cq,
			.cap = {.max_send_wr = 4, .max_send_sge = 1}};

	return ibv_create_qp(own.pd, &init);
}

/* To RTS, with the attributes of both types: the kernel ignores those of the other one. */
static void
connect_to(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_port_attr port;

	HOLDS(ibv_query_port(own.context, 1, &port) == 0);
	HOLDS(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS) == 0);
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.dlid = port.lid;
	HOLDS(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER) == 0);
	attr.qp_state = IBV_QPS_RTS;
	HOLDS(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* A QP of XRC_RECV has no CQ. */
static void
alternate_path_is_refused(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.alt_port_num = 1};

	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_ALT_PATH) == EOPNOTSUPP);
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_PATH_MIG_STATE) == EOPNOTSUPP);
}

static int
send_to(struct ibv_qp *qp, uint32_t number)
{
	struct ibv_sge sge = {(uintptr_t)mem, 64, own.mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.qp_type.xrc.remote_srqn = number;
	return ibv_post_send(qp, &wr, &bad);
}

static void
message_is_received(struct ibv_qp *send, const struct ibv_qp *recv)
{
	struct ibv_sge sge = {(uintptr_t)mem + 64, 64, own.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};
	unsigned int i, nb_recv = 0;
	struct ibv_wc wc;

	mem[0]++;
	HOLDS(ibv_post_srq_recv(srq, &wr, &bad) == 0 && send_to(send, srq_num) == 0);
	for (i = 0; i < 2; i++) {
		wc = wait_wc(own.cq);
		HOLDS(wc.status == IBV_WC_SUCCESS);
		if (wc.opcode != IBV_WC_RECV)
			continue;
		HOLDS(wc.wr_id == 9 && wc.qp_num == recv->qp_num && wc.byte_len == 64);
		nb_recv++;
	}
	HOLDS(nb_recv == 1 && memcmp(mem, mem + 64, 64) == 0);
}

/* Get the event of a WRITE without a right, which is of the given handle. */
static struct ibv_async_event
event_of(struct ibv_qp *handle, struct ibv_qp *send)
{
	struct ibv_sge sge = {(uintptr_t)mem, 8, own.mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.sg_list = &sge,
					.num_sge = 1,
					.wr.rdma = {(uintptr_t)mem, own.mr->rkey}};
	struct ibv_async_event event;

	wr.qp_type.xrc.remote_srqn = srq_num;
	HOLDS(ibv_post_send(send, &wr, &bad) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_REM_INV_REQ_ERR);
	HOLDS(ibv_get_async_event(own.context, &event) == 0);
	HOLDS(event.event_type == IBV_EVENT_QP_REQ_ERR && event.element.qp == handle);
	return event;
}

static void
connect_again(struct ibv_qp *send, struct ibv_qp *recv)
{
	reset_qp(send);
	reset_qp(recv);
	connect_to(recv, send->qp_num);
	connect_to(send, recv->qp_num);
}

static pid_t destroyer;   /* atomic */
static bool is_destroyed; /* atomic */

static void *
destroy_qp(void *qp)
{
	__atomic_store_n(&destroyer, gettid(), __ATOMIC_RELEASE);
	HOLDS(ibv_destroy_qp(qp) == 0);
	__atomic_store_n(&is_destroyed, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The oldest handle has the events, and is destroyed when they are acknowledged. */
static void
events_are_of_a_handle(struct ibv_qp *send, struct ibv_qp *recv, struct ibv_qp *again)
{
	struct ibv_async_event event = event_of(recv, send);
	pthread_t thread;
	pid_t tid;

	HOLDS(pthread_create(&thread, NULL, destroy_qp, recv) == 0);
	while ((tid = __atomic_load_n(&destroyer, __ATOMIC_ACQUIRE)) == 0 || !is_asleep(tid))
		HOLDS(!__atomic_load_n(&is_destroyed, __ATOMIC_ACQUIRE));
	ibv_ack_async_event(&event);
	HOLDS(pthread_join(thread, NULL) == 0);
	connect_again(send, again);
	event = event_of(again, send);
	ibv_ack_async_event(&event);
	connect_again(send, again);
}

/* The QP remains until its last handle is destroyed, the domain until it is unused. */
static void
qp_is_opened_again(struct ibv_qp *send, struct ibv_qp *recv)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
					IBV_QP_OPEN_ATTR_TYPE,
			.qp_num = recv->qp_num,
			.xrcd = xrcd,
			.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp *again = ibv_open_qp(own.context, &attr);

	HOLDS(again != NULL && again != recv && again->qp_num == recv->qp_num);
	events_are_of_a_handle(send, recv, again);
	HOLDS(ibv_destroy_qp(recv) == ENOENT);
	message_is_received(send, again);
	HOLDS(ibv_close_xrcd(xrcd) == EBUSY);
	attr.qp_num = send->qp_num;
	HOLDS(ibv_open_qp(own.context, &attr) == NULL && errno == EINVAL);
	HOLDS(ibv_destroy_qp(again) == 0);
}

/*
 * A handle of another context has the events of the QP when that context has none; they are read
 * from the context that created the QP, which remains.
 */
static void
handles_are_of_two_contexts(struct ibv_qp *send)
{
	const int fd = memfd_create("xrcd", MFD_CLOEXEC);
	struct ibv_xrcd *unnamed = xrcd, *second;
	struct ibv_srq *of_unnamed = srq;
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
					IBV_QP_OPEN_ATTR_TYPE,
			.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_context *other = open_device("soft0");
	struct ibv_async_event event;
	struct ibv_qp *recv, *again;

	HOLDS(fd >= 0);
	xrcd = open_xrcd(fd, O_CREAT);
	second = open_xrcd_of(other, fd, 0);
	HOLDS(xrcd != NULL && second != NULL);
	srq = create_srq(xrcd);
	HOLDS(srq != NULL && ibv_get_srq_num(srq, &srq_num) == 0);
	recv = create_recv(xrcd);
	attr.qp_num = recv->qp_num;
	attr.xrcd = second;
	again = ibv_open_qp(other, &attr);
	HOLDS(again != NULL && again->context == other);
	connect_again(send, recv);
	event = event_of(recv, send);
	ibv_ack_async_event(&event);
	HOLDS(ibv_destroy_qp(recv) == 0);
	connect_again(send, again);
	event = event_of(again, send);
	ibv_ack_async_event(&event);
	HOLDS(ibv_destroy_qp(again) == 0 && ibv_close_xrcd(second) == 0);
	HOLDS(ibv_close_device(other) == 0);
	HOLDS(ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(xrcd) == 0 && close(fd) == 0);
	reset_qp(send);
	xrcd = unnamed;
	srq = of_unnamed;
	HOLDS(ibv_get_srq_num(srq, &srq_num) == 0);
}

static void
domains_have_files(void)
{
	const int fd = memfd_create("xrcd", MFD_CLOEXEC);
	struct ibv_xrcd *one, *two;

	HOLDS(fd >= 0 && open_xrcd(fd, 0) == NULL && errno == EAGAIN);
	one = open_xrcd(fd, O_CREAT | O_EXCL);
	HOLDS(one != NULL && open_xrcd(fd, O_CREAT | O_EXCL) == NULL && errno == EINVAL);
	two = open_xrcd(fd, 0);
	HOLDS(two != NULL && two != one && close(fd) == 0);
	HOLDS(open_xrcd(fd, O_CREAT) == NULL && errno == EBADF);
	HOLDS(ibv_close_xrcd(one) == 0 && ibv_close_xrcd(two) == 0);
}

/* A child of fork() has no part in the domain: it ends with the last process that opened it. */
static void
domain_ends_with_its_process(void)
{
	const int fd = memfd_create("xrcd", MFD_CLOEXEC);
	int to_child[2], from_child[2], status;
	char byte;
	pid_t pid;

	HOLDS(pipe(to_child) == 0 && pipe(from_child) == 0);
	pid = fork();
	if (pid == 0) {
		own.context = open_device("soft0");
		HOLDS(open_xrcd(fd, O_CREAT | O_EXCL) != NULL);
		if (fork() == 0) {
			HOLDS(write(from_child[1], "", 1) == 1 && close(to_child[1]) == 0);
			_exit(read(to_child[0], &byte, 1) == 0 ? 0 : 1);
		}
		HOLDS(write(from_child[1], "", 1) == 1);
		_exit(0);
	}
	HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	for (status = 0; status < 2; status++)
		HOLDS(read(from_child[0], &byte, 1) == 1);
	HOLDS(open_xrcd(fd, 0) == NULL && errno == EAGAIN);
	HOLDS(close(to_child[1]) == 0 && close(to_child[0]) == 0);
	HOLDS(close(from_child[0]) == 0 && close(from_child[1]) == 0 && close(fd) == 0);
}

/* rdma_create_qp_ex(3) adds the PD of its ID to the attributes of each QP. */
static void
pd_of_recv_is_ignored(void)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD,
			.pd = own.pd,
			.xrcd = xrcd};
	struct ibv_qp *qp = ibv_create_qp_ex(own.context, &attr);

	HOLDS(qp != NULL && ibv_destroy_qp(qp) == 0);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	HOLDS(ibv_create_qp_ex(own.context, &attr) == NULL && errno == EINVAL);
}

int
main(void)
{
	struct ibv_qp *send, *recv;

	own = open_objects(mem, sizeof(mem), 4);
	domains_have_files();
	xrcd = open_xrcd(-1, O_CREAT);
	HOLDS(xrcd != NULL);
	pd_of_recv_is_ignored();
	srq = create_srq(xrcd);
	HOLDS(srq != NULL && ibv_get_srq_num(srq, &srq_num) == 0);
	HOLDS(ibv_destroy_cq(own.cq) == EBUSY);
	send = create_send();
	recv = create_recv(xrcd);
	HOLDS(send != NULL && recv != NULL && recv->pd == NULL);
	HOLDS(send_to(recv, srq_num) != 0);
	connect_to(recv, send->qp_num);
	connect_to(send, recv->qp_num);
	alternate_path_is_refused(send);
	alternate_path_is_refused(recv);
	message_is_received(send, recv);
	domain_ends_with_its_process();
	qp_is_opened_again(send, recv);
	handles_are_of_two_contexts(send);
	HOLDS(ibv_destroy_qp(send) == 0 && ibv_destroy_srq(srq) == 0);
	HOLDS(ibv_close_xrcd(xrcd) == 0);
	HOLDS(ibv_close_xrcd(xrcd) == ENOENT);
	close_objects(&own);
	return 0;
}
