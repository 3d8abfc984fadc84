/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* MRs are changed by ibv_rereg_mr() if the provider supports it, and its result is returned. */

#include "setup.h"

#define FLAGS    (RMEM_REREG_CHANGE_TRANSLATION | RMEM_REREG_CHANGE_PD | RMEM_REREG_CHANGE_ACCESS)
#define REMOTE_W RMEM_ACCESS_REMOTE_WRITE
#define LOCAL_W  RMEM_ACCESS_LOCAL_WRITE

static struct rmem_mr *mr; /* of the second half */

static void
vt_setup_rereg(void)
{
	vt_setup();
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf + VT_HALF, 64, 0, LOCAL_W | REMOTE_W, &mr));
}

static void
vt_teardown_rereg(void)
{
	TEST_OK(rmem_mr_dereg(mr));
	mr = NULL;
	vt_teardown();
}

/* The status of a WRITE to that place of the buffer. */
static int
vt_write_at(uint32_t offset, uint32_t rkey)
{
	int status = vt_write(vt.a, (uintptr_t)vt.buf + offset, 8, rkey);

	if (status != RMEM_WC_SUCCESS)
		vt_reconnect();
	return status;
}

/* Changes that the provider doesn't support are two calls. */
static void
vt_has_new_keys(uint32_t flags)
{
	enum rmem_rereg_result result;
	uint32_t rkey = mr->rkey;

	TEST_OK(rmem_mr_rereg(
			mr, flags, vt.pd, vt.buf + VT_HALF + 64, 64, LOCAL_W | REMOTE_W, &result));
	TEST_EQ(result, RMEM_REREG_NEW_KEYS);
	TEST_ASSERT(mr->rkey != rkey);
	TEST_STATUS(vt_write_at(VT_HALF + 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_write_at(VT_HALF + 64, rkey), RMEM_WC_REM_ACCESS_ERR);
}

/* According to the probe, or to its errno. */
TEST(verbs_rereg, rereg_without_the_provider_changes_the_keys)
{
	struct rmem_dev_info info;

	fake.rereg_flags = 0;
	vt_has_new_keys(FLAGS);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_OK(vt_close());
	TEST_OK(vt_open());
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, 64, 0, LOCAL_W | REMOTE_W, &mr));
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.capa & RMEM_DEV_CAPA_REREG, 0);
	vt_has_new_keys(FLAGS);
}

TEST(verbs_rereg, supported_rereg_flags_are_passed_to_the_provider)
{
	enum rmem_rereg_result result;
	struct rmem_dev_info info;

	TEST_OK(rmem_mr_dereg(mr));
	TEST_OK(vt_close());
	fake.rereg_flags = IBV_REREG_MR_CHANGE_ACCESS;
	TEST_OK(vt_open());
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, 64, 0, LOCAL_W, &mr));
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.capa & RMEM_DEV_CAPA_REREG, 0);
	TEST_OK(rmem_mr_rereg(
			mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, LOCAL_W | REMOTE_W, &result));
	TEST_EQ(result, RMEM_REREG_OK);
	vt_has_new_keys(FLAGS);
}

TEST(verbs_rereg, new_keys_of_the_provider_are_reported)
{
	struct rmem_dev_info info;

	fake.has_new_keys = true;
	vt_has_new_keys(FLAGS);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_OK(vt_close());
	TEST_OK(vt_open());
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, 64, 0, LOCAL_W | REMOTE_W, &mr));
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.capa & RMEM_DEV_CAPA_REREG, 0);
}

/* Each result of libibverbs, with an errno; which MR is valid then. */
TEST(verbs_rereg, each_failure_of_ibv_rereg_mr_is_reported)
{
	static const struct {
		int verbs;
		enum rmem_rereg_result result;
		bool is_old;
		bool is_new;
	} rows[] = {
			{IBV_REREG_MR_ERR_INPUT, RMEM_REREG_ERR_INPUT, true, false},
			{IBV_REREG_MR_ERR_DONT_FORK_NEW, RMEM_REREG_ERR_DONT_FORK_NEW, true, false},
			{IBV_REREG_MR_ERR_DO_FORK_OLD, RMEM_REREG_ERR_DO_FORK_OLD, false, true},
			{IBV_REREG_MR_ERR_CMD, RMEM_REREG_ERR_CMD, false, false},
			{IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW, RMEM_REREG_ERR_CMD_AND_DO_FORK_NEW,
					false, false},
			{-77, RMEM_REREG_ERR_CMD, false, false},
	};
	enum rmem_rereg_result result;
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		uint32_t rkey = mr->rkey;

		fake.rereg_result = rows[i].verbs;
		fake.fail_errno = EPERM;
		TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL,
					 vt.buf + VT_HALF + 64, 64, 0, &result),
				EIO);
		fake.rereg_result = 0;
		TEST_EQ(result, rows[i].result);
		TEST_STATUS(vt_write_at(VT_HALF, rkey),
				rows[i].is_old ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR);
		TEST_STATUS(vt_write_at(VT_HALF + 64, rkey),
				rows[i].is_new ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR);
		TEST_OK(rmem_mr_dereg(mr));
		TEST_OK(rmem_mr_reg(vt.pd, vt.buf + VT_HALF, 64, 0, LOCAL_W | REMOTE_W, &mr));
	}
}

TEST(verbs_rereg, command_without_errno_is_eio)
{
	enum rmem_rereg_result result;

	fake.rereg_result = IBV_REREG_MR_ERR_CMD;
	fake.fail_errno = 0;
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, LOCAL_W, &result), EIO);
	TEST_EQ(result, RMEM_REREG_ERR_CMD);
}

TEST_SUITE(verbs_rereg, vt_setup_rereg, vt_teardown_rereg);
