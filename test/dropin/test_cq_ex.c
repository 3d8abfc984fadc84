/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program, without any call of rmem, that reads all fields of extended CQs: among them
 * timestamps of completions. */

#include "own_qp.h"

#define NS  UINT64_C(1000000000)
#define ALL (2 * (uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK - 1)
#define NB  6

static struct ibv_context *context;
static struct ibv_pd *pd;

static uint64_t
clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

/* Of the device, in nanoseconds by the rate that it reports. */
static uint64_t
device_clock(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	HOLDS(ibv_query_rt_values_ex(context, &values) == 0);
	HOLDS(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK && values.raw_clock.tv_sec == 0);
	return (uint64_t)values.raw_clock.tv_nsec;
}

static void
test_device(void)
{
	struct ibv_values_ex values = {.comp_mask = 2};
	struct ibv_device_attr_ex attr;

	HOLDS(ibv_query_device_ex(context, NULL, &attr) == 0);
	HOLDS(attr.completion_timestamp_mask == UINT64_MAX && attr.hca_core_clock == 1000000);
	HOLDS(ibv_query_rt_values_ex(context, &values) == EINVAL && errno == EINVAL);
	values.comp_mask = 0;
	HOLDS(ibv_query_rt_values_ex(context, &values) == 0);
}

static struct ibv_cq_ex *
create(uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 16,
			.wc_flags = wc_flags,
			.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
			.flags = flags};

	errno = 0;
	return ibv_create_cq_ex(context, &init);
}

static struct ibv_qp *
create_qp(struct ibv_cq_ex *cq)
{
	struct ibv_qp *qp = create_rc(pd, ibv_cq_ex_to_cq(cq), 16);

	HOLDS(qp != NULL);
	connect_own(qp);
	return qp;
}

/* WRITEs of no bytes: each completes in the post. */
static void
post(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_send_wr wr = {.wr_id = wr_id,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	HOLDS(ibv_post_send(qp, &wr, &bad) == 0);
}

/* Read the fields of a completion without data. */
static void
read_fields(struct ibv_cq_ex *cq, const struct ibv_qp *qp)
{
	struct ibv_wc_tm_info info = {1, 1};

	HOLDS(ibv_wc_read_opcode(cq) == IBV_WC_RDMA_WRITE);
	HOLDS(ibv_wc_read_qp_num(cq) == qp->qp_num);
	HOLDS(ibv_wc_read_wc_flags(cq) == 0 && ibv_wc_read_vendor_err(cq) == 0);
	HOLDS(ibv_wc_read_src_qp(cq) == 0 && ibv_wc_read_slid(cq) == 0);
	HOLDS(ibv_wc_read_sl(cq) == 0 && ibv_wc_read_dlid_path_bits(cq) == 0);
	HOLDS(ibv_wc_read_cvlan(cq) == 0 && ibv_wc_read_flow_tag(cq) == 0);
	ibv_wc_read_tm_info(cq, &info);
	HOLDS(info.tag == 0 && info.priv == 0);
}

static void
test_times(void)
{
	struct ibv_cq_ex *cq = create(ALL, 0);
	uint64_t before[NB + 1], real = clock_ns(CLOCK_REALTIME), wall;
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};
	struct ibv_qp *qp;
	int i;

	HOLDS(cq != NULL);
	qp = create_qp(cq);
	for (i = 0; i < NB; i++) {
		before[i] = device_clock();
		post(qp, (uint64_t)i);
	}
	before[NB] = device_clock();
	HOLDS(ibv_start_poll(cq, &attr) == 0);
	for (i = 0; i < NB; i++) {
		HOLDS(cq->wr_id == (uint64_t)i && cq->status == IBV_WC_SUCCESS);
		read_fields(cq, qp);
		HOLDS(ibv_wc_read_completion_ts(cq) >= before[i]);
		HOLDS(ibv_wc_read_completion_ts(cq) <= before[i + 1]);
		wall = ibv_wc_read_completion_wallclock_ns(cq);
		/* The clock may be stepped by a second. */
		HOLDS(wall + NS >= real && wall <= clock_ns(CLOCK_REALTIME) + NS);
		HOLDS(ibv_next_poll(cq) == (i == NB - 1 ? ENOENT : 0));
	}
	ibv_end_poll(cq);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

/* Completions that stay when a QP is destroyed, and when the CQ is resized, keep their times. */
static void
test_kept(void)
{
	struct ibv_cq_ex *cq = create(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
	struct ibv_qp *qp, *other;
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};
	uint64_t before[NB + 1];
	int i;

	HOLDS(cq != NULL);
	qp = create_qp(cq);
	other = create_qp(cq);
	for (i = 0; i < NB; i++) {
		post(other, 100);
		before[i] = device_clock();
		post(qp, (uint64_t)i);
	}
	before[NB] = device_clock();
	HOLDS(ibv_destroy_qp(other) == 0);
	HOLDS(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 64) == 0);
	for (i = 0; i < NB; i++) {
		HOLDS(ibv_start_poll(cq, &attr) == 0);
		HOLDS(cq->wr_id == (uint64_t)i);
		HOLDS(ibv_wc_read_completion_ts(cq) >= before[i]);
		HOLDS(ibv_wc_read_completion_ts(cq) <= before[i + 1]);
		ibv_end_poll(cq);
	}
	HOLDS(ibv_start_poll(cq, &attr) == ENOENT);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

static void
test_flags(void)
{
	struct ibv_cq_ex *cq;

	HOLDS(create(ALL + 1, 0) == NULL && errno == EOPNOTSUPP);
	HOLDS(create(0, 1u << 2) == NULL && errno == EOPNOTSUPP);
	cq = create(0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	HOLDS(cq != NULL && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

/* The first completions are polled, the others are lost; the QP works, and there is no event. */
static void
test_ignored_overrun(void)
{
	struct ibv_cq_ex *cq = create(0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	uint64_t i, round, size;

	HOLDS(cq != NULL);
	size = (uint64_t)cq->cqe;
	qp = create_rc(pd, ibv_cq_ex_to_cq(cq), (uint32_t)size + 3);
	HOLDS(qp != NULL);
	connect_own(qp);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < size + 3; i++)
			post(qp, i);
		for (i = 0; i < size; i++) {
			HOLDS(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) == 1);
			HOLDS(wc.status == IBV_WC_SUCCESS && wc.wr_id == i);
		}
		HOLDS(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) == 0);
	}
	HOLDS(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
	HOLDS(attr.qp_state == IBV_QPS_RTS && poll(&fd, 1, 0) == 0);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

int
main(void)
{
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL);
	test_device();
	test_times();
	test_kept();
	test_flags();
	test_ignored_overrun();
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	return 0;
}
