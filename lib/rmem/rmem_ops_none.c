/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Functions for operations that a driver lacks, and the fast path of a number without a device.
 */

#include <errno.h>

#include <rte_eal.h>

#include "rmem_priv.h"

static int
none_cq_create(struct rmem_cq *cq, const struct rmem_cq_conf *conf)
{
	RTE_SET_USED(cq);
	RTE_SET_USED(conf);
	return -EOPNOTSUPP;
}

static int
none_cq_destroy(struct rmem_cq *cq)
{
	RTE_SET_USED(cq);
	return -EOPNOTSUPP;
}

static int
none_cq_stats_get(struct rmem_cq *cq, struct rmem_cq_stats *stats)
{
	RTE_SET_USED(cq);
	RTE_SET_USED(stats);
	return -EOPNOTSUPP;
}

static int
none_cq_resize(struct rmem_cq *cq, uint32_t nb_cqe)
{
	RTE_SET_USED(cq);
	RTE_SET_USED(nb_cqe);
	return -EOPNOTSUPP;
}

static int
none_dev_attr_get(struct rmem_dev *dev, struct rmem_dev_attr *attr)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(attr);
	return -EOPNOTSUPP;
}

static int
none_dev_clock_get(struct rmem_dev *dev, uint64_t *ticks)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(ticks);
	return -EOPNOTSUPP;
}

static int
none_rdma_cm_fault(struct rmem_dev *dev, enum rmem_rdma_cm_step step, uint32_t number,
		struct rmem_rdma_cm_fault *fault)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(step);
	RTE_SET_USED(number);
	RTE_SET_USED(fault);
	return -EOPNOTSUPP;
}

static int
none_dev_audit(struct rmem_dev *dev)
{
	RTE_SET_USED(dev);
	return -EOPNOTSUPP;
}

/* There is nothing more to print. */
static int
none_dev_dump(struct rmem_dev *dev, FILE *f)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(f);
	return 0;
}

static int
none_dev_gid_query(struct rmem_dev *dev, struct rmem_gid_entry *entry)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(entry);
	return -EOPNOTSUPP;
}

static int
none_dev_pkey_query(struct rmem_dev *dev, uint32_t port_num, uint32_t index, uint16_t *pkey)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(port_num);
	RTE_SET_USED(index);
	RTE_SET_USED(pkey);
	return -EOPNOTSUPP;
}

static int
none_dev_port_query(struct rmem_dev *dev, uint32_t port_num, struct rmem_port_attr *attr)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(port_num);
	RTE_SET_USED(attr);
	return -EOPNOTSUPP;
}

static int
none_dev_stats_get(struct rmem_dev *dev, struct rmem_dev_stats *stats)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(stats);
	return -EOPNOTSUPP;
}

static int
none_dev_stats_reset(struct rmem_dev *dev)
{
	RTE_SET_USED(dev);
	return -EOPNOTSUPP;
}

static int
none_fast_reg_mr_alloc(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	return -EOPNOTSUPP;
}

static int
none_mkey_alloc(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	return -EOPNOTSUPP;
}

static int
none_mr_dereg(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	return -EOPNOTSUPP;
}

static int
none_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter)
{
	RTE_SET_USED(mr);
	RTE_SET_USED(counter);
	return -EOPNOTSUPP;
}

static int
none_mr_enable(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	return -EOPNOTSUPP;
}

/* The class has already filled the values. */
static int
none_mr_query(struct rmem_mr *mr, struct rmem_mr_info *info)
{
	RTE_SET_USED(mr);
	RTE_SET_USED(info);
	return 0;
}

static int
none_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	RTE_SET_USED(mr);
	RTE_SET_USED(attr);
	return -EOPNOTSUPP;
}

static int
none_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result)
{
	RTE_SET_USED(mr);
	RTE_SET_USED(flags);
	RTE_SET_USED(pd);
	RTE_SET_USED(addr);
	RTE_SET_USED(length);
	RTE_SET_USED(access);
	RTE_SET_USED(result);
	return -EOPNOTSUPP;
}

static int
none_mr_share(struct rmem_mr *mr, struct rmem_mr *from)
{
	RTE_SET_USED(mr);
	RTE_SET_USED(from);
	return -EOPNOTSUPP;
}

