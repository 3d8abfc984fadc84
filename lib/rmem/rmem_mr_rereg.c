/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Changing an MR that is in use.
 *
 * The MR counts as being released during the change: references to it prevent the change, and no
 * new reference can be taken. The new registration is a second struct rmem_mr, in which only the
 * fields copied by store() are valid. They are stored after the device has changed the
 * registration.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <rte_common.h>
#include <rte_memory.h>

#include "rmem_mr_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

#define REREG_FLAGS                                                                                \
	(RMEM_REREG_CHANGE_TRANSLATION | RMEM_REREG_CHANGE_PD | RMEM_REREG_CHANGE_ACCESS)
/* Access bits that are not rights: they describe the memory and its addresses. */
#define ACCESS_TRANSLATION (RMEM_ACCESS_ALLOCATE_MR | RMEM_ACCESS_ZERO_BASED)

static int
check_mr(const struct rmem_mr *mr, uint32_t flags, enum rmem_rereg_result *result)
{
	int ret = rmem_obj_check(mr, RMEM_OBJ_MR);

	if (ret != 0)
		return ret;
	if (flags == 0 || (flags & ~REREG_FLAGS) != 0)
		return RMEM_FAIL(EINVAL, "flags: none, or unknown bits: 0x%x (0x%x)", flags,
				REREG_FLAGS);
	ret = rmem_mr_check_user(mr);
	if (ret != 0)
		return ret;
	if (rmem_mr_state(mr) == RMEM_MR_STATE_ERROR)
		*result = RMEM_REREG_ERR_CMD;
	ret = rmem_mr_check_registered(mr);
	if (ret != 0)
		return ret;
	if ((flags & RMEM_REREG_CHANGE_TRANSLATION) != 0 &&
			(rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0)
		return RMEM_FAIL(EOPNOTSUPP, "MR of RMEM_MR_FD: not supported: CHANGE_TRANSLATION");
	return 0;
}

/* Check the arguments, by the rules of a new registration. */
static int
check_change(const struct rmem_mr *mr, uint32_t flags, const struct rmem_mr_attr *attr)
{
	struct rmem_mr_attr whole = *attr;
	int ret = rmem_mr_check_fd_access(mr, attr->access);

	if (ret != 0)
		return ret;
	if ((flags & RMEM_REREG_CHANGE_TRANSLATION) == 0) {
		if ((attr->access & ~mr->access & ACCESS_TRANSLATION) != 0)
			return RMEM_FAIL(EINVAL,
					"access: ALLOCATE_MR or ZERO_BASED without CHANGE_TRANSLATION");
		if ((mr->access & RMEM_ACCESS_ALLOCATE_MR) != 0 &&
				(attr->access & RMEM_ACCESS_ON_DEMAND) != 0)
			return RMEM_FAIL(EINVAL,
					"access: ALLOCATE_MR cannot be combined with ON_DEMAND");
		/* The file was checked when the MR was registered. */
		whole.access &= ~(RMEM_ACCESS_ALLOCATE_MR |
				(mr->access & RMEM_ACCESS_FLUSH_PERSISTENT));
	}
	return rmem_mr_check_attr(rmem_obj_dev(&mr->obj), &whole);
}

/* iova of the first byte of new memory. */
static uint64_t
iova_of(const void *addr, uint32_t access)
{
	return (access & RMEM_ACCESS_ZERO_BASED) != 0 ? 0 : (uintptr_t)addr;
}

/* Build the complete new registration: properties without a flag keep their values. */
static struct rmem_mr_attr
whole_attr(const struct rmem_mr *mr, const struct rmem_mr_rereg_attr *change)
{
	struct rmem_mr_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.addr = mr->addr;
	attr.length = mr->length;
	attr.iova = mr->iova;
	attr.access = mr->access;
	attr.iov = rmem_mr_drv(mr)->iov;
	attr.iov_count = rmem_mr_drv(mr)->iov_count;
	attr.socket_id = change->socket_id;
	if (rmem_mr_state(mr) == RMEM_MR_STATE_DISABLED)
		attr.flags = RMEM_MR_DISABLED;
	if ((change->flags & RMEM_REREG_CHANGE_ACCESS) != 0)
		attr.access = change->access | (mr->access & RMEM_ACCESS_ZERO_BASED);
	if ((change->flags & RMEM_REREG_CHANGE_TRANSLATION) != 0) {
		attr.addr = change->addr;
		attr.length = change->length;
		attr.iov = NULL;
		attr.iov_count = 0;
		attr.iova = iova_of(change->addr, attr.access);
		attr.access = (attr.access & ~RMEM_ACCESS_ALLOCATE_MR) |
				(change->access & RMEM_ACCESS_ALLOCATE_MR);
	}
	return attr;
}

static void
store(struct rmem_mr *mr, const struct rmem_mr *from)
{
	mr->access = from->access;
	mr->pd = from->pd;
	mr->addr = from->addr;
	mr->length = from->length;
	mr->iova = from->iova;
	rmem_mr_drv(mr)->iov = rmem_mr_drv(from)->iov;
	rmem_mr_drv(mr)->iov_count = rmem_mr_drv(from)->iov_count;
	rmem_mr_drv(mr)->flags = rmem_mr_drv(from)->flags;
	rmem_mr_drv(mr)->owner = rmem_mr_drv(from)->owner;
}

/* Reset the fields of a registration, as mr_reg requires. */
static void
clear_registration(struct rmem_mr *mr)
{
	mr->lkey = 0;
	mr->rkey = 0;
	memset(rmem_mr_drv(mr) + 1, 0,
			rmem_obj_driver(&mr->obj)->mr_size - sizeof(struct rmem_mr_drv));
}

/* Deregister and register again, for drivers that can't keep the keys. */
static int
rereg_by_reg(struct rmem_mr *mr, const struct rmem_mr *to, const struct rmem_mr_attr *attr,
		enum rmem_rereg_result *result)
{
	const struct rmem_mr_drv old = *rmem_mr_drv(mr);
	int ret;

	ret = RMEM_OP(mr, mr_dereg, mr);
	if (ret != 0)
		return ret;
	store(mr, to);
	clear_registration(mr);
	ret = RMEM_OP(mr, mr_reg, mr, attr);
	if (ret == 0) {
		*result = RMEM_REREG_NEW_KEYS;
		return 0;
	}
	store(mr, &old.mr);
	clear_registration(mr);
	*result = RMEM_REREG_ERR_CMD;
	return ret;
}

/* Change the MR at the device, and store the resulting registration; see *result. */
static int
rereg_device(struct rmem_mr *mr, uint32_t flags, const struct rmem_mr *to,
		const struct rmem_mr_attr *attr, enum rmem_rereg_result *result)
{
	int ret;

	ret = rmem_obj_driver(&mr->obj)->ops.mr_rereg(
			mr, flags, to->pd, to->addr, to->length, to->access, result);
	if (ret != -EOPNOTSUPP)
		rmem_traced(ret);
	if (ret == 0 && *result != RMEM_REREG_NEW_KEYS)
		*result = RMEM_REREG_OK;
	else if (ret == -EOPNOTSUPP)
		ret = rereg_by_reg(mr, to, attr, result);
	else if (*result <= RMEM_REREG_ERR_CMD)
		rmem_mr_drv(mr)->flags |= RMEM_MR_HELD;
	if (*result >= RMEM_REREG_OK || *result == RMEM_REREG_ERR_DO_FORK_OLD)
		store(mr, to);
	if (*result <= RMEM_REREG_ERR_CMD) {
		rmem_mr_set_state(mr, RMEM_MR_STATE_ERROR);
		RMEM_LOG(ERR, "MR %p: not valid: deregister it", (void *)mr);
	}
	return ret;
}

/* Acquire resources of the new registration, change it, and release the old resources. */
static int
do_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_mr *to, struct rmem_mr_attr *attr,
		enum rmem_rereg_result *result)
{
	struct rmem_mr_drv old = *rmem_mr_drv(mr);
	struct rmem_mr *unused = to;
	int ret;

