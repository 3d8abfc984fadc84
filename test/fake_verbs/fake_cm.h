/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * librdmacm's functions as fakes: the peer is what a case makes of it. Calls fail as those of
 * libibverbs do, by fake_fails(), and objects and events count in fake.nb_live.
 */

#ifndef FAKE_CM_H
#define FAKE_CM_H

#include <stdint.h>

#include <rdma/rdma_cma.h>

#define FAKE_CM_NONE (-1) /* no event */

/* Results of calls, and recorded calls. After fake_cm_reset() all succeed. */
struct fake_cm {
	int on_addr; /* event of rdma_resolve_addr(), of those below */
	int on_route;
	int on_connect;
	int on_accept;
	int status;        /* of an event that is not as it should be */
	uint8_t data[256]; /* private data of the peer */
	uint8_t size;      /* of it */
	uint8_t sent[256]; /* of ours */
	uint8_t sent_size; /* of it */
	uint32_t sent_qp;  /* number */
	unsigned int nb_rejects;
	unsigned int nb_disconnects;
	unsigned int nb_established;
};

extern struct fake_cm fake_cm;

void fake_cm_reset(void);
/* A peer's request, with fake_cm.data, to the id that listened last. */
void fake_cm_request(void);
/* An event for the connection made last. */
void fake_cm_event(enum rdma_cm_event_type type);

#endif /* FAKE_CM_H */
