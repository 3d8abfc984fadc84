/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* REG_MR and UMR of a verbs device are offered if libmlx5 is there and the probe succeeds. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "../../drivers/verbs/rverbs_mlx5.h"
#include "fake_mlx5.h"
#include "setup.h"

#define CAPA (RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_UMR | RMEM_DEV_CAPA_REG_ZERO_BASED)

static void
vp_setup(void)
{
	vt_setup_fake();
	fake_mlx5_reset();
}

/* The properties of a device with these arguments; its creation succeeds, and leaves nothing. */
static void
vp_info(const char *args, struct rmem_dev_info *info)
{
	struct rmem_dev *dev;

	TEST_OK(rmem_dev_create("verbs0", args, &dev));
	TEST_OK(rmem_dev_info_get(dev, info));
	TEST_OK(rmem_dev_close(dev));
	TEST_EQ(fake.nb_live, 0);
}

/* None of it is offered, and the rest is. */
static void
vp_is_off(const char *args)
{
	struct rmem_dev_info info;

	vp_info(args, &info);
	TEST_EQ(info.capa & CAPA, 0);
	TEST_EQ(info.max_mkey_entries, 0);
	TEST_EQ(info.max_page_list_len, 0);
	TEST_EQ(info.page_size_cap, 0);
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_ATOMIC) != 0);
}

/* So too, with that reason in the log. */
static void
vp_is_refused(const char *why)
{
	char line[128];
	int ret;

	snprintf(line, sizeof(line), "fake0: REG_MR and UMR are not offered: does not work: %s\n",
			why);
	vt_log_begin();
	ret = TEST_TRY(vp_is_off("ibdev=fake0"));
	TEST_TEXT(vt_log_end(), line);
	TEST_RUN(ret);
}

TEST(verbs_mlx5_probe, correct_device_offers_all)
{
	struct rmem_dev_info info;

	vp_info("ibdev=fake0", &info);
	TEST_EQ(info.capa & CAPA, CAPA);
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_LOCAL_INV) != 0);
	TEST_EQ(info.max_mkey_entries, 16);
	TEST_EQ(info.max_page_list_len, 16);
	TEST_EQ(info.max_mkey_depth, 1);
	TEST_EQ(info.page_size_cap, RVERBS_PAGE_SIZE_CAP);
	TEST_EQ(fake_mlx5.nb_opens, 1);
	TEST_EQ(fake_mlx5.open_flags, RTLD_LAZY | RTLD_NOLOAD);
}

/* As mlx5dv_create_qp(3) and mlx5dv_create_mkey(3) require. */
TEST(verbs_mlx5_probe, objects_are_created_with_the_required_attributes)
{
	struct rmem_dev_info info;

	vp_info("ibdev=fake0,mkey_entries=8", &info);
	TEST_EQ(fake_mlx5.qp_attr.comp_mask,
			MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
					MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS);
	TEST_EQ(fake_mlx5.qp_attr.create_flags, MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE);
	TEST_EQ(fake_mlx5.qp_attr.send_ops_flags, MLX5DV_QP_EX_WITH_MKEY_CONFIGURE);
	TEST_EQ(fake_mlx5.qp_max_inline, 9 * 16 - 4);
	TEST_EQ(fake_mlx5.mkey_attr.create_flags,
			MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
					MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG |
					MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE);
	TEST_EQ(fake_mlx5.mkey_attr.max_entries, 9);
}

TEST(verbs_mlx5_probe, number_of_entries_is_halved_until_the_device_takes_it)
{
	struct rmem_dev_info info;

	vp_info("ibdev=fake0,mkey_entries=63", &info);
	TEST_EQ(info.max_mkey_entries, 63);
	fake.max_inline = 256;
	vp_info("ibdev=fake0,mkey_entries=63", &info);
	TEST_EQ(info.max_mkey_entries, 15);
	vp_info("ibdev=fake0,mkey_entries=1", &info);
	TEST_EQ(info.max_mkey_entries, 1);
}

