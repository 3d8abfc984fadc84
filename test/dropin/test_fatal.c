/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program, without any call of rmem, whose device fails: as after the reset of a NIC, its
 * requests are flushed, further ones are refused, and it can release all objects.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "connect_qp.h"
#include "open_device.h"
#include "post_write.h"

static char buf[64];

static struct ibv_qp *
create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
			.send_cq = cq,
			.recv_cq = cq,
			.sq_sig_all = 1,
			.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	HOLDS(qp != NULL);
	return qp;
}

static void
check_failed(struct ibv_context *context, struct ibv_cq *cq, struct ibv_qp *qp, struct ibv_mr *mr)
{
	struct ibv_recv_wr *bad, recv = {.wr_id = 8};
	struct ibv_async_event event;
	struct ibv_wc wc = {.wr_id = 0};

	HOLDS(ibv_get_async_event(context, &event) == 0);
	HOLDS(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	HOLDS(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == 7 && wc.status == IBV_WC_WR_FLUSH_ERR);
	HOLDS(ibv_poll_cq(cq, 1, &wc) < 0);
	HOLDS(post_write(qp, mr, 7) == ENODEV);
	HOLDS(ibv_post_recv(qp, &recv, &bad) == ENODEV);
	errno = 0;
	HOLDS(ibv_create_cq(context, 1, NULL, NULL, 0) == NULL && errno == EIO);
	errno = 0;
	HOLDS(ibv_alloc_pd(context) == NULL && errno == EIO);
}

int
main(void)
{
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	/* It fails instead of sending its first packet; the peer is a QP of this process. */
	HOLDS(setenv("RMEM_IBV", "soft0,loop=1,fault=fatal:0", 1) == 0);
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	HOLDS(mr != NULL && cq != NULL);
	qp = create_qp(pd, cq);
	connect_own(qp);
	HOLDS(post_write(qp, mr, 7) == 0);
	check_failed(context, cq, qp, mr);
	HOLDS(ibv_destroy_qp(qp) == 0);
	HOLDS(ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_dereg_mr(mr) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
	return 0;
}
