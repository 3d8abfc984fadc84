/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Device memory: copies, and MRs of parts of it, which requests address by offsets. */

#include <string.h>

#include "conf.h"

#define CAPA  RMEM_DEV_CAPA_DM
#define ALLOC "ibv_alloc_dm(3)"
#define REG   "ibv_reg_dm_mr(3)"

#define SIZE  1024
#define PART  256
#define BASIC (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ)

static struct rmem_dm *dm;

static void
setup(void)
{
	const struct rmem_dm_conf conf_dm = {.length = SIZE};

	conf_setup();
	dm = NULL;
	if ((conf.info.capa & CAPA) == 0)
		return;
	TEST_OK(rmem_dm_alloc(conf.dev, &conf_dm, &dm));
	fx_track(dm);
}

static struct rmem_mr *
reg(struct rmem_pd *pd, uint64_t offset, size_t length, uint32_t access)
{
	const struct rmem_mr_ext ext = {.dm = dm, .dm_offset = offset};
	const struct rmem_mr_attr attr = {
			.length = length, .access = access | RMEM_ACCESS_ZERO_BASED, .ext = &ext};
	struct rmem_mr *mr = NULL;

	return fx_reg_attr(pd, &attr, &mr) == 0 ? mr : NULL;
}

CONF_TEST(dm, bytes_are_those_copied_to_it, CAPA, 0, "ibv_memcpy_to_dm(3)")
{
	uint8_t out[64];

	fx_fill(fx.a.buf, 64, 1);
	TEST_OK(rmem_dm_copy_to(dm, 128, fx.a.buf, 64));
	fx_fill(fx.b.buf, 64, 2);
	TEST_OK(rmem_dm_copy_to(dm, 192, fx.b.buf, 64));
	TEST_OK(rmem_dm_copy_from(dm, 128, out, 64));
	TEST_MEM(out, fx.a.buf, 64);
	TEST_OK(rmem_dm_copy_from(dm, 192, out, 64));
	TEST_MEM(out, fx.b.buf, 64);
}

CONF_TEST(dm, copy_beyond_its_end_is_refused, CAPA, 0, "ibv_memcpy_to_dm(3)")
{
	uint64_t word = 0;

	TEST_ERR(rmem_dm_copy_to(dm, SIZE - 4, &word, 8), EINVAL);
	TEST_ERR(rmem_dm_copy_from(dm, SIZE, &word, 4), EINVAL);
}

CONF_TEST(dm, mr_has_no_address_and_begins_at_0, CAPA, 0, REG)
{
	struct rmem_mr *mr = reg(fx.a.pd, PART, PART, BASIC);
	struct rmem_mr_info info;

	TEST_ASSERT(mr != NULL);
	TEST_ASSERT(mr->addr == NULL);
	TEST_EQ(mr->type, RMEM_MR_TYPE_DM);
	TEST_EQ(mr->length, PART);
	info = fx_query(mr);
	TEST_EQ(info.type, RMEM_MR_TYPE_DM);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.iova, 0);
	TEST_EQ(info.length, PART);
	TEST_ASSERT((info.access & RMEM_ACCESS_ZERO_BASED) != 0);
}

CONF_TEST(dm, mr_without_zero_based_is_refused, CAPA, 0, REG)
{
	const struct rmem_mr_ext ext = {.dm = dm};
	const struct rmem_mr_attr attr = {.length = PART, .access = BASIC, .ext = &ext};
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
}

CONF_TEST(dm, mr_beyond_its_end_is_refused, CAPA, 0, REG)
{
	TEST_ASSERT(reg(fx.a.pd, SIZE - PART + 1, PART, BASIC) == NULL);
	TEST_ASSERT(reg(fx.a.pd, UINT64_MAX, PART, BASIC) == NULL);
	TEST_ASSERT(reg(fx.a.pd, SIZE - PART, PART, BASIC) != NULL);
}

/* IBTA has no device memory: the kernel's rule for objects in use. */
CONF_TEST(dm, with_an_mr_on_it_is_ebusy, CAPA, 0, ALLOC)
{
	struct rmem_mr *mr = reg(fx.a.pd, 0, PART, BASIC);

	TEST_ASSERT(mr != NULL);
	TEST_ERR(rmem_dm_free(dm), EBUSY);
	TEST_OK(fx_release(mr));
	TEST_OK(fx_release(dm));
}

