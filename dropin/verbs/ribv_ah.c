/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <string.h>

#include "ribv.h"

#define QPN_MASK 0xffffffu

/* Number of address handles, including those being created; limited to RIBV_MAX_AHS. */
static uint32_t nb_ahs;

static bool
take_one(void)
{
	if (__atomic_fetch_add(&nb_ahs, 1, __ATOMIC_RELAXED) < RIBV_MAX_AHS)
		return true;
	__atomic_fetch_sub(&nb_ahs, 1, __ATOMIC_RELAXED);
	return false;
}

static void
ah_release(struct ribv_ah *ah)
{
	if (ah != NULL)
		ribv_leave(ah);
	__atomic_fetch_sub(&nb_ahs, 1, __ATOMIC_RELAXED);
}

void
ribv_ah_attr(const struct ibv_ah_attr *ibv, struct rmem_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->is_global = ibv->is_global;
	attr->dlid = ibv->dlid;
	attr->sl = ibv->sl;
	attr->src_path_bits = ibv->src_path_bits;
	attr->static_rate = ibv->static_rate;
	attr->port_num = ibv->port_num;
	if (ibv->is_global == 0)
		return;
	attr->flow_label = ibv->grh.flow_label;
	attr->sgid_index = ibv->grh.sgid_index;
	attr->hop_limit = ibv->grh.hop_limit;
	attr->traffic_class = ibv->grh.traffic_class;
	memcpy(attr->dgid, ibv->grh.dgid.raw, sizeof(attr->dgid));
}

void
ribv_ah_attr_back(const struct rmem_ah_attr *attr, struct ibv_ah_attr *ibv)
{
	memset(ibv, 0, sizeof(*ibv));
	ibv->is_global = attr->is_global;
	ibv->dlid = attr->dlid;
	ibv->sl = attr->sl;
	ibv->src_path_bits = attr->src_path_bits;
	ibv->static_rate = attr->static_rate;
	ibv->port_num = attr->port_num;
	ibv->grh.flow_label = attr->flow_label;
	ibv->grh.sgid_index = attr->sgid_index;
	ibv->grh.hop_limit = attr->hop_limit;
	ibv->grh.traffic_class = attr->traffic_class;
	memcpy(ibv->grh.dgid.raw, attr->dgid, sizeof(attr->dgid));
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct rmem_ah_attr own;
	struct ribv_ah *ah;
	int ret;

	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_create_ah)(pd, attr);
	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	if (attr == NULL)
		return ribv_fail(EINVAL);
	if (!take_one())
		return ribv_fail(ENOMEM);
	ah = ribv_new();
	if (ah == NULL) {
		ah_release(NULL);
		return NULL;
	}
	ribv_ah_attr(attr, &own);
	ret = rmem_ah_create(((struct ribv_pd *)pd)->pd, &own, &ah->ah);
	if (ret != 0) {
		ah_release(ah);
		return ribv_fail(ribv_errno(ret));
	}
	ah->pd = (struct ribv_pd *)pd;
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->ibv.handle = ribv_enter(ah, RIBV_AH);
	return &ah->ibv;
}

int
ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
		struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct rmem_ah_attr own;
	struct rmem_wc rmem_wc = {.flags = RMEM_WC_GRH};
	int ret;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_init_ah_from_wc)(context, port_num, wc, grh, attr);
	if (!ribv_is_context(context))
		return ribv_minus_one(ENOENT);
	if (wc == NULL || attr == NULL)
		return ribv_minus_one(EINVAL);
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	if ((wc->wc_flags & IBV_WC_GRH) == 0)
		return 0;
	ret = rmem_ah_attr_from_wc(ribv_dev_of(context), port_num, &rmem_wc, grh, &own);
	if (ret != 0)
		return ribv_minus_one(ribv_errno(ret));
	attr->is_global = 1;
	attr->grh.flow_label = own.flow_label;
	attr->grh.traffic_class = own.traffic_class;
	attr->grh.hop_limit = own.hop_limit;
	attr->grh.sgid_index = own.sgid_index;
	memcpy(attr->grh.dgid.raw, own.dgid, sizeof(own.dgid));
	return 0;
}

struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr = {.port_num = port_num};

	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_create_ah_from_wc)(pd, wc, grh, port_num);
	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	int ret;

	if (ribv_is_real(ah))
		return RIBV_NEXT(ibv_destroy_ah)(ah);
	if (!ribv_is_ah(ah))
		return ribv_leave_inherited(ah, RIBV_AH);
	ret = rmem_ah_destroy(((struct ribv_ah *)ah)->ah);
	if (ret == 0)
		ah_release((struct ribv_ah *)ah);
	return -ret;
}

int
ribv_ud_wr(const struct ribv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey,
		struct rmem_send_wr *wr)
{
	if (!ribv_may_send_to(ah) || ((struct ribv_ah *)ah)->pd->context != qp->pd->context)
		return EINVAL;
	wr->ud.ah = ((struct ribv_ah *)ah)->ah;
	wr->ud.remote_qpn = remote_qpn & QPN_MASK; /* the field of the packet has 24 bits */
	wr->ud.remote_qkey = remote_qkey;
	return 0;
}
