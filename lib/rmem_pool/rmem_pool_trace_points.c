/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The names of the trace points of pools.
 */

#include <rte_trace_point_register.h>

#include "rmem_pool_trace_priv.h"

RTE_TRACE_POINT_REGISTER(rmem_pool_trace_create, lib.rmem.pool.create)
RTE_TRACE_POINT_REGISTER(rmem_pool_trace_destroy, lib.rmem.pool.destroy)
RTE_TRACE_POINT_REGISTER(rmem_pool_trace_pktmbuf_create, lib.rmem.pktmbuf.create)
RTE_TRACE_POINT_REGISTER(rmem_pool_trace_pktmbuf_destroy, lib.rmem.pktmbuf.destroy)
RTE_TRACE_POINT_REGISTER(rmem_pool_trace_mempool_register, lib.rmem.mempool.register)
RTE_TRACE_POINT_REGISTER(rmem_pool_trace_mempool_unregister, lib.rmem.mempool.unregister)
RTE_TRACE_POINT_REGISTER(rmem_pool_trace_extbuf_add, lib.rmem.extbuf.add)
RTE_TRACE_POINT_REGISTER(rmem_pool_trace_extbuf_del, lib.rmem.extbuf.del)
