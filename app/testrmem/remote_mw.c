/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Modes fastreg, mw and umr between two hosts: the listening one owns the buffers and binds the
 * keys, the connecting one writes.
 *
 * For each granted burst of buffers the owner SENDs a message with their addresses and rkeys. The
 * peer WRITEs to them from its ring, where the buffers of a burst have fixed slots and contents
 * known to both hosts; its last WRITE has immediate data: the number of the burst and of its
 * buffers. Then the owner invalidates the keys, compares, and grants the next.
 */

#include <errno.h>
#include <inttypes.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "cycle.h"
#include "remote.h"

#define POLL_BURST 32
/* Immediate data: the burst above, the WRITEs below. */
#define NB_BITS 11
#define NB_MASK ((1u << NB_BITS) - 1)

struct msg_buf {
	rte_be64_t addr;
	rte_be32_t rkey;
	rte_be32_t reserved;
};

/* Requests that grant access to a burst. */
struct msg {
	rte_be32_t index; /* Of the burst. */
	rte_be32_t nb;
	struct msg_buf buf[]; /* nb */
};

/* Messages of a pair, one for each burst in flight. */
struct remote_mail {
	uint8_t *area;
	struct rmem_mr *mr;
	size_t size; /* Of a message. */
	uint32_t nb;
	uint32_t nb_sent; /* Not acknowledged. */
};

static struct msg *
mail_msg(const struct remote_mail *mail, uint32_t i)
{
	return (struct msg *)(void *)(mail->area + i * mail->size);
}

static struct rmem_sge
mail_sge(const struct remote_mail *mail, uint32_t i, size_t length)
{
	return (struct rmem_sge){
			.addr = mail->mr->iova + i * mail->size,
			.length = (uint32_t)length,
			.lkey = mail->mr->lkey,
	};
}

static int
mail_open(struct testrmem_pair *pair)
{
	struct remote_mail *mail = testrmem_alloc(1, sizeof(*mail));
	int ret;

	pair->remote->mail = mail;
	if (mail == NULL)
		return -ENOMEM;
	mail->nb = pair->depth / pair->burst;
	mail->size = sizeof(struct msg) + pair->burst * sizeof(struct msg_buf);
	mail->area = testrmem_alloc(mail->nb, mail->size);
	if (mail->area == NULL)
		return -ENOMEM;
	ret = rmem_mr_reg(pair->dev->pd, mail->area, mail->nb * mail->size, 0,
			RMEM_ACCESS_LOCAL_WRITE, &mail->mr);
	if (ret != 0)
		testrmem_err("cannot register messages on '%s': %s", pair->dev->spec,
				rte_strerror(-ret));
	return ret;
}

static void
mail_close(struct testrmem_pair *pair)
{
	struct remote_mail *mail = pair->remote != NULL ? pair->remote->mail : NULL;

	if (mail == NULL)
		return;
	if (rmem_mr_dereg(mail->mr) != 0)
		testrmem_err("messages on '%s' are still in use", pair->dev->spec);
	rte_free(mail->area);
	rte_free(mail);
	pair->remote->mail = NULL;
}

static int
post_recv(struct testrmem_pair *pair, struct rmem_qp *qp, uint64_t wr_id,
		const struct rmem_sge *sge)
{
	struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = sge != NULL};
	int ret = rmem_post_recv(qp, &wr, 1);

	return ret == 1 ? 0 : testrmem_pair_refused(pair, "post of a receive", ret);
}

static int
owner_fill(struct testrmem_pair *pair, struct cycle_train *train, uint32_t nb)
{
	RTE_SET_USED(pair);
	RTE_SET_USED(train);
	/* The peer writes to the ring. */
	return (int)nb;
}

static int
owner_announce(struct testrmem_pair *pair, struct cycle_train *train)
{
	struct remote_mail *mail = pair->remote->mail;
	struct msg *msg = mail_msg(mail, train->index);
	struct rmem_sge sge = mail_sge(
			mail, train->index, sizeof(*msg) + train->nb * sizeof(msg->buf[0]));
	struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1};
	uint32_t i;
	int ret;

	msg->index = rte_cpu_to_be_32(train->index);
	msg->nb = rte_cpu_to_be_32(train->nb);
	for (i = 0; i < train->nb; i++) {
		msg->buf[i].addr = rte_cpu_to_be_64(train->grant[i].remote_addr);
		msg->buf[i].rkey = rte_cpu_to_be_32(testrmem_grant_rkey(&train->grant[i]));
	}
	ret = rmem_post_send(pair->qp_b, &wr, 1);
	if (ret != 1)
		return testrmem_pair_refused(pair, "post of a message", ret);
	mail->nb_sent++;
	return 0;
}

/* rdma_rxe repeats a binding after a retransmission, and fails: doc/driver_verbs.md, Dangers. */
static bool
owner_is_held(const struct testrmem_pair *pair)
{
	return pair->remote->mail->nb_sent != 0 || pair->remote->is_probing;
}

