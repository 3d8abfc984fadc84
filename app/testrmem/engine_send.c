/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Modes send and inline: SEND from buffers of the pool into receives of the peer, which are posted
 * again in bursts. The number of SENDs never exceeds the posted receives, so that the receiver is
 * always ready. In mode inline the bytes are copied into the request, and the device may deliver
 * them in the completion. Of two hosts the connecting one sends, and waits (RNR) if no receive is
 * posted; the listening one compares with a ring of the same bytes.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_malloc.h>

#include "remote.h"

#define POLL_BURST 32

/* The peer's side of a pair; its ring has as many slots as the requester's. */
struct send_peer {
	struct rmem_recv_wr *wr;
	struct rmem_sge *sge;
	uint64_t posted;
	uint64_t received;
	uint32_t slot; /* Of the next message. */
	bool has_bufs;
};

static int
post_recv(struct testrmem_pair *pair, uint32_t slot, uint32_t n)
{
	struct send_peer *peer = pair->priv;
	int ret;

	ret = rmem_post_recv(pair->qp_b, &peer->wr[slot], (uint16_t)n);
	if (unlikely(ret != (int)n))
		return testrmem_pair_refused(pair, "post of receives", ret);
	peer->posted += n;
	return 0;
}

static int
post_all(struct testrmem_pair *pair)
{
	uint32_t slot, n;
	int ret;

	for (slot = 0; slot < pair->depth; slot += n) {
		n = RTE_MIN(pair->burst, pair->depth - slot);
		ret = post_recv(pair, slot, n);
		if (ret != 0)
			return ret;
	}
	return 0;
}

static int
send_setup(struct testrmem_pair *pair)
{
	struct send_peer *peer;
	uint32_t i;
	int ret;

	ret = testrmem_pair_rdma_setup(pair, RMEM_WR_SEND);
	if (ret != 0)
		return ret;
	peer = testrmem_alloc(1, sizeof(*peer));
	if (peer == NULL)
		return -ENOMEM;
	pair->priv = peer;
	peer->wr = testrmem_alloc(pair->depth, sizeof(*peer->wr));
	peer->sge = testrmem_alloc(pair->depth, sizeof(*peer->sge));
	if (peer->wr == NULL || peer->sge == NULL)
		return -ENOMEM;
	ret = testrmem_pair_bufs_get(pair, peer->sge, pair->depth);
	if (ret != 0)
		return ret;
	peer->has_bufs = true;
	for (i = 0; i < pair->depth; i++) {
		peer->wr[i].wr_id = i;
		peer->wr[i].sg_list = &peer->sge[i];
		peer->wr[i].num_sge = 1;
	}
	return post_all(pair);
}

/* Check a completion; messages come in the order sent. */
static int
check_recv(struct testrmem_pair *pair, const struct rmem_wc *wc, uint32_t slot)
{
	if (unlikely(wc->status != RMEM_WC_SUCCESS))
		return testrmem_pair_failed(pair, "receive", wc);
	if (likely(wc->byte_len == pair->size && wc->wr_id == slot))
		return 0;
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(pair->worker->session,
			"QP pair %" PRIu32 ": receive %" PRIu64 " of %" PRIu32
			" bytes completed, not receive %" PRIu32 " of %" PRIu32,
			pair->id, wc->wr_id, wc->byte_len, slot, pair->size);
	return -EIO;
}

static int
poll_recv(struct testrmem_pair *pair)
{
	struct send_peer *peer = pair->priv;
	uint32_t slot = peer->slot;
	struct rmem_wc wc[POLL_BURST];
	uint32_t max = RTE_MIN((uint32_t)POLL_BURST, pair->depth - slot);
	int i, n, ret;

	n = testrmem_remote_poll(pair, pair->cq_b, wc, (uint16_t)max);
	if (unlikely(n < 0))
		return testrmem_pair_refused(pair, "poll", n);
	for (i = 0; i < n; i++) {
		ret = check_recv(pair, &wc[i], slot + (uint32_t)i);
		if (ret != 0)
			return ret;
	}
	peer->received += (uint32_t)n;
	peer->slot += (uint32_t)n;
	if (peer->slot == pair->depth)
		peer->slot = 0;
	return n == 0 ? 0 : post_recv(pair, slot, (uint32_t)n);
}

static int
send_burst(struct testrmem_pair *pair, bool is_draining)
{
	struct send_peer *peer = pair->priv;
	uint32_t n = is_draining ? 0 : testrmem_pair_nb_free(pair);
	int sent, ret;

	n = (uint32_t)RTE_MIN((uint64_t)n, peer->posted - pair->posted);
	ret = testrmem_pair_post(pair, n);
	if (ret != 0)
		return ret;
	ret = poll_recv(pair);
	if (ret != 0)
		return ret;
	sent = testrmem_pair_poll(pair);
	return sent < 0 ? sent : RTE_MAX(sent, (int)(pair->posted - peer->received));
}

static int
send_verify(struct testrmem_pair *pair)
{
	struct send_peer *peer = pair->priv;
	uint32_t nb = (uint32_t)RTE_MIN((uint64_t)pair->burst, pair->posted);
	uint32_t i, slot;

	for (i = 1; i <= nb; i++) {
		slot = (pair->slot + pair->depth - i) % pair->depth;
		if (memcmp(testrmem_ptr(pair->sge[slot].addr), testrmem_ptr(peer->sge[slot].addr),
				    pair->size) == 0)
			continue;
		testrmem_count(&pair->worker->cnt.errors, 1);
		testrmem_fail(pair->worker->session,
				"QP pair %" PRIu32 ": message %" PRIu64
				" differs from the data sent",
				pair->id, pair->posted - i + 1);
		return -EIO;
	}
	return 0;
}

