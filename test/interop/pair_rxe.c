/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The end of a pair that is a device of the kernel, used with plain verbs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define ACCESS_READ (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)
#define ACCESS_ALL  (ACCESS_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static int gid_index;

static_assert((int)RMEM_WR_ATOMIC_FETCH_AND_ADD == (int)IBV_WR_ATOMIC_FETCH_AND_ADD &&
				(int)RMEM_WC_GENERAL_ERR == (int)IBV_WC_GENERAL_ERR,
		"opcodes and statuses have verbs' values");

static int
rxe_post_send(const struct rmem_send_wr *wr)
{
	struct ibv_sge sge = {.addr = wr->sg_list->addr,
			.length = wr->sg_list->length,
			.lkey = wr->sg_list->lkey};
	struct ibv_send_wr out = {.wr_id = wr->wr_id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = (enum ibv_wr_opcode)wr->opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data = wr->imm_data};
	struct ibv_send_wr *bad;

	if (wr->opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD ||
			wr->opcode == RMEM_WR_ATOMIC_CMP_AND_SWP) {
		out.wr.atomic.remote_addr = wr->atomic.remote_addr;
		out.wr.atomic.rkey = wr->atomic.rkey;
		out.wr.atomic.compare_add = wr->atomic.compare_add;
		out.wr.atomic.swap = wr->atomic.swap;
	} else {
		out.wr.rdma.remote_addr = wr->rdma.remote_addr;
		out.wr.rdma.rkey = wr->rdma.rkey;
	}
	if (wr->opcode == RMEM_WR_SEND_WITH_INV) {
		out.opcode = IBV_WR_SEND_WITH_INV;
		out.invalidate_rkey = wr->invalidate_rkey;
	}
	return ibv_post_send(qp, &out, &bad) == 0 ? TEST_SUCCESS : TEST_FAILED;
}

static int
rxe_post_recv(const struct rmem_recv_wr *wr)
{
	struct ibv_sge sge = {.addr = wr->sg_list->addr,
			.length = wr->sg_list->length,
			.lkey = wr->sg_list->lkey};
	struct ibv_recv_wr in = {.wr_id = wr->wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(qp, &in, &bad) == 0 ? TEST_SUCCESS : TEST_FAILED;
}

static int
rxe_poll(bool is_recv, struct rmem_wc *wc)
{
	struct ibv_wc got;
	int n = ibv_poll_cq(is_recv ? recv_cq : send_cq, 1, &got);

	if (n != 1)
		return n;
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = got.wr_id;
	wc->status = (uint8_t)got.status;
	wc->opcode = (uint8_t)got.opcode;
	wc->byte_len = got.byte_len;
	if (got.wc_flags & IBV_WC_WITH_IMM)
		wc->flags |= RMEM_WC_WITH_IMM;
	if (got.wc_flags & IBV_WC_WITH_INV)
		wc->flags |= RMEM_WC_WITH_INV;
	wc->imm_data = got.imm_data;
	return 1;
}

static int
rxe_bind(uint32_t *rkey)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct rmem_wc wc;

	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	TEST_ASSERT(mw != NULL);
	*rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = *rkey;
	wr.bind_mw.bind_info.mr = mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)pair_rxe.memory + PAIR_TARGET;
	wr.bind_mw.bind_info.length = PAIR_AREA;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	TEST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	pair_wait(&pair_rxe, false, &wc);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

struct pair_end pair_rxe = {
		.name = "rxe",
		.post_send = rxe_post_send,
		.post_recv = rxe_post_recv,
		.poll = rxe_poll,
		.bind = rxe_bind,
};

static struct ibv_context *
open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;
	unsigned int i;

	for (i = 0; list != NULL && list[i] != NULL && found == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			found = ibv_open_device(list[i]);
	}
	if (list != NULL)
		ibv_free_device_list(list);
	return found;
}

