/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared receive queues over the fakes: order, limits, and each call of libibverbs that fails. */

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

static void
send_from(struct rmem_qp *qp)
{
	struct rmem_send_wr wr = vt_wr(RMEM_WR_SEND, NULL);
	struct rmem_wc wc;

	wr.num_sge = 0;
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	TEST_STATUS(vt_wait(qp->send_cq, &wc), RMEM_WC_SUCCESS);
}

static void
expect_recv(struct rmem_qp *qp, uint64_t wr_id)
{
	struct rmem_wc wc;

	TEST_STATUS(vt_wait(qp->recv_cq, &wc), RMEM_WC_SUCCESS);
	TEST_EQ(wc.wr_id, wr_id);
	TEST_EQ(wc.qp_num, qp->qp_num);
	TEST_EQ(wc.opcode, RMEM_WC_RECV);
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

TEST(verbs_srq, receives_complete_with_the_number_of_their_qp)
{
	struct rmem_dev_stats stats;
	const struct rmem_recv_wr recv = {.wr_id = 1};
	unsigned int i;

	open_srq();
	TEST_ERR(rmem_post_recv(vt.a, &recv, 1), EINVAL);
	for (i = 0; i < DEPTH; i++)
		TEST_EQ(post(UINT64_MAX - i), 1);
	TEST_ERR(post(1), ENOSPC);
	for (i = 0; i < DEPTH; i++) {
		send_from(i % 3 == 0 ? vt.a : vt.b);
		expect_recv(i % 3 == 0 ? vt.b : vt.a, UINT64_MAX - i);
	}
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.recv_wrs, DEPTH);
	TEST_ERR(rmem_srq_destroy(srq), EBUSY);
}

/* Each polled receive frees its entry, in any order; unpolled ones do not use up the entries. */
TEST(verbs_srq, entries_are_reused)
{
	struct rmem_send_wr wr;
	unsigned int i, j;

	open_srq();
	wr = vt_wr(RMEM_WR_SEND, NULL);
	wr.num_sge = 0;
	for (i = 0; i < 100; i++) {
		for (j = 0; j < DEPTH; j++)
			TEST_EQ(post(i * DEPTH + j), 1);
		for (j = 0; j < DEPTH; j++) {
			wr.flags = j < DEPTH - 2 ? 0 : RMEM_SEND_SIGNALED;
			TEST_EQ(rmem_post_send(j % 2 == 0 ? vt.a : vt.b, &wr, 1), 1);
		}
		expect_recvs(vt.cq_b, i * DEPTH);
		expect_recvs(vt.cq_a, i * DEPTH + 1);
	}
}

TEST(verbs_srq, resize_adds_entries)
{
	struct rmem_srq_attr attr = {.max_wr = 4 * DEPTH, .srq_limit = 3};
	unsigned int i;

	open_srq();
	for (i = 0; i < DEPTH; i++)
		TEST_EQ(post(i), 1);
	TEST_OK(rmem_srq_modify(srq, &attr, RMEM_SRQ_MAX_WR | RMEM_SRQ_LIMIT));
	for (; i < 4 * DEPTH; i++)
		TEST_EQ(post(i), 1);
	TEST_ERR(post(i), ENOSPC);
	TEST_OK(rmem_srq_query(srq, &attr));
	TEST_EQ(attr.max_wr, 4 * DEPTH);
	TEST_EQ(attr.srq_limit, 3);
	for (i = 0; i < 4 * DEPTH; i++) {
		send_from(vt.a);
		expect_recv(vt.b, i);
	}
	TEST_OK(rmem_srq_query(srq, &attr));
	TEST_EQ(attr.srq_limit, 0);
}

TEST(verbs_srq, failed_calls_are_reported)
{
	const struct rmem_srq_conf conf = {.max_wr = DEPTH};
	struct rmem_srq_attr attr = {.srq_limit = 1};
	struct rmem_srq *other = NULL;

	open_srq();
	fake.fail_errno = ENOSPC;
	fake.fail_name = "create_srq";
	TEST_ERR(rmem_srq_create(vt.pd, &conf, &other), ENOSPC);
	vt_fail("modify_srq", EFAULT);
	TEST_ERR(rmem_srq_modify(srq, &attr, RMEM_SRQ_LIMIT), EIO);
	fake.fail_errno = ENOMEM;
	TEST_ERR(rmem_srq_modify(srq, &attr, RMEM_SRQ_LIMIT), ENOMEM);
	fake.fail_name = "query_srq";
	TEST_ERR(rmem_srq_query(srq, &attr), EIO);
	fake.fail_name = NULL;
	TEST_OK(rmem_srq_create(vt.pd, &conf, &other));
	TEST_OK(rmem_srq_destroy(other));
}

TEST_SUITE(verbs_srq, setup, teardown);
