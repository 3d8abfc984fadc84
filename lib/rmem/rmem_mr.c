/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Memory regions. An MR refers to its PD; memory that the library allocated for it is a
 * memzone named after the address of the MR.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#include <rmem_chunk.h>

#include "rmem_mr_pages_priv.h"
#include "rmem_mr_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

/* MW_BIND, ZERO_BASED, ON_DEMAND and HUGETLB: known bits, which a device may lack. */
#define ACCESS_VERBS UINT32_C(0xf0)

static int
check_access(const struct rmem_dev *dev, uint32_t access)
{
	uint32_t known = rmem_obj_info(&dev->obj)->access | RMEM_ACCESS_LOCAL_WRITE |
			RMEM_ACCESS_REMOTE | ACCESS_VERBS | RMEM_ACCESS_OPTIONAL_RANGE |
			RMEM_ACCESS_ALLOCATE_MR;

	if ((access & ~known) != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown access bits: 0x%x in 0x%x", dev->name,
				access & ~known, access);
	/* IBTA C10-72 */
	if ((access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)) != 0 &&
			(access & RMEM_ACCESS_LOCAL_WRITE) == 0)
		return RMEM_FAIL(EINVAL,
				"%s: remote right to modify without LOCAL_WRITE: access 0x%x",
				dev->name, access);
	return 0;
}

/* Check the range alone; with ALLOCATE_MR the address is not known yet. */
static int
check_range(const struct rmem_dev *dev, const struct rmem_mr_attr *attr)
{
	bool is_allocated = (attr->access & RMEM_ACCESS_ALLOCATE_MR) != 0;
	uint64_t max_mr_size = rmem_obj_info(&dev->obj)->max_mr_size;

	if (rmem_mr_is_implicit(attr->addr, attr->length, attr->access))
		return 0;
	if (attr->iov_count == 0 && (attr->flags & RMEM_MR_FD) == 0 &&
			is_allocated != (attr->addr == NULL))
		return RMEM_FAIL(EINVAL, "%s: addr %p %s ALLOCATE_MR", dev->name, attr->addr,
				is_allocated ? "with" : "without");
	if (attr->length == 0 || attr->length > max_mr_size)
		return RMEM_FAIL(EINVAL, "%s: MR length out of range: %zu (1 to %" PRIu64 ")",
				dev->name, attr->length, max_mr_size);
	if ((attr->access & RMEM_ACCESS_ZERO_BASED) != 0 && attr->iova != 0)
		return RMEM_FAIL(EINVAL, "%s: iova with ZERO_BASED: 0x%" PRIx64, dev->name,
				attr->iova);
	if ((attr->iov_count == 0 && attr->length - 1 > UINTPTR_MAX - (uintptr_t)attr->addr) ||
			attr->length - 1 > UINT64_MAX - attr->iova)
		return RMEM_FAIL(EINVAL, "%s: range wraps around: %zu bytes at %p, iova 0x%" PRIx64,
				dev->name, attr->length, attr->addr, attr->iova);
	return 0;
}

/* Flags of a registration, and the capabilities that they need. */
static int
check_flags(const struct rmem_dev *dev, const struct rmem_mr_attr *attr)
{
	static const struct {
		uint32_t flag;
		uint64_t capa;
	} flags[] = {
			{RMEM_MR_REQUESTED_KEY, RMEM_DEV_CAPA_REQUESTED_KEY},
			{RMEM_MR_DISABLED, RMEM_DEV_CAPA_MR_ENABLE},
			{RMEM_MR_FD, RMEM_DEV_CAPA_MR_FD},
	};
	uint64_t capa = rmem_obj_info(&dev->obj)->capa;
	uint32_t unknown = attr->flags;
	size_t i;

	for (i = 0; i < RTE_DIM(flags); i++)
		unknown &= ~flags[i].flag;
	if (unknown != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown MR flags: 0x%x in 0x%x", dev->name, unknown,
				attr->flags);
	if ((attr->flags & RMEM_MR_REQUESTED_KEY) == 0 && attr->requested_key != 0)
		return RMEM_FAIL(EINVAL, "%s: requested_key without RMEM_MR_REQUESTED_KEY: 0x%08x",
				dev->name, attr->requested_key);
	for (i = 0; i < RTE_DIM(flags); i++) {
		if ((attr->flags & flags[i].flag) != 0 && (capa & flags[i].capa) == 0)
			return RMEM_FAIL(EOPNOTSUPP,
					"%s: not supported by the device: MR flag 0x%x", dev->name,
					flags[i].flag);
	}
	return 0;
}