void
pair_rxe_open(void)
{
	const char *name = getenv("PAIR_IBDEV"), *gid = getenv("PAIR_GID");

	TEST_ASSERT(name != NULL && gid != NULL);
	gid_index = (int)strtol(gid, NULL, 10);
	context = open_device(name);
	TEST_ASSERT(context != NULL);
	pd = ibv_alloc_pd(context);
	send_cq = ibv_create_cq(context, 4 * PAIR_DEPTH, NULL, NULL, 0);
	recv_cq = ibv_create_cq(context, 4 * PAIR_DEPTH, NULL, NULL, 0);
	TEST_ASSERT(pd != NULL && send_cq != NULL && recv_cq != NULL);
	TEST_ASSERT(posix_memalign((void **)&pair_rxe.memory, 4096, PAIR_SIZE) == 0);
	memset(pair_rxe.memory, 0, PAIR_SIZE);
	mr = ibv_reg_mr(pd, pair_rxe.memory, PAIR_SIZE, ACCESS_ALL | IBV_ACCESS_MW_BIND);
	TEST_ASSERT(mr != NULL);
	pair_rxe.lkey = mr->lkey;
	pair_rxe.rkey = mr->rkey;
}

void
pair_rxe_create_qp(const struct pair_conf *conf, struct rmem_qp_addr *addr)
{
	struct ibv_qp_init_attr init = {.send_cq = send_cq,
			.recv_cq = recv_cq,
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = PAIR_DEPTH,
					.max_recv_wr = PAIR_DEPTH,
					.max_send_sge = 1,
					.max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = conf->is_read_only ? ACCESS_READ : ACCESS_ALL};
	union ibv_gid gid;

	qp = ibv_create_qp(pd, &init);
	TEST_ASSERT(qp != NULL);
	TEST_EQ(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS),
			0);
	TEST_EQ(ibv_query_gid(context, 1, gid_index, &gid), 0);
	memset(addr, 0, sizeof(*addr));
	memcpy(addr->gid, gid.raw, sizeof(addr->gid));
	addr->qp_num = qp->qp_num;
}

void
pair_rxe_connect(const struct pair_conf *conf, const struct rmem_qp_addr *peer, uint32_t psn)
{
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
			.path_mtu = (enum ibv_mtu)peer->mtu,
			.dest_qp_num = peer->qp_num,
			.rq_psn = peer->psn,
			.max_dest_rd_atomic = 16,
			.min_rnr_timer = 12,
			.ah_attr = {.is_global = 1,
					.port_num = 1,
					.grh = {.hop_limit = 64,
							.sgid_index = (uint8_t)gid_index}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
			.sq_psn = psn,
			.max_rd_atomic = 16,
			.timeout = conf->timeout != 0 ? conf->timeout : PAIR_TIMEOUT,
			.retry_cnt = conf->retry_cnt,
			.rnr_retry = conf->rnr_retry};

	memcpy(rtr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	TEST_EQ(ibv_modify_qp(qp, &rtr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
						IBV_QP_MIN_RNR_TIMER),
			0);
	TEST_EQ(ibv_modify_qp(qp, &rts,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						IBV_QP_MAX_QP_RD_ATOMIC),
			0);
}

void
pair_rxe_destroy_qp(void)
{
	if (qp != NULL)
		TEST_EQ(ibv_destroy_qp(qp), 0);
	qp = NULL;
	if (mw != NULL)
		TEST_EQ(ibv_dealloc_mw(mw), 0);
	mw = NULL;
}

void
pair_rxe_close(void)
{
	pair_rxe_destroy_qp();
	TEST_EQ(ibv_dereg_mr(mr), 0);
	TEST_EQ(ibv_destroy_cq(send_cq), 0);
	TEST_EQ(ibv_destroy_cq(recv_cq), 0);
	TEST_EQ(ibv_dealloc_pd(pd), 0);
	TEST_EQ(ibv_close_device(context), 0);
	free(pair_rxe.memory);
}
