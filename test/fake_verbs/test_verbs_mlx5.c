/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * REG_MR and UMR of a verbs device, over the fakes of mlx5dv: the calls of libmlx5 and their
 * arguments, keys, and completions.
 */

#include <string.h>

#include "setup_mlx5.h"

TEST(verbs_mlx5, umr_is_configured_with_access_and_list)
{
	struct rmem_send_wr wr = vx_umr(0x21);
	uint32_t rkey = rmem_rkey_of_tag(vx.mkey->rkey, 0x21);
	const struct fake_umr *umr = &fake_mlx5.umr;
	struct rmem_wc wc;

	fake.nb_seen = 0;
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	TEST_EQ(fake.nb_seen, 1);
	TEST_EQ(fake.seen[0].opcode, IBV_WR_DRIVER1);
	TEST_EQ(strcmp(umr->calls, "al"), 0);
	TEST_EQ(umr->key, rkey);
	TEST_EQ(umr->access, wr.umr.access);
	TEST_EQ(umr->nb, 2);
	TEST_EQ(umr->entry[0].addr, vx.entries[0].addr);
	TEST_EQ(umr->entry[0].bytes_count, 8);
	TEST_EQ(umr->entry[0].lkey, vt.mr->lkey);
	TEST_EQ(umr->entry[1].addr, vx.entries[1].addr);
	TEST_EQ(vx.mkey->rkey, rkey);
	TEST_EQ(vx.mkey->lkey, rkey);
	TEST_EQ(rmem_poll_cq(vt.cq_a, &wc, 1), 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.opcode, RMEM_WC_UMR);
	TEST_EQ(wc.wr_id, wr.wr_id);
}

TEST(verbs_mlx5, umr_of_rounds_is_configured_with_blocks)
{
	struct rmem_send_wr wr = vx_umr(0x22);
	const struct fake_umr *umr = &fake_mlx5.umr;

	vx_fill();
	vx.entries[0] = vx_entry(HALF, 4, 12);
	vx.entries[1] = vx_entry(HALF + 1000, 8, 0);
	wr.umr.repeat_count = 3;
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(strcmp(umr->calls, "ai"), 0);
	TEST_EQ(umr->repeat_count, 3);
	TEST_EQ(umr->nb, 2);
	TEST_EQ(umr->entry[0].bytes_count, 4);
	TEST_EQ(umr->entry[0].bytes_skip, 12);
	TEST_STATUS(vx_write(vx.mkey->rkey, 0, 36), RMEM_WC_SUCCESS);
	TEST_MEM(vt.buf + HALF, vt.buf, 4);
	TEST_EQ(vt.buf[HALF + 4], 0);
	TEST_MEM(vt.buf + HALF + 16, vt.buf + 12, 4);
	TEST_MEM(vt.buf + HALF + 1000, vt.buf + 4, 8);
	TEST_MEM(vt.buf + HALF + 1008, vt.buf + 16, 8);
	TEST_MEM(vt.buf + HALF + 32, vt.buf + 24, 4);
}

/* The ends of each piece, by the peer and by a local SGE. */
TEST(verbs_mlx5, bound_list_is_reached_through_its_keys)
{
	struct rmem_send_wr wr = vx_umr(0x23), send;
	struct rmem_sge sge;

	vx_fill();
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_STATUS(vx_write(vx.mkey->rkey, 0, 16), RMEM_WC_SUCCESS);
	TEST_MEM(vt.buf + HALF, vt.buf, 8);
	TEST_MEM(vt.buf + HALF + 100, vt.buf + 8, 8);
	TEST_EQ(vt.buf[HALF + 8], 0);
	sge = vt_sge(0, 12);
	sge.lkey = vx.mkey->lkey;
	sge.addr = 4;
	send = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	send.rdma.remote_addr = (uintptr_t)vt.buf + HALF + 200;
	TEST_STATUS(vt_run(&send), RMEM_WC_SUCCESS);
	TEST_MEM(vt.buf + HALF + 200, vt.buf + 4, 12);
	TEST_STATUS(vx_write(vx.mkey->rkey, 9, 8), RMEM_WC_REM_ACCESS_ERR);
}

