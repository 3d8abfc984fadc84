/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Links to SRQs of other processes; see rwire_xrc.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../base/rsoft_fork.h"
#include "port/rwire_shm.h"
#include "port/rwire_xrc_socket.h"
#include "rwire_xrc.h"

#define MIN_LINKS 64
#define MAX_LINKS 4096
/* PSNs of a packet that is held. Invariant: those of all that fit are less than 2^23. */
#define MAX_HELD_PSNS 1024

static const char magic[8] = "rmemxrc";

uint32_t
rwire_xrc_max_links(void)
{
	struct rlimit limit = {.rlim_cur = 0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return (uint32_t)RTE_MIN(RTE_MAX(limit.rlim_cur / 4, (rlim_t)MIN_LINKS), (rlim_t)MAX_LINKS);
}

int
rwire_xrc_begin(struct rwire *wire)
{
	struct rwire_xrc *xrc;

	if (wire->xrc != NULL)
		return 0;
	xrc = calloc(1, sizeof(*xrc));
	if (xrc == NULL)
		return -ENOMEM;
	xrc->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (xrc->epoll < 0) {
		RSOFT_LOG(ERR, "XRC domain: epoll_create1(): %s", strerror(errno));
		free(xrc);
		return -ENOMEM;
	}
	xrc->max = rwire_xrc_max_links();
	TAILQ_INIT(&xrc->outs);
	__atomic_store_n(&wire->has_xrc, true, __ATOMIC_RELAXED);
	__atomic_store_n(&wire->xrc, xrc, __ATOMIC_RELEASE);
	return 0;
}

bool
rwire_xrc_watch(struct rwire_xrc *xrc, struct rwire_xrc_end *end)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = end};

	return epoll_ctl(xrc->epoll, EPOLL_CTL_ADD, end->fd, &event) == 0;
}

struct rwire_xrc_hello
rwire_xrc_hello_of(int status)
{
	struct rwire_xrc_hello hello = {.version = RWIRE_XRC_VERSION, .status = status};

	memcpy(hello.magic, magic, sizeof(hello.magic));
	return hello;
}

bool
rwire_xrc_hello_is_valid(const struct rwire_xrc_hello *hello, ssize_t len, bool is_truncated)
{
	return len == (ssize_t)sizeof(*hello) && !is_truncated &&
			memcmp(hello->magic, magic, sizeof(magic)) == 0 &&
			hello->version == RWIRE_XRC_VERSION;
}

uint32_t
rwire_xrc_data_len(uint8_t opcode, uint32_t dma_len)
{
	if (opcode == RWIRE_READ_REQUEST)
		return RTE_MIN(dma_len, (uint32_t)RWIRE_XRC_CHUNK);
	return (rwire_opcode_info[opcode] & RWIRE_HAS_ATOMIC) != 0 ? sizeof(uint64_t) : 0;
}

/* Close the least recently used link that is not in use; false if there is none. */
static bool
out_reclaim(struct rwire_xrc *xrc)
{
	struct rwire_xrc_out *out;

	TAILQ_FOREACH(out, &xrc->outs, lru) {
		if (out->q->rsp.away == out || out->q->rsp.fetch == out)
			continue;
		rwire_xrc_out_close(out);
		return true;
	}
	return false;
}

static struct rwire_xrc_out *
out_find(struct rwire_qp *q, uint32_t srqn)
{
	struct rwire_xrc_out *out;

	LIST_FOREACH(out, &q->away, next) {
		if (out->srqn == srqn)
			break;
	}
	return out;
}

/* Connect to an SRQ, send a hello, and list the link. In a section; as out_connect(). */
static int
out_open(struct rwire_qp *q, struct rwire_xrc_out *out)
{
	const struct rmem_xrcd *domain = q->qp->domain;
	struct rwire_xrc_hello hello = rwire_xrc_hello_of(0);
	struct rwire_xrc *xrc = q->wire->xrc;
	int fd = rwire_xrc_socket_connect(domain, RWIRE_XRC_SRQ, out->srqn);

	if (fd < 0)
		return fd == -ECONNREFUSED ? RMEM_WC_REM_INV_REQ_ERR : RSOFT_WAIT_PEER;
	hello.qp_num = q->qp->qp.qp_num;
	hello.mtu = q->mtu;
	out->end = (struct rwire_xrc_end){.kind = RWIRE_XRC_OUT, .fd = fd};
	if (!rwire_shm_send(fd, &hello, sizeof(hello), domain->fd) ||
			!rwire_xrc_watch(xrc, &out->end)) {
		close(fd);
		return RSOFT_WAIT_PEER;
	}
	xrc->nb++;
	LIST_INSERT_HEAD(&q->away, out, next);
	TAILQ_INSERT_TAIL(&xrc->outs, out, lru);
	return 0;
}

