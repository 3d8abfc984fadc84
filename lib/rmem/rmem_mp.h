/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Devices in secondary processes of DPDK.
 *
 * The primary process creates devices and their objects, and connects QPs. A secondary process
 * attaches to a device, claims QPs, and then posts to them and polls their CQs, in shared memory:
 * rmem_post_send(), rmem_post_recv() and rmem_poll_cq(). The primary executes these requests, in
 * its engines or its polls. The other calls are refused in a secondary process with -EOPNOTSUPP,
 * unless their description permits it.
 *
 * Handles and keys are valid in all processes: an application passes them as it passes other
 * pointers (rte_memzone, rte_mp_sendmsg()), or finds objects by name.
 *
 * The primary detects the end of a process with a pidfd (Linux 5.3), which can't refer to a later
 * process with the same PID. It then resets the QPs that the process had claimed, invalidates the
 * keys that its requests bound, and releases its buffers of tracked pools. A process may be killed
 * at any time. A stopped process keeps its QPs, keys and buffers.
 */

#ifndef RMEM_MP_H
#define RMEM_MP_H

#include <rmem_dev.h>
#include <rmem_mr.h>
#include <rmem_process.h>
#include <rmem_qp.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Attach this secondary process to a device of the primary.
 *
 * Reserves the lcore ids of this process, because two processes with one lcore id would use the
 * same caches of mempools. (DPDK's "Multi-process Support" requires distinct ids, but does not
 * check them.)
 *
 * After the primary has ended, posts and polls return -ENODEV.
 *
 * Control path: sends a request to the primary. Safe to call from any thread.
 *
 * @param name
 *   Name of the device.
 * @param[out] dev
 *   The device. Written only on success. Release it with rmem_dev_detach(); the end of the process
 *   releases it, too.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL name or dev, or this is the primary process.
 *   - -EALREADY: this process is attached to the device.
 *   - -ENODEV: the primary has no such device, is closing it, or does not answer.
 *   - -EEXIST: another process has an lcore id of this one; the log names both.
 *   - -EPROTO: the primary uses another version of rmem.
 *   - -EOPNOTSUPP: the driver does not support secondary processes (verbs), EAL has no channel
 *     between processes (--in-memory, --no-shconf), the kernel has no pidfds, or this is a child of
 *     fork().
 *   - -ENOSPC: all process numbers up to RMEM_PROCESS_MAX are in use.
 *   - -ESRCH: the primary cannot see this process: it is in another PID namespace.
 *   - -ENOMEM: no memory, or no descriptor.
 */
int rmem_dev_attach(const char *name, struct rmem_dev **dev);

/**
 * Detach this secondary process from a device.
 *
 * The primary resets the QPs of the device that this process has claimed, and invalidates the keys
 * that its requests bound, as at the end of the process.
 *
 * Control path: sends a request to the primary. No other thread of this process may use the device,
 * or buffers of tracked pools.
 *
 * @param dev
 *   Device of rmem_dev_attach(); no longer valid afterwards, even if the primary does not answer.
 *   NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a device that this process is attached to.
 *   - -ENODEV: the primary has ended, or does not answer. The device is detached; a slow primary
 *     releases the QPs, keys and buffers of this process when it reads the request.
 */
int rmem_dev_detach(struct rmem_dev *dev);

/**
 * Claim a QP of the primary for this secondary process.
 *
 * From then on only this process may post to the QP and poll its CQs; control calls stay with the
 * primary. Requests are executed by the engine of the QP or, without engine=, whenever the primary
 * polls a CQ of the device. Its CQs receive no messages inline, of any QP.
 *
 * Control path: sends a request to the primary. Safe to call from any thread.
 *
 * @param qp
 *   QP of a device that this process is attached to, in any state.
 *
 * @return
 *   0 on success, also if this process has claimed it already, otherwise:
 *   - -EINVAL: not a QP of a device that this process is attached to.
 *   - -EBUSY: another process has claimed it or another QP of its CQs, its send queue is not empty,
 *     or its CQs have messages received inline, of any QP, that were not polled.
 *   - -EOPNOTSUPP: the device has ip=.
 *   - -ENODEV: the primary does not answer, or has ended. A slow primary claims the QP when it
 *     reads the request; the call can be repeated.
 */
int rmem_qp_claim(struct rmem_qp *qp);

/**
 * End the claim of a QP: the primary resets it.
 *
 * Control path: sends a request to the primary. No other thread may use the QP.
 *
 * @param qp
 *   QP that this process has claimed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: this process has not claimed it.
 *   - -ENODEV: the primary does not answer, or has ended. A slow primary ends the claim when it
 *     reads the request; a repeated call then returns -EINVAL.
 */
int rmem_qp_unclaim(struct rmem_qp *qp);

/**
 * Find a QP by its name.
 *
 * Control path: sends a request to the primary. Safe to call from any thread of a secondary
 * process.
 *
 * @param dev
 *   Device of rmem_dev_attach().
 * @param name
 *   Name of the QP (rmem_qp_conf::name).
 * @param[out] qp
 *   The QP; of several with that name, the one created last. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a device that this process is attached to; NULL, or a name that no object has.
 *   - -ENOENT: the device has no QP of that name.
 *   - -ENODEV: the primary does not answer, or has ended.
 */
int rmem_qp_lookup(const struct rmem_dev *dev, const char *name, struct rmem_qp **qp);

/**
 * Find an MR by its name.
 *
 * Control path: sends a request to the primary. Safe to call from any thread of a secondary
 * process.
 *
 * @param dev
 *   Device of rmem_dev_attach().
 * @param name
 *   Name of the MR (rmem_mr_attr::name).
 * @param[out] mr
 *   The MR; of several with that name, the one created last. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a device that this process is attached to; NULL, or a name that no object has.
 *   - -ENOENT: the device has no MR of that name.
 *   - -ENODEV: the primary does not answer, or has ended.
 */
int rmem_mr_lookup(const struct rmem_dev *dev, const char *name, struct rmem_mr **mr);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MP_H */
