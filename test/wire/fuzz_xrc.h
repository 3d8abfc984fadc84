/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The device that fuzz_xrc.c attacks, and processes that do as they should. */

#ifndef FUZZ_XRC_H
#define FUZZ_XRC_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/base/rsoft.h"
#include "soft/wire/rwire_xrc.h"
#include "fuzz_port.h"

#include <rmem_async_channel.h>
#include <rmem_cq.h>
#include <rmem_driver.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>
#include <rmem_srq.h>
#include <rmem_xrcd.h>

#define TARGET    (48u * 1024) /* bytes that requests may access: more than RWIRE_XRC_CHUNK */
#define GUARD     8192u        /* bytes on both sides of it, not registered */
#define MTU       256u
#define MAX_PEERS 4u
#define FOREIGN   0x123456u /* number of the SRQ and of the QP of a hostile process */

/* A hostile process. */
struct peer {
	int fd;         /* -1: none */
	bool is_taking; /* has the request to answer */
	struct rwire_xrc_request request;
};

/* A device, of whose XRC domain a file is shared. */
struct fuzz_xrc {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_xrcd *domain;
	struct rmem_async_channel *channel;
	struct rmem_srq *srq;
	struct rmem_qp *qp, *quiet;
	struct rmem_mr *mr;
	struct rmem_qp_attr attr; /* of the QP, after its connection */
	uint8_t *memory;          /* a guard, the target, a guard */
	uint8_t bytes[sizeof(struct rwire_xrc_answer) + RWIRE_MAX_SHARED];
	struct fuzz_port port;
	struct rwire_addr peer;
	int file, other;
	int srqs, qps; /* listeners of the foreign SRQ and QP */
	int honest;    /* connection of an opener to the quiet QP */
	struct peer peers[MAX_PEERS];
	uint32_t nb_open; /* descriptors without peers */
	uint64_t now;
	uint64_t nb_calls, nb_answered, nb_forwarded, nb_opened, nb_received;
};

extern struct fuzz_xrc fz;

void fuzz_xrc_open(void);
void fuzz_xrc_close(void);
void fuzz_xrc_create_qp(struct rmem_qp **qp);
void fuzz_xrc_create_srq(void);
uint32_t fuzz_xrc_srq_number(void);
/* Connect the QP as to a peer that chose PSN 100. */
void fuzz_xrc_connect(void);
void fuzz_xrc_poll(void);

/* Wait for a message: its length, 0 or less at the end. */
ssize_t fuzz_xrc_take(int fd, void *message, size_t len);
/* Open a QP as another process does: its connection. */
int fuzz_xrc_dial(const struct rmem_qp *qp);
/* A call of such a process: its result. */
int32_t fuzz_xrc_call(int fd, uint32_t op);
/* Let the thread of the QPs process what was sent: it serves its sockets one after another. */
void fuzz_xrc_settle(void);

#endif /* FUZZ_XRC_H */
