/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The device of the conformance suite over the fakes, with all that they have. RMEM_FAKE has the
 * word "classic" for QPs without extended posts, and "rxe" for windows as of rdma_rxe.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "fake.h"

RTE_INIT(fake_all)
{
	const char *kind = getenv("RMEM_FAKE");

	kind = kind != NULL ? kind : "";
	fake_reset();
	fake.has_srq = true;
	fake.has_xrc = true;
	fake.has_null_mr = true;
	fake.has_ignore_overrun = true;
	fake.timestamp_mask = UINT64_MAX;
	fake.max_dm_size = 1 << 20;
	fake.max_cq_period = 4095;
	fake.max_objects = 1024;
	fake.has_no_ex = strstr(kind, "classic") != NULL;
	fake.has_rxe_windows = strstr(kind, "rxe") != NULL;
}
