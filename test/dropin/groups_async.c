/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Group of test-groups: asynchronous events, each provoked. */

#include <fcntl.h>

#include "groups.h"

#define EVENT_MS 2000 /* to wait for an event, which some devices do not report */

static void
empty(void)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(context, &event) == 0)
		ibv_ack_async_event(&event);
}

/* Wait for an event of an object; others are ignored. */
static void
reported(const char *name, enum ibv_event_type type, const void *object)
{
	struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	bool is_found = false;

	while (!is_found && poll(&fd, 1, EVENT_MS) == 1) {
		while (ibv_get_async_event(context, &event) == 0) {
			is_found |= event.event_type == type &&
					(const void *)event.element.qp == object;
			ibv_ack_async_event(&event);
		}
	}
	step(name, "%s", is_found ? "reported" : "none");
}

static void
of_qps(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	if (!make_pair(IBV_QPT_RC, NULL, "async create"))
		return;
	result("async connect", connect_first());
	result("async receive", receive(SIZE));
	result("async send", post(IBV_WR_SEND, mr->lkey, 0, 0));
	message("async send completion", "async receive completion");
	reported("async communication established", IBV_EVENT_COMM_EST, qps[1]);
	result("async drain",
			ibv_modify_qp(qps[0], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	reported("async send queue drained", IBV_EVENT_SQ_DRAINED, qps[0]);
	attr.qp_state = IBV_QPS_RTS;
	result("async resume", ibv_modify_qp(qps[0], &attr, IBV_QP_STATE));
	result("async bad rkey", post(IBV_WR_RDMA_WRITE, mr->lkey, mr->rkey ^ 0xff00, 0));
	completion("async completion");
	reported("async access error", IBV_EVENT_QP_ACCESS_ERR, qps[1]);
	unpair("async destroy");
}

static void
of_srqs(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_sge sge = {(uintptr_t)buf + SIZE, SIZE, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 100, .sg_list = &sge, .num_sge = 1};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int i;

	HOLDS(srq != NULL);
	for (i = 0; i < 2; i++)
		HOLDS(ibv_post_srq_recv(srq, &wr, &bad) == 0);
	if (!pair(IBV_QPT_RC, srq, "async create", "async connect"))
		return;
	result("async limit", ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	result("async send", post(IBV_WR_SEND, mr->lkey, 0, 0));
	message("async send completion", "async receive completion");
	reported("async limit of SRQ", IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	result("async to ERR", ibv_modify_qp(qps[1], &attr, IBV_QP_STATE));
	reported("async last WQE of SRQ", IBV_EVENT_QP_LAST_WQE_REACHED, qps[1]);
	unpair("async destroy");
	result("async destroy SRQ", ibv_destroy_srq(srq));
}

/* More completions than the CQ has entries. */
static void
of_cqs(void)
{
	struct ibv_cq *all = cq;
	int i, ret = 0;

	cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	HOLDS(cq != NULL && cq->cqe < 16);
	if (!pair(IBV_QPT_RC, NULL, "async create", "async connect"))
		return;
	for (i = 0; i < 16 && ret == 0; i++)
		ret = post(IBV_WR_RDMA_WRITE, mr->lkey, mr->rkey, 0);
	step("async posts", "%s", i > cq->cqe ? "enough" : "too few");
	reported("async overrun", IBV_EVENT_CQ_ERR, cq);
	unpair("async destroy");
	result("async destroy CQ", ibv_destroy_cq(cq));
	cq = all;
}

void
asynchronous(void)
{
	int flags = fcntl(context->async_fd, F_GETFL);
	struct ibv_async_event event;

	step("async fd", "%s", flags != -1 ? "ok" : "none");
	HOLDS(fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
	empty();
	of_qps();
	of_srqs();
	of_cqs();
	empty();
	step("async without an event", "%s",
			ibv_get_async_event(context, &event) == -1 ? strerrorname_np(errno)
								   : "one");
}
