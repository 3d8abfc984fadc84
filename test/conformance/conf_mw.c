/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory windows. mw1 and mw2 are the rules of both types, on a window of each; mw1_bind has the
 * rules of rmem_mw_bind().
 */

#include <string.h>

#include "conf.h"

#define CAPA_1 RMEM_DEV_CAPA_MW_TYPE_1
#define CAPA_2 (RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV)
#define ALL    (RMEM_ACCESS_REMOTE & conf.info.access)

/* The window under test, for the rules of both types. */
static struct rmem_mw *window;

static void
setup_1(void)
{
	TEST_SKIP_IF((conf.info.capa & CAPA_1) == 0, "the device lacks windows of type 1");
	conf_setup_mw();
	window = fx.mw.one;
}

static void
setup_2(void)
{
	if ((conf.info.capa & CAPA_2) != CAPA_2)
		test_skip("the device lacks windows of type 2B or LOCAL_INV");
	conf_setup_mw();
	window = fx.mw.two;
}

static int
bind_window(size_t offset, uint64_t length, uint32_t access)
{
	if (window->type == RMEM_MW_TYPE_1)
		return fx_mw_bind_1(offset, length, access);
	return fx_mw_bind_2(offset, length, access);
}

CONF_TEST(mw, unbound_window_grants_no_access, 0, 0,
		"ibv_alloc_mw(3): the window is not bound to any MR")
{
	conf_denied(fx_addr(fx.a.buf), 8, window->rkey);
}

CONF_TEST(mw, bound_window_grants_access_to_its_range, 0, 0,
		"ibv_bind_mw(3), IBTA 10.6.7.2: a binding grants access")
{
	uint64_t at = fx_addr(fx.a.buf) + 4000;

	TEST_STATUS(bind_window(4000, 300, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_BIND_MW);
	conf_granted(at, 300, window->rkey, fx.a.buf + 4000);
	conf_granted(at + 299, 1, window->rkey, fx.a.buf + 4299);
}

CONF_TEST(mw, access_beyond_the_bound_range_is_refused, 0, 0,
		"IBTA C10-75: the bounds are those of the window, not of its MR")
{
	uint64_t at = fx_addr(fx.a.buf) + 4000;

	TEST_STATUS(bind_window(4000, 300, ALL), RMEM_WC_SUCCESS);
	conf_denied_outside(at - 1, 1, window->rkey);
	conf_denied_outside(at - 1, 2, window->rkey);
	conf_denied_outside(at, 301, window->rkey);
	conf_denied_outside(at + 299, 2, window->rkey);
	conf_denied_outside(at + 300, 1, window->rkey);
	conf_denied(fx_addr(fx.a.buf) + FX_BUF_SIZE, 8, window->rkey);
	conf_denied(UINT64_MAX - 3, 8, window->rkey);
	conf_denied(0, 1, window->rkey);
}

CONF_TEST(mw, rights_are_those_of_the_binding, 0, 0,
		"ibv_bind_mw(3): mw_access_flags, all combinations")
{
	static const struct {
		uint8_t opcode;
		uint32_t right;
		uint64_t capa;
	} rows[] = {
			{RMEM_WR_RDMA_WRITE, RMEM_ACCESS_REMOTE_WRITE, 0},
			{RMEM_WR_RDMA_READ, RMEM_ACCESS_REMOTE_READ, 0},
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, RMEM_ACCESS_REMOTE_ATOMIC,
					RMEM_DEV_CAPA_ATOMIC},
			{RMEM_WR_ATOMIC_WRITE, RMEM_ACCESS_REMOTE_WRITE,
					RMEM_DEV_CAPA_ATOMIC_WRITE},
	};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	uint32_t access;
	unsigned int i;

	for (access = 0; access <= ALL; access += RMEM_ACCESS_REMOTE_WRITE) {
		TEST_STATUS(bind_window(0, 64, access), RMEM_WC_SUCCESS);
		for (i = 0; i < RTE_DIM(rows); i++) {
			const struct rmem_send_wr wr = conf_request(
					rows[i].opcode, &sge, fx_addr(fx.a.buf), window->rkey);

			if ((rows[i].capa & ~conf.info.capa) != 0)
				continue;
			if ((access & rows[i].right) != 0)
				TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
			else
				conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
		}
		if (window->type == RMEM_MW_TYPE_2)
			TEST_STATUS(fx_invalidate(window->rkey), RMEM_WC_SUCCESS);
	}
}

