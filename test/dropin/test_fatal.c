/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program, without any call of rmem, whose device fails: as after the reset of a NIC, its
 * requests are flushed, further ones are refused, and it can release all objects.
 */

#include "own_qp.h"

static char buf[64];

static void
check_failed(const struct objects *own)
{
	struct ibv_recv_wr *bad, recv = {.wr_id = 8};
	struct ibv_async_event event;
	struct ibv_wc wc = {.wr_id = 0};

	HOLDS(ibv_get_async_event(own->context, &event) == 0);
	HOLDS(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	HOLDS(ibv_poll_cq(own->cq, 1, &wc) == 1 && wc.wr_id == 7 &&
			wc.status == IBV_WC_WR_FLUSH_ERR);
	HOLDS(ibv_poll_cq(own->cq, 1, &wc) < 0);
	HOLDS(post_write(own->qp, own->mr, 7) == ENODEV);
	HOLDS(ibv_post_recv(own->qp, &recv, &bad) == ENODEV);
	errno = 0;
	HOLDS(ibv_create_cq(own->context, 1, NULL, NULL, 0) == NULL && errno == EIO);
	errno = 0;
	HOLDS(ibv_alloc_pd(own->context) == NULL && errno == EIO);
}

int
main(void)
{
	struct objects own;

	/* It fails instead of sending its first packet; the peer is a QP of this process. */
	HOLDS(setenv("RMEM_IBV", "soft0,loop=1,fault=fatal:0", 1) == 0);
	own = open_objects(buf, sizeof(buf), 4);
	HOLDS(post_write(own.qp, own.mr, 7) == 0);
	check_failed(&own);
	close_objects(&own);
	return 0;
}
