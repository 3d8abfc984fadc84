/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Two hosts connect with rdma_cm, and exchange keys of their memory. RMEM_HOST
 * is 1 for the one that listens, 2 for the other; RMEM_ADDR and RMEM_PEER are their addresses, and
 * RMEM_TEST_ARGS is for the device.
 */

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>

#include <rmem.h>
#include <rmem_cm.h>

#include "../test.h"

#define PORT        7174
#define NOBODY_PORT 7175
#define BUF         4096u
#define WAIT_MS     60000
#define SHORT_MS    300
#define ROUNDS      10

/* A descriptor of memory, exchanged by the hosts. */
struct gc_desc {
	rte_be64_t addr;
	rte_be32_t rkey;
	rte_be32_t length;
};

static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
	uint8_t *buf;
	int host;
} gc;

static void
gc_qp_open(void)
{
	struct rmem_qp_conf conf = {.send_cq = gc.cq,
			.recv_cq = gc.cq,
			.max_send_wr = 16,
			.max_send_sge = 1,
			.type = RMEM_QPT_RC,
			.access = RMEM_ACCESS_REMOTE};

	TEST_OK(rmem_qp_create(gc.pd, &conf, &gc.qp));
}

static void
gc_open(void)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 64};
	const char *host = getenv("RMEM_HOST");

	memset(&gc, 0, sizeof(gc));
	if (host == NULL || getenv("RMEM_ADDR") == NULL || getenv("RMEM_PEER") == NULL)
		test_skip("RMEM_HOST, RMEM_ADDR or RMEM_PEER is not set");
	gc.host = host[0] - '0';
	TEST_OK(rmem_dev_create("verbs0", getenv("RMEM_TEST_ARGS"), &gc.dev));
	TEST_OK(rmem_pd_alloc(gc.dev, &gc.pd));
	TEST_OK(rmem_cq_create(gc.dev, &cq_conf, &gc.cq));
	gc.buf = rte_zmalloc(NULL, 2 * BUF, BUF);
	TEST_ASSERT(gc.buf != NULL);
	TEST_OK(rmem_mr_reg(gc.pd, gc.buf, 2 * BUF, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
					RMEM_ACCESS_REMOTE_READ,
			&gc.mr));
	gc_qp_open();
}

static void
gc_close(void)
{
	TEST_OK(rmem_qp_destroy(gc.qp));
	TEST_OK(rmem_mr_dereg(gc.mr));
	rte_free(gc.buf);
	TEST_OK(rmem_cq_destroy(gc.cq));
	TEST_OK(rmem_pd_dealloc(gc.pd));
	TEST_OK(rmem_dev_close(gc.dev));
}

static struct sockaddr_in
gc_addr(const char *name, uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	const char *text = getenv(name);

	if (text == NULL || inet_pton(AF_INET, text, &addr.sin_addr) != 1)
		addr.sin_family = AF_UNSPEC;
	return addr;
}

static struct rmem_cm_conf
gc_conf(uint32_t timeout_ms, const struct gc_desc *desc)
{
	return (struct rmem_cm_conf){.qp = gc.qp,
			.data = desc,
			.data_size = desc != NULL ? sizeof(*desc) : 0,
			.timeout_ms = timeout_ms,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.min_rnr_timer = 12};
}

/* The status of one request on the whole first page of both sides. */
static int
gc_run(uint8_t opcode, const struct gc_desc *desc)
{
	uint64_t end = rte_get_timer_cycles() + 60 * rte_get_timer_hz();
	struct rmem_sge sge = {.addr = (uintptr_t)gc.buf, .length = BUF, .lkey = gc.mr->lkey};
	struct rmem_send_wr wr = {.opcode = opcode,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1};
	struct rmem_wc wc;
	int n;

	if (opcode == RMEM_WR_RDMA_READ)
		sge.addr += BUF;
	wr.rdma.remote_addr = rte_be_to_cpu_64(desc->addr);
	wr.rdma.rkey = rte_be_to_cpu_32(desc->rkey);
	n = rmem_post_send(gc.qp, &wr, 1);
	if (n != 1)
		return n < 0 ? n : -EIO;
	do {
		n = rmem_poll_cq(gc.cq, &wc, 1);
	} while (n == 0 && rte_get_timer_cycles() < end);
	return n == 1 ? (int)wc.status : -ETIMEDOUT;
}

/* Serves its memory until the other host disconnects. */
static void
gc_serve(struct rmem_cm_listener *listener, uint8_t round)
{
	struct gc_desc desc = {.addr = rte_cpu_to_be_64((uintptr_t)gc.buf),
			.rkey = rte_cpu_to_be_32(gc.mr->rkey),
			.length = rte_cpu_to_be_32(BUF)};
	struct rmem_cm_conf conf = gc_conf(WAIT_MS, &desc);
	struct rmem_cm_peer peer;
	struct rmem_cm_conn *conn;
	unsigned int i;

	TEST_OK(rmem_cm_accept(listener, &conf, &peer, &conn));
	TEST_EQ(peer.data_size, RMEM_CM_MAX_REQUEST);
	for (i = 0; i < peer.data_size; i++)
		TEST_EQ(peer.data[i], (uint8_t)(round + i));
	TEST_OK(rmem_cm_wait_disconnect(conn, WAIT_MS));
	rmem_cm_disconnect(conn);
	for (i = 0; i < BUF; i++)
		TEST_EQ(gc.buf[i], (uint8_t)(round + i * 3));
}

