/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Common head of all rmem objects.
 *
 * The class uses the head to check the type of a handle, to find the device of an object, and to
 * count references. The head is private. Objects other than the device are in DPDK shared memory
 * and hold no function pointer.
 */

#ifndef RMEM_OBJ_H
#define RMEM_OBJ_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a name, including the NUL. */
#define RMEM_NAME_SIZE 32

/** Types of objects. The values are unlikely in other memory, to detect stray handles. */
enum rmem_obj_type {
	RMEM_OBJ_NONE = 0,                   /**< Destroyed, or never an object. */
	RMEM_OBJ_DEV = 0x726d0001,           /**< struct rmem_dev. */
	RMEM_OBJ_PD = 0x726d0002,            /**< struct rmem_pd. */
	RMEM_OBJ_MR = 0x726d0003,            /**< struct rmem_mr. */
	RMEM_OBJ_CQ = 0x726d0004,            /**< struct rmem_cq. */
	RMEM_OBJ_QP = 0x726d0005,            /**< struct rmem_qp. */
	RMEM_OBJ_PAGE_LIST = 0x726d0006,     /**< struct rmem_fast_reg_page_list. */
	RMEM_OBJ_POOL = 0x726d0007,          /**< struct rmem_pool. */
	RMEM_OBJ_MW = 0x726d0008,            /**< struct rmem_mw. */
	RMEM_OBJ_EQ = 0x726d0009,            /**< struct rmem_eq. */
	RMEM_OBJ_COUNTER = 0x726d000a,       /**< struct rmem_counter. */
	RMEM_OBJ_SRQ = 0x726d000b,           /**< struct rmem_srq. */
	RMEM_OBJ_COMP_CHANNEL = 0x726d000c,  /**< struct rmem_comp_channel. */
	RMEM_OBJ_AH = 0x726d000d,            /**< struct rmem_ah. */
	RMEM_OBJ_ASYNC_CHANNEL = 0x726d000e, /**< struct rmem_async_channel. */
	RMEM_OBJ_XRCD = 0x726d000f,          /**< struct rmem_xrcd. */
	RMEM_OBJ_DM = 0x726d0010,            /**< struct rmem_dm. */
};

/** Head of every object; private to the class and its drivers. */
struct rmem_obj {
	uint32_t type;    /**< One of enum rmem_obj_type. */
	uint16_t dev_id;  /**< Index of the device, below RMEM_MAX_DEVS. */
	uint16_t process; /**< Process that claimed the QP, or posted the last binding. */
	uint32_t refs;    /**< References by objects and queued requests; atomic. */
};

/** A name for log lines; see rmem_name_text(). */
struct rmem_name_text {
	char text[RMEM_NAME_SIZE + 4]; /**< A space and the name in quotes, or nothing. */
};

/**
 * Check a name of a configuration.
 *
 * For libraries above the class. Safe to call from any thread.
 *
 * @param name
 *   Printable characters, up to RMEM_NAME_SIZE - 1 bytes; NULL is allowed: no name.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: too long, or a character that is not printable.
 */
int rmem_name_check(const char *name);

/**
 * Write a name as it follows the number of an object in log lines: ` "name"`.
 *
 * For drivers and libraries above the class. Safe to call from any thread.
 *
 * @param name
 *   Name, or "".
 * @param[out] text
 *   Memory of the result.
 *
 * @return
 *   The text; empty for "".
 */
const char *rmem_name_text(const char *name, struct rmem_name_text *text);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_OBJ_H */
