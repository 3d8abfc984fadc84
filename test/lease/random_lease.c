/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Leases of the arena, for test_random.c: granted among all other keys, written by a peer, revoked.
 * The peer reaches the bytes of each lease and no others, and none after the end.
 */

#include <stdio.h>
#include <string.h>

#include <rmem_lease.h>

#include "rmem/random_ops.h"

#define MAX_LEASES 3u
#define MAX_LENGTH (2 * MODEL_PAGE)
#define MAX_RUNS   4u

struct leases {
	struct pair pair; /* a grants */
	struct rmem_mr *mr;
	struct rmem_lease_ctx *ctx;
	struct rmem_lease *lease[MAX_LEASES];
	uint16_t nb;
};

static struct leases all[MAX_RUNS];

/* The runs have different backends. */
static void
open_leases(struct random_run *run, unsigned int number)
{
	static const uint32_t backends[] = {
			RMEM_LEASE_FAST_REG, RMEM_LEASE_MW, RMEM_LEASE_UMR, RMEM_LEASE_AUTO};
	const unsigned int other = run->srq.srq != NULL ? 1 : 0;
	const struct rmem_lease_conf conf = {
			.backend = backends[(number + other) % RTE_DIM(backends)],
			.max_leases = MAX_LEASES,
			.max_length = MAX_LENGTH,
			.socket_id = SOCKET_ID_ANY};
	struct leases *own = &all[number];

	TEST_ASSERT(number < MAX_RUNS);
	memset(own, 0, sizeof(*own));
	own->pair.type = RMEM_QPT_RC;
	fx_side_open(&own->pair.a, fx.a.dev, run->pds[0]);
	fx_side_open(&own->pair.b, fx.a.dev, run->pds[0]);
	TEST_OK(random_reconnect(&own->pair));
	own->mr = fx_mr(run->pds[0], run->arena, MODEL_BYTES, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	TEST_OK(rmem_lease_ctx_create(own->pair.a.qp, &conf, &own->ctx));
	run->leases = own;
}

/* Leases that are in use end with the connection. */
static int
end_connection(struct leases *own)
{
	struct rmem_lease *ended[MAX_LEASES];
	int ret;

	if (rmem_qp_reset(own->pair.a.qp) != 0 || rmem_lease_recover(own->ctx) != 0)
		return -1;
	do
		ret = rmem_lease_reclaim(own->ctx, ended, MAX_LEASES);
	while (ret > 0);
	own->nb = 0;
	return ret == 0 ? random_reconnect(&own->pair) : -1;
}

static int
close_leases(struct random_run *run)
{
	struct leases *own = run->leases;

	run->leases = NULL;
	if (own == NULL || own->ctx == NULL)
		return 0;
	return end_connection(own) == 0 && rmem_lease_ctx_destroy(own->ctx) == 0 ? 0 : -1;
}

/* WRITE of the peer to bytes of a lease; its status. */
static int
write_to(struct random_run *run, uint64_t addr, uint32_t length, uint32_t rkey)
{
	const struct leases *own = run->leases;
	const struct rmem_sge sge = fx_sge(own->pair.b.mr, 0, length);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, addr, rkey);
	struct rmem_wc wc;

	fx_fill(own->pair.b.buf, length, random_below(run, UINT32_MAX));
	wr.flags |= RMEM_SEND_SIGNALED;
	/* Not fx_send(), whose completion is in memory of all lcores. */
	if (fx_post(own->pair.b.qp, &wr) != 1 || fx_poll(own->pair.b.cq, &wc, 1) != 1)
		return -EPROTO;
	return wc.status;
}

static int
poll_until(struct leases *own, bool (*is_over)(const struct leases *own))
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;
	struct rmem_wc wc;

	while (!is_over(own)) {
		if (rmem_lease_poll(own->ctx, &wc, 1) != 0 || fx_is_late(deadline))
			return -1;
		fx_relax(&spins);
	}
	return 0;
}

