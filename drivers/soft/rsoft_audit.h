/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The audit: the invariants of all objects of a device, for debug builds and tests.
 *
 * No thread may use the device at the same time. Engines and the thread of the wire, which take
 * rwire::rx_lock and rsoft_dev::pending_lock, are stopped for its duration.
 */

#ifndef RSOFT_AUDIT_H
#define RSOFT_AUDIT_H

#include "base/rsoft.h"

/* 0, -EIO and a line that names the first invariant that does not hold, or -ENOMEM. */
int rsoft_dev_audit(struct rmem_dev *dev);

#endif /* RSOFT_AUDIT_H */