CONF_TEST(dm, write_of_a_peer_arrives_at_its_offset, CAPA, 0, REG)
{
	struct rmem_mr *mr = reg(fx.a.pd, PART, PART, BASIC);
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr;
	uint8_t out[64];

	TEST_ASSERT(mr != NULL);
	fx_fill(fx.b.buf, 64, 3);
	wr = conf_request(RMEM_WR_RDMA_WRITE, &sge, 32, mr->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dm_copy_from(dm, PART + 32, out, 64));
	TEST_MEM(out, fx.b.buf, 64);
	wr.opcode = RMEM_WR_RDMA_READ;
	memset(fx.b.buf, 0, 64);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, out, 64);
}

/* Its lkey is for offsets, too. */
CONF_TEST(dm, is_source_and_target_of_local_requests, CAPA, 0, REG)
{
	struct rmem_mr *mr = reg(fx.b.pd, PART, PART, BASIC);
	struct rmem_sge sge = {.addr = 16, .length = 64};
	struct rmem_send_wr wr;
	uint8_t bytes[64];

	TEST_ASSERT(mr != NULL);
	sge.lkey = mr->lkey;
	fx_fill(bytes, 64, 4);
	TEST_OK(rmem_dm_copy_to(dm, PART + 16, bytes, 64));
	memset(fx.a.buf, 0, 64);
	wr = conf_request(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), fx.a.mr->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, bytes, 64);
	fx_fill(fx.a.buf, 64, 5);
	wr.opcode = RMEM_WR_RDMA_READ;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dm_copy_from(dm, PART + 16, bytes, 64));
	TEST_MEM(bytes, fx.a.buf, 64);
}

CONF_TEST(dm, message_is_received_into_it, CAPA, 0, REG)
{
	struct rmem_mr *mr = reg(fx.a.pd, 0, SIZE, BASIC);
	struct rmem_sge recv = {.addr = 64, .length = 512}, send = fx_sge(fx.b.mr, 0, 512);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &send, 1);
	uint8_t out[512];

	TEST_ASSERT(mr != NULL);
	recv.lkey = mr->lkey;
	fx_fill(fx.b.buf, 512, 6);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &recv, 1), 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_OK(rmem_dm_copy_from(dm, 64, out, 512));
	TEST_MEM(out, fx.b.buf, 512);
}

CONF_TEST(dm, access_beyond_the_mr_is_refused, CAPA, 0, "IBTA 9.4.1.1")
{
	struct rmem_mr *mr = reg(fx.a.pd, 0, PART, BASIC);

	TEST_ASSERT(mr != NULL);
	conf_denied(PART - 4, 8, mr->rkey);
	conf_denied(PART, 8, mr->rkey);
	conf_denied(fx_addr(fx.a.buf), 8, mr->rkey);
}

CONF_TEST(dm, rights_of_the_mr_are_checked, CAPA, 0, "IBTA 9.4.1.1")
{
	struct rmem_mr *mr = reg(fx.a.pd, 0, PART, RMEM_ACCESS_LOCAL_WRITE);

	TEST_ASSERT(mr != NULL);
	conf_denied(0, 8, mr->rkey);
}

CONF_TEST(dm, key_is_not_valid_after_dereg, CAPA, 0, "IBTA 11.2.8.6")
{
	struct rmem_mr *mr = reg(fx.a.pd, 0, PART, BASIC);
	uint32_t rkey;

	TEST_ASSERT(mr != NULL);
	rkey = mr->rkey;
	TEST_OK(fx_release(mr));
	conf_denied_to_all(0, rkey);
}

CONF_TEST(dm, atomics_of_peers_change_it, CAPA | RMEM_DEV_CAPA_ATOMIC, RMEM_ACCESS_REMOTE_ATOMIC,
		REG)
{
	struct rmem_mr *mr = reg(fx.a.pd, 64, 64, BASIC | RMEM_ACCESS_REMOTE_ATOMIC);
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	uint64_t word = 41;

	TEST_ASSERT(mr != NULL);
	TEST_OK(rmem_dm_copy_to(dm, 72, &word, sizeof(word)));
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, 8, mr->rkey, 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dm_copy_from(dm, 72, &word, sizeof(word)));
	TEST_EQ(word, 42);
	memcpy(&word, fx.b.buf, sizeof(word));
	TEST_EQ(word, 41);
}

TEST_SUITE(dm, setup, conf_teardown);
