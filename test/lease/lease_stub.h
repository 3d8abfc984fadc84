/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Leases of windows on a programmable device, for results that real ones do not produce on request.
 */

#ifndef LEASE_STUB_H
#define LEASE_STUB_H

#include "lease.h"
#include "rmem/stub_driver.h"

/* Results that the device returns, and the requests it recorded. */
struct leaser {
	int alloc_ret;
	int dealloc_ret;
	int nb_deallocs; /* successful calls before dealloc_ret is returned */
	int list_ret;    /* of the free of a page list */
	int post_ret;    /* returned unless 0 */
	uint16_t room;   /* free entries of the send queue */
	uint32_t depth;  /* of the send queue */
	uint32_t state;  /* of the QP */
	uint32_t nb_mw;
	struct rmem_send_wr posted[64];
	uint16_t nb_posted;
};

extern struct leaser leaser;

void leaser_setup(void);
void leaser_teardown(void);

/* Create the device again, with these capabilities. */
void leaser_open(uint64_t capa);

/* Create lx.ctx with lx.conf; as rmem_lease_ctx_create(). */
int leaser_make(void);

/* As rmem_lease_grant(), into lx.lease. */
int leaser_grant(uint16_t nb);
/* Both. */
void leaser_granted(uint16_t nb);

/* Pass the completion of a posted request to the context; the number of WCs it left. */
int leaser_complete_as(uint16_t at_wr, uint8_t status);
int leaser_complete(uint16_t at_wr);

/* The same for a receive with an invalidation by the peer. */
int leaser_peer_inv(uint32_t rkey);

#endif /* LEASE_STUB_H */
