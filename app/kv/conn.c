/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QPs and connections. Only this file depends on client and server sharing a process: between
 * hosts, librdmacm or TCP carry the address of the peer's QP.
 */

#include "kv.h"

int
kv_qp_create(struct rmem_dev *dev, struct rmem_pd *pd, uint32_t access, struct rmem_cq **cq,
		struct rmem_qp **qp)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = KV_SENDS + KV_RECVS};
	struct rmem_qp_conf qp_conf = {
			.max_send_wr = KV_SENDS,
			.max_recv_wr = KV_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = sizeof(struct kv_answer),
			.type = RMEM_QPT_RC,
			.access = access,
	};
	int ret;

	ret = rmem_cq_create(dev, &cq_conf, cq);
	if (ret != 0)
		return ret;
	qp_conf.send_cq = qp_conf.recv_cq = *cq;
	return rmem_qp_create(pd, &qp_conf, qp);
}

void
kv_qp_destroy(struct rmem_cq *cq, struct rmem_qp *qp)
{
	rmem_qp_destroy(qp);
	rmem_cq_destroy(cq);
}

int
kv_qp_connect(struct rmem_qp *qp, struct rmem_qp *peer)
{
	struct rmem_qp_conn conn = {
			.timeout = 14, /* 67 ms */
			.retry_cnt = 7,
			.rnr_retry = 7,
			.min_rnr_timer = 12, /* 0.64 ms */
	};
	struct rmem_qp_attr attr;
	int ret;

	ret = rmem_qp_query(peer, &attr);
	if (ret != 0)
		return ret;
	conn.remote = attr.addr;
	return rmem_qp_connect(qp, &conn);
}
