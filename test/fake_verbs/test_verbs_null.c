/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Null MRs are offered if the provider has them, and are released once. */

#include "setup.h"

static void
vt_setup_null(void)
{
	vt_setup_fake();
	fake.has_null_mr = true;
	TEST_OK(vt_open());
}

TEST(verbs_null, null_mr_has_the_keys_of_verbs)
{
	struct rmem_mr *mr = NULL;
	struct rmem_mr_info info;
	int nb = fake.nb_live;

	TEST_OK(rmem_null_mr_alloc(vt.pd, &mr));
	TEST_EQ(fake.nb_live, nb + 1);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_EQ(info.type, RMEM_MR_TYPE_NULL);
	TEST_EQ(info.lkey, mr->lkey);
	TEST_EQ(info.length, SIZE_MAX);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_EQ(fake.nb_live, nb);
}

TEST(verbs_null, failed_call_is_its_errno)
{
	struct rmem_mr *mr = NULL;

	VT_FAILS("alloc_null_mr", ENOMEM, rmem_null_mr_alloc(vt.pd, &mr), ENOMEM);
	TEST_ASSERT(mr == NULL);
	TEST_OK(rmem_null_mr_alloc(vt.pd, &mr));
	VT_FAILS("dereg_mr", EIO, rmem_mr_dereg(mr), EIO);
	TEST_OK(rmem_mr_dereg(mr));
}

TEST_SUITE(verbs_null, vt_setup_null, vt_teardown);