static int
none_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge)
{
	RTE_SET_USED(pd);
	RTE_SET_USED(advice);
	RTE_SET_USED(flags);
	RTE_SET_USED(sg_list);
	RTE_SET_USED(num_sge);
	return -EOPNOTSUPP;
}

static int
none_mr_stats_get(struct rmem_mr *mr, struct rmem_mr_stats *stats)
{
	RTE_SET_USED(mr);
	RTE_SET_USED(stats);
	return -EOPNOTSUPP;
}

static int
none_mw_alloc(struct rmem_mw *mw)
{
	RTE_SET_USED(mw);
	return -EOPNOTSUPP;
}

static int
none_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(mw);
	RTE_SET_USED(bind);
	return -EOPNOTSUPP;
}

static int
none_mw_dealloc(struct rmem_mw *mw)
{
	RTE_SET_USED(mw);
	return -EOPNOTSUPP;
}

static int
none_page_list_alloc(struct rmem_fast_reg_page_list *page_list)
{
	RTE_SET_USED(page_list);
	return -EOPNOTSUPP;
}

static int
none_page_list_free(struct rmem_fast_reg_page_list *page_list)
{
	RTE_SET_USED(page_list);
	return -EOPNOTSUPP;
}

static int
none_pd_alloc(struct rmem_pd *pd)
{
	RTE_SET_USED(pd);
	return -EOPNOTSUPP;
}

static int
none_pd_dealloc(struct rmem_pd *pd)
{
	RTE_SET_USED(pd);
	return -EOPNOTSUPP;
}

static int
none_qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(conn);
	return -EOPNOTSUPP;
}

static int
none_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(conf);
	return -EOPNOTSUPP;
}

static int
none_qp_destroy(struct rmem_qp *qp)
{
	RTE_SET_USED(qp);
	return -EOPNOTSUPP;
}

static int
none_qp_attach_counter(struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(counter);
	RTE_SET_USED(counts);
	return -EOPNOTSUPP;
}

static int
none_qp_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(attr);
	RTE_SET_USED(mask);
	return -EOPNOTSUPP;
}

static int
none_qp_stats_get(struct rmem_qp *qp, struct rmem_dev_stats *stats)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(stats);
	return -EOPNOTSUPP;
}

static int
none_qp_query(struct rmem_qp *qp, struct rmem_qp_attr *attr)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(attr);
	return -EOPNOTSUPP;
}

static int
none_qp_reset(struct rmem_qp *qp)
{
	RTE_SET_USED(qp);
	return -EOPNOTSUPP;
}

static int
none_qp_set_error(struct rmem_qp *qp)
{
	RTE_SET_USED(qp);
	return -EOPNOTSUPP;
}

static int
none_qp_attach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(gid);
	RTE_SET_USED(lid);
	return -EOPNOTSUPP;
}

static int
none_qp_detach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(gid);
	RTE_SET_USED(lid);
	return -EOPNOTSUPP;
}

static int
none_ah_create(struct rmem_ah *ah, const struct rmem_ah_attr *attr)
{
	RTE_SET_USED(ah);
	RTE_SET_USED(attr);
	return -EOPNOTSUPP;
}

static int
none_ah_destroy(struct rmem_ah *ah)
{
	RTE_SET_USED(ah);
	return -EOPNOTSUPP;
}

static int
none_srq_create(struct rmem_srq *srq, const struct rmem_srq_conf *conf)
{
	RTE_SET_USED(srq);
	RTE_SET_USED(conf);
	return -EOPNOTSUPP;
}

static int
none_srq_destroy(struct rmem_srq *srq)
{
	RTE_SET_USED(srq);
	return -EOPNOTSUPP;
}

static int
none_srq_modify(struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask)
{
	RTE_SET_USED(srq);
	RTE_SET_USED(attr);
	RTE_SET_USED(mask);
	return -EOPNOTSUPP;
}

static int
none_srq_query(struct rmem_srq *srq, struct rmem_srq_attr *attr)
{
	RTE_SET_USED(srq);
	RTE_SET_USED(attr);
	return -EOPNOTSUPP;
}

