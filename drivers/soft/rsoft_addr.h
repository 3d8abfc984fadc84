/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Addresses of QPs, and the devices and QPs of this process that have them. */

#ifndef RSOFT_ADDR_H
#define RSOFT_ADDR_H

#include "rsoft.h"

/* The address of a QP. */
void rsoft_addr_get(const struct rsoft_qp *qp, struct rmem_qp_addr *addr);

/* The device of an address; NULL when there is none. Under the domain's lock. */
struct rsoft_dev *rsoft_addr_dev(const struct rmem_qp_addr *addr);

/* The QP at an address; NULL when there is none. Under the domain's lock. */
struct rsoft_qp *rsoft_addr_qp(const struct rmem_qp_addr *addr);

#endif /* RSOFT_ADDR_H */
