/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a lease on the software device, in bursts of 32 on one lcore: granted, revoked and
 * reclaimed, and with a WRITE of 64 bytes by the peer between the two. The baseline is
 * REG_MR, BIND_MW or UMR and LOCAL_INV alone, without handling of tags, ends and buffers.
 */

#include <stdio.h>
#include <string.h>

#include <rmem_lease.h>

#include "perf_row.h"
#include "test.h"

#define NB_BURSTS  2000u
#define BUF_SIZE   2048u
#define FEW_LEASES 64u
#define MAX_LEASES (1u << 18)

struct lease_job {
	struct perf_pair pair;
	struct rmem_mr *memory;
	struct rmem_mr *from; /* of the peer's WRITEs */
	struct rmem_lease_ctx *ctx;
	struct rmem_lease_req req[PERF_BURST];
	struct rmem_lease *lease[PERF_BURST];
	struct perf_wrs write;
	struct rmem_mr *mr[PERF_BURST]; /* or mw */
	struct rmem_mw *mw[PERF_BURST];
	const uint32_t *rkey[PERF_BURST]; /* of the one or the other */
	struct rmem_fast_reg_page_list *list[PERF_BURST];
	struct rmem_mkey_entry entry[PERF_BURST];
	struct rmem_send_wr reg[PERF_BURST];
	struct rmem_send_wr inv[PERF_BURST];
	/* Of the floor: a stack of the free objects, and the state of each. */
	uint32_t nb_free;
	uint32_t free[PERF_BURST];
	struct rmem_lease state[PERF_BURST];
	bool is_written;
};

/* The peer writes to the buffers of the burst. */
static int
write_burst(struct lease_job *job)
{
	struct rmem_wc wc;
	int n;

	n = rmem_post_send(job->pair.b, job->write.wr, PERF_BURST);
	if (n != (int)PERF_BURST)
		return -1;
	do {
		n = rmem_poll_cq(job->pair.cq_b, &wc, 1);
	} while (n == 0);
	return n == 1 && wc.status == RMEM_WC_SUCCESS ? 0 : -1;
}

static void
set_tag(struct rmem_send_wr *wr, uint8_t tag)
{
	if (wr->opcode == RMEM_WR_REG_MR)
		wr->reg_mr.key_tag = tag;
	else if (wr->opcode == RMEM_WR_BIND_MW)
		wr->bind_mw.key_tag = tag;
	else
		wr->umr.key_tag = tag;
}

PERF_LOOP(run_by_hand, NB_BURSTS, PERF_BURST)
{
	struct lease_job *job = arg;
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++)
		set_tag(&job->reg[i], rmem_rkey_next_tag(*job->rkey[i]));
	if (perf_burst(&job->pair, job->reg, PERF_BURST) != RMEM_WC_SUCCESS)
		return -1;
	for (i = 0; i < PERF_BURST; i++) {
		job->inv[i].invalidate_rkey = *job->rkey[i];
		job->write.wr[i].rdma.remote_addr = (uintptr_t)job->req[i].addr;
		job->write.wr[i].rdma.rkey = *job->rkey[i];
	}
	if (job->is_written && write_burst(job) != 0)
		return -1;
	return perf_burst(&job->pair, job->inv, PERF_BURST);
}

/* A REG_MR for a request, by an MR that is free; its number, or -1. */
static int
floor_grant(struct lease_job *job, uint32_t i)
{
	const struct rmem_lease_req *req = &job->req[i];
	uint64_t offset = (uintptr_t)req->addr - req->mr->iova;
	struct rmem_send_wr *wr = &job->reg[i];
	uint32_t number;

	if (unlikely(job->nb_free == 0 || offset > req->mr->length ||
			    req->length > req->mr->length - offset))
		return -1;
	number = job->free[--job->nb_free];
	job->list[number]->page_list[0] = RTE_ALIGN_FLOOR((uintptr_t)req->addr, 4096);
	wr->opcode = RMEM_WR_REG_MR;
	wr->reg_mr.mr = job->mr[number];
	wr->reg_mr.page_list = job->list[number];
	wr->reg_mr.iova = (uintptr_t)req->addr;
	wr->reg_mr.length = req->length;
	wr->reg_mr.first_byte_offset = (uintptr_t)req->addr % 4096;
	wr->reg_mr.access = req->access | RMEM_ACCESS_LOCAL_WRITE;
	wr->reg_mr.page_list_len = 1;
	wr->reg_mr.log2_page_size = 12;
	wr->reg_mr.key_tag = rmem_rkey_next_tag(job->mr[number]->rkey);
	job->state[number].remote_addr = (uintptr_t)req->addr;
	return (int)number;
}

