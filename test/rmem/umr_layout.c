/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The model of indirect keys; see umr_layout.h. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "fixture.h"
#include "umr_layout.h"

const uint8_t layout_movers[LAYOUT_NB_MOVERS] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM,
		RMEM_WR_SEND, RMEM_WR_SEND_WITH_IMM, RMEM_WR_RDMA_READ};

static uint8_t want_a[FX_BUF_SIZE];
static uint8_t want_b[FX_BUF_SIZE];

uint64_t
layout_seed(void)
{
	const char *text = getenv("RMEM_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : rte_rdtsc();

	seed += seed == 0;
	test_note("replay with RMEM_SEED=0x%" PRIx64, seed);
	return seed;
}

uint32_t
layout_random(uint64_t *random, uint32_t limit)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (uint32_t)(*random >> 16) % limit;
}

void
layout_plain(struct layout *layout, struct rmem_mr *mr, uint32_t first, uint32_t length)
{
	uint32_t i;

	layout->mr = mr;
	layout->iova = mr->iova;
	layout->length = length;
	for (i = 0; i < length; i++)
		layout->place[i] = first + i;
}

void
layout_pages(struct layout *layout, struct rmem_mr *mr, const uint8_t *order, uint32_t nb_pages,
		uint64_t iova, uint32_t length)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, nb_pages);
	struct rmem_send_wr wr;
	uint32_t i, at;

	TEST_ASSERT(mr != NULL);
	for (i = 0; i < nb_pages; i++)
		list->page_list[i] = fx_addr(fx.a.buf) + order[i] * FX_PAGE;
	wr = fx_reg(mr, list, (uint16_t)nb_pages, iova, length);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	layout->mr = mr;
	layout->iova = iova;
	layout->length = length;
	for (i = 0; i < length; i++) {
		at = (uint32_t)(iova % FX_PAGE) + i;
		layout->place[i] = order[at / FX_PAGE] * FX_PAGE + at % FX_PAGE;
	}
}

/* The places of one block of an entry. */
static void
add_block(struct layout *layout, const struct layout *const *below, unsigned int nb_below,
		uint32_t lkey, uint64_t addr, uint64_t length)
{
	unsigned int i;

	for (i = 0; i + 1 < nb_below && below[i]->mr->lkey != lkey; i++)
		;
	memcpy(&layout->place[layout->length], &below[i]->place[addr - below[i]->iova],
			length * sizeof(layout->place[0]));
	layout->length += (uint32_t)length;
}

int
layout_bind(struct layout *layout, struct rmem_mr *mr, const struct layout *const *below,
		unsigned int nb_below, const struct rmem_mkey_entry *entries, uint32_t nb_entries,
		uint32_t repeat_count, uint64_t iova)
{
	struct rmem_send_wr wr = fx_umr(mr, entries, nb_entries, iova);
	uint32_t round, i;

	wr.umr.repeat_count = repeat_count;
	layout->mr = mr;
	layout->iova = iova;
	layout->length = 0;
	for (round = 0; round < repeat_count; round++) {
		for (i = 0; i < nb_entries; i++)
			add_block(layout, below, nb_below, entries[i].lkey,
					entries[i].addr +
							round * (entries[i].length + entries[i].skip),
					entries[i].length);
	}
	return fx_send(fx.a.qp, &wr);
}

int
layout_bind_random(struct layout *layout, struct rmem_mr *mr, const struct layout *const *below,
		unsigned int nb_below, uint64_t *random)
{
	struct rmem_mkey_entry entries[LAYOUT_ENTRIES];
	uint32_t nb = 1 + layout_random(random, LAYOUT_ENTRIES);
	uint32_t repeat = layout_random(random, 2) == 0 ? 1 : 1 + layout_random(random, 6);
	uint32_t max = LAYOUT_MAX / nb / repeat;
	uint32_t i;

	memset(entries, 0, sizeof(entries));
	for (i = 0; i < nb; i++) {
		const struct layout *from = below[layout_random(random, nb_below)];
		uint32_t room, length, skip, extent;

		if (from->length < repeat)
			from = below[0]; /* it holds all */
		room = from->length / repeat;
		length = 1 + layout_random(random, RTE_MIN(RTE_MIN(room, max), 300u));
		skip = layout_random(random, room - length + 1);
		extent = (repeat - 1) * (length + skip) + length;

		entries[i].lkey = from->mr->lkey;
		entries[i].length = length;
		entries[i].skip = skip;
		entries[i].addr = from->iova + layout_random(random, from->length - extent + 1);
	}
	return layout_bind(layout, mr, below, nb_below, entries, nb, repeat,
			layout_random(random, 1u << 30));
}

