/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The requester half: execution of the send queue. */

#ifndef RSOFT_REQ_H
#define RSOFT_REQ_H

#include <stdbool.h>

#include "../base/rsoft.h"

/* Whether an atomic has one SGE of a word, which RMEM_QP_LATE_ERRORS leaves to its execution. */
static inline bool
rsoft_req_is_word(const struct rmem_send_wr *wr)
{
	return wr->num_sge == 1 && wr->sg_list[0].length == sizeof(uint64_t);
}

/*
 * Execute n requests, stride bytes apart, in the queue or in the caller's array, until one must
 * wait. Returns their number; the following request, if any, is the head that waits. Under sq.lock
 * or by the engine, between rsoft_grace_enter() and rsoft_grace_leave().
 */
uint32_t rsoft_req_exec(struct rsoft_qp *qp, unsigned int lcore, bool is_queued, const void *wrs,
		size_t stride, uint32_t n);

/* Execute the queued requests up to one that must wait. The same conditions. */
void rsoft_req_drain(struct rsoft_qp *qp, unsigned int lcore);

/* Start the invalidation of a READ_WITH_INV, whose data was copied. False: it is refused. */
bool rsoft_req_start_inv(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t *vendor_err);

#endif /* RSOFT_REQ_H */
