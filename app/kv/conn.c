/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QPs, and the connection calls of the client. In one process the client connects both QPs; to
 * another process it connects with rmem_cm (conn_cm.c).
 */

#include <rte_pause.h>

#include "kv.h"

int
kv_qp_create(struct rmem_pd *pd, uint32_t access, struct rmem_cq **cq, struct rmem_qp **qp)
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

	ret = rmem_cq_create(rmem_pd_dev(pd), &cq_conf, cq);
	if (ret != 0)
		return ret;
	qp_conf.send_cq = qp_conf.recv_cq = *cq;
	return rmem_qp_create(pd, &qp_conf, qp);
}

void
kv_qp_destroy(struct rmem_cq **cq, struct rmem_qp **qp)
{
	rmem_qp_destroy(*qp);
	rmem_cq_destroy(*cq);
	*qp = NULL;
	*cq = NULL;
}

/* Connect a QP that is in RESET to its peer in this process. */
static int
connect_qp(struct rmem_qp *qp, struct rmem_qp *peer)
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

/* Wait for a state that is neither of two: the server's lcore ends these soon. */
static int
leave(const struct kv_conn *conn, int state, int other)
{
	int now;

	while ((now = kv_conn_state(conn)) == state || now == other)
		rte_pause();
	return now;
}

static int
connect_here(struct kv_conn *conn, struct rmem_qp *qp)
{
	int ret;

	if (leave(conn, KV_LOST, KV_UP) != KV_OFFERED)
		return -ECONNREFUSED;
	ret = connect_qp(conn->server_qp, qp);
	if (ret == 0)
		ret = connect_qp(qp, conn->server_qp);
	if (ret != 0) {
		kv_conn_move(conn, KV_OFFERED, KV_LOST);
		return ret;
	}
	conn->qps.server_qp = rte_cpu_to_be_32(conn->server_qp->qp_num);
	conn->qps.client_qp = rte_cpu_to_be_32(qp->qp_num);
	kv_conn_move(conn, KV_OFFERED, KV_MADE);
	leave(conn, KV_MADE, KV_MADE);
	return 0;
}

int
kv_conn_connect(const struct kv_conf *conf, struct kv_conn *conn, struct rmem_qp *qp)
{
	int ret;

	if (conf->connect != NULL)
		return kv_cm_connect(conf, conn, qp);
	ret = connect_here(conn, qp);
	if (ret != 0)
		KV_ERR("no connection: %s", rte_strerror(-ret));
	return ret;
}

bool
kv_conn_is_up(const struct kv_conf *conf, struct kv_conn *conn)
{
	return conf->connect != NULL ? kv_cm_is_up(conn) : kv_conn_state(conn) == KV_UP;
}

void
kv_conn_lose(const struct kv_conf *conf, struct kv_conn *conn)
{
	if (conf->connect != NULL)
		kv_cm_close(conn);
	else
		kv_conn_move(conn, KV_UP, KV_LOST);
}

void
kv_conn_close(const struct kv_conf *conf, struct kv_conn *conn)
{
	if (conf->connect != NULL)
		kv_cm_close(conn);
	else
		kv_conn_set_closed(conn);
}
