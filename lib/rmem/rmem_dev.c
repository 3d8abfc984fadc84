/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Devices: create and close.
 */

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <rte_memory.h>
#include <rte_string_fns.h>

#include "rmem_mp_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

RTE_INIT(rmem_dev_init)
{
	/* A call by name, so that the linker includes the file from a static library. */
	rmem_telemetry_init();
}

/* Check the name of a device: a driver name of *driver_len bytes, then a number. */
static int
check_name(const char *name, size_t *driver_len)
{
	size_t len, i;

	if (name == NULL)
		return RMEM_FAIL(EINVAL, "device: NULL name");
	len = strnlen(name, RMEM_NAME_SIZE);
	if (len == RMEM_NAME_SIZE)
		return RMEM_FAIL(EINVAL, "device: name too long: \"%.*s...\" (%d bytes)",
				RMEM_NAME_SIZE, name, RMEM_NAME_SIZE - 1);
	for (i = len; i > 0 && isdigit((unsigned char)name[i - 1]); i--)
		;
	if (i == 0 || i == len)
		return RMEM_FAIL(EINVAL, "device: name is not a driver name and a number: \"%s\"",
				name);
	*driver_len = i;
	return 0;
}

/* Let the driver create the device of a slot, and cache its capabilities. */
static int
open_dev(struct rmem_dev_slot *slot, const char *args)
{
	const struct rmem_driver *driver = slot->drv.driver;
	int ret;

	ret = rmem_traced(driver->ops.dev_create(&slot->drv.dev, args));
	if (ret != 0)
		return ret;
	slot->info.driver_name = driver->name;
	ret = rmem_traced(driver->ops.dev_info_get(&slot->drv.dev, &slot->info));
	if (ret != 0)
		driver->ops.dev_close(&slot->drv.dev);
	slot->info.capa |= RMEM_DEV_CAPA_MR_FD;
	return ret;
}

/* Allocate a slot and let the driver fill it; call with the lock held. */
static int
do_create(const char *name, const struct rmem_driver *driver, const char *args,
		struct rmem_dev **dev)
{
	struct rmem_dev_slot *slot;
	int ret;

	if (rmem_devs_find(name) != NULL)
		return RMEM_FAIL(EEXIST, "device: name in use: \"%s\"", name);
	slot = rmem_devs_find_free();
	if (slot == NULL)
		return RMEM_FAIL(ENOSPC, "device \"%s\": table full (%d devices)", name,
				RMEM_MAX_DEVS);
	memset(&slot->info, 0, sizeof(slot->info));
	memset(slot->nb, 0, sizeof(slot->nb));
	slot->has_failed = false;
	strlcpy(slot->drv.dev.name, name, sizeof(slot->drv.dev.name));
	slot->drv.dev.socket_id = SOCKET_ID_ANY;
	slot->drv.driver = driver;
	slot->drv.priv = NULL;
	slot->drv.fp = NULL;
	slot->drv.failed = NULL;
	__atomic_fetch_and(&slot->drv.dev.obj.refs, ~RMEM_OBJ_REFS_DEAD, __ATOMIC_RELAXED);
	ret = open_dev(slot, args);
	if (ret != 0)
		return ret;
	rmem_mp_start();
	rmem_fp[slot->drv.dev.obj.dev_id] = slot->drv.fp != NULL ? *slot->drv.fp : driver->fp;
	__atomic_store_n(&slot->drv.dev.obj.type, RMEM_OBJ_DEV, __ATOMIC_RELEASE);
	*dev = &slot->drv.dev;
	return 0;
}

int
rmem_dev_create(const char *name, const char *args, struct rmem_dev **dev)
{
	RMEM_CALL(NULL);
	const struct rmem_driver *driver;
	size_t driver_len;
	int ret;

	ret = rmem_process_check();
	if (ret == 0)
		ret = check_name(name, &driver_len);
	if (ret == 0)
		ret = rmem_check_arg(dev, "device pointer");
	if (ret != 0)
		return ret;
	driver = rmem_driver_find(name, driver_len);
	if (driver == NULL)
		return RMEM_FAIL(ENODEV, "device: no such driver: \"%.*s\" (for \"%s\")",
				(int)driver_len, name, name);
	rmem_devs_lock();
	ret = do_create(name, driver, args, dev);
	if (ret == 0)
		rmem_trace_dev_create((*dev)->name, (*dev)->obj.dev_id);
	rmem_devs_unlock();
	return ret;
}

static int
refuse_close(const struct rmem_dev *dev, uint32_t refs)
{
	struct rmem_dev_info info;

	rmem_obj_counts_get(dev, &info);
	return RMEM_FAIL(EBUSY,
			"%s: in use: %u objects refer to it (%u PDs with %u MRs, %u MWs, %u QPs and %u SRQs, %u CQs, page lists, EQs, counters)",
			dev->name, refs, info.nb_pd, info.nb_mr, info.nb_mw, info.nb_qp,
			info.nb_srq, info.nb_cq);
}

/*
 * As rmem_obj_kill_quietly(); QPs that only other processes hold do not count, and are released.
 *
 * Invariant: they are released only if the device is closed. The mark precedes their release, so a
 * thread that creates an object concurrently is refused, or its reference is found before. Such
 * threads change the count for a moment even then, so the handles left are counted, which only
 * their release changes.
 */
static uint32_t
kill_dev(struct rmem_dev *dev)
{
	const struct rmem_xrc_ops *xrc = rmem_obj_driver(&dev->obj)->ops.xrc;
	const uint32_t *nb = &rmem_devs[dev->obj.dev_id].nb[RMEM_OBJ_KIND(RMEM_OBJ_XRCD)];
	uint32_t refs;

	/* Count other references later: the driver may release the last QP until then. */
	if (xrc == NULL || xrc->share == NULL || !rmem_xrcd_kill_left(dev))
		return rmem_obj_kill_quietly(&dev->obj);
	xrc->share->qp_leave(dev);
	refs = __atomic_load_n(nb, __ATOMIC_ACQUIRE);
	/* The driver or a test holds others. */
	if (refs != 0)
		__atomic_fetch_and(&dev->obj.refs, ~RMEM_OBJ_REFS_DEAD, __ATOMIC_RELEASE);
	return refs;
}

/* Close a device; call with the lock held. */
static int
do_close(struct rmem_dev *dev)
{
	uint32_t refs;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret != 0)
		return ret;
	refs = kill_dev(dev);
	if (refs != 0)
		return refuse_close(dev, refs);
	rmem_trace_dev_close(dev->name);
	rmem_fp[dev->obj.dev_id] = rmem_fp_none;
	rmem_mp_forget(dev);
	rmem_obj_driver(&dev->obj)->ops.dev_close(dev);
	/* A thread of the driver may have reported that the device failed: rmem_dev_fail(). */
	rmem_fp[dev->obj.dev_id] = rmem_fp_none;
	__atomic_store_n(&dev->obj.type, RMEM_OBJ_NONE, __ATOMIC_RELEASE);
	return 0;
}

int
rmem_dev_close(struct rmem_dev *dev)
{
	RMEM_CALL(dev);
	int ret;

	if (dev == NULL)
		return 0;
	rmem_devs_lock();
	ret = do_close(dev);
	rmem_devs_unlock();
	return ret;
}
