/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Devices with ip=host use an address that no other process has; a LID is a path to it. */

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>

#include <rmem_ah.h>
#include <rmem_cq.h>
#include <rmem_dev_attr.h>
#include <rmem_pd.h>

#include "soft/wire/rwire.h"
#include "soft/wire/port/rwire_shm.h"

#include "../test.h"
#include "clock.h"
#include "host.h"

struct rmem_dev *host_dev;
struct rwire_addr host_address;
static uint16_t lid;

uint16_t
host_other_lid(uint16_t n)
{
	return (uint16_t)((lid + n - 1) % RWIRE_MAX_LID + 1);
}

static void
get_address(struct rmem_dev *of, struct rwire_addr *addr)
{
	struct rmem_dev_info info;

	TEST_OK(rmem_dev_info_get(of, &info));
	memcpy(addr->gid, info.gid, sizeof(addr->gid));
}

static void
setup_by(const char *args)
{
	struct rlimit limit;
	/* So few channels that other processes can open all of them in a moment. */
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = RTE_MIN(limit.rlim_cur, 4u * SHM_MIN_PEERS);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	TEST_OK(rmem_dev_create("soft0", args, &host_dev));
	get_address(host_dev, &host_address);
	lid = rwire_addr_lid(&host_address);
}

static void
setup(void)
{
	setup_by("ip=host,progress=poll");
}

static void
teardown(void)
{
	TEST_OK(rmem_dev_close(host_dev));
}

TEST(wire_host, each_lid_has_an_address)
{
	struct rwire_addr addr;
	uint32_t i;

	TEST_ASSERT(lid >= 1 && lid <= RWIRE_MAX_LID);
	for (i = 1; i <= RWIRE_MAX_LID; i++) {
		rwire_addr_of_lid((uint16_t)i, &addr);
		TEST_EQ(rwire_addr_lid(&addr), i);
		TEST_ASSERT(rwire_addr_is_unicast(&addr));
	}
	TEST_ASSERT(rwire_addr_parse("127.0.0.1", &addr));
	TEST_EQ(rwire_addr_lid(&addr), 0);
	TEST_ASSERT(rwire_addr_parse("127.76.192.0", &addr));
	TEST_EQ(rwire_addr_lid(&addr), 0);
}

TEST(wire_host, address_in_use_is_skipped)
{
	struct rwire_addr other;
	struct rmem_dev *second;

	TEST_OK(rmem_dev_create("soft1", "ip=host", &second));
	get_address(second, &other);
	TEST_OK(rmem_dev_close(second));
	TEST_ASSERT(rwire_addr_lid(&other) != 0);
	TEST_ASSERT(!rwire_addr_is_equal(&other, &host_address));
}

TEST(wire_host, port_attributes_are_those_of_infiniband)
{
	struct rmem_port_attr port;
	struct rmem_gid_entry entry;

	TEST_OK(rmem_dev_port_query(host_dev, 1, &port));
	TEST_EQ(port.link_layer, RMEM_LINK_LAYER_INFINIBAND);
	TEST_EQ(port.lid, lid);
	TEST_EQ(port.active_mtu, 5);
	TEST_OK(rmem_dev_gid_query(host_dev, 1, 0, &entry));
	TEST_EQ(entry.type, RMEM_GID_TYPE_IB);
	TEST_EQ(memcmp(entry.gid, host_address.gid, sizeof(host_address.gid)), 0);
}

/* Move a QP to RTR, to a peer that its LID alone addresses. */
static int
move_to_rtr(struct rmem_qp *qp, uint16_t dlid)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1};
	int ret = rmem_qp_modify(qp, &attr,
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS);

	attr.state = RMEM_QPS_RTR;
	attr.ah.port_num = 1;
	attr.ah.dlid = dlid;
	attr.path_mtu = 3;
	attr.dest_qp_num = 7;
	return ret != 0 ? ret
			: rmem_qp_modify(qp, &attr,
					  RMEM_QP_STATE | RMEM_QP_AV | RMEM_QP_PATH_MTU |
							  RMEM_QP_DEST_QPN | RMEM_QP_RQ_PSN |
							  RMEM_QP_MAX_DEST_RD_ATOMIC |
							  RMEM_QP_MIN_RNR_TIMER);
}

