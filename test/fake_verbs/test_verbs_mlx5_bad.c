/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* REG_MR and UMR of a verbs device that are refused, their limits, and errors of libmlx5. */

#include <string.h>

#include "setup_mlx5.h"

static void
vx_is_refused(const struct rmem_send_wr *wr, uint32_t key)
{
	const struct rmem_mr *mr = wr->opcode == RMEM_WR_UMR ? wr->umr.mr : wr->reg_mr.mr;

	TEST_ERR(vt_run(wr), EINVAL);
	TEST_EQ(fake_mlx5.nb_umrs, 0);
	TEST_EQ(mr->rkey, key);
}

/* A valid request with one change, or two, is refused. */
#define REFUSED(good, mr, ...)                                                                     \
	do {                                                                                       \
		wr = good(1);                                                                      \
		__VA_ARGS__;                                                                       \
		vx_is_refused(&wr, mr->rkey);                                                      \
	} while (0)
#define UMR_REFUSED(...) REFUSED(vx_umr, wr.umr.mr, __VA_ARGS__)
#define REG_REFUSED(...) REFUSED(vx_reg, wr.reg_mr.mr, __VA_ARGS__)

/* Nothing reaches libmlx5, which would truncate some of them. */
TEST(verbs_mlx5_bad, invalid_umr_is_refused)
{
	struct rmem_send_wr wr;

	UMR_REFUSED(wr.umr.iova = 1);
	UMR_REFUSED(wr.umr.access = RMEM_ACCESS_REMOTE_WRITE);
	UMR_REFUSED(wr.umr.access = RMEM_ACCESS_REMOTE_ATOMIC);
	UMR_REFUSED(wr.umr.access |= RMEM_ACCESS_MW_BIND);
	UMR_REFUSED(wr.umr.nb_entries = 0);
	UMR_REFUSED(wr.umr.nb_entries = 5);
	UMR_REFUSED(wr.umr.repeat_count = 0);
	UMR_REFUSED(wr.umr.entries = NULL);
	UMR_REFUSED(wr.flags |= RMEM_SEND_INLINE);
	UMR_REFUSED(wr.umr.mr = vx.fast);
	UMR_REFUSED(wr.umr.mr = vt.mr);
	UMR_REFUSED(vx.entries[1].length = 0);
	UMR_REFUSED(vx.entries[1].length = (UINT64_C(1) << 31) + 1);
	UMR_REFUSED(vx.entries[0].length = UINT64_MAX);
	UMR_REFUSED(vx.entries[0].reserved = 1);
	UMR_REFUSED(wr.umr.repeat_count = 2, vx.entries[1].length = UINT16_MAX + 1);
	UMR_REFUSED(wr.umr.repeat_count = 2, vx.entries[1].length = UINT16_MAX,
			vx.entries[1].skip = 1);
	UMR_REFUSED(wr.umr.repeat_count = 2, vx.entries[0].skip = UINT64_MAX);
	wr = vx_umr(1);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
}

TEST(verbs_mlx5_bad, invalid_reg_mr_is_refused)
{
	struct rmem_send_wr wr;

	REG_REFUSED(wr.reg_mr.iova = (uintptr_t)vt.buf);
	REG_REFUSED(wr.reg_mr.access = RMEM_ACCESS_REMOTE_WRITE);
	REG_REFUSED(wr.reg_mr.access |= RMEM_ACCESS_MW_BIND);
	REG_REFUSED(wr.reg_mr.log2_page_size = 11);
	REG_REFUSED(wr.reg_mr.log2_page_size = 32);
	REG_REFUSED(wr.reg_mr.log2_page_size = 76); /* 12 in 6 bits */
	REG_REFUSED(wr.reg_mr.first_byte_offset = PAGE);
	REG_REFUSED(wr.reg_mr.length = 0);
	REG_REFUSED(wr.reg_mr.length = PAGE + 101);
	REG_REFUSED(wr.reg_mr.mr = vx.mkey);
	REG_REFUSED(wr.reg_mr.page_list_len = 0);
	REG_REFUSED(wr.reg_mr.page_list_len = 5);
	REG_REFUSED(vx.list->page_list[1]++);
	REG_REFUSED(vx.list->page_list[1] = 0);
	REG_REFUSED(vx.list->page_list[0] = (uintptr_t)vt.buf + 16 * PAGE); /* in no MR */
	wr = vx_reg(1);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
}

