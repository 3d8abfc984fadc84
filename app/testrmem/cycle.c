/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "cycle.h"

#define POLL_BURST 32

/* Which request of a train is in flight; part of the wr_id. */
enum stage {
	STAGE_IDLE,
	STAGE_REG,
	STAGE_WRITE,
	STAGE_INV,
};

#define STAGE_BITS 2
#define STAGE_MASK ((UINT64_C(1) << STAGE_BITS) - 1)

struct testrmem_cycle {
	const struct cycle_ops *ops;
	struct cycle_train *trains;
	uint32_t nb_trains;
	uint32_t nb_active; /* Not idle. */
	uint64_t started;   /* Operations. */
	uint8_t log2_page_size;
	bool is_checking; /* Compare the train that arrives. */
	struct rmem_sge *dst;
	struct rmem_mr **mr;
	struct rmem_fast_reg_page_list **pages;
	struct rmem_send_wr *wr;
};

static const char *
stage_name(uint64_t stage)
{
	static const char *const names[] = {"request", "REG_MR", "WRITE", "LOCAL_INV"};

	return names[stage & STAGE_MASK];
}

uint32_t
cycle_max_pages(const struct testrmem_pair *pair)
{
	const struct testrmem_cycle *cycle = pair->priv;
	uint64_t page_size = UINT64_C(1) << cycle->log2_page_size;

	/* The buffer may begin at the last byte of a page. */
	return (uint32_t)((pair->size + 2 * page_size - 2) / page_size);
}

/* The largest page that the device takes and the pool's memory is made of. */
static int
choose_page_size(struct testrmem_pair *pair, struct testrmem_cycle *cycle)
{
	struct testrmem_dev *dev = pair->dev;
	struct rmem_mr_info info;
	uint64_t fitting;
	int ret;

	ret = rmem_mr_query(dev->pool->mrs[0], &info);
	if (ret != 0) {
		testrmem_err("no page size of the pool on '%s': %s", dev->spec, rte_strerror(-ret));
		return ret;
	}
	/* All bits up to the page size's, which is a power of two. */
	fitting = dev->info.page_size_cap & (info.page_size | (info.page_size - 1));
	/* first_byte_offset has 32 bits. */
	fitting &= UINT32_MAX;
	if (fitting == 0) {
		testrmem_err("device '%s' has no page size up to %" PRIu64
			     " (page_size_cap 0x%" PRIx64 ")",
				dev->spec, info.page_size, dev->info.page_size_cap);
		return -EOPNOTSUPP;
	}
	cycle->log2_page_size = (uint8_t)(63 - __builtin_clzll(fitting));
	if (cycle_max_pages(pair) <= dev->info.max_page_list_len)
		return 0;
	testrmem_err("size %" PRIu32 " takes up to %" PRIu32 " pages of %" PRIu64
		     " bytes, device '%s' registers %" PRIu32 " (max_page_list_len)",
			pair->size, cycle_max_pages(pair), UINT64_C(1) << cycle->log2_page_size,
			dev->spec, dev->info.max_page_list_len);
	return -EINVAL;
}

static int
alloc_mrs(struct testrmem_pair *pair, struct testrmem_cycle *cycle)
{
	uint32_t nb_pages = cycle_max_pages(pair);
	uint32_t i;
	int ret = 0;

	for (i = 0; i < pair->depth && ret == 0; i++) {
		ret = rmem_fast_reg_mr_alloc(pair->dev->pd, nb_pages, &cycle->mr[i]);
		if (ret == 0)
			ret = rmem_fast_reg_page_list_alloc(
					pair->dev->dev, nb_pages, &cycle->pages[i]);
	}
	if (ret != 0)
		testrmem_err("no fast-register MR %" PRIu32 " of %" PRIu32 " on '%s': %s", i,
				pair->depth, pair->dev->spec, rte_strerror(-ret));
	return ret;
}

/* Cut the arrays of the cycle into trains. */
static void
init_trains(struct testrmem_pair *pair, struct testrmem_cycle *cycle)
{
	size_t first;
	uint32_t i;

	for (i = 0; i < cycle->nb_trains; i++) {
		struct cycle_train *train = &cycle->trains[i];

		first = (size_t)i * pair->burst;
		train->index = i;
		train->src = &pair->sge[first];
		train->dst = &cycle->dst[first];
		train->mr = &cycle->mr[first];
		train->pages = &cycle->pages[first];
		train->reg = &cycle->wr[3 * first];
		train->write = train->reg + pair->burst;
		train->inv = train->write + pair->burst;
	}
}

