/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC QPs of two sides, and a link of their domain; see xrc_link.h. */

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rmem_driver.h>

#include "soft/wire/port/rwire_shm.h"
#include "soft/wire/port/rwire_xrc_socket.h"

#include "../rc.h"
#include "xrc_link.h"

struct xrc_link link_;
struct xrc_owner owner_;

void
xrc_make_srq(const struct side *side, struct rmem_pd *pd, struct rmem_xrcd *domain,
		struct rmem_srq **srq, uint32_t *number)
{
	const struct rmem_srq_ext ext = {.xrcd = domain, .cq = side->recv_cq};
	const struct rmem_srq_conf conf = {.max_wr = 4, .max_sge = 1, .ext = &ext};

	TEST_OK(rmem_srq_create(pd, &conf, srq));
	TEST_OK(rmem_srq_num_get(*srq, number));
}

void
xrc_post(struct rmem_srq *srq, const struct rmem_mr *mr, const void *addr, uint64_t wr_id,
		uint32_t length)
{
	const struct rmem_sge sge = {.addr = (uintptr_t)addr, .length = length, .lkey = mr->lkey};
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	TEST_EQ(rmem_srq_post_recv(srq, &wr, 1), 1);
}

void
xrc_make_qps(struct rmem_xrcd *domain, struct rmem_qp **send, struct rmem_qp **recv)
{
	const struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	const struct rmem_qp_conf send_conf = {.type = RMEM_QPT_XRC_SEND,
			.send_cq = sides[0].send_cq,
			.recv_cq = sides[0].recv_cq,
			.max_send_wr = SLOTS,
			.max_send_sge = 1,
			.access = RMEM_ACCESS_REMOTE};
	const struct rmem_qp_ext ext = {.xrcd = domain};
	const struct rmem_qp_conf recv_conf = {
			.type = RMEM_QPT_XRC_RECV, .access = RMEM_ACCESS_REMOTE, .ext = &ext};

	TEST_OK(rmem_qp_create(NULL, &recv_conf, recv));
	TEST_OK(rmem_qp_create(sides[0].pd, &send_conf, send));
	rc_connect(*recv, *send, conn);
	rc_connect(*send, *recv, conn);
}

struct rwire_pkt
xrc_expect(uint8_t opcode, uint8_t syndrome)
{
	struct rwire_pkt got = {.opcode = 0};

	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.service, RWIRE_XRC);
	TEST_EQ(got.opcode, opcode);
	TEST_EQ(got.qpn, link_.send->qp_num);
	TEST_EQ(got.syndrome, syndrome);
	return got;
}

void
xrc_expect_nothing(void)
{
	struct rwire_pkt got;

	TEST_ASSERT(!sim_take(0, &got));
}

static void
open_link(int file)
{
	const struct rmem_xrcd_conf conf = {
			.flags = file >= 0 ? RMEM_XRCD_FILE | RMEM_XRCD_CREATE : 0,
			.fd = RTE_MAX(file, 0)};

	memset(&link_, 0, sizeof(link_));
	link_.file = file;
	open_sides(MTU);
	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &link_.peer));
	TEST_OK(rmem_xrcd_alloc(sides[1].dev, &conf, &link_.domain));
	xrc_make_srq(&sides[1], sides[1].pd, link_.domain, &link_.srq, &link_.number);
	xrc_make_qps(link_.domain, &link_.send, &link_.recv);
}

void
link_open(void)
{
	open_link(memfd_create("xrcd", MFD_CLOEXEC));
}

void
link_open_two(void)
{
	open_link(-1);
	TEST_OK(rmem_pd_alloc(sides[1].dev, &link_.other.pd));
	TEST_OK(rmem_mr_reg(link_.other.pd, sides[1].target, SIZE, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE, &link_.other.mr));
	xrc_make_srq(&sides[1], link_.other.pd, link_.domain, &link_.other.srq,
			&link_.other.number);
}

void
link_close(void)
{
	TEST_OK(rmem_qp_destroy(link_.send));
	TEST_OK(rmem_qp_destroy(link_.recv));
	TEST_OK(rmem_srq_destroy(link_.srq));
	if (link_.other.pd != NULL) {
		TEST_OK(rmem_srq_destroy(link_.other.srq));
		TEST_OK(rmem_mr_dereg(link_.other.mr));
		TEST_OK(rmem_pd_dealloc(link_.other.pd));
	}
	TEST_OK(rmem_xrcd_dealloc(link_.domain));
	if (link_.file >= 0)
		close(link_.file);
	close_sides();
}

