/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* rmem_*_dump() while an lcore grants leases and WRITEs. */

#include <stdio.h>
#include <string.h>

#include <rmem_lease.h>

#include "fixture.h"

#define DUMPS 200u

static struct {
	struct rmem_lease_ctx *ctx;
	uint32_t is_stopped; /* atomic */
	uint32_t nb_rounds;  /* atomic */
} race;

static bool
is_running(void)
{
	return !__atomic_load_n(&race.is_stopped, __ATOMIC_ACQUIRE);
}

static void
lease_once(void)
{
	const struct rmem_lease_req req = {.mr = fx.a.mr,
			.addr = fx.a.buf,
			.length = 64,
			.access = RMEM_ACCESS_REMOTE_READ};
	struct rmem_lease *lease;
	struct rmem_wc wc;
	int ret;

	ret = rmem_lease_grant(race.ctx, &req, 1, &lease);
	if (ret == -ENOSPC)
		return; /* the keys are quarantined */
	TEST_EQ(ret, 1);
	while (lease->state != RMEM_LEASE_GRANTED)
		TEST_ASSERT(rmem_lease_poll(race.ctx, &wc, 1) >= 0);
	TEST_OK(rmem_lease_revoke(race.ctx, &lease, 1));
	while (rmem_lease_reclaim(race.ctx, &lease, 1) != 1)
		TEST_ASSERT(rmem_lease_poll(race.ctx, &wc, 1) >= 0);
}

static void
work(void *arg)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_send_wr write = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);

	RTE_SET_USED(arg);
	while (is_running()) {
		lease_once();
		TEST_STATUS(fx_send(fx.b.qp, &write), RMEM_WC_SUCCESS);
		__atomic_fetch_add(&race.nb_rounds, 1, __ATOMIC_RELEASE);
	}
}

static void
dump_all(FILE *f)
{
	TEST_OK(rmem_lease_ctx_dump(race.ctx, f));
	TEST_OK(rmem_qp_dump(fx.a.qp, f));
	TEST_OK(rmem_qp_dump(fx.b.qp, f));
	TEST_OK(rmem_cq_dump(fx.a.cq, f));
	TEST_OK(rmem_cq_dump(fx.b.cq, f));
	TEST_OK(rmem_mr_dump(fx.a.mr, f));
	TEST_OK(rmem_pd_dump(fx.a.pd, f));
}

static void
dump_often(void)
{
	FILE *f = fopen("/dev/null", "w");
	int ret = f == NULL ? TEST_FAILED : TEST_SUCCESS;
	unsigned int i;

	if (TEST_TRY(fx_wait_until(&race.nb_rounds, 1)) != TEST_SUCCESS)
		ret = TEST_FAILED;
	for (i = 0; i < DUMPS && ret == TEST_SUCCESS; i++)
		ret = TEST_TRY(dump_all(f));
	if (f != NULL)
		fclose(f);
	TEST_RUN(ret);
}

TEST(dump_race, objects_are_printed_while_an_lcore_uses_them)
{
	const struct rmem_lease_conf conf = {
			.max_leases = 4, .max_length = 4096, .socket_id = SOCKET_ID_ANY};
	int ret;

	fx_need_workers(1);
	memset(&race, 0, sizeof(race));
	TEST_OK(rmem_lease_ctx_create(fx.a.qp, &conf, &race.ctx));
	fx_launch(work, &race, 0, 1);
	ret = TEST_TRY(dump_often());
	__atomic_store_n(&race.is_stopped, 1, __ATOMIC_RELEASE);
	if (TEST_TRY(fx_join(1)) != TEST_SUCCESS)
		ret = TEST_FAILED;
	TEST_OK(rmem_lease_ctx_destroy(race.ctx));
	TEST_RUN(ret);
}

TEST_SUITE(dump_race, fx_setup, fx_teardown);
