/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * vendor_err names the cause of each refusal (doc/errors.md). That none is 0 is checked by
 * fx_poll() in all tests.
 */

#include <string.h>

#include "fixture.h"

#define IOVA UINT64_C(0x7000000)

static struct rmem_pd *other_pd;
static struct rmem_mr *mkey, *read_only;
static struct rmem_mkey_entry entries[2];

static void
setup(void)
{
	fx_setup_fast();
	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	other_pd = fx_pd(fx.a.dev);
	mkey = fx_mkey(fx.a.pd, RTE_DIM(entries));
	read_only = fx_mr(
			fx.a.pd, fx.a.buf, FX_PAGE, RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_MW_BIND);
}

/* Post to a's QP; the completion fails with this status and cause. */
static void
expect(const struct rmem_send_wr *wr, int status, uint32_t why)
{
	TEST_STATUS(fx_send(fx.a.qp, wr), status);
	TEST_EQ(fx.wc.vendor_err, why);
	fx_reconnect();
}

static void
expect_sge(const struct rmem_sge *sge, uint8_t opcode, uint32_t why)
{
	const struct rmem_send_wr wr = fx_rdma_to(opcode, sge, &fx.b);

	expect(&wr, RMEM_WC_LOC_PROT_ERR, why);
}

TEST(vendor_err, each_fault_of_an_lkey_has_its_cause)
{
	const struct rmem_mr *other = fx_mr(other_pd, fx.a.buf, FX_PAGE, FX_ACCESS);
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);

	sge.lkey = UINT32_MAX;
	expect_sge(&sge, RMEM_WR_RDMA_WRITE, RMEM_VENDOR_ERR_KEY_INDEX);
	sge.lkey = fx.a.mr->rkey;
	expect_sge(&sge, RMEM_WR_RDMA_WRITE, RMEM_VENDOR_ERR_KEY_TAG);
	sge.lkey = fx.fast.mr->lkey;
	expect_sge(&sge, RMEM_WR_RDMA_WRITE, RMEM_VENDOR_ERR_KEY_STATE);
	sge.lkey = other->lkey;
	expect_sge(&sge, RMEM_WR_RDMA_WRITE, RMEM_VENDOR_ERR_KEY_PD);
	sge.lkey = read_only->lkey;
	expect_sge(&sge, RMEM_WR_RDMA_READ, RMEM_VENDOR_ERR_KEY_RIGHT);
	sge = fx_sge(fx.a.mr, FX_BUF_SIZE - 4, 8);
	expect_sge(&sge, RMEM_WR_RDMA_WRITE, RMEM_VENDOR_ERR_KEY_RANGE);
}

/* Both sides of a SEND that is refused by its receive. */
TEST(vendor_err, each_fault_of_a_receive_has_its_cause)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, 0, 16);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_sge to = fx_sge(fx.b.mr, 0, 8);

	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_INV_REQ_ERR);
	TEST_EQ(fx.wc.vendor_err, RMEM_VENDOR_ERR_RECV_SIZE);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_LOC_LEN_ERR);
	TEST_EQ(fx.wc.vendor_err, RMEM_VENDOR_ERR_RECV_SIZE);
	fx_reconnect();
	to = fx_sge(fx.b.mr, FX_BUF_SIZE - 8, 16);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_OP_ERR);
	TEST_EQ(fx.wc.vendor_err, RMEM_VENDOR_ERR_RECV);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, RMEM_VENDOR_ERR_KEY_RANGE);
	fx_reconnect();
}

TEST(vendor_err, each_fault_of_a_peer_has_its_cause)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_qp_conf conf = fx_qp_conf(fx.b.cq, 4);
	struct rmem_send_wr wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge,
			fx_addr(fx.b.buf) + 4, fx.b.mr->rkey, 1);
	struct rmem_qp_conn conn = fx_conn();
	struct rmem_qp *qp;

	expect(&wr, RMEM_WC_REM_INV_REQ_ERR, RMEM_VENDOR_ERR_ALIGNMENT);
	conf.access = 0;
	qp = fx_qp_by(fx.b.pd, &conf);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_pair(fx.a.qp, qp));
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	expect(&wr, RMEM_WC_REM_INV_REQ_ERR, RMEM_VENDOR_ERR_QP_RIGHT);
	conn.rnr_retry = 0;
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	expect(&wr, RMEM_WC_RNR_RETRY_EXC_ERR, RMEM_VENDOR_ERR_NO_RECV);
	TEST_OK(rmem_qp_reset(fx.b.qp));
	wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	expect(&wr, RMEM_WC_RETRY_EXC_ERR, RMEM_VENDOR_ERR_NO_PEER);
}

