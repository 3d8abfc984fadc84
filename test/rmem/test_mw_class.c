/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory windows in the class, for any driver: handles, capabilities, and the rules
 * of a binding. The driver is a stub, registered once for all runs of this test.
 */

#include <string.h>

#include "fixture.h"
#include "stub_driver.h"

#define CAPA_MW (RMEM_DEV_CAPA_MW_TYPE_1 | RMEM_DEV_CAPA_MW_TYPE_2B)
#define IOVA    UINT64_C(0x10000)
#define LENGTH  UINT64_C(0x1000)

/* The number of bindings, and the last one. */
static struct {
	unsigned int nb;
	struct rmem_mw_bind last;
} binds;

/* Objects of most cases. */
static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
	struct rmem_mw *mw;
	uint8_t mem[LENGTH];
} obj;

static int
mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	RTE_SET_USED(qp);
	binds.nb++;
	binds.last = *bind;
	if (stub.ret == 0)
		mw->rkey++;
	return stub.ret;
}

static struct rmem_driver
mw_driver(const char *name)
{
	struct rmem_driver driver = stub_driver_full(name);

	driver.ops.mw_bind = mw_bind;
	return driver;
}

static void
setup(void)
{
	static struct rmem_driver drivers[2];
	static bool is_registered;
	unsigned int i;

	fx_setup_none();
	memset(&stub, 0, sizeof(stub));
	memset(&binds, 0, sizeof(binds));
	stub.capa = CAPA_MW;
	stub.access = FX_ACCESS | RMEM_ACCESS_MW_BIND;
	if (!is_registered) {
		is_registered = true;
		drivers[0] = mw_driver("mwstub");
		drivers[1] = mw_driver("mwless");
		drivers[1].ops.mw_alloc = NULL;
		drivers[1].ops.mw_bind = NULL;
		drivers[1].mw_size = 0;
		for (i = 0; i < RTE_DIM(drivers); i++)
			TEST_OK(rmem_driver_register(&drivers[i]));
	}
	obj.dev = fx_dev("mwstub0", NULL);
	obj.pd = fx_pd(obj.dev);
	obj.qp = fx_qp(obj.pd, fx_cq(obj.dev, 1), 1);
	TEST_OK(rmem_mr_reg(
			obj.pd, obj.mem, LENGTH, IOVA, FX_ACCESS | RMEM_ACCESS_MW_BIND, &obj.mr));
	fx_track(obj.mr);
	obj.mw = fx_mw(obj.pd, RMEM_MW_TYPE_1);
}

/* A binding of all of the MR that is right. */
static struct rmem_mw_bind
good_bind(void)
{
	struct rmem_mw_bind bind = {.wr_id = 5, .flags = RMEM_SEND_SIGNALED};

	bind.bind_info.mr = obj.mr;
	bind.bind_info.addr = IOVA;
	bind.bind_info.length = LENGTH;
	bind.bind_info.access = RMEM_ACCESS_REMOTE;
	return bind;
}

TEST(mw_class, driver_with_windows_has_their_size)
{
	struct rmem_driver driver = mw_driver("mwsmall");

	driver.mw_size--;
	TEST_ERR(rmem_driver_register(&driver), EINVAL);
}

TEST(mw_class, windows_without_the_op_are_eopnotsupp)
{
	struct rmem_pd *pd = fx_pd(fx_dev("mwless0", NULL));
	struct rmem_mw *mw = NULL;

	TEST_ERR(rmem_mw_alloc(pd, RMEM_MW_TYPE_1, &mw), EOPNOTSUPP);
	TEST_ASSERT(mw == NULL);
	TEST_OK(fx_release(pd));
}

TEST(mw_class, windows_without_the_capability_are_eopnotsupp)
{
	struct rmem_mw *mw = NULL;
	struct rmem_pd *pd;

	stub.capa = RMEM_DEV_CAPA_MW_TYPE_1;
	pd = fx_pd(fx_dev("mwstub1", NULL));
	TEST_ERR(rmem_mw_alloc(pd, RMEM_MW_TYPE_2, &mw), EOPNOTSUPP);
	fx_mw(pd, RMEM_MW_TYPE_1);
	stub.capa = RMEM_DEV_CAPA_MW_TYPE_2B;
	pd = fx_pd(fx_dev("mwstub2", NULL));
	TEST_ERR(rmem_mw_alloc(pd, RMEM_MW_TYPE_1, &mw), EOPNOTSUPP);
	fx_mw(pd, RMEM_MW_TYPE_2);
	TEST_ASSERT(mw == NULL);
}

