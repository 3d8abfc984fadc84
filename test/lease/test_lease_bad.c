/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Errors of leases: each error of each call, with each backend; and the choice of a backend. */

#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rmem_xrcd.h>

#include "lease.h"

#define WRITE RMEM_ACCESS_REMOTE_WRITE

static int
grant(const struct rmem_lease_req *req)
{
	return rmem_lease_grant(lx.ctx, req, 1, lx.lease);
}

#define REFUSED(req, error, reason)                                                                \
	do {                                                                                       \
		TEST_ERR(grant(req), error);                                                       \
		TEST_EQ(lx_stats().last_refusal, RMEM_LEASE_REFUSAL_##reason);                     \
	} while (0)

/* A request with one wrong field is refused. */
#define BAD(reason, field, value)                                                                  \
	do {                                                                                       \
		struct rmem_lease_req req_ = lx_req(0, 8, WRITE);                                  \
		req_.field = value;                                                                \
		REFUSED(&req_, EINVAL, reason);                                                    \
	} while (0)

TEST(lease_bad, wrong_fields_are_refused)
{
	const struct rmem_lease_req all = lx_req(0, FX_BUF_SIZE, WRITE);
	struct rmem_mr *mkey = NULL;
	int on_stack;

	BAD(NO_MR, mr, NULL);
	BAD(NO_MR, mr, (const struct rmem_mr *)fx.a.pd);
	BAD(LENGTH, length, 0);
	BAD(OUTSIDE, addr, fx.a.buf + FX_BUF_SIZE - 7);
	BAD(OUTSIDE, addr, fx.a.buf + FX_BUF_SIZE);
	BAD(OUTSIDE, addr, fx.a.buf - 1);
	BAD(OUTSIDE, addr, &on_stack);
	BAD(ACCESS, access, 0);
	BAD(ACCESS, access, RMEM_ACCESS_LOCAL_WRITE | WRITE);
	BAD(ACCESS, access, RMEM_ACCESS_ZERO_BASED | WRITE);
	BAD(RESERVED, reserved, 1);
	BAD(RESERVED, reserved, UINT64_C(1) << 63);
	BAD(PD, mr, fx_mr(fx_pd(fx.a.dev), fx.a.buf, FX_BUF_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND));
	if (fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_UMR)) {
		mkey = fx_mkey(fx.a.pd, 1);
		BAD(MR_TYPE, mr, mkey);
	}
	TEST_EQ(grant(&all), 1);
}

/* It posts no requests, and has no PD. */
TEST(lease_bad, xrc_recv_qp_is_refused)
{
	struct rmem_qp_ext ext = {.xrcd = NULL};
	const struct rmem_qp_conf conf = {.type = RMEM_QPT_XRC_RECV, .ext = &ext};
	struct rmem_lease_ctx *ctx;
	struct rmem_qp *qp;

	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_XRC), "no XRC");
	TEST_OK(rmem_xrcd_alloc(fx.a.dev, &(struct rmem_xrcd_conf){.flags = 0}, &ext.xrcd));
	TEST_OK(rmem_qp_create(NULL, &conf, &qp));
	TEST_ERR(rmem_lease_ctx_create(qp, &lx.conf, &ctx), EINVAL);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_xrcd_dealloc(ext.xrcd));
}

TEST(lease_bad, length_above_the_limit_is_refused)
{
	struct rmem_lease_req req = lx_req(0, 4097, WRITE);

	lx.conf.max_length = 4096;
	lx_remake();
	REFUSED(&req, EINVAL, LENGTH);
	req.length = 4096;
	TEST_EQ(grant(&req), 1);
}

TEST(lease_bad, disabled_mr_is_refused)
{
	struct rmem_lease_req req = lx_req(0, 8, WRITE);
	const struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = FX_BUF_SIZE,
			.access = FX_ACCESS | RMEM_ACCESS_MW_BIND,
			.flags = RMEM_MR_DISABLED};
	struct rmem_mr *mr;

	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_MR_ENABLE), "no disabled MRs");
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	req.mr = mr;
	REFUSED(&req, EINVAL, MR_STATE);
	TEST_OK(rmem_mr_enable(mr));
	TEST_EQ(grant(&req), 1);
}

