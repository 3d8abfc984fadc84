/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Devices are created by name, looked up, queried, counted and closed as in rmem_dev.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_memory.h>

#include "fixture.h"

TEST(dev, created_device_is_found_by_name)
{
	struct rmem_dev *dev = fx_dev("soft7", NULL);

	TEST_EQ(strcmp(dev->name, "soft7"), 0);
	TEST_ASSERT(rmem_dev_get_by_name("soft7") == dev);
	TEST_OK(fx_release(dev));
	TEST_ASSERT(rmem_dev_get_by_name("soft7") == NULL);
}

TEST(dev, unknown_name_finds_no_device)
{
	TEST_ASSERT(rmem_dev_get_by_name("soft1") == NULL);
	TEST_ASSERT(rmem_dev_get_by_name("soft") == NULL);
	TEST_ASSERT(rmem_dev_get_by_name("") == NULL);
	TEST_ASSERT(rmem_dev_get_by_name(NULL) == NULL);
}

TEST(dev, foreach_visits_every_device_once)
{
	struct rmem_dev *dev, *made[4];
	unsigned int nb = 0;
	char name[RMEM_NAME_SIZE];
	int i;

	made[0] = fx.a.dev;
	for (i = 1; i < 4; i++) {
		snprintf(name, sizeof(name), "soft%d", i);
		made[i] = fx_dev(name, "max_mr=8");
	}
	TEST_OK(fx_release(made[1]));
	RMEM_DEV_FOREACH(dev) {
		TEST_ASSERT(dev == made[0] || dev == made[2] || dev == made[3]);
		nb++;
	}
	TEST_EQ(nb, 3);
}

TEST(dev, bad_names_are_refused)
{
	static const char *const names[] = {NULL, "", "soft", "0", "7soft",
			"soft0123456789012345678901234567", "soft 0x"};
	struct rmem_dev *dev = NULL;
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++) {
		TEST_ERR(rmem_dev_create(names[i], NULL, &dev), EINVAL);
		TEST_ASSERT(dev == NULL);
	}
	TEST_ERR(rmem_dev_create("soft1", NULL, NULL), EINVAL);
	TEST_ASSERT(rmem_dev_get_by_name("soft1") == NULL);
	/* RMEM_NAME_SIZE counts the closing NUL. */
	dev = fx_dev("soft000000000000000000000000001", "max_mr=8");
	TEST_EQ(strlen(dev->name), RMEM_NAME_SIZE - 1);
}

TEST(dev, unknown_driver_is_enodev_and_named_in_the_log)
{
	struct rmem_dev *dev = NULL;

	FX_ERR_LOG(rmem_dev_create("hard3", NULL, &dev), ENODEV, "hard3");
	TEST_ERR(rmem_dev_create("sof0", NULL, &dev), ENODEV);
	TEST_ERR(rmem_dev_create("softer0", NULL, &dev), ENODEV);
	TEST_ASSERT(dev == NULL);
}

TEST(dev, name_in_use_is_eexist)
{
	struct rmem_dev *dev = NULL;

	TEST_ERR(rmem_dev_create("soft0", NULL, &dev), EEXIST);
	TEST_ASSERT(dev == NULL);
	TEST_ASSERT(rmem_dev_get_by_name("soft0") == fx.a.dev);
}

TEST(dev, one_device_too_many_is_enospc_until_one_is_closed)
{
	static const char *const args = "max_mr=8,max_qp=4,max_cq=4,max_pd=4";
	struct rmem_dev *dev = NULL;
	struct rmem_dev *last = NULL;
	char name[16];
	int i;

	for (i = 1; i < RMEM_MAX_DEVS; i++) {
		snprintf(name, sizeof(name), "soft%d", i);
		last = fx_dev(name, args);
	}
	TEST_ERR(rmem_dev_create("soft100", args, &dev), ENOSPC);
	TEST_ASSERT(dev == NULL);
	TEST_OK(fx_release(last));
	fx_dev("soft100", args);
}

static int
make_dev(void **dev)
{
	return rmem_dev_create("soft1", NULL, (struct rmem_dev **)dev);
}

TEST(dev, no_memory_is_enomem_and_nothing_stays)
{
	fx_expect_enomem(make_dev);
	TEST_ASSERT(rmem_dev_get_by_name("soft1") == NULL);
}

TEST_WITH(dev, device_is_usable_after_a_refused_close, fx_setup)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);

	fx_fill(fx.a.buf, 64, 1);
	FX_ERR_LOG(rmem_dev_close(fx.a.dev), EBUSY, "soft0");
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf, 64);
}

