/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of CQs; see fake.h. */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "fake.h"

static struct fake_cq *fake_cq_last;

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector)
{
	struct fake_cq *cq = fake_new("create_cq", sizeof(*cq));

	RTE_SET_USED(comp_vector);
	if (cq == NULL)
		return NULL;
	cq->ibv.context = context;
	cq->ibv.cq_context = cq_context;
	cq->ibv.channel = channel;
	cq->ibv.cqe = cqe;
	cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
	fake_cq_last = cq;
	return &cq->ibv;
}

int
ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;

	if (fake_keeps("destroy_cq", cq))
		return errno;
	fake_withdraw(cq);
	free(cq->ring);
	return fake_delete(cq);
}

struct ibv_cq *
fake_last_cq(void)
{
	return &fake_cq_last->ibv;
}

int
ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;
	struct ibv_wc *ring;
	uint32_t i;

	if (fake_fails("resize_cq"))
		return errno;
	if (fake.has_no_resize)
		return EOPNOTSUPP;
	if (cq->prod - cq->cons > (uint32_t)cqe)
		return EINVAL;
	ring = calloc((size_t)cqe, sizeof(*ring));
	if (ring == NULL)
		return ENOMEM;
	for (i = cq->cons; i != cq->prod; i++)
		ring[i % (uint32_t)cqe] = cq->ring[i % (uint32_t)ibv->cqe];
	free(cq->ring);
	cq->ring = ring;
	ibv->cqe = cqe;
	return 0;
}

/* The next completion; consumed here, since a poll that was begun is ended. */
static int
fake_next_poll(struct ibv_cq_ex *ex)
{
	struct fake_cq *cq = (struct fake_cq *)ex;

	if (fake.is_poll_bad || (cq->cons == cq->prod && cq->is_overrun))
		return EIO;
	if (cq->cons == cq->prod)
		return ENOENT;
	cq->now = cq->ring[cq->cons++ % (uint32_t)ex->cqe];
	ex->wr_id = cq->now.wr_id;
	ex->status = cq->now.status;
	return 0;
}

static int
fake_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	return attr->comp_mask != 0 ? EINVAL : fake_next_poll(ex);
}

static void
fake_end_poll(struct ibv_cq_ex *ex)
{
	RTE_SET_USED(ex);
}

#define FAKE_READ(type, field)                                                                     \
	static type fake_read_##field(struct ibv_cq_ex *ex)                                        \
	{                                                                                          \
		return ((struct fake_cq *)ex)->now.field;                                          \
	}

FAKE_READ(enum ibv_wc_opcode, opcode)
FAKE_READ(uint32_t, vendor_err)
FAKE_READ(uint32_t, byte_len)
FAKE_READ(__be32, imm_data)
FAKE_READ(uint32_t, qp_num)
FAKE_READ(uint32_t, src_qp)
FAKE_READ(unsigned int, wc_flags)

static uint64_t
fake_read_completion_ts(struct ibv_cq_ex *ex)
{
	return FAKE_TIME + ((struct fake_cq *)ex)->cons - 1;
}

static struct ibv_cq_ex *
fake_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *ibv;
	struct ibv_cq_ex *ex;

	if (fake_fails("create_cq_ex"))
		return NULL;
	if (attr->comp_mask != 0 && !fake.has_ignore_overrun) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	ibv = ibv_create_cq(context, (int)attr->cqe, attr->cq_context, attr->channel, 0);
	if (ibv == NULL)
		return NULL;
	((struct fake_cq *)ibv)->is_overrun_ignored =
			attr->comp_mask != 0 && attr->flags == IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	ex = &((struct fake_cq *)ibv)->ex;
	ex->start_poll = fake_start_poll;
	ex->next_poll = fake_next_poll;
	ex->end_poll = fake_end_poll;
	ex->read_opcode = fake_read_opcode;
	ex->read_vendor_err = fake_read_vendor_err;
	ex->read_byte_len = fake_read_byte_len;
	ex->read_imm_data = fake_read_imm_data;
	ex->read_qp_num = fake_read_qp_num;
	ex->read_src_qp = fake_read_src_qp;
	ex->read_wc_flags = fake_read_wc_flags;
	ex->read_completion_ts = fake_read_completion_ts;
	return ex;
}

static int
fake_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	RTE_SET_USED(context);
	if (fake_fails("query_rt_values"))
		return errno;
	values->raw_clock = (struct timespec){.tv_sec = 1, .tv_nsec = 2};
	return 0;
}

void
fake_cq_ops(struct verbs_context *context)
{
	if (fake.timestamp_mask == 0)
		return;
	context->create_cq_ex = fake_create_cq_ex;
	context->query_rt_values = fake_query_rt_values;
}
