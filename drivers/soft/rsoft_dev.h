/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The parser of arguments, and functions of other files that are in the operations of
 * rsoft_dev.c. */

#ifndef RSOFT_DEV_H
#define RSOFT_DEV_H

#include "base/rsoft.h"

/*
 * Parse "key=value,...", or NULL for the defaults; doc/driver_soft.md lists the arguments. Return
 * 0, -EINVAL with a log line, or -ENOMEM.
 */
int rsoft_args_parse(const char *str, struct rsoft_args *args);

/* rsoft_attr.c */
int rsoft_attr_get(struct rmem_dev *dev, struct rmem_dev_attr *attr);
int rsoft_attr_clock(struct rmem_dev *dev, uint64_t *ticks);
int rsoft_attr_gid(struct rmem_dev *dev, struct rmem_gid_entry *entry);
int rsoft_attr_pkey(struct rmem_dev *dev, uint32_t port_num, uint32_t index, uint16_t *pkey);
int rsoft_attr_port(struct rmem_dev *dev, uint32_t port_num, struct rmem_port_attr *attr);

/* rsoft_audit.c: 0, -EIO and a log line that names the first violated invariant, or -ENOMEM. */
int rsoft_audit(struct rmem_dev *dev);

/* rsoft_mcast.c */
int rsoft_qp_attach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);
int rsoft_qp_detach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);

/* rsoft_mp.c: for devices whose QPs are claimed by secondary processes of DPDK. */
extern const struct rmem_mp_ops rsoft_mp_ops;

/* rsoft_thread_check.c: for devices with sanitize=1. rsoft_post_bind_mw() is for all devices. */
extern const struct rmem_fp_ops rsoft_thread_check_fp;
int rsoft_thread_check_bind_mw(
		struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);

/* rsoft_chaos_fp.c: for devices with chaos=, also together with sanitize=1. */
extern const struct rmem_fp_ops rsoft_chaos_fp;

/* rsoft_chaos_call.c: calls of the same name that may fail by a rule of chaos=. */
int rsoft_chaos_ah_create(struct rmem_ah *ah, const struct rmem_ah_attr *attr);
int rsoft_chaos_cq_create(struct rmem_cq *cq, const struct rmem_cq_conf *conf);
int rsoft_chaos_cq_destroy(struct rmem_cq *cq);
int rsoft_chaos_cq_resize(struct rmem_cq *cq, uint32_t nb_cqe);
int rsoft_chaos_fast_reg_mr_alloc(struct rmem_mr *mr);
int rsoft_chaos_mkey_alloc(struct rmem_mr *mr);
int rsoft_chaos_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr);
int rsoft_chaos_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr,
		size_t length, uint32_t access, enum rmem_rereg_result *result);
int rsoft_chaos_mw_alloc(struct rmem_mw *mw);
int rsoft_chaos_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf);
int rsoft_chaos_srq_create(struct rmem_srq *srq, const struct rmem_srq_conf *conf);
int rsoft_chaos_srq_modify(struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask);
int rsoft_chaos_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask);
int rsoft_chaos_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn);
int rsoft_chaos_rdma_cm_fault(struct rmem_dev *dev, enum rmem_rdma_cm_step step, uint32_t number,
		struct rmem_rdma_cm_fault *fault);

#endif /* RSOFT_DEV_H */
