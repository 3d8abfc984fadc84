/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Trace points of the class: control calls that succeeded, calls that were refused, requests that
 * failed. None is on the path of a successful request. Not installed.
 *
 * Fields are scalar arguments, with their names: DPDK also runs the body of a point with
 * meaningless arguments, to find the names and sizes of its fields.
 */

#ifndef RMEM_TRACE_PRIV_H
#define RMEM_TRACE_PRIV_H

#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_trace_point.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line for each field. */
/* clang-format off */

RTE_TRACE_POINT(
	rmem_trace_dev_create,
	RTE_TRACE_POINT_ARGS(const char *dev, uint16_t dev_id),
	rte_trace_point_emit_string(dev);
	rte_trace_point_emit_u16(dev_id);
)

RTE_TRACE_POINT(
	rmem_trace_dev_close,
	RTE_TRACE_POINT_ARGS(const char *dev),
	rte_trace_point_emit_string(dev);
)

RTE_TRACE_POINT(
	rmem_trace_pd_alloc,
	RTE_TRACE_POINT_ARGS(const char *dev, const void *pd),
	rte_trace_point_emit_string(dev);
	rte_trace_point_emit_ptr(pd);
)

RTE_TRACE_POINT(
	rmem_trace_pd_dealloc,
	RTE_TRACE_POINT_ARGS(const void *pd),
	rte_trace_point_emit_ptr(pd);
)

RTE_TRACE_POINT(
	rmem_trace_mr_reg,
	RTE_TRACE_POINT_ARGS(const void *pd, const void *mr, const void *addr,
		size_t length, uint64_t iova, uint32_t access, uint32_t lkey,
		uint32_t rkey),
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_ptr(addr);
	rte_trace_point_emit_size_t(length);
	rte_trace_point_emit_u64(iova);
	rte_trace_point_emit_u32(access);
	rte_trace_point_emit_u32(lkey);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_mr_start,
	RTE_TRACE_POINT_ARGS(const void *pd, const void *mr, size_t length),
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_size_t(length);
)

RTE_TRACE_POINT(
	rmem_trace_mr_complete,
	RTE_TRACE_POINT_ARGS(const void *mr, int status, uint32_t lkey, uint32_t rkey),
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_int(status);
	rte_trace_point_emit_u32(lkey);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_mr_share,
	RTE_TRACE_POINT_ARGS(const void *from, const void *pd, const void *mr,
		uint32_t access, uint32_t lkey, uint32_t rkey),
	rte_trace_point_emit_ptr(from);
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_u32(access);
	rte_trace_point_emit_u32(lkey);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_mr_alloc,
	RTE_TRACE_POINT_ARGS(const void *pd, const void *mr, uint16_t type, uint32_t size,
		uint32_t lkey, uint32_t rkey),
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_u16(type);
	rte_trace_point_emit_u32(size);
	rte_trace_point_emit_u32(lkey);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_mr_enable,
	RTE_TRACE_POINT_ARGS(const void *mr, uint32_t lkey, uint32_t rkey),
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_u32(lkey);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_mr_rereg,
	RTE_TRACE_POINT_ARGS(const void *mr, uint32_t flags, int result, const void *addr,
		size_t length, uint32_t access, uint32_t lkey, uint32_t rkey),
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_u32(flags);
	rte_trace_point_emit_int(result);
	rte_trace_point_emit_ptr(addr);
	rte_trace_point_emit_size_t(length);
	rte_trace_point_emit_u32(access);
	rte_trace_point_emit_u32(lkey);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_mr_dereg,
	RTE_TRACE_POINT_ARGS(const void *mr, uint32_t lkey, uint32_t rkey),
	rte_trace_point_emit_ptr(mr);
	rte_trace_point_emit_u32(lkey);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_mw_alloc,
	RTE_TRACE_POINT_ARGS(const void *pd, const void *mw, uint16_t type, uint32_t rkey),
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(mw);
	rte_trace_point_emit_u16(type);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_mw_dealloc,
	RTE_TRACE_POINT_ARGS(const void *mw, uint32_t rkey),
	rte_trace_point_emit_ptr(mw);
	rte_trace_point_emit_u32(rkey);
)

RTE_TRACE_POINT(
	rmem_trace_cq_create,
	RTE_TRACE_POINT_ARGS(const char *dev, const void *cq, uint32_t nb_cqe),
	rte_trace_point_emit_string(dev);
	rte_trace_point_emit_ptr(cq);
	rte_trace_point_emit_u32(nb_cqe);
)

RTE_TRACE_POINT(
	rmem_trace_cq_resize,
	RTE_TRACE_POINT_ARGS(const void *cq, uint32_t nb_cqe),
	rte_trace_point_emit_ptr(cq);
	rte_trace_point_emit_u32(nb_cqe);
)

RTE_TRACE_POINT(
	rmem_trace_cq_destroy,
	RTE_TRACE_POINT_ARGS(const void *cq),
	rte_trace_point_emit_ptr(cq);
)

RTE_TRACE_POINT(
	rmem_trace_srq_create,
	RTE_TRACE_POINT_ARGS(const void *pd, const void *srq, uint32_t max_wr, uint32_t max_sge),
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(srq);
	rte_trace_point_emit_u32(max_wr);
	rte_trace_point_emit_u32(max_sge);
)

