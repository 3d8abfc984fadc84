/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Indirect keys: one key over ranges of others, as a list or as repeated blocks. */

#include <string.h>

#include "conf.h"

#define CAPA (RMEM_DEV_CAPA_UMR | RMEM_DEV_CAPA_LOCAL_INV)
#define IOVA UINT64_C(0x7000000)

static struct rmem_mr *mkey;
static struct rmem_mkey_entry entries[8];

static void
setup(void)
{
	conf_setup();
	memset(entries, 0, sizeof(entries));
	mkey = NULL;
	if ((conf.info.capa & RMEM_DEV_CAPA_UMR) == 0)
		return;
	mkey = fx_mkey(fx.a.pd, RTE_MIN(conf.info.max_mkey_entries, (uint32_t)RTE_DIM(entries)));
}

static int
bind(uint32_t nb_entries, uint32_t repeat_count)
{
	struct rmem_send_wr wr = fx_umr(mkey, entries, nb_entries, IOVA);

	wr.umr.repeat_count = repeat_count;
	wr.umr.access &= conf.info.access;
	return fx_send(fx.a.qp, &wr);
}

CONF_TEST(umr, new_mkey_grants_no_access, CAPA, 0, "mlx5dv_create_mkey(3): bound by requests")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	const struct rmem_mr_info info = fx_query(mkey);

	TEST_ASSERT(mkey->addr == NULL);
	TEST_EQ(mkey->type, RMEM_MR_TYPE_INDIRECT);
	TEST_EQ(info.type, RMEM_MR_TYPE_INDIRECT);
	TEST_EQ(info.state, RMEM_MR_STATE_FREE);
	TEST_EQ(info.max_entries, RTE_MIN(conf.info.max_mkey_entries, (uint32_t)RTE_DIM(entries)));
	TEST_EQ(info.max_page_list_len, 0);
	fx_mkey(pd, 1);
	TEST_ERR(rmem_pd_dealloc(pd), EBUSY);
	conf_denied(IOVA, 8, mkey->rkey);
}

CONF_TEST(umr, bound_key_is_valid_under_its_tag, CAPA, 0,
		"mlx5dv_wr_post(3): the consumer owns the low byte of the key")
{
	struct rmem_send_wr wr = fx_umr(mkey, entries, 2, IOVA);
	uint32_t before = mkey->rkey;
	struct rmem_mr_info info;

	entries[0] = fx_entry(fx.a.mr, 1, 10);
	entries[1] = fx_entry(fx.a.mr, 1001, 11);
	wr.umr.key_tag = 0x5a;
	wr.umr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(mkey->rkey, rmem_rkey_of_tag(before, 0x5a));
	info = fx_query(mkey);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.rkey, mkey->rkey);
	TEST_EQ(info.lkey, mkey->lkey);
	TEST_EQ(info.access, RMEM_ACCESS_REMOTE_READ);
	TEST_EQ(info.iova, IOVA);
	TEST_EQ(info.length, 10 + 11);
	TEST_EQ(info.nb_extents, 2);
	TEST_EQ(info.page_size, 0);
}

/* Unaligned pieces of two MRs, not in the order of their addresses. */
CONF_TEST(umr, list_of_entries_is_one_range, CAPA, 0, "mlx5dv_wr_post(3): mlx5dv_wr_mr_list")
{
	struct rmem_mr *other =
			fx_mr(fx.a.pd, fx.a.buf + 20000, 3000, FX_ACCESS & conf.info.access);

	entries[0] = fx_entry(fx.a.mr, 5001, 100);
	entries[1] = fx_entry(other, 7, 2001);
	entries[2] = fx_entry(fx.a.mr, 3, 1);
	TEST_STATUS(bind(3, 1), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_UMR);
	/* The entries are the caller's again. */
	memset(entries, 0xff, sizeof(entries));
	fx_fill(fx.b.buf, 2102, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, IOVA, 2102, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 5001, fx.b.buf, 100);
	TEST_MEM(fx.a.buf + 20007, fx.b.buf + 100, 2001);
	TEST_MEM(fx.a.buf + 3, fx.b.buf + 2101, 1);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 5101, 20007 - 5101));
	memset(fx.b.buf, 0, FX_BUF_SIZE);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, IOVA + 99, 3, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 5100, 1);
	TEST_MEM(fx.b.buf + 1, fx.a.buf + 20007, 2);
	conf_denied(IOVA - 1, 2, mkey->rkey);
	conf_denied(IOVA + 2101, 2, mkey->rkey);
	conf_denied(UINT64_MAX - 3, 8, mkey->rkey);
}

