/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The examples of README.md and doc/, compiled and run. check_examples.py checks that the code
 * between "example: NAME" and "end of example" is what the page of that name shows.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include <rmem.h>
#include <rmem_pool.h>

#include "fixture.h"
#include "test.h"

/* Output of the smallest program. */
static char printed[256];

static int
print(const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(printed, sizeof(printed), format, args);
	va_end(args);
	return length;
}

/* EAL runs already, and continues when the program ends. */
static int
fake_eal_init(int argc, char **argv)
{
	return argc > 0 && argv[0] != NULL ? argc : -1;
}

static int
fake_eal_cleanup(void)
{
	return 0;
}

int readme_main(int argc, char **argv);

#define main            readme_main
#define printf          print
#define rte_eal_init    fake_eal_init
#define rte_eal_cleanup fake_eal_cleanup

/* example: readme */
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include <rmem.h>

static int
connect_to(struct rmem_qp *qp, struct rmem_qp *peer)
{
	struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7};
	struct rmem_qp_attr attr;

	if (rmem_qp_query(peer, &attr) != 0)
		return -1;
	conn.remote = attr.addr;
	return rmem_qp_connect(qp, &conn);
}

int
main(int argc, char **argv)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	struct rmem_cq_conf cq_conf = {.nb_cqe = 64};
	struct rmem_qp_conf qp_conf = {.type = RMEM_QPT_RC, .max_send_wr = 32, .max_send_sge = 1};
	struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE, .flags = RMEM_SEND_SIGNALED};
	struct rmem_sge sge;
	struct rmem_qp *a, *b;
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_mr *mr;
	struct rmem_cq *cq;
	struct rmem_wc wc;
	int n;

	/* A device, and a page of memory that one call allocates and registers. */
	if (rte_eal_init(argc, argv) < 0 || rmem_dev_create("soft0", NULL, &dev) != 0 ||
			rmem_pd_alloc(dev, &pd) != 0 || rmem_cq_create(dev, &cq_conf, &cq) != 0 ||
			rmem_mr_reg(pd, NULL, 4096, 0, access | RMEM_ACCESS_ALLOCATE_MR, &mr) != 0)
		return 1; /* the log has the reason */

	/* Two queue pairs, connected to each other. */
	qp_conf.send_cq = qp_conf.recv_cq = cq;
	qp_conf.access = RMEM_ACCESS_REMOTE_WRITE;
	if (rmem_qp_create(pd, &qp_conf, &a) != 0 || rmem_qp_create(pd, &qp_conf, &b) != 0 ||
			connect_to(a, b) != 0 || connect_to(b, a) != 0)
		return 1;

	/* a writes six bytes to its peer b; here both sides use the same MR. */
	memcpy(mr->addr, "hello", 6);
	sge = (struct rmem_sge){mr->iova, 6, mr->lkey};
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.rdma.remote_addr = mr->iova + 2048;
	wr.rdma.rkey = mr->rkey;
	if (rmem_post_send(a, &wr, 1) != 1)
		return 1;
	while ((n = rmem_poll_cq(cq, &wc, 1)) == 0)
		;
	if (n < 0)
		return 1;
	printf("%s: %s\n", rmem_wc_status_str(wc.status), (char *)mr->addr + 2048);

	return rmem_qp_destroy(a) != 0 || rmem_qp_destroy(b) != 0 || rmem_cq_destroy(cq) != 0 ||
			rmem_mr_dereg(mr) != 0 || rmem_pd_dealloc(pd) != 0 ||
			rmem_dev_close(dev) != 0 || rte_eal_cleanup() != 0;
}
/* end of example */

#undef main
#undef printf
#undef rte_eal_init
#undef rte_eal_cleanup

TEST(doc_examples, program_of_the_readme_prints_its_output)
{
	char name[] = "readme";
	char *argv[] = {name, NULL};

	if (rmem_dev_get_by_name("soft0") != NULL)
		test_skip("a failed test has not closed soft0");
	printed[0] = '\0';
	TEST_EQ(readme_main(1, argv), 0);
	TEST_EQ(strcmp(printed, "SUCCESS: hello\n"), 0);
}

/* example: fast_reg */
static int
post_and_wait(struct rmem_qp *qp, struct rmem_cq *cq, const struct rmem_send_wr *wr)
{
	struct rmem_wc wc;
	int n;

	if (rmem_post_send(qp, wr, 1) != 1)
		return -1;
	while ((n = rmem_poll_cq(cq, &wc, 1)) == 0)
		;
	return n == 1 && wc.status == RMEM_WC_SUCCESS ? 0 : -1;
}

/* Let the peer write to a page of 4 KiB. Then send it the address and mr->rkey. */
static int
grant(struct rmem_qp *qp, struct rmem_cq *cq, struct rmem_mr *mr,
		struct rmem_fast_reg_page_list *list, void *page)
{
	struct rmem_send_wr wr = {
			.opcode = RMEM_WR_REG_MR,
			.flags = RMEM_SEND_SIGNALED,
			.reg_mr.mr = mr,
			.reg_mr.page_list = list,
			.reg_mr.page_list_len = 1,
			.reg_mr.log2_page_size = 12,
			.reg_mr.iova = (uintptr_t)page,
			.reg_mr.length = 4096,
			.reg_mr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			.reg_mr.key_tag = rmem_rkey_next_tag(mr->rkey),
	};

