/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * What leases make of a device's capabilities, refusals and failures: a driver that does as told.
 */

#include <errno.h>
#include <string.h>

#include "lease.h"
#include "stub_driver.h"

#define WRITE RMEM_ACCESS_REMOTE_WRITE
#define INV   RMEM_DEV_CAPA_LOCAL_INV
#define MW    (RMEM_DEV_CAPA_MW_TYPE_2B | INV)

static struct {
	int alloc_ret;
	int dealloc_ret;
	int post_ret;   /* when not 0 */
	uint16_t room;  /* of the send queue */
	uint32_t state; /* of the QP */
	uint32_t nb_mw;
	struct rmem_send_wr posted[64];
	uint16_t nb_posted;
} leaser;

static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
	uint8_t buf[4096];
} at;

static int
leaser_dev_info_get(struct rmem_dev *dev, struct rmem_dev_info *info)
{
	info->nb_mw = leaser.nb_mw;
	return stub_dev_info_get(dev, info);
}

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
	if (leaser.dealloc_ret != 0)
		return leaser.dealloc_ret;
	leaser.nb_mw--;
	return 0;
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
	attr->max_send_wr = 64;
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

	driver.ops.dev_info_get = leaser_dev_info_get;
	driver.ops.mw_alloc = leaser_mw_alloc;
	driver.ops.mw_dealloc = leaser_mw_dealloc;
	driver.ops.qp_create = leaser_qp_create;
	driver.ops.qp_query = leaser_qp_query;
	driver.ops.qp_reset = leaser_qp_reset;
	driver.fp.post_send = leaser_post_send;
	driver.fp.poll_cq = leaser_poll_cq;
	return driver;
}

static int
setup(void)
{
	static struct rmem_driver driver;

	TEST_RUN(fx_setup_none());
	memset(&lx, 0, sizeof(lx));
	memset(&leaser, 0, sizeof(leaser));
	memset(&stub, 0, sizeof(stub));
	if (driver.name == NULL) {
		driver = leaser_driver();
		TEST_OK(rmem_driver_register(&driver));
	}
	stub.access = FX_ACCESS | RMEM_ACCESS_MW_BIND;
	stub.capa = MW;
	leaser.room = 64;
	leaser.state = RMEM_QPS_RTS;
	at.dev = fx_dev("leaser0", NULL);
	at.pd = fx_pd(at.dev);
	at.cq = fx_cq(at.dev, 64);
	at.qp = fx_qp(at.pd, at.cq, 64);
	at.mr = fx_mr(at.pd, at.buf, sizeof(at.buf), FX_ACCESS | RMEM_ACCESS_MW_BIND);
	TEST_ASSERT(at.mr != NULL && at.qp != NULL);
	lx.conf.max_length = sizeof(at.buf);
	lx.conf.max_leases = LX_MAX;
	lx.conf.socket_id = SOCKET_ID_ANY;
	return TEST_SUCCESS;
}

static int
teardown(void)
{
	leaser.dealloc_ret = leaser.alloc_ret = leaser.post_ret = 0;
	leaser.state = RMEM_QPS_RESET;
	if (lx.ctx != NULL) {
		rmem_lease_recover(lx.ctx);
		while (rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX) > 0)
			;
		rmem_lease_ctx_destroy(lx.ctx);
	}
	return fx_teardown();
}

static int
make(void)
{
	return rmem_lease_ctx_create(at.qp, &lx.conf, &lx.ctx);
}

static int
grant(uint16_t nb)
{
	struct rmem_lease_req req[LX_MAX];
	uint16_t i;

	for (i = 0; i < nb; i++) {
		memset(&req[i], 0, sizeof(req[i]));
		req[i].mr = at.mr;
		req[i].addr = at.buf + i;
		req[i].length = 8;
		req[i].access = WRITE;
	}
	return rmem_lease_grant(lx.ctx, req, nb, lx.lease);
}

/* A completion of the last request posted, of its QP. */
static int
complete(uint16_t at_wr)
{
	struct rmem_wc wc = {.wr_id = leaser.posted[at_wr].wr_id, .qp_num = 17};

	return rmem_lease_take_wcs(lx.ctx, &wc, 1);
}

