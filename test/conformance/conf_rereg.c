/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Re-registration: only the attributes of the flags change. A device without re-registration in
 * place assigns new keys; the other rules are the same.
 */

#include <string.h>

#include "conf.h"

#define TRANSLATION RMEM_REREG_CHANGE_TRANSLATION
#define PD          RMEM_REREG_CHANGE_PD
#define ACCESS      RMEM_REREG_CHANGE_ACCESS

#define ALL      (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ)
#define READ     (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ)
#define OLD_SIZE 4096u
#define OFFSET   8300u
#define NEW_SIZE 5000u

/* Arguments without a flag are ignored: here they are invalid. */
static void
rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd)
{
	enum rmem_rereg_result result = RMEM_REREG_ERR_CMD;
	uint32_t lkey = mr->lkey, rkey = mr->rkey;
	bool is_moved = (flags & TRANSLATION) != 0;

	TEST_OK(rmem_mr_rereg(mr, flags, (flags & PD) != 0 ? pd : (struct rmem_pd *)mr,
			is_moved ? fx.a.buf + OFFSET : NULL, is_moved ? NEW_SIZE : 0,
			(flags & ACCESS) != 0 ? READ : ~RMEM_ACCESS_ALLOCATE_MR, &result));
	if ((conf.info.capa & RMEM_DEV_CAPA_REREG) != 0) {
		TEST_EQ(result, RMEM_REREG_OK);
		TEST_EQ(mr->lkey, lkey);
		TEST_EQ(mr->rkey, rkey);
	} else {
		TEST_EQ(result, RMEM_REREG_NEW_KEYS);
		if (rkey != mr->rkey)
			conf_denied(fx_addr(fx.a.buf), 8, rkey);
	}
}

static void
can_read(const struct rmem_mr *mr, uint64_t addr)
{
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, addr, 8, mr->rkey), RMEM_WC_SUCCESS);
}

static void
can_not_read(const struct rmem_mr *mr, uint64_t addr)
{
	conf_status(CONF_REMOTE_KEY, conf_do(RMEM_WR_RDMA_READ, addr, 8, mr->rkey));
	conf_reconnect();
}

/* The seven combinations of flags, each on a new MR. */
CONF_TEST(rereg, flags_select_what_changes, 0, 0, "ibv_rereg_mr(3): flags, all combinations")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	uint64_t old = fx_addr(fx.a.buf), new = old + OFFSET;
	uint32_t flags;

	for (flags = 1; flags <= (TRANSLATION | PD | ACCESS); flags++) {
		struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, ALL);
		uint64_t at = (flags & TRANSLATION) != 0 ? new : old;
		uint8_t *place = fx.a.buf + (at - old);

		rereg(mr, flags, pd);
		TEST_EQ(mr->iova, at);
		TEST_EQ(mr->length, (flags & TRANSLATION) != 0 ? NEW_SIZE : OLD_SIZE);
		TEST_EQ(mr->access, (flags & ACCESS) != 0 ? READ : ALL);
		TEST_ASSERT(mr->pd == ((flags & PD) != 0 ? pd : fx.a.pd) && mr->addr == place);
		TEST_EQ(fx_query(mr).length, mr->length);
		TEST_EQ(fx_query(mr).access, mr->access);
		TEST_EQ(fx_query(mr).state, RMEM_MR_STATE_VALID);
		can_not_read(mr, (flags & TRANSLATION) != 0 ? old : new);
		if ((flags & PD) != 0) {
			can_not_read(mr, at);
		} else {
			can_read(mr, at);
			can_not_read(mr, at + mr->length - 7);
			if ((flags & ACCESS) != 0)
				conf_denied(at, 8, mr->rkey);
			else
				conf_granted(at, (uint32_t)mr->length, mr->rkey, place);
		}
		TEST_OK(fx_release(mr));
	}
}

CONF_TEST(rereg, mr_moves_to_the_new_pd, 0, 0, "ibv_rereg_mr(3): IBV_REREG_MR_CHANGE_PD")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, ALL);
	struct rmem_qp *mine, *peer;
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;

	mine = conf_qp(pd, fx.a.cq, RMEM_ACCESS_REMOTE);
	peer = conf_qp(fx.a.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	TEST_OK(conf_connect(mine, peer));
	rereg(mr, PD, pd);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), mr->rkey);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_SUCCESS);
	TEST_ERR(rmem_pd_dealloc(pd), EBUSY);
	conf_denied(fx_addr(fx.a.buf), 8, mr->rkey);
	TEST_OK(fx_release(mine));
	rereg(mr, PD, fx.a.pd);
	TEST_OK(fx_release(pd));
	conf_granted(mr->iova, 8, mr->rkey, fx.a.buf);
}