/* Two columns of a matrix: 10 rounds of 16 bytes of each row of 100, then 4. */
CONF_TEST(umr, strided_blocks_are_repeated, CAPA, 0, "mlx5dv_wr_post(3): mlx5dv_wr_mr_interleaved")
{
	unsigned int i;

	entries[0] = fx_entry(fx.a.mr, 1000, 16);
	entries[0].skip = 84;
	entries[1] = fx_entry(fx.a.mr, 1050, 4);
	entries[1].skip = 96;
	TEST_STATUS(bind(2, 10), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 200, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, IOVA, 200, mkey->rkey), RMEM_WC_SUCCESS);
	for (i = 0; i < 10; i++) {
		TEST_MEM(fx.a.buf + 1000 + 100 * i, fx.b.buf + 20 * i, 16);
		TEST_ASSERT(fx_is_zero(fx.a.buf + 1016 + 100 * i, 34));
		TEST_MEM(fx.a.buf + 1050 + 100 * i, fx.b.buf + 20 * i + 16, 4);
		TEST_ASSERT(fx_is_zero(fx.a.buf + 1054 + 100 * i, 46));
	}
	conf_denied(IOVA + 199, 2, mkey->rkey);
}

/* Requests of a gather from it and scatter to it. */
CONF_TEST(umr, lkey_is_valid_for_local_requests, CAPA, 0,
		"mlx5dv_wr_post(3): the key is used as any other")
{
	struct rmem_sge sge = {.addr = IOVA, .length = 150};
	struct rmem_send_wr wr;

	entries[0] = fx_entry(fx.a.mr, 100, 50);
	entries[1] = fx_entry(fx.a.mr, 9000, 100);
	TEST_STATUS(bind(2, 1), RMEM_WC_SUCCESS);
	sge.lkey = mkey->lkey;
	fx_fill(fx.a.buf, FX_BUF_SIZE, 1);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 100, 50);
	TEST_MEM(fx.b.buf + 50, fx.a.buf + 9000, 100);
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	wr.opcode = RMEM_WR_RDMA_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 100, fx.b.buf, 50);
	TEST_MEM(fx.a.buf + 9000, fx.b.buf + 50, 100);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 150, 8850));
}

CONF_TEST(umr, messages_use_the_mkey, CAPA, 0, "mlx5dv_wr_post(3): the key is used as any other")
{
	struct rmem_sge from = fx_sge(fx.b.mr, 0, 100), to = {.addr = IOVA, .length = 150};
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	entries[0] = fx_entry(fx.a.mr, 1, 50);
	entries[1] = fx_entry(fx.a.mr, 8000, 100);
	TEST_STATUS(bind(2, 1), RMEM_WC_SUCCESS);
	to.lkey = mkey->lkey;
	fx_fill(fx.b.buf, 100, 1);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_MEM(fx.a.buf + 1, fx.b.buf, 50);
	TEST_MEM(fx.a.buf + 8000, fx.b.buf + 50, 50);
}

/* The indirect key must have the right; to modify, the keys below need LOCAL_WRITE. */
CONF_TEST(umr, rights_are_those_of_the_umr, CAPA, 0, "mlx5dv_wr_post(3): access_flags")
{
	struct rmem_mr *fixed = fx_mr(fx.a.pd, fx.a.buf, 4096, 0);
	struct rmem_send_wr wr;

	entries[0] = fx_entry(fixed, 0, 64);
	wr = fx_umr(mkey, entries, 1, IOVA);
	wr.umr.access &= conf.info.access;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.umr.access = RMEM_ACCESS_LOCAL_WRITE;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.umr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, IOVA, 64, mkey->rkey), RMEM_WC_SUCCESS);
	conf_denied(IOVA, 64, mkey->rkey);
}

