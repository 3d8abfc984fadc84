/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Grants: what opens one buffer of the pool to a peer's WRITEs by a request, and is closed by a
 * LOCAL_INV of its rkey. There are as many kinds as there are requests that bind.
 */

#ifndef GRANT_H
#define GRANT_H

#include "testrmem.h"

/** The means to open one buffer; zeroed until alloc. */
struct testrmem_grant {
	struct rmem_mr *mr; /**< Fast-register or indirect MR. */
	struct rmem_mw *mw; /**< Window of type 2. */
	struct rmem_fast_reg_page_list *pages;
	struct rmem_mkey_entry *entries;
	uint8_t log2_page_size; /**< Of the page list. */
};

/** A kind of them. */
struct testrmem_grant_kind {
	const char *name;     /**< Of what is allocated. */
	const char *request;  /**< That binds it, and what it is called in tables. */
	uint64_t capa;        /**< RMEM_DEV_CAPA_* that it needs. */
	uint32_t pool_access; /**< Bits that the pool's MRs need for it. */
	bool is_window;       /**< Counts against max_mw, not against max_mr. */
	/** For buffers of the pair's size. Reports errors; created objects are left to free. */
	int (*alloc)(const struct testrmem_pair *pair, struct testrmem_grant *grant);
	/** Make the request that opens a buffer, all of the SGE, to the peer's WRITEs. */
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
