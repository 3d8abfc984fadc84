/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Thread safety as documented in the headers: control calls race each other and the data
 * path. Late accesses through a source key, a receive or a peer QP do not happen either.
 */

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"

#define MAX_WORKERS 3u

struct worker {
	struct fx_side side;
	struct fx_side peer;
	uint64_t nb_done;    /* atomic */
	uint64_t nb_refused; /* atomic */
	unsigned int index;
} __rte_cache_aligned;

static struct worker workers[MAX_WORKERS];
static unsigned int nb_workers;
static uint32_t shared_key;    /* atomic */
static uint32_t is_stopped;    /* atomic */
static uint64_t shared_rounds; /* atomic */

static void
setup(void)
{
	unsigned int i;

	fx_setup_fast();
	shared_key = 0;
	is_stopped = 0;
	shared_rounds = 0;
	nb_workers = RTE_MIN(fx_nb_workers(), MAX_WORKERS);
	for (i = 0; i < nb_workers; i++) {
		struct worker *worker = &workers[i];

		memset(worker, 0, sizeof(*worker));
		worker->index = i;
		fx_side_open(&worker->side, fx.a.dev, fx.a.pd);
		fx_side_open(&worker->peer, fx.a.dev, fx.a.pd);
		TEST_OK(fx_connect_pair(worker->side.qp, worker->peer.qp));
	}
}

static void
launch(void (*func)(void *arg))
{
	fx_launch(func, workers, sizeof(workers[0]), nb_workers);
}

/* On all workers, of which there are two or more. */
static void
run_on_all(void (*func)(void *arg))
{
	fx_need_workers(2);
	launch(func);
	fx_join(nb_workers);
}

static void
count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELEASE);
}

static bool
is_running(void)
{
	return !__atomic_load_n(&is_stopped, __ATOMIC_ACQUIRE);
}

static void
stop(int result)
{
	__atomic_store_n(&is_stopped, 1, __ATOMIC_RELEASE);
	TEST_RUN(TEST_TRY(fx_join(nb_workers)) != TEST_SUCCESS ? TEST_FAILED : result);
}

static void
reconnect(struct worker *worker)
{
	struct rmem_wc wc;

	TEST_OK(rmem_qp_reset(worker->side.qp));
	TEST_OK(rmem_qp_reset(worker->peer.qp));
	while (rmem_poll_cq(worker->side.cq, &wc, 1) > 0)
		;
	TEST_OK(fx_connect_pair(worker->side.qp, worker->peer.qp));
}

/* Post one signaled request, and its status. */
static int
send_one(struct fx_side *side, struct rmem_send_wr *wr)
{
	struct rmem_wc wc;
	int ret;

	wr->flags = RMEM_SEND_SIGNALED;
	ret = fx_post(side->qp, wr);
	if (ret != 1)
		return ret;
	ret = fx_poll(side->cq, &wc, 1);
	if (ret != 1)
		return -ETIMEDOUT;
	/* There may be fewer CPUs than lcores. While no error occurs, no lcore yields. */
	if (wc.status != RMEM_WC_SUCCESS)
		sched_yield();
	return wc.status;
}

/* Registers, writes through the new key and deregisters, 300 times. */
static void
use_own_regions(void *arg)
{
	struct worker *worker = arg;
	struct fx_side *side = &worker->side;
	const struct rmem_sge sge = fx_sge(side->mr, 0, 64);
	struct rmem_send_wr wr;
	struct rmem_mr *mr;
	uint32_t i;

	for (i = 0; i < 300; i++) {
		TEST_OK(rmem_mr_reg(side->pd, side->buf, 4096, 0, FX_ACCESS, &mr));
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, mr->iova + 64, mr->rkey);
		TEST_STATUS(send_one(side, &wr), RMEM_WC_SUCCESS);
		TEST_OK(rmem_mr_dereg(mr));
	}
}

TEST_CALL(threads, regions_are_registered_and_released_on_every_lcore, run_on_all(use_own_regions));

/* PD, CQ, QP pair, message, and all of it away again. */
static void
use_own_objects(void *arg)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 8};
	struct worker *worker = arg;
	struct fx_side *side = &worker->side;
	struct rmem_qp_conf conf;
	struct rmem_send_wr wr;
	struct fx_side own;
	struct rmem_pd *pd;
	struct rmem_mr *mr;
	uint32_t i;

	memset(&own, 0, sizeof(own));
	for (i = 0; i < 100; i++) {
		TEST_OK(rmem_pd_alloc(side->dev, &pd));
		TEST_OK(rmem_cq_create(side->dev, &cq_conf, &own.cq));
		conf = fx_qp_conf(own.cq, 4);
		TEST_OK(rmem_qp_create(pd, &conf, &own.qp));
		TEST_OK(fx_connect(own.qp, own.qp));
		TEST_OK(rmem_fast_reg_mr_alloc(pd, 4, &mr));
		wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
		TEST_STATUS(send_one(&own, &wr), RMEM_WC_SUCCESS);
		TEST_OK(rmem_qp_destroy(own.qp));
		TEST_OK(rmem_mr_dereg(mr));
		TEST_OK(rmem_cq_destroy(own.cq));
		TEST_OK(rmem_pd_dealloc(pd));
	}
}

