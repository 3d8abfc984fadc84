/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Links to SRQs of this process; see rwire_xrc.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "../base/rsoft_fork.h"
#include "../mem/rsoft_key.h"
#include "../queue/rsoft_rq.h"
#include "port/rwire_shm.h"
#include "port/rwire_xrc_socket.h"
#include "rwire_xrc.h"

#define IN_BURST 16 /* requests of a link per call */

void
rwire_xrc_in_free(struct rwire_xrc_in *in)
{
	if (in->q.rsp.is_inv_waiting)
		rsoft_key_release(in->q.rsp.inv_key);
	rte_ticketlock_lock(&in->qp.rq.lock);
	rsoft_rq_drop(&in->qp);
	rte_ticketlock_unlock(&in->qp.rq.lock);
	rte_free(in->qp.rq.ring);
	rte_free(in);
}

static void
in_unlink(struct rwire_xrc *xrc, struct rwire_xrc_in *in)
{
	int state = rsoft_fork_begin();

	rwire_xrc_socket_unwatch(xrc->epoll, &in->end.fd);
	LIST_REMOVE(in, next);
	rsoft_fork_end(state);
	if (in->q.rsp.is_inv_waiting)
		xrc->nb_waiting--;
	xrc->nb--;
}

/* Close a link; after the grace period, if a request waits for one. */
static void
in_close(struct rwire_xrc *xrc, struct rwire_xrc_in *in)
{
	if (in->q.rsp.is_inv_waiting) {
		rwire_xrc_socket_unwatch(xrc->epoll, &in->end.fd);
		in->is_ending = true;
		return;
	}
	in_unlink(xrc, in);
	rwire_xrc_in_free(in);
}

struct rwire_xrc_in *
rwire_xrc_in_take(struct rwire *wire, const struct rsoft_srq *srq)
{
	struct rwire_xrc_in *in;

	LIST_FOREACH(in, &wire->xrc->ins, next) {
		if (in->srq != srq)
			continue;
		in_unlink(wire->xrc, in);
		return in;
	}
	return NULL;
}

void
rwire_xrc_in_fail(struct rwire *wire)
{
	struct rwire_xrc *xrc = wire->xrc;
	struct rwire_xrc_listener *listener;
	struct rwire_xrc_in *in, *next;

	if (xrc == NULL)
		return;
	xrc->nb_off = 0;
	LIST_FOREACH(listener, &xrc->listeners, next) {
		listener->is_off = false;
		rwire_xrc_socket_unwatch(xrc->epoll, &listener->end.fd);
	}
	for (in = LIST_FIRST(&xrc->ins); in != NULL; in = next) {
		next = LIST_NEXT(in, next);
		in_close(xrc, in);
	}
}

/* Make the responder of a link, which is not in the table of QPs. */
static struct rwire_xrc_in *
in_new(struct rwire *wire, struct rsoft_srq *srq)
{
	const struct rmem_qp_conf conf = {.type = RMEM_QPT_XRC_RECV};
	const int socket_id = (int)(int64_t)wire->dev->args.socket;
	struct rwire_xrc_in *in = rte_zmalloc_socket(
			"rsoft_xrc", sizeof(*in), RTE_CACHE_LINE_SIZE, socket_id);

	if (in == NULL)
		return NULL;
	if (rsoft_rq_init(&in->qp.rq, &conf, socket_id) != 0) {
		rte_free(in);
		return NULL;
	}
	in->srq = srq;
	in->qp.qp.obj.dev_id = srq->srq.obj.dev_id;
	in->qp.qp.type = RMEM_QPT_XRC_RECV;
	in->qp.drv.last_error = &in->last_error;
	in->qp.state = RMEM_QPS_RTS;
	in->qp.dev = wire->dev;
	in->qp.xrcd = srq->xrcd;
	in->qp.max_msg_size = RSOFT_MAX_MSG_SIZE;
	in->q.qp = &in->qp;
	in->q.wire = wire;
	in->q.service = RWIRE_XRC;
	return in;
}

