/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory regions and fast registration. */

#ifndef RSOFT_MR_H
#define RSOFT_MR_H

#include "rsoft_handle.h"
#include "rsoft_key.h"

int rsoft_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr);
int rsoft_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr,
		size_t length, uint32_t access, enum rmem_rereg_result *result);
int rsoft_mr_share(struct rmem_mr *mr, struct rmem_mr *from);
int rsoft_mr_dereg(struct rmem_mr *mr);
int rsoft_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter);
int rsoft_mr_enable(struct rmem_mr *mr);
int rsoft_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge);
/* Cancel the advice for a table, which may be NULL. */
void rsoft_advise_cancel(const struct rsoft_odp *odp);
int rsoft_mr_stats_get(struct rmem_mr *mr, struct rmem_mr_stats *stats);
int rsoft_mr_query(struct rmem_mr *mr, struct rmem_mr_info *info);
int rsoft_fast_reg_mr_alloc(struct rmem_mr *mr);
int rsoft_mkey_alloc(struct rmem_mr *mr);
/* A page list; a short one has its pages in the cache line of the handle. */
struct rsoft_page_list {
	struct rmem_fast_reg_page_list list;
	uint64_t few[(RTE_CACHE_LINE_MIN_SIZE - sizeof(struct rmem_fast_reg_page_list)) /
			sizeof(uint64_t)];
};

int rsoft_page_list_alloc(struct rmem_fast_reg_page_list *page_list);
int rsoft_page_list_free(struct rmem_fast_reg_page_list *page_list);

/* Store a field of a BUSY key; see rsoft_mr_take(). */
#define RSOFT_BIND_SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

/* The same for a field that most binds of a key leave as it is: loads are faster than stores. */
#define RSOFT_BIND_KEEP(field, value)                                                              \
	do {                                                                                       \
		if (unlikely((field) != (value)))                                                  \
			RSOFT_BIND_SET(field, value);                                              \
	} while (0)

/*
 * Move the key of an MR from FREE to BUSY, to be filled; false if it is not FREE.
 *
 * rsoft_mr_query() reads it concurrently, without a grace section. Invariant: the owner of a BUSY
 * key counts the bind, then stores its fields, then the word, each with release. So a reader that
 * loads a VALID word between two loads of the same count has read the fields of that bind.
 */
static inline bool
rsoft_mr_take(struct rsoft_mr *mr, uint32_t *rkey)
{
	if (unlikely(!rsoft_key_take(mr->key, rkey)))
		return false;
	__atomic_store_n(&mr->nb_binds, mr->nb_binds + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

/*
 * Execute consecutive REG_MRs of a QP: the first of n requests, and following ones until one is
 * signaled or fails. Return how many have ended; *status is the status of the last one, an enum
 * rmem_wc_status, and all others have succeeded.
 */
uint32_t rsoft_reg_mrs(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n,
		int *status, uint32_t *vendor_err);

/* Invalidate the keys of consecutive LOCAL_INVs of a QP; return their number, up to n. */
uint32_t rsoft_local_invs(const struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n);

/*
 * After the grace period, move the keys of LOCAL_INVs to FREE: of the first of n requests, and of
 * following ones until one is signaled, because windows must release their MRs before its
 * completion. Return their number.
 */
uint32_t rsoft_local_invs_end(
		const struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n);

/* Execute a UMR request of a QP; return an enum rmem_wc_status. */
int rsoft_umr(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t *vendor_err);

/* Whether the requested rights are known and consistent (ibv_reg_mr(3)), also with the iova. */
bool rsoft_reg_mr_check_access(uint32_t access, uint64_t iova);

#endif /* RSOFT_MR_H */
