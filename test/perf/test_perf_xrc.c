/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Cost of SENDs of XRC, which name their SRQ, compared with SENDs of RC to a QP with an SRQ. */

#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "perf_row.h"
#include "rc.h"
#include "test.h"

#define BURSTS  2000u
#define DEPTH   (2 * PERF_BURST)
#define MESSAGE 64u

struct xrc_job {
	struct perf_pair *pair;
	struct rmem_srq *srq;
	struct rmem_qp *send, *recv;
	struct perf_wrs wrs;
	struct rmem_sge recv_sge;
	struct rmem_recv_wr recv_wr[PERF_BURST];
};

/* Receives are posted, a burst is sent and completes, and all messages are polled. */
PERF_LOOP(run_send, BURSTS, PERF_BURST)
{
	struct xrc_job *job = arg;
	struct rmem_wc wc[PERF_BURST];
	int n, nb = 0;

	if (rmem_srq_post_recv(job->srq, job->recv_wr, PERF_BURST) != (int)PERF_BURST ||
			rmem_post_send(job->send, job->wrs.wr, PERF_BURST) != (int)PERF_BURST)
		return -1;
	while ((n = rmem_poll_cq(job->pair->cq_a, wc, 1)) == 0)
		;
	if (n < 0 || wc[0].status != RMEM_WC_SUCCESS)
		return -1;
	while (nb < (int)PERF_BURST) {
		n = rmem_poll_cq(job->pair->cq_b, wc, PERF_BURST);
		if (n < 0)
			return -1;
		nb += n;
	}
	return 0;
}

/* The receives and the requests; the SRQ and the QPs are there. */
static void
job_fill(struct xrc_job *job, const struct rmem_mr *src, const struct rmem_mr *dst)
{
	uint32_t i, number = 0;

	perf_qp_connect_pair(job->send, job->recv);
	perf_wrs_init(&job->wrs, RMEM_WR_SEND, MESSAGE, src, NULL);
	if (job->send->type == RMEM_QPT_XRC_SEND)
		TEST_OK(rmem_srq_num_get(job->srq, &number));
	job->recv_sge = (struct rmem_sge){dst->iova, MESSAGE, dst->lkey};
	for (i = 0; i < PERF_BURST; i++) {
		job->wrs.wr[i].xrc.remote_srqn = number;
		job->recv_wr[i] = (struct rmem_recv_wr){.sg_list = &job->recv_sge, .num_sge = 1};
	}
}

static void
job_open_rc(struct xrc_job *job)
{
	const struct rmem_srq_conf srq_conf = {.max_wr = DEPTH, .max_sge = 1};
	struct rmem_qp_conf conf = rc_conf(job->pair->cq_a, DEPTH, 0);

	TEST_OK(rmem_srq_create(job->pair->pd_b, &srq_conf, &job->srq));
	conf.max_recv_sge = 0;
	TEST_OK(rmem_qp_create(job->pair->pd, &conf, &job->send));
	conf.send_cq = conf.recv_cq = job->pair->cq_b;
	conf.srq = job->srq;
	conf.flags = RMEM_QP_NO_INLINE_RECV; /* as XRC */
	TEST_OK(rmem_qp_create(job->pair->pd_b, &conf, &job->recv));
}

static void
job_open_xrc(struct xrc_job *job, struct rmem_xrcd *domain)
{
	const struct rmem_srq_ext srq_ext = {.xrcd = domain, .cq = job->pair->cq_b};
	const struct rmem_srq_conf srq_conf = {.max_wr = DEPTH, .max_sge = 1, .ext = &srq_ext};
	const struct rmem_qp_ext ext = {.xrcd = domain};
	const struct rmem_qp_conf recv_conf = {
			.type = RMEM_QPT_XRC_RECV, .access = RMEM_ACCESS_REMOTE, .ext = &ext};
	struct rmem_qp_conf conf = rc_conf(job->pair->cq_a, DEPTH, 0);

	TEST_OK(rmem_srq_create(job->pair->pd_b, &srq_conf, &job->srq));
	conf.type = RMEM_QPT_XRC_SEND;
	conf.max_recv_sge = 0;
	TEST_OK(rmem_qp_create(job->pair->pd, &conf, &job->send));
	TEST_OK(rmem_qp_create(NULL, &recv_conf, &job->recv));
}

static void
job_close(struct xrc_job *job)
{
	TEST_OK(rmem_qp_destroy(job->send));
	TEST_OK(rmem_qp_destroy(job->recv));
	TEST_OK(rmem_srq_destroy(job->srq));
}

/* Both on the devices of the pair, which is closed. */
static void
compare(struct perf_row *row, struct perf_pair *pair)
{
	static struct xrc_job plain, named;
	const struct rmem_xrcd_conf domain_conf = {0};
	struct rmem_xrcd *domain;
	struct rmem_mr *src = perf_mr(pair->pd, 4096), *dst = perf_mr(pair->pd_b, 4096);

	plain.pair = named.pair = pair;
	TEST_OK(rmem_xrcd_alloc(pair->dev_b, &domain_conf, &domain));
	job_open_rc(&plain);
	job_open_xrc(&named, domain);
	job_fill(&plain, src, dst);
	job_fill(&named, src, dst);
	perf_measure_args(row, run_send, &plain, &named);
	job_close(&named);
	job_close(&plain);
	TEST_OK(rmem_xrcd_dealloc(domain));
	TEST_OK(rmem_mr_dereg(src));
	TEST_OK(rmem_mr_dereg(dst));
	perf_pair_close(pair);
}

PERF_TEST(xrc_send64_burst32)
{
	struct perf_row row =
			PERF_ROW("xrc_send64_burst32", "ns/op", "RC with an SRQ", "ratio <= 1.2");
	struct perf_pair pair;

	perf_pair_open(&pair, NULL);
	compare(&row, &pair);
}

PERF_TEST(wire_shm_xrc_send64)
{
	struct perf_row row =
			PERF_ROW("wire_shm_xrc_send64", "ns/op", "RC with an SRQ", "ratio <= 1.2");
	struct perf_pair pair;

	perf_pair_open_two(&pair, "ip=127.0.9.1,port=shm:perf,loop=1",
			"ip=127.0.9.2,port=shm:perf,loop=1");
	compare(&row, &pair);
}
