/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Devices with ip=host take an address that no other process has, and receive from processes of all
 * users, each with its own address.
 */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_dev_attr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>

#include "soft/wire/rwire.h"
#include "soft/wire/rwire_shm.h"

#include "../test.h"

#define OTHER_USER 65534

static struct rmem_dev *dev;
static struct rwire_addr address; /* of dev */
static uint16_t lid;

/* That of no device here, unless n is small. */
static uint16_t
other_lid(uint16_t n)
{
	return (uint16_t)((lid + n - 1) % RWIRE_MAX_LID + 1);
}

static int
get_address(struct rmem_dev *of, struct rwire_addr *addr)
{
	struct rmem_dev_info info;

	TEST_OK(rmem_dev_info_get(of, &info));
	memcpy(addr->gid, info.gid, sizeof(addr->gid));
	return TEST_SUCCESS;
}

static int
setup(void)
{
	TEST_OK(rmem_dev_create("soft0", "ip=host,progress=poll", &dev));
	TEST_RUN(get_address(dev, &address));
	lid = rwire_addr_lid(&address);
	return TEST_SUCCESS;
}

static int
teardown(void)
{
	return rmem_dev_close(dev);
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
	return TEST_SUCCESS;
}

TEST(wire_host, address_in_use_is_skipped)
{
	struct rwire_addr other;
	struct rmem_dev *second;

	TEST_OK(rmem_dev_create("soft1", "ip=host", &second));
	TEST_RUN(get_address(second, &other));
	TEST_OK(rmem_dev_close(second));
	TEST_ASSERT(rwire_addr_lid(&other) != 0);
	TEST_ASSERT(!rwire_addr_is_equal(&other, &address));
	return TEST_SUCCESS;
}

TEST(wire_host, port_attributes_are_those_of_infiniband)
{
	struct rmem_port_attr port;
	struct rmem_gid_entry entry;

	TEST_OK(rmem_dev_port_query(dev, 1, &port));
	TEST_EQ(port.link_layer, RMEM_LINK_LAYER_INFINIBAND);
	TEST_EQ(port.lid, lid);
	TEST_EQ(port.active_mtu, 5);
	TEST_OK(rmem_dev_gid_query(dev, 1, 0, &entry));
	TEST_EQ(entry.type, RMEM_GID_TYPE_IB);
	TEST_EQ(memcmp(entry.gid, address.gid, sizeof(address.gid)), 0);
	return TEST_SUCCESS;
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

TEST(wire_host, qp_is_connected_by_dlid)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 8};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC, .max_send_wr = 1, .max_recv_wr = 1};
	uint16_t other = (uint16_t)(lid % RWIRE_MAX_LID + 1);
	struct rwire_addr expected;
	struct rmem_qp_attr attr;
	struct rmem_pd *pd;
	struct rmem_qp *qp;

	TEST_OK(rmem_pd_alloc(dev, &pd));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &conf.send_cq));
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
	return rmem_pd_dealloc(pd);
}

static uint64_t virtual_clock;

static uint64_t
get_clock(void)
{
	return virtual_clock;
}

/* Poll two timeouts later. */
static int
poll_late(struct rmem_qp *qp, struct rmem_wc *wc)
{
	virtual_clock += 2 * ((const struct rsoft_qp *)qp)->wire->req.timeout;
	return rmem_poll_cq(qp->send_cq, wc, 1);
}

static uint64_t
count_timeouts(void)
{
	struct rmem_dev_stats stats;

	return rmem_dev_stats_get(dev, &stats) == 0 ? stats.wire_timeouts : UINT64_MAX;
}

/* Post four WRITEs of no bytes, and accept their channel as a peer that reads the ring by hand. */
static struct rwire_ring *
post_to(struct rmem_qp *qp, int listener, int *fd)
{
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE, .flags = RMEM_SEND_SIGNALED};
	struct rwire_ring *ring = NULL;
	struct rwire_addr from;
	uint32_t version;
	int i;

	for (i = 0; i < 4; i++) {
		if (rmem_post_send(qp, &wr, 1) != 1)
			return NULL;
	}
	do
		*fd = shm_accept(SHM_HOST, listener);
	while (*fd == -EAGAIN);
	while (shm_receive(*fd, &from, &ring, &version) == -EAGAIN)
		;
	return ring;
}

