/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A burst of SENDs has the results of the same SENDs posted one by one: completions of both sides,
 * and memory. Receives are not inline, so that bursts are copied under one lock.
 */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define BURST    8u
#define LENGTH   64u
#define MAX_WCS  (2 * BURST)
#define MESSAGES 4096u /* to another lcore */

/* A burst, its receives, and what becomes of it. */
struct burst {
	struct rmem_sge from[BURST][2], to[BURST][2];
	struct rmem_send_wr send[BURST];
	struct rmem_recv_wr recv[BURST];
	uint32_t nb_recv;
};

struct result {
	int nb_posted, nb_sent, nb_received, state_a, state_b;
	struct rmem_wc sent[MAX_WCS], received[MAX_WCS];
	uint8_t bytes[FX_BUF_SIZE];
};

static struct burst burst;

static void
setup_by(uint8_t type)
{
	struct rmem_qp_conf conf;

	fx_setup();
	conf = fx_qp_conf(fx.a.cq, FX_DEPTH);
	conf.type = type;
	fx.a.qp = fx_qp_by(fx.a.pd, &conf);
	conf = fx_qp_conf(fx.b.cq, FX_DEPTH);
	conf.type = type;
	conf.flags = RMEM_QP_NO_INLINE_RECV;
	fx.b.qp = fx_qp_by(fx.b.pd, &conf);
}

static void
setup(void)
{
	setup_by(RMEM_QPT_RC);
}

static void
setup_uc(void)
{
	setup_by(RMEM_QPT_UC);
}

static void
reconnect(void)
{
	struct rmem_qp_conn conn = fx_conn();

	conn.rnr_retry = 0;
	conn.timeout = 1;
	conn.retry_cnt = 0;
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	fx_drain(fx.a.cq);
	fx_drain(fx.b.cq);
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
}

/* Messages of LENGTH bytes to receives of twice that. */
static void
make_burst(void)
{
	uint32_t i;

	burst = (struct burst){.nb_recv = BURST};
	for (i = 0; i < BURST; i++) {
		burst.from[i][0] = fx_sge(fx.a.mr, i * LENGTH, LENGTH);
		burst.from[i][1] = fx_sge(fx.a.mr, (BURST + i) * LENGTH, LENGTH / 2);
		burst.to[i][0] = fx_sge(fx.b.mr, (size_t)i * 4096, 2 * LENGTH);
		burst.to[i][1] = fx_sge(fx.b.mr, (size_t)i * 4096 + 2048, 2 * LENGTH);
		burst.send[i] = fx_wr(RMEM_WR_SEND, burst.from[i], 1);
		burst.send[i].wr_id = 100 + i;
		burst.send[i].flags = RMEM_SEND_SIGNALED;
		burst.recv[i] = (struct rmem_recv_wr){
				.wr_id = 200 + i, .sg_list = burst.to[i], .num_sge = 1};
	}
}

/* Poll wanted completions and those that follow them at once. */
static int
poll_all(struct rmem_cq *cq, struct rmem_wc *wc, int wanted)
{
	uint64_t deadline = fx_deadline();
	int i, n, nb = 0;

	do {
		n = rmem_poll_cq(cq, wc + nb, (uint16_t)(MAX_WCS - (uint32_t)nb));
		TEST_ASSERT(n >= 0 && (n > 0 || nb >= wanted || !fx_is_late(deadline)));
		nb += n;
	} while (n != 0 || nb < wanted);
	for (i = 0; i < nb; i++)
		wc[i].reserved = 0;
	return nb;
}

/* Number of completions that the first requests generate. */
static int
nb_signaled(int nb_posted)
{
	int i, nb = 0;

	for (i = 0; i < nb_posted; i++)
		nb += (burst.send[i].flags & RMEM_SEND_SIGNALED) != 0;
	return nb;
}

static void
run(uint16_t part, struct result *result)
{
	uint16_t i;
	int n = part;

	reconnect();
	memset(result, 0, sizeof(*result));
	memset(fx.b.buf, 0, FX_BUF_SIZE);
	TEST_EQ(rmem_post_recv(fx.b.qp, burst.recv, (uint16_t)burst.nb_recv), (int)burst.nb_recv);
	/* A request that the service does not have is refused. */
	for (i = 0; i < BURST && n == part; i += part) {
		n = rmem_post_send(fx.a.qp, burst.send + i, part);
		result->nb_posted += RTE_MAX(n, 0);
	}
	result->nb_sent = poll_all(fx.a.cq, result->sent, nb_signaled(result->nb_posted));
	result->nb_received = poll_all(fx.b.cq, result->received, 0);
	result->state_a = fx_state(fx.a.qp);
	result->state_b = fx_state(fx.b.qp);
	memcpy(result->bytes, fx.b.buf, FX_BUF_SIZE);
}

