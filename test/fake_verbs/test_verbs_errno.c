/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* For any errno of the kernel, a call returns one that its header documents. */

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <rmem_ah.h>
#include <rmem_dm.h>
#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "setup.h"

/* Errnos of the kernel, and their mapping by calls of each kind. */
static const struct {
	int kernel;
	int make;
	int reg;
	int change;
	int release;
	int advise;
	int resize;
} rows[] = {
		{EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL},
		{ERANGE, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL},
		{EOVERFLOW, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL},
		{ENOMEM, ENOMEM, ENOMEM, EIO, EIO, ENOMEM, ENOMEM},
		{EAGAIN, ENOMEM, ENOMEM, EIO, EIO, ENOMEM, ENOMEM},
		{ENOSPC, ENOSPC, ENOSPC, EIO, EIO, EIO, EIO},
		{EMFILE, ENOSPC, ENOSPC, EIO, EIO, EIO, EIO},
		{EBUSY, EIO, EIO, EIO, EBUSY, EIO, EIO},
		{EPERM, EIO, EIO, EIO, EIO, EPERM, EIO},
		{EACCES, EIO, EIO, EIO, EIO, EPERM, EIO},
		{ENOENT, EIO, EIO, EIO, EIO, ENOENT, EIO},
		{EFAULT, EIO, EFAULT, EIO, EIO, EFAULT, EIO},
		{EOPNOTSUPP, EIO, EOPNOTSUPP, EIO, EIO, EOPNOTSUPP, EOPNOTSUPP},
		{ENOSYS, EIO, EOPNOTSUPP, EIO, EIO, EOPNOTSUPP, EOPNOTSUPP},
		{EEXIST, EIO, EIO, EIO, EIO, EIO, EIO},
		{ENODEV, EIO, EIO, EIO, EIO, EIO, EIO},
		{EPIPE, EIO, EIO, EIO, EIO, EIO, EIO},
		{EIO, EIO, EIO, EIO, EIO, EIO, EIO},
};

static const struct rmem_ah_attr path = {.is_global = 1, .port_num = 1, .dgid = {0xfe, 0x80}};
static const struct rmem_cq_conf cq_conf = {.nb_cqe = 4};
static const struct rmem_cq_attr moderation = {.count = 4, .period_us = 100};
static const struct rmem_cq_conf timed_conf = {.nb_cqe = 4, .flags = RMEM_CQ_TIMESTAMP};
static const struct rmem_dm_conf dm_conf = {.length = 64};
static const struct rmem_srq_conf srq_conf = {.max_wr = 8};
static const struct rmem_xrcd_conf xrcd_conf = {.flags = 0};
static const uint8_t group[16] = {0xff, 0x0e};

/* A call, with what it declares. */
#define CALL(name, declaration, call)                                                              \
	static int name(void)                                                                      \
	{                                                                                          \
		declaration;                                                                       \
		return call;                                                                       \
	}

/* A release of an object, which is released after that. */
#define RELEASE(name, type, make, release)                                                         \
	static int name(void)                                                                      \
	{                                                                                          \
		struct type *object;                                                               \
		int ret;                                                                           \
                                                                                                   \
		TEST_OK(make);                                                                     \
		ret = release(object);                                                             \
		fake.fail_name = NULL;                                                             \
		TEST_OK(release(object));                                                          \
		return ret;                                                                        \
	}