TEST_CALL(threads, objects_are_created_and_destroyed_on_every_lcore, run_on_all(use_own_objects));

static void
use_own_device(void *arg)
{
	const struct worker *worker = arg;
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	char name[16];
	uint32_t i;

	snprintf(name, sizeof(name), "soft%u", 10 + worker->index);
	for (i = 0; i < 50; i++) {
		TEST_OK(rmem_dev_create(name, "max_mr=16,max_qp=4", &dev));
		TEST_OK(rmem_pd_alloc(dev, &pd));
		TEST_ASSERT(rmem_dev_get_by_name(name) == dev);
		TEST_ERR(rmem_dev_close(dev), EBUSY);
		TEST_OK(rmem_pd_dealloc(pd));
		TEST_OK(rmem_dev_close(dev));
	}
}

TEST_CALL(threads, devices_are_created_and_closed_on_every_lcore, run_on_all(use_own_device));

/* Only one of those that create a device of one name wins. */
static void
create_same_device(void *arg)
{
	struct worker *worker = arg;
	struct rmem_dev *dev;
	uint32_t i;
	int ret;

	for (i = 0; i < 100; i++) {
		ret = rmem_dev_create("soft9", "max_mr=16,max_qp=4", &dev);
		TEST_ASSERT(ret == 0 || ret == -EEXIST);
		if (ret == 0) {
			TEST_EQ(__atomic_exchange_n(&shared_key, 1, __ATOMIC_ACQ_REL), 0);
			count(&worker->nb_done);
			__atomic_store_n(&shared_key, 0, __ATOMIC_RELEASE);
			TEST_OK(rmem_dev_close(dev));
		}
	}
}

TEST(threads, one_of_several_creators_of_a_device_wins)
{
	uint64_t nb = 0;
	unsigned int i;

	run_on_all(create_same_device);
	for (i = 0; i < nb_workers; i++)
		nb += workers[i].nb_done;
	TEST_ASSERT(nb >= 1);
	TEST_ASSERT(rmem_dev_get_by_name("soft9") == NULL);
}

/* All invalidate the key of the round; the losing ones fail their QP. */
static void
invalidate_shared_key(void *arg)
{
	struct worker *worker = arg;
	uint32_t former = 0;
	unsigned int spins = 0;

	while (is_running()) {
		uint32_t rkey = __atomic_load_n(&shared_key, __ATOMIC_ACQUIRE);
		struct rmem_send_wr wr = fx_inv(rkey);
		int status;

		if (rkey == former) {
			fx_relax(&spins);
			continue;
		}
		former = rkey;
		status = send_one(&worker->side, &wr);
		if (status == RMEM_WC_SUCCESS) {
			count(&worker->nb_done);
		} else {
			TEST_STATUS(status, RMEM_WC_MW_BIND_ERR);
			reconnect(worker);
			count(&worker->nb_refused);
		}
		__atomic_fetch_add(&shared_rounds, 1, __ATOMIC_ACQ_REL);
	}
}

static void
invalidation_rounds(void)
{
	unsigned int w;
	uint64_t i, nb_won;

	for (i = 1; i <= 200; i++) {
		TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
		__atomic_store_n(&shared_key, fx.fast.mr->rkey, __ATOMIC_RELEASE);
		FX_AWAIT(__atomic_load_n(&shared_rounds, __ATOMIC_ACQUIRE) >= i * nb_workers);
		nb_won = 0;
		for (w = 0; w < nb_workers; w++)
			nb_won += __atomic_load_n(&workers[w].nb_done, __ATOMIC_ACQUIRE);
		TEST_EQ(nb_won, i);
		TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	}
}

TEST(threads, one_of_several_invalidations_of_a_key_succeeds)
{
	fx_need_workers(2);
	launch(invalidate_shared_key);
	stop(TEST_TRY(invalidation_rounds()));
}

#define OLD 0x11
#define NEW 0x22