static int
expect_backend(uint64_t capa, uint32_t wanted, int want)
{
	stub.capa = capa;
	lx.conf.backend = wanted;
	if (want < 0) {
		TEST_ERR(make(), -want);
		return TEST_SUCCESS;
	}
	TEST_OK(make());
	TEST_EQ(lx_stats().backend, want);
	TEST_OK(rmem_lease_ctx_destroy(lx.ctx));
	lx.ctx = NULL;
	return TEST_SUCCESS;
}

static int
backend_follows_the_capabilities(void)
{
	TEST_RUN(expect_backend(0, RMEM_LEASE_AUTO, -EOPNOTSUPP));
	TEST_RUN(expect_backend(RMEM_DEV_CAPA_MW_TYPE_2B, RMEM_LEASE_AUTO, -EOPNOTSUPP));
	TEST_RUN(expect_backend(MW, RMEM_LEASE_AUTO, RMEM_LEASE_MW));
	TEST_RUN(expect_backend(MW, RMEM_LEASE_MW, RMEM_LEASE_MW));
	TEST_RUN(expect_backend(MW, RMEM_LEASE_FAST_REG, -EOPNOTSUPP));
	TEST_RUN(expect_backend(MW, RMEM_LEASE_UMR, -EOPNOTSUPP));
	TEST_RUN(expect_backend(RMEM_DEV_CAPA_UMR | INV, RMEM_LEASE_AUTO, RMEM_LEASE_UMR));
	TEST_RUN(expect_backend(MW | RMEM_DEV_CAPA_UMR, RMEM_LEASE_UMR, RMEM_LEASE_UMR));
	return TEST_SUCCESS;
}

static int
failed_allocations_are_told(void)
{
	TEST_OK(make());
	leaser.alloc_ret = -ENOMEM;
	TEST_ERR(grant(1), ENOMEM);
	leaser.alloc_ret = -ENOSPC;
	TEST_ERR(grant(1), ENOSPC);
	leaser.alloc_ret = 0;
	TEST_EQ(grant(1), 1);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
	return TEST_SUCCESS;
}

static int
failed_device_is_told(void)
{
	struct rmem_lease *lease;
	struct rmem_wc wc;

	TEST_OK(make());
	TEST_EQ(grant(1), 1);
	lease = lx.lease[0];
	leaser.post_ret = -ENODEV;
	TEST_ERR(grant(2), ENODEV);
	TEST_ERR(rmem_lease_poll(lx.ctx, &wc, 1), ENODEV);
	TEST_EQ(lx_stats().nb_leases, 1);
	/* Nothing is proven about what could not be posted. */
	TEST_OK(rmem_lease_revoke(lx.ctx, &lease, 1));
	TEST_EQ(rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX), 0);
	return TEST_SUCCESS;
}

static int
key_that_cannot_be_released_ends_no_lease(void)
{
	TEST_OK(make());
	TEST_EQ(grant(3), 3);
	leaser.state = RMEM_QPS_RESET;
	leaser.dealloc_ret = -EBUSY;
	TEST_ERR(rmem_lease_recover(lx.ctx), EIO);
	TEST_EQ(rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX), 0);
	leaser.dealloc_ret = 0;
	TEST_OK(rmem_lease_recover(lx.ctx));
	TEST_EQ(rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX), 3);
	TEST_EQ(rmem_lease_age(lx.ctx), 0); /* from here on */
	leaser.dealloc_ret = -EBUSY;
	TEST_ERR(rmem_lease_age(lx.ctx), EIO);
	TEST_ERR(rmem_lease_ctx_destroy(lx.ctx), EIO);
	leaser.dealloc_ret = 0;
	TEST_OK(rmem_lease_ctx_destroy(lx.ctx));
	lx.ctx = NULL;
	TEST_EQ(leaser.nb_mw, 0);
	return TEST_SUCCESS;
}

