/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The registry of drivers, and the work of the class for one: it fills empty slots, checks
 * capabilities, and undoes everything if an op fails. Registered drivers are permanent,
 * so they are registered once for all runs of this test.
 */

#include <string.h>

#include <rmem_pool.h>

#include "fixture.h"
#include "stub_driver.h"

/* Results of calls on a device that is being closed. */
static int closing[5];

static int
driver_dev_create(struct rmem_dev *dev, const char *args)
{
	stub.nb_calls++;
	rmem_dev_drv(dev)->priv = &stub;
	return args != NULL && strcmp(args, "fail") == 0 ? -ENOSPC : 0;
}

/* A device that is being closed accepts no new object. */
static void
driver_dev_close(struct rmem_dev *dev)
{
	const struct rmem_cq_conf conf = {.nb_cqe = 1};
	struct rmem_fast_reg_page_list *list = NULL;
	struct rmem_pd *pd = NULL;
	struct rmem_cq *cq = NULL;
	struct rmem_counter *counter = NULL;
	struct rmem_eq *eq = NULL;

	closing[0] = rmem_pd_alloc(dev, &pd);
	closing[1] = rmem_cq_create(dev, &conf, &cq);
	closing[2] = rmem_fast_reg_page_list_alloc(dev, 1, &list);
	closing[3] = rmem_eq_create(dev, &(struct rmem_eq_conf){.nb_events = 1}, &eq);
	closing[4] = rmem_counter_create(dev, NULL, &counter);
	rmem_dev_async_event(dev, RMEM_ASYNC_DEVICE_FATAL, 0);
}

/* The least that a driver can be. */
static struct rmem_driver
bare_driver(const char *name)
{
	struct rmem_driver driver = stub_driver_bare(name);

	driver.ops.dev_create = driver_dev_create;
	driver.ops.dev_close = driver_dev_close;
	return driver;
}

/* All of it, but for what can be asked of a QP and for counters. */
static struct rmem_driver
full_driver(const char *name)
{
	struct rmem_driver driver = stub_driver_full(name);

	driver.ops.dev_create = driver_dev_create;
	driver.ops.dev_close = driver_dev_close;
	return driver;
}

/* A PD can be had, and nothing in it. */
static struct rmem_driver
half_driver(const char *name)
{
	const struct rmem_driver full = full_driver(name);
	struct rmem_driver driver = bare_driver(name);

	driver.ops.pd_alloc = full.ops.pd_alloc;
	driver.ops.pd_dealloc = full.ops.pd_dealloc;
	driver.ops.cq_create = full.ops.cq_create;
	driver.ops.cq_destroy = full.ops.cq_destroy;
	return driver;
}

static void
setup(void)
{
	static struct rmem_driver drivers[3];
	static bool is_registered;
	unsigned int i;

	fx_setup_none();
	memset(&stub, 0, sizeof(stub));
	stub.capa = RMEM_DEV_CAPA_FAST_REG;
	stub.access = FX_ACCESS;
	stub.poll_ret = -EIO;
	if (is_registered)
		return;
	is_registered = true;
	drivers[0] = bare_driver("bare");
	drivers[1] = full_driver("stub");
	drivers[2] = half_driver("half");
	for (i = 0; i < RTE_DIM(drivers); i++)
		TEST_OK(rmem_driver_register(&drivers[i]));
}

TEST(driver, registered_driver_makes_devices)
{
	struct rmem_dev *dev = fx_dev("bare12", "any=thing");
	struct rmem_dev_info info;

	TEST_ASSERT(rmem_dev_drv(dev)->priv == &stub);
	TEST_EQ(stub.nb_calls, 1);
	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_EQ(strcmp(info.driver_name, "bare"), 0);
	TEST_ASSERT(rmem_dev_get_by_name("bare12") == dev);
}

/* As a library above the class refuses. */
static int
outer_call(struct rmem_dev *dev, int socket_id)
{
	RMEM_CALL(dev);

	if (rmem_socket_check(socket_id) != 0)
		return RMEM_FAIL_AS(RTE_LOGTYPE_USER1, "above", ERANGE, "socket %d", socket_id);
	return rmem_pd_dealloc((struct rmem_pd *)dev);
}