/* Connect to an SRQ: 0 with *out, or an enum rmem_wc_status or rsoft_wait. */
static int
out_connect(struct rwire_qp *q, uint32_t srqn, struct rwire_xrc_out **out)
{
	struct rwire_xrc *xrc = q->wire->xrc;
	struct rwire_xrc_out *new_out;
	int ret, state;

	if (xrc->nb >= xrc->max && !out_reclaim(xrc))
		return RSOFT_WAIT_PEER;
	new_out = calloc(1, sizeof(*new_out));
	if (new_out == NULL)
		return RSOFT_WAIT_PEER;
	new_out->q = q;
	new_out->srqn = srqn;
	state = rsoft_fork_begin();
	ret = out_open(q, new_out);
	rsoft_fork_end(state);
	if (ret == 0)
		*out = new_out;
	else
		free(new_out);
	return ret;
}

/* Copy the payload of a packet; false: its peer has unmapped it. */
static bool
copy_payload(uint8_t *data, const struct rwire_pkt *pkt)
{
	const struct rsoft_span from = {.ptr = pkt->payload, .length = pkt->payload_len};
	const struct rsoft_span to = {.ptr = data, .length = pkt->payload_len};

	return pkt->payload_len == 0 ||
			rsoft_copy_all(&to, &from, pkt->payload_len) == RSOFT_SIDE_NONE;
}

/* Keep the first request until the hello. */
static int
out_hold(struct rwire_xrc_out *out, const struct rwire_xrc_request *request,
		const struct rwire_pkt *pkt)
{
	out->held_len = (uint32_t)sizeof(*request) + pkt->payload_len;
	out->held = malloc(out->held_len);
	if (out->held == NULL)
		return RSOFT_WAIT_PEER;
	memcpy(out->held, request, sizeof(*request));
	if (copy_payload(out->held + sizeof(*request), pkt))
		return RMEM_WC_SUCCESS;
	free(out->held);
	out->held = NULL;
	return RSOFT_WAIT_PEER;
}

/* Send a request; as rwire_xrc_forward(). With a payload that its peer has unmapped, the kernel
 * reports EFAULT. */
