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

/** 0 when handle is an object of the type, else -EINVAL and a line that names func. */
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

/** 0 when all n bytes at mem are zero, else -EINVAL and a line that names func. */
int rmem_check_reserved(const void *mem, size_t n, const char *func);

/** 0 when there is such a NUMA socket, else -EINVAL and a line that names func. */
int rmem_check_socket(int socket_id, const char *func);

#endif /* RMEM_PRIV_H */
