/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fixture of the cases, on the tested device. */

#include <string.h>

#include "conf.h"

#define DEPTH 64u

/* Objects in use before the case; those of a failed case are not counted for the next one. */
static struct rmem_dev_info before;

uint32_t
conf_access(void)
{
	uint32_t access = FX_ACCESS;

	if ((conf.info.capa & (RMEM_DEV_CAPA_MW_TYPE_1 | RMEM_DEV_CAPA_MW_TYPE_2B)) != 0)
		access |= RMEM_ACCESS_MW_BIND;
	return access & conf.info.access;
}

struct rmem_qp *
conf_qp_of(struct rmem_pd *pd, struct rmem_cq *cq, uint32_t access, uint16_t type)
{
	struct rmem_qp_conf qp = fx_qp_conf(cq, RTE_MIN(DEPTH, conf.info.max_send_wr));

	qp.max_recv_wr = RTE_MIN(qp.max_recv_wr, conf.info.max_recv_wr);
	qp.max_send_sge = (uint16_t)RTE_MIN(qp.max_send_sge, conf.info.max_send_sge);
	qp.max_recv_sge = (uint16_t)RTE_MIN(qp.max_recv_sge, conf.info.max_recv_sge);
	qp.max_inline_data = RTE_MIN(qp.max_inline_data, conf.info.max_inline_data);
	qp.access = access & conf.info.access;
	qp.type = type;
	return fx_qp_by(pd, &qp);
}

struct rmem_qp *
conf_qp(struct rmem_pd *pd, struct rmem_cq *cq, uint32_t access)
{
	return conf_qp_of(pd, cq, access, RMEM_QPT_RC);
}

static int
connect_one(struct rmem_qp *qp, struct rmem_qp *peer)
{
	struct rmem_qp_conn conn = fx_conn();

	/* Each retry waits a second, so that load on the machine does not exhaust them. */
	conn.timeout = 18;
	return fx_connect_by(qp, peer, &conn);
}

int
conf_connect(struct rmem_qp *qp, struct rmem_qp *peer)
{
	int ret = connect_one(qp, peer);

	return ret != 0 ? ret : connect_one(peer, qp);
}

void
conf_reconnect_pair(struct rmem_qp *qp, struct rmem_qp *peer)
{
	TEST_OK(rmem_qp_reset(qp));
	TEST_OK(rmem_qp_reset(peer));
	fx_drain(qp->send_cq);
	fx_drain(peer->send_cq);
	TEST_OK(conf_connect(qp, peer));
}

void
conf_pair(struct rmem_qp **mine, struct rmem_qp **peer)
{
	*mine = conf_qp(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE);
	*peer = conf_qp(fx.a.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	TEST_OK(conf_connect(*mine, *peer));
}

void
conf_reconnect(void)
{
	conf_reconnect_pair(fx.a.qp, fx.b.qp);
}

int
conf_deliver(struct rmem_qp *qp, const struct rmem_send_wr *wr, struct rmem_cq *cq)
{
	uint64_t deadline = fx_deadline();
	unsigned int i, spins = 0;

	while (!fx_is_late(deadline)) {
		TEST_STATUS(fx_send(qp, wr), RMEM_WC_SUCCESS);
		for (i = 0; i < 8000; i++) {
			if (rmem_poll_cq(cq, &fx.wc, 1) == 1)
				return fx.wc.status;
			fx_relax(&spins);
		}
	}
	return -1;
}

void
conf_end_writes(struct rmem_mr *mr, void (*end)(struct rmem_mr *mr), struct rmem_wc wcs[16])
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, (uint32_t)mr->length);
	struct rmem_send_wr wrs[16];
	unsigned int i;

	memset(fx.b.buf, 0xff, FX_BUF_SIZE);
	for (i = 0; i < RTE_DIM(wrs); i++) {
		wrs[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), mr->rkey);
		wrs[i].flags = RMEM_SEND_SIGNALED;
	}
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	end(mr);
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	TEST_EQ(fx_poll(fx.b.cq, wcs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
}

void
conf_expect_err(struct rmem_qp *qp)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;

	while (fx_state(qp) != RMEM_QPS_ERR && !fx_is_late(deadline))
		fx_relax(&spins);
	TEST_EQ(fx_state(qp), RMEM_QPS_ERR);
}

