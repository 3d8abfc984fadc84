/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A device with several ports: each has an address, a state and tables of its own. QPs send and
 * receive by their port only, and rmem-ctl and rules of chaos= let one port fail while the others
 * work. Over UDP, or shared memory of addresses or of the host.
 *
 * usage: test-ports RMEM-CTL udp | shm | host
 */

#include "run_control.h"
#include "two_sides.h"

#define OWN1  "127.0.16.103"
#define OWN2  "127.0.16.104"
#define OWN3  "127.0.16.105"
#define PEER1 "127.0.16.106"
#define PEER2 "127.0.16.107"
#define OTHER "127.0.16.108"
/* Of a device whose QPs exchange no packets. */
#define NEAR1 "127.0.16.110"
#define NEAR2 "127.0.16.111"
#define NEAR3 "127.0.16.112"

#define VENDOR_ERR_AH_PORT 35 /* RMEM_VENDOR_ERR_AH_PORT */

#define NB_OWN 3
#define NB_TWO 2

static const char *program;
static struct side near;
static bool is_udp, is_host;
/* The addresses of the ports, as the devices report them. */
static char own_ips[NB_OWN][INET_ADDRSTRLEN], peer_ips[NB_TWO][INET_ADDRSTRLEN];
static char near_ips[NB_TWO][INET_ADDRSTRLEN];

/* The status of a WRITE from a port of soft0 to a port of soft1, whose QP is at that port. */
static enum ibv_wc_status
write_status(uint8_t from, uint8_t to)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_RC);
	struct ibv_qp *peer = create_qp(&sides[1], IBV_QPT_RC);
	const struct ibv_sge sge = {(uintptr_t)sides[0].buf, 8, sides[0].mr->lkey};
	enum ibv_wc_status status;

	HOLDS(connect_rc(peer, qp, own_ips[from - 1], (struct place){to, 0, 0}) == 0);
	HOLDS(connect_rc(qp, peer, peer_ips[to - 1], (struct place){from, 0, 0}) == 0);
	status = write_to(qp, sge, (uintptr_t)sides[1].buf, sides[1].mr->rkey);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
	return status;
}

static enum ibv_port_state
state_of(struct ibv_context *context, uint8_t port_num)
{
	struct ibv_port_attr port;

	HOLDS(ibv_query_port(context, port_num, &port) == 0);
	return port.state;
}

static void
expect_event_of(struct ibv_context *context, enum ibv_event_type type, int port_num)
{
	struct ibv_async_event event;

	HOLDS(ibv_get_async_event(context, &event) == 0 && event.event_type == type);
	HOLDS(event.element.port_num == port_num);
	ibv_ack_async_event(&event);
}

static void
device_has_the_ports_of_its_addresses(void)
{
	struct ibv_gid_entry entries[64];
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	char path[80], line[64];
	union ibv_gid gid, own;
	__be16 pkey;
	FILE *file;
	uint8_t i;

	HOLDS(ibv_query_device(sides[0].context, &attr) == 0 && attr.phys_port_cnt == 3);
	HOLDS(ibv_query_gid_table(sides[0].context, entries, 64, 0) == 3);
	for (i = 1; i <= 3; i++) {
		own = gid_of(own_ips[i - 1]);
		HOLDS(state_of(sides[0].context, i) == IBV_PORT_ACTIVE);
		HOLDS(ibv_query_gid(sides[0].context, i, 0, &gid) == 0);
		HOLDS(memcmp(&gid, &own, sizeof(gid)) == 0);
		HOLDS(entries[i - 1].port_num == i && entries[i - 1].gid_index == 0);
		HOLDS(ibv_query_pkey(sides[0].context, i, 0, &pkey) == 0 && pkey == 0xffff);
		snprintf(path, sizeof(path), "/sys/class/infiniband/soft0/ports/%u/gids/0", i);
		file = fopen(path, "r");
		HOLDS(file != NULL && fgets(line, sizeof(line), file) != NULL);
		HOLDS(fclose(file) == 0);
		snprintf(path, sizeof(path), "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n",
				own.raw[12], own.raw[13], own.raw[14], own.raw[15]);
		HOLDS(strcmp(line, path) == 0);
	}
	HOLDS(ibv_query_port(sides[0].context, 4, &port) == EINVAL);
	HOLDS(access("/sys/class/infiniband/soft0/ports/4", F_OK) != 0);
}

static void
qps_exchange_by_their_ports(void)
{
	uint8_t from, to;

	for (from = 1; from <= 3; from++) {
		for (to = 1; to <= 2; to++)
			HOLDS(write_status(from, to) == IBV_WC_SUCCESS);
	}
}