/* With any tag. */
CONF_TEST(mw, rkey_of_a_window_is_no_lkey, 0, 0, "IBTA 10.6.7: a window has only an R_Key")
{
	struct rmem_sge sge = fx_sge(fx.mw.mr, 0, 8);
	unsigned int i;

	TEST_STATUS(bind_window(0, 4096, ALL), RMEM_WC_SUCCESS);
	for (i = 0; i < 4; i++) {
		struct rmem_send_wr wr;

		sge.lkey = window->rkey ^ (i < 2 ? 0 : 0xff);
		wr = fx_rdma(i % 2 == 0 ? RMEM_WR_RDMA_WRITE : RMEM_WR_RDMA_READ, &sge,
				fx_addr(fx.b.buf), fx.b.mr->rkey);
		conf_refused(CONF_LOCAL_KEY, fx.a.qp, &wr);
	}
}

CONF_TEST(mw, dereg_of_an_mr_with_a_bound_window_is_ebusy, 0, 0,
		"ibv_dereg_mr(3): it fails while a window is bound")
{
	TEST_STATUS(bind_window(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	conf_granted(fx_addr(fx.a.buf), 64, window->rkey, fx.a.buf);
	TEST_OK(fx_release(window));
	TEST_OK(fx_release(fx.mw.mr));
}

CONF_TEST(mw, dealloc_invalidates_a_bound_window, 0, 0,
		"ibv_dealloc_mw(3): the key is no longer valid")
{
	uint32_t rkey;

	TEST_STATUS(bind_window(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = window->rkey;
	TEST_OK(fx_release(window));
	conf_denied(fx_addr(fx.a.buf), 8, rkey);
}

CONF_TEST(mw, window_remains_bound_after_a_reset_of_its_qp, 0, 0,
		"IBTA 10.6.7.2: a window is bound until it is invalidated or freed")
{
	TEST_STATUS(bind_window(0, 64, ALL), RMEM_WC_SUCCESS);
	conf_reconnect();
	conf_granted(fx_addr(fx.a.buf), 64, window->rkey, fx.a.buf);
}

/* The addresses of a window are those of its MR. */
CONF_TEST(mw, window_binds_to_a_zero_based_mr, 0, RMEM_ACCESS_ZERO_BASED,
		"ibv_reg_mr(3): IBV_ACCESS_ZERO_BASED")
{
	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf + 4096, 4096, conf_access() | RMEM_ACCESS_ZERO_BASED);
	TEST_ASSERT(fx.mw.mr->iova == 0);
	TEST_STATUS(bind_window(64, 64, ALL), RMEM_WC_SUCCESS);
	conf_granted(64, 64, window->rkey, fx.a.buf + 4096 + 64);
	conf_denied_outside(63, 2, window->rkey);
	TEST_OK(fx_release(window));
}

/* An MR whose registration in the background failed has no keys. */
CONF_TEST(mw, bind_to_a_failed_mr_is_refused, 0, 0,
		"fi_mr(3): a registration that failed has no keys")
{
	struct rmem_mr_attr attr = {.addr = fx_map(FX_PAGE),
			.length = FX_PAGE,
			.access = conf_access(),
			.eq = fx_eq(conf.dev, 1)};
	struct rmem_mw_bind call = fx_mw_bind(0, 64, RMEM_ACCESS_REMOTE_READ);
	struct rmem_send_wr wr = fx_mw_wr(window, 0, 64, RMEM_ACCESS_REMOTE_READ);
	struct rmem_mr *mr;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_ERR(fx_event(attr.eq).status, EFAULT);
	wr.bind_mw.mr = call.bind_info.mr = mr;
	wr.bind_mw.addr = call.bind_info.addr = fx_addr(attr.addr);
	if (window->type == RMEM_MW_TYPE_1)
		TEST_ERR(rmem_mw_bind(fx.a.qp, window, &call), EBUSY);
	else
		conf_refused(CONF_BIND, fx.a.qp, &wr);
	TEST_OK(fx_release(mr));
}

struct test_case *test_cases_mw;
TEST_SUITE_OF(mw1, setup_1, conf_teardown, mw);
TEST_SUITE_OF(mw2, setup_2, conf_teardown, mw);

CONF_TEST(mw1_bind, each_bind_replaces_the_previous_one, CAPA_1, 0,
		"IBTA 10.6.7.2.2: a binding invalidates the previous key")
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
			conf_denied(fx_addr(fx.a.buf) + (i - 1) * 64, 8, before);
	}
}

CONF_TEST(mw1_bind, bind_of_length_0_unbinds, CAPA_1, 0,
		"ibv_bind_mw(3): a binding of length 0 invalidates")
{
	struct rmem_mw_bind bind = fx_mw_bind(0, 0, 0);
	uint32_t before;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	before = fx.mw.one->rkey;
	bind.bind_info.mr = NULL;
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx.mw.one->rkey != before);
	conf_denied(fx_addr(fx.a.buf), 8, before);
	conf_denied(fx_addr(fx.a.buf), 8, fx.mw.one->rkey);
	/* Again, without a binding. */
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.mr));
}