/* By hand, with the request built for each buffer, and the MR and state of each buffer tracked. */
PERF_LOOP(run_floor, NB_BURSTS, PERF_BURST)
{
	struct lease_job *job = arg;
	uint32_t i, of[PERF_BURST];

	for (i = 0; i < PERF_BURST; i++) {
		int number = floor_grant(job, i);

		if (unlikely(number < 0))
			return -1;
		of[i] = (uint32_t)number;
	}
	if (perf_burst(&job->pair, job->reg, PERF_BURST) != RMEM_WC_SUCCESS)
		return -1;
	for (i = 0; i < PERF_BURST; i++) {
		job->state[of[i]].rkey = job->mr[of[i]]->rkey;
		job->inv[i].invalidate_rkey = job->state[of[i]].rkey;
	}
	if (perf_burst(&job->pair, job->inv, PERF_BURST) != RMEM_WC_SUCCESS)
		return -1;
	for (i = 0; i < PERF_BURST; i++)
		job->free[job->nb_free++] = of[i];
	return 0;
}

/* Revoke and reclaim a burst of leases. */
static int
end_burst(struct rmem_lease_ctx *ctx, struct rmem_lease **lease)
{
	struct rmem_wc wc[4];
	uint32_t ended = 0;

	if (rmem_lease_revoke(ctx, lease, PERF_BURST) != 0)
		return -1;
	while (ended < PERF_BURST) {
		if (rmem_lease_poll(ctx, wc, RTE_DIM(wc)) != 0)
			return -1;
		ended += (uint32_t)rmem_lease_reclaim(
				ctx, &lease[ended], (uint16_t)(PERF_BURST - ended));
	}
	return 0;
}

PERF_LOOP(run_lease, NB_BURSTS, PERF_BURST)
{
	struct lease_job *job = arg;
	uint32_t i;

	if (rmem_lease_grant(job->ctx, job->req, PERF_BURST, job->lease) != (int)PERF_BURST)
		return -1;
	if (job->is_written) {
		for (i = 0; i < PERF_BURST; i++) {
			job->write.wr[i].rdma.remote_addr = job->lease[i]->remote_addr;
			job->write.wr[i].rdma.rkey = job->lease[i]->rkey;
		}
		if (write_burst(job) != 0)
			return -1;
	}
	return end_burst(job->ctx, job->lease);
}

static void
by_hand_fast_reg(struct lease_job *job, uint32_t i)
{
	uintptr_t addr = (uintptr_t)job->req[i].addr;

	TEST_OK(rmem_fast_reg_mr_alloc(job->pair.pd, 1, &job->mr[i]));
	TEST_OK(rmem_fast_reg_page_list_alloc(job->pair.dev, 1, &job->list[i]));
	job->rkey[i] = &job->mr[i]->rkey;
	job->list[i]->page_list[0] = RTE_ALIGN_FLOOR(addr, 4096);
	job->reg[i].opcode = RMEM_WR_REG_MR;
	job->reg[i].reg_mr.mr = job->mr[i];
	job->reg[i].reg_mr.page_list = job->list[i];
	job->reg[i].reg_mr.iova = addr;
	job->reg[i].reg_mr.length = BUF_SIZE;
	job->reg[i].reg_mr.first_byte_offset = addr % 4096;
	job->reg[i].reg_mr.access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_LOCAL_WRITE;
	job->reg[i].reg_mr.page_list_len = 1;
	job->reg[i].reg_mr.log2_page_size = 12;
}