/* A QP of port 1 is not reached by the address of port 2. */
static void
packets_to_another_port_are_lost(void)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_RC);
	struct ibv_qp *peer = create_qp(&sides[1], IBV_QPT_RC);
	const struct ibv_sge sge = {(uintptr_t)sides[0].buf, 8, sides[0].mr->lkey};

	is_loss_expected = true;
	memset(sides[0].buf, 0x5a, 8);
	memset(sides[1].buf, 0, 8);
	HOLDS(connect_rc(peer, qp, own_ips[0], (struct place){1, 0, 0}) == 0);
	HOLDS(connect_rc(qp, peer, peer_ips[1], (struct place){1, 0, 0}) == 0);
	HOLDS(write_to(qp, sge, (uintptr_t)sides[1].buf, sides[1].mr->rkey) ==
			IBV_WC_RETRY_EXC_ERR);
	HOLDS(memcmp(sides[1].buf, (const uint8_t[8]){0}, 8) == 0);
	is_loss_expected = false;
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
}

static void
ports_that_do_not_exist_are_refused(void)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_RC);
	struct ibv_ah_attr path = {
			.port_num = 4, .is_global = 1, .grh = {.dgid = gid_of(peer_ips[0])}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 2};

	HOLDS(connect_rc(qp, qp, peer_ips[0], (struct place){4, 0, 0}) == EINVAL);
	HOLDS(ibv_modify_qp(qp, &attr, INIT_MASK) == 0);
	/* The path has another port than the QP. */
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_256,
			.dest_qp_num = qp->qp_num,
			.ah_attr = path};
	attr.ah_attr.port_num = 1;
	HOLDS(ibv_modify_qp(qp, &attr, RTR_MASK) == EINVAL);
	HOLDS(ibv_create_ah(sides[0].pd, &path) == NULL && errno == EINVAL);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

static struct ibv_qp *
create_ud(const struct side *side, uint8_t port_num)
{
	struct ibv_qp *qp = create_qp(side, IBV_QPT_UD);

	start_ud_at(qp, QKEY, port_num);
	return qp;
}

static void
datagrams_are_answered_by_their_port(void)
{
	exchange_datagrams(create_ud(&sides[0], 2), create_ud(&sides[1], 1), own_ips[1],
			(struct place){.port_num = 2});
}

/* The status of a datagram from a QP at a port, by an address handle of another port. */
static void
expect_refused(const struct side *side, uint8_t qp_port, uint8_t ah_port, const char *to)
{
	struct ibv_ah_attr attr = {.port_num = ah_port,
			.is_global = 1,
			.grh = {.dgid = gid_of(to), .hop_limit = 64}};
	struct ibv_ah *ah = ibv_create_ah(side->pd, &attr);
	struct ibv_qp *qp = create_ud(side, qp_port);
	struct ibv_wc wc;

	HOLDS(ah != NULL);
	send_to(qp, ah, qp->qp_num);
	wc = wait_wc(side->cq);
	HOLDS(wc.status == IBV_WC_LOC_QP_OP_ERR && wc.vendor_err == VENDOR_ERR_AH_PORT);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_ah(ah) == 0);
}

static void
datagrams_by_another_port_are_refused(void)
{
	expect_refused(&sides[0], 2, 1, peer_ips[0]);
	expect_refused(&sides[0], 1, 3, peer_ips[0]);
	expect_refused(&near, 2, 1, near_ips[0]);
}

/* Only port 1 has multicast. A QP may get its port after it was attached, and can be detached. */
static void
multicast_is_of_port_1(void)
{
	const union ibv_gid group = gid_of("239.16.0.103");
	struct ibv_ah_attr path = {
			.port_num = 1, .is_global = 1, .dlid = 0xc001, .grh = {.dgid = group}};
	struct ibv_ah *ah = ibv_create_ah(near.pd, &path);
	struct ibv_qp *qp = create_qp(&near, IBV_QPT_UD), *other = create_ud(&near, 1);
	struct ibv_wc wc;

	HOLDS(ah != NULL);
	HOLDS(ibv_attach_mcast(qp, &group, path.dlid) == 0);
	HOLDS(ibv_attach_mcast(other, &group, path.dlid) == 0);
	start_ud_at(qp, QKEY, 2);
	post_recv(qp, &near);
	post_recv(other, &near);
	send_to(other, ah, 0xffffff);
	/* In one process, a message is delivered before its request completes. */
	HOLDS(wait_wc(near.cq).qp_num == other->qp_num);
	HOLDS(wait_wc(near.cq).qp_num == other->qp_num);
	HOLDS(ibv_poll_cq(near.cq, 1, &wc) == 0);
	HOLDS(ibv_detach_mcast(qp, &group, path.dlid) == 0);
	HOLDS(ibv_attach_mcast(qp, &group, path.dlid) == EINVAL);
	HOLDS(ibv_detach_mcast(other, &group, path.dlid) == 0);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_ah(ah) == 0);
}

