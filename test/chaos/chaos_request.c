/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Requests through the keys of all threads, messages, and what their completions may be. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chaos.h"

#define RECV_STRIDE 512u
#define RECV_QUIET  0xa7
#define MAGIC       UINT32_C(0x6368616f)

struct message {
	uint32_t magic;
	uint32_t qp; /* of the sender */
	uint32_t epoch;
	uint32_t count;
	uint32_t length;
	uint32_t pad;
};

static uint32_t
imm_of(const struct ch_qp *q, uint32_t count)
{
	return (q->epoch & 0xfff) << 20 | (count & 0xfffff);
}

static struct rmem_send_wr
new_wr(struct ch_thread *t, uint8_t opcode)
{
	struct rmem_send_wr wr = {.opcode = opcode};

	if (!ch_one_in(t, 4))
		wr.flags |= RMEM_SEND_SIGNALED;
	if (ch_one_in(t, 8))
		wr.flags |= RMEM_SEND_FENCE;
	if (ch_one_in(t, 8))
		wr.flags |= RMEM_SEND_SOLICITED;
	return wr;
}

/* One SGE or two over the scratch area of the next request; PD 1 has none but inline data. */
static void
set_sges(struct ch_thread *t, struct ch_qp *q, struct rmem_send_wr *wr, struct rmem_sge *sge,
		uint32_t length, struct ch_pending *p)
{
	const uint64_t addr = (uintptr_t)ch_scratch(q, q->sends.tail);
	uint32_t lkey = t->local->lkey;

	if (q->pd != 0 ||
			(length <= 64 && ch_one_in(t, 4) && wr->opcode != RMEM_WR_RDMA_READ &&
					wr->opcode < RMEM_WR_ATOMIC_CMP_AND_SWP)) {
		wr->flags |= RMEM_SEND_INLINE;
	} else if (ch_one_in(t, 400)) {
		lkey = ch_one_in(t, 2) ? t->local->rkey : lkey ^ 1;
		p->is_bad_lkey = true;
		p->is_refused = true;
	}
	sge[0] = (struct rmem_sge){addr, length, lkey};
	wr->sg_list = sge;
	wr->num_sge = 1;
	if (length > 1 && wr->opcode != RMEM_WR_ATOMIC_CMP_AND_SWP && ch_one_in(t, 4)) {
		sge[0].length = 1 + ch_below(t, length - 1);
		sge[1] = (struct rmem_sge){addr + sge[0].length, length - sge[0].length, lkey};
		wr->num_sge = 2;
	}
}

static bool
send_message(struct ch_thread *t, struct ch_qp *q)
{
	static const uint8_t opcodes[] = {
			RMEM_WR_SEND, RMEM_WR_SEND, RMEM_WR_SEND_WITH_IMM, RMEM_WR_SEND_WITH_INV};
	const struct message message = {MAGIC, q->index, q->epoch, q->nb_messages,
			(uint32_t)sizeof(message) + ch_below(t, CH_RECV_SIZE - sizeof(message)), 0};
	struct rmem_send_wr wr = new_wr(t, opcodes[ch_below(t, 4)]);
	struct ch_pending p = {.bind = -1};
	uint8_t *scratch = ch_scratch(q, q->sends.tail);
	struct rmem_sge sge[2];
	bool is_ok;

	if (q->pd != 0 || ch_peer(q)->pd != 0)
		return true;
	if (wr.opcode == RMEM_WR_SEND_WITH_INV) {
		p.entry = ch_pick(t, &p.grant);
		if (p.grant.inv_qp != ch_peer(q)->index || !ch_claim(p.entry, p.grant.id)) {
			wr.opcode = RMEM_WR_SEND;
		} else {
			wr.invalidate_rkey = p.grant.rkey;
			ch_note(t, "QP %u: SEND_WITH_INV of grant %" PRIu64 " rkey 0x%x", q->index,
					p.grant.id, p.grant.rkey);
		}
		p.grant.id = 0;
	}
	if (wr.opcode == RMEM_WR_SEND_WITH_IMM)
		wr.imm_data = imm_of(q, q->nb_messages);
	memset(scratch, (int)(message.count & 0xff), message.length);
	memcpy(scratch, &message, sizeof(message));
	set_sges(t, q, &wr, sge, message.length, &p);
	if (ch_post(t, q, &wr, &p, &is_ok))
		q->nb_messages++;
	return is_ok;
}

