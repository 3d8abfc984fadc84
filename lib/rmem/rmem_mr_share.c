/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * MRs that share memory. MRs over memory of the user do not know each other. Memory of
 * ALLOCATE_MR goes with the MR that it was allocated for, its owner, so that each MR that
 * shares it counts as referring to the owner, also when it was shared from another sharer.
 */

#include <errno.h>
#include <string.h>

#include <rte_memory.h>

#include <rmem_mr_priv.h>
#include <rmem_priv.h>
#include <rmem_trace_priv.h>

static int
check_from(const struct rmem_mr *from, const char *func)
{
	int ret = rmem_obj_check(from, RMEM_OBJ_MR, func);

	if (ret != 0)
		return ret;
	if (from->type != RMEM_MR_TYPE_USER) {
		RMEM_LOG(ERR, "%s: MR type %u can't be shared, only %u", func, from->type,
				RMEM_MR_TYPE_USER);
		return -EINVAL;
	}
	if (!rmem_mr_is_registered(from)) {
		RMEM_LOG(ERR, "%s: the MR %p has failed, or its registration is under way", func,
				(const void *)from);
		return -EBUSY;
	}
	return 0;
}

/* By the rules of a new registration. */
static int
check_shared(const struct rmem_mr *from, uint64_t iova, uint32_t access,
		const struct rmem_dev_info *info, const char *func)
{
	struct rmem_mr_attr attr;

	if ((info->capa & RMEM_DEV_CAPA_SHARED_MR) == 0) {
		RMEM_LOG(ERR, "%s: the device can't share MRs", func);
		return -EOPNOTSUPP;
	}
	memset(&attr, 0, sizeof(attr));
	attr.addr = from->addr;
	attr.length = from->length;
	attr.iov = from->iov;
	attr.iov_count = from->iov_count;
	attr.iova = iova;
	attr.access = access;
	attr.socket_id = SOCKET_ID_ANY;
	return rmem_mr_check_attr(rmem_obj_dev(&from->obj), &attr, info, func);
}

/* A new MR over the memory of from; the caller holds references to from and pd. */
static int
do_share(struct rmem_mr *from, struct rmem_pd *pd, uint64_t iova, uint32_t access,
		struct rmem_mr **mr)
{
	struct rmem_dev *dev = rmem_obj_dev(&from->obj);
	struct rmem_mr *new_mr;
	int ret;

	new_mr = rmem_obj_alloc(dev, RMEM_OBJ_MR, rmem_dev_driver(dev)->mr_size);
	if (new_mr == NULL)
		return -ENOMEM;
	new_mr->pd = pd;
	new_mr->type = RMEM_MR_TYPE_USER;
	new_mr->access = access;
	new_mr->addr = from->addr;
	new_mr->length = from->length;
	new_mr->iova = iova;
	if (iova == 0 && (access & RMEM_ACCESS_ZERO_BASED) == 0)
		new_mr->iova = rmem_mr_first(from);
	new_mr->flags = RMEM_MR_SHARED | (from->flags & (RMEM_MR_FD | RMEM_MR_FD_READ_ONLY));
	if ((from->flags & RMEM_MR_FD) != 0)
		new_mr->flags |= from->flags & UINT32_MAX << RMEM_MR_LOG2_PAGE_SHIFT;
	ret = rmem_mr_copy_iov(new_mr, from->iov, from->iov_count);
	if (ret == 0)
		ret = rmem_mr_check_hugetlb(new_mr);
	if (ret == 0)
		ret = rmem_dev_ops(dev)->mr_share(new_mr, from);
	if (ret != 0) {
		rmem_mr_free_iov(new_mr);
		rmem_obj_free(&new_mr->obj);
		return ret;
	}
	rmem_mr_set_state(new_mr, RMEM_MR_STATE_VALID);
	*mr = new_mr;
	return 0;
}

/* Whose memory it is stays while the new MR is there; from stays while it is made. */
static int
share(struct rmem_mr *from, struct rmem_pd *pd, uint64_t iova, uint32_t access, struct rmem_mr **mr,
		const char *func)
{
	struct rmem_mr *owner;
	int ret;

	ret = rmem_obj_get(&from->obj, func);
	if (ret != 0)
		return ret;
	owner = from->owner;
	if ((from->access & RMEM_ACCESS_ALLOCATE_MR) != 0 ||
			(from->flags & (RMEM_MR_FD | RMEM_MR_SHARED)) == RMEM_MR_FD)
		owner = from;
	if (owner != NULL)
		ret = rmem_obj_get(&owner->obj, func);
	if (ret != 0)
		goto put_from;
	ret = rmem_obj_get(&pd->obj, func);
	if (ret != 0)
		goto put_owner;
	ret = do_share(from, pd, iova, access, mr);
	if (ret == 0) {
		(*mr)->owner = owner;
		goto put_from;
	}
	rmem_obj_put(&pd->obj);
put_owner:
	if (owner != NULL)
		rmem_obj_put(&owner->obj);
put_from:
	rmem_obj_put(&from->obj);
	return ret;
}

static int
mr_reg_shared(struct rmem_mr *from, struct rmem_pd *pd, uint64_t iova, uint32_t access,
		struct rmem_mr **mr)
{
	struct rmem_dev_info info;
	int ret;

	ret = check_from(from, "rmem_mr_reg_shared");
	if (ret == 0)
		ret = rmem_mr_check_pd(from, pd, "rmem_mr_reg_shared");
	if (ret == 0 && mr == NULL) {
		RMEM_LOG(ERR, "got NULL for the MR pointer");
		ret = -EINVAL;
	}
	if (ret == 0)
		ret = rmem_dev_info_fill(rmem_obj_dev(&from->obj), &info);
	if (ret == 0)
		ret = check_shared(from, iova, access, &info, "rmem_mr_reg_shared");
	if (ret == 0)
		ret = rmem_mr_check_fd_access(from, access);
	if (ret != 0)
		return ret;
	ret = share(from, pd, iova, access & info.access, mr, "rmem_mr_reg_shared");
	if (ret == 0)
		rmem_trace_mr_share(from, pd, *mr, (*mr)->access, (*mr)->lkey, (*mr)->rkey);
	return ret;
}

int
rmem_mr_reg_shared(struct rmem_mr *from, struct rmem_pd *pd, uint64_t iova, uint32_t access,
		struct rmem_mr **mr)
{
	return rmem_trace_call(__func__, from, mr_reg_shared(from, pd, iova, access, mr));
}
