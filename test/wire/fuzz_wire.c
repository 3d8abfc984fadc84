/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A fuzzer of the wire's receiver, requester and responder: an input is a list of packets of a
 * peer that is hostile but knows the QP number, the PSNs and the rkey, and of requests, receives
 * and time between them. Most packets have a valid ICRC, so that they reach the engine.
 *
 * After each step no byte outside the registered memory is changed, no packet that is sent has a
 * byte of it, and the QP is in a state that is one of verbs. An input begins with a new
 * connection.
 */

#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>

#include "soft/base/rsoft.h"
#include "soft/wire/rwire.h"
#include "fuzz_eal.h"
#include "fuzz_port.h"
#include "xorshift.h"

#include <rmem_cq.h>
#include <rmem_driver.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>
#include <rmem_srq.h>
#include <rmem_xrcd.h>

#define DEPTH  8u
#define TARGET (16u * 1024) /* bytes that the peer may access */
#define QKEY   0x1234567u
#define GUARD  8192u /* bytes on both sides of it, not registered */
#define MTU    1024u

/* Of an input; the bytes of the packet follow. */
struct step {
	uint8_t kind; /* enum step_kind, modulo STEP_NB; bits 4 to 7: flags of enum step_flag */
	uint8_t opcode;
	int8_t psn; /* from the expected one */
	uint8_t sel;
	uint16_t offset;
	uint16_t len;
};

enum step_kind {
	STEP_REQUEST, /* a packet of a requester */
	STEP_RESPONSE,
	STEP_RAW,  /* the bytes are a packet from the BTH on */
	STEP_SEND, /* this side posts a request */
	STEP_RECV, /* this side posts a receive */
	STEP_TIME,
	STEP_NB,
};

enum step_flag {
	STEP_BAD_ICRC = 0x10,
	STEP_ACK_REQ = 0x20,
	STEP_BAD_KEY = 0x40,
	STEP_BAD_PEER = 0x80,
};

static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_xrcd *domain;
	struct rmem_srq *srq;   /* of XRC */
	struct rmem_qp *qps[5]; /* of RC, UC, UD, XRC_RECV and XRC_SEND */
	struct rmem_qp *qp;     /* that of the input */
	struct rmem_ah *ah;     /* of the peer */
	struct rmem_mr *mr;
	uint8_t *memory; /* a guard, the target, a guard */
	struct fuzz_port port;
	struct rwire_addr peer, other;
	uint64_t now;
	uint64_t nb_done[2]; /* requests and receives that succeeded */
} fz;

static uint64_t
fuzz_clock(void)
{
	return fz.now;
}

/* conf: of a QP of the device. */
static void
open_xrc(const struct rmem_qp_conf *conf)
{
	const struct rmem_xrcd_conf domain_conf = {0};
	struct rmem_qp_ext ext = {0};
	struct rmem_qp_conf recv = {.type = RMEM_QPT_XRC_RECV, .access = conf->access, .ext = &ext};
	struct rmem_qp_conf send = *conf;

	CHECK(rmem_xrcd_alloc(fz.dev, &domain_conf, &fz.domain) == 0);
	ext.xrcd = fz.domain;
	CHECK(rmem_qp_create(NULL, &recv, &fz.qps[3]) == 0);
	send.type = RMEM_QPT_XRC_SEND;
	send.max_recv_wr = send.max_recv_sge = 0;
	CHECK(rmem_qp_create(fz.pd, &send, &fz.qps[4]) == 0);
}