TEST(driver, log_names_the_outermost_call)
{
	struct rmem_dev *dev = fx_dev("stub0", NULL);

	FX_ERR_LOG(outer_call(dev, 4711), ERANGE,
			"rmem: outer_call: socket_id: no such NUMA socket: 4711");
	TEST_TEXT(fx_log_end(), "\nabove: outer_call: socket 4711\n");
	FX_ERR_LOG(outer_call(dev, SOCKET_ID_ANY), EINVAL, "rmem: outer_call: handle: ");
	FX_ERR_LOG(rmem_pd_dealloc((struct rmem_pd *)dev), EINVAL,
			"rmem: rmem_pd_dealloc: handle: ");
}

TEST(driver, class_keeps_the_limits_of_the_device)
{
	struct rmem_dev *dev = fx_dev("stub0", NULL);
	struct rmem_dev_info info = fx_dev_info(dev);
	struct rmem_pd *pd;
	uint32_t i;

	TEST_EQ(info.nb_pd, 0);
	for (i = 0; i < info.max_pd; i++) {
		pd = fx_pd(dev);
		TEST_ASSERT(rmem_obj_dev(&pd->obj) == dev);
	}
	TEST_ERR(rmem_pd_alloc(dev, &pd), ENOSPC);
	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_EQ(info.nb_pd, info.max_pd);
}

TEST(driver, device_refused_by_its_driver_does_not_exist)
{
	struct rmem_dev *dev = NULL;

	TEST_ERR(rmem_dev_create("stub0", "fail", &dev), ENOSPC);
	TEST_ASSERT(dev == NULL);
	TEST_ASSERT(rmem_dev_get_by_name("stub0") == NULL);
	fx_dev("stub0", NULL);
}

TEST(driver, bad_names_are_refused)
{
	static const char *const names[] = {NULL, "", "a1", "1a", "a-b", "a b", "sixteenlettersxx"};
	unsigned int i;

	TEST_ERR(rmem_driver_register(NULL), EINVAL);
	for (i = 0; i < RTE_DIM(names); i++) {
		const struct rmem_driver driver = bare_driver(names[i]);

		TEST_ERR(rmem_driver_register(&driver), EINVAL);
	}
}

static int
register_conf(const void *conf)
{
	return rmem_driver_register(conf);
}

TEST(driver, objects_smaller_than_their_public_part_are_refused)
{
	const struct rmem_driver good = bare_driver("small");
	const struct fx_bad_field rows[] = {
			FX_BAD(rmem_driver, pd_size, good.pd_size - 1, EINVAL),
			FX_BAD(rmem_driver, mr_size, good.mr_size - 1, EINVAL),
			FX_BAD(rmem_driver, page_list_size, 0, EINVAL),
			FX_BAD(rmem_driver, cq_size, good.cq_size - 1, EINVAL),
			FX_BAD(rmem_driver, qp_size, good.qp_size - 1, EINVAL),
	};

	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), register_conf);
}

static int
no_dm(struct rmem_dm *dm)
{
	RTE_SET_USED(dm);
	return 0;
}

/* All functions of device memory, or none. */
TEST(driver, incomplete_table_of_device_memory_is_refused)
{
	static const struct rmem_dm_ops ops = {
			.dm_size = sizeof(struct rmem_dm),
			.dm_alloc = NULL,
			.dm_copy_from = NULL,
			.dm_copy_to = NULL,
			.dm_export_fd = NULL,
			.dm_free = no_dm,
	};
	struct rmem_driver driver = bare_driver("nodm");

	driver.ops.dm = &ops;
	FX_ERR_LOG(rmem_driver_register(&driver), EINVAL, "device memory: lacks a function");
}