TEST(mw_class, unknown_types_are_refused)
{
	struct rmem_mw *mw = NULL;

	TEST_ERR(rmem_mw_alloc(obj.pd, (enum rmem_mw_type)0, &mw), EINVAL);
	TEST_ERR(rmem_mw_alloc(obj.pd, (enum rmem_mw_type)3, &mw), EINVAL);
	TEST_ASSERT(mw == NULL);
}

TEST(mw_class, op_that_fails_changes_nothing)
{
	struct rmem_mw *mw = NULL;

	stub.ret = -EIO;
	TEST_ERR(rmem_mw_alloc(obj.pd, RMEM_MW_TYPE_1, &mw), EIO);
	TEST_ERR(rmem_mw_dealloc(obj.mw), EIO);
	stub.ret = 0;
	TEST_ASSERT(mw == NULL);
	TEST_EQ(obj.mw->obj.type, RMEM_OBJ_MW);
	TEST_OK(fx_release(obj.mw));
}

/* A binding reaches the driver as it is; one that the driver refuses keeps the key. */
TEST(mw_class, bind_reaches_the_driver_unchanged)
{
	const struct rmem_mw_bind bind = good_bind();
	uint32_t rkey = obj.mw->rkey;

	TEST_OK(rmem_mw_bind(obj.qp, obj.mw, &bind));
	TEST_EQ(obj.mw->rkey, rkey + 1);
	TEST_EQ(memcmp(&binds.last, &bind, sizeof(bind)), 0);
	stub.ret = -ENOSPC;
	TEST_ERR(rmem_mw_bind(obj.qp, obj.mw, &bind), ENOSPC);
	TEST_EQ(obj.mw->rkey, rkey + 1);
	stub.ret = 0;
}

TEST(mw_class, bad_bind_handles_are_refused)
{
	struct rmem_mw_bind bind = good_bind();

	TEST_ERR(rmem_mw_bind(NULL, obj.mw, &bind), EINVAL);
	TEST_ERR(rmem_mw_bind((struct rmem_qp *)obj.mr, obj.mw, &bind), EINVAL);
	TEST_ERR(rmem_mw_bind(obj.qp, NULL, &bind), EINVAL);
	TEST_ERR(rmem_mw_bind(obj.qp, (struct rmem_mw *)obj.mr, &bind), EINVAL);
	TEST_ERR(rmem_mw_bind(obj.qp, obj.mw, NULL), EINVAL);
	bind.bind_info.mr = NULL;
	TEST_ERR(rmem_mw_bind(obj.qp, obj.mw, &bind), EINVAL);
	bind.bind_info.mr = (struct rmem_mr *)obj.mw;
	TEST_ERR(rmem_mw_bind(obj.qp, obj.mw, &bind), EINVAL);
	TEST_EQ(binds.nb, 0);
}

/* It has no keys, or they are not valid: there is nothing to lend to a window. */
TEST(mw_class, mr_that_is_not_valid_is_ebusy)
{
	static const uint16_t states[] = {
			RMEM_MR_STATE_PENDING, RMEM_MR_STATE_ERROR, RMEM_MR_STATE_DISABLED};
	const struct rmem_mw_bind bind = good_bind();
	unsigned int i;

	for (i = 0; i < RTE_DIM(states); i++) {
		__atomic_store_n(&rmem_mr_drv(obj.mr)->state, states[i], __ATOMIC_RELEASE);
		TEST_ERR(rmem_mw_bind(obj.qp, obj.mw, &bind), EBUSY);
		TEST_ERR(rmem_mw_check_bind(obj.qp, obj.mw, &bind.bind_info), EBUSY);
	}
	TEST_EQ(binds.nb, 0);
	__atomic_store_n(&rmem_mr_drv(obj.mr)->state, RMEM_MR_STATE_VALID, __ATOMIC_RELEASE);
	TEST_OK(rmem_mw_bind(obj.qp, obj.mw, &bind));
}

