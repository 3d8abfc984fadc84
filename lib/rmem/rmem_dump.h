/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Names of objects, and dumps of their properties.
 */

#ifndef RMEM_DUMP_H
#define RMEM_DUMP_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_cq;
struct rmem_dm;
struct rmem_mr;
struct rmem_mw;
struct rmem_pd;
struct rmem_qp;
struct rmem_srq;

/**
 * Get the name of a PD.
 *
 * Control path. Safe to call from any thread.
 *
 * @param pd
 *   PD; NULL is allowed.
 *
 * @return
 *   rmem_pd_attr::name, valid while the PD exists; "" without one, and if pd is not a PD.
 */
const char *rmem_pd_name(const struct rmem_pd *pd);

/**
 * Print a PD: its properties, one in each line, as telemetry reports them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param pd
 *   Object to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, or NULL f.
 */
int rmem_pd_dump(const struct rmem_pd *pd, FILE *f);

/**
 * Get the name of device memory.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dm
 *   Device memory; NULL is allowed.
 *
 * @return
 *   rmem_dm_conf::name, valid while the object exists; "" without one, and if dm is not device
 *   memory.
 */
const char *rmem_dm_name(const struct rmem_dm *dm);

/**
 * Print device memory: its properties, one per line, as telemetry reports them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param dm
 *   Object to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not device memory, or NULL f.
 */
int rmem_dm_dump(const struct rmem_dm *dm, FILE *f);

/**
 * Get the name of an MR.
 *
 * Control path. Safe to call from any thread.
 *
 * @param mr
 *   MR; NULL is allowed.
 *
 * @return
 *   rmem_mr_attr::name, valid while the MR exists; "" without one, and if mr is not an MR.
 */
const char *rmem_mr_name(const struct rmem_mr *mr);

/**
 * Print an MR: its properties, one in each line, as telemetry reports them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param mr
 *   Object to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, or NULL f.
 */
int rmem_mr_dump(const struct rmem_mr *mr, FILE *f);

/**
 * Print a window: its properties, one in each line, as telemetry reports them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param mw
 *   Object to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a window, or NULL f.
 */
int rmem_mw_dump(const struct rmem_mw *mw, FILE *f);

/**
 * Get the name of a CQ.
 *
 * Control path. Safe to call from any thread.
 *
 * @param cq
 *   CQ; NULL is allowed.
 *
 * @return
 *   rmem_cq_conf::name, valid while the CQ exists; "" without one, and if cq is not a CQ.
 */
const char *rmem_cq_name(const struct rmem_cq *cq);

/**
 * Print a CQ: its properties, one in each line, as telemetry reports them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param cq
 *   Object to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a CQ, or NULL f.
 */
int rmem_cq_dump(const struct rmem_cq *cq, FILE *f);

/**
 * Get the name of an SRQ.
 *
 * Control path. Safe to call from any thread.
 *
 * @param srq
 *   SRQ; NULL is allowed.
 *
 * @return
 *   rmem_srq_conf::name, valid while the SRQ exists; "" without one, and if srq is not an SRQ.
 */
const char *rmem_srq_name(const struct rmem_srq *srq);

/**
 * Print an SRQ: its properties, one in each line, as telemetry reports them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param srq
 *   Object to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an SRQ, or NULL f.
 */
int rmem_srq_dump(const struct rmem_srq *srq, FILE *f);

/**
 * Get the name of a QP.
 *
 * Control path. Safe to call from any thread.
 *
 * @param qp
 *   QP; NULL is allowed.
 *
 * @return
 *   rmem_qp_conf::name, valid while the QP exists; "" without one, and if qp is not a QP.
 */
const char *rmem_qp_name(const struct rmem_qp *qp);

/**
 * Print a QP: its properties, one in each line, as telemetry reports them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param qp
 *   Object to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, or NULL f.
 */
int rmem_qp_dump(const struct rmem_qp *qp, FILE *f);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_DUMP_H */