static void
by_hand_mw(struct lease_job *job, uint32_t i)
{
	TEST_OK(rmem_mw_alloc(job->pair.pd, RMEM_MW_TYPE_2, &job->mw[i]));
	job->rkey[i] = &job->mw[i]->rkey;
	job->reg[i].opcode = RMEM_WR_BIND_MW;
	job->reg[i].bind_mw.mw = job->mw[i];
	job->reg[i].bind_mw.mr = job->memory;
	job->reg[i].bind_mw.addr = (uintptr_t)job->req[i].addr;
	job->reg[i].bind_mw.length = BUF_SIZE;
	job->reg[i].bind_mw.access = RMEM_ACCESS_REMOTE_WRITE;
}

static void
by_hand_umr(struct lease_job *job, uint32_t i)
{
	TEST_OK(rmem_mkey_alloc(job->pair.pd, 1, &job->mr[i]));
	job->rkey[i] = &job->mr[i]->rkey;
	job->entry[i].addr = (uintptr_t)job->req[i].addr;
	job->entry[i].length = BUF_SIZE;
	job->entry[i].lkey = job->memory->lkey;
	job->reg[i].opcode = RMEM_WR_UMR;
	job->reg[i].umr.mr = job->mr[i];
	job->reg[i].umr.entries = &job->entry[i];
	job->reg[i].umr.iova = job->entry[i].addr;
	job->reg[i].umr.nb_entries = 1;
	job->reg[i].umr.repeat_count = 1;
	job->reg[i].umr.access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_LOCAL_WRITE;
}

static void
job_open_one(struct lease_job *job, uint32_t backend, uint32_t i)
{
	uint8_t *buf = (uint8_t *)job->memory->addr + i * BUF_SIZE;

	job->req[i].mr = job->memory;
	job->req[i].addr = buf;
	job->req[i].length = BUF_SIZE;
	job->req[i].access = RMEM_ACCESS_REMOTE_WRITE;
	job->write.sge[i].addr += i * 64;
	job->free[i] = i;
	job->inv[i].opcode = RMEM_WR_LOCAL_INV;
	if (backend == RMEM_LEASE_FAST_REG) {
		by_hand_fast_reg(job, i);
		return;
	}
	if (backend == RMEM_LEASE_MW)
		by_hand_mw(job, i);
	else
		by_hand_umr(job, i);
}

static void
job_open(struct lease_job *job, uint32_t backend, bool is_written)
{
	const struct rmem_lease_conf conf = {
			.backend = backend,
			.min_leases = 1024,
			.max_length = BUF_SIZE,
			.socket_id = SOCKET_ID_ANY,
			.quarantine_us = 1000,
	};
	uint32_t i;

	memset(job, 0, sizeof(*job));
	job->is_written = is_written;
	perf_pair_open(&job->pair, NULL);
	TEST_OK(rmem_mr_reg(job->pair.pd, NULL, PERF_BURST * BUF_SIZE, 0,
			PERF_ACCESS | RMEM_ACCESS_MW_BIND | RMEM_ACCESS_ALLOCATE_MR, &job->memory));
	job->from = perf_mr(job->pair.pd, PERF_BURST * 64);
	perf_wrs_init(&job->write, RMEM_WR_RDMA_WRITE, 64, job->from, NULL);
	job->nb_free = PERF_BURST;
	TEST_OK(rmem_lease_ctx_create(job->pair.a, &conf, &job->ctx));
	for (i = 0; i < PERF_BURST; i++)
		job_open_one(job, backend, i);
	job->reg[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
	job->inv[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
}

static void
job_close(struct lease_job *job)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		TEST_OK(rmem_mr_dereg(job->mr[i]));
		TEST_OK(rmem_mw_dealloc(job->mw[i]));
		TEST_OK(rmem_fast_reg_page_list_free(job->list[i]));
	}
	TEST_OK(rmem_lease_ctx_destroy(job->ctx));
	TEST_OK(rmem_mr_dereg(job->from));
	TEST_OK(rmem_mr_dereg(job->memory));
	perf_pair_close(&job->pair);
}

static void
compare(const char *name, const char *bar, uint32_t backend, bool is_written)
{
	struct perf_row row = PERF_ROW(name, "ns/op", "the same by hand", bar);
	static struct lease_job job;

	job_open(&job, backend, is_written);
	perf_measure(&row, run_by_hand, run_lease, &job);
	if (strcmp(bar, "none") != 0)
		perf_floor(&row, run_by_hand, run_floor, &job);
	job_close(&job);
}

