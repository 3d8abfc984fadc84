/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Address handles, and their use by the requests of UD QPs.
 *
 * In verbs an AH must exist until requests posted with it have completed; in the class only until
 * the post returns. So an AH of libibverbs counts its users: the AH of the class, and the entries
 * of send queues from post to completion (rverbs_qp::ahs). The last user destroys it.
 *
 * Invariant: ahs[i] is the AH of the request in entry i of the ring, for entries from cons to prod.
 * It is written and released together with the entry.
 */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "rverbs_ud.h"

struct rverbs_path {
	struct ibv_ah *ibv;
	uint32_t nb_users; /* atomic */
};

void
rverbs_ah_attr(const struct rmem_ah_attr *attr, struct ibv_ah_attr *ibv)
{
	ibv->is_global = attr->is_global;
	ibv->dlid = attr->dlid;
	ibv->sl = attr->sl;
	ibv->src_path_bits = attr->src_path_bits;
	ibv->static_rate = attr->static_rate;
	ibv->port_num = attr->port_num;
	memcpy(ibv->grh.dgid.raw, attr->dgid, sizeof(attr->dgid));
	ibv->grh.flow_label = attr->flow_label;
	ibv->grh.sgid_index = attr->sgid_index;
	ibv->grh.hop_limit = attr->hop_limit;
	ibv->grh.traffic_class = attr->traffic_class;
}

int
rverbs_ah_create(struct rmem_ah *base, const struct rmem_ah_attr *attr)
{
	struct ibv_ah_attr ibv = {.is_global = 0};
	struct rverbs_path *path;

	path = rte_malloc("rverbs_path", sizeof(*path), 0);
	if (path == NULL) {
		RVERBS_LOG(ERR, "AH: no memory");
		return -ENOMEM;
	}
	rverbs_ah_attr(attr, &ibv);
	path->nb_users = 1;
	path->ibv = ibv_create_ah(rverbs_pd_of(base->pd)->ibv, &ibv);
	if (path->ibv == NULL) {
		rte_free(path);
		return rverbs_err_code(-1, RVERBS_ERR_RESIZE, "ibv_create_ah");
	}
	((struct rverbs_ah *)base)->path = path;
	return 0;
}

/* Release a user. 0, or -errno if it was the last one and the device refused: it remains one. */
static int
path_put(struct rverbs_path *path)
{
	int ret;

	if (__atomic_sub_fetch(&path->nb_users, 1, __ATOMIC_ACQ_REL) != 0)
		return 0;
	ret = rverbs_err_code(ibv_destroy_ah(path->ibv), RVERBS_ERR_RELEASE, "ibv_destroy_ah");
	if (ret == 0)
		rte_free(path);
	else
		path->nb_users = 1;
	return ret;
}

int
rverbs_ah_destroy(struct rmem_ah *base)
{
	return path_put(((struct rverbs_ah *)base)->path);
}

int
rverbs_qp_attach_mcast(struct rmem_qp *base, const uint8_t gid[16], uint16_t lid)
{
	union ibv_gid group;

	memcpy(group.raw, gid, sizeof(group.raw));
	return rverbs_err_code(ibv_attach_mcast(rverbs_qp_of(base)->ibv, &group, lid),
			RVERBS_ERR_MAKE, "ibv_attach_mcast");
}

int
rverbs_qp_detach_mcast(struct rmem_qp *base, const uint8_t gid[16], uint16_t lid)
{
	union ibv_gid group;

	memcpy(group.raw, gid, sizeof(group.raw));
	return rverbs_err_code(ibv_detach_mcast(rverbs_qp_of(base)->ibv, &group, lid),
			RVERBS_ERR_CHANGE, "ibv_detach_mcast");
}

int
rverbs_ud_create(struct rverbs_qp *qp)
{
	uint32_t size = qp->sq.mask + 1;

	qp->ahs = rte_zmalloc("rverbs_ahs", size * sizeof(struct rverbs_path *), 0);
	if (qp->ahs == NULL) {
		RVERBS_LOG(ERR, "queue: no memory: %u address handles", size);
		return -ENOMEM;
	}
	qp->windows_done = RVERBS_WINDOWS_NONE;
	qp->wc_flags |= IBV_WC_GRH;
	if (qp->qp.srq != NULL)
		__atomic_fetch_or(
				&rverbs_srq_of(qp->qp.srq)->wc_flags, IBV_WC_GRH, __ATOMIC_RELAXED);
	return 0;
}

void
rverbs_ud_fill(struct rverbs_qp *qp, struct ibv_send_wr *to, const struct rmem_send_wr *wr,
		uint32_t at)
{
	struct rverbs_path *path = ((struct rverbs_ah *)wr->ud.ah)->path;

	__atomic_add_fetch(&path->nb_users, 1, __ATOMIC_RELAXED);
	qp->ahs[at & qp->sq.mask] = path;
	to->wr.ud.ah = path->ibv;
	to->wr.ud.remote_qpn = wr->ud.remote_qpn;
	to->wr.ud.remote_qkey = wr->ud.remote_qkey;
}

/* An AH that the device refuses to destroy then is not released, which path_put() logs. */
void
rverbs_ud_release(struct rverbs_qp *qp, uint32_t from, uint32_t to)
{
	for (; from != to; from++)
		(void)path_put(qp->ahs[from & qp->sq.mask]);
}
