/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Single packets: those of an attacker have no effect, and the answers to those of the peer are
 * those of the specification.
 */

#include <string.h>
#include <sys/mman.h>

#include <rmem_driver.h>

#include "soft/mem/rsoft_guard.h"

#include "../rc.h"
#include "sides.h"

/* A packet for side 1 that is valid from side 0. */
static struct rwire_pkt
make_attack(uint8_t opcode)
{
	const struct rsoft_qp *qp = (const struct rsoft_qp *)sides[1].qp;

	return (struct rwire_pkt){.opcode = opcode,
			.qpn = qp->qp.qp_num,
			.psn = qp->wire->rsp.psn,
			.addr = (uintptr_t)sides[1].target,
			.rkey = sides[1].mr->rkey,
			.dma_len = 8,
			.payload_len = opcode == RWIRE_WRITE_ONLY ? 8 : 0,
			.is_ack_req = true};
}

static void
attack(const struct rwire_addr *src, struct rwire_pkt *pkt, bool is_good)
{
	static const uint8_t evil[RWIRE_MAX_MTU] = {0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee};
	struct rmem_wc wc;

	sim_inject(1, src, pkt, evil, is_good);
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
	TEST_MEM(sides[1].target, sides[1].model, SIZE);
}

/* A QP of UC with an SRQ on side 1, connected to the QP of side 0. */
static void
make_uc(struct rmem_srq **srq, struct rmem_qp **qp)
{
	const struct rmem_srq_conf srq_conf = {.max_wr = 2, .max_sge = 1};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_UC,
			.max_send_wr = 1,
			.max_send_sge = 1,
			.send_cq = sides[1].send_cq,
			.recv_cq = sides[1].recv_cq};

	TEST_OK(rmem_srq_create(sides[1].pd, &srq_conf, srq));
	conf.srq = *srq;
	TEST_OK(rmem_qp_create(sides[1].pd, &conf, qp));
	rc_connect(*qp, sides[0].qp, (struct rmem_qp_conn){0});
}

/* A message that is too long, one that loses a packet, and one that is received. */
TEST(wire_sim, message_that_uc_drops_leaves_its_receive_in_the_srq)
{
	const uint8_t opcodes[] = {RWIRE_SEND_FIRST, RWIRE_SEND_LAST, RWIRE_SEND_FIRST,
			RWIRE_SEND_LAST, RWIRE_SEND_ONLY};
	const uint32_t lengths[] = {1024, 2, 1024, 1, 8}, posted[] = {0, 1, 0, 1, 0};
	struct rmem_srq_attr attr;
	struct rmem_recv_wr recv = {.wr_id = 5, .num_sge = 1};
	struct rmem_sge to = {.length = 1025};
	struct rwire_addr peer;
	struct rmem_srq *srq;
	struct rmem_qp *qp;
	struct rmem_wc wc;
	unsigned int i;

	open_sides(1024);
	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &peer));
	make_uc(&srq, &qp);
	to.addr = (uintptr_t)sides[1].local;
	to.lkey = sides[1].mr->lkey;
	recv.sg_list = &to;
	TEST_EQ(rmem_srq_post_recv(srq, &recv, 1), 1);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		struct rwire_pkt pkt = {.service = RWIRE_UC,
				.opcode = opcodes[i],
				.qpn = qp->qp_num,
				.psn = ((struct rsoft_qp *)qp)->wire->rsp.psn + (i == 3),
				.payload_len = lengths[i]};

		sim_inject(1, &peer, &pkt, sides[0].model, true);
		TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
		TEST_OK(rmem_srq_query(srq, &attr));
		TEST_EQ(attr.nb_wr, posted[i]);
	}
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_EQ(wc.wr_id, 5);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_srq_destroy(srq));
	close_side(&sides[0]);
	close_side(&sides[1]);
}

