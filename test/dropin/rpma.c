/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librpma on soft0: two processes connect; the first one writes to the memory of the other one,
 * flushes, reads back and compares; then it sends a message, and the other one compares what was
 * written. devtools/gallery.sh compiles and runs it.
 */

#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <librpma.h>

#include "../holds.h"

#define ADDRESS "127.0.0.1"
#define SIZE    (1u << 20)
#define ROUNDS  8

static uint8_t memory[SIZE], back[SIZE];

static struct rpma_peer *
open_peer(enum rpma_util_ibv_context_type type)
{
	struct rpma_peer *peer;
	struct ibv_context *context;

	HOLDS(rpma_utils_get_ibv_context(ADDRESS, type, &context) == 0);
	HOLDS(strcmp(ibv_get_device_name(context->device), "soft0") == 0);
	HOLDS(rpma_peer_new(context, &peer) == 0);
	return peer;
}

static void
expect_event(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event;

	HOLDS(rpma_conn_next_event(conn, &event) == 0 && event == expected);
}

static void
end(struct rpma_conn *conn, struct rpma_mr_local *mr, struct rpma_peer *peer)
{
	HOLDS(rpma_conn_delete(&conn) == 0);
	HOLDS(rpma_mr_dereg(&mr) == 0);
	HOLDS(rpma_peer_delete(&peer) == 0);
}

static void
expect_wc(struct rpma_conn *conn, enum ibv_wc_opcode opcode)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	HOLDS(rpma_conn_get_cq(conn, &cq) == 0);
	HOLDS(rpma_cq_wait(cq) == 0);
	HOLDS(rpma_cq_get_wc(cq, 1, &wc, NULL) == 0);
	HOLDS(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode);
}

static void
fill(unsigned int round)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		memory[i] = (uint8_t)(i * 7 + i / 251 + round);
}

/* Receive a message for each round, and the WRITEs in between without a request. */
static void
run_target(const char *port, int started)
{
	struct rpma_peer *peer = open_peer(RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_conn_private_data data;
	struct rpma_mr_local *mr, *of_back;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	uint8_t desc[64];
	size_t length;

	HOLDS(rpma_mr_reg(peer, memory, SIZE,
			      RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
					      RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			      &mr) == 0);
	HOLDS(rpma_mr_reg(peer, back, SIZE, RPMA_MR_USAGE_RECV, &of_back) == 0);
	HOLDS(rpma_mr_get_descriptor_size(mr, &length) == 0 && length <= sizeof(desc));
	HOLDS(rpma_mr_get_descriptor(mr, desc) == 0);
	HOLDS(rpma_ep_listen(peer, ADDRESS, port, &ep) == 0);
	HOLDS(write(started, "", 1) == 1);
	HOLDS(rpma_ep_next_conn_req(ep, NULL, &req) == 0);
	HOLDS(rpma_conn_req_recv(req, of_back, 0, SIZE, NULL) == 0);
	data.ptr = desc;
	data.len = (uint8_t)length;
	HOLDS(rpma_conn_req_connect(&req, &data, &conn) == 0);
	expect_event(conn, RPMA_CONN_ESTABLISHED);
	expect_wc(conn, IBV_WC_RECV);
	HOLDS(memcmp(memory, back, SIZE) == 0);
	expect_event(conn, RPMA_CONN_CLOSED);
	HOLDS(rpma_conn_disconnect(conn) == 0);
	HOLDS(rpma_mr_dereg(&of_back) == 0);
	HOLDS(rpma_ep_shutdown(&ep) == 0);
	end(conn, mr, peer);
}

static void
transfer(struct rpma_conn *conn, struct rpma_mr_local *mr, struct rpma_mr_local *of_back)
{
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *remote;
	unsigned int i;

	HOLDS(rpma_conn_get_private_data(conn, &data) == 0 && data.ptr != NULL);
	HOLDS(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote) == 0);
	for (i = 0; i < ROUNDS; i++) {
		fill(i);
		HOLDS(rpma_write(conn, remote, 0, mr, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL) ==
				0);
		HOLDS(rpma_flush(conn, remote, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY,
				      RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
		expect_wc(conn, IBV_WC_RDMA_READ); /* a flush is a READ */
		HOLDS(rpma_read(conn, of_back, 0, remote, 0, SIZE, RPMA_F_COMPLETION_ALWAYS,
				      NULL) == 0);
		expect_wc(conn, IBV_WC_RDMA_READ);
		HOLDS(memcmp(memory, back, SIZE) == 0);
	}
	HOLDS(rpma_send(conn, mr, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
	expect_wc(conn, IBV_WC_SEND);
	HOLDS(rpma_mr_remote_delete(&remote) == 0);
}

static void
run_initiator(const char *port)
{
	struct rpma_peer *peer = open_peer(RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_mr_local *mr, *of_back;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	HOLDS(rpma_mr_reg(peer, memory, SIZE, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND, &mr) ==
			0);
	HOLDS(rpma_mr_reg(peer, back, SIZE, RPMA_MR_USAGE_READ_DST, &of_back) == 0);
	HOLDS(rpma_conn_req_new(peer, ADDRESS, port, NULL, &req) == 0);
	HOLDS(rpma_conn_req_connect(&req, NULL, &conn) == 0);
	expect_event(conn, RPMA_CONN_ESTABLISHED);
	transfer(conn, mr, of_back);
	HOLDS(rpma_conn_disconnect(conn) == 0);
	expect_event(conn, RPMA_CONN_CLOSED);
	HOLDS(rpma_mr_dereg(&of_back) == 0);
	end(conn, mr, peer);
}

int
main(void)
{
	int started[2];
	char port[16], byte;
	pid_t pid;

	HOLDS(pipe(started) == 0);
	snprintf(port, sizeof(port), "%d", 20000 + (int)getpid() % 10000);
	pid = fork();
	if (pid == 0) {
		run_target(port, started[1]);
		return 0;
	}
	close(started[1]);
	HOLDS(read(started[0], &byte, 1) == 1);
	run_initiator(port);
	wait_child(pid);
	printf("%u WRITEs of %u bytes, each flushed, read back and compared\n", ROUNDS, SIZE);
	return 0;
}