CONF_TEST(umr, invalidated_mkey_grants_no_access, CAPA, 0,
		"Optimized Memory Access: UMR, invalidated by LOCAL_INV")
{
	struct rmem_send_wr wr;
	uint32_t rkey;

	entries[0] = fx_entry(fx.a.mr, 0, 64);
	TEST_STATUS(bind(1, 1), RMEM_WC_SUCCESS);
	rkey = mkey->rkey;
	entries[0] = fx_entry(fx.a.mr, 5000, 64);
	wr = fx_umr(mkey, entries, 1, 0);
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	conf_granted(IOVA, 64, rkey, fx.a.buf);
	entries[0] = fx_entry(fx.a.mr, 0, 64);
	wr = fx_inv(rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	conf_denied(IOVA, 8, rkey);
	conf_refused(CONF_INVALIDATE, fx.a.qp, &wr);
	TEST_STATUS(bind(1, 1), RMEM_WC_SUCCESS);
	TEST_ASSERT(mkey->rkey != rkey);
	conf_denied(IOVA, 8, rkey);
	conf_granted(IOVA, 64, mkey->rkey, fx.a.buf);
	rkey = mkey->rkey;
	TEST_OK(fx_release(mkey));
	conf_denied(IOVA, 8, rkey);
}

/* An access through a released key fails, and copies nothing. */
CONF_TEST(umr, released_key_of_an_entry_refuses_its_range, CAPA, 0,
		"IBTA 10.6.3: each access needs valid keys")
{
	struct rmem_mr *below = fx_mr(fx.a.pd, fx.a.buf + 4096, 4096, FX_ACCESS & conf.info.access);

	entries[0] = fx_entry(fx.a.mr, 0, 64);
	entries[1] = fx_entry(below, 0, 64);
	TEST_STATUS(bind(2, 1), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(below));
	conf_denied(IOVA, 128, mkey->rkey);
	conf_denied(IOVA + 64, 1, mkey->rkey);
	conf_granted(IOVA, 64, mkey->rkey, fx.a.buf);
}

CONF_TEST(umr, mkeys_are_nested, CAPA, 0, "Optimized Memory Access: UMR, keys over keys")
{
	struct rmem_mr *upper = fx_mkey(fx.a.pd, 2);
	struct rmem_mkey_entry both[2];
	struct rmem_send_wr wr;

	TEST_SKIP_IF(conf.info.max_mkey_depth < 2, "the device has no keys over indirect keys");
	entries[0] = fx_entry(fx.a.mr, 100, 10);
	entries[0].skip = 90;
	TEST_STATUS(bind(1, 8), RMEM_WC_SUCCESS);
	both[0] = (struct rmem_mkey_entry){.addr = IOVA + 5, .length = 20, .lkey = mkey->lkey};
	both[1] = fx_entry(fx.a.mr, 30000, 7);
	wr = fx_umr(upper, both, 2, 0);
	wr.umr.access &= conf.info.access;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 27, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, 0, 27, upper->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 105, fx.b.buf, 5);
	TEST_MEM(fx.a.buf + 200, fx.b.buf + 5, 10);
	TEST_MEM(fx.a.buf + 300, fx.b.buf + 15, 5);
	TEST_MEM(fx.a.buf + 30000, fx.b.buf + 20, 7);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 210, 90));
	TEST_STATUS(fx_invalidate(mkey->rkey), RMEM_WC_SUCCESS);
	conf_denied(0, 20, upper->rkey);
}

/* It is still FREE, and its key is not valid. */
static void
refused(const struct rmem_send_wr *wr)
{
	conf_refused(CONF_BIND, fx.a.qp, wr);
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_FREE);
	conf_denied(wr->umr.iova, 1, mkey->rkey);
}

