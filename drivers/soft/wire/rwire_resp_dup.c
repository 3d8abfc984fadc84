/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The responder: requests that arrive again. */

#include "../queue/rsoft_xrc.h"
#include "rwire.h"

/*
 * A duplicate READ is executed again (IBTA 9.7.4.5.1), with the current contents of the memory. Its
 * range of PSNs may differ from the first request, because a requester continues with the first
 * missing packet.
 */
static void
resp_duplicate_read(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	uint32_t nb_psn = rwire_nb_pkts(pkt->dma_len, q->mtu);
	struct rwire_reply reply = {.opcode = pkt->opcode,
			.psn = pkt->psn,
			.nb_psn = nb_psn,
			.rkey = pkt->rkey,
			.length = pkt->dma_len,
			.pd = q->qp->pd,
			.srqn = pkt->srqn,
			.addr = pkt->addr};
	const struct rsoft_srq *srq;

	/* Its responses must not reach the PSN of a request that was not executed yet. */
	if (pkt->dma_len > q->qp->max_msg_size ||
			nb_psn > (uint32_t)rwire_psn_diff(q->rsp.psn, pkt->psn) ||
			(q->qp->access & RMEM_ACCESS_REMOTE_READ) == 0)
		return;
	if (q->service == RWIRE_XRC) {
		/* Don't select the SRQ: a message to another SRQ may be in progress. */
		srq = rsoft_xrc_find(q->qp, pkt->srqn);
		reply.is_away = srq == NULL;
		if (srq != NULL)
			reply.pd = srq->owner.pd;
		else if (!rsoft_xrc_is_shared(q->qp))
			return;
	}
	rwire_reply_dup(q, &reply);
}

void
rwire_resp_duplicate(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	struct rwire_rsp *rsp = &q->rsp;
	uint32_t i;

	RWIRE_COUNT(q->wire->stats.duplicates);
	if (pkt->info & (RWIRE_IS_SEND | RWIRE_IS_WRITE)) {
		/* A pending acknowledgement, or NAK, answers it. */
		if (!rsp->has_ack)
			rwire_reply_ack(q, rsp->done_psn, RWIRE_AETH_ACK);
		return;
	}
	if (pkt->opcode == RWIRE_READ_REQUEST) {
		resp_duplicate_read(q, pkt);
		return;
	}
	/* An atomic or an ATOMIC_WRITE must not be executed again. */
	for (i = 1; i <= RTE_MIN(rsp->reply_tail, (uint32_t)RWIRE_MAX_RD_ATOMIC); i++) {
		const struct rwire_reply *reply =
				&rsp->reply[(rsp->reply_tail - i) % RWIRE_MAX_RD_ATOMIC];

		if (reply->psn == pkt->psn && reply->opcode == pkt->opcode) {
			rwire_reply_dup(q, reply);
			return;
		}
	}
}