TEST(driver, driver_without_a_required_function_is_refused)
{
	const struct rmem_driver good = bare_driver("lacking");
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_driver, ops.dev_create, NULL, EINVAL),
			FX_BAD(rmem_driver, ops.dev_close, NULL, EINVAL),
			FX_BAD(rmem_driver, ops.dev_info_get, NULL, EINVAL),
			FX_BAD(rmem_driver, fp.post_send, NULL, EINVAL),
			FX_BAD(rmem_driver, fp.post_recv, NULL, EINVAL),
			FX_BAD(rmem_driver, fp.poll_cq, NULL, EINVAL),
	};

	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), register_conf);
}

static void
later_op(void)
{
}

/* Functions for calls by other processes: all, or none. */
TEST(driver, incomplete_table_of_shared_qps_is_refused)
{
	const struct rmem_qp_share_ops all = {.qp_open = (rmem_qp_open_t)later_op,
			.qp_call = (rmem_qp_call_t)later_op,
			.qp_close = (rmem_qp_close_t)later_op,
			.qp_event = (rmem_qp_event_t)later_op,
			.qp_leave = (rmem_qp_leave_t)later_op};
	struct rmem_qp_share_ops share;
	const struct rmem_xrc_ops ops = {.xrcd_size = sizeof(struct rmem_xrcd),
			.srq_num_get = (rmem_srq_num_get_t)later_op,
			.xrcd_dealloc = (rmem_xrcd_dealloc_t)later_op,
			.xrcd_alloc = (rmem_xrcd_alloc_t)later_op,
			.share = &share};
	struct rmem_driver driver = bare_driver("noshare");
	unsigned int i;

	driver.ops.xrc = &ops;
	for (i = 0; i < 5; i++) {
		share = all;
		share.qp_open = i != 0 ? share.qp_open : NULL;
		share.qp_call = i != 1 ? share.qp_call : NULL;
		share.qp_close = i != 2 ? share.qp_close : NULL;
		share.qp_event = i != 3 ? share.qp_event : NULL;
		share.qp_leave = i != 4 ? share.qp_leave : NULL;
		FX_ERR_LOG(rmem_driver_register(&driver), EINVAL, "XRC");
	}
}

TEST(driver, driver_of_another_version_is_refused)
{
	const struct rmem_driver good = bare_driver("later");
	const struct fx_bad_field rows[] = {
			FX_BAD(rmem_driver, reserved[0], 1, EINVAL),
			FX_BAD(rmem_driver, ops.reserved[0], later_op, EINVAL),
			FX_BAD(rmem_driver, fp.reserved[0], later_op, EINVAL),
	};
	struct rmem_driver driver = good;

	driver.version++;
	FX_ERR_LOG(rmem_driver_register(&driver), EINVAL,
			"wrong version of the driver interface: 4 (expected 3)");
	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), register_conf);
}

TEST(driver, known_name_is_eexist)
{
	const struct rmem_driver bare = bare_driver("bare");
	const struct rmem_driver soft = bare_driver("soft");

	TEST_ERR(rmem_driver_register(&bare), EEXIST);
	TEST_ERR(rmem_driver_register(&soft), EEXIST);
}

TEST(driver, empty_slots_are_eopnotsupp)
{
	const struct rmem_cq_conf conf = {.nb_cqe = 1};
	struct rmem_dev *dev = fx_dev("bare0", NULL);
	struct rmem_async_channel *async_channel = NULL;
	struct rmem_comp_channel *comp_channel = NULL;
	struct rmem_fast_reg_page_list *list = NULL;
	struct rmem_dev_stats stats;
	struct rmem_dm *dm = NULL;
	struct rmem_pd *pd = NULL;
	struct rmem_cq *cq = NULL;
	uint16_t pkey;

	TEST_ERR(rmem_dev_attr_get(dev, &(struct rmem_dev_attr){0}), EOPNOTSUPP);
	TEST_ERR(rmem_dev_port_query(dev, 1, &(struct rmem_port_attr){0}), EOPNOTSUPP);
	TEST_ERR(rmem_dev_gid_query(dev, 1, 0, &(struct rmem_gid_entry){.index = 0}), EOPNOTSUPP);
	TEST_ERR(rmem_dev_pkey_query(dev, 1, 0, &pkey), EOPNOTSUPP);
	TEST_ERR(rmem_dev_stats_get(dev, &stats), EOPNOTSUPP);
	TEST_ERR(rmem_dev_stats_reset(dev), EOPNOTSUPP);
	TEST_ERR(rmem_pd_alloc(dev, &pd), EOPNOTSUPP);
	TEST_ERR(rmem_dm_alloc(dev, &(struct rmem_dm_conf){.length = 1}, &dm), EOPNOTSUPP);
	TEST_ERR(rmem_cq_create(dev, &conf, &cq), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_page_list_alloc(dev, 1, &list), EOPNOTSUPP);
	TEST_ERR(rmem_comp_channel_create(dev, &comp_channel), EOPNOTSUPP);
	TEST_ERR(rmem_async_channel_create(dev, &async_channel), EOPNOTSUPP);
	TEST_ASSERT(pd == NULL && dm == NULL && cq == NULL && list == NULL &&
			comp_channel == NULL && async_channel == NULL);
	TEST_OK(fx_release(dev));
}