/* A host that listens a little later is waited for. */
static int
gc_connect(const struct rmem_cm_conf *conf, struct rmem_cm_peer *peer, struct rmem_cm_conn **conn)
{
	struct sockaddr_in addr = gc_addr("RMEM_PEER", PORT);
	uint64_t end = rte_get_timer_cycles() + WAIT_MS / 1000 * rte_get_timer_hz();
	int ret;

	do {
		ret = rmem_cm_connect((struct sockaddr *)&addr, conf, peer, conn);
		if (ret == -ECONNREFUSED)
			rte_delay_us_sleep(10000);
	} while (ret == -ECONNREFUSED && rte_get_timer_cycles() < end);
	return ret;
}

static void
gc_use(uint8_t round)
{
	struct rmem_cm_conf conf = gc_conf(WAIT_MS, NULL);
	uint8_t bytes[RMEM_CM_MAX_REQUEST];
	struct rmem_cm_peer peer;
	struct rmem_cm_conn *conn;
	struct gc_desc desc;
	unsigned int i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(round + i);
	for (i = 0; i < BUF; i++)
		gc.buf[i] = (uint8_t)(round + i * 3);
	conf.data = bytes;
	conf.data_size = sizeof(bytes);
	TEST_OK(gc_connect(&conf, &peer, &conn));
	TEST_EQ(peer.data_size, sizeof(desc));
	memcpy(&desc, peer.data, sizeof(desc));
	TEST_EQ(rte_be_to_cpu_32(desc.length), BUF);
	TEST_STATUS(gc_run(RMEM_WR_RDMA_WRITE, &desc), RMEM_WC_SUCCESS);
	TEST_STATUS(gc_run(RMEM_WR_RDMA_READ, &desc), RMEM_WC_SUCCESS);
	TEST_MEM(gc.buf + BUF, gc.buf, BUF);
	rmem_cm_disconnect(conn);
}

TEST(guest_cm, hosts_connect_and_reach_each_other)
{
	struct sockaddr_in addr = gc_addr("RMEM_ADDR", PORT);
	struct rmem_cm_listener *listener = NULL;
	uint8_t round;

	if (gc.host == 1)
		TEST_OK(rmem_cm_listener_create((struct sockaddr *)&addr, &listener));
	for (round = 1; round <= ROUNDS; round++) {
		if (gc.host == 1)
			gc_serve(listener, round);
		else
			gc_use(round);
		TEST_OK(rmem_qp_destroy(gc.qp));
		gc_qp_open();
	}
	rmem_cm_listener_destroy(listener);
}

TEST(guest_cm, port_without_listener_is_refused)
{
	struct sockaddr_in addr = gc_addr("RMEM_PEER", NOBODY_PORT);
	struct rmem_cm_conf conf = gc_conf(WAIT_MS, NULL);
	struct rmem_cm_conn *conn;
	struct rmem_qp_attr attr;

	TEST_ERR(rmem_cm_connect((struct sockaddr *)&addr, &conf, NULL, &conn), ECONNREFUSED);
	TEST_OK(rmem_qp_query(gc.qp, &attr));
	TEST_EQ(attr.state, RMEM_QPS_RESET);
}

TEST(guest_cm, missing_host_is_reported)
{
	struct sockaddr_in addr = gc_addr("RMEM_PEER", PORT);
	struct rmem_cm_conf conf = gc_conf(10 * SHORT_MS, NULL);
	struct rmem_cm_conn *conn;
	int ret;

	/* In the subnet of both hosts. */
	addr.sin_addr.s_addr = (addr.sin_addr.s_addr & htonl(0xffffff00)) | htonl(0xfe);
	ret = rmem_cm_connect((struct sockaddr *)&addr, &conf, NULL, &conn);
	TEST_ERR(ret, EHOSTUNREACH);
}

TEST(guest_cm, address_of_no_device_is_reported)
{
	struct sockaddr_in addr = gc_addr("RMEM_ADDR", PORT);
	struct rmem_cm_listener *listener;

	TEST_ASSERT(inet_pton(AF_INET, "198.51.100.1", &addr.sin_addr) == 1);
	TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&addr, &listener), ENODEV);
}

TEST(guest_cm, waits_have_an_end)
{
	struct sockaddr_in addr = gc_addr("RMEM_ADDR", NOBODY_PORT + 1);
	struct rmem_cm_conf conf = gc_conf(SHORT_MS, NULL);
	struct rmem_cm_listener *listener, *other;
	struct rmem_cm_conn *conn;

	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&addr, &listener));
	TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&addr, &other), EEXIST);
	TEST_ERR(rmem_cm_accept(listener, &conf, NULL, &conn), ETIMEDOUT);
	/* A request is not accepted, and then its peer disconnects. */
	TEST_ERR(rmem_cm_connect((struct sockaddr *)&addr, &conf, NULL, &conn), ETIMEDOUT);
	TEST_ERR(rmem_cm_accept(listener, &conf, NULL, &conn), ECONNREFUSED);
	rmem_cm_listener_destroy(listener);
}

TEST_SUITE(guest_cm, gc_open, gc_close);