int
rmem_mr_check_attr(const struct rmem_dev *dev, const struct rmem_mr_attr *attr)
{
	struct rmem_mr_attr whole = *attr;
	uint32_t lacking;
	int ret;

	ret = rmem_check_reserved(attr->reserved, sizeof(attr->reserved));
	if (ret == 0)
		ret = check_access(dev, attr->access);
	if (ret == 0)
		ret = rmem_mr_check_odp(dev, attr);
	if (ret == 0 && (attr->iov != NULL || attr->iov_count != 0))
		ret = rmem_mr_check_iov(dev, attr, &whole.length);
	if (ret == 0)
		ret = check_range(dev, &whole);
	if (ret == 0 && (attr->access & RMEM_ACCESS_ALLOCATE_MR) != 0)
		ret = rmem_socket_check(attr->socket_id);
	if (ret != 0)
		return ret;
	lacking = attr->access &
			~(rmem_obj_info(&dev->obj)->access | RMEM_ACCESS_OPTIONAL_RANGE |
					RMEM_ACCESS_ALLOCATE_MR);
	if (lacking != 0)
		return RMEM_FAIL(EOPNOTSUPP,
				"%s: not supported by the device: access bits 0x%x of 0x%x",
				dev->name, lacking, attr->access);
	ret = rmem_mr_check_odp_capa(dev, attr);
	if (ret == 0)
		ret = check_flags(dev, attr);
	if (ret == 0 && attr->eq != NULL)
		ret = rmem_obj_check_of(attr->eq, RMEM_OBJ_EQ, &dev->obj);
	if (ret == 0)
		ret = rmem_mr_check_fd(dev, attr);
	return ret;
}

int
rmem_mr_check_user(const struct rmem_mr *mr)
{
	if (mr->type == RMEM_MR_TYPE_USER)
		return 0;
	return RMEM_FAIL(EINVAL, "MR %p: bound by requests: type %u (expected %u)",
			(const void *)mr, mr->type, RMEM_MR_TYPE_USER);
}

int
rmem_mr_check_registered(const struct rmem_mr *mr)
{
	if (rmem_mr_is_registered(mr))
		return 0;
	return RMEM_FAIL(EBUSY, "MR %p: registration %s", (const void *)mr,
			rmem_mr_state(mr) == RMEM_MR_STATE_ERROR ? "failed: deregister it"
								 : "is in progress");
}

/* Name the memory of an MR. Memory from before and after a change exists at the same time. */
static void
chunk_name(const struct rmem_mr *of, const struct rmem_mr *mr, char *name)
{
	snprintf(name, RTE_MEMZONE_NAMESIZE, "rmem_mr_%p%s", (const void *)mr,
			(rmem_mr_drv(of)->flags & RMEM_MR_SECOND_NAME) != 0 ? "b" : "a");
}

/* Bytes that rounding adds beyond the limit are not registered. */
int
rmem_mr_alloc_chunk(struct rmem_mr *of, const struct rmem_mr *mr, int socket_id)
{
	char name[RTE_MEMZONE_NAMESIZE];
	const struct rte_memzone *mz;
	int ret;

	chunk_name(of, mr, name);
	ret = rmem_chunk_alloc(name, of->length, socket_id, &mz);
	if (ret != 0)
		return ret;
	of->addr = mz->addr;
	of->length = RTE_MIN(mz->len, rmem_obj_info(&mr->obj)->max_mr_size);
	if (of->iova != 0 && of->length - 1 > UINT64_MAX - of->iova) {
		rte_memzone_free(mz);
		return RMEM_FAIL(EINVAL, "MR: range wraps around: %zu bytes at iova 0x%" PRIx64,
				of->length, of->iova);
	}
	return 0;
}

