/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A hostile client of dpdk-rmem-kv: it gets a lease, and requests another one without a receive for
 * the answer, until the server closes the connection. After EAL's options: the arguments of soft0,
 * the server's address, and its options --keys and --lease-ms.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include <rmem.h>
#include <rmem_cm.h>

#include "../../app/kv/wire.h"
#include "../rc.h"

#define PORT       7174
#define TIMEOUT_MS 60000
#define VALUE_SIZE 64u
static struct rmem_dev *dev;
static struct rmem_pd *pd;
static struct rmem_cq *cq;
static struct rmem_qp *qp;
static struct rmem_mr *mr;
static struct rmem_cm_conn *conn;
static struct sockaddr_in server = {.sin_family = AF_INET};
static rte_be32_t hello[6]; /* as in conn_cm.c */
static struct {
	struct kv_request request;
	uint8_t value[VALUE_SIZE];
	struct kv_answer answer;
} memory;

static void
make_objects(const char *args)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4};
	struct rmem_qp_conf conf;

	TEST_OK(rmem_dev_create("soft0", args, &dev));
	TEST_OK(rmem_pd_alloc(dev, &pd));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &cq));
	TEST_OK(rmem_mr_reg(pd, &memory, sizeof(memory), (uintptr_t)&memory,
			RMEM_ACCESS_LOCAL_WRITE, &mr));
	conf = rc_conf(cq, 1, 1);
	TEST_OK(rmem_qp_create(pd, &conf, &qp));
}

static void
connect_peer(void)
{
	const struct rmem_cm_conf conf = {.qp = qp,
			.data = hello,
			.data_size = sizeof(hello),
			.timeout_ms = TIMEOUT_MS,
			.timeout = 16,
			.retry_cnt = 6,
			.rnr_retry = 7};

	TEST_OK(rmem_cm_connect((struct sockaddr *)&server, &conf, NULL, &conn));
}

/* SEND a request of a length, and wait for it. */
static void
request(uint32_t op, uint32_t length)
{
	const struct rmem_sge sge = {(uintptr_t)&memory, length, mr->lkey};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);
	struct rmem_wc wc;

	memory.request.op = rte_cpu_to_be_32(op);
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	TEST_EQ(rc_wait(cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
}

/* The same with a receive, and wait for the answer. */
static void
exchange(uint32_t op, uint32_t length)
{
	const struct rmem_sge sge = {(uintptr_t)&memory.answer, sizeof(memory.answer), mr->lkey};
	const struct rmem_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct rmem_wc wc;

	TEST_EQ(rmem_post_recv(qp, &wr, 1), 1);
	request(op, length);
	TEST_EQ(rc_wait(cq, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(memory.answer.error, 0);
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);

	TEST_EQ(argc - n, 5);
	argv += n;
	setvbuf(stdout, NULL, _IOLBF, 0);
	TEST_EQ(inet_pton(AF_INET, argv[2], &server.sin_addr), 1);
	server.sin_port = htons(PORT);
	hello[0] = RTE_BE32(0x6b760001);
	hello[2] = rte_cpu_to_be_32((uint32_t)strtoul(argv[3], NULL, 10));
	hello[3] = RTE_BE32(VALUE_SIZE);
	hello[4] = rte_cpu_to_be_32((uint32_t)strtoul(argv[4], NULL, 10));
	make_objects(argv[1]);
	connect_peer();
	exchange(KV_PUT, sizeof(memory.request) + VALUE_SIZE);
	exchange(KV_GET, sizeof(memory.request));
	request(KV_GET, sizeof(memory.request));
	puts("a lease, and no receive");
	while (rmem_cm_wait_disconnect(conn, TIMEOUT_MS) == -ETIMEDOUT)
		;
	rmem_cm_disconnect(conn);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_mr_dereg(mr));
	TEST_OK(rmem_cq_destroy(cq));
	TEST_OK(rmem_pd_dealloc(pd));
	TEST_OK(rmem_dev_close(dev));
	rte_eal_cleanup();
	return 0;
}
