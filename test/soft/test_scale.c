/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The work of a call does not grow with the number of QPs, of MRs and of keys: doc/scale.md. It is
 * counted in instructions.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "rc.h"
#include "steps.h"

#define FEW  64u
#define MANY 1024u
#define RING 128u /* packets */
#define ARGS "max_qp=4096,max_mr=65536,max_mw=1"

static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qps[MANY];
	struct rmem_qp *qp; /* by the calls that are counted */
	struct rmem_mr *mr; /* the same */
	uint32_t rkey;
	int result;
} sc;

static void
sc_setup(void)
{
	TEST_SKIP_IF(!STEPS_CAN_COUNT, "single-stepping is done on x86-64");
	fx_setup();
	TEST_SKIP_IF(!fx_is_soft(), "the work of the software device");
}

static void
open_dev(const char *args)
{
	sc.dev = fx_dev("soft1", args);
	sc.pd = fx_pd(sc.dev);
	sc.cq = fx_cq(sc.dev, 4 * MANY);
}

static void
close_dev(void)
{
	TEST_OK(fx_release(sc.cq));
	TEST_OK(fx_release(sc.pd));
	TEST_OK(fx_release(sc.dev));
}

static void
create_qp(void)
{
	const struct rmem_qp_conf conf = rc_conf(sc.cq, 2, 2);

	sc.result = rmem_qp_create(sc.pd, &conf, &sc.qp);
}

static void
destroy_qp(void)
{
	sc.result = rmem_qp_destroy(sc.qp);
}

static void
reg_mr(void)
{
	sc.result = rmem_mr_reg(sc.pd, fx.a.buf, 64, 0, FX_ACCESS, &sc.mr);
}

static void
request_mr(void)
{
	const struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 64,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY,
			.requested_key = sc.rkey};

	sc.result = rmem_mr_reg_attr(sc.pd, &attr, &sc.mr);
}

static void
dereg_mr(void)
{
	sc.result = rmem_mr_dereg(sc.mr);
}

static void
poll(void)
{
	struct rmem_wc wc;

	sc.result = rmem_poll_cq(sc.cq, &wc, 1);
}

/* Instructions of a call that succeeds; the second time, for what only the first one does. */
static uint64_t
work(void (*call)(void), void (*undo)(void))
{
	uint64_t nb;

	call();
	TEST_EQ(sc.result, 0);
	if (undo != NULL)
		undo();
	nb = steps_of(call);
	TEST_EQ(sc.result, 0);
	return nb;
}

static void
expect(const char *what, uint64_t few, uint64_t many)
{
	printf("%s: %" PRIu64 " instructions, with many objects %" PRIu64 "\n", what, few, many);
	TEST_ASSERT(few != UINT64_MAX);
	TEST_ASSERT(many <= 2 * few);
}

/* QPs that wait for a receive of themselves, which none has. */
static void
wait_for_receives(uint32_t first, uint32_t end)
{
	const struct rmem_qp_conn conn = {.rnr_retry = 7, .min_rnr_timer = 1};
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND};
	uint32_t i;

	for (i = first; i < end; i++) {
		create_qp();
		TEST_OK(sc.result);
		sc.qps[i] = sc.qp;
		rc_connect(sc.qp, sc.qp, conn);
		TEST_EQ(rmem_post_send(sc.qp, &wr, 1), 1);
	}
}

TEST(scale, poll_does_not_visit_all_qps_that_wait)
{
	uint64_t few, many;
	uint32_t i;

	open_dev(ARGS);
	wait_for_receives(0, FEW);
	few = work(poll, NULL);
	wait_for_receives(FEW, MANY);
	many = work(poll, NULL);
	for (i = 0; i < MANY; i++)
		TEST_OK(rmem_qp_destroy(sc.qps[i]));
	close_dev();
	expect("poll", few, many);
}

/* Each of the QPs has its turn, in as few polls as that takes. */
TEST(scale, each_qp_that_waits_is_retried)
{
	const struct rmem_recv_wr recv = {.num_sge = 0};
	struct rmem_wc wc[MANY];
	uint32_t i, nb = 0;
	int n;

	open_dev(ARGS);
	wait_for_receives(0, MANY);
	for (i = 0; i < MANY; i++)
		TEST_EQ(rmem_post_recv(sc.qps[i], &recv, 1), 1);
	for (i = 0; i < 2 * MANY / FEW && nb < MANY; i++) {
		n = rmem_poll_cq(sc.cq, wc, MANY);
		TEST_ASSERT(n >= 0);
		while (n-- > 0)
			nb += wc[n].status == RMEM_WC_SUCCESS && wc[n].opcode == RMEM_WC_RECV;
	}
	TEST_EQ(nb, MANY);
	for (i = 0; i < MANY; i++)
		TEST_OK(rmem_qp_destroy(sc.qps[i]));
	close_dev();
}