TEST(dev, info_reports_limits_and_capabilities)
{
	struct rmem_dev *dev = fx_dev("soft1",
			"max_pd=3,max_mr=5,max_cq=7,max_qp=9,max_cqe=100,"
			"max_wr=20,max_sge=2,max_inline=32,"
			"max_mr_size=8192,max_page_list_len=11,max_mw=6");
	struct rmem_dev_info info = fx_dev_info(dev);

	TEST_EQ(strcmp(info.driver_name, "soft"), 0);
	TEST_EQ(info.capa,
			RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_LOCAL_INV |
					RMEM_DEV_CAPA_SEND_WITH_INV | RMEM_DEV_CAPA_READ_WITH_INV |
					RMEM_DEV_CAPA_ATOMIC | RMEM_DEV_CAPA_REQUESTED_KEY |
					RMEM_DEV_CAPA_MR_COUNTER | RMEM_DEV_CAPA_MR_ENABLE |
					RMEM_DEV_CAPA_INLINE_RECV | RMEM_DEV_CAPA_MW_TYPE_1 |
					RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_REREG |
					RMEM_DEV_CAPA_SHARED_MR | RMEM_DEV_CAPA_UMR |
					RMEM_DEV_CAPA_MR_IOV | RMEM_DEV_CAPA_MR_FD |
					RMEM_DEV_CAPA_SRQ | RMEM_DEV_CAPA_SRQ_RESIZE |
					RMEM_DEV_CAPA_COMP_CHANNEL | RMEM_DEV_CAPA_UC |
					RMEM_DEV_CAPA_UD | RMEM_DEV_CAPA_CQ_RESIZE |
					RMEM_DEV_CAPA_ASYNC_EVENT | RMEM_DEV_CAPA_GSI |
					RMEM_DEV_CAPA_MCAST | RMEM_DEV_CAPA_ATOMIC_WRITE |
					RMEM_DEV_CAPA_FLUSH | RMEM_DEV_CAPA_NULL_MR |
					RMEM_DEV_CAPA_CQ_TIMESTAMP | RMEM_DEV_CAPA_CQ_MODERATION |
					RMEM_DEV_CAPA_XRC | RMEM_DEV_CAPA_DM |
					RMEM_DEV_CAPA_QP_COUNTER | RMEM_DEV_CAPA_RATE_LIMIT);
	TEST_EQ(info.max_pd, 3);
	TEST_EQ(info.max_mr, 5);
	TEST_EQ(info.max_mw, 6);
	TEST_EQ(info.max_cq, 7);
	TEST_EQ(info.max_qp, 9);
	TEST_EQ(info.max_cqe, 100);
	TEST_EQ(info.max_send_wr, 20);
	TEST_EQ(info.max_recv_wr, 20);
	TEST_EQ(info.max_send_sge, 2);
	TEST_EQ(info.max_recv_sge, 2);
	TEST_EQ(info.max_inline_data, 32);
	TEST_EQ(info.max_mr_size, 8192);
	TEST_EQ(info.max_page_list_len, 11);
	TEST_EQ(info.access & FX_ACCESS, FX_ACCESS);
	TEST_ASSERT(info.max_msg_size >= FX_BUF_SIZE);
	TEST_ASSERT((info.page_size_cap & FX_PAGE) != 0);
}

TEST_WITH(dev, info_counts_objects_in_use, fx_setup)
{
	struct rmem_dev_info before, after;

	TEST_OK(rmem_dev_info_get(fx.a.dev, &before));
	fx_pd(fx.a.dev);
	fx_fast_mr(fx.a.pd, 1);
	fx_mr(fx.a.pd, fx.a.buf, 1, 0);
	fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	fx_cq(fx.a.dev, 1);
	fx_qp(fx.a.pd, fx.a.cq, 1);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &after));
	TEST_EQ(after.nb_mw, before.nb_mw + 1);
	TEST_EQ(after.nb_pd, before.nb_pd + 1);
	TEST_EQ(after.nb_mr, before.nb_mr + 2);
	TEST_EQ(after.nb_cq, before.nb_cq + 1);
	TEST_EQ(after.nb_qp, before.nb_qp + 1);
}

