/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Objects: tags, lifetime, references, and their number per device.
 *
 * Invariant: rmem_obj::refs counts references; RMEM_OBJ_REFS_DEAD marks an object that is being
 * released. They exclude each other: the mark is set with a compare-and-swap from 0 references, and
 * rmem_obj_hold() undoes its increment if it finds the mark. So an object with references cannot be
 * released, and no reference can be taken to an object that is being released.
 * rmem_xrcd_kill_left() sets the mark of a device whose only references are those of closed XRC
 * domains, which are then released.
 *
 * Each object but a device refers to its parent, a device or a PD, from rmem_obj_create() to
 * rmem_obj_drop(), and is counted in its device for the same time.
 */

#include <errno.h>
#include <stdbool.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"

#define KIND(what, field)                                                                          \
	{                                                                                          \
		what, offsetof(struct rmem_dev_info, max_##field),                                 \
				offsetof(struct rmem_dev_info, nb_##field)                         \
	}

/* Kinds of objects, by RMEM_OBJ_KIND(); max and nb are 0 for objects without a limit. */
static const struct {
	const char *name;
	size_t max; /* offset of the limit in struct rmem_dev_info */
	size_t nb;  /* offset of the number in use */
} kinds[RMEM_OBJ_NB_KINDS] = {
		{"released object", 0, 0},
		{"device", 0, 0},
		KIND("PD", pd),
		KIND("MR", mr),
		KIND("CQ", cq),
		KIND("QP", qp),
		{"page list", 0, 0},
		{"pool", 0, 0},
		KIND("MW", mw),
		{"EQ", 0, 0},
		{"counter", 0, 0},
		KIND("SRQ", srq),
		{"completion channel", 0, 0},
		{"AH", 0, 0},
		{"channel of asynchronous events", 0, 0},
		{"XRC domain", 0, 0},
		KIND("DM", dm),
};

static bool
is_never_posted(const struct rmem_obj *obj)
{
	RTE_SET_USED(obj);
	return false;
}

static rmem_obj_posted_t is_posted = is_never_posted;

/* Objects created so far, by kind; atomic. */
static uint32_t nb_created[RMEM_OBJ_NB_KINDS];

static const char *
name_of(uint32_t type)
{
	if (type != RMEM_OBJ_NONE && (type & ~UINT32_C(0xff)) != (RMEM_OBJ_DEV & ~UINT32_C(0xff)))
		return "object";
	return RMEM_OBJ_KIND(type) < RMEM_OBJ_NB_KINDS ? kinds[RMEM_OBJ_KIND(type)].name : "object";
}

int
rmem_process_check(void)
{
	if (rmem_process_is_child())
		return RMEM_FAIL(EOPNOTSUPP,
				"child of fork(): not supported (call from the process that called fork())");
	if (rte_eal_process_type() != RTE_PROC_SECONDARY)
		return 0;
	return RMEM_FAIL(EOPNOTSUPP,
			"secondary process: not supported (call from the primary process)");
}

int
rmem_obj_check(const void *handle, uint32_t type)
{
	const struct rmem_obj *obj = handle;
	uint32_t tag;
	int ret;

	/* Checked first, because a handle of another process may not be mapped here. */
	ret = rmem_process_check();
	if (ret != 0)
		return ret;
	if (obj == NULL)
		return RMEM_FAIL(EINVAL, "handle: NULL, expected a %s", name_of(type));
	/* Another thread may create a device of this number, or close it: with release. */
	tag = __atomic_load_n(&obj->type, __ATOMIC_ACQUIRE);
	if (tag != type)
		return RMEM_FAIL(EINVAL, "handle: %p, a %s (tag 0x%x), expected a %s", handle,
				name_of(tag), tag, name_of(type));
	return 0;
}

int
rmem_obj_check_of(const void *handle, uint32_t type, const struct rmem_obj *other)
{
	const struct rmem_obj *obj = handle;
	int ret;

	ret = rmem_obj_check(handle, type);
	if (ret == 0 && obj->dev_id != other->dev_id)
		ret = RMEM_FAIL(EINVAL, "%s %p: of another device: %s (the %s is of %s)",
				name_of(type), handle, rmem_obj_dev(obj)->name,
				name_of(other->type), rmem_obj_dev(other)->name);
	return ret;
}

int
rmem_check_arg(const void *arg, const char *what)
{
	return arg != NULL ? 0 : RMEM_FAIL(EINVAL, "%s: NULL", what);
}

struct rmem_dev *
rmem_obj_dev(const struct rmem_obj *obj)
{
	return &rmem_devs[obj->dev_id].drv.dev;
}

int
rmem_check_live(const struct rmem_obj *obj)
{
	if (!__atomic_load_n(&rmem_devs[obj->dev_id].has_failed, __ATOMIC_RELAXED))
		return 0;
	return RMEM_FAIL(EIO, "%s: the device has failed", rmem_obj_dev(obj)->name);
}

int
rmem_obj_get(struct rmem_obj *obj)
{
	const uint32_t tag = __atomic_load_n(&obj->type, __ATOMIC_RELAXED);

	if (rmem_obj_hold(obj))
		return 0;
	return RMEM_FAIL(tag == RMEM_OBJ_DEV ? ENODEV : EINVAL, "%s %p: is being released",
			name_of(tag), (void *)obj);
}

static uint32_t
max_of(const struct rmem_dev_slot *slot, uint32_t kind)
{
	if (kinds[kind].max == 0)
		return UINT32_MAX;
	return *(const uint32_t *)RTE_PTR_ADD(&slot->info, kinds[kind].max);
}

/* Add an object to the count of its device, unless the count is at its limit. */
static int
count(struct rmem_dev_slot *slot, uint32_t kind)
{
	uint32_t nb = __atomic_load_n(&slot->nb[kind], __ATOMIC_RELAXED);
	uint32_t max = max_of(slot, kind);

	do {
		if (nb >= max)
			return RMEM_FAIL(ENOSPC, "%s: table full: %u %ss", slot->drv.dev.name, max,
					kinds[kind].name);
	} while (!__atomic_compare_exchange_n(
			&slot->nb[kind], &nb, nb + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 0;
}

void *
rmem_obj_create(struct rmem_obj *parent, uint32_t type, size_t size, int *ret)
{
	struct rmem_dev_slot *slot = &rmem_devs[parent->dev_id];
	struct rmem_obj_head *head;
	struct rmem_obj *obj;

	*ret = rmem_check_live(parent);
	if (*ret == 0)
		*ret = rmem_obj_get(parent);
	if (*ret != 0)
		return NULL;
	*ret = count(slot, RMEM_OBJ_KIND(type));
	if (*ret != 0)
		goto put_parent;
	size = RTE_CACHE_LINE_ROUNDUP(sizeof(*head) + size);
	head = rte_zmalloc_socket("rmem_obj", size, RTE_CACHE_LINE_SIZE, slot->drv.dev.socket_id);
	if (head == NULL) {
		*ret = RMEM_FAIL(ENOMEM, "%s: no memory for a %s: %zu bytes on socket %d",
				slot->drv.dev.name, name_of(type), size, slot->drv.dev.socket_id);
		goto uncount;
	}
	head->created_ns = rmem_now_ns(CLOCK_MONOTONIC);
	head->number = __atomic_add_fetch(&nb_created[RMEM_OBJ_KIND(type)], 1, __ATOMIC_RELAXED);
	obj = (struct rmem_obj *)(head + 1);
	obj->type = type;
	obj->dev_id = parent->dev_id;
	return obj;

uncount:
	__atomic_fetch_sub(&slot->nb[RMEM_OBJ_KIND(type)], 1, __ATOMIC_RELAXED);
put_parent:
	rmem_obj_unhold(parent);
	return NULL;
}

void
rmem_obj_drop(struct rmem_obj *obj, struct rmem_obj *parent)
{
	uint32_t *nb = &rmem_devs[obj->dev_id].nb[RMEM_OBJ_KIND(obj->type)];

	rmem_obj_unlist(obj);
	__atomic_store_n(&obj->type, RMEM_OBJ_NONE, __ATOMIC_RELEASE);
	rte_free(rmem_obj_head(obj));
	__atomic_fetch_sub(nb, 1, __ATOMIC_RELAXED);
	rmem_obj_unhold(parent);
}

void
rmem_obj_set_posted(rmem_obj_posted_t func)
{
	is_posted = func;
}

uint32_t
rmem_obj_kill_quietly(struct rmem_obj *obj)
{
	uint32_t refs = 0;

	__atomic_compare_exchange_n(&obj->refs, &refs, RMEM_OBJ_REFS_DEAD, false, __ATOMIC_ACQ_REL,
			__ATOMIC_RELAXED);
	return refs;
}

int
rmem_obj_kill(struct rmem_obj *obj)
{
	uint32_t refs = rmem_obj_kill_quietly(obj);
	struct rmem_name_text text;

	if (refs == 0 && is_posted(obj)) {
		__atomic_fetch_and(&obj->refs, ~RMEM_OBJ_REFS_DEAD, __ATOMIC_RELEASE);
		return RMEM_FAIL(EBUSY, "%s %p%s: in use: by a request of a secondary process",
				name_of(obj->type), (void *)obj,
				rmem_name_text(rmem_obj_head(obj)->name, &text));
	}
	if (refs == 0) {
		rmem_obj_unlist(obj);
		return 0;
	}
	if ((refs & RMEM_OBJ_REFS_DEAD) != 0)
		return RMEM_FAIL(EBUSY, "%s %p%s: is already being released", name_of(obj->type),
				(void *)obj, rmem_name_text(rmem_obj_head(obj)->name, &text));
	return RMEM_FAIL(EBUSY, "%s %p%s: in use: %u references", name_of(obj->type), (void *)obj,
			rmem_name_text(rmem_obj_head(obj)->name, &text), refs);
}

void
rmem_obj_revive(struct rmem_obj *obj)
{
	rmem_obj_relist(obj);
	__atomic_fetch_and(&obj->refs, ~RMEM_OBJ_REFS_DEAD, __ATOMIC_RELEASE);
}

int
rmem_obj_end(struct rmem_obj *obj, struct rmem_obj *parent, int ret)
{
	if (ret == 0)
		rmem_obj_drop(obj, parent);
	else
		rmem_obj_revive(obj);
	return ret;
}

void
rmem_obj_counts_get(const struct rmem_dev *dev, struct rmem_dev_info *info)
{
	const struct rmem_dev_slot *slot = &rmem_devs[dev->obj.dev_id];
	uint32_t i;

	for (i = 0; i < RMEM_OBJ_NB_KINDS; i++) {
		if (kinds[i].nb != 0)
			*(uint32_t *)RTE_PTR_ADD(info, kinds[i].nb) =
					__atomic_load_n(&slot->nb[i], __ATOMIC_RELAXED);
	}
}

int
rmem_obj_counts_check(const struct rmem_dev *dev)
{
	const struct rmem_dev_slot *slot = &rmem_devs[dev->obj.dev_id];
	uint32_t i, nb;

	for (i = 0; i < RMEM_OBJ_NB_KINDS; i++) {
		nb = __atomic_load_n(&slot->nb[i], __ATOMIC_RELAXED);
		if (nb > max_of(slot, i))
			return RMEM_FAIL(EIO, "audit: %s: %u %ss of %u", dev->name, nb,
					kinds[i].name, max_of(slot, i));
	}
	return 0;
}

int
rmem_check_reserved(const void *mem, size_t n)
{
	const uint8_t *byte = mem;
	size_t i;

	for (i = 0; i < n; i++) {
		if (byte[i] != 0)
			return RMEM_FAIL(EINVAL, "configuration: a reserved field is not zero");
	}
	return 0;
}
