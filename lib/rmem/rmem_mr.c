/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Memory regions. An MR refers to its PD. rmem_mr_check.c checks the attributes, rmem_mr_mem.c
 * handles the memory. The MR is registered in the calling thread or in control threads.
 *
 * A registration in control threads is a job (rmem_job.c) that populates the memory. The thread
 * that ends the job calls the driver to register the MR, and puts the event.
 *
 * Invariant: until the job has ended, no other thread writes the MR: its state is PENDING, in which
 * every call refuses it. An EQ is a user of the threads, and is not destroyed while it has a job.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_memory.h>

#include <rmem_pages.h>

#include "rmem_job_priv.h"
#include "rmem_mr_pages_priv.h"
#include "rmem_mr_priv.h"
#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

/* Allocate or map the memory if requested, and let the driver register it. */
static int
do_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	int ret;

	if ((mr->access & RMEM_ACCESS_ALLOCATE_MR) != 0) {
		ret = rmem_mr_alloc_chunk(mr, mr, attr->socket_id);
		if (ret != 0)
			return ret;
	}
	if (mr->iova == 0 && (mr->access & RMEM_ACCESS_ZERO_BASED) == 0 &&
			(attr->flags & RMEM_MR_IOVA) == 0)
		mr->iova = rmem_mr_first(mr);
	ret = rmem_mr_check_hugetlb(mr);
	if (ret == 0)
		ret = RMEM_OP(mr, mr_reg, mr, attr);
	if (ret != 0)
		rmem_mr_free_chunk(mr, mr);
	return ret;
}

/* Register an MR whose fields are filled, and set its state: ERROR on failure. */
static int
register_mr(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	uint16_t state = RMEM_MR_STATE_VALID;
	int ret;

	ret = do_reg(mr, attr);
	if (ret != 0)
		state = RMEM_MR_STATE_ERROR;
	else if ((attr->flags & RMEM_MR_DISABLED) != 0)
		state = RMEM_MR_STATE_DISABLED;
	rmem_mr_set_state(mr, state);
	return ret;
}

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
		event.status = register_mr(reg->mr, &reg->attr);
	}
	rmem_trace_mr_complete(reg->mr, event.status, reg->mr->lkey, reg->mr->rkey);
	rte_free(reg);
	rmem_eq_put(eq, &event);
}

/* Start a registration in control threads. Return 0 with *mr written, -ENOMEM or -ENOSPC. */
static int
start_reg(struct rmem_mr *new_mr, const struct rmem_mr_attr *attr, struct rmem_mr **mr)
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
	reg->attr.ext = NULL; /* only for device memory, which permits no EQ */
	/* Memory of ALLOCATE_MR is populated already; on-demand MRs are not populated. */
	if ((new_mr->access & (RMEM_ACCESS_ALLOCATE_MR | RMEM_ACCESS_ON_DEMAND)) == 0) {
		reg->job.nb_further = rmem_mr_ranges(new_mr, &one, &iov) - 1;
		reg->job.left = iov[0];
		reg->job.further = iov + 1;
	}
	rmem_mr_set_state(new_mr, RMEM_MR_STATE_PENDING);
	rmem_trace_mr_start(new_mr->pd, new_mr, new_mr->length);
	rmem_obj_list(&new_mr->obj);
	/* Store the MR before the event can be read (fi_mr(3)). */
	*mr = new_mr;
	rmem_job_put(&reg->job);
	return 0;
}

/* Whether the registration of the MR is in progress, or has failed. */
static bool
has_no_keys(uint16_t state)
{
	return state == RMEM_MR_STATE_PENDING || state == RMEM_MR_STATE_ERROR;
}

/*
 * Set the fields of a new MR that are known before the registration, and take a reference to its
 * device memory.
 */