/* Writes from the shared source into its own buffer: never a byte of after the dereg. */
static void
write_from_shared_source(void *arg)
{
	struct worker *worker = arg;
	unsigned int spins = 0;

	while (is_running()) {
		const struct rmem_sge sge = {.addr = fx_addr(fx.b.buf),
				.length = FX_BUF_SIZE,
				.lkey = __atomic_load_n(&shared_key, __ATOMIC_ACQUIRE)};
		struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge,
				fx_addr(worker->peer.buf), worker->peer.mr->rkey);
		int status;

		if (sge.lkey == 0) {
			fx_relax(&spins);
			continue;
		}
		status = send_one(&worker->side, &wr);
		TEST_ASSERT(memchr(worker->peer.buf, NEW, FX_BUF_SIZE) == NULL);
		if (status == RMEM_WC_SUCCESS) {
			count(&worker->nb_done);
		} else {
			TEST_STATUS(status, RMEM_WC_LOC_PROT_ERR);
			reconnect(worker);
			count(&worker->nb_refused);
		}
	}
}

/* From the end, where a copy is last, to the start. */
static void
overwrite(uint8_t *buf)
{
	unsigned int page;

	for (page = FX_BUF_SIZE / FX_PAGE; page-- > 0;)
		memset(buf + page * FX_PAGE, NEW, FX_PAGE);
}

static void
source_rounds(void)
{
	uint32_t i;

	for (i = 0; i < 30; i++) {
		struct rmem_mr *mr;

		memset(fx.b.buf, OLD, FX_BUF_SIZE);
		mr = fx_mr(fx.a.pd, fx.b.buf, FX_BUF_SIZE, FX_ACCESS);
		__atomic_store_n(&shared_key, mr->lkey, __ATOMIC_RELEASE);
		fx_await_counts(&workers[0].nb_done, sizeof(workers[0]), nb_workers);
		TEST_OK(fx_release(mr));
		overwrite(fx.b.buf);
		fx_await_counts(&workers[0].nb_refused, sizeof(workers[0]), nb_workers);
		__atomic_store_n(&shared_key, 0, __ATOMIC_RELEASE);
		/* No access reads what OLD is about to overwrite: the key is invalid. */
	}
}

TEST(threads, source_is_not_read_after_its_dereg)
{
	fx_need_workers(1);
	launch(write_from_shared_source);
	stop(TEST_TRY(source_rounds()));
}

/* Sends to the QP of the main lcore that is connected to it, as long as that answers. */
static void
send_to_main(void *arg)
{
	struct worker *worker = arg;
	const struct rmem_sge sge = fx_sge(worker->side.mr, 0, FX_BUF_SIZE);
	unsigned int spins = 0;

	while (is_running()) {
		struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
		int status;

		if (__atomic_load_n(&shared_key, __ATOMIC_ACQUIRE) == 0) {
			fx_relax(&spins);
			continue;
		}
		status = send_one(&worker->side, &wr);
		if (status == RMEM_WC_SUCCESS) {
			count(&worker->nb_done);
			continue;
		}
		TEST_STATUS(status, RMEM_WC_RETRY_EXC_ERR);
		/* The main lcore connects both again. */
		__atomic_store_n(&shared_key, 0, __ATOMIC_RELEASE);
		count(&worker->nb_refused);
	}
}

/* a's QP, or a new one in its place, receives from the first worker. */
static void
connect_to_worker(void)
{
	struct rmem_qp_conn conn = fx_conn();
	struct rmem_qp *qp = workers[0].side.qp;

	conn.timeout = 1;
	conn.retry_cnt = 0;
	TEST_OK(rmem_qp_reset(qp));
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect(fx.a.qp, qp));
	TEST_OK(fx_connect_by(qp, fx.a.qp, &conn));
}

static void
receive_rounds(void (*end)(void))
{
	uint32_t i, j;

	for (i = 0; i < 100; i++) {
		const struct rmem_sge to = fx_sge(fx.a.mr, 0, FX_BUF_SIZE);
		uint64_t former = __atomic_load_n(&workers[0].nb_refused, __ATOMIC_ACQUIRE);

		connect_to_worker();
		for (j = 0; j < FX_DEPTH / 2; j++)
			TEST_EQ(fx_post_recv(fx.a.qp, j, &to, 1), 1);
		__atomic_store_n(&shared_key, 1, __ATOMIC_RELEASE);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		end();
		overwrite(fx.a.buf);
		FX_AWAIT(__atomic_load_n(&workers[0].nb_refused, __ATOMIC_ACQUIRE) != former);
		for (j = 0; j < FX_BUF_SIZE; j++)
			TEST_EQ(fx.a.buf[j], NEW);
		while (rmem_poll_cq(fx.a.cq, &fx.wc, 1) > 0)
			;
	}
}

static void
end_by_reset(void)
{
	TEST_OK(rmem_qp_reset(fx.a.qp));
}

static void
end_by_error(void)
{
	TEST_OK(rmem_qp_set_error(fx.a.qp));
}

static void
end_by_destroy(void)
{
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = fx_qp(fx.a.pd, fx.a.cq, FX_DEPTH);
}

