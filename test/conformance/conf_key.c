/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Keys: access is granted by the valid key and no other. */

#include <string.h>

#include "conf.h"

#define ALL (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ)

/* Whether an MR of the case has the key, so that it may be valid. */
static bool
is_used(uint32_t key)
{
	return key == fx.a.mr->rkey || key == fx.b.mr->rkey || key == fx.a.mr->lkey ||
			key == fx.b.mr->lkey;
}

CONF_TEST(key, wrong_rkey_is_refused, 0, 0, "IBTA 10.6.3: index and key of the R_Key must match")
{
	uint32_t rkey = fx.a.mr->rkey;
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (!is_used(rkey ^ UINT32_C(1) << bit))
			conf_denied(fx_addr(fx.a.buf), 8, rkey ^ UINT32_C(1) << bit);
	}
	conf_denied_to_all(fx_addr(fx.a.buf), UINT32_MAX);
	conf_denied_to_all(fx_addr(fx.a.buf), 0);
	conf_granted(fx_addr(fx.a.buf), 8, rkey, fx.a.buf);
}

CONF_TEST(key, wrong_lkey_fails, 0, 0, "IBTA 10.6.3: index and key of the L_Key must match")
{
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);
	uint32_t lkey = fx.b.mr->lkey;
	unsigned int bit;

	fx_fill(fx.b.buf, 8, 1);
	for (bit = 0; bit < 32; bit++) {
		sge.lkey = lkey ^ UINT32_C(1) << bit;
		if (!is_used(sge.lkey))
			conf_refused(CONF_LOCAL_KEY, fx.b.qp, &wr);
	}
	TEST_ASSERT(fx_is_zero(fx.a.buf, 8));
	conf_denied_locally(fx_addr(fx.a.buf), UINT32_MAX);
	conf_denied_locally(fx_addr(fx.a.buf), 0);
}

CONF_TEST(key, lkey_is_no_rkey, 0, 0, "ibv_reg_mr(3): lkey for local requests, rkey for peers")
{
	if (fx.a.mr->lkey == fx.a.mr->rkey)
		test_skip("lkey and rkey of an MR are the same number on this device");
	conf_denied_to_all(fx_addr(fx.a.buf), fx.a.mr->lkey);
	conf_denied_locally(fx_addr(fx.a.buf), fx.a.mr->rkey);
}

CONF_TEST(key, each_opcode_checks_the_rkey, 0, 0,
		"IBTA 9.7.4: the responder checks the R_Key of each request")
{
	conf_denied_to_all(fx_addr(fx.a.buf), fx.a.mr->rkey ^ 0x5a);
}

CONF_TEST(key, empty_requests_check_no_key, 0, 0,
		"IBTA C9-88: no R_Key is checked for a request of length 0")
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ};
	const struct rmem_sge empty = {.addr = 0, .length = 0, .lkey = UINT32_MAX};
	unsigned int i;

	for (i = 0; i < 2 * RTE_DIM(opcodes); i++) {
		const struct rmem_send_wr wr = fx_rdma(
				opcodes[i / 2], i % 2 == 0 ? NULL : &empty, UINT64_MAX, UINT32_MAX);

		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	}
}

/* Its keys on both sides, with and without bytes. */
CONF_TEST(key, mr_of_length_0_is_valid_for_no_byte, 0, 0,
		"IBTA 10.6.3: a key is valid for its range; C9-88: length 0 needs none")
{
	struct rmem_sge sge = {.addr = fx_addr(fx.a.buf)};
	struct rmem_send_wr wr;
	struct rmem_mr *mr = NULL;
	unsigned int i;
	int ret;

	ret = rmem_mr_reg(fx.a.pd, fx.a.buf, 0, 0, ALL, &mr);
	if (ret == -EINVAL && strcmp(conf.info.driver_name, "soft") != 0)
		test_skip("the device refuses MRs of length 0");
	TEST_OK(ret);
	fx_track(mr);
	conf_denied(fx_addr(fx.a.buf), 1, mr->rkey);
	sge.lkey = mr->lkey;
	for (i = 0; i < 3; i++) {
		static const uint8_t opcodes[] = {
				RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ, RMEM_WR_SEND};

		wr = i < 2 ? fx_rdma(opcodes[i], &sge, fx_addr(fx.a.buf), mr->rkey)
			   : fx_wr(opcodes[i], &sge, 1);
		TEST_EQ(fx_post_recv(fx.a.qp, 0, &sge, 1), 1);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	}
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, 0);
	conf_denied_locally(fx_addr(fx.b.buf), mr->lkey);
}