static void
open_all(void)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * DEPTH};
	struct rmem_ah_attr path = {.is_global = 1, .port_num = 1};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC,
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.access = RMEM_ACCESS_REMOTE};

	CHECK(rmem_dev_create("soft0", "ip=" FUZZ_IP ",loop=1,progress=poll,mtu=1024", &fz.dev) ==
			0);
	fuzz_port_attach(&fz.port, rmem_dev_drv(fz.dev)->priv);
	CHECK(rwire_addr_parse("127.0.13.2", &fz.peer) &&
			rwire_addr_parse("127.0.13.3", &fz.other));
	CHECK(rmem_pd_alloc(fz.dev, &fz.pd) == 0);
	CHECK(rmem_cq_create(fz.dev, &cq_conf, &fz.cq) == 0);
	conf.send_cq = conf.recv_cq = fz.cq;
	CHECK(rmem_qp_create(fz.pd, &conf, &fz.qps[0]) == 0);
	conf.type = RMEM_QPT_UC;
	CHECK(rmem_qp_create(fz.pd, &conf, &fz.qps[1]) == 0);
	conf.type = RMEM_QPT_UD;
	CHECK(rmem_qp_create(fz.pd, &conf, &fz.qps[2]) == 0);
	open_xrc(&conf);
	memcpy(path.dgid, fz.peer.gid, sizeof(path.dgid));
	CHECK(rmem_ah_create(fz.pd, &path, &fz.ah) == 0);
	fz.memory = malloc(TARGET + 2 * GUARD);
	CHECK(fz.memory != NULL);
	memset(fz.memory, SECRET, TARGET + 2 * GUARD);
	CHECK(rmem_mr_reg(fz.pd, fz.memory + GUARD, TARGET, 0,
			      RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE, &fz.mr) == 0);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	RTE_SET_USED(argc);
	rwire_clock = fuzz_clock;
	fz.now = rte_get_tsc_hz();
	fuzz_eal_init((*argv)[0]);
	open_all();
	return 0;
}

static void
start_ud(void)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1, .qkey = QKEY};

	CHECK(rmem_qp_modify(fz.qp, &attr,
			      RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY) ==
			0);
	attr.state = RMEM_QPS_RTR;
	CHECK(rmem_qp_modify(fz.qp, &attr, RMEM_QP_STATE) == 0);
	attr.state = RMEM_QPS_RTS;
	CHECK(rmem_qp_modify(fz.qp, &attr, RMEM_QP_STATE | RMEM_QP_SQ_PSN) == 0);
}

/* As a peer would be that chose PSN 100. */
static void
reconnect(void)
{
	struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	struct rmem_qp_attr attr;
	struct rmem_wc wc[DEPTH];

	uint32_t i;

	for (i = 0; i < RTE_DIM(fz.qps); i++)
		CHECK(rmem_qp_reset(fz.qps[i]) == 0);
	while (rmem_poll_cq(fz.cq, wc, DEPTH) > 0)
		;
	memset(fz.memory + GUARD, 0, TARGET);
	if (fz.qp->type == RMEM_QPT_UD) {
		start_ud();
		return;
	}
	CHECK(rmem_qp_query(fz.qp, &attr) == 0);
	conn.remote = attr.addr; /* the port's part of it */
	conn.remote.qp_num = 0x123456;
	conn.remote.psn = 100;
	memcpy(conn.remote.gid, attr.addr.gid, sizeof(attr.addr.gid));
	conn.remote.gid[15] = 2; /* fz.peer */
	CHECK(rmem_qp_connect(fz.qp, &conn) == 0);
}

static void
renew_srq(void)
{
	const struct rmem_srq_ext ext = {.xrcd = fz.domain, .cq = fz.cq};
	const struct rmem_srq_conf conf = {.max_wr = DEPTH, .max_sge = 1, .ext = &ext};

	CHECK(rmem_srq_destroy(fz.srq) == 0);
	CHECK(rmem_srq_create(fz.pd, &conf, &fz.srq) == 0);
}

static void
check_all(void)
{
	struct rmem_wc wc[DEPTH];
	struct rmem_qp_attr attr;
	int i, n;

	n = rmem_poll_cq(fz.cq, wc, DEPTH);
	CHECK(n >= 0);
	for (i = 0; i < n; i++) {
		CHECK(wc[i].status <= RMEM_WC_GENERAL_ERR && wc[i].qp_num == fz.qp->qp_num);
		fz.nb_done[(wc[i].opcode & RMEM_WC_RECV) != 0] += wc[i].status == RMEM_WC_SUCCESS;
	}
	CHECK(rmem_qp_query(fz.qp, &attr) == 0);
	CHECK(attr.state == RMEM_QPS_RTS || attr.state == RMEM_QPS_ERR ||
			(attr.state == RMEM_QPS_SQE &&
					(fz.qp->type == RMEM_QPT_UC ||
							fz.qp->type == RMEM_QPT_UD)));
}

