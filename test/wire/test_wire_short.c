/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Messages of one packet over shared memory, which have functions of their own, next to requests
 * that have not; and polls that leave out what nothing waits for.
 */

#include <rte_byteorder.h>

#include <sys/mman.h>
#include <unistd.h>

#include "../perf/perf_row.h"
#include "../rc.h"
#include "clock.h"

#define MAX_LENGTH 1100u /* some bytes more than the longest short message */
#define MAX_INLINE 64u
#define ROOM       4096u
#define NB_WRS     32u
#define MANY       100u /* requests, more than may be in flight */
#define ARGS(host) "ip=127.0.18." host ",port=shm:short,loop=1,progress=poll"

static struct rmem_dev *dev_a, *dev_b;
static struct rmem_pd *pd_a, *pd_b;
static struct rmem_cq *cq_a, *cq_b;
static struct rmem_qp *a, *b;
static struct rmem_mr *from, *to;

static void
open_side(const char *args, struct rmem_dev **dev, struct rmem_pd **pd, struct rmem_cq **cq,
		struct rmem_qp **qp)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 2 * MANY};
	struct rmem_qp_conf conf;

	perf_dev_open(args, dev);
	TEST_OK(rmem_pd_alloc(*dev, pd));
	TEST_OK(rmem_cq_create(*dev, &cq_conf, cq));
	conf = rc_conf(*cq, MANY, NB_WRS);
	conf.max_recv_sge = 2;
	conf.max_inline_data = MAX_INLINE;
	TEST_OK(rmem_qp_create(*pd, &conf, qp));
}

static void
close_side(struct rmem_dev *dev, struct rmem_pd *pd, struct rmem_cq *cq, struct rmem_qp *qp)
{
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_cq_destroy(cq));
	TEST_OK(rmem_pd_dealloc(pd));
	TEST_OK(rmem_dev_close(dev));
}

static void
connect_pair(struct rmem_qp *x, struct rmem_qp *y)
{
	const struct rmem_qp_conn conn = {
			.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};

	rc_connect(x, y, conn);
	rc_connect(y, x, conn);
}

static void
setup(void)
{
	open_side(ARGS("8"), &dev_a, &pd_a, &cq_a, &a);
	open_side(ARGS("9"), &dev_b, &pd_b, &cq_b, &b);
	connect_pair(a, b);
	from = perf_mr(pd_a, ROOM);
	to = perf_mr(pd_b, ROOM);
	TEST_ASSERT(from != NULL && to != NULL);
}

static void
teardown(void)
{
	clock_run();
	TEST_OK(rmem_mr_dereg(from));
	TEST_OK(rmem_mr_dereg(to));
	close_side(dev_a, pd_a, cq_a, a);
	close_side(dev_b, pd_b, cq_b, b);
}

static void
post_recv(uint32_t length)
{
	const struct rmem_sge sge = {to->iova + 1, length, to->lkey};
	const struct rmem_recv_wr wr = {.wr_id = length, .sg_list = &sge, .num_sge = 1};

	TEST_EQ(rmem_post_recv(b, &wr, 1), 1);
}

/* Wait for a completion of one of both sides, while both make progress. */
static void
wait_for(struct rmem_cq *cq, struct rmem_wc *wc)
{
	struct rmem_cq *other = cq == cq_a ? cq_b : cq_a;
	struct rmem_wc none;

	while (rmem_poll_cq(cq, wc, 1) == 0)
		TEST_EQ(rmem_poll_cq(other, &none, 0), 0);
}