/* Which range is the buffer's? */
TEST(lease_bad, mr_over_several_ranges_is_refused)
{
	struct rmem_lease_req req = lx_req(0, 8, WRITE);
	const struct iovec iov[] = {{fx.a.buf, FX_PAGE}, {fx.b.buf, FX_BUF_SIZE - FX_PAGE}};
	const struct rmem_mr_attr attr = {.length = FX_BUF_SIZE,
			.access = FX_ACCESS | RMEM_ACCESS_MW_BIND,
			.iov = iov,
			.iov_count = RTE_DIM(iov)};
	struct rmem_mr *mr;

	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_MR_IOV), "no MRs over several ranges");
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	req.mr = mr;
	REFUSED(&req, EINVAL, RANGES);
}

/* No window can be bound to it: that is known before the request could cost the QP. */
TEST(lease_bad, memory_of_an_fd_is_leased_or_refused)
{
	struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);
	struct rmem_mr_attr attr = {.length = FX_PAGE,
			.access = FX_ACCESS | RMEM_ACCESS_MW_BIND,
			.flags = RMEM_MR_FD};
	struct rmem_mr *mr;

	attr.fd = memfd_create("rmem_lease", MFD_CLOEXEC);
	TEST_ASSERT(attr.fd >= 0);
	TEST_OK(ftruncate(attr.fd, FX_PAGE));
	TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mr));
	close(attr.fd);
	fx_track(mr);
	req.mr = mr;
	req.addr = mr->addr;
	if (lx.conf.backend == RMEM_LEASE_MW) {
		REFUSED(&req, EOPNOTSUPP, FD);
		TEST_EQ(rmem_lease_prepare(lx.ctx, &req, 1, lx.lease), -EOPNOTSUPP);
		lx_grant(1, WRITE); /* the QP is as it was */
	} else {
		TEST_EQ(grant(&req), 1);
	}
	lx_expect_granted(lx.lease[0]);
}

