/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Entries of a shared receive queue over the fakes. */

#include "setup.h"

#define DEPTH 8u

static struct rmem_srq *srq;

static void
make_qp(struct rmem_cq *cq, struct rmem_qp **qp)
{
	struct rmem_qp_conf conf = vt_qp_conf(cq, RMEM_QPT_RC);

	conf.srq = srq;
	vt_replace_qp(qp, &conf);
}

/* Both QPs use the SRQ. */
static void
open_srq(void)
{
	const struct rmem_srq_conf conf = {.max_wr = DEPTH, .max_sge = 2};

	TEST_OK(vt_open());
	TEST_OK(rmem_srq_create(vt.pd, &conf, &srq));
	make_qp(vt.cq_a, &vt.a);
	make_qp(vt.cq_b, &vt.b);
	TEST_OK(vt_connect());
}

static void
setup(void)
{
	srq = NULL;
	vt_setup_fake();
	fake.has_srq = true;
}

static void
teardown(void)
{
	if (vt.a != NULL && srq != NULL) {
		TEST_OK(rmem_qp_destroy(vt.a));
		TEST_OK(rmem_qp_destroy(vt.b));
		vt.a = vt.b = NULL;
		TEST_OK(rmem_srq_destroy(srq));
	}
	vt_teardown();
}

static int
post(uint64_t wr_id)
{
	const struct rmem_recv_wr wr = {.wr_id = wr_id};

	return rmem_srq_post_recv(srq, &wr, 1);
}

/* Every second receive from wr_id on, and one send. */
static void
expect_recvs(struct rmem_cq *cq, uint64_t wr_id)
{
	struct rmem_wc wc;
	unsigned int i, nb_sends = 0;

	for (i = 0; i < DEPTH / 2 + 1; i++) {
		TEST_STATUS(vt_wait(cq, &wc), RMEM_WC_SUCCESS);
		if (wc.opcode == RMEM_WC_SEND) {
			nb_sends++;
			continue;
		}
		TEST_EQ(wc.wr_id, wr_id);
		wr_id += 2;
	}
	TEST_EQ(nb_sends, 1);
}

/* Each polled receive frees its entry, in any order; unpolled ones do not use up the entries. */
TEST(verbs_srq, entries_are_reused)
{
	struct rmem_dev_stats stats;
	struct rmem_send_wr wr;
	unsigned int i, j;

	open_srq();
	wr = vt_wr(RMEM_WR_SEND, NULL);
	wr.num_sge = 0;
	for (j = 0; j < DEPTH; j++)
		TEST_EQ(post(j), 1);
	for (i = 0; i < 100; i++) {
		for (j = 0; j < DEPTH; j++) {
			wr.flags = j < DEPTH - 2 ? 0 : RMEM_SEND_SIGNALED;
			TEST_EQ(rmem_post_send(j % 2 == 0 ? vt.a : vt.b, &wr, 1), 1);
			TEST_EQ(post((i + 1) * DEPTH + j), 1);
		}
		expect_recvs(vt.cq_b, i * DEPTH);
		expect_recvs(vt.cq_a, i * DEPTH + 1);
	}
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.recv_wrs, 100 * DEPTH);
}

/* Receives of the wr_ids from first on; the number posted, or -errno. */
static int
post_n(uint64_t first, uint16_t n)
{
	struct rmem_recv_wr wr[DEPTH];
	uint16_t i;

	for (i = 0; i < n; i++)
		wr[i] = (struct rmem_recv_wr){.wr_id = first + i};
	return rmem_srq_post_recv(srq, wr, n);
}

/* The device takes a part of a burst, or none: the entries of the others are free. */
TEST(verbs_srq, refused_receives_are_not_posted)
{
	struct rmem_recv_wr long_wr = {.num_sge = 3};
	struct rmem_send_wr wr;
	struct rmem_wc wc;
	unsigned int i;

	open_srq();
	fake.post_take = 3;
	fake.post_errno = ENOMEM;
	TEST_EQ(post_n(0, 5), 3);
	fake.post_take = 0;
	for (i = 0; i < 10 * DEPTH; i++)
		TEST_ERR(post_n(90, DEPTH), ENOSPC);
	fake.post_errno = EINVAL;
	TEST_ERR(post_n(90, 1), EINVAL);
	fake.post_errno = 0;
	TEST_ERR(rmem_srq_post_recv(srq, &long_wr, 1), EINVAL);
	TEST_EQ(post_n(3, DEPTH - 3), DEPTH - 3);
	wr = vt_wr(RMEM_WR_SEND, NULL);
	wr.num_sge = 0;
	for (i = 0; i < DEPTH; i++) {
		TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
		TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
		TEST_EQ(wc.wr_id, i);
	}
}

TEST_SUITE(verbs_srq, setup, teardown);