static int
owner_received(struct testrmem_pair *pair, const struct rmem_wc *wc)
{
	uint32_t imm = rte_be_to_cpu_32(wc->imm_data);
	int ret;

	if (wc->opcode == RMEM_WC_SEND) {
		pair->remote->mail->nb_sent--;
		return 0;
	}
	ret = post_recv(pair, pair->qp_b, 0, NULL);
	return ret != 0 ? ret : cycle_written(pair, imm >> NB_BITS, imm & NB_MASK);
}

static const struct cycle_ops owner_ops = {
		.announce = owner_announce,
		.arrived = NULL,
		.fill = owner_fill,
		.is_held = owner_is_held,
		.received = owner_received,
		.is_checked = true,
};

static int
owner_setup(struct testrmem_pair *pair)
{
	uint32_t i;
	int ret;

	ret = mail_open(pair);
	if (ret == 0)
		ret = cycle_setup(pair, &owner_ops);
	for (i = 0; i < pair->depth / pair->burst && ret == 0; i++)
		ret = post_recv(pair, pair->qp_b, 0, NULL);
	return ret;
}

/* Buffers granted and not written to when the peer ends stay granted. */
static int
owner_burst(struct testrmem_pair *pair, bool is_draining)
{
	uint64_t told;
	int ret;

	ret = cycle_burst(pair, is_draining);
	if (ret < 0)
		return ret;
	told = testrmem_remote_ops(pair);
	return !is_draining || (told != UINT64_MAX && pair->completed < told);
}

static void
owner_teardown(struct testrmem_pair *pair)
{
	cycle_teardown(pair);
	mail_close(pair);
}

/* The peer. */
struct writer {
	uint32_t *granted; /* Ring of received messages that were not answered. */
	uint32_t head;
	uint32_t nb_granted;
	struct rmem_send_wr *last; /* Request posted last. */
};

static int
post_mail(struct testrmem_pair *pair, uint32_t slot)
{
	const struct remote_mail *mail = pair->remote->mail;
	struct rmem_sge sge = mail_sge(mail, slot, mail->size);

	return post_recv(pair, pair->qp_a, slot, &sge);
}

static int
writer_setup(struct testrmem_pair *pair)
{
	struct writer *writer;
	uint32_t i;
	int ret;

	ret = testrmem_pair_rdma_setup(pair, RMEM_WR_RDMA_WRITE);
	if (ret == 0)
		ret = mail_open(pair);
	if (ret != 0)
		return ret;
	writer = testrmem_alloc(1, sizeof(*writer));
	if (writer == NULL)
		return -ENOMEM;
	pair->priv = writer;
	writer->granted = testrmem_alloc(pair->remote->mail->nb, sizeof(*writer->granted));
	if (writer->granted == NULL)
		return -ENOMEM;
	for (i = 0; i < pair->remote->mail->nb && ret == 0; i++)
		ret = post_mail(pair, i);
	return ret;
}

/* Check a received message. */
static int
take_mail(struct testrmem_pair *pair, const struct rmem_wc *wc)
{
	const struct remote_mail *mail = pair->remote->mail;
	const struct msg *msg = mail_msg(mail, (uint32_t)wc->wr_id);
	struct writer *writer = pair->priv;
	uint32_t index = rte_be_to_cpu_32(msg->index), nb = rte_be_to_cpu_32(msg->nb);

	if (index >= mail->nb || nb == 0 || nb > pair->burst ||
			wc->byte_len != sizeof(*msg) + nb * sizeof(msg->buf[0])) {
		testrmem_count(&pair->worker->cnt.errors, 1);
		testrmem_fail(pair->worker->session,
				"QP pair %" PRIu32 ": a message of %" PRIu32
				" bytes grants %" PRIu32 " buffers of burst %" PRIu32
				"; there are %" PRIu32 " of %" PRIu32,
				pair->id, wc->byte_len, nb, index, mail->nb, pair->burst);
		return -EIO;
	}
	writer->granted[(writer->head + writer->nb_granted++) % mail->nb] = (uint32_t)wc->wr_id;
	return 0;
}

static int
poll_writer(struct testrmem_pair *pair)
{
	struct testrmem_counters *cnt = &pair->worker->cnt;
	uint64_t before = pair->completed;
	struct rmem_wc wc[POLL_BURST];
	int i, n, ret = 0;

	n = testrmem_remote_poll(pair, pair->cq_a, wc, POLL_BURST);
	if (n < 0)
		return testrmem_pair_refused(pair, "poll", n);
	for (i = 0; i < n && ret == 0; i++) {
		if (wc[i].status != RMEM_WC_SUCCESS)
			ret = testrmem_pair_failed(pair, "WRITE", &wc[i]);
		else if (wc[i].opcode == RMEM_WC_RECV)
			ret = take_mail(pair, &wc[i]);
		else
			pair->completed = wc[i].wr_id;
	}
	testrmem_count(&cnt->ops, pair->completed - before);
	testrmem_count(&cnt->bytes, (pair->completed - before) * pair->size);
	return ret;
}