CONF_TEST(mw1_bind, bind_to_another_mr_releases_the_first, CAPA_1, 0,
		"ibv_dereg_mr(3): it fails only while a window is bound")
{
	struct rmem_mr *first = fx.mw.mr;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf + 4096, 4096, conf_access());
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(first));
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	conf_granted(fx_addr(fx.a.buf) + 4096, 8, fx.mw.one->rkey, fx.a.buf + 4096);
	TEST_OK(fx_release(fx.mw.one));
}

CONF_TEST(mw1_bind, unsignaled_bind_generates_no_completion, CAPA_1 | CAPA_2, 0,
		"ibv_bind_mw(3): send_flags")
{
	struct rmem_mw_bind call = fx_mw_bind(0, 64, ALL);

	call.flags = RMEM_SEND_FENCE;
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &call));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS); /* after it */
	TEST_EQ(fx.wc.wr_id, 0xa0a0);
	conf_granted(fx_addr(fx.a.buf), 8, fx.mw.one->rkey, fx.a.buf);
}

CONF_TEST(mw1_bind, type_1_window_is_valid_for_all_qps_of_the_pd, CAPA_1, 0,
		"IBTA 10.6.7: type 1 windows belong to the PD")
{
	struct rmem_qp *mine, *peer;
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;

	conf_pair(&mine, &peer);
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), fx.mw.one->rkey);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
}

CONF_TEST(mw1_bind, local_inv_of_a_type_1_window_fails, CAPA_1 | RMEM_DEV_CAPA_LOCAL_INV, 0,
		"IBTA o10-37.2.26: type 1 windows are not invalidated")
{
	struct rmem_send_wr wr;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.one->rkey);
	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	conf_granted(fx_addr(fx.a.buf), 64, fx.mw.one->rkey, fx.a.buf);
}

CONF_TEST(mw1_bind, send_with_inv_of_a_type_1_window_fails, CAPA_1 | RMEM_DEV_CAPA_SEND_WITH_INV, 0,
		"IBTA o10-37.2.26: type 1 windows are not invalidated")
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.a.qp, 9, NULL, 0), 1);
	wr.invalidate_rkey = fx.mw.one->rkey;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	conf_status(CONF_RECV_INV, fx_wait(fx.a.cq));
	conf_reconnect();
	conf_granted(fx_addr(fx.a.buf), 8, fx.mw.one->rkey, fx.a.buf);
}

/* The call returns the error; the key remains valid. */
/* A valid binding with one change fails with -error. */
#define BIND_FAILS(change, error)                                                                  \
	do {                                                                                       \
		bind = fx_mw_bind(0, 64, ALL);                                                     \
		bind.bind_info.change;                                                             \
		TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), error);                          \
	} while (0)

CONF_TEST(mw1_bind, bad_bindings_are_refused, CAPA_1, 0,
		"IBTA C10-72 to C10-75, o10-36.2.2: PD, MW_BIND, rights, range")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *foreign = fx_mr(pd, fx.a.buf, 64, conf_access());
	struct rmem_mr *fixed = fx_mr(fx.a.pd, fx.a.buf, 64, RMEM_ACCESS_MW_BIND);
	struct rmem_qp *fresh = conf_qp(fx.a.pd, fx.a.cq, 0);
	struct rmem_mw_bind bind = fx_mw_bind(0, 64, ALL);
	uint32_t rkey = fx.mw.one->rkey;

	TEST_ERR(rmem_mw_bind(fresh, fx.mw.one, &bind), EBUSY); /* in RESET */
	BIND_FAILS(length = FX_BUF_SIZE + 1, EINVAL);
	BIND_FAILS(length = UINT64_MAX, EINVAL);
	BIND_FAILS(addr--, EINVAL);
	BIND_FAILS(access |= RMEM_ACCESS_ZERO_BASED, EINVAL);
	BIND_FAILS(access = RMEM_ACCESS_LOCAL_WRITE, EINVAL);
	BIND_FAILS(mr = fx.a.mr, EPERM);
	BIND_FAILS(mr = foreign, EPERM);
	BIND_FAILS(mr = fixed, EPERM);
	TEST_EQ(fx.mw.one->rkey, rkey);
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
}

/* After flushed bindings the previous one is in force. */
CONF_TEST(mw1_bind, flushed_bind_keeps_the_key, CAPA_1, 0,
		"IBTA 10.6.7.2.2: a request that was not executed changes nothing")
{
	const struct rmem_mw_bind bind = fx_mw_bind(64, 64, ALL);
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.one->rkey;
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx.mw.one->rkey, rkey);
	conf_reconnect();
	conf_granted(fx_addr(fx.a.buf), 64, rkey, fx.a.buf);
	TEST_STATUS(fx_mw_bind_1(64, 64, ALL), RMEM_WC_SUCCESS);
	conf_granted(fx_addr(fx.a.buf) + 64, 64, fx.mw.one->rkey, fx.a.buf + 64);
}

TEST_SUITE(mw1_bind, conf_setup_mw, conf_teardown);
