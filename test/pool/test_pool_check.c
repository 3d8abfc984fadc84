/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Before a pool is created, the check reports limits exceeded, by how much and the remedy. */

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>

#include <rmem_mbuf.h>
#include <rmem_pool.h>

#include "fixture.h"

static struct rmem_pool_report report;

static struct rmem_pool_conf
good_conf(void)
{
	return (struct rmem_pool_conf){.name = "check_test",
			.nb_bufs = 1024,
			.buf_size = 2048,
			.cache_size = 64,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
}

static void
setup(void)
{
	memset(&report, 0xaa, sizeof(report));
	fx_setup();
}

TEST(pool_check, check_reports_a_pool_that_fits)
{
	const struct rmem_pool_conf conf = good_conf();
	struct rmem_pool *pool;
	struct rmem_mr_info info;

	TEST_OK(rmem_pool_check(fx.a.pd, &conf, &report));
	TEST_EQ(report.limits & ~RMEM_POOL_LIMIT_MEMLOCK, 0);
	TEST_TEXT(report.text, "fits");
	TEST_ASSERT(strchr(report.text, '\n') == NULL);
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	info = fx_query(pool->mrs[0]);
	TEST_EQ(report.nb_mrs, pool->nb_mrs);
	TEST_EQ(report.length, info.length);
	TEST_EQ(report.page_size, info.page_size);
	TEST_EQ(report.nb_pages, info.length / info.page_size + 1);
	TEST_EQ(report.memlock, report.length);
	TEST_OK(rmem_pool_destroy(pool));
}

TEST(pool_check, bad_arguments_are_refused_and_nothing_written)
{
	const struct rmem_pool_conf good = good_conf();
	struct rmem_pool_conf conf = good;

	TEST_ERR(rmem_pool_check(NULL, &good, &report), EINVAL);
	TEST_ERR(rmem_pool_check((struct rmem_pd *)fx.a.dev, &good, &report), EINVAL);
	TEST_ERR(rmem_pool_check(fx.a.pd, NULL, &report), EINVAL);
	TEST_ERR(rmem_pool_check(fx.a.pd, &good, NULL), EINVAL);
	conf.nb_bufs = 0;
	TEST_ERR(rmem_pool_check(fx.a.pd, &conf, &report), EINVAL);
	TEST_EQ(report.limits, 0xaaaaaaaa);
}

TEST(pool_check, buffer_over_max_mr_size_is_reported)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=4096"));
	struct rmem_pool_conf conf = good_conf();

	conf.buf_size = 4144;
	TEST_ERR(rmem_pool_check(pd, &conf, &report), EINVAL);
	TEST_EQ(report.limits & ~RMEM_POOL_LIMIT_MEMLOCK, RMEM_POOL_LIMIT_MR_SIZE);
	TEST_EQ(report.buf_size, 4144);
	TEST_EQ(report.max_mr_size, 4096);
	TEST_TEXT(report.text, "max_mr_size");
	TEST_TEXT(report.text, " 48 less");
}

/* By the reported number: with exactly that many it fits. */
TEST(pool_check, missing_mrs_are_counted)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=131072,max_mr=16"));
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pool *pool = NULL;
	uint64_t missing;
	char args[64];

	TEST_ERR(rmem_pool_check(pd, &conf, &report), ENOSPC);
	TEST_EQ(report.limits & ~RMEM_POOL_LIMIT_MEMLOCK, RMEM_POOL_LIMIT_MRS);
	TEST_EQ(report.nb_mrs_left, 16);
	missing = report.nb_mrs - report.nb_mrs_left;
	snprintf(args, sizeof(args), "%u are missing", (unsigned int)missing);
	TEST_TEXT(report.text, args);
	snprintf(args, sizeof(args), "max_mr_size=131072,max_mr=%u", (unsigned int)missing + 16);
	pd = fx_pd(fx_dev("soft2", args));
	TEST_OK(rmem_pool_check(pd, &conf, &report));
	TEST_OK(rmem_pool_create(pd, &conf, &pool));
	TEST_OK(rmem_pool_destroy(pool));
	snprintf(args, sizeof(args), "max_mr_size=131072,max_mr=%u", (unsigned int)missing + 15);
	pd = fx_pd(fx_dev("soft3", args));
	TEST_ERR(rmem_pool_check(pd, &conf, &report), ENOSPC);
	TEST_ERR(rmem_pool_create(pd, &conf, &pool), ENOSPC);
}

