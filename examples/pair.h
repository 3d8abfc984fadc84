/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Two connected QPs of a soft device in one process, so that an example needs neither hardware nor
 * a second host: qp is the example's, peer stands for the other side. rmem_cm connects two hosts.
 */

#ifndef PAIR_H
#define PAIR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_lcore.h>

#include <rmem.h>

#define PAIR_DEPTH 64

struct pair {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_cq *peer_cq;
	struct rmem_qp *peer;
};

/* The log has the reason of a call that fails. */
static inline void
check(const char *what, int ret)
{
	if (ret < 0)
		rte_exit(EXIT_FAILURE, "%s failed: %s\n", what, strerror(-ret));
}

static inline void
pair_connect_one(struct rmem_qp *qp, struct rmem_qp *other)
{
	struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	struct rmem_qp_attr attr;

	check("rmem_qp_query", rmem_qp_query(other, &attr));
	conn.remote = attr.addr;
	check("rmem_qp_connect", rmem_qp_connect(qp, &conn));
}

static inline void
pair_connect(struct pair *pair)
{
	pair_connect_one(pair->qp, pair->peer);
	pair_connect_one(pair->peer, pair->qp);
}

static inline void
pair_open_on(struct pair *pair, const char *device, const char *args)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * PAIR_DEPTH};
	struct rmem_qp_conf conf = {
			.type = RMEM_QPT_RC,
			.max_send_wr = PAIR_DEPTH,
			.max_recv_wr = PAIR_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ,
	};

	check("rmem_dev_create", rmem_dev_create(device, args, &pair->dev));
	check("rmem_pd_alloc", rmem_pd_alloc(pair->dev, &pair->pd));
	check("rmem_cq_create", rmem_cq_create(pair->dev, &cq_conf, &pair->cq));
	check("rmem_cq_create", rmem_cq_create(pair->dev, &cq_conf, &pair->peer_cq));
	conf.send_cq = conf.recv_cq = pair->cq;
	conf.name = "qp";
	check("rmem_qp_create", rmem_qp_create(pair->pd, &conf, &pair->qp));
	conf.send_cq = conf.recv_cq = pair->peer_cq;
	conf.name = "peer";
	check("rmem_qp_create", rmem_qp_create(pair->pd, &conf, &pair->peer));
	pair_connect(pair);
}

static inline void
pair_open(struct pair *pair)
{
	pair_open_on(pair, "soft0", NULL);
}

static inline void
pair_close(struct pair *pair)
{
	check("rmem_qp_destroy", rmem_qp_destroy(pair->qp));
	check("rmem_qp_destroy", rmem_qp_destroy(pair->peer));
	check("rmem_cq_destroy", rmem_cq_destroy(pair->cq));
	check("rmem_cq_destroy", rmem_cq_destroy(pair->peer_cq));
	check("rmem_pd_dealloc", rmem_pd_dealloc(pair->pd));
	check("rmem_dev_close", rmem_dev_close(pair->dev));
}

/* Post one signaled request with one SGE, and wait: the status of its completion. */
static inline int
pair_run(struct rmem_qp *qp, struct rmem_send_wr wr, struct rmem_sge sge)
{
	struct rmem_wc wc;
	int n;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.flags |= RMEM_SEND_SIGNALED;
	check("rmem_post_send", rmem_post_send(qp, &wr, 1));
	while ((n = rmem_poll_cq(qp->send_cq, &wc, 1)) == 0)
		;
	check("rmem_poll_cq", n);
	return wc.status;
}

/* The peer WRITEs to an address, or READs from it, with an rkey. */
static inline int
pair_peer(struct pair *pair, uint8_t opcode, struct rmem_sge local, uint64_t addr, uint32_t rkey)
{
	const struct rmem_send_wr wr = {
			.opcode = opcode, .rdma = {.remote_addr = addr, .rkey = rkey}};

	return pair_run(pair->peer, wr, local);
}

/* The peer has memory of its own: a page, registered for its requests. */
static inline struct rmem_mr *
pair_peer_memory(struct pair *pair)
{
	struct rmem_mr *mr;

	check("rmem_mr_reg",
			rmem_mr_reg(pair->pd, NULL, 4096, 0,
					RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_ALLOCATE_MR, &mr));
	return mr;
}

static inline void
expect(const char *what, bool is_true)
{
	if (!is_true)
		rte_exit(EXIT_FAILURE, "not so: %s\n", what);
	printf("%s\n", what);
}

#endif /* PAIR_H */