/* With pages that large, the buffer is in the one at address 0, which no page list can name. */
TEST(lease_bad, buffer_below_the_first_page_is_leased_or_refused)
{
	struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	void *low;

	lx.conf.max_length = 1 << 30;
	TEST_SKIP_IF(info.max_mr_size < lx.conf.max_length, "no MRs of 1 GiB");
	low = mmap((void *)(uintptr_t)(64 << 20), FX_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	TEST_SKIP_IF(low != (void *)(uintptr_t)(64 << 20), "no memory at 64 MiB");
	lx_remake();
	req.addr = low;
	req.mr = fx_mr(fx.a.pd, low, FX_PAGE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	if (lx.conf.backend == RMEM_LEASE_FAST_REG) {
		REFUSED(&req, EINVAL, PAGE);
		lx_grant(1, WRITE);
	} else {
		TEST_EQ(grant(&req), 1);
	}
	lx_expect_granted(lx.lease[0]);
	lx_revoke(1);
	TEST_OK(fx_release((void *)(uintptr_t)req.mr));
	TEST_OK(munmap(low, FX_PAGE));
}

static uint32_t
count_lines(const char *log, const char *what)
{
	uint32_t nb = 0;

	while ((log = strstr(log, what)) != NULL) {
		log += strlen(what);
		nb++;
	}
	return nb;
}

/* Each is counted; the first of each reason is logged, with the value. */
TEST(lease_bad, refused_buffers_are_counted_and_logged_once)
{
	struct rmem_lease_req req = lx_req(FX_BUF_SIZE, 8, WRITE);
	const char *log;
	uint32_t i;

	fx_log_begin();
	for (i = 0; i < 3; i++)
		TEST_ERR(grant(&req), EINVAL);
	req = lx_req(0, 8, RMEM_ACCESS_LOCAL_WRITE);
	for (i = 0; i < 2; i++)
		TEST_EQ(rmem_lease_prepare(lx.ctx, &req, 1, lx.lease), -EINVAL);
	req = lx_req(0, 8, WRITE);
	req.mr = fx.a.mr; /* without MW_BIND */
	if (lx.conf.backend == RMEM_LEASE_MW)
		TEST_ERR(grant(&req), EPERM);
	log = fx_log_end();
	TEST_EQ(count_lines(log, "no lease of 8 bytes"), lx.conf.backend == RMEM_LEASE_MW ? 3 : 2);
	TEST_TEXT(log, "they are not in its 65536 bytes");
	TEST_TEXT(log, "access 0x1 has no right");
	TEST_EQ(strstr(log, "lacks RMEM_ACCESS_MW_BIND") != NULL, lx.conf.backend == RMEM_LEASE_MW);
	TEST_EQ(lx_stats().refused, lx.conf.backend == RMEM_LEASE_MW ? 6 : 5);
}

TEST(lease_bad, rights_that_the_mr_lacks_are_refused)
{
	struct rmem_lease_req req = lx_req(0, 8, WRITE);

	req.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE,
			RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_MW_BIND);
	REFUSED(&req, EPERM, LOCAL_WRITE);
	req.access = RMEM_ACCESS_REMOTE_ATOMIC;
	REFUSED(&req, EPERM, LOCAL_WRITE);
	req.access = RMEM_ACCESS_REMOTE_READ;
	TEST_EQ(grant(&req), 1);
}

TEST(lease_bad, windows_need_mw_bind_and_others_do_not)
{
	struct rmem_lease_req req = lx_req(0, 8, WRITE);

	req.mr = fx.a.mr;
	if (lx.conf.backend == RMEM_LEASE_MW)
		REFUSED(&req, EPERM, MW_BIND);
	else
		TEST_EQ(grant(&req), 1);
}

TEST(lease_bad, rights_that_the_qp_lacks_are_refused)
{
	struct rmem_lease_req req = lx_req(0, 8, WRITE);
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 8);
	struct rmem_lease_stats stats;
	struct rmem_lease_ctx *ctx;
	struct rmem_qp *qp;

	conf.access = RMEM_ACCESS_REMOTE_READ;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(rmem_lease_ctx_create(qp, &lx.conf, &ctx));
	TEST_ERR(rmem_lease_grant(ctx, &req, 1, lx.lease), EPERM);
	TEST_OK(rmem_lease_stats_get(ctx, &stats));
	TEST_EQ(stats.last_refusal, RMEM_LEASE_REFUSAL_QP_RIGHT);
	req.access = RMEM_ACCESS_REMOTE_READ;
	/* Allowed, and then it is the state of the QP. */
	TEST_ERR(rmem_lease_grant(ctx, &req, 1, lx.lease), EBUSY);
	TEST_ERR(fx_release(qp), EBUSY);
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

TEST(lease_bad, refusals_have_names)
{
	uint32_t i, j;

	TEST_EQ(lx_stats().last_refusal, RMEM_LEASE_REFUSAL_NONE);
	for (i = 0; i < RMEM_LEASE_REFUSAL_NB; i++) {
		for (j = 0; j < i; j++)
			TEST_ASSERT(strcmp(rmem_lease_refusal_str(i), rmem_lease_refusal_str(j)) !=
					0);
	}
	TEST_ASSERT(strcmp(rmem_lease_refusal_str(RMEM_LEASE_REFUSAL_MW_BIND), "MW_BIND") == 0);
	TEST_ASSERT(strcmp(rmem_lease_refusal_str(RMEM_LEASE_REFUSAL_NB), "unknown") == 0);
	TEST_ASSERT(strcmp(rmem_lease_refusal_str(UINT32_MAX), "unknown") == 0);
}

TEST(lease_bad, burst_stops_at_the_first_bad_request)
{
	struct rmem_lease_req req[3];

	req[0] = lx_req(0, 8, WRITE);
	req[1] = lx_req(8, 8, WRITE);
	req[2] = lx_req(16, 0, WRITE);
	TEST_EQ(rmem_lease_grant(lx.ctx, req, 3, lx.lease), 2);
	TEST_EQ(lx_stats().nb_leases, 2);
	TEST_EQ(rmem_lease_prepare(lx.ctx, req, 3, lx.lease), 2);
	TEST_ERR(rmem_lease_prepare(lx.ctx, &req[2], 1, lx.lease), EINVAL);
	TEST_EQ(rmem_lease_grant(lx.ctx, req, 0, lx.lease), -EBUSY);
}

TEST(lease_bad, no_more_leases_than_there_are)
{
	struct rmem_lease_req req[LX_MAX + 1];
	uint16_t i;

	for (i = 0; i <= LX_MAX; i++)
		req[i] = lx_req(i, 8, WRITE);
	TEST_EQ(rmem_lease_grant(lx.ctx, req, LX_MAX, lx.lease), LX_MAX);
	TEST_ERR(rmem_lease_grant(lx.ctx, &req[LX_MAX], 1, lx.lease), ENOSPC);
	TEST_ERR(rmem_lease_prepare(lx.ctx, &req[LX_MAX], 1, lx.lease), ENOSPC);
}

TEST(lease_bad, calls_refuse_another_object)
{
	struct rmem_lease_ctx *const bad[] = {NULL, (struct rmem_lease_ctx *)fx.a.qp};
	const struct rmem_lease_req req = lx_req(0, 8, WRITE);
	struct rmem_lease_stats stats;
	uint32_t i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		TEST_ERR(rmem_lease_grant(bad[i], &req, 1, lx.lease), EINVAL);
		TEST_ERR(rmem_lease_prepare(bad[i], &req, 1, lx.lease), EINVAL);
		TEST_ERR(rmem_lease_post(bad[i], NULL, 0), EINVAL);
		TEST_ERR(rmem_lease_revoke(bad[i], lx.lease, 0), EINVAL);
		TEST_ERR(rmem_lease_poll(bad[i], &fx.wc, 1), EINVAL);
		TEST_ERR(rmem_lease_process_wcs(bad[i], &fx.wc, 0), EINVAL);
		TEST_ERR(rmem_lease_reclaim(bad[i], lx.lease, 1), EINVAL);
		TEST_ERR(rmem_lease_recover(bad[i]), EINVAL);
		TEST_ERR(rmem_lease_trim(bad[i]), EINVAL);
		TEST_ERR(rmem_lease_stats_get(bad[i], &stats), EINVAL);
		TEST_ASSERT(rmem_lease_lookup(bad[i], 0) == NULL);
	}
	TEST_ERR(rmem_lease_stats_get(lx.ctx, NULL), EINVAL);
	TEST_ERR(rmem_lease_ctx_destroy(bad[1]), EINVAL);
	TEST_OK(rmem_lease_ctx_destroy(NULL));
}

