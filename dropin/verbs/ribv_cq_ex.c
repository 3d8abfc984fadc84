/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Extended CQs.
 *
 * Invariant: the thread holds the lock of the CQ from a successful ibv_start_poll() until
 * ibv_end_poll().
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "ribv.h"

/* All fields of the header, up to the timestamp of CLOCK_REALTIME. */
#define WC_FLAGS (2 * (uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK - 1)
#define WC_TIMES                                                                                   \
	((uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                           \
			(uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define CQ_FLAGS                                                                                   \
	((uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED | (uint32_t)IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

static struct rmem_wc *
now(struct ibv_cq_ex *ex)
{
	return &((struct ribv_cq *)ex)->now;
}

/* Poll the next completion; ENOENT if there is none. */
static int
next_poll(struct ibv_cq_ex *ex)
{
	struct ribv_cq *cq = (struct ribv_cq *)ex;
	int n = ribv_poll_locked(cq, &cq->now, 1);

	if (n != 1)
		return ribv_post_fail(n == 0 ? ENOENT : -n);
	ex->wr_id = cq->now.wr_id;
	ex->status = (enum ibv_wc_status)cq->now.status;
	return 0;
}

static int
start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct ribv_cq *cq = (struct ribv_cq *)ex;
	int ret;

	if (!ribv_may_poll(&cq->ibv) || (attr != NULL && attr->comp_mask != 0))
		return ribv_post_fail(EINVAL);
	if (!ribv_env_attach())
		return ribv_post_fail(ENOMEM);
	ribv_lock(&cq->lock);
	ret = next_poll(ex);
	if (ret != 0)
		ribv_unlock(&cq->lock);
	return ret;
}

static void
end_poll(struct ibv_cq_ex *ex)
{
	ribv_unlock(&((struct ribv_cq *)ex)->lock);
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *ex)
{
	return ribv_wc_opcode(now(ex));
}

static uint32_t
read_vendor_err(struct ibv_cq_ex *ex)
{
	return ribv_has_src_qp(now(ex)) ? 0 : now(ex)->vendor_err;
}

static uint32_t
read_byte_len(struct ibv_cq_ex *ex)
{
	return now(ex)->byte_len;
}

static __be32
read_imm_data(struct ibv_cq_ex *ex)
{
	return now(ex)->imm_data;
}

static uint32_t
read_qp_num(struct ibv_cq_ex *ex)
{
	return now(ex)->qp_num;
}

static unsigned int
read_wc_flags(struct ibv_cq_ex *ex)
{
	return now(ex)->flags & (RMEM_WC_GRH | RMEM_WC_WITH_IMM | RMEM_WC_WITH_INV);
}

static uint32_t
read_src_qp(struct ibv_cq_ex *ex)
{
	return ribv_has_src_qp(now(ex)) ? now(ex)->src_qp : 0;
}

static uint32_t
read_none(struct ibv_cq_ex *ex)
{
	RTE_SET_USED(ex);
	return 0; /* the GRH identifies the sender */
}

static uint8_t
read_none8(struct ibv_cq_ex *ex)
{
	RTE_SET_USED(ex);
	return 0;
}

static uint8_t
read_sl(struct ibv_cq_ex *ex)
{
	return ribv_sl((const struct ribv_cq *)ex, now(ex));
}

static uint64_t
read_completion_ts(struct ibv_cq_ex *ex)
{
	return ((const struct ribv_cq *)ex)->now_time;
}

/* The device's clock counts nanoseconds. */
static uint64_t
read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	const struct ribv_cq *cq = (const struct ribv_cq *)ex;
	struct timespec real;
	uint64_t ticks = 0;

	(void)rmem_dev_clock_get(ribv_dev_of(cq->context), &ticks);
	clock_gettime(CLOCK_REALTIME, &real);
	return (uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec - (ticks - cq->now_time);
}

/* No VLAN tag is stripped from packets. */
static uint16_t
read_cvlan(struct ibv_cq_ex *ex)
{
	RTE_SET_USED(ex);
	return 0;
}

/* Tag matching is not supported. */
static void
read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	RTE_SET_USED(ex);
	memset(info, 0, sizeof(*info));
}

static void
set_reads(struct ibv_cq_ex *ex)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_none;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_none8;
	ex->read_completion_ts = read_completion_ts;
	ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
	ex->read_cvlan = read_cvlan;
	ex->read_flow_tag = read_none;
	ex->read_tm_info = read_tm_info;
}

struct ibv_cq_ex *
ribv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
	uint32_t flags = 0;
	struct ibv_cq *cq;

	if (init == NULL)
		return ribv_fail(EINVAL);
	if ((init->wc_flags & ~WC_FLAGS) != 0 ||
			(init->comp_mask &
					~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS |
							IBV_CQ_INIT_ATTR_MASK_PD)) != 0)
		return ribv_fail(EOPNOTSUPP);
	if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		if ((init->flags & ~CQ_FLAGS) != 0)
			return ribv_fail(EOPNOTSUPP);
		if (init->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
			flags |= RMEM_CQ_IGNORE_OVERRUN;
	}
	if ((init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 &&
			(!ribv_is_pd(init->parent_domain) ||
					init->parent_domain->context != context))
		return ribv_fail(EINVAL);
	if ((init->wc_flags & WC_TIMES) != 0)
		flags |= RMEM_CQ_TIMESTAMP;
	cq = ribv_cq_create(context, init->cqe, init->cq_context, init->channel,
			(int)init->comp_vector, flags);
	if (cq == NULL)
		return NULL;
	set_reads(&((struct ribv_cq *)cq)->ex);
	return &((struct ribv_cq *)cq)->ex;
}
