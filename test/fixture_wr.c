/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Steps of the cases: connect, build requests, post them, wait for completions. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

struct rmem_qp_conn
fx_conn(void)
{
	const char *args = getenv("RMEM_TEST_ARGS");
	bool has_packets = getenv("RMEM_TEST_DEV") != NULL ||
			(args != NULL && strstr(args, "ip=") != NULL);

	/* A second with packets: their threads may wait for a CPU. */
	return (struct rmem_qp_conn){.timeout = has_packets ? 18 : 8,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.min_rnr_timer = 1};
}

int
fx_connect_by(struct rmem_qp *qp, struct rmem_qp *peer, const struct rmem_qp_conn *conn)
{
	struct rmem_qp_conn to_peer = *conn;
	struct rmem_qp_attr attr;
	int ret;

	ret = rmem_qp_query(peer, &attr);
	if (ret != 0)
		return ret;
	to_peer.remote = attr.addr;
	return rmem_qp_connect(qp, &to_peer);
}

int
fx_connect(struct rmem_qp *qp, struct rmem_qp *peer)
{
	const struct rmem_qp_conn conn = fx_conn();

	return fx_connect_by(qp, peer, &conn);
}

int
fx_connect_pair(struct rmem_qp *qp, struct rmem_qp *peer)
{
	int ret = fx_connect(qp, peer);

	return ret != 0 ? ret : fx_connect(peer, qp);
}

void
fx_drain(struct rmem_cq *cq)
{
	struct rmem_wc wc;

	while (rmem_poll_cq(cq, &wc, 1) > 0)
		;
}

void
fx_reconnect(void)
{
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	fx_drain(fx.a.cq);
	fx_drain(fx.b.cq);
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
}

int
fx_ud_ready(struct rmem_qp *qp, uint32_t qkey)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1, .qkey = qkey};
	int ret;

	ret = rmem_qp_modify(qp, &attr,
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY);
	attr.state = RMEM_QPS_RTR;
	if (ret == 0)
		ret = rmem_qp_modify(qp, &attr, RMEM_QP_STATE);
	attr.state = RMEM_QPS_RTS;
	if (ret == 0)
		ret = rmem_qp_modify(qp, &attr, RMEM_QP_STATE | RMEM_QP_SQ_PSN);
	return ret;
}

struct rmem_ah_attr
fx_path_to(struct rmem_qp *qp)
{
	struct rmem_ah_attr path = {.is_global = 1, .hop_limit = 64, .port_num = 1};
	struct rmem_qp_attr attr;

	if (rmem_qp_query(qp, &attr) == 0) {
		memcpy(path.dgid, attr.addr.gid, sizeof(path.dgid));
		path.dlid = attr.addr.lid;
	}
	return path;
}

struct rmem_ah *
fx_ah_to(struct rmem_pd *pd, struct rmem_qp *qp)
{
	const struct rmem_ah_attr path = fx_path_to(qp);
	struct rmem_ah *ah = NULL;

	TEST_OK(rmem_ah_create(pd, &path, &ah));
	fx_track(ah);
	return ah;
}

int
fx_state(struct rmem_qp *qp)
{
	struct rmem_qp_attr attr;
	int ret = rmem_qp_query(qp, &attr);

	return ret != 0 ? ret : (int)attr.state;
}

struct rmem_mr_info
fx_query(struct rmem_mr *mr)
{
	struct rmem_mr_info info;

	if (rmem_mr_query(mr, &info) != 0)
		memset(&info, 0xff, sizeof(info));
	return info;
}

int
fx_mr_state(struct rmem_mr *mr)
{
	return fx_query(mr).state;
}

struct rmem_sge
fx_sge(const struct rmem_mr *mr, size_t offset, uint32_t length)
{
	return (struct rmem_sge){.addr = mr->iova + offset, .length = length, .lkey = mr->lkey};
}

struct rmem_send_wr
fx_wr(uint8_t opcode, const struct rmem_sge *sge, uint16_t num_sge)
{
	struct rmem_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = 0xa0a0;
	wr.opcode = opcode;
	wr.sg_list = sge;
	wr.num_sge = num_sge;
	return wr;
}

