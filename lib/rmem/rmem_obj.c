/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Objects: their tag, their life and who refers to them.
 *
 * rmem_obj::refs counts referrers; RMEM_OBJ_REFS_DEAD says that the object is being released. The
 * two exclude each other by compare-and-swap: what is referred to can't be released, what
 * is being released can't be referred to.
 */

#include <errno.h>
#include <stdbool.h>

#include <rte_eal.h>
#include <rte_log.h>
#include <rte_malloc.h>

#include <rmem_priv.h>

RTE_LOG_REGISTER(rmem_logtype, lib.rmem, NOTICE)

const char *
rmem_obj_type_str(uint32_t type)
{
	switch (type) {
	case RMEM_OBJ_NONE:
		return "released object";
	case RMEM_OBJ_DEV:
		return "device";
	case RMEM_OBJ_PD:
		return "PD";
	case RMEM_OBJ_MR:
		return "MR";
	case RMEM_OBJ_CQ:
		return "CQ";
	case RMEM_OBJ_QP:
		return "QP";
	case RMEM_OBJ_PAGE_LIST:
		return "page list";
	case RMEM_OBJ_POOL:
		return "pool";
	case RMEM_OBJ_MW:
		return "MW";
	case RMEM_OBJ_EQ:
		return "EQ";
	case RMEM_OBJ_COUNTER:
		return "counter";
	default:
		return "thing unknown";
	}
}

int
rmem_process_check(const char *func)
{
	if (rte_eal_process_type() != RTE_PROC_SECONDARY)
		return 0;
	RMEM_LOG(ERR, "%s: not supported in a secondary process; use the primary process", func);
	return -EOPNOTSUPP;
}

int
rmem_obj_check(const void *handle, uint32_t type, const char *func)
{
	const struct rmem_obj *obj = handle;
	int ret;

	/* First: the handle may be of another process and not mapped here. */
	ret = rmem_process_check(func);
	if (ret != 0)
		return ret;
	if (obj != NULL && obj->type == type)
		return 0;
	if (obj == NULL)
		RMEM_LOG(ERR, "%s: got NULL, expected a %s", func, rmem_obj_type_str(type));
	else
		RMEM_LOG(ERR, "%s: got %p, a %s (tag 0x%x), expected a %s", func, handle,
				rmem_obj_type_str(obj->type), obj->type, rmem_obj_type_str(type));
	return -EINVAL;
}

void *
rmem_obj_alloc(const struct rmem_dev *dev, uint32_t type, size_t size)
{
	struct rmem_obj *obj;

	size = RTE_CACHE_LINE_ROUNDUP(size);
	obj = rte_zmalloc_socket("rmem_obj", size, RTE_CACHE_LINE_SIZE, dev->socket_id);
	if (obj == NULL) {
		RMEM_LOG(ERR, "%s: no memory for a %s: %zu bytes on socket %d", dev->name,
				rmem_obj_type_str(type), size, dev->socket_id);
		return NULL;
	}
	obj->type = type;
	obj->dev_id = dev->obj.dev_id;
	return obj;
}

void
rmem_obj_free(struct rmem_obj *obj)
{
	__atomic_store_n(&obj->type, RMEM_OBJ_NONE, __ATOMIC_RELEASE);
	rte_free(obj);
}

int
rmem_obj_get(struct rmem_obj *obj, const char *func)
{
	if (rmem_obj_hold(obj))
		return 0;
	RMEM_LOG(ERR, "%s: the %s %p is being released", func, rmem_obj_type_str(obj->type),
			(void *)obj);
	return obj->type == RMEM_OBJ_DEV ? -ENODEV : -EINVAL;
}

void
rmem_obj_put(struct rmem_obj *obj)
{
	rmem_obj_unhold(obj);
}

int
rmem_obj_kill(struct rmem_obj *obj, const char *func)
{
	uint32_t refs = 0;

	if (__atomic_compare_exchange_n(&obj->refs, &refs, RMEM_OBJ_REFS_DEAD, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	if (func != NULL && (refs & RMEM_OBJ_REFS_DEAD) != 0)
		RMEM_LOG(ERR, "%s: the %s %p is being released already", func,
				rmem_obj_type_str(obj->type), (void *)obj);
	else if (func != NULL)
		RMEM_LOG(ERR, "%s: the %s %p is in use: %u references to it are left", func,
				rmem_obj_type_str(obj->type), (void *)obj, refs);
	return -EBUSY;
}

void
rmem_obj_revive(struct rmem_obj *obj)
{
	__atomic_fetch_and(&obj->refs, ~RMEM_OBJ_REFS_DEAD, __ATOMIC_RELEASE);
}

int
rmem_check_reserved(const void *mem, size_t n, const char *func)
{
	const uint8_t *byte = mem;
	size_t i;

	for (i = 0; i < n; i++) {
		if (byte[i] != 0) {
			RMEM_LOG(ERR, "%s: a reserved field is not zero", func);
			return -EINVAL;
		}
	}
	return 0;
}