static bool
are_equal(const struct result *a, const struct result *b)
{
	return a->nb_posted == b->nb_posted && a->nb_sent == b->nb_sent &&
			a->nb_received == b->nb_received && a->state_a == b->state_a &&
			a->state_b == b->state_b &&
			memcmp(a->sent, b->sent, sizeof(a->sent)) == 0 &&
			memcmp(a->received, b->received, sizeof(a->received)) == 0 &&
			memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Whether the burst, and its halves, have the results of single requests. */
static bool
is_same(void)
{
	static struct result single, other;

	run(1, &single);
	run(BURST, &other);
	if (!are_equal(&single, &other))
		return false;
	run(BURST / 2, &other);
	return are_equal(&single, &other);
}

/* Changes of the request, or of the receive, at a position. */
static void
plain(uint32_t at)
{
	RTE_SET_USED(at);
}

static void
with_imm(uint32_t at)
{
	burst.send[at].opcode = RMEM_WR_SEND_WITH_IMM;
	burst.send[at].imm_data = 0x12345678;
}

static void
solicited(uint32_t at)
{
	burst.send[at].flags |= RMEM_SEND_SOLICITED | RMEM_SEND_FENCE;
}

static void
unsignaled(uint32_t at)
{
	burst.send[at].flags = 0;
}

static void
inline_data(uint32_t at)
{
	burst.send[at].flags |= RMEM_SEND_INLINE;
	burst.from[at][0] = (struct rmem_sge){(uintptr_t)fx.a.buf + 1, 5, 0};
}

static void
two_sges(uint32_t at)
{
	burst.send[at].num_sge = 2;
}

static void
empty(uint32_t at)
{
	burst.from[at][0].length = 0;
}

static void
longest(uint32_t at)
{
	burst.from[at][0].length = 1024;
	burst.to[at][0].length = 1024;
}

static void
longer(uint32_t at)
{
	burst.from[at][0].length = 1025;
	burst.to[at][0].length = 2048;
}

static void
bad_lkey(uint32_t at)
{
	burst.from[at][0].lkey ^= 1;
}

static void
beyond_the_mr(uint32_t at)
{
	burst.from[at][0] = fx_sge(fx.a.mr, FX_BUF_SIZE - LENGTH + 1, LENGTH);
}

static void
write_between(uint32_t at)
{
	burst.send[at] = fx_rdma(RMEM_WR_RDMA_WRITE, burst.from[at], fx_addr(fx.b.buf + 3000),
			fx.b.mr->rkey);
}

static void
bad_invalidate(uint32_t at)
{
	burst.send[at].opcode = RMEM_WR_SEND_WITH_INV;
	burst.send[at].invalidate_rkey = fx.b.mr->rkey;
}

static void
short_receive(uint32_t at)
{
	burst.to[at][0].length = LENGTH - 1;
}

static void
exact_receive(uint32_t at)
{
	burst.to[at][0].length = LENGTH;
}

static void
receive_of_two_sges(uint32_t at)
{
	burst.to[at][0].length = LENGTH / 2;
	burst.recv[at].num_sge = 2;
}

static void
receive_of_none(uint32_t at)
{
	burst.recv[at].num_sge = 0;
}

static void
receive_with_a_bad_lkey(uint32_t at)
{
	burst.to[at][0].lkey ^= 1;
}

static void
receive_beyond_the_mr(uint32_t at)
{
	burst.to[at][0] = fx_sge(fx.b.mr, FX_BUF_SIZE - LENGTH + 1, 2 * LENGTH);
}

static void
no_receive(uint32_t at)
{
	burst.nb_recv = at;
}

static const struct {
	const char *name;
	void (*change)(uint32_t at);
} changes[] = {
		{"plain", plain},
		{"with immediate data", with_imm},
		{"solicited", solicited},
		{"unsignaled", unsignaled},
		{"inline data", inline_data},
		{"two SGEs", two_sges},
		{"empty", empty},
		{"1024 bytes", longest},
		{"1025 bytes", longer},
		{"bad lkey", bad_lkey},
		{"beyond the MR", beyond_the_mr},
		{"a WRITE", write_between},
		{"bad rkey to invalidate", bad_invalidate},
		{"short receive", short_receive},
		{"exact receive", exact_receive},
		{"receive of two SGEs", receive_of_two_sges},
		{"receive of no SGE", receive_of_none},
		{"receive with a bad lkey", receive_with_a_bad_lkey},
		{"receive beyond the MR", receive_beyond_the_mr},
		{"no receive", no_receive},
};

static void
expect_same_with_changes(void)
{
	static const uint32_t positions[] = {0, 1, 4, BURST - 1};
	unsigned int i, k;

	fx_fill(fx.a.buf, FX_BUF_SIZE, 7);
	for (i = 0; i < RTE_DIM(changes); i++) {
		for (k = 0; k < RTE_DIM(positions); k++) {
			make_burst();
			changes[i].change(positions[k]);
			if (is_same())
				continue;
			test_note("%s, at %u", changes[i].name, positions[k]);
			TEST_ASSERT(!"same");
		}
	}
}

TEST(send_burst, has_the_results_of_single_requests)
{
	expect_same_with_changes();
}

TEST_WITH(send_burst, of_uc_has_the_results_of_single_requests, setup_uc)
{
	expect_same_with_changes();
}

/* Number of SENDs that succeed to a CQ with too few entries. */
static int
nb_sent_to_small_cq(uint16_t part)
{
	struct rmem_cq *cq = fx_cq(fx.b.dev, BURST / 2);
	struct rmem_qp_conf conf = fx_qp_conf(cq, FX_DEPTH);
	static struct result result;
	int i, nb = 0;

	conf.flags = RMEM_QP_NO_INLINE_RECV;
	fx.b.qp = fx_qp_by(fx.b.pd, &conf);
	run(part, &result);
	for (i = 0; i < result.nb_sent; i++)
		nb += result.sent[i].status == RMEM_WC_SUCCESS;
	TEST_EQ(result.nb_sent, BURST);
	TEST_EQ(rmem_poll_cq(cq, result.received, MAX_WCS), BURST / 2);
	for (i = 0; i < (int)BURST / 2; i++)
		TEST_STATUS(result.received[i].status, RMEM_WC_SUCCESS);
	return nb;
}

/* None executes after a completion that is lost. */
TEST(send_burst, ends_with_an_overrun_of_the_cq)
{
	int nb;

	make_burst();
	nb = nb_sent_to_small_cq(1);
	TEST_EQ(nb_sent_to_small_cq(BURST), nb);
	TEST_EQ(nb_sent_to_small_cq(BURST / 2), nb);
}

/* Receives and polls on another lcore; a receive has the buffer of its wr_id. */
static void
receive(void *arg)
{
	struct rmem_sge sge;
	struct rmem_wc wc[BURST];
	uint32_t nb = 0;
	uint64_t word;
	int i, n;

	RTE_SET_USED(arg);
	while (nb < MESSAGES) {
		n = rmem_poll_cq(fx.b.cq, wc, BURST);
		TEST_ASSERT(n >= 0);
		for (i = 0; i < n; i++, nb++) {
			TEST_EQ(wc[i].status, RMEM_WC_SUCCESS);
			TEST_EQ(wc[i].byte_len, LENGTH);
			TEST_EQ(wc[i].wr_id, nb % FX_DEPTH);
			memcpy(&word, fx.b.buf + wc[i].wr_id * LENGTH, sizeof(word));
			TEST_EQ(word, nb);
			sge = fx_sge(fx.b.mr, wc[i].wr_id * LENGTH, LENGTH);
			TEST_EQ(fx_post_recv(fx.b.qp, wc[i].wr_id, &sge, 1), 1);
		}
	}
}

/* Bursts of 1 to BURST messages, numbered in their first word. */
TEST(send_burst, another_lcore_receives_in_order)
{
	const struct rmem_qp_conn conn = fx_conn();
	uint32_t i, n, nb = 0;
	struct rmem_sge sge;
	uint64_t word;

	if (fx_nb_workers() == 0)
		test_skip("it takes a worker lcore");
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
	for (i = 0; i < FX_DEPTH; i++) {
		sge = fx_sge(fx.b.mr, i * LENGTH, LENGTH);
		TEST_EQ(fx_post_recv(fx.b.qp, i, &sge, 1), 1);
	}
	make_burst();
	fx_launch(receive, NULL, 0, 1);
	for (nb = 0; nb < MESSAGES; nb += n) {
		n = RTE_MIN(1 + nb % BURST, MESSAGES - nb);
		for (i = 0; i < n; i++) {
			word = nb + i;
			memcpy((uint8_t *)(uintptr_t)burst.from[i][0].addr, &word, sizeof(word));
		}
		TEST_EQ(rmem_post_send(fx.a.qp, burst.send, (uint16_t)n), (int)n);
		for (i = 0; i < n; i++)
			TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	}
	fx_join(1);
}

TEST_SUITE(send_burst, setup, fx_teardown);
