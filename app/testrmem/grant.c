/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <inttypes.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include <rmem_pool.h>

#include "grant.h"

/* Parts of a buffer below an indirect key. */
#define NB_PARTS 4u

static int
log_failed(const struct testrmem_pair *pair, const char *what, int ret)
{
	testrmem_err("cannot allocate %s on '%s': %s", what, pair->dev->spec, rte_strerror(-ret));
	return ret;
}

/* The largest page size supported by the device and by the memory of the pool. */
static int
choose_page_size(const struct testrmem_pair *pair, uint8_t *log2_page_size)
{
	const struct testrmem_dev *dev = pair->dev;
	struct rmem_mr_info info;
	uint64_t fitting;
	int ret;

	ret = rmem_mr_query(dev->pool->mrs[0], &info);
	if (ret != 0)
		return log_failed(pair, "page size of the pool", ret);
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
	*log2_page_size = (uint8_t)(63 - __builtin_clzll(fitting));
	return 0;
}

static int
alloc_fast_reg(const struct testrmem_pair *pair, struct testrmem_grant *grant)
{
	const struct testrmem_dev *dev = pair->dev;
	uint64_t page_size;
	uint32_t nb_pages;
	int ret;

	ret = choose_page_size(pair, &grant->log2_page_size);
	if (ret != 0)
		return ret;
	page_size = UINT64_C(1) << grant->log2_page_size;
	/* The buffer may begin at the last byte of a page. */
	nb_pages = (uint32_t)((pair->size + 2 * page_size - 2) / page_size);
	if (nb_pages > dev->info.max_page_list_len) {
		testrmem_err("size %" PRIu32 " takes up to %" PRIu32 " pages of %" PRIu64
			     " bytes, device '%s' registers %" PRIu32 " (max_page_list_len)",
				pair->size, nb_pages, page_size, dev->spec,
				dev->info.max_page_list_len);
		return -EINVAL;
	}
	ret = rmem_fast_reg_mr_alloc(dev->pd, nb_pages, &grant->mr);
	if (ret == 0)
		ret = rmem_fast_reg_page_list_alloc(dev->dev, nb_pages, &grant->pages);
	return ret != 0 ? log_failed(pair, "fast-register MR", ret) : 0;
}

/* The address of a buffer in the requests of the peer, with a key of a REG_MR or UMR. */
static uint64_t
remote_addr(const struct testrmem_pair *pair, const struct rmem_sge *buf)
{
	return (pair->dev->info.capa & RMEM_DEV_CAPA_REG_ZERO_BASED) != 0 ? 0 : buf->addr;
}

static void
fill_fast_reg(const struct testrmem_pair *pair, struct testrmem_grant *grant,
		const struct rmem_sge *buf, struct rmem_send_wr *wr)
{
	uint64_t page_size = UINT64_C(1) << grant->log2_page_size;
	uint64_t page = buf->addr & ~(page_size - 1);
	uint16_t nb_pages = 0;

	grant->remote_addr = remote_addr(pair, buf);
	for (; page < buf->addr + buf->length; page += page_size)
		grant->pages->page_list[nb_pages++] = page;
	wr->opcode = RMEM_WR_REG_MR;
	wr->reg_mr.mr = grant->mr;
	wr->reg_mr.page_list = grant->pages;
	wr->reg_mr.page_list_len = nb_pages;
	wr->reg_mr.log2_page_size = grant->log2_page_size;
	wr->reg_mr.iova = grant->remote_addr;
	wr->reg_mr.first_byte_offset = (uint32_t)(buf->addr & (page_size - 1));
	wr->reg_mr.length = buf->length;
	wr->reg_mr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	wr->reg_mr.key_tag = rmem_rkey_next_tag(grant->mr->rkey);
}

const struct testrmem_grant_kind testrmem_grant_fast_reg = {
		.name = "fast-register MR",
		.request = "REG",
		.capa = RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_LOCAL_INV,
		.alloc = alloc_fast_reg,
		.fill = fill_fast_reg,
};

