/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A test that fails midway, with a device whose thread runs: the program must report that. */

#include "perf/perf_row.h"
#include "test.h"

static void
leave_device(void)
{
	struct perf_pair pair;

	perf_pair_open(&pair, "ip=127.0.17.9,port=eth:0,loop=1");
	test_stop(TEST_FAILED);
}

REGISTER_RMEM_TEST(left_device, leave_device);
