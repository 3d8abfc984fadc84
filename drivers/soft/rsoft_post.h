/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The doorbell: where send requests are executed, and when. */

#ifndef RSOFT_POST_H
#define RSOFT_POST_H

#include <stdbool.h>

#include "rsoft.h"

int rsoft_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr);

/* rmem_mw_bind(): the class has checked it. */
int rsoft_post_bind_mw(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);

/*
 * Receive from the wire, and try all QPs of the device that had to wait. Returns whether the wire
 * has packets left to send.
 */
bool rsoft_post_progress(struct rsoft_dev *dev);

/* Execute queued requests, up to one that must wait. For the holder of sq.lock, or the engine. */
void rsoft_post_drain(struct rsoft_qp *qp, unsigned int lcore);

/* Drop queued requests and the wait of the head. No other thread uses the queue. */
void rsoft_post_drop(struct rsoft_qp *qp);

#endif /* RSOFT_POST_H */
