/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A fuzzer of the messages between processes that share an XRC domain: an input is a list of steps
 * of hostile processes of this user. They open the XRC_RECV QP and send calls, connect to the SRQ
 * and send requests, have an SRQ to which the QP forwards requests of its peer, and have a QP that
 * this process opens; with hellos, descriptors and messages of any kind, and end at any time. This
 * process posts receives, and destroys its handles while others hold the QP.
 *
 * After each step an opener that does as it should has got its answer, no byte outside the
 * registered memory is changed or sent, and the QP is in a state of verbs. At the end all others
 * have ended: the device closes all descriptors, no reference to the QP remains, and the next
 * processes are served.
 */

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "soft/wire/port/rwire_xrc_socket.h"
#include "soft/wire/rwire_xrc_qp.h"
#include "../send_fds.h"
#include "fuzz_eal.h"
#include "fuzz_xrc.h"
#include "xorshift.h"

/* Of an input; up to len bytes follow, which change its message by exclusive or from at on. */
struct step {
	uint8_t kind; /* enum step_kind, modulo STEP_NB */
	uint8_t peer; /* bits 0 and 1; bits 4 to 7: enum step_flag */
	uint8_t what; /* opcode or operation */
	uint8_t len;
	uint16_t value; /* a length or an offset */
	uint8_t at;
	uint8_t sel; /* bits of enum step_sel */
};

enum step_kind {
	STEP_DIAL,    /* connect to the QP, with a hello */
	STEP_CALL,    /* a call of an opener */
	STEP_LINK,    /* connect to the SRQ, with a hello */
	STEP_REQUEST, /* a request of a forwarder */
	STEP_PACKET,  /* a request of the peer of the QP */
	STEP_ACCEPT,  /* accept a connection to the foreign SRQ, with a hello */
	STEP_ANSWER,  /* take a request of the device, and answer it */
	STEP_RAW,     /* the bytes are a message */
	STEP_READ,    /* receive all messages of the device */
	STEP_END,     /* a process ends */
	STEP_OPEN,    /* this process opens the foreign QP, and calls it */
	STEP_RECV,    /* this process posts a receive */
	STEP_SRQ,     /* it replaces the SRQ */
	STEP_LEAVE,   /* it destroys its handle of the QP, and opens the QP again */
	STEP_TIME,
	STEP_NB,
};

enum step_flag {
	STEP_IS_FOREIGN = 0x10, /* a packet names the foreign SRQ */
	STEP_BAD_KEY = 0x20,
	STEP_AGAIN = 0x40,
	STEP_SILENT = 0x80, /* no answer is requested, or given */
};

enum step_sel {
	SEL_IS_SHORT = 0x01,   /* a message has value bytes, modulo a few more than it should */
	SEL_OTHER_FILE = 0x02, /* with a hello: a file that is not that of the domain */
	SEL_NO_FILE = 0x04,
	SEL_FILES = 0x08,    /* two descriptors */
	SEL_NO_HELLO = 0x10, /* none */
	SEL_FULL = 0x20,     /* the payload of a packet is that of one that others follow */
};

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	RTE_SET_USED(argc);
	fuzz_eal_init((*argv)[0]);
	fuzz_xrc_open();
	return 0;
}

/* Change a message as a step requests; its length. */
static size_t
change(const struct step *step, void *message, size_t size, const uint8_t *bytes, uint32_t n)
{
	uint8_t *to = message;
	uint32_t i;

	for (i = 0; i < n && step->at % size + i < size; i++)
		to[step->at % size + i] ^= bytes[i];
	return step->sel & SEL_IS_SHORT ? step->value % (size + 4) : size;
}

static void
send_hello(const struct step *step, int fd, uint32_t qp_num, const uint8_t *bytes, uint32_t n)
{
	struct rwire_xrc_hello hello[2] = {rwire_xrc_hello_of(0)};
	size_t len;

	if (fd < 0 || step->sel & SEL_NO_HELLO)
		return;
	hello[0].qp_num = qp_num;
	hello[0].mtu = MTU;
	len = change(step, hello, sizeof(hello[0]), bytes, n);
	(void)send_fds(fd, hello, len, MSG_DONTWAIT,
			step->sel & SEL_OTHER_FILE ? fz.other : fz.file,
			step->sel & SEL_NO_FILE                 ? 0
					: step->sel & SEL_FILES ? 2
								: 1);
}