TEST(dev, null_and_wrong_arguments_of_queries_are_refused)
{
	struct rmem_dev_stats stats;
	struct rmem_dev_info info;
	static uint64_t zeros[64] __rte_cache_aligned;
	struct rmem_dev *wrong = (struct rmem_dev *)zeros;

	TEST_ERR(rmem_dev_info_get(NULL, &info), EINVAL);
	TEST_ERR(rmem_dev_info_get(wrong, &info), EINVAL);
	TEST_ERR(rmem_dev_info_get(fx.a.dev, NULL), EINVAL);
	TEST_ERR(rmem_dev_stats_get(NULL, &stats), EINVAL);
	TEST_ERR(rmem_dev_stats_get(wrong, &stats), EINVAL);
	TEST_ERR(rmem_dev_stats_get(fx.a.dev, NULL), EINVAL);
	TEST_ERR(rmem_dev_stats_reset(NULL), EINVAL);
	TEST_ERR(rmem_dev_stats_reset(wrong), EINVAL);
	TEST_ERR(rmem_dev_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_dev_dump(wrong, stdout), EINVAL);
	TEST_ERR(rmem_dev_dump(fx.a.dev, NULL), EINVAL);
	TEST_OK(rmem_dev_close(NULL));
	TEST_ERR(rmem_dev_close(wrong), EINVAL);
	TEST_ERR(rmem_dev_close((struct rmem_dev *)fx_pd(fx.a.dev)), EINVAL);
}

TEST_WITH(dev, stats_count_successful_requests, fx_setup)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	struct rmem_mr *mr = fx_fast_mr(fx.a.pd, 1);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 100);
	struct rmem_dev_stats stats;
	struct rmem_send_wr wr;

	fx_list_pages(list, fx.a.buf, 1);
	TEST_OK(rmem_dev_stats_reset(fx.a.dev));
	wr = fx_reg(mr, list, 1, 0, FX_PAGE);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_invalidate(mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &sge, 1), 1);
	wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_EQ(stats.send_wrs, 3);
	TEST_EQ(stats.recv_wrs, 1);
	TEST_EQ(stats.bytes, 100);
	TEST_EQ(stats.reg_mrs, 1);
	TEST_EQ(stats.invalidates, 1);
	TEST_EQ(stats.errors, 0);
	TEST_EQ(stats.flushed, 0);
}

TEST_WITH(dev, stats_count_failed_requests, fx_setup)
{
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_dev_stats stats;
	struct rmem_send_wr wr;

	TEST_OK(rmem_dev_stats_reset(fx.a.dev));
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey ^ 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_WR_FLUSH_ERR);
	fx_reconnect();
	sge.lkey ^= 1;
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_EQ(stats.errors, 2);
	TEST_EQ(stats.flushed, 2);
	TEST_EQ(stats.rem_access_errors, 1);
	TEST_EQ(stats.local_prot_errors, 1);
	TEST_EQ(stats.bytes, 0);
}

TEST_WITH(dev, stats_count_waiting_requests, fx_setup)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_dev_stats stats;

	TEST_OK(rmem_dev_stats_reset(fx.a.dev));
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_ASSERT(stats.rnr_retries > 0);
	TEST_EQ(stats.queued, 1);
}

TEST_WITH(dev, stats_start_from_zero_after_a_reset, fx_setup)
{
	static const struct rmem_dev_stats zero;
	struct rmem_dev_stats stats;

	device_is_usable_after_a_refused_close();
	TEST_EQ(fx_dev_stats(fx.a.dev).send_wrs, 1);
	TEST_OK(rmem_dev_stats_reset(fx.a.dev));
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_MEM(&stats, &zero, sizeof(stats));
}

TEST(dev, dump_prints_name_limits_and_counters)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool is_complete;

	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_dev_dump(fx.a.dev, f));
	fclose(f);
	is_complete = strstr(text, "soft0") != NULL && strstr(text, "16384") != NULL &&
			strstr(text, "send_wrs: 0") != NULL;
	free(text);
	TEST_ASSERT(is_complete);
}

/* The fast path of a number that no device has. */
TEST(dev, fast_path_without_a_device_is_enodev)
{
	static struct rmem_qp qp;
	static struct rmem_cq cq;
	struct rmem_recv_wr recv_wr = {0};
	struct rmem_send_wr send_wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_wc wc;

	qp.obj.type = RMEM_OBJ_QP;
	qp.obj.dev_id = RMEM_MAX_DEVS - 1;
	cq.obj.type = RMEM_OBJ_CQ;
	cq.obj.dev_id = RMEM_MAX_DEVS - 1;
	TEST_ERR(rmem_post_send(&qp, &send_wr, 1), ENODEV);
	TEST_ERR(rmem_post_recv(&qp, &recv_wr, 1), ENODEV);
	TEST_ERR(rmem_poll_cq(&cq, &wc, 1), ENODEV);
	qp.obj.dev_id = fx.a.dev->obj.dev_id;
	TEST_OK(fx_release(fx.a.dev));
	TEST_ERR(rmem_post_send(&qp, &send_wr, 1), ENODEV);
	TEST_ASSERT(rmem_fp[qp.obj.dev_id].post_send != NULL);
}

TEST_SUITE(dev, fx_setup_dev, fx_teardown);
