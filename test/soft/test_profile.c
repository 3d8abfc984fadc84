/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Profiles of the software device: each refuses what a device of the verbs driver has not. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include <rte_memory.h>

#include <rmem_lease.h>

#include "fixture.h"

/* As in doc/driver_soft.md. */
static const struct profile {
	const char *name;
	const char *args;
	uint64_t capa;
	uint32_t access;
	uint32_t max_cqe;
	uint32_t max_mr; /* highest value of the argument */
	bool is_iova_aligned;
} profiles[] = {
		{"rxe", "profile=rxe", 0x1ac08d6, 0x1f, 32767, 524287, true},
		{"mlx5", "profile=mlx5", 0x1041ac0ad6, 0x5f, 65536, 15728638, false},
		{"verbs", "profile=verbs", 0x1ac0896, 0x1f, 32767, 524287, true},
};

static const uint32_t all_access = FX_ACCESS | RMEM_ACCESS_MW_BIND;

/* A pair of sides on a device with that profile. */
static void
open_pair(const struct profile *profile)
{
	fx_sides_open(fx_dev("soft1", profile->args));
}

/* Run a case on each profile, with nothing left between them. */
static void
on_each(void (*func)(const struct profile *profile))
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(profiles); i++) {
		if (TEST_TRY(open_pair(&profiles[i])) != TEST_SUCCESS ||
				TEST_TRY(func(&profiles[i])) != TEST_SUCCESS) {
			test_note("with profile=%s", profiles[i].name);
			test_stop(TEST_FAILED);
		}
		fx_teardown();
	}
}

#define ON_EACH(rule)                                                                              \
	static void rule##_with(const struct profile *profile);                                    \
	TEST(profile, rule)                                                                        \
	{                                                                                          \
		on_each(rule##_with);                                                              \
	}                                                                                          \
	static void rule##_with(const struct profile *profile __rte_unused)

ON_EACH(capabilities_and_limits_are_those_of_the_profile)
{
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);

	TEST_EQ(info.capa, profile->capa | RMEM_DEV_CAPA_GSI); /* of each device of soft */
	TEST_EQ(info.access & ~RMEM_ACCESS_ON_DEMAND, profile->access & ~RMEM_ACCESS_ON_DEMAND);
	if ((profile->access & RMEM_ACCESS_ON_DEMAND) == 0)
		TEST_EQ(info.odp.general, 0);
	TEST_EQ(info.max_cqe, profile->max_cqe);
	TEST_EQ(info.max_mr, 16384);
	TEST_EQ(info.max_qp, 256);
	TEST_EQ(info.page_size_cap, 0);
	TEST_EQ(info.max_page_list_len, 0);
	TEST_EQ(info.max_mkey_entries, 0);
	TEST_EQ(info.max_mkey_depth, 0);
	TEST_EQ(info.max_iov, 0);
	TEST_EQ(info.max_inline_recv, 0);
}

