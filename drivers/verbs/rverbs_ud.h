/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Address handles and QPs of UD; see rverbs_ud.c. */

#ifndef RVERBS_UD_H
#define RVERBS_UD_H

#include "rverbs.h"

struct rverbs_path;

struct rverbs_ah {
	struct rmem_ah ah;
	struct rverbs_path *path;
};

int rverbs_ah_create(struct rmem_ah *ah, const struct rmem_ah_attr *attr);
int rverbs_ah_destroy(struct rmem_ah *ah);
int rverbs_qp_attach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);
int rverbs_qp_detach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid);
/* Convert a path. */
void rverbs_ah_attr(const struct rmem_ah_attr *attr, struct ibv_ah_attr *ibv);

/* Allocate qp->ahs, for a QP of UD; its SRQ has receives of UD from then on. */
int rverbs_ud_create(struct rverbs_qp *qp);
/* Set the destination of a request in an entry of the ring. */
void rverbs_ud_fill(struct rverbs_qp *qp, struct ibv_send_wr *to, const struct rmem_send_wr *wr,
		uint32_t at);
/* Release the AHs of entries of the ring, of completed requests or such that were not posted. */
void rverbs_ud_release(struct rverbs_qp *qp, uint32_t from, uint32_t to);

#endif /* RVERBS_UD_H */
