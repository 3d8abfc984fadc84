/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requests that bind name objects by handle. A handle of another device or driver is refused at the
 * post, an MR without keys by the completion, and fields that an opcode does not use are not read.
 */

#include <string.h>

#include "fixture.h"
#include "stub_driver.h"

#define ALL RMEM_ACCESS_REMOTE

/* Objects of one other device. */
struct others {
	struct rmem_pd *pd;
	struct rmem_mr *mr;
	struct rmem_mr *fast;
	struct rmem_mr *mkey;
	struct rmem_mw *mw;
	struct rmem_fast_reg_page_list *list;
};

static void
make_others(const char *name, struct others *others)
{
	struct rmem_dev *dev = fx_dev(name, NULL);

	others->pd = fx_pd(dev);
	others->mr = fx_mr(others->pd, fx.a.buf, 64, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	others->fast = fx_fast_mr(others->pd, 1);
	others->mkey = fx_mkey(others->pd, 1);
	others->mw = fx_mw(others->pd, RMEM_MW_TYPE_2);
	others->list = fx_page_list(dev, 1);
}

/* Refused at the post, with the QP and the handle as they were. */
static void
expect_einval(const struct rmem_send_wr *wr, const uint32_t *rkey)
{
	uint32_t before = *rkey;

	TEST_ERR(fx_post(fx.a.qp, wr), EINVAL);
	TEST_EQ(*rkey, before);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
}

static void
expect_others_refused(const struct others *others)
{
	struct rmem_mr *fast = fx_fast_mr(fx.a.pd, 1);
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	const struct rmem_mkey_entry entry = fx_entry(fx.a.mr, 0, 64);
	struct rmem_send_wr wr;

	wr = fx_mw_wr(others->mw, 0, 64, ALL);
	expect_einval(&wr, &others->mw->rkey);
	wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);
	wr.bind_mw.mr = others->mr;
	expect_einval(&wr, &fx.mw.two->rkey);
	fx_list_pages(list, fx.a.buf, 1);
	wr = fx_reg(others->fast, list, 1, 0, FX_PAGE);
	expect_einval(&wr, &others->fast->rkey);
	wr = fx_reg(fast, others->list, 1, 0, FX_PAGE);
	expect_einval(&wr, &fast->rkey);
	wr = fx_umr(others->mkey, &entry, 1, 0);
	expect_einval(&wr, &others->mkey->rkey);
	wr = fx_reg(fast, list, 1, 0, FX_PAGE);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

TEST(wr_handles, handles_of_another_device_are_refused)
{
	struct others others;

	make_others("soft1", &others);
	expect_others_refused(&others);
}

/* Its objects end where the public part does. */
TEST(wr_handles, handles_of_another_driver_are_refused)
{
	const struct rmem_driver driver = stub_driver_full("handles");
	struct others others;

	stub_register(&driver);
	stub.capa = RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_UMR;
	stub.access = FX_ACCESS | RMEM_ACCESS_MW_BIND;
	make_others("handles0", &others);
	expect_others_refused(&others);
}

/* No handle, one of a wrong type, and a flag that the opcode does not permit. */
TEST(wr_handles, handles_of_another_type_are_refused)
{
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

	wr.bind_mw.mw = NULL;
	expect_einval(&wr, &fx.mw.two->rkey);
	wr.bind_mw.mw = fx.mw.two;
	wr.bind_mw.mr = NULL;
	expect_einval(&wr, &fx.mw.two->rkey);
	wr.bind_mw.mr = (struct rmem_mr *)fx.mw.two;
	expect_einval(&wr, &fx.mw.two->rkey);
	wr.bind_mw.mr = fx.mw.mr;
	wr.flags = RMEM_SEND_INLINE;
	expect_einval(&wr, &fx.mw.two->rkey);
	wr = fx_mw_wr((struct rmem_mw *)fx.a.mr, 0, 64, ALL);
	expect_einval(&wr, &fx.a.mr->rkey);
	wr = fx_mw_wr(fx.mw.one, 0, 64, ALL);
	expect_einval(&wr, &fx.mw.one->rkey);
}

/* A binding is refused before the registration has ended, and succeeds afterwards. */
TEST(wr_handles, mr_being_registered_is_refused_or_good)
{
	uint8_t *mem = fx_mem(FX_PAGE, 1 << 20);
	struct rmem_mr_attr attr = {.addr = mem,
			.length = 1 << 20,
			.access = FX_ACCESS | RMEM_ACCESS_MW_BIND,
			.eq = fx_eq(fx.a.dev, 1)};
	struct rmem_send_wr wr;
	struct rmem_mr *mr;
	int i, status;

	for (i = 0; i < 200; i++) {
		TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
		wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);
		wr.bind_mw.mr = mr;
		wr.bind_mw.addr = fx_addr(mem);
		status = fx_send(fx.a.qp, &wr);
		TEST_ASSERT(status == RMEM_WC_SUCCESS || status == RMEM_WC_MW_BIND_ERR);
		TEST_OK(fx_event(attr.eq).status);
		wr = fx_inv(fx.mw.two->rkey);
		if (status == RMEM_WC_SUCCESS)
			TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		else
			fx_reconnect();
		TEST_OK(fx_release(mr));
	}
}

/* Earlier requests have an sg_list that no longer exists. */
static void
make_stale(struct rmem_send_wr *wr, uint16_t num_sge)
{
	wr->sg_list = (const struct rmem_sge *)(uintptr_t)8;
	wr->num_sge = num_sge;
	wr->flags = RMEM_SEND_SIGNALED;
}

/* After a message that waits for its receive, all are queued. */
TEST(wr_handles, stale_sges_are_not_read)
{
	struct rmem_mr *fast = fx_fast_mr(fx.a.pd, 1), *mkey = fx_mkey(fx.a.pd, 1);
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	const struct rmem_mkey_entry entry = fx_entry(fx.a.mr, 0, 64);
	struct rmem_send_wr wrs[5];
	unsigned int i;

	fx_list_pages(list, fx.a.buf, 1);
	wrs[0] = fx_wr(RMEM_WR_SEND, NULL, 0);
	wrs[0].flags = RMEM_SEND_SIGNALED;
	wrs[1] = fx_reg(fast, list, 1, 0, FX_PAGE);
	wrs[2] = fx_umr(mkey, &entry, 1, 0);
	wrs[3] = fx_mw_wr(fx.mw.two, 0, 64, ALL);
	wrs[4] = fx_inv(rmem_rkey_of_tag(fast->rkey, wrs[1].reg_mr.key_tag));
	for (i = 1; i < RTE_DIM(wrs); i++)
		make_stale(&wrs[i], i % 2 == 0 ? 4 : UINT16_MAX);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(fx_post_recv(fx.b.qp, 1, NULL, 0), 1);
	for (i = 0; i < RTE_DIM(wrs); i++)
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx_mr_state(fast), RMEM_MR_STATE_FREE);
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_VALID);
	TEST_OK(fx_release(fx.mw.two));
}

TEST_SUITE(wr_handles, fx_setup_mw, fx_teardown);