static void
send_teardown(struct testrmem_pair *pair)
{
	struct send_peer *peer = pair->priv;

	if (peer != NULL) {
		if (peer->has_bufs)
			testrmem_pair_bufs_put(pair, peer->sge, pair->depth);
		rte_free(peer->sge);
		rte_free(peer->wr);
		rte_free(peer);
		pair->priv = NULL;
	}
	testrmem_pair_ring_free(pair);
}

static int
inline_open(struct testrmem_session *session)
{
	return testrmem_stat_open(session, offsetof(struct rmem_dev_stats, inline_recvs));
}

/* Set the inline flag of all requests, after a setup that returned ret; returns ret. */
static int
set_inline(struct testrmem_pair *pair, int ret)
{
	uint32_t i;

	for (i = 0; ret == 0 && i < pair->depth; i++)
		pair->wr[i].flags = RMEM_SEND_INLINE;
	return ret;
}

static int
inline_setup(struct testrmem_pair *pair)
{
	return set_inline(pair, send_setup(pair));
}

static int
inline_finish(struct testrmem_session *session)
{
	uint64_t nb_msgs = 0;
	uint32_t i, j;

	for (i = 0; i < session->nb_workers; i++) {
		for (j = 0; j < session->workers[i].nb_pairs; j++)
			nb_msgs += session->workers[i].pairs[j].completed;
	}
	printf("received in the completion: %" PRIu64 " of %" PRIu64 " messages\n",
			testrmem_stat_get(session), nb_msgs);
	return 0;
}

const struct testrmem_engine testrmem_engine_inline = {
		.name = "inline",
		.help = "send with the data in the request and in the completion",
		.verified = "the last burst of each QP pair was received",
		.capa = RMEM_DEV_CAPA_INLINE_RECV,
		.default_size = 32,
		.max_size = 1024,
		.bufs_per_op = 2,
		.flags = ENGINE_RECV | ENGINE_INLINE,
		.listener = &testrmem_listener_inline,
		.connector = &testrmem_connector_inline,
		.open = inline_open,
		.setup = inline_setup,
		.burst = send_burst,
		.verify = send_verify,
		.finish = inline_finish,
		.teardown = send_teardown,
		.close = testrmem_stat_close,
};

static int
send_connector_setup(struct testrmem_pair *pair)
{
	return testrmem_pair_rdma_setup(pair, RMEM_WR_SEND);
}

static int
send_connector_burst(struct testrmem_pair *pair, bool is_draining)
{
	int ret = testrmem_pair_post(pair, is_draining ? 0 : testrmem_pair_nb_free(pair));

	return ret != 0 ? ret : testrmem_pair_poll(pair);
}

/* Messages before the report have arrived when the connection ends. */
static int
send_listener_burst(struct testrmem_pair *pair, bool is_draining)
{
	struct testrmem_counters *cnt = &pair->worker->cnt;
	struct send_peer *peer = pair->priv;
	uint64_t nb, told;
	int ret;

	ret = poll_recv(pair);
	if (ret != 0)
		return ret;
	nb = peer->received - pair->completed;
	pair->completed = peer->received;
	testrmem_count(&cnt->ops, nb);
	testrmem_count(&cnt->bytes, nb * pair->size);
	told = testrmem_remote_ops(pair);
	return !is_draining || (told != UINT64_MAX && peer->received < told);
}

static int
send_listener_verify(struct testrmem_pair *pair)
{
	struct send_peer *peer = pair->priv;
	int ret = testrmem_remote_check(pair);

	if (ret != 0)
		return ret;
	pair->posted = peer->received;
	pair->slot = peer->slot;
	return send_verify(pair);
}

const struct testrmem_engine testrmem_listener_send = {
		.name = "send",
		.verified = "the last burst of each QP pair was received",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.flags = ENGINE_RECV,
		.setup = send_setup,
		.burst = send_listener_burst,
		.verify = send_listener_verify,
		.teardown = send_teardown,
};

static int
inline_connector_setup(struct testrmem_pair *pair)
{
	return set_inline(pair, send_connector_setup(pair));
}

const struct testrmem_engine testrmem_listener_inline = {
		.name = "inline",
		.verified = "the last burst of each QP pair was received",
		.capa = RMEM_DEV_CAPA_INLINE_RECV,
		.default_size = 32,
		.max_size = 1024,
		.bufs_per_op = 2,
		.flags = ENGINE_RECV | ENGINE_INLINE,
		.open = inline_open,
		.setup = send_setup,
		.burst = send_listener_burst,
		.verify = send_listener_verify,
		.finish = inline_finish,
		.teardown = send_teardown,
		.close = testrmem_stat_close,
};

const struct testrmem_engine testrmem_connector_inline = {
		.name = "inline",
		.verified = "the other host compares the last burst of each QP pair",
		.default_size = 32,
		.max_size = 1024,
		.bufs_per_op = 1,
		.flags = ENGINE_INLINE,
		.setup = inline_connector_setup,
		.burst = send_connector_burst,
		.verify = testrmem_remote_report,
		.teardown = testrmem_pair_ring_free,
};

const struct testrmem_engine testrmem_connector_send = {
		.name = "send",
		.verified = "the other host compares the last burst of each QP pair",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.setup = send_connector_setup,
		.burst = send_connector_burst,
		.verify = testrmem_remote_report,
		.teardown = testrmem_pair_ring_free,
};

const struct testrmem_engine testrmem_engine_send = {
		.name = "send",
		.help = "SEND into receives of the peer",
		.verified = "the last burst of each QP pair was received",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.flags = ENGINE_RECV,
		.listener = &testrmem_listener_send,
		.connector = &testrmem_connector_send,
		.setup = send_setup,
		.burst = send_burst,
		.verify = send_verify,
		.teardown = send_teardown,
};
