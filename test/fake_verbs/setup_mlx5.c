/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fixture of cases over the fakes of mlx5dv; see setup_mlx5.h. */

#include <string.h>

#include "setup_mlx5.h"

struct verbs_mlx5_test vx;

void
vx_setup(void)
{
	fake_reset();
	fake_mlx5_reset();
	TEST_OK(vt_open_mw());
	TEST_OK(rmem_mkey_alloc(vt.pd, 4, &vx.mkey));
	TEST_OK(rmem_fast_reg_mr_alloc(vt.pd, 4, &vx.fast));
	TEST_OK(rmem_fast_reg_page_list_alloc(vt.dev, 4, &vx.list));
	fake_mlx5.nb_umrs = 0;
}

void
vx_teardown(void)
{
	TEST_OK(rmem_mr_dereg(vx.mkey));
	TEST_OK(rmem_mr_dereg(vx.fast));
	TEST_OK(rmem_fast_reg_page_list_free(vx.list));
	vt_teardown();
}

struct rmem_mkey_entry
vx_entry(uint32_t offset, uint64_t length, uint64_t skip)
{
	return (struct rmem_mkey_entry){.addr = (uintptr_t)vt.buf + offset,
			.length = length,
			.skip = skip,
			.lkey = vt.mr->lkey};
}

struct rmem_send_wr
vx_umr(uint8_t tag)
{
	struct rmem_send_wr wr = vt_wr(RMEM_WR_UMR, NULL);

	vx.entries[0] = vx_entry(HALF, 8, 0);
	vx.entries[1] = vx_entry(HALF + 100, 8, 0);
	wr.num_sge = 0;
	wr.umr.mr = vx.mkey;
	wr.umr.entries = vx.entries;
	wr.umr.iova = 0;
	wr.umr.nb_entries = 2;
	wr.umr.repeat_count = 1;
	wr.umr.access = MODIFY | RMEM_ACCESS_REMOTE_READ;
	wr.umr.key_tag = tag;
	return wr;
}

struct rmem_send_wr
vx_reg(uint8_t tag)
{
	struct rmem_send_wr wr = vt_wr(RMEM_WR_REG_MR, NULL);

	vx.list->page_list[0] = (uintptr_t)vt.buf;
	vx.list->page_list[1] = (uintptr_t)vt.buf + PAGE;
	wr.num_sge = 0;
	wr.reg_mr.mr = vx.fast;
	wr.reg_mr.page_list = vx.list;
	wr.reg_mr.iova = 0;
	wr.reg_mr.length = 150;
	wr.reg_mr.first_byte_offset = PAGE - 100;
	wr.reg_mr.access = MODIFY;
	wr.reg_mr.page_list_len = 2;
	wr.reg_mr.log2_page_size = 12;
	wr.reg_mr.key_tag = tag;
	return wr;
}

int
vx_write(uint32_t rkey, uint64_t addr, uint32_t length)
{
	return vt_write(vt.b, addr, length, rkey);
}

void
vx_fill(void)
{
	unsigned int i;

	for (i = 0; i < HALF; i++)
		vt.buf[i] = (uint8_t)(i + 1);
	memset(vt.buf + HALF, 0, HALF);
}
