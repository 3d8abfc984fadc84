/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Mapping of a driver's result of a re-registration by the class: each kind of error, and
 * deregistering and registering where the driver can do no better.
 */

#include <string.h>

#include "fixture.h"
#include "stub_driver.h"

#define SIZE 4096u
#define ALL  (RMEM_REREG_CHANGE_TRANSLATION | RMEM_REREG_CHANGE_PD | RMEM_REREG_CHANGE_ACCESS)

/* An MR of the driver, which counts on finding it zeroed when it registers. */
struct redo_mr {
	union {
		struct rmem_mr mr;
		struct rmem_mr_drv drv;
	};
	uint32_t mark;
};

static struct {
	int reg_ret;
	int dereg_ret;
	int rereg_ret;
	enum rmem_rereg_result rereg_result;
	int nested[2]; /* what calls on an MR that is being changed return */
	bool is_marked;
	unsigned int nb_reg;
	unsigned int nb_dereg;
	unsigned int nb_mr;
} redo;

static int
redo_dev_info_get(struct rmem_dev *dev, struct rmem_dev_info *info)
{
	info->nb_mr = redo.nb_mr;
	return stub_dev_info_get(dev, info);
}

static int
redo_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	struct redo_mr *redo_mr = (struct redo_mr *)mr;

	RTE_SET_USED(attr);
	redo.nb_reg++;
	redo.is_marked |= redo_mr->mark != 0 || mr->lkey != 0 || mr->rkey != 0;
	redo_mr->mark = 1;
	mr->lkey = mr->rkey = ++stub.next_key;
	if (redo.reg_ret == 0)
		redo.nb_mr++;
	return redo.reg_ret;
}

static int
redo_mr_dereg(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	redo.nb_dereg++;
	if (redo.dereg_ret == 0)
		redo.nb_mr--;
	return redo.dereg_ret;
}

static int
redo_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result)
{
	RTE_SET_USED(flags);
	redo.nested[0] = rmem_mr_rereg(mr, ALL, pd, addr, length, access, NULL);
	redo.nested[1] = rmem_mr_dereg(mr);
	*result = redo.rereg_result;
	return redo.rereg_ret;
}

static struct rmem_driver
redo_driver(const char *name)
{
	struct rmem_driver driver = stub_driver_full(name);

	driver.mr_size = sizeof(struct redo_mr);
	driver.ops.dev_info_get = redo_dev_info_get;
	driver.ops.mr_reg = redo_mr_reg;
	driver.ops.mr_dereg = redo_mr_dereg;
	return driver;
}

/* "redo" can only register again; "rereg" has the operation. */
static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_pd *new_pd;
	struct rmem_mr *mr;
	uint8_t buf[2 * SIZE];
} at;

static void
open_dev(const char *name)
{
	at.dev = fx_dev(name, NULL);
	at.pd = fx_pd(at.dev);
	at.new_pd = fx_pd(at.dev);
	at.mr = fx_mr(at.pd, at.buf, SIZE, RMEM_ACCESS_LOCAL_WRITE);
}

static void
setup(void)
{
	static struct rmem_driver drivers[2];
	static bool is_registered;
	unsigned int i;

	fx_setup_none();
	memset(&redo, 0, sizeof(redo));
	memset(&stub, 0, sizeof(stub));
	stub.access = FX_ACCESS;
	if (is_registered)
		return;
	is_registered = true;
	drivers[0] = redo_driver("redo");
	drivers[1] = redo_driver("rereg");
	drivers[1].ops.mr_rereg = redo_mr_rereg;
	for (i = 0; i < RTE_DIM(drivers); i++)
		TEST_OK(rmem_driver_register(&drivers[i]));
}

static int
change_all(enum rmem_rereg_result *result)
{
	*result = RMEM_REREG_ERR_CMD_AND_DO_FORK_NEW;
	return rmem_mr_rereg(at.mr, ALL, at.new_pd, at.buf + SIZE, SIZE - 1, FX_ACCESS, result);
}

static void
expect_old(void)
{
	TEST_ASSERT(at.mr->addr == at.buf && at.mr->pd == at.pd);
	TEST_EQ(at.mr->length, SIZE);
	TEST_EQ(at.mr->iova, fx_addr(at.buf));
	TEST_EQ(at.mr->access, RMEM_ACCESS_LOCAL_WRITE);
	TEST_EQ(fx_mr_state(at.mr), RMEM_MR_STATE_VALID);
	TEST_OK(fx_release(at.new_pd));
	TEST_ERR(rmem_pd_dealloc(at.pd), EBUSY);
}

static void
expect_new(void)
{
	TEST_ASSERT(at.mr->addr == at.buf + SIZE && at.mr->pd == at.new_pd);
	TEST_EQ(at.mr->length, SIZE - 1);
	TEST_EQ(at.mr->iova, fx_addr(at.buf + SIZE));
	TEST_EQ(at.mr->access, FX_ACCESS);
	TEST_EQ(fx_mr_state(at.mr), RMEM_MR_STATE_VALID);
	TEST_OK(fx_release(at.pd));
	TEST_ERR(rmem_pd_dealloc(at.new_pd), EBUSY);
}