	if ((flags & RMEM_REREG_CHANGE_TRANSLATION) != 0) {
		rmem_mr_drv(to)->flags ^= RMEM_MR_SECOND_NAME;
		rmem_mr_drv(to)->flags &= ~RMEM_MR_SHARED;
		rmem_mr_drv(to)->owner = NULL;
	}
	if ((flags & RMEM_REREG_CHANGE_TRANSLATION) != 0 &&
			(to->access & RMEM_ACCESS_ALLOCATE_MR) != 0) {
		ret = rmem_mr_alloc_chunk(to, mr, attr->socket_id);
		if (ret != 0) {
			*result = RMEM_REREG_ERR_DONT_FORK_NEW;
			return ret;
		}
		to->iova = iova_of(to->addr, to->access);
		attr->addr = to->addr;
		attr->length = to->length;
		attr->iova = to->iova;
	}
	ret = rmem_mr_check_hugetlb(to);
	if (ret == 0)
		ret = rereg_device(mr, flags, to, attr, result);
	if (*result >= RMEM_REREG_OK || *result == RMEM_REREG_ERR_DO_FORK_OLD)
		unused = &old.mr;
	if ((flags & RMEM_REREG_CHANGE_TRANSLATION) != 0) {
		rmem_mr_free_chunk(unused, mr);
		rmem_mr_free_iov(unused);
		rmem_mr_put_owner(unused);
	}
	return ret;
}

