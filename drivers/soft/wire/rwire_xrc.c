/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Events of XRC domains of several processes; see rwire_xrc.h. */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "port/rwire_shm.h"
#include "port/rwire_xrc_socket.h"
#include "rwire_xrc.h"

#define XRC_BURST 32 /* events per call */

/* Whether a packet waits for the answer of a link. */
static bool
has_waiting(const struct rwire_xrc_out *out)
{
	return out->q->rsp.away == out && out->q->rsp.nb_away != 0;
}

/* Whether anything does. */
static bool
is_waiting(const struct rwire_xrc_out *out)
{
	return has_waiting(out) || (out->q->rsp.fetch == out && out->q->rsp.is_fetching);
}

/* End the wait for an answer of a link, or for more data, if it has one. */
static void
end_wait(struct rwire_xrc_out *out, int status, uint32_t vendor_err)
{
	if (has_waiting(out))
		rwire_resp_answered(out->q, &out->pkt, status, vendor_err);
	else if (out->q->rsp.fetch == out)
		rwire_resp_fetched(out->q, status, vendor_err);
}

/* Close a link whose SRQ does not exist any more, or does not accept it. */
static void
end_link(struct rwire_xrc_out *out, int status)
{
	end_wait(out, status, RMEM_VENDOR_ERR_XRC_SRQ);
	rwire_xrc_out_close(out);
}

/* Receive the hello of the owner; false: none, or the link was closed. */
static bool
receive_hello(struct rwire_xrc_out *out)
{
	struct rwire_xrc_hello hello = {.version = 0};
	int file, status = RMEM_WC_REM_INV_REQ_ERR;
	bool is_truncated = false, is_file;
	ssize_t len = rwire_shm_recv(out->end.fd, &hello, sizeof(hello), &file, &is_truncated);

	if (len == -EAGAIN)
		return false;
	is_file = rwire_xrc_socket_is_file(out->q->qp->domain, file);
	if (file >= 0)
		close(file);
	if (rwire_xrc_hello_is_valid(&hello, len, is_truncated)) {
		if (hello.status == 0 && is_file) {
			rwire_xrc_out_open(out);
			return true;
		}
		if (hello.status == RSOFT_WAIT_RNR)
			status = RSOFT_WAIT_RNR;
	}
	end_link(out, status);
	return false;
}

/* A status that a responder returns; any other one is an error of the owner. */
static int
valid_status(int32_t status)
{
	switch (status) {
	case RMEM_WC_SUCCESS:
	case RMEM_WC_REM_INV_REQ_ERR:
	case RMEM_WC_REM_ACCESS_ERR:
	case RSOFT_WAIT_RNR:
		return status;
	default:
		return RMEM_WC_REM_OP_ERR;
	}
}

static void
receive_answer(struct rwire_xrc_out *out)
{
	struct rwire_xrc_answer answer;
	struct iovec iov[2] = {{&answer, sizeof(answer)}, {out->data, out->data_len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = RTE_DIM(iov)};
	uint32_t vendor_err;
	ssize_t len;

	if (!out->is_open && !receive_hello(out))
		return;
	len = recvmsg(out->end.fd, &msg, MSG_DONTWAIT);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len < (ssize_t)sizeof(answer) || (msg.msg_flags & MSG_TRUNC) != 0) {
		end_link(out, RMEM_WC_REM_INV_REQ_ERR);
		return;
	}
	if (answer.seq != out->seq || !is_waiting(out))
		return;
	/* Memory that was not received must not be sent to the peer. */
	if ((size_t)len - sizeof(answer) !=
			(answer.status == RMEM_WC_SUCCESS ? out->data_len : 0)) {
		end_link(out, RMEM_WC_REM_INV_REQ_ERR);
		return;
	}
	vendor_err = answer.vendor_err < RMEM_VENDOR_ERR_NB ? answer.vendor_err
							    : RMEM_VENDOR_ERR_NONE;
	end_wait(out, valid_status(answer.status), vendor_err);
}

static void
dispatch(struct rwire *wire, struct rwire_xrc_end *end, unsigned int lcore)
{
	switch (end->kind) {
	case RWIRE_XRC_LISTENER:
		rwire_xrc_in_accept(wire, (struct rwire_xrc_listener *)end);
		break;
	case RWIRE_XRC_IN:
		rwire_xrc_in_receive(wire, (struct rwire_xrc_in *)end, lcore);
		break;
	case RWIRE_XRC_OUT:
		receive_answer((struct rwire_xrc_out *)end);
		break;
	}
}

/* Watch listeners again, for which no descriptor was free. */
static void
listen_again(struct rwire *wire)
{
	struct rwire_xrc_listener *listener;

	if (wire->now - wire->xrc->off_at < wire->idle_cycles)
		return;
	LIST_FOREACH(listener, &wire->xrc->listeners, next) {
		if (listener->is_off && rwire_xrc_watch(wire->xrc, &listener->end)) {
			listener->is_off = false;
			wire->xrc->nb_off--;
		}
	}
	wire->xrc->off_at = wire->now;
}

uint32_t
rwire_xrc_poll(struct rwire *wire, unsigned int lcore)
{
	struct rwire_xrc *xrc = wire->xrc;
	struct epoll_event event;
	uint32_t n = 0;

	if (unlikely(xrc->nb_off != 0))
		listen_again(wire);
	if (unlikely(xrc->nb_waiting != 0))
		rwire_xrc_in_run(wire, lcore);
	/* One at a time, because an event may close other links. */
	for (; n < XRC_BURST && epoll_wait(xrc->epoll, &event, 1, 0) == 1; n++)
		dispatch(wire, event.data.ptr, lcore);
	return n + (xrc->nb_waiting != 0);
}
