/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The entries of the fast path. */

#ifndef RSOFT_POST_H
#define RSOFT_POST_H

#include <stdbool.h>

#include "rsoft.h"

int rsoft_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr);
int rsoft_post_recv(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr);
int rsoft_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc);

/* rmem_mw_bind(): the class has checked it. */
int rsoft_post_bind_mw(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);

/*
 * Receive from the wire, and retry all pending QPs of the device. Returns whether the wire
 * had packets, or has packets left to send.
 */
bool rsoft_post_progress(struct rsoft_dev *dev);

/* Execute queued requests, up to one that must wait. For the holder of sq.lock, or the engine. */
void rsoft_post_drain(struct rsoft_qp *qp, unsigned int lcore);

#endif /* RSOFT_POST_H */