/* Bits of the optional range are ignored, and the limits are inclusive. */
TEST(verbs_mlx5_bad, valid_limits_are_accepted)
{
	struct rmem_send_wr wr = vx_umr(2);

	wr.umr.access |= RMEM_ACCESS_RELAXED_ORDERING | RMEM_ACCESS_ZERO_BASED;
	vx.entries[0].length = UINT64_C(1) << 31;
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fake_mlx5.umr.access, MODIFY | RMEM_ACCESS_REMOTE_READ);
	TEST_EQ(fake_mlx5.umr.entry[0].bytes_count, 1u << 31);
	wr = vx_umr(3);
	vx.entries[0] = vx_entry(HALF, 1, UINT16_MAX - 1);
	vx.entries[1] = vx_entry(HALF, UINT16_MAX, 0);
	wr.umr.repeat_count = UINT32_MAX;
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fake_mlx5.umr.entry[0].bytes_skip, UINT16_MAX - 1);
	TEST_EQ(fake_mlx5.umr.entry[1].bytes_count, UINT16_MAX);
}

/* Two PDs: the MR must be of that of the QP. */
TEST(verbs_mlx5_bad, mkey_of_another_pd_is_refused)
{
	struct rmem_send_wr wr = vx_umr(1);
	struct rmem_pd *pd;

	TEST_OK(rmem_pd_alloc(vt.dev, &pd));
	TEST_OK(rmem_mkey_alloc(pd, 2, &wr.umr.mr));
	vx_is_refused(&wr, wr.umr.mr->rkey);
	TEST_OK(rmem_mr_dereg(wr.umr.mr));
	TEST_OK(rmem_pd_dealloc(pd));
}

/* The most entries of the device, as a list and as blocks. */
TEST(verbs_mlx5_bad, request_of_the_most_entries_fits)
{
	struct rmem_mkey_entry many[16];
	struct rmem_send_wr wr = vx_umr(4);
	struct rmem_mr *mr;
	unsigned int i;

	TEST_ERR(rmem_mkey_alloc(vt.pd, 17, &mr), EINVAL);
	TEST_ERR(rmem_mkey_alloc(vt.pd, 0, &mr), EINVAL);
	TEST_OK(rmem_mkey_alloc(vt.pd, 16, &mr));
	for (i = 0; i < RTE_DIM(many); i++)
		many[i] = vx_entry(HALF + 16 * i, 8, 8);
	wr.umr.mr = mr;
	wr.umr.entries = many;
	wr.umr.nb_entries = RTE_DIM(many);
	for (i = 1; i <= 2; i++) {
		wr.umr.repeat_count = i;
		TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
		TEST_EQ(fake_mlx5.umr.nb, RTE_DIM(many));
	}
	TEST_OK(rmem_mr_dereg(mr));
}

/* One that is refused ends the burst; those before it are posted. */
TEST(verbs_mlx5_bad, refused_request_ends_the_burst)
{
	struct rmem_send_wr wr[3] = {vx_umr(8), vx_umr(9), vx_umr(10)};
	struct rmem_wc wc;

	wr[1].umr.iova = 8;
	TEST_EQ(rmem_post_send(vt.a, wr, 3), 1);
	TEST_EQ(vx.mkey->rkey & 0xff, 8);
	TEST_EQ(rmem_poll_cq(vt.cq_a, &wc, 1), 1);
	TEST_EQ(wc.opcode, RMEM_WC_UMR);
	TEST_EQ(rmem_poll_cq(vt.cq_a, &wc, 1), 0);
	TEST_STATUS(vx_write(vx.mkey->rkey, 0, 16), RMEM_WC_SUCCESS);
}