TEST(verbs_mlx5, reg_mr_is_a_list_of_its_pages)
{
	struct rmem_send_wr wr = vx_reg(0x24);
	const struct fake_umr *umr = &fake_mlx5.umr;
	struct rmem_wc wc;

	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	TEST_EQ(strcmp(umr->calls, "al"), 0);
	TEST_EQ(umr->nb, 2);
	TEST_EQ(umr->entry[0].addr, (uintptr_t)vt.buf + PAGE - 100);
	TEST_EQ(umr->entry[0].bytes_count, 100);
	TEST_EQ(umr->entry[1].addr, (uintptr_t)vt.buf + PAGE);
	TEST_EQ(umr->entry[1].bytes_count, 50);
	TEST_ASSERT(umr->entry[0].lkey == vt.mr->lkey || umr->entry[0].lkey == vt.mw_mr->lkey);
	TEST_EQ(vx.fast->rkey, rmem_rkey_of_tag(vx.fast->rkey, 0x24));
	TEST_EQ(rmem_poll_cq(vt.cq_a, &wc, 1), 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.opcode, RMEM_WC_REG_MR);
	vx_fill();
	TEST_STATUS(vx_write(vx.fast->rkey, 100, 50), RMEM_WC_SUCCESS);
	TEST_MEM(vt.buf + PAGE, vt.buf, 50);
	TEST_STATUS(vx_write(vx.fast->rkey, 101, 50), RMEM_WC_REM_ACCESS_ERR);
}

/* The lkey and the address are those of the MR that covers the page. */
TEST(verbs_mlx5, reg_mr_uses_the_mrs_of_its_pages)
{
	struct rmem_send_wr wr = vx_reg(0x25);
	struct rmem_mr *mr, *read_only;

	TEST_OK(rmem_mr_dereg(vt.mw_mr));
	vt.mw_mr = NULL;
	TEST_OK(rmem_mw_dealloc(vt.one));
	TEST_OK(rmem_mw_dealloc(vt.two));
	vt.one = vt.two = NULL;
	TEST_OK(rmem_mr_dereg(vt.mr));
	vt.mr = NULL;
	TEST_ERR(vt_run(&wr), EINVAL);
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf + PAGE, PAGE, 0x70001000, VT_ACCESS, &vt.mr));
	TEST_ERR(vt_run(&wr), EINVAL); /* the first page is missing */
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0, RMEM_ACCESS_REMOTE_READ, &read_only));
	TEST_ERR(vt_run(&wr), EINVAL); /* not LOCAL_WRITE */
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, PAGE, 0, VT_ACCESS, &mr));
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fake_mlx5.umr.entry[0].lkey, mr->lkey);
	TEST_EQ(fake_mlx5.umr.entry[1].lkey, vt.mr->lkey);
	TEST_EQ(fake_mlx5.umr.entry[1].addr, 0x70001000);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_ERR(vt_run(&wr), EINVAL);
	wr.reg_mr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fake_mlx5.umr.entry[0].lkey, read_only->lkey);
	TEST_OK(rmem_mr_dereg(read_only));
}

/* Many MRs of one page each, and one over all of them. */
TEST(verbs_mlx5, pages_are_found_among_many_mrs)
{
	struct rmem_send_wr wr = vx_reg(0x26);
	struct rmem_mr *mrs[24];
	unsigned int i;

	wr.reg_mr.first_byte_offset = 0;
	wr.reg_mr.length = PAGE + 1;
	for (i = 0; i < RTE_DIM(mrs); i++)
		TEST_OK(rmem_mr_reg(vt.pd, vt.buf + i % 2 * PAGE + 64 * (i / 2), 64, 0, VT_ACCESS,
				&mrs[i]));
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_ASSERT(fake_mlx5.umr.entry[0].lkey == vt.mr->lkey ||
			fake_mlx5.umr.entry[0].lkey == vt.mw_mr->lkey);
	for (i = 0; i < RTE_DIM(mrs); i++)
		TEST_OK(rmem_mr_dereg(mrs[(i * 7 + 3) % RTE_DIM(mrs)]));
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
}

/* An MR that was changed in place is found at its new memory, and a moved one in its new PD. */
TEST(verbs_mlx5, reg_mr_finds_changed_mrs)
{
	struct rmem_send_wr wr = vx_reg(0x27);
	enum rmem_rereg_result result;
	struct rmem_pd *pd;
	struct rmem_mr *mr;

	TEST_OK(rmem_pd_alloc(vt.dev, &pd));
	TEST_OK(rmem_mr_reg(pd, vt.buf, PAGE, 0, VT_ACCESS, &mr));
	wr.reg_mr.page_list_len = 1;
	wr.reg_mr.length = 100;
	vx.list->page_list[0] = (uintptr_t)&vx.entries & ~(uintptr_t)(PAGE - 1);
	wr.reg_mr.first_byte_offset = (uint32_t)((uintptr_t)&vx.entries & (PAGE - 1));
	wr.reg_mr.length = 8;
	TEST_ERR(vt_run(&wr), EINVAL);
	TEST_OK(rmem_mr_rereg(
			mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, &vx.entries, 64, 0, &result));
	TEST_ERR(vt_run(&wr), EINVAL);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_PD, vt.pd, NULL, 0, 0, &result));
	TEST_EQ(result, RMEM_REREG_OK);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fake_mlx5.umr.entry[0].lkey, mr->lkey);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, &result));
	TEST_ERR(vt_run(&wr), EINVAL);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_OK(rmem_pd_dealloc(pd));
}

