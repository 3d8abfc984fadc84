/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Memory on demand: fx_setup_odp() adds an MR of a's over pages that nothing has touched, and
 * fx_odp_do() accesses them by every opcode, on either side.
 */

#ifndef FIXTURE_ODP_H
#define FIXTURE_ODP_H

#include "fixture.h"

#define FX_ODP_PAGES  8u
#define FX_ODP_SIZE   (FX_ODP_PAGES * FX_PAGE)
#define FX_ODP_ACCESS (FX_ACCESS | RMEM_ACCESS_ON_DEMAND | RMEM_ACCESS_MW_BIND)
/* vendor_err of a page fault that failed; doc/errors.md. */
#define FX_ODP_WHY 9u

struct fx_odp {
	struct rmem_mr *mr; /* with fx_odp_access(), over all of mem */
	uint8_t *mem;       /* FX_ODP_PAGES pages of private memory */
	int recv_status;    /* of the receive of the last fx_odp_do() */
};

extern struct fx_odp fx_odp;

/* How an on-demand MR is accessed: the remote or the local side of each opcode. */
enum fx_odp_op {
	FX_ODP_WRITE_TO,
	FX_ODP_WRITE_FROM,
	FX_ODP_READ_FROM,
	FX_ODP_READ_TO,
	FX_ODP_SEND,
	FX_ODP_RECV,
	FX_ODP_WRITE_IMM,
	FX_ODP_ADD,
	FX_ODP_SWAP,
	FX_ODP_ADD_RESULT,
	FX_ODP_ATOMIC_WRITE,
	FX_ODP_NB,
};

void fx_setup_odp(void);
/* All rights that the device supports with ON_DEMAND; atomics only on some. */
uint32_t fx_odp_access(void);
bool fx_odp_has_atomics(void);
/* Skip a case where no signal handler guards copies, which is where there are no such atomics. */
void fx_need_guard(void);

uint8_t *fx_odp_page(uint32_t page);
bool fx_odp_is_resident(uint32_t page);
/* Change the mapping of a page; 0 on success. Unmapped pages are mapped again after the case. */
int fx_odp_protect(uint32_t page, int prot);
int fx_odp_unmap(uint32_t page);
int fx_odp_map(uint32_t page);

struct rmem_mr_stats fx_stats(struct rmem_mr *mr);

/* WRITE by the peer to a page; a status. */
int fx_odp_write(uint32_t page, uint32_t length);
/* Transfer length bytes (8: atomics) between the MR and the buffer of b; the requester's status. */
int fx_odp_do(enum fx_odp_op op, uint64_t addr, uint32_t length);
/* Whether the MR is local to the requester, is modified, is supported; the status of a refusal. */
bool fx_odp_is_local(enum fx_odp_op op);
bool fx_odp_modifies(enum fx_odp_op op);
bool fx_odp_can(enum fx_odp_op op);
/* Whether it is always of 8 bytes. */
bool fx_odp_is_word(enum fx_odp_op op);
int fx_odp_refusal(enum fx_odp_op op);

#endif /* FIXTURE_ODP_H */
