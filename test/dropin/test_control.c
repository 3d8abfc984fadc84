/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * rmem-ctl on a verbs program, which runs it itself: a port that is down or frozen loses packets, a
 * QP and the device fail, with the events of a NIC; wrong commands are refused.
 *
 * usage: test-control RMEM-CTL
 */

#include "own_qp.h"
#include "run_control.h"

#define POLLS 1000

static char buf[64];
static const char *program;
static struct objects own;

/* Without an effect on the port. */
static void
refuses(const char *words, int status, const char *reason)
{
	control_refuses(program, words, status, reason);
	control_prints(program, "list", "port 1 ACTIVE");
}

/* A QP connected with itself, whose requests are packets. */
static struct ibv_qp *
create_qp(uint8_t timeout)
{
	struct ibv_qp *qp = create_rc(own.pd, own.cq, 4);

	HOLDS(qp != NULL);
	connect_own_for(qp, timeout, 1);
	return qp;
}

static void
port_that_is_down_ends_requests(void)
{
	struct ibv_qp *qp = create_qp(1);

	control_prints(program, "port soft0 down", "port 1 DOWN");
	expect_event(own.context, IBV_EVENT_PORT_ERR);
	HOLDS(port_state(own.context) == IBV_PORT_DOWN);
	HOLDS(post_write(qp, own.mr, 0) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_RETRY_EXC_ERR);
	control_prints(program, "port soft0:1 up", "port 1 ACTIVE");
	expect_event(own.context, IBV_EVENT_PORT_ACTIVE);
	HOLDS(port_state(own.context) == IBV_PORT_ACTIVE);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

/* Without a timeout, so that the request waits for as long as that takes. */
static void
frozen_port_delays_requests(void)
{
	struct ibv_qp *qp = create_qp(0);
	struct ibv_wc wc;
	int i;

	control_prints(program, "port soft0 freeze", "port 1 ACTIVE, frozen");
	HOLDS(port_state(own.context) == IBV_PORT_ACTIVE);
	HOLDS(post_write(qp, own.mr, 0) == 0);
	for (i = 0; i < POLLS; i++)
		HOLDS(ibv_poll_cq(own.cq, 1, &wc) == 0);
	control_prints(program, "port soft0 thaw", "port 1 ACTIVE");
	HOLDS(ibv_destroy_qp(qp) == 0);
	qp = create_qp(14);
	HOLDS(post_write(qp, own.mr, 0) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

static void
killed_qp_flushes(void)
{
	struct ibv_qp *qp = create_qp(14), *other = create_qp(14);
	struct ibv_recv_wr *bad, recv = {.wr_id = 1};
	struct ibv_async_event event;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	char words[64];

	HOLDS(ibv_post_recv(qp, &recv, &bad) == 0);
	snprintf(words, sizeof(words), "kill-qp soft0 0x%x", qp->qp_num);
	control_prints(program, words, "");
	HOLDS(ibv_get_async_event(own.context, &event) == 0);
	HOLDS(event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == qp);
	ibv_ack_async_event(&event);
	HOLDS(wait_wc(own.cq).status == IBV_WC_WR_FLUSH_ERR);
	HOLDS(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR);
	refuses(words, 1, "is in RESET or ERR");
	HOLDS(post_write(other, own.mr, 0) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(other) == 0);
}

static void
wrong_commands_are_refused(void)
{
	char text[TEXT];

	refuses("port soft0:2 down", 1, "no port 2: port 1 only");
	refuses("port soft0 sideways", 2, "sideways is not down, up, freeze or thaw");
	refuses("port soft7 down", 1, "no device soft7 with control=1");
	refuses("kill-qp soft0 7", 1, "no QP 7");
	refuses("kill-qp soft0 seven", 2, "seven is not a number");
	refuses("kill-qp soft0 010", 1, "no QP 10");
	refuses("explode", 2, "unknown command: explode");
	if (getuid() != 0)
		return;
	HOLDS(run_control(program, "setpriv --reuid=65534 --regid=65534 --clear-groups",
			      "port soft0 down", text) == 1);
	HOLDS(strstr(text, "the process belongs to user 0") != NULL &&
			port_state(own.context) == IBV_PORT_ACTIVE);
}

static void
failed_device_is_fatal(void)
{
	struct ibv_qp *qp = create_qp(14);
	char text[TEXT];

	control_prints(program, "fatal soft0", "");
	expect_event(own.context, IBV_EVENT_DEVICE_FATAL);
	control_prints(program, "list", "failed");
	HOLDS(run_control(program, "", "port soft0 down", text) == 1);
	HOLDS(strstr(text, "the device has failed") != NULL);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

int
main(int argc, char **argv)
{
	HOLDS(argc == 2);
	program = argv[1];
	HOLDS(setenv("RMEM_IBV", "soft0,loop=1,control=1", 1) == 0);
	own = open_objects(buf, sizeof(buf), 1);
	port_that_is_down_ends_requests();
	frozen_port_delays_requests();
	killed_qp_flushes();
	wrong_commands_are_refused();
	failed_device_is_fatal();
	close_objects(&own);
	return 0;
}