uint32_t
link_state_of(const struct rmem_qp *qp)
{
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_query(qp, &attr));
	TEST_EQ(attr.addr.qp_num, qp->qp_num);
	return attr.state;
}

void
link_progress(void)
{
	struct rmem_wc wc;

	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
}

void
link_post(uint64_t wr_id, uint32_t length)
{
	xrc_post(link_.srq, sides[1].mr, sides[1].target, wr_id, length);
}

uint32_t
link_nb_posted(void)
{
	struct rmem_srq_attr attr;

	return rmem_srq_query(link_.srq, &attr) == 0 ? attr.nb_wr : UINT32_MAX;
}

struct rwire_pkt
link_packet(uint8_t opcode, uint32_t srqn, uint32_t ahead)
{
	const struct rwire_qp *q = ((const struct rsoft_qp *)link_.recv)->wire;

	return (struct rwire_pkt){.service = RWIRE_XRC,
			.opcode = opcode,
			.qpn = link_.recv->qp_num,
			.psn = rwire_psn_add(q->rsp.psn, ahead),
			.srqn = srqn,
			.addr = ADDR,
			.rkey = RKEY,
			.compare = 11,
			.swap_add = 12,
			.type = 1,
			.payload_len = rwire_opcode_info[opcode] & RWIRE_HAS_PAYLOAD ? 8 : 0,
			.is_ack_req = true};
}

void
link_deliver(struct rwire_pkt pkt)
{
	static const uint8_t payload[MTU] = {1, 2, 3, 4, 5, 6, 7, 8};

	sim_inject(1, &link_.peer, &pkt, payload, true);
	link_progress();
}

bool
owner_accept(void)
{
	struct rwire_xrc_hello hello;

	owner_.fd = rwire_xrc_socket_accept(owner_.listener);
	if (owner_.fd < 0)
		return false;
	TEST_EQ(recv(owner_.fd, &hello, sizeof(hello), 0), (ssize_t)sizeof(hello));
	hello = rwire_xrc_hello_of(0);
	(void)rwire_shm_send(owner_.fd, &hello, sizeof(hello), link_.file);
	return true;
}

void
owner_open(struct rwire_pkt (*first)(uint32_t), uint32_t length)
{
	link_open();
	owner_.listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_SRQ, FOREIGN);
	TEST_ASSERT(owner_.listener >= 0);
	link_deliver(first(length));
	TEST_ASSERT(owner_accept());
	link_progress();
}

void
owner_hang_up(void)
{
	close(owner_.fd);
	owner_.fd = -1;
	link_progress();
}

void
owner_close(void)
{
	if (owner_.fd >= 0)
		close(owner_.fd);
	close(owner_.listener);
	link_close();
}

void
owner_take(uint8_t opcode, uint8_t flags)
{
	struct {
		struct rwire_xrc_request head;
		uint8_t payload[sizeof(owner_.payload)];
	} got;
	const ssize_t n = recv(owner_.fd, &got, sizeof(got), MSG_DONTWAIT);

	TEST_ASSERT(n >= (ssize_t)sizeof(got.head));
	owner_.request = got.head;
	memcpy(owner_.payload, got.payload, sizeof(owner_.payload));
	owner_.payload_len = (size_t)n - sizeof(got.head);
	TEST_EQ(owner_.request.opcode, opcode);
	TEST_EQ(owner_.request.flags, flags);
	/* SENDs have no key, the others no payload. */
	TEST_EQ(owner_.request.rkey, owner_.payload_len != 0 ? 0 : RKEY);
	TEST_EQ(owner_.payload_len != 0, (rwire_opcode_info[opcode] & RWIRE_HAS_PAYLOAD) != 0);
}

void
owner_expect_nothing(void)
{
	uint8_t byte;

	TEST_EQ(recv(owner_.fd, &byte, sizeof(byte), MSG_DONTWAIT), -1);
}

void
owner_answer(int32_t status, uint32_t at, uint32_t len)
{
	struct {
		struct rwire_xrc_answer head;
		uint8_t data[RWIRE_XRC_CHUNK + 8];
	} message;
	uint32_t i;

	message.head = (struct rwire_xrc_answer){.seq = owner_.request.seq, .status = status};
	for (i = 0; i < len; i++)
		message.data[i] = owner_byte(at + i);
	TEST_EQ(send(owner_.fd, &message, sizeof(message.head) + len, 0),
			(ssize_t)(sizeof(message.head) + len));
	/* 64 packets are sent per call. */
	for (i = 0; i < 4; i++)
		link_progress();
}