/* Then the MR can only be released. */
static void
expect_neither(void)
{
	enum rmem_rereg_result result;
	struct rmem_mr *mr = NULL;

	TEST_EQ(fx_mr_state(at.mr), RMEM_MR_STATE_ERROR);
	TEST_ERR(change_all(&result), EBUSY);
	TEST_EQ(result, RMEM_REREG_ERR_CMD);
	TEST_ERR(rmem_mr_enable(at.mr), EBUSY);
	TEST_ERR(rmem_mr_reg_shared(at.mr, at.pd, 0, 0, &mr), EBUSY);
	TEST_OK(fx_release(at.mr));
	TEST_OK(fx_release(at.new_pd));
	TEST_OK(fx_release(at.pd));
	TEST_EQ(redo.nb_mr, 0);
}

TEST(rereg_driver, driver_without_the_operation_registers_again)
{
	enum rmem_rereg_result result;
	uint32_t rkey;

	open_dev("redo0");
	rkey = at.mr->rkey;
	TEST_OK(change_all(&result));
	TEST_EQ(result, RMEM_REREG_NEW_KEYS);
	TEST_ASSERT(at.mr->rkey != rkey && at.mr->lkey == at.mr->rkey);
	TEST_EQ(redo.nb_reg, 2);
	TEST_EQ(redo.nb_dereg, 1);
	TEST_ASSERT(!redo.is_marked);
	expect_new();
}

TEST(rereg_driver, failed_deregistration_keeps_the_old_mr)
{
	enum rmem_rereg_result result;

	open_dev("redo0");
	redo.dereg_ret = -EIO;
	TEST_ERR(change_all(&result), EIO);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	redo.dereg_ret = 0;
	TEST_EQ(redo.nb_reg, 1);
	expect_old();
}

/* The driver gave the MR back already and is not asked again. */
TEST(rereg_driver, failed_registration_leaves_no_mr)
{
	enum rmem_rereg_result result;

	open_dev("redo0");
	redo.reg_ret = -ENOSPC;
	TEST_ERR(change_all(&result), ENOSPC);
	TEST_EQ(result, RMEM_REREG_ERR_CMD);
	TEST_EQ(at.mr->lkey, 0);
	TEST_EQ(at.mr->rkey, 0);
	expect_neither();
	TEST_EQ(redo.nb_dereg, 1);
}

/* Both chunks are freed: as much can be allocated as before. */
TEST(rereg_driver, memory_of_a_failed_half_is_freed)
{
	enum rmem_rereg_result result;
	int i;

	open_dev("redo0");
	for (i = 0; i < 16; i++) {
		struct rmem_mr *mr;

		redo.reg_ret = 0;
		mr = fx_mr(at.pd, NULL, 32u << 20, RMEM_ACCESS_ALLOCATE_MR);
		redo.reg_ret = -EIO;
		TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, NULL, 32u << 20,
					 RMEM_ACCESS_ALLOCATE_MR, &result),
				EIO);
		TEST_EQ(result, RMEM_REREG_ERR_CMD);
		TEST_OK(fx_release(mr));
	}
}

TEST(rereg_driver, change_in_place_keeps_the_keys)
{
	enum rmem_rereg_result result;
	uint32_t rkey;

	open_dev("rereg0");
	rkey = at.mr->rkey;
	TEST_OK(change_all(&result));
	TEST_EQ(result, RMEM_REREG_OK);
	TEST_EQ(at.mr->rkey, rkey);
	TEST_EQ(redo.nb_reg, 1);
	TEST_EQ(redo.nb_dereg, 0);
	/* Of calls on it while it was being changed. */
	TEST_ERR(redo.nested[0], EBUSY);
	TEST_ERR(redo.nested[1], EBUSY);
	expect_new();
}

/* The MR after each result of a driver that fails, or that asks to register again. */
TEST(rereg_driver, result_of_a_failure_is_the_state_of_the_mr)
{
	static const struct {
		void (*expect)(void);
		enum rmem_rereg_result result;
		unsigned int nb_dereg; /* by the driver, which still has something to release */
	} rows[] = {
			{expect_old, RMEM_REREG_ERR_INPUT, 0},
			{expect_old, RMEM_REREG_ERR_DONT_FORK_NEW, 0},
			{expect_new, RMEM_REREG_ERR_DO_FORK_OLD, 0},
			{expect_neither, RMEM_REREG_ERR_CMD, 1},
			{expect_neither, RMEM_REREG_ERR_CMD_AND_DO_FORK_NEW, 1},
	};
	enum rmem_rereg_result result;
	char name[] = "rereg0";
	unsigned int i;

	redo.rereg_ret = -EOPNOTSUPP;
	redo.rereg_result = RMEM_REREG_ERR_INPUT;
	open_dev(name);
	TEST_OK(change_all(&result));
	TEST_EQ(result, RMEM_REREG_NEW_KEYS);
	expect_new();
	redo.rereg_ret = -EIO;
	for (i = 0; i < RTE_DIM(rows); i++) {
		name[5]++;
		open_dev(name);
		redo.nb_mr = 1;
		redo.nb_dereg = 0;
		redo.rereg_result = rows[i].result;
		TEST_ERR(change_all(&result), EIO);
		TEST_EQ(result, rows[i].result);
		rows[i].expect();
		TEST_EQ(redo.nb_dereg, rows[i].nb_dereg);
	}
}

TEST_SUITE(rereg_driver, setup, fx_teardown);