/* Send a message, whose flags depend on its length, to a receive of exactly its length. */
static void
check_message(uint32_t length)
{
	const struct rmem_sge sge = {from->iova + length % 7, length, from->lkey};
	struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);
	uint8_t *in = (uint8_t *)to->addr + 1;
	uint16_t flags = 0;
	struct rmem_wc wc;

	if (length % 2 != 0) {
		wr.opcode = RMEM_WR_SEND_WITH_IMM;
		wr.imm_data = rte_cpu_to_be_32(length ^ 0xabcdef01);
		flags |= RMEM_WC_WITH_IMM;
	}
	if (length % 3 == 0) {
		wr.flags |= RMEM_SEND_SOLICITED;
		flags |= RMEM_WC_SOLICITED;
	}
	if (length <= MAX_INLINE && length % 5 < 2)
		wr.flags |= RMEM_SEND_INLINE;
	memset(to->addr, 0xa5, ROOM);
	post_recv(length);
	TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	wait_for(cq_b, &wc);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.opcode, RMEM_WC_RECV);
	TEST_EQ(wc.wr_id, length);
	TEST_EQ(wc.byte_len, length);
	TEST_EQ(wc.flags, flags);
	if ((flags & RMEM_WC_WITH_IMM) != 0)
		TEST_EQ(wc.imm_data, wr.imm_data);
	TEST_MEM(in, (const uint8_t *)from->addr + length % 7, length);
	TEST_EQ(in[-1], 0xa5);
	TEST_EQ(in[length], 0xa5);
	wait_for(cq_a, &wc);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
}

TEST(wire_short, message_of_each_length_arrives_with_its_flags)
{
	uint32_t i;

	for (i = 0; i < ROOM; i++)
		((uint8_t *)from->addr)[i] = (uint8_t)(i * 7 + i / 256);
	for (i = 0; i <= MAX_LENGTH; i++)
		check_message(i);
	TEST_OK(rmem_dev_audit(dev_a));
	TEST_OK(rmem_dev_audit(dev_b));
}

static bool
is_send(const struct rmem_send_wr *wr)
{
	return wr->opcode == RMEM_WR_SEND || wr->opcode == RMEM_WR_SEND_WITH_IMM;
}

/* Each kind of request follows each other one, in one post and in posts of its own. */
static void
check_order(uint32_t part, uint32_t seed)
{
	static const uint8_t opcodes[] = {RMEM_WR_SEND, RMEM_WR_SEND_WITH_IMM, RMEM_WR_RDMA_WRITE,
			RMEM_WR_RDMA_READ, RMEM_WR_SEND};
	static const uint32_t lengths[] = {8, 64, 0, 3000, 1023};
	struct rmem_send_wr wr[NB_WRS];
	struct rmem_sge sge[NB_WRS];
	uint32_t i, nb_recvs = 0;
	struct rmem_wc wc;

	for (i = 0; i < NB_WRS; i++) {
		const uint32_t kind = (i * seed + i / 5) % RTE_DIM(opcodes);

		sge[i] = (struct rmem_sge){from->iova, lengths[(i + seed) % 5], from->lkey};
		wr[i] = rc_rdma(opcodes[kind], &sge[i], to->iova, to->rkey);
		wr[i].wr_id = i;
		if (is_send(&wr[i])) {
			post_recv(ROOM - 1);
			nb_recvs++;
		}
	}
	for (i = 0; i < NB_WRS; i += part)
		TEST_EQ(rmem_post_send(a, &wr[i], (uint16_t)part), (int)part);
	for (i = 0; i < NB_WRS; i++) {
		wait_for(cq_a, &wc);
		TEST_EQ(wc.status, RMEM_WC_SUCCESS);
		TEST_EQ(wc.wr_id, i);
	}
	for (i = 0; nb_recvs != 0; i++) {
		if (!is_send(&wr[i]))
			continue;
		nb_recvs--;
		wait_for(cq_b, &wc);
		TEST_EQ(wc.status, RMEM_WC_SUCCESS);
		TEST_EQ(wc.byte_len, sge[i].length);
	}
}

TEST(wire_short, requests_of_all_kinds_complete_in_the_order_of_their_posts)
{
	uint32_t seed;

	for (seed = 1; seed < 40; seed++)
		check_order(UINT32_C(1) << seed % 6, seed);
}

TEST(wire_short, receive_of_two_sges_gets_a_message_in_two_parts)
{
	const struct rmem_sge out = {from->iova, 64, from->lkey};
	const struct rmem_sge in[2] = {{to->iova, 24, to->lkey}, {to->iova + 100, 100, to->lkey}};
	const struct rmem_recv_wr recv = {.sg_list = in, .num_sge = 2};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &out);
	struct rmem_wc wc;

	memset(from->addr, 's', 64);
	TEST_EQ(rmem_post_recv(b, &recv, 1), 1);
	TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	wait_for(cq_b, &wc);
	TEST_EQ(wc.byte_len, 64);
	TEST_MEM(to->addr, from->addr, 24);
	TEST_MEM((const uint8_t *)to->addr + 100, from->addr, 40);
}