/* Refuse a link that was accepted. */
static void
refuse(int fd, int status)
{
	const struct rwire_xrc_hello hello = rwire_xrc_hello_of(status);

	(void)rwire_shm_send(fd, &hello, sizeof(hello), -1);
	close(fd);
}

/* Accept a link, and list it; without memory for it (NULL) it is refused. Return its descriptor. */
static int
accept_link(struct rwire_xrc *xrc, const struct rwire_xrc_listener *listener,
		struct rwire_xrc_in *in)
{
	int fd, state = rsoft_fork_begin();

	fd = rwire_xrc_socket_accept(listener->end.fd);
	if (fd >= 0 && in != NULL) {
		in->end = (struct rwire_xrc_end){.kind = RWIRE_XRC_IN, .fd = fd};
		LIST_INSERT_HEAD(&xrc->ins, in, next);
	} else if (fd >= 0) {
		refuse(fd, RSOFT_WAIT_RNR);
	}
	rsoft_fork_end(state);
	return fd;
}

void
rwire_xrc_in_accept(struct rwire *wire, struct rwire_xrc_listener *listener)
{
	struct rwire_xrc *xrc = wire->xrc;
	struct rwire_xrc_in *in = xrc->nb < xrc->max ? in_new(wire, listener->srq) : NULL;
	int fd = accept_link(xrc, listener, in);

	if (fd == -ENFILE) {
		/* It stays readable, and would keep the thread awake. */
		(void)epoll_ctl(xrc->epoll, EPOLL_CTL_DEL, listener->end.fd, NULL);
		listener->is_off = true;
		xrc->nb_off++;
		xrc->off_at = wire->now;
	}
	if (in == NULL)
		return;
	if (fd < 0) {
		rwire_xrc_in_free(in);
		return;
	}
	xrc->nb++;
	if (!rwire_xrc_watch(xrc, &in->end))
		in_close(xrc, in);
}

/* Receive the hello of the forwarder, and answer it. False: none, or it is refused. */
static bool
in_open(struct rwire_xrc *xrc, struct rwire_xrc_in *in)
{
	struct rwire_xrc_hello hello = {.version = 0}, own = rwire_xrc_hello_of(0);
	bool is_truncated = false, is_valid;
	int file;
	ssize_t len = rwire_shm_recv(in->end.fd, &hello, sizeof(hello), &file, &is_truncated);

	if (len == -EAGAIN)
		return false;
	is_valid = rwire_xrc_hello_is_valid(&hello, len, is_truncated) && hello.mtu >= 256 &&
			hello.mtu <= RWIRE_MAX_MTU && (hello.mtu & (hello.mtu - 1)) == 0 &&
			rwire_xrc_socket_is_file(in->srq->domain, file);
	if (file >= 0)
		close(file);
	if (len > 0 && !is_valid && !xrc->is_refusal_logged) {
		xrc->is_refusal_logged = true;
		RSOFT_LOG(ERR, "SRQ 0x%06x: process refused: not of this version (%u), or it has not the file of the XRC domain",
				in->srq->number, hello.version);
	}
	if (len > 0 && !is_valid)
		own.status = RMEM_WC_REM_INV_REQ_ERR;
	if (len > 0 &&
			!rwire_shm_send(in->end.fd, &own, sizeof(own),
					is_valid ? in->srq->domain->fd : -1))
		is_valid = false;
	if (len <= 0 || !is_valid) {
		in_close(xrc, in);
		return false;
	}
	in->qp.qp.qp_num = hello.qp_num & 0xffffff;
	in->q.mtu = hello.mtu;
	in->is_open = true;
	return true;
}

