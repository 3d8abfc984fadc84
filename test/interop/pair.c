/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A connection of soft and of a device of the kernel; see pair.h. The end of soft is here. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_dev.h>

#include "pair.h"

#define VDEV "net_af_packet0"

static struct rmem_dev *dev;
static struct rmem_pd *pd;
static struct rmem_cq *send_cq, *recv_cq;
static struct rmem_qp *qp;
static struct rmem_mr *mr;
static struct rmem_mw *mw;

static int
soft_post_send(const struct rmem_send_wr *wr)
{
	return rmem_post_send(qp, wr, 1) == 1 ? TEST_SUCCESS : TEST_FAILED;
}

static int
soft_post_recv(const struct rmem_recv_wr *wr)
{
	return rmem_post_recv(qp, wr, 1) == 1 ? TEST_SUCCESS : TEST_FAILED;
}

static int
soft_poll(bool is_recv, struct rmem_wc *wc)
{
	return rmem_poll_cq(is_recv ? recv_cq : send_cq, wc, 1);
}

static int
soft_bind(uint32_t *rkey)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_BIND_MW, .flags = RMEM_SEND_SIGNALED};
	struct rmem_wc wc;

	TEST_OK(rmem_mw_alloc(pd, RMEM_MW_TYPE_2, &mw));
	wr.bind_mw.mw = mw;
	wr.bind_mw.mr = mr;
	wr.bind_mw.addr = mr->iova + PAIR_TARGET;
	wr.bind_mw.length = PAIR_AREA;
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ;
	wr.bind_mw.key_tag = 0x5a;
	TEST_RUN(soft_post_send(&wr));
	pair_wait(&pair_soft, false, &wc);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	*rkey = mw->rkey;
	return TEST_SUCCESS;
}

struct pair_end pair_soft = {
		.name = "soft",
		.post_send = soft_post_send,
		.post_recv = soft_post_recv,
		.poll = soft_poll,
		.bind = soft_bind,
};

static void
attach_vdev(void)
{
	const char *interface = getenv("PAIR_VDEV");
	char args[64];

	if (interface == NULL)
		return;
	snprintf(args, sizeof(args), "iface=%s", interface);
	TEST_OK(rte_eal_hotplug_add("vdev", VDEV, args));
}

static void
soft_open(const struct pair_conf *conf)
{
	const char *common = getenv("PAIR_SOFT");
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * PAIR_DEPTH};
	char args[256];

	TEST_ASSERT(common != NULL);
	snprintf(args, sizeof(args), "%s%s", common, conf->args != NULL ? conf->args : "");
	attach_vdev();
	TEST_OK(rmem_dev_create("soft0", args, &dev));
	TEST_OK(rmem_pd_alloc(dev, &pd));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &send_cq));
	TEST_OK(rmem_cq_create(dev, &cq_conf, &recv_cq));
	TEST_ASSERT(posix_memalign((void **)&pair_soft.memory, 4096, PAIR_SIZE) == 0);
	memset(pair_soft.memory, 0, PAIR_SIZE);
	TEST_OK(rmem_mr_reg(pd, pair_soft.memory, PAIR_SIZE, (uintptr_t)pair_soft.memory,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
					RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_ATOMIC |
					RMEM_ACCESS_MW_BIND,
			&mr));
	pair_soft.lkey = mr->lkey;
	pair_soft.rkey = mr->rkey;
}

static void
soft_create_qp(const struct pair_conf *conf, struct rmem_qp_addr *addr)
{
	const struct rmem_qp_conf qp_conf = {.send_cq = send_cq,
			.recv_cq = recv_cq,
			.type = RMEM_QPT_RC,
			.max_send_wr = PAIR_DEPTH,
			.max_recv_wr = PAIR_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.access = conf->is_read_only
					? RMEM_ACCESS_REMOTE_READ
					: RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ |
							RMEM_ACCESS_REMOTE_ATOMIC};
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_create(pd, &qp_conf, &qp));
	TEST_OK(rmem_qp_query(qp, &attr));
	*addr = attr.addr;
}

static void
soft_destroy_qp(void)
{
	TEST_OK(rmem_qp_destroy(qp));
	qp = NULL;
	TEST_OK(rmem_mw_dealloc(mw));
	mw = NULL;
}