TEST(verbs_mlx5, requests_of_a_burst_keep_their_order)
{
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr[6] = {vx_umr(5), vt_wr(RMEM_WR_RDMA_WRITE, &sge), vx_reg(6),
			vt_bind_wr(vt.two), vt_inv_wr(rmem_rkey_of_tag(vx.mkey->rkey, 5)),
			vx_umr(7)};
	const int opcodes[] = {RMEM_WC_UMR, RMEM_WC_RDMA_WRITE, RMEM_WC_REG_MR, RMEM_WC_BIND_MW,
			RMEM_WC_LOCAL_INV, RMEM_WC_UMR};
	struct rmem_wc wc[6];
	unsigned int i;

	wr[1].rdma.rkey = vt.mr->rkey;
	fake.nb_seen = 0;
	TEST_EQ(rmem_post_send(vt.a, wr, 6), 6);
	TEST_EQ(fake.nb_seen, 6);
	TEST_EQ(fake.seen[0].opcode, IBV_WR_DRIVER1);
	TEST_EQ(fake.seen[0].key & 0xff, 5);
	TEST_EQ(fake.seen[1].opcode, IBV_WR_RDMA_WRITE);
	TEST_EQ(fake.seen[2].opcode, IBV_WR_DRIVER1);
	TEST_EQ(fake.seen[2].key & 0xff, 6);
	TEST_EQ(fake.seen[3].opcode, IBV_WR_BIND_MW);
	TEST_EQ(fake.seen[4].opcode, IBV_WR_LOCAL_INV);
	TEST_EQ(fake.seen[5].key & 0xff, 7);
	TEST_EQ(rmem_poll_cq(vt.cq_a, wc, 6), 6);
	for (i = 0; i < 6; i++) {
		TEST_EQ(wc[i].status, RMEM_WC_SUCCESS);
		TEST_EQ(wc[i].opcode, opcodes[i]);
	}
	TEST_STATUS(vx_write(vx.mkey->rkey, 0, 16), RMEM_WC_SUCCESS);
}

TEST(verbs_mlx5, invalidated_key_is_refused_and_bound_again)
{
	struct rmem_send_wr wr;
	uint32_t old;

	wr = vx_umr(11);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	old = vx.mkey->rkey;
	TEST_STATUS(vx_write(old, 0, 16), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_inv(old), RMEM_WC_SUCCESS);
	TEST_STATUS(vx_write(old, 0, 16), RMEM_WC_REM_ACCESS_ERR);
	vt_reconnect();
	wr = vx_umr(12);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_STATUS(vx_write(vx.mkey->rkey, 0, 16), RMEM_WC_SUCCESS);
	TEST_STATUS(vx_write(old, 0, 16), RMEM_WC_REM_ACCESS_ERR);
}

/* Twice, of a fast-register MR: the second is refused by the device. */
TEST(verbs_mlx5, invalidation_of_a_free_key_is_that_of_the_device)
{
	struct rmem_send_wr wr = vx_reg(13);

	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_inv(vx.fast->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_inv(vx.fast->rkey), RMEM_WC_LOC_QP_OP_ERR);
}

TEST(verbs_mlx5, peer_invalidates_with_a_send)
{
	struct rmem_send_wr wr = vx_umr(14), send = vt_wr(RMEM_WR_SEND_WITH_INV, NULL);
	struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_wc wc;

	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	send = vt_send_inv_wr(vx.mkey->rkey);
	TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
	TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_ASSERT((wc.flags & RMEM_WC_WITH_INV) != 0);
	TEST_EQ(wc.invalidated_rkey, vx.mkey->rkey);
	TEST_STATUS(vx_write(vx.mkey->rkey, 0, 16), RMEM_WC_REM_ACCESS_ERR);
}