/* All lcores add to one number. */
static bool
add(struct ch_thread *t, struct ch_qp *q)
{
	struct rmem_send_wr wr = new_wr(t, RMEM_WR_ATOMIC_FETCH_AND_ADD);
	const struct ch_pending p = {.bind = -1, .is_sum = true};
	const struct rmem_sge sge = {(uintptr_t)ch_scratch(q, q->sends.tail), 8, t->local->lkey};
	bool is_ok;

	if (q->pd != 0 || ch_peer(q)->pd != 0)
		return true;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.atomic.remote_addr = ch.sum_mr->iova;
	wr.atomic.rkey = ch.sum_mr->rkey;
	wr.atomic.compare_add = 1;
	ch_post(t, q, &wr, &p, &is_ok);
	return is_ok;
}

static uint32_t
right_for(uint8_t opcode)
{
	switch (opcode) {
	case RMEM_WR_RDMA_READ:
		return RMEM_ACCESS_REMOTE_READ;
	case RMEM_WR_ATOMIC_CMP_AND_SWP:
	case RMEM_WR_ATOMIC_FETCH_AND_ADD:
		return RMEM_ACCESS_REMOTE_ATOMIC;
	default:
		return RMEM_ACCESS_REMOTE_WRITE;
	}
}

/* Mostly inside; what reaches outside must fail. Atomics are of aligned words. */
static void
choose_range(struct ch_thread *t, uint8_t opcode, uint32_t max, struct ch_pending *p)
{
	const bool is_atomic = right_for(opcode) == RMEM_ACCESS_REMOTE_ATOMIC;
	const uint32_t length = p->grant.length;

	if (is_atomic) {
		p->offset = 8 * ch_below(t, length / 8);
		p->length = 8;
	} else {
		p->length = 1 + ch_below(t, RTE_MIN(length, max));
		p->offset = ch_below(t, length - p->length + 1);
	}
	if (ch_one_in(t, 100)) {
		p->offset = is_atomic ? length : length - p->length + 1 + ch_below(t, p->length);
		p->is_refused = true;
	} else if (ch_one_in(t, 100)) {
		p->offset = is_atomic ? -8u : -1u;
		p->is_refused = true;
	}
}

static void
prepare_data(const struct ch_pending *p, uint8_t opcode, uint8_t *scratch)
{
	uint32_t i;

	if (opcode == RMEM_WR_RDMA_READ || right_for(opcode) == RMEM_ACCESS_REMOTE_ATOMIC) {
		memset(scratch, 0, p->length);
		return;
	}
	for (i = 0; i < p->length; i++)
		scratch[i] = ch_stamp_byte(p->grant.id, p->offset + i);
}

/* Whether a request of that kind through that key is worth it: failures take long. */
static bool
is_wanted(struct ch_thread *t, const struct ch_qp *q, uint8_t opcode, struct ch_pending *p)
{
	const struct ch_grant *grant = &p->grant;

	if (grant->state == CH_NONE ||
			(q->pd != 0 && right_for(opcode) != RMEM_ACCESS_REMOTE_WRITE))
		return false;
	if (grant->state != CH_CHANGING &&
			((grant->access & right_for(opcode)) == 0 || grant->pd != ch_peer(q)->pd ||
					(grant->only_qp != CH_NO_QP &&
							grant->only_qp != ch_peer(q)->index))) {
		p->is_refused = true;
		return ch_one_in(t, 100);
	}
	if (grant->state == CH_LIVE)
		return true;
	if (__atomic_load_n(&ch.ids, __ATOMIC_RELAXED) - grant->id > CH_MAX_AGE)
		return false;
	return ch_one_in(t, grant->state == CH_ENDED ? 30 : 4);
}

