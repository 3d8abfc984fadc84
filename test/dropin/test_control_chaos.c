/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * rmem-ctl while a rule of chaos= has the port: up and thaw end what the rule does, down outlasts
 * it, and freeze and thaw leave a port that is down as it is. Each case is a process of its own.
 *
 * usage: test-control_chaos RMEM-CTL
 */

#include "own_qp.h"
#include "run_control.h"

#define RULE_MS 200

static char buf[64];
static const char *program;
static struct objects own;

/* A QP connected with itself, whose requests are packets, without a timeout. */
static struct ibv_qp *
create_qp(uint8_t timeout)
{
	struct ibv_qp *qp = create_rc(own.pd, own.cq, 4);

	HOLDS(qp != NULL);
	connect_own_for(qp, timeout, 7);
	return qp;
}

/* The first packet, which a rule hits: the request does not end. */
static struct ibv_qp *
hit_rule(void)
{
	struct ibv_qp *qp = create_qp(0);

	HOLDS(post_write(qp, own.mr, 0) == 0);
	return qp;
}

static void
write_succeeds(void)
{
	struct ibv_qp *qp = create_qp(18);

	HOLDS(post_write(qp, own.mr, 0) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

/* "port:PORT_ERR@nth:1@ms:600000" */
static void
up_ends_the_rule(void)
{
	struct ibv_qp *qp = hit_rule();

	expect_event(own.context, IBV_EVENT_PORT_ERR);
	control_prints(program, "port soft0 freeze", "port 1 DOWN, frozen");
	control_prints(program, "port soft0 thaw", "port 1 DOWN");
	control_prints(program, "port soft0 up", "port 1 ACTIVE");
	expect_event(own.context, IBV_EVENT_PORT_ACTIVE);
	HOLDS(port_state(own.context) == IBV_PORT_ACTIVE);
	HOLDS(ibv_destroy_qp(qp) == 0);
	write_succeeds();
}

/* "port:FREEZE@nth:1@ms:600000" */
static void
thaw_ends_the_rule(void)
{
	struct ibv_qp *qp = hit_rule();

	control_prints(program, "port soft0 thaw", "port 1 ACTIVE");
	HOLDS(ibv_destroy_qp(qp) == 0);
	write_succeeds();
}

/* "port:PORT_ERR@nth:1@ms:200": nothing is reported when the rule ends, if it ends after down. */
static void
down_outlasts_the_rule(void)
{
	struct ibv_qp *qp = hit_rule();
	uint64_t until = now_ns() + 2 * RULE_MS * 1000000;

	expect_event(own.context, IBV_EVENT_PORT_ERR);
	control_prints(program, "port soft0 down", "port 1 DOWN");
	while (now_ns() < until)
		HOLDS(port_state(own.context) == IBV_PORT_DOWN);
	control_prints(program, "port soft0 up", "port 1 ACTIVE");
	HOLDS(port_state(own.context) == IBV_PORT_ACTIVE);
	HOLDS(ibv_destroy_qp(qp) == 0);
	write_succeeds();
}

static void
run_case(void (*run)(void), const char *rule)
{
	char device[128];
	pid_t pid = fork();

	if (pid == 0) {
		snprintf(device, sizeof(device), "soft0,loop=1,control=1,chaos=%s", rule);
		HOLDS(setenv("RMEM_IBV", device, 1) == 0);
		own = open_objects(buf, sizeof(buf), 1);
		run();
		close_objects(&own);
		_exit(0);
	}
	wait_child(pid);
}

int
main(int argc, char **argv)
{
	HOLDS(argc == 2);
	program = argv[1];
	run_case(up_ends_the_rule, "port:PORT_ERR@nth:1@ms:600000");
	run_case(thaw_ends_the_rule, "port:FREEZE@nth:1@ms:600000");
	run_case(down_outlasts_the_rule, "port:PORT_ERR@nth:1@ms:200");
	return 0;
}
