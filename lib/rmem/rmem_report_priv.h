/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Properties of objects of the class. Not installed.
 */

#ifndef RMEM_REPORT_PRIV_H
#define RMEM_REPORT_PRIV_H

#include <rmem_obj.h>
#include <rmem_telemetry.h>

/** Report a PD, MR, MW, CQ, SRQ or QP. */
void rmem_report_obj(struct rmem_report *out, const struct rmem_obj *obj);

/** Register the commands of objects, at the start of the program. */
void rmem_telemetry_obj_init(void);

#endif /* RMEM_REPORT_PRIV_H */
