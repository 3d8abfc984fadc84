/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * rmem: registered memory for DPDK. The one header an application includes.
 *
 * Objects, in the order an application makes them: a device (rmem_dev.h), a protection
 * domain on it (rmem_pd.h), memory regions (rmem_mr.h), fast-register regions
 * (rmem_fast_reg.h) or indirect keys (rmem_mkey.h), memory windows (rmem_mw.h), completion
 * queues (rmem_cq.h) and queue pairs (rmem_qp.h). Work
 * requests (rmem_wr.h) are posted and completions (rmem_wc.h) polled by the inline
 * functions of rmem_fp.h.
 *
 * Every control call returns 0 or a negative errno and hands an object back through its
 * last parameter, written only on success. What became of a posted request is told by
 * rmem_wc::status alone.
 *
 * Devices belong to the primary process. In a secondary process each call that takes a device or
 * an object of one returns -EOPNOTSUPP, and logs one line unless it is of the fast path.
 */

#ifndef RMEM_H
#define RMEM_H

#include <rmem_counter.h>
#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_eq.h>
#include <rmem_fast_reg.h>
#include <rmem_fp.h>
#include <rmem_mkey.h>
#include <rmem_mr.h>
#include <rmem_mw.h>
#include <rmem_obj.h>
#include <rmem_pd.h>
#include <rmem_qp.h>
#include <rmem_vendor_err.h>
#include <rmem_wc.h>
#include <rmem_wr.h>

#endif /* RMEM_H */