CONF_TEST(rereg, lkey_is_valid_for_the_new_memory, 0, 0,
		"ibv_rereg_mr(3): IBV_REREG_MR_CHANGE_TRANSLATION")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, ALL);
	struct rmem_sge sge;
	struct rmem_send_wr wr;

	rereg(mr, TRANSLATION, NULL);
	fx_fill(fx.a.buf, FX_BUF_SIZE, 1);
	sge = fx_sge(mr, 100, 64);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + OFFSET + 100, 64);
	sge.addr = fx_addr(fx.a.buf);
	conf_refused(CONF_LOCAL_KEY, fx.a.qp, &wr);
}

CONF_TEST(rereg, refused_rereg_changes_nothing, 0, 0,
		"ibv_rereg_mr(3): IBV_REREG_MR_ERR_INPUT, the old MR is valid")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, ALL);
	enum rmem_rereg_result result;
	uint32_t rkey;

	rkey = mr->rkey;
	TEST_ERR(rmem_mr_rereg(mr, 0, NULL, NULL, 0, 0, &result), EINVAL);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_ERR(rmem_mr_rereg(mr, 8, NULL, NULL, 0, 0, &result), EINVAL);
	TEST_ERR(rmem_mr_rereg(mr, TRANSLATION, NULL, NULL, 64, 0, &result), EINVAL);
	TEST_ERR(rmem_mr_rereg(mr, PD, NULL, NULL, 0, 0, &result), EINVAL);
	TEST_ERR(rmem_mr_rereg(mr, ACCESS, NULL, NULL, 0, RMEM_ACCESS_REMOTE_WRITE, &result),
			EINVAL);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_EQ(mr->rkey, rkey);
	conf_granted(fx_addr(fx.a.buf), OLD_SIZE, rkey, fx.a.buf);
	conf_denied(fx_addr(fx.a.buf) + OLD_SIZE, 1, rkey);
}

static void
move(struct rmem_mr *mr)
{
	TEST_OK(rmem_mr_rereg(mr, TRANSLATION, NULL, fx.a.buf + OFFSET, NEW_SIZE, 0, NULL));
}

CONF_TEST(rereg, no_write_arrives_in_the_old_memory, 0, 0,
		"IBTA 11.2.8.6: Reregister is deregistration, then registration")
{
	struct rmem_wc wcs[16];

	conf_end_writes(fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, ALL), move, wcs);
}

CONF_TEST(rereg, rereg_of_an_mr_with_a_bound_window_is_ebusy, RMEM_DEV_CAPA_MW_TYPE_1, 0,
		"ibv_rereg_mr(3): it fails while a window is bound")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, conf_access());
	struct rmem_mw *mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	const struct rmem_mw_bind bind = {.flags = RMEM_SEND_SIGNALED,
			.bind_info = {.mr = mr,
					.addr = fx_addr(fx.a.buf),
					.length = 64,
					.access = RMEM_ACCESS_REMOTE_READ}};
	enum rmem_rereg_result result;
	uint32_t flags;

	TEST_OK(rmem_mw_bind(fx.a.qp, mw, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	for (flags = 1; flags <= (TRANSLATION | PD | ACCESS); flags++) {
		TEST_ERR(rmem_mr_rereg(mr, flags, fx.a.pd, fx.a.buf + OFFSET, 64, READ, &result),
				EBUSY);
		TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	}
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, fx_addr(fx.a.buf), 64, mw->rkey), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mw));
	TEST_OK(rmem_mr_rereg(mr, TRANSLATION, NULL, fx.a.buf + OFFSET, 64, 0, &result));
}

CONF_TEST(rereg, change_translation_allocates_memory, 0, 0,
		"Optimized Memory Access: ALLOCATE_MR in a translation change")
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, ALL);

	TEST_OK(rmem_mr_rereg(mr, TRANSLATION | ACCESS, NULL, NULL, 10000,
			ALL | RMEM_ACCESS_ALLOCATE_MR, NULL));
	TEST_ASSERT(mr->addr != NULL && mr->addr != fx.a.buf && mr->length >= 10000);
	fx_fill(fx.b.buf, 10000, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, mr->iova, 10000, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(mr->addr, fx.b.buf, 10000);
	conf_denied(fx_addr(fx.a.buf), 8, mr->rkey);
	rereg(mr, TRANSLATION, NULL);
	conf_granted(fx_addr(fx.a.buf) + OFFSET, NEW_SIZE, mr->rkey, fx.a.buf + OFFSET);
}

CONF_TEST(rereg, shared_mr_has_its_own_rights, RMEM_DEV_CAPA_SHARED_MR, 0,
		"IBTA 11.2.8: Register Shared Memory Region")
{
	struct rmem_mr *from = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, ALL);
	struct rmem_mr *mr = NULL;
	struct rmem_mr_info info;

	TEST_OK(rmem_mr_reg_shared(from, fx.a.pd, 0, RMEM_ACCESS_REMOTE_READ, &mr));
	fx_track(mr);
	TEST_ASSERT(mr->rkey != from->rkey && mr->lkey != from->lkey && mr->addr == from->addr);
	TEST_EQ(mr->length, OLD_SIZE);
	TEST_EQ(mr->iova, from->iova);
	info = fx_query(mr);
	TEST_EQ(info.is_shared, 1);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.access, RMEM_ACCESS_REMOTE_READ);
	TEST_EQ(fx_query(from).is_shared, 0);
	conf_granted(fx_addr(fx.a.buf), OLD_SIZE, from->rkey, fx.a.buf);
	can_read(mr, fx_addr(fx.a.buf));
	conf_denied(fx_addr(fx.a.buf), 8, mr->rkey);
	TEST_OK(fx_release(from));
	can_read(mr, fx_addr(fx.a.buf));
	can_not_read(mr, fx_addr(fx.a.buf) + OLD_SIZE - 4);
}