static void
open_path(struct host_path *path, const struct rwire_addr *to, uint8_t type)
{
	struct rmem_qp_conf conf = {.type = type, .max_send_wr = 4};
	struct rmem_qp_conn conn = {.remote.qp_num = 7, .timeout = 8, .retry_cnt = 7};
	struct rmem_cq_conf cq_conf = {.nb_cqe = 8};

	memcpy(conn.remote.gid, to->gid, sizeof(to->gid));
	TEST_OK(rmem_pd_alloc(host_dev, &path->pd));
	TEST_OK(rmem_cq_create(host_dev, &cq_conf, &path->cq));
	conf.send_cq = conf.recv_cq = path->cq;
	TEST_OK(rmem_qp_create(path->pd, &conf, &path->qp));
	TEST_OK(rmem_qp_connect(path->qp, &conn));
}

void
host_open_path(struct host_path *path, const struct rwire_addr *to)
{
	open_path(path, to, RMEM_QPT_RC);
}

void
host_close_path(const struct host_path *path)
{
	TEST_OK(rmem_qp_destroy(path->qp));
	TEST_OK(rmem_cq_destroy(path->cq));
	TEST_OK(rmem_pd_dealloc(path->pd));
}

TEST(wire_host, qp_is_connected_by_dlid)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 8};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC, .max_send_wr = 1, .max_recv_wr = 1};
	uint16_t other = (uint16_t)(lid % RWIRE_MAX_LID + 1);
	struct rwire_addr expected;
	struct rmem_qp_attr attr;
	struct rmem_pd *pd;
	struct rmem_qp *qp;

	TEST_OK(rmem_pd_alloc(host_dev, &pd));
	TEST_OK(rmem_cq_create(host_dev, &cq_conf, &conf.send_cq));
	conf.recv_cq = conf.send_cq;
	TEST_OK(rmem_qp_create(pd, &conf, &qp));
	TEST_EQ(move_to_rtr(qp, 0), -EINVAL);
	TEST_OK(rmem_qp_reset(qp));
	TEST_EQ(move_to_rtr(qp, RWIRE_MAX_LID + 1), -EINVAL);
	TEST_OK(rmem_qp_reset(qp));
	TEST_OK(move_to_rtr(qp, other));
	TEST_OK(rmem_qp_query(qp, &attr));
	rwire_addr_of_lid(other, &expected);
	TEST_EQ(memcmp(attr.remote.gid, expected.gid, sizeof(expected.gid)), 0);
	TEST_EQ(attr.remote.lid, other);
	TEST_EQ(attr.addr.lid, lid);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_cq_destroy(conf.send_cq));
	TEST_OK(rmem_pd_dealloc(pd));
}

/* Poll two timeouts later. */
static int
poll_late(struct rmem_qp *qp, struct rmem_wc *wc)
{
	test_clock.now += 2 * ((const struct rsoft_qp *)qp)->wire->req.timeout;
	return rmem_poll_cq(qp->send_cq, wc, 1);
}

static uint64_t
count_timeouts(void)
{
	struct rmem_dev_stats stats;

	return rmem_dev_stats_get(host_dev, &stats) == 0 ? stats.wire_timeouts : UINT64_MAX;
}

/* Post four WRITEs of no bytes, and accept their channel as a peer that reads the ring by hand. */
static struct rwire_ring *
post_to(struct rmem_qp *qp, int listener, int *fd)
{
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE, .flags = RMEM_SEND_SIGNALED};
	struct rwire_ring *ring = NULL;
	struct rwire_addr from;
	uint32_t version, uid;
	int i;

	for (i = 0; i < 4; i++) {
		if (rmem_post_send(qp, &wr, 1) != 1)
			return NULL;
	}
	do
		*fd = rwire_shm_accept(SHM_HOST, listener, &uid);
	while (*fd == -EAGAIN);
	while (rwire_shm_receive(*fd, &from, &ring, &version) == -EAGAIN)
		;
	return ring;
}

static void
check_retries(struct rmem_qp *qp, struct rwire_ring *ring)
{
	struct rmem_wc wc = {0};
	uint32_t i;

	for (i = 1; i <= 4; i++) {
		TEST_EQ(poll_late(qp, &wc), 0);
		TEST_EQ(count_timeouts(), 0);
		__atomic_store_n(&ring->head, i, __ATOMIC_RELAXED);
	}
	/* All were read, and none is answered. */
	for (i = 0; i < 100 && poll_late(qp, &wc) == 0; i++)
		;
	TEST_EQ(wc.status, RMEM_WC_RETRY_EXC_ERR);
	TEST_ASSERT(i < 20);
}

