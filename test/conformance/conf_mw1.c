/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Type 1 windows: bound by rmem_mw_bind(), for all QPs of the PD, again and again. */

#include <string.h>

#include "conf.h"

#define CAPA RMEM_DEV_CAPA_MW_TYPE_1
#define ALL  (RMEM_ACCESS_REMOTE & conf.info.access)

CONF_TEST(mw1, window_opens_its_range, CAPA, 0, "ibv_bind_mw(3): a new rkey opens it")
{
	uint64_t at = fx_addr(fx.a.buf) + 4000;

	TEST_STATUS(fx_mw_bind_1(4000, 300, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_BIND_MW);
	TEST_EQ(fx.wc.wr_id, 0xb0b0);
	TEST_RUN(conf_open(at, 300, fx.mw.one->rkey, fx.a.buf + 4000));
	TEST_RUN(conf_open(at + 299, 1, fx.mw.one->rkey, fx.a.buf + 4299));
	return TEST_SUCCESS;
}

CONF_TEST(mw1, window_ends_where_it_was_bound, CAPA, 0,
		"IBTA C10-75: the window's bounds count, not those of its MR")
{
	uint64_t at = fx_addr(fx.a.buf) + 4000;

	TEST_STATUS(fx_mw_bind_1(4000, 300, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(conf_closed_beside(at - 1, 1, fx.mw.one->rkey));
	TEST_RUN(conf_closed_beside(at, 301, fx.mw.one->rkey));
	TEST_RUN(conf_closed_beside(at + 299, 2, fx.mw.one->rkey));
	TEST_RUN(conf_closed_beside(at + 300, 1, fx.mw.one->rkey));
	TEST_RUN(conf_closed(fx_addr(fx.a.buf) + FX_BUF_SIZE, 8, fx.mw.one->rkey));
	TEST_RUN(conf_closed(UINT64_MAX - 3, 8, fx.mw.one->rkey));
	return TEST_SUCCESS;
}

CONF_TEST(mw1, window_that_is_not_bound_is_closed, CAPA, 0,
		"ibv_alloc_mw(3): the window is not bound to any MR")
{
	return conf_closed(fx_addr(fx.a.buf), 8, fx.mw.one->rkey);
}

CONF_TEST(mw1, each_binding_ends_the_one_before, CAPA, 0,
		"IBTA 10.6.7.2.2: a binding takes the former key away")
{
	unsigned int i;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	for (i = 1; i < 300; i++) {
		uint32_t before = fx.mw.one->rkey;

		TEST_STATUS(fx_mw_bind_1(i * 64, 64, ALL), RMEM_WC_SUCCESS);
		TEST_ASSERT(fx.mw.one->rkey != before);
		TEST_EQ(fx.mw.one->rkey >> 8, before >> 8);
		TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, fx_addr(fx.a.buf) + i * 64, 64,
					    fx.mw.one->rkey),
				RMEM_WC_SUCCESS);
		if (i % 50 == 0)
			TEST_RUN(conf_closed(fx_addr(fx.a.buf) + (i - 1) * 64, 8, before));
	}
	return TEST_SUCCESS;
}

CONF_TEST(mw1, length_0_unbinds, CAPA, 0, "ibv_bind_mw(3): a binding of length 0 invalidates")
{
	struct rmem_mw_bind bind = fx_mw_bind(0, 0, 0);
	uint32_t before;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	before = fx.mw.one->rkey;
	bind.bind_info.mr = NULL;
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, before));
	TEST_RUN(conf_closed(fx_addr(fx.a.buf), 8, fx.mw.one->rkey));
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

