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
#include "stub_driver.h"

/* Next results of the device, and recorded arguments. */
struct leaser {
	int alloc_ret;
	int dealloc_ret;
	int nb_deallocs; /* that succeed, before dealloc_ret is returned */
	int list_ret;    /* of freeing a page list */
	int post_ret;    /* when not 0 */
	uint16_t room;   /* of the send queue */
	uint32_t depth;  /* of it */
	uint32_t state;  /* of the QP */
	uint32_t nb_mw;
	struct rmem_send_wr posted[64];
	uint16_t nb_posted;
};

extern struct leaser leaser;

int leaser_setup(void);
int leaser_teardown(void);

/* Have the device again, with these capabilities. */
int leaser_open(uint64_t capa);

/* Make the context lx.ctx by lx.conf; as rmem_lease_ctx_create(). */
int leaser_make(void);

/* As rmem_lease_grant(), into lx.lease. */
int leaser_grant(uint16_t nb);

/* A completion of a request that was posted, taken by the context; how many are left. */
int leaser_complete_as(uint16_t at_wr, uint8_t status);
int leaser_complete(uint16_t at_wr);

/* The same of a receive that reports an invalidation by the peer. */
int leaser_peer_inv(uint32_t rkey);

#endif /* LEASE_STUB_H */
