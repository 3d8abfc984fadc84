/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The names of the trace points of leases.
 */

#include <rte_trace_point_register.h>

#include "rmem_lease_trace_priv.h"

RTE_TRACE_POINT_REGISTER(rmem_lease_trace_create, lib.rmem.lease.create)
RTE_TRACE_POINT_REGISTER(rmem_lease_trace_destroy, lib.rmem.lease.destroy)
RTE_TRACE_POINT_REGISTER(rmem_lease_trace_recover, lib.rmem.lease.recover)
RTE_TRACE_POINT_REGISTER(rmem_lease_trace_lose, lib.rmem.lease.lose)
RTE_TRACE_POINT_REGISTER(rmem_lease_trace_quarantine, lib.rmem.lease.quarantine)
RTE_TRACE_POINT_REGISTER(rmem_lease_trace_trim, lib.rmem.lease.trim)
RTE_TRACE_POINT_REGISTER(rmem_lease_trace_refuse, lib.rmem.lease.refuse)