struct rmem_send_wr
fx_rdma(uint8_t opcode, const struct rmem_sge *sge, uint64_t remote_addr, uint32_t rkey)
{
	struct rmem_send_wr wr = fx_wr(opcode, sge, sge != NULL);

	wr.rdma.remote_addr = remote_addr;
	wr.rdma.rkey = rkey;
	return wr;
}

struct rmem_send_wr
fx_rdma_to(uint8_t opcode, const struct rmem_sge *sge, const struct fx_side *side)
{
	return fx_rdma(opcode, sge, fx_addr(side->buf), side->mr->rkey);
}

struct rmem_send_wr
fx_atomic(uint8_t opcode, const struct rmem_sge *sge, uint64_t remote_addr, uint32_t rkey,
		uint64_t compare_add)
{
	struct rmem_send_wr wr = fx_wr(opcode, sge, 1);

	wr.atomic.remote_addr = remote_addr;
	wr.atomic.rkey = rkey;
	wr.atomic.compare_add = compare_add;
	return wr;
}

struct rmem_send_wr
fx_inv(uint32_t rkey)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_LOCAL_INV, NULL, 0);

	wr.invalidate_rkey = rkey;
	return wr;
}

struct rmem_send_wr
fx_reg(struct rmem_mr *mr, struct rmem_fast_reg_page_list *list, uint16_t nb_pages, uint64_t iova,
		uint32_t length)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_REG_MR, NULL, 0);

	wr.reg_mr.mr = mr;
	wr.reg_mr.page_list = list;
	wr.reg_mr.page_list_len = nb_pages;
	wr.reg_mr.iova = iova;
	wr.reg_mr.length = length;
	wr.reg_mr.first_byte_offset = (uint32_t)(iova % FX_PAGE);
	wr.reg_mr.access = FX_ACCESS;
	wr.reg_mr.log2_page_size = 12;
	wr.reg_mr.key_tag = rmem_rkey_next_tag(mr->rkey);
	return wr;
}

struct rmem_mkey_entry
fx_entry(const struct rmem_mr *mr, size_t offset, uint64_t length)
{
	return (struct rmem_mkey_entry){
			.addr = mr->iova + offset, .length = length, .lkey = mr->lkey};
}

struct rmem_send_wr
fx_umr(struct rmem_mr *mr, const struct rmem_mkey_entry *entries, uint32_t nb_entries,
		uint64_t iova)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_UMR, NULL, 0);

	wr.umr.mr = mr;
	wr.umr.entries = entries;
	wr.umr.nb_entries = nb_entries;
	wr.umr.repeat_count = 1;
	wr.umr.iova = iova;
	wr.umr.access = FX_ACCESS;
	wr.umr.key_tag = rmem_rkey_next_tag(mr->rkey);
	return wr;
}

void
fx_list_pages(struct rmem_fast_reg_page_list *list, const void *first, uint32_t nb_pages)
{
	uint32_t i;

	for (i = 0; i < nb_pages; i++)
		list->page_list[i] = fx_addr(first) + (uint64_t)i * FX_PAGE;
}

int
fx_bind(void)
{
	const struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES,
			fx_addr(fx.fast.pages), FX_FAST_PAGES * FX_PAGE);

	return fx_send(fx.a.qp, &wr);
}

int
fx_unbind(void)
{
	const struct rmem_send_wr wr = fx_inv(fx.fast.mr->rkey);

	return fx_send(fx.a.qp, &wr);
}

int
fx_post(struct rmem_qp *qp, const struct rmem_send_wr *wr)
{
	return rmem_post_send(qp, wr, 1);
}

void
fx_post_writes(struct rmem_qp *qp, uint64_t first, uint32_t n)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	uint32_t i;

	wr.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < n; i++) {
		wr.wr_id = first + i;
		TEST_EQ(fx_post(qp, &wr), 1);
	}
}

int
fx_post_recv(struct rmem_qp *qp, uint64_t wr_id, const struct rmem_sge *sge, uint32_t num_sge)
{
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge};

	return rmem_post_recv(qp, &wr, 1);
}

