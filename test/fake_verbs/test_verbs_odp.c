/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand MRs are offered if the probe is correct, and advice is checked before it is passed on.
 */

#include <string.h>
#include <sys/mman.h>

#include "setup.h"

#define ODP                                                                                        \
	(RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ |            \
			RMEM_ACCESS_ON_DEMAND)
#define RC (RMEM_ODP_SEND | RMEM_ODP_RECV | RMEM_ODP_WRITE | RMEM_ODP_READ)

static struct rmem_mr *mr; /* of the buffer, on demand */

static void
vt_setup_odp(void)
{
	vt_setup();
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0, ODP, &mr));
}

static void
vt_teardown_odp(void)
{
	fake.fail_name = NULL;
	TEST_OK(rmem_mr_dereg(mr));
	mr = NULL;
	vt_teardown();
}

/* Create the device again, with the present fake. */
static void
vt_reopen(struct rmem_dev_info *info)
{
	TEST_OK(rmem_mr_dereg(mr));
	mr = NULL;
	TEST_OK(vt_close());
	TEST_OK(vt_open());
	TEST_OK(rmem_dev_info_get(vt.dev, info));
}

static void
vt_has_none(void)
{
	const struct rmem_odp_caps none = {0};
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_dev_info info;

	vt_reopen(&info);
	TEST_MEM(&info.odp, &none, sizeof(none));
	TEST_EQ(info.access & RMEM_ACCESS_ON_DEMAND, 0);
	/* A failed probe does not affect other capabilities. */
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_MW_TYPE_2B) != 0);
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_SEND_WITH_INV) != 0);
	TEST_ERR(rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0, ODP, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(vt.pd, NULL, SIZE_MAX, 0, ODP, &mr), EOPNOTSUPP);
	sge.lkey = vt.mr->lkey;
	TEST_ERR(rmem_mr_advise(vt.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
}

TEST(verbs_odp, odp_capabilities_are_probed)
{
	struct rmem_dev_info info;

	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.odp.general, RMEM_ODP_SUPPORT | RMEM_ODP_SUPPORT_IMPLICIT);
	TEST_EQ(info.odp.rc, RC | RMEM_ODP_ATOMIC); /* there is no SRQ */
	TEST_EQ(info.odp.uc, 0);
	TEST_EQ(info.odp.ud, 0); /* nor such QPs */
	fake.odp_rc = RMEM_ODP_WRITE | RMEM_ODP_READ;
	fake.odp_general = IBV_ODP_SUPPORT;
	vt_reopen(&info);
	TEST_EQ(info.odp.general, RMEM_ODP_SUPPORT);
	TEST_EQ(info.odp.rc, RMEM_ODP_WRITE | RMEM_ODP_READ);
	TEST_ERR(rmem_mr_reg(vt.pd, vt.buf, 8, 0, ODP | RMEM_ACCESS_REMOTE_ATOMIC, &mr),
			EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(vt.pd, NULL, SIZE_MAX, 0, ODP, &mr), EOPNOTSUPP);
}

TEST(verbs_odp, odp_that_misplaces_data_is_not_reported)
{
	fake.is_odp_misplaced = true;
	vt_has_none();
}

TEST(verbs_odp, odp_that_fails_is_not_reported)
{
	fake.is_odp_refused = true;
	vt_has_none();
}

TEST(verbs_odp, odp_without_its_device_bits_is_not_reported)
{
	fake.odp_general = 0;
	vt_has_none();
	fake.odp_general = IBV_ODP_SUPPORT;
	fake.odp_rc = RC & ~RMEM_ODP_READ;
	vt_has_none();
}

TEST(verbs_odp, atomics_on_demand_need_atomics)
{
	struct rmem_dev_info info;

	fake.is_atomic_bad = true;
	vt_reopen(&info);
	TEST_EQ(info.odp.rc, RC);
	TEST_ASSERT((info.access & RMEM_ACCESS_ON_DEMAND) != 0);
	fake.is_atomic_bad = false;
	fake.is_odp_atomic_bad = true;
	vt_reopen(&info);
	TEST_EQ(info.odp.general, RMEM_ODP_SUPPORT | RMEM_ODP_SUPPORT_IMPLICIT);
	TEST_EQ(info.odp.rc, RC);
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_ATOMIC) != 0);
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_SEND_WITH_INV) != 0); /* tried after it */
	TEST_ERR(rmem_mr_reg(vt.pd, vt.buf, 8, 0, ODP | RMEM_ACCESS_REMOTE_ATOMIC, &mr),
			EOPNOTSUPP);
}

