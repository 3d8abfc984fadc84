/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <string.h>

#include "lease_stub.h"
#include "rmem/stub_driver.h"

struct leaser leaser;

static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
	uint8_t buf[4096];
} at;

static int
leaser_mw_alloc(struct rmem_mw *mw)
{
	if (leaser.alloc_ret != 0)
		return leaser.alloc_ret;
	mw->rkey = ++stub.next_key << 8;
	leaser.nb_mw++;
	return 0;
}

static int
leaser_mw_dealloc(struct rmem_mw *mw)
{
	RTE_SET_USED(mw);
	if (leaser.dealloc_ret != 0 && --leaser.nb_deallocs < 0)
		return leaser.dealloc_ret;
	leaser.nb_mw--;
	return 0;
}

static int
leaser_page_list_alloc(struct rmem_fast_reg_page_list *list)
{
	static uint64_t pages[8];

	list->page_list = pages;
	return 0;
}

static int
leaser_page_list_free(struct rmem_fast_reg_page_list *list)
{
	RTE_SET_USED(list);
	return leaser.list_ret;
}

static int
leaser_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf)
{
	RTE_SET_USED(conf);
	qp->qp_num = 17;
	return 0;
}

static int
leaser_qp_query(struct rmem_qp *qp, struct rmem_qp_attr *attr)
{
	RTE_SET_USED(qp);
	attr->state = leaser.state;
	attr->access = RMEM_ACCESS_REMOTE;
	attr->max_send_wr = leaser.depth;
	return 0;
}

static int
leaser_qp_reset(struct rmem_qp *qp)
{
	RTE_SET_USED(qp);
	return 0;
}

static int
leaser_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	uint16_t n = RTE_MIN(nb_wr, leaser.room);

	RTE_SET_USED(qp);
	if (leaser.post_ret != 0)
		return leaser.post_ret;
	memcpy(&leaser.posted[leaser.nb_posted], wr, n * sizeof(*wr));
	leaser.nb_posted += n;
	leaser.room -= n;
	return n == 0 && nb_wr != 0 ? -ENOSPC : n;
}

static int
leaser_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	RTE_SET_USED(cq);
	RTE_SET_USED(wc);
	RTE_SET_USED(nb_wc);
	return leaser.post_ret;
}

static struct rmem_driver
leaser_driver(void)
{
	struct rmem_driver driver = stub_driver_full("leaser");

	driver.ops.page_list_alloc = leaser_page_list_alloc;
	driver.ops.page_list_free = leaser_page_list_free;
	driver.ops.mw_alloc = leaser_mw_alloc;
	driver.ops.mw_dealloc = leaser_mw_dealloc;
	driver.ops.qp_create = leaser_qp_create;
	driver.ops.qp_query = leaser_qp_query;
	driver.ops.qp_reset = leaser_qp_reset;
	driver.fp.post_send = leaser_post_send;
	driver.fp.poll_cq = leaser_poll_cq;
	return driver;
}

void
leaser_open(uint64_t capa)
{
	if (at.dev != NULL) {
		TEST_OK(fx_release(at.mr));
		TEST_OK(fx_release(at.qp));
		TEST_OK(fx_release(at.cq));
		TEST_OK(fx_release(at.pd));
		TEST_OK(fx_release(at.dev));
	}
	stub.capa = capa;
	at.dev = fx_dev("leaser0", NULL);
	at.pd = fx_pd(at.dev);
	at.cq = fx_cq(at.dev, 64);
	at.qp = fx_qp(at.pd, at.cq, 64);
	at.mr = fx_mr(at.pd, at.buf, sizeof(at.buf), FX_ACCESS | RMEM_ACCESS_MW_BIND);
}

void
leaser_setup(void)
{
	static struct rmem_driver driver;

	fx_setup_none();
	memset(&lx, 0, sizeof(lx));
	memset(&leaser, 0, sizeof(leaser));
	memset(&stub, 0, sizeof(stub));
	if (driver.name == NULL) {
		driver = leaser_driver();
		TEST_OK(rmem_driver_register(&driver));
	}
	stub.access = FX_ACCESS | RMEM_ACCESS_MW_BIND;
	leaser.room = leaser.depth = 64;
	leaser.state = RMEM_QPS_RTS;
	at.dev = NULL;
	leaser_open(RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV);
	lx.conf.max_length = sizeof(at.buf);
	lx.conf.max_leases = LX_MAX;
	lx.conf.socket_id = SOCKET_ID_ANY;
}

void
leaser_teardown(void)
{
	leaser.dealloc_ret = leaser.alloc_ret = leaser.post_ret = leaser.list_ret = 0;
	leaser.state = RMEM_QPS_RESET;
	if (lx.ctx != NULL) {
		rmem_lease_recover(lx.ctx);
		while (rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX) > 0)
			;
		rmem_lease_ctx_destroy(lx.ctx);
	}
	fx_teardown();
}

int
leaser_make(void)
{
	return rmem_lease_ctx_create(at.qp, &lx.conf, &lx.ctx);
}

void
leaser_granted(uint16_t nb)
{
	TEST_OK(leaser_make());
	TEST_EQ(leaser_grant(nb), nb);
}

int
leaser_grant(uint16_t nb)
{
	struct rmem_lease_req req[LX_MAX];
	uint16_t i;

	for (i = 0; i < nb; i++) {
		memset(&req[i], 0, sizeof(req[i]));
		req[i].mr = at.mr;
		req[i].addr = at.buf + i;
		req[i].length = 8;
		req[i].access = RMEM_ACCESS_REMOTE_WRITE;
	}
	return rmem_lease_grant(lx.ctx, req, nb, lx.lease);
}

/* A completion of a request that was posted, of its QP. */
int
leaser_complete_as(uint16_t at_wr, uint8_t status)
{
	struct rmem_wc wc = {.wr_id = leaser.posted[at_wr].wr_id, .qp_num = 17, .status = status};

	return rmem_lease_process_wcs(lx.ctx, &wc, 1);
}

int
leaser_complete(uint16_t at_wr)
{
	return leaser_complete_as(at_wr, RMEM_WC_SUCCESS);
}

int
leaser_peer_inv(uint32_t rkey)
{
	struct rmem_wc wc = {.opcode = RMEM_WC_RECV, .flags = RMEM_WC_WITH_INV};

	wc.invalidated_rkey = rkey;
	return rmem_lease_process_wcs(lx.ctx, &wc, 1);
}
