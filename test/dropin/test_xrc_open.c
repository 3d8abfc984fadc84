/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * ibv_open_qp() of an XRC_RECV QP that another process has created: A creates QPs, B and C open
 * them, C has the SRQ, and this process sends to them.
 *
 * usage: test-xrc_open [NETWORK]: with the first three numbers of an address ("127.0.32"), devices
 * of UDP; else of ip=host.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "xrc_process.h"

#define USER    65534
#define ANOTHER 1 /* file */

static int
open_qp(uint32_t slot, uint32_t number)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
					IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
			.qp_num = number,
			.xrcd = own.xrcd,
			.qp_context = &own.qp[slot],
			.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp *qp = ibv_open_qp(own.context, &attr);

	if (qp == NULL)
		return errno;
	HOLDS(qp->qp_num == number && qp->qp_context == &own.qp[slot]);
	own.qp[slot] = qp;
	return 0;
}

static int forked[2]; /* a pipe */

/* When the thread waits for a process that is stopped. */
static void *
fork_while_asleep(void *tid)
{
	while (!is_asleep(*(const pid_t *)tid))
		sched_yield();
	fork_waiting(forked[1]);
	return NULL;
}

static int
open_forking(uint32_t slot, uint32_t number)
{
	pid_t tid = gettid();
	pthread_t thread;
	int err;

	HOLDS(pthread_create(&thread, NULL, fork_while_asleep, &tid) == 0);
	err = open_qp(slot, number);
	HOLDS(pthread_join(thread, NULL) == 0);
	return err;
}

static int
destroy(uint32_t slot)
{
	int err = ibv_destroy_qp(own.qp[slot]);

	own.qp[slot] = NULL;
	return err;
}

static int
modify(struct ibv_qp *qp, const struct command *command)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = command->b,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.min_rnr_timer = 1,
			.ah_attr.is_global = network != NULL,
			.ah_attr.grh.dgid = command->gid,
			.ah_attr.grh.hop_limit = 1,
			.ah_attr.dlid = command->lid,
			.ah_attr.port_num = 1};

	switch (command->op) {
	case TO_RTR:
		attr.qp_state = IBV_QPS_RTR;
		return ibv_modify_qp(qp, &attr, RTR_MASK);
	case TO_RTS:
		attr.qp_state = IBV_QPS_RTS;
		return ibv_modify_qp(qp, &attr, RTS_MASK);
	case TO_RESET:
		attr.qp_state = IBV_QPS_RESET;
		return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	default:
		return ibv_modify_qp(qp, &attr, INIT_MASK);
	}
}

static void
query(struct ibv_qp *qp, struct reply *reply)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	reply->err = ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init);
	if (reply->err != 0)
		return;
	reply->state = attr.qp_state;
	reply->a = attr.dest_qp_num;
	HOLDS(init.qp_type == IBV_QPT_XRC_RECV);
	if (attr.qp_state == IBV_QPS_RTR)
		HOLDS(attr.qp_access_flags == IBV_ACCESS_REMOTE_WRITE &&
				attr.ah_attr.port_num == 1);
}

static void
get_event(struct reply *reply)
{
	struct ibv_async_event event;

	HOLDS(ibv_get_async_event(own.context, &event) == 0);
	reply->a = event.event_type;
	while (own.qp[reply->b] != event.element.qp)
		HOLDS(++reply->b < NB_QPS);
	ibv_ack_async_event(&event);
}

static void
execute(const struct command *command, struct reply *reply)
{
	switch (command->op) {
	case CLOSE_DOMAIN:
		reply->err = ibv_close_xrcd(own.xrcd);
		if (reply->err == 0)
			own.xrcd = NULL;
		break;
	case OPEN:
		reply->err = open_qp(command->a, command->b);
		break;
	case OPEN_FORKING:
		reply->err = open_forking(command->a, command->b);
		break;
	case DESTROY:
		reply->err = destroy(command->a);
		break;
	case QUERY:
		query(own.qp[command->a], reply);
		break;
	case GET_EVENT:
		get_event(reply);
		break;
	default:
		reply->err = modify(own.qp[command->a], command);
	}
}

#define OK(child, op, a, b)          HOLDS(call(child, op, a, b).err == 0)
#define FAILS(child, op, a, b, err_) HOLDS(call(child, op, a, b).err == (err_))

static struct child a, b, c, spare, forking;
static uint32_t srqn;