ON_EACH(fast_registration_and_indirect_keys_are_refused)
{
	struct rmem_fast_reg_page_list *list = NULL;
	struct rmem_mw *mw = NULL;
	struct rmem_mr *mr = NULL;
	int ret;

	TEST_ERR(rmem_fast_reg_mr_alloc(fx.a.pd, 1, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_page_list_alloc(fx.a.dev, 1, &list), EOPNOTSUPP);
	TEST_ERR(rmem_mkey_alloc(fx.a.pd, 1, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, fx_addr(fx.a.buf), FX_ACCESS, &mr),
			EOPNOTSUPP);
	ret = rmem_mw_alloc(fx.a.pd, RMEM_MW_TYPE_1, &mw);
	if (ret == 0)
		fx_track(mw);
	TEST_EQ(ret, profile->capa & RMEM_DEV_CAPA_MW_TYPE_1 ? 0 : -EOPNOTSUPP);
}

static void
expect_reg(const struct rmem_mr_attr *attr, int error)
{
	struct rmem_mr *mr = NULL;

	TEST_EQ(rmem_mr_reg_attr(fx.a.pd, attr, &mr), -error);
	if (mr != NULL)
		TEST_OK(rmem_mr_dereg(mr));
}

ON_EACH(kinds_of_mrs_that_verbs_lacks_are_refused)
{
	const struct iovec iov[2] = {{fx.a.buf, FX_PAGE}, {fx.a.buf + 2 * FX_PAGE, FX_PAGE}};
	struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = FX_PAGE,
			.iova = fx_addr(fx.a.buf),
			.access = FX_ACCESS};
	const struct rmem_mr_attr plain = attr;

	expect_reg(&attr, 0);
	attr.flags = RMEM_MR_DISABLED;
	expect_reg(&attr, EOPNOTSUPP);
	attr.flags = RMEM_MR_REQUESTED_KEY;
	attr.requested_key = 0x100;
	expect_reg(&attr, EOPNOTSUPP);
	attr = plain;
	attr.iova += 8;
	expect_reg(&attr, profile->is_iova_aligned ? EINVAL : 0);
	attr.iova = 1u << 20;
	expect_reg(&attr, 0);
	attr = plain;
	attr.access |= RMEM_ACCESS_ZERO_BASED;
	attr.iova = 0;
	expect_reg(&attr, EOPNOTSUPP);
	attr = plain;
	attr.addr = NULL;
	attr.length = 0;
	attr.iov = iov;
	attr.iov_count = RTE_DIM(iov);
	expect_reg(&attr, EOPNOTSUPP);
}

ON_EACH(counters_are_refused)
{
	struct rmem_counter *counter = fx_counter(fx.a.dev);

	TEST_ERR(rmem_mr_bind_counter(fx.a.mr, counter, RMEM_COUNTER_REMOTE_WRITE), EOPNOTSUPP);
	TEST_ERR(rmem_qp_attach_counter(fx.a.qp, counter, RMEM_QP_COUNT_SEND), EOPNOTSUPP);
	TEST_EQ(fx_peer_write(fx_addr(fx.a.buf), 8, fx.a.mr->rkey), RMEM_WC_SUCCESS);
}

/* Before a packet is sent, with any key. */
ON_EACH(messages_longer_than_the_profile_has_are_refused)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_SEND, RMEM_WR_RDMA_READ};
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	struct rmem_send_wr wr;
	unsigned int i;

	TEST_ASSERT(info.max_msg_size < UINT32_MAX);
	sge.length = (uint32_t)info.max_msg_size + 1;
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		wr = fx_rdma(opcodes[i], &sge, fx_addr(fx.b.buf), fx.b.mr->rkey ^ 0x100);
		fx_expect_refusal(&wr, RMEM_WC_LOC_LEN_ERR, RMEM_QPS_RTS);
	}
}

ON_EACH(qp_with_a_bound_window_is_not_destroyed)
{
	struct rmem_mw *mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);

	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, all_access);
	fx.mw.two = mw;
	TEST_STATUS(fx_mw_bind_2(0, FX_PAGE, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 64, mw->rkey), RMEM_WC_SUCCESS);
	/* IBTA 11.2.5.4: not while a window is bound on it. */
	TEST_ERR(rmem_qp_destroy(fx.a.qp), EBUSY);
	TEST_STATUS(fx_invalidate(mw->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 64, mw->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_OK(fx_release(fx.a.qp));
}

/* Leases use windows here, not fast registration; an MR without MW_BIND fails. */
ON_EACH(automatic_lease_backend_uses_windows)
{
	const struct rmem_lease_conf conf = {.backend = RMEM_LEASE_AUTO,
			.max_leases = 8,
			.max_length = FX_PAGE,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, all_access);
	struct rmem_lease_req req = {.mr = fx.a.mr,
			.addr = fx.a.buf,
			.length = 64,
			.access = RMEM_ACCESS_REMOTE_WRITE};
	struct rmem_lease_ctx *ctx = NULL;
	struct rmem_lease *lease = NULL;
	uint64_t deadline = fx_deadline();
	struct rmem_dev_info info;
	struct rmem_wc wc[8];

	TEST_OK(rmem_lease_ctx_create(fx.a.qp, &conf, &ctx));
	TEST_ERR(rmem_lease_grant(ctx, &req, 1, &lease), EPERM);
	req.mr = mr;
	TEST_EQ(rmem_lease_grant(ctx, &req, 1, &lease), 1);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_ASSERT(info.nb_mw > 0);
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 64, lease->rkey), RMEM_WC_SUCCESS);
	TEST_ASSERT(rmem_lease_revoke(ctx, &lease, 1) >= 0);
	while (rmem_lease_reclaim(ctx, &lease, 1) == 0 && !fx_is_late(deadline))
		TEST_ASSERT(rmem_lease_poll(ctx, wc, RTE_DIM(wc)) >= 0);
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