static void
peer_close(struct peer *peer)
{
	close_fd(&peer->fd);
	peer->is_taking = false;
}

static void
step_connect(const struct step *step, struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	const bool is_qp = step->kind % STEP_NB == STEP_DIAL;

	peer_close(peer);
	peer->fd = rwire_xrc_socket_connect(fz.domain, is_qp ? RWIRE_XRC_QP : RWIRE_XRC_SRQ,
			is_qp ? fz.qp->qp_num : fuzz_xrc_srq_number());
	send_hello(step, peer->fd, step->value, bytes, n);
}

static void
step_call(const struct step *step, const struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	static const uint32_t masks[] = {RMEM_QP_STATE,
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS,
			RMEM_QP_STATE | RMEM_QP_AV | RMEM_QP_PATH_MTU | RMEM_QP_DEST_QPN |
					RMEM_QP_RQ_PSN | RMEM_QP_MAX_DEST_RD_ATOMIC |
					RMEM_QP_MIN_RNR_TIMER,
			RMEM_QP_STATE | RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT | RMEM_QP_RNR_RETRY |
					RMEM_QP_SQ_PSN | RMEM_QP_MAX_QP_RD_ATOMIC};
	struct rwire_xrc_qp_request request[2] = {{.seq = 1u + step->value}};
	struct rmem_qp_call *to = &request[0].call;

	if (peer->fd < 0)
		return;
	to->op = step->what % 7;
	if (to->op == RMEM_QP_CALL_MODIFY) {
		to->attr = fz.attr;
		to->attr.state = step->what / 7 % 8;
		to->mask = masks[to->attr.state % RTE_DIM(masks)];
	} else if (to->op == RMEM_QP_CALL_CONNECT) {
		to->conn.remote = fz.attr.remote;
		to->conn.timeout = 8;
	}
	(void)send(peer->fd, request, change(step, request, sizeof(request[0]), bytes, n),
			MSG_DONTWAIT | MSG_NOSIGNAL);
	fz.nb_calls++;
}

/* Addresses in the memory, at both of its ends, and beyond. */
static uint64_t
address(const struct step *step)
{
	const uint64_t base = (uintptr_t)fz.memory + GUARD;

	switch (step->sel >> 6) {
	case 0:
	case 1:
		return base + step->value % TARGET;
	case 2:
		return base - (step->value & 0xff);
	default:
		return base + TARGET - (step->value & 0xff);
	}
}

static uint32_t
bad_key(const struct step *step)
{
	return step->peer & STEP_BAD_KEY ? 1u << step->value % 32 : 0;
}

static uint32_t
payload_of(const struct step *step, uint8_t opcode, uint32_t n)
{
	if ((rwire_opcode_info[opcode] & RWIRE_HAS_PAYLOAD) == 0)
		return 0;
	return step->sel & SEL_FULL ? MTU : n;
}