CALL(do_qp_set_error, , rmem_qp_set_error(vt.b))
CALL(do_qp_reset, , rmem_qp_reset(vt.b))
CALL(do_qp_destroy, , rmem_qp_destroy(vt.b))
CALL(do_mw_dealloc, , rmem_mw_dealloc(vt.two))
CALL(do_pd_alloc, struct rmem_pd *pd, rmem_pd_alloc(vt.dev, &pd))
CALL(do_cq_create, struct rmem_cq *cq, rmem_cq_create(vt.dev, &cq_conf, &cq))
CALL(do_cq_modify, , rmem_cq_modify(vt.cq_a, &moderation))
CALL(do_mw_alloc, struct rmem_mw *mw, rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_2, &mw))
CALL(do_mr_reg, struct rmem_mr *mr, rmem_mr_reg(vt.pd, vt.buf, 64, 0, VT_ACCESS, &mr))
CALL(do_channel_create, struct rmem_comp_channel *c, rmem_comp_channel_create(vt.dev, &c))
CALL(do_dm_alloc, struct rmem_dm *dm, rmem_dm_alloc(vt.dev, &dm_conf, &dm))
CALL(do_srq_create, struct rmem_srq *srq, rmem_srq_create(vt.pd, &srq_conf, &srq))
CALL(do_null_mr_alloc, struct rmem_mr *mr, rmem_null_mr_alloc(vt.pd, &mr))
CALL(do_xrcd_alloc, struct rmem_xrcd *xrcd, rmem_xrcd_alloc(vt.dev, &xrcd_conf, &xrcd))
CALL(do_clock_get, uint64_t ticks, rmem_dev_clock_get(vt.dev, &ticks))
CALL(do_timed_cq, struct rmem_cq *cq, rmem_cq_create(vt.dev, &timed_conf, &cq))
CALL(do_ah_create, struct rmem_ah *ah, rmem_ah_create(vt.pd, &path, &ah))
CALL(do_qp_query, struct rmem_qp_attr attr, rmem_qp_query(vt.b, &attr))
CALL(do_dev_create, struct rmem_dev *dev, rmem_dev_create("verbs1", NULL, &dev))

RELEASE(do_ah_destroy, rmem_ah, rmem_ah_create(vt.pd, &path, &object), rmem_ah_destroy)
RELEASE(do_cq_destroy, rmem_cq, rmem_cq_create(vt.dev, &cq_conf, &object), rmem_cq_destroy)
RELEASE(do_dm_free, rmem_dm, rmem_dm_alloc(vt.dev, &dm_conf, &object), rmem_dm_free)
RELEASE(do_null_mr_dereg, rmem_mr, rmem_null_mr_alloc(vt.pd, &object), rmem_mr_dereg)
RELEASE(do_pd_dealloc, rmem_pd, rmem_pd_alloc(vt.dev, &object), rmem_pd_dealloc)
RELEASE(do_srq_destroy, rmem_srq, rmem_srq_create(vt.pd, &srq_conf, &object), rmem_srq_destroy)
RELEASE(do_xrcd_dealloc, rmem_xrcd, rmem_xrcd_alloc(vt.dev, &xrcd_conf, &object), rmem_xrcd_dealloc)

static int
do_dm_reg(void)
{
	struct rmem_mr_ext ext = {.dm_offset = 0};
	const struct rmem_mr_attr attr = {
			.length = 64, .access = RMEM_ACCESS_ZERO_BASED, .ext = &ext};
	struct rmem_mr *mr;
	int ret;

	TEST_OK(rmem_dm_alloc(vt.dev, &dm_conf, &ext.dm));
	ret = rmem_mr_reg_attr(vt.pd, &attr, &mr);
	TEST_OK(rmem_dm_free(ext.dm));
	return ret;
}

/* A call for an SRQ of XRC. */
static int
with_srq(int (*func)(struct rmem_srq *srq))
{
	struct rmem_srq_ext ext = {.cq = vt.cq_a};
	const struct rmem_srq_conf conf = {.max_wr = 8, .ext = &ext};
	struct rmem_srq *srq;
	int ret;

	TEST_OK(rmem_xrcd_alloc(vt.dev, &xrcd_conf, &ext.xrcd));
	TEST_OK(rmem_srq_create(vt.pd, &conf, &srq));
	ret = func(srq);
	TEST_OK(rmem_srq_destroy(srq));
	TEST_OK(rmem_xrcd_dealloc(ext.xrcd));
	return ret;
}

static int
limit_srq(struct rmem_srq *srq)
{
	const struct rmem_srq_attr attr = {.srq_limit = 1};

	return rmem_srq_modify(srq, &attr, RMEM_SRQ_LIMIT);
}

static int
query_srq(struct rmem_srq *srq)
{
	struct rmem_srq_attr attr;

	return rmem_srq_query(srq, &attr);
}

static int
number_srq(struct rmem_srq *srq)
{
	uint32_t number;

	return rmem_srq_num_get(srq, &number);
}