TEST(verbs_mlx5_probe, argument_is_checked)
{
	struct rmem_dev *dev;

	TEST_ERR(rmem_dev_create("verbs0", "ibdev=fake0,mkey_entries=64", &dev), EINVAL);
	TEST_ERR(rmem_dev_create("verbs0", "ibdev=fake0,mkey_entries=", &dev), EINVAL);
	TEST_ERR(rmem_dev_create("verbs0", "ibdev=fake0,mkey_entries=-1", &dev), EINVAL);
}

/* Nothing of libmlx5 is used. */
TEST(verbs_mlx5_probe, no_entries_means_off)
{
	vp_is_off("ibdev=fake0,mkey_entries=0");
	TEST_EQ(fake_mlx5.nb_opens, 0);
}

TEST(verbs_mlx5_probe, device_without_the_library_offers_none)
{
	fake_mlx5.is_loaded = false;
	vp_is_off("ibdev=fake0");
	TEST_EQ(fake_mlx5.nb_opens, 1);
}

TEST(verbs_mlx5_probe, library_without_a_function_offers_none)
{
	static const char *const names[] = {"mlx5dv_create_mkey", "mlx5dv_create_qp",
			"mlx5dv_destroy_mkey", "mlx5dv_is_supported",
			"mlx5dv_qp_ex_from_ibv_qp_ex"};
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++) {
		fake_mlx5.no_symbol = names[i];
		vp_is_off("ibdev=fake0");
	}
}

TEST(verbs_mlx5_probe, device_of_another_provider_offers_none)
{
	fake_mlx5.is_device = false;
	vp_is_off("ibdev=fake0");
}

/* They need extended QPs, and states of windows that the device tracks. */
TEST(verbs_mlx5_probe, device_with_quirks_offers_none)
{
	vp_is_off("ibdev=fake0,mw_quirk=on");
	fake.is_list_bad = true;
	vp_is_off("ibdev=fake0");
	fake.is_list_bad = false;
	fake.has_no_ex = true;
	vp_is_off("ibdev=fake0");
	TEST_EQ(fake_mlx5.nb_opens, 0);
}

TEST(verbs_mlx5_probe, each_wrong_behaviour_is_found)
{
	const struct {
		bool *is_wrong;
		const char *why;
	} rows[] = {
			{&fake_mlx5.has_no_qp, "mlx5dv_create_qp"},
			{&fake_mlx5.has_no_mkey, "mlx5dv_create_mkey"},
			{&fake_mlx5.is_list_misplaced, "a WRITE to a list"},
			{&fake_mlx5.is_inv_kept, "LOCAL_INV"},
			{&fake_mlx5.is_blocks_straight, "a WRITE to repeated blocks"},
			{&fake_mlx5.is_tag_ignored, "the tag of the key"},
			{&fake_mlx5.is_send_inv_refused, "SEND_WITH_INV"},
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		*rows[i].is_wrong = true;
		vp_is_refused(rows[i].why);
		*rows[i].is_wrong = false;
	}
}

/* Windows give LOCAL_INV too; without them mkeys do. */
TEST(verbs_mlx5_probe, local_inv_needs_no_windows)
{
	struct rmem_dev_info info;

	fake.has_no_mw[IBV_MW_TYPE_1] = fake.has_no_mw[IBV_MW_TYPE_2] = true;
	vp_info("ibdev=fake0", &info);
	TEST_EQ(info.capa & CAPA, CAPA);
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_LOCAL_INV) != 0);
	TEST_EQ(info.max_mw, 0);
}

/* Each call of libibverbs and libmlx5 in turn: a device, or an error; and nothing is left. */
TEST(verbs_mlx5_probe, failed_calls_leave_nothing)
{
	struct rmem_dev *dev;
	unsigned int at;
	int ret;

	for (at = 1; at < 400; at++) {
		vp_setup();
		fake.fail_at = at;
		fake.fail_errno = ENOMEM;
		ret = rmem_dev_create("verbs0", "ibdev=fake0", &dev);
		if (ret == 0)
			TEST_OK(rmem_dev_close(dev));
		if (!fake.is_failed)
			break;
		TEST_ASSERT(fake.nb_live == 0 || fake.is_release_failed);
		fake.nb_live = 0;
	}
	TEST_ASSERT(at > 20 && at < 400);
}

TEST_SUITE(verbs_mlx5_probe, vp_setup, vt_teardown);