static int
out_send(struct rwire_xrc_out *out, struct rwire_xrc_request *request, const struct rwire_pkt *pkt)
{
	struct iovec iov[2] = {{request, sizeof(*request)}, {pkt->payload, pkt->payload_len}};
	const struct msghdr msg = {.msg_iov = iov, .msg_iovlen = RTE_DIM(iov)};

	if (!out->is_open)
		return out_hold(out, request, pkt);
	if (sendmsg(out->end.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return RMEM_WC_SUCCESS;
	return errno == EPIPE || errno == ECONNRESET ? RMEM_WC_REM_INV_REQ_ERR : RSOFT_WAIT_PEER;
}

/* The link to the SRQ of a packet: of the message in progress, or any. */
static int
out_get(struct rwire_qp *q, uint32_t srqn, struct rwire_xrc_out **out)
{
	if (q->rsp.message != 0) {
		/* A message has one SRQ. */
		*out = q->rsp.away;
		return *out != NULL && (*out)->srqn == srqn ? 0 : RMEM_WC_REM_INV_REQ_ERR;
	}
	*out = out_find(q, srqn);
	if (*out != NULL)
		return 0;
	return rwire_xrc_begin(q->wire) == 0 ? out_connect(q, srqn, out) : RSOFT_WAIT_PEER;
}

static void
set_data(struct rwire_xrc_out *out, uint8_t *data, uint32_t len, uint32_t at)
{
	free(out->data);
	out->data = data;
	out->data_len = len;
	out->data_at = at;
}

/* A link that is not the most recently used one is used. */
static void
out_used(struct rwire_xrc_out *out)
{
	struct rwire_xrc *xrc = out->q->wire->xrc;
	int state = rsoft_fork_begin();

	TAILQ_REMOVE(&xrc->outs, out, lru);
	TAILQ_INSERT_TAIL(&xrc->outs, out, lru);
	rsoft_fork_end(state);
}

/* Send the next request, with memory for the data of its answer; as rwire_xrc_forward(). */
static int
out_request(struct rwire_xrc_out *out, struct rwire_xrc_request *request,
		const struct rwire_pkt *pkt, uint32_t at)
{
	const uint32_t len = rwire_xrc_data_len(request->opcode, request->dma_len);
	uint8_t *data = len != 0 ? malloc(len) : NULL;
	int status;

	if (len != 0 && data == NULL)
		return RSOFT_WAIT_PEER;
	request->seq = out->seq + 1;
	status = out_send(out, request, pkt);
	if (status != RMEM_WC_SUCCESS) {
		free(data);
		return status;
	}
	set_data(out, data, len, at);
	out->seq++;
	if (TAILQ_NEXT(out, lru) != NULL)
		out_used(out);
	return RMEM_WC_SUCCESS;
}

int
rwire_xrc_forward(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	struct rwire_xrc_request request = {.opcode = pkt->opcode,
			.flags = (pkt->is_solicited ? RWIRE_XRC_SOLICITED : 0) |
					(pkt->is_shared ? RWIRE_XRC_SHARED : 0),
			.type = pkt->type,
			.level = pkt->level,
			.access = q->qp->access & RWIRE_XRC_ACCESS,
			.imm = pkt->imm,
			.rkey = pkt->rkey,
			.dma_len = pkt->dma_len,
			.addr = pkt->addr,
			.compare = pkt->compare,
			.swap_add = pkt->swap_add};
	struct rwire_xrc_out *out = NULL;
	bool is_answered;
	int status = out_get(q, pkt->srqn, &out);

	if (status != 0)
		return status;
	is_answered = (pkt->info & (RWIRE_IS_FIRST | RWIRE_IS_LAST)) != 0 || pkt->is_shared ||
			out->nb_unanswered + 1 == RWIRE_XRC_WINDOW;
	request.flags |= is_answered ? RWIRE_XRC_ANSWERED : 0;
	status = out_request(out, &request, pkt, 0);
	if (status != RMEM_WC_SUCCESS)
		return status;
	q->rsp.away = out;
	out->nb_unanswered = is_answered ? 0 : out->nb_unanswered + 1;
	if (!is_answered)
		return RMEM_WC_SUCCESS;
	out->pkt = *pkt;
	out->pkt.payload = NULL;
	return RSOFT_WAIT_AWAY;
}

/* Request the data of a reply from an offset on; false: not possible now. */
static bool
fetch_request(struct rwire_qp *q, const struct rwire_reply *reply, uint32_t at)
{
	struct rwire_xrc_request request = {.opcode = RWIRE_READ_REQUEST,
			.flags = RWIRE_XRC_ANSWERED | RWIRE_XRC_AGAIN,
			.access = q->qp->access & RWIRE_XRC_ACCESS,
			.rkey = reply->rkey,
			.dma_len = RTE_MIN(reply->length - at, (uint32_t)RWIRE_XRC_CHUNK),
			.addr = reply->addr + at};
	const struct rwire_pkt no_payload = {.payload = NULL};
	struct rwire_xrc_out *out = q->rsp.fetch;

	if (out == NULL)
		out = out_find(q, reply->srqn);
	if (out == NULL &&
			(rwire_xrc_begin(q->wire) != 0 || out_connect(q, reply->srqn, &out) != 0))
		return false;
	/* If the owner has closed the link, an event follows, which ends the wait. */
	if (out_request(out, &request, &no_payload, at) == RSOFT_WAIT_PEER)
		return false;
	q->rsp.fetch = out;
	q->rsp.is_fetching = true;
	out->nb_unanswered = 0;
	return true;
}

bool
rwire_xrc_fetch(struct rwire_qp *q, struct rwire_reply *reply)
{
	const struct rwire_xrc_out *out = q->rsp.fetch;
	const uint32_t at = reply->sent * q->mtu;

	if (q->rsp.is_fetching)
		return false;
	if (reply->length == 0 || (out != NULL && at - out->data_at < out->data_len))
		return true;
	if (!fetch_request(q, reply, at))
		reply->nb_psn = reply->sent;
	return false;
}

void
rwire_xrc_fetched(const struct rwire_qp *q, const struct rwire_reply *reply, uint8_t *data,
		uint32_t n)
{
	const struct rwire_xrc_out *out = q->rsp.fetch;

	memcpy(data, out->data + (reply->sent * q->mtu - out->data_at), n);
}

void
rwire_xrc_fetch_end(struct rwire_qp *q)
{
	if (q->rsp.fetch != NULL)
		set_data(q->rsp.fetch, NULL, 0, 0);
	q->rsp.fetch = NULL;
}

void
rwire_xrc_out_open(struct rwire_xrc_out *out)
{
	out->is_open = true;
	if (out->held == NULL)
		return;
	/* The socket is empty: no other request precedes it. */
	if (send(out->end.fd, out->held, out->held_len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		(void)shutdown(out->end.fd, SHUT_RDWR);
	free(out->held);
	out->held = NULL;
}

void
rwire_xrc_out_close(struct rwire_xrc_out *out)
{
	struct rwire_xrc *xrc = out->q->wire->xrc;
	int state;

	if (out->q->rsp.away == out)
		out->q->rsp.away = NULL;
	if (out->q->rsp.fetch == out) {
		out->q->rsp.fetch = NULL;
		out->q->rsp.is_fetching = false;
	}
	state = rsoft_fork_begin();
	rwire_xrc_socket_unwatch(xrc->epoll, &out->end.fd);
	LIST_REMOVE(out, next);
	TAILQ_REMOVE(&xrc->outs, out, lru);
	rsoft_fork_end(state);
	xrc->nb--;
	free(out->data);
	free(out->held);
	free(out);
}

bool
rwire_xrc_hold(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	const int32_t ahead = rwire_psn_diff(pkt->psn, q->rsp.psn);
	const uint32_t bytes = (uint32_t)sizeof(struct rwire_xrc_held) + pkt->payload_len;
	const uint32_t nb_psn = rwire_pkt_nb_psn(q, pkt);
	struct rwire_xrc_held *held;

	if (ahead != (int32_t)(q->rsp.nb_away + q->rsp.nb_held) ||
			q->held_bytes + bytes > RWIRE_XRC_HELD || nb_psn > MAX_HELD_PSNS)
		return false;
	held = malloc(bytes);
	if (held == NULL)
		return false;
	held->pkt = *pkt;
	held->pkt.payload = held->payload;
	if (!copy_payload(held->payload, pkt)) {
		free(held);
		return false;
	}
	STAILQ_INSERT_TAIL(&q->held, held, next);
	q->held_bytes += bytes;
	q->rsp.nb_held += nb_psn;
	return true;
}

/* Remove the first packet that is held. */
static struct rwire_xrc_held *
held_pop(struct rwire_qp *q)
{
	struct rwire_xrc_held *held = STAILQ_FIRST(&q->held);

	STAILQ_REMOVE_HEAD(&q->held, next);
	q->held_bytes -= (uint32_t)sizeof(*held) + held->pkt.payload_len;
	q->rsp.nb_held -= rwire_pkt_nb_psn(q, &held->pkt);
	return held;
}

/* Whether a packet continues the message in progress, with a payload of a valid length. */
static bool
held_is_part(const struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	return (pkt->info & q->rsp.message) != 0 && (pkt->info & RWIRE_IS_FIRST) == 0 &&
			!pkt->is_shared && pkt->srqn == q->rsp.away->srqn &&
			((pkt->info & RWIRE_IS_LAST) != 0 ? pkt->payload_len - 1 < q->mtu
							  : pkt->payload_len == q->mtu);
}

/* Number of packets that are held and continue the message, and the bytes of their payload. */
static uint32_t
held_count(const struct rwire_qp *q, uint32_t *len)
{
	const struct rwire_xrc_held *held;
	uint32_t nb = 0;

	*len = 0;
	STAILQ_FOREACH(held, &q->held, next) {
		if (!held_is_part(q, &held->pkt) || *len + held->pkt.payload_len > RWIRE_MAX_SHARED)
			break;
		*len += held->pkt.payload_len;
		nb++;
		if (held->pkt.info & RWIRE_IS_LAST)
			break;
	}
	return nb;
}

/*
 * Remove the first packets that are held as one, whose payload is theirs: so that the owner answers
 * once. It is the last of them, with the PSN of the first.
 */
static struct rwire_xrc_held *
held_merge(struct rwire_qp *q, uint32_t nb, uint32_t len)
{
	struct rwire_xrc_held *held, *all = malloc(sizeof(*all) + len);
	const uint32_t psn = STAILQ_FIRST(&q->held)->pkt.psn;
	bool is_ack_req = false;
	uint32_t done = 0;

	if (all == NULL)
		return held_pop(q);
	for (; nb != 0; nb--) {
		held = held_pop(q);
		memcpy(all->payload + done, held->payload, held->pkt.payload_len);
		done += held->pkt.payload_len;
		is_ack_req |= held->pkt.is_ack_req;
		all->pkt = held->pkt;
		free(held);
	}
	all->pkt.psn = psn;
	all->pkt.payload = all->payload;
	all->pkt.payload_len = len;
	all->pkt.is_ack_req = is_ack_req;
	all->pkt.is_shared = true;
	return all;
}

struct rwire_xrc_held *
rwire_xrc_take_held(struct rwire_qp *q)
{
	uint32_t nb, len;

	if (q->rsp.message == 0 || q->rsp.away == NULL)
		return held_pop(q);
	nb = held_count(q, &len);
	return nb > 1 ? held_merge(q, nb, len) : held_pop(q);
}

void
rwire_xrc_drop_held(struct rwire_qp *q)
{
	while (!STAILQ_EMPTY(&q->held))
		free(held_pop(q));
}
