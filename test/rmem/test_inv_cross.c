/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A peer's SEND_WITH_INV crosses the owner's LOCAL_INV of the same key. One of the two invalidates
 * it; the other fails; and a message that its sender has seen acknowledged has completed a receive.
 *
 * Other lcores write all the time, so that an invalidation often waits for a grace period, which is
 * when the two cross.
 */

#include <string.h>

#include "fixture.h"

#define MAX_WRITERS   2u
#define MIN_ROUNDS    100u
#define MAX_ROUNDS    1000u
#define ENOUGH        5u
#define ENGINE_ROUNDS 50u

struct writer {
	struct fx_side side;
	struct fx_side peer;
} __rte_cache_aligned;

static struct writer writers[MAX_WRITERS];
static uint32_t is_stopped; /* atomic */
static unsigned int nb_crossed;

/* How the requests of a round ended. */
struct outcome {
	int message; /* at its sender */
	int local_inv;
	int recv;
};

static void
setup(void)
{
	unsigned int i;

	fx_setup_fast();
	is_stopped = 0;
	nb_crossed = 0;
	for (i = 0; i < MAX_WRITERS; i++) {
		fx_side_open(&writers[i].side, fx.a.dev, fx.a.pd);
		fx_side_open(&writers[i].peer, fx.a.dev, fx.a.pd);
		TEST_OK(fx_connect_pair(writers[i].side.qp, writers[i].peer.qp));
	}
}

static void
run_writer(void *arg)
{
	const struct writer *writer = arg;
	const struct rmem_sge sge = fx_sge(writer->side.mr, 0, FX_BUF_SIZE);
	struct rmem_send_wr wr = fx_rdma(
			RMEM_WR_RDMA_WRITE, &sge, fx_addr(writer->peer.buf), writer->peer.mr->rkey);
	struct rmem_wc wc;

	wr.flags = RMEM_SEND_SIGNALED;
	while (!__atomic_load_n(&is_stopped, __ATOMIC_ACQUIRE)) {
		TEST_EQ(rmem_post_send(writer->side.qp, &wr, 1), 1);
		TEST_EQ(fx_poll(writer->side.cq, &wc, 1), 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	}
}

/* The message first; the owner's request follows before it has completed, or after. */
static void
cross(struct outcome *outcome)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 100), to = fx_sge(fx.a.mr, 0, 100);
	struct rmem_send_wr message = fx_wr(RMEM_WR_SEND_WITH_INV, &from, 1);
	struct rmem_send_wr inv;
	struct rmem_wc wcs[2];
	unsigned int i;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	message.invalidate_rkey = fx.fast.mr->rkey;
	message.flags = RMEM_SEND_SIGNALED;
	inv = fx_inv(fx.fast.mr->rkey);
	inv.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.b.qp, &message), 1);
	TEST_EQ(fx_post(fx.a.qp, &inv), 1);
	outcome->message = fx_wait(fx.b.cq);
	TEST_EQ(fx_poll(fx.a.cq, wcs, 2), 2);
	for (i = 0; i < 2; i++)
		*(wcs[i].wr_id == 1 ? &outcome->recv : &outcome->local_inv) = wcs[i].status;
}

static void
check(const struct outcome *outcome)
{
	switch (outcome->message) {
	case RMEM_WC_SUCCESS:
		if (outcome->recv == RMEM_WC_REM_INV_REQ_ERR) { /* IBTA class J: it arrived */
			TEST_STATUS(outcome->local_inv, RMEM_WC_SUCCESS);
			break;
		}
		TEST_STATUS(outcome->recv, RMEM_WC_SUCCESS);
		TEST_STATUS(outcome->local_inv, RMEM_WC_MW_BIND_ERR);
		break;
	case RMEM_WC_RETRY_EXC_ERR: /* the owner failed before the acknowledgement */
		TEST_STATUS(outcome->recv, RMEM_WC_WR_FLUSH_ERR);
		TEST_STATUS(outcome->local_inv, RMEM_WC_MW_BIND_ERR);
		nb_crossed++;
		break;
	default:
		TEST_STATUS(outcome->message, RMEM_WC_SUCCESS);
		break;
	}
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
}

static void
rounds(void)
{
	bool is_engine = fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_ENGINE);
	unsigned int i, max = is_engine ? ENGINE_ROUNDS : MAX_ROUNDS;
	struct outcome outcome = {0};

	for (i = 0; i < max && (i < MIN_ROUNDS || nb_crossed < ENOUGH); i++) {
		cross(&outcome);
		check(&outcome);
		fx_reconnect();
	}
}

TEST(inv_cross, acknowledged_send_with_inv_completes_its_receive)
{
	unsigned int nb = RTE_MIN(fx_nb_workers(), MAX_WRITERS);
	int result;

	fx_launch(run_writer, writers, sizeof(writers[0]), nb);
	result = TEST_TRY(rounds());
	__atomic_store_n(&is_stopped, 1, __ATOMIC_RELEASE);
	TEST_RUN(TEST_TRY(fx_join(nb)) != TEST_SUCCESS ? TEST_FAILED : result);
}

TEST_SUITE(inv_cross, setup, fx_teardown);
