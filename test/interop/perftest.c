/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * dpdk-test-perftest: a peer of the programs of perftest (ib_write_bw, ib_read_bw, ib_atomic_bw,
 * ib_send_bw, ib_read_lat, ib_atomic_lat), whose QP is one of `soft`.
 *
 * Both sides exchange messages over TCP, each answered with one of the same size: the version, the
 * sizes of two buffers, the path MTU, addresses, reports, and "done". Without an operation it is
 * the server of a client of perftest, whose requests it serves; it prints the number of messages
 * received and the sum of its memory, which is the number of additions. With one it is the client
 * of a server of perftest, and executes requests.
 *
 * usage: dpdk-test-perftest [EAL options] -- ADDRESS ARGUMENTS_OF_SOFT [OPERATION SIZE NUMBER]
 */

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_fp.h>
#include <rmem_qp.h>

#include "../holds.h"

#define TCP_PORT 18515
#define SIZE     ((size_t)4 << 20)
#define DEPTH    64
#define VERSION  "6.06"
#define ACCESS   (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_ATOMIC)

/* Sizes of messages; 8: of a report. */
#define MSG_VERSION 16
#define MSG_BUFFER  4
#define MSG_MTU     2
#define MSG_ADDR    108
#define MSG_REPORT  8
#define NB_REPORTS  5

static struct rmem_dev *dev;
static struct rmem_pd *pd;
static struct rmem_cq *send_cq, *recv_cq;
static struct rmem_qp *qp;
static struct rmem_mr *mr;
static uint64_t *memory;
static struct rmem_qp_attr attr;
static uint64_t nb_received;
static bool is_connected;
/* The peer's. */
static uint32_t rkey;
static uint64_t remote_addr;
static uint8_t remote_mtu = 5;

static void
post_receive(void)
{
	const struct rmem_sge sge = {.addr = (uintptr_t)memory, .length = SIZE, .lkey = mr->lkey};
	const struct rmem_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	HOLDS(rmem_post_recv(qp, &wr, 1) == 1);
}

static void
open_soft(const char *args)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 2 * DEPTH};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC,
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.access = ACCESS};

	HOLDS(rmem_dev_create("soft0", args, &dev) == 0);
	HOLDS(rmem_pd_alloc(dev, &pd) == 0);
	HOLDS(rmem_cq_create(dev, &cq_conf, &send_cq) == 0);
	HOLDS(rmem_cq_create(dev, &cq_conf, &recv_cq) == 0);
	conf.send_cq = send_cq;
	conf.recv_cq = recv_cq;
	HOLDS(rmem_qp_create(pd, &conf, &qp) == 0);
	HOLDS(posix_memalign((void **)&memory, 4096, SIZE) == 0);
	memset(memory, 0, SIZE);
	HOLDS(rmem_mr_reg(pd, memory, SIZE, (uintptr_t)memory, RMEM_ACCESS_LOCAL_WRITE | ACCESS,
			      &mr) == 0);
	HOLDS(rmem_qp_query(qp, &attr) == 0);
}

static void
close_soft(void)
{
	HOLDS(rmem_qp_destroy(qp) == 0);
	HOLDS(rmem_mr_dereg(mr) == 0);
	HOLDS(rmem_cq_destroy(send_cq) == 0);
	HOLDS(rmem_cq_destroy(recv_cq) == 0);
	HOLDS(rmem_pd_dealloc(pd) == 0);
	HOLDS(rmem_dev_close(dev) == 0);
	free(memory);
}

/* The address of the QP, as perftest prints it: LID, READs, QPN, PSN, rkey, address, GID, SRQN. */
static void
put_addr(char msg[MSG_ADDR])
{
	const struct rmem_qp_addr *addr = &attr.addr;
	int i, n;

	n = snprintf(msg, MSG_ADDR, "%04x:%04x:%06x:%06x:%08x:%016" PRIx64 ":", 0, 16, addr->qp_num,
			addr->psn, mr->rkey, mr->iova);
	for (i = 0; i < 16; i++)
		n += snprintf(msg + n, MSG_ADDR - (size_t)n, "%02x:", addr->gid[i]);
	HOLDS(snprintf(msg + n, MSG_ADDR - (size_t)n, "%08x:", 0) == 9 && n + 10 == MSG_ADDR);
}