static int
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
	return TEST_SUCCESS;
}

TEST(wire_host, unread_packets_cause_no_retry)
{
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC, .max_send_wr = 4};
	struct rmem_qp_conn conn = {.remote.qp_num = 7, .timeout = 8, .retry_cnt = 7};
	uint64_t (*tsc)(void) = rwire_clock;
	struct rmem_cq_conf cq_conf = {.nb_cqe = 8};
	struct rwire_addr peer;
	struct rwire_ring *ring;
	struct rmem_pd *pd;
	struct rmem_qp *qp;
	int fd = -1, ret, listener = shm_listen_host(&peer);

	TEST_ASSERT(listener >= 0);
	memcpy(conn.remote.gid, peer.gid, sizeof(peer.gid));
	TEST_OK(rmem_pd_alloc(dev, &pd));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &conf.send_cq));
	conf.recv_cq = conf.send_cq;
	TEST_OK(rmem_qp_create(pd, &conf, &qp));
	TEST_OK(rmem_qp_connect(qp, &conn));
	virtual_clock = tsc();
	rwire_clock = get_clock;
	ring = post_to(qp, listener, &fd);
	TEST_ASSERT(ring != NULL);
	ret = check_retries(qp, ring);
	rwire_clock = tsc;
	close(fd);
	close(listener);
	shm_unmap(ring);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_cq_destroy(conf.send_cq));
	TEST_OK(rmem_pd_dealloc(pd));
	return ret;
}

TEST(wire_host, ip_host_refuses_a_udp_port)
{
	struct rmem_dev *second;

	TEST_EQ(rmem_dev_create("soft1", "ip=host,port=udp", &second), -EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=host,port=shm:a", &second), -EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=host,share=1", &second), -EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=host,neigh=127.0.0.1@02:00:00:00:00:01", &second),
			-EINVAL);
	TEST_EQ(rmem_dev_create("soft1", "ip=127.0.0.1,port=shm:" SHM_HOST, &second), -EINVAL);
	return TEST_SUCCESS;
}

TEST(wire_host, names_with_other_characters_are_refused)
{
	TEST_ASSERT(shm_name_is_valid("a"));
	TEST_ASSERT(shm_name_is_valid("My-app_1.0"));
	TEST_ASSERT(shm_name_is_valid("1234567890123456789012345678901"));
	TEST_ASSERT(!shm_name_is_valid("12345678901234567890123456789012"));
	TEST_ASSERT(!shm_name_is_valid(""));
	TEST_ASSERT(!shm_name_is_valid("a/b"));
	TEST_ASSERT(!shm_name_is_valid("a b"));
	TEST_ASSERT(!shm_name_is_valid(SHM_HOST));
	return TEST_SUCCESS;
}

/*
 * A process of another user sends from an address, at which it listens or not. It exits with 0 if
 * the device accepts that, with 1 if not, with another status if it can't be tried.
 */
static pid_t
start_sender(const struct rwire_addr *from, bool is_owner)
{
	struct rwire_ring *ring;
	struct shm_hello hello;
	uint32_t uid;
	pid_t pid = fork();
	ssize_t n;
	int fd;

	if (pid != 0)
		return pid;
	if (setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0)
		_exit(2);
	if (is_owner && shm_listen(SHM_HOST, from) < 0)
		_exit(3);
	if (shm_connect(SHM_HOST, from, &address, &fd, &ring, &uid, NULL) != 0)
		_exit(4);
	/* Not a socket that blocks: the reply, or a byte when the device has read the ring. */
	do
		n = recv(fd, &hello, sizeof(hello), MSG_DONTWAIT);
	while (n < 0 && errno == EAGAIN &&
			__atomic_load_n(&ring->is_asleep, __ATOMIC_RELAXED) == 0);
	_exit(n < 0 && errno == EAGAIN ? 0 : 1);
}