void
rmem_mr_free_chunk(const struct rmem_mr *of, const struct rmem_mr *mr)
{
	char name[RTE_MEMZONE_NAMESIZE];

	if ((of->access & RMEM_ACCESS_ALLOCATE_MR) == 0)
		return;
	chunk_name(of, mr, name);
	rte_memzone_free(rte_memzone_lookup(name));
}

int
rmem_mr_check_hugetlb(struct rmem_mr *mr)
{
	const struct iovec *iov;
	uint64_t page_size = 0;
	struct iovec one;
	uint32_t nb_iov;
	int ret;

	if ((rmem_mr_drv(mr)->flags & RMEM_MR_FD) == 0)
		rmem_mr_drv(mr)->flags &= ~(UINT32_MAX << RMEM_MR_LOG2_PAGE_SHIFT);
	if ((mr->access & RMEM_ACCESS_HUGETLB) == 0)
		return 0;
	nb_iov = rmem_mr_ranges(mr, &one, &iov);
	ret = rmem_hugetlb_check(iov, nb_iov, &page_size);
	if (ret == 0)
		rmem_mr_drv(mr)->flags |= rte_log2_u64(page_size) << RMEM_MR_LOG2_PAGE_SHIFT;
	return ret;
}

/* Whether its registration is in progress, or failed. */
static bool
has_no_keys(uint16_t state)
{
	return state == RMEM_MR_STATE_PENDING || state == RMEM_MR_STATE_ERROR;
}

/* Set the fields of a new MR that are known before the registration. */
static int
fill(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	uint32_t i;

	mr->type = RMEM_MR_TYPE_USER;
	mr->access = attr->access & (rmem_obj_info(&mr->obj)->access | RMEM_ACCESS_ALLOCATE_MR);
	mr->addr = attr->addr;
	mr->length = attr->iov_count == 0 ? attr->length : 0;
	for (i = 0; i < attr->iov_count; i++)
		mr->length += attr->iov[i].iov_len;
	mr->iova = attr->iova;
	if ((attr->flags & RMEM_MR_FD) != 0)
		return rmem_mr_map_fd(mr, attr);
	return rmem_mr_copy_iov(mr, attr->iov, attr->iov_count);
}

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
	if (mr->iova == 0 && (mr->access & RMEM_ACCESS_ZERO_BASED) == 0)
		mr->iova = rmem_mr_first(mr);
	ret = rmem_mr_check_hugetlb(mr);
	if (ret == 0)
		ret = RMEM_OP(mr, mr_reg, mr, attr);
	if (ret != 0)
		rmem_mr_free_chunk(mr, mr);
	return ret;
}

int
rmem_mr_do_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
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

/* Register an MR in the calling thread, and return it on success. */
static int
reg_now(struct rmem_mr *new_mr, const struct rmem_mr_attr *attr, struct rmem_mr **mr)
{
	int ret = rmem_mr_do_reg(new_mr, attr);

	if (ret != 0)
		return ret;
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
	ret = fill(new_mr, attr);
	if (ret == 0)
		ret = attr->eq != NULL ? rmem_async_reg(new_mr, attr, mr)
				       : reg_now(new_mr, attr, mr);
	/* An MR whose event was read may already be freed. */
	if (ret == 0)
		return 0;
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

/* An MR that was never registered has no resources of the driver. */
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
		ret = rmem_check_arg(info, "answer");
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
	tmp.lkey = mr->lkey;
	tmp.rkey = mr->rkey;
	tmp.addr = mr->addr;
	tmp.iova = mr->iova;
	tmp.length = mr->length;
	if (mr->type == RMEM_MR_TYPE_FAST_REG)
		tmp.max_page_list_len = rmem_mr_drv(mr)->max_size;
	else if (mr->type == RMEM_MR_TYPE_INDIRECT)
		tmp.max_entries = rmem_mr_drv(mr)->max_size;
	tmp.is_shared = (rmem_mr_drv(mr)->flags & RMEM_MR_SHARED) != 0;
	tmp.is_fd = (rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0;
	if (mr->type == RMEM_MR_TYPE_USER)
		fill_pages(mr, &tmp);
	ret = RMEM_OP(mr, mr_query, (struct rmem_mr *)(uintptr_t)mr, &tmp);
	if (ret == 0)
		*info = tmp;
	return ret;
}