/* Signaled or not, between bindings of windows; failed and flushed ones are not counted. */
TEST(verbs_mlx5, successful_requests_are_counted)
{
	struct rmem_send_wr wr[7] = {vx_umr(15), vx_reg(16), vt_bind_wr(vt.two), vx_umr(17),
			vx_reg(18), vt_inv_wr(0), vx_umr(19)};
	struct rmem_dev_stats stats;
	struct rmem_wc wc;
	unsigned int i;

	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
	for (i = 0; i < 7; i++)
		wr[i].flags = 0;
	TEST_EQ(rmem_post_send(vt.a, wr, 7), 7); /* the sixth fails, the last is flushed */
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_LOC_QP_OP_ERR);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(wc.opcode, 0);
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.umrs, 2);
	TEST_EQ(stats.reg_mrs, 2);
	TEST_EQ(stats.mw_binds, 2);
	TEST_EQ(stats.invalidates, 0);
	TEST_EQ(stats.bytes, 0);
	TEST_EQ(stats.flushed, 1);
	TEST_OK(rmem_dev_stats_reset(vt.dev));
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.umrs, 0);
	TEST_EQ(stats.reg_mrs, 0);
}

/* Often enough that the rings of the QP wrap, with requests outstanding. */
TEST(verbs_mlx5, requests_are_posted_many_times)
{
	struct rmem_dev_stats stats;
	struct rmem_wc wc[3];
	unsigned int i;

	for (i = 0; i < 5 * VT_DEPTH; i++) {
		uint8_t tag = (uint8_t)(i + 1);
		struct rmem_send_wr wr[3] = {vx_umr(tag), vx_reg(tag),
				vt_inv_wr(rmem_rkey_of_tag(vx.mkey->rkey, tag))};

		wr[0].flags = i % 3 == 0 ? RMEM_SEND_SIGNALED : 0;
		TEST_EQ(rmem_post_send(vt.a, wr, 3), 3);
		TEST_EQ(rmem_poll_cq(vt.cq_a, wc, 3), i % 3 == 0 ? 3 : 2);
	}
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.umrs, 5 * VT_DEPTH);
	TEST_EQ(stats.reg_mrs, 5 * VT_DEPTH);
	TEST_EQ(stats.invalidates, 5 * VT_DEPTH);
	TEST_EQ(stats.mw_binds, 0);
}

/* A full queue refuses them as any other, and a reset drops them. */
TEST(verbs_mlx5, reset_drops_outstanding_requests)
{
	struct rmem_send_wr wr = vx_umr(1);
	struct rmem_dev_stats stats;
	struct rmem_wc wc;
	unsigned int i;

	fake.is_held = true;
	for (i = 0; i < VT_DEPTH; i++) {
		wr = vx_umr((uint8_t)i);
		TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	}
	TEST_ERR(rmem_post_send(vt.a, &wr, 1), ENOSPC);
	fake.is_held = false;
	vt_reconnect();
	wr = vx_umr(2);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_poll_cq(vt.cq_a, &wc, 1), 0);
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.umrs, 1);
}

/* The MR may be released before the completions of its requests are polled. */
TEST(verbs_mlx5, mkey_is_released_with_unpolled_completions)
{
	struct rmem_send_wr wr = vx_umr(1);
	struct rmem_wc wc;

	TEST_OK(rmem_mkey_alloc(vt.pd, 2, &wr.umr.mr));
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	TEST_OK(rmem_mr_dereg(wr.umr.mr));
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_EQ(wc.opcode, RMEM_WC_UMR);
}

TEST(verbs_mlx5, query_returns_the_binding_posted_last)
{
	struct rmem_send_wr wr = vx_umr(0x33);
	struct rmem_mr_info info;

	TEST_OK(rmem_mr_query(vx.mkey, &info));
	TEST_EQ(info.state, RMEM_MR_STATE_FREE);
	TEST_EQ(info.max_entries, 4);
	wr.umr.repeat_count = 3;
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mr_query(vx.mkey, &info));
	TEST_EQ(info.type, RMEM_MR_TYPE_INDIRECT);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.access, wr.umr.access);
	TEST_EQ(info.length, 48);
	TEST_EQ(info.iova, 0);
	TEST_EQ(info.rkey, vx.mkey->rkey);
	wr = vx_reg(0x34);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mr_query(vx.fast, &info));
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.length, 150);
	TEST_EQ(info.max_page_list_len, 4);
}

TEST(verbs_mlx5, dump_reports_the_mkeys)
{
	char dump[4096] = "";
	FILE *f = fmemopen(dump, sizeof(dump), "w");

	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_dev_dump(vt.dev, f));
	fclose(f);
	TEST_TEXT(dump, "  REG_MR and UMR by mlx5dv, ");
}

TEST_SUITE(verbs_mlx5, vx_setup, vx_teardown);
