/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The device with ip=host of the suite wire_host, and paths from it. */

#ifndef HOST_H
#define HOST_H

#include <stdint.h>

#include <rmem_dev.h>
#include <rmem_qp.h>

#include "soft/wire/codec/rwire_addr.h"

struct host_path {
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
};

extern struct rmem_dev *host_dev;
extern struct rwire_addr host_address; /* of it */

/* A LID of no device here, unless n is small. */
uint16_t host_other_lid(uint16_t n);

/* A QP that is connected to an address. */
void host_open_path(struct host_path *path, const struct rwire_addr *to);
void host_close_path(const struct host_path *path);

#endif /* HOST_H */