TEST(wire_host, unread_packets_cause_no_retry)
{
	struct rwire_addr peer;
	struct rwire_ring *ring;
	struct host_path path;
	int fd = -1, ret, listener = rwire_shm_listen_host(&peer);

	TEST_ASSERT(listener >= 0);
	host_open_path(&path, &peer);
	clock_stop();
	ring = post_to(path.qp, listener, &fd);
	TEST_ASSERT(ring != NULL);
	ret = TEST_TRY(check_retries(path.qp, ring));
	clock_run();
	close(fd);
	close(listener);
	rwire_shm_unmap(ring);
	host_close_path(&path);
	TEST_RUN(ret);
}

TEST(wire_host, ip_host_refuses_a_udp_port)
{
	struct rmem_dev *second;

	TEST_EQ(rmem_dev_create("soft1", "ip=host,port=udp", &second), -EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=host;127.0.0.1", &second), -EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=host;host;host;host;host", &second), -EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=host,port=shm:a", &second), -EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=host,share=1", &second), -EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=host,neigh=127.0.0.1@02:00:00:00:00:01", &second),
			-EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=127.0.0.1,port=shm:" SHM_HOST, &second), -EINVAL);
}

TEST(wire_host, names_with_other_characters_are_refused)
{
	TEST_ASSERT(rwire_shm_name_is_valid("a"));
	TEST_ASSERT(rwire_shm_name_is_valid("My-app_1.0"));
	TEST_ASSERT(rwire_shm_name_is_valid("1234567890123456789012345678901"));
	TEST_ASSERT(!rwire_shm_name_is_valid("12345678901234567890123456789012"));
	TEST_ASSERT(!rwire_shm_name_is_valid(""));
	TEST_ASSERT(!rwire_shm_name_is_valid("a/b"));
	TEST_ASSERT(!rwire_shm_name_is_valid("a b"));
	TEST_ASSERT(!rwire_shm_name_is_valid(SHM_HOST));
}

TEST_SUITE(wire_host, setup, teardown);

/* A channel to the device, when the device has read its ring. */
static void
open_channel(const struct rwire_addr *from, int *fd, struct rwire_ring **ring)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	uint32_t uid;

	TEST_OK(rwire_shm_connect(SHM_HOST, from, &host_address, fd, ring, &uid, NULL));
	while (__atomic_load_n(&(*ring)->is_asleep, __ATOMIC_RELAXED) == 0)
		wire->port->ops->rx_sleep(wire->port);
}

/* In a child: a thread that the child does not have may have had the lock of the users. */
TEST(wire_host, port_is_closed_in_a_child_while_users_are_locked)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	const struct rlimit limit = {.rlim_cur = 5, .rlim_max = 5}; /* s of its CPU */
	uint32_t sent, taken;
	struct rwire_ring *ring;
	struct rwire_addr peer;
	int fd = -1, status = 0, listener = rwire_shm_listen_host(&peer);
	pid_t pid;

	TEST_ASSERT(listener >= 0);
	open_channel(&peer, &fd, &ring);
	TEST_ASSERT(wire->port->ops->tx_get(wire->port, &peer) != NULL);
	TEST_ASSERT(wire->port->ops->tx_count(wire->port, &peer, &sent, &taken));
	rte_ticketlock_lock(&wire->owners.lock);
	pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_CPU, &limit);
		wire->port->ops->close(wire->port);
		_exit(0);
	}
	rte_ticketlock_unlock(&wire->owners.lock);
	TEST_EQ(waitpid(pid, &status, 0), pid);
	rwire_shm_unmap(ring);
	close(fd);
	close(listener);
	TEST_EQ(status, 0);
}

#define QKEY 0x1234u

/* A QP of UD, in RTS. */
static void
open_ud(struct host_path *path)
{
	struct rmem_qp_conf conf = {.type = RMEM_QPT_UD, .max_send_wr = 4};
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct rmem_cq_conf cq_conf = {.nb_cqe = 8};

	TEST_OK(rmem_pd_alloc(host_dev, &path->pd));
	TEST_OK(rmem_cq_create(host_dev, &cq_conf, &path->cq));
	conf.send_cq = conf.recv_cq = path->cq;
	TEST_OK(rmem_qp_create(path->pd, &conf, &path->qp));
	TEST_OK(rmem_qp_modify(path->qp, &attr,
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY));
	attr.state = RMEM_QPS_RTR;
	TEST_OK(rmem_qp_modify(path->qp, &attr, RMEM_QP_STATE));
	attr.state = RMEM_QPS_RTS;
	TEST_OK(rmem_qp_modify(path->qp, &attr, RMEM_QP_STATE | RMEM_QP_SQ_PSN));
}

