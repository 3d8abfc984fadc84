/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The device of the fuzzer of XRC domains; see fuzz_xrc.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "soft/wire/port/rwire_shm.h"
#include "soft/wire/port/rwire_xrc_socket.h"
#include "soft/wire/rwire_xrc_qp.h"
#include "fuzz.h"
#include "fuzz_xrc.h"

#define DEPTH     8u
#define MAX_LINKS 6u /* of the device */

struct fuzz_xrc fz;

static uint64_t
fuzz_clock(void)
{
	return fz.now;
}

void
fuzz_xrc_poll(void)
{
	struct rmem_wc wc[DEPTH];
	int i, n = rmem_poll_cq(fz.cq, wc, DEPTH);

	CHECK(n >= 0);
	for (i = 0; i < n; i++) {
		CHECK(wc[i].status <= RMEM_WC_GENERAL_ERR);
		fz.nb_received += wc[i].status == RMEM_WC_SUCCESS;
	}
}

ssize_t
fuzz_xrc_take(int fd, void *message, size_t len)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	while (poll(&ready, 1, -1) != 1)
		;
	return recv(fd, message, len, 0);
}

int32_t
fuzz_xrc_call(int fd, uint32_t op)
{
	const struct rwire_xrc_qp_request request = {.seq = 1, .call.op = op};
	struct rwire_xrc_qp_answer answer;

	CHECK(send(fd, &request, sizeof(request), 0) == (ssize_t)sizeof(request));
	do {
		CHECK(fuzz_xrc_take(fd, &answer, sizeof(answer)) == (ssize_t)sizeof(answer));
	} while (answer.seq == 0); /* an event */
	CHECK(answer.seq == 1);
	return answer.ret;
}

void
fuzz_xrc_settle(void)
{
	CHECK(fuzz_xrc_call(fz.honest, RMEM_QP_CALL_QUERY) == 0);
	CHECK(fuzz_xrc_call(fz.honest, RMEM_QP_CALL_QUERY) == 0);
}

int
fuzz_xrc_dial(const struct rmem_qp *qp)
{
	struct rwire_xrc_hello hello = rwire_xrc_hello_of(0);
	int fd = rwire_xrc_socket_connect(fz.domain, RWIRE_XRC_QP, qp->qp_num);

	CHECK(fd >= 0);
	CHECK(rwire_shm_send(fd, &hello, sizeof(hello), fz.file));
	CHECK(fuzz_xrc_take(fd, &hello, sizeof(hello)) == (ssize_t)sizeof(hello) &&
			hello.status == 0);
	return fd;
}

void
fuzz_xrc_create_qp(struct rmem_qp **qp)
{
	const struct rmem_qp_ext ext = {.xrcd = fz.domain};
	const struct rmem_qp_conf conf = {
			.type = RMEM_QPT_XRC_RECV, .access = RMEM_ACCESS_REMOTE, .ext = &ext};

	CHECK(rmem_qp_create(NULL, &conf, qp) == 0);
}

void
fuzz_xrc_create_srq(void)
{
	const struct rmem_srq_ext ext = {.xrcd = fz.domain, .cq = fz.cq};
	const struct rmem_srq_conf conf = {.max_wr = DEPTH, .max_sge = 1, .ext = &ext};

	CHECK(rmem_srq_create(fz.pd, &conf, &fz.srq) == 0);
}

uint32_t
fuzz_xrc_srq_number(void)
{
	uint32_t number;

	CHECK(rmem_srq_num_get(fz.srq, &number) == 0);
	return number;
}