static void
expect_rkey(uint64_t addr, uint32_t rkey, uint32_t why)
{
	TEST_STATUS(fx_peer_write(addr, 8, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, why);
	fx_reconnect();
}

TEST(vendor_err, each_fault_of_an_rkey_has_its_cause)
{
	struct rmem_mr *gone = fx_mr(fx.a.pd, fx.a.buf, FX_PAGE, FX_ACCESS);
	const uint64_t at = fx_addr(fx.a.buf);
	const uint32_t rkey = gone->rkey;

	expect_rkey(at, fx.a.mr->lkey, RMEM_VENDOR_ERR_KEY_TAG);
	expect_rkey(0, rkey, RMEM_VENDOR_ERR_KEY_RANGE);
	expect_rkey(at, read_only->rkey, RMEM_VENDOR_ERR_KEY_RIGHT);
	TEST_OK(fx_release(gone));
	TEST_STATUS(fx_peer_write(at, 8, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_ASSERT(fx.wc.vendor_err == RMEM_VENDOR_ERR_KEY_STATE ||
			fx.wc.vendor_err == RMEM_VENDOR_ERR_KEY_INDEX);
}

TEST(vendor_err, each_fault_of_a_windows_rkey_has_its_cause)
{
	const uint32_t access = RMEM_ACCESS_REMOTE_WRITE;
	const uint64_t at = fx_addr(fx.a.buf);
	struct rmem_qp *mine = fx_qp(fx.a.pd, fx.a.cq, 8), *peer = fx_qp(fx.a.pd, fx.b.cq, 8);
	struct rmem_send_wr wr;
	uint32_t rkey;

	expect_rkey(at, fx.mw.two->rkey, RMEM_VENDOR_ERR_KEY_STATE);
	TEST_STATUS(fx_mw_bind_2(8, 8, access), RMEM_WC_SUCCESS);
	rkey = fx.mw.two->rkey;
	expect_rkey(at, rkey, RMEM_VENDOR_ERR_KEY_RANGE);
	expect_rkey(at + 8, rkey ^ 1, RMEM_VENDOR_ERR_KEY_TAG);
	TEST_STATUS(fx_invalidate(rkey), RMEM_WC_SUCCESS);
	expect_rkey(at + 8, rkey, RMEM_VENDOR_ERR_KEY_STATE);
	TEST_OK(fx_connect_pair(mine, peer));
	wr = fx_mw_wr(fx.mw.two, 0, 8, access);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	expect_rkey(at, fx.mw.two->rkey, RMEM_VENDOR_ERR_KEY_QP);
	rkey = fx.mw.two->rkey;
	TEST_OK(fx_release(fx.mw.two));
	expect_rkey(at, rkey, RMEM_VENDOR_ERR_KEY_STATE);
}

static void
expect_reg(const struct rmem_send_wr *wr, uint32_t why)
{
	expect(wr, RMEM_WC_MW_BIND_ERR, why);
}

static struct rmem_send_wr
good_reg(void)
{
	return fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES, fx_addr(fx.fast.pages),
			FX_FAST_PAGES * FX_PAGE);
}

TEST(vendor_err, message_beyond_the_limit_has_its_cause)
{
	const struct rmem_sge sge = {fx_addr(fx.a.buf), (UINT32_C(1) << 31) + 1, fx.a.mr->lkey};
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);

	expect(&wr, RMEM_WC_LOC_LEN_ERR, RMEM_VENDOR_ERR_MSG_SIZE);
}

/* The cause of a valid request with one change. */
#define BAD_REG(change, why)                                                                       \
	do {                                                                                       \
		wr = good_reg();                                                                   \
		change;                                                                            \
		expect_reg(&wr, RMEM_VENDOR_ERR_##why);                                            \
	} while (0)

TEST(vendor_err, each_fault_of_a_page_list_has_its_cause)
{
	struct rmem_fast_reg_page_list *shorter = fx_page_list(fx.a.dev, FX_FAST_PAGES - 1);
	struct rmem_send_wr wr;

	BAD_REG(wr.reg_mr.page_list_len = 0, NB_PAGES);
	/* The memory beyond the list must have no effect. */
	BAD_REG(wr.reg_mr.page_list = shorter, NB_PAGES);
	BAD_REG(wr.reg_mr.log2_page_size = 11, PAGE_SIZE);
	BAD_REG(wr.reg_mr.first_byte_offset = FX_PAGE, OFFSET);
	BAD_REG(wr.reg_mr.length = 0, LENGTH);
	BAD_REG(wr.reg_mr.iova = UINT64_MAX - FX_PAGE + 1, WRAP);
	BAD_REG(fx.fast.list->page_list[1]++, PAGE_ADDR);
}

TEST(vendor_err, each_fault_of_a_reg_mr_has_its_cause)
{
	struct rmem_mr *other = fx_fast_mr(other_pd, FX_FAST_PAGES);
	struct rmem_send_wr wr;

	BAD_REG(wr.reg_mr.mr = fx.a.mr, MR_TYPE);
	BAD_REG(wr.reg_mr.mr = other, KEY_PD);
	BAD_REG(wr.reg_mr.access = RMEM_ACCESS_REMOTE_WRITE, ACCESS);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	wr = good_reg();
	expect_reg(&wr, RMEM_VENDOR_ERR_NOT_FREE);
}

static struct rmem_send_wr
good_umr(void)
{
	entries[0] = fx_entry(fx.a.mr, 0, 64);
	entries[1] = fx_entry(fx.a.mr, 64, 64);
	return fx_umr(mkey, entries, RTE_DIM(entries), IOVA);
}

#define BAD_UMR(change, why)                                                                       \
	do {                                                                                       \
		wr = good_umr();                                                                   \
		change;                                                                            \
		expect_reg(&wr, RMEM_VENDOR_ERR_##why);                                            \
	} while (0)

TEST(vendor_err, each_fault_of_an_entry_has_its_cause)
{
	struct rmem_send_wr wr;

	BAD_UMR(wr.umr.nb_entries = 0, NB_ENTRIES);
	BAD_UMR(entries[1].length = 0, ENTRY);
	BAD_UMR(entries[1].addr = UINT64_MAX, WRAP);
	BAD_UMR(entries[1].lkey ^= 1, KEY_BELOW);
	wr = good_umr();
	entries[0].length = UINT64_MAX / 2;
	entries[0].addr = 0;
	expect_reg(&wr, RMEM_VENDOR_ERR_LENGTH);
}

TEST(vendor_err, each_fault_of_a_umr_has_its_cause)
{
	struct rmem_mr *other = fx_mkey(other_pd, RTE_DIM(entries));
	struct rmem_send_wr wr;

	BAD_UMR(wr.umr.mr = other, KEY_PD);
	BAD_UMR(wr.umr.access = RMEM_ACCESS_REMOTE_WRITE, ACCESS);
	wr = good_umr();
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	expect_reg(&wr, RMEM_VENDOR_ERR_NOT_FREE);
}

/* Keys over keys: one level too many, and one below itself. */
TEST(vendor_err, levels_and_cycles_have_their_causes)
{
	struct rmem_mr *mr, *below = mkey, *first = fx_mkey(fx.a.pd, 1);
	struct rmem_mkey_entry entry = fx_entry(fx.a.mr, 0, 64);
	struct rmem_send_wr wr;
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	uint32_t i;

	TEST_ASSERT(info.max_mkey_depth > 2);
	mr = first;
	for (i = 0; i < info.max_mkey_depth; i++) {
		wr = fx_umr(mr, &entry, 1, 0);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		if (i == 1)
			below = mr;
		entry = (struct rmem_mkey_entry){.length = 64, .lkey = mr->lkey};
		mr = fx_mkey(fx.a.pd, 1);
	}
	wr = fx_umr(mr, &entry, 1, 0);
	expect_reg(&wr, RMEM_VENDOR_ERR_DEPTH);
	TEST_STATUS(fx_invalidate(first->rkey), RMEM_WC_SUCCESS);
	entry.lkey = below->lkey;
	wr = fx_umr(first, &entry, 1, 0);
	expect_reg(&wr, RMEM_VENDOR_ERR_CYCLE);
}

static void
expect_bind(struct rmem_mr *mr, uint64_t addr, uint64_t length, uint32_t access, uint32_t why)
{
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, length, access);

	wr.bind_mw.mr = mr;
	wr.bind_mw.addr = addr;
	expect(&wr, RMEM_WC_MW_BIND_ERR, why);
}

TEST(vendor_err, each_fault_of_a_bind_mw_has_its_cause)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_MW_BIND;
	const uint32_t write = RMEM_ACCESS_REMOTE_WRITE;
	struct rmem_mr *other = fx_mr(other_pd, fx.a.buf, FX_PAGE, access);
	struct rmem_mr *mr = fx.mw.mr;

	expect_bind(fx.fast.mr, mr->iova, 8, write, RMEM_VENDOR_ERR_MR_TYPE);
	expect_bind(other, mr->iova, 8, write, RMEM_VENDOR_ERR_KEY_PD);
	expect_bind(read_only, mr->iova, 8, write, RMEM_VENDOR_ERR_KEY_RIGHT);
	expect_bind(fx.a.mr, mr->iova, 8, write, RMEM_VENDOR_ERR_KEY_RIGHT);
	expect_bind(mr, mr->iova, 0, write, RMEM_VENDOR_ERR_LENGTH);
	expect_bind(mr, mr->iova - 1, 8, write, RMEM_VENDOR_ERR_KEY_RANGE);
	expect_bind(mr, mr->iova, 8, access, RMEM_VENDOR_ERR_ACCESS);
	TEST_STATUS(fx_mw_bind_2(0, 8, write), RMEM_WC_SUCCESS);
	expect_bind(mr, mr->iova, 8, write, RMEM_VENDOR_ERR_NOT_FREE);
}

static void
expect_inv(uint32_t rkey, uint32_t why)
{
	const struct rmem_send_wr wr = fx_inv(rkey);

	expect(&wr, RMEM_WC_MW_BIND_ERR, why);
}

TEST(vendor_err, each_fault_of_an_invalidation_has_its_cause)
{
	struct rmem_send_wr wr;

	expect_inv(UINT32_MAX, RMEM_VENDOR_ERR_KEY_INDEX);
	expect_inv(fx.fast.mr->rkey ^ 1, RMEM_VENDOR_ERR_KEY_TAG);
	expect_inv(fx.fast.mr->rkey, RMEM_VENDOR_ERR_KEY_STATE);
	expect_inv(fx.a.mr->rkey, RMEM_VENDOR_ERR_NOT_INV);
	TEST_STATUS(fx_mw_bind_2(0, 8, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.two->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_MW_BIND_ERR);
	TEST_EQ(fx.wc.vendor_err,
			fx.a.pd == fx.b.pd ? RMEM_VENDOR_ERR_KEY_QP : RMEM_VENDOR_ERR_KEY_PD);
	fx_reconnect();
	wr = fx_wr(RMEM_WR_RDMA_READ_WITH_INV, NULL, 0);
	wr.invalidate_rkey = fx.a.mr->rkey;
	expect(&wr, RMEM_WC_MW_BIND_ERR, RMEM_VENDOR_ERR_NOT_INV);
}

/* Names are those of the enum, each another one. */
TEST(vendor_err, each_cause_has_a_name)
{
	uint32_t i, j;

	for (i = 0; i < RMEM_VENDOR_ERR_NB; i++) {
		const char *name = rmem_wc_vendor_err_str(i);

		TEST_ASSERT(name != NULL && strcmp(name, "unknown") != 0);
		for (j = 0; j < i; j++)
			TEST_ASSERT(strcmp(name, rmem_wc_vendor_err_str(j)) != 0);
	}
	TEST_ASSERT(strcmp(rmem_wc_vendor_err_str(RMEM_VENDOR_ERR_KEY_TAG), "KEY_TAG") == 0);
	TEST_ASSERT(strcmp(rmem_wc_vendor_err_str(RMEM_VENDOR_ERR_NB), "unknown") == 0);
	TEST_ASSERT(strcmp(rmem_wc_vendor_err_str(UINT32_MAX), "unknown") == 0);
}

TEST_SUITE(vendor_err, setup, fx_teardown);