static void
expect_no_late_receive(void (*end)(void))
{
	fx_need_workers(1);
	nb_workers = 1;
	launch(send_to_main);
	stop(TEST_TRY(receive_rounds(end)));
}

TEST_CALL(threads, no_message_arrives_after_reset_of_the_receiver,
		expect_no_late_receive(end_by_reset));
TEST_CALL(threads, no_message_arrives_after_set_error_of_the_receiver,
		expect_no_late_receive(end_by_error));
TEST_CALL(threads, no_message_arrives_after_destroy_of_the_receiver,
		expect_no_late_receive(end_by_destroy));

static void
write_to_own_peer(void *arg)
{
	struct worker *worker = arg;
	const struct rmem_sge sge = fx_sge(worker->side.mr, 0, 256);

	while (is_running()) {
		struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge,
				fx_addr(worker->peer.buf), worker->peer.mr->rkey);

		TEST_STATUS(send_one(&worker->side, &wr), RMEM_WC_SUCCESS);
		count(&worker->nb_done);
	}
}

static void
query_rounds(void)
{
	struct rmem_dev_stats stats;
	struct rmem_dev_info info;
	struct rmem_qp_attr attr;
	struct rmem_mr_info mr;
	uint64_t sent = 0;
	FILE *null = fopen("/dev/null", "w");
	int i;

	TEST_ASSERT(null != NULL);
	for (i = 0; i < 500; i++) {
		TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
		TEST_ASSERT(stats.send_wrs >= sent);
		sent = stats.send_wrs;
		TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
		TEST_OK(rmem_qp_query(workers[0].side.qp, &attr));
		TEST_EQ(attr.state, RMEM_QPS_RTS);
		TEST_OK(rmem_mr_query(workers[0].peer.mr, &mr));
		TEST_EQ(mr.state, RMEM_MR_STATE_VALID);
		TEST_OK(rmem_dev_dump(fx.a.dev, null));
	}
	fclose(null);
	fx_await_counts(&workers[0].nb_done, sizeof(workers[0]), nb_workers);
}

TEST(threads, queries_race_the_data_path)
{
	fx_need_workers(1);
	launch(write_to_own_peer);
	stop(TEST_TRY(query_rounds()));
}

/* A UMR that a worker posts, in turn with another one. */
struct shape {
	uint64_t iova;
	uint32_t length;
	uint32_t nb_entries;
};

static const struct shape shapes[] = {
		{.iova = 0x10000, .length = 8, .nb_entries = 1},
		{.iova = 0x27000, .length = 4 * FX_PAGE, .nb_entries = 4},
};

static struct rmem_mr *shaped;

static struct rmem_send_wr
shape_wr(const struct shape *shape, struct rmem_mkey_entry *entries)
{
	uint32_t i;

	for (i = 0; i < shape->nb_entries; i++)
		entries[i] = fx_entry(workers[0].side.mr, 0, shape->length / shape->nb_entries);
	return fx_umr(shaped, entries, shape->nb_entries, shape->iova);
}

static void
bind_shapes(void *arg)
{
	struct worker *worker = arg;
	struct rmem_mkey_entry entries[4];
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; is_running(); i ^= 1) {
		wr = shape_wr(&shapes[i], entries);
		TEST_STATUS(send_one(&worker->side, &wr), RMEM_WC_SUCCESS);
		wr = fx_inv(shaped->rkey);
		TEST_STATUS(send_one(&worker->side, &wr), RMEM_WC_SUCCESS);
	}
}

/* Each query has all of one binding; both are seen. */
static void
query_shapes(void)
{
	uint64_t deadline = fx_deadline();
	uint32_t i, nb_seen[RTE_DIM(shapes)] = {0};
	struct rmem_mr_info info;

	for (i = 0; i < 200000 || nb_seen[0] == 0 || nb_seen[1] == 0; i++) {
		const struct shape *shape;

		TEST_ASSERT(!fx_is_late(deadline));
		TEST_OK(rmem_mr_query(shaped, &info));
		if (info.state != RMEM_MR_STATE_VALID)
			continue;
		shape = &shapes[info.iova == shapes[1].iova];
		nb_seen[shape - shapes]++;
		TEST_EQ(info.iova, shape->iova);
		TEST_EQ(info.length, shape->length);
		TEST_EQ(info.nb_extents, shape->nb_entries);
	}
}

TEST(threads, query_returns_one_binding_of_an_indirect_mr)
{
	fx_need_workers(1);
	nb_workers = 1;
	shaped = fx_mkey(fx.a.pd, 4);
	launch(bind_shapes);
	stop(TEST_TRY(query_shapes()));
}

TEST_SUITE(threads, setup, fx_teardown);