TEST(wire_sim, foreign_packets_are_dropped_and_counted)
{
	struct rwire_addr peer, other;
	struct rmem_dev_stats stats;
	struct rwire_pkt pkt;

	open_sides(1024);
	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &peer) && rwire_addr_parse("127.0.6.3", &other));
	pkt = make_attack(RWIRE_WRITE_ONLY);
	attack(&other, &pkt, true);
	attack(&peer, &pkt, false);
	pkt.qpn ^= 0x800000;
	attack(&peer, &pkt, true);
	/* Ahead of the expected PSN: a NAK, and nothing else. */
	pkt = make_attack(RWIRE_WRITE_ONLY);
	pkt.psn = rwire_psn_add(pkt.psn, 1);
	attack(&peer, &pkt, true);
	/* Of the past, READs and atomics included: nothing is written. */
	pkt = make_attack(RWIRE_WRITE_ONLY);
	pkt.psn = rwire_psn_add(pkt.psn, RWIRE_PSN_MASK);
	attack(&peer, &pkt, true);
	pkt = make_attack(RWIRE_FETCH_ADD);
	pkt.psn = rwire_psn_add(pkt.psn, RWIRE_PSN_MASK);
	attack(&peer, &pkt, true);
	/* Answers to requests that were never sent. */
	pkt = make_attack(RWIRE_ACKNOWLEDGE);
	attack(&peer, &pkt, true);
	pkt = make_attack(RWIRE_READ_RESPONSE_ONLY);
	attack(&peer, &pkt, true);
	/* An invalid rkey moves the QP to ERR, which then accepts no packet. */
	pkt = make_attack(RWIRE_WRITE_ONLY);
	pkt.rkey ^= 1;
	attack(&peer, &pkt, true);
	TEST_EQ(((struct rsoft_qp *)sides[1].qp)->state, RMEM_QPS_ERR);
	pkt.rkey ^= 1;
	attack(&peer, &pkt, true);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.wire_wrong_peers, 1);
	TEST_EQ(stats.wire_icrc_errors, 1);
	TEST_EQ(stats.wire_unknown_qps, 1);
	TEST_EQ(stats.wire_gaps, 1);
	TEST_EQ(stats.wire_duplicates, 2);
	TEST_EQ(stats.bad_rkeys, 1);
	close_sides();
}

/* Each NAK, by the side that sends it and by its receiver; RNR NAKs are counted apart. */
TEST(wire_sim, naks_are_counted_by_both_sides)
{
	struct rmem_sge sge;
	struct rmem_dev_stats stats[2] = {0};
	struct rmem_send_wr wr;
	struct rmem_wc wc;
	unsigned int i;

	open_sides(1024);
	sge = (struct rmem_sge){(uintptr_t)sides[0].local, 8, sides[0].mr->lkey};
	wr = rc_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)sides[1].target, sides[1].mr->rkey ^ 1);
	TEST_EQ(rmem_post_send(sides[0].qp, &wr, 1), 1);
	while (rmem_poll_cq(sides[0].send_cq, &wc, 1) == 0) {
		sim_step(false);
		TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
	}
	TEST_STATUS(wc.status, RMEM_WC_REM_ACCESS_ERR);
	connect_sides();
	wr = rc_wr(RMEM_WR_SEND, &sge);
	for (i = 0; i <= NB_RECV; i++)
		TEST_EQ(rmem_post_send(sides[0].qp, &wr, 1), 1);
	while (stats[1].wire_rnr_naks_sent == 0) {
		sim_step(false);
		for (i = 0; i < 2; i++) {
			TEST_ASSERT(rmem_poll_cq(sides[i].send_cq, &wc, 1) >= 0);
			TEST_OK(rmem_dev_stats_get(sides[i].dev, &stats[i]));
		}
	}
	TEST_EQ(stats[1].wire_naks_sent, 1);
	TEST_EQ(stats[0].wire_naks_received, 1);
	TEST_EQ(stats[0].wire_naks_sent + stats[0].wire_rnr_naks_sent, 0);
	TEST_EQ(stats[1].wire_naks_received, 0);
	close_sides();
}