static int
fill(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	struct rmem_dm *dm = rmem_mr_dm(attr);
	uint32_t i;
	int ret;

	mr->type = RMEM_MR_TYPE_USER;
	mr->access = attr->access & (rmem_obj_info(&mr->obj)->access | RMEM_ACCESS_ALLOCATE_MR);
	mr->addr = attr->addr;
	mr->length = attr->iov_count == 0 ? attr->length : 0;
	for (i = 0; i < attr->iov_count; i++)
		mr->length += attr->iov[i].iov_len;
	mr->iova = attr->iova;
	if (dm != NULL) {
		ret = rmem_obj_get(&dm->obj);
		if (ret != 0)
			return ret;
		rmem_mr_drv(mr)->owner = &dm->obj;
		mr->type = RMEM_MR_TYPE_DM;
		mr->access |= RMEM_ACCESS_ZERO_BASED;
		return 0; /* it has no fd and no ranges */
	}
	if ((attr->flags & RMEM_MR_FD) != 0)
		return rmem_mr_map_fd(mr, attr);
	return rmem_mr_copy_iov(mr, attr->iov, attr->iov_count);
}

/* Register an MR in the calling thread, and return it on success. */
static int
reg_now(struct rmem_mr *new_mr, const struct rmem_mr_attr *attr, struct rmem_mr **mr)
{
	int ret = register_mr(new_mr, attr);

	if (ret != 0)
		return ret;
	rmem_obj_list(&new_mr->obj);
	*mr = new_mr;
	rmem_trace_mr_reg(new_mr->pd, new_mr, new_mr->addr, new_mr->length, new_mr->iova,
			new_mr->access, new_mr->lkey, new_mr->rkey);
	return 0;
}

int
rmem_mr_reg_attr(struct rmem_pd *pd, const struct rmem_mr_attr *attr, struct rmem_mr **mr)
{
	RMEM_CALL(pd);
	struct rmem_mr *new_mr;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD);
	if (ret == 0)
		ret = rmem_check_arg(attr, "attributes");
	if (ret == 0)
		ret = rmem_check_arg(mr, "MR pointer");
	if (ret == 0)
		ret = rmem_mr_check_attr(rmem_obj_dev(&pd->obj), attr);
	if (ret != 0)
		return ret;
	new_mr = rmem_obj_create(&pd->obj, RMEM_OBJ_MR, rmem_obj_driver(&pd->obj)->mr_size, &ret);
	if (new_mr == NULL)
		return ret;
	new_mr->pd = pd;
	rmem_obj_set_name(&new_mr->obj, attr->name);
	ret = fill(new_mr, attr);
	if (ret == 0)
		ret = attr->eq != NULL ? start_reg(new_mr, attr, mr) : reg_now(new_mr, attr, mr);
	/* Do not access the MR on success: if its event was read, it may already be freed. */
	if (ret == 0)
		return 0;
	rmem_mr_put_owner(new_mr);
	rmem_mr_free_iov(new_mr);
	rmem_mr_unmap_fd(new_mr);
	rmem_obj_drop(&new_mr->obj, &pd->obj);
	return ret;
}

int
rmem_mr_reg(struct rmem_pd *pd, void *addr, size_t length, uint64_t iova, uint32_t access,
		struct rmem_mr **mr)
{
	struct rmem_mr_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.addr = addr;
	attr.length = length;
	attr.iova = iova;
	attr.access = access;
	attr.socket_id = SOCKET_ID_ANY;
	return rmem_mr_reg_attr(pd, &attr, mr);
}

static int
do_enable(struct rmem_mr *mr)
{
	int ret;

	ret = rmem_mr_check_registered(mr);
	if (ret != 0 || rmem_mr_state(mr) == RMEM_MR_STATE_VALID)
		return ret;
	ret = RMEM_OP(mr, mr_enable, mr);
	if (ret == 0) {
		rmem_mr_set_state(mr, RMEM_MR_STATE_VALID);
		rmem_trace_mr_enable(mr, mr->lkey, mr->rkey);
	}
	return ret;
}

int
rmem_mr_enable(struct rmem_mr *mr)
{
	RMEM_CALL(mr);
	int ret;

	ret = rmem_obj_check(mr, RMEM_OBJ_MR);
	if (ret == 0)
		ret = rmem_mr_check_user(mr);
	if (ret == 0)
		ret = rmem_obj_get(&mr->obj);
	if (ret != 0)
		return ret;
	ret = do_enable(mr);
	rmem_obj_unhold(&mr->obj);
	return ret;
}