CALL(do_srq_modify, , with_srq(limit_srq))
CALL(do_srq_query, , with_srq(query_srq))
CALL(do_srq_num_get, , with_srq(number_srq))

static int
create_qp(enum rmem_qp_type type)
{
	const struct rmem_qp_conf conf = vt_qp_conf(vt.cq_a, type);
	struct rmem_qp *qp;

	return rmem_qp_create(vt.pd, &conf, &qp);
}

/* b's QP, of UD from now on. */
static struct rmem_qp *
ud_qp(void)
{
	const struct rmem_qp_conf conf = vt_qp_conf(vt.cq_b, RMEM_QPT_UD);

	if (vt.b->type != RMEM_QPT_UD)
		vt_replace_qp(&vt.b, &conf);
	return vt.b;
}

CALL(do_mcast_attach, , rmem_qp_attach_mcast(ud_qp(), group, 0))
CALL(do_mcast_detach, , rmem_qp_detach_mcast(ud_qp(), group, 0))
CALL(do_qp_create, , create_qp(RMEM_QPT_RC))
CALL(do_uc_create, , create_qp(RMEM_QPT_UC))

/* The size is unchanged. */
static int
do_cq_resize(void)
{
	uint32_t nb_cqe = vt.cq_a->nb_cqe;
	int ret = rmem_cq_resize(vt.cq_a, 8);

	TEST_EQ(vt.cq_a->nb_cqe, nb_cqe);
	return ret;
}

static int
do_mr_rereg(void)
{
	enum rmem_rereg_result result;
	int ret;

	fake.rereg_result = IBV_REREG_MR_ERR_DONT_FORK_NEW; /* the MR is unchanged */
	ret = rmem_mr_rereg(vt.mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, &result);
	/* A change that the provider doesn't support is a new registration. */
	return ret == 0 && result == RMEM_REREG_NEW_KEYS ? -EOPNOTSUPP : ret;
}

static int
do_qp_connect(void)
{
	struct rmem_qp_conn conn = {.timeout = 14};
	const char *name = fake.fail_name;
	struct rmem_qp_attr attr;

	fake.fail_name = NULL;
	TEST_OK(rmem_qp_query(vt.b, &attr));
	TEST_OK(rmem_qp_reset(vt.a));
	fake.fail_name = name;
	conn.remote = attr.addr;
	return rmem_qp_connect(vt.a, &conn);
}

static int
do_mr_dereg(void)
{
	int ret = rmem_mr_dereg(vt.mr);

	/* EINVAL, the errno of rdma_rxe for an MR with a window, is mapped to EBUSY. */
	if (ret == -EINVAL)
		return 0;
	return ret == -EBUSY && fake.fail_errno != EBUSY ? -EINVAL : ret;
}

static int
do_mr_advise(void)
{
	struct rmem_mr *mr;
	struct rmem_sge sge;
	int ret;

	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, 64, 0, RMEM_ACCESS_ON_DEMAND, &mr));
	sge = (struct rmem_sge){.addr = (uintptr_t)vt.buf, .length = 64, .lkey = mr->lkey};
	fake.advise_result = fake.fail_errno;
	ret = rmem_mr_advise(vt.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1);
	fake.advise_result = 0;
	TEST_OK(rmem_mr_dereg(mr));
	return ret;
}

/* A call whose device function fails with each errno in turn: mapped as in the column. */
static void
vt_folds(const char *name, int (*func)(void), size_t column)
{
	unsigned int i;
	int want;

	for (i = 0; i < RTE_DIM(rows); i++) {
		want = *(const int *)((const char *)&rows[i] + column);
		fake.fail_name = name;
		fake.fail_errno = rows[i].kernel;
		TEST_ERR(func(), want);
		fake.fail_name = NULL;
	}
}

#define VT_FOLDS(name, func, column) vt_folds(name, func, offsetof(__typeof__(rows[0]), column))

