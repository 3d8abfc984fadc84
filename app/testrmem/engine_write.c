/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Modes write and odp: RDMA WRITE from buffers of the pool to the targets. In mode odp the targets
 * are registered on demand, and the first WRITEs fault their pages in.
 */

#include <errno.h>
#include <inttypes.h>

#include <rte_malloc.h>

#include "remote.h"

static int
write_setup(struct testrmem_pair *pair)
{
	return testrmem_pair_rdma_setup(pair, RMEM_WR_RDMA_WRITE);
}

/* Whether one of the newer requests has the same target. */
static bool
is_overwritten(const struct testrmem_pair *pair, uint32_t slot, uint32_t nb_newer)
{
	uint64_t addr = pair->wr[slot].rdma.remote_addr;
	uint32_t i;

	for (i = 1; i <= nb_newer; i++) {
		if (pair->wr[(slot + i) % pair->depth].rdma.remote_addr == addr)
			return true;
	}
	return false;
}

static int
write_verify(struct testrmem_pair *pair)
{
	uint32_t nb = (uint32_t)RTE_MIN((uint64_t)pair->burst, pair->posted);
	uint32_t i, slot;
	int ret;

	for (i = 0; i < nb; i++) {
		slot = (pair->slot + pair->depth - 1 - i) % pair->depth;
		if (is_overwritten(pair, slot, i))
			continue;
		ret = testrmem_pair_compare(pair, slot);
		if (ret != 0)
			return ret;
	}
	return 0;
}

const struct testrmem_engine testrmem_engine_write = {
		.name = "write",
		.help = "RDMA WRITE to random targets",
		.verified = "the last burst of each QP pair arrived",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.target_access = RMEM_ACCESS_REMOTE_WRITE,
		.listener = &testrmem_listener_write,
		.connector = &testrmem_connector_write,
		.setup = write_setup,
		.burst = testrmem_pair_rdma_burst,
		.verify = write_verify,
		.teardown = testrmem_pair_ring_free,
};

static int
odp_open(struct testrmem_session *session)
{
	return testrmem_stat_open(session, offsetof(struct rmem_dev_stats, odp_page_faults));
}

static int
odp_finish(struct testrmem_session *session)
{
	printf("page faults: %" PRIu64 "\n", testrmem_stat_get(session));
	return 0;
}

const struct testrmem_engine testrmem_listener_odp = {
		.name = "odp",
		.verified = "the other host read its last WRITE of each QP pair back",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.target_access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ,
		.flags = ENGINE_ON_DEMAND | ENGINE_PEER_COUNTED,
		.open = odp_open,
		.setup = testrmem_passive_setup,
		.burst = testrmem_passive_burst,
		.verify = testrmem_remote_check,
		.finish = odp_finish,
		.teardown = testrmem_pair_ring_free,
		.close = testrmem_stat_close,
};

const struct testrmem_engine testrmem_engine_odp = {
		.name = "odp",
		.help = "write to on-demand targets; the first WRITE to a page faults it in",
		.verified = "the last burst of each QP pair arrived",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.target_access = RMEM_ACCESS_REMOTE_WRITE,
		.flags = ENGINE_ON_DEMAND,
		.listener = &testrmem_listener_odp,
		.connector = &testrmem_connector_write,
		.open = odp_open,
		.setup = write_setup,
		.burst = testrmem_pair_rdma_burst,
		.verify = write_verify,
		.finish = odp_finish,
		.teardown = testrmem_pair_ring_free,
		.close = testrmem_stat_close,
};