/* Whether the key's bytes are written, or read. */
static bool
is_written(uint8_t opcode, enum layout_side side)
{
	return (opcode == RMEM_WR_RDMA_READ) == (side == LAYOUT_LOCAL);
}

static void
run(const struct layout *layout, uint8_t opcode, enum layout_side side, uint32_t offset,
		uint32_t length)
{
	const struct rmem_sge key = {layout->iova + offset, length, layout->mr->lkey};
	const struct rmem_sge plain = fx_sge(fx.b.mr, 0, length);
	bool is_local = side == LAYOUT_LOCAL;
	bool is_send = opcode == RMEM_WR_SEND || opcode == RMEM_WR_SEND_WITH_IMM;
	struct fx_side *from = is_local ? &fx.a : &fx.b;
	struct fx_side *to = is_local ? &fx.b : &fx.a;
	struct rmem_send_wr wr = is_local ? fx_rdma(opcode, &key, fx.b.mr->iova, fx.b.mr->rkey)
					  : fx_rdma(opcode, &plain, key.addr, layout->mr->rkey);

	wr.imm_data = 0x1234;
	if (is_send)
		TEST_EQ(fx_post_recv(to->qp, 1, is_local ? &plain : &key, 1), 1);
	else if (opcode == RMEM_WR_RDMA_WRITE_WITH_IMM)
		TEST_EQ(fx_post_recv(to->qp, 1, NULL, 0), 1);
	TEST_STATUS(fx_send(from->qp, &wr), RMEM_WC_SUCCESS);
	if (is_send || opcode == RMEM_WR_RDMA_WRITE_WITH_IMM) {
		TEST_STATUS(fx_wait(to->cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.byte_len, length);
	}
}

void
layout_check(const struct layout *layout, uint8_t opcode, enum layout_side side, uint32_t offset,
		uint32_t length)
{
	static uint32_t seed;
	uint32_t i;

	fx_fill(fx.a.buf, FX_BUF_SIZE, ++seed);
	fx_fill(fx.b.buf, FX_BUF_SIZE, ++seed);
	memcpy(want_a, fx.a.buf, FX_BUF_SIZE);
	memcpy(want_b, fx.b.buf, FX_BUF_SIZE);
	for (i = 0; i < length; i++) {
		if (is_written(opcode, side))
			want_a[layout->place[offset + i]] = want_b[i];
		else
			want_b[i] = want_a[layout->place[offset + i]];
	}
	run(layout, opcode, side, offset, length);
	TEST_MEM(fx.a.buf, want_a, FX_BUF_SIZE);
	TEST_MEM(fx.b.buf, want_b, FX_BUF_SIZE);
}

void
layout_check_borders(const struct layout *layout, uint8_t opcode, enum layout_side side)
{
	uint32_t length = layout->length;

	layout_check(layout, opcode, side, 0, length);
	layout_check(layout, opcode, side, 5, 9);
	layout_check(layout, opcode, side, 76, 2);
	layout_check(layout, opcode, side, 77, 1);
	layout_check(layout, opcode, side, length - 1, 1);
	layout_check(layout, opcode, side, 1, length - 2);
}

void
layout_check_all(const struct layout *layout)
{
	unsigned int i;

	for (i = 0; i < LAYOUT_NB_MOVERS; i++) {
		layout_check_borders(layout, layout_movers[i], LAYOUT_LOCAL);
		layout_check_borders(layout, layout_movers[i], LAYOUT_REMOTE);
	}
}