/* Release the resources of an MR; the driver has none if the MR was never registered. */
static int
do_dereg(struct rmem_mr *mr)
{
	int ret = 0;

	if (!has_no_keys(rmem_mr_state(mr)) || (rmem_mr_drv(mr)->flags & RMEM_MR_HELD) != 0)
		ret = RMEM_OP(mr, mr_dereg, mr);
	if (ret != 0)
		return ret;
	rmem_trace_mr_dereg(mr, mr->lkey, mr->rkey);
	rmem_mr_free_chunk(mr, mr);
	rmem_mr_put_owner(mr);
	rmem_mr_free_iov(mr);
	rmem_mr_unmap_fd(mr);
	return 0;
}

int
rmem_mr_dereg(struct rmem_mr *mr)
{
	RMEM_CALL(mr);
	int ret;

	if (mr == NULL)
		return 0;
	ret = rmem_obj_check(mr, RMEM_OBJ_MR);
	if (ret == 0)
		ret = rmem_obj_kill(&mr->obj);
	if (ret != 0)
		return ret;
	ret = do_dereg(mr);
	return rmem_obj_end(&mr->obj, &mr->pd->obj, ret);
}

/* Fill the page fields of info for a user MR. */
static void
fill_pages(const struct rmem_mr *mr, struct rmem_mr_info *info)
{
	uint64_t page_size_cap = rmem_obj_info(&mr->obj)->page_size_cap;
	uint32_t log2_own = rmem_mr_drv(mr)->flags >> RMEM_MR_LOG2_PAGE_SHIFT;
	const struct iovec *iov;
	struct iovec one;
	uint32_t nb_iov = rmem_mr_ranges(mr, &one, &iov);

	if ((mr->access & RMEM_ACCESS_ON_DEMAND) != 0)
		rmem_mr_odp_pages_fill(mr, page_size_cap, info);
	else
		rmem_mr_pages_fill(iov, nb_iov, mr->iova,
				log2_own != 0 ? UINT64_C(1) << log2_own : 0, page_size_cap, info);
}

int
rmem_mr_query(const struct rmem_mr *mr, struct rmem_mr_info *info)
{
	RMEM_CALL(mr);
	struct rmem_mr_info tmp;
	int ret;

	ret = rmem_obj_check(mr, RMEM_OBJ_MR);
	if (ret == 0)
		ret = rmem_check_arg(info, "result");
	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	tmp.type = mr->type;
	tmp.state = rmem_mr_state(mr);
	tmp.access = mr->access;
	if (has_no_keys(tmp.state)) {
		*info = tmp;
		return 0;
	}
	/* Posts may change the keys of an MR that requests bind. */
	tmp.lkey = __atomic_load_n(&mr->lkey, __ATOMIC_RELAXED);
	tmp.rkey = __atomic_load_n(&mr->rkey, __ATOMIC_RELAXED);
	tmp.addr = mr->addr;
	tmp.iova = mr->iova;
	tmp.length = mr->length;
	if (mr->type == RMEM_MR_TYPE_FAST_REG)
		tmp.max_page_list_len = rmem_mr_drv(mr)->max_size;
	else if (mr->type == RMEM_MR_TYPE_INDIRECT)
		tmp.max_entries = rmem_mr_drv(mr)->max_size;
	tmp.is_shared = (rmem_mr_drv(mr)->flags & RMEM_MR_SHARED) != 0;
	tmp.is_fd = (rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0;
	if (mr->type == RMEM_MR_TYPE_USER && mr->length != 0)
		fill_pages(mr, &tmp);
	ret = RMEM_OP(mr, mr_query, (struct rmem_mr *)(uintptr_t)mr, &tmp);
	if (ret == 0)
		*info = tmp;
	return ret;
}

const char *
rmem_mr_name(const struct rmem_mr *mr)
{
	return mr != NULL ? rmem_obj_name(&mr->obj, RMEM_OBJ_MR) : "";
}