TEST(driver, empty_slots_below_a_pd_are_eopnotsupp)
{
	struct rmem_dev *dev = fx_dev("half0", NULL);
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_cq *cq = fx_cq(dev, 1);
	struct rmem_qp_conf conf = fx_qp_conf(cq, 1);
	struct rmem_qp *qp = NULL;
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg(pd, &stub, 8, 0, 0, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(pd, NULL, 8, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_mr_alloc(pd, 1, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mkey_alloc(pd, 1, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_null_mr_alloc(pd, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_qp_create(pd, &conf, &qp), EOPNOTSUPP);
	TEST_ASSERT(mr == NULL && qp == NULL);
	TEST_OK(fx_release(cq));
	TEST_OK(fx_release(pd));
}

TEST(driver, empty_slots_of_a_qp_are_eopnotsupp)
{
	struct rmem_dev *dev = fx_dev("stub0", NULL);
	struct rmem_qp *qp = fx_qp(fx_pd(dev), fx_cq(dev, 1), 1);
	const struct rmem_qp_conn conn = fx_conn();
	struct rmem_qp_attr attr;

	TEST_ERR(rmem_qp_connect(qp, &conn), EOPNOTSUPP);
	TEST_ERR(rmem_qp_query(qp, &attr), EOPNOTSUPP);
	TEST_ERR(rmem_qp_set_error(qp), EOPNOTSUPP);
	TEST_ERR(rmem_qp_reset(qp), EOPNOTSUPP);
}

/* Values of the class need no driver. */
TEST(driver, empty_optional_slots_are_no_error)
{
	struct rmem_dev *dev = fx_dev("stub0", NULL);
	struct rmem_mr *mr = fx_mr(fx_pd(dev), &stub, sizeof(stub), 0);
	struct rmem_mr_info info;
	FILE *null = fopen("/dev/null", "w");

	TEST_ASSERT(null != NULL);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_EQ(info.length, sizeof(stub));
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_OK(rmem_dev_dump(dev, null));
	fclose(null);
}

TEST(driver, access_that_the_device_lacks_is_eopnotsupp)
{
	const struct rmem_pool_conf conf = {
			.name = "lacking", .nb_bufs = 1, .buf_size = 1, .access = FX_ACCESS};
	struct rmem_pool *pool = NULL;
	struct rmem_mr *mr = NULL;
	struct rmem_pd *pd;

	stub.access = FX_ACCESS & ~RMEM_ACCESS_REMOTE_ATOMIC;
	pd = fx_pd(fx_dev("stub0", NULL));
	TEST_ERR(rmem_mr_reg(pd, &stub, 8, 0, FX_ACCESS, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_pool_create(pd, &conf, &pool), EOPNOTSUPP);
	TEST_ASSERT(mr == NULL && pool == NULL);
	TEST_ERR(rmem_mr_reg_shared(fx_mr(pd, &stub, 8, 0), pd, 0, 0, &mr), EOPNOTSUPP);
	/* Optional ops are omitted instead. */
	fx_mr(pd, &stub, 8, RMEM_ACCESS_RELAXED_ORDERING);
}

/* Advice and counters; implicit MRs and atomics beyond the bit alone. */
TEST(driver, on_demand_paging_that_the_device_lacks_is_eopnotsupp)
{
	const uint32_t on_demand = FX_ACCESS | RMEM_ACCESS_ON_DEMAND;
	const struct rmem_sge sge = {.addr = 1, .length = 1};
	struct rmem_pd *pd = fx_pd(fx_dev("stub0", NULL));
	struct rmem_mr_stats stats;
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_advise(pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
	TEST_ERR(rmem_mr_stats_get(fx_mr(pd, &stub, 8, 0), &stats), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(pd, &stub, 8, 0, on_demand, &mr), EOPNOTSUPP);
	stub.access = on_demand;
	pd = fx_pd(fx_dev("stub1", NULL));
	TEST_ERR(rmem_mr_reg(pd, NULL, SIZE_MAX, 0, RMEM_ACCESS_ON_DEMAND, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(pd, &stub, 8, 0, on_demand, &mr), EOPNOTSUPP);
	TEST_ASSERT(mr == NULL);
}

TEST(driver, calls_without_their_capability_are_eopnotsupp)
{
	struct rmem_mr_attr attr = {.addr = &stub, .length = 8, .flags = RMEM_MR_REQUESTED_KEY};
	struct rmem_fast_reg_page_list *list = NULL;
	struct rmem_mr *mr = NULL;
	unsigned int nb_calls;
	struct rmem_dev *dev;
	struct rmem_pd *pd;

	stub.capa = 0;
	dev = fx_dev("stub0", NULL);
	pd = fx_pd(dev);
	nb_calls = stub.nb_calls;
	TEST_ERR(rmem_mr_reg_attr(pd, &attr, &mr), EOPNOTSUPP);
	attr.flags = RMEM_MR_DISABLED;
	TEST_ERR(rmem_mr_reg_attr(pd, &attr, &mr), EOPNOTSUPP);
	TEST_EQ(stub.nb_calls, nb_calls);
	mr = fx_mr(pd, &stub, 8, 0);
	TEST_ERR(rmem_mr_bind_counter(mr, fx_counter(dev), RMEM_COUNTER_REMOTE_WRITE), EOPNOTSUPP);
	TEST_ERR(rmem_qp_attach_counter(fx_qp(pd, fx_cq(dev, 4), 4), fx_counter(dev), 1),
			EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_mr_alloc(pd, 1, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_page_list_alloc(dev, 1, &list), EOPNOTSUPP);
	TEST_ASSERT(list == NULL);
	stub.capa = RMEM_DEV_CAPA_FAST_REG;
	fx_fast_mr(fx_pd(fx_dev("stub1", NULL)), 1);
}

/* Parents count no child of a failed call: they can be released. */
TEST(driver, op_that_fails_changes_nothing)
{
	struct rmem_dev *dev = fx_dev("stub0", NULL);
	struct rmem_fast_reg_page_list *list = NULL;
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 1};
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_cq *cq = fx_cq(dev, 1);
	struct rmem_qp_conf conf = fx_qp_conf(cq, 1);
	struct rmem_pd *new_pd = NULL;
	struct rmem_cq *new_cq = NULL;
	struct rmem_qp *qp = NULL;
	struct rmem_mr *mr = NULL;

	stub.ret = -EIO;
	TEST_ERR(rmem_pd_alloc(dev, &new_pd), EIO);
	TEST_ERR(rmem_cq_create(dev, &cq_conf, &new_cq), EIO);
	TEST_ERR(rmem_mr_reg(pd, &stub, 8, 0, 0, &mr), EIO);
	TEST_ERR(rmem_mr_reg(pd, NULL, 8, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), EIO);
	TEST_ERR(rmem_fast_reg_mr_alloc(pd, 1, &mr), EIO);
	TEST_ERR(rmem_fast_reg_page_list_alloc(dev, 1, &list), EIO);
	TEST_ERR(rmem_qp_create(pd, &conf, &qp), EIO);
	TEST_ASSERT(new_pd == NULL && new_cq == NULL && mr == NULL && list == NULL && qp == NULL);
	stub.ret = 0;
	TEST_OK(fx_release(cq));
	TEST_OK(fx_release(pd));
	TEST_OK(fx_release(dev));
}

TEST(driver, release_that_fails_keeps_the_object)
{
	struct rmem_dev *dev = fx_dev("stub0", NULL);
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_mr *mr = fx_mr(pd, &stub, 8, 0);
	struct rmem_cq *cq = fx_cq(dev, 1);
	struct rmem_qp *qp = fx_qp(pd, cq, 1);
	struct rmem_fast_reg_page_list *list = fx_page_list(dev, 1);

	stub.ret = -EIO;
	TEST_ERR(rmem_mr_dereg(mr), EIO);
	TEST_ERR(rmem_qp_destroy(qp), EIO);
	TEST_ERR(rmem_fast_reg_page_list_free(list), EIO);
	stub.ret = 0;
	TEST_ERR(rmem_pd_dealloc(pd), EBUSY);
	TEST_ERR(rmem_cq_destroy(cq), EBUSY);
	TEST_OK(fx_release(qp));
	TEST_OK(fx_release(mr));
	stub.ret = -EIO;
	TEST_ERR(rmem_cq_destroy(cq), EIO);
	TEST_ERR(rmem_pd_dealloc(pd), EIO);
	stub.ret = 0;
	TEST_ERR(rmem_dev_close(dev), EBUSY);
}

TEST(driver, device_being_closed_is_enodev)
{
	struct rmem_dev *dev = fx_dev("stub0", NULL);
	unsigned int i;

	TEST_OK(fx_release(dev));
	for (i = 0; i < RTE_DIM(closing); i++)
		TEST_ERR(closing[i], ENODEV);
}

/* The functions of a number without a device, also if the device fails while it is closed. */
TEST(driver, closed_device_has_no_fast_path)
{
	const struct rmem_fp_ops *none = &rmem_fp[RMEM_MAX_DEVS - 1];
	struct rmem_dev *dev = fx_dev("stub0", NULL);
	const struct rmem_fp_ops *fp = &rmem_fp[dev->obj.dev_id];

	TEST_ASSERT(fp->poll_cq != none->poll_cq);
	TEST_OK(fx_release(dev));
	TEST_ASSERT(fp->post_send == none->post_send && fp->post_recv == none->post_recv);
	TEST_ASSERT(fp->srq_post_recv == none->srq_post_recv && fp->poll_cq == none->poll_cq);
}

TEST(driver, fast_path_is_that_of_the_driver)
{
	struct rmem_dev *dev = fx_dev("stub0", NULL);
	struct rmem_cq *cq = fx_cq(dev, 1);
	struct rmem_qp *qp = fx_qp(fx_pd(dev), cq, 1);
	const struct rmem_send_wr wrs[] = {
			fx_wr(RMEM_WR_SEND, NULL, 0), fx_wr(RMEM_WR_SEND, NULL, 0)};
	struct rmem_wc wc;

	TEST_EQ(rmem_post_send(qp, wrs, 2), 2);
	TEST_EQ(stub.nb_posted, 2);
	TEST_ERR(rmem_poll_cq(cq, &wc, 1), EIO);
}

/* Last: it fills the registry of this process. */
TEST(driver, one_driver_too_many_is_enospc)
{
	static char names[32][8];
	struct rmem_dev *dev = NULL;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < RTE_DIM(names) && ret != -ENOSPC; i++) {
		struct rmem_driver driver;

		snprintf(names[i], sizeof(names[i]), "fill%c%c", 'a' + i / 16, 'a' + i % 16);
		driver = bare_driver(names[i]);
		ret = rmem_driver_register(&driver);
		TEST_ASSERT(ret == 0 || ret == -ENOSPC || ret == -EEXIST);
	}
	TEST_ERR(ret, ENOSPC);
	TEST_ERR(rmem_dev_create("filla0", NULL, &dev), ENODEV);
	fx_dev("fillaa0", NULL);
}

TEST_SUITE(driver, setup, fx_teardown);
