/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Device memory: its limits, copies, MRs of parts of it, and a child of fork(). */

#include "own_qp.h"

#define SIZE   4096
#define PART   256
#define ACCESS (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct objects own;
static struct ibv_dm *dm;
static uint64_t max_size;

static struct ibv_dm *
alloc(size_t length, uint32_t comp_mask)
{
	struct ibv_alloc_dm_attr attr = {.length = length, .comp_mask = comp_mask};

	return ibv_alloc_dm(own.context, &attr);
}

static void
create(void)
{
	struct ibv_device_attr_ex attr;

	own = open_objects(&max_size, sizeof(max_size), 4);
	HOLDS(ibv_query_device_ex(own.context, NULL, &attr) == 0);
	max_size = attr.max_dm_size;
	dm = alloc(SIZE, 0);
	HOLDS(max_size >= 2 * SIZE && dm != NULL);
}

static void
size_is_limited(void)
{
	struct ibv_dm *rest;

	HOLDS(alloc(max_size + 1, 0) == NULL && errno == EINVAL);
	HOLDS(alloc(max_size, 0) == NULL && errno == ENOMEM);
	rest = alloc(max_size - SIZE, 0);
	HOLDS(rest != NULL && alloc(4, 0) == NULL && errno == ENOMEM);
	HOLDS(ibv_free_dm(rest) == 0);
	HOLDS(ibv_free_dm(rest) == ENOENT);
}

static void
copies_are_aligned(void)
{
	uint32_t in[4] = {1, 2, 3, 4}, out[4] = {9, 9, 9, 9};

	HOLDS(ibv_memcpy_from_dm(out, dm, SIZE - 16, 16) == 0 && out[0] == 0 && out[3] == 0);
	HOLDS(ibv_memcpy_to_dm(dm, SIZE - 16, in, 16) == 0);
	HOLDS(ibv_memcpy_from_dm(out, dm, SIZE - 16, 16) == 0 && memcmp(in, out, 16) == 0);
	HOLDS(ibv_memcpy_to_dm(dm, 2, in, 4) == EINVAL);
	HOLDS(ibv_memcpy_to_dm(dm, 0, in, 2) == EINVAL);
}

/* WRITE between MRs by offsets from their beginnings; return the status of its completion. */
static enum ibv_wc_status
write_at(const struct ibv_mr *from, const struct ibv_mr *to, uint64_t offset)
{
	return write_to(own.qp, (struct ibv_sge){0, 16, from->lkey}, offset, to->rkey);
}

static void
mrs_are_of_parts(void)
{
	struct ibv_mr *from = ibv_reg_dm_mr(own.pd, dm, 0, PART, ACCESS);
	struct ibv_mr *to = ibv_reg_dm_mr(own.pd, dm, PART, PART, ACCESS);
	struct ibv_mr *none = ibv_reg_dm_mr(own.pd, dm, SIZE, 0, ACCESS);
	uint32_t in[4] = {5, 6, 7, 8}, out[4];

	HOLDS(from != NULL && to != NULL && none != NULL && from->addr == NULL);
	HOLDS(ibv_rereg_mr(from, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0);
	HOLDS(errno == EINVAL);
	HOLDS(ibv_memcpy_to_dm(dm, 0, in, 16) == 0);
	HOLDS(write_at(from, to, 32) == IBV_WC_SUCCESS);
	HOLDS(ibv_memcpy_from_dm(out, dm, PART + 32, 16) == 0 && memcmp(in, out, 16) == 0);
	HOLDS(write_at(from, to, PART - 8) == IBV_WC_REM_ACCESS_ERR);
	HOLDS(ibv_free_dm(dm) == EBUSY);
	HOLDS(ibv_dereg_mr(from) == 0 && ibv_dereg_mr(to) == 0 && ibv_dereg_mr(none) == 0);
	HOLDS(ibv_reg_dm_mr(own.pd, dm, 0, PART, ACCESS | IBV_ACCESS_MW_BIND) == NULL);
	HOLDS(errno == EINVAL);
	HOLDS(ibv_reg_dm_mr(own.pd, dm, SIZE - 4, 8, ACCESS) == NULL && errno == EINVAL);
}

/* With the context of its parent. */
static void
child_has_its_own(void)
{
	struct ibv_dm *other;
	uint32_t out = 0;
	pid_t pid = fork();

	if (pid == 0) {
		HOLDS(ibv_memcpy_from_dm(&out, dm, 0, 4) == ENOENT);
		other = alloc(max_size, 0);
		HOLDS(other != NULL && ibv_free_dm(other) == 0);
		_exit(0);
	}
	wait_child(pid);
}

int
main(void)
{
	create();
	size_is_limited();
	copies_are_aligned();
	mrs_are_of_parts();
	child_has_its_own();
	HOLDS(ibv_free_dm(dm) == 0);
	close_objects(&own);
	return 0;
}