TEST(verbs_errno, creating_calls_map_errnos)
{
	VT_FOLDS("alloc_pd", do_pd_alloc, make);
	VT_FOLDS("create_cq", do_cq_create, make);
	VT_FOLDS("create_qp", do_qp_create, make);
	VT_FOLDS("alloc_mw", do_mw_alloc, make);
	VT_FOLDS("reg_mr", do_mr_reg, reg);
	VT_FOLDS("create_ah", do_ah_create, resize);
	VT_FOLDS("attach_mcast", do_mcast_attach, make);
	VT_FOLDS("create_srq", do_srq_create, make);
	VT_FOLDS("alloc_null_mr", do_null_mr_alloc, make);
	VT_FOLDS("alloc_dm", do_dm_alloc, make);
	VT_FOLDS("reg_dm_mr", do_dm_reg, make);
	VT_FOLDS("create_cq_ex", do_timed_cq, make);
}

TEST(verbs_errno, modifying_calls_map_errnos)
{
	VT_FOLDS("modify_qp", do_qp_set_error, change);
	VT_FOLDS("query_qp", do_qp_query, change);
	VT_FOLDS("query_qp", do_qp_reset, change);
	VT_FOLDS("modify_qp", do_qp_reset, change);
	VT_FOLDS("modify_qp", do_qp_connect, change);
	VT_FOLDS("", do_mr_rereg, reg);
	VT_FOLDS("", do_mr_advise, advise);
	VT_FOLDS("resize_cq", do_cq_resize, resize);
	VT_FOLDS("detach_mcast", do_mcast_detach, change);
	VT_FAILS("query_rt_values", ENOMEM, do_clock_get(), EIO);
}

TEST(verbs_errno, releasing_calls_map_errnos)
{
	VT_FOLDS("dealloc_mw", do_mw_dealloc, release);
	VT_FOLDS("destroy_qp", do_qp_destroy, release);
	VT_FOLDS("destroy_cq", do_cq_destroy, release);
	VT_FOLDS("dereg_mr", do_mr_dereg, release);
	VT_FOLDS("dealloc_pd", do_pd_dealloc, release);
	VT_FOLDS("destroy_ah", do_ah_destroy, release);
	VT_FOLDS("destroy_srq", do_srq_destroy, release);
	VT_FOLDS("dereg_mr", do_null_mr_dereg, release);
	VT_FOLDS("free_dm", do_dm_free, release);
}

/* Which devices with the windows of rdma_rxe do not have. */
TEST(verbs_errno, calls_of_xrc_map_errnos)
{
	TEST_OK(vt_close());
	fake.has_rxe_windows = false;
	TEST_OK(vt_open());
	VT_FOLDS("open_xrcd", do_xrcd_alloc, make);
	VT_FOLDS("close_xrcd", do_xrcd_dealloc, release);
	VT_FOLDS("modify_srq", do_srq_modify, resize);
	VT_FOLDS("query_srq", do_srq_query, change);
	VT_FOLDS("get_srq_num", do_srq_num_get, change);
}

/* Capabilities that the fake lacks: of itself, by a field, or if a call of the probe fails. */
static const struct {
	uint64_t capa;
	int (*func)(void);
	bool *is_missing;
	const char *fails;
} features[] = {
		{RMEM_DEV_CAPA_COMP_CHANNEL, do_channel_create, NULL, "create_comp_channel"},
		{RMEM_DEV_CAPA_COMP_CHANNEL, do_channel_create, NULL, "req_notify_cq"},
		{RMEM_DEV_CAPA_CQ_MODERATION, do_cq_modify, NULL, NULL},
		{RMEM_DEV_CAPA_CQ_RESIZE, do_cq_resize, &fake.has_no_resize, NULL},
		{RMEM_DEV_CAPA_CQ_TIMESTAMP, do_timed_cq, NULL, NULL},
		{RMEM_DEV_CAPA_CQ_TIMESTAMP, do_clock_get, NULL, NULL},
		{RMEM_DEV_CAPA_CQ_TIMESTAMP, do_timed_cq, NULL, "create_cq_ex"},
		{RMEM_DEV_CAPA_DM, do_dm_alloc, NULL, NULL},
		{RMEM_DEV_CAPA_DM, do_dm_alloc, NULL, "reg_dm_mr"},
		{RMEM_DEV_CAPA_MCAST, do_mcast_attach, &fake.has_no_mcast, NULL},
		{RMEM_DEV_CAPA_MCAST, do_mcast_detach, &fake.has_no_mcast, NULL},
		{RMEM_DEV_CAPA_NULL_MR, do_null_mr_alloc, NULL, NULL},
		{RMEM_DEV_CAPA_SRQ, do_srq_create, NULL, NULL},
		{RMEM_DEV_CAPA_UC, do_uc_create, &fake.has_no_uc, NULL},
		{RMEM_DEV_CAPA_UD, do_ah_create, &fake.has_no_ud, NULL},
		{RMEM_DEV_CAPA_UD, do_ah_create, NULL, "create_ah"},
		{RMEM_DEV_CAPA_XRC, do_xrcd_alloc, NULL, NULL},
		{RMEM_DEV_CAPA_XRC, do_xrcd_alloc, NULL, "get_srq_num"},
};