/* Its first reply may have arrived, and the program invalidated the key then. */
TEST(wire_sim, duplicate_read_of_an_invalid_key_does_not_end_the_qp)
{
	const struct rwire_rsp *rsp;
	struct rwire_pkt pkt, answer;
	struct rwire_addr peer;

	open_sides(1024);
	rsp = &((const struct rsoft_qp *)sides[1].qp)->wire->rsp;
	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &peer));
	pkt = make_attack(RWIRE_READ_REQUEST);
	pkt.psn = rwire_psn_add(pkt.psn, RWIRE_PSN_MASK);
	pkt.rkey ^= 1;
	attack(&peer, &pkt, true);
	TEST_ASSERT(sim_take(0, &answer));
	TEST_EQ(answer.opcode, RWIRE_ACKNOWLEDGE);
	TEST_EQ(answer.syndrome, RWIRE_AETH_NAK_ACC);
	TEST_EQ(answer.psn, pkt.psn);
	TEST_EQ(((struct rsoft_qp *)sides[1].qp)->state, RMEM_QPS_RTS);
	pkt = make_attack(RWIRE_READ_REQUEST);
	attack(&peer, &pkt, true);
	TEST_ASSERT(sim_take(0, &answer));
	TEST_EQ(answer.opcode, RWIRE_READ_RESPONSE_ONLY);
	TEST_EQ(rsp->psn, rwire_psn_add(pkt.psn, 1));
	close_sides();
}

/* A packet after a good WRITE of another address, and what its QP keeps of its refusal. */
struct refused {
	uint8_t opcode;
	uint8_t status;
	uint8_t wr_opcode;
	uint8_t tag; /* changes the rkey */
	uint32_t dma_len;
	uint32_t payload_len;
	uint32_t offset;
	uint32_t why;
	bool has_no_key;
};

static void
check_refused(const struct refused *row)
{
	static const uint8_t payload[RWIRE_MAX_MTU];
	struct rmem_qp_stats stats;
	struct rwire_addr peer;
	struct rwire_pkt pkt;

	open_sides(1024);
	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &peer));
	pkt = make_attack(RWIRE_WRITE_ONLY);
	sim_inject(1, &peer, &pkt, sides[1].target, true);
	TEST_ASSERT(rmem_poll_cq(sides[1].send_cq, &(struct rmem_wc){0}, 1) == 0);
	pkt = make_attack(row->opcode);
	pkt.rkey ^= row->tag;
	pkt.addr += 64 + row->offset;
	pkt.dma_len = row->dma_len;
	pkt.payload_len = row->payload_len;
	sim_inject(1, &peer, &pkt, payload, true);
	TEST_ASSERT(rmem_poll_cq(sides[1].send_cq, &(struct rmem_wc){0}, 1) == 0);
	TEST_OK(rmem_qp_stats_get(sides[1].qp, &stats));
	TEST_EQ(stats.last_error.side, RMEM_QP_ERROR_PEER);
	TEST_STATUS(stats.last_error.status, row->status);
	TEST_EQ(stats.last_error.vendor_err, row->why);
	TEST_EQ(stats.last_error.opcode, row->wr_opcode);
	TEST_EQ(stats.last_error.key, row->has_no_key ? 0 : pkt.rkey);
	TEST_EQ(stats.last_error.addr, row->has_no_key ? 0 : pkt.addr);
	TEST_EQ(stats.last_error.peer_qp_num, sides[0].qp->qp_num);
	close_sides();
}

TEST(wire_sim, refused_packet_is_the_last_error)
{
	const uint8_t inv = RMEM_WC_REM_INV_REQ_ERR, access = RMEM_WC_REM_ACCESS_ERR;
	const uint32_t size = RMEM_VENDOR_ERR_MSG_SIZE;
	const struct refused rows[] = {
			{RWIRE_WRITE_ONLY, inv, RMEM_WR_RDMA_WRITE, 0, 16, 8, 0, size, false},
			{RWIRE_WRITE_FIRST, inv, RMEM_WR_RDMA_WRITE, 0, 8, 1024, 0, size, false},
			{RWIRE_WRITE_MIDDLE, inv, RMEM_WR_RDMA_WRITE, 0, 0, 1024, 0, size, true},
			{RWIRE_READ_REQUEST, inv, RMEM_WR_RDMA_READ, 0, UINT32_MAX, 0, 0, size,
					false},
			{RWIRE_FETCH_ADD, inv, RMEM_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 0, 4,
					RMEM_VENDOR_ERR_ALIGNMENT, false},
			{RWIRE_ATOMIC_WRITE, inv, RMEM_WR_ATOMIC_WRITE, 0, 8, 8, 4,
					RMEM_VENDOR_ERR_ALIGNMENT, false},
			{RWIRE_ATOMIC_WRITE, inv, RMEM_WR_ATOMIC_WRITE, 0, 16, 16, 0, size, false},
			{RWIRE_ATOMIC_WRITE, inv, RMEM_WR_ATOMIC_WRITE, 0, 8, 0, 0, size, false},
			{RWIRE_ATOMIC_WRITE, access, RMEM_WR_ATOMIC_WRITE, 1, 8, 8, 0,
					RMEM_VENDOR_ERR_KEY_TAG, false},
			{RWIRE_WRITE_ONLY, access, RMEM_WR_RDMA_WRITE, 1, 8, 8, 0,
					RMEM_VENDOR_ERR_KEY_TAG, false},
			{RWIRE_READ_REQUEST, access, RMEM_WR_RDMA_READ, 0, 1u << 30, 0, 0,
					RMEM_VENDOR_ERR_KEY_RANGE, false},
			{RWIRE_COMPARE_SWAP, access, RMEM_WR_ATOMIC_CMP_AND_SWP, 1, 0, 0, 0,
					RMEM_VENDOR_ERR_KEY_TAG, false},
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++)
		check_refused(&rows[i]);
}