/* The device refuses from each request on: the keys are those of the last that it accepted. */
TEST(verbs_mlx5_bad, requests_that_the_device_refuses_are_undone)
{
	unsigned int take;
	struct rmem_wc wc[4];

	for (take = 0; take < 4; take++) {
		struct rmem_send_wr wr[4] = {
				vx_umr((uint8_t)(20 + take)), vx_reg(31), vx_umr(40), vx_reg(50)};
		uint32_t keys[2] = {vx.mkey->rkey, vx.fast->rkey};

		fake.post_errno = ENOMEM;
		fake.post_take = take;
		TEST_EQ(rmem_post_send(vt.a, wr, 4), take != 0 ? (int)take : -ENOSPC);
		fake.post_errno = 0;
		keys[0] = rmem_rkey_of_tag(keys[0],
				take == 0                  ? (uint8_t)keys[0]
						: take < 3 ? (uint8_t)(20 + take)
							   : 40);
		keys[1] = rmem_rkey_of_tag(keys[1], take < 2 ? (uint8_t)keys[1] : 31);
		TEST_EQ(vx.mkey->rkey, keys[0]);
		TEST_EQ(vx.mkey->lkey, keys[0]);
		TEST_EQ(vx.fast->rkey, keys[1]);
		TEST_EQ(rmem_poll_cq(vt.cq_a, wc, 4), (int)take);
		TEST_STATUS(vt_run(&wr[0]), RMEM_WC_SUCCESS);
		TEST_STATUS(vx_write(vx.mkey->rkey, 0, 16), RMEM_WC_SUCCESS);
	}
}

/* No memory, or no more mkeys; one that can't be released stays. */
TEST(verbs_mlx5_bad, errors_of_libmlx5_are_mapped)
{
	static const int errnos[][2] = {{ENOMEM, ENOMEM}, {EINVAL, EINVAL}, {EPERM, EIO}};
	struct rmem_mr *mr;
	unsigned int i;

	fake.fail_name = "create_mkey";
	for (i = 0; i < RTE_DIM(errnos); i++) {
		fake.fail_errno = errnos[i][0];
		TEST_ERR(rmem_mkey_alloc(vt.pd, 1, &mr), errnos[i][1]);
		TEST_ERR(rmem_fast_reg_mr_alloc(vt.pd, 1, &mr), errnos[i][1]);
	}
	fake.fail_name = NULL;
	TEST_OK(rmem_mkey_alloc(vt.pd, 1, &mr));
	VT_FAILS("destroy_mkey", EBUSY, rmem_mr_dereg(mr), EBUSY);
	TEST_OK(rmem_mr_dereg(mr));
}

/* A QP of more requests than the device takes with mkeys. */
TEST(verbs_mlx5_bad, qp_that_is_too_large_has_no_mkeys)
{
	struct rmem_qp_conf conf = vt_qp_conf(vt.cq_a, RMEM_QPT_RC);
	struct rmem_send_wr wr = vx_umr(1);
	struct rmem_qp *qp;

	conf.max_send_wr = 32;
	fake_mlx5.max_wr = 16;
	vt_log_begin();
	TEST_OK(rmem_qp_create(vt.pd, &conf, &qp));
	TEST_TEXT(vt_log_end(), "no REG_MR and UMR: not created with 32 requests");
	RTE_SWAP(qp, vt.a);
	vt_reconnect();
	TEST_ERR(vt_run(&wr), EOPNOTSUPP);
	wr = vx_reg(1);
	TEST_ERR(vt_run(&wr), EOPNOTSUPP);
	TEST_STATUS(vt_bind_two(), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_inv(vt.two->rkey), RMEM_WC_SUCCESS);
	RTE_SWAP(qp, vt.a);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_EQ(fake_mlx5.nb_umrs, 0);
}

/* QPs of UC are not created with libmlx5. */
TEST(verbs_mlx5_bad, qp_of_uc_has_no_mkeys)
{
	struct rmem_qp_conf conf = vt_qp_conf(vt.cq_a, RMEM_QPT_UC);
	struct rmem_send_wr wr = vx_umr(1);
	struct rmem_qp *qp;

	TEST_OK(rmem_qp_create(vt.pd, &conf, &qp));
	RTE_SWAP(qp, vt.a);
	vt_reconnect();
	TEST_ERR(vt_run(&wr), EOPNOTSUPP);
	RTE_SWAP(qp, vt.a);
	TEST_OK(rmem_qp_destroy(qp));
}

TEST_SUITE(verbs_mlx5_bad, vx_setup, vx_teardown);
