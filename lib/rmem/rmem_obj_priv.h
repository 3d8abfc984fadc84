/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The private head that precedes each object of rmem_obj_create(). Not installed.
 */

#ifndef RMEM_OBJ_PRIV_H
#define RMEM_OBJ_PRIV_H

#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#include <rte_common.h>

#include <rmem_obj.h>

/** States of a head. Written by the thread that creates or releases the object. */
enum rmem_obj_head_state {
	RMEM_OBJ_NEW = 0,      /**< Not in its list, and never was. */
	RMEM_OBJ_LISTED = 1,   /**< In its list. */
	RMEM_OBJ_UNLISTED = 2, /**< Being released. */
};

/** Precedes an object; whole cache lines, so that the object is aligned to one. */
struct rmem_obj_head {
	LIST_ENTRY(rmem_obj_head) entry; /**< In the list of its kind. */
	char name[RMEM_NAME_SIZE];       /**< Name, or empty. */
	uint64_t created_ns;             /**< CLOCK_MONOTONIC. */
	uint32_t state;                  /**< enum rmem_obj_head_state. */
	uint32_t number; /**< Serial number within its kind in this process, from 1. */
} __rte_cache_aligned;

/** Head of an object of rmem_obj_create(): not of a device, a pool or a lease context. */
static inline struct rmem_obj_head *
rmem_obj_head(const struct rmem_obj *obj)
{
	return (struct rmem_obj_head *)(uintptr_t)obj - 1;
}

/** Nanoseconds of a clock. */
uint64_t rmem_now_ns(clockid_t clock);

/** Milliseconds since the object was created. */
uint64_t rmem_obj_age_ms(const struct rmem_obj *obj);

/** Set the name of a new object; NULL: none. rmem_name_check() has accepted it. */
void rmem_obj_set_name(struct rmem_obj *obj, const char *name);

/** Name of an object, or "" if it has none, or is not of the type. */
const char *rmem_obj_name(const struct rmem_obj *obj, uint32_t type);

/** Add a usable object to the list of its kind. */
void rmem_obj_list(struct rmem_obj *obj);

/** Remove an object that is being released from its list, if it is there. */
void rmem_obj_unlist(struct rmem_obj *obj);

/** List an object again, if rmem_obj_unlist() removed it. */
void rmem_obj_relist(struct rmem_obj *obj);

/**
 * Call func for each listed object of a type, until it returns not 0. No such object is released
 * during the call.
 */
int rmem_obj_visit(uint32_t type, int (*func)(struct rmem_obj *obj, void *arg), void *arg);

#endif /* RMEM_OBJ_PRIV_H */
