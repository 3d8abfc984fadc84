/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Multicast: the operations of the driver. */

#ifndef RSOFT_MCAST_H
#define RSOFT_MCAST_H

#include "base/rsoft.h"

int rsoft_qp_attach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);
int rsoft_qp_detach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);

#endif /* RSOFT_MCAST_H */
