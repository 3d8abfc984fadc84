/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requests about windows, right and wrong, in any order, on a device that executes or drops what it
 * flushes: none takes a kernel down, and at the end nothing is held. RMEM_SEED repeats a run.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "setup.h"

#define VT_STEPS 20000
#define VT_MWS   4

static struct {
	uint64_t state;
	struct rmem_mw *mw[VT_MWS];
	uint32_t keys[16]; /* that some window had */
} rnd;

static uint32_t
vt_rand(uint32_t n)
{
	rnd.state = rnd.state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(rnd.state >> 33) % n;
}

/* A valid or invalid request with a window. */
static struct rmem_send_wr
vt_random_wr(void)
{
	struct rmem_mw *mw = rnd.mw[vt_rand(VT_MWS)];
	struct rmem_send_wr wr = vt_bind_wr(mw);
	uint32_t kind = vt_rand(8);

	wr.bind_mw.key_tag = (uint8_t)(vt_rand(4) == 0 ? mw->rkey : mw->rkey + 1 + vt_rand(3));
	if (vt_rand(16) == 0)
		wr.bind_mw.length = 0;
	if (kind >= 4) {
		wr = vt_inv_wr(vt_rand(3) == 0 ? rnd.keys[vt_rand(16)] : mw->rkey);
		wr.opcode = kind >= 7 ? RMEM_WR_SEND_WITH_INV : RMEM_WR_LOCAL_INV;
	}
	wr.flags = vt_rand(2) != 0 ? RMEM_SEND_SIGNALED : 0;
	rnd.keys[vt_rand(16)] = mw->rkey;
	return wr;
}

static void
vt_random_post(struct rmem_qp *qp)
{
	struct rmem_send_wr wr[4];
	struct rmem_recv_wr recv = {.wr_id = 1};
	uint16_t i, nb = (uint16_t)(1 + vt_rand(4));
	int n;

	for (i = 0; i < nb; i++)
		wr[i] = vt_random_wr();
	fake.post_errno = vt_rand(16) == 0 ? ENOMEM : 0;
	fake.post_take = vt_rand(3);
	(void)rmem_post_recv(vt.a, &recv, 1);
	(void)rmem_post_recv(vt.b, &recv, 1);
	n = rmem_post_send(qp, wr, nb);
	fake.post_errno = 0;
	TEST_ASSERT(n == -ENOSPC || (n > 0 && n <= (int)nb));
}

static void
vt_random_mw(uint32_t i)
{
	int ret = rmem_mw_dealloc(rnd.mw[i]);

	TEST_ASSERT(ret == 0 || ret == -EBUSY);
	if (ret == 0)
		TEST_OK(rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_2, &rnd.mw[i]));
}

static void
vt_random_mr(void)
{
	int ret = rmem_mr_dereg(vt.mw_mr);

	TEST_ASSERT(ret == 0 || ret == -EBUSY);
	if (ret == 0)
		TEST_OK(rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0, VT_ACCESS | RMEM_ACCESS_MW_BIND,
				&vt.mw_mr));
}

static void
vt_random_step(void)
{
	struct rmem_mw_bind bind = vt_bind(vt_rand(2) * VT_HALF);
	struct rmem_qp *qp = vt_rand(2) != 0 ? vt.a : vt.b;
	struct rmem_wc wc[8];
	int ret;

	switch (vt_rand(16)) {
	case 0:
		vt_reconnect();
		return;
	case 1:
		TEST_ASSERT(rmem_qp_set_error(qp) == 0);
		return;
	case 2:
		vt_random_mw(vt_rand(VT_MWS));
		return;
	case 3:
		vt_random_mr();
		return;
	case 4:
		fake.is_held = vt_rand(2) != 0;
		fake.is_flush_run = vt_rand(2) != 0;
		fake.is_told_flushed = vt_rand(2) != 0;
		return;
	case 5:
		ret = rmem_mw_bind(qp, vt.one, &bind);
		TEST_ASSERT(ret == 0 || ret == -ENOSPC);
		return;
	case 6:
	case 7:
	case 8:
		TEST_ASSERT(rmem_poll_cq(vt.cq_a, wc, 8) >= 0);
		TEST_ASSERT(rmem_poll_cq(vt.cq_b, wc, 8) >= 0);
		return;
	case 9:
	case 10:
		fake_run_held(qp->qp_num, 1 + vt_rand(4));
		return;
	default:
		vt_random_post(qp);
		return;
	}
}

static void
vt_random_run(uint64_t seed)
{
	unsigned int i;

	rnd.state = seed;
	for (i = 0; i < VT_MWS; i++)
		TEST_OK(rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_2, &rnd.mw[i]));
	for (i = 0; i < VT_STEPS; i++) {
		vt_random_step();
		TEST_EQ(fake.nb_crashes, 0);
	}
	fake.is_held = false;
	vt_reconnect();
	for (i = 0; i < VT_MWS; i++)
		TEST_OK(rmem_mw_dealloc(rnd.mw[i]));
	TEST_OK(rmem_mw_dealloc(vt.one));
	vt.one = NULL;
	TEST_OK(rmem_mr_dereg(vt.mw_mr)); /* nothing holds it */
	vt.mw_mr = NULL;
}

TEST(verbs_mw_random, random_requests_hold_nothing_at_the_end)
{
	const char *text = getenv("RMEM_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : rte_rdtsc();

	printf("seed %" PRIu64 " (RMEM_SEED)\n", seed);
	vt_random_run(seed);
}

TEST_WITH(verbs_mw_random, random_requests_hold_nothing_at_the_end, vt_setup_mw_classic);

TEST_SUITE(verbs_mw_random, vt_setup_mw, vt_teardown);
