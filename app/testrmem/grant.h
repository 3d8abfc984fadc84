/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Grants: temporary access of a peer to one buffer of the pool, by a request that binds a key; a
 * LOCAL_INV of the rkey ends it. There is a kind for each request that binds.
 */

#ifndef GRANT_H
#define GRANT_H

#include "testrmem.h"

/** Objects of a grant; zeroed until alloc. */
struct testrmem_grant {
	struct rmem_mr *mr; /**< Fast-register or indirect MR. */
	struct rmem_mw *mw; /**< Window of type 2. */
	struct rmem_fast_reg_page_list *pages;
	struct rmem_mkey_entry *entries;
	uint64_t remote_addr;   /**< First byte of the buffer, for the peer; set by fill. */
	uint8_t log2_page_size; /**< Of the page list. */
};

/** A kind of grants. */
struct testrmem_grant_kind {
	const char *name;     /**< Name of the object. */
	const char *request;  /**< Name of the request that binds it, in tables. */
	uint64_t capa;        /**< RMEM_DEV_CAPA_* that it needs. */
	uint32_t pool_access; /**< Bits that the pool's MRs need for it. */
	bool is_window;       /**< Counts against max_mw, not against max_mr. */
	/**
	 * Allocate for buffers of the pair's size. Reports errors; free releases created objects.
	 */
	int (*alloc)(const struct testrmem_pair *pair, struct testrmem_grant *grant);
	/** Fill in the request that permits WRITEs of the peer to the buffer of an SGE. */
	void (*fill)(const struct testrmem_pair *pair, struct testrmem_grant *grant,
			const struct rmem_sge *buf, struct rmem_send_wr *wr);
};

extern const struct testrmem_grant_kind testrmem_grant_fast_reg;
extern const struct testrmem_grant_kind testrmem_grant_window;
extern const struct testrmem_grant_kind testrmem_grant_umr;

/** Release it, complete or not; reports an error if it is still in use. */
void testrmem_grant_free(struct testrmem_grant *grant);

/** The rkey of the request posted last. */
static inline uint32_t
testrmem_grant_rkey(const struct testrmem_grant *grant)
{
	return grant->mw != NULL ? grant->mw->rkey : grant->mr->rkey;
}

#endif /* GRANT_H */