/* A message that has no receive yet is sent again, and those after it wait. */
TEST(wire_short, messages_wait_for_their_receives_in_order)
{
	const struct rmem_sge sge[2] = {{from->iova, 10, from->lkey}, {from->iova, 20, from->lkey}};
	const struct rmem_send_wr wr[2] = {
			rc_wr(RMEM_WR_SEND, &sge[0]), rc_wr(RMEM_WR_SEND, &sge[1])};
	struct rmem_dev_stats stats;
	struct rmem_wc wc;

	TEST_EQ(rmem_post_send(a, wr, 2), 2);
	do {
		TEST_EQ(rmem_poll_cq(cq_b, &wc, 1), 0);
		TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0);
		TEST_OK(rmem_dev_stats_get(dev_b, &stats));
	} while (stats.wire_rnr_naks_sent == 0);
	post_recv(100);
	post_recv(100);
	wait_for(cq_b, &wc);
	TEST_EQ(wc.byte_len, 10);
	wait_for(cq_b, &wc);
	TEST_EQ(wc.byte_len, 20);
}

/* A registered page that is no longer mapped. */
static struct rmem_mr *
unmapped_mr(struct rmem_pd *pd)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rmem_mr *mr;

	TEST_ASSERT(page != MAP_FAILED);
	TEST_OK(rmem_mr_reg(pd, page, size, (uintptr_t)page, RMEM_ACCESS_LOCAL_WRITE, &mr));
	TEST_OK(munmap(page, size));
	return mr;
}

TEST(wire_short, message_to_unmapped_memory_fails_on_both_sides)
{
	struct rmem_mr *gone = unmapped_mr(pd_b);
	const struct rmem_sge out = {from->iova, 64, from->lkey};
	const struct rmem_sge in = {gone->iova, 64, gone->lkey};
	const struct rmem_recv_wr recv = {.sg_list = &in, .num_sge = 1};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &out);
	struct rmem_wc wc;

	TEST_EQ(rmem_post_recv(b, &recv, 1), 1);
	TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0); /* it reads the clock */
	TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	wait_for(cq_b, &wc);
	TEST_EQ(wc.status, RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(wc.vendor_err, RMEM_VENDOR_ERR_PAGE_FAULT);
	wait_for(cq_a, &wc);
	TEST_EQ(wc.status, RMEM_WC_REM_OP_ERR);
	TEST_OK(rmem_mr_dereg(gone));
}

TEST(wire_short, message_from_unmapped_memory_is_not_sent)
{
	struct rmem_mr *gone = unmapped_mr(pd_a);
	const struct rmem_sge out = {gone->iova, 64, gone->lkey};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &out);
	struct rmem_dev_stats stats;
	struct rmem_wc wc;

	post_recv(100);
	TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0); /* it reads the clock */
	TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	wait_for(cq_a, &wc);
	TEST_EQ(wc.status, RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(wc.vendor_err, RMEM_VENDOR_ERR_PAGE_FAULT);
	TEST_OK(rmem_dev_stats_get(dev_a, &stats));
	TEST_EQ(stats.wire_tx_packets, 0);
	TEST_OK(rmem_mr_dereg(gone));
}

static uint64_t
nb_sent(void)
{
	struct rmem_dev_stats stats;

	TEST_OK(rmem_dev_stats_get(dev_a, &stats));
	return stats.wire_tx_packets;
}

TEST(wire_short, message_after_an_rnr_nak_waits_for_its_delay)
{
	const struct rmem_sge sge = {from->iova, 10, from->lkey};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);
	struct rmem_dev_stats stats = {0};
	struct rmem_wc wc;
	uint64_t before;

	clock_stop();
	TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	/* The first packets open the channels. */
	while (stats.rnr_retries == 0) {
		clock_pass(1000);
		TEST_EQ(rmem_poll_cq(cq_b, &wc, 1), 0);
		TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0);
		TEST_OK(rmem_dev_stats_get(dev_a, &stats));
	}
	before = nb_sent();
	TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0);
	TEST_EQ(nb_sent(), before);
}

