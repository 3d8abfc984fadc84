/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Queue pairs: lifetime, state, and connections. */

#ifndef RSOFT_QP_H
#define RSOFT_QP_H

#include <stdbool.h>

#include "base/rsoft.h"

int rsoft_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf);
/* Give a QP, which no other thread uses, another number. */
void rsoft_qp_renumber(struct rsoft_qp *qp);
int rsoft_qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn);
int rsoft_qp_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask);
int rsoft_qp_query(struct rmem_qp *qp, struct rmem_qp_attr *attr);
int rsoft_qp_set_error(struct rmem_qp *qp);
int rsoft_qp_reset(struct rmem_qp *qp);
int rsoft_qp_destroy(struct rmem_qp *qp);

#endif /* RSOFT_QP_H */