static void
soft_close(void)
{
	soft_destroy_qp();
	TEST_OK(rmem_mr_dereg(mr));
	TEST_OK(rmem_cq_destroy(send_cq));
	TEST_OK(rmem_cq_destroy(recv_cq));
	TEST_OK(rmem_pd_dealloc(pd));
	TEST_OK(rmem_dev_close(dev));
	if (getenv("PAIR_VDEV") != NULL)
		TEST_OK(rte_eal_hotplug_remove("vdev", VDEV));
	free(pair_soft.memory);
}

/* The completions of destroyed QPs. */
static void
drain(struct pair_end *end)
{
	struct rmem_wc wc;

	while (end->poll(false, &wc) > 0 || end->poll(true, &wc) > 0)
		;
}

int
pair_destroy_qp(struct pair_end *end)
{
	return end == &pair_soft ? TEST_TRY(soft_destroy_qp()) : TEST_TRY(pair_rxe_destroy_qp());
}

void
pair_connect(const struct pair_conf *conf)
{
	struct rmem_qp_conn conn = {.timeout = conf->timeout != 0 ? conf->timeout : PAIR_TIMEOUT,
			.retry_cnt = conf->retry_cnt,
			.rnr_retry = conf->rnr_retry,
			.min_rnr_timer = 12 /* 640 us */};
	struct rmem_qp_addr addr;

	soft_destroy_qp();
	pair_rxe_destroy_qp();
	drain(&pair_soft);
	drain(&pair_rxe);
	soft_create_qp(conf, &addr);
	pair_rxe_create_qp(conf, &conn.remote);
	/* PSNs that soon wrap. */
	conn.remote.psn = 0xffffff - (uint32_t)rand() % 200;
	if (conf->mtu != 0)
		addr.mtu = (uint8_t)RTE_MIN(addr.mtu, __builtin_ctz(conf->mtu) - 7);
	conn.remote.mtu = addr.mtu;
	pair_rxe_connect(conf, &addr, conn.remote.psn);
	TEST_OK(rmem_qp_connect(qp, &conn));
}

void
pair_open(const struct pair_conf *conf)
{
	soft_open(conf);
	pair_rxe_open();
	pair_connect(conf);
}

void
pair_close(void)
{
	if (dev == NULL)
		return;
	pair_rxe_close();
	soft_close();
	dev = NULL;
}

int
pair_stats(struct rmem_dev_stats *stats)
{
	return rmem_dev_stats_get(dev, stats);
}

void
pair_wait(struct pair_end *end, bool is_recv, struct rmem_wc *wc)
{
	uint64_t deadline = rte_rdtsc() + 600 * rte_get_tsc_hz();
	int n;

	do
		n = end->poll(is_recv, wc);
	while (n == 0 && rte_rdtsc() < deadline);
	if (n != 1)
		test_note("%s: no completion of a %s", end->name, is_recv ? "receive" : "request");
	TEST_ASSERT(n == 1);
}

struct rmem_send_wr
pair_wr(const struct pair_end *end, uint8_t opcode, uint32_t offset, uint32_t length,
		struct rmem_sge *sge)
{
	const struct pair_end *peer = pair_peer(end);
	uint64_t remote = (uintptr_t)peer->memory + PAIR_TARGET + offset;
	struct rmem_send_wr wr = {.opcode = opcode,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = sge,
			.num_sge = 1};

	*sge = (struct rmem_sge){.addr = (uintptr_t)end->memory + PAIR_LOCAL + offset,
			.length = length,
			.lkey = end->lkey};
	if (opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD || opcode == RMEM_WR_ATOMIC_CMP_AND_SWP) {
		wr.atomic.remote_addr = remote;
		wr.atomic.rkey = peer->rkey;
	} else {
		wr.rdma.remote_addr = remote;
		wr.rdma.rkey = peer->rkey;
	}
	return wr;
}

int
pair_post_recv(struct pair_end *end, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	const struct rmem_sge sge = {.addr = (uintptr_t)end->memory + PAIR_RECV + offset,
			.length = length,
			.lkey = end->lkey};
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	return end->post_recv(&wr);
}
