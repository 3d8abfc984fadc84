/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared by all probes: the QP connected to itself, posting one request and its completion. */

#include <string.h>

#include <rte_cycles.h>

#include "rverbs_probe.h"

#define RVERBS_PROBE_SECONDS 10

int
rverbs_probe_wait(const struct rverbs_probe *probe, struct ibv_wc *wc)
{
	uint64_t end = rte_get_timer_cycles() + RVERBS_PROBE_SECONDS * rte_get_timer_hz();
	int n;

	do {
		n = ibv_poll_cq(probe->cq, 1, wc);
	} while (n == 0 && rte_get_timer_cycles() < end);
	return n == 1 ? (int)wc->status : -1;
}

/* Uses ibv_post_send(), which every QP supports. */
int
rverbs_probe_run_wr(const struct rverbs_probe *probe, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(probe->qp, wr, &bad) != 0)
		return -1;
	return rverbs_probe_wait(probe, &wc);
}

void
rverbs_probe_connect(struct rverbs_probe *probe)
{
	struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct rverbs_dev *dev = probe->dev;
	const char *what;

	if (probe->is_connected) {
		probe->is_connected = false;
		probe->connect_err = ibv_modify_qp(probe->qp, &reset, IBV_QP_STATE);
		if (probe->connect_err != 0)
			return;
	}
	memcpy(conn.remote.gid, dev->port.gid.raw, sizeof(conn.remote.gid));
	conn.remote.qp_num = probe->qp->qp_num;
	conn.remote.lid = dev->port.lid;
	conn.remote.mtu = dev->port.mtu;
	probe->connect_err = rverbs_ibv_connect(
			dev, probe->qp, dev->access & RMEM_ACCESS_REMOTE, 0, &conn, &what);
	probe->is_connected = probe->connect_err == 0;
}
