/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The effect of requests with any fault: one that succeeds has its data in place, one that fails
 * has changed nothing. Not excused by an injected fault.
 */

#include <rte_cycles.h>

#include "conf.h"

#define NB_ROUNDS 200u
#define RECV_AT   1024u

/* A request of b, and the words of 8 bytes that it changes if it succeeds. */
struct round {
	uint8_t opcode;
	const volatile uint64_t *target;
	uint64_t old;
	uint64_t wanted;
};

static volatile uint64_t *
word_of(const struct fx_side *side, uint32_t offset)
{
	return (volatile uint64_t *)(side->buf + offset);
}

/* The next completion of a CQ; -EIO: the CQ has overrun. */
static int
next_status(struct rmem_cq *cq)
{
	uint64_t deadline = rte_get_timer_cycles() + 20 * rte_get_timer_hz();
	unsigned int spins = 0;
	int ret;

	while ((ret = rmem_poll_cq(cq, &fx.wc, 1)) == 0 && !fx_is_late(deadline))
		fx_relax(&spins);
	conf_must(ret != 0, "a request is completed");
	return ret == 1 ? fx.wc.status : ret == 0 ? -ETIMEDOUT : ret;
}

/* Connect both QPs again after a failure; a transition may fail, too. */
static bool
reconnect(void)
{
	unsigned int i;
	struct rmem_wc wc;

	for (i = 0; i < 100; i++) {
		TEST_OK(rmem_qp_reset(fx.a.qp));
		TEST_OK(rmem_qp_reset(fx.b.qp));
		if (conf_connect(fx.b.qp, fx.a.qp) == 0)
			break;
	}
	/* Completions that are late. */
	for (i = 0; i < 1000; i++) {
		if (rmem_poll_cq(fx.a.cq, &wc, 1) < 0 || rmem_poll_cq(fx.b.cq, &wc, 1) < 0)
			return false;
	}
	return true;
}

/* The request of a round, with its data. */
static struct rmem_send_wr
prepare(struct round *round, uint32_t i, const struct rmem_sge *sge)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ, RMEM_WR_SEND,
			RMEM_WR_ATOMIC_FETCH_AND_ADD};
	bool has_atomics = (conf.info.capa & RMEM_DEV_CAPA_ATOMIC) != 0;
	volatile uint64_t *mine = word_of(&fx.b, 0), *remote = word_of(&fx.a, 8 * (i % 64));
	uint64_t tag = UINT64_C(0x5a00000000) + i;

	round->opcode = opcodes[i * 7 / 3 % (has_atomics ? 4 : 3)];
	*mine = round->opcode == RMEM_WR_RDMA_READ ? ~tag : tag;
	*remote = round->opcode == RMEM_WR_RDMA_WRITE ? ~tag : tag;
	round->target = round->opcode == RMEM_WR_RDMA_READ ? mine : remote;
	round->wanted = tag;
	if (round->opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD)
		round->wanted = tag + 1;
	if (round->opcode == RMEM_WR_SEND) {
		round->target = word_of(&fx.a, RECV_AT);
		*word_of(&fx.a, RECV_AT) = 0;
	}
	round->old = *round->target;
	if (round->opcode == RMEM_WR_SEND)
		return fx_wr(RMEM_WR_SEND, sge, 1);
	return conf_request(round->opcode, sge, fx_addr(fx.a.buf) + 8 * (uint64_t)(i % 64),
			fx.a.mr->rkey);
}

/* False: the CQ has overrun, which ends the case. */
static bool
run_round(uint32_t i)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8), into = fx_sge(fx.a.mr, RECV_AT, 8);
	struct round round;
	struct rmem_send_wr wr = prepare(&round, i, &sge);
	int status;

	wr.wr_id = i;
	wr.flags = RMEM_SEND_SIGNALED;
	if (round.opcode == RMEM_WR_SEND && fx_post_recv(fx.a.qp, i, &into, 1) != 1)
		return reconnect();
	status = rmem_post_send(fx.b.qp, &wr, 1);
	if (status == 1)
		status = next_status(fx.b.cq);
	if (status == RMEM_WC_SUCCESS && round.opcode == RMEM_WR_SEND) {
		conf_must(fx.wc.wr_id == i, "the completion is of the request");
		status = next_status(fx.a.cq);
		conf_must(status == RMEM_WC_SUCCESS || status == -EIO,
				"the receive of a SEND that succeeded succeeds");
	}
	if (status == RMEM_WC_SUCCESS) {
		conf_must(fx.wc.wr_id == i, "the completion is of the request");
		conf_must(*round.target == round.wanted, "the data of a success is there");
		return true;
	}
	if (status == -EIO)
		return false;
	conf_must(*round.target == round.old, "a request that failed has changed nothing");
	return reconnect();
}

CONF_TEST(outcome, success_has_its_data_and_failure_changes_nothing, 0, 0,
		"IBTA 9.9.2, 9.9.3: a failed request is not executed")
{
	uint32_t i;

	for (i = 0; i < NB_ROUNDS && run_round(i); i++)
		;
	/* Without faults no round ends the case. */
	if (conf.faults == NULL)
		TEST_EQ(i, NB_ROUNDS);
}

TEST_SUITE(outcome, conf_setup, conf_teardown);
