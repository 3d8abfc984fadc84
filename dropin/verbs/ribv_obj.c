/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Functions of libibverbs, errnos, and the array of objects.
 *
 * Invariant: the type of a slot is RIBV_FREE, then RIBV_NEW while its object is created, then the
 * type of the object. That type is stored with release when the object is complete, and loaded with
 * acquire before anything is read through a pointer of the program.
 * Invariant: the memory of the array is never unmapped, so each slot can be read at any time. Slots
 * are allocated in turn, so a pointer to a destroyed object is refused until its slot is used
 * again.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ribv.h"
#include "rmem_env.h"

/* Slot 0 is never used, so no object has handle 0. */
uintptr_t ribv_objs;
uint8_t ribv_types[RIBV_MAX_OBJS];
RMEM_ENV_KEPT bool ribv_has_real;
struct rmem_dev *ribv_devs[RIBV_MAX_DEVS + 1];
static RMEM_ENV_KEPT uint32_t last; /* Slot allocated last; slots are used in turn, so that a freed
				     * one stays free for long. */
RMEM_ENV_KEPT uint8_t *ribv_inherited;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static_assert(sizeof(struct ribv_qp) <= RIBV_SLOT && sizeof(struct ribv_cq) <= RIBV_SLOT &&
				sizeof(struct ribv_context) <= RIBV_SLOT,
		"slots are too small");

ribv_next_t ribv_next;
void (*ribv_entered)(uint32_t slot);

void
ribv_obj_init(ribv_next_t next)
{
	void *memory = mmap(NULL, (size_t)RIBV_MAX_OBJS * RIBV_SLOT, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ribv_next = next;
	if (memory != MAP_FAILED)
		ribv_objs = (uintptr_t)memory;
}

int
ribv_errno(int ret)
{
	return ret == -EBUSY ? EINVAL : ret == -ENOSPC ? ENOMEM : -ret;
}

void *
ribv_fail(int err)
{
	errno = err;
	return NULL;
}

static uint32_t
slot_of(const void *obj)
{
	return (uint32_t)(((uintptr_t)obj - ribv_objs) / RIBV_SLOT);
}

int
ribv_minus_one(int err)
{
	errno = err;
	return -1;
}

void *
ribv_new(void)
{
	uint32_t i, n;
	void *obj;

	if (ribv_objs == 0)
		return ribv_fail(ENOMEM);
	pthread_mutex_lock(&lock);
	for (i = last, n = 0; n < RIBV_MAX_OBJS; n++) {
		i = i + 1 < RIBV_MAX_OBJS ? i + 1 : 1;
		if (ribv_types[i] == RIBV_FREE)
			break;
	}
	if (n < RIBV_MAX_OBJS) {
		last = i;
		if (ribv_inherited != NULL)
			__atomic_store_n(&ribv_inherited[i], RIBV_FREE, __ATOMIC_RELAXED);
		__atomic_store_n(&ribv_types[i], RIBV_NEW, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	if (n == RIBV_MAX_OBJS)
		return ribv_fail(ENOMEM);
	obj = (void *)(ribv_objs + (uintptr_t)i * RIBV_SLOT);
	memset(obj, 0, RIBV_SLOT);
	return obj;
}

uint32_t
ribv_enter(void *obj, enum ribv_type type)
{
	if (ribv_entered != NULL)
		ribv_entered(slot_of(obj));
	__atomic_store_n(&ribv_types[slot_of(obj)], (uint8_t)type, __ATOMIC_RELEASE);
	return slot_of(obj);
}

void
ribv_leave(void *obj)
{
	__atomic_store_n(&ribv_types[slot_of(obj)], RIBV_FREE, __ATOMIC_RELEASE);
}

void
ribv_obj_forked(void)
{
	uint32_t i;

	if (last == 0)
		return;
	if (ribv_inherited == NULL)
		ribv_inherited = calloc(RIBV_MAX_OBJS, sizeof(*ribv_inherited));
	for (i = 1; ribv_inherited != NULL && i < RIBV_MAX_OBJS; i++) {
		if (ribv_types[i] > RIBV_NEW)
			ribv_inherited[i] = ribv_types[i];
	}
}
