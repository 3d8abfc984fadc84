/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Control calls of a device with chaos=: rules may let them fail before they have changed anything;
 * otherwise they call the ordinary functions.
 */

#include "chaos/rsoft_chaos.h"
#include "mem/rsoft_mr.h"
#include "mem/rsoft_mw.h"
#include "queue/rsoft_cq.h"
#include "queue/rsoft_srq.h"
#include "queue/rsoft_ud.h"
#include "rsoft_dev.h"
#include "rsoft_qp.h"
#include "rsoft_xrcd.h"

/* Return 0, or the errno of an injected failure. */
static int
check(const struct rmem_obj *obj, enum rsoft_chaos_call call)
{
	struct rsoft_chaos *chaos = rsoft_dev_of(obj)->chaos;

	return chaos != NULL ? rsoft_chaos_call(chaos, call) : 0;
}

int
rsoft_chaos_ah_create(struct rmem_ah *ah, const struct rmem_ah_attr *attr)
{
	int ret = check(&ah->obj, RSOFT_CHAOS_AH_CREATE);

	return ret != 0 ? ret : rsoft_ah_create(ah, attr);
}

int
rsoft_chaos_cq_create(struct rmem_cq *cq, const struct rmem_cq_conf *conf)
{
	struct rsoft_chaos *chaos = rsoft_dev_of(&cq->obj)->chaos;
	int ret = check(&cq->obj, RSOFT_CHAOS_CQ_CREATE);

	if (ret == 0)
		ret = rsoft_cq_create(cq, conf);
	if (ret != 0 || chaos == NULL)
		return ret;
	ret = rsoft_chaos_cq_init(chaos, &rsoft_cq_of(cq)->chaos);
	if (ret != 0)
		rsoft_cq_destroy(cq);
	return ret;
}

int
rsoft_chaos_cq_destroy(struct rmem_cq *cq)
{
	rsoft_chaos_cq_fini(rsoft_cq_of(cq)->chaos);
	return rsoft_cq_destroy(cq);
}

int
rsoft_chaos_cq_resize(struct rmem_cq *cq, uint32_t nb_cqe)
{
	int ret = check(&cq->obj, RSOFT_CHAOS_CQ_RESIZE);

	return ret != 0 ? ret : rsoft_cq_resize(cq, nb_cqe);
}

int
rsoft_chaos_fast_reg_mr_alloc(struct rmem_mr *mr)
{
	int ret = check(&mr->obj, RSOFT_CHAOS_FAST_REG_MR_ALLOC);

	return ret != 0 ? ret : rsoft_fast_reg_mr_alloc(mr);
}

int
rsoft_chaos_mkey_alloc(struct rmem_mr *mr)
{
	int ret = check(&mr->obj, RSOFT_CHAOS_MKEY_ALLOC);

	return ret != 0 ? ret : rsoft_mkey_alloc(mr);
}

int
rsoft_chaos_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	int ret = check(&mr->obj, RSOFT_CHAOS_MR_REG);

	return ret != 0 ? ret : rsoft_mr_reg(mr, attr);
}

int
rsoft_chaos_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr,
		size_t length, uint32_t access, enum rmem_rereg_result *result)
{
	int ret = check(&mr->obj, RSOFT_CHAOS_MR_REREG);

	return ret != 0 ? ret : rsoft_mr_rereg(mr, flags, pd, addr, length, access, result);
}

int
rsoft_chaos_mw_alloc(struct rmem_mw *mw)
{
	int ret = check(&mw->obj, RSOFT_CHAOS_MW_ALLOC);

	return ret != 0 ? ret : rsoft_mw_alloc(mw);
}

int
rsoft_chaos_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf)
{
	int ret = check(&qp->obj, RSOFT_CHAOS_QP_CREATE);

	return ret != 0 ? ret : rsoft_xrcd_qp_create(qp, conf);
}

int
rsoft_chaos_srq_create(struct rmem_srq *srq, const struct rmem_srq_conf *conf)
{
	int ret = check(&srq->obj, RSOFT_CHAOS_SRQ_CREATE);

	return ret != 0 ? ret : rsoft_xrcd_srq_create(srq, conf);
}

int
rsoft_chaos_srq_modify(struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask)
{
	int ret = check(&srq->obj, RSOFT_CHAOS_SRQ_MODIFY);

	return ret != 0 ? ret : rsoft_srq_modify(srq, attr, mask);
}

/* Count calls of the QP, not of the device. */
static int
check_qp(const struct rmem_qp *base)
{
	const struct rsoft_qp *qp = (const struct rsoft_qp *)base;

	return qp->chaos != NULL ? rsoft_chaos_qp_modify(qp->chaos) : 0;
}

int
rsoft_chaos_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	int ret = check_qp(qp);

	return ret != 0 ? ret : rsoft_qp_modify(qp, attr, mask);
}

int
rsoft_chaos_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn)
{
	int ret = check_qp(qp);

	return ret != 0 ? ret : rsoft_qp_connect(qp, conn);
}

int
rsoft_chaos_rdma_cm_fault(struct rmem_dev *base, enum rmem_rdma_cm_step step, uint32_t number,
		struct rmem_rdma_cm_fault *fault)
{
	struct rsoft_dev *dev = rmem_dev_drv(base)->priv;

	return dev->chaos != NULL ? rsoft_chaos_rdma_cm(dev->chaos, step, number, fault) : 0;
}
