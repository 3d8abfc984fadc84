/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Modes write and read between two hosts: the listening one has the targets and does nothing, the
 * connecting one writes to them or reads from them. Only it knows the amount, and reports it at
 * the end.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "remote.h"

#define IDLE_US    1000
#define POLL_BURST 8

/* Only test the connection; sleep once for all pairs of the lcore. */
int
testrmem_passive_burst(struct testrmem_pair *pair, bool is_draining)
{
	struct rmem_wc wc[POLL_BURST];
	int i, n;

	if (is_draining)
		return 0;
	n = testrmem_remote_poll(pair, pair->cq_b, wc, POLL_BURST);
	if (n < 0)
		return testrmem_pair_refused(pair, "poll", n);
	for (i = 0; i < n; i++) {
		if (wc[i].status != RMEM_WC_SUCCESS)
			return testrmem_pair_failed(pair, "a request to the other host", &wc[i]);
	}
	if (pair == pair->worker->pairs)
		rte_delay_us_sleep(IDLE_US);
	return 1;
}

int
testrmem_passive_setup(struct testrmem_pair *pair)
{
	RTE_SET_USED(pair);
	return 0;
}

/* The bytes of a target that mode read must find, known to both sides. */
static void
fill_target(const struct testrmem_pair *pair, void *bytes, uint32_t target)
{
	testrmem_fill(bytes, pair->size, ~(((uint64_t)pair->id << 32) + target));
}

static int
read_listener_fill(struct testrmem_pair *pair)
{
	uint32_t i;

	for (i = 0; i < pair->nb_targets; i++)
		fill_target(pair, testrmem_ptr(pair->targets[i].addr), i);
	return 0;
}

static int
write_connector_setup(struct testrmem_pair *pair)
{
	return testrmem_pair_rdma_setup(pair, RMEM_WR_RDMA_WRITE);
}

static int
read_connector_setup(struct testrmem_pair *pair)
{
	return testrmem_pair_rdma_setup(pair, RMEM_WR_RDMA_READ);
}

/* The previous request; NULL if there was none. */
static struct rmem_send_wr *
last_request(struct testrmem_pair *pair)
{
	return pair->posted == 0 ? NULL : &pair->wr[(pair->slot + pair->depth - 1) % pair->depth];
}

static int
compare(struct testrmem_pair *pair, const struct rmem_send_wr *wr, const void *want)
{
	if (memcmp(want, testrmem_ptr(wr->sg_list->addr), pair->size) == 0)
		return 0;
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(pair->worker->session,
			"QP pair %" PRIu32 ": %" PRIu32 " bytes at the peer's 0x%" PRIx64
			" are not as they must be",
			pair->id, pair->size, wr->rdma.remote_addr);
	return -EIO;
}

static int
verify_read(struct testrmem_pair *pair, const struct rmem_send_wr *wr, void *want)
{
	uint32_t i = 0;

	while (pair->targets[i].addr != wr->rdma.remote_addr)
		i++;
	fill_target(pair, want, i);
	return compare(pair, wr, want);
}

/* Read a target back into the buffer that it was written from. */
static int
verify_write(struct testrmem_pair *pair, struct rmem_send_wr *wr, void *want)
{
	void *buf = testrmem_ptr(wr->sg_list->addr);
	int ret;

	memcpy(want, buf, pair->size);
	memset(buf, 0, pair->size);
	wr->opcode = RMEM_WR_RDMA_READ;
	ret = testrmem_remote_execute(pair, wr);
	if (ret == 0)
		return compare(pair, wr, want);
	if (ret > 0)
		testrmem_fail(pair->worker->session, "QP pair %" PRIu32 ": READ failed: %s",
				pair->id, rmem_wc_status_str(ret));
	return ret < 0 ? ret : -EIO;
}

static int
connector_verify(struct testrmem_pair *pair)
{
	struct rmem_send_wr *wr = last_request(pair);
	void *want;
	int ret = 0;

	if (wr != NULL) {
		want = testrmem_alloc(1, pair->size);
		if (want == NULL)
			return -ENOMEM;
		ret = wr->opcode == RMEM_WR_RDMA_READ ? verify_read(pair, wr, want)
						      : verify_write(pair, wr, want);
		rte_free(want);
	}
	return ret != 0 ? ret : testrmem_remote_report(pair);
}

const struct testrmem_engine testrmem_listener_write = {
		.name = "write",
		.verified = "the other host read its last WRITE of each QP pair back",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.target_access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ,
		.flags = ENGINE_PEER_COUNTED,
		.setup = testrmem_passive_setup,
		.burst = testrmem_passive_burst,
		.verify = testrmem_remote_check,
		.teardown = testrmem_pair_ring_free,
};

const struct testrmem_engine testrmem_listener_read = {
		.name = "read",
		.verified = "the other host found its last READ of each QP pair right",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.target_access = RMEM_ACCESS_REMOTE_READ,
		.flags = ENGINE_PEER_COUNTED,
		.fill = read_listener_fill,
		.setup = testrmem_passive_setup,
		.burst = testrmem_passive_burst,
		.verify = testrmem_remote_check,
		.teardown = testrmem_pair_ring_free,
};

const struct testrmem_engine testrmem_connector_write = {
		.name = "write",
		.verified = "the last WRITE of each QP pair was read back",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.setup = write_connector_setup,
		.burst = testrmem_pair_rdma_burst,
		.verify = connector_verify,
		.teardown = testrmem_pair_ring_free,
};

const struct testrmem_engine testrmem_connector_read = {
		.name = "read",
		.verified = "the last READ of each QP pair is what the target holds",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 1,
		.setup = read_connector_setup,
		.burst = testrmem_pair_rdma_burst,
		.verify = connector_verify,
		.teardown = testrmem_pair_ring_free,
};