static bool
use_grant(struct ch_thread *t, struct ch_qp *q)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE,
			RMEM_WR_RDMA_WRITE_WITH_IMM, RMEM_WR_RDMA_READ, RMEM_WR_RDMA_READ,
			RMEM_WR_ATOMIC_CMP_AND_SWP, RMEM_WR_ATOMIC_FETCH_AND_ADD};
	struct rmem_send_wr wr = new_wr(t, opcodes[ch_below(t, RTE_DIM(opcodes))]);
	struct ch_pending p = {.bind = -1};
	struct rmem_sge sge[2];
	bool is_ok;

	p.entry = ch_pick(t, &p.grant);
	if (!is_wanted(t, q, wr.opcode, &p))
		return true;
	if (wr.opcode == RMEM_WR_RDMA_WRITE_WITH_IMM) {
		if (ch_peer(q)->pd != 0)
			wr.opcode = RMEM_WR_RDMA_WRITE;
		wr.imm_data = imm_of(q, q->nb_messages);
	}
	choose_range(t, wr.opcode, q->pd != 0 ? 64 : CH_SCRATCH_SIZE, &p);
	prepare_data(&p, wr.opcode, ch_scratch(q, q->sends.tail));
	set_sges(t, q, &wr, sge, p.length, &p);
	if (right_for(wr.opcode) == RMEM_ACCESS_REMOTE_ATOMIC) {
		wr.num_sge = 1;
		sge[0].length = 8;
		wr.atomic.remote_addr = p.grant.addr + (uint64_t)(int32_t)p.offset;
		wr.atomic.rkey = p.grant.rkey;
		if (wr.opcode == RMEM_WR_ATOMIC_CMP_AND_SWP) {
			wr.atomic.compare_add = ch_fill_word(p.grant.id);
			wr.atomic.swap = ch_stamp_word(p.grant.id);
		}
	} else {
		wr.rdma.remote_addr = p.grant.addr + (uint64_t)(int32_t)p.offset;
		wr.rdma.rkey = p.grant.rkey;
	}
	if (p.is_refused || p.grant.state == CH_ENDED)
		ch_note(t, "QP %u: opcode %u must fail: grant %" PRIu64 " state %u at %d, %u bytes",
				q->index, wr.opcode, p.grant.id, p.grant.state, (int)p.offset,
				p.length);
	if (ch_post(t, q, &wr, &p, &is_ok) && wr.opcode == RMEM_WR_RDMA_WRITE_WITH_IMM)
		q->nb_messages++;
	return is_ok;
}

bool
ch_request(struct ch_thread *t, struct ch_qp *q)
{
	switch (ch_below(t, 8)) {
	case 0:
	case 1:
		return send_message(t, q);
	case 2:
		return add(t, q);
	default:
		return use_grant(t, q);
	}
}

static bool
has_grant_of(struct ch_thread *t, const struct ch_qp *q, const struct ch_pending *p)
{
	const uint8_t *scratch = ch_scratch(q, p->seq);

	if (p->opcode != RMEM_WR_RDMA_READ && right_for(p->opcode) != RMEM_ACCESS_REMOTE_ATOMIC)
		return true;
	return CH_CHECK(t, ch_is_of(p->grant.id, p->offset, scratch, p->length),
			"QP %u: opcode %u read bytes that are not of grant %" PRIu64
			": %u at %u, first 0x%02x",
			q->index, p->opcode, p->grant.id, p->length, p->offset, scratch[0]);
}

static bool
judge_success(struct ch_thread *t, const struct ch_qp *q, const struct ch_pending *p)
{
	struct ch_grant now;

	t->nb_succeeded++;
	if (p->grant.id == 0)
		return CH_CHECK(t, !p->is_bad_lkey, "QP %u: a bad lkey succeeded", q->index);
	ch_read(p->entry, &now);
	if (p->is_bad_lkey || (p->is_refused && now.version == p->grant.version))
		return CH_FAIL(t,
				"QP %u: opcode %u through grant %" PRIu64
				" (%s, rkey 0x%x, access 0x%x, %u bytes of %u at %d, bad lkey %d) "
				"succeeded",
				q->index, p->opcode, p->grant.id,
				p->grant.id != 0 ? p->grant.kind : "none", p->grant.rkey,
				p->grant.access, p->length, p->grant.length, (int)p->offset,
				p->is_bad_lkey);
	if (p->grant.state == CH_ENDED && now.version == p->grant.version)
		return CH_FAIL(t,
				"QP %u: opcode %u through rkey 0x%x of grant %" PRIu64
				" (%s), which had ended, succeeded (of %" PRIu64 " grants)",
				q->index, p->opcode, p->grant.rkey, p->grant.id, p->grant.kind,
				ch.ids);
	return has_grant_of(t, q, p);
}

