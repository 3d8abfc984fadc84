/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * MRs that share memory. MRs over memory of the user are independent. Memory of ALLOCATE_MR is
 * freed with the MR that it was allocated for, its owner. Therefore each MR that shares the memory
 * holds a reference to the owner, also if it was created from another MR that shares it.
 */

#include <errno.h>
#include <string.h>

#include <rte_memory.h>

#include "rmem_mr_priv.h"
#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

/* Check by the rules of a new registration. */
static int
check_shared(const struct rmem_mr *from, uint64_t iova, uint32_t access)
{
	struct rmem_mr_attr attr;
	int ret;

	if ((rmem_obj_info(&from->obj)->capa & RMEM_DEV_CAPA_SHARED_MR) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "MR: not supported by the device: shared MRs");
	memset(&attr, 0, sizeof(attr));
	attr.addr = from->addr;
	attr.length = from->length;
	attr.iov = rmem_mr_drv(from)->iov;
	attr.iov_count = rmem_mr_drv(from)->iov_count;
	attr.iova = iova;
	attr.access = access;
	attr.socket_id = SOCKET_ID_ANY;
	ret = rmem_mr_check_attr(rmem_obj_dev(&from->obj), &attr);
	return ret != 0 ? ret : rmem_mr_check_fd_access(from, access);
}

/* Set the memory of a new MR to the memory of from. */
static int
do_share(struct rmem_mr *mr, struct rmem_mr *from, uint64_t iova, uint32_t access)
{
	int ret;

	mr->type = RMEM_MR_TYPE_USER;
	mr->access = access & rmem_obj_info(&from->obj)->access;
	mr->addr = from->addr;
	mr->length = from->length;
	mr->iova = iova;
	if (iova == 0 && (access & RMEM_ACCESS_ZERO_BASED) == 0)
		mr->iova = rmem_mr_first(from);
	rmem_mr_drv(mr)->flags = RMEM_MR_SHARED |
			(rmem_mr_drv(from)->flags & (RMEM_MR_FD | RMEM_MR_FD_READ_ONLY));
	if ((rmem_mr_drv(from)->flags & RMEM_MR_FD) != 0)
		rmem_mr_drv(mr)->flags |=
				rmem_mr_drv(from)->flags & UINT32_MAX << RMEM_MR_LOG2_PAGE_SHIFT;
	ret = rmem_mr_copy_iov(mr, rmem_mr_drv(from)->iov, rmem_mr_drv(from)->iov_count);
	if (ret == 0)
		ret = rmem_mr_check_hugetlb(mr);
	if (ret == 0)
		ret = RMEM_OP(mr, mr_share, mr, from);
	if (ret != 0)
		rmem_mr_free_iov(mr);
	else
		rmem_mr_set_state(mr, RMEM_MR_STATE_VALID);
	return ret;
}

/*
 * Take a reference to the owner of the memory, until the new MR is released; NULL: memory of the
 * user.
 */
static int
get_owner(struct rmem_mr *from, struct rmem_obj **owner)
{
	*owner = rmem_mr_drv(from)->owner;
	if ((from->access & RMEM_ACCESS_ALLOCATE_MR) != 0 ||
			(rmem_mr_drv(from)->flags & (RMEM_MR_FD | RMEM_MR_SHARED)) == RMEM_MR_FD)
		*owner = &from->obj;
	return *owner != NULL ? rmem_obj_get(*owner) : 0;
}

/* Call with a reference to from, which is kept during the registration. */
static int
share(struct rmem_mr *from, struct rmem_pd *pd, uint64_t iova, uint32_t access, struct rmem_mr **mr)
{
	struct rmem_mr *new_mr;
	int ret;

	new_mr = rmem_obj_create(&pd->obj, RMEM_OBJ_MR, rmem_obj_driver(&pd->obj)->mr_size, &ret);
	if (new_mr == NULL)
		return ret;
	new_mr->pd = pd;
	ret = get_owner(from, &rmem_mr_drv(new_mr)->owner);
	if (ret != 0)
		goto drop_mr;
	ret = do_share(new_mr, from, iova, access);
	if (ret != 0)
		goto put_owner;
	rmem_obj_set_name(&new_mr->obj, rmem_mr_name(from));
	rmem_obj_list(&new_mr->obj);
	*mr = new_mr;
	return 0;

put_owner:
	rmem_mr_put_owner(new_mr);
drop_mr:
	rmem_obj_drop(&new_mr->obj, &pd->obj);
	return ret;
}

int
rmem_mr_reg_shared(struct rmem_mr *from, struct rmem_pd *pd, uint64_t iova, uint32_t access,
		struct rmem_mr **mr)
{
	RMEM_CALL(from);
	int ret;

	ret = rmem_obj_check(from, RMEM_OBJ_MR);
	if (ret == 0)
		ret = rmem_mr_check_user(from);
	if (ret == 0)
		ret = rmem_mr_check_registered(from);
	if (ret == 0)
		ret = rmem_obj_check_of(pd, RMEM_OBJ_PD, &from->obj);
	if (ret == 0)
		ret = rmem_check_arg(mr, "MR pointer");
	if (ret == 0)
		ret = check_shared(from, iova, access);
	if (ret == 0)
		ret = rmem_obj_get(&from->obj);
	if (ret != 0)
		return ret;
	ret = share(from, pd, iova, access, mr);
	if (ret == 0)
		rmem_trace_mr_share(from, pd, *mr, (*mr)->access, (*mr)->lkey, (*mr)->rkey);
	rmem_obj_unhold(&from->obj);
	return ret;
}
