/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * No write of a peer arrives in a reclaimed buffer: one lcore grants, revokes and uses
 * buffers again at once, another writes to them through the keys of now and of before.
 *
 * RMEM_TEST_LEASES is how many leases of each kind: meson's suite long-tests has 10000000. A run
 * that uses the buffers without waiting for the end of their leases must be caught.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_pause.h>

#include "lease.h"

#define HALF       8u /* leases at a time; two halves take turns */
#define LENGTH     FX_PAGE
#define NB_LEASES  4000u
#define NB_REPORTS 1000u /* of different leases */
#define NB_WINDOWS 800u  /* leases with windows, each HALF of which end with a refusal */
#define SCRIBBLE   0x5c
#define PAYLOAD    0xa9

/* The writer's own QPs: a refusal leaves those of the leases alone. */
static struct {
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_qp *target; /* where it writes; passive */
} own;

static struct {
	uint32_t rkey[2 * HALF]; /* of now, or of before; 0: none yet; atomic */
	uint32_t nb_written;     /* atomic */
	uint32_t nb_refused;     /* atomic */
	uint32_t is_stopped;     /* atomic */
	uint32_t nb_used;        /* of windows: used again before the refusal */
} race;

static uint8_t *
buf_of(uint32_t i)
{
	return fx.a.buf + i * FX_PAGE;
}

/* A write through the last key of a buffer, which may be invalid; a status. */
static int
write_to(struct rmem_qp *qp, struct rmem_cq *cq, uint32_t i)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, LENGTH);
	uint32_t rkey = __atomic_load_n(&race.rkey[i], __ATOMIC_ACQUIRE);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(buf_of(i)), rkey);
	struct rmem_wc wc;

	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	TEST_EQ(fx_poll(cq, &wc, 1), 1);
	if (wc.status == RMEM_WC_SUCCESS)
		__atomic_fetch_add(&race.nb_written, 1, __ATOMIC_RELEASE);
	else
		TEST_STATUS(wc.status, RMEM_WC_REM_ACCESS_ERR);
	return wc.status;
}

static void
run_writer(void *arg)
{
	uint32_t refused[2 * HALF] = {0};
	uint32_t i = 0, nb_tried = 0, rkey;
	int status;

	RTE_SET_USED(arg);
	while (!__atomic_load_n(&race.is_stopped, __ATOMIC_ACQUIRE)) {
		i = (i + 5) % (2 * HALF);
		rkey = __atomic_load_n(&race.rkey[i], __ATOMIC_RELAXED);
		/* Old keys only sometimes: a refusal takes long. */
		if (rkey == 0 || (rkey == refused[i] && ++nb_tried % 64 != 0)) {
			rte_pause();
			continue;
		}
		status = write_to(own.qp, own.cq, i);
		TEST_ASSERT(status >= 0);
		if (status == RMEM_WC_SUCCESS)
			continue;
		refused[i] = rkey;
		__atomic_fetch_add(&race.nb_refused, 1, __ATOMIC_RELEASE);
		TEST_OK(rmem_qp_reset(own.qp));
		TEST_OK(rmem_qp_reset(own.target));
		TEST_OK(fx_connect_pair(own.qp, own.target));
	}
}

static void
grant_half(uint32_t half)
{
	struct rmem_lease_req req[HALF];
	uint64_t deadline = fx_deadline();
	uint32_t i;
	int ret;

	for (i = 0; i < HALF; i++)
		req[i] = lx_req((half * HALF + i) * FX_PAGE, LENGTH, RMEM_ACCESS_REMOTE_WRITE);
	do {
		ret = rmem_lease_grant(lx.ctx, req, HALF, lx.lease);
		TEST_ASSERT(!fx_is_late(deadline));
	} while (ret == -ENOSPC); /* all keys are quarantined */
	TEST_EQ(ret, HALF);
	for (i = 0; i < HALF; i++)
		__atomic_store_n(&race.rkey[half * HALF + i], lx.lease[i]->rkey, __ATOMIC_RELEASE);
}

/* From the end to the start: a copy is last where the check was first. */
static void
scribble(uint8_t *buf)
{
	uint32_t at;

	for (at = LENGTH; at > 0; at -= 512)
		memset(buf + at - 512, SCRIBBLE, 512);
}

static void
scribble_half(uint32_t half)
{
	uint32_t i;

	for (i = 0; i < HALF; i++)
		scribble(buf_of(half * HALF + i));
}

static bool
is_scribbled(uint32_t half)
{
	uint32_t i;

	for (i = 0; i < HALF; i++) {
		const uint8_t *buf = buf_of(half * HALF + i);

		if (buf[0] != SCRIBBLE || memcmp(buf, buf + 1, LENGTH - 1) != 0)
			return false;
	}
	return true;
}