static void
check_guards(void)
{
	uint32_t i;

	for (i = 0; i < GUARD; i++)
		CHECK(fz.memory[i] == SECRET && fz.memory[GUARD + TARGET + i] == SECRET);
}

/* Deliver what is in rx_data. */
static void
deliver(const struct step *step, uint32_t len)
{
	const struct rwire_flow flow = {
			.src = step->kind & STEP_BAD_PEER ? fz.other : fz.peer,
			.dst = fz.port.port.addr,
			.src_port = 49152,
	};
	struct rwire_frame *rx = stub_rx(&fz.port.rx, len, (step->sel & 0x80) == 0, &flow);

	if ((step->kind & STEP_BAD_ICRC) == 0 && len > RWIRE_ICRC_LEN + RWIRE_BTH_LEN)
		rwire_icrc_set(rx->bth, len, &rx->flow);
	fz.port.has_rx = true;
}

/* Addresses at both ends of the memory, and beyond. */
static uint64_t
address(const struct step *step)
{
	uint64_t base = (uintptr_t)fz.memory + GUARD;

	if (step->sel & 0x40)
		base += TARGET;
	return step->sel & 0x20 ? base - (step->offset & 0xff) : base + step->offset % TARGET;
}

static void
send_packet(const struct step *step, const uint8_t *bytes, uint32_t n, bool is_response)
{
	const struct rwire_qp *q = ((struct rsoft_qp *)fz.qp)->wire;
	uint8_t opcode = step->opcode % RWIRE_OPCODE_NB;
	uint32_t srqn = 0;
	struct rwire_pkt pkt = {
			.service = q->service,
			.opcode = opcode,
			.qpn = fz.qp->qp_num,
			.psn = rwire_psn_add(is_response ? q->req.una : q->rsp.psn,
					(uint32_t)(int32_t)step->psn & RWIRE_PSN_MASK),
			.syndrome = step->sel,
			.msn = step->offset,
			.addr = address(step),
			.rkey = fz.mr->rkey ^
					(step->kind & STEP_BAD_KEY ? 1u << (step->sel & 31) : 0),
			.dma_len = step->sel & 0x10 ? UINT32_MAX - step->len : step->len,
			.imm = step->sel & 8 ? fz.mr->rkey : step->offset,
			.qkey = QKEY ^ (step->kind & STEP_BAD_KEY ? 1u << (step->sel & 31) : 0),
			.src_qp = step->offset & RWIRE_QPN_MASK,
			.compare = step->offset,
			.swap_add = step->len,
			.is_ack_req = (step->kind & STEP_ACK_REQ) != 0,
	};

	if (fz.srq != NULL && rmem_srq_num_get(fz.srq, &srqn) == 0)
		pkt.srqn = srqn ^ (step->kind & STEP_BAD_KEY ? 1u << (step->sel & 31) : 0);
	if (q->service == RWIRE_UD && (step->opcode & 0x80) == 0)
		pkt.opcode = opcode = RWIRE_SEND_ONLY + (opcode & 1);
	n = RTE_MIN(n, (uint32_t)RWIRE_MAX_MTU);
	if (step->sel & 4) /* a full packet, which a message of several has */
		n = MTU;
	if ((rwire_opcode_info[opcode] & RWIRE_HAS_PAYLOAD) == 0)
		n = 0;
	pkt.payload_len = n;
	memset(fz.port.rx.data, 0, sizeof(fz.port.rx.data));
	if (n != 0 && (step->sel & 4) == 0)
		memcpy(fz.port.rx.data + RWIRE_HEADROOM + rwire_hdr_len(rwire_pkt_info(&pkt)),
				bytes, n);
	n = rwire_pkt_build(fz.port.rx.data + RWIRE_HEADROOM, &pkt);
	fz.port.rx.data[RWIRE_HEADROOM + 1] ^= (uint8_t)((step->sel & 3) << 4); /* the pad */
	deliver(step, n);
}

