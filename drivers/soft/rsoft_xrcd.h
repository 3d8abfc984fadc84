/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC domains, SRQs of XRC, and XRC_RECV QPs. With a wire, processes share the domain of a file,
 * the numbers of its SRQs (wire/rwire_xrc.h), and its QPs (wire/rwire_xrc_qp.h); without, it is of
 * one device.
 */

#ifndef RSOFT_XRCD_H
#define RSOFT_XRCD_H

#include "base/rsoft.h"

extern const struct rmem_xrc_ops rsoft_xrcd_ops;

/* Create and destroy SRQs, of XRC or not. */
int rsoft_xrcd_srq_create(struct rmem_srq *srq, const struct rmem_srq_conf *conf);
int rsoft_xrcd_srq_destroy(struct rmem_srq *srq);

/* Create and destroy QPs of any type. */
int rsoft_xrcd_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf);
int rsoft_xrcd_qp_destroy(struct rmem_qp *qp);

#endif /* RSOFT_XRCD_H */
