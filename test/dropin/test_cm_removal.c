/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A device that fails while IDs of rdma_cm have it, by rmem-ctl or by a rule of chaos=: each gets
 * DEVICE_REMOVAL once, as with the kernel, and no ID is bound to the device any more; IDs of
 * another device have no event. Over the wire, and among the processes of a host.
 *
 * usage: test-cm_removal RMEM-CTL
 */

#include "cm_cmd.h"
#include "own_qp.h"
#include "run_control.h"

#define ADDR0 "127.0.16.100"
#define ADDR1 "127.0.16.101"
#define NB    4

static char buf[64];
static const char *program;
static struct objects own;
static int fd;

static uint32_t
bound(const char *ip)
{
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	HOLDS(cm_bind(fd, id, ip, 0) == 0);
	return id;
}

static uint32_t
listener(const char *ip, uint16_t *port)
{
	uint32_t id = bound(ip);

	HOLDS(cm_listen(fd, id, 0) == 0);
	*port = cm_port(fd, id);
	return id;
}

/* In the order of the IDs. */
static void
expect_removals(const uint32_t *ids, int nb)
{
	int i;

	for (i = 0; i < nb; i++)
		HOLDS(cm_expect_next(fd, DEVICE_REMOVAL).id == ids[i]);
	HOLDS(!is_readable(fd));
	for (i = 0; i < nb; i++) {
		HOLDS(cm_listen(fd, ids[i], 0) == ENXIO);
		HOLDS(cm_destroy(fd, ids[i]) >= 1);
		HOLDS(cm_destroy(fd, ids[i]) == -1 && errno == ENOENT);
	}
}

/* IDs that are bound, that listen, that are resolved, and that have sent a request. */
static void
each_id_of_the_device_gets_the_event(const char *ip, void (*fail)(void))
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t ids[NB], child, late;
	uint16_t port;

	ids[0] = bound(ip);
	ids[1] = listener(ip, &port);
	ids[2] = bound(ip);
	HOLDS(cm_resolve_addr(fd, ids[2], ip, port) == 0);
	HOLDS(cm_expect_next(fd, ADDR_RESOLVED).id == ids[2]);
	ids[3] = bound(ip);
	HOLDS(cm_resolve_addr(fd, ids[3], ip, port) == 0);
	HOLDS(cm_expect_next(fd, ADDR_RESOLVED).id == ids[3]);
	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE,
			      &(struct rdma_ucm_resolve_route){.id = ids[3], .timeout_ms = 1000},
			      sizeof(struct rdma_ucm_resolve_route), 0) == 0);
	HOLDS(cm_expect_next(fd, ROUTE_RESOLVED).id == ids[3]);
	HOLDS(cm_connect(fd, ids[3], &param) == 0);
	/* It has no uid before it is accepted, and so no event. */
	child = cm_expect_next(fd, CONNECT_REQUEST).id;
	fail();
	expect_event(own.context, IBV_EVENT_DEVICE_FATAL);
	expect_removals(ids, NB);
	HOLDS(cm_accept(fd, child, 1000, &param) == ENXIO);
	HOLDS(cm_destroy(fd, child) == 0);
	late = cm_create(fd, RDMA_PS_TCP);
	HOLDS(cm_bind(fd, late, ip, 0) == ENODEV);
	HOLDS(cm_destroy(fd, late) == 0);
}

static void
by_control(void)
{
	control_prints(program, "fatal soft0", "");
}

/* A rule fails the device at the first packet: QPs of one process exchange packets with loop=1. */
static void
by_rule(void)
{
	struct ibv_qp *qp = create_rc(own.pd, own.cq, 4);

	HOLDS(qp != NULL);
	connect_own_for(qp, 14, 7);
	HOLDS(post_write(qp, own.mr, 0) == 0);
	HOLDS(wait_wc(own.cq).status != IBV_WC_SUCCESS);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

static void
of_host_by_control(void)
{
	own.context = open_device("soft0");
	each_id_of_the_device_gets_the_event(LOOPBACK, by_control);
}

static void
of_host_by_rule(void)
{
	own = open_objects(buf, sizeof(buf), 1);
	each_id_of_the_device_gets_the_event(LOOPBACK, by_rule);
	close_objects(&own);
}

/* Its events of before are not lost, and a connection can be made with another device. */
static void
of_wire_beside_another(void)
{
	uint32_t kept = cm_create(fd, RDMA_PS_TCP), other;
	uint16_t port;

	own.context = open_device("soft0");
	HOLDS(cm_bind(fd, kept, ADDR1, 0) == 0);
	each_id_of_the_device_gets_the_event(ADDR0, by_control);
	HOLDS(!is_readable(fd));
	HOLDS(cm_listen(fd, kept, 0) == 0);
	port = cm_port(fd, kept);
	other = bound(ADDR1);
	HOLDS(cm_resolve_addr(fd, other, ADDR1, port) == 0);
	HOLDS(cm_expect_next(fd, ADDR_RESOLVED).id == other);
	HOLDS(cm_destroy(fd, other) == 1 && cm_destroy(fd, kept) == 0);
}

static void
run_case(void (*run)(void), const char *devices)
{
	pid_t pid = fork();

	if (pid == 0) {
		HOLDS(setenv("RMEM_IBV", devices, 1) == 0);
		fd = cm_open();
		run();
		HOLDS(close(fd) == 0);
		_exit(0);
	}
	wait_child(pid);
}

int
main(int argc, char **argv)
{
	HOLDS(argc == 2);
	program = argv[1];
	run_case(of_host_by_control, "soft0,control=1");
	run_case(of_host_by_rule, "soft0,loop=1,chaos=device:DEVICE_FATAL@nth:1");
	run_case(of_wire_beside_another, "soft0,ip=" ADDR0 ",control=1|soft1,ip=" ADDR1);
	return 0;
}