static void
open_domain(void)
{
	struct rmem_xrcd_conf conf = {.flags = RMEM_XRCD_FILE | RMEM_XRCD_CREATE};

	conf.fd = fz.file = memfd_create("xrcd", MFD_CLOEXEC);
	fz.other = memfd_create("other", MFD_CLOEXEC);
	CHECK(fz.file >= 0 && fz.other >= 0);
	CHECK(rmem_xrcd_alloc(fz.dev, &conf, &fz.domain) == 0);
	fuzz_xrc_create_srq();
	fuzz_xrc_create_qp(&fz.qp);
	fuzz_xrc_create_qp(&fz.quiet);
	CHECK(rmem_async_channel_create(fz.dev, &fz.channel) == 0);
	CHECK(fcntl(fz.channel->fd, F_SETFL, O_NONBLOCK) == 0);
	fz.srqs = rwire_xrc_socket_listen(fz.domain, RWIRE_XRC_SRQ, FOREIGN);
	fz.qps = rwire_xrc_socket_listen(fz.domain, RWIRE_XRC_QP, FOREIGN);
	CHECK(fz.srqs >= 0 && fz.qps >= 0);
	fz.honest = fuzz_xrc_dial(fz.quiet);
}

void
fuzz_xrc_connect(void)
{
	struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};

	CHECK(rmem_qp_reset(fz.qp) == 0);
	CHECK(rmem_qp_query(fz.qp, &fz.attr) == 0);
	conn.remote = fz.attr.addr; /* the port's part of it */
	conn.remote.qp_num = 0x123456;
	conn.remote.psn = 100;
	memcpy(conn.remote.gid, fz.peer.gid, sizeof(conn.remote.gid));
	CHECK(rmem_qp_connect(fz.qp, &conn) == 0);
	CHECK(rmem_qp_query(fz.qp, &fz.attr) == 0);
}

void
fuzz_xrc_open(void)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * DEPTH};
	struct rsoft_dev *dev;
	char args[96];
	uint32_t i;

	rwire_clock = fuzz_clock;
	fz.now = rte_get_tsc_hz();
	for (i = 0; i < MAX_PEERS; i++)
		fz.peers[i].fd = -1;
	snprintf(args, sizeof(args), "ip=127.0.13.1,port=shm:xrc-%d,progress=poll,mtu=%u",
			(int)getpid(), MTU);
	CHECK(rmem_dev_create("soft0", args, &fz.dev) == 0);
	dev = rmem_dev_drv(fz.dev)->priv;
	fuzz_port_attach(&fz.port, dev);
	CHECK(rwire_addr_parse("127.0.13.2", &fz.peer));
	CHECK(rmem_pd_alloc(fz.dev, &fz.pd) == 0);
	CHECK(rmem_cq_create(fz.dev, &cq_conf, &fz.cq) == 0);
	fz.memory = malloc(TARGET + 2 * GUARD);
	CHECK(fz.memory != NULL);
	memset(fz.memory, SECRET, TARGET + 2 * GUARD);
	CHECK(rmem_mr_reg(fz.pd, fz.memory + GUARD, TARGET, 0,
			      RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE, &fz.mr) == 0);
	open_domain();
	dev->wire->xrc->max = MAX_LINKS;
	pthread_mutex_lock(&dev->wire->xrc_qps->lock);
	dev->wire->xrc_qps->max = MAX_LINKS;
	pthread_mutex_unlock(&dev->wire->xrc_qps->lock);
	fuzz_xrc_connect();
	fz.nb_open = fuzz_nb_open();
}

void
fuzz_xrc_close(void)
{
	close(fz.honest);
	close(fz.srqs);
	close(fz.qps);
	CHECK(rmem_qp_destroy(fz.qp) == 0);
	CHECK(rmem_qp_destroy(fz.quiet) == 0);
	CHECK(rmem_async_channel_destroy(fz.channel) == 0);
	CHECK(rmem_srq_destroy(fz.srq) == 0);
	CHECK(rmem_xrcd_dealloc(fz.domain) == 0);
	CHECK(rmem_mr_dereg(fz.mr) == 0);
	CHECK(rmem_cq_destroy(fz.cq) == 0);
	CHECK(rmem_pd_dealloc(fz.pd) == 0);
	CHECK(rmem_dev_close(fz.dev) == 0);
	close(fz.file);
	close(fz.other);
	free(fz.memory);
}