/* Sums and products that overflow. */
CONF_TEST(umr, bad_entries_are_refused, CAPA, 0,
		"mlx5dv_wr_post(3): requirements of the blocks of a UMR")
{
	const uint64_t at = fx_addr(fx.a.buf);
	const struct {
		struct rmem_mkey_entry entry; /* the lkey is put in */
		uint32_t repeat_count;
	} rows[] = {
			{{.addr = at, .length = 0}, 1},
			{{.addr = at, .length = FX_BUF_SIZE + 1}, 1},
			{{.addr = at, .length = 64}, 0},
			{{.addr = at, .length = 64, .reserved = 1}, 1},
			{{.addr = UINT64_MAX - 5, .length = 40}, 1},
			{{.addr = at, .length = UINT64_MAX - 50}, 1},
			{{.addr = at, .length = 8, .skip = UINT64_MAX - 8}, 2},
			{{.addr = at, .length = 8, .skip = UINT64_MAX - 7}, 2},
			{{.addr = at, .length = 8, .skip = (UINT64_C(1) << 63) - 8}, 3},
			{{.addr = at, .length = 8, .skip = UINT64_C(1) << 40}, UINT32_MAX},
			{{.addr = at + FX_BUF_SIZE - 39, .length = 40}, 1},
			{{.addr = at - 1, .length = 40}, 1},
			{{.addr = at, .length = 16, .skip = FX_BUF_SIZE / 4}, 5},
	};
	struct rmem_send_wr wr = fx_umr(mkey, entries, 1, IOVA);
	unsigned int i;

	wr.umr.access &= conf.info.access;
	for (i = 0; i < 2 * RTE_DIM(rows); i++) {
		entries[0] = fx_entry(fx.a.mr, 0, 8);
		entries[i % 2] = rows[i / 2].entry;
		entries[i % 2].lkey = fx.a.mr->lkey;
		wr.umr.nb_entries = 1 + i % 2;
		wr.umr.repeat_count = rows[i / 2].repeat_count;
		refused(&wr);
	}
	entries[0] = fx_entry(fx.a.mr, 0, 16);
	entries[0].skip = FX_BUF_SIZE / 4 - 20;
	wr.umr.nb_entries = 1;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

CONF_TEST(umr, bad_requests_are_refused, CAPA, 0, "mlx5dv_wr_post(3): requirements of a UMR")
{
	const uint32_t rights[] = {RMEM_ACCESS_REMOTE_WRITE, RMEM_ACCESS_REMOTE_ATOMIC,
			FX_ACCESS | UINT32_C(1) << 15, FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR};
	struct rmem_mkey_entry many[RTE_DIM(entries) + 1];
	const struct rmem_send_wr good = fx_umr(mkey, entries, 1, IOVA);
	struct rmem_send_wr wr = good;
	unsigned int i;

	entries[0] = fx_entry(fx.a.mr, 0, 64);
	wr.umr.nb_entries = 0;
	refused(&wr);
	for (i = 0; i < RTE_DIM(many); i++)
		many[i] = fx_entry(fx.a.mr, i, 1);
	wr.umr.entries = many;
	wr.umr.nb_entries = fx_query(mkey).max_entries + 1;
	refused(&wr);
	wr.umr.nb_entries = UINT32_MAX;
	refused(&wr);
	wr = good;
	for (i = 0; i < RTE_DIM(rights); i++) {
		wr.umr.access = rights[i];
		refused(&wr);
	}
	wr = good;
	wr.umr.access &= conf.info.access;
	wr.umr.iova = UINT64_MAX - 62;
	refused(&wr);
	wr.umr.mr = NULL;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.umr.mr = (struct rmem_mr *)fx.a.pd;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.umr.mr = mkey;
	wr.umr.entries = NULL;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.umr.entries = entries;
	wr.flags = RMEM_SEND_INLINE;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.flags = 0;
	wr.umr.iova--;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	conf_granted(wr.umr.iova, 64, mkey->rkey, fx.a.buf);
}

CONF_TEST(umr, bad_keys_of_entries_are_refused, CAPA, 0,
		"IBTA 10.6.3: the L_Key of each entry must be valid for its range")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *other = fx_mr(pd, fx.a.buf, 64, FX_ACCESS & conf.info.access);
	struct rmem_mr *unbound = fx_mkey(fx.a.pd, 1);
	struct rmem_send_wr wr = fx_umr(mkey, entries, 2, IOVA);
	uint32_t bad[9], tag = (uint8_t)(mkey->rkey + 1);
	unsigned int i;

	bad[0] = 0;
	bad[1] = UINT32_MAX;
	bad[2] = fx.a.mr->lkey ^ 0x5500;
	bad[3] = other->lkey;
	bad[4] = unbound->lkey;
	bad[5] = mkey->lkey; /* of itself, current, */
	bad[6] = mkey->lkey ^ 0xff;
	bad[7] = rmem_rkey_of_tag(mkey->rkey, (uint8_t)tag) ^ 0xff; /* and after the binding */
	bad[8] = fx.a.mr->rkey;
	entries[0] = fx_entry(fx.a.mr, 0, 64);
	wr.umr.access &= conf.info.access;
	for (i = 0; i < RTE_DIM(bad) - (fx.a.mr->rkey == fx.a.mr->lkey); i++) {
		entries[1] = fx_entry(fx.a.mr, 0, 64);
		entries[1].lkey = bad[i];
		wr.umr.key_tag = i == 7 ? (uint8_t)tag : rmem_rkey_next_tag(mkey->rkey);
		refused(&wr);
	}
}

CONF_TEST(umr, umr_of_another_kind_of_mr_is_refused, CAPA | RMEM_DEV_CAPA_FAST_REG, 0,
		"mlx5dv_wr_post(3): of an indirect key, of the PD")
{
	struct rmem_mr *fast = fx_fast_mr(fx.a.pd, 1);
	struct rmem_fast_reg_page_list *list = fx_page_list(conf.dev, 1);
	struct rmem_send_wr wr = fx_umr(fx.b.mr, entries, 1, IOVA);

	entries[0] = fx_entry(fx.a.mr, 0, 64);
	wr.umr.access &= conf.info.access;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	wr.umr.mr = fast;
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	TEST_EQ(fx_mr_state(fast), RMEM_MR_STATE_FREE);
	wr.umr.mr = fx_mkey(fx_pd(conf.dev), 1);
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	fx_list_pages(list, fx.a.buf, 1);
	wr = fx_reg(mkey, list, 1, 0, FX_PAGE);
	conf_refused(CONF_BIND, fx.a.qp, &wr);
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_FREE);
}

TEST_SUITE(umr, setup, conf_teardown);