/* While one half is granted, reclaimed buffers of the other must not change. */
static void
run_rounds(uint32_t nb_leases)
{
	const uint32_t pause = RTE_MAX(nb_leases / HALF / 1000, 8u);
	uint32_t round;

	for (round = 0; round * HALF < nb_leases; round++) {
		grant_half(round % 2);
		/* Periodically, so that the writer has its share of each. */
		if (round % pause == 0)
			fx_wait_until(&race.nb_written,
					__atomic_load_n(&race.nb_written, __ATOMIC_RELAXED) + 1);
		lx_revoke(HALF);
		scribble_half(round % 2);
		if (round % (4 * pause) == 0)
			fx_wait_until(&race.nb_refused,
					__atomic_load_n(&race.nb_refused, __ATOMIC_RELAXED) + 1);
		if (round != 0)
			TEST_ASSERT(is_scribbled((round + 1) % 2));
	}
	TEST_ASSERT(is_scribbled((round + 1) % 2));
	test_note("%" PRIu64 " leases, %u writes, %u refused", lx_stats().granted,
			__atomic_load_n(&race.nb_written, __ATOMIC_RELAXED),
			__atomic_load_n(&race.nb_refused, __ATOMIC_RELAXED));
}

/* The owner waits for nothing: its LOCAL_INVs are after a SEND without a receive. */
static void
use_without_waiting(void)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, FX_BUF_SIZE - 8, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	grant_half(0);
	fx_wait_until(&race.nb_written, 1);
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, HALF));
	scribble_half(0);
	fx_wait_until(&race.nb_written,
			__atomic_load_n(&race.nb_written, __ATOMIC_RELAXED) + 2 * HALF);
}

static uint32_t
nb_leases_wanted(uint32_t otherwise)
{
	const char *env = getenv("RMEM_TEST_LEASES");

	return env != NULL ? (uint32_t)strtoul(env, NULL, 0) : otherwise;
}

static void
open_race(void)
{
	fx_need_workers(1);
	memset(&race, 0, sizeof(race));
	memset(fx.b.buf, PAYLOAD, LENGTH);
	lx.conf.max_leases = 256;
	lx.conf.min_leases = 256;
	lx.conf.quarantine_us = 1000;
	lx_remake();
}

static void
stop_writer(int result)
{
	__atomic_store_n(&race.is_stopped, 1, __ATOMIC_RELEASE);
	TEST_RUN(TEST_TRY(fx_join(1)) == TEST_SUCCESS ? result : TEST_FAILED);
}

static void
launch_writer(void)
{
	open_race();
	own.cq = fx_cq(fx.b.dev, 64);
	own.qp = fx_qp(fx.b.pd, own.cq, 8);
	own.target = fx_qp(fx.b.pd, own.cq, 8);
	TEST_OK(fx_connect_pair(own.qp, own.target));
	fx_launch(run_writer, &race, sizeof(race), 1);
}

TEST_WITH(lease_race, no_write_arrives_after_the_end_of_a_lease, lx_setup_fast_reg)
{
	launch_writer();
	stop_writer(TEST_TRY(run_rounds(nb_leases_wanted(NB_LEASES))));
}

/* The leases end, now that no peer writes any more, and late writes are detected. */
static void
expect_caught(void)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, FX_BUF_SIZE - 8, 8);

	TEST_EQ(fx_post_recv(fx.b.qp, 7, &to, 1), 1);
	lx_take(HALF, RMEM_LEASE_END_REVOKED);
	TEST_ASSERT(!is_scribbled(0));
}

TEST_WITH(lease_caught, reuse_before_the_end_of_a_lease_is_detected, lx_setup_fast_reg)
{
	launch_writer();
	stop_writer(TEST_TRY(use_without_waiting()));
	expect_caught();
}

/* Length of the n-th lease of a slot; its id is first_id + n * id_step. */
static uint32_t
length_of(uint64_t n)
{
	return 8 * (n % 7 + 1);
}

static uint64_t first_id, id_step;

/* The oldest lease of a report, if there is one, was granted; last: the one reported before. */
static void
check_report(const char *text, uint64_t *last)
{
	const char *oldest = strstr(text, "oldest:"), *id, *length;
	uint64_t n;

	if (oldest == NULL)
		return;
	id = strstr(oldest, "id: ");
	length = strstr(oldest, "length: ");
	TEST_ASSERT(id != NULL && length != NULL);
	n = (strtoull(id + strlen("id: "), NULL, 0) - first_id) / id_step;
	TEST_EQ(strtoul(length + strlen("length: "), NULL, 0), length_of(n));
	if (n != *last)
		__atomic_fetch_add(&race.nb_written, 1, __ATOMIC_RELEASE);
	*last = n;
}

static void
run_reporter(void *arg)
{
	char *text = NULL;
	uint64_t last = 0;
	size_t size;
	FILE *f;

	RTE_SET_USED(arg);
	while (!__atomic_load_n(&race.is_stopped, __ATOMIC_ACQUIRE)) {
		f = open_memstream(&text, &size);
		TEST_ASSERT(f != NULL);
		TEST_OK(rmem_lease_ctx_dump(lx.ctx, f));
		fclose(f);
		check_report(text, &last);
		free(text);
	}
}