/* A packet to memory that the program of side 1 has protected. */
static void
check_missing(uint8_t opcode, void *memory, uint32_t rkey)
{
	static const uint8_t payload[8];
	struct rmem_dev_stats stats;
	struct rmem_qp_stats qp_stats;
	struct rwire_addr peer;
	struct rwire_pkt pkt;

	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &peer));
	pkt = make_attack(opcode);
	pkt.addr = (uintptr_t)memory;
	pkt.rkey = rkey;
	pkt.payload_len = rwire_opcode_info[opcode] & RWIRE_HAS_PAYLOAD ? 8 : 0;
	sim_inject(1, &peer, &pkt, payload, true);
	TEST_ASSERT(rmem_poll_cq(sides[1].send_cq, &(struct rmem_wc){0}, 1) == 0);
	TEST_EQ(((struct rsoft_qp *)sides[1].qp)->state, RMEM_QPS_ERR);
	TEST_OK(rmem_qp_stats_get(sides[1].qp, &qp_stats));
	TEST_STATUS(qp_stats.last_error.status, RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(qp_stats.last_error.vendor_err, RMEM_VENDOR_ERR_PAGE_FAULT);
	TEST_EQ(qp_stats.last_error.key, rkey);
	TEST_EQ(qp_stats.last_error.addr, pkt.addr);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.mem_faults, 1);
}

TEST(wire_sim, packet_to_missing_memory_is_a_page_fault)
{
	static const uint8_t opcodes[] = {RWIRE_WRITE_ONLY, RWIRE_WRITE_ONLY_WITH_IMM,
			RWIRE_READ_REQUEST, RWIRE_FETCH_ADD, RWIRE_COMPARE_SWAP,
			RWIRE_ATOMIC_WRITE};
	void *memory = mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rmem_mr *mr;
	unsigned int i;

	TEST_SKIP_IF(!rsoft_guard_has_fast(), "nothing is guarded by a signal handler here");
	TEST_ASSERT(memory != MAP_FAILED);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		TEST_OK(mprotect(memory, 64, PROT_READ | PROT_WRITE));
		open_sides(1024);
		TEST_OK(rmem_mr_reg(sides[1].pd, memory, 64, 0,
				RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE, &mr));
		TEST_OK(mprotect(memory, 64, PROT_NONE));
		check_missing(opcodes[i], memory, mr->rkey);
		TEST_OK(rmem_mr_dereg(mr));
		close_sides();
	}
	munmap(memory, 64);
}

/* Deliver a packet to side 1; the opcode and the PSN of its answer. */
static void
answer(struct rwire_pkt *pkt, uint8_t opcode, uint32_t psn)
{
	static const uint8_t payload[8];
	struct rwire_addr peer;
	struct rwire_pkt got;
	struct rmem_wc wc;

	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &peer));
	sim_inject(1, &peer, pkt, payload, true);
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.opcode, opcode);
	TEST_EQ(got.psn, psn);
	TEST_ASSERT(!sim_take(0, &got));
}

/* Its answer is the empty READ response that rdma_rxe sends. */
TEST(wire_sim, duplicate_atomic_write_is_answered_but_not_executed_again)
{
	struct rwire_pkt word, write;

	open_sides(1024);
	word = make_attack(RWIRE_ATOMIC_WRITE);
	word.payload_len = 8;
	answer(&word, RWIRE_READ_RESPONSE_ONLY, word.psn);
	write = make_attack(RWIRE_WRITE_ONLY);
	answer(&write, RWIRE_ACKNOWLEDGE, write.psn);
	memset(sides[1].target, 0x77, 8);
	answer(&word, RWIRE_READ_RESPONSE_ONLY, word.psn);
	TEST_EQ(sides[1].target[0], 0x77);
	close_sides();
}