static int
alloc_window(const struct testrmem_pair *pair, struct testrmem_grant *grant)
{
	int ret = rmem_mw_alloc(pair->dev->pd, RMEM_MW_TYPE_2, &grant->mw);

	return ret != 0 ? log_failed(pair, "memory window", ret) : 0;
}

static void
fill_window(const struct testrmem_pair *pair, struct testrmem_grant *grant,
		const struct rmem_sge *buf, struct rmem_send_wr *wr)
{
	grant->remote_addr = buf->addr;
	wr->opcode = RMEM_WR_BIND_MW;
	wr->bind_mw.mw = grant->mw;
	wr->bind_mw.mr = rmem_pool_mr(pair->dev->pool, testrmem_ptr(buf->addr));
	wr->bind_mw.addr = buf->addr;
	wr->bind_mw.length = buf->length;
	wr->bind_mw.access = RMEM_ACCESS_REMOTE_WRITE;
	wr->bind_mw.key_tag = rmem_rkey_next_tag(grant->mw->rkey);
}

const struct testrmem_grant_kind testrmem_grant_window = {
		.name = "memory window",
		.request = "BIND",
		.capa = RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV,
		.pool_access = RMEM_ACCESS_MW_BIND,
		.is_window = true,
		.alloc = alloc_window,
		.fill = fill_window,
};

static uint32_t
max_parts(const struct testrmem_pair *pair)
{
	return RTE_MIN(NB_PARTS, pair->dev->info.max_mkey_entries);
}

static int
alloc_umr(const struct testrmem_pair *pair, struct testrmem_grant *grant)
{
	uint32_t nb = max_parts(pair);
	int ret;

	grant->entries = testrmem_alloc(nb, sizeof(*grant->entries));
	if (grant->entries == NULL)
		return -ENOMEM;
	ret = rmem_mkey_alloc(pair->dev->pd, nb, &grant->mr);
	return ret != 0 ? log_failed(pair, "indirect key", ret) : 0;
}

/* Fill in the parts; the last one is the remainder, and a small buffer has fewer. */
static void
fill_umr(const struct testrmem_pair *pair, struct testrmem_grant *grant, const struct rmem_sge *buf,
		struct rmem_send_wr *wr)
{
	uint32_t max = max_parts(pair), nb = RTE_MIN(max, buf->length), i;
	uint32_t part = buf->length / nb;

	for (i = 0; i < nb; i++) {
		grant->entries[i].addr = buf->addr + (uint64_t)i * part;
		grant->entries[i].length = i == nb - 1 ? buf->length - i * part : part;
		grant->entries[i].lkey = buf->lkey;
	}
	grant->remote_addr = remote_addr(pair, buf);
	wr->opcode = RMEM_WR_UMR;
	wr->umr.mr = grant->mr;
	wr->umr.entries = grant->entries;
	wr->umr.nb_entries = nb;
	wr->umr.repeat_count = 1;
	wr->umr.iova = grant->remote_addr;
	wr->umr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	wr->umr.key_tag = rmem_rkey_next_tag(grant->mr->rkey);
}

const struct testrmem_grant_kind testrmem_grant_umr = {
		.name = "indirect key",
		.request = "UMR",
		.capa = RMEM_DEV_CAPA_UMR | RMEM_DEV_CAPA_LOCAL_INV,
		.alloc = alloc_umr,
		.fill = fill_umr,
};

void
testrmem_grant_free(struct testrmem_grant *grant)
{
	int ret;

	ret = rmem_mr_dereg(grant->mr);
	ret |= rmem_mw_dealloc(grant->mw);
	ret |= rmem_fast_reg_page_list_free(grant->pages);
	rte_free(grant->entries);
	if (ret != 0)
		testrmem_err("a grant is still in use");
}
