/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Two connected devices; see sides.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmem_driver.h>

#include "../rc.h"
#include "sides.h"

struct side sides[2];

void
open_side(struct side *side, unsigned int i, uint32_t mtu)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 2 * SLOTS};
	struct rmem_qp_conf conf = rc_conf(NULL, 2 * SLOTS, NB_RECV);
	char name[] = "soft0", args[96];
	uint8_t *memory;

	memset(side, 0, sizeof(*side));
	name[4] = (char)('0' + i);
	snprintf(args, sizeof(args), "ip=127.0.7.%u,loop=1,progress=poll,mtu=%u", i + 1, mtu);
	TEST_OK(rmem_dev_create(name, args, &side->dev));
	sim_attach(i, rmem_dev_drv(side->dev)->priv);
	TEST_OK(rmem_pd_alloc(side->dev, &side->pd));
	TEST_OK(rmem_cq_create(side->dev, &cq_conf, &side->send_cq));
	TEST_OK(rmem_cq_create(side->dev, &cq_conf, &side->recv_cq));
	conf.send_cq = side->send_cq;
	conf.recv_cq = side->recv_cq;
	TEST_OK(rmem_qp_create(side->pd, &conf, &side->qp));
	memory = calloc(1, 2 * SIZE + NB_RECV * SLOT_SIZE);
	side->model = calloc(1, SIZE);
	TEST_ASSERT(memory != NULL && side->model != NULL);
	side->target = memory;
	side->local = memory + SIZE;
	TEST_OK(rmem_mr_reg(side->pd, memory, 2 * SIZE + NB_RECV * SLOT_SIZE, 0,
			RMEM_ACCESS_LOCAL_WRITE | conf.access, &side->mr));
}

void
close_side(struct side *side)
{
	TEST_OK(rmem_qp_destroy(side->qp));
	TEST_OK(rmem_mr_dereg(side->mr));
	TEST_OK(rmem_cq_destroy(side->send_cq));
	TEST_OK(rmem_cq_destroy(side->recv_cq));
	TEST_OK(rmem_pd_dealloc(side->pd));
	TEST_OK(rmem_dev_close(side->dev));
	free(side->target);
	free(side->model);
}

int
post_recv(struct side *side, uint64_t i)
{
	struct rmem_sge sge = {.addr = (uintptr_t)recv_buf(side, i),
			.length = SLOT_SIZE,
			.lkey = side->mr->lkey};
	struct rmem_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	return rmem_post_recv(side->qp, &wr, 1) == 1 ? TEST_SUCCESS : TEST_FAILED;
}

void
connect_sides(void)
{
	unsigned int i, j;

	sim_clear();
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_qp_reset(sides[i].qp));
		((struct rsoft_qp *)sides[i].qp)->psn = 0xffffff - sim_random(500);
	}
	for (i = 0; i < 2; i++) {
		struct side *side = &sides[i], *peer = peer_of(side);
		struct rmem_qp_conn conn = {.timeout = 8,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.min_rnr_timer = 1,
				.traffic_class = SIDE_CLASS(i)};
		struct rmem_wc wc;

		while (rmem_poll_cq(side->send_cq, &wc, 1) > 0 ||
				rmem_poll_cq(side->recv_cq, &wc, 1) > 0)
			;
		rc_connect(side->qp, peer->qp, conn);
		side->done = side->posted;
		side->received = peer->sent;
		memcpy(side->model, side->target, SIZE);
	}
	for (i = 0; i < 2; i++) {
		for (j = 0; j < NB_RECV; j++)
			TEST_RUN(post_recv(&sides[i], sides[i].received + j));
	}
}

void
open_sides(uint32_t mtu)
{
	static const struct sim_faults none;
	unsigned int i;

	sim_start(1, &none);
	for (i = 0; i < RTE_DIM(sides); i++)
		open_side(&sides[i], i, mtu);
	connect_sides();
}

void
close_sides(void)
{
	close_side(&sides[0]);
	close_side(&sides[1]);
}

void
post_write(struct side *side, uint32_t length)
{
	const struct side *peer = peer_of(side);
	struct rmem_sge sge = {
			.addr = (uintptr_t)side->local, .length = length, .lkey = side->mr->lkey};
	struct rmem_send_wr wr =
			rc_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)peer->target, peer->mr->rkey);

	TEST_ASSERT(rmem_post_send(side->qp, &wr, 1) == 1);
}