TEST(lease_bad, state_is_queried)
{
	TEST_ERR(rmem_lease_recover(lx.ctx), EBUSY);
	lx_grant(1, WRITE);
	TEST_ERR(rmem_lease_ctx_destroy(lx.ctx), EBUSY);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
	lx_wait_state(lx.lease[0], RMEM_LEASE_ENDED);
	TEST_ERR(rmem_lease_ctx_destroy(lx.ctx), EBUSY);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, 1), 1);
	lx_destroy();
}

TEST(lease_bad, post_returns_the_error)
{
	const struct rmem_lease_req req = lx_req(0, 8, WRITE);
	struct rmem_send_wr wr = fx_wr(0xff, NULL, 0);

	TEST_EQ(rmem_lease_prepare(lx.ctx, &req, 1, lx.lease), 1);
	TEST_ERR(rmem_lease_post(lx.ctx, &wr, 1), EINVAL);
	lx_expect_granted(lx.lease[0]);
	TEST_ERR(rmem_lease_post(lx.ctx, &wr, 1), EINVAL);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ERR(rmem_lease_post(lx.ctx, &wr, 1), EBUSY);
	TEST_ERR(grant(&req), EBUSY);
}

static int
create(const void *conf)
{
	struct rmem_lease_ctx *ctx = NULL;
	int ret = rmem_lease_ctx_create(fx.a.qp, conf, &ctx);

	return ctx == NULL ? ret : 0;
}

