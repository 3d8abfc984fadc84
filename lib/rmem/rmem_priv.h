/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * What the files of the class share. Not installed; of the drivers, only their table
 * (drivers/rmem_drivers.c) includes it.
 */

#ifndef RMEM_PRIV_H
#define RMEM_PRIV_H

#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_log.h>

#include <rmem_driver.h>

extern int rmem_logtype;

/** Log a line: RMEM_LOG(ERR, "format", ...). */
#define RMEM_LOG(level, ...)                                                                       \
	rte_log(RTE_LOG_##level, rmem_logtype,                                                     \
			RTE_FMT("rmem: " RTE_FMT_HEAD(__VA_ARGS__, ) "\n",                         \
					RTE_FMT_TAIL(__VA_ARGS__, )))

/** Drivers built into the library, ended by NULL (drivers/rmem_drivers.c). */
extern const struct rmem_driver *const rmem_builtin_drivers[];

/** Fast-path functions of a number without a device. */
extern const struct rmem_fp_ops rmem_fp_none;

/** Give every empty slot a function that returns -EOPNOTSUPP. */
void rmem_ops_none_fill(struct rmem_dev_ops *ops);

/** Driver whose name is the first len bytes of name, or NULL. */
const struct rmem_driver *rmem_driver_find(const char *name, size_t len);

/** Device with the number dev_id. */
struct rmem_dev *rmem_dev_by_id(uint16_t dev_id);

/** Ask the driver what dev can do; -errno is the driver's. */
int rmem_dev_info_fill(struct rmem_dev *dev, struct rmem_dev_info *info);

/** Register the commands, at the start of the program. */
void rmem_telemetry_init(void);

/** Call func for each device, none being created or closed meanwhile, until it gives not 0. */
int rmem_dev_visit(int (*func)(struct rmem_dev *dev, void *arg), void *arg);

/** Call func for each QP, none being created or destroyed meanwhile, until it gives not 0. */
int rmem_qp_visit(int (*func)(struct rmem_qp *qp, void *arg), void *arg);

/** A counter of struct rmem_dev_stats. */
struct rmem_dev_stat_name {
	const char *name;
	size_t offset;
};

extern const struct rmem_dev_stat_name rmem_dev_stats_names[];
extern const size_t rmem_nb_dev_stats;

static inline uint64_t
rmem_dev_stat(const struct rmem_dev_stats *stats, const struct rmem_dev_stat_name *which)
{
	return *(const uint64_t *)(const void *)((const char *)stats + which->offset);
}

/** Driver of dev. */
static inline const struct rmem_driver *
rmem_dev_driver(const struct rmem_dev *dev)
{
	return dev->driver;
}

/** Control operations of dev. */
static inline const struct rmem_dev_ops *
rmem_dev_ops(const struct rmem_dev *dev)
{
	return &rmem_dev_driver(dev)->ops;
}

/** Device that an object belongs to. */
static inline struct rmem_dev *
rmem_obj_dev(const struct rmem_obj *obj)
{
	return rmem_dev_by_id(obj->dev_id);
}

/** What an object type is called in messages. */
const char *rmem_obj_type_str(uint32_t type);

/**
 * 0 when handle is an object of the type, else a line that names func, and -EINVAL, or
 * -EOPNOTSUPP in a secondary process.
 */
int rmem_obj_check(const void *handle, uint32_t type, const char *func);

/** Zeroed object of the device, tagged with type; NULL and a line when memory is short. */
void *rmem_obj_alloc(const struct rmem_dev *dev, uint32_t type, size_t size);

/** Free an object of rmem_obj_alloc(); its handle is refused from now on. */
void rmem_obj_free(struct rmem_obj *obj);

/** Count one more that refers to obj; -ENODEV or -EINVAL and a line when it is going away. */
int rmem_obj_get(struct rmem_obj *obj, const char *func);

/** Take back one rmem_obj_get(). */
void rmem_obj_put(struct rmem_obj *obj);

/** Let nobody refer to obj any more; -EBUSY when somebody does, with a line if func. */
int rmem_obj_kill(struct rmem_obj *obj, const char *func);

/** Take back a successful rmem_obj_kill(). */
void rmem_obj_revive(struct rmem_obj *obj);

/** Put an MR into a state; what was written before is seen by who reads the state. */
static inline void
rmem_mr_set_state(struct rmem_mr *mr, uint16_t state)
{
	__atomic_store_n(&mr->state, state, __ATOMIC_RELEASE);
}

/** State of an MR: enum rmem_mr_state. */
static inline uint16_t
rmem_mr_state(const struct rmem_mr *mr)
{
	return __atomic_load_n(&mr->state, __ATOMIC_ACQUIRE);
}

/** Whether a user MR is registered, enabled or not; else that failed, or is under way. */
static inline bool
rmem_mr_is_registered(const struct rmem_mr *mr)
{
	uint16_t state = rmem_mr_state(mr);

	return state == RMEM_MR_STATE_VALID || state == RMEM_MR_STATE_DISABLED;
}

/** The ranges of a user MR; *iov is one or the MR's. */
uint32_t rmem_mr_ranges(const struct rmem_mr *mr, struct iovec *one, const struct iovec **iov);

/** Memory, driver and state of an MR whose fields are filled; on failure it is in ERROR. */
int rmem_mr_do_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr,
		const struct rmem_dev_info *info);

/** Let control threads do that; -ENOMEM or -ENOSPC when not. Writes *mr on success. */
int rmem_async_reg(struct rmem_mr *new_mr, const struct rmem_mr_attr *attr,
		const struct rmem_dev_info *info, struct rmem_mr **mr);

/** Have the threads for one EQ more; -ENOMEM when there is none. */
int rmem_async_start(void);

/** For one EQ less. */
void rmem_async_stop(void);

/** Keep a place for the event of a new MR; -ENOSPC when there is none left. */
int rmem_eq_reserve(struct rmem_eq *eq, struct rmem_mr *mr);

/** Put the event that a place was kept for. Neither EQ nor MR may be touched afterwards. */
void rmem_eq_put(struct rmem_eq *eq, struct rmem_event *event);

/** 0 when all n bytes at mem are zero, else -EINVAL and a line that names func. */
int rmem_check_reserved(const void *mem, size_t n, const char *func);

/** 0 when there is such a NUMA socket, else -EINVAL and a line that names func. */
int rmem_check_socket(int socket_id, const char *func);

#endif /* RMEM_PRIV_H */
