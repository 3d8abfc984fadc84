/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared by the groups of test-groups: objects of the device, and QPs connected to each other. */

#ifndef GROUPS_H
#define GROUPS_H

#include <stdbool.h>

#include "own_qp.h"
#include "step.h"

#define SIZE   4096
#define WAIT_S 600

extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq;
extern struct ibv_mr *mr;
extern struct ibv_qp *qps[2];
extern uint8_t buf[2 * SIZE]; /* of mr; the second half is the target */

/* The next completion of a request, by its number. */
void completion(const char *name);

/* Create both QPs, the second one with the SRQ; false if the device does not have them. */
bool make_pair(enum ibv_qp_type type, struct ibv_srq *srq, const char *create);

/* The same, connected. */
bool pair(enum ibv_qp_type type, struct ibv_srq *srq, const char *create, const char *connect);

/* Move the first one to RTS, and the second one to RTR. */
int connect_first(void);

void unpair(const char *destroy);

/* Post a receive of the second half of the buffer. */
int receive(uint32_t length);

/* Post a request of 64 bytes of the first half, or 8 of an atomic, for the second half. */
int post(enum ibv_wr_opcode opcode, uint32_t lkey, uint32_t rkey, unsigned int flags);

/* The completions of a message may be in either order: that of the receive is printed last. */
void message(const char *sent, const char *received);

/* On-demand paging and advice. */
void paging(void);

/* Asynchronous events. */
void asynchronous(void);

#endif