TEST(lease_bad, bad_configurations_are_refused)
{
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_lease_conf, backend, RMEM_LEASE_UMR + 1, EINVAL),
			FX_BAD(rmem_lease_conf, max_leases, RMEM_LEASE_MAX + 1, EINVAL),
			FX_BAD(rmem_lease_conf, min_leases, RMEM_LEASE_MAX,
					EINVAL), /* > max_leases */
			FX_BAD(rmem_lease_conf, max_length, 0, EINVAL),
			FX_BAD(rmem_lease_conf, quarantine_us, UINT32_MAX, EINVAL),
			FX_BAD(rmem_lease_conf, socket_id, 77, EINVAL),
			FX_BAD(rmem_lease_conf, flags, 1, EINVAL),
			FX_BAD(rmem_lease_conf, pad, 1, EINVAL),
			FX_BAD(rmem_lease_conf, reserved[0], 1, EINVAL),
	};
	struct rmem_lease_ctx *ctx;

	TEST_ERR(rmem_lease_ctx_create(NULL, &lx.conf, &ctx), EINVAL);
	TEST_ERR(rmem_lease_ctx_create((struct rmem_qp *)fx.a.pd, &lx.conf, &ctx), EINVAL);
	TEST_ERR(rmem_lease_ctx_create(fx.a.qp, NULL, &ctx), EINVAL);
	TEST_ERR(rmem_lease_ctx_create(fx.a.qp, &lx.conf, NULL), EINVAL);
	fx_expect_bad_fields(&lx.conf, sizeof(lx.conf), rows, RTE_DIM(rows), create);
}

static int
make_ctx(void **object)
{
	struct rmem_lease_ctx *ctx = NULL;
	int ret;

	ret = rmem_lease_ctx_create(fx.a.qp, &lx.conf, &ctx);
	*object = NULL;
	return ret != 0 ? ret : rmem_lease_ctx_destroy(ctx);
}

TEST(lease_bad, context_without_memory_is_refused)
{
	void *object;

	fx_leave_memory(4096);
	TEST_ERR(make_ctx(&object), ENOMEM);
	fx_free_memory();
	TEST_RUN(make_ctx(&object));
}

LEASE_SUITES(lease_bad);

TEST(lease_auto, fast_registration_is_taken_first)
{
	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_FAST_REG), "no fast registration");
	TEST_EQ(lx_stats().backend, RMEM_LEASE_FAST_REG);
}

/* max_mr and max_mw are the arguments of the software device. */
TEST(lease_auto, device_without_room_is_refused)
{
	struct rmem_dev *dev = fx_dev("soft99", "max_mr=4");
	struct rmem_cq *cq = fx_cq(dev, 8);
	struct rmem_qp *qp = fx_qp(fx_pd(dev), cq, 8);
	struct rmem_lease_conf conf = lx.conf;
	struct rmem_lease_ctx *ctx;
	struct rmem_dev_info info;

	conf.min_leases = 5;
	TEST_ERR(rmem_lease_ctx_create(qp, &conf, &ctx), ENOSPC);
	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_EQ(info.nb_mr, 0);
	conf.min_leases = 4;
	TEST_OK(rmem_lease_ctx_create(qp, &conf, &ctx));
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

TEST(lease_auto, buffers_too_large_for_the_device_are_refused)
{
	struct rmem_dev *dev = fx_dev("soft98", "max_mr_size=65536");
	struct rmem_cq *cq = fx_cq(dev, 8);
	struct rmem_qp *qp = fx_qp(fx_pd(dev), cq, 8);
	struct rmem_lease_conf conf = lx.conf;
	struct rmem_lease_ctx *ctx;

	conf.max_length = 65537;
	TEST_ERR(rmem_lease_ctx_create(qp, &conf, &ctx), EINVAL);
	conf.max_length = 65536;
	TEST_OK(rmem_lease_ctx_create(qp, &conf, &ctx));
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

TEST_SUITE(lease_auto, lx_setup_auto, lx_teardown);
