/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of on-demand paging, and of advice. Where rdma_rxe crashes, fake.nb_crashes counts. */

#include <errno.h>
#include <unistd.h>

#include <rte_common.h>

#include "fake.h"

bool
fake_odp_takes(const void *addr, size_t length, unsigned int access)
{
	bool is_implicit = addr == NULL && length == SIZE_MAX;

	if ((access & IBV_ACCESS_ON_DEMAND) == 0)
		return !is_implicit;
	if ((fake.odp_general & IBV_ODP_SUPPORT) == 0)
		return false;
	return !is_implicit ||
			((fake.odp_general & IBV_ODP_SUPPORT_IMPLICIT) != 0 &&
					!fake.is_implicit_refused);
}

void *
fake_odp_place(const struct fake_mr *mr, uint8_t *at, unsigned int right)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (mr->iova != (uintptr_t)mr->ibv.addr)
		fake_crash("an on-demand MR is reached by another iova");
	if (fake.is_odp_refused || (fake.is_implicit_bad && mr->ibv.addr == NULL) ||
			(fake.is_odp_atomic_bad && right == IBV_ACCESS_REMOTE_ATOMIC))
		return NULL;
	if (fake.is_odp_misplaced && right != IBV_ACCESS_REMOTE_ATOMIC)
		return (void *)((uintptr_t)at & ~(page - 1));
	return at;
}

static int
fake_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		struct ibv_sge *sg_list, uint32_t num_sge)
{
	uint32_t i;

	RTE_SET_USED(pd);
	for (i = 0; i < num_sge; i++) {
		struct fake_mr *mr = fake_mr_find(sg_list[i].lkey);

		if (mr == NULL || (mr->access & IBV_ACCESS_ON_DEMAND) == 0)
			fake_crash("advice about an MR that is not on demand");
	}
	if (fake_fails("advise_mr"))
		return errno;
	fake.nb_advice = num_sge;
	fake.advice = (int)advice;
	fake.advice_flags = flags;
	errno = fake.fail_errno;
	return fake.advise_result;
}

/* Its data is not modelled. */
static struct ibv_mr *
fake_alloc_null_mr(struct ibv_pd *pd)
{
	return fake_fails("alloc_null_mr") ? NULL : ibv_reg_mr_iova2(pd, NULL, 0, 0, 0);
}

void
fake_odp_ops(struct verbs_context *context)
{
	if (fake.has_null_mr)
		context->alloc_null_mr = fake_alloc_null_mr;
	if (!fake.has_no_advice)
		context->advise_mr = fake_advise_mr;
}