/* Status of a WRITE from port 1 to a QP at port 2, with an address of a port. */
static enum ibv_wc_status
near_status(const char *to)
{
	const struct ibv_sge sge = {(uintptr_t)near.buf, 8, near.mr->lkey};
	struct ibv_qp *qp = create_qp(&near, IBV_QPT_RC), *peer = create_qp(&near, IBV_QPT_RC);
	enum ibv_wc_status status;

	HOLDS(connect_rc(peer, qp, near_ips[0], (struct place){2, 0, 0}) == 0);
	HOLDS(connect_rc(qp, peer, to, (struct place){1, 0, 0}) == 0);
	status = write_to(qp, sge, (uintptr_t)near.buf + 64, near.mr->rkey);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
	return status;
}

/* As those that exchange packets. */
static void
qps_of_one_device_are_reached_by_their_ports(void)
{
	HOLDS(near_status(near_ips[1]) == IBV_WC_SUCCESS);
	is_loss_expected = true;
	HOLDS(near_status(near_ips[0]) == IBV_WC_RETRY_EXC_ERR);
	is_loss_expected = false;
}

/* The peer does not refer to the QP any more, whose memory another one may have. */
static void
qp_ends_after_the_gid_of_its_peer(void)
{
	const struct ibv_sge sge = {(uintptr_t)near.buf, 8, near.mr->lkey};
	struct ibv_qp *qp = create_qp(&near, IBV_QPT_RC), *peer = create_qp(&near, IBV_QPT_RC);

	control_prints(program, "gid soft2:2 add " NEAR3, "");
	HOLDS(connect_rc(qp, peer, NEAR3, (struct place){1, 0, 0}) == 0);
	is_loss_expected = true;
	HOLDS(connect_rc(peer, qp, NEAR1, (struct place){2, 0, 0}) == 0);
	is_loss_expected = false;
	HOLDS(write_to(peer, sge, (uintptr_t)near.buf + 64, near.mr->rkey) == IBV_WC_SUCCESS);
	control_prints(program, "gid soft2:2 del " NEAR3, "");
	HOLDS(ibv_destroy_qp(qp) == 0);
	qp = create_qp(&near, IBV_QPT_RC);
	HOLDS(connect_rc(qp, qp, NEAR1, (struct place){1, 0, 0}) == 0);
	HOLDS(write_to(peer, sge, (uintptr_t)near.buf + 64, near.mr->rkey) == IBV_WC_RETRY_EXC_ERR);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
}

static void
one_port_is_down_and_the_others_work(void)
{
	control_prints(program, "port soft0:2 down", "port 1 ACTIVE; port 2 DOWN; port 3 ACTIVE");
	expect_event_of(sides[0].context, IBV_EVENT_PORT_ERR, 2);
	HOLDS(state_of(sides[0].context, 1) == IBV_PORT_ACTIVE);
	HOLDS(state_of(sides[0].context, 2) == IBV_PORT_DOWN);
	HOLDS(write_status(1, 1) == IBV_WC_SUCCESS && write_status(3, 2) == IBV_WC_SUCCESS);
	is_loss_expected = true;
	HOLDS(write_status(2, 1) == IBV_WC_RETRY_EXC_ERR);
	control_prints(program, "port soft0:3 freeze",
			"port 1 ACTIVE; port 2 DOWN; port 3 ACTIVE, frozen");
	HOLDS(write_status(3, 2) == IBV_WC_RETRY_EXC_ERR);
	is_loss_expected = false;
	control_prints(program, "port soft0:3 thaw", "port 1 ACTIVE; port 2 DOWN; port 3 ACTIVE");
	control_prints(program, "port soft0:2 up", "port 1 ACTIVE; port 2 ACTIVE; port 3 ACTIVE");
	expect_event_of(sides[0].context, IBV_EVENT_PORT_ACTIVE, 2);
	HOLDS(write_status(2, 1) == IBV_WC_SUCCESS && write_status(3, 2) == IBV_WC_SUCCESS);
}

static void
gids_of_ports_differ(void)
{
	const union ibv_gid other = gid_of(OTHER);
	union ibv_gid gid;

	control_prints(program, "gid soft0:2 add " OTHER, "");
	expect_event_of(sides[0].context, IBV_EVENT_GID_CHANGE, 2);
	HOLDS(ibv_query_gid(sides[0].context, 2, 1, &gid) == 0);
	HOLDS(memcmp(&gid, &other, sizeof(gid)) == 0);
	HOLDS(ibv_query_gid(sides[0].context, 1, 1, &gid) == 0);
	HOLDS(memcmp(&gid, &other, sizeof(gid)) != 0);
	control_prints(program, "gid soft0:2 del " OTHER, "");
	expect_event_of(sides[0].context, IBV_EVENT_GID_CHANGE, 2);
}