TEST(verbs_odp, implicit_odp_that_fails_is_not_reported)
{
	struct rmem_dev_info info;

	fake.is_implicit_refused = true;
	vt_reopen(&info);
	TEST_EQ(info.odp.general, RMEM_ODP_SUPPORT);
	fake.is_implicit_refused = false;
	fake.is_implicit_bad = true;
	vt_reopen(&info);
	TEST_EQ(info.odp.general, RMEM_ODP_SUPPORT);
	TEST_EQ(info.odp.rc, RC | RMEM_ODP_ATOMIC);
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_SEND_WITH_INV) != 0);
	TEST_ERR(rmem_mr_reg(vt.pd, NULL, SIZE_MAX, 0, ODP, &mr), EOPNOTSUPP);
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0, ODP, &mr));
}

TEST(verbs_odp, mrs_on_demand_are_registered)
{
	struct rmem_mr_stats stats;
	struct rmem_mr_info info;
	struct rmem_mr *other;

	memcpy(vt.buf, "on demand", 8);
	TEST_STATUS(vt_write(vt.a, (uintptr_t)vt.buf + VT_HALF + 3, 8, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(vt.buf + VT_HALF + 3, vt.buf, 8);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_EQ(info.is_pinned, 0);
	TEST_EQ(info.access, ODP);
	TEST_ERR(rmem_mr_stats_get(mr, &stats), EOPNOTSUPP);
	TEST_OK(rmem_mr_reg(vt.pd, NULL, SIZE_MAX, 0, ODP, &other));
	TEST_ASSERT((fake.access & IBV_ACCESS_ON_DEMAND) != 0);
	TEST_STATUS(vt_write(vt.a, (uintptr_t)vt.buf + VT_HALF + 77, 8, other->rkey),
			RMEM_WC_SUCCESS);
	TEST_MEM(vt.buf + VT_HALF + 77, vt.buf, 8);
	TEST_OK(rmem_mr_dereg(other));
	/* Requests that crash rdma_rxe. */
	TEST_ERR(rmem_mr_reg(vt.pd, vt.buf, 4096, 1 << 20, ODP, &other), EOPNOTSUPP);
}

/* No page need be there, so that is not what is missing. */
TEST(verbs_odp, no_memory_is_reported)
{
	struct rmem_mr *other;
	uint8_t *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT(page != MAP_FAILED);
	TEST_ASSERT(munmap(page, 4096) == 0);
	TEST_OK(rmem_mr_reg(vt.pd, page, 4096, 0, ODP, &other));
	TEST_OK(rmem_mr_dereg(other));
	vt_fail("reg_mr", ENOMEM);
	TEST_ERR(rmem_mr_reg(vt.pd, page, 4096, 0, ODP, &other), ENOMEM);
}

/* Advice passed to the device; 0 SGEs if none. */
static int
vt_advise(int advice, uint32_t flags, const struct rmem_sge *sge, uint32_t nb)
{
	fake.nb_advice = 0;
	return rmem_mr_advise(vt.pd, advice, flags, sge, nb);
}

TEST(verbs_odp, advice_reaches_the_device)
{
	struct rmem_sge sge[2] = {vt_sge(0, VT_BUF), vt_sge(VT_BUF, 0)};
	int advice;

	sge[0].lkey = sge[1].lkey = mr->lkey;
	for (advice = RMEM_ADVISE_PREFETCH; advice <= RMEM_ADVISE_PREFETCH_NO_FAULT; advice++) {
		TEST_OK(vt_advise(advice, RMEM_ADVISE_FLUSH, sge, 2));
		TEST_EQ(fake.nb_advice, 2);
		TEST_EQ(fake.advice, advice);
		TEST_EQ(fake.advice_flags, IBV_ADVISE_MR_FLAG_FLUSH);
		TEST_OK(vt_advise(advice, 0, sge, 1));
		TEST_EQ(fake.advice_flags, 0);
	}
}

/* rdma_rxe crashes of some of these: the teardown looks whether the fake saw any. */
TEST(verbs_odp, bad_advice_does_not_reach_the_device)
{
	struct rmem_sge sge[2] = {vt_sge(0, 64), vt_sge(0, 64)};
	struct rmem_mr *readable, *foreign;
	struct rmem_pd *pd;

	TEST_OK(rmem_pd_alloc(vt.dev, &pd));
	TEST_OK(rmem_mr_reg(pd, vt.buf, 64, 0, ODP, &foreign));
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, 64, 0, RMEM_ACCESS_ON_DEMAND, &readable));
	sge[0].lkey = mr->lkey;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, sge, 2), EINVAL); /* the second is pinned */
	sge[1].lkey = mr->lkey ^ 1;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, sge, 2), ENOENT);
	sge[1].lkey = foreign->lkey;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, sge, 2), EPERM);
	sge[1].lkey = readable->lkey;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH_WRITE, 0, sge, 2), EPERM);
	sge[1].addr++;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, sge, 2), EFAULT);
	sge[1].addr -= 2;
	sge[1].length = 1;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, sge, 2), EFAULT);
	TEST_EQ(fake.nb_advice, 0);
	TEST_OK(rmem_mr_dereg(readable));
	sge[1].addr = (uintptr_t)vt.buf;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, sge, 2), ENOENT); /* its key is released */
	TEST_OK(rmem_mr_dereg(foreign));
	TEST_OK(rmem_pd_dealloc(pd));
}