/* A hexadecimal number in a message: LID, reads, QP, PSN, rkey, address and GID, with colons. */
static uint64_t
field(const char *at, size_t digits)
{
	char text[17] = "", *end;
	uint64_t value;

	memcpy(text, at, digits);
	value = strtoull(text, &end, 16);
	HOLDS(end == text + digits);
	return value;
}

/* Connect to the address of the first such message. */
static void
take_addr(const char msg[MSG_ADDR])
{
	struct rmem_qp_conn conn = {.timeout = 16, .retry_cnt = 7, .rnr_retry = 7};
	int i;

	if (is_connected)
		return;
	conn.remote.qp_num = (uint32_t)field(msg + 10, 6);
	conn.remote.psn = (uint32_t)field(msg + 17, 6);
	rkey = (uint32_t)field(msg + 24, 8);
	remote_addr = field(msg + 33, 16);
	for (i = 0; i < 16; i++)
		conn.remote.gid[i] = (uint8_t)field(msg + 50 + 3 * i, 2);
	conn.remote.mtu = RTE_MIN(attr.addr.mtu, remote_mtu);
	HOLDS(rmem_qp_connect(qp, &conn) == 0);
	for (i = 0; i < DEPTH; i++)
		post_receive();
	is_connected = true;
}

static void
poll_receives(void)
{
	struct rmem_wc wc;

	while (rmem_poll_cq(recv_cq, &wc, 1) == 1) {
		HOLDS(wc.status == RMEM_WC_SUCCESS && wc.opcode == RMEM_WC_RECV);
		nb_received++;
		post_receive();
	}
}

/* Read a message while receives complete. False: it is the last one. */
static bool
read_message(int fd, char *msg, size_t *size)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	ssize_t n;

	while (poll(&pfd, 1, 0) == 0)
		poll_receives();
	n = read(fd, msg, MSG_ADDR);
	HOLDS(n > 0);
	*size = (size_t)n;
	return memcmp(msg, "done", sizeof("done")) != 0;
}

/* The answer to a message of the client: its own one, unless it depends on this side. */
static void
answer(char *msg, size_t size)
{
	if (size == MSG_MTU) {
		remote_mtu = (uint8_t)(msg[0] - '0');
		msg[0] = (char)('0' + attr.addr.mtu);
	} else if (size == MSG_ADDR) {
		take_addr(msg);
		put_addr(msg);
	}
}

static int
server(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), client, one = 1;
	struct rmem_dev_stats stats;
	char msg[MSG_ADDR];
	uint64_t sum = 0;
	size_t i, size;

	HOLDS(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
	HOLDS(bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 && listen(fd, 1) == 0);
	printf("listening\n");
	fflush(stdout);
	client = accept(fd, NULL, NULL);
	HOLDS(client >= 0);
	while (read_message(client, msg, &size)) {
		answer(msg, size);
		HOLDS(write(client, msg, size) == (ssize_t)size);
	}
	poll_receives();
	close(client);
	close(fd);
	for (i = 0; i < SIZE / sizeof(*memory); i++)
		sum += memory[i];
	HOLDS(rmem_dev_stats_get(dev, &stats) == 0);
	printf("%" PRIu64 " messages received, sum %" PRIu64 ", %" PRIu64
	       " packets received, %" PRIu64 " sent, %" PRIu64 " malformed, %" PRIu64
	       " ICRC errors\n",
			nb_received, sum, stats.wire_rx_packets, stats.wire_tx_packets,
			stats.wire_malformed, stats.wire_icrc_errors);
	return stats.wire_malformed == 0 && stats.wire_icrc_errors == 0 ? 0 : 1;
}