	list->page_list[0] = (uintptr_t)page;
	return post_and_wait(qp, cq, &wr);
}

/* When it returns 0, the peer can no longer access the page, and the page may be reused. */
static int
revoke(struct rmem_qp *qp, struct rmem_cq *cq, const struct rmem_mr *mr)
{
	struct rmem_send_wr wr = {
			.opcode = RMEM_WR_LOCAL_INV,
			.flags = RMEM_SEND_SIGNALED,
			.invalidate_rkey = mr->rkey,
	};

	return post_and_wait(qp, cq, &wr);
}
/* end of example */

TEST_WITH(doc_examples, peer_writes_only_between_grant_and_revoke, fx_setup_fast)
{
	struct rmem_mr *mr = fx.fast.mr;
	uint8_t *page = fx.fast.pages;
	uint32_t first;

	TEST_OK(grant(fx.a.qp, fx.a.cq, mr, fx.fast.list, page));
	first = mr->rkey;
	TEST_STATUS(fx_peer_write(fx_addr(page), 8, first), RMEM_WC_SUCCESS);
	TEST_OK(revoke(fx.a.qp, fx.a.cq, mr));
	TEST_OK(grant(fx.a.qp, fx.a.cq, mr, fx.fast.list, page));
	TEST_ASSERT(mr->rkey != first);
	TEST_STATUS(fx_peer_write(fx_addr(page), 8, mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(fx_addr(page), 8, first), RMEM_WC_REM_ACCESS_ERR);
}

TEST(doc_examples, device_takes_arguments)
{
	struct rmem_dev *dev = NULL;
	struct rmem_dev_info info;
	int ret;

	if (rmem_dev_get_by_name("soft0") != NULL)
		test_skip("a failed test has not closed soft0");
	/* example: soft_args */
	ret = rmem_dev_create("soft0", "max_mr=65536,max_qp=64", &dev);
	/* end of example */
	TEST_OK(ret);
	fx_track(dev);
	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_EQ(info.max_mr, 65536);
	TEST_EQ(info.max_qp, 64);
}

/* example: recover */
/*
 * Recover after a completion with an error: reset the QP, send the peer its new address, and
 * connect the QP to that of the peer. Only this QP uses the CQ. The buffers of all requests are
 * owned by the caller again.
 */
static int
reset(struct rmem_qp *qp, struct rmem_cq *cq, struct rmem_qp_addr *addr)
{
	struct rmem_qp_attr attr;
	struct rmem_wc wc[32];
	int n;

	if (rmem_qp_reset(qp) != 0)
		return -1;
	/* Completions from before the reset are still in the CQ. */
	while ((n = rmem_poll_cq(cq, wc, 32)) > 0)
		;
	if (n != 0 || rmem_qp_query(qp, &attr) != 0)
		return -1;
	*addr = attr.addr; /* with packets, it has another psn */
	return 0;
}
/* end of example */

TEST_WITH(doc_examples, queue_pair_is_usable_after_recover, fx_setup)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), 0);
	struct rmem_qp_conn to_a = fx_conn(), to_b = fx_conn();

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx_post(fx.a.qp, &wr), 1); /* flushed, and left in the CQ */
	TEST_OK(reset(fx.a.qp, fx.a.cq, &to_a.remote));
	TEST_OK(reset(fx.b.qp, fx.b.cq, &to_b.remote));
	TEST_OK(rmem_qp_connect(fx.a.qp, &to_b));
	TEST_OK(rmem_qp_connect(fx.b.qp, &to_a));
	wr.rdma.rkey = fx.b.mr->rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

/* doc/pool.md shows this as it stands. */
#include <rmem.h>
#include <rmem_pool.h>

static int
send_burst(struct rmem_pd *pd, struct rmem_qp *qp)
{
	const struct rmem_pool_conf conf = {
			.name = "bufs",
			.nb_bufs = 8191,
			.buf_size = 2048,
			.cache_size = 256,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			.socket_id = SOCKET_ID_ANY,
	};
	struct rmem_send_wr wr = {
			.opcode = RMEM_WR_SEND, .num_sge = 1, .flags = RMEM_SEND_SIGNALED};
	struct rmem_sge sge[32];
	struct rmem_pool *pool;
	struct rmem_wc wc;
	int ret;

	ret = rmem_pool_create(pd, &conf, &pool);
	if (ret != 0)
		return ret; /* the log has the reason */
	ret = rmem_pool_get_sges(pool, sge, 32);
	if (ret != 0)
		goto destroy; /* -ENOENT: fewer than 32 buffers are free */
	wr.sg_list = &sge[0];
	ret = rmem_post_send(qp, &wr, 1);
	while (ret == 1 && rmem_poll_cq(qp->send_cq, &wc, 1) == 0)
		; /* the buffer is the device's until its completion */
	rmem_pool_put_sges(pool, sge, 32);
destroy:
	rmem_pool_destroy(pool);
	return ret;
}

TEST_WITH(doc_examples, message_from_a_pool_arrives, fx_setup)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 2048);

	TEST_EQ(fx_post_recv(fx.b.qp, 1, &sge, 1), 1);
	TEST_EQ(send_burst(fx.a.pd, fx.a.qp), 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, 2048);
}

TEST_SUITE(doc_examples, fx_setup_none, fx_teardown);