int
cycle_setup(struct testrmem_pair *pair, const struct cycle_ops *ops)
{
	struct testrmem_cycle *cycle;
	int ret;

	ret = testrmem_pair_ring_alloc(pair);
	if (ret != 0)
		return ret;
	cycle = testrmem_alloc(1, sizeof(*cycle));
	if (cycle == NULL)
		return -ENOMEM;
	pair->priv = cycle;
	cycle->ops = ops;
	cycle->nb_trains = pair->depth / pair->burst;
	ret = choose_page_size(pair, cycle);
	if (ret != 0)
		return ret;
	cycle->trains = testrmem_alloc(cycle->nb_trains, sizeof(*cycle->trains));
	cycle->dst = testrmem_alloc(pair->depth, sizeof(*cycle->dst));
	cycle->mr = testrmem_alloc(pair->depth, sizeof(void *));
	cycle->pages = testrmem_alloc(pair->depth, sizeof(void *));
	cycle->wr = testrmem_alloc(pair->depth, 3 * sizeof(*cycle->wr));
	if (cycle->trains == NULL || cycle->dst == NULL || cycle->mr == NULL ||
			cycle->pages == NULL || cycle->wr == NULL)
		return -ENOMEM;
	init_trains(pair, cycle);
	return alloc_mrs(pair, cycle);
}

/* The buffers that trains under way hold. */
static void
put_trains(struct testrmem_pair *pair, struct testrmem_cycle *cycle)
{
	uint32_t i;

	for (i = 0; cycle->trains != NULL && i < cycle->nb_trains; i++) {
		if (cycle->trains[i].stage != STAGE_IDLE)
			testrmem_pair_bufs_put(pair, cycle->trains[i].dst, cycle->trains[i].nb);
	}
}

void
cycle_teardown(struct testrmem_pair *pair)
{
	struct testrmem_cycle *cycle = pair->priv;
	uint32_t i;

	if (cycle != NULL) {
		for (i = 0; i < pair->depth; i++) {
			if (cycle->mr != NULL && rmem_mr_dereg(cycle->mr[i]) != 0)
				testrmem_err("a fast-register MR is still in use");
			if (cycle->pages != NULL &&
					rmem_fast_reg_page_list_free(cycle->pages[i]) != 0)
				testrmem_err("a page list is still in use");
		}
		put_trains(pair, cycle);
		rte_free(cycle->wr);
		rte_free(cycle->pages);
		rte_free(cycle->mr);
		rte_free(cycle->dst);
		rte_free(cycle->trains);
		rte_free(cycle);
		pair->priv = NULL;
	}
	testrmem_pair_ring_free(pair);
}

void
cycle_fill_reg(const struct testrmem_pair *pair, struct rmem_send_wr *wr, struct rmem_mr *mr,
		struct rmem_fast_reg_page_list *pages, const struct rmem_sge *buf)
{
	const struct testrmem_cycle *cycle = pair->priv;
	uint64_t page_size = UINT64_C(1) << cycle->log2_page_size;
	uint64_t page = buf->addr & ~(page_size - 1);
	uint16_t nb_pages = 0;

	for (; page < buf->addr + buf->length; page += page_size)
		pages->page_list[nb_pages++] = page;
	wr->opcode = RMEM_WR_REG_MR;
	wr->reg_mr.mr = mr;
	wr->reg_mr.page_list = pages;
	wr->reg_mr.page_list_len = nb_pages;
	wr->reg_mr.log2_page_size = cycle->log2_page_size;
	wr->reg_mr.iova = buf->addr;
	wr->reg_mr.first_byte_offset = (uint32_t)(buf->addr & (page_size - 1));
	wr->reg_mr.length = buf->length;
	wr->reg_mr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	wr->reg_mr.key_tag = rmem_rkey_next_tag(mr->rkey);
}

static void
fill_write(struct cycle_train *train, uint32_t i)
{
	struct rmem_send_wr *wr = &train->write[i];

	wr->opcode = RMEM_WR_RDMA_WRITE;
	wr->sg_list = &train->src[i];
	wr->num_sge = 1;
	wr->rdma.remote_addr = train->dst[i].addr;
	wr->rdma.rkey = train->mr[i]->rkey;
}

static void
fill_inv(struct cycle_train *train, uint32_t i)
{
	train->inv[i].opcode = RMEM_WR_LOCAL_INV;
	train->inv[i].invalidate_rkey = train->mr[i]->rkey;
}

/* Post the requests of one stage in one call, the last one signaled. */
static int
post_stage(struct testrmem_pair *pair, struct cycle_train *train, enum stage stage)
{
	struct rmem_qp *qp = stage == STAGE_WRITE ? pair->qp_a : pair->qp_b;
	struct rmem_send_wr *wr = stage == STAGE_REG ? train->reg
			: stage == STAGE_WRITE       ? train->write
						     : train->inv;
	uint64_t wr_id = ((uint64_t)train->index << STAGE_BITS) | stage;
	uint32_t i;
	int ret;

	for (i = 0; i < train->nb; i++) {
		wr[i].wr_id = wr_id;
		wr[i].flags = 0;
	}
	wr[train->nb - 1].flags = RMEM_SEND_SIGNALED;
	train->stage = stage;
	ret = rmem_post_send(qp, wr, (uint16_t)train->nb);
	if (unlikely(ret != (int)train->nb))
		return testrmem_pair_refused(pair, stage_name(stage), ret);
	return 0;
}