static void
put_number(uint8_t *to, unsigned int nb_bytes, uint32_t number)
{
	for (; nb_bytes != 0; number >>= 8)
		to[--nb_bytes] = (uint8_t)number;
}

static void
send_raw(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	uint8_t *bth = fz.port.rx.data + RWIRE_HEADROOM;

	n = RTE_MIN(n, (uint32_t)RWIRE_MAX_PKT);
	memset(fz.port.rx.data, 0, sizeof(fz.port.rx.data));
	memcpy(bth, bytes, n);
	if (n >= RWIRE_BTH_LEN && (step->sel & 1)) {
		put_number(&bth[2], 2, RWIRE_PKEY);
		put_number(&bth[5], 3, fz.qp->qp_num);
	}
	if (n >= RWIRE_BTH_LEN && (step->sel & 2))
		put_number(&bth[9], 3, ((struct rsoft_qp *)fz.qp)->wire->rsp.psn);
	deliver(step, n);
}

static struct rmem_sge
sge_of(const struct step *step)
{
	uint32_t offset = step->offset % TARGET;

	return (struct rmem_sge){.addr = (uintptr_t)fz.memory + GUARD + offset,
			.length = RTE_MIN((uint32_t)step->len, TARGET - offset),
			.lkey = fz.mr->lkey};
}

static void
post_send(const struct step *step)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ, RMEM_WR_SEND,
			RMEM_WR_RDMA_WRITE_WITH_IMM, RMEM_WR_SEND_WITH_INV,
			RMEM_WR_ATOMIC_FETCH_AND_ADD};
	struct rmem_sge sge = sge_of(step);
	struct rmem_send_wr wr = {.opcode = opcodes[step->opcode % RTE_DIM(opcodes)],
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.rdma = {.remote_addr = 4096, .rkey = 1}};

	if (wr.opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD) {
		sge.addr = (uintptr_t)fz.memory + GUARD;
		sge.length = sizeof(uint64_t);
		wr.atomic.remote_addr = 4096;
	}
	if (fz.qp->type == RMEM_QPT_UD) {
		wr.opcode = step->opcode & 1 ? RMEM_WR_SEND : RMEM_WR_SEND_WITH_IMM;
		wr.ud.ah = fz.ah;
		wr.ud.remote_qpn = 2;
		wr.ud.remote_qkey = step->offset;
	}
	if (fz.qp->type == RMEM_QPT_XRC_SEND)
		wr.xrc.remote_srqn = step->len;
	(void)rmem_post_send(fz.qp, &wr, 1);
}

static void
post_recv(const struct step *step)
{
	struct rmem_sge sge = sge_of(step);
	struct rmem_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	if (fz.qp->type == RMEM_QPT_XRC_RECV)
		(void)rmem_srq_post_recv(fz.srq, &wr, 1);
	else
		(void)rmem_post_recv(fz.qp, &wr, 1);
}