static bool
judge_failure(struct ch_thread *t, const struct ch_qp *q, const struct ch_pending *p, int status)
{
	struct ch_grant now;

	switch (status) {
	case RMEM_WC_WR_FLUSH_ERR:
	case RMEM_WC_RETRY_EXC_ERR:
	case RMEM_WC_RNR_RETRY_EXC_ERR:
		return true;
	case RMEM_WC_LOC_PROT_ERR:
		if (p->is_bad_lkey)
			return true;
		break;
	case RMEM_WC_REM_ACCESS_ERR:
		t->nb_refused++;
		if (p->is_refused)
			return true;
		if (p->grant.id == 0)
			break;
		ch_read(p->entry, &now);
		if (p->grant.state != CH_LIVE || now.version != p->grant.version)
			return true;
		break;
	default:
		break;
	}
	return CH_FAIL(t,
			"QP %u: opcode %u through grant %" PRIu64
			" (%s, rkey 0x%x, access 0x%x, %u "
			"bytes of %u at %d) ended with %s, vendor_err %u",
			q->index, p->opcode, p->grant.id, p->grant.id != 0 ? p->grant.kind : "none",
			p->grant.rkey, p->grant.access, p->length, p->grant.length, (int)p->offset,
			rmem_wc_status_str(status), q->vendor_err);
}

bool
ch_done(struct ch_thread *t, struct ch_qp *q, const struct ch_pending *p, int status)
{
	if (p->is_sum && status == RMEM_WC_SUCCESS)
		__atomic_add_fetch(&ch.nb_added, 1, __ATOMIC_RELAXED);
	else if (p->is_sum && status < 0)
		__atomic_add_fetch(&ch.nb_lost, 1, __ATOMIC_RELAXED);
	/* Requests of an earlier epoch were dropped already. */
	if (status < 0 || p->epoch != q->epoch)
		return true;
	if (p->bind >= 0)
		return ch_bind_done(t, p->bind, status);
	if (status == RMEM_WC_SUCCESS)
		return judge_success(t, q, p);
	return judge_failure(t, q, p, status);
}

static uint8_t *
recv_buf(const struct ch_qp *q, uint32_t i)
{
	return q->recv_bufs + i * RECV_STRIDE;
}

static bool
is_recv_quiet(struct ch_thread *t, const struct ch_qp *q, uint32_t i, uint32_t from)
{
	const uint8_t *buf = recv_buf(q, i);

	for (; from < RECV_STRIDE; from++) {
		if (buf[from] != RECV_QUIET)
			return CH_FAIL(t,
					"QP %u: byte %u of receive buffer %u was written, and "
					"no message was received there",
					q->index, from, i);
	}
	return true;
}

bool
ch_post_recvs(struct ch_thread *t, struct ch_qp *q)
{
	uint32_t i;

	for (i = 0; i < CH_NB_RECVS; i++) {
		struct ch_queue *queue = &q->recvs;
		struct rmem_sge sge[2] = {
				{(uintptr_t)recv_buf(q, i), CH_RECV_SIZE, t->local->lkey}};
		struct rmem_recv_wr wr = {.sg_list = sge, .num_sge = 1};
		int ret;

		if (q->is_posted[i] || ch_one_in(t, 3))
			continue;
		if (queue->tail - queue->head == CH_NB_PENDING)
			queue->head++; /* of an earlier epoch */
		if (queue->tail == 0)
			memset(q->recv_bufs, RECV_QUIET, CH_NB_RECVS * RECV_STRIDE);
		if (!is_recv_quiet(t, q, i, 0))
			return false;
		if (ch_one_in(t, 3)) {
			sge[0].length = 100;
			sge[1] = (struct rmem_sge){
					sge[0].addr + 100, CH_RECV_SIZE - 100, t->local->lkey};
			wr.num_sge = 2;
		}
		wr.wr_id = (uint64_t)q->index << 48 | CH_RECV_BIT | queue->tail;
		ret = rmem_post_recv(q->qp, &wr, 1);
		if (ret != 1)
			return CH_FAIL(t, "rmem_post_recv: %d", ret);
		queue->pending[queue->tail % CH_NB_PENDING] =
				(struct ch_pending){.seq = queue->tail,
						.epoch = q->epoch,
						.offset = i,
						.is_signaled = true,
						.bind = -1};
		queue->tail++;
		q->is_posted[i] = true;
	}
	return true;
}