/* Every refusal of a soft device has a cause, which has a name. */
static bool
has_cause(const struct rmem_wc *wc)
{
	if (wc->status == RMEM_WC_SUCCESS || wc->status == RMEM_WC_WR_FLUSH_ERR || !fx_is_soft())
		return true;
	if (wc->vendor_err != RMEM_VENDOR_ERR_NONE && wc->vendor_err < RMEM_VENDOR_ERR_NB)
		return true;
	printf("fixture: %s with vendor_err %u\n", rmem_wc_status_str(wc->status), wc->vendor_err);
	return false;
}

int
fx_poll(struct rmem_cq *cq, struct rmem_wc *wc, uint32_t nb_wc)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;
	uint32_t nb = 0;
	int ret;

	while (nb < nb_wc && !fx_is_late(deadline)) {
		ret = rmem_poll_cq(cq, &wc[nb], (uint16_t)(nb_wc - nb));
		if (ret < 0)
			return nb > 0 ? (int)nb : ret;
		if (ret == 0)
			fx_relax(&spins);
		for (; ret > 0; ret--, nb++) {
			if (!has_cause(&wc[nb]))
				return -EPROTO;
		}
	}
	return (int)nb;
}

int
fx_wait(struct rmem_cq *cq)
{
	int ret = fx_poll(cq, &fx.wc, 1);

	if (ret < 0)
		return ret;
	return ret == 0 ? -ETIMEDOUT : fx.wc.status;
}

int
fx_send(struct rmem_qp *qp, const struct rmem_send_wr *wr)
{
	struct rmem_send_wr signaled = *wr;
	int ret;

	signaled.flags |= RMEM_SEND_SIGNALED;
	ret = fx_post(qp, &signaled);
	if (ret != 1)
		return ret == 0 ? -EPROTO : ret;
	ret = fx_wait(qp->send_cq);
	if (ret >= 0 && (fx.wc.wr_id != wr->wr_id || fx.wc.qp_num != qp->qp_num))
		return -EBADMSG;
	return ret;
}

int
fx_invalidate(uint32_t rkey)
{
	const struct rmem_send_wr wr = fx_inv(rkey);

	return fx_send(fx.a.qp, &wr);
}

bool
fx_is_idle(struct rmem_cq *cq)
{
	int i;

	for (i = 0; i < 1000; i++) {
		if (rmem_poll_cq(cq, &fx.wc, 1) != 0)
			return false;
	}
	return true;
}

static void
expect_status(struct rmem_cq *cq, uint64_t wr_id, uint32_t nb, int status)
{
	uint32_t i;

	for (i = 0; i < nb; i++) {
		TEST_STATUS(fx_wait(cq), status);
		TEST_EQ(fx.wc.wr_id, wr_id + i);
	}
}

void
fx_expect_done(struct rmem_cq *cq, uint64_t wr_id, uint32_t nb)
{
	expect_status(cq, wr_id, nb, RMEM_WC_SUCCESS);
}

void
fx_expect_flush(struct rmem_cq *cq, uint64_t wr_id, uint32_t nb)
{
	expect_status(cq, wr_id, nb, RMEM_WC_WR_FLUSH_ERR);
}

void
fx_deliver(const struct fx_side *from, const struct fx_side *to, const struct rmem_send_wr *wr)
{
	TEST_STATUS(fx_send(from->qp, wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(to->cq), RMEM_WC_SUCCESS);
}

int
fx_peer_write(uint64_t addr, uint32_t length, uint32_t rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, length);
	const struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, addr, rkey);

	return fx_send(fx.b.qp, &wr);
}

void
fx_expect(const struct rmem_send_wr *wr, int status, int state_a, int state_b)
{
	TEST_STATUS(fx_send(fx.a.qp, wr), status);
	TEST_EQ(fx_state(fx.a.qp), state_a);
	TEST_EQ(fx_state(fx.b.qp), state_b);
}

void
fx_expect_refusal(const struct rmem_send_wr *wr, int status, int state_b)
{
	fx_expect(wr, status, RMEM_QPS_ERR, state_b);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	fx_reconnect();
}