CONF_TEST(rereg, shared_mr_may_be_of_another_pd, RMEM_DEV_CAPA_SHARED_MR, 0,
		"IBTA 11.2.8: Register Shared Memory Region, in another PD")
{
	struct rmem_mr *from = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, ALL);
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *mr = NULL;

	TEST_OK(rmem_mr_reg_shared(from, pd, 0, ALL, &mr));
	fx_track(mr);
	TEST_ASSERT(mr->pd == pd);
	conf_denied(fx_addr(fx.a.buf), 8, mr->rkey);
	conf_granted(fx_addr(fx.a.buf), 8, from->rkey, fx.a.buf);
	TEST_ERR(rmem_mr_reg_shared(from, pd, 0, RMEM_ACCESS_REMOTE_WRITE, &mr), EINVAL);
	TEST_OK(fx_release(from));
	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, 0, ALL, &mr));
	fx_track(mr);
	conf_granted(fx_addr(fx.a.buf), 8, mr->rkey, fx.a.buf);
}

CONF_TEST(rereg, shared_mr_has_the_requested_iova, RMEM_DEV_CAPA_SHARED_MR, RMEM_ACCESS_ZERO_BASED,
		"IBTA 11.2.8: Register Shared Memory Region, with another address")
{
	struct rmem_mr *mr = NULL;

	TEST_OK(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 0x123, ALL, &mr));
	fx_track(mr);
	TEST_EQ(mr->iova, 0x123);
	conf_granted(0x123, 64, mr->rkey, fx.a.buf);
	TEST_OK(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 0, ALL | RMEM_ACCESS_ZERO_BASED, &mr));
	fx_track(mr);
	TEST_EQ(mr->iova, 0);
	conf_granted(0, 64, mr->rkey, fx.a.buf);
}

/* The owner of the memory is held while others share it; sharers of sharers too. */
CONF_TEST(rereg, dereg_of_shared_allocated_memory_is_ebusy, RMEM_DEV_CAPA_SHARED_MR, 0,
		"Optimized Memory Access: shared MRs of allocated memory")
{
	struct rmem_mr *from = NULL, *second = NULL, *third = NULL;
	enum rmem_rereg_result result = RMEM_REREG_OK;

	TEST_OK(rmem_mr_reg(fx.a.pd, NULL, 4096, 0, ALL | RMEM_ACCESS_ALLOCATE_MR, &from));
	fx_track(from);
	TEST_OK(rmem_mr_reg_shared(from, fx.a.pd, 0, ALL, &second));
	fx_track(second);
	TEST_OK(rmem_mr_reg_shared(second, fx.a.pd, 0, ALL, &third));
	fx_track(third);
	TEST_OK(fx_release(second));
	TEST_ERR(rmem_mr_dereg(from), EBUSY);
	TEST_ERR(rmem_mr_rereg(from, TRANSLATION, NULL, fx.a.buf, 64, 0, &result), EBUSY);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	can_read(third, third->iova);
	TEST_OK(fx_release(third));
	TEST_OK(fx_release(from));
}

/* IBTA 11.2.8.8; a change of memory ends the sharing, of rights or one that fails does not. */
CONF_TEST(rereg, change_translation_ends_the_sharing, RMEM_DEV_CAPA_SHARED_MR, 0,
		"IBTA 11.2.8: Reregister of a shared MR")
{
	const uint32_t allocate = ALL | RMEM_ACCESS_ALLOCATE_MR;
	struct rmem_mr *from = NULL, *mr = NULL;

	TEST_OK(rmem_mr_reg(fx.a.pd, NULL, 4096, 0, allocate, &from));
	fx_track(from);
	TEST_OK(rmem_mr_reg_shared(from, fx.a.pd, 0, ALL, &mr));
	fx_track(mr);
	rereg(mr, ACCESS, NULL);
	TEST_EQ(fx_query(mr).is_shared, 1);
	TEST_ERR(rmem_mr_dereg(from), EBUSY);
	TEST_ERR(rmem_mr_rereg(mr, TRANSLATION, NULL, NULL, (size_t)1 << 45, allocate, NULL),
			ENOMEM);
	TEST_ERR(rmem_mr_dereg(from), EBUSY);
	rereg(mr, TRANSLATION | ACCESS, NULL);
	TEST_EQ(fx_query(mr).is_shared, 0);
	TEST_OK(fx_release(from));
	can_read(mr, fx_addr(fx.a.buf) + OFFSET);
}

TEST_SUITE(rereg, conf_setup, conf_teardown);