/* Receive until the sender has ended; sleep as the control thread does. */
static int
serve(pid_t pid)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(dev)->priv)->wire;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0)
		wire->port->ops->rx_sleep(wire->port);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(wire_host, other_user_sends_only_from_its_own_address)
{
	struct rwire_addr from;

	if (geteuid() != 0) {
		printf("skipped: only root has processes of another user\n");
		return TEST_SKIPPED;
	}
	rwire_addr_of_lid(other_lid(1000), &from);
	TEST_EQ(serve(start_sender(&from, true)), 0);
	TEST_EQ(serve(start_sender(&from, false)), 1);
	TEST_EQ(serve(start_sender(&address, false)), 1);
	return TEST_SUCCESS;
}

/* Send until a connection waits at a listener: 0 with its ring. */
static int
send_to(const struct rwire_addr *to, int listener, int *fd, struct rwire_ring **ring)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(dev)->priv)->wire;
	struct rwire_addr from;
	uint32_t version;

	do {
		if (wire->port->ops->tx_get(wire->port, to) == NULL)
			return -ENOSPC;
		*fd = shm_accept(SHM_HOST, listener);
	} while (*fd == -EAGAIN);
	return *fd < 0 ? *fd : shm_receive(*fd, &from, ring, &version);
}

/* A process of another user takes an address: it exits with 0 if it gets a ring, with 1 if not. */
static pid_t
start_taker(const struct rwire_addr *addr)
{
	struct rwire_ring *ring;
	struct rwire_addr from;
	uint32_t version;
	pid_t pid = fork();
	int fd, listener, rc;

	if (pid != 0)
		return pid;
	if (setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0)
		_exit(2);
	listener = shm_listen(SHM_HOST, addr);
	if (listener < 0)
		_exit(3);
	do
		fd = shm_accept(SHM_HOST, listener);
	while (fd == -EAGAIN);
	do
		rc = shm_receive(fd, &from, &ring, &version);
	while (rc == -EAGAIN);
	_exit(rc == SHM_OK ? 0 : 1);
}

/* The device sends to addr, which this process serves. */
static int
serve_once(const struct rwire_addr *addr)
{
	struct rwire_ring *ring = NULL;
	int listener = shm_listen(SHM_HOST, addr);
	int fd = -1;

	TEST_ASSERT(listener >= 0);
	TEST_OK(send_to(addr, listener, &fd, &ring));
	shm_unmap(ring);
	close(fd);
	close(listener);
	return TEST_SUCCESS;
}

TEST(wire_host, address_stays_with_its_first_user)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(dev)->priv)->wire;
	struct rwire_addr peer;
	int status = 0;
	pid_t pid;

	if (geteuid() != 0) {
		printf("skipped: only root has processes of another user\n");
		return TEST_SKIPPED;
	}
	rwire_addr_of_lid(other_lid(1001), &peer);
	TEST_RUN(serve_once(&peer));
	pid = start_taker(&peer);
	while (waitpid(pid, &status, WNOHANG) == 0)
		TEST_ASSERT(wire->port->ops->tx_get(wire->port, &peer) != NULL);
	TEST_EQ(WEXITSTATUS(status), 1);
	TEST_EQ(serve(start_sender(&peer, true)), 1);
	/* The first user may restart. */
	TEST_RUN(serve_once(&peer));
	/* One that sends first is the first user as well. */
	rwire_addr_of_lid(other_lid(1002), &peer);
	TEST_EQ(serve(start_sender(&peer, true)), 0);
	TEST_EQ(serve(start_sender(&peer, true)), 0);
	return TEST_SUCCESS;
}

TEST(wire_host, silent_connection_is_closed)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(dev)->priv)->wire;
	int len, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char byte, text[RWIRE_ADDR_TEXT];

	len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "rmem-shm/%s/%s", SHM_HOST,
			rwire_addr_text(&address, text));
	TEST_OK(connect(fd, (const struct sockaddr *)&un,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)));
	while (recv(fd, &byte, 1, MSG_DONTWAIT) != 0)
		wire->port->ops->rx_sleep(wire->port);
	return close(fd);
}

TEST_SUITE(wire_host, setup, teardown);