static int
rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, struct rmem_mr_attr *attr,
		enum rmem_rereg_result *result)
{
	struct rmem_pd *unused = pd;
	struct rmem_mr_drv to = *rmem_mr_drv(mr);
	int ret;

	ret = check_change(mr, flags, attr);
	if (ret == 0)
		ret = rmem_obj_kill(&mr->obj);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&pd->obj);
	if (ret != 0)
		goto revive_mr;
	to.mr.pd = pd;
	to.mr.addr = attr->addr;
	to.mr.length = attr->length;
	to.mr.iova = attr->iova;
	to.iov = attr->iov;
	to.iov_count = attr->iov_count;
	to.mr.access = attr->access & (rmem_obj_info(&mr->obj)->access | RMEM_ACCESS_ALLOCATE_MR);
	if ((flags & RMEM_REREG_CHANGE_TRANSLATION) == 0)
		to.mr.access |= mr->access & RMEM_ACCESS_ALLOCATE_MR;
	pd = mr->pd;
	ret = do_rereg(mr, flags, &to.mr, attr, result);
	rmem_trace_mr_rereg(
			mr, flags, *result, mr->addr, mr->length, mr->access, mr->lkey, mr->rkey);
	if (mr->pd != pd)
		unused = pd;
	rmem_obj_unhold(&unused->obj);
revive_mr:
	rmem_obj_revive(&mr->obj);
	return ret;
}

int
rmem_mr_rereg_attr(struct rmem_mr *mr, const struct rmem_mr_rereg_attr *attr,
		enum rmem_rereg_result *result)
{
	RMEM_CALL(mr);
	enum rmem_rereg_result tmp = RMEM_REREG_ERR_INPUT;
	struct rmem_mr_attr whole;
	int ret;

	ret = rmem_check_arg(attr, "attributes");
	if (ret == 0)
		ret = rmem_check_reserved(attr->reserved, sizeof(attr->reserved));
	if (ret == 0)
		ret = check_mr(mr, attr->flags, &tmp);
	if (ret == 0 && (attr->flags & RMEM_REREG_CHANGE_PD) != 0)
		ret = rmem_obj_check_of(attr->pd, RMEM_OBJ_PD, &mr->obj);
	if (ret == 0)
		ret = rmem_check_live(&mr->obj);
	if (ret == 0) {
		whole = whole_attr(mr, attr);
		ret = rereg(mr, attr->flags,
				(attr->flags & RMEM_REREG_CHANGE_PD) != 0 ? attr->pd : mr->pd,
				&whole, &tmp);
	}
	if (result != NULL)
		*result = tmp;
	return ret;
}

int
rmem_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result)
{
	const struct rmem_mr_rereg_attr attr = {
			.flags = flags,
			.access = access,
			.pd = pd,
			.addr = addr,
			.length = length,
			.socket_id = SOCKET_ID_ANY,
	};

	return rmem_mr_rereg_attr(mr, &attr, result);
}