/* As older providers return them. */
TEST(verbs_odp, errnos_of_advice_are_mapped)
{
	static const struct {
		int result;
		int err;
		int folded;
	} rows[] = {{-1, EFAULT, EFAULT}, {-ENOENT, 0, ENOENT}};
	struct rmem_sge sge = vt_sge(0, 64);
	struct rmem_dev_info info;
	unsigned int i;

	sge.lkey = mr->lkey;
	for (i = 0; i < RTE_DIM(rows); i++) {
		fake.advise_result = rows[i].result;
		fake.fail_errno = rows[i].err;
		TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, &sge, 1), rows[i].folded);
	}
	VT_FAILS("advise_mr", EBUSY, vt_advise(RMEM_ADVISE_PREFETCH, 0, &sge, 1), EIO);
	fake.has_no_advice = true; /* a provider without it */
	vt_reopen(&info);
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0, ODP, &mr));
	sge = vt_sge(0, 64);
	sge.lkey = mr->lkey;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
}

/* To on demand and back, by a registration: advice depends on the present MR. */
TEST(verbs_odp, advice_checks_a_reregistered_mr)
{
	enum rmem_rereg_result result;
	struct rmem_sge sge = vt_sge(0, 64);

	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0,
			ODP & ~RMEM_ACCESS_ON_DEMAND, &result));
	TEST_EQ(result, RMEM_REREG_NEW_KEYS);
	sge.lkey = mr->lkey;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, &sge, 1), EINVAL);
	fake.has_new_keys = true; /* of ibv_rereg_mr() */
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, vt.buf, 128, 0, &result));
	TEST_ASSERT(mr->lkey != sge.lkey);
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, &sge, 1), ENOENT);
	sge.lkey = mr->lkey;
	TEST_ERR(vt_advise(RMEM_ADVISE_PREFETCH, 0, &sge, 1), EINVAL);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, ODP, &result));
	TEST_EQ(result, RMEM_REREG_NEW_KEYS);
	sge.lkey = mr->lkey;
	TEST_OK(vt_advise(RMEM_ADVISE_PREFETCH, 0, &sge, 1));
	/* An MR that the device does not release is unchanged. */
	VT_FAILS("dereg_mr", EBUSY, rmem_mr_dereg(mr), EBUSY);
	TEST_OK(vt_advise(RMEM_ADVISE_PREFETCH, 0, &sge, 1));
}

TEST_SUITE(verbs_odp, vt_setup_odp, vt_teardown_odp);