/* The id of a lease that has ended. */
static uint64_t
run_lease(uint64_t n, uint64_t deadline)
{
	const struct rmem_lease_req req = lx_req(0, length_of(n), RMEM_ACCESS_REMOTE_WRITE);
	uint64_t id;
	int ret;

	do {
		ret = rmem_lease_grant(lx.ctx, &req, 1, lx.lease);
		TEST_ASSERT(!fx_is_late(deadline));
	} while (ret == -ENOSPC); /* the key is quarantined */
	TEST_EQ(ret, 1);
	id = lx.lease[0]->id;
	lx_revoke(1);
	return id;
}

static void
run_reported(void)
{
	uint64_t deadline = fx_deadline(), n = 2;

	do {
		run_lease(n++, deadline);
	} while (__atomic_load_n(&race.nb_written, __ATOMIC_ACQUIRE) < NB_REPORTS);
}

TEST_WITH(lease_race, report_has_the_fields_of_one_lease, lx_setup_fast_reg)
{
	open_race();
	lx.conf.max_leases = lx.conf.min_leases = 1; /* the same slot each time */
	lx.conf.quarantine_us = 1;
	lx_remake();
	first_id = run_lease(0, fx_deadline());
	id_step = run_lease(1, fx_deadline()) - first_id;
	fx_launch(run_reporter, &race, sizeof(race), 1);
	stop_writer(TEST_TRY(run_reported()));
}

/* Windows are valid on one QP only: a refusal moves it and that of the leases to ERR. */
static void
run_peer(void *arg)
{
	unsigned int spins = 0;
	uint32_t i = 0;
	int status;

	RTE_SET_USED(arg);
	while (!__atomic_load_n(&race.is_stopped, __ATOMIC_ACQUIRE)) {
		i = (i + 5) % HALF;
		if (__atomic_load_n(&race.nb_refused, __ATOMIC_ACQUIRE) != 0 ||
				__atomic_load_n(&race.rkey[i], __ATOMIC_RELAXED) == 0) {
			fx_relax(&spins);
			continue;
		}
		status = write_to(fx.b.qp, fx.b.cq, i);
		TEST_ASSERT(status >= 0);
		if (status != RMEM_WC_SUCCESS)
			__atomic_store_n(&race.nb_refused, 1, __ATOMIC_RELEASE);
	}
}

/* Use ended leases, while the peer continues; the rest ends when the QPs were reset. */
static void
run_refused_round(void)
{
	struct rmem_wc wc[8];
	uint32_t used[HALF], nb_used = 0, i;
	int n;

	grant_half(0);
	fx_wait_until(&race.nb_written, 2);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, HALF));
	while (__atomic_load_n(&race.nb_refused, __ATOMIC_ACQUIRE) == 0 || nb_used == 0) {
		TEST_EQ(rmem_lease_poll(lx.ctx, wc, RTE_DIM(wc)), 0);
		n = rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX);
		for (i = 0; i < (uint32_t)n; i++) {
			used[nb_used++] = (uint32_t)((uint8_t *)lx.ended[i]->addr - fx.a.buf) /
					FX_PAGE;
			scribble(lx.ended[i]->addr);
		}
		if (fx_state(fx.a.qp) == RMEM_QPS_ERR)
			break;
	}
	fx_wait_until(&race.nb_refused, 1);
	for (i = 0; i < nb_used; i++) {
		const uint8_t *buf = buf_of(used[i]);

		TEST_ASSERT(buf[0] == SCRIBBLE && memcmp(buf, buf + 1, LENGTH - 1) == 0);
	}
	lx_recover();
	n = rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX);
	TEST_EQ(n + (int)nb_used, HALF);
	race.nb_used += nb_used;
	memset(race.rkey, 0, sizeof(race.rkey));
	__atomic_store_n(&race.nb_written, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&race.nb_refused, 0, __ATOMIC_RELEASE);
}

TEST_WITH(lease_race, no_write_arrives_after_the_end_of_a_leased_window, lx_setup_mw)
{
	const uint32_t nb_leases = nb_leases_wanted(NB_WINDOWS);
	int result = TEST_SUCCESS;
	uint32_t i;

	TEST_SKIP_IF(fx_is_rxe(), "rdma_rxe may place a packet after the end of its window");
	open_race();
	fx_launch(run_peer, &race, sizeof(race), 1);
	for (i = 0; i < nb_leases && result == TEST_SUCCESS; i += HALF)
		result = TEST_TRY(run_refused_round());
	test_note("%" PRIu64 " leases, %u of them used again before the peer was refused",
			lx_stats().granted, race.nb_used);
	stop_writer(result);
}

TEST_WITH(lease_caught, reuse_before_the_end_of_a_leased_window_is_detected, lx_setup_mw)
{
	open_race();
	fx_launch(run_peer, &race, sizeof(race), 1);
	stop_writer(TEST_TRY(use_without_waiting()));
	expect_caught();
}

TEST_WITH(lease_race, no_write_arrives_after_the_end_of_a_lease, lx_setup_umr);

TEST_SUITE(lease_race, lx_setup_auto, lx_teardown);

/* ThreadSanitizer would also report that race. */
TEST_WITH(lease_caught, reuse_before_the_end_of_a_lease_is_detected, lx_setup_umr);

TEST_SUITE(lease_caught, lx_setup_auto, lx_teardown);