/* A key of an earlier registration of the memory is not valid. */
CONF_TEST(key, keys_of_released_mrs_are_refused, 0, 0,
		"ibv_dereg_mr(3): a released key is not reused")
{
	uint32_t former[8];
	struct rmem_mr *mr;
	unsigned int i, j;

	for (i = 0; i < RTE_DIM(former); i++) {
		mr = fx_mr(fx.a.pd, fx.a.buf, 4096, ALL);
		former[i] = mr->rkey;
		for (j = 0; j < i; j++) {
			if (former[j] != mr->rkey)
				conf_denied(fx_addr(fx.a.buf), 8, former[j]);
		}
		conf_granted(fx_addr(fx.a.buf), 8, mr->rkey, fx.a.buf);
		TEST_OK(fx_release(mr));
	}
}

static int
reg_requested(uint32_t rkey, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 4096,
			.access = ALL,
			.flags = RMEM_MR_REQUESTED_KEY,
			.requested_key = rkey};
	return fx_reg_attr(fx.a.pd, &attr, mr);
}

/* A key that the device assigned can be requested. */
CONF_TEST(key, requested_key_is_assigned, RMEM_DEV_CAPA_REQUESTED_KEY, 0, "fi_mr(3): requested_key")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 4096, ALL);
	struct rmem_mr *other = NULL;
	uint32_t rkey;

	rkey = mr->rkey ^ 1;
	TEST_OK(fx_release(mr));
	TEST_OK(reg_requested(rkey, &mr));
	TEST_EQ(mr->rkey, rkey);
	TEST_ERR(reg_requested(rkey, &other), EEXIST);
	TEST_ASSERT(other == NULL);
	conf_granted(fx_addr(fx.a.buf), 8, rkey, fx.a.buf);
	TEST_OK(fx_release(mr));
	conf_denied(fx_addr(fx.a.buf), 8, rkey);
	TEST_OK(reg_requested(rkey, &other));
}

/* Keys that do not depend on the slot of the MR. */
CONF_TEST(key, each_requested_key_has_its_own_rights, RMEM_DEV_CAPA_REQUESTED_KEY, 0,
		"fi_mr(3): requested_key; IBTA 10.6.3: rights by the MR")
{
	struct rmem_mr_attr attr = {
			.addr = fx.a.buf, .length = 4096, .flags = RMEM_MR_REQUESTED_KEY};
	struct rmem_mr *mr = NULL;

	for (attr.requested_key = 0x10; attr.requested_key < 0x1000; attr.requested_key <<= 1) {
		attr.access = RMEM_ACCESS_REMOTE_READ;
		TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
		conf_denied(mr->iova, 8, mr->rkey);
		TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, mr->iova, 8, mr->rkey), RMEM_WC_SUCCESS);
		TEST_OK(fx_release(mr));
		attr.access = ALL & ~RMEM_ACCESS_REMOTE_READ;
		TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
		conf_granted(mr->iova, 8, mr->rkey, fx.a.buf);
		conf_status(CONF_REMOTE_KEY, conf_do(RMEM_WR_RDMA_READ, mr->iova, 8, mr->rkey));
		conf_reconnect();
		TEST_OK(fx_release(mr));
	}
}

CONF_TEST(key, requested_key_in_use_is_refused, RMEM_DEV_CAPA_REQUESTED_KEY, 0,
		"fi_mr(3): a requested key in use is refused (FI_ENOKEY)")
{
	struct rmem_mr *mr = NULL;

	TEST_ERR(reg_requested(fx.a.mr->rkey, &mr), EEXIST);
	TEST_ASSERT(mr == NULL);
	conf_granted(fx_addr(fx.a.buf), 8, fx.a.mr->rkey, fx.a.buf);
}

CONF_TEST(key, unknown_flags_are_refused, 0, 0, "fi_mr(3): undefined flags are 0")
{
	const uint32_t known = RMEM_MR_REQUESTED_KEY | RMEM_MR_DISABLED | RMEM_MR_IOVA;
	struct rmem_mr_attr attr = {.addr = fx.a.buf, .length = 64};
	struct rmem_mr *mr = NULL;
	uint32_t flag;

	/* RMEM_MR_FD without its other arguments is refused like an unknown flag. */
	for (flag = 1; flag != 0; flag <<= 1) {
		attr.flags = flag;
		if ((flag & known) == 0)
			TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	}
	attr.flags = 0;
	attr.requested_key = 77;
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	attr.flags = RMEM_MR_REQUESTED_KEY;
	if ((conf.info.capa & RMEM_DEV_CAPA_REQUESTED_KEY) == 0)
		TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EOPNOTSUPP);
	attr.flags = RMEM_MR_DISABLED;
	attr.requested_key = 0;
	if ((conf.info.capa & RMEM_DEV_CAPA_MR_ENABLE) == 0)
		TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EOPNOTSUPP);
	TEST_ASSERT(mr == NULL);
}

TEST_SUITE(key, conf_setup, conf_teardown);