/* Take buffers from the pool, fill them and register them. */
static int
start_train(struct testrmem_pair *pair, struct cycle_train *train)
{
	struct testrmem_cycle *cycle = pair->priv;
	uint32_t nb = (uint32_t)RTE_MIN((uint64_t)pair->burst, pair->ops_limit - cycle->started);
	uint32_t i;
	int ret;

	if (nb == 0) {
		pair->is_done = true;
		return 0;
	}
	ret = cycle->ops->fill(pair, train, nb);
	if (ret <= 0) {
		pair->is_done = true;
		return ret;
	}
	nb = (uint32_t)ret;
	ret = testrmem_pair_bufs_get(pair, train->dst, nb);
	if (ret != 0)
		return ret;
	train->nb = nb;
	cycle->started += nb;
	cycle->nb_active++;
	for (i = 0; i < nb; i++) {
		if (unlikely(cycle->is_checking))
			memset(testrmem_ptr(train->dst[i].addr), 0, pair->size);
		train->dst[i].length = train->src[i].length;
		cycle_fill_reg(pair, &train->reg[i], train->mr[i], train->pages[i], &train->dst[i]);
	}
	return post_stage(pair, train, STAGE_REG);
}

static int
compare_train(struct testrmem_pair *pair, const struct cycle_train *train)
{
	uint32_t i;

	for (i = 0; i < train->nb; i++) {
		if (memcmp(testrmem_ptr(train->src[i].addr), testrmem_ptr(train->dst[i].addr),
				    train->src[i].length) == 0)
			continue;
		testrmem_count(&pair->worker->cnt.errors, 1);
		testrmem_fail(pair->worker->session,
				"QP pair %" PRIu32 ": buffer at 0x%" PRIx64
				" does not hold what its peer wrote",
				pair->id, train->dst[i].addr);
		return -EIO;
	}
	return 0;
}

/* The keys are revoked: count the buffers and give them back. */
static int
end_train(struct testrmem_pair *pair, struct cycle_train *train)
{
	struct testrmem_counters *cnt = &pair->worker->cnt;
	struct testrmem_cycle *cycle = pair->priv;
	uint64_t bytes = 0;
	uint32_t i;
	int ret;

	for (i = 0; i < train->nb; i++)
		bytes += train->src[i].length;
	ret = cycle->ops->arrived != NULL ? cycle->ops->arrived(pair, train) : 0;
	if (ret == 0 && unlikely(cycle->is_checking))
		ret = compare_train(pair, train);
	testrmem_pair_bufs_put(pair, train->dst, train->nb);
	train->stage = STAGE_IDLE;
	cycle->nb_active--;
	testrmem_count(&cnt->invs, train->nb);
	if (ret != 0)
		return ret;
	testrmem_count(&cnt->ops, train->nb);
	testrmem_count(&cnt->bytes, bytes);
	return 0;
}

static int
advance_train(struct testrmem_pair *pair, struct cycle_train *train)
{
	uint32_t i;

	switch (train->stage) {
	case STAGE_REG:
		testrmem_count(&pair->worker->cnt.reg_mrs, train->nb);
		for (i = 0; i < train->nb; i++)
			fill_write(train, i);
		return post_stage(pair, train, STAGE_WRITE);
	case STAGE_WRITE:
		for (i = 0; i < train->nb; i++)
			fill_inv(train, i);
		return post_stage(pair, train, STAGE_INV);
	default:
		return end_train(pair, train);
	}
}

static int
poll_trains(struct testrmem_pair *pair, struct rmem_cq *cq)
{
	struct testrmem_cycle *cycle = pair->priv;
	struct rmem_wc wc[POLL_BURST];
	int i, n, ret;

	n = rmem_poll_cq(cq, wc, POLL_BURST);
	if (unlikely(n < 0))
		return testrmem_pair_refused(pair, "poll", n);
	for (i = 0; i < n; i++) {
		if (unlikely(wc[i].status != RMEM_WC_SUCCESS))
			return testrmem_pair_failed(pair, stage_name(wc[i].wr_id), &wc[i]);
		ret = advance_train(pair, &cycle->trains[wc[i].wr_id >> STAGE_BITS]);
		if (unlikely(ret != 0))
			return ret;
	}
	return 0;
}

int
cycle_burst(struct testrmem_pair *pair, bool is_draining)
{
	struct testrmem_cycle *cycle = pair->priv;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < cycle->nb_trains && !is_draining && !pair->is_done; i++) {
		if (cycle->trains[i].stage == STAGE_IDLE)
			ret = start_train(pair, &cycle->trains[i]);
		if (unlikely(ret != 0))
			return ret;
	}
	ret = poll_trains(pair, pair->cq_b);
	if (likely(ret == 0))
		ret = poll_trains(pair, pair->cq_a);
	return ret != 0 ? ret : (int)cycle->nb_active;
}

int
cycle_verify(struct testrmem_pair *pair)
{
	struct testrmem_cycle *cycle = pair->priv;
	int ret;

	cycle->is_checking = true;
	pair->ops_limit = UINT64_MAX;
	ret = start_train(pair, &cycle->trains[0]);
	return ret != 0 ? ret : testrmem_pair_drain(pair);
}