/* Write to the burst that was granted first, and post its receive again. */
static int
write_burst(struct testrmem_pair *pair)
{
	struct remote_mail *mail = pair->remote->mail;
	struct writer *writer = pair->priv;
	uint32_t slot = writer->granted[writer->head];
	const struct msg *msg = mail_msg(mail, slot);
	uint32_t index = rte_be_to_cpu_32(msg->index), nb = rte_be_to_cpu_32(msg->nb), i;
	struct rmem_send_wr *wr = &pair->wr[(size_t)index * pair->burst];
	int ret;

	nb = (uint32_t)RTE_MIN((uint64_t)nb, pair->ops_limit - pair->posted);
	for (i = 0; i < nb; i++) {
		wr[i].opcode = RMEM_WR_RDMA_WRITE;
		wr[i].flags = 0;
		wr[i].rdma.remote_addr = rte_be_to_cpu_64(msg->buf[i].addr);
		wr[i].rdma.rkey = rte_be_to_cpu_32(msg->buf[i].rkey);
	}
	writer->last = &wr[nb - 1];
	writer->last->opcode = RMEM_WR_RDMA_WRITE_WITH_IMM;
	writer->last->imm_data = rte_cpu_to_be_32(index << NB_BITS | nb);
	writer->last->flags = RMEM_SEND_SIGNALED;
	writer->last->wr_id = pair->posted + nb;
	ret = rmem_post_send(pair->qp_a, wr, (uint16_t)nb);
	if (ret != (int)nb)
		return testrmem_pair_refused(pair, "post", ret);
	pair->posted += nb;
	pair->is_done = pair->posted == pair->ops_limit;
	writer->head = (writer->head + 1) % mail->nb;
	writer->nb_granted--;
	return post_mail(pair, slot);
}

/* The run ends when all bursts are granted again: then the owner has compared all data. */
static int
writer_burst(struct testrmem_pair *pair, bool is_draining)
{
	struct writer *writer = pair->priv;
	int ret = poll_writer(pair);

	while (ret == 0 && !is_draining && !pair->is_done && writer->nb_granted != 0 &&
			pair->posted - pair->completed + pair->burst <= pair->depth)
		ret = write_burst(pair);
	if (ret != 0)
		return ret;
	return (int)(pair->posted - pair->completed + pair->remote->mail->nb - writer->nb_granted);
}

/* The rkey used last is revoked, as its burst was granted again. */
static int
writer_finish(struct testrmem_session *session)
{
	struct testrmem_pair *pair = &session->workers[0].pairs[0];
	const struct writer *writer = pair->priv;
	int ret;

	if (writer->last == NULL)
		return 0;
	writer->last->opcode = RMEM_WR_RDMA_WRITE;
	ret = testrmem_remote_execute(pair, writer->last);
	if (ret < 0)
		return ret;
	printf("revoked key refused: %s\n", ret == RMEM_WC_REM_ACCESS_ERR ? "yes" : "NO");
	if (ret == RMEM_WC_REM_ACCESS_ERR)
		return 0;
	testrmem_fail(session, "a WRITE through a revoked rkey returned %s, not REM_ACCESS_ERR",
			rmem_wc_status_str(ret));
	return -EIO;
}

static void
writer_teardown(struct testrmem_pair *pair)
{
	struct writer *writer = pair->priv;

	if (writer != NULL) {
		rte_free(writer->granted);
		rte_free(writer);
		pair->priv = NULL;
	}
	mail_close(pair);
	testrmem_pair_ring_free(pair);
}

const struct testrmem_engine testrmem_connector_mw = {
		.name = "mw",
		.verified = "all bursts were granted again, and the other host compares each buffer",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.flags = ENGINE_GRANTED,
		.setup = writer_setup,
		.burst = writer_burst,
		.verify = testrmem_remote_report,
		.finish = writer_finish,
		.teardown = writer_teardown,
};

const struct testrmem_engine testrmem_listener_mw = {
		.name = "mw",
		.verified = "each buffer held what the other host wrote",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.grant = &testrmem_grant_window,
		.setup = owner_setup,
		.burst = owner_burst,
		.verify = testrmem_remote_check,
		.disconnect = cycle_disconnect,
		.teardown = owner_teardown,
};

const struct testrmem_engine testrmem_listener_fastreg = {
		.name = "fastreg",
		.verified = "each buffer held what the other host wrote",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.grant = &testrmem_grant_fast_reg,
		.setup = owner_setup,
		.burst = owner_burst,
		.verify = testrmem_remote_check,
		.disconnect = cycle_disconnect,
		.teardown = owner_teardown,
};

const struct testrmem_engine testrmem_listener_umr = {
		.name = "umr",
		.verified = "each buffer held what the other host wrote",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.grant = &testrmem_grant_umr,
		.setup = owner_setup,
		.burst = owner_burst,
		.verify = testrmem_remote_check,
		.disconnect = cycle_disconnect,
		.teardown = owner_teardown,
};