bool
ch_recvs_drop(struct ch_thread *t, struct ch_qp *q)
{
	uint32_t i;

	RTE_SET_USED(t);
	for (i = 0; i < CH_NB_RECVS; i++) {
		if (q->is_posted[i])
			memset(recv_buf(q, i), RECV_QUIET, RECV_STRIDE);
		q->is_posted[i] = false;
	}
	return true;
}

/* Messages of an epoch arrive in order and without a gap. */
static bool
is_next(struct ch_thread *t, struct ch_qp *q, uint32_t epoch, uint32_t count)
{
	if (q->is_fresh) {
		q->is_fresh = false;
	} else if (epoch != q->peer_epoch ? count != 0 : count != q->peer_count) {
		return CH_FAIL(t, "QP %u: message %u of epoch %u arrives after message %u of %u",
				q->index, count, epoch, q->peer_count - 1, q->peer_epoch);
	}
	q->peer_epoch = epoch;
	q->peer_count = count + 1;
	return true;
}

static bool
take_message(struct ch_thread *t, struct ch_qp *q, uint32_t i, const struct rmem_wc *wc)
{
	const uint8_t *buf = recv_buf(q, i);
	struct message message;
	uint32_t at;

	memcpy(&message, buf, sizeof(message));
	if (wc->byte_len < sizeof(message) || wc->byte_len > CH_RECV_SIZE ||
			message.magic != MAGIC || message.length != wc->byte_len ||
			message.qp != ch_peer(q)->index)
		return CH_FAIL(t,
				"QP %u: a message of %u bytes is none of QP %u: magic 0x%x, "
				"length %u, QP %u",
				q->index, wc->byte_len, ch_peer(q)->index, message.magic,
				message.length, message.qp);
	for (at = sizeof(message); at < message.length; at++) {
		if (buf[at] != (uint8_t)message.count)
			return CH_FAIL(t, "QP %u: byte %u of message %u is 0x%02x", q->index, at,
					message.count, buf[at]);
	}
	if (!is_recv_quiet(t, q, i, message.length))
		return false;
	return is_next(t, q, message.epoch & 0xfff, message.count & 0xfffff);
}

bool
ch_received(struct ch_thread *t, struct ch_qp *q, const struct ch_pending *p,
		const struct rmem_wc *wc)
{
	bool is_ok = true;

	if ((wc->flags & RMEM_WC_WITH_INV) != 0 && wc->status == RMEM_WC_SUCCESS &&
			!ch_bind_invalidated(t, wc->invalidated_rkey))
		return false;
	if (p->epoch != q->epoch)
		return true;
	if (wc->status == RMEM_WC_SUCCESS && wc->opcode == RMEM_WC_RECV_RDMA_WITH_IMM)
		is_ok = is_recv_quiet(t, q, p->offset, 0) &&
				is_next(t, q, wc->imm_data >> 20, wc->imm_data & 0xfffff);
	else if (wc->status == RMEM_WC_SUCCESS)
		is_ok = take_message(t, q, p->offset, wc);
	else if (wc->status == RMEM_WC_REM_INV_REQ_ERR)
		q->is_fresh = true; /* its data is there */
	else
		is_ok = CH_CHECK(t,
				wc->status == RMEM_WC_WR_FLUSH_ERR ||
						/* Of a WRITE_WITH_IMM that was refused. */
						wc->status == RMEM_WC_LOC_ACCESS_ERR,
				"QP %u: receive: %s", q->index, rmem_wc_status_str(wc->status));
	memset(recv_buf(q, p->offset), RECV_QUIET, RECV_STRIDE);
	q->is_posted[p->offset] = false;
	return is_ok;
}
