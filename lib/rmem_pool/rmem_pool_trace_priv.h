/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/** @file Trace points of pools; see rmem_trace_priv.h. Not installed. */

#ifndef RMEM_POOL_TRACE_PRIV_H
#define RMEM_POOL_TRACE_PRIV_H

#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_trace_point.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line for each field. */
/* clang-format off */

RTE_TRACE_POINT(
	rmem_pool_trace_create,
	RTE_TRACE_POINT_ARGS(const char *name, const void *pd, const void *pool,
		uint32_t nb_bufs, uint32_t buf_size, uint32_t access,
		uint32_t nb_mrs),
	rte_trace_point_emit_string(name);
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(pool);
	rte_trace_point_emit_u32(nb_bufs);
	rte_trace_point_emit_u32(buf_size);
	rte_trace_point_emit_u32(access);
	rte_trace_point_emit_u32(nb_mrs);
)

RTE_TRACE_POINT(
	rmem_pool_trace_destroy,
	RTE_TRACE_POINT_ARGS(const void *pool),
	rte_trace_point_emit_ptr(pool);
)

RTE_TRACE_POINT(
	rmem_pool_trace_pktmbuf_create,
	RTE_TRACE_POINT_ARGS(const char *name, const void *pd, const void *reg,
		uint32_t nb_mbufs, uint32_t data_room_size, uint32_t access,
		uint32_t nb_mrs),
	rte_trace_point_emit_string(name);
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(reg);
	rte_trace_point_emit_u32(nb_mbufs);
	rte_trace_point_emit_u32(data_room_size);
	rte_trace_point_emit_u32(access);
	rte_trace_point_emit_u32(nb_mrs);
)

RTE_TRACE_POINT(
	rmem_pool_trace_pktmbuf_destroy,
	RTE_TRACE_POINT_ARGS(const void *reg),
	rte_trace_point_emit_ptr(reg);
)

RTE_TRACE_POINT(
	rmem_pool_trace_mempool_register,
	RTE_TRACE_POINT_ARGS(const char *name, const void *pd, const void *reg,
		uint32_t access, uint32_t nb_mrs, uint64_t registered),
	rte_trace_point_emit_string(name);
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(reg);
	rte_trace_point_emit_u32(access);
	rte_trace_point_emit_u32(nb_mrs);
	rte_trace_point_emit_u64(registered);
)

RTE_TRACE_POINT(
	rmem_pool_trace_mempool_unregister,
	RTE_TRACE_POINT_ARGS(const void *reg),
	rte_trace_point_emit_ptr(reg);
)

RTE_TRACE_POINT(
	rmem_pool_trace_extbuf_add,
	RTE_TRACE_POINT_ARGS(const void *mr, const void *addr, size_t length),
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_ptr(addr);
	rte_trace_point_emit_size_t(length);
)

RTE_TRACE_POINT(
	rmem_pool_trace_extbuf_del,
	RTE_TRACE_POINT_ARGS(const void *mr),
	rte_trace_point_emit_ptr(mr);
)

/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif /* RMEM_POOL_TRACE_PRIV_H */