static void
open_side(struct fx_side *side, struct rmem_pd *pd)
{
	side->dev = conf.dev;
	side->pd = pd;
	side->buf = fx_mem(FX_PAGE, FX_BUF_SIZE);
	side->mr = fx_mr(pd, side->buf, FX_BUF_SIZE, FX_ACCESS & conf.info.access);
	side->cq = fx_cq(conf.dev, RTE_MIN(4 * DEPTH, conf.info.max_cqe));
	side->qp = conf_qp(pd, side->cq, RMEM_ACCESS_REMOTE);
}

void
conf_setup(void)
{
	struct rmem_pd *pd;

	fx_setup_none();
	TEST_OK(rmem_dev_info_get(conf.dev, &before));
	pd = fx_pd(conf.dev);
	open_side(&fx.a, pd);
	open_side(&fx.b, pd);
	TEST_OK(conf_connect(fx.a.qp, fx.b.qp));
}

/* After the QPs, so that the windows are released before them. */
void
conf_setup_mw(void)
{
	conf_setup();
	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, conf_access());
	if ((conf.info.capa & RMEM_DEV_CAPA_MW_TYPE_1) != 0) {
		fx.mw.one = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	}
	if ((conf.info.capa & RMEM_DEV_CAPA_MW_TYPE_2B) != 0) {
		fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	}
}

void
conf_setup_fast(void)
{
	conf_setup();
	fx.fast.pages = fx.a.buf;
	fx.fast.mr = fx_fast_mr(fx.a.pd, FX_FAST_PAGES);
	fx.fast.list = fx_page_list(conf.dev, FX_FAST_PAGES);
	fx_list_pages(fx.fast.list, fx.fast.pages, FX_FAST_PAGES);
}

void
conf_teardown(void)
{
	struct rmem_dev_info info;

	fx_teardown();
	/* A QP that another process has opened is released some time after its handle. */
	FX_AWAIT(fx_dev_info(conf.dev).nb_qp <= before.nb_qp);
	info = fx_dev_info(conf.dev);
	TEST_EQ(info.nb_qp, before.nb_qp);
	TEST_EQ(info.nb_cq, before.nb_cq);
	TEST_EQ(info.nb_mr, before.nb_mr);
	TEST_EQ(info.nb_mw, before.nb_mw);
	TEST_EQ(info.nb_srq, before.nb_srq);
	TEST_EQ(info.nb_pd, before.nb_pd);
}

uint8_t
conf_gid_index(const uint8_t gid[16])
{
	struct rmem_gid_entry entry;
	uint8_t i;

	for (i = 0; i < UINT8_MAX; i++) {
		if (rmem_dev_gid_query(conf.dev, 1, i, &entry) == 0 &&
				memcmp(entry.gid, gid, sizeof(entry.gid)) == 0 &&
				entry.type != RMEM_GID_TYPE_ROCE_V1)
			return i;
	}
	return 0;
}

struct rmem_send_wr
conf_request(uint8_t opcode, const struct rmem_sge *sge, uint64_t remote_addr, uint32_t rkey)
{
	if (opcode == RMEM_WR_ATOMIC_CMP_AND_SWP || opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD)
		return fx_atomic(opcode, sge, remote_addr, rkey, 1);
	return fx_rdma(opcode, sge, remote_addr, rkey);
}

int
conf_do(uint8_t opcode, uint64_t remote_addr, uint32_t length, uint32_t rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, length);
	const struct rmem_send_wr wr = conf_request(opcode, &sge, remote_addr, rkey);

	return fx_send(fx.b.qp, &wr);
}
