/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC domains, and SRQs of XRC. With a wire, processes share the domain of a file, and the numbers
 * of its SRQs (wire/rwire_xrc.h); without, it is of one device.
 */

#ifndef RSOFT_XRCD_H
#define RSOFT_XRCD_H

#include "base/rsoft.h"

extern const struct rmem_xrc_ops rsoft_xrcd_ops;

/* Create and destroy SRQs, of XRC or not. */
int rsoft_xrcd_srq_create(struct rmem_srq *srq, const struct rmem_srq_conf *conf);
int rsoft_xrcd_srq_destroy(struct rmem_srq *srq);

#endif /* RSOFT_XRCD_H */