TEST(verbs_errno, calls_without_their_capability_are_eopnotsupp)
{
	struct rmem_dev_info info;
	unsigned int i;

	for (i = 0; i < RTE_DIM(features); i++) {
		TEST_OK(vt_close());
		fake_reset();
		if (features[i].is_missing != NULL)
			*features[i].is_missing = true;
		if (features[i].fails != NULL) {
			fake.max_dm_size = 65536;
			fake.timestamp_mask = UINT64_MAX;
			fake.has_srq = true;
			fake.has_xrc = true;
		}
		fake.fail_name = features[i].fails;
		fake.fail_errno = EOPNOTSUPP;
		TEST_OK(vt_open());
		fake.fail_name = NULL;
		TEST_OK(rmem_dev_info_get(vt.dev, &info));
		TEST_EQ(info.capa & features[i].capa, 0);
		TEST_ERR(features[i].func(), EOPNOTSUPP);
	}
}

/* The limit of locked memory as it was is put back. */
static void
vt_limit_memlock(rlim_t bytes, struct rlimit *old)
{
	struct rlimit limit;

	TEST_EQ(getrlimit(RLIMIT_MEMLOCK, old), 0);
	limit = *old;
	limit.rlim_cur = bytes;
	TEST_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

/* A call that fails with an errno of the kernel, with one log line that has the remedy. */
static void
vt_logs_memlock(int err, rlim_t bytes, int (*func)(void), const char *want)
{
	struct rlimit old;
	char limit[64];
	const char *log;
	int ret;

	snprintf(limit, sizeof(limit), "RLIMIT_MEMLOCK allows %llu bytes, other MRs",
			(unsigned long long)bytes);
	vt_limit_memlock(bytes, &old);
	vt_fail("reg_mr", err);
	vt_log_begin();
	ret = func();
	log = vt_log_end();
	fake.fail_name = NULL;
	TEST_EQ(setrlimit(RLIMIT_MEMLOCK, &old), 0);
	TEST_ERR(ret, ENOMEM);
	TEST_TEXT(log, want);
	TEST_TEXT(log, limit);
	TEST_ASSERT(strchr(log, '\n') == log + strlen(log) - 1);
}

/* The NIC decides what completes with an error. */
TEST(verbs_errno, late_errors_are_not_supported)
{
	struct rmem_qp_conf conf = vt_qp_conf(vt.cq_a, RMEM_QPT_RC);
	struct rmem_qp *qp;

	conf.flags = RMEM_QP_LATE_ERRORS;
	TEST_ERR(rmem_qp_create(vt.pd, &conf, &qp), EOPNOTSUPP);
}

TEST(verbs_errno, low_memlock_is_reported_in_one_line)
{
	vt_logs_memlock(ENOMEM, 65536, do_mr_reg, "ibv_reg_mr: 64 bytes at ");
	vt_logs_memlock(EPERM, 0, do_mr_reg, "Cannot allocate memory (RLIMIT");
	vt_logs_memlock(EPERM, 0, do_dev_create, "probe: ibv_reg_mr: 4096 bytes at ");
}

/* With all that the fake has. */
static void
setup(void)
{
	vt_setup_fake();
	fake.has_rxe_windows = true;
	fake.has_srq = true;
	fake.has_xrc = true;
	fake.has_null_mr = true;
	fake.max_dm_size = 65536;
	fake.timestamp_mask = UINT64_MAX;
	TEST_OK(vt_open_mw());
}

TEST_SUITE(verbs_errno, setup, vt_teardown);
