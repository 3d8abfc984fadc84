/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Mode read: RDMA READ from the targets to buffers of the pool.
 */

#include "remote.h"

static int
read_setup(struct testrmem_pair *pair)
{
	uint32_t i;

	for (i = 0; i < pair->nb_targets; i++)
		testrmem_fill(testrmem_ptr(pair->targets[i].addr), pair->size,
				~(((uint64_t)pair->id << 32) + i));
	return testrmem_pair_rdma_setup(pair, RMEM_WR_RDMA_READ);
}

static int
read_verify(struct testrmem_pair *pair)
{
	uint32_t nb = (uint32_t)RTE_MIN((uint64_t)pair->burst, pair->posted);
	uint32_t i;
	int ret;

	for (i = 1; i <= nb; i++) {
		ret = testrmem_pair_compare(pair, (pair->slot + pair->depth - i) % pair->depth);
		if (ret != 0)
			return ret;
	}
	return 0;
}

const struct testrmem_engine testrmem_engine_read = {
		.name = "read",
		.help = "RDMA READ from random targets",
		.verified = "the last burst of each QP pair equals the targets",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.target_access = RMEM_ACCESS_REMOTE_READ,
		.listener = &testrmem_listener_read,
		.connector = &testrmem_connector_read,
		.setup = read_setup,
		.burst = testrmem_pair_rdma_burst,
		.verify = read_verify,
		.teardown = testrmem_pair_ring_free,
};