/* Connect this process to a QP by a handle of another process; to RTS, or RTR. */
static void
connect_by(const struct child *by, uint32_t slot, uint32_t number, const struct reply *owner,
		bool is_to_rts)
{
	struct ibv_qp_attr attr = {.qp_access_flags = 0,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = number,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.ah_attr.is_global = network != NULL,
			.ah_attr.grh.dgid = owner->gid,
			.ah_attr.grh.hop_limit = 1};
	const struct command to_rtr = {.op = TO_RTR,
			.a = slot,
			.b = own.qp[0]->qp_num,
			.gid = own.gid,
			.lid = own.lid};

	OK(by, TO_RESET, slot, 0);
	OK(by, TO_INIT, slot, 0);
	order(by, to_rtr);
	HOLDS(result(by).err == 0);
	if (is_to_rts)
		OK(by, TO_RTS, slot, 0);
	reset_qp(own.qp[0]);
	connect_qp_at(own.qp[0], attr, owner->lid);
}

/* The SRQ of C receives a message to the connected QP. */
static void
message_arrives(void)
{
	struct ibv_sge sge = {(uintptr_t)own.mem, SMALL, own.mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};

	call(&c, POST, 0, SMALL);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.qp_type.xrc.remote_srqn = srqn;
	HOLDS(ibv_post_send(own.qp[0], &wr, &bad) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	HOLDS(call(&c, WAIT, 0, 0).wc.status == IBV_WC_SUCCESS);
}

/* State, and the peer's number, of a handle. */
static void
state_is(const struct child *by, uint32_t slot, enum ibv_qp_state state)
{
	const struct reply reply = call(by, QUERY, slot, 0);

	HOLDS(reply.err == 0 && reply.state == state);
	HOLDS(state < IBV_QPS_RTR || reply.a == own.qp[0]->qp_num);
}

/* B connects the QP of A; both see it. Errors are those of a QP of the process. */
static uint32_t
opener_connects(void)
{
	const struct reply owner = call(&a, CREATE_QP, 0, 0);

	OK(&b, OPEN, 0, owner.a);
	OK(&c, OPEN, 0, owner.a);
	state_is(&b, 0, IBV_QPS_RESET);
	FAILS(&b, TO_RTS, 0, 0, EINVAL);
	FAILS(&a, TO_RTS, 0, 0, EINVAL);
	connect_by(&b, 0, owner.a, &owner, false);
	state_is(&a, 0, IBV_QPS_RTR);
	state_is(&c, 0, IBV_QPS_RTR);
	FAILS(&c, TO_INIT, 0, 0, EINVAL);
	message_arrives();
	HOLDS(call(&b, GET_EVENT, 0, 0).a == IBV_EVENT_COMM_EST);
	HOLDS(call(&c, GET_EVENT, 0, 0).a == IBV_EVENT_COMM_EST);
	OK(&c, TO_RTS, 0, 0);
	state_is(&b, 0, IBV_QPS_RTS);
	message_arrives();
	return owner.a;
}

/* The QP of the previous test remains without a handle of A, and without its domain. */
static void
creator_destroys_first(uint32_t number)
{
	OK(&a, DESTROY, 0, 0);
	message_arrives();
	OK(&a, CLOSE_DOMAIN, 0, 0);
	message_arrives();
	state_is(&b, 0, IBV_QPS_RTS);
	OK(&a, OPEN_DOMAIN, 0, 0);
	OK(&a, OPEN, 0, number);
	state_is(&a, 0, IBV_QPS_RTS);
	FAILS(&a, CLOSE_DOMAIN, 0, 0, EBUSY);
}

/* The number of a QP that no process holds is not found. */
static void
ends_with_its_last_handle(uint32_t number)
{
	OK(&b, DESTROY, 0, 0);
	OK(&c, DESTROY, 0, 0);
	message_arrives();
	OK(&a, DESTROY, 0, 0);
	FAILS(&a, OPEN, 0, number, EINVAL);
	FAILS(&b, OPEN, 0, number, EINVAL);
}

static void
opener_destroys_first(void)
{
	const struct reply owner = call(&a, CREATE_QP, 0, 0);

	OK(&b, OPEN, 0, owner.a);
	OK(&b, OPEN, 1, owner.a);
	connect_by(&b, 1, owner.a, &owner, true);
	OK(&b, DESTROY, 0, 0);
	state_is(&b, 1, IBV_QPS_RTS);
	OK(&b, DESTROY, 1, 0);
	message_arrives();
	OK(&a, DESTROY, 0, 0);
	FAILS(&b, OPEN, 0, owner.a, EINVAL);
}

static void
wrong_qps_are_not_found(const struct child *user)
{
	const struct reply owner = call(&a, CREATE_QP, 0, 0);

	FAILS(&b, OPEN, 0, owner.a ^ 1, EINVAL);
	/* In the domain of another file. */
	OK(&spare, OPEN_DOMAIN, O_CREAT, ANOTHER);
	FAILS(&spare, OPEN, 0, owner.a, EINVAL);
	OK(&spare, CLOSE_DOMAIN, 0, 0);
	OK(&spare, OPEN_DOMAIN, 0, 0);
	if (user != NULL) {
		OK(user, OPEN_DOMAIN, O_CREAT, 0);
		FAILS(user, OPEN, 0, owner.a, EINVAL);
	}
	OK(&a, DESTROY, 0, 0);
}

/* Also if a child of the opener remains. The QP is released some time after the kill. */
static void
killed_opener_releases_the_qp(struct child *opener)
{
	const struct reply owner = call(&a, CREATE_QP, 0, 0);

	OK(opener, OPEN, 0, owner.a);
	OK(&a, DESTROY, 0, 0);
	call(opener, FORK, 0, 0);
	state_is(opener, 0, IBV_QPS_RESET);
	kill_child(opener);
	while (call(&b, OPEN, 0, owner.a).err == 0)
		OK(&b, DESTROY, 0, 0);
}

static void
killed_creator_ends_the_qp(void)
{
	const struct reply owner = call(&a, CREATE_QP, 1, 0);
	struct reply event;

	OK(&b, OPEN, 2, owner.a);
	kill_child(&a);
	event = call(&b, GET_EVENT, 0, 0);
	HOLDS(event.a == IBV_EVENT_QP_FATAL && event.b == 2);
	FAILS(&b, QUERY, 2, 0, EIO);
	FAILS(&b, TO_INIT, 2, 0, EIO);
	FAILS(&b, OPEN, 3, owner.a, EINVAL);
	OK(&b, DESTROY, 2, 0);
}

/* kill() returns before all threads of the process have stopped. */
static void
stop_creator(void)
{
	HOLDS(kill(c.pid, SIGSTOP) == 0);
	HOLDS(waitpid(c.pid, NULL, WUNTRACED) == c.pid);
}

/* The creator is stopped: calls fail after a time, and the handle works again later. */
static void
stopped_creator_is_not_waited_for(void)
{
	const struct reply owner = call(&c, CREATE_QP, 0, 0);

	OK(&b, OPEN, 0, owner.a);
	stop_creator();
	FAILS(&b, TO_INIT, 0, 0, ETIMEDOUT);
	FAILS(&b, OPEN, 1, owner.a, ETIMEDOUT);
	HOLDS(kill(c.pid, SIGCONT) == 0);
	state_is(&b, 0, IBV_QPS_INIT);
	stop_creator();
	OK(&b, DESTROY, 0, 0);
	HOLDS(kill(c.pid, SIGCONT) == 0);
	OK(&c, DESTROY, 0, 0);
	FAILS(&b, OPEN, 0, owner.a, EINVAL);
}

/* The child that the opener has made, while it waited, has no part in the connection. */
static void
opener_that_is_killed_while_it_opens_has_no_handle(void)
{
	const struct reply owner = call(&c, CREATE_QP, 0, 0);
	char byte;

	stop_creator();
	order(&forking, (struct command){.op = OPEN_FORKING, .a = 0, .b = owner.a});
	HOLDS(read(forked[0], &byte, 1) == 1);
	kill_child(&forking);
	HOLDS(kill(c.pid, SIGCONT) == 0);
	OK(&c, DESTROY, 0, 0);
	while (call(&b, OPEN, 0, owner.a).err == 0)
		OK(&b, DESTROY, 0, 0);
}

static void
start_all(void)
{
	file[0] = memfd_create("xrcd", MFD_CLOEXEC);
	file[1] = memfd_create("xrcd", MFD_CLOEXEC);
	HOLDS(file[0] >= 0 && file[1] >= 0 && pipe(life) == 0 && pipe(forked) == 0);
	/* Before this process has a device, which a child would inherit. */
	a = start(2, 0);
	b = start(3, 0);
	c = start(4, 0);
	spare = start(5, 0);
	forking = start(7, 0);
}

static void
open_requester(void)
{
	open_own(1);
	own.qp[0] = create_send_qp();
}

int
main(int argc, char **argv)
{
	const bool has_user = argc == 1 && geteuid() == 0;
	struct child user;
	uint32_t number;

	network = argc == 2 ? argv[1] : NULL;
	execute_more = execute;
	start_all();
	if (has_user)
		user = start(6, USER);
	open_requester();
	OK(&a, OPEN_DOMAIN, O_CREAT, 0);
	OK(&b, OPEN_DOMAIN, 0, 0);
	OK(&c, OPEN_DOMAIN, 0, 0);
	srqn = call(&c, CREATE_SRQ, 0, 0).a;
	number = opener_connects();
	creator_destroys_first(number);
	ends_with_its_last_handle(number);
	opener_destroys_first();
	wrong_qps_are_not_found(has_user ? &user : NULL);
	killed_opener_releases_the_qp(&spare);
	killed_creator_ends_the_qp();
	OK(&forking, OPEN_DOMAIN, 0, 0);
	opener_that_is_killed_while_it_opens_has_no_handle();
	if (network == NULL)
		stopped_creator_is_not_waited_for();
	if (has_user)
		end_child(&user);
	end_child(&b);
	end_child(&c);
	close_all();
}
