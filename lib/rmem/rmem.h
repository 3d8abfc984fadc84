/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * rmem: registered memory for DPDK. Main header for applications.
 *
 * Objects, in the order of their creation: a device (rmem_dev.h), a protection
 * domain on it (rmem_pd.h), memory regions (rmem_mr.h), fast-register regions
 * (rmem_fast_reg.h) or indirect keys (rmem_mkey.h), memory windows (rmem_mw.h), completion
 * queues (rmem_cq.h), shared receive queues (rmem_srq.h) and queue pairs (rmem_qp.h). Work
 * requests (rmem_wr.h) are posted and completions (rmem_wc.h) polled by the inline
 * functions of rmem_fp.h.
 *
 * Every control call returns 0 or a negative errno, and returns a created object in its last
 * parameter, written only on success. The result of a posted request is reported only by
 * rmem_wc::status.
 *
 * Calls come in pairs, named as in verbs and DPDK. Registered MRs are deregistered, PDs and windows
 * allocated and deallocated, and queues, pools, contexts and all other objects created and
 * destroyed. An indirect or fast-register MR is allocated and deregistered, a page list allocated
 * and freed, as in the kernel. A device is created and closed, a mempool registered and
 * unregistered, as in DPDK. A handle of NULL is released without an error.
 *
 * Devices belong to the primary process. A secondary process attaches to them, and posts and polls
 * (rmem_mp.h). In a secondary process all other calls with a device or one of its objects return
 * -EOPNOTSUPP, and control calls log one line.
 */

#ifndef RMEM_H
#define RMEM_H

#include <rmem_ah.h>
#include <rmem_async_channel.h>
#include <rmem_comp_channel.h>
#include <rmem_counter.h>
#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_dev_attr.h>
#include <rmem_dm.h>
#include <rmem_dump.h>
#include <rmem_eq.h>
#include <rmem_fast_reg.h>
#include <rmem_fp.h>
#include <rmem_mkey.h>
#include <rmem_mp.h>
#include <rmem_mr.h>
#include <rmem_mw.h>
#include <rmem_obj.h>
#include <rmem_pd.h>
#include <rmem_qp.h>
#include <rmem_srq.h>
#include <rmem_vendor_err.h>
#include <rmem_version.h>
#include <rmem_wc.h>
#include <rmem_wr.h>
#include <rmem_xrcd.h>

#endif /* RMEM_H */
