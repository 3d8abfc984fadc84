/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Registrations executed by control threads.
 *
 * A registration is a job (rmem_job.c) that populates the memory. The thread that ends it calls the
 * driver to register the MR and puts the event.
 *
 * Invariant: until the job has ended no other thread writes the MR: it is PENDING, which every call
 * refuses. An EQ, a user of the threads, is not destroyed while a job for it exists.
 */

#include <errno.h>
#include <stdbool.h>

#include <rte_malloc.h>

#include <rmem_pages.h>

#include "rmem_job_priv.h"
#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

struct registration {
	struct rmem_job job; /* first */
	struct rmem_mr *mr;
	struct rmem_mr_attr attr;
};

/* Populate the pages if the kernel supports that; otherwise the driver checks them. */
static int
populate(struct rmem_job *job, const struct iovec *piece)
{
	const struct rmem_mr *mr = ((const struct registration *)job)->mr;
	bool is_write = (mr->access & RMEM_ACCESS_LOCAL_WRITE) != 0;
	uintptr_t first, end;
	int error;

	if (piece->iov_len == 0)
		return 0;
	rmem_pages_of(piece, &first, &end);
	error = rmem_pages_populate(first, end, is_write);
	/* Memory mapped by a device has no pages to populate: the driver of the MR handles it. */
	return error == 0 || (error == -EINVAL && (rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0)
			? 0
			: -EFAULT;
}

/* Register the MR when all memory is populated, or set it to ERROR, and put the event. */
static void
finish(struct rmem_job *job)
{
	struct registration *reg = (struct registration *)job;
	struct rmem_event event = {
			.type = RMEM_EVENT_MR_COMPLETE,
			.status = job->error,
			.mr = reg->mr,
			.context = reg->attr.context,
	};
	struct rmem_eq *eq = reg->attr.eq;

	if (job->error != 0) {
		RMEM_LOG(ERR, "MR of %zu bytes: range not mapped%s: [%p, +%zu)", reg->mr->length,
				(reg->attr.access & RMEM_ACCESS_LOCAL_WRITE) != 0 ? " and writable"
										  : "",
				job->bad.iov_base, job->bad.iov_len);
		rmem_mr_set_state(reg->mr, RMEM_MR_STATE_ERROR);
	} else {
		event.status = rmem_mr_do_reg(reg->mr, &reg->attr);
	}
	rmem_trace_mr_complete(reg->mr, event.status, reg->mr->lkey, reg->mr->rkey);
	rte_free(reg);
	rmem_eq_put(eq, &event);
}

int
rmem_async_reg(struct rmem_mr *new_mr, const struct rmem_mr_attr *attr, struct rmem_mr **mr)
{
	const struct iovec *iov;
	struct iovec one;
	struct registration *reg;
	int ret;

	reg = rte_zmalloc("rmem_job", sizeof(*reg), 0);
	if (reg == NULL)
		return RMEM_FAIL(ENOMEM, "registration: no memory: %zu bytes", sizeof(*reg));
	ret = rmem_eq_reserve(attr->eq, new_mr);
	if (ret != 0) {
		rte_free(reg);
		return ret;
	}
	reg->job.process = populate;
	reg->job.finish = finish;
	reg->mr = new_mr;
	reg->attr = *attr;
	/* The ranges of the caller may be freed; the MR has a copy. */
	reg->attr.iov = rmem_mr_drv(new_mr)->iov;
	reg->attr.iov_count = rmem_mr_drv(new_mr)->iov_count;
	/* Memory of ALLOCATE_MR is populated already; on-demand MRs are not populated. */
	if ((new_mr->access & (RMEM_ACCESS_ALLOCATE_MR | RMEM_ACCESS_ON_DEMAND)) == 0) {
		reg->job.nb_further = rmem_mr_ranges(new_mr, &one, &iov) - 1;
		reg->job.left = iov[0];
		reg->job.further = iov + 1;
	}
	rmem_mr_set_state(new_mr, RMEM_MR_STATE_PENDING);
	rmem_trace_mr_start(new_mr->pd, new_mr, new_mr->length);
	rmem_obj_list(&new_mr->obj);
	/* Before the event can be read (fi_mr(3)). */
	*mr = new_mr;
	rmem_job_put(&reg->job);
	return 0;
}