/* rdma_rxe processes such an ACK as the response, and completes the READ without its data. */
TEST(wire_sim, acknowledgement_never_has_the_psn_of_a_read_or_atomic)
{
	struct rwire_pkt write, read, add;

	open_sides(1024);
	write = make_attack(RWIRE_WRITE_ONLY);
	read = make_attack(RWIRE_READ_REQUEST);
	read.psn = rwire_psn_add(write.psn, 1);
	add = make_attack(RWIRE_FETCH_ADD);
	add.psn = rwire_psn_add(write.psn, 2);
	answer(&write, RWIRE_ACKNOWLEDGE, write.psn);
	answer(&read, RWIRE_READ_RESPONSE_ONLY, read.psn);
	answer(&write, RWIRE_ACKNOWLEDGE, write.psn);
	answer(&add, RWIRE_ATOMIC_ACKNOWLEDGE, add.psn);
	answer(&write, RWIRE_ACKNOWLEDGE, write.psn);
	answer(&add, RWIRE_ATOMIC_ACKNOWLEDGE, add.psn);
	TEST_OK(rmem_qp_set_error(sides[1].qp));
	answer(&write, RWIRE_ACKNOWLEDGE, write.psn);
	close_sides();
}

/*
 * A side that does not run for longer than its timeout finds more packets of the peer than a burst
 * has, and then the acknowledgement of its WRITE.
 */
TEST(wire_sim, acknowledgement_queued_in_the_port_is_not_late)
{
	struct rmem_dev_stats stats;
	struct rmem_wc wc;
	unsigned int i;

	open_sides(256);
	post_write(&sides[0], SLOT_SIZE);
	post_write(&sides[0], SLOT_SIZE);
	post_write(&sides[1], 8);
	sim_step(false);
	TEST_EQ(rmem_poll_cq(sides[0].send_cq, &wc, 1), 0);
	for (i = 0; i < 20; i++)
		sim_step(true);
	for (i = 0; rmem_poll_cq(sides[1].send_cq, &wc, 1) == 0; i++)
		TEST_ASSERT(i < 10);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_ASSERT(i != 0);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.wire_timeouts, 0);
	close_sides();
}

/* Move the QP of a side from RESET to RTS step by step, as programs of verbs do. */
static void
modify_to_rts(struct side *side, uint8_t traffic_class)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1, .path_mtu = 3};
	struct rmem_qp_attr peer;

	TEST_OK(rmem_qp_query(peer_of(side)->qp, &peer));
	attr.access = RMEM_ACCESS_REMOTE_WRITE;
	TEST_OK(rmem_qp_modify(side->qp, &attr,
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS));
	attr.state = RMEM_QPS_RTR;
	memcpy(attr.ah.dgid, peer.addr.gid, sizeof(attr.ah.dgid));
	attr.ah.is_global = 1;
	attr.ah.port_num = 1;
	attr.ah.traffic_class = traffic_class;
	attr.dest_qp_num = peer.addr.qp_num;
	TEST_OK(rmem_qp_modify(side->qp, &attr,
			RMEM_QP_STATE | RMEM_QP_AV | RMEM_QP_PATH_MTU | RMEM_QP_DEST_QPN |
					RMEM_QP_RQ_PSN | RMEM_QP_MAX_DEST_RD_ATOMIC |
					RMEM_QP_MIN_RNR_TIMER));
	attr.state = RMEM_QPS_RTS;
	TEST_OK(rmem_qp_modify(side->qp, &attr,
			RMEM_QP_STATE | RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT | RMEM_QP_RNR_RETRY |
					RMEM_QP_SQ_PSN | RMEM_QP_MAX_QP_RD_ATOMIC));
}