TEST(mw_class, unknown_flags_and_reserved_fields_are_refused)
{
	struct rmem_mw_bind bind = good_bind();

	bind.flags = RMEM_SEND_INLINE;
	TEST_ERR(rmem_mw_bind(obj.qp, obj.mw, &bind), EINVAL);
	bind = good_bind();
	bind.reserved = 1;
	TEST_ERR(rmem_mw_bind(obj.qp, obj.mw, &bind), EINVAL);
	bind = good_bind();
	bind.bind_info.reserved = 1;
	TEST_ERR(rmem_mw_bind(obj.qp, obj.mw, &bind), EINVAL);
	TEST_EQ(binds.nb, 0);
}

/* ibv_bind_mw(3): type 2 windows are bound by a posted request. */
TEST(mw_class, call_does_not_bind_type_2)
{
	struct rmem_mw *mw = fx_mw(obj.pd, RMEM_MW_TYPE_2);
	const struct rmem_mw_bind bind = good_bind();

	TEST_ERR(rmem_mw_bind(obj.qp, mw, &bind), EINVAL);
	TEST_EQ(binds.nb, 0);
}

TEST(mw_class, length_0_unbinds_without_an_mr)
{
	struct rmem_mw_bind bind = {.wr_id = 1};
	struct rmem_mw *other = fx_mw(fx_pd(obj.dev), RMEM_MW_TYPE_1);

	TEST_OK(rmem_mw_bind(obj.qp, obj.mw, &bind));
	TEST_ERR(rmem_mw_bind(obj.qp, other, &bind), EPERM);
	TEST_EQ(binds.nb, 1);
}

TEST(mw_class, access_beyond_that_of_a_peer_is_refused)
{
	struct rmem_mw *mw = fx_mw(obj.pd, RMEM_MW_TYPE_2);
	struct rmem_mw_bind_info info = good_bind().bind_info;

	info.access = RMEM_ACCESS_LOCAL_WRITE;
	TEST_ERR(rmem_mw_check_bind(obj.qp, obj.mw, &info), EINVAL);
	info.access = RMEM_ACCESS_MW_BIND;
	TEST_ERR(rmem_mw_check_bind(obj.qp, mw, &info), EINVAL);
	/* IBTA o10-36.2.2: of type 2 only. */
	info.access = RMEM_ACCESS_ZERO_BASED;
	TEST_ERR(rmem_mw_check_bind(obj.qp, obj.mw, &info), EINVAL);
	TEST_OK(rmem_mw_check_bind(obj.qp, mw, &info));
	info.access = 0;
	TEST_OK(rmem_mw_check_bind(obj.qp, obj.mw, &info));
}

/* IBTA C10-75, and that no sum wraps. */
TEST(mw_class, range_outside_the_mr_is_refused)
{
	static const struct {
		uint64_t addr;
		uint64_t length;
		int ret;
	} rows[] = {
			{IOVA, LENGTH, 0},
			{IOVA + LENGTH - 1, 1, 0},
			{IOVA, 0, -EINVAL},
			{IOVA, LENGTH + 1, -EINVAL},
			{IOVA - 1, 2, -EINVAL},
			{IOVA + LENGTH, 1, -EINVAL},
			{IOVA + LENGTH - 1, 2, -EINVAL},
			{IOVA + 1, UINT64_MAX, -EINVAL},
			{IOVA + 1, UINT64_MAX - IOVA, -EINVAL},
			{0, UINT64_MAX, -EINVAL},
			{UINT64_MAX, IOVA + 2, -EINVAL},
			{UINT64_MAX - 1, 1, -EINVAL},
	};
	struct rmem_mw_bind_info info = good_bind().bind_info;
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		info.addr = rows[i].addr;
		info.length = rows[i].length;
		TEST_EQ(rmem_mw_check_bind(obj.qp, obj.mw, &info), rows[i].ret);
	}
}

/* No windows over those bound by requests, which would outlive them, or without memory. */
TEST(mw_class, only_registered_mrs_can_be_bound_to)
{
	struct rmem_mr_drv other = *rmem_mr_drv(obj.mr);
	struct rmem_mw_bind_info info = good_bind().bind_info;

	info.mr = &other.mr;
	TEST_OK(rmem_mw_check_bind(obj.qp, obj.mw, &info));
	for (other.mr.type++; other.mr.type <= RMEM_MR_TYPE_DM; other.mr.type++)
		TEST_ERR(rmem_mw_check_bind(obj.qp, obj.mw, &info), EINVAL);
}

TEST_SUITE(mw_class, setup, fx_teardown);
