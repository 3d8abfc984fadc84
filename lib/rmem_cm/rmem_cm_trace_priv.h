/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/** @file Trace points of connections; see rmem_trace_priv.h. Not installed. */

#ifndef RMEM_CM_TRACE_PRIV_H
#define RMEM_CM_TRACE_PRIV_H

#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_trace_point.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line for each field. */
/* clang-format off */

RTE_TRACE_POINT(
	rmem_cm_trace_state,
	RTE_TRACE_POINT_ARGS(const char *dev, uint32_t local_id, uint32_t remote_id,
		uint32_t qp_num, uint32_t remote_qp_num, const char *from, const char *state,
		const char *end, uint16_t reason),
	rte_trace_point_emit_string(dev);
	rte_trace_point_emit_u32(local_id);
	rte_trace_point_emit_u32(remote_id);
	rte_trace_point_emit_u32(qp_num);
	rte_trace_point_emit_u32(remote_qp_num);
	rte_trace_point_emit_string(from);
	rte_trace_point_emit_string(state);
	rte_trace_point_emit_string(end);
	rte_trace_point_emit_u16(reason);
)

/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif /* RMEM_CM_TRACE_PRIV_H */