/* Send an answer with the first len bytes of rwire_xrc::payload; false: the link was closed. */
static bool
in_send(struct rwire_xrc *xrc, struct rwire_xrc_in *in, struct rwire_xrc_answer answer,
		uint32_t len)
{
	struct iovec iov[2] = {{&answer, sizeof(answer)},
			{xrc->payload, answer.status == RMEM_WC_SUCCESS ? len : 0}};
	const struct msghdr msg = {.msg_iov = iov, .msg_iovlen = RTE_DIM(iov)};

	/* If not, the forwarder has ended, or does not read its answers. */
	if (sendmsg(in->end.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	in_close(xrc, in);
	return false;
}

/* Answer a request, as in_send(). */
static bool
in_answer(struct rwire_xrc *xrc, struct rwire_xrc_in *in, uint32_t seq, uint32_t len)
{
	const struct rwire_xrc_answer answer = {
			.seq = seq, .status = in->status, .vendor_err = in->vendor_err};

	if (in->status == RSOFT_WAIT_RNR)
		in->status = RMEM_WC_SUCCESS;
	return in_send(xrc, in, answer, len);
}

/* Move the counters of a link to those of the device: its responder is not in the table of QPs. */
static void
in_count(struct rwire_xrc_in *in)
{
	struct rwire_stats *stats = &in->q.wire->stats;

	RSOFT_COUNT(stats->link_recvs, in->qp.rq.consumed);
	RSOFT_COUNT(stats->link_bad_rkeys, in->qp.bad_rkeys);
	RSOFT_COUNT(stats->link_faults, in->qp.rq.faults);
	in->qp.rq.consumed = in->qp.bad_rkeys = in->qp.rq.faults = 0;
}

/* Set the status of a request; the first error is that of all later ones. */
static void
in_set_status(struct rwire_xrc_in *in, int status, uint32_t vendor_err)
{
	in_count(in);
	if (status < 0 && status != RSOFT_WAIT_RNR) {
		status = RMEM_WC_REM_OP_ERR;
		vendor_err = RMEM_VENDOR_ERR_NONE;
	}
	in->status = status;
	in->vendor_err = vendor_err;
}

/* Get the data of the answer to a READ or an atomic that was accepted; false: not readable. */
static bool
in_get_data(struct rwire_xrc *xrc, struct rwire_xrc_in *in, const struct rwire_reply *reply)
{
	const uint32_t n = rwire_xrc_data_len(reply->opcode, reply->length);

	if (reply->opcode == RWIRE_READ_REQUEST)
		return rwire_reply_data(&in->q, reply, xrc->payload, n);
	memcpy(xrc->payload, &reply->value, n);
	return true;
}

/*
 * Read more of a READ that was accepted, or a duplicate; false: the link was closed. The state of
 * the responder does not change: a message may be in progress.
 */
static bool
in_read_again(struct rwire_xrc *xrc, struct rwire_xrc_in *in)
{
	const struct rwire_xrc_request *request = &xrc->request;
	const struct rwire_reply reply = {.opcode = RWIRE_READ_REQUEST,
			.rkey = request->rkey,
			.length = request->dma_len,
			.pd = in->srq->owner.pd,
			.addr = request->addr};
	struct rwire_xrc_answer answer = {.seq = request->seq, .status = in->status};

	in->q.rsp.vendor_err = RMEM_VENDOR_ERR_QP_RIGHT; /* or that of the key or memory */
	/* As for a duplicate of a peer. */
	rsoft_guard_ignore_begin();
	if (in->status == RMEM_WC_SUCCESS &&
			((request->access & RMEM_ACCESS_REMOTE_READ) == 0 ||
					!in_get_data(xrc, in, &reply))) {
		answer.status = RMEM_WC_REM_ACCESS_ERR;
		answer.vendor_err = in->q.rsp.vendor_err;
	}
	rsoft_guard_ignore_end();
	return in_send(xrc, in, answer, rwire_xrc_data_len(reply.opcode, reply.length));
}

/* Whether it is a request, whose payload its opcode allows. */
static bool
in_is_valid(const struct rwire_xrc_request *request, uint32_t payload_len)
{
	const uint32_t info =
			request->opcode < RWIRE_OPCODE_NB ? rwire_opcode_info[request->opcode] : 0;

	return (info & RWIRE_IS_REQUEST) != 0 &&
			((info & RWIRE_HAS_PAYLOAD) != 0 || payload_len == 0) &&
			((request->flags & RWIRE_XRC_AGAIN) == 0 ||
					request->opcode == RWIRE_READ_REQUEST);
}

/* Execute a request; false: the link was closed, or waits. */
static bool
in_execute(struct rwire *wire, struct rwire_xrc_in *in, unsigned int lcore, uint32_t payload_len)
{
	const struct rwire_xrc_request *request = &wire->xrc->request;
	struct rwire_reply reply = {.opcode = request->opcode};
	struct rwire_pkt pkt = {.service = RWIRE_XRC,
			.opcode = request->opcode,
			.is_solicited = (request->flags & RWIRE_XRC_SOLICITED) != 0,
			.type = request->type & 0xf,
			.level = request->level & 3,
			.is_shared = (request->flags & RWIRE_XRC_SHARED) != 0,
			.rkey = request->rkey,
			.dma_len = request->dma_len,
			.srqn = in->srq->number,
			.imm = request->imm,
			.payload_len = payload_len,
			.addr = request->addr,
			.compare = request->compare,
			.swap_add = request->swap_add,
			.payload = wire->xrc->payload};
	uint32_t vendor_err = RMEM_VENDOR_ERR_NONE;
	int status;

	pkt.info = rwire_pkt_info(&pkt);
	if (in->status == RMEM_WC_SUCCESS) {
		in->qp.access = request->access & RWIRE_XRC_ACCESS;
		status = rwire_resp_serve(&in->q, lcore, &pkt, &vendor_err, &reply);
		if (status == RSOFT_WAIT_GRACE) {
			wire->xrc->nb_waiting++;
			in->seq = request->seq;
			return false;
		}
		if (status == RMEM_WC_SUCCESS && (pkt.info & RWIRE_IS_MESSAGE) == 0 &&
				!in_get_data(wire->xrc, in, &reply)) {
			status = RMEM_WC_REM_ACCESS_ERR;
			vendor_err = in->q.rsp.vendor_err;
		}
		in_set_status(in, status, vendor_err);
	}
	return (request->flags & RWIRE_XRC_ANSWERED) == 0 ||
			in_answer(wire->xrc, in, request->seq,
					rwire_xrc_data_len(request->opcode, request->dma_len));
}

void
rwire_xrc_in_receive(struct rwire *wire, struct rwire_xrc_in *in, unsigned int lcore)
{
	struct rwire_xrc *xrc = wire->xrc;
	struct iovec iov[2] = {{&xrc->request, sizeof(xrc->request)},
			{xrc->payload, sizeof(xrc->payload)}};
	unsigned int i;
	ssize_t len;

	if (!in->is_open && !in_open(xrc, in))
		return;
	for (i = 0; i < IN_BURST; i++) {
		struct msghdr msg = {.msg_iov = iov, .msg_iovlen = RTE_DIM(iov)};

		/* Without a buffer for them, the kernel closes descriptors that are passed. */
		len = recvmsg(in->end.fd, &msg, MSG_DONTWAIT);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* One request at a time waits: a forwarder waits for its answer. */
		if (len < (ssize_t)sizeof(xrc->request) || (msg.msg_flags & MSG_TRUNC) != 0 ||
				in->q.rsp.is_inv_waiting) {
			in_close(xrc, in);
			return;
		}
		len -= (ssize_t)sizeof(xrc->request);
		if (!in_is_valid(&xrc->request, (uint32_t)len)) {
			in_close(xrc, in);
			return;
		}
		if ((xrc->request.flags & RWIRE_XRC_AGAIN) != 0
						? !in_read_again(xrc, in)
						: !in_execute(wire, in, lcore, (uint32_t)len))
			return;
	}
}

void
rwire_xrc_in_run(struct rwire *wire, unsigned int lcore)
{
	struct rwire_xrc *xrc = wire->xrc;
	struct rwire_xrc_in *in, *next;
	int status;

	for (in = LIST_FIRST(&xrc->ins); in != NULL; in = next) {
		next = LIST_NEXT(in, next);
		if (!in->q.rsp.is_inv_waiting)
			continue;
		status = rwire_resp_serve_end(&in->q, lcore);
		if (status == RSOFT_WAIT_GRACE)
			continue;
		xrc->nb_waiting--;
		in_set_status(in, status, RMEM_VENDOR_ERR_NONE);
		if (in->is_ending)
			in_close(xrc, in);
		else
			(void)in_answer(xrc, in, in->seq, 0);
	}
}
