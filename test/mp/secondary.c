/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A DPDK primary process and a secondary one, or a child of fork(): they can use nothing of rmem,
 * and the primary continues to use its device.
 *
 * usage: dpdk-test-secondary
 *
 * The primary creates objects of each kind and runs the same program once more as its secondary,
 * which gets the addresses of the objects. Then it calls fork().
 */

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mempool.h>

#ifdef TEST_WITH_CM
#include <rmem_cm.h>
#endif
#include <rmem_driver.h>
#include <rmem_lease.h>
#include <rmem_mbuf.h>

#include "proc.h"
#include "rc.h"

#define BUF_SIZE 4096u
#define DEV_ARGS "max_mr=64,max_mw=64,max_qp=8,max_cq=8"

/* In shared memory: what the primary made. */
struct handles {
	struct rmem_dev *dev; /* not shared: an address that means nothing to the secondary */
	struct rmem_pd *pd;
	struct rmem_mr *mr;
	struct rmem_mr *fast;
	struct rmem_fast_reg_page_list *list;
	struct rmem_mw *mw;
	struct rmem_eq *eq;
	struct rmem_counter *counter;
	struct rmem_cq *cq;
	struct rmem_srq *srq;
	struct rmem_qp *qp;
	struct rmem_qp *peer;
	struct rmem_pool *pool;
	struct rte_mempool *mp;
	struct rmem_mempool *reg;
	struct rmem_lease_ctx *ctx;
	uint8_t buf[BUF_SIZE];
};