static void
pkeys_of_ports_differ(void)
{
	__be16 pkey;

	control_prints(program, "pkey soft0:3 add 0x8001", "");
	expect_event_of(sides[0].context, IBV_EVENT_PKEY_CHANGE, 3);
	HOLDS(ibv_query_pkey(sides[0].context, 3, 1, &pkey) == 0 && pkey == htons(0x8001));
	HOLDS(ibv_get_pkey_index(sides[0].context, 1, htons(0x8001)) == -1);
}

static void
wrong_commands_are_refused(void)
{
	control_refuses(program, "port soft0:4 down", 1, "no port 4: ports 1 to 3");
	control_refuses(program, "port soft0:0 down", 1, "no port 0: ports 1 to 3");
	control_refuses(program, "pkey soft0:9 add 1", 1, "no port 9: ports 1 to 3");
	control_refuses(program, "mtu soft0:2 512", 2, "all ports of a device have one MTU");
}

static void
wrong_gids_are_refused(void)
{
	control_refuses(program, "gid soft0:2 del " OWN2, 1, "the first one, of ip=, stays");
	control_refuses(program, "gid soft0:1 add " OWN3, 1, "a device has the address");
	control_refuses(program, "gid soft0:3 del " OWN2, 1, "not in the table");
}

/* The rule of soft1 counts the packets of port 2 alone: those are the answers to WRITEs. */
static void
rule_lets_one_port_fail(void)
{
	expect_event_of(sides[1].context, IBV_EVENT_PORT_ERR, 2);
	expect_event_of(sides[1].context, IBV_EVENT_PORT_ACTIVE, 2);
}

/* Open a device with the addresses of its ports, as arguments unless it chooses them. */
static void
open_ports(struct side *side, const char *name, const char *const wanted[],
		char ips[][INET_ADDRSTRLEN], int nb)
{
	union ibv_gid gid;
	int i;

	open_side(side, name);
	for (i = 0; i < nb; i++) {
		HOLDS(ibv_query_gid(side->context, (uint8_t)(i + 1), 0, &gid) == 0);
		HOLDS(inet_ntop(AF_INET, gid.raw + 12, ips[i], INET_ADDRSTRLEN) != NULL);
		HOLDS(is_host || strcmp(ips[i], wanted[i]) == 0);
	}
}

static void
open_devices(const char *transport)
{
	const char *own = OWN1 ";" OWN2 ";" OWN3, *peers = PEER1 ";" PEER2,
		   *nears = NEAR1 ";" NEAR2;
	char devices[512], port[48] = "";

	is_udp = strcmp(transport, "udp") == 0;
	is_host = strcmp(transport, "host") == 0;
	if (is_host) {
		own = "host;host;host";
		peers = nears = "host;host";
	} else if (!is_udp) {
		snprintf(port, sizeof(port), ",port=shm:ports%d", (int)getpid());
	}
	snprintf(devices, sizeof(devices),
			"soft0,ip=%s%s,loop=1,control=1"
			"|soft1,ip=%s%s,loop=1,chaos=port:PORT_ERR@port:2@nth:1@ms:5"
			"|soft2,ip=%s%s,control=1",
			own, port, peers, port, nears, port);
	HOLDS(setenv("RMEM_IBV", devices, 1) == 0);
	open_ports(&sides[0], "soft0", (const char *[]){OWN1, OWN2, OWN3}, own_ips, NB_OWN);
	open_ports(&sides[1], "soft1", (const char *[]){PEER1, PEER2}, peer_ips, NB_TWO);
	open_ports(&near, "soft2", (const char *[]){NEAR1, NEAR2}, near_ips, NB_TWO);
}

int
main(int argc, char **argv)
{
	HOLDS(argc == 3);
	program = argv[1];
	open_devices(argv[2]);
	device_has_the_ports_of_its_addresses();
	HOLDS(write_status(1, 1) == IBV_WC_SUCCESS);
	(void)write_status(1, 2);
	rule_lets_one_port_fail();
	qps_exchange_by_their_ports();
	packets_to_another_port_are_lost();
	ports_that_do_not_exist_are_refused();
	datagrams_are_answered_by_their_port();
	datagrams_by_another_port_are_refused();
	multicast_is_of_port_1();
	qps_of_one_device_are_reached_by_their_ports();
	one_port_is_down_and_the_others_work();
	pkeys_of_ports_differ();
	wrong_commands_are_refused();
	if (is_udp) {
		qp_ends_after_the_gid_of_its_peer();
		gids_of_ports_differ();
		wrong_gids_are_refused();
	}
	close_side(&sides[0]);
	close_side(&sides[1]);
	close_side(&near);
	return 0;
}