TEST(scale, qps_are_created_and_destroyed_without_scans)
{
	uint64_t create[2], destroy[2];
	uint32_t i = 0, round;

	open_dev(ARGS);
	for (round = 0; round < 2; round++) {
		for (; i < (round == 0 ? FEW : MANY); i++) {
			create_qp();
			TEST_OK(sc.result);
			sc.qps[i] = sc.qp;
		}
		create[round] = work(create_qp, destroy_qp);
		destroy[round] = work(destroy_qp, create_qp);
		TEST_OK(sc.result);
	}
	for (i = 0; i < MANY; i++)
		TEST_OK(rmem_qp_destroy(sc.qps[i]));
	close_dev();
	expect("create a QP", create[0], create[1]);
	expect("destroy a QP", destroy[0], destroy[1]);
}

/*
 * The requester of these QPs does not poll: its ring is full of acknowledgements, and the others
 * wait at the responder, sc.dev.
 */
static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_mr *mr;
	struct rmem_qp *qps[MANY];
	uint8_t from;
	uint8_t to[MANY];
} far;

static void
open_far(void)
{
	char args[128];
	uint32_t side;

	for (side = 0; side < 2; side++) {
		snprintf(args, sizeof(args),
				ARGS
				",ip=192.0.2.%u,port=shm:scale%d,progress=poll,loop=1,direct=0",
				side + 1, (int)getpid());
		sc.dev = fx_dev(side == 0 ? "soft1" : "soft2", args);
		sc.pd = fx_pd(sc.dev);
		sc.cq = fx_cq(sc.dev, 4 * MANY);
		sc.mr = fx_mr(sc.pd, side == 0 ? (void *)&far.from : far.to,
				side == 0 ? sizeof(far.from) : sizeof(far.to), FX_ACCESS);
		if (side != 0)
			break;
		far.dev = sc.dev;
		far.pd = sc.pd;
		far.cq = sc.cq;
		far.mr = sc.mr;
	}
	far.from = 1;
	memset(far.to, 0, sizeof(far.to));
}

/* Connect a QP of each device, send a WRITE, and let the responder execute it. */
static void
write_far(uint32_t i)
{
	const struct rmem_qp_conf conf = rc_conf(far.cq, 2, 2);
	const struct rmem_sge sge = {(uintptr_t)&far.from, 1, far.mr->lkey};
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.rdma = {.remote_addr = (uintptr_t)&far.to[i], .rkey = sc.mr->rkey}};

	TEST_OK(rmem_qp_create(far.pd, &conf, &far.qps[i]));
	create_qp();
	TEST_OK(sc.result);
	sc.qps[i] = sc.qp;
	rc_connect(far.qps[i], sc.qp, (struct rmem_qp_conn){.rnr_retry = 7});
	rc_connect(sc.qp, far.qps[i], (struct rmem_qp_conn){.rnr_retry = 7});
	TEST_EQ(rmem_post_send(far.qps[i], &wr, 1), 1);
	FX_AWAIT((poll(), far.to[i] == 1));
}

/* Then each acknowledgement is sent. */
static void
poll_far(void)
{
	struct rmem_wc wc;
	uint32_t i;
	int n;

	for (i = 0; i < MANY; i++) {
		FX_AWAIT((poll(), n = rmem_poll_cq(far.cq, &wc, 1)) != 0);
		TEST_EQ(n, 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	}
}

TEST(scale, poll_does_not_visit_all_qps_that_must_answer)
{
	uint64_t few, many;
	uint32_t i;

	open_far();
	for (i = 0; i < 2 * RING; i++)
		write_far(i);
	few = work(poll, NULL);
	for (; i < MANY; i++)
		write_far(i);
	many = work(poll, NULL);
	poll_far();
	for (i = 0; i < MANY; i++) {
		TEST_OK(rmem_qp_destroy(far.qps[i]));
		TEST_OK(rmem_qp_destroy(sc.qps[i]));
	}
	expect("poll", few, many);
}

/* With a profile, a QP that has bound windows is not destroyed. */
static uint64_t
destroy_with_keys(const char *args)
{
	uint64_t nb;

	open_dev(args);
	create_qp();
	TEST_OK(sc.result);
	nb = work(destroy_qp, create_qp);
	close_dev();
	return nb;
}

TEST_CALL(scale, qp_is_destroyed_without_visiting_windows,
		expect("destroy a QP, keys", destroy_with_keys("profile=mlx5,max_mr=8,max_mw=8"),
				destroy_with_keys("profile=mlx5,max_mr=8,max_mw=65536")));

/* The work to register MRs of any key, and of requested keys whose slots are free. */
static void
measure_mrs(const char *args, uint64_t *any, uint64_t *requested, uint64_t *end)
{
	open_dev(args);
	*any = work(reg_mr, dereg_mr);
	*end = work(dereg_mr, reg_mr);
	sc.rkey = 5 << 8;
	*requested = work(request_mr, dereg_mr);
	dereg_mr();
	close_dev();
}

TEST(scale, keys_are_taken_without_scans)
{
	uint64_t any[2], requested[2], end[2];

	measure_mrs("max_mr=16,max_mw=1", &any[0], &requested[0], &end[0]);
	measure_mrs("max_mr=65536,max_mw=1", &any[1], &requested[1], &end[1]);
	expect("register an MR", any[0], any[1]);
	expect("register an MR with a key", requested[0], requested[1]);
	expect("deregister an MR", end[0], end[1]);
}

TEST_SUITE(scale, sc_setup, fx_teardown);