/* Calls that create something, each on an object of the primary's. */
static void
secondary_creates_nothing(struct handles *h)
{
	const struct rmem_lease_conf lease_conf = {.max_length = 1, .socket_id = SOCKET_ID_ANY};
	const struct rmem_pool_conf pool_conf = {
			.name = "p", .nb_bufs = 1, .buf_size = 64, .socket_id = SOCKET_ID_ANY};
	struct rmem_qp_conf qp_conf = {.send_cq = h->cq, .recv_cq = h->cq, .type = RMEM_QPT_RC};
	const struct rmem_mr_attr attr = {.addr = h->buf, .length = 1};
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 1};
	const struct rmem_srq_conf srq_conf = {.max_wr = 1};
	struct rmem_pool_report report;
	void *out = NULL;

	TEST_ERR(rmem_dev_create("soft0", DEV_ARGS, (struct rmem_dev **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_dev_create("soft1", NULL, (struct rmem_dev **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_dev_create("verbs0", NULL, (struct rmem_dev **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_pd_alloc(h->dev, (struct rmem_pd **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(h->pd, h->buf, 1, 0, 0, (struct rmem_mr **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg_attr(h->pd, &attr, (struct rmem_mr **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg_shared(h->mr, h->pd, 0, 0, (struct rmem_mr **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_mr_alloc(h->pd, 1, (struct rmem_mr **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_page_list_alloc(h->dev, 1, (struct rmem_fast_reg_page_list **)&out),
			EOPNOTSUPP);
	TEST_ERR(rmem_mkey_alloc(h->pd, 1, (struct rmem_mr **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_mw_alloc(h->pd, RMEM_MW_TYPE_2, (struct rmem_mw **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_cq_create(h->dev, &cq_conf, (struct rmem_cq **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_srq_create(h->pd, &srq_conf, (struct rmem_srq **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_qp_create(h->pd, &qp_conf, (struct rmem_qp **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_eq_create(h->dev, &(struct rmem_eq_conf){.nb_events = 1},
				 (struct rmem_eq **)&out),
			EOPNOTSUPP);
	TEST_ERR(rmem_counter_create(h->dev, NULL, (struct rmem_counter **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_pool_create(h->pd, &pool_conf, (struct rmem_pool **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_pool_check(h->pd, &pool_conf, &report), EOPNOTSUPP);
	TEST_ERR(rmem_mempool_register(h->mp, h->pd, 0, (struct rmem_mempool **)&out), EOPNOTSUPP);
	TEST_ERR(rmem_extbuf_mr_add(h->mr), EOPNOTSUPP);
	TEST_ERR(rmem_lease_ctx_create(h->qp, &lease_conf, (struct rmem_lease_ctx **)&out),
			EOPNOTSUPP);
	TEST_ASSERT(out == NULL);
}

static void
secondary_connects_nothing(struct handles *h)
{
#ifdef TEST_WITH_CM
	const struct sockaddr_in any = {.sin_family = AF_INET};
	const struct sockaddr *addr = (const struct sockaddr *)(const void *)&any;
	const struct rmem_cm_conf conf = {.qp = h->qp, .timeout_ms = 1};
	struct rmem_cm_listener *listener = NULL;
	struct rmem_cm_conn *conn = NULL;
	struct rmem_cm_peer peer;

	TEST_ERR(rmem_cm_listener_create(addr, &listener), EOPNOTSUPP);
	TEST_ERR(rmem_cm_connect(addr, &conf, &peer, &conn), EOPNOTSUPP);
	TEST_ERR(rmem_cm_accept(listener, &conf, &peer, &conn), EOPNOTSUPP);
	TEST_ASSERT(listener == NULL && conn == NULL);
#else
	RTE_SET_USED(h);
#endif
}

/* Calls that ask or change an object. */
static void
secondary_uses_nothing(struct handles *h)
{
	enum rmem_rereg_result result;
	struct rmem_mw_bind bind = {.wr_id = 1};
	struct rmem_lease_stats lease_stats;
	struct rmem_mempool_stats mp_stats;
	struct rmem_dev_stats stats;
	struct rmem_mr_stats mr_stats;
	struct rmem_dev_info info;
	struct rmem_qp_conn conn = {.timeout = 1};
	struct rmem_srq_attr srq_attr = {0};
	struct rmem_qp_attr attr;
	struct rmem_mr_info mr_info;
	struct rmem_event event;
	const struct rmem_sge sge = {0};

	TEST_ERR(rmem_process_check(), EOPNOTSUPP);
	TEST_ASSERT(rmem_dev_get_by_name("soft0") == NULL);
	TEST_ASSERT(rmem_dev_next(NULL) == NULL);
	TEST_ERR(rmem_dev_info_get(h->dev, &info), EOPNOTSUPP);
	TEST_ERR(rmem_dev_stats_get(h->dev, &stats), EOPNOTSUPP);
	TEST_ERR(rmem_dev_stats_reset(h->dev), EOPNOTSUPP);
	TEST_ERR(rmem_dev_dump(h->dev, stdout), EOPNOTSUPP);
	TEST_ERR(rmem_mr_query(h->mr, &mr_info), EOPNOTSUPP);
	TEST_ERR(rmem_mr_enable(h->mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_rereg(h->mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, &result),
			EOPNOTSUPP);
	TEST_ERR(rmem_mr_advise(h->pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
	TEST_ERR(rmem_mr_stats_get(h->mr, &mr_stats), EOPNOTSUPP);
	TEST_ERR(rmem_mr_bind_counter(h->mr, h->counter, RMEM_COUNTER_REMOTE_WRITE), EOPNOTSUPP);
	TEST_ERR(rmem_qp_attach_counter(h->qp, h->counter, 1), EOPNOTSUPP);
	TEST_ERR(rmem_mw_bind(h->qp, h->mw, &bind), EOPNOTSUPP);
	TEST_ERR(rmem_qp_connect(h->qp, &conn), EOPNOTSUPP);
	TEST_ERR(rmem_qp_query(h->qp, &attr), EOPNOTSUPP);
	TEST_ERR(rmem_qp_set_error(h->qp), EOPNOTSUPP);
	TEST_ERR(rmem_qp_reset(h->qp), EOPNOTSUPP);
	TEST_ERR(rmem_srq_query(h->srq, &srq_attr), EOPNOTSUPP);
	TEST_ERR(rmem_srq_modify(h->srq, &srq_attr, RMEM_SRQ_LIMIT), EOPNOTSUPP);
	TEST_ERR(rmem_cq_resize(h->cq, 8), EOPNOTSUPP);
	TEST_ERR(rmem_eq_read(h->eq, &event, 1), EOPNOTSUPP);
	TEST_ERR(rmem_mempool_stats_get(h->reg, &mp_stats), EOPNOTSUPP);
	TEST_ERR(rmem_mempool_audit(h->reg), EOPNOTSUPP);
	TEST_ERR(rmem_lease_stats_get(h->ctx, &lease_stats), EOPNOTSUPP);
	TEST_ERR(rmem_lease_trim(h->ctx), EOPNOTSUPP);
	TEST_ERR(rmem_lease_recover(h->ctx), EOPNOTSUPP);
}

static void
secondary_releases_nothing(struct handles *h)
{
	TEST_ERR(rmem_lease_ctx_destroy(h->ctx), EOPNOTSUPP);
	TEST_ERR(rmem_mempool_unregister(h->reg), EOPNOTSUPP);
	TEST_ERR(rmem_pool_destroy(h->pool), EOPNOTSUPP);
	TEST_ERR(rmem_qp_destroy(h->qp), EOPNOTSUPP);
	TEST_ERR(rmem_srq_destroy(h->srq), EOPNOTSUPP);
	TEST_ERR(rmem_cq_destroy(h->cq), EOPNOTSUPP);
	TEST_ERR(rmem_counter_destroy(h->counter), EOPNOTSUPP);
	TEST_ERR(rmem_eq_destroy(h->eq), EOPNOTSUPP);
	TEST_ERR(rmem_mw_dealloc(h->mw), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_page_list_free(h->list), EOPNOTSUPP);
	TEST_ERR(rmem_mr_dereg(h->fast), EOPNOTSUPP);
	TEST_ERR(rmem_mr_dereg(h->mr), EOPNOTSUPP);
	TEST_ERR(rmem_pd_dealloc(h->pd), EOPNOTSUPP);
	TEST_ERR(rmem_dev_close(h->dev), EOPNOTSUPP);
	TEST_OK(rmem_dev_close(NULL));
	TEST_OK(rmem_qp_destroy(NULL));
}

static void
secondary_posts_nothing(struct handles *h)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND, .flags = RMEM_SEND_SIGNALED};
	const struct rmem_lease_req req = {.mr = h->mr, .addr = h->buf, .length = 1};
	struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_lease *lease = NULL;
	struct rmem_wc wc;

	TEST_ERR(rmem_post_send(h->qp, &wr, 1), EOPNOTSUPP);
	TEST_ERR(rmem_post_recv(h->qp, &recv, 1), EOPNOTSUPP);
	TEST_ERR(rmem_srq_post_recv(h->srq, &recv, 1), EOPNOTSUPP);
	TEST_ERR(rmem_poll_cq(h->cq, &wc, 1), EOPNOTSUPP);
	TEST_ERR(rmem_lease_grant(h->ctx, &req, 1, &lease), EINVAL);
	TEST_ERR(rmem_lease_prepare(h->ctx, &req, 1, &lease), EINVAL);
	TEST_ERR(rmem_lease_post(h->ctx, NULL, 0), EINVAL);
	TEST_ERR(rmem_lease_poll(h->ctx, &wc, 1), EINVAL);
	TEST_ASSERT(lease == NULL);
}

static void
use_nothing(struct handles *h)
{
	secondary_creates_nothing(h);
	secondary_connects_nothing(h);
	secondary_uses_nothing(h);
	secondary_posts_nothing(h);
	secondary_releases_nothing(h);
}

static void
run_secondary(char **argv)
{
	char **args = proc_start_secondary(argv, 8);
	struct handles *h;

	TEST_ASSERT(args != NULL && args[0] != NULL);
	h = (void *)(uintptr_t)strtoull(args[0], NULL, 16);
	TEST_EQ(h->pd->obj.type, RMEM_OBJ_PD);
	use_nothing(h);
}

static void
make_qps(struct handles *h)
{
	const struct rmem_qp_conf conf = rc_conf(h->cq, 64, 8);
	const struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7};

	TEST_OK(rmem_qp_create(h->pd, &conf, &h->qp));
	TEST_OK(rmem_qp_create(h->pd, &conf, &h->peer));
	rc_connect(h->qp, h->peer, conn);
	rc_connect(h->peer, h->qp, conn);
}

static void
make(struct handles *h)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE;
	const struct rmem_lease_conf lease_conf = {.max_leases = 8,
			.min_leases = 1,
			.max_length = 64,
			.socket_id = SOCKET_ID_ANY};
	const struct rmem_pool_conf pool_conf = {.name = "pool",
			.nb_bufs = 8,
			.buf_size = 64,
			.access = access,
			.socket_id = SOCKET_ID_ANY};
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 256};
	const struct rmem_srq_conf srq_conf = {.max_wr = 4};

	TEST_OK(rmem_dev_create("soft0", DEV_ARGS, &h->dev));
	TEST_OK(rmem_pd_alloc(h->dev, &h->pd));
	TEST_OK(rmem_mr_reg(
			h->pd, h->buf, sizeof(h->buf), 0, access | RMEM_ACCESS_MW_BIND, &h->mr));
	TEST_OK(rmem_fast_reg_mr_alloc(h->pd, 4, &h->fast));
	TEST_OK(rmem_fast_reg_page_list_alloc(h->dev, 4, &h->list));
	TEST_OK(rmem_mw_alloc(h->pd, RMEM_MW_TYPE_1, &h->mw));
	TEST_OK(rmem_eq_create(h->dev, &(struct rmem_eq_conf){.nb_events = 4}, &h->eq));
	TEST_OK(rmem_counter_create(h->dev, NULL, &h->counter));
	TEST_OK(rmem_cq_create(h->dev, &cq_conf, &h->cq));
	TEST_OK(rmem_srq_create(h->pd, &srq_conf, &h->srq));
	make_qps(h);
	TEST_OK(rmem_pool_create(h->pd, &pool_conf, &h->pool));
	h->mp = rte_mempool_create("mp", 8, 64, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	TEST_ASSERT(h->mp != NULL);
	TEST_OK(rmem_mempool_register(h->mp, h->pd, access, &h->reg));
	TEST_OK(rmem_lease_ctx_create(h->qp, &lease_conf, &h->ctx));
}

/* Write four bytes from the start of the MR to its middle, by this rkey. */
static void
write_by(struct handles *h, uint32_t rkey, uint32_t value)
{
	struct rmem_sge sge = {.addr = h->mr->iova, .length = 4, .lkey = h->mr->lkey};
	struct rmem_send_wr wr =
			rc_rdma(RMEM_WR_RDMA_WRITE, &sge, h->mr->iova + BUF_SIZE / 2, rkey);
	struct rmem_wc wc;

	memcpy(h->buf, &value, sizeof(value));
	TEST_EQ(rmem_post_send(h->qp, &wr, 1), 1);
	TEST_EQ(rmem_poll_cq(h->cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_MEM(h->buf + BUF_SIZE / 2, &value, sizeof(value));
}

/* Keys from before and keys made now are those of the primary's device. */
static void
primary_goes_on(struct handles *h, const struct rmem_dev_info *before)
{
	struct rmem_dev_info info;
	struct rmem_mr *mr;

	TEST_ASSERT(rmem_dev_get_by_name("soft0") == h->dev);
	TEST_OK(rmem_dev_info_get(h->dev, &info));
	TEST_MEM(&info, before, sizeof(info));
	write_by(h, h->mr->rkey, 0x11111111);
	TEST_OK(rmem_mr_reg(h->pd, h->buf, sizeof(h->buf), 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE, &mr));
	write_by(h, mr->rkey, 0x22222222);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_OK(rmem_lease_ctx_destroy(h->ctx));
	TEST_OK(rmem_mempool_unregister(h->reg));
	rte_mempool_free(h->mp);
	TEST_OK(rmem_pool_destroy(h->pool));
	TEST_OK(rmem_qp_destroy(h->qp));
	TEST_OK(rmem_qp_destroy(h->peer));
	TEST_OK(rmem_srq_destroy(h->srq));
	TEST_OK(rmem_cq_destroy(h->cq));
	TEST_OK(rmem_counter_destroy(h->counter));
	TEST_OK(rmem_eq_destroy(h->eq));
	TEST_OK(rmem_mw_dealloc(h->mw));
	TEST_OK(rmem_fast_reg_page_list_free(h->list));
	TEST_OK(rmem_mr_dereg(h->fast));
	TEST_OK(rmem_mr_dereg(h->mr));
	TEST_OK(rmem_pd_dealloc(h->pd));
	TEST_OK(rmem_dev_close(h->dev));
}

static void
run_one_secondary(const struct handles *h)
{
	char at[24];
	const char *args[] = {at, NULL};
	int status;
	pid_t pid;

	snprintf(at, sizeof(at), "%" PRIxPTR, (uintptr_t)h);
	pid = proc_spawn(args);
	TEST_ASSERT(pid > 0);
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_EQ(status, 0);
}

/* The child has the device, and the memory in which its objects are. */
static void
run_one_child(struct handles *h)
{
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		use_nothing(h);
		_exit(0);
	}
	TEST_ASSERT(pid > 0);
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_EQ(status, 0);
}

static void
run_primary(char *program)
{
	struct rmem_dev_info before;
	struct handles *h;

	TEST_RUN(proc_start_primary(program, 0, 3));
	h = rte_zmalloc("handles", sizeof(*h), 4096);
	TEST_ASSERT(h != NULL);
	make(h);
	write_by(h, h->mr->rkey, 0x33333333);
	TEST_OK(rmem_dev_info_get(h->dev, &before));
	run_one_secondary(h);
	run_one_child(h);
	primary_goes_on(h, &before);
	rte_free(h);
	rte_eal_cleanup();
}

int
main(int argc, char **argv)
{
	bool is_secondary = proc_is_secondary(argc, argv);
	int result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!is_secondary && !proc_can_start())
		return TEST_SKIPPED;
	test_set_running(is_secondary ? "secondary_is_refused" : "primary_goes_on");
	result = is_secondary ? TEST_TRY(run_secondary(argv)) : TEST_TRY(run_primary(argv[0]));
	printf("%s: %s\n", is_secondary ? "secondary" : "primary",
			result == TEST_SUCCESS ? "passed" : "failed");
	return result == TEST_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