/* Requests and acknowledgements. */
TEST(wire_sim, packets_have_the_traffic_class_of_the_path)
{
	struct rmem_wc wc;
	unsigned int i;

	open_sides(1024);
	for (i = 0; i < 2; i++)
		TEST_OK(rmem_qp_reset(sides[i].qp));
	modify_to_rts(&sides[0], 0x88);
	modify_to_rts(&sides[1], 0xfc);
	memset(&sim_counts, 0, sizeof(sim_counts));
	post_write(&sides[0], 8);
	while (rmem_poll_cq(sides[0].send_cq, &wc, 1) == 0) {
		sim_step(true);
		TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
	}
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(sim_counts.sent, 2);
	TEST_EQ(sim_counts.sent_of[0x88], 1);
	TEST_EQ(sim_counts.sent_of[0xfc], 1);
	close_sides();
}

/* The next packet to a side is a CNP of its QP. */
static int
take_cnp(unsigned int to)
{
	struct rwire_pkt pkt;

	TEST_ASSERT(sim_take(to, &pkt));
	TEST_EQ(pkt.service, RWIRE_CN);
	TEST_EQ(pkt.opcode, RWIRE_CNP);
	TEST_EQ(pkt.qpn, sides[to].qp->qp_num);
	TEST_EQ(pkt.payload_len, RWIRE_CNP_LEN);
	TEST_ASSERT(!pkt.is_solicited && !pkt.is_ack_req && pkt.psn == 0);
	return TEST_SUCCESS;
}

/* A WRITE of one packet to side 1; its answers stay in flight. */
static void
write_marked(struct rwire_pkt *pkt, uint8_t traffic_class)
{
	struct rwire_addr peer;
	struct rmem_wc wc;

	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &peer));
	sim_inject_class(1, &peer, pkt, sides[0].model, traffic_class);
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
}

/* Once in 50 us, and for marked packets alone: those that a switch may mark have none. */
TEST(wire_sim, marked_packets_are_answered_with_cnps)
{
	struct rmem_dev_stats stats;
	struct rwire_pkt pkt;
	unsigned int i;

	open_sides(1024);
	for (i = 0; i < 4; i++) {
		pkt = make_attack(RWIRE_WRITE_ONLY);
		pkt.is_ack_req = false;
		write_marked(&pkt, (uint8_t)i);
	}
	TEST_RUN(take_cnp(0));
	TEST_ASSERT(!sim_take(0, &pkt));
	pkt = make_attack(RWIRE_WRITE_ONLY);
	pkt.is_ack_req = false;
	write_marked(&pkt, RSOFT_GRH_CE);
	TEST_ASSERT(!sim_take(0, &pkt));
	sim_step(true);
	pkt = make_attack(RWIRE_WRITE_ONLY);
	pkt.is_ack_req = false;
	write_marked(&pkt, 0x88 | RSOFT_GRH_CE);
	TEST_RUN(take_cnp(0));
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.wire_ecn_marked, 3);
	TEST_EQ(stats.wire_cnps_sent, 2);
	TEST_EQ(stats.wire_malformed, 0);
	close_side(&sides[0]);
	close_side(&sides[1]);
}

/* They change nothing; and a marked one has no answer. */
TEST(wire_sim, cnps_are_counted)
{
	struct rwire_pkt pkt = {.service = RWIRE_CN, .opcode = RWIRE_CNP};
	struct rmem_dev_stats stats;

	open_sides(1024);
	pkt.qpn = sides[1].qp->qp_num;
	pkt.payload_len = RWIRE_CNP_LEN;
	write_marked(&pkt, RSOFT_GRH_CE);
	pkt.payload_len = RWIRE_CNP_LEN - 4;
	write_marked(&pkt, 0);
	pkt.opcode = RWIRE_CNP + 1;
	pkt.payload_len = RWIRE_CNP_LEN;
	write_marked(&pkt, 0);
	TEST_ASSERT(!sim_take(0, &pkt));
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.wire_cnps_received, 1);
	TEST_EQ(stats.wire_malformed, 2);
	TEST_EQ(stats.wire_cnps_sent, 0);
	TEST_EQ(((struct rsoft_qp *)sides[1].qp)->state, RMEM_QPS_RTS);
	close_side(&sides[0]);
	close_side(&sides[1]);
}

static bool
allows(const char *prefixes, const char *ip)
{
	struct rwire_allow allow = {0};
	struct rwire_addr addr;

	return rwire_allow_parse(&allow, prefixes) == 0 && rwire_addr_parse(ip, &addr) &&
			rwire_allow_has(&allow, &addr);
}

