/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Requests of secondary processes to the primary. Not installed.
 */

#ifndef RMEM_MP_PRIV_H
#define RMEM_MP_PRIV_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "rmem_priv.h"

/** Name of the action that the primary registers with EAL. */
#define MP_ACTION "rmem"

#define MP_LCORE_WORDS ((RTE_MAX_LCORE + 63) / 64)

/** Requests of secondary processes. */
enum mp_op {
	MP_ATTACH = 1,
	MP_DETACH,
	MP_CLAIM,
	MP_UNCLAIM,
	MP_LOOKUP,
};

/** Identity of a process; the start time distinguishes processes with one PID. */
struct mp_id {
	int32_t pid;
	uint32_t pad;
	uint64_t start; /**< As in /proc/PID/stat: clock ticks after boot. */
};

struct mp_req {
	uint32_t version; /**< RMEM_VERSION. */
	uint32_t op;      /**< enum mp_op. */
	struct mp_id id;
	uint32_t type;                   /**< LOOKUP: enum rmem_obj_type. */
	uint32_t dev_id;                 /**< Except ATTACH. */
	void *obj;                       /**< CLAIM, UNCLAIM. */
	char name[RMEM_NAME_SIZE];       /**< ATTACH: the device; LOOKUP: the object. */
	uint64_t lcores[MP_LCORE_WORDS]; /**< ATTACH. */
};

/** Description of a device for attached processes; in memory of DPDK. */
struct mp_dev {
	struct rmem_dev_info info; /**< Without driver_name, a pointer of the primary. */
	char driver[RMEM_NAME_SIZE];
	void *priv; /**< Private to the driver. */
	int socket_id;
};

struct mp_rep {
	int32_t ret;
	uint16_t number;          /**< ATTACH: number of the process. */
	uint16_t dev_id;          /**< ATTACH. */
	struct mp_id id;          /**< The primary process. */
	const struct mp_dev *dev; /**< ATTACH. */
	void *obj;                /**< LOOKUP. */
	char reason[128];         /**< For the log, if ret is not 0. */
};

static_assert(sizeof(struct mp_req) <= RTE_MP_MAX_PARAM_LEN, "a request fits");
static_assert(sizeof(struct mp_rep) <= RTE_MP_MAX_PARAM_LEN, "a reply fits");

/** Find a device by name, and hold it until rmem_obj_unhold(); NULL: no such device. */
struct rmem_dev *rmem_dev_hold_by_name(const char *name);

/** Start time of a process; 0 if there is none, or it is not visible. */
uint64_t rmem_mp_start_time(pid_t pid);

/** Open a pidfd of a process. Return it, or -ESRCH, -EOPNOTSUPP or -ENOMEM. */
int rmem_mp_pidfd(const struct mp_id *id);

/** Let secondary processes attach to the devices of this process, if EAL permits. */
void rmem_mp_start(void);

/** The device is being closed. */
void rmem_mp_forget(const struct rmem_dev *dev);

/** Whether this secondary process is attached to a device. */
bool rmem_mp_is_attached(const struct rmem_dev *dev);

/** Add a device of the primary to the table of this process; -EALREADY. */
int rmem_dev_adopt(const char *name, uint16_t dev_id, const struct mp_dev *shared,
		const struct rmem_driver *driver, struct rmem_dev **dev);

/** Remove a device of the primary; *dev_id is its number. False: it is not in the table. */
bool rmem_dev_abandon(const struct rmem_dev *dev);

/** Make posts and polls return -ENODEV, because the primary has ended. */
void rmem_dev_orphan_all(void);

#endif /* RMEM_MP_PRIV_H */