RTE_TRACE_POINT(
	rmem_trace_srq_modify,
	RTE_TRACE_POINT_ARGS(const void *srq, uint32_t mask, uint32_t max_wr, uint32_t srq_limit),
	rte_trace_point_emit_ptr(srq);
	rte_trace_point_emit_u32(mask);
	rte_trace_point_emit_u32(max_wr);
	rte_trace_point_emit_u32(srq_limit);
)

RTE_TRACE_POINT(
	rmem_trace_srq_destroy,
	RTE_TRACE_POINT_ARGS(const void *srq),
	rte_trace_point_emit_ptr(srq);
)

RTE_TRACE_POINT(
	rmem_trace_xrcd_alloc,
	RTE_TRACE_POINT_ARGS(const char *dev, const void *xrcd, uint32_t handle),
	rte_trace_point_emit_string(dev);
	rte_trace_point_emit_ptr(xrcd);
	rte_trace_point_emit_u32(handle);
)

RTE_TRACE_POINT(
	rmem_trace_xrcd_dealloc,
	RTE_TRACE_POINT_ARGS(const void *xrcd),
	rte_trace_point_emit_ptr(xrcd);
)

RTE_TRACE_POINT(
	rmem_trace_dm_alloc,
	RTE_TRACE_POINT_ARGS(const char *dev, const void *dm, size_t length),
	rte_trace_point_emit_string(dev);
	rte_trace_point_emit_ptr(dm);
	rte_trace_point_emit_size_t(length);
)

RTE_TRACE_POINT(
	rmem_trace_dm_free,
	RTE_TRACE_POINT_ARGS(const void *dm),
	rte_trace_point_emit_ptr(dm);
)

RTE_TRACE_POINT(
	rmem_trace_ah_create,
	RTE_TRACE_POINT_ARGS(const void *pd, const void *ah, uint16_t dlid),
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(ah);
	rte_trace_point_emit_u16(dlid);
)

RTE_TRACE_POINT(
	rmem_trace_ah_destroy,
	RTE_TRACE_POINT_ARGS(const void *ah),
	rte_trace_point_emit_ptr(ah);
)

RTE_TRACE_POINT(
	rmem_trace_qp_create,
	RTE_TRACE_POINT_ARGS(const void *pd, const void *qp, uint32_t qp_num,
		const void *send_cq, const void *recv_cq, uint32_t max_send_wr,
		uint32_t max_recv_wr, uint32_t access),
	rte_trace_point_emit_ptr(pd);
	rte_trace_point_emit_ptr(qp);
	rte_trace_point_emit_u32(qp_num);
	rte_trace_point_emit_ptr(send_cq);
	rte_trace_point_emit_ptr(recv_cq);
	rte_trace_point_emit_u32(max_send_wr);
	rte_trace_point_emit_u32(max_recv_wr);
	rte_trace_point_emit_u32(access);
)

RTE_TRACE_POINT(
	rmem_trace_qp_connect,
	RTE_TRACE_POINT_ARGS(const void *qp, uint32_t qp_num, uint32_t remote_qp_num),
	rte_trace_point_emit_ptr(qp);
	rte_trace_point_emit_u32(qp_num);
	rte_trace_point_emit_u32(remote_qp_num);
)

RTE_TRACE_POINT(
	rmem_trace_qp_state,
	RTE_TRACE_POINT_ARGS(const void *qp, uint32_t qp_num, int state),
	rte_trace_point_emit_ptr(qp);
	rte_trace_point_emit_u32(qp_num);
	rte_trace_point_emit_int(state);
)

RTE_TRACE_POINT(
	rmem_trace_qp_mcast,
	RTE_TRACE_POINT_ARGS(const void *qp, uint32_t qp_num, int is_attached),
	rte_trace_point_emit_ptr(qp);
	rte_trace_point_emit_u32(qp_num);
	rte_trace_point_emit_int(is_attached);
)

RTE_TRACE_POINT(
	rmem_trace_qp_destroy,
	RTE_TRACE_POINT_ARGS(const void *qp, uint32_t qp_num),
	rte_trace_point_emit_ptr(qp);
	rte_trace_point_emit_u32(qp_num);
)

RTE_TRACE_POINT(
	rmem_trace_error_call,
	RTE_TRACE_POINT_ARGS(const char *call, const void *obj, int error),
	rte_trace_point_emit_string(call);
	rte_trace_point_emit_ptr(obj);
	rte_trace_point_emit_int(error);
)

RTE_TRACE_POINT(
	rmem_trace_error_wc,
	RTE_TRACE_POINT_ARGS(const char *dev, uint32_t qp_num, uint64_t wr_id, int status,
		uint32_t vendor_err),
	rte_trace_point_emit_string(dev);
	rte_trace_point_emit_u32(qp_num);
	rte_trace_point_emit_u64(wr_id);
	rte_trace_point_emit_int(status);
	rte_trace_point_emit_u32(vendor_err);
)

/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif /* RMEM_TRACE_PRIV_H */