TEST(wire_sim, allow_takes_addresses_and_prefixes)
{
	static const char *const bad[] = {"10.0.0.0/33", "10.0.0/8", "10.0.0.1/", "10.0.0.1/8a",
			"::1/129", "host", ";", "10.0.0.1/-1", "10.0.0.1 ", "224.0.0.0/4",
			"0.0.0.0", "::", "0.0.0.0/33", "ff00::/8", "::ffff:10.0.0.1/129"};
	struct rwire_allow allow = {0};
	size_t i;

	TEST_ASSERT(allows("", "192.0.2.1"));
	TEST_ASSERT(allows("192.0.2.1", "192.0.2.1"));
	TEST_ASSERT(!allows("192.0.2.1", "192.0.2.2"));
	TEST_ASSERT(!allows("192.0.2.1", "2001:db8::1"));
	TEST_ASSERT(allows("10.0.0.0/8;192.0.2.128/25", "192.0.2.255"));
	TEST_ASSERT(!allows("10.0.0.0/8;192.0.2.128/25", "192.0.2.127"));
	TEST_ASSERT(allows("10.0.0.0/0", "192.0.2.127"));
	TEST_ASSERT(!allows("10.0.0.0/0", "2001:db8::1"));
	TEST_ASSERT(allows("2001:db8::/33", "2001:db8:7fff::1"));
	TEST_ASSERT(!allows("2001:db8::/33", "2001:db8:8000::1"));
	TEST_ASSERT(allows("2001:db8::1/128", "2001:db8::1"));
	TEST_ASSERT(allows("0.0.0.0/0", "192.0.2.127"));
	TEST_ASSERT(!allows("0.0.0.0/0", "2001:db8::1"));
	TEST_ASSERT(!allows("0.0.0.0/1", "192.0.2.127"));
	TEST_ASSERT(allows("::/0", "2001:db8::1") && allows("::/0", "192.0.2.127"));
	TEST_ASSERT(allows("::ffff:0.0.0.0/96", "192.0.2.127"));
	TEST_ASSERT(allows("::ffff:10.0.0.1/104", "10.1.2.3"));
	TEST_ASSERT(!allows("::ffff:10.0.0.1/104", "11.1.2.3"));
	TEST_ASSERT(allows("::ffff:10.0.0.1/8", "11.1.2.3"));
	for (i = 0; i < RTE_DIM(bad); i++)
		TEST_EQ(rwire_allow_parse(&(struct rwire_allow){0}, bad[i]), -EINVAL);
	for (i = 0; i < RWIRE_MAX_ALLOW; i++)
		TEST_OK(rwire_allow_parse(&allow, "10.0.0.0/8"));
	TEST_EQ(rwire_allow_parse(&allow, "10.0.0.0/8"), -EINVAL);
}

TEST(wire_sim, qp_is_connected_to_an_allowed_peer_only)
{
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC, .max_send_wr = 1};
	struct rmem_cq_conf cq_conf = {.nb_cqe = 4};
	struct rmem_qp_conn conn = {.remote.qp_num = 5};
	struct rwire_addr addr;
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_qp *qp;

	TEST_EQ(rmem_dev_create("soft0", "ip=127.0.7.9,allow=127.0.7.0/33", &dev), -EINVAL);
	TEST_EQ(rmem_dev_create("soft0", "allow=127.0.7.8", &dev), -EINVAL);
	TEST_OK(rmem_dev_create("soft0", "ip=127.0.7.9,allow=127.0.7.8/31", &dev));
	TEST_OK(rmem_pd_alloc(dev, &pd));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &conf.send_cq));
	conf.recv_cq = conf.send_cq;
	TEST_OK(rmem_qp_create(pd, &conf, &qp));
	TEST_ASSERT(rwire_addr_parse("127.0.7.10", &addr));
	memcpy(conn.remote.gid, addr.gid, sizeof(addr.gid));
	TEST_EQ(rmem_qp_connect(qp, &conn), -EINVAL);
	TEST_ASSERT(rwire_addr_parse("127.0.7.8", &addr));
	memcpy(conn.remote.gid, addr.gid, sizeof(addr.gid));
	TEST_OK(rmem_qp_connect(qp, &conn));
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_cq_destroy(conf.send_cq));
	TEST_OK(rmem_pd_dealloc(pd));
	TEST_OK(rmem_dev_close(dev));
}
