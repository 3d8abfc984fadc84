/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Two devices on a simulated network, with a connected QP each. */

#ifndef SIDES_H
#define SIDES_H

#include "soft/base/rsoft.h"

#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>

#include "../test.h"
#include "sim.h"

#define SLOTS     16
#define SLOT_SIZE 8192
#define SIZE      ((size_t)SLOTS * SLOT_SIZE)
#define NB_RECV   4

/* Traffic class of the packets of a side. */
#define SIDE_CLASS(i) ((uint8_t)(0x20 << (i)))

struct side {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *send_cq, *recv_cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
	uint8_t *local;  /* source of requests by slot, followed by receive buffers */
	uint8_t *target; /* target of the requests of the peer */
	uint8_t *model;  /* expected content of target */
	struct rmem_send_wr wr[SLOTS];
	struct rmem_sge sge[SLOTS];
	uint64_t posted, done, nb_ops;
	uint64_t sent, received; /* messages */
	uint64_t failures;
};

extern struct side sides[2];

static inline struct side *
peer_of(const struct side *side)
{
	return side == &sides[0] ? &sides[1] : &sides[0];
}

static inline uint8_t *
recv_buf(const struct side *side, uint64_t i)
{
	return side->local + SIZE + i % NB_RECV * SLOT_SIZE;
}

/* Create device i and its objects, with a path MTU. */
void open_side(struct side *side, unsigned int i, uint32_t mtu);
void close_side(struct side *side);
/* Both sides, connected, on a network without faults. */
void open_sides(uint32_t mtu);
void close_sides(void);
/* Post the receive of message i. */
int post_recv(struct side *side, uint64_t i);
/* Post a WRITE of up to SLOT_SIZE bytes to the first slot of the peer. */
void post_write(struct side *side, uint32_t length);
/* Connect both QPs with PSNs that wrap soon, and drop packets in flight. */
void connect_sides(void);

#endif /* SIDES_H */