static uint32_t
run_step(const struct step *step, const uint8_t *bytes, uint32_t left)
{
	uint32_t n = RTE_MIN((uint32_t)step->len % 2048, left);

	/* A QP in ERR has its wire still; one in RESET does not occur. */
	switch ((step->kind & 0xf) % STEP_NB) {
	case STEP_REQUEST:
		send_packet(step, bytes, n, false);
		return n;
	case STEP_RESPONSE:
		send_packet(step, bytes, n, true);
		return n;
	case STEP_RAW:
		send_raw(step, bytes, n);
		return n;
	case STEP_SEND:
		post_send(step);
		return 0;
	case STEP_RECV:
		post_recv(step);
		return 0;
	default:
		fz.now += (uint64_t)step->offset * (rte_get_tsc_hz() / 100000);
		return 0;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step step;
	size_t at = 0;

	/* The last byte selects the service. */
	fz.qp = fz.qps[size != 0 ? data[size - 1] % RTE_DIM(fz.qps) : 0];
	reconnect();
	if (fz.qp->type == RMEM_QPT_XRC_RECV)
		renew_srq();
	while (size - at >= sizeof(step)) {
		memcpy(&step, data + at, sizeof(step));
		at += sizeof(step);
		at += run_step(&step, data + at, (uint32_t)(size - at));
		check_all();
	}
	check_guards();
	return 0;
}

/* Its PSN is the expected one most of the time, flags and bytes are rare. */
size_t
fuzz_step(uint8_t *to, uint64_t *state)
{
	uint32_t len = xorshift32(state) % 4 == 0 ? xorshift32(state) % 2048
						  : xorshift32(state) % 16;
	size_t i;

	for (i = 0; i < sizeof(struct step); i++)
		to[i] = (uint8_t)xorshift32(state);
	to[0] = (uint8_t)(to[0] % 6 | (xorshift32(state) % 8 == 0 ? to[0] & 0xf0 : 0));
	to[2] = (uint8_t)(xorshift32(state) % 4 == 0 ? (int)(xorshift32(state) % 5) - 2 : 0);
	if (xorshift32(state) % 4 != 0)
		to[3] &= 0x0f; /* an address within the memory */
	if (xorshift32(state) % 8 != 0)
		to[3] &= 0xfc; /* a pad that is right */
	to[6] = (uint8_t)len;
	to[7] = (uint8_t)(len >> 8);
	for (i = 0; i < len; i++)
		to[sizeof(struct step) + i] = (uint8_t)xorshift32(state);
	return sizeof(struct step) + len;
}

/* Print what the inputs reached; 0 if it was each part of the engine. */
int
fuzz_report(void)
{
	static const uint8_t sent[] = {RWIRE_SEND_ONLY, RWIRE_WRITE_FIRST, RWIRE_READ_REQUEST,
			RWIRE_FETCH_ADD, RWIRE_ACKNOWLEDGE, RWIRE_READ_RESPONSE_ONLY,
			RWIRE_READ_RESPONSE_FIRST, RWIRE_ATOMIC_ACKNOWLEDGE,
			RWIRE_UC | RWIRE_SEND_ONLY, RWIRE_UC | RWIRE_WRITE_FIRST,
			RWIRE_UD | RWIRE_SEND_ONLY, RWIRE_XRC | RWIRE_SEND_ONLY,
			RWIRE_XRC | RWIRE_READ_REQUEST, RWIRE_XRC | RWIRE_ACKNOWLEDGE,
			RWIRE_XRC | RWIRE_READ_RESPONSE_ONLY, RWIRE_XRC | RWIRE_ATOMIC_ACKNOWLEDGE};
	uint32_t i;
	int rc = fz.nb_done[0] == 0 || fz.nb_done[1] == 0;

	printf("%" PRIu64 " requests and %" PRIu64 " receives succeeded\n", fz.nb_done[0],
			fz.nb_done[1]);
	for (i = 0; i < RTE_DIM(sent); i++) {
		printf("%" PRIu64 " packets of opcode 0x%02x were sent\n", fz.port.nb_sent[sent[i]],
				sent[i]);
		rc |= fz.port.nb_sent[sent[i]] == 0;
	}
	return rc;
}

void
fuzz_close(void)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(fz.qps); i++)
		CHECK(rmem_qp_destroy(fz.qps[i]) == 0);
	CHECK(rmem_srq_destroy(fz.srq) == 0);
	CHECK(rmem_xrcd_dealloc(fz.domain) == 0);
	CHECK(rmem_ah_destroy(fz.ah) == 0);
	CHECK(rmem_cq_destroy(fz.cq) == 0);
	CHECK(rmem_mr_dereg(fz.mr) == 0);
	CHECK(rmem_pd_dealloc(fz.pd) == 0);
	CHECK(rmem_dev_close(fz.dev) == 0);
	free(fz.memory);
	rte_eal_cleanup();
}