PERF_CALL(lease_grant_revoke_burst32, compare, "ratio <= 1.5", RMEM_LEASE_FAST_REG, false);
PERF_CALL(lease_write_revoke64, compare, "none", RMEM_LEASE_FAST_REG, true);
PERF_CALL(lease_mw_burst32, compare, "none", RMEM_LEASE_MW, false);
PERF_CALL(lease_umr_burst32, compare, "none", RMEM_LEASE_UMR, false);

/* Leases that follow each other, while others are held. */
struct held_job {
	struct perf_pair pair;
	struct rmem_mr *memory;
	struct rmem_lease_ctx *ctx;
	struct rmem_lease_req req[PERF_BURST];
	struct rmem_lease *held[MAX_LEASES];
	uint32_t nb_held; /* a power of two */
	uint32_t at;      /* the oldest */
};

/* Renew the oldest leases. */
PERF_LOOP(run_renew, NB_BURSTS, PERF_BURST)
{
	struct held_job *job = arg;
	struct rmem_lease **oldest = &job->held[job->at];

	if (end_burst(job->ctx, oldest) != 0)
		return -1;
	job->at = (job->at + PERF_BURST) & (job->nb_held - 1);
	return rmem_lease_grant(job->ctx, job->req, PERF_BURST, oldest) == (int)PERF_BURST ? 0 : -1;
}

static void
held_open(struct held_job *job, uint32_t nb_leases)
{
	const struct rmem_lease_conf conf = {.backend = RMEM_LEASE_FAST_REG,
			.min_leases = nb_leases + 1024,
			.max_leases = 2 * MAX_LEASES,
			.max_length = BUF_SIZE,
			.socket_id = SOCKET_ID_ANY,
			.quarantine_us = 1000};
	struct rmem_wc wc;
	uint32_t i;

	memset(job, 0, sizeof(*job));
	perf_pair_open(&job->pair, "max_mr=524288");
	TEST_OK(rmem_mr_reg(job->pair.pd, NULL, PERF_BURST * BUF_SIZE, 0,
			PERF_ACCESS | RMEM_ACCESS_ALLOCATE_MR, &job->memory));
	if (rmem_lease_ctx_create(job->pair.a, &conf, &job->ctx) == -ENOMEM)
		test_skip("less EAL memory than the leases take");
	TEST_ASSERT(job->ctx != NULL);
	for (i = 0; i < PERF_BURST; i++)
		job->req[i] = (struct rmem_lease_req){.mr = job->memory,
				.addr = (uint8_t *)job->memory->addr + i * BUF_SIZE,
				.length = BUF_SIZE,
				.access = RMEM_ACCESS_REMOTE_WRITE};
	for (i = 0; i < nb_leases; i += PERF_BURST) {
		TEST_EQ(rmem_lease_grant(job->ctx, job->req, PERF_BURST, &job->held[i]),
				PERF_BURST);
		TEST_OK(rmem_lease_poll(job->ctx, &wc, 1));
	}
	job->nb_held = nb_leases;
}

static void
held_close(struct held_job *job)
{
	uint32_t i;

	for (i = 0; i < job->nb_held; i += PERF_BURST)
		TEST_EQ(end_burst(job->ctx, &job->held[i]), 0);
	if (job->ctx != NULL)
		TEST_OK(rmem_lease_ctx_destroy(job->ctx));
	TEST_OK(rmem_mr_dereg(job->memory));
	perf_pair_close(&job->pair);
}

PERF_TEST(lease_held)
{
	static struct held_job few, many;
	int ret = TEST_SUCCESS;
	char name[32];
	uint32_t nb;

	held_open(&few, FEW_LEASES);
	for (nb = FEW_LEASES; nb <= MAX_LEASES && ret == TEST_SUCCESS; nb *= 8) {
		struct perf_row row = PERF_ROW(name, "ns/op", "with 64 leases held", "none");

		snprintf(name, sizeof(name), "lease_held_%u", nb);
		ret = TEST_TRY(held_open(&many, nb));
		if (ret == TEST_SUCCESS)
			ret = TEST_TRY(perf_measure_args(&row, run_renew, &few, &many));
		held_close(&many);
	}
	held_close(&few);
	TEST_RUN(ret);
}