static void
expect_line(const char *args, const char *line)
{
	struct rmem_dev *dev = NULL;

	FX_ERR_LOG(rmem_dev_create("soft1", args, &dev), EINVAL, line);
}

TEST(profile, unknown_profiles_are_refused_with_the_names)
{
	expect_line("profile=cx5",
			"profile='cx5': invalid value (none, rxe, mlx5, "
			"verbs");
	expect_line("profile=", "profile='': invalid value (none");
	expect_line("profile", "profile");
	expect_line("profile=1", "profile='1': invalid value");
	expect_line("profile=rxe ", "profile='rxe ': invalid value");
	expect_line("profile=rxe,profile=rxe", "arguments: repeated key: 'profile'");
}

/* The order of the arguments does not matter. */
TEST(profile, arguments_lower_the_limits_of_a_profile_only)
{
	struct rmem_dev_info info;
	struct rmem_dev *dev;

	dev = fx_dev("soft1", "max_cqe=100,profile=rxe,max_mr=7,pin=require");
	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_EQ(info.max_cqe, 100);
	TEST_EQ(info.max_mr, 7);
	TEST_OK(fx_release(dev));
	expect_line("profile=rxe,max_cqe=32768",
			"max_cqe='32768': invalid value (1 to 32767 with profile=rxe)");
	expect_line("max_cqe=32768,profile=verbs", "1 to 32767 with profile=verbs");
	expect_line("max_qp=4097,profile=mlx5", "1 to 4096 with profile=mlx5");
	expect_line("max_iov=1,profile=mlx5",
			"max_iov='1': invalid value (none with profile=mlx5)");
	expect_line("max_page_list_len=1,profile=rxe", "(none with");
	expect_line("pin=auto,profile=rxe", "pin='auto': invalid value (require with profile=rxe)");
	expect_line("profile=verbs,pin=off",
			"pin='off': invalid value (require with profile=verbs)");
	fx_dev("soft1", "profile=none,pin=off,max_iov=1,max_cqe=65537");
}

/* As on the NIC. */
TEST(profile, keys_are_the_same_with_mlx5)
{
	static const struct {
		const char *args;
		bool is_same;
	} rows[] = {{"profile=mlx5", true}, {"keys=different,profile=mlx5", false},
			{"profile=rxe", false}, {"profile=verbs,keys=same", true}};
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		struct rmem_dev *dev = fx_dev("soft1", rows[i].args);

		fx_side_open(&fx.a, dev, fx_pd(dev));
		TEST_EQ(fx.a.mr->lkey == fx.a.mr->rkey, rows[i].is_same);
		fx_teardown();
	}
}

TEST_CALL(profile, wire_arguments_are_accepted,
		fx_dev("soft1", "profile=rxe,ip=127.0.9.9,port=shm:profile,mtu=1024,loop=1"));

/* They are no limits of a device. */
TEST(profile, sanitizing_and_direct_copies_are_accepted)
{
	char args[64];
	unsigned int i;

	for (i = 0; i < RTE_DIM(profiles); i++) {
		snprintf(args, sizeof(args), "%s,sanitize=1,ip=host,direct=1", profiles[i].args);
		fx_dev("soft1", args);
		fx_teardown();
	}
}

TEST_SUITE(profile, fx_setup_none, fx_teardown);