/*
 * How many SENDs complete, at the time of the virtual clock; nb of them are posted, of UD to an
 * address handle, of UC to NULL.
 */
static int
send_messages(const struct host_path *path, struct rmem_ah *to, int nb)
{
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND,
			.flags = RMEM_SEND_SIGNALED,
			.ud = {.ah = to, .remote_qpn = 7, .remote_qkey = QKEY}};
	int i, nb_done = 0;
	struct rmem_wc wc;

	for (i = 0; i < nb; i++) {
		if (rmem_post_send(path->qp, &wr, 1) != 1)
			break;
		nb_done += rmem_poll_cq(path->cq, &wc, 1);
	}
	for (i = 0; i < 10; i++)
		nb_done += rmem_poll_cq(path->cq, &wc, 1);
	return nb_done;
}

static void
check_unread_peer(const struct host_path *path, struct rmem_ah *unread, struct rmem_ah *other)
{
	struct rmem_dev_stats stats;

	TEST_EQ(send_messages(path, unread, RWIRE_RING_SLOTS), (int)RWIRE_RING_SLOTS);
	TEST_EQ(send_messages(path, unread, 1), 0);
	test_clock.now += rte_get_tsc_hz();
	TEST_EQ(send_messages(path, unread, 0), 1);
	TEST_EQ(send_messages(path, other, 1), 1);
	TEST_EQ(send_messages(path, unread, 1), 1);
	TEST_EQ(send_messages(path, other, 1), 1);
	TEST_OK(rmem_dev_stats_get(host_dev, &stats));
	TEST_EQ(stats.drop_no_peer, 2);
}

static void
expect_one_delay(void)
{
	struct rmem_ah_attr attr = {.port_num = 1};
	struct host_path path;
	struct rwire_addr addr;
	struct rmem_ah *ah[2];
	int i, ret, listener[2];

	open_ud(&path);
	for (i = 0; i < 2; i++) {
		listener[i] = rwire_shm_listen_host(&addr);
		TEST_ASSERT(listener[i] >= 0);
		attr.dlid = rwire_addr_lid(&addr);
		TEST_OK(rmem_ah_create(path.pd, &attr, &ah[i]));
	}
	clock_stop();
	ret = TEST_TRY(check_unread_peer(&path, ah[0], ah[1]));
	clock_run();
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_ah_destroy(ah[i]));
		close(listener[i]);
	}
	host_close_path(&path);
	TEST_RUN(ret);
}

TEST_CALL(wire_host, unread_datagrams_of_a_peer_delay_others_once, expect_one_delay());

/* Also if packets pass the ports of these arguments. */
static void
setup_fault(void)
{
	setup_by("ip=host,progress=poll,fault=loss:0");
}

static void
setup_pcap(void)
{
	setup_by("ip=host,progress=poll,pcap=/dev/null");
}

TEST_WITH(wire_host, unread_datagrams_delay_others_once_with_faults, setup_fault)
{
	expect_one_delay();
}

TEST_WITH(wire_host, unread_datagrams_delay_others_once_with_pcap, setup_pcap)
{
	expect_one_delay();
}

static void
check_uc_peer(const struct host_path *path)
{
	struct rmem_dev_stats stats;

	TEST_EQ(send_messages(path, NULL, RWIRE_RING_SLOTS), (int)RWIRE_RING_SLOTS);
	TEST_EQ(send_messages(path, NULL, 2), 0);
	test_clock.now += 3 * rte_get_tsc_hz();
	TEST_EQ(send_messages(path, NULL, 0), 2);
	TEST_EQ(send_messages(path, NULL, 1), 1);
	TEST_OK(rmem_dev_stats_get(host_dev, &stats));
	TEST_EQ(stats.drop_no_peer, 3);
}

/* IBTA 9.8.2: a message of UC completes when it is sent, whether or not a process is stopped. */
TEST(wire_host, messages_of_uc_to_a_peer_that_does_not_read_are_dropped)
{
	struct host_path path;
	struct rwire_addr peer;
	int ret, listener = rwire_shm_listen_host(&peer);

	TEST_ASSERT(listener >= 0);
	open_path(&path, &peer, RMEM_QPT_UC);
	clock_stop();
	ret = TEST_TRY(check_uc_peer(&path));
	clock_run();
	close(listener);
	host_close_path(&path);
	TEST_RUN(ret);
}