/* As the client: send a message; the answer is in msg. */
static void
exchange(int fd, char *msg, size_t size)
{
	size_t done = 0;
	ssize_t n;

	HOLDS(write(fd, msg, size) == (ssize_t)size);
	for (; done < size; done += (size_t)n) {
		n = read(fd, msg + done, size - done);
		HOLDS(n > 0);
	}
}

static void
exchange_addr(int fd)
{
	char msg[MSG_ADDR];

	put_addr(msg);
	exchange(fd, msg, sizeof(msg));
	take_addr(msg);
}

/* Each of the requests completes with success. */
static void
run(uint8_t opcode, uint32_t size, uint64_t nb)
{
	struct rmem_sge sge = {.addr = (uintptr_t)memory, .length = size, .lkey = mr->lkey};
	struct rmem_send_wr wr = {.opcode = opcode,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1};
	uint64_t posted = 0, done = 0;
	struct rmem_wc wc;

	if (opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD) {
		wr.atomic.remote_addr = remote_addr;
		wr.atomic.rkey = rkey;
		wr.atomic.compare_add = 1;
	} else {
		wr.rdma.remote_addr = remote_addr;
		wr.rdma.rkey = rkey;
	}
	while (done < nb) {
		while (posted < nb && posted - done < DEPTH) {
			HOLDS(rmem_post_send(qp, &wr, 1) == 1);
			posted++;
		}
		if (rmem_poll_cq(send_cq, &wc, 1) == 1) {
			HOLDS(wc.status == RMEM_WC_SUCCESS);
			done++;
		}
	}
	printf("%" PRIu64 " requests of %u bytes succeeded\n", done, size);
}

static uint8_t
opcode_of(const char *operation)
{
	if (strcmp(operation, "send") == 0)
		return RMEM_WR_SEND;
	if (strcmp(operation, "write") == 0)
		return RMEM_WR_RDMA_WRITE;
	return strcmp(operation, "read") == 0 ? RMEM_WR_RDMA_READ : RMEM_WR_ATOMIC_FETCH_AND_ADD;
}

static int
client(const struct sockaddr_in *at, uint8_t opcode, uint32_t size, uint64_t nb)
{
	int i, fd = -1;
	char msg[MSG_ADDR] = VERSION;

	/* It may not listen yet. */
	while (fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0) {
		if (fd >= 0)
			close(fd);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		HOLDS(fd >= 0);
	}
	exchange(fd, msg, MSG_VERSION);
	memset(msg, 0, sizeof(msg));
	exchange(fd, msg, MSG_BUFFER);
	exchange(fd, msg, MSG_BUFFER);
	msg[0] = (char)('0' + attr.addr.mtu);
	msg[1] = '\0';
	exchange(fd, msg, MSG_MTU);
	remote_mtu = (uint8_t)(msg[0] - '0');
	for (i = 0; i < (opcode == RMEM_WR_SEND ? 4 : 3); i++)
		exchange_addr(fd);
	run(opcode, size, nb);
	if (opcode != RMEM_WR_SEND) {
		exchange_addr(fd);
		memset(msg, 0, sizeof(msg));
		for (i = 0; i < NB_REPORTS; i++)
			exchange(fd, msg, MSG_REPORT);
	}
	exchange_addr(fd);
	HOLDS(write(fd, "done", 5) == 5);
	close(fd);
	return 0;
}

int
main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(TCP_PORT)};
	int n, status;

	n = rte_eal_init(argc, argv);
	HOLDS(n >= 0);
	argc -= n;
	argv += n;
	HOLDS(argc == 3 || argc == 6);
	HOLDS(inet_pton(AF_INET, argv[1], &at.sin_addr) == 1);
	open_soft(argv[2]);
	if (argc == 3)
		status = server(&at);
	else
		status = client(&at, opcode_of(argv[3]), (uint32_t)strtoul(argv[4], NULL, 10),
				strtoull(argv[5], NULL, 10));
	close_soft();
	rte_eal_cleanup();
	return status;
}