/* For devices without SRQs. */
static int
unsupported_srq_post_recv(struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(srq);
	RTE_SET_USED(wr);
	RTE_SET_USED(nb_wr);
	return -EOPNOTSUPP;
}

#define FILL(ops, op)                                                                              \
	do {                                                                                       \
		if ((ops)->op == NULL)                                                             \
			(ops)->op = none_##op;                                                     \
	} while (0)

/* Use the operation of the class. */
#define FILL_OWN(ops, op)                                                                          \
	do {                                                                                       \
		if ((ops)->op == NULL)                                                             \
			(ops)->op = rmem_own_##op;                                                 \
	} while (0)

static void
fill_qp(struct rmem_dev_ops *ops)
{
	FILL(ops, qp_attach_counter);
	FILL(ops, qp_attach_mcast);
	FILL(ops, qp_connect);
	FILL(ops, qp_create);
	FILL(ops, qp_destroy);
	FILL(ops, qp_detach_mcast);
	FILL(ops, qp_modify);
	FILL(ops, qp_query);
	FILL(ops, qp_reset);
	FILL(ops, qp_set_error);
	FILL(ops, qp_stats_get);
}

void
rmem_ops_none_fill(struct rmem_driver *driver)
{
	struct rmem_dev_ops *ops = &driver->ops;

	FILL(ops, ah_create);
	FILL(ops, ah_destroy);
	FILL_OWN(ops, comp_channel_create);
	FILL_OWN(ops, comp_channel_destroy);
	FILL_OWN(ops, comp_channel_get_event);
	FILL_OWN(ops, cq_modify);
	FILL_OWN(ops, cq_req_notify);
	FILL(ops, cq_create);
	FILL(ops, cq_destroy);
	FILL(ops, cq_resize);
	FILL(ops, cq_stats_get);
	FILL(ops, dev_attr_get);
	FILL(ops, dev_audit);
	FILL(ops, dev_clock_get);
	FILL(ops, dev_dump);
	FILL(ops, dev_gid_query);
	FILL(ops, dev_pkey_query);
	FILL(ops, dev_port_query);
	FILL(ops, dev_stats_get);
	FILL(ops, dev_stats_reset);
	FILL(ops, fast_reg_mr_alloc);
	FILL(ops, mkey_alloc);
	FILL(ops, mr_advise);
	FILL(ops, mr_dereg);
	FILL(ops, mr_bind_counter);
	FILL(ops, mr_enable);
	FILL(ops, mr_query);
	FILL(ops, mr_reg);
	FILL(ops, mr_rereg);
	FILL(ops, mr_share);
	FILL(ops, mr_stats_get);
	FILL(ops, mw_alloc);
	FILL(ops, mw_bind);
	FILL(ops, mw_dealloc);
	FILL(ops, rdma_cm_fault);
	FILL(ops, page_list_alloc);
	FILL(ops, page_list_free);
	FILL(ops, pd_alloc);
	FILL(ops, pd_dealloc);
	fill_qp(ops);
	FILL(ops, srq_create);
	FILL(ops, srq_destroy);
	FILL(ops, srq_modify);
	FILL(ops, srq_query);
	if (driver->fp.srq_post_recv == NULL)
		driver->fp.srq_post_recv = unsupported_srq_post_recv;
}

/* Error of a number without a device: it was closed, has failed, or belongs to the primary. */
static int
no_device(void)
{
	return rmem_process_is_child() || rte_eal_process_type() == RTE_PROC_SECONDARY ? -EOPNOTSUPP
										       : -ENODEV;
}

static int
none_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(wr);
	RTE_SET_USED(nb_wr);
	return no_device();
}

static int
none_post_recv(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(wr);
	RTE_SET_USED(nb_wr);
	return no_device();
}

static int
none_srq_post_recv(struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(srq);
	RTE_SET_USED(wr);
	RTE_SET_USED(nb_wr);
	return no_device();
}

static int
none_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	RTE_SET_USED(cq);
	RTE_SET_USED(wc);
	RTE_SET_USED(nb_wc);
	return no_device();
}

const struct rmem_fp_ops rmem_fp_none = {
		.post_send = none_post_send,
		.post_recv = none_post_recv,
		.srq_post_recv = none_srq_post_recv,
		.poll_cq = none_poll_cq,
};
