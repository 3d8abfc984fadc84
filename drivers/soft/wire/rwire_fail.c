/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Injected failures of a QP and of the device: fault=fatal, and rmem-ctl. */

#include "../chaos/rsoft_chaos.h"
#include "../queue/rsoft_req.h"
#include "../queue/rsoft_rq.h"
#include "rwire.h"
#include "rwire_xrc.h"

void
rwire_fail_qp(struct rsoft_qp *qp, unsigned int lcore)
{
	struct rwire_qp *q;

	rsoft_rq_fail(qp);
	/* An XRC_RECV QP has no requests and no CQ. */
	if (qp->xrcd != 0)
		return;
	rte_ticketlock_lock(&qp->sq.lock);
	q = __atomic_load_n(&qp->wire, __ATOMIC_ACQUIRE);
	if (q != NULL)
		rwire_req_run(q, lcore, false);
	else if (qp->dev->nb_engines == 0)
		rsoft_req_drain(qp, lcore);
	rte_ticketlock_unlock(&qp->sq.lock);
}

void
rwire_fail_dev(struct rwire *wire, unsigned int lcore)
{
	struct rsoft_dev *dev = wire->dev;
	char text[RWIRE_ADDR_TEXT];
	struct rsoft_qp *qp;
	uint32_t i;

	RSOFT_LOG(ERR, "ip=%s: the device has failed (fault=fatal, or rmem-ctl)",
			rwire_addr_text(&wire->port->addr, text));
	if (dev->chaos != NULL)
		rsoft_chaos_fail(dev->chaos);
	/* A QP that is found is valid until the grace period of its release. */
	for (i = 0; i <= dev->qp_mask; i++) {
		qp = __atomic_load_n(&dev->qps[i], __ATOMIC_ACQUIRE);
		if (qp != NULL)
			rwire_fail_qp(qp, lcore);
	}
	rwire_xrc_in_fail(wire);
	rmem_dev_async_event(wire->base_dev, RMEM_ASYNC_DEVICE_FATAL, 0);
}
