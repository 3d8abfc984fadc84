/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Device memory is offered if the provider has it; its copies have the errno of the provider. */

#include "setup.h"

static struct rmem_dm *dm;

static void
vt_setup_dm(void)
{
	const struct rmem_dm_conf conf = {.length = 256, .log2_align = 8};

	vt_setup_fake();
	fake.max_dm_size = 65536;
	TEST_OK(vt_open());
	dm = NULL;
	TEST_OK(rmem_dm_alloc(vt.dev, &conf, &dm));
}

static void
vt_teardown_dm(void)
{
	fake.fail_name = NULL;
	TEST_OK(rmem_dm_free(dm));
	vt_teardown();
}

TEST(verbs_dm, limits_are_those_of_the_device)
{
	struct rmem_dev_info info;

	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_DM) != 0);
	TEST_EQ(info.max_dm_size, 65536);
	TEST_EQ(info.nb_dm, 1);
	TEST_EQ(fake.dm_log_align, 8);
}

TEST(verbs_dm, copies_have_the_errno_of_the_provider)
{
	uint32_t in[2] = {1, 2}, out[2] = {0, 0};

	TEST_OK(rmem_dm_copy_to(dm, 248, in, 8));
	TEST_OK(rmem_dm_copy_from(dm, 248, out, 8));
	TEST_MEM(out, in, 8);
	TEST_ERR(rmem_dm_copy_to(dm, 2, in, 4), EINVAL);
	TEST_ERR(rmem_dm_copy_from(dm, 0, out, 3), EINVAL);
	vt_fail("memcpy_to_dm", EFAULT);
	TEST_ERR(rmem_dm_copy_to(dm, 0, in, 8), EIO);
	fake.fail_name = "memcpy_from_dm";
	TEST_ERR(rmem_dm_copy_from(dm, 0, out, 8), EIO);
}

TEST_SUITE(verbs_dm, vt_setup_dm, vt_teardown_dm);