TEST(pool_check, missing_memory_is_counted)
{
	struct rmem_pool_conf conf = good_conf();

	conf.nb_bufs = 64u << 20;
	TEST_ERR(rmem_pool_check(fx.a.pd, &conf, &report), ENOMEM);
	TEST_EQ(report.limits & ~RMEM_POOL_LIMIT_MEMLOCK, RMEM_POOL_LIMIT_MEMORY);
	TEST_ASSERT(report.nb_pages > report.nb_pages_left);
	TEST_TEXT(report.text, "missing");
	TEST_TEXT(report.text, rte_eal_has_hugepages() ? "nr_hugepages" : "-m");
}

TEST(pool_check, several_limits_are_reported_in_one_line)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=1048576,max_mr=16"));
	struct rmem_pool_conf conf = good_conf();

	conf.nb_bufs = 64u << 20;
	TEST_ERR(rmem_pool_check(pd, &conf, &report), ENOSPC);
	TEST_EQ(report.limits & ~RMEM_POOL_LIMIT_MEMLOCK,
			RMEM_POOL_LIMIT_MRS | RMEM_POOL_LIMIT_MEMORY);
	TEST_ASSERT(strstr(report.text, "MRs") != NULL &&
			strstr(report.text, "; short of") != NULL);
}

TEST(pool_check, check_reports_an_mbuf_pool_that_fits)
{
	const struct rmem_pktmbuf_pool_conf conf = {
			.name = "check_test",
			.nb_mbufs = 500,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY,
	};
	struct rmem_mempool *pool = NULL;

	TEST_OK(rmem_pktmbuf_pool_check(fx.a.pd, &conf, &report));
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_EQ(report.nb_mrs, pool->nb_mrs);
	TEST_EQ(report.length, pool->registered);
	TEST_OK(rmem_pktmbuf_pool_destroy(pool));
}

TEST(pool_check, mbuf_pool_without_memory_is_enomem)
{
	const struct rmem_pktmbuf_pool_conf conf = {
			.name = "check_test",
			.nb_mbufs = 64u << 20,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY,
	};

	TEST_ERR(rmem_pktmbuf_pool_check(fx.a.pd, &conf, &report), ENOMEM);
}

/* Run as an ordinary user with a limit: its verdict is the exit status. */
static int
check_with_memlock(const struct rmem_pool_conf *conf, rlim_t limit)
{
	struct rlimit memlock = {.rlim_cur = limit, .rlim_max = limit};

	if (setrlimit(RLIMIT_MEMLOCK, &memlock) != 0)
		return 2;
	/* Root has CAP_IPC_LOCK until it drops its privileges. */
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
		return 2;
	if (rmem_pool_check(fx.a.pd, conf, &report) != 0)
		return 3;
	return report.memlock_left <= limit && (report.limits & RMEM_POOL_LIMIT_MEMLOCK) != 0 &&
					strstr(report.text, "RLIMIT_MEMLOCK") != NULL &&
					strstr(report.text, "missing") != NULL
			? 0
			: 1;
}

/* Not a failure: the text restricts it to devices that pin memory. */
TEST(pool_check, short_memlock_is_reported)
{
	const struct rmem_pool_conf conf = good_conf();
	int status = 0;
	pid_t pid;

	pid = fork();
	TEST_ASSERT(pid >= 0);
	if (pid == 0)
		_exit(check_with_memlock(&conf, 65536));
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_ASSERT(WIFEXITED(status));
	TEST_SKIP_IF(WEXITSTATUS(status) == 2, "no right to change the limit or the user");
	TEST_EQ(WEXITSTATUS(status), 0);
}

/* The last case: the slots stay in use. */
TEST(pool_check, checks_of_puts_without_a_slot_for_ops)
{
	const struct rmem_pool_conf conf = {.name = "unchecked",
			.nb_bufs = 64,
			.buf_size = 64,
			.cache_size = 16,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_POOL_CHECK_PUTS};
	struct rte_mempool_ops ops = *rte_mempool_get_ops(0);
	struct rmem_pool *pool;
	struct rmem_sge sge;
	const char *log;
	int i = 0, ret;

	/* Those of the checks are registered once: be the first. */
	do {
		snprintf(ops.name, sizeof(ops.name), "full_%d", i++);
	} while (rte_mempool_register_ops(&ops) >= 0);
	fx_log_begin();
	ret = rmem_pool_create(fx.a.pd, &conf, &pool);
	log = fx_log_end();
	TEST_OK(ret);
	TEST_TEXT(log, "puts are not checked: no free slot");
	TEST_EQ(pool->mp->cache_size, 16);
	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	rmem_pool_put_sges(pool, &sge, 1);
	TEST_OK(rmem_pool_destroy(pool));
}

TEST_SUITE(pool_check, setup, fx_teardown);
