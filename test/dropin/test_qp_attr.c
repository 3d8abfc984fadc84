/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program, without any call of rmem, that sets and queries attributes of QPs which few
 * programs use: rate limit, ECE, alternate path, order of data, and the draining of a send queue;
 * and the counters of the device. */

#include <limits.h>

#include "own_qp.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

/* The rate limit, as a query of the QP returns it. */
static uint32_t
rate_limit(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	HOLDS(ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init) == 0);
	return attr.rate_limit;
}

static void
test_rate_limit(void)
{
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .rate_limit = 3000};
	struct ibv_device_attr_ex device;
	const struct ibv_packet_pacing_caps *caps = &device.packet_pacing_caps;

	HOLDS(ibv_query_device_ex(context, NULL, &device) == 0);
	HOLDS(caps->qp_rate_limit_min == 1 && caps->qp_rate_limit_max >= 1000);
	HOLDS((caps->supported_qpts & 1u << IBV_QPT_RC) != 0);
	HOLDS(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL && errno == EINVAL);
	connect_own(qp);
	HOLDS(rate_limit() == 0);
	HOLDS(ibv_modify_qp_rate_limit(qp, &limit) == 0 && rate_limit() == 1000);
	limit.rate_limit = caps->qp_rate_limit_max + 1;
	HOLDS(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL && rate_limit() == 1000);
	limit = (struct ibv_qp_rate_limit_attr){.comp_mask = 1};
	HOLDS(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL && rate_limit() == 1000);
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT) == 0);
	HOLDS(rate_limit() == 3000);
	attr.rate_limit = caps->qp_rate_limit_max + 1;
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT) == EINVAL);
	attr.rate_limit = 1;
	attr.qp_state = IBV_QPS_SQD;
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT) == EINVAL);
	HOLDS(rate_limit() == 3000 && qp->state == IBV_QPS_RTS);
}

/* Programs of rdma_cm continue without it. */
static void
test_ece(void)
{
	struct ibv_ece ece = {0x15b3, 0, 0};

	HOLDS(ibv_query_ece(qp, &ece) == EOPNOTSUPP && errno == EOPNOTSUPP);
	HOLDS(ibv_set_ece(qp, &ece) == EOPNOTSUPP && errno == EOPNOTSUPP);
}

/* By InfiniBand; by RoCE it is EINVAL, as from the kernel. */
static void
test_alternate_path(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .alt_port_num = 1};

	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ALT_PATH) == EOPNOTSUPP);
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE) == EOPNOTSUPP);
	HOLDS(qp->state == IBV_QPS_RTS);
}

static void
test_order(void)
{
	HOLDS(ibv_query_qp_data_in_order(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 0) == 1);
	HOLDS(ibv_query_qp_data_in_order(qp, IBV_WR_ATOMIC_CMP_AND_SWP, 0) == 1);
	HOLDS(ibv_query_qp_data_in_order(qp, IBV_WR_ATOMIC_WRITE, 0) == 1);
	/* Both: the whole message, and blocks of 128 bytes. */
	HOLDS(ibv_query_qp_data_in_order(qp, IBV_WR_ATOMIC_WRITE, 1) == 3);
	HOLDS(ibv_query_qp_data_in_order(qp, IBV_WR_ATOMIC_WRITE, 2) == 0);
	HOLDS(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) == 0);
	HOLDS(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 1) == 0);
}

static void
test_draining(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event event;
	struct ibv_qp_init_attr init;

	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
	HOLDS(ibv_get_async_event(context, &event) == 0);
	HOLDS(event.event_type == IBV_EVENT_SQ_DRAINED && event.element.qp == qp);
	ibv_ack_async_event(&event);
	HOLDS(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
	HOLDS(attr.qp_state == IBV_QPS_SQD && attr.sq_draining == 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

static void
test_speed(void)
{
	struct ibv_port_attr attr;

	HOLDS(ibv_query_port(context, 1, &attr) == 0);
	HOLDS(attr.active_width == 2 && attr.active_speed == 32);
#ifdef TEST_HAS_ACTIVE_SPEED_EX
	HOLDS(attr.active_speed_ex == 32);
#endif
}

static unsigned long
counter(const char *name)
{
	char path[PATH_MAX + 64], text[32];
	FILE *file;

	snprintf(path, sizeof(path), "%s/ports/1/hw_counters/%s", context->device->ibdev_path,
			name);
	file = fopen(path, "re");
	HOLDS(file != NULL && fgets(text, sizeof(text), file) != NULL && fclose(file) == 0);
	return strtoul(text, NULL, 10);
}

/* A WRITE that its peer, the QP itself, refuses is in the counters that mlx5 has for it. */
static void
test_counters(void)
{
	struct ibv_send_wr *bad,
			wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge = {.length = 8};
	struct ibv_wc wc;
	struct ibv_mr *mr;
	uint64_t data = 0;

	mr = ibv_reg_mr(pd, &data, sizeof(data), 0);
	HOLDS(mr != NULL && counter("req_remote_access_errors") == 0);
	sge.addr = (uintptr_t)&data;
	sge.lkey = mr->lkey;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	HOLDS(ibv_post_send(qp, &wr, &bad) == 0);
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	HOLDS(wc.status == IBV_WC_REM_ACCESS_ERR);
	HOLDS(counter("req_remote_access_errors") == 1 && counter("req_cqe_error") == 1);
	HOLDS(counter("resp_remote_access_errors") == 1 && counter("req_cqe_flush_error") == 0);
	HOLDS(ibv_dereg_mr(mr) == 0);
}

int
main(void)
{
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	HOLDS(pd != NULL && cq != NULL);
	qp = create_rc(pd, cq, 16);
	HOLDS(qp != NULL);
	test_rate_limit();
	test_ece();
	test_alternate_path();
	test_order();
	test_draining();
	test_speed();
	test_counters();
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	return 0;
}
