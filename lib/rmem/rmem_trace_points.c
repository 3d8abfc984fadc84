/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The names of the trace points of the class.
 */

#include <rte_trace_point_register.h>

#include "rmem_trace_priv.h"

RTE_TRACE_POINT_REGISTER(rmem_trace_dev_create, lib.rmem.dev.create)
RTE_TRACE_POINT_REGISTER(rmem_trace_dev_close, lib.rmem.dev.close)
RTE_TRACE_POINT_REGISTER(rmem_trace_pd_alloc, lib.rmem.pd.alloc)
RTE_TRACE_POINT_REGISTER(rmem_trace_pd_dealloc, lib.rmem.pd.dealloc)
RTE_TRACE_POINT_REGISTER(rmem_trace_mr_reg, lib.rmem.mr.reg)
RTE_TRACE_POINT_REGISTER(rmem_trace_mr_start, lib.rmem.mr.start)
RTE_TRACE_POINT_REGISTER(rmem_trace_mr_complete, lib.rmem.mr.complete)
RTE_TRACE_POINT_REGISTER(rmem_trace_mr_share, lib.rmem.mr.share)
RTE_TRACE_POINT_REGISTER(rmem_trace_mr_alloc, lib.rmem.mr.alloc)
RTE_TRACE_POINT_REGISTER(rmem_trace_mr_enable, lib.rmem.mr.enable)
RTE_TRACE_POINT_REGISTER(rmem_trace_mr_rereg, lib.rmem.mr.rereg)
RTE_TRACE_POINT_REGISTER(rmem_trace_mr_dereg, lib.rmem.mr.dereg)
RTE_TRACE_POINT_REGISTER(rmem_trace_mw_alloc, lib.rmem.mw.alloc)
RTE_TRACE_POINT_REGISTER(rmem_trace_mw_dealloc, lib.rmem.mw.dealloc)
RTE_TRACE_POINT_REGISTER(rmem_trace_cq_create, lib.rmem.cq.create)
RTE_TRACE_POINT_REGISTER(rmem_trace_cq_resize, lib.rmem.cq.resize)
RTE_TRACE_POINT_REGISTER(rmem_trace_cq_destroy, lib.rmem.cq.destroy)
RTE_TRACE_POINT_REGISTER(rmem_trace_srq_create, lib.rmem.srq.create)
RTE_TRACE_POINT_REGISTER(rmem_trace_srq_modify, lib.rmem.srq.modify)
RTE_TRACE_POINT_REGISTER(rmem_trace_srq_destroy, lib.rmem.srq.destroy)
RTE_TRACE_POINT_REGISTER(rmem_trace_xrcd_alloc, lib.rmem.xrcd.alloc)
RTE_TRACE_POINT_REGISTER(rmem_trace_xrcd_dealloc, lib.rmem.xrcd.dealloc)
RTE_TRACE_POINT_REGISTER(rmem_trace_dm_alloc, lib.rmem.dm.alloc)
RTE_TRACE_POINT_REGISTER(rmem_trace_dm_free, lib.rmem.dm.free)
RTE_TRACE_POINT_REGISTER(rmem_trace_ah_create, lib.rmem.ah.create)
RTE_TRACE_POINT_REGISTER(rmem_trace_ah_destroy, lib.rmem.ah.destroy)
RTE_TRACE_POINT_REGISTER(rmem_trace_qp_create, lib.rmem.qp.create)
RTE_TRACE_POINT_REGISTER(rmem_trace_qp_connect, lib.rmem.qp.connect)
RTE_TRACE_POINT_REGISTER(rmem_trace_qp_state, lib.rmem.qp.state)
RTE_TRACE_POINT_REGISTER(rmem_trace_qp_mcast, lib.rmem.qp.mcast)
RTE_TRACE_POINT_REGISTER(rmem_trace_qp_destroy, lib.rmem.qp.destroy)
RTE_TRACE_POINT_REGISTER(rmem_trace_error_call, lib.rmem.error.call)
RTE_TRACE_POINT_REGISTER(rmem_trace_error_wc, lib.rmem.error.wc)