static bool
are_granted(const struct leases *own)
{
	uint16_t i;

	for (i = 0; i < own->nb && own->lease[i]->state == RMEM_LEASE_GRANTED; i++)
		;
	return i == own->nb;
}

static bool
are_ended(const struct leases *own)
{
	uint16_t i;

	for (i = 0; i < own->nb && own->lease[i]->state == RMEM_LEASE_ENDED; i++)
		;
	return i == own->nb;
}

static int
grant(struct random_run *run)
{
	struct leases *own = run->leases;
	struct rmem_lease_req req[MAX_LEASES];
	uint16_t i, nb = (uint16_t)(1 + random_below(run, MAX_LEASES));
	int ret;

	memset(req, 0, sizeof(req));
	for (i = 0; i < nb; i++) {
		req[i].mr = own->mr;
		req[i].length = 1 + random_below(run, MAX_LENGTH);
		req[i].addr = run->arena + random_below(run, MODEL_BYTES - req[i].length + 1);
		req[i].access = RMEM_ACCESS_REMOTE_WRITE;
	}
	snprintf(run->what, sizeof(run->what), "%u leases", nb);
	ret = rmem_lease_grant(own->ctx, req, nb, own->lease);
	own->nb = (uint16_t)RTE_MAX(ret, 0);
	/* Each lease needs a key when it is used for the first time. */
	if (ret != nb && !random_is_full(run, false) && !random_is_full(run, true))
		return -1;
	return poll_until(own, are_granted);
}

static int
use(struct random_run *run, const struct rmem_lease *lease)
{
	uint32_t at = random_below(run, lease->length);
	uint32_t length = 1 + random_below(run, lease->length - at);
	size_t place = (size_t)((uint8_t *)lease->addr - run->arena) + at;

	snprintf(run->what, sizeof(run->what), "WRITE of %u bytes to a lease", length);
	if (write_to(run, lease->remote_addr + at, length, lease->rkey) != RMEM_WC_SUCCESS)
		return -1;
	memcpy(run->model.bytes + place, run->leases->pair.b.buf, length);
	return 0;
}

static int
revoke(struct random_run *run)
{
	struct leases *own = run->leases;
	struct rmem_lease *ended[MAX_LEASES];
	const struct rmem_lease last = *own->lease[own->nb - 1];
	uint16_t nb = own->nb;

	snprintf(run->what, sizeof(run->what), "%u leases revoked", nb);
	if (rmem_lease_revoke(own->ctx, own->lease, nb) != 0 || poll_until(own, are_ended) != 0 ||
			rmem_lease_reclaim(own->ctx, ended, MAX_LEASES) != nb)
		return -1;
	own->nb = 0;
	if (!random_one_in(run, 4))
		return 0;
	if (write_to(run, last.remote_addr, 1, last.rkey) != RMEM_WC_REM_ACCESS_ERR)
		return -1;
	return end_connection(own);
}

/* Grant leases, write to each, and end them: by a revocation, or by a refused WRITE. */
static int
use_leases(struct random_run *run)
{
	struct leases *own = run->leases;
	const struct rmem_lease *lease;
	uint16_t i;

	if (own == NULL || run->has_chaos)
		return 0;
	if (grant(run) != 0)
		return -1;
	for (i = 0; i < own->nb; i++) {
		if (use(run, own->lease[i]) != 0)
			return -1;
	}
	if (own->nb == 0)
		return 0;
	run->nb_leased += own->nb;
	if (!random_one_in(run, 8))
		return revoke(run);
	lease = own->lease[0];
	snprintf(run->what, sizeof(run->what), "WRITE beyond a lease");
	if (write_to(run, lease->remote_addr + lease->length, 1, lease->rkey) !=
			RMEM_WC_REM_ACCESS_ERR)
		return -1;
	return end_connection(own);
}

RTE_INIT(random_lease_init)
{
	random_extra.open = open_leases;
	random_extra.op = use_leases;
	random_extra.close = close_leases;
}