CONF_TEST(mw1, rights_are_the_windows, CAPA, 0, "ibv_bind_mw(3): mw_access_flags, in all sums")
{
	static const struct {
		uint8_t opcode;
		uint32_t right;
	} rows[] = {
			{RMEM_WR_RDMA_WRITE, RMEM_ACCESS_REMOTE_WRITE},
			{RMEM_WR_RDMA_READ, RMEM_ACCESS_REMOTE_READ},
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, RMEM_ACCESS_REMOTE_ATOMIC},
	};
	unsigned int nb = (ALL & RMEM_ACCESS_REMOTE_ATOMIC) != 0 ? 3 : 2;
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	uint32_t access;
	unsigned int i;

	for (access = 0; access <= ALL; access += RMEM_ACCESS_REMOTE_WRITE) {
		TEST_STATUS(fx_mw_bind_1(0, 64, access), RMEM_WC_SUCCESS);
		for (i = 0; i < nb; i++) {
			const struct rmem_send_wr wr = conf_request(
					rows[i].opcode, &sge, fx_addr(fx.a.buf), fx.mw.one->rkey);

			if ((access & rows[i].right) != 0)
				TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
			else
				TEST_RUN(conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr));
		}
	}
	return TEST_SUCCESS;
}

CONF_TEST(mw1, any_qp_of_the_pd_may_use_it, CAPA, 0, "IBTA 10.6.7: type 1 windows belong to the PD")
{
	struct rmem_qp *mine = conf_qp(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE);
	struct rmem_qp *peer = conf_qp(fx.a.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;

	TEST_ASSERT(mine != NULL && peer != NULL);
	TEST_OK(conf_connect(mine, peer));
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), fx.mw.one->rkey);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

CONF_TEST(mw1, requests_do_not_invalidate_it, CAPA | RMEM_DEV_CAPA_LOCAL_INV, 0,
		"IBTA o10-37.2.26: type 1 windows are not invalidated")
{
	struct rmem_send_wr wr;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.one->rkey);
	TEST_RUN(conf_refused(CONF_INVALIDATE, fx.a.qp, &wr));
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, fx.mw.one->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

CONF_TEST(mw1, bound_mr_is_not_deregistered, CAPA, 0,
		"ibv_dereg_mr(3): it fails while a window is bound")
{
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, fx.mw.one->rkey, fx.a.buf));
	TEST_OK(fx_release(fx.mw.one));
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

/* The call names the mistake; the key stays. */
CONF_TEST(mw1, bad_bindings_are_refused, CAPA, 0,
		"IBTA C10-72 to C10-75, o10-36.2.2: PD, MW_BIND, rights, range")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *foreign = fx_mr(pd, fx.a.buf, 64, conf_access());
	struct rmem_mr *fixed = fx_mr(fx.a.pd, fx.a.buf, 64, RMEM_ACCESS_MW_BIND);
	struct rmem_mw_bind bind = fx_mw_bind(0, 64, ALL);
	uint32_t rkey = fx.mw.one->rkey;

	TEST_ASSERT(foreign != NULL && fixed != NULL);
	bind.bind_info.length = FX_BUF_SIZE + 1;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EINVAL);
	bind.bind_info.length = UINT64_MAX;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EINVAL);
	bind = fx_mw_bind(0, 64, ALL);
	bind.bind_info.addr--;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EINVAL);
	bind = fx_mw_bind(0, 64, ALL | RMEM_ACCESS_ZERO_BASED);
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EINVAL);
	bind = fx_mw_bind(0, 64, RMEM_ACCESS_LOCAL_WRITE);
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EINVAL);
	bind = fx_mw_bind(0, 64, ALL);
	bind.bind_info.mr = fx.a.mr;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EPERM);
	bind.bind_info.mr = foreign;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EPERM);
	bind.bind_info.mr = fixed;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EPERM);
	TEST_EQ(fx.mw.one->rkey, rkey);
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* A binding that is flushed leaves the one before in force. */
CONF_TEST(mw1, binding_that_fails_keeps_the_key, CAPA, 0,
		"IBTA 10.6.7.2.2: what was not executed changes nothing")
{
	const struct rmem_mw_bind bind = fx_mw_bind(64, 64, ALL);
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.one->rkey;
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx.mw.one->rkey, rkey);
	TEST_RUN(conf_reconnect());
	TEST_RUN(conf_open(fx_addr(fx.a.buf), 64, rkey, fx.a.buf));
	TEST_STATUS(fx_mw_bind_1(64, 64, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(conf_open(fx_addr(fx.a.buf) + 64, 64, fx.mw.one->rkey, fx.a.buf + 64));
	return TEST_SUCCESS;
}

TEST_SUITE(mw1, conf_setup_mw, conf_teardown);
