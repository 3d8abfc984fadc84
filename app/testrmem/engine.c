/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The engines, in the order in which they are listed. */

#include "testrmem.h"

const struct testrmem_engine *const testrmem_engines[] = {
		&testrmem_engine_write,
		&testrmem_engine_read,
		&testrmem_engine_send,
		&testrmem_engine_mbuf,
		&testrmem_engine_atomic,
		&testrmem_engine_fastreg,
		&testrmem_engine_mw,
		&testrmem_engine_umr,
		&testrmem_engine_lease,
		&testrmem_engine_odp,
		&testrmem_engine_inline,
		&testrmem_engine_copy,
		NULL,
};
