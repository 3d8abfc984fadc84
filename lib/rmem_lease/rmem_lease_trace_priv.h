/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/** @file Trace points of leases; see rmem_trace_priv.h. Not installed. */

#ifndef RMEM_LEASE_TRACE_PRIV_H
#define RMEM_LEASE_TRACE_PRIV_H

#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_trace_point.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line for each field. */
/* clang-format off */

RTE_TRACE_POINT(
	rmem_lease_trace_create,
	RTE_TRACE_POINT_ARGS(const void *ctx, uint32_t qp_num, const char *backend,
		uint32_t min_leases, uint32_t max_leases),
	rte_trace_point_emit_ptr(ctx);
	rte_trace_point_emit_u32(qp_num);
	rte_trace_point_emit_string(backend);
	rte_trace_point_emit_u32(min_leases);
	rte_trace_point_emit_u32(max_leases);
)

RTE_TRACE_POINT(
	rmem_lease_trace_destroy,
	RTE_TRACE_POINT_ARGS(const void *ctx),
	rte_trace_point_emit_ptr(ctx);
)

RTE_TRACE_POINT(
	rmem_lease_trace_recover,
	RTE_TRACE_POINT_ARGS(const void *ctx, uint32_t qp_num, uint32_t nb_lost),
	rte_trace_point_emit_ptr(ctx);
	rte_trace_point_emit_u32(qp_num);
	rte_trace_point_emit_u32(nb_lost);
)

RTE_TRACE_POINT(
	rmem_lease_trace_lose,
	RTE_TRACE_POINT_ARGS(const void *ctx, uint32_t rkey, int status),
	rte_trace_point_emit_ptr(ctx);
	rte_trace_point_emit_u32(rkey);
	rte_trace_point_emit_int(status);
)

RTE_TRACE_POINT(
	rmem_lease_trace_quarantine,
	RTE_TRACE_POINT_ARGS(const void *ctx, uint32_t rkey, uint64_t quarantines),
	rte_trace_point_emit_ptr(ctx);
	rte_trace_point_emit_u32(rkey);
	rte_trace_point_emit_u64(quarantines);
)

RTE_TRACE_POINT(
	rmem_lease_trace_trim,
	RTE_TRACE_POINT_ARGS(const void *ctx, uint32_t nb_released),
	rte_trace_point_emit_ptr(ctx);
	rte_trace_point_emit_u32(nb_released);
)

RTE_TRACE_POINT(
	rmem_lease_trace_refuse,
	RTE_TRACE_POINT_ARGS(const void *ctx, const void *mr, const void *addr, uint32_t length,
		uint32_t access, int error),
	rte_trace_point_emit_ptr(ctx);
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_ptr(addr);
	rte_trace_point_emit_u32(length);
	rte_trace_point_emit_u32(access);
	rte_trace_point_emit_int(error);
)

/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif /* RMEM_LEASE_TRACE_PRIV_H */