static int
key_that_cannot_be_replaced_is_one_less(void)
{
	uint32_t nb_keys;

	TEST_OK(make());
	TEST_EQ(grant(3), 3);
	nb_keys = lx_stats().nb_keys;
	leaser.state = RMEM_QPS_RESET;
	leaser.alloc_ret = -ENOSPC;
	TEST_OK(rmem_lease_recover(lx.ctx));
	TEST_EQ(rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX), 3);
	TEST_EQ(lx_stats().nb_keys, nb_keys - 3);
	leaser.alloc_ret = 0;
	TEST_EQ(grant(LX_MAX), LX_MAX);
	return TEST_SUCCESS;
}

/* Of a burst cut short the last is unsignaled: it ends by what is posted later, and no sooner. */
static int
short_post_is_made_up_for(void)
{
	TEST_OK(make());
	TEST_EQ(grant(4), 4);
	TEST_EQ(leaser.posted[3].flags, RMEM_SEND_SIGNALED);
	leaser.room = 2;
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 4));
	TEST_EQ(leaser.nb_posted, 6);
	TEST_EQ(leaser.posted[5].flags, 0);
	TEST_EQ(complete(3), 0);
	TEST_EQ(rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX), 0);
	leaser.room = 2;
	TEST_EQ(rmem_lease_take_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 8);
	TEST_EQ(leaser.posted[6].flags, 0);
	TEST_EQ(leaser.posted[7].flags, RMEM_SEND_SIGNALED);
	TEST_EQ(leaser.posted[7].invalidate_rkey, lx.lease[3]->rkey);
	TEST_EQ(complete(7), 0);
	TEST_EQ(rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX), 4);
	return TEST_SUCCESS;
}

static int
tell_peer_inv(uint32_t rkey)
{
	struct rmem_wc wc = {.opcode = RMEM_WC_RECV, .flags = RMEM_WC_WITH_INV};

	wc.invalidated_rkey = rkey;
	return rmem_lease_take_wcs(lx.ctx, &wc, 1);
}

/* A LOCAL_INV that waits for room is not needed when the peer was faster. */
static int
invalidation_of_the_peer_saves_one_that_waits(void)
{
	TEST_OK(make());
	TEST_EQ(grant(2), 2);
	TEST_EQ(complete(1), 0);
	leaser.room = 0;
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 2));
	TEST_EQ(tell_peer_inv(lx.lease[0]->rkey), 1);
	leaser.room = 8;
	TEST_EQ(rmem_lease_take_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 3);
	TEST_EQ(leaser.posted[2].invalidate_rkey, lx.lease[1]->rkey);
	TEST_EQ(rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_ASSERT(lx.ended[0] == lx.lease[0]);
	TEST_EQ(lx.ended[0]->end, RMEM_LEASE_END_PEER_INV);
	return TEST_SUCCESS;
}

/* Granted again before the completion of the first grant was polled: that one tells nothing. */
static int
completion_of_a_grant_is_of_that_lease(void)
{
	lx.conf.max_leases = 1;
	TEST_OK(make());
	TEST_EQ(grant(1), 1);
	TEST_EQ(tell_peer_inv(lx.lease[0]->rkey), 1);
	TEST_EQ(rmem_lease_take_ended(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_EQ(grant(1), 1);
	TEST_EQ(complete(0), 0);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTING);
	TEST_EQ(complete(1), 0);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTED);
	return TEST_SUCCESS;
}

static const struct test_case lease_driver_cases[] = {
		TEST_CASE(backend_follows_the_capabilities),
		TEST_CASE(failed_allocations_are_told),
		TEST_CASE(failed_device_is_told),
		TEST_CASE(key_that_cannot_be_released_ends_no_lease),
		TEST_CASE(key_that_cannot_be_replaced_is_one_less),
		TEST_CASE(short_post_is_made_up_for),
		TEST_CASE(invalidation_of_the_peer_saves_one_that_waits),
		TEST_CASE(completion_of_a_grant_is_of_that_lease),
};

REGISTER_RMEM_SUITE(lease_driver, setup, teardown, lease_driver_cases);
