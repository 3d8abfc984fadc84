/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The names of the trace points of connections.
 */

#include <rte_trace_point_register.h>

#include "rmem_cm_trace_priv.h"

RTE_TRACE_POINT_REGISTER(rmem_cm_trace_state, lib.rmem.cm.state)
