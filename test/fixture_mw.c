/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory windows of the cases: over a's buffer, which an MR of its own lets windows bind. */

#include <stdio.h>
#include <string.h>

#include "fixture.h"

struct rmem_mw *
fx_mw(struct rmem_pd *pd, enum rmem_mw_type type)
{
	struct rmem_mw *mw = NULL;
	int ret = rmem_mw_alloc(pd, type, &mw);

	if (ret != 0) {
		printf("fixture: window of type %d: %s\n", (int)type, strerror(-ret));
		return NULL;
	}
	fx_track(mw);
	return mw;
}

void
fx_setup_mw(void)
{
	fx_setup();
	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	fx.mw.one = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
}

struct rmem_send_wr
fx_mw_wr(struct rmem_mw *mw, size_t offset, uint64_t length, uint32_t access)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_BIND_MW, NULL, 0);

	wr.bind_mw.mw = mw;
	wr.bind_mw.mr = fx.mw.mr;
	wr.bind_mw.addr = fx.mw.mr->iova + offset;
	wr.bind_mw.length = length;
	wr.bind_mw.access = access;
	wr.bind_mw.key_tag = rmem_rkey_next_tag(mw->rkey);
	return wr;
}

int
fx_mw_bind_2(size_t offset, uint64_t length, uint32_t access)
{
	const struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, offset, length, access);

	return fx_send(fx.a.qp, &wr);
}

struct rmem_mw_bind
fx_mw_bind(size_t offset, uint64_t length, uint32_t access)
{
	struct rmem_mw_bind bind = {.wr_id = 0xb0b0, .flags = RMEM_SEND_SIGNALED};

	bind.bind_info.mr = fx.mw.mr;
	bind.bind_info.addr = fx.mw.mr->iova + offset;
	bind.bind_info.length = length;
	bind.bind_info.access = access;
	return bind;
}

int
fx_mw_bind_1(size_t offset, uint64_t length, uint32_t access)
{
	const struct rmem_mw_bind bind = fx_mw_bind(offset, length, access);
	int ret = rmem_mw_bind(fx.a.qp, fx.mw.one, &bind);

	return ret == 0 ? fx_wait(fx.a.cq) : ret;
}

void
fx_mw_expect_write(uint64_t addr, uint32_t length, uint32_t rkey, const uint8_t *at)
{
	fx_fill(fx.b.buf, length, rkey);
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	TEST_STATUS(fx_peer_write(addr, length, rkey), RMEM_WC_SUCCESS);
	TEST_MEM(at, fx.b.buf, length);
	TEST_ASSERT(fx_is_zero(fx.a.buf, (size_t)(at - fx.a.buf)));
	TEST_ASSERT(fx_is_zero(at + length, (size_t)(fx.a.buf + FX_BUF_SIZE - at) - length));
}

void
fx_mw_expect_refusal(uint64_t addr, uint32_t length, uint32_t rkey, uint32_t why)
{
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	fx_fill(fx.b.buf, FX_BUF_SIZE, 1);
	TEST_STATUS(fx_peer_write(addr, length, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, why);
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
	fx_reconnect();
}