static void
step_request(const struct step *step, const struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	struct {
		struct rwire_xrc_request head;
		uint8_t payload[MTU];
	} request[2] = {{.head = {.seq = step->value,
					 .opcode = step->what % RWIRE_OPCODE_NB,
					 .flags = step->peer & STEP_SILENT ? 0 : RWIRE_XRC_ANSWERED,
					 .access = RMEM_ACCESS_REMOTE | RMEM_ACCESS_FLUSH,
					 .imm = fz.mr->rkey,
					 .rkey = fz.mr->rkey ^ bad_key(step),
					 .dma_len = n,
					 .addr = address(step),
					 .compare = step->value,
					 .swap_add = step->value}}};
	struct rwire_xrc_request *head = &request[0].head;
	uint32_t len = payload_of(step, head->opcode, n);

	if (peer->fd < 0)
		return;
	head->flags |= step->peer & STEP_AGAIN ? RWIRE_XRC_AGAIN : 0;
	if (head->opcode == RWIRE_READ_REQUEST)
		head->dma_len = step->sel & SEL_FULL ? TARGET : step->value;
	if (n != 0)
		memcpy(request[0].payload, bytes, n);
	len += (uint32_t)change(step, head, sizeof(*head), bytes, n);
	(void)send(peer->fd, request, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static struct rwire_pkt
packet_of(const struct step *step, const struct rwire_qp *q, uint32_t n)
{
	struct rwire_pkt pkt = {.service = RWIRE_XRC,
			.opcode = step->what % RWIRE_OPCODE_NB,
			.qpn = fz.qp->qp_num,
			.psn = rwire_psn_add(q->rsp.psn, q->rsp.nb_away + q->rsp.nb_held),
			.srqn = step->peer & STEP_IS_FOREIGN ? FOREIGN : fuzz_xrc_srq_number(),
			.addr = address(step),
			.rkey = fz.mr->rkey ^ bad_key(step),
			.dma_len = n,
			.imm = fz.mr->rkey,
			.compare = step->value,
			.swap_add = step->value,
			.is_ack_req = (step->peer & STEP_SILENT) == 0};

	if (step->peer & STEP_AGAIN)
		pkt.psn = rwire_psn_add(q->rsp.psn, RWIRE_PSN_MASK - step->value % 4);
	pkt.payload_len = payload_of(step, pkt.opcode, n);
	if (pkt.opcode == RWIRE_READ_REQUEST)
		pkt.dma_len = step->sel & SEL_FULL ? TARGET : step->value;
	return pkt;
}

static void
step_packet(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	const struct rwire_flow flow = {
			.src = fz.peer, .dst = fz.port.port.addr, .src_port = 49152};
	const struct rwire_qp *q = ((const struct rsoft_qp *)fz.qp)->wire;
	uint8_t *bth = fz.port.rx.data + RWIRE_HEADROOM;
	struct rwire_pkt pkt;
	uint32_t len;

	if (q == NULL) /* in RESET */
		return;
	pkt = packet_of(step, q, n);
	memset(fz.port.rx.data, 0, sizeof(fz.port.rx.data));
	memcpy(bth + rwire_hdr_len(rwire_pkt_info(&pkt)), bytes, RTE_MIN(n, pkt.payload_len));
	len = rwire_pkt_build(bth, &pkt);
	rwire_icrc_set(bth, len, &stub_rx(&fz.port.rx, len, true, &flow)->flow);
	fz.port.has_rx = true;
}

static void
step_accept(const struct step *step, struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	peer_close(peer);
	peer->fd = rwire_xrc_socket_accept(fz.srqs);
	send_hello(step, peer->fd, 0, bytes, n);
}

/* Receive a message of the device without waiting: its length, or -1. */
static ssize_t
receive(struct peer *peer)
{
	ssize_t len = recv(peer->fd, fz.bytes, sizeof(fz.bytes), MSG_DONTWAIT);

	if (len > 0)
		fuzz_check_secrets(fz.bytes, (size_t)len);
	if (len == (ssize_t)sizeof(struct rwire_xrc_qp_answer))
		fz.nb_answered++;
	if (len >= (ssize_t)sizeof(peer->request)) {
		memcpy(&peer->request, fz.bytes, sizeof(peer->request));
		peer->is_taking = true;
	}
	return len;
}

static void
step_answer(const struct step *step, struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	static const int32_t statuses[] = {RMEM_WC_SUCCESS, RMEM_WC_SUCCESS, RMEM_WC_SUCCESS,
			RSOFT_WAIT_RNR, RMEM_WC_REM_ACCESS_ERR, RMEM_WC_REM_INV_REQ_ERR};
	struct rwire_xrc_answer *answer = (struct rwire_xrc_answer *)fz.bytes;
	uint32_t len = 0;

	if (peer->fd < 0)
		return;
	while (!peer->is_taking && receive(peer) > 0)
		;
	if (!peer->is_taking || step->peer & STEP_SILENT)
		return;
	memset(fz.bytes, step->value & 0x7f, sizeof(fz.bytes)); /* not SECRET */
	*answer = (struct rwire_xrc_answer){.seq = peer->request.seq,
			.status = statuses[step->what % RTE_DIM(statuses)]};
	if (answer->status == RMEM_WC_SUCCESS && peer->request.opcode < RWIRE_OPCODE_NB)
		len = rwire_xrc_data_len(peer->request.opcode, peer->request.dma_len);
	(void)send(peer->fd, fz.bytes, len + change(step, answer, sizeof(*answer), bytes, n),
			MSG_DONTWAIT | MSG_NOSIGNAL);
	peer->is_taking = false;
	fz.nb_forwarded++;
}

/* The owner of the foreign QP, for one connection. */
struct owner {
	struct step step;
	const uint8_t *bytes;
	uint32_t n;
};

/* Send a hello, an event, and an answer; or none of them. */
static void *
run_owner(void *arg)
{
	const struct owner *owner = arg;
	const struct step *step = &owner->step;
	const bool is_answer = (step->peer & STEP_IS_FOREIGN) != 0; /* changed by the bytes */
	struct pollfd ready = {.fd = fz.qps, .events = POLLIN};
	struct rwire_xrc_qp_answer answer[2] = {{.ret = step->what % 32}};
	struct rwire_xrc_qp_request request;
	struct step plain = *step;
	int fd;

	while (poll(&ready, 1, -1) != 1)
		;
	fd = rwire_xrc_socket_accept(fz.qps);
	CHECK(fd >= 0);
	if (is_answer)
		plain.sel = 0;
	send_hello(&plain, fd, 0, owner->bytes, is_answer ? 0 : owner->n);
	(void)fuzz_xrc_take(fd, &request, sizeof(request)); /* the hello */
	if (step->sel & SEL_FULL)
		(void)send(fd, answer, sizeof(answer[0]), MSG_DONTWAIT | MSG_NOSIGNAL);
	if ((plain.sel & SEL_NO_HELLO) == 0 && (step->peer & STEP_SILENT) == 0 &&
			fuzz_xrc_take(fd, &request, sizeof(request)) == (ssize_t)sizeof(request)) {
		answer[0] = (struct rwire_xrc_qp_answer){.seq = request.seq, .has_attr = 1};
		(void)send(fd, answer,
				is_answer ? change(step, answer, sizeof(answer[0]), owner->bytes,
							    owner->n)
					  : sizeof(answer[0]),
				MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	close(fd);
	return NULL;
}

static void
close_opened(struct rmem_qp *qp)
{
	struct rmem_async_event event;

	while (rmem_async_channel_get_event(fz.channel, &event) == 0) {
		CHECK(event.qp == qp);
		CHECK(rmem_async_event_ack(&event) == 0);
	}
	CHECK(rmem_qp_destroy(qp) == 0);
}

static void
step_open(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	const struct rmem_qp_shared_conf conf = {.qp_num = FOREIGN, .async_channel = fz.channel};
	struct owner owner = {.step = *step, .bytes = bytes, .n = n};
	struct rmem_qp *qp = NULL;
	struct rmem_qp_attr attr;
	pthread_t thread;
	int ret;

	CHECK(pthread_create(&thread, NULL, run_owner, &owner) == 0);
	ret = rmem_qp_get_shared(fz.domain, &conf, &qp);
	CHECK(ret == 0 || ret == -ENOENT || ret == -ENOSPC || ret == -ENOMEM);
	if (qp != NULL) {
		ret = rmem_qp_query(qp, &attr);
		CHECK(ret <= 0 && ret != -ETIMEDOUT);
		fz.nb_opened += ret == 0;
	}
	CHECK(pthread_join(thread, NULL) == 0);
	if (qp != NULL)
		close_opened(qp);
}

static void
step_recv(const struct step *step)
{
	const uint32_t offset = step->value % TARGET;
	const struct rmem_sge sge = {.addr = (uintptr_t)fz.memory + GUARD + offset,
			.length = RTE_MIN(step->len * 16u, TARGET - offset),
			.lkey = fz.mr->lkey};
	const struct rmem_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	(void)rmem_srq_post_recv(fz.srq, &wr, 1);
}

/* If no other process holds the QP, it is another one afterwards. */
static void
step_leave(void)
{
	const uint32_t qp_num = fz.qp->qp_num;

	CHECK(rmem_qp_destroy(fz.qp) == 0);
	if (rmem_qp_get(fz.domain, qp_num, &fz.qp) != 0)
		fuzz_xrc_create_qp(&fz.qp);
	fuzz_xrc_connect();
}

static void
step_peer(const struct step *step, struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	switch (step->kind % STEP_NB) {
	case STEP_CALL:
		step_call(step, peer, bytes, n);
		break;
	case STEP_REQUEST:
		step_request(step, peer, bytes, n);
		break;
	case STEP_ACCEPT:
		step_accept(step, peer, bytes, n);
		break;
	case STEP_ANSWER:
		step_answer(step, peer, bytes, n);
		break;
	case STEP_RAW:
		if (peer->fd >= 0)
			(void)send_fds(peer->fd, bytes, n, MSG_DONTWAIT, fz.file, step->what & 1);
		break;
	case STEP_READ:
		while (peer->fd >= 0 && receive(peer) > 0)
			;
		break;
	case STEP_END:
		peer_close(peer);
		break;
	default:
		step_connect(step, peer, bytes, n);
		break;
	}
}

static void
run_step(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	switch (step->kind % STEP_NB) {
	case STEP_PACKET:
		step_packet(step, bytes, n);
		break;
	case STEP_OPEN:
		step_open(step, bytes, n);
		break;
	case STEP_RECV:
		step_recv(step);
		break;
	case STEP_SRQ:
		CHECK(rmem_srq_destroy(fz.srq) == 0);
		fuzz_xrc_create_srq();
		break;
	case STEP_LEAVE:
		step_leave();
		break;
	case STEP_TIME:
		fz.now += step->value * (rte_get_tsc_hz() / 100000);
		break;
	default:
		step_peer(step, &fz.peers[step->peer % MAX_PEERS], bytes, n);
		break;
	}
}

static void
check_step(void)
{
	struct rmem_qp_attr attr;

	fuzz_xrc_poll();
	fuzz_xrc_settle();
	fuzz_xrc_poll();
	CHECK(rmem_qp_query(fz.qp, &attr) == 0);
	CHECK(attr.state <= RMEM_QPS_ERR && attr.addr.qp_num == fz.qp->qp_num);
}

/* The next processes are served: an opener, and a forwarder that reads memory. */
static void
check_service(void)
{
	const struct step step = {.kind = STEP_LINK};
	const struct step read = {.what = RWIRE_READ_REQUEST, .value = 8};
	struct peer *peer = &fz.peers[0];
	int fd = fuzz_xrc_dial(fz.qp);

	CHECK(fuzz_xrc_call(fd, RMEM_QP_CALL_RESET) == 0);
	close(fd);
	step_connect(&step, peer, NULL, 0);
	CHECK(peer->fd >= 0);
	fuzz_xrc_poll();
	CHECK(receive(peer) == (ssize_t)sizeof(struct rwire_xrc_hello));
	step_request(&read, peer, NULL, 0);
	fuzz_xrc_poll();
	CHECK(receive(peer) == (ssize_t)sizeof(struct rwire_xrc_answer) + 8);
	peer_close(peer);
}

/* All others have ended: no descriptor and no reference is left. */
static void
check_end(void)
{
	const struct rmem_qp_drv *drv = (const struct rmem_qp_drv *)fz.qp;
	uint32_t i;
	int fd;

	for (i = 0; i < MAX_PEERS; i++)
		peer_close(&fz.peers[i]);
	fz.port.has_rx = false;
	check_service();
	fuzz_xrc_connect();
	for (i = 0; fuzz_nb_open() != fz.nb_open; i++) {
		CHECK(i < 1000);
		while ((fd = rwire_xrc_socket_accept(fz.srqs)) >= 0)
			close(fd);
		fuzz_xrc_poll();
		fuzz_xrc_settle();
	}
	CHECK(__atomic_load_n(&drv->has_openers, __ATOMIC_ACQUIRE) == 0);
	for (i = 0; i < GUARD; i++)
		CHECK(fz.memory[i] == SECRET && fz.memory[GUARD + TARGET + i] == SECRET);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step step;
	uint32_t n;
	size_t at = 0;

	memset(fz.memory + GUARD, 0, TARGET);
	while (size - at >= sizeof(step)) {
		memcpy(&step, data + at, sizeof(step));
		at += sizeof(step);
		n = (uint32_t)RTE_MIN((size_t)step.len, RTE_MIN(size - at, (size_t)MTU));
		run_step(&step, data + at, n);
		at += n;
		check_step();
	}
	check_end();
	return 0;
}

/* Draw the flags and the peer of a step: most messages are accepted, and each peer has a part. */
static void
draw(struct step *step, uint64_t *state)
{
	static const uint8_t opcodes[] = {RWIRE_SEND_ONLY, RWIRE_SEND_FIRST, RWIRE_SEND_LAST,
			RWIRE_WRITE_ONLY, RWIRE_READ_REQUEST, RWIRE_FETCH_ADD};
	static const uint8_t peers[STEP_NB] = {
			[STEP_LINK] = 1, [STEP_REQUEST] = 1, [STEP_ACCEPT] = 2, [STEP_ANSWER] = 2};

	step->peer = step->kind == STEP_READ ? step->what % 2 : peers[step->kind];
	if (step->kind == STEP_REQUEST || step->kind == STEP_PACKET) {
		step->what = opcodes[step->what % RTE_DIM(opcodes)];
		step->sel = xorshift32(state) % 2 == 0 ? SEL_FULL : 0;
		step->peer |= xorshift32(state) % 2 == 0 ? STEP_IS_FOREIGN : 0;
	}
	if (xorshift32(state) % 8 == 0)
		step->peer = (uint8_t)xorshift32(state);
	if (xorshift32(state) % 8 == 0)
		step->sel = (uint8_t)xorshift32(state);
}

size_t
fuzz_step(uint8_t *to, uint64_t *state)
{
	static const uint8_t kinds[] = {STEP_DIAL, STEP_CALL, STEP_CALL, STEP_CALL, STEP_CALL,
			STEP_LINK, STEP_REQUEST, STEP_REQUEST, STEP_REQUEST, STEP_REQUEST,
			STEP_PACKET, STEP_PACKET, STEP_PACKET, STEP_PACKET, STEP_ACCEPT,
			STEP_ANSWER, STEP_ANSWER, STEP_ANSWER, STEP_RAW, STEP_READ, STEP_READ,
			STEP_END, STEP_OPEN, STEP_RECV, STEP_RECV, STEP_SRQ, STEP_LEAVE, STEP_TIME};
	static const uint8_t follow[STEP_NB] = {[STEP_DIAL] = STEP_CALL,
			[STEP_CALL] = STEP_READ,
			[STEP_LINK] = STEP_REQUEST,
			[STEP_REQUEST] = STEP_READ,
			[STEP_PACKET] = STEP_ACCEPT,
			[STEP_ACCEPT] = STEP_ANSWER,
			[STEP_ANSWER] = STEP_PACKET,
			[STEP_READ] = STEP_REQUEST,
			[STEP_RECV] = STEP_REQUEST};
	static uint8_t last;
	struct step step = {.kind = kinds[xorshift32(state) % RTE_DIM(kinds)],
			.what = (uint8_t)xorshift32(state),
			.len = (uint8_t)(xorshift32(state) % 4 == 0 ? xorshift32(state) % 64 : 0),
			.value = (uint16_t)xorshift32(state),
			.at = (uint8_t)xorshift32(state)};
	uint32_t i;

	if (xorshift32(state) % 4 != 0)
		step.kind = follow[last];
	last = step.kind;
	draw(&step, state);
	memcpy(to, &step, sizeof(step));
	for (i = 0; i < step.len; i++)
		to[sizeof(step) + i] = (uint8_t)xorshift32(state);
	return sizeof(step) + step.len;
}

/* Print what the inputs reached; 0 if it was each kind of message. */
int
fuzz_report(void)
{
	printf("%" PRIu64 " calls were sent, %" PRIu64 " answers received\n", fz.nb_calls,
			fz.nb_answered);
	printf("%" PRIu64 " requests were forwarded, %" PRIu64 " receives succeeded\n",
			fz.nb_forwarded, fz.nb_received);
	printf("%" PRIu64 " opened QPs were queried\n", fz.nb_opened);
	return fz.nb_answered == 0 || fz.nb_forwarded == 0 || fz.nb_received == 0 ||
			fz.nb_opened == 0;
}

void
fuzz_close(void)
{
	fuzz_xrc_close();
	rte_eal_cleanup();
}