TEST(wire_short, message_with_a_fence_waits_for_a_read)
{
	const struct rmem_sge sge = {from->iova, 10, from->lkey};
	struct rmem_send_wr wr[2] = {rc_rdma(RMEM_WR_RDMA_READ, &sge, to->iova, to->rkey),
			rc_wr(RMEM_WR_SEND, &sge)};
	uint64_t before = nb_sent();
	struct rmem_wc wc;

	wr[1].flags |= RMEM_SEND_FENCE;
	TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0); /* it reads the clock */
	TEST_EQ(rmem_post_send(a, &wr[0], 1), 1);
	TEST_EQ(rmem_post_send(a, &wr[1], 1), 1);
	TEST_EQ(nb_sent(), before + 1);
	post_recv(100);
	wait_for(cq_b, &wc);
	TEST_EQ(nb_sent(), before + 2);
}

TEST(wire_short, messages_in_flight_fit_in_the_window)
{
	const struct rmem_sge sge = {from->iova, 10, from->lkey};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);
	uint64_t before = nb_sent();
	struct rmem_wc wc;
	uint32_t i;

	for (i = 0; i < MANY; i++) {
		TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0);
		TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	}
	TEST_EQ(nb_sent(), before + ((const struct rsoft_qp *)a)->wire->window);
}

TEST(wire_short, messages_of_a_qp_with_a_rate_limit_take_their_time)
{
	const struct rmem_qp_attr attr = {.rate_limit = 8}; /* kbit/s */
	const struct rmem_sge sge = {from->iova, 1000, from->lkey};
	const struct rmem_send_wr wr[2] = {rc_wr(RMEM_WR_SEND, &sge), rc_wr(RMEM_WR_SEND, &sge)};
	uint64_t before = nb_sent();
	struct rmem_wc wc;

	clock_stop();
	TEST_OK(rmem_qp_modify(a, &attr, RMEM_QP_RATE_LIMIT));
	TEST_EQ(rmem_post_send(a, wr, 2), 2);
	clock_pass(900 * 1000);
	TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0);
	TEST_EQ(nb_sent(), before + 1);
	clock_pass(900 * 1000);
	TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0);
	TEST_ASSERT(nb_sent() > before + 1);
}

/*
 * Polls rely for a moment on the result of the last one, that no request can go on. A flush does
 * not wait for a packet or timer.
 */
TEST(wire_short, requests_of_a_qp_in_err_are_flushed_after_polls_that_found_nothing)
{
	const struct rmem_qp_attr attr = {.state = RMEM_QPS_ERR};
	const struct rmem_sge sge = {from->iova, 10, from->lkey};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);
	struct rmem_wc wc;
	uint32_t i;

	TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	for (i = 0; i < 1000; i++)
		TEST_EQ(rmem_poll_cq(cq_a, &wc, 1), 0);
	TEST_OK(rmem_qp_modify(a, &attr, RMEM_QP_STATE));
	TEST_EQ(rc_wait(cq_a, &wc), 1);
	TEST_EQ(wc.status, RMEM_WC_WR_FLUSH_ERR);
}

/* The port accepts a connection at its first poll for which enough time has passed. */
TEST(wire_short, program_that_polls_rarely_gets_the_packets_of_a_new_peer)
{
	const struct rmem_sge sge = {from->iova, 10, from->lkey};
	const struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);
	struct rmem_wc wc;
	int n = 0, i;

	TEST_EQ(rmem_poll_cq(cq_b, &wc, 1), 0);
	clock_stop();
	post_recv(100);
	TEST_EQ(rmem_poll_cq(cq_b, &wc, 1), 0);
	TEST_EQ(rmem_post_send(a, &wr, 1), 1);
	/* One to accept, one to get the ring. */
	for (i = 0; i < 2 && n == 0; i++) {
		clock_pass(5000);
		n = rmem_poll_cq(cq_b, &wc, 1);
	}
	TEST_EQ(n, 1);
}

TEST_SUITE(wire_short, setup, teardown);
